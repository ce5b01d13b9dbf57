/**
 * What a restore is compared with, of a store that is too large to be digested within a turn: the state that it saved itself,
 * digested after the backup was acknowledged.
 */
import { describe, expect, it, test } from 'vitest';
import type { BackgroundDigest } from '../src/upkeep/store-backups.ts';
import type { RestoreReport } from '../src/doors/http/system-contract.ts';
import { type Artefact, formatArtefact } from '../src/log/backup/backup-artefact.ts';
import type { Disk } from '../src/log/disk/disk.ts';
import { MemoryDisk } from '../src/log/disk/memory-disk.ts';
import type { SavedState } from '../src/projections/checkpoint-schedule.ts';
import { digestsOfSaved } from '../src/upkeep/saved-digests.ts';
import type { Service, ServiceDependencies } from '../src/service.ts';
import { ErasureWorld } from './governance/erasure/erasure-world.ts';
import { analyst, TestStore } from './harness.ts';
import { FaultyDisk, type Step } from './simulation/faulty-disk.ts';

const settings = { SERVICE_IN_MEMORY: 'false', SERVICE_DATA_DIR: '/data' };
const derived = { machineBytes: 1 << 30, segmentRows: 512 };

interface World {
  readonly disk: Disk;
  readonly store: TestStore;
  readonly service: Service;
  readonly said: string[];
}

/** More rows than a turn digests, in segments with files and in one that grows. */
async function world(parts: Partial<ServiceDependencies> = {}, turn?: (step: Step) => Promise<void>): Promise<World> {
  const disk = turn ? new FaultyDisk({ turn }) : new MemoryDisk();
  const said: string[] = [];
  const store = await TestStore.open('2024-01-01', settings, { disk, derived, say: (line) => said.push(line), ...parts });
  await store.register('Person', { id: 'string', name: 'string', age: 'integer' }, 'id');
  await store.put('Person', people(2_500));
  await store.put('Person', [{ id: 'p0', name: 'Other' }]);
  await store.delete('Person', ['p1']);
  said.length = 0;
  return { disk, store, service: store.service, said };
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}

const people = (rows: number): { id: string; name: string; age: number }[] =>
  Array.from({ length: rows }, (_, i) => ({ id: `p${i}`, name: `Name ${i}`, age: i }));

async function artefactOf({ disk }: World, backup: string): Promise<Artefact> {
  const { signature: _, ...artefact } = JSON.parse(
    Buffer.from((await disk.readFile(`/data/backups/${backup}/backup.json`))!).toString(),
  ) as Artefact & { signature: string };
  return artefact;
}

/** Takes one, and waits until its digests are recorded. */
async function digested(one: World): Promise<string> {
  const { backup, digest_tree_size } = await one.service.upkeep.backups.create();
  expect(digest_tree_size).toBeNull();
  await one.service.upkeep.backups.whenIdle();
  return backup;
}

/** Whatever the next backup does after its state was captured and before its head was taken. */
function between({ service }: World, work: (saved: SavedState | null) => Promise<unknown>): void {
  const keeper = service.store.checkpoints!;
  const captured = keeper.capture.bind(keeper);
  keeper.capture = async () => {
    const saved = await captured();
    await work(saved);
    return saved;
  };
}

const allMatch = ({ projections }: RestoreReport): boolean => projections.every(({ match }) => match);

test('digests of the state that the store saved are recorded after the reply, and compared with', async () => {
  const one = await world();
  const backup = await digested(one);
  const artefact = await artefactOf(one, backup);
  expect(artefact.digest_tree_size).toBe(artefact.tree_size);
  expect(artefact.projections).toEqual(one.service.store.projections.digests());
  expect(await one.service.upkeep.backups.list()).toMatchObject([{ backup, digest_tree_size: artefact.tree_size }]);
  expect(one.said).toEqual([]);
  const report = await one.service.upkeep.backups.restore(backup, '/restored');
  expect([report.compared_with, allMatch(report)]).toEqual(['the store that was backed up', true]);
});

