/**
 * Graphs that are made of what is known of the ends in sealed segments: the same as one that is read row by row, at any instant, for
 * anybody, before and after segments are sealed, a start, compaction, a deletion for good and an erasure.
 */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { Caller } from '../../../src/governance/caller.ts';
import type { Action } from '../../../src/governance/gate-contract.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { inlineWorker } from '../../../src/log/threads/workers.ts';
import type { Command } from '../../../src/projections/command.ts';
import { seedBase } from '../../runner/seed.ts';
import { Seeded } from '../../simulation/seeded.ts';
import { analyst, rowsOf, TestClock, TestRandom, TestStore } from '../../harness.ts';

const admin: Caller = { ...analyst, principal: 'root', credential: 'admin' };
const chief: Caller = { ...analyst, principal: 'chas', tenant: 'acme', path: 'acme', roles: ['chief'] };
const clerk: Caller = { ...chief, principal: 'cleo', roles: ['clerk'] };
const guest: Caller = { ...chief, principal: 'gus', roles: ['guest'] };
const trial: Caller = { ...chief, branch: 'trial' };
const plain = { required: false, masked: false, indexed: false, subject: false, dims: 0 } as const;

const policies = {
  all: 'permit(principal, action, resource);',
  some: 'forbid(principal in Role::"clerk", action, resource is Knows) when { resource.n < 9000 };',
  few: 'forbid(principal in Role::"clerk", action, resource is Person) when { resource.hidden == true };',
  cells:
    '@mask("redact") forbid(principal in Role::"guest", action == Action::"readCell", resource == Column::"Knows.to_id") when { resource.n < 7000 };',
};

const segmentRows = 1_024;
const people = 6_000;
const batch = 2_000;
const person = (number: number): string => `person-${number}`;

const dice = new Seeded(seedBase);
const disk = new MemoryDisk();
const clock = new TestClock('2024-01-01');
let store: TestStore;
let starts = 0;
let edges = 0;

const submit = (who: Caller, action: Action, command: Command) =>
  store.service.gate.invoke(who, { action, purpose: 'test', correlationId: 'c' }, (invocation) => invocation.submit(command));

async function start(): Promise<void> {
  const settings = { SERVICE_PURPOSES: 'test', SERVICE_IN_MEMORY: 'false', SERVICE_DATA_DIR: '/data' };
  store = await TestStore.open('2024-01-01', settings, {
    disk,
    clock,
    derived: { machineBytes: 1 << 30, segmentRows },
    random: new TestRandom(++starts * 41),
    startKept: inlineWorker,
  });
  await settled();
}

/** Whatever is being made beside the turns is made, and rests. */
async function settled(): Promise<void> {
  await store.service.settle();
  await store.service.store.columns!.whenIdle();
  const { indexes } = store.service.store.projections.rows;
  await vi.waitFor(() => expect(missing()).toEqual([]), { timeout: 20_000, interval: 10 });
  await indexes.files!.whenWritten();
}

/** Sealed segments that spell an end out and have nothing that says which rows have the same. */
function missing(): readonly string[] {
  const { indexes } = store.service.store.projections.rows;
  return spelled().flatMap(({ segment, column }) => (indexes.ends(segment, column) === null ? column : []));
}

const spelled = () =>
  store.service.store.projections.rows
    .table('acme', 'Knows')
    ?.segments.filter(({ sealed }) => sealed)
    .flatMap((segment) =>
      ['from_id', 'to_id'].flatMap((column) =>
        segment.column(column)?.vector(segment.length).kind === 'text' ? { segment, column } : [],
      ),
    ) ?? [];

async function put(rows: number, who = chief): Promise<void> {
  const made = Array.from({ length: rows }, () => {
    const id = edges++;
    // Every number once and, in part, a few of them often.
    const from = dice.below(3) === 0 ? dice.below(9) : id % people;
    const to = dice.below(3) === 0 ? dice.below(9) : (id * 7) % people;
    const bounds = dice.below(9) === 0 ? { valid_to: `2024-0${5 + dice.below(4)}-01` } : {};
    const ends = { from_id: dice.below(50) === 0 ? null : person(from), to_id: dice.below(50) === 0 ? '' : person(to) };
    return { id: `e${id}`, n: dice.below(10_000), who: `subject-${id % 7}`, ...ends, ...bounds };
  });
  await store.put('Knows', made, who);
}

const instants: string[] = [];
async function later(month: number): Promise<void> {
  instants.push(`2024-0${month}-15`);
  clock.set(`2024-0${month + 1}-01`);
}

const rows = async (sql: string, who: Caller): Promise<Record<string, unknown>[]> =>
  rowsOf(await store.answer(sql, who)) as never;

