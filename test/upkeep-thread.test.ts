/**
 * Copies, restores, and digests of what a store has saved, in threads of their own, on real files: the same reports and refusals, and the
 * event loop is left alone.
 */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { nodeDisk } from '../src/log/disk/node-disk.ts';
import { copyInThread, digestInThread, restoreInThread } from '../src/upkeep/upkeep-thread.ts';
import { TestStore } from './harness.ts';

let home: string;
let store: TestStore;
let backup: string;
let copies = 0;

const settings = (): Record<string, string> => ({ SERVICE_IN_MEMORY: 'false', SERVICE_DATA_DIR: join(home, 'data') });

/** A store of 20,000 rows with a backup, made once: each test has a copy of its own. */
let template: string;
let made: string;
beforeAll(async () => {
  home = template = mkdtempSync(join(tmpdir(), 'annals-thread-'));
  await begin('2024-01-01');
  for (let batch = 0; batch < 4; batch++)
    await store.put(
      'Person',
      Array.from({ length: 5_000 }, (_, i) => ({ id: `${batch}-${i}`, name: `Name ${i}`, age: i })),
    );
  await backUp();
  made = backup;
  await store.service.upkeep.backups.whenIdle();
  await store.close();
}, 60_000);
afterAll(() => rmSync(template, { recursive: true, force: true }));

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'annals-thread-'));
  cpSync(template, home, { recursive: true });
  backup = made;
  // Later: ids are drawn from the instant, and chance begins anew with each store.
  await begin('2024-01-02');
  copies = 1;
});

async function begin(instant: string): Promise<void> {
  store = await TestStore.open(instant, settings(), {
    disk: nodeDisk,
    derived: { machineBytes: 1 << 30, segmentRows: 8_192 },
    copyBeside: async (...asked) => {
      copies++;
      return await copyInThread(...asked);
    },
    copyBesideBytesMin: 1,
    restoreBeside: restoreInThread,
    digestBeside: digestInThread,
  });
}

async function backUp(): Promise<void> {
  copies = 0;
  ({ backup } = await store.service.upkeep.backups.create());
  expect(copies).toBe(1);
}

/** The only one is of now, and is not digested yet. */
async function backUpAnew(): Promise<void> {
  rmSync(join(home, 'data', 'backups', made), { recursive: true });
  await backUp();
}

it('copies what a copy in turns holds', { timeout: 60_000 }, async () => {
  const told: number[] = [];
  const { backups } = store.service.upkeep;
  const { log } = store.service.store;
  await backups.whenIdle();
  await log.seal();
  const inThread = await backups.create({ onProgress: (bytes, total) => told.push(bytes / total) });
  expect(told.every((share) => share > 0 && share <= 1)).toBe(true);
  await backups.whenIdle();
  await store.close();
  store = await TestStore.open('2024-01-03', settings(), { disk: nodeDisk });
  const inTurns = await store.service.upkeep.backups.create();
  const files = (of: string): string[] => readdirSync(join(home, 'data', 'backups', of, 'log'));
  expect(files(inTurns.backup)).toEqual(files(inThread.backup));
  const held = readFileSync(join(home, 'data', 'backups', inThread.backup, 'log/00000000.log'));
  const later = readFileSync(join(home, 'data', 'backups', inTurns.backup, 'log/00000000.log'));
  expect(later.subarray(0, held.length).equals(held)).toBe(true);
});

it('ends a copy when the store closes, and leaves none', { timeout: 60_000 }, async () => {
  const refused = expect(store.service.upkeep.backups.create()).rejects.toMatchObject({
    code: 'REL_UNAVAILABLE',
    message: expect.stringContaining('draining') as string,
  });
  while (copies < 2) await new Promise((resolve) => setImmediate(resolve));
  await store.close();
  await refused;
  expect(readdirSync(join(home, 'data', 'backups'))).toEqual([backup]);
});

it('refuses what can not be copied, and leaves none', { timeout: 60_000 }, async () => {
  const path = join(home, 'data', 'log', '00000000.log');
  const bytes = readFileSync(path);
  bytes[9_000]! ^= 4;
  writeFileSync(path, bytes);
  await expect(store.service.upkeep.backups.create()).rejects.toMatchObject({
    code: 'REL_UNAVAILABLE',
    message: expect.stringContaining('checksum') as string,
  });
  expect(readdirSync(join(home, 'data', 'backups'))).toEqual([backup]);
});

it('digests what is saved, which a restore gives as well', { timeout: 60_000 }, async () => {
  await backUpAnew();
  let turns = 0;
  let over = false;
  const turning = (async () => {
    for (; !over; turns++) await new Promise((resolve) => setImmediate(resolve));
  })();
  await store.service.upkeep.backups.whenIdle();
  over = true;
  await turning;
  expect(turns).toBeGreaterThan(100);
  const [listed] = await store.service.upkeep.backups.list();
  expect(listed).toMatchObject({ backup, digest_tree_size: expect.any(Number) as number });
  const report = await store.service.upkeep.backups.restore(backup, join(home, 'restored'));
  expect(report.compared_with).toMatch(/^the store that was backed up/);
  expect(report.projections).toContainEqual({ name: 'rows', digest: store.service.store.projections.rows.digest(), match: true });
});

it('gives up digesting when the store closes', { timeout: 60_000 }, async () => {
  await backUpAnew();
  await store.close();
  const again = await TestStore.open('2024-01-01', settings(), { disk: nodeDisk });
  expect(await again.service.upkeep.backups.list()).toMatchObject([{ backup, digest_tree_size: null }]);
  await again.close();
});

afterEach(async () => {
  await store.close();
  rmSync(home, { recursive: true, force: true });
});

it('reports and refuses as in the turn', { timeout: 60_000 }, async () => {
  const target = join(home, 'restored');
  const { backups } = store.service.upkeep;
  let turns = 0;
  let over = false;
  const turning = (async () => {
    for (; !over; turns++) await new Promise((resolve) => setImmediate(resolve));
  })();
  const report = await backups.restore(backup, target);
  over = true;
  await turning;
  expect(report).toMatchObject({ backup, target_dir: target, root_match: true, rows: 20_000, erased_absent: true });
  expect(report.projections.every(({ match }) => match)).toBe(true);
  expect(turns).toBeGreaterThan(100);
  expect(readdirSync(target)).toEqual(['keys', 'log']);
  await expect(backups.restore(backup, target)).rejects.toMatchObject({ code: 'REL_CONFLICT' });
  await expect(backups.restore('00000000-0', join(home, 'x'))).rejects.toMatchObject({ code: 'REL_NOT_FOUND' });
});

it('ends when the store closes, and leaves the target empty', { timeout: 60_000 }, async () => {
  const target = join(home, 'restored');
  const restoring = store.service.upkeep.backups.restore(backup, target);
  const refused = expect(restoring).rejects.toMatchObject({ code: 'REL_UNAVAILABLE' });
  await store.close();
  await refused;
  await expect(nodeDisk.list(target)).resolves.toEqual([]);
});
