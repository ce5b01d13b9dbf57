/** Restores in a thread of their own, on real files: the same reports and refusals, and the event loop is left alone. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { nodeDisk } from '../src/log/node-disk.ts';
import { restoreInThread } from '../src/restore-thread.ts';
import { TestStore } from './harness.ts';

let home: string;
let store: TestStore;
let backup: string;

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'annals-thread-'));
  const settings = { SERVICE_IN_MEMORY: 'false', SERVICE_DATA_DIR: join(home, 'data') };
  store = await TestStore.open('2024-01-01', settings, { disk: nodeDisk, restoreBeside: restoreInThread });
  for (let batch = 0; batch < 10; batch++)
    await store.put(
      'Person',
      Array.from({ length: 5_000 }, (_, i) => ({ id: `${batch}-${i}`, name: `Name ${i}`, age: i })),
    );
  ({ backup } = await store.service.backups.create());
});

afterEach(async () => {
  await store.close();
  rmSync(home, { recursive: true, force: true });
});

it('reports and refuses as in the turn', { timeout: 60_000 }, async () => {
  const target = join(home, 'restored');
  const { backups } = store.service;
  let turns = 0;
  let over = false;
  const turning = (async () => {
    for (; !over; turns++) await new Promise((resolve) => setImmediate(resolve));
  })();
  const report = await backups.restore(backup, target);
  over = true;
  await turning;
  expect(report).toMatchObject({ backup, target_dir: target, root_match: true, rows: 50_000, erased_absent: true });
  expect(report.projections.every(({ match }) => match)).toBe(true);
  expect(turns).toBeGreaterThan(100);
  expect(readdirSync(target)).toEqual(['keys', 'log']);
  await expect(backups.restore(backup, target)).rejects.toMatchObject({ code: 'REL_CONFLICT' });
  await expect(backups.restore('00000000-0', join(home, 'x'))).rejects.toMatchObject({ code: 'REL_NOT_FOUND' });
});

it('ends when the store closes, and leaves the target empty', { timeout: 60_000 }, async () => {
  const target = join(home, 'restored');
  const restoring = store.service.backups.restore(backup, target);
  const refused = expect(restoring).rejects.toMatchObject({ code: 'REL_UNAVAILABLE' });
  await store.close();
  await refused;
  await expect(nodeDisk.list(target)).resolves.toEqual([]);
});
