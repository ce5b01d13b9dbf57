/**
 * The power goes, or a call fails, at every disk call of a backup and of a restore. What passes for whole afterwards is whole:
 * a backup that is listed restores, a directory that opens as a store is one; and the next attempt succeeds.
 */
import { describe, expect, it } from 'vitest';
import type { RestoreReport } from '../../src/doors/http/system-contract.ts';
import { ServiceError } from '../../src/errors.ts';
import { unfinishedRestore } from '../../src/log/backup/backup-restore.ts';
import { verifyDirectory } from '../../src/log/proofs/verify.ts';
import { restoreStore } from '../../src/upkeep/store-restores.ts';
import type { ServiceDependencies } from '../../src/service.ts';
import { TestRandom, TestStore } from '../harness.ts';
import { crashImage, sameImage, type Survivors } from './crash-image.ts';
import { faultsOf } from './faults.ts';
import { type DiskState, type Fault, FaultyDisk, type Image, type Step } from './faulty-disk.ts';
import { Seeded } from './seeded.ts';

const TARGET = '/restored';
/** So many random images of each crash, beside what lost nothing and what lost everything. */
const IMAGES = 1;

async function open(disk: FaultyDisk, directory = '/data', parts: Partial<ServiceDependencies> = {}): Promise<TestStore> {
  const settings = { SERVICE_IN_MEMORY: 'false', SERVICE_DATA_DIR: directory, SERVICE_BACKUP_DIR: '/backups' };
  // Keys and names that differ from those of the process before.
  return TestStore.open('2024-01-01', settings, {
    disk,
    random: new TestRandom(directory.length + disk.steps + 3),
    ...parts,
  });
}

interface World {
  readonly disk: FaultyDisk;
  readonly store: TestStore;
  fault: (step: Step) => Fault | undefined;
}

/** A store with rows of two requests and a blob. */
async function world(image?: Image): Promise<World> {
  const made: { fault: World['fault'] } = { fault: () => undefined };
  const disk = new FaultyDisk({ beforeStep: (step) => made.fault(step) }, image);
  const store = await open(disk);
  if (!image) {
    await store.put('Person', [{ id: 'a', name: 'Ada' }]);
    await store.put('Person', [{ id: 'b', name: 'Bea' }]);
  }
  return Object.assign(made, { disk, store });
}

/** States before each call that could leave something else than the one before, and the calls. */
async function watched(one: World, work: () => Promise<unknown>): Promise<{ states: DiskState[]; steps: Step[] }> {
  const states: DiskState[] = [];
  const steps: Step[] = [];
  let version = -1;
  one.fault = (step) => {
    steps.push(step);
    if (one.disk.version !== version) states.push(one.disk.state());
    version = one.disk.version;
    return undefined;
  };
  await work();
  one.fault = () => undefined;
  states.push(one.disk.state());
  return { states, steps };
}

function* imagesOf(states: readonly DiskState[]): Generator<{ readonly image: Image; readonly what: string }> {
  for (const [i, state] of states.entries()) {
    const random = new Seeded(i + 1);
    const survivors: Survivors[] = ['none', 'all', ...Array.from({ length: IMAGES }, () => random)];
    const seen: Image[] = [];
    for (const survivor of survivors) {
      const image = crashImage(state, survivor);
      if (seen.some((other) => sameImage(other, image))) continue;
      seen.push(image);
      yield { image, what: `${i}.${seen.length}` };
    }
  }
}

/** Names of what lies below the backups, and of those that are listed as whole. */
async function backupsOn({ disk, store }: World): Promise<{ names: string[]; whole: string[] }> {
  const listed = await store.service.upkeep.backups.list();
  expect(listed.filter((each) => 'damaged' in each)).toEqual([]);
  return { names: await disk.list('/backups'), whole: listed.map(({ backup }) => backup) };
}

