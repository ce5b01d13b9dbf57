/**
 * What outlives its statement, under policies: cached answers of views, standing queries, exhibits. A grant serves itself
 * alone, and nothing of a hidden cell, row or key leaves by any of them.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventText } from '../../src/doors/http/server-sent-events.ts';
import type { Caller } from '../../src/governance/caller.ts';
import type { Action, Invocation } from '../../src/governance/gate-contract.ts';
import { formatInstant } from '../../src/log/values/timestamp.ts';
import { linkExhibit, type Linked, openExhibit } from '../../src/planner/exhibits/link.ts';
import { readRecipe } from '../../src/planner/exhibits/recipe.ts';
import { Planner } from '../../src/planner/planner.ts';
import { MaterializedViews } from '../../src/planner/continuous/views/materialized-views.ts';
import type { WatchClient } from '../../src/planner/continuous/watch/subscription.ts';
import { StandingQueries } from '../../src/planner/continuous/watch/watch.ts';
import type { WatchEvent } from '../../src/planner/continuous/watch/watch-events.ts';
import type { Command } from '../../src/projections/command.ts';
import { analyst, type Row, rowsOf, TestStore } from '../harness.ts';
import { settled, SteppingClock } from './continuous/stepping-clock.ts';

const admin: Caller = { ...analyst, principal: 'root', credential: 'admin' };
const clerk: Caller = { ...analyst, principal: 'cleo', path: 'acme', roles: ['clerk'] };
const chief: Caller = { ...analyst, principal: 'chas', path: 'acme', roles: ['chief'] };

const policies = {
  all: 'permit(principal, action, resource);',
  rows: 'forbid(principal in Role::"clerk", action, resource is Person) when { resource.region == "XX" };',
  ssn: '@mask("redact") forbid(principal in Role::"clerk", action == Action::"readCell", resource == Column::"Person.ssn");',
};

let store: TestStore;
beforeEach(async () => {
  store = await TestStore.open('2024-01-01');
  await store.register('Person', { key: 'string', region: 'string', ssn: 'string', n: 'integer' }, 'key');
  await put({ key: 'a', region: 'EU', ssn: 'secret-a', n: 1 }, { key: 'b', region: 'US', ssn: 'secret-b', n: 2 });
  await put({ key: 'hidden', region: 'XX', ssn: 'secret-h', n: 3 });
  await install(policies);
});
afterEach(() => store.close());

const run = <T>(who: Caller, action: Action, use: (invocation: Invocation) => Promise<T>): Promise<T> =>
  store.service.gate.invoke(who, { action, purpose: 'test', correlationId: 'c' }, use);

const submit = (who: Caller, action: Action, command: Command) => run(who, action, (invocation) => invocation.submit(command));

async function install(texts: Readonly<Record<string, string>>): Promise<void> {
  for (const [id, text] of Object.entries(texts)) await submit(admin, 'administer', { kind: 'put-policy', id, text });
}

async function put(...rows: readonly Record<string, unknown>[]): Promise<void> {
  store.clock.wallNs += 1_000_000n;
  await store.put('Person', rows, chief);
}

const remove = (...keys: readonly string[]) => submit(chief, 'remove', { kind: 'remove-rows', type: 'Person', keys });

test('rows and cells are those of the grant, on every path of a statement', async () => {
  expect(await store.rows('SELECT key, ssn FROM Person', clerk)).toEqual([
    { key: 'a', ssn: '***' },
    { key: 'b', ssn: '***' },
  ]);
  expect(await store.rows('SELECT key, ssn FROM Person', chief)).toEqual([
    { key: 'a', ssn: 'secret-a' },
    { key: 'b', ssn: 'secret-b' },
    { key: 'hidden', ssn: 'secret-h' },
  ]);
  expect(await store.rows("SELECT key FROM Person WHERE ssn = 'secret-a' OR key = 'hidden'", clerk)).toEqual([]);
  expect(await store.refusal('SELECT COUNT(ssn) FROM Person', clerk)).toMatchObject({ code: 'REL_MASKED_COLUMN' });
  expect(await store.column('SELECT COUNT(ssn) FROM Person', chief)).toEqual([3n]);
  const plan = await store.rows('EXPLAIN SELECT ssn FROM Person', clerk);
  expect(JSON.stringify(plan.map((line) => line['plan']))).toContain('masked ssn (redact)');
});

test('a cell that its mask leaves alone is a value; its column still adds nothing up', async () => {
  const ssn =
    '@mask("last4") forbid(principal in Role::"clerk", action == Action::"readCell", resource == Column::"Person.ssn") when { resource.region == "EU" };';
  await install({ ssn });
  expect(await store.rows('SELECT key, ssn FROM Person', clerk)).toEqual([
    { key: 'a', ssn: '****et-a' },
    { key: 'b', ssn: 'secret-b' },
  ]);
  const found = async (text: string): Promise<unknown> => store.column(`SELECT key FROM Person WHERE ssn = '${text}'`, clerk);
  expect([await found('secret-a'), await found('****et-a'), await found('secret-b')]).toEqual([[], [], ['b']]);
  expect(await store.column('SELECT key FROM Person WHERE ssn IS NULL', clerk)).toEqual(['a']);
  for (const sql of ['SELECT MAX(ssn) FROM Person', 'SELECT key FROM Person ORDER BY ssn', 'SELECT ssn FROM Person GROUP BY ssn'])
    expect(await store.refusal(sql, clerk)).toMatchObject({ code: 'REL_MASKED_COLUMN' });
});

describe('EXPLAIN POLICY', () => {
  const told = async (sql: string, who: Caller): Promise<unknown[]> =>
    (await store.rows(`EXPLAIN POLICY ${sql}`, who)).map(({ plan }) => plan);

  test('gives decision, policies, what is left of them, masks and their digest', async () => {
    expect(await told('SELECT key FROM Person', clerk)).toEqual([
      'decision by row',
      'scope rows of acme and below',
      'determining permit all when true',
      'determining forbid rows when resource.region == "XX"',
      'residual !(resource.region == "XX")',
      'mask ssn (redact) by ssn',
      'satisfied policy all',
      expect.stringMatching(/^policies [0-9a-f]{64}$/),
    ]);
    const chiefs = await told('SELECT key FROM Person', chief);
    expect(chiefs.slice(0, 1)).toEqual(['decision allow']);
    expect(chiefs.join()).not.toMatch(/mask|residual/);
    // Behind IN too.
    expect(
      (await told('SELECT key FROM Person WHERE key IN (SELECT key FROM Nothing)', clerk)).filter((line) =>
        String(line).startsWith('type'),
      ),
    ).toEqual(['type Person', 'type Nothing']);
  });

  test('as of an instant gives the decision of then, of reading at that instant the one of now', async () => {
    store.clock.wallNs += 1_000_000_000n;
    const before = formatInstant(store.clock.wallNs);
    store.clock.wallNs += 1_000_000_000n;
    await install({ rows: 'forbid(principal in Role::"clerk", action == Action::"read", resource is Person);' });
    const asOf = `SELECT key FROM Person AS OF SYSTEM TIME '${before}'`;
    expect((await told('SELECT key FROM Person', clerk))[0]).toBe('decision deny');
    expect((await told(asOf, clerk))[0]).toBe('decision by row');
    expect((await told("SELECT key FROM Person AS OF SYSTEM TIME '2030-01-01'", clerk))[0]).toBe('decision deny');
    expect((await told("SELECT key FROM Person AS OF SYSTEM TIME '2000-01-01'", clerk))[0]).toBe('decision allow');
    expect(await store.refusal(asOf, clerk)).toMatchObject({ code: 'REL_ACL' });
    expect((await store.refusal("EXPLAIN POLICY SELECT key FROM Person AS OF SYSTEM TIME 'then'", clerk)).code).toBe('REL_PARSE');
  });
});

describe('a cached answer of a view', () => {
  let planner: Planner;
  let views: MaterializedViews;
  beforeEach(async () => {
    const { gate, ids } = store.service;
    const { watch, lookups } = store.service.standing;
    const yieldTurn = store.service.turns.yieldFor('bodies');
    const asked = { query: (...question: Parameters<Planner['query']>) => planner.query(...question) };
    views = new MaterializedViews({
      gate,
      planner: asked,
      clock: store.clock,
      ids,
      rowsMax: 100,
      renew: (caller) => caller,
      yieldTurn,
    });
    planner = new Planner({ clock: store.clock, continuous: { watch, lookups, views, erasures: null } });
    await store.answer('CREATE MATERIALIZED VIEW Cards AS SELECT key, ssn FROM Person REFRESH INCREMENTAL EVERY 60', chief);
    await store.answer(
      'CREATE MATERIALIZED VIEW Counts AS SELECT region, COUNT(*) AS c FROM Person GROUP BY region REFRESH INCREMENTAL EVERY 60',
      chief,
    );
  });

  afterEach(() => views.close());

  const rows = async (sql: string, who: Caller): Promise<Row[]> =>
    rowsOf(await run(who, 'query', (invocation) => planner.query(invocation, { sql })));

  const lines = async (sql: string, who: Caller): Promise<string> =>
    (await rows(`EXPLAIN ${sql}`, who)).map(({ plan }) => plan).join('\n');

  const twice = async (sql: string, who: Caller): Promise<string> => {
    await rows(sql, who);
    await settled();
    return lines(sql, who);
  };

  test('serves the grant that it was made under, and no other', async () => {
    expect(await twice('SELECT * FROM Counts', chief)).toContain('cached view');
    expect(await lines('SELECT * FROM Counts', clerk)).not.toContain('cached view');
    expect(await rows('SELECT * FROM Counts', clerk)).toEqual([
      { region: 'EU', c: 1n },
      { region: 'US', c: 1n },
    ]);
    expect(await twice('SELECT * FROM Counts', clerk)).toContain('cached view');
    expect(await rows('SELECT * FROM Counts', clerk)).toHaveLength(2);
    expect(await rows('SELECT * FROM Counts', chief)).toHaveLength(3);
  });

  test('is none where a mask had a part in it: how a cell is shown is no value', async () => {
    expect(await twice('SELECT * FROM Cards', chief)).toContain('cached view');
    expect(await twice('SELECT * FROM Cards', clerk)).not.toContain('cached view');
    expect(await rows('SELECT * FROM Cards', clerk)).toEqual([
      { key: 'a', ssn: '***' },
      { key: 'b', ssn: '***' },
    ]);
    expect(await rows("SELECT key FROM Cards WHERE ssn = '***'", clerk)).toEqual([]);
    await expect(rows('SELECT key FROM Cards ORDER BY ssn', clerk)).rejects.toMatchObject({ code: 'REL_MASKED_COLUMN' });
  });

  test('ends when a column is declared masked that it shows, on whichever branch that is', async () => {
    await run(chief, 'fork', (invocation) => {
      return invocation.submit({ kind: 'fork-branch', name: 'dev', source: 'main', shares: 'everything' });
    });
    const there = { ...chief, branch: 'dev' };
    expect(await twice('SELECT * FROM Cards', there)).toContain('cached view');
    expect(await rows('SELECT COUNT(ssn) FROM Person', there)).toEqual([{ count: 3n }]);
    expect(await rows('SELECT ssn FROM Person LIMIT 1', there)).toEqual([{ ssn: 'secret-a' }]);
    const ssn = { type: 'string', required: false, masked: true, indexed: false, subject: false, dims: 0 } as const;
    await run(chief, 'schema', (invocation) => invocation.submit({ kind: 'evolve-type', name: 'Person', properties: { ssn } }));
    expect(await lines('SELECT * FROM Cards', there)).not.toContain('cached view');
    expect((await rows('SELECT * FROM Cards', there)).map((row) => row['ssn'])).toEqual(['***', '***', '***']);
    await expect(rows('SELECT COUNT(ssn) FROM Person', there)).rejects.toMatchObject({ code: 'REL_MASKED_COLUMN' });
    expect(await rows('SELECT ssn FROM Person LIMIT 1', there)).toEqual([{ ssn: '***' }]);
  });

  test('ends with the policies that it was made under', async () => {
    expect(await twice('SELECT * FROM Counts', chief)).toContain('cached view');
    await install({ rows: 'forbid(principal, action, resource is Person) when { resource.region == "XX" };' });
    expect(await lines('SELECT * FROM Counts', chief)).not.toContain('cached view');
    expect(await rows('SELECT * FROM Counts', chief)).toHaveLength(2);
  });
});

class Client implements WatchClient {
  text = '';
  readonly gone = new AbortController().signal;

  renew = (): Caller => clerk;

  async write(events: readonly WatchEvent[]): Promise<boolean> {
    this.text += events.map(eventText).join('');
    return true;
  }

  end(last: WatchEvent | null): void {
    this.text += last === null ? '' : eventText(last);
  }

  /** Events since this was asked before. */
  take(): unknown[] {
    const events = [...this.text.matchAll(/^event: (.*)\ndata: (.*)$/gm)].map(([, event, data]) => {
      const { row, before, removed } = JSON.parse(data!) as Record<string, unknown>;
      return {
        event,
        ...(row !== undefined && row !== null && { row }),
        ...(before !== undefined && { before }),
        ...(removed !== undefined && { removed }),
      };
    });
    this.text = '';
    return events.filter(({ event }) => event !== 'heartbeat');
  }
}

