/** Retention of types over the whole stack: rows whose time is over go, under legal hold they stay. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../src/clock.ts';
import { tenantlessCaller } from '../../src/governance/caller.ts';
import { performRetention } from '../../src/planner/continuous/jobs/retention-run.ts';
import { StoreWorld } from '../doors/http/store-world.ts';

let world: StoreWorld;
let ahead = 0n;
const clock: Clock = {
  now: () => systemClock.now() + ahead,
  monotonicMs: () => systemClock.monotonicMs(),
  sleep: (ms, signal) => systemClock.sleep(ms, signal),
};
const dayNs = 86_400_000_000_000n;

beforeEach(async () => {
  ahead = 0n;
  world = await StoreWorld.open({}, { clock });
  await must('POST', '/types', { name: 'Visit', properties: { id: 'string', who: 'string' }, primary_key: 'id' });
});

afterEach(() => world.close());

async function must(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const reply = await world.call(method, path, body, headers);
  if (reply.status >= 300) throw new Error(`${method} ${path}: ${reply.text}`);
  return reply.json;
}

const put = (rows: readonly object[], headers = {}) => must('POST', '/ingest?object_type=Visit&purpose=test', rows, headers);
const ids = async (time = 'AS OF CURRENT', headers = {}) => {
  const { rows } = await must('POST', '/query', { sql: `SELECT DISTINCT id FROM Visit ${time} ORDER BY id` }, headers);
  return (rows as { id: string }[]).map(({ id }) => id);
};
const keep = (body: object, headers = {}) => must('PUT', '/types/Visit/retention', body, headers);
const hold = (id: string, path: string | null = null) => {
  const { gate } = world.service;
  const caller = { ...tenantlessCaller('tester', 'operator', 'internal'), path };
  return gate.invoke(caller, { action: 'remove', purpose: null, correlationId: 'hold' }, (invocation) =>
    invocation.submit({ kind: 'hold-row', id: `hold-${id}`, type: 'Visit', key: id }),
  );
};

test('purges rows whose end is past, with their history, and lists the held, which go when they are released', async () => {
  const ended = { valid_from: '2020-01-01T00:00:00Z', valid_to: '2020-02-01T00:00:00Z' };
  await put([{ id: 'past', ...ended }, { id: 'held', ...ended }, { id: 'open' }]);
  await hold('held');
  const set = await keep({ days: 30, by: 'valid_to', action: 'purge' });
  expect(set).toMatchObject({
    type: 'Visit',
    status: 'scheduled',
    last: { ended: 1, held: 1, refused: 0 },
    held: [{ id: 'hold-held', organization: null, _pk: 'held' }],
    held_total: 1,
  });
  expect(await ids('')).toEqual(['held', 'open']);
  expect(await must('GET', '/types/Visit/retention')).toEqual(set);
  expect(await must('GET', `/jobs/${set['job_id'] as string}`)).toMatchObject({ name: 'retention of Visit', state: 'done' });
  const release = world.service.store.projections.retention.holds('Visit')[0]!.id;
  const caller = tenantlessCaller('tester', 'operator', 'internal');
  await world.service.gate.invoke(caller, { action: 'remove', purpose: null, correlationId: 'r' }, (invocation) =>
    invocation.submit({ kind: 'release-retention', id: release }),
  );
  await must('POST', `/jobs/${set['job_id'] as string}/run`);
  expect(await ids('')).toEqual(['open']);
  expect(await must('GET', '/types/Visit/retention')).toMatchObject({ last: { ended: 1, held: 0 }, held: [] });
});

test('ends rows that nobody has written for so long, keeps their history, and goes on by the clock', async () => {
  await put([{ id: 'a' }, { id: 'b' }]);
  await hold('b');
  expect(await keep({ days: 10, by: 'system_from', action: 'delete' })).toMatchObject({ last: { ended: 0 } });
  ahead = 11n * dayNs;
  await put([{ id: 'new' }]);
  await world.service.automation.scheduler.settle();
  expect(await ids()).toEqual(['b', 'new']);
  expect(await ids('')).toEqual(['a', 'b', 'new']);
});

test('finds the rows of a type page by page', async () => {
  await put(['a', 'b', 'c', 'd', 'e'].map((id) => ({ id })));
  await hold('b');
  const set = await keep({ days: 1, by: 'system_from', action: 'purge' });
  const { gate, planner } = world.service;
  const { projections } = world.service.store;
  const job = projections.jobs.job(set['job_id'] as string)!;
  const run = { ...job.last!, basis: String(clock.now() + 2n * dayNs) };
  const caller = tenantlessCaller('tester', 'operator', 'internal');
  const work = { caller, run, signal: new AbortController().signal, progress: () => undefined };
  expect(await performRetention({ gate, planner, foundMax: 2 })(job, work)).toEqual({ ended: 4, held: 1, refused: 0 });
  expect(await ids('')).toEqual(['b']);
});

test('is one for a type: another replaces it, and it ends', async () => {
  const first = await keep({ days: 10, by: 'system_from', action: 'purge' });
  expect(await keep({ days: 10, by: 'system_from', action: 'purge' })).toMatchObject({ job_id: first['job_id'] });
  const second = await keep({ days: 20, by: 'system_from', action: 'purge' });
  const jobs = (await must('GET', '/jobs'))['jobs'] as { job_id: string; status: string }[];
  expect(jobs.map(({ job_id, status }) => [job_id, status])).toEqual([
    [second['job_id'], 'scheduled'],
    [first['job_id'], 'ended'],
  ]);
  expect(await must('DELETE', '/types/Visit/retention')).toEqual({ type: 'Visit', ended: true });
  for (const method of ['GET', 'DELETE']) expect((await world.call(method, '/types/Visit/retention')).status).toBe(404);
  expect((await world.call('PUT', '/types/None/retention', { days: 1, by: 'valid_to', action: 'purge' })).status).toBe(404);
  expect((await world.call('PUT', '/types/Visit/retention', { days: -1, by: 'valid_to', action: 'purge' })).status).toBe(400);
});

test('reaches the rows of its path and below it, and no others', async () => {
  const [acme, below, globex] = [
    await world.tokenFor({ principal: 'ann', tenant_id: 'acme' }),
    await world.tokenFor({ principal: 'bob', tenant_id: 'acme/eu' }),
    await world.tokenFor({ principal: 'eve', tenant_id: 'globex' }),
  ];
  const type = { name: 'Visit', properties: { id: 'string' }, primary_key: 'id' };
  for (const token of [acme, globex]) await must('POST', '/types', type, token);
  await put([{ id: 'a' }], acme);
  await put([{ id: 'b' }, { id: 'c' }], below);
  await put([{ id: 'd' }], globex);
  await hold('c', 'acme/eu');
  expect(await keep({ days: 0, by: 'system_from', action: 'purge' }, acme)).toMatchObject({
    last: { ended: 2, held: 1, refused: 0 },
    held: [{ organization: 'acme/eu', _pk: 'c' }],
  });
  expect([await ids('', acme), await ids('', globex)]).toEqual([['c'], ['d']]);
  expect((await world.call('GET', '/types/Visit/retention', undefined, globex)).status).toBe(404);
});
