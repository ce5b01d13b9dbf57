/** Workflows over the whole stack: each kind of step, who may do what, and a store that stops behind each of them. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Clock, systemClock } from '../../src/clock.ts';
import { ServiceError } from '../../src/errors.ts';
import { MemoryDisk } from '../../src/log/disk/memory-disk.ts';
import { Service } from '../../src/service.ts';
import { StoreWorld } from '../doors/http/store-world.ts';
import { TestClock } from '../harness.ts';

let disk: MemoryDisk;
let world: StoreWorld;
let ahead: bigint;
/** The system's clock, which a test may put forward. */
const clock: Clock = {
  now: () => systemClock.now() + ahead,
  monotonicMs: () => systemClock.monotonicMs(),
  sleep: (ms, signal) => systemClock.sleep(ms, signal),
};

beforeEach(async () => {
  ahead = 0n;
  disk = new MemoryDisk();
  world = await StoreWorld.open({ SERVICE_IN_MEMORY: '' }, { disk, clock });
  await must('POST', '/types', {
    name: 'Person',
    properties: { id: 'string', name: 'string', age: 'integer' },
    primary_key: 'id',
  });
  await must('POST', '/types', { name: 'Note', properties: { text: 'string', n: 'integer' } });
  await must('POST', '/ingest?object_type=Person', [
    { id: 'a', name: "O'Hara", age: 30 },
    { id: 'b', name: 'Bo', age: 50 },
  ]);
});

afterEach(() => {
  vi.restoreAllMocks();
  return world.close();
});

type Json = Record<string, unknown>;

