/** Cached answers of views under a clock that the test moves: how long they are used, and who keeps them alive. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ServiceError } from '../../../../src/errors.ts';
import { parseStatement } from '../../../../src/planner/languages/sql-parser.ts';
import { MaterializedViews } from '../../../../src/planner/continuous/views/materialized-views.ts';
import { analyst, TestStore } from '../../../harness.ts';
import { settled, SteppingClock } from '../stepping-clock.ts';

let store: TestStore;
let clock: SteppingClock;
let views: MaterializedViews;
let ended: boolean;
beforeEach(async () => {
  store = await TestStore.open('2024-01-01');
  await store.register('Fact', { key: 'string' }, 'key');
  await store.put('Fact', [{ key: 'a' }]);
  await store.answer('CREATE MATERIALIZED VIEW v AS SELECT key FROM Fact REFRESH INCREMENTAL EVERY 10');
  clock = new SteppingClock();
  ended = false;
  const { gate, planner, ids } = store.service;
  const yieldTurn = store.service.turns.yieldFor('bodies');
  views = new MaterializedViews({
    gate,
    planner,
    clock,
    ids,
    rowsMax: 100,
    yieldTurn,
    renew: (caller) => {
      if (ended) throw new ServiceError('REL_UNAUTHENTICATED', 'missing or invalid credential');
      return caller;
    },
  });
});
afterEach(async () => {
  views.close();
  await store.close();
});

/** Rows in the cached answer that a question may use; null where it has to ask the rows. */
async function served(sql = 'SELECT * FROM v'): Promise<number | null> {
  const { statement } = parseStatement(sql);
  if (statement.kind !== 'query') throw new Error('a question');
  const { query } = statement;
  const found = await store.invoke(analyst, 'query', async (invocation) => views.serve(query, invocation.snapshot()));
  await settled();
  return found === null
    ? null
    : found.snapshot.rows.estimate({ type: 'v', columns: [], time: { system: 'all', valid: 'all' } }).rows;
}

/** Both clocks: that of instants, and that of durations. */
async function pass(ms: number): Promise<void> {
  store.clock.wallNs += BigInt(ms) * 1_000_000n;
  await clock.pass(ms);
}

test('there from the second question on, and renewed before its period is over while it is asked for', async () => {
  expect(await served()).toBeNull();
  expect(await served()).toBe(1);
  await store.put('Fact', [{ key: 'b' }]);
  expect(await served()).toBe(1);
  await pass(8_000);
  expect(await served()).toBe(2);
  await pass(8_000);
  await pass(8_000);
  // Nobody asked in between: it was given up.
  expect(await served()).toBeNull();
});

test('not used beyond its period', async () => {
  await served();
  expect(await served()).toBe(1);
  store.clock.wallNs += 9_900_000_000n;
  expect(await served()).toBe(1);
  store.clock.wallNs += 200_000_000n;
  expect(await served()).toBeNull();
});

test('gone with the view on the branch where it is dropped, and not renewed', async () => {
  expect(await served()).toBeNull();
  expect(await served()).toBe(1);
  views.drop({ name: 'v', owner: analyst.path, branchId: 1 });
  expect(await served()).toBe(1);
  views.drop({ name: 'v', owner: analyst.path, branchId: 0 });
  const { length } = await recorded();
  await pass(8_000);
  expect((await recorded()).length).toBe(length);
  expect(await served()).toBeNull();
});

test('not kept for a reader whose credential has ended', async () => {
  await served();
  expect(await served()).toBe(1);
  ended = true;
  await pass(8_000);
  expect(await served()).toBeNull();
  expect(await served()).toBeNull();
});

test.each([
  'SELECT * FROM v AS OF CURRENT',
  "SELECT * FROM v AS OF '2024-01-01'",
  'SELECT * FROM v JOIN Fact f ON v.key = f.key',
  'SELECT * FROM v WHERE key IN (SELECT key FROM Fact)',
  'SELECT * FROM Fact',
  'SELECT * FROM nothing',
])('not used for %s', async (sql) => {
  await served();
  expect(await served()).toBe(1);
  expect(await served(sql)).toBeNull();
});

test.each([
  'SELECT key FROM v LIMIT 1',
  'SELECT COUNT(*) FROM v',
  'SELECT a.key FROM v a JOIN v b ON a.key = b.key',
  'WITH x AS (SELECT key FROM v) SELECT * FROM x',
])('used for %s', async (sql) => {
  await served();
  expect(await served(sql)).toBe(1);
});

// How many steps a question takes within its turn depends on plans that are at hand or not, and so on how much others ask.
test.each([0, 100])(
  'the question that it is first made for is on record before it, be it answered %i steps later',
  async (steps) => {
    const before = await recorded();
    const { statement } = parseStatement('SELECT * FROM v');
    if (statement.kind !== 'query') throw new Error('a question');
    await store.invoke(analyst, 'query', async (invocation) => {
      invocation.describe({ objectType: 'asked' });
      views.serve(statement.query, invocation.snapshot());
      for (let step = 0; step < steps; step++) await Promise.resolve();
    });
    await settled();
    expect((await recorded()).slice(before.length)).toEqual(['asked', 'v']);
  },
);

/** What questions were about, in the order of their records. */
async function recorded(): Promise<(string | null)[]> {
  const query = { action: 'query', limit: 1_000 };
  const { entries } = await store.invoke(analyst, 'audit', async (invocation) => invocation.audit().entries(query));
  return entries.map(({ objectType }) => objectType);
}
