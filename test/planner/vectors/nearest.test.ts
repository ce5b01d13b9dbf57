/** ORDER BY a distance of vectors LIMIT k: the rows of sorting all, in their order, with and without vectors in bytes. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { inlineWorker } from '../../../src/log/threads/workers.ts';
import { vectorFunctions } from '../../../src/planner/expressions/functions/vectors.ts';
import { useVectorIndexes } from '../../../src/planner/passes/use-vector-indexes.ts';
import type { QueryOptions } from '../../../src/planner/planner-contract.ts';
import { passes, Planner } from '../../../src/planner/planner.ts';
import { analyst, rowsOf, TestStore } from '../../harness.ts';
import { Draw } from '../document-world.ts';

const dims = 12;
const rows = 2_600;
let store: TestStore;
let plain: Planner;
const draw = new Draw(3);
const number = (): number => draw.upTo(2_001) / 1_000 - 1;

/** Many far from each other, many the same, some of zeros, some very long or short, some not there. */
function vector(i: number): number[] | null {
  const made = Array.from({ length: dims }, number);
  if (i % 40 === 7) return null;
  if (i % 40 === 9) return made.map(() => 0);
  if (i % 40 === 11) return made.map((x) => x * 1e25);
  if (i % 40 === 13) return made.map((x) => x * 1e-30);
  if (i % 3 === 0) return made.map((_, k) => (k < 2 ? draw.upTo(3) - 1 : 0));
  return made;
}

beforeAll(async () => {
  const parts = { derived: { machineBytes: 1 << 30, segmentRows: 1_200 }, startKept: inlineWorker, disk: new MemoryDisk() };
  store = await TestStore.open('2024-01-01', { SERVICE_IN_MEMORY: 'false', SERVICE_DATA_DIR: '/data' }, parts);
  const v = { required: false, masked: false, indexed: false, subject: false, type: 'vector', dims } as const;
  await store.register('Doc', { id: 'string', n: 'integer', kind: 'string', v }, 'id');
  await store.register('Kind', { name: 'string', weight: 'integer' }, 'name');
  await store.put(
    'Kind',
    ['a', 'b', 'c'].map((name, i) => ({ name, weight: i })),
  );
  await store.put(
    'Doc',
    Array.from({ length: rows }, (_, i) => ({ id: `d${i}`, n: (i * 7919) % 100, kind: 'abcd'[i % 4]!, v: vector(i) })),
  );
  plain = new Planner({ clock: store.clock, passes: passes.filter((pass) => pass !== useVectorIndexes) });
});
afterAll(() => store.close());

const told = async (planner: Pick<Planner, 'query'>, sql: string, options: QueryOptions = {}): Promise<unknown> => {
  const asked = store.invoke(analyst, 'query', (invocation) => planner.query(invocation, { sql, dialect: 'wide', ...options }));
  return asked.then(
    (answer) => ({ hits: answer.estimatedTotalHits, rows: rowsOf(answer) }),
    (error: Error) => error.message,
  );
};

const textOf = (made: readonly number[]): string => `'[${made.join(',')}]'`;

/** What pgvector's own documents ask, and what lies near. */
const shapes: readonly ((q: string, op: string) => string)[] = [
  (q, op) => `SELECT * FROM Doc ORDER BY v ${op} ${q} LIMIT 5`,
  (q, op) => `SELECT id FROM Doc ORDER BY ${q} ${op} v LIMIT 10 OFFSET 3`,
  (q, op) => `SELECT id, v ${op} ${q} AS distance FROM Doc ORDER BY distance, id DESC LIMIT 40`,
  (q, op) => `SELECT id FROM Doc WHERE id <> 'd1' ORDER BY v ${op} ${q} LIMIT 5`,
  (q, op) => `SELECT id FROM Doc WHERE n < 10 AND kind = 'b' ORDER BY v ${op} ${q}, n LIMIT 7`,
  (q, op) => `SELECT id FROM Doc WHERE v ${op} ${q} < 0.5 ORDER BY v ${op} ${q} LIMIT 5`,
  (q, op) => `SELECT d.id, k.weight FROM Doc d JOIN Kind k ON d.kind = k.name ORDER BY d.v ${op} ${q}, d.id LIMIT 6`,
  (q, op) => `SELECT kind, COUNT(*) FROM (SELECT kind FROM Doc ORDER BY v ${op} ${q}, id LIMIT 50) t GROUP BY kind ORDER BY kind`,
  (q, op) => `SELECT id, 1 - (v ${op} ${q}) AS likeness FROM Doc ORDER BY v ${op} ${q} LIMIT 5`,
  (q, op) => `SELECT id FROM Doc ORDER BY v ${op} ${q} DESC LIMIT 5`,
  (q, op) => `SELECT id FROM Doc ORDER BY v ${op} ${q} LIMIT 0`,
  (q, op) => `SELECT id FROM Doc WHERE n < 3 ORDER BY v ${op} ${q} LIMIT 1000`,
];