test('of a store that is written to, at the last place before its head', async () => {
  const one = await world();
  let written = 0;
  between(one, async () => {
    await one.store.put('Person', people(3_000 + ++written));
  });
  const backup = await digested(one);
  const { tree_size: size, digest_tree_size: at } = await artefactOf(one, backup);
  expect(at).toBeLessThan(size);
  const report = await one.service.upkeep.backups.restore(backup, '/restored');
  expect(report.compared_with).toBe(`the store that was backed up, as it was at ${at} of ${size} entries`);
  expect(allMatch(report)).toBe(true);
  const restored = await TestStore.open('2024-01-01', { ...settings, SERVICE_DATA_DIR: '/restored' }, { disk: one.disk });
  expect(await restored.rows('SELECT COUNT(*) AS n FROM Person AS OF CURRENT')).toEqual([{ n: 3_001n }]);
  await restored.close();
});

test('of what was placed and not yet written when the state was captured', async () => {
  let written = Promise.resolve();
  const one = await world({}, async ({ kind, path }) => {
    if (kind === 'write' && path.startsWith('/data/log/')) await written;
  });
  const keeper = one.service.store.checkpoints!;
  const captured = keeper.capture.bind(keeper);
  let writing: Promise<unknown> = Promise.resolve();
  keeper.capture = async () => {
    let letWrite = (): void => undefined;
    written = new Promise((resolve) => (letWrite = resolve));
    const { leaves } = one.service.store.log.status();
    writing = one.store.put('Person', people(1));
    while (one.service.store.log.status().leaves === leaves) await turns(1);
    const saved = await captured();
    void turns(20).then(letWrite);
    return saved;
  };
  const backup = await digested(one);
  await writing;
  const { tree_size: size, digest_tree_size: at } = await artefactOf(one, backup);
  expect(at).toBeLessThanOrEqual(size);
  const report = await one.service.upkeep.backups.restore(backup, '/restored');
  expect([report.compared_with, allMatch(report)]).toEqual([expect.stringMatching(/^the store/) as string, true]);
});

test('and not of a state that was captured before, while that is being saved', async () => {
  let saved = Promise.resolve();
  const one = await world({}, async ({ kind, path }) => {
    if (kind === 'write' && path.startsWith('/data/projections/')) await saved;
  });
  const keeper = one.service.store.checkpoints!;
  expect(await keeper.take()).toBe(true);
  let letSave = (): void => undefined;
  saved = new Promise((resolve) => (letSave = resolve));
  const before = await keeper.capture();
  await one.store.put('Person', people(1));
  void turns(20).then(letSave);
  const backup = await digested(one);
  expect((await before!.written)!.leaves).toBe(before!.leaves);
  const { projections, digest_tree_size: at } = await artefactOf(one, backup);
  expect(at).toBeGreaterThan(before!.leaves);
  expect(projections).toEqual(one.service.store.projections.digests());
});

