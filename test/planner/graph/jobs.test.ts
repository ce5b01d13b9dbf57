/** A question about a graph that takes long is a job while it lasts: listed, and ended by its id or by whoever asked going away. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import type { Answer } from '../../../src/planner/planner-contract.ts';
import { analyst, TestStore } from '../../harness.ts';

let store: TestStore;
const nodes = 200;

beforeAll(async () => {
  store = await TestStore.open('2024-01-01');
  await store.register('Person', { id: 'string' }, 'id');
  await store.register('Knows', { id: 'string', from_id: 'string', to_id: 'string' }, 'id');
  const ids = Array.from({ length: nodes }, (_, i) => `p${i}`);
  await store.put(
    'Person',
    ids.map((id) => ({ id })),
  );
  await store.put(
    'Knows',
    ids.map((id, i) => ({ id: `k${i}`, from_id: id, to_id: `p${(i + 1) % nodes}` })),
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
    const job = store.service.jobs.list(analyst).find(({ state }) => state === 'running');
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
  expect(store.service.jobs.find(id, analyst)).toMatchObject({ state: 'done' });
});

test('it is cancelled by its id', async () => {
  const asked = codeOf(distances());
  const id = await running();
  store.service.jobs.cancel(id, analyst);
  expect(await asked).toBe('REL_CANCELLED: the job was cancelled by analyst');
  expect(store.service.jobs.find(id, analyst)).toMatchObject({ state: 'cancelled', code: 'REL_CANCELLED' });
});

test('it ends when whoever asked is gone', async () => {
  const gone = new AbortController();
  const asked = codeOf(distances(gone.signal));
  const id = await running();
  gone.abort();
  expect(await asked).toBe('REL_CANCELLED: the caller went away');
  expect(store.service.jobs.find(id, analyst).state).toBe('failed');
});

test('what it costs goes by the edges that it looks at', async () => {
  store.clock.monotonicMs = () => store.clock.steadyMs;
  await store.register('Busy', { id: 'string', from_id: 'string', to_id: 'string' }, 'id');
  // A walk that never rests: from the middle of a star to its ends, and back.
  const edges = Array.from({ length: 30_000 }, (_, i) => ({ id: `b${i}`, from_id: 'p0', to_id: `p${1 + (i % (nodes - 1))}` }));
  await store.put('Busy', edges);
  const cost = async (rounds: number): Promise<number> =>
    (await store.answer(`GRAPH_PAGERANK('Person', 'Busy', DAMPING => 1, MAX_ITER => ${rounds}, DIRECTION => 'both')`)).costUnits;
  expect([await cost(10), await cost(1_000)]).toEqual([1, 2]);
});