async function must(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Json> {
  const reply = await world.call(method, path, body, headers);
  if (reply.status >= 300) throw new Error(`${method} ${path}: ${reply.text}`);
  return reply.json;
}

async function begin(steps: unknown, given: object = {}, name = 'w', purpose = 'test'): Promise<string> {
  await must('POST', '/workflows', { name, steps });
  const run = await must('POST', '/workflows/runs', { name, arguments: given, purpose });
  await world.service.automation.scheduler.settle();
  return run['run_id'] as string;
}

const run = (id: string, headers: Record<string, string> = {}) => must('GET', `/workflows/runs/${id}`, undefined, headers);
const notes = async () => (await world.rows('SELECT text, n FROM Note AS OF CURRENT ORDER BY text')).map(({ text }) => text);

describe('a workflow', () => {
  test('runs its steps in their order, and hands values on by their types', async () => {
    const id = await begin(
      [
        {
          query: {
            sql: 'SELECT id, name, age FROM Person WHERE age > {{arguments.age}} OR name = {{arguments.name}} ORDER BY id',
          },
        },
        {
          for_each: {
            items: '{{steps.0.rows}}',
            steps: [
              {
                if: {
                  condition: '{{item.age}} > 40',
                  // oxlint-disable-next-line unicorn/no-thenable -- a list of steps
                  then: [{ insert: { type: 'Note', row: { text: '{{item.name}} is old', n: '{{item.age}}' } } }],
                },
              },
            ],
          },
        },
        { insert: { type: 'Note', row: { text: '{{steps.0.rows.0.name}} of {{steps.0.count}}' } } },
        {
          alert: {
            title: 'seen {{steps.0.rows.1.id}}',
            severity: 'high',
            matched_type: 'Person',
            matched_pk: '{{steps.0.rows.1.id}}',
          },
        },
        { function: { name: 'generate_series', arguments: [1, 3] } },
        { tool: { name: 'remember', arguments: { content: 'a {{steps.0.rows.1.name}}' } } },
        { tool: { name: 'query', arguments: { sql: 'SELECT COUNT(*) AS n FROM Note' } } },
      ],
      { age: 45, name: "O'Hara" },
    );
    const view = await run(id);
    expect([view['state'], view['error'], view['alerts']]).toEqual(['done', null, 1]);
    expect(await notes()).toEqual(['Bo is old', "O'Hara of 2"]);
    expect(await world.rows('SELECT title, severity, run_id, matched_pk FROM Alert AS OF CURRENT')).toMatchObject([
      { title: 'seen b', severity: 'high', matched_pk: 'b' },
    ]);
    const steps = view['steps'] as Json[];
    expect(steps.map(({ path, state, attempts }) => [path, state, attempts])).toEqual(
      ['0', '1.0.0', '1.1.0', '1.1.0.0.0', '1', '2', '3', '4', '5', '6'].map((path) => [path, 'done', 1]),
    );
    expect(steps[0]!['result']).toMatchObject({ rows: 2 });
    expect(JSON.stringify(steps)).not.toContain('Hara');
    expect((await must('GET', '/workflows'))['workflows']).toContainEqual(
      expect.objectContaining({ name: 'w', principal: 'tester' }),
    );
  });

  test.each([
    ['no steps', [], 'steps:'],
    ['a step of two kinds', [{ wait: { seconds: 1 }, query: { sql: 'SELECT 1' } }], 'steps.0'],
    ['a kind that is none', [{ shell: {} }], 'steps.0'],
    ['a step that comes later', [{ insert: { type: 'Note', row: { text: '{{steps.0.id}}' } } }], 'no step before it'],
    ['a template that means nothing', [{ query: { sql: 'SELECT {{process.env}}' } }], '{{process.env}}'],
    ['a workflow that begins others', [{ tool: { name: 'run_workflow' } }], 'begins no other'],
    // oxlint-disable-next-line unicorn/no-thenable -- a list of steps
    ['an inner step', [{ if: { condition: 'true', then: [{ wait: {} }] } }], 'steps.0.if.then.0.wait'],
  ])('is refused: %s', async (_, steps, part) => {
    const refused = await world.call('POST', '/workflows', { name: 'x', steps });
    expect([refused.status, refused.json['detail']]).toEqual([400, expect.stringContaining(part)]);
  });

  test('fails with the code of the step that did, and keeps what came before', async () => {
    const id = await begin([
      { insert: { type: 'Note', row: { text: 'first' } } },
      { insert: { type: 'Nothing', row: { text: 'second' } } },
      { insert: { type: 'Note', row: { text: 'third' } } },
    ]);
    expect(await run(id)).toMatchObject({
      state: 'failed',
      error: 'REL_UNKNOWN_TYPE',
      steps: [{ state: 'done' }, { state: 'failed' }],
    });
    expect(await notes()).toEqual(['first']);
    expect((await world.call('POST', '/workflows', { name: 'w', steps: [{ wait: { seconds: 1 } }] })).status).toBe(409);
  });

  test('waits for a time and for rows without a place among the runs, and is cancelled there', async () => {
    const steps = [
      { wait: { seconds: 3_600 } },
      { wait: { sql: "SELECT id FROM Person WHERE id = 'c'", every_secs: 60 } },
      { insert: { type: 'Note', row: { text: '{{steps.1.rows.0.id}} came' } } },
    ];
    const id = await begin(steps);
    const other = await begin(steps);
    expect(await run(id)).toMatchObject({
      state: 'queued',
      waiting: true,
      steps: [{ path: '0', state: 'waiting', ended_at: null }],
    });
    ahead += 3_600_000_000_000n;
    await world.service.automation.scheduler.settle();
    expect(await run(id)).toMatchObject({ waiting: true, steps: [{ state: 'done' }, { state: 'waiting' }] });
    expect(await must('POST', `/workflows/runs/${other}/cancel`)).toMatchObject({ state: 'cancelled', error: 'REL_CANCELLED' });
    await must('POST', '/ingest?object_type=Person', [{ id: 'c', name: 'Cy', age: 1 }]);
    ahead += 60_000_000_000n;
    await world.service.automation.scheduler.settle();
    expect(await run(id)).toMatchObject({ state: 'done', attempt: 1 });
    expect(await notes()).toEqual(['c came']);
  });

  describe('when a subject is erased that it has read of', () => {
    const erase = { tool: { name: 'erase_subject', arguments: { subject: 'alice', reason: 'asked to' } } };
    const all = { query: { sql: 'SELECT id, name FROM Patient ORDER BY id' } };
    const asTool = { tool: { name: 'query', arguments: { sql: 'SELECT name FROM Patient ORDER BY id' } } };
    const each = {
      for_each: { items: '{{steps.0.rows}}', steps: [{ insert: { type: 'Note', row: { text: '{{item.name}}' } } }] },
    };
    const insert = (text: string) => ({ insert: { type: 'Note', row: { text } } });

    test.each([
      ['fails rather than go through other items', [all, erase, each], [], 'REL_CONFLICT'],
      ['fails behind a wait too', [all, { wait: { seconds: 60 } }, erase, each], [], 'REL_CONFLICT'],
      [
        'goes on with rows of others',
        [{ query: { sql: "SELECT name FROM Patient WHERE id = 'b'" } }, erase, insert('{{steps.0.rows.0.name}}')],
        ['Bo'],
        null,
      ],
      ['calls a tool that reads again', [asTool, erase, insert('{{steps.0.rows.0.name}}')], ['Bo'], null],
      [
        'does not name what a tool that writes has said before',
        [{ tool: { name: 'remember', arguments: { content: 'Alice' } } }, erase, insert('{{steps.0.id}}')],
        [],
        'REL_UNPROCESSABLE',
      ],
    ])('%s', async (_, steps, written, error) => {
      const properties = { id: 'string', who: { type: 'string', subject: true }, name: 'string' };
      await must('POST', '/types', { name: 'Patient', properties, primary_key: 'id' });
      await must('POST', '/ingest?object_type=Patient', [
        { id: 'a', who: 'alice', name: 'Alice' },
        { id: 'b', who: 'bob', name: 'Bo' },
      ]);
      const id = await begin(steps);
      ahead += 60_000_000_000n;
      await world.service.automation.scheduler.settle();
      expect(await run(id)).toMatchObject({ state: error === null ? 'done' : 'failed', error });
      expect(await notes()).toEqual(written);
    });
  });

  test('waits for the principal that is to approve, and for no other', async () => {
    const [ann, bob, eve] = await Promise.all(
      ['ann', 'bob', 'eve'].map((principal) => world.tokenFor({ principal, tenant_id: 'acme' })),
    );
    await must('POST', '/workflows', { name: 'asks', steps: [{ approve: { principal: 'bob' } }] }, ann);
    const begun = [0, 1].map(() => must('POST', '/workflows/runs', { name: 'asks', purpose: 'test' }, ann));
    const [first, second] = (await Promise.all(begun)).map((each) => each['run_id'] as string);
    await world.service.automation.scheduler.settle();
    const approve = (id: string, as: Record<string, string>, body = {}) =>
      world.call('POST', `/workflows/runs/${id}/approve`, body, as);
    expect((await approve(first!, ann!)).status).toBe(403);
    expect((await approve(first!, eve!)).status).toBe(404);
    expect((await world.call('POST', `/workflows/runs/${first}/cancel`, {}, bob)).status).toBe(404);
    expect((await approve(first!, bob!)).status).toBe(200);
    expect(await approve(second!, bob!, { approved: false })).toMatchObject({
      json: { state: 'cancelled', error: 'not_approved' },
    });
    await world.service.automation.scheduler.settle();
    expect(await run(first!, ann)).toMatchObject({ state: 'done' });
    expect((await approve(first!, bob!)).status).toBe(404);
    expect(
      (await must('GET', '/workflows', undefined, await world.tokenFor({ principal: 'ann', tenant_id: 'other' })))['total'],
    ).toBe(world.service.automation.workflows.builtins.length);
  });

  test('that every store has screens parties: those that are new, and all of them where a listing has changed', async () => {
    const screened = { name: 'string', aliases: 'json' };
    await must('POST', '/types', { name: 'Listing', properties: { id: 'string', ...screened }, primary_key: 'id' });
    await must('POST', '/types', { name: 'Party', properties: { id: 'string', ...screened }, primary_key: 'id' });
    await must('POST', '/ingest?object_type=Listing', [{ id: 'l1', name: 'Robert Tomb' }]);
    const perform = async (name: string, given: object) => {
      const begun = await must('POST', '/workflows/runs', { name, arguments: given, purpose: 'test' });
      await world.service.automation.scheduler.settle();
      expect(await run(begun['run_id'] as string)).toMatchObject({ state: 'done', error: null });
      const alerts = await world.rows('SELECT title, matched_pk FROM Alert AS OF CURRENT ORDER BY system_from');
      return alerts.map(({ title, matched_pk: key }) => `${title as string}: ${key as string}`);
    };
    const listed = 'a screened name is like a listing: l1';
    expect(await perform('screen-against-lists', { names: ['Robert Tomb', 'Wanda Pell'] })).toEqual([listed]);
    const first = 'a new party is like a listing: p1';
    expect(await perform('onboard-entity', { row: { id: 'p1', name: 'Robert Tomb' } })).toEqual([listed, first]);
    expect(await perform('onboard-entity', { row: { id: 'p2', name: 'Wanda Pell' } })).toEqual([listed, first]);
    ahead += 7_200_000_000_000n;
    expect(await perform('rescreen-changed-listings', { hours: 1 })).toEqual([listed, first]);
    await must('POST', '/ingest?object_type=Listing', [{ id: 'l2', name: 'Wanda Pell' }]);
    expect(await perform('rescreen-changed-listings', { hours: 1 })).toEqual([
      listed,
      first,
      'a party is like a listing that changed: p2',
    ]);
  });

  test('ends with the rights of whoever asked for it', async () => {
    const { json } = await world.admin('POST', '/admin/tokens', { principal: 'ann', tenant_id: 'acme' });
    const as = { authorization: `Bearer ${json['token'] as string}` };
    await must('POST', '/workflows', { name: 'later', steps: [{ wait: { seconds: 60 } }, { query: { sql: 'SELECT 1' } }] }, as);
    const begun = await must('POST', '/workflows/runs', { name: 'later', purpose: 'test' }, as);
    await world.service.automation.scheduler.settle();
    await world.admin('DELETE', `/admin/tokens/${json['id'] as string}`);
    ahead += 60_000_000_000n;
    await world.service.automation.scheduler.settle();
    expect(world.service.store.projections.jobs.job(begun['run_id'] as string)).toMatchObject({
      state: 'ended',
      lastError: 'REL_ACL',
    });
  });

  test('is the work of a job', async () => {
    await must('POST', '/workflows', {
      name: 'nightly',
      steps: [{ insert: { type: 'Note', row: { text: '{{arguments.t}}' } } }],
    });
    const job = await must('POST', '/jobs', {
      name: 'j',
      run: { workflow: 'nightly', arguments: { t: 'x' } },
      interval_secs: 3_600,
    });
    await must('POST', `/jobs/${job['job_id'] as string}/run`);
    expect(await must('GET', `/jobs/${job['job_id'] as string}`)).toMatchObject({
      state: 'done',
      run_count: 2,
      status: 'scheduled',
    });
    expect(await notes()).toEqual(['x', 'x']);
  });
});

test('a store that stops behind any step goes on behind it, and does nothing twice', async () => {
  const steps = [
    { query: { sql: 'SELECT id, name FROM Person ORDER BY id' } },
    { for_each: { items: '{{steps.0.rows}}', steps: [{ insert: { type: 'Note', row: { text: '{{item.name}}' } } }] } },
    { alert: { title: 'two' } },
    { tool: { name: 'remember', arguments: { content: 'once' } } },
    { insert: { type: 'Note', row: { text: 'of {{steps.0.rows.0.name}}' } } },
  ];
  await must('POST', '/workflows', { name: 'w', steps });
  await world.close();
  // No chore invokes the gate beside the run, none begins the run before it is told to stop, and no time limit is reached:
  // the clock moves by being read.
  vi.spyOn(Service.prototype, 'tend').mockImplementation(() => undefined);
  const still = new TestClock('2024-01-01');
  still.wallNs = systemClock.now();
  still.now = () => (still.wallNs += 1_000n);
  world = await StoreWorld.open({ SERVICE_IN_MEMORY: '' }, { disk, clock: still });
  // Of each start so many invocations of the gate, and then none: the last ones before it ends fall on every append of the run.
  let id: string | null = null;
  for (let allowed = 1; ; allowed++) {
    expect(allowed).toBeLessThan(30);
    const { gate } = world.service;
    const { scheduler } = world.service.automation;
    const invoke = gate.invoke.bind(gate);
    let left = allowed;
    gate.invoke = (caller, request, act) =>
      caller.door === 'internal' && --left < 0
        ? Promise.reject(new ServiceError('REL_UNAVAILABLE', 'stopped'))
        : invoke(caller, request, act);
    id ??= (await must('POST', '/workflows/runs', { name: 'w', purpose: 'test' }))['run_id'] as string;
    await scheduler.settle();
    const { state } = await run(id);
    if (state === 'done') break;
    expect(state).not.toBe('failed');
    await world.close();
    world = await StoreWorld.open({ SERVICE_IN_MEMORY: '' }, { disk, clock: still });
  }
  expect(await notes()).toEqual(['Bo', "O'Hara", "of O'Hara"]);
  expect(await world.rows('SELECT title FROM Alert AS OF CURRENT')).toHaveLength(1);
  expect(await world.rows('SELECT content FROM MemoryItem AS OF CURRENT')).toHaveLength(1);
});
