import { expect, test } from 'vitest';
import { RedactionChore } from '../../../src/governance/erasure/redaction-chore.ts';
import { openPayload } from '../../../src/log/entries/entry-codec.ts';
import { FILE_HEADER_BYTES, FrameScanner, frameEntries } from '../../../src/log/files/log-file.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { verifyDirectory } from '../../../src/log/proofs/verify.ts';
import { analyst, TestRandom, TestStore } from '../../harness.ts';

const reopen = (disk: MemoryDisk, seed = 1): Promise<TestStore> =>
  TestStore.open('2024-01-01', {}, { disk, random: new TestRandom(seed) });

/** Everything that any payload of the log says once it is open. */
async function said(disk: MemoryDisk, home: string, store: TestStore): Promise<string> {
  let text = '';
  for (const name of await disk.list(`${home}/log`)) {
    if (!name.endsWith('.log')) continue;
    const file = await disk.open(`${home}/log/${name}`, 'read');
    const scanner = new FrameScanner(file, Number(name.slice(0, 8)), await file.size(), FILE_HEADER_BYTES);
    for (let next = await scanner.next(); next.result === 'frame'; next = await scanner.next()) {
      for (const { payload } of frameEntries(next.bytes, next.header))
        text += Buffer.from(openPayload(payload, store.service.store.keyring)).toString('latin1');
    }
    await file.close();
  }
  return text;
}

test('cells of rows that are removed for good leave the log, and a replay without them is the same state', async () => {
  const disk = new MemoryDisk();
  const store = await reopen(disk);
  await store.register('Person', { name: 'string' });
  await store.put('Person', [
    { _pk: 'a', name: 'Ada Canary' },
    { _pk: 'b', name: 'Bob Canary' },
    { _pk: 'c', name: 'Cyd Canary' },
  ]);
  await store.put('Person', [{ _pk: 'b', name: 'Bobby Canary' }]);
  await store.invoke(analyst, 'remove', (invocation) => invocation.submit({ kind: 'remove-rows', type: 'Person', keys: ['b'] }));
  await store.put('Person', [{ _pk: 'b', name: 'Another Canary' }]);
  const home = store.service.settings.SERVICE_DATA_DIR;
  expect(await said(disk, home, store)).toContain('Bobby');

  const { clock } = store.service;
  const { log, projections } = store.service.store;
  expect(projections.redactions.next()!.positions).toHaveLength(2);
  const yieldTurn = (): Promise<void> => Promise.resolve();
  await new RedactionChore({ log, redactions: projections.redactions, clock, yieldTurn }).round();
  expect(projections.redactions.next()).toBeNull();
  const text = await said(disk, home, store);
  expect(text).not.toContain('Bob');
  expect(text).toContain('Ada Canary');
  const names = 'SELECT name FROM Person ORDER BY name';
  const shown = await store.rows(names);
  const digests = projections.digests();
  await store.close();

  const again = await reopen(disk, 2);
  expect(await again.rows(names)).toEqual(shown);
  const { audit: _, ...before } = digests;
  expect(again.service.store.projections.digests()).toMatchObject({ rows: before['rows'], redactions: before['redactions'] });
  const report = await verifyDirectory({ disk, directory: home, keyring: again.service.store.keyring });
  expect(report.findings).toEqual([]);
  await again.close();
});
