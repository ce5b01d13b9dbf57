/** Rows that another organisation shares, where something outlives its statement: told, cached and sealed as the agreement has it. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { eventText } from '../../src/doors/http/server-sent-events.ts';
import type { Caller } from '../../src/governance/caller.ts';
import type { Action, Invocation } from '../../src/governance/gate-contract.ts';
import type { AgreementTerms } from '../../src/log/entries/entry.ts';
import { linkExhibit, openExhibit } from '../../src/planner/exhibits/link.ts';
import { Planner } from '../../src/planner/planner.ts';
import { MaterializedViews } from '../../src/planner/continuous/views/materialized-views.ts';
import type { WatchClient } from '../../src/planner/continuous/watch/subscription.ts';
import { StandingQueries } from '../../src/planner/continuous/watch/watch.ts';
import type { WatchEvent } from '../../src/planner/continuous/watch/watch-events.ts';
import type { Command } from '../../src/projections/command.ts';
import { analyst, type Row, rowsOf, TestStore } from '../harness.ts';
import { settled, SteppingClock } from './continuous/stepping-clock.ts';

const admin: Caller = { ...analyst, principal: 'root', credential: 'admin' };
const acme: Caller = { ...analyst, principal: 'ann', path: 'acme' };
const globex: Caller = { ...analyst, principal: 'gil', path: 'globex' };
const other: Caller = { ...analyst, principal: 'ivo', path: 'initech' };

let store: TestStore;
beforeEach(async () => {
  store = await TestStore.open('2024-01-01');
  await store.register('Load', { key: 'string', status: 'string', eta: 'string', n: 'integer' }, 'key');
  await put(acme, { key: 'own', status: 'open', eta: 'mine', n: 0 });
  await put(globex, { key: 'a', status: 'open', eta: 'secret-a', n: 1 }, { key: 'z', status: 'shut', eta: 'secret-z', n: 2 });
});
afterEach(() => store.close());

const run = <T>(who: Caller, action: Action, use: (invocation: Invocation) => Promise<T>): Promise<T> =>
  store.service.gate.invoke(who, { action, purpose: 'test', correlationId: 'c' }, use);

const administer = (command: Command) => run(admin, 'administer', (invocation) => invocation.submit(command));

async function put(who: Caller, ...rows: readonly Record<string, unknown>[]): Promise<void> {
  store.clock.wallNs += 1_000_000n;
  await store.put('Load', rows, who);
}

async function share(more: Partial<AgreementTerms> = {}): Promise<void> {
  const terms: AgreementTerms = {
    assigner: 'globex',
    assignee: 'acme',
    types: ['Load'],
    where: 'resource.status == "open"',
    columns: null,
    permission: ['read'],
    purposes: [],
    validFrom: 0n,
    validTo: 4_000_000_000_000_000_000n,
    history: 'full',
    masking: { eta: 'redact' },
    onwardSharing: false,
    aggregateMinGroup: null,
    termsDigest: null,
    ...more,
  };
  await administer({ kind: 'propose-agreement', id: 'g', terms });
  await administer({ kind: 'move-agreement', id: 'g', to: 'accepted', side: 'assignee' });
  await administer({ kind: 'move-agreement', id: 'g', to: 'active', side: 'assigner' });
}

const revoke = () => administer({ kind: 'move-agreement', id: 'g', to: 'revoked', side: 'assigner' });

class Client implements WatchClient {
  text = '';
  readonly gone = new AbortController().signal;
  renew = (): Caller => acme;

  async write(events: readonly WatchEvent[]): Promise<boolean> {
    this.text += events.map(eventText).join('');
    return true;
  }

  end(last: WatchEvent | null): void {
    this.text += last === null ? '' : eventText(last);
  }

  /** Events since this was asked before: their names, keys, and how `eta` is shown. */
  take(): string[] {
    const events = [...this.text.matchAll(/^event: (.*)\ndata: (.*)$/gm)].map(([, event, data]) => {
      const { row, before } = JSON.parse(data!) as { row?: Row | null; before?: Row };
      const of = row ?? before;
      return of ? `${event} ${String(of['key'])} ${String(of['eta'])}` : event!;
    });
    this.text = '';
    return events.filter((event) => event !== 'heartbeat');
  }
}