describe('a standing query', () => {
  let clock: SteppingClock;
  let hub: StandingQueries;
  beforeEach(() => {
    clock = new SteppingClock();
    const { gate, planner, ids } = store.service;
    const yieldTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    hub = new StandingQueries({ gate, planner, clock, ids, subscriptionsMax: 5, yieldTurn });
  });
  afterEach(() => hub.close());

  async function followed(sql: string): Promise<Client> {
    const client = new Client();
    const subscription = await run(clerk, 'watch', (invocation) => hub.register(invocation, sql, 'test'));
    void hub.follow(hub.claim(subscription), client, { resumeAfter: null, keep: false });
    await settled();
    return client;
  }

  const round = async (): Promise<void> => {
    await settled();
    await clock.pass(1_000);
  };

  test('shows masks, and tells what ends for its caller', async () => {
    const client = await followed('SELECT key, ssn, n FROM Person');
    expect(client.take()).toEqual([
      { event: 'insert', row: { key: 'a', ssn: '***', n: 1 } },
      { event: 'insert', row: { key: 'b', ssn: '***', n: 2 } },
    ]);
    await put({ key: 'a', region: 'EU', ssn: 'secret-2', n: 5 });
    await round();
    expect(client.take()).toEqual([
      { event: 'update', row: { key: 'a', ssn: '***', n: 5 }, before: { key: 'a', ssn: '***', n: 1 } },
    ]);
    // Out of sight, and into it.
    await put({ key: 'a', region: 'XX', ssn: 'secret-3', n: 6 }, { key: 'hidden', region: 'EU', ssn: 'secret-h', n: 7 });
    await round();
    expect(client.take()).toEqual([
      { event: 'leave', before: { key: 'a', ssn: '***', n: 5 } },
      { event: 'insert', row: { key: 'hidden', ssn: '***', n: 7 } },
    ]);
    await put({ key: 'never', region: 'XX', ssn: 'secret-n', n: 8 });
    await put({ key: 'never', region: 'XX', ssn: 'secret-n', n: 9 });
    await round();
    expect(client.take()).toEqual([]);
  });

  test('tells no key of what was removed for good: nobody knows any more whether its rows were seen', async () => {
    const client = await followed('SELECT key FROM Person');
    client.take();
    await remove('hidden', 'b');
    await round();
    expect(client.take()).toEqual([]);
  });

  test('finds what was closed where keys are masked', async () => {
    const rows = 'permit(principal, action == Action::"fork", resource);';
    const key =
      '@mask("redact") forbid(principal in Role::"clerk", action == Action::"readCell", resource == Column::"Person.key");';
    await install({ rows, key });
    const client = await followed('SELECT key, _pk, n FROM Person');
    expect(client.take()).toHaveLength(3);
    await put({ key: 'b', region: 'US', ssn: 'secret-b', n: 4 });
    await round();
    expect(client.take()).toEqual([
      { event: 'update', row: { key: '***', _pk: '***', n: 4 }, before: { key: '***', _pk: '***', n: 2 } },
    ]);
    await remove('b');
    await round();
    expect(client.take()).toEqual([]);
  });

  test('goes by the policies of now, from one delivery to the next', async () => {
    const client = await followed('SELECT key, ssn FROM Person');
    client.take();
    await submit(admin, 'administer', { kind: 'delete-policy', id: 'ssn' });
    await put({ key: 'c', region: 'EU', ssn: 'open', n: 1 });
    await round();
    expect(client.take()).toEqual([{ event: 'insert', row: { key: 'c', ssn: 'open' } }]);
    await install({ ssn: policies.ssn });
    await put({ key: 'd', region: 'EU', ssn: 'closed', n: 1 });
    await round();
    expect(client.take()).toEqual([{ event: 'insert', row: { key: 'd', ssn: '***' } }]);
    await install({ rows: 'forbid(principal in Role::"clerk", action == Action::"read", resource);' });
    await put({ key: 'e', region: 'EU', ssn: 'closed', n: 1 });
    await round();
    expect(client.text).not.toContain('"e"');
  });
});

