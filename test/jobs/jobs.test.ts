/** Jobs over the whole stack: made, run, paused, cancelled, by the grants that their owner has now. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { absentDoor, type Caller, tenantlessCaller } from '../../src/governance/caller.ts';
import { MemoryDisk } from '../../src/log/disk/memory-disk.ts';
import { StoreWorld } from '../doors/http/store-world.ts';

let world: StoreWorld;
const login = { name: 'Login', properties: { id: 'string', who: 'string', fails: 'integer' }, primary_key: 'id' };
const count = { sql: 'SELECT COUNT(*) AS n FROM Login' };

beforeEach(async () => {
  world = await StoreWorld.open();
  await must('POST', '/types', login);
});

afterEach(() => world.close());

async function must(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Record<string, unknown>> {
  const reply = await world.call(method, path, body, headers);
  if (reply.status >= 300) throw new Error(`${method} ${path}: ${reply.text}`);
  return reply.json;
}

const made = async (fields: object) => {
  const { json } = await world.admin('POST', '/admin/tokens', { principal: 'ann', ...fields });
  return { id: json['id'] as string, as: { authorization: `Bearer ${json['token'] as string}` } };
};

describe('a job', () => {
  test('runs at once, by hand, and not while it is paused or has ended', async () => {
    const job = await must('POST', '/jobs', { name: 'count', run: count, interval_secs: 3_600 });
    const path = `/jobs/${job['job_id'] as string}`;
    expect(job).toMatchObject({ status: 'scheduled', alerts: 0, next_run: expect.any(Number) as number });
    expect(await must('GET', path)).toMatchObject({
      name: 'count',
      state: 'done',
      run_count: 1,
      interval_secs: 3_600,
      error: null,
    });
    expect(await must('POST', `${path}/run`)).toMatchObject({ run_count: 2 });
    expect(await must('POST', `${path}/pause`)).toMatchObject({ status: 'paused', next_run: null });
    expect(await must('POST', `${path}/resume`)).toMatchObject({ status: 'scheduled' });
    expect((await must('POST', '/jobs', { name: 'count', run: count, interval_secs: 3_600 }))['job_id']).toBe(job['job_id']);
    expect((await world.call('POST', '/jobs', { name: 'count', run: count })).status).toBe(409);
    expect((await world.call('DELETE', path)).json['status']).toBe('ended');
    expect((await world.call('POST', `${path}/run`)).status).toBe(409);
    expect((await must('GET', '/jobs'))['jobs']).toMatchObject([{ job_id: job['job_id'], status: 'ended' }]);
  });

  test.each([
    ['two kinds of work', { run: { ...count, chore: 'reindex' } }, 400, 'one of'],
    ['two schedules', { run: count, cron: '* * * * *', interval_secs: 5 }, 400, 'one of'],
    ['a cron that means nothing', { run: count, cron: 'now and then' }, 400, 'cron'],
    ['a zone that does not exist', { run: count, cron: '0 4 * * *', time_zone: 'Europe/Nowhere' }, 400, 'cron'],
    ['an error of its question', { run: { sql: 'SELECT nothing FROM Login' } }, 400, '1:8'],
    ['a rule that is not there', { run: { rules: ['none'] } }, 404, 'none'],
    ['a workflow that is not there', { run: { workflow: 'x' } }, 404, 'workflow'],
  ])('is refused: %s', async (_, job, status, part) => {
    const refused = await world.call('POST', '/jobs', { name: 'x', ...job });
    expect([refused.status, refused.json['detail']]).toEqual([status, expect.stringContaining(part)]);
  });

  test('trains weights of what is one thing, and keeps them as a row', async () => {
    await must('POST', '/types', {
      name: 'Person',
      properties: { id: 'string', name: 'string', city: 'string' },
      primary_key: 'id',
    });
    const people = ['Ann Bo', 'Bo Ann', 'Cy Dee'].map((name, i) => ({ id: `p${i}`, name, city: 'Oslo' }));
    await must('POST', '/ingest?object_type=Person', people);
    const run = { function: 'TRAIN_IDENTITIES', arguments: ['Person'] };
    const job = await must('POST', '/jobs', { name: 'train', run });
    const path = `/jobs/${job['job_id'] as string}`;
    expect(await must('GET', path)).toMatchObject({ state: 'failed', error: 'REL_UNKNOWN_TYPE' });
    const model = { name: 'Model', properties: { id: 'string', of_type: 'string', weights: 'json' }, primary_key: 'id' };
    await must('POST', '/types', { ...model, role: 'identity_model' });
    expect(await must('POST', `${path}/run`)).toMatchObject({ state: 'done', run_count: 2, total_alerts: 0 });
    const rows = await must('POST', '/query', { sql: 'SELECT id, of_type FROM Model' });
    expect(rows['rows']).toEqual([{ id: 'Person', of_type: 'Person' }]);
    const found = await must('POST', '/query', { sql: "RESOLVE_IDENTITY('p0')" });
    expect((found['rows'] as { method: string }[])[0]!.method).toContain('Person: Person of ');
  });

  test('judges rules, and raises each alert once however often it runs', async () => {
    await must('POST', '/ingest?object_type=Login', [
      { id: 'a', who: 'x', fails: 9 },
      { id: 'b', who: 'x', fails: 9 },
      { id: 'c', who: 'y', fails: 1 },
    ]);
    const rule = await must('POST', '/rules', {
      name: 'twice',
      condition_sql: 'SELECT who, COUNT(*) AS n FROM Login GROUP BY who HAVING COUNT(*) > 1',
      object_type: 'Login',
    });
    const job = await must('POST', '/jobs', { name: 'nightly', run: { rules: [rule['id']] }, cron: '0 4 * * *' });
    expect(job['alerts']).toBe(1);
    const path = `/jobs/${job['job_id'] as string}`;
    expect(await must('POST', `${path}/run`)).toMatchObject({ run_count: 2, total_alerts: 1 });
    await must('POST', '/ingest?object_type=Login', [{ id: 'd', who: 'y', fails: 1 }]);
    expect(await must('POST', `${path}/run`)).toMatchObject({ run_count: 3, total_alerts: 2 });
    expect(await world.rows('SELECT title, matched_type FROM Alert AS OF CURRENT')).toEqual([
      { title: 'twice', matched_type: 'Login' },
      { title: 'twice', matched_type: 'Login' },
    ]);
  });

  test('of others is as none; an administrator of the tenant sees it', async () => {
    const [ann, bob, admin, globex] = [
      await made({ tenant_id: 'acme' }),
      await made({ tenant_id: 'acme', principal: 'bob' }),
      await made({ tenant_id: 'acme', principal: 'eve', roles: ['tenant-admin'] }),
      await made({ tenant_id: 'globex' }),
    ];
    await must('POST', '/types', login, ann.as);
    const job = await must('POST', '/jobs', { name: 'count', run: count, interval_secs: 3_600 }, ann.as);
    const path = `/jobs/${job['job_id'] as string}`;
    const statuses = async (token: { as: Record<string, string> }) => [
      (await world.call('GET', path, undefined, token.as)).status,
      (await world.call('POST', `${path}/run`, undefined, token.as)).status,
      (await must('GET', '/jobs', undefined, token.as))['total'],
    ];
    expect(await statuses(ann)).toEqual([200, 200, 1]);
    expect(await statuses(admin)).toEqual([200, 200, 1]);
    for (const other of [bob, globex]) expect(await statuses(other)).toEqual([404, 404, 0]);
    expect((await world.call('POST', '/jobs', { name: 'c', run: { chore: 'reindex' } }, ann.as)).status).toBe(201);
    const [chore] = (await must('GET', '/jobs', undefined, ann.as))['jobs'] as Record<string, unknown>[];
    expect(chore).toMatchObject({ name: 'c', state: 'failed', last_error: 'REL_ACL', status: 'paused' });
  });

  test('ends with the rights of its owner: the run fails, the job is paused and says why', async () => {
    const [ann, admin] = [
      await made({ tenant_id: 'acme' }),
      await made({ tenant_id: 'acme', principal: 'eve', roles: ['tenant-admin'] }),
    ];
    await must('POST', '/types', login, ann.as);
    const job = await must('POST', '/jobs', { name: 'count', run: count, interval_secs: 3_600 }, ann.as);
    await world.admin('DELETE', `/admin/tokens/${ann.id}`);
    const path = `/jobs/${job['job_id'] as string}`;
    await must('POST', `${path}/run`, undefined, admin.as);
    await world.service.automation.scheduler.settle();
    expect(await must('GET', path, undefined, admin.as)).toMatchObject({
      state: 'failed',
      status: 'paused',
      last_error: 'REL_ACL',
    });
    expect(world.service.store.projections.jobs.job(job['job_id'] as string)).toMatchObject({ runCount: 2, reason: 'REL_ACL' });
    const told = async () => (await must('POST', '/query', { sql: 'SELECT title FROM Alert AS OF CURRENT' }, admin.as))['rows'];
    expect(await told()).toEqual([{ title: 'a job is paused: REL_ACL' }]);
    await world.service.automation.scheduler.settle();
    expect(await told()).toHaveLength(1);
  });

  test('fails and is paused with the tenant of its owner, and goes on when somebody says so', async () => {
    await world.call('POST', '/tenants', { id: 'acme', name: 'Acme' }, (await made({ roles: ['platform-admin'] })).as);
    const [platform, ann] = [await made({ roles: ['platform-admin'] }), await made({ tenant_id: 'acme' })];
    await must('POST', '/types', login, ann.as);
    const job = await must('POST', '/jobs', { name: 'count', run: count, interval_secs: 3_600 }, ann.as);
    await must('POST', '/tenants/acme/suspend', {}, platform.as);
    const { scheduler } = world.service.automation;
    const { projections } = world.service.store;
    await scheduler.runNow(projections.jobs.job(job['job_id'] as string)!);
    expect(projections.jobs.job(job['job_id'] as string)).toMatchObject({ state: 'paused', reason: 'REL_ACL', runCount: 2 });
    await must('POST', '/tenants/acme/reactivate', {}, platform.as);
    await must('POST', `/jobs/${job['job_id'] as string}/resume`, {}, ann.as);
    expect(await must('POST', `/jobs/${job['job_id'] as string}/run`, {}, ann.as)).toMatchObject({ state: 'done', run_count: 3 });
  });

  test.each([
    ['a question', () => count],
    ['rules', (rule: string) => ({ rules: [rule] })],
    ['a function', () => ({ function: 'GRAPH_PAGERANK', arguments: ['Login'] })],
    ['retention', () => null],
  ])('goes behind whoever asks: %s', async (_, runOf) => {
    const rule = await must('POST', '/rules', { name: 'fails', object_type: 'Login', condition_sql: 'fails > 3' });
    await must('POST', '/ingest?object_type=Login', [{ id: 'a', fails: 9 }]);
    const run = runOf(rule['id'] as string);
    if (run === null) await must('PUT', '/types/Login/retention', { days: 9_999, by: 'system_from', action: 'delete' });
    else await must('POST', '/jobs', { name: 'behind', run, run_now: false });
    const [job] = (await must('GET', '/jobs'))['jobs'] as { job_id: string }[];
    const { gate, planner } = world.service;
    const [invoked, queried] = [vi.spyOn(gate, 'invoke'), vi.spyOn(planner, 'query')];
    expect(await must('POST', `/jobs/${job!.job_id}/run`)).toMatchObject({ state: 'done' });
    const doors = invoked.mock.calls.map(([caller]) => caller.door);
    // The request that asks for the run, and its work.
    expect(doors.filter((door) => door !== absentDoor)).toEqual(['http']);
    expect(doors.length).toBeGreaterThan(1);
    expect(queried.mock.calls.length).toBeGreaterThan(0);
    expect(queried.mock.calls.every(([, { inBackground }]) => inBackground === true)).toBe(true);
  });

  test('is cancelled while it runs, and by its time limit', async () => {
    const rows = Array.from({ length: 2_000 }, (_, i) => ({ id: `r${i}`, who: `w${i}`, fails: i }));
    await must('POST', '/ingest?object_type=Login', rows);
    const sql = 'SELECT COUNT(*) AS n FROM Login a, Login b, Login c WHERE a.fails + b.fails + c.fails = 7';
    const asked = world.call('POST', '/jobs', { name: 'long', run: { sql }, interval_secs: 3_600 });
    let job: Record<string, unknown> | undefined;
    while (job?.['state'] !== 'running') {
      [job] = (await must('GET', '/jobs'))['jobs'] as Record<string, unknown>[];
      await new Promise((resolve) => setImmediate(resolve));
    }
    const cancelled = await must('POST', `/jobs/${job['job_id'] as string}/cancel`);
    expect(cancelled).toMatchObject({ state: 'cancelled', run_count: 1, last_error: 'REL_CANCELLED' });
    expect((await asked).status).toBe(201);
    const timed = await must('POST', '/jobs', { name: 'timed', run: { sql }, interval_secs: 3_600, timeout_secs: 1 });
    expect(await must('GET', `/jobs/${timed['job_id'] as string}`)).toMatchObject({ state: 'failed', last_error: 'timed_out' });
  });
});

test('long work that was asked for is on record: it outlasts a start, and what that cut off is begun again or has failed', async () => {
  const disk = new MemoryDisk();
  const settings = { SERVICE_IN_MEMORY: '', SERVICE_DATA_DIR: '/store' };
  const first = await StoreWorld.open(settings, { disk });
  const ann = { ...tenantlessCaller('ann', 'operator', 'test'), credential: 'token', tenant: 'acme', path: 'acme' } as const;
  const ended = { kind: 'graph', about: 'Login', unit: 'rows', onDrain: 'cancel', run: async () => 3 } as const;
  const { view } = first.service.automation.jobs.start({ ...ended, resultOf: (rows) => ({ rows }) }, ann);
  await vi.waitFor(() => expect([...first.service.store.projections.jobs.works()][0]?.run.state).toBe('done'));
  const endless = first.service.automation.jobs.start(
    { ...ended, kind: 'ingest', onDrain: 'wait', run: () => new Promise(() => undefined) },
    ann,
  );
  const ops = tenantlessCaller('ops', 'admin', 'http');
  const { ended: never } = first.service.automation.jobs.start(
    { ...ended, kind: 'compaction', onDrain: 'wait', run: () => new Promise<number>(() => undefined) },
    ops,
  );
  void never;
  await vi.waitFor(() => expect([...first.service.store.projections.jobs.works()]).toHaveLength(3));
  await first.close();

  const second = await StoreWorld.open(settings, { disk });
  const { service } = second;
  service.tend();
  const seenBy = (caller: Caller) => service.automation.jobs.list(caller).map(({ id, state, code }) => [id, state, code]);
  await vi.waitFor(() =>
    expect(seenBy(ann)).toEqual([
      [endless.view.id, 'failed', 'cut_off'],
      [view.id, 'done', null],
    ]),
  );
  expect([...service.store.projections.jobs.works()][0]!.run).toMatchObject({ result: { rows: 3 }, work: { kind: 'graph' } });
  await vi.waitFor(() =>
    expect([...service.store.projections.jobs.works()].at(-1)!.run).toMatchObject({
      state: 'done',
      attempt: 2,
      result: { segments: 0 },
    }),
  );
  expect(() => service.automation.jobs.cancel(view.id, ann)).toThrow('it is done');
  for (const other of [
    { ...ann, principal: 'bob' },
    { ...ann, tenant: 'globex', path: 'globex' },
  ]) {
    expect(seenBy(other)).toEqual([]);
    expect(() => service.automation.jobs.find(view.id, other)).toThrow('no such job');
  }
  expect(seenBy(ops)).toHaveLength(3);
  await second.close();
});

test('scores that a crash kept from being written are written by the next start, by the rights that their asker has then', async () => {
  const disk = new MemoryDisk();
  const settings = { SERVICE_IN_MEMORY: '', SERVICE_DATA_DIR: '/store' };
  const first = await StoreWorld.open(settings, { disk });
  const { service } = first;
  const put = async (path: string, body: unknown) => expect((await first.call('POST', path, body)).status).toBeLessThan(300);
  await put('/types', { name: 'Person', properties: { id: 'string', rank: 'number' }, primary_key: 'id' });
  await put('/types', { name: 'Knows', properties: { id: 'string', from_id: 'string', to_id: 'string' }, primary_key: 'id' });
  const tokens: string[] = [];
  const ask = async (principal: string, sql: string, parameters?: readonly string[]): Promise<void> => {
    const { json } = await first.admin('POST', '/admin/tokens', { principal });
    tokens.push(json['id'] as string);
    const owner = { principal, credential: 'token', token: json['id'] as string, path: null, branch: 'main' } as const;
    const request = { action: 'query', purpose: 'test', correlationId: 'c' } as const;
    const start = service.automation.jobs.start.bind(service.automation.jobs);
    // It has begun when the process ends.
    vi.spyOn(service.automation.jobs, 'start').mockImplementationOnce((spec, caller) => {
      const { view } = start({ ...spec, run: () => new Promise<never>(() => undefined) }, caller);
      return { view, ended: Promise.resolve() as Promise<never> };
    });
    await service.gate.invoke(service.authenticator.absentCaller(owner), request, (invocation) =>
      service.planner.execute(invocation, { sql, parameters, purpose: 'test', graph: true }),
    );
  };
  await put('/ingest?object_type=Person', [{ id: 'a' }, { id: 'b' }]);
  await put('/ingest?object_type=Knows', [{ id: 'k', from_id: 'a', to_id: 'b' }]);
  const write = "CALL traverse.pageRank.write('Person', 'Knows', {writeProperty: 'rank'})";
  await ask('ann', write);
  await ask('bob', write);
  await ask('cy', write.replace("'Person'", '$1'), ['Person']);
  await vi.waitFor(() => expect([...service.store.projections.jobs.works()]).toHaveLength(3));
  expect((await first.admin('DELETE', `/admin/tokens/${tokens[1]!}`)).status).toBeLessThan(300);
  await first.close();

  const second = await StoreWorld.open(settings, { disk });
  second.service.tend();
  const runs = () => [...second.service.store.projections.jobs.works()].map(({ run }) => run);
  await vi.waitFor(() => expect(runs().every(({ work }) => work.finished !== null)).toBe(true));
  expect(runs()).toMatchObject([
    { state: 'done', attempt: 2, result: { rows: 2 }, work: { principal: 'ann' } },
    { state: 'failed', attempt: 1, reason: 'REL_ACL', work: { principal: 'bob' } },
    // Values that came apart from its text are not kept.
    { state: 'failed', attempt: 1, reason: 'cut_off', work: { principal: 'cy' } },
  ]);
  expect(runs().some(({ work }) => work.statement !== undefined)).toBe(false);
  const ranks = await second.rows('SELECT id FROM Person AS OF CURRENT WHERE rank > 0');
  expect(ranks).toHaveLength(2);
  await second.close();
});