/** Out and in degrees of every node, and which nodes edges name, counted over rows as they are seen. */
async function counted(who: Caller, asOf: string): Promise<readonly string[]> {
  const of = (type: string): string =>
    asOf.startsWith('AS OF SYSTEM')
      ? `${type} ${asOf} WHERE valid_from <= '${asOf.slice(19, -1)}' AND valid_to > '${asOf.slice(19, -1)}'`
      : asOf === 'AS OF CURRENT'
        ? `${type} ${asOf}`
        : `${type} ${asOf} WHERE system_to > now()`;
  const degrees = new Map((await rows(`SELECT id FROM ${of('Person')}`, who)).map(({ id }) => [String(id), [0, 0]]));
  for (const { from_id, to_id } of await rows(`SELECT from_id, to_id, n FROM ${of('Knows')}`, who)) {
    const [from, to] = [degrees.get(String(from_id)), degrees.get(String(to_id))];
    // Without a node of its own, a row is one where an edge that is seen names it.
    for (const id of [from_id, to_id]) if (degrees.has(String(id))) degrees.set(`named ${String(id)}`, [1, 0]);
    if (from === undefined || to === undefined) continue;
    from[0]!++;
    to[1]!++;
  }
  return [...degrees].map(([id, [out, into]]) => `${id} ${out} ${into}`).sort();
}

async function asked(who: Caller, asOf: string): Promise<readonly string[]> {
  store.service.planner.forget();
  const [out, into] = [new Map<string, number>(), new Map<string, number>()];
  for (const [direction, found] of [
    ['out', out],
    ['in', into],
  ] as const) {
    const sql = `SELECT * FROM DEGREE_CENTRALITY('Person', 'Knows', DIRECTION => '${direction}') ${asOf}`;
    for (const { nodeId, score } of await rows(sql, who)) found.set(String(nodeId), Number(score));
  }
  const joined = await rows(`DEGREE_CENTRALITY('Knows') ${asOf}`, who);
  for (const { nodeId } of joined) out.set(`named ${String(nodeId)}`, 1);
  return [...out].map(([id, count]) => `${id} ${count} ${into.get(id) ?? 0}`).sort();
}

async function expectSame(): Promise<void> {
  const then = dice.pick(instants);
  for (const who of [dice.pick([clerk, guest]), dice.pick([chief, trial])]) {
    const asOf = dice.pick(['AS OF CURRENT', `AS OF SYSTEM TIME '${then}'`, `AS OF '${then}'`]);
    expect([who.roles, asOf, ...(await asked(who, asOf))]).toEqual([who.roles, asOf, ...(await counted(who, asOf))]);
  }
}

beforeAll(async () => {
  await start();
  await store.register('Person', { id: 'string', hidden: 'boolean' }, 'id');
  const own = { ...plain, type: 'string', subject: true } as const;
  const properties = { id: 'string', from_id: 'string', to_id: 'string', n: 'integer', who: own } as const;
  await store.register('Knows', properties, 'id');
  for (const [id, text] of Object.entries(policies)) await submit(admin, 'administer', { kind: 'put-policy', id, text });
  const all = Array.from({ length: people - 500 }, (_, i) => ({ id: person(i), hidden: i % 40 === 3 }));
  await store.put('Person', all, chief);
  for (let made = 0; made < 5 * batch; made += batch) await put(batch);
  await later(1);
});
afterAll(() => store.close());

test('as rows say, at any instant, for anybody, whatever became of the store', async () => {
  await submit(chief, 'fork', { kind: 'fork-branch', name: 'trial', source: 'main', shares: 'everything' });
  await put(300, trial);
  await expectSame();
  await settled();
  expect(spelled().length).toBeGreaterThan(4);
  await expectSame();
  await later(2);
  await put(batch);
  const keys = Array.from({ length: 500 }, () => `e${dice.below(edges)}`);
  await submit(chief, 'delete', { kind: 'delete-rows', type: 'Knows', keys: [...new Set(keys)] });
  await later(3);
  await expectSame();
  await settled();
  await expectSame();

  await store.service.store.checkpoints!.take();
  await store.close();
  await start();
  const { files } = store.service.store.projections.rows.indexes;
  expect(files!.counts.read).toBeGreaterThanOrEqual(spelled().length);
  expect(files!.counts.written).toBe(0);
  await expectSame();

  await submit(chief, 'remove', { kind: 'remove-rows', type: 'Knows', keys: ['e5001', 'e9001', 'e9002'] });
  await expectSame();
  const gone = Array.from({ length: batch }, (_, i) => `e${7_000 + i}`);
  await submit(chief, 'delete', { kind: 'delete-rows', type: 'Knows', keys: gone });
  await later(4);
  await store.service.store.columns!.compact();
  await expectSame();
  await settled();
  await expectSame();

  await store.invoke(chief, 'query', (invocation) =>
    store.service.planner.query(invocation, { sql: "ERASE SUBJECT 'subject-4' REASON 'asked' CERTIFY" }),
  );
  await expectSame();
  await settled();
  expect(await store.service.store.checkpoints!.strays()).toEqual([]);
  await expectSame();
  expect((await rows("SELECT COUNT(*) AS n FROM Knows WHERE who = 'subject-4'", chief))[0]).toEqual({ n: 0n });
}, 60_000);