test('a standing query is woken by whoever shares, and by nobody else', async () => {
  await share();
  const clock = new SteppingClock();
  const { gate, planner, ids } = store.service;
  const yieldTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const hub = new StandingQueries({ gate, planner, clock, ids, subscriptionsMax: 5, yieldTurn });
  try {
    const client = new Client();
    const subscription = await run(acme, 'watch', (invocation) => hub.register(invocation, 'SELECT key, eta FROM Load', 'test'));
    void hub.follow(hub.claim(subscription), client, { resumeAfter: null, keep: false });
    const round = async (): Promise<void> => {
      await settled();
      await clock.pass(1_000);
    };
    await round();
    expect(client.take()).toEqual(['insert own mine', 'insert a ***']);
    await put(globex, { key: 'b', status: 'open', eta: 'secret-b', n: 1 }, { key: 'y', status: 'shut', eta: 'secret-y', n: 1 });
    await round();
    expect(client.take()).toEqual(['insert b ***']);
    await put(globex, { key: 'a', status: 'shut', eta: 'secret-a', n: 1 });
    await round();
    expect(client.take()).toEqual(['leave a ***']);
    const watched = (): Promise<number> =>
      run(acme, 'audit', async (invocation) => (await invocation.audit().count({ action: 'watch' })).count);
    const records = await watched();
    await put(other, { key: 'c', status: 'open', eta: 'secret-c', n: 1 });
    await round();
    expect(client.take()).toEqual([]);
    expect(await watched()).toBe(records);
    await revoke();
    await put(globex, { key: 'd', status: 'open', eta: 'secret-d', n: 1 });
    await put(acme, { key: 'e', status: 'open', eta: 'mine', n: 1 });
    await round();
    expect(client.take()).toEqual(['insert e mine']);
  } finally {
    hub.close();
  }
});

test('a cached answer over what stands now forgets what no longer does', async () => {
  await share({ history: 'current_only', masking: {} });
  const { gate, ids } = store.service;
  const { watch, lookups } = store.service.standing;
  const yieldTurn = store.service.turns.yieldFor('bodies');
  const clock = new SteppingClock();
  let planner: Planner;
  const asked = { query: (...question: Parameters<Planner['query']>) => planner.query(...question) };
  const views = new MaterializedViews({ gate, planner: asked, clock, ids, rowsMax: 100, renew: (caller) => caller, yieldTurn });
  planner = new Planner({ clock: store.clock, continuous: { watch, lookups, views, erasures: null } });
  const ask = (sql: string): Promise<Row[]> =>
    run(acme, 'query', async (invocation) => rowsOf(await planner.query(invocation, { sql })));
  const plan = async (): Promise<string> => (await ask('EXPLAIN SELECT c FROM Counts')).map((line) => line['plan']).join('\n');
  try {
    await store.answer('CREATE MATERIALIZED VIEW Counts AS SELECT COUNT(*) AS c FROM Load REFRESH INCREMENTAL EVERY 10', acme);
    expect(await ask('SELECT c FROM Counts')).toEqual([{ c: 2n }]);
    await settled();
    expect(await plan()).toContain('cached view');
    // A version that is not the last one any more is not shared any more: the count does not grow.
    await put(globex, { key: 'a', status: 'open', eta: 'secret-2', n: 5 });
    store.clock.wallNs += 9_000_000_000n;
    await clock.pass(9_000);
    await settled();
    expect(await plan()).toContain('cached view');
    expect(await ask('SELECT c FROM Counts')).toEqual([{ c: 2n }]);
    await revoke();
    expect(await ask('SELECT c FROM Counts')).toEqual([{ c: 1n }]);
  } finally {
    views.close();
  }
});

test('an exhibit seals what its own organisation holds: the seal outlives the agreement', async () => {
  await share();
  const exhibit = '0190-0000';
  const yieldTurn = (): Promise<void> => Promise.resolve();
  const { planner, version } = store.service;
  await run(acme, 'replay', (invocation) => openExhibit(invocation, { engine: version }, { exhibit, title: 't', sync: false }));
  const sql = 'SELECT key, eta FROM Load';
  expect(await store.rows(sql, acme)).toHaveLength(2);
  const linked = await run(acme, 'replay', (invocation) => {
    const parts = { planner, engine: version, yieldTurn };
    return linkExhibit(invocation, parts, { exhibit, act: 'query', purpose: 'test', sync: false, sql });
  });
  expect(linked.rowCount).toBe(1);
  await revoke();
  const replay = `EXPLAIN_REPLAY('${exhibit}', SEQ => 1)`;
  const [derived] = rowsOf(await run(acme, 'query', (invocation) => planner.query(invocation, { sql: replay })));
  expect(derived).toMatchObject({ match: true, reason: null });
});