describe('of a store whose segments are still being written', () => {
  /** Writes of derived files wait until they are let through. */
  async function held(): Promise<{ one: World; hold: () => () => void }> {
    let open = Promise.resolve();
    const one = await world({}, async ({ kind, path }) => {
      if ((kind === 'write' || kind === 'create') && path.startsWith('/data/projections/')) await open;
    });
    await one.service.store.checkpoints!.take();
    const hold = (): (() => void) => {
      let letThrough = (): void => undefined;
      open = new Promise((resolve) => (letThrough = resolve));
      return letThrough;
    };
    return { one, hold };
  }

  test('it waits for none of them, and has digests of that state once they are there', async () => {
    const { one, hold } = await held();
    const letThrough = hold();
    await one.store.put('Person', people(1_500));
    expect(one.service.store.columns!.unsaved).toBeGreaterThan(0);
    const { backup } = await one.service.upkeep.backups.create();
    const wanted = one.service.store.projections.digests();
    const { tree_size: size } = await artefactOf(one, backup);
    // Rows that are closed, deleted and new afterwards are not in it.
    await one.store.put('Person', people(700));
    await one.store.delete('Person', ['p3']);
    letThrough();
    await one.service.upkeep.backups.whenIdle();
    expect(one.said).toEqual([]);
    const artefact = await artefactOf(one, backup);
    expect([artefact.digest_tree_size, artefact.projections]).toEqual([size, wanted]);
    const report = await one.service.upkeep.backups.restore(backup, '/restored');
    expect([report.compared_with, allMatch(report)]).toEqual(['the store that was backed up', true]);
    await one.store.close();
    const again = await TestStore.open('2024-01-01', settings, { disk: one.disk, derived });
    expect(again.service.store.projections.digests()).toEqual(one.service.store.projections.digests());
  });

  test('and has none where rows of theirs are removed for good meanwhile: what is saved is of after that', async () => {
    const { one, hold } = await held();
    const letThrough = hold();
    await one.store.put('Person', people(1_500));
    const { backup } = await one.service.upkeep.backups.create();
    const remove = { kind: 'remove-rows', type: 'Person', keys: ['p9'] } as const;
    await one.store.invoke(analyst, 'remove', (invocation) => invocation.submit(remove));
    letThrough();
    await one.service.upkeep.backups.whenIdle();
    expect((await artefactOf(one, backup)).projections).toBeNull();
    expect(one.said).toEqual([expect.stringContaining('could not be saved') as string]);
    const report = await one.service.upkeep.backups.restore(backup, '/restored');
    expect([report.root_match, allMatch(report)]).toEqual([true, true]);
    const wanted = one.service.store.projections.digests();
    await one.store.close();
    const again = await TestStore.open('2024-01-01', settings, { disk: one.disk, derived });
    expect(again.service.store.projections.digests()).toEqual(wanted);
  });
});

test('each backup has its own, one after the other; a next one waits for none, and ends those of the last', async () => {
  const until = new Set<AbortSignal>();
  let ready = false;
  const one = await world({
    digestBeside: async (request, signal) => {
      until.add(signal);
      if (!ready) for (let turn = 0; turn < 50_000 && !signal.aborted; turn++) await turns(1);
      if (signal.aborted) throw new Error('ended');
      return digestsOfSaved(request, one.disk);
    },
  });
  const first = await one.service.upkeep.backups.create();
  while (until.size === 0) await new Promise((resolve) => setImmediate(resolve));
  ready = true;
  const taken = [await digested(one), await digested(one)];
  expect(one.said).toEqual([expect.stringContaining(`${first.backup} has no digests of projections (another backup was taken`)]);
  for (const backup of [first.backup, ...taken]) {
    const report = await one.service.upkeep.backups.restore(backup, `/${backup}`);
    const expected = backup === first.backup ? /^a second replay/ : /^the store that was backed up$/;
    expect([report.compared_with, allMatch(report)]).toEqual([expect.stringMatching(expected) as string, true]);
  }
});

