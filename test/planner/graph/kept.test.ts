/** Graphs that are kept between questions: used again while nothing has changed, and never where something has. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Caller } from '../../../src/governance/caller.ts';
import type { Action } from '../../../src/governance/gate-contract.ts';
import type { Command } from '../../../src/projections/command.ts';
import { seedBase } from '../../runner/seed.ts';
import { Seeded } from '../../simulation/seeded.ts';
import { analyst, TestStore } from '../../harness.ts';

const admin: Caller = { ...analyst, principal: 'root', credential: 'admin' };
const clerk: Caller = { ...analyst, principal: 'cleo', path: 'acme', roles: ['clerk'] };
const chief: Caller = { ...analyst, principal: 'chas', path: 'acme', roles: ['chief'] };

let store: TestStore;
const submit = (who: Caller, action: Action, command: Command) =>
  store.service.gate.invoke(who, { action, purpose: 'test', correlationId: 'c' }, (invocation) => invocation.submit(command));
const link = (id: string, from_id: string, to_id: string, more = {}) => ({ id, from_id, to_id, ...more });
const put = (...rows: readonly Record<string, unknown>[]) => store.put('Knows', rows, chief);
const degrees = async (who = chief, asOf = ''): Promise<string> => {
  const rows = await store.rows(`DEGREE_CENTRALITY('Person') ${asOf} ORDER BY nodeId`, who);
  return rows.map((row) => `${row['nodeId'] as string}${Number(row['score'])}`).join(' ');
};
/** Whether a question reads edges, or has them. */
const reads = async (who = chief): Promise<boolean> => {
  const lines = await store.column("EXPLAIN ANALYZE DEGREE_CENTRALITY('Person')", who);
  return !lines.some((line) => /scan Knows .*\[not read/.test(String(line)));
};

beforeAll(async () => {
  store = await TestStore.open('2024-01-01');
  await store.register('Person', { id: 'string' }, 'id');
  await store.register('Knows', { id: 'string', from_id: 'string', to_id: 'string', secret: 'boolean' }, 'id');
  await store.put('Person', [{ id: 'a' }, { id: 'b' }, { id: 'c' }], chief);
  await put(link('1', 'a', 'b'), link('2', 'b', 'c'));
  const text = 'forbid(principal in Role::"clerk", action, resource is Knows) when { resource has secret && resource.secret };';
  await submit(admin, 'administer', { kind: 'put-policy', id: 'all', text: 'permit(principal, action, resource);' });
  await submit(admin, 'administer', { kind: 'put-policy', id: 'some', text });
});
afterAll(() => store.close());

test('what was written, ended, hidden, begun, over or removed since is in no answer, and what has not changed is read once', async () => {
  store.clock.set('2024-02-01');
  expect(await degrees()).toBe('a1 b2 c1');
  expect(await reads()).toBe(false);
  expect(await reads(clerk)).toBe(true);
  store.clock.set('2024-02-02');
  expect(await degrees()).toBe('a1 b2 c1');
  expect(await reads()).toBe(false);

  // A few edges come and go in what is kept.
  await put(link('3', 'a', 'c'));
  expect(await reads()).toBe(false);
  expect(await degrees()).toBe('a2 b2 c2');
  expect(await degrees(chief, "AS OF SYSTEM TIME '2024-02-01'")).toBe('a1 b2 c1');
  expect(await degrees(clerk)).toBe('a2 b2 c2');

  // Hidden from the clerk from now on: for it the edge is over.
  store.clock.set('2024-02-03');
  await put(link('3', 'a', 'c', { secret: true }));
  expect(await degrees(clerk)).toBe('a1 b2 c1');
  expect(await degrees()).toBe('a2 b2 c2');

  store.clock.set('2024-02-04');
  await put(link('4', 'c', 'c', { valid_from: '2024-02-06', valid_to: '2024-02-08' }));
  expect(await degrees(clerk)).toBe('a1 b2 c1');
  store.clock.set('2024-02-07');
  expect(await degrees(clerk)).toBe('a1 b2 c3');
  expect(await degrees(clerk, "AS OF '2024-02-05'")).toBe('a1 b2 c1');
  store.clock.set('2024-02-09');
  expect(await degrees(clerk)).toBe('a1 b2 c1');

  await submit(chief, 'delete', { kind: 'delete-rows', type: 'Person', keys: ['c'] });
  expect(await degrees()).toBe('a1 b1');
  store.clock.set('2024-02-10');
  await submit(chief, 'remove', { kind: 'remove-rows', type: 'Knows', keys: ['1'] });
  expect(await degrees()).toBe('a0 b0');
  expect(await degrees(chief, "AS OF SYSTEM TIME '2024-02-01'")).toBe('a0 b1 c1');
});

test('a graph that follows changes is the one that is read anew, at any instant, for anybody', async () => {
  const dice = new Seeded(seedBase);
  store.clock.set('2024-03-01');
  await store.register('Likes', { id: 'string', from_id: 'string', to_id: 'string', secret: 'boolean', weight: 'number' }, 'id');
  const names = 'a b c d e f g h'.split(' ');
  await store.put(
    'Person',
    names.map((id) => ({ id })),
    chief,
  );
  const questions = [
    "GRAPH_PAGERANK('Person', 'Likes', WEIGHT => weight)",
    "DEGREE_CENTRALITY('Likes')",
    "PATHS_BETWEEN('a', 'd', 3)",
    "EXPLAIN_PATH('a', 'b')",
    "GRAPH_SPANNING_TREE('Person')",
  ];
  const answers = async (who: Caller, asOf: string): Promise<unknown[]> => {
    const all: unknown[] = [];
    for (const question of questions) all.push(await store.rows(`${question} ${asOf}`, who));
    return all;
  };
  const rounds = 20;
  let followed = 0;
  for (let round = 0; round < rounds; round++) {
    store.clock.set(`2024-03-${String(1 + Math.floor(round / 2)).padStart(2, '0')}T${round % 2 === 0 ? '08' : '16'}:00:00`);
    for (let change = dice.below(4); change > 0; change--) {
      const id = `e${dice.below(12)}`;
      const row = { secret: dice.below(4) === 0, ...(dice.below(3) > 0 && { weight: dice.below(5) }) };
      const bounds = dice.below(6) === 0 ? { valid_to: `2024-03-${20 + dice.below(10)}` } : {};
      const ends = [dice.pick([...names, 'nobody']), dice.pick(names)] as const;
      if (dice.below(5) === 0) await submit(chief, 'delete', { kind: 'delete-rows', type: 'Likes', keys: [id] });
      else if (dice.below(2) === 0) await store.put('Likes', [link(id, ...ends, { ...row, ...bounds })], chief);
      else await put(link(id, ...ends, { secret: row.secret, ...bounds }));
    }
    if (dice.below(10) === 0) await store.put('Person', [{ id: dice.pick(['nobody', 'i', 'j']) }], chief);
    if (dice.below(12) === 0) await submit(chief, 'remove', { kind: 'remove-rows', type: 'Likes', keys: [`e${dice.below(12)}`] });
    const asOf = dice.pick(['', '', "AS OF SYSTEM TIME '2024-03-04T12:00:00'", "AS OF '2024-03-22'"]);
    const lines = await store.column(`EXPLAIN ANALYZE ${questions[1]!}`, chief);
    if (lines.some((line) => /scan Likes .*\[not read/.test(String(line)))) followed++;
    const all = async (): Promise<unknown[]> => [await answers(chief, asOf), await answers(clerk, asOf)];
    const [first, second] = [await all(), await all()];
    store.service.planner.forget();
    expect(first).toEqual(await all());
    expect(second).toEqual(first);
  }
  expect(followed).toBeGreaterThan(rounds / 5);
});