describe('an exhibit', () => {
  const exhibit = '0190-0000';
  const yieldTurn = (): Promise<void> => Promise.resolve();
  beforeEach(() =>
    run(clerk, 'replay', (invocation) =>
      openExhibit(invocation, { engine: store.service.version }, { exhibit, title: 't', sync: false }),
    ),
  );

  function link(sql: string, who = clerk): Promise<Linked> {
    const parts = { planner: store.service.planner, engine: store.service.version, yieldTurn };
    return run(who, 'replay', (invocation) =>
      linkExhibit(invocation, parts, { exhibit, act: 'query', purpose: 'test', sync: false, sql }),
    );
  }

  async function replay(seq: number, who = clerk): Promise<Record<string, unknown>> {
    const sql = `EXPLAIN_REPLAY('${exhibit}', SEQ => ${seq})`;
    return rowsOf(await run(who, 'query', (invocation) => store.service.planner.query(invocation, { sql })))[0]!;
  }

  const recipeOf = (seq: number, who = clerk): Promise<string> =>
    run(who, 'query', async (invocation) => {
      const desk = invocation.exhibits();
      const view = desk.exhibit(exhibit);
      return (await desk.entry(view, view.links[seq]!)).recipe!;
    });

  test('is derived again under the policies of then, by whoever has the right to it', async () => {
    expect((await link('SELECT key, ssn, n FROM Person')).rowCount).toBe(2);
    expect((await link('SELECT key, ssn, n FROM Person', chief)).rowCount).toBe(3);
    const recipe = JSON.parse(await recipeOf(1)) as Record<string, unknown>;
    expect(recipe['policy_digest']).toMatch(/^[0-9a-f]{64}$/);
    expect(recipe['asked']).toEqual({ access_scope_ref: null, break_glass: null, client_ip: null, door: 'http' });
    await submit(admin, 'administer', { kind: 'delete-policy', id: 'ssn' });
    await install({ rows: 'forbid(principal, action == Action::"read", resource is Person) when { resource.n > 1 };' });
    await put({ key: 'a', region: 'EU', ssn: 'secret-2', n: 5 });
    for (const who of [clerk, chief]) {
      for (const seq of [1, 2])
        expect(await replay(seq, { ...who, door: 'other', clientIp: '::1' })).toMatchObject({ match: true, reason: null });
    }
    expect((await link('SELECT key, ssn, n FROM Person')).rowCount).toBe(1);
    for (const seq of [1, 2, 3]) expect(await replay(seq)).toMatchObject({ match: true });
    await submit(admin, 'administer', { kind: 'delete-policy', id: 'rows' });
    await submit(admin, 'administer', { kind: 'delete-policy', id: 'all' });
    for (const seq of [1, 2, 3]) expect(await replay(seq)).toMatchObject({ match: true });
  });

  test('goes by the door and the address of then', async () => {
    const door =
      'forbid(principal, action == Action::"read", resource is Person) when { context.door == "http" && resource.n == 1 };';
    const from =
      'forbid(principal, action == Action::"read", resource is Person) when { context has client_ip && resource.n == 2 };';
    await install({ door, from });
    expect((await link('SELECT key FROM Person')).rowCount).toBe(1);
    expect((await link('SELECT key FROM Person', { ...clerk, clientIp: '::1' })).rowCount).toBe(0);
    for (const seq of [1, 2]) expect(await replay(seq, { ...clerk, door: 'other' })).toMatchObject({ match: true, reason: null });
    for (const seq of [1, 2])
      expect(await replay(seq, { ...clerk, clientIp: '::2' })).toMatchObject({ match: true, reason: null });
  });

  test('a column that is declared masked later was not masked then', async () => {
    await link('SELECT key, n FROM Person', chief);
    const n = { type: 'integer', required: false, masked: true, indexed: false, subject: false, dims: 0 } as const;
    await run(chief, 'schema', (invocation) => invocation.submit({ kind: 'evolve-type', name: 'Person', properties: { n } }));
    expect(await store.rows("SELECT n FROM Person WHERE key = 'a'", chief)).toEqual([{ n: null }]);
    await link('SELECT key, n FROM Person', chief);
    for (const seq of [1, 2]) expect(await replay(seq, chief)).toMatchObject({ match: true, reason: null });
    expect(readRecipe(await recipeOf(1, chief)).grant.masked).toEqual({});
    expect(readRecipe(await recipeOf(2, chief)).grant.masked).toEqual({ Person: ['n'] });
  });

  test('a recipe that names policies which the log did not have is refused', async () => {
    const refused = run(clerk, 'query', async (invocation) => {
      const desk = invocation.exhibits();
      const snapshot = invocation.snapshot();
      const { caller, purpose, breakGlass, accessScopeRef, instant } = snapshot;
      const policyDigest = desk.policyDigest(snapshot);
      expect(policyDigest).not.toBe('');
      const grant = { ...caller, purpose, breakGlass, accessScopeRef, instant, masked: {} };
      desk.pin({ ...grant, policyDigest });
      desk.pin({ ...grant, policyDigest: '' });
    });
    await expect(refused).rejects.toMatchObject({ code: 'REL_UNPROCESSABLE' });
  });

  test('needs the replay right of now', async () => {
    await link('SELECT key FROM Person');
    await install({ noReplay: 'forbid(principal in Role::"clerk", action == Action::"replay", resource);' });
    const answer = await replay(1).catch((error: unknown) => error);
    expect(answer).toMatchObject({ code: 'REL_ACL' });
  });
});