describe('never restores quietly', () => {
  const refusal = async ({ service, disk }: World, backup: string): Promise<{ message: string; differing: string[] }> => {
    const error = await service.upkeep.backups.restore(backup, '/restored').then(
      () => null,
      (cause: unknown) => cause as { code: string; message: string; facts: { extras?: { report: RestoreReport } } },
    );
    expect(error).toMatchObject({ code: 'REL_UNPROCESSABLE' });
    expect(await disk.list('/restored')).toEqual([]);
    const { projections } = error!.facts.extras?.report ?? { projections: [] };
    return { message: error!.message, differing: projections.filter(({ match }) => !match).map(({ name }) => name) };
  };

  it('a store whose state was not what its log gives', async () => {
    const one = await world();
    const { views, removedKeys } = one.service.store.projections;
    views.apply = () => undefined;
    await one.store.rows('CREATE MATERIALIZED VIEW old AS SELECT id FROM Person');
    removedKeys.apply = () => undefined;
    const remove = { kind: 'remove-rows', type: 'Person', keys: ['p7'] } as const;
    await one.store.invoke(analyst, 'remove', (invocation) => invocation.submit(remove));
    const { message, differing } = await refusal(one, await digested(one));
    expect(differing.sort()).toEqual(['removed-keys', 'views']);
    expect(message).toMatch(/differ from those of the store that was backed up: .*views/);
  });

  it('with another digest of any projection, one less, or one more', async () => {
    const one = await world();
    const backup = await digested(one);
    const artefact = await artefactOf(one, backup);
    const { signer } = one.service.store.keyring;
    const write = (projections: Readonly<Record<string, string>>): Promise<void> =>
      one.disk.replaceFile(`/data/backups/${backup}/backup.json`, formatArtefact({ ...artefact, projections }, signer));
    for (const name of one.service.store.projections.projector.names) {
      const { [name]: own, ...others } = artefact.projections!;
      await write({ ...others, [name]: `${own!.slice(0, -1)}${own!.endsWith('0') ? '1' : '0'}` });
      expect(await refusal(one, backup)).toMatchObject({ message: expect.stringContaining(name) as string, differing: [name] });
    }
    const { audit: _, ...less } = artefact.projections!;
    await write(less);
    expect((await refusal(one, backup)).differing).toEqual(['audit']);
    await write({ ...artefact.projections, strange: '00' });
    expect((await refusal(one, backup)).differing).toEqual(['strange']);
  });

  it('with digests for a position that its log does not contain', async () => {
    const one = await world();
    const backup = await digested(one);
    const artefact = await artefactOf(one, backup);
    const { signer } = one.service.store.keyring;
    for (const [at, what] of [
      [0, /does not contain/],
      [artefact.tree_size + 1, /more leaves than it holds/],
      [3, /differ/],
    ] as const) {
      const moved = formatArtefact({ ...artefact, digest_tree_size: at }, signer);
      await one.disk.replaceFile(`/data/backups/${backup}/backup.json`, moved);
      expect((await refusal(one, backup)).message).toMatch(what);
    }
    const edited = JSON.stringify({ ...artefact, digest_tree_size: 1, signature: 'AA==' });
    await one.disk.replaceFile(`/data/backups/${backup}/backup.json`, Buffer.from(edited));
    expect((await refusal(one, backup)).message).toMatch(/edited/);
  });
});

describe('digests that say nothing of what was copied are not held against it', () => {
  it('since somebody was erased after the state was captured', async () => {
    const erasing = await new ErasureWorld(new MemoryDisk()).open();
    await erasing.fill();
    await erasing.store.put(
      'Person',
      people(1_500).map((row) => ({ ...row, who: null })),
    );
    const { service } = erasing.store;
    const one: World = { disk: erasing.disk, store: erasing.store, service, said: erasing.said };
    // What changes before it is written first can't be digested at all.
    await service.store.checkpoints!.take();
    between(one, () => erasing.erase('alice', { certify: false }));
    const backup = await digested(one);
    const artefact = await artefactOf(one, backup);
    expect([artefact.erased_keys, artefact.projections === null]).toEqual([0, false]);
    const report = await service.upkeep.backups.restore(backup, '/restored');
    expect(report).toMatchObject({ root_match: true, erased_keys: 1, rows_erased: 2, erased_absent: true });
    expect(report.compared_with).toMatch(/second replay.*somebody was erased/);
    expect(allMatch(report)).toBe(true);
  });

  it('since rows were dropped from the log after the state was captured', async () => {
    const one = await world();
    between(one, async (saved) => {
      // Were it not saved yet, it could not be any more.
      expect(await saved!.written).not.toBeNull();
      const remove = { kind: 'remove-rows', type: 'Person', keys: ['p5'] } as const;
      await one.store.invoke(analyst, 'remove', (invocation) => invocation.submit(remove));
      const { rows } = await one.service.store.log.redact([7], async () => undefined);
      expect(rows).toBe(1);
    });
    const backup = await digested(one);
    expect((await artefactOf(one, backup)).projections).toBeNull();
    const report = await one.service.upkeep.backups.restore(backup, '/restored');
    expect(report.compared_with).toMatch(/second replay.*not digested/);
    expect(allMatch(report)).toBe(true);
  });
});