describe('a backup', () => {
  it('that the power cuts off is whole or is none, and the next one clears it', { timeout: 300_000 }, async () => {
    const one = await world();
    const first = (await one.store.service.upkeep.backups.create()).backup;
    const { states } = await watched(one, () => one.store.service.upkeep.backups.create());
    let cut = 0;
    let whole = 0;
    for (const { image, what } of imagesOf(states)) {
      const again = await world(image);
      const found = await backupsOn(again);
      expect(found.whole, what).toContain(first);
      for (const backup of found.whole.filter((each) => each !== first)) {
        const report = await again.store.service.upkeep.backups.restore(backup, TARGET);
        expect([what, report.root_match]).toEqual([what, true]);
      }
      if (found.whole.length > 1) whole++;
      if (found.names.length > found.whole.length) cut++;
      const { backup } = await again.store.service.upkeep.backups.create();
      const after = await backupsOn(again);
      expect(after.names, what).toEqual(after.whole);
      expect(new Set(after.whole), what).toEqual(new Set([...found.whole, backup]));
      await again.store.close();
    }
    expect(cut).toBeGreaterThan(10);
    expect(whole).toBeGreaterThan(0);
  });

  it('whose digests the power cuts off has them whole or not at all', { timeout: 300_000 }, async () => {
    const made: Pick<World, 'fault'> = { fault: () => undefined };
    const disk = new FaultyDisk({ beforeStep: (step) => made.fault(step) });
    const store = await open(disk, '/data', { derived: { machineBytes: 1 << 30, segmentRows: 256 } });
    const one: World = Object.assign(made, { disk, store });
    await store.put(
      'Person',
      Array.from({ length: 1_100 }, (_, i) => ({ id: `${i}`, name: `Name ${i}` })),
    );
    const { backup } = await store.service.upkeep.backups.create();
    const { states, steps } = await watched(one, () => store.service.upkeep.backups.whenIdle());
    expect(steps.some(({ path }) => path.includes(backup))).toBe(true);
    const compared = { without: 0, with: 0 };
    for (const { image, what } of imagesOf(states)) {
      const again = await world(image);
      const [found, ...others] = await again.store.service.upkeep.backups.list();
      if (!found || 'damaged' in found) throw new Error(`${what}: ${JSON.stringify(found)}`);
      expect([what, found.backup, others]).toEqual([what, backup, []]);
      const recorded = found.digest_tree_size !== null;
      if (compared[recorded ? 'with' : 'without']++ === 0) {
        const report = await again.store.service.upkeep.backups.restore(backup, TARGET);
        expect(report.compared_with).toMatch(recorded ? /^the store that was backed up/ : /^a second replay/);
        expect([report.root_match, report.projections.every(({ match }) => match)]).toEqual([true, true]);
      }
      await again.store.close();
    }
    expect(compared.without).toBeGreaterThan(3);
    expect(compared.with).toBeGreaterThan(0);
  });

  it('of which a call fails is told as failed, and leaves nothing', { timeout: 300_000 }, async () => {
    const calm = await world();
    const start = crashImage(calm.disk.state(), 'all');
    const { steps } = await watched(calm, () => calm.store.service.upkeep.backups.create());
    const first = steps[0]!.index;
    let failed = 0;
    for (const at of steps) {
      for (const [name, fault] of faultsOf(at, 1)) {
        const one = await world(start);
        await one.store.service.store.log.seal();
        const offset = one.disk.steps - first;
        one.fault = (step) => (step.index - offset === at.index ? fault : undefined);
        const taken = await one.store.service.upkeep.backups.create().then(
          ({ backup }) => backup,
          (error: unknown) => error,
        );
        one.fault = () => undefined;
        const what = `${at.kind} ${at.path} ${name}`;
        const found = await backupsOn(one);
        expect(found.names, what).toEqual(found.whole);
        if (typeof taken === 'string') {
          // A write that is short is gone on with.
          expect(found.whole, what).toEqual([taken]);
          expect((await one.store.service.upkeep.backups.restore(taken, TARGET)).root_match).toBe(true);
        } else {
          failed++;
          expect([what, (taken as ServiceError).code]).toEqual([what, 'REL_UNAVAILABLE']);
          expect(found.whole, what).toEqual([]);
        }
        await one.store.service.upkeep.backups.create();
        expect((await backupsOn(one)).whole.length, what).toBe(typeof taken === 'string' ? 2 : 1);
      }
    }
    expect(failed).toBeGreaterThan(20);
  });
});

