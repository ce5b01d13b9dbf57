/** A question about a graph that takes long is a job while it lasts: listed, and ended by its id or by whoever asked going away. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import { inlineWorker, threadWorker } from '../../../src/log/threads/workers.ts';
import type { Answer } from '../../../src/planner/planner-contract.ts';
import { analyst, TestStore } from '../../harness.ts';

let store: TestStore;
const nodes = 200;
const people = Array.from({ length: nodes }, (_, i) => ({ id: `p${i}` }));

beforeAll(async () => {
  store = await TestStore.open('2024-01-01', {}, { startKept: inlineWorker });
  await store.register('Person', { id: 'string' }, 'id');
  await store.register('Knows', { id: 'string', from_id: 'string', to_id: 'string' }, 'id');
  await store.put('Person', people);
  await store.put(
    'Knows',
    people.map(({ id }, i) => ({ id: `k${i}`, from_id: id, to_id: `p${(i + 1) % nodes}` })),
  );
  // Every look at the clock finds it later, so that any work takes long.
  store.clock.monotonicMs = () => (store.clock.steadyMs += 2);
});
afterAll(() => store.close());

const distances = (signal?: AbortSignal): Promise<Answer> =>
  store.invoke(analyst, 'query', (invocation) =>
    store.service.planner.query(invocation, { sql: "GRAPH_APSP('Person', 'Knows')", ...(signal && { signal }) }),
  );
const running = async (): Promise<string> => {
  for (;;) {
    const job = store.service.automation.jobs.list(analyst).find(({ state }) => state === 'running');
    if (job !== undefined && job.done > 0) {
      expect(job).toMatchObject({ kind: 'graph', about: 'Person', unit: 'edges', total: null });
      return job.id;
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
};
const codeOf = (work: Promise<Answer>): Promise<unknown> =>
  work.then(
    () => 'answered',
    (error: unknown) => (error instanceof ServiceError ? `${error.code}: ${error.message}` : error),
  );

test('it is listed while it runs, and done when it is answered', async () => {
  const asked = distances();
  const id = await running();
  expect((await asked).rowCount).toBe(nodes * (nodes - 1));
  expect(store.service.automation.jobs.find(id, analyst)).toMatchObject({ state: 'done' });
});

test('it is cancelled by its id', async () => {
  const asked = codeOf(distances());
  const id = await running();
  store.service.automation.jobs.cancel(id, analyst);
  expect(await asked).toBe('REL_CANCELLED: the job was cancelled by analyst');
  expect(store.service.automation.jobs.find(id, analyst)).toMatchObject({ state: 'cancelled', code: 'REL_CANCELLED' });
});

test('it ends when whoever asked is gone', async () => {
  const gone = new AbortController();
  const asked = codeOf(distances(gone.signal));
  const id = await running();
  gone.abort();
  expect(await asked).toBe('REL_CANCELLED: the caller went away');
  expect(store.service.automation.jobs.find(id, analyst).state).toBe('failed');
});

/** A star with a walk that never rests: from its middle to its ends, and back. */
const star = async (of: TestStore): Promise<void> => {
  await of.register('Busy', { id: 'string', from_id: 'string', to_id: 'string' }, 'id');
  const edges = Array.from({ length: 30_000 }, (_, i) => ({ id: `b${i}`, from_id: 'p0', to_id: `p${1 + (i % (nodes - 1))}` }));
  await of.put('Busy', edges);
};
const walk = (rounds: number): string => `GRAPH_PAGERANK('Busy', DAMPING => 1, MAX_ITER => ${rounds}, DIRECTION => 'both')`;

test('what it costs goes by the edges that it looks at', async () => {
  store.clock.monotonicMs = () => store.clock.steadyMs;
  await star(store);
  const cost = async (rounds: number): Promise<number> => (await store.answer(walk(rounds))).costUnits;
  expect([await cost(10), await cost(1_000)]).toEqual([1, 2]);
});

test('a walk of a pattern is one as well, and ends when whoever asked is gone', async () => {
  store.clock.monotonicMs = () => (store.clock.steadyMs += 2);
  const gone = new AbortController();
  const sql = "MATCH (a:Person {id: 'p0'})-[:Busy*1..2]-(b) RETURN count(*) AS n";
  const asked = codeOf(
    store.invoke(analyst, 'query', (invocation) => store.service.planner.query(invocation, { sql, signal: gone.signal })),
  );
  const id = await running();
  gone.abort();
  expect(await asked).toBe('REL_CANCELLED: the caller went away');
  expect(store.service.automation.jobs.find(id, analyst).state).toBe('failed');
  store.clock.monotonicMs = () => store.clock.steadyMs;
});

test('a thread gives the answer that turns of the event loop give, and its refusals', async () => {
  const [turns, thread] = await Promise.all(
    [inlineWorker, threadWorker].map((startKept) =>
      TestStore.open('2024-01-01', { SERVICE_MAX_SCANNED_ROWS: '100000' }, { startKept }),
    ),
  );
  try {
    for (const each of [turns!, thread!]) {
      await each.register('Person', { id: 'string' }, 'id');
      await each.put('Person', people);
      await star(each);
    }
    const answers = async (of: TestStore): Promise<unknown> => [await of.rows(walk(50)), await codeOf(of.answer(walk(1_000)))];
    const found = await answers(thread!);
    expect(found).toEqual([expect.objectContaining({ length: nodes }), expect.stringContaining('REL_SCAN_CAP')]);
    expect(found).toEqual(await answers(turns!));
  } finally {
    for (const each of [turns!, thread!]) await each.close();
  }
});