describe('a backup stays what it is', () => {
  const restores = async ({ service }: World, backup: string): Promise<void> => {
    const report = await service.upkeep.backups.restore(backup, '/restored');
    expect(report.compared_with).toMatch(/second replay.*not digested/);
    expect([report.root_match, allMatch(report)]).toEqual([true, true]);
  };

  it('where whoever digests fails', async () => {
    const one = await world({ digestBeside: () => Promise.reject(new Error('no thread')) });
    const backup = await digested(one);
    expect(one.said).toEqual([expect.stringMatching(/has no digests .*no thread/) as string]);
    await restores(one, backup);
  });

  it('where the files of the saved state are damaged, or are of another one', async () => {
    const one = await world();
    const keeper = one.service.store.checkpoints!;
    const captured = keeper.capture.bind(keeper);
    const spoil = async (then: () => Promise<unknown>): Promise<string> => {
      keeper.capture = async () => {
        const saved = (await captured())!;
        return { ...saved, written: saved.written.then(async (place) => (await then(), place)) };
      };
      return digested(one);
    };
    const backup = await spoil(async () => {
      const [name] = (await one.disk.list('/data/projections')).filter((each) => each.startsWith('segment-'));
      const path = `/data/projections/${name}`;
      const bytes = (await one.disk.readFile(path))!;
      await one.disk.replaceFile(path, Buffer.from(bytes).fill(0xee, bytes.length - 9_000, bytes.length - 8_000));
    });
    const other = await spoil(async () => {
      await one.store.put('Person', people(1));
      await keeper.take();
    });
    expect(one.said).toEqual([
      expect.stringContaining(`${backup} has no digests`) as string,
      expect.stringContaining('replaced before it was read') as string,
    ]);
    for (const each of [backup, other])
      expect((await one.service.upkeep.backups.restore(each, `/${each}`)).compared_with).toMatch(/second replay/);
  });

  it('where the store closes before they are made', async () => {
    let begun = (): void => undefined;
    const started = new Promise<void>((resolve) => (begun = resolve));
    const digestBeside: BackgroundDigest = (_, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new Error('cut off')));
        begun();
      });
    const one = await world({ digestBeside });
    const { backup } = await one.service.upkeep.backups.create();
    await started;
    await one.store.close();
    expect(one.said).toEqual([]);
    const again = await TestStore.open('2024-01-01', settings, { disk: one.disk, derived });
    await restores({ ...one, store: again, service: again.service }, backup);
  });

  it('and has them where they were made while the store closed, which waits', async () => {
    let closed: boolean | null = null;
    let begun = (): void => undefined;
    const started = new Promise<void>((resolve) => (begun = resolve));
    const one = await world({
      digestBeside: async (request, signal) => {
        const closing = new Promise((resolve) => signal.addEventListener('abort', resolve));
        begun();
        await closing;
        await turns(30_000);
        closed = one.service.state() === 'closed';
        return digestsOfSaved(request, one.disk);
      },
    });
    const { backup } = await one.service.upkeep.backups.create();
    await started;
    await one.store.close();
    expect((await artefactOf(one, backup)).projections).not.toBeNull();
    expect(closed).toBe(false);
  });

  it('where it was removed before they are made', async () => {
    const one = await world();
    const { backup } = await one.service.upkeep.backups.create();
    await one.disk.unlink(`/data/backups/${backup}/backup.json`);
    await one.service.upkeep.backups.whenIdle();
    expect(one.said).toEqual([expect.stringMatching(/removed meanwhile/) as string]);
    expect(await one.service.upkeep.backups.list()).toEqual([]);
  });
});