describe('a restore', () => {
  interface BackedUp {
    readonly one: World;
    readonly root: string;
    /** As whoever has backup and keys does it, on any disk that holds them. */
    readonly restore: (disk: FaultyDisk) => Promise<RestoreReport>;
  }

  async function backedUp(): Promise<BackedUp> {
    const one = await world();
    const { service } = one.store;
    const { backup, root } = await service.upkeep.backups.create();
    const random = new TestRandom(77);
    const restore = (disk: FaultyDisk): Promise<RestoreReport> =>
      restoreStore({
        disk,
        clock: one.store.clock,
        random,
        settings: service.settings,
        version: service.version,
        source: `/backups/${backup}`,
        target: TARGET,
        keys: service.store.keyring.contents(),
        say: () => undefined,
        yieldTurn: async () => undefined,
      });
    return { one, root, restore };
  }

  /** Whether the target may be taken for a store; fails where it may and is none. */
  async function passes(disk: FaultyDisk, { one, root }: BackedUp, what: string): Promise<boolean> {
    const names = await disk.list(TARGET);
    if (names.length === 0 || (await unfinishedRestore(disk, TARGET)) !== undefined) return false;
    const report = await verifyDirectory({ disk, directory: TARGET, keyring: one.store.service.store.keyring });
    expect([what, report.findings, report.root]).toEqual([what, [], root]);
    const restored = await open(disk, TARGET);
    expect(await restored.column('SELECT name FROM Person ORDER BY id'), what).toEqual(['Ada', 'Bea']);
    await restored.close();
    return true;
  }

  it('that did not end is opened by no store', async () => {
    const { one, restore } = await backedUp();
    const { states } = await watched(one, () => restore(one.disk));
    const disk = new FaultyDisk({}, crashImage(states[states.length >> 1]!, 'all'));
    await expect(open(disk, TARGET)).rejects.toMatchObject({
      code: 'REL_STORAGE',
      message: await unfinishedRestore(disk, TARGET),
    });
  });

  it('that the power cuts off passes for no store, and is begun anew', { timeout: 300_000 }, async () => {
    const made = await backedUp();
    const { states } = await watched(made.one, () => made.restore(made.one.disk));
    let cut = 0;
    let whole = 0;
    for (const { image, what } of imagesOf(states)) {
      const disk = new FaultyDisk({}, image);
      if (await passes(disk, made, what)) {
        whole++;
        continue;
      }
      if ((await disk.list(TARGET)).length > 0) cut++;
      const report = await made.restore(disk);
      expect([what, report.root_match, report.root]).toEqual([what, true, made.root]);
      // What was begun anew is all on the disk.
      const after = new FaultyDisk({}, crashImage(disk.state(), 'none'));
      expect([what, await unfinishedRestore(after, TARGET), await after.list(`${TARGET}/log`)]).toEqual([
        what,
        undefined,
        ['00000000.log', 'checkpoint', 'manifest'],
      ]);
    }
    expect(cut).toBeGreaterThan(10);
    expect(whole).toBeGreaterThan(0);
  });

  it('of which a call fails is told as failed, and leaves the target empty', { timeout: 300_000 }, async () => {
    const made = await backedUp();
    const start = crashImage(made.one.disk.state(), 'all');
    const { steps } = await watched(made.one, () => made.restore(made.one.disk));
    let failed = 0;
    for (const at of steps) {
      for (const [name, fault] of faultsOf(at, 1)) {
        let failing = true;
        const disk = new FaultyDisk(
          { beforeStep: ({ index }) => (failing && index === at.index - steps[0]!.index ? fault : undefined) },
          start,
        );
        const outcome = await made.restore(disk).then(
          () => null,
          (error: unknown) => error,
        );
        failing = false;
        const what = `${at.kind} ${at.path} ${name}`;
        if (outcome) {
          failed++;
          expect([what, outcome]).toEqual([what, expect.any(ServiceError)]);
          expect([what, await disk.list(TARGET)]).toEqual([what, []]);
        } else expect([what, await unfinishedRestore(disk, TARGET)]).toEqual([what, undefined]);
      }
    }
    expect(failed).toBeGreaterThan(20);
  });
});