const sought = (): readonly string[] => [
  textOf(Array.from({ length: dims }, number)),
  textOf(Array.from({ length: dims }, (_, k) => (k < 2 ? 1 : 0))),
  textOf(Array.from({ length: dims }, () => 0)),
  textOf(Array.from({ length: dims }, () => number() * 1e24)),
  "'[1, 2]'",
  "'nothing'",
  'NULL',
];

test.each(['<=>', '<->', '<#>'])('%s: the rows of sorting all of them, before and after vectors are in bytes', async (op) => {
  const questions = sought().flatMap((q, i) => (i < 2 ? shapes : shapes.slice(2, 4)).map((shape) => shape(q, op)));
  const { indexes } = store.service.store.projections.rows;
  for (const _ of ['as they came', 'in bytes']) {
    for (const sql of questions) {
      const answer = await told(plain, sql);
      expect(await told(store.service.planner, sql), sql).toEqual(answer);
      if (!/'\[1, 2\]'|'nothing'/.test(sql)) expect(answer, sql).toHaveProperty('rows');
    }
    for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
  if (op !== '<#>') expect(indexes.bytes).toBeGreaterThan(0);
});

test.each([
  ['<=>', 0.1],
  ['<->', 0.4],
  ['<#>', 1],
])('%s is worked out for a share of %d of the rows at most', async (op, share) => {
  const signature = vectorFunctions.find(({ name }) => name === op)!.signatures[1]!;
  const worked = vi.spyOn(signature, 'evaluate');
  await told(store.service.planner, `SELECT id FROM Doc ORDER BY v ${op} ${sought()[1]}, id LIMIT 5`);
  const { length } = worked.mock.calls;
  worked.mockRestore();
  expect(length).toBeGreaterThan(5);
  expect(length).toBeLessThanOrEqual(share * rows);
});

test('EXPLAIN names the index; measured, it tells nothing of which rows that ruled out', async () => {
  const lines = async (sql: string): Promise<string> => JSON.stringify(await told(store.service.planner, sql));
  const sql = `SELECT id FROM Doc ORDER BY v <=> ${sought()[0]} LIMIT 5`;
  expect(await lines(`EXPLAIN ${sql}`)).toContain(
    'nearest first 5 by index of vectors of v, exact, as the answer has to be strong',
  );
  const measured = await lines(`EXPLAIN ANALYZE ${sql}`);
  expect(measured).toMatch(/ first 5 \[out 5, expected \d+; [\d.]+ ms; holds \d+ bytes\]/);
  expect(measured).toMatch(/has to be strong \[expected \d+; [\d.]+ ms; index vectors of v\]/);
  expect(measured).toMatch(/scan Doc [^[]*\[within the line above/);
  expect(await lines(`EXPLAIN ${sql.replace('LIMIT 5', '')}`)).not.toContain('nearest');
});

test('who asks for eventual answers is told by graphs, and that they said so', async () => {
  const sql = `SELECT id, v <=> ${sought()[0]} AS far FROM Doc ORDER BY far LIMIT 10`;
  const ask = (options: QueryOptions) =>
    store.invoke(analyst, 'query', (invocation) => store.service.planner.query(invocation, { sql, ...options }));
  const { plan } = await store.invoke(analyst, 'query', (invocation) =>
    store.service.planner.query(invocation, { sql: `EXPLAIN ${sql}`, consistency: 'eventual' }),
  );
  expect(plan).toContain('approximate by graphs, as the answer may be eventual');
  await ask({ consistency: 'eventual' });
  await store.service.store.projections.rows.indexes.graphs!.whenIdle();
  const [near, exact] = [await ask({ consistency: 'eventual' }), await ask({})];
  expect([near.isApproximate, exact.isApproximate, near.rowCount]).toEqual([true, undefined, 10]);
  const nearest = new Set(rowsOf(exact).map(({ id }) => id));
  expect(rowsOf(near).filter(({ id }) => nearest.has(id!)).length).toBeGreaterThanOrEqual(9);
});

test('more of the nearest than may be asked for are refused', async () => {
  const sql = `SELECT id FROM Doc ORDER BY v <=> ${sought()[0]}`;
  expect((await store.refusal(`${sql} LIMIT 1001`)).code).toBe('REL_VECTOR_BUDGET');
  await store.answer(`${sql} LIMIT 1000`);
});
