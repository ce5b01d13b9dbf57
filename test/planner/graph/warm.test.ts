/** Eventual answers go on from earlier ones: nearly those of a settled walk, sooner; strong ones are what they always were. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Caller } from '../../../src/governance/caller.ts';
import type { Answer } from '../../../src/planner/planner-contract.ts';
import { seedBase } from '../../runner/seed.ts';
import { Seeded } from '../../simulation/seeded.ts';
import { analyst, type Row, rowsOf, TestStore } from '../../harness.ts';

const admin: Caller = { ...analyst, principal: 'root', credential: 'admin' };
const clerk: Caller = { ...analyst, principal: 'cleo', roles: ['clerk'] };
const dice = new Seeded(seedBase);
const people = Array.from({ length: 40 }, (_, i) => `p${i}`);
let store: TestStore;
let edges = 0;

beforeAll(async () => {
  store = await TestStore.open('2024-01-01');
  await store.register('Person', { id: 'string' }, 'id');
  await store.register('Knows', { id: 'string', from_id: 'string', to_id: 'string' }, 'id');
  await store.put(
    'Person',
    people.map((id) => ({ id })),
  );
  await grow(60);
});
afterAll(() => store.close());

const grow = (count: number): Promise<unknown> =>
  store.put(
    'Knows',
    Array.from({ length: count }, () => ({ id: `e${edges++}`, from_id: dice.pick(people), to_id: dice.pick(people) })),
  );
const submit = (who: Caller, action: 'delete' | 'remove' | 'administer', command: Parameters<Submit>[0]): Promise<unknown> =>
  store.service.gate.invoke(who, { action, purpose: 'test', correlationId: 'c' }, (invocation) => invocation.submit(command));
type Submit = Parameters<Parameters<TestStore['service']['gate']['invoke']>[2]>[0]['submit'];
const asked = (sql: string, consistency: 'strong' | 'eventual', who = analyst): Promise<Answer> =>
  store.invoke(who, 'query', (invocation) => store.service.planner.query(invocation, { sql, consistency, time: 'current' }));
const ranks = "GRAPH_PAGERANK('Person', 'Knows', MAX_ITER => 1000)";
const scores = (rows: readonly Row[]): Map<unknown, number> => new Map(rows.map((row) => [row['nodeId'], Number(row['score'])]));
const rounds = async (consistency: 'strong' | 'eventual'): Promise<number> =>
  Number(
    rowsOf(await asked("CALL traverse.pageRank.stats('Person', 'Knows', {maxIterations: 1000})", consistency))[0]!['rounds'],
  );

test('ranks go on from those before, for whoever asked them alone, and are said to be approximate', async () => {
  const first = await asked(ranks, 'eventual');
  expect(first.isApproximate).toBeUndefined();
  expect(await rounds('eventual')).toBe(1);
  for (let step = 0; step < 5; step++) {
    await grow(1);
    const strong = await asked(ranks, 'strong');
    expect(strong.isApproximate).toBeUndefined();
    if (step % 2 === 0) await store.put('Person', [{ id: `o${step}` }]);
    const eventual = await asked(ranks, 'eventual');
    expect(eventual.isApproximate).toBe(true);
    expect(eventual.notices!.join()).toContain('went on from what an earlier answer came to');
    store.service.planner.forget();
    const anew = await asked(ranks, 'strong');
    const settled = scores(rowsOf(anew));
    for (const [node, score] of scores(rowsOf(eventual))) expect(Math.abs(score - settled.get(node)!)).toBeLessThan(1e-8);
    // Of what has not changed, one round tells that it is settled.
    await asked(ranks, 'eventual');
    expect(await rounds('eventual')).toBe(1);
    // One more of what joins two already need not change a rank: somebody new does.
    await store.put('Person', [{ id: `n${step}` }]);
    await grow(1);
    expect(rowsOf(await asked(ranks, 'strong'))).not.toEqual(rowsOf(strong));
  }
  await submit(admin, 'administer', { kind: 'put-policy', id: 'all', text: 'permit(principal, action, resource);' });
  await asked(ranks, 'eventual');
  const other = await asked(ranks, 'eventual', { ...clerk, roles: ['other'] });
  expect(other.isApproximate).toBeUndefined();
});

test('a strong answer is the same whatever was asked before it', async () => {
  for (const sql of [ranks, "LABEL_PROPAGATION('Person')", "CONNECTED_COMPONENTS('Person')"]) {
    await asked(sql, 'eventual');
    await grow(1);
    await asked(sql, 'eventual');
    const strong = rowsOf(await asked(sql, 'strong'));
    store.service.planner.forget();
    expect(rowsOf(await asked(sql, 'strong'))).toEqual(strong);
  }
});

test('components are what they are, whatever they went on from', async () => {
  const parts = "CONNECTED_COMPONENTS('Person')";
  for (let step = 0; step < 12; step++) {
    if (dice.below(2) === 0) await grow(1);
    else await submit(analyst, 'delete', { kind: 'delete-rows', type: 'Knows', keys: [`e${dice.below(edges)}`] });
    const eventual = await asked(parts, 'eventual');
    expect(eventual.isApproximate).toBeUndefined();
    expect(rowsOf(eventual)).toEqual(rowsOf(await asked(parts, 'strong')));
  }
});

test('nothing goes on from what was there before rows were removed', async () => {
  await asked(ranks, 'eventual');
  expect((await asked(ranks, 'eventual')).isApproximate).toBe(true);
  await submit(analyst, 'remove', { kind: 'remove-rows', type: 'Person', keys: ['p3'] });
  const after = await asked(ranks, 'eventual');
  expect(after.isApproximate).toBeUndefined();
  expect(rowsOf(after)).toEqual(rowsOf(await asked(ranks, 'strong')));
});
