/** Bodies of replayed entries lie in memory that is used again: no projection may hold on to a part of one. */
import { expect, test } from 'vitest';
import type { LocalLogOptions } from '../../src/log/log.ts';
import { inlineWorker } from '../../src/log/threads/workers.ts';
import { AuditProjection } from '../../src/projections/audit/projection.ts';
import { Projections } from '../../src/projections/projections.ts';
import { TestStore } from '../harness.ts';
import { RecordingDisk } from '../log/recording-disk.ts';
import { all, openLog, worldOn } from '../log/world.ts';

const vector = { type: 'vector', required: false, masked: false, indexed: false, subject: false, dims: 3 } as const;

test('projections of bodies that are overwritten after each replay are those of bodies that stay', async () => {
  const store = await TestStore.open();
  const columns = { word: 'string', note: 'string', count: 'integer', big: 'integer', part: 'number', at: 'timestamp' } as const;
  await store.register('Thing', { id: 'string', ...columns, yes: 'boolean', tree: 'json', place: vector }, 'id');
  const rows = (from: number, count: number) =>
    Array.from({ length: count }, (_, k) => {
      const i = from + k;
      return {
        id: `id-${i}`,
        word: `word ${i % 7}`,
        note: i % 5 === 0 ? null : `note ${i} é`.repeat(1 + (i % 3)),
        count: i,
        big: 9_007_199_254_740_993n + BigInt(i),
        part: i / 8,
        at: '2024-01-01T00:00:00Z',
        yes: i % 2 === 0,
        tree: { a: [i] },
        place: [i, 0.5, -1],
      };
    });
  for (let i = 0; i < 4; i++) await store.put('Thing', rows(i * 900, 1000));
  await store.put('Loose', [{ a: 1, b: 'x' }]);
  await store.delete('Thing', ['id-3', 'id-2500']);
  await store.column('SELECT COUNT(*) FROM Thing');

  const disk = new RecordingDisk();
  const { log } = await openLog(worldOn(disk));
  for (const { context, body } of (await all(store.service.store.log.read(1))).filter(({ body }) => body.kind !== 'seal')) {
    await log.append([{ context, body }]).written;
  }
  await log.close();
  const digests = async (openBeside: Pick<LocalLogOptions, 'openBeside'>): Promise<unknown> => {
    const projections = new Projections({ newKey: () => 'key', tokensMax: 10, more: [new AuditProjection()] });
    await openLog(worldOn(disk, 'successor'), { replay: (entry) => projections.apply(entry), ...openBeside });
    return projections.digests();
  };
  const kept = await digests({});
  expect(await digests({ openBeside: { startWorker: inlineWorker, bytesMin: 0, windowBytes: 10_000, poison: true } })).toEqual(
    kept,
  );
  await store.close();
});
