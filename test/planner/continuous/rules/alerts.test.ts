/** Alerts: raised once for each match, with the cursor behind them in one append, by the grants that the rule's author has now. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MemoryDisk } from '../../../../src/log/disk/memory-disk.ts';
import { EventStream } from '../../../doors/http/event-stream.ts';
import { StoreWorld } from '../../../doors/http/store-world.ts';

let world: StoreWorld;
const login = { name: 'Login', properties: { id: 'string', who: 'string', fails: 'integer' }, primary_key: 'id' };
const many = { name: 'many fails', condition_sql: 'fails > 3', object_type: 'Login', severity: 'high' };

beforeEach(async () => {
  world = await StoreWorld.open();
  await world.call('POST', '/types', login);
});

afterEach(() => world.close());

const put = (rows: object[], headers: Record<string, string> = {}) =>
  world.call('POST', '/ingest?object_type=Login', rows, headers);
const judged = () => world.service.automation.rules.settle();

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

async function alerts(headers: Record<string, string> = {}): Promise<Record<string, unknown>[]> {
  const sql = 'SELECT title, rule_version, matched_pk, status, "count" FROM Alert AS OF CURRENT ORDER BY system_from, matched_pk';
  return world.rows(sql, headers);
}

const keys = async (headers: Record<string, string> = {}) => (await alerts(headers)).map((alert) => alert['matched_pk']);

test('alerts are asked for and followed before there is one', async () => {
  expect(await alerts()).toEqual([]);
  expect(await alerts(await world.tokenFor({ principal: 'ann', tenant_id: 'acme' }))).toEqual([]);
  expect((await world.call('GET', '/types/Alert')).status).toBe(200);
  const called = await world.call('POST', '/mcp/tools/call', { name: 'find_threats', arguments: { purpose: 'test' } });
  expect([called.status, called.text]).toEqual([200, expect.stringContaining('"alerts":[]')]);
  const sql = new URLSearchParams({ sql: 'SELECT title, matched_pk FROM Alert', purpose: 'test' }).toString();
  const stream = new EventStream(world.door.port, `/watch/stream?${sql}`, { authorization: `Bearer ${world.token}` });
  await stream.until((events) => events.some(({ event }) => event === 'heartbeat'));
  await must('POST', '/rules', many);
  await put([{ id: 'a', fails: 9 }]);
  await judged();
  const [told] = (await stream.until((events) => events.some(({ event }) => event === 'insert'))).filter(
    ({ event }) => event === 'insert',
  );
  expect(JSON.parse(told!.data)).toMatchObject({ row: { title: 'many fails', matched_pk: 'a' } });
  await stream.close();
});

describe('a rule that each row decides', () => {
  test('raises an alert for each version that matches while it is in force, and no other twice', async () => {
    await put([{ id: 'before', fails: 9 }]);
    const { id } = await must('POST', '/rules', many);
    await put([
      { id: 'a', fails: 9 },
      { id: 'b', fails: 1 },
    ]);
    await judged();
    await judged();
    expect(await alerts()).toEqual([{ title: 'many fails', rule_version: 1, matched_pk: 'a', status: 'open', count: 1 }]);
    // A corrected row is a version of its own; a row that comes late for the new version of the rule is judged by the former.
    await put([{ id: 'b', fails: 5 }]);
    await must('PUT', `/rules/${id as string}`, { ...many, condition_sql: 'fails > 100' });
    await put([{ id: 'c', fails: 50 }]);
    await put([{ id: 'd', fails: 500 }]);
    await judged();
    expect((await alerts()).map((alert) => [alert['matched_pk'], alert['rule_version']])).toEqual([
      ['a', 1],
      ['b', 1],
      ['d', 2],
    ]);
    await must('DELETE', `/rules/${id as string}`);
    await put([{ id: 'e', fails: 900 }]);
    await judged();
    expect(await keys()).toEqual(['a', 'b', 'd']);
  });

  test('counts up one alert of the same values, whatever its status became', async () => {
    await must('POST', '/rules', { ...many, dedupe_by: ['who'], window_secs: 31_536_000 });
    await put([
      { id: 'a', who: 'x', fails: 9 },
      { id: 'b', who: 'x', fails: 9 },
      { id: 'c', who: 'y', fails: 9 },
    ]);
    await judged();
    const [first] = await world.rows(`SELECT _pk FROM Alert WHERE matched_pk = 'a'`);
    await must('PATCH', `/types/Alert/${first!['_pk'] as string}`, { status: 'acknowledged' });
    await put([{ id: 'd', who: 'x', fails: 9 }]);
    await judged();
    const found = (await alerts()).map(({ status, count }) => [status, count]);
    expect(new Map(found as [string, number][])).toEqual(
      new Map([
        ['open', 1],
        ['acknowledged', 3],
      ]),
    );
  });

  test('leaves a type of the tenant’s own that is called Alert alone', async () => {
    await must('POST', '/types', { name: 'Alert', properties: { id: 'string', mine: 'string' }, primary_key: 'id' });
    await must('POST', '/rules', many);
    await put([{ id: 'a', fails: 9 }]);
    await judged();
    expect(await world.rows('SELECT matched_pk FROM RuleAlert')).toEqual([{ matched_pk: 'a' }]);
    expect(await world.rows('SELECT * FROM Alert')).toEqual([]);
  });

  test('goes with the subject of the row that matched', async () => {
    await must('POST', '/types', {
      name: 'Visit',
      properties: { id: 'string', who: { type: 'string', subject: true }, fails: 'integer' },
      primary_key: 'id',
    });
    await must('POST', '/rules', { ...many, object_type: 'Visit' });
    await must('POST', '/ingest?object_type=Visit', [
      { id: 'a', who: 'alice', fails: 9 },
      { id: 'b', who: 'bob', fails: 9 },
    ]);
    await judged();
    expect(await keys()).toEqual(['a', 'b']);
    const erased = await world.rows(`ERASE SUBJECT 'alice' REASON 'asked to' CERTIFY`);
    expect(erased[0]!['certified']).toBe(true);
    expect(await keys()).toEqual(['b']);
  });
});

describe('a rule that no row decides', () => {
  test('is judged at intervals, and raises each alert once; the past is judged without a trace', async () => {
    const rule = {
      name: 'twice',
      condition_sql: 'SELECT who, COUNT(*) AS n FROM Login GROUP BY who HAVING COUNT(*) > 1',
      interval_secs: 1,
    };
    await put([
      { id: 'a', who: 'x' },
      { id: 'b', who: 'x' },
    ]);
    const { id } = await must('POST', '/rules', rule);
    await world.service.automation.intervalRules.round();
    const titles = async () => (await alerts()).map(({ title }) => title);
    expect(await titles()).toEqual(['twice']);
    await world.service.automation.intervalRules.round();
    expect(await titles()).toEqual(['twice']);
    expect(world.service.automation.intervalRules.failureOf(id as string)).toBe(null);
  });

  test('the past is judged by a rule as it stands, and nothing is written', async () => {
    await put([
      { id: 'a', fails: 9 },
      { id: 'b', fails: 1 },
    ]);
    const { id } = await must('POST', '/rules', many);
    const leaves = () => world.service.store.projections.jobs.epoch;
    const before = leaves();
    const now = world.service.clock.now();
    const test = (from: bigint, to: bigint) =>
      world.call('POST', `/rules/${id as string}/test`, `{"from": ${from}, "to": ${to}}`, { 'content-type': 'application/json' });
    const past = await test(0n, now);
    expect(past.json).toMatchObject({ matches: 1, alerts: 1, first: [{ matched_pk: 'a', count: 1 }] });
    expect((await test(now, now)).json).toEqual({ matches: 0, alerts: 0, first: [] });
    expect([leaves(), await alerts()]).toEqual([before, []]);
  });
});

describe('the right of a rule', () => {
  const made = async (fields: object, headers: Record<string, string> = {}) => {
    const { json } = await world.admin('POST', '/admin/tokens', { principal: 'ann', ...fields });
    return { id: json['id'] as string, as: { authorization: `Bearer ${json['token'] as string}`, ...headers } };
  };

  test('is that of its author now: revoked, suspended, and rotated', async () => {
    const ann = await made({ tenant_id: 'acme' });
    const other = await made({ tenant_id: 'acme' });
    await must('POST', '/types', login, ann.as);
    const { id } = await must('POST', '/rules', many, ann.as);
    await put([{ id: 'a', fails: 9 }], ann.as);
    await put([{ id: 'x', fails: 9 }]);
    await judged();
    expect(await keys(other.as)).toEqual(['a']);
    expect(await alerts()).toEqual([]);
    // A token that was rotated goes on as the one in its place.
    const { json: rotated } = await world.admin('POST', `/admin/tokens/${ann.id}/rotate`, {});
    await put([{ id: 'b', fails: 9 }], other.as);
    await judged();
    expect(await keys(other.as)).toEqual(['a', 'b']);
    await world.admin('DELETE', `/admin/tokens/${rotated['id'] as string}`);
    await put([{ id: 'c', fails: 9 }], other.as);
    await judged();
    expect(await keys(other.as)).toEqual(['a', 'b']);
    expect(world.service.automation.rules.failureOf(id as string)?.code).toBe('REL_ACL');
  });

  test('is narrowed by policies and masks that came later', async () => {
    const ann = await made({ tenant_id: 'acme' });
    await must('POST', '/types', login, ann.as);
    await must('POST', '/rules', many, ann.as);
    const installed = await world.admin('PUT', '/admin/policies/p', {
      policy:
        'permit(principal, action, resource); forbid(principal, action == Action::"read", resource is Login) when { resource.who == "hidden" };',
    });
    if (installed.status >= 300) throw new Error(installed.text);
    await put(
      [
        { id: 'a', who: 'hidden', fails: 9 },
        { id: 'b', who: 'shown', fails: 9 },
      ],
      ann.as,
    );
    await judged();
    expect(await keys(ann.as)).toEqual(['b']);
  });
});

const onDisk = { SERVICE_IN_MEMORY: '', SERVICE_DATA_DIR: '/data', SERVICE_KEK: 'ab'.repeat(32) };

test('alerts and the cursor behind them are one append: a start judges what was not judged, and nothing again', async () => {
  const disk = new MemoryDisk();
  const first = await StoreWorld.open(onDisk, { disk });
  await first.call('POST', '/types', login);
  await first.call('POST', '/rules', { ...many, dedupe_by: ['who'] });
  await first.call('POST', '/ingest?object_type=Login', [{ id: 'a', who: 'x', fails: 9 }]);
  await first.service.automation.rules.settle();
  await first.call('POST', '/ingest?object_type=Login', [{ id: 'b', who: 'x', fails: 9 }]);
  await first.close();
  const second = await StoreWorld.open(onDisk, { disk });
  await second.service.automation.rules.settle();
  expect(await second.rows('SELECT "count" FROM Alert AS OF CURRENT')).toEqual([{ count: 2 }]);
  let runs = 0;
  for await (const { body } of second.service.store.log.read(0)) if (body.kind === 'run') runs++;
  expect(runs).toBe(2);
  await second.close();
});

describe('Sigma rules', () => {
  const sigma = (title: string, rest: string): string => `title: ${title}\nid: ${title}\n${rest}\n`;
  const failed = sigma(
    'failed',
    'logsource: {product: windows}\ndetection: {s: {fails|gte: 1, who|startswith: u}, condition: s}',
  );
  const burst = sigma(
    'burst',
    'correlation: {type: event_count, rules: [failed], group-by: [who], timespan: 1m, condition: {gte: 3}, generate: true}',
  );
  const at = (id: string, who: string, second: number) => ({
    id,
    who,
    fails: 1,
    valid_from: `2024-05-01T10:00:${String(second).padStart(2, '0')}Z`,
  });
  const of = async (title: string) =>
    (await alerts()).flatMap((alert) => (alert['title'] === title ? [alert['matched_pk']] : []));

  test('are judged together on each commit; a correlation goes on behind a restart, and is raised once an episode', async () => {
    const disk = new MemoryDisk();
    await world.close();
    world = await StoreWorld.open(onDisk, { disk });
    await must('POST', '/types', login);
    await must('POST', '/rules', many);
    const imported = await must('POST', '/rules/sigma?object_type=Login', { rules: [failed, burst] });
    expect(imported['results']).toMatchObject([{ status: 'imported' }, { status: 'imported' }]);
    await put([at('a', 'u1', 0), at('b', 'U2', 1), { id: 'c', who: 'x', fails: 9 }]);
    await put([at('d', 'u1', 10)]);
    await judged();
    expect([await of('failed'), await of('burst'), await of('many fails')]).toEqual([['a', 'b', 'd'], [], ['c']]);
    await world.close();
    world = await StoreWorld.open(onDisk, { disk });
    await put([at('e', 'u1', 20)]);
    await put([at('f', 'u1', 30), at('g', 'U2', 31)]);
    await judged();
    expect([await of('failed'), await of('burst')]).toEqual([['a', 'b', 'd', 'e', 'f', 'g'], ['e']]);
    // The past is judged alike, by a correlation with the rules that it counts.
    const rules = (await must('GET', '/rules'))['rules'] as Record<string, unknown>[];
    const pastOf = async (name: string, to: bigint) => {
      const { id } = rules.find((rule) => rule['name'] === name)!;
      const past = await must('POST', `/rules/${id as string}/test`, { from: 0, to: Number(to) });
      return (past['first'] as Record<string, unknown>[]).map((alert) => alert['matched_pk']);
    };
    const now = world.service.clock.now();
    expect([await pastOf('failed', now), await pastOf('burst', now)]).toEqual([['a', 'b', 'd', 'e', 'f', 'g'], ['e']]);
  });
});
