/** A question behind others reads the same rows in smaller blocks: a step of it holds whoever asks meanwhile for less long. */
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { Planner } from '../../../src/planner/planner.ts';
import { FakeStore, type Row, tuplesOf } from '../fake-snapshot.ts';

const rows = Array.from({ length: 20_000 }, (_, i): Row => ({ kind: `k${i % 7}`, n: BigInt(i) }));
const store = new FakeStore([{ name: 'T', properties: { kind: 'string', n: 'integer' }, rows }]);
const planner = new Planner({ clock: systemClock });

test.each([
  'SELECT kind, n FROM T WHERE n > 10 ORDER BY n',
  'SELECT kind, COUNT(*) AS c, SUM(n) AS s FROM T GROUP BY kind ORDER BY kind',
  'SELECT kind, COUNT(*) AS c FROM T WHERE n < 15000 GROUP BY kind ORDER BY kind',
])('%s', async (sql) => {
  const ask = async (inBackground: boolean) => {
    const largest = { block: 0, unsifted: 0 };
    const snapshot = store.snapshot();
    const scan: typeof snapshot.rows.scan = (request) => {
      largest.block = Math.max(largest.block, request.blockRows ?? Number.POSITIVE_INFINITY);
      largest.unsifted = Math.max(largest.unsifted, request.unsiftedRows ?? 0);
      return snapshot.rows.scan(request);
    };
    const watched = { ...snapshot, rows: watching(snapshot.rows, scan) };
    const answer = await planner.query({ ...store.invocation(), snapshot: () => watched }, { sql, inBackground });
    return { tuples: tuplesOf(answer), largest };
  };
  const [before, behind] = [await ask(false), await ask(true)];
  expect(behind.tuples).toEqual(before.tuples);
  expect(behind.largest.block).toBeLessThan(before.largest.block);
  expect(behind.largest.block).toBeLessThanOrEqual(4_096);
  expect(behind.largest.unsifted).toBeLessThanOrEqual(16_384);
  expect(before.largest.unsifted === 0 || behind.largest.unsifted < before.largest.unsifted).toBe(true);
});

/** A reader with another way to scan. */
function watching<R extends object>(reader: R, scan: unknown): R {
  return new Proxy(reader, {
    get: (target, name) => {
      if (name === 'scan') return scan;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
