/** Who was erased stays erased in what is restored, whatever the backup and the keys are from. */
import { expect, test } from 'vitest';
import type { RestoreReport } from '../../../src/doors/http/system-contract.ts';
import type { KeyContents } from '../../../src/log/keys/keys.ts';
import { verifyDirectory } from '../../../src/log/proofs/verify.ts';
import { restoreStore } from '../../../src/upkeep/store-restores.ts';
import { TestRandom, TestStore } from '../../harness.ts';
import { acme, ErasureWorld, globex, settings, verifyReceipt } from './erasure-world.ts';

/** What is backed up is digested in the turn, and from what the store has saved. */
const ways = [
  ['digested in the turn', 1_000],
  ['digested as it was saved', 0],
] as const;

const filled = async (digestedInTurnMax: number): Promise<ErasureWorld> =>
  (await new ErasureWorld().open({ digestedInTurnMax })).fill();

async function backedUp({ store }: ErasureWorld): Promise<{ readonly backup: string; readonly root: string }> {
  const { backups } = store.service.upkeep;
  const taken = await backups.create();
  await backups.whenIdle();
  expect(await backups.list()).toMatchObject([{ backup: taken.backup, digest_tree_size: taken.tree_size }]);
  return taken;
}

/** From a backup and keys alone, as on another machine. */
function restoreWith({ store, disk, clock }: ErasureWorld, backup: string, keys: KeyContents): Promise<RestoreReport> {
  const { settings: own, version } = store.service;
  return restoreStore({
    disk,
    clock,
    random: new TestRandom(5),
    settings: own,
    version,
    source: `/data/backups/${backup}`,
    target: '/restored',
    keys,
    say: () => undefined,
    yieldTurn: async () => undefined,
  });
}

async function namesIn({ disk, clock }: ErasureWorld): Promise<{ acme: unknown[]; globex: unknown[] }> {
  const store = await TestStore.open('2024-01-01', { ...settings, SERVICE_DATA_DIR: '/restored' }, { disk, clock });
  const [ofAcme, ofGlobex] = [
    await store.column('SELECT name FROM Person', acme),
    await store.column('SELECT name FROM Person', globex),
  ];
  await store.close();
  return { acme: ofAcme, globex: ofGlobex };
}

const left = { acme: ['Bob', 'Nobody'], globex: ['Alice Elsewhere'] };

test.each(ways)('a backup from before the erasure, %s', async (_, most) => {
  const world = await filled(most);
  const { backups } = world.store.service.upkeep;
  const { backup, root } = await backedUp(world);
  await world.erase();
  const report = await backups.restore(backup, '/restored');
  expect(report).toMatchObject({ root_match: true, root, rows_erased: 2, erased_keys: 1, erased_absent: true });
  expect(report.compared_with).toMatch(/^a second replay, .*somebody was erased since/);
  expect(report.projections.every(({ match }) => match)).toBe(true);
  expect(await namesIn(world)).toEqual(left);
});

test.each(ways)('a backup from after it, %s: nothing differs from the store that was backed up', async (_, most) => {
  const world = await filled(most);
  const { backups } = world.store.service.upkeep;
  const { receipt, salt, key } = await world.erase();
  const { backup } = await backedUp(world);
  const report = await backups.restore(backup, '/restored');
  expect(report).toMatchObject({ root_match: true, rows_erased: 2, erased_keys: 1, erased_absent: true });
  expect(report.compared_with).toBe('the store that was backed up');
  expect(await namesIn(world)).toEqual(left);
  verifyReceipt(JSON.stringify(receipt), world.logKey, key, { salt: salt!, subject: 'alice' });
});

test.each(ways)('keys kept from before the erasure, and a log that tells of it, %s', async (_, most) => {
  const world = await filled(most);
  const kept = world.store.service.store.keyring.contents();
  const [keys, records] = [{ ...kept, records: [...kept.records].map((bytes) => bytes.slice()) }, kept.tombstones.length];
  await world.erase();
  const { backup } = await backedUp(world);
  const report = await restoreWith(world, backup, keys);
  expect(report.compared_with).toBe('the store that was backed up');
  expect([records, report.erased_keys, report.erased_absent]).toEqual([0, 1, true]);
  expect(await namesIn(world)).toEqual(left);
  const verified = await verifyDirectory({
    disk: world.disk,
    directory: '/restored',
    keyring: world.store.service.store.keyring,
  });
  expect(verified.findings).toEqual([]);
});

test('a key that is neither there nor destroyed is a loss, and no erasure', async () => {
  const world = await filled(1_000);
  const { backup } = await backedUp(world);
  const keys = { ...world.store.service.store.keyring.contents(), records: [] };
  await expect(restoreWith(world, backup, keys)).rejects.toMatchObject({
    code: 'REL_UNPROCESSABLE',
    message: expect.stringContaining('was not erased') as string,
  });
  expect(await world.disk.list('/restored')).toEqual([]);
});
