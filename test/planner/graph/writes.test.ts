/** CREATE, MERGE and CALL … .write, as the graph doors run them: governed upserts, one batch each. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import type { Caller } from '../../../src/governance/caller.ts';
import type { Executed } from '../../../src/planner/planner-contract.ts';
import { type Literal, TypedValue } from '../../../src/planner/syntax/statement.ts';
import { analyst, rowsOf, TestStore } from '../../harness.ts';
import { namedCell } from './entity-names.ts';

let store: TestStore;
const admin: Caller = { ...analyst, principal: 'root', credential: 'admin' };
const reader: Caller = { ...analyst, principal: 'rob', roles: ['reader'] };
const clerk: Caller = { ...analyst, principal: 'cleo', path: 'acme', roles: ['clerk'] };

beforeAll(async () => {
  store = await TestStore.open('2024-01-01');
  await store.register('Person', { id: 'string', name: 'string', age: 'integer', born: 'timestamp', rank: 'number' }, 'id');
  await store.register('Knows', { id: 'string', from_id: 'string', to_id: 'string', since: 'integer' }, 'id');
  store.clock.set('2024-01-02');
});
afterAll(() => store.close());

const execute = (text: string, named: Record<string, Literal | TypedValue> = {}, who = analyst): Promise<Executed> =>
  store.invoke(who, 'query', (invocation) =>
    store.service.planner.execute(invocation, { sql: text, parameters: new Map(Object.entries(named)), graph: true }),
  );
const refusal = async (text: string, who = analyst): Promise<ServiceError> => {
  const error: unknown = await execute(text, {}, who).then(
    () => new Error(`was run: ${text}`),
    (cause: unknown) => cause,
  );
  if (error instanceof ServiceError) return error;
  throw error;
};
const asked = async (pattern: string, who = analyst): Promise<string> =>
  (await store.rows(pattern, who))
    .map((row) =>
      Object.values(row)
        .map((cell) => String(namedCell(cell)))
        .join(' '),
    )
    .join(', ');

describe('CREATE', () => {
  test('makes nodes and the edges between them, in one batch', async () => {
    const { written, answer } = await execute(
      "CREATE (a:Person {id: 'ann', name: $name, age: 30, born: '1994-01-01'})-[k:Knows {since: 2001}]->(b:Person {id: 'bob'}), (b)<-[:Knows]-(:Person {name: 'Nobody'}) RETURN a AS first, b, k",
      { name: "An'n" },
    );
    expect(written).toMatchObject({ verb: 'insert', inserted: 5, updated: 0 });
    expect(written!.systemFromLast - written!.systemFrom).toBe(4n);
    const [row] = rowsOf(answer);
    const shown = Object.fromEntries(Object.entries(row!).map(([name, cell]) => [name, namedCell(cell)]));
    expect(shown).toMatchObject({ first: 'ann', b: 'bob' });
    expect(JSON.parse(String(row!['k']))).toMatchObject({
      type: 'Knows',
      start: 'Person/ann',
      end: 'Person/bob',
      properties: { since: 2001 },
    });
    expect(written!.graph).toEqual({ nodes: 3, relationships: 2, properties: 7 });
    store.clock.set('2024-01-03');
    expect(await asked("MATCH (a:Person {id: 'ann'})-[r:Knows]->(b:Person) RETURN a.name, a.age, r.since, b.id")).toBe(
      "An'n 30 2001 bob",
    );
    expect(await asked("MATCH (n:Person {name: 'Nobody'})-[:Knows]->(b) RETURN b")).toBe('bob');
    expect(await asked(`MATCH (a:Person)-[r:Knows {id: '${String(shown['k'])}'}]->(b) RETURN b`)).toBe('bob');
  });

  test('joins what a MATCH finds, once for each row', async () => {
    await execute("CREATE (:Person {id: 'cid'}), (:Person {id: 'dan'})");
    store.clock.set('2024-01-04');
    const { written } = await execute(
      "MATCH (a:Person), (b:Person {id: 'ann'}) WHERE a.id IN ['cid', 'dan'] CREATE (a)-[:Knows {since: 9}]->(b)",
    );
    expect(written).toMatchObject({ inserted: 2 });
    store.clock.set('2024-01-05');
    expect(await asked('MATCH (a:Person)-[r:Knows {since: 9}]->(b) RETURN a.id, b ORDER BY a.id')).toBe('cid ann, dan ann');
    const nothing = await execute("MATCH (a:Person {id: 'nobody'}) CREATE (a)-[:Knows]->(a) RETURN a");
    expect([nothing.written!.inserted, nothing.answer.rowCount]).toEqual([0, 0]);
  });

  test('takes cells from lists of maps, and makes each row once', async () => {
    const rows = new TypedValue(
      'json',
      JSON.stringify([
        { id: 'u1', age: 1 },
        { id: 'u2', name: 'Two', to: 'u1' },
        { id: 'u3', to: 'u1' },
      ]),
    );
    const made = await execute(
      'UNWIND $rows AS row MERGE (p:Person {id: row.id, age: row.age, name: row.name}) RETURN p.id AS id, row.to AS to',
      { rows },
    );
    expect(made.written!.graph).toEqual({ nodes: 3, relationships: 0, properties: 5 });
    expect(rowsOf(made.answer)).toEqual([
      { id: 'u1', to: null },
      { id: 'u2', to: '"u1"' },
      { id: 'u3', to: '"u1"' },
    ]);
    const text = `UNWIND $rows AS row MATCH (a:Person {id: row.id}) MATCH (b:Person {id: row.to})
      MERGE (a)-[r:Knows {since: 2000 + size(row.id)}]->(b) RETURN count(r) AS n`;
    const joined = await execute(text, { rows });
    expect(joined.written!.graph).toMatchObject({ nodes: 0, relationships: 2 });
    expect(rowsOf(joined.answer)).toEqual([{ n: 2n }]);
    expect((await execute(text, { rows })).written!.graph).toMatchObject({ relationships: 0 });
    store.clock.set('2024-01-05T12:00:00Z');
    expect(await asked("MATCH (a:Person)-[r:Knows]->(b:Person {id: 'u1'}) RETURN a.id, r.since ORDER BY a.id")).toBe(
      'u2 2002, u3 2002',
    );
    expect(await asked("MATCH (a:Person {id: 'u2'}) RETURN a.name, a.age")).toBe('Two null');
  });

  test('registers what nobody has registered', async () => {
    const { written } = await execute("CREATE (a:Ship {id: 's1', tons: 10})-[:Carries]->(b:Crate {id: 'c1'})");
    expect(written).toMatchObject({ inserted: 3 });
    store.clock.set('2024-01-06');
    expect(await asked('MATCH (a:Ship)-[:Carries]->(b:Crate) RETURN a.tons, b.id')).toBe('10 c1');
  });
});

describe('MERGE', () => {
  test('keeps the cells that it does not send, and an edge that is there', async () => {
    const text =
      "MERGE (a:Person {id: 'ann', age: 31}) MERGE (b:Person {id: 'eve'}) MERGE (a)-[r:Knows {since: 2020}]->(b) RETURN r";
    const first = await execute(text);
    expect(first.written).toMatchObject({ inserted: 2, updated: 1 });
    store.clock.set('2024-01-07');
    const again = await execute(text);
    expect(again.written!.inserted).toBe(0);
    expect(rowsOf(again.answer).map(({ r }) => namedCell(r))).toEqual(rowsOf(first.answer).map(({ r }) => namedCell(r)));
    expect(again.written!.graph).toMatchObject({ nodes: 0, relationships: 0 });
    store.clock.set('2024-01-08');
    expect(await asked("MATCH (a:Person {id: 'ann'})-[:Knows {since: 2020}]->(b) RETURN a.name, a.age, b")).toBe("An'n 31 eve");
    // An edge that came another way is the same edge.
    const other = await execute("MATCH (a:Person {id: 'ann'}), (b:Person {id: 'bob'}) MERGE (a)-[:Knows]->(b)");
    expect(other.written).toMatchObject({ inserted: 0, updated: 0 });
  });

  test.each([
    ["MERGE (a:Person {name: 'x'})", 'REL_INVALID'],
    ["CREATE (a)-[:Knows]->(b:Person {id: 'x'})", 'REL_PARSE'],
    ["CREATE (a:Person {id: 'x'})-[:Knows]-(b:Person {id: 'y'})", 'REL_PARSE'],
    ["CREATE (a:Person {id: 'x'})-[:Knows|Likes]->(b:Person {id: 'y'})", 'REL_PARSE'],
    ["CREATE (a:Person {id: 'x'})-[:Knows*2]->(b:Person {id: 'y'})", 'REL_PARSE'],
    ["CREATE (a:Person {id: 'x'})-[:Person]->(b:Person {id: 'y'})", 'REL_INVALID'],
    ["CREATE (a:Person {id: 'x'}), (a:Person {id: 'y'})", 'REL_PARSE'],
    ["MATCH (a:Person) CREATE (a:Person {id: 'y'})", 'REL_PARSE'],
    ["MATCH (a:Person) AS OF '2024-01-02' CREATE (a)-[:Knows]->(a)", 'REL_PARSE'],
    ["CREATE (a:Person {id: 'x'}) RETURN b", 'REL_PARSE'],
    ["CREATE (a:Person {id: 'x', age: 'old'})", 'REL_TYPE_MISMATCH'],
    ["CREATE (a:Person {id: 'x', colour: 'red'})", 'REL_UNKNOWN_COLUMN'],
    ["CREATE (a:Person {id: 'x', name: $name})", 'REL_PARSE'],
    ['CREATE (a:Person) SET a.age = 1', 'REL_PARSE'],
  ])('%s is refused, and nothing of it is written', async (text, code) => {
    expect(await refusal(text)).toMatchObject({ code });
    expect(await asked("MATCH (a:Person) WHERE a.id IN ['x', 'y'] RETURN a.id")).toBe('');
  });

  test('is read whole where it is refused', async () => {
    expect(await store.refusal("MERGE (a:Person {id: 'x'})-[:Knows]->(b:Person {id: 'y'}) RETURN a, b")).toMatchObject({
      code: 'REL_READ_ONLY',
    });
    expect(await store.refusal("MERGE (a:Person {id: 'x'})-[:Knows]->(b:Person {id: 'y'")).toMatchObject({ code: 'REL_PARSE' });
    expect(await store.refusal("CALL traverse.pageRank.write('Person', 'Knows', {writeProperty: 'rank'})")).toMatchObject({
      code: 'REL_READ_ONLY',
    });
  });
});

describe('CALL … .write', () => {
  test('patches the nodes, and says how many', async () => {
    const { written, answer } = await execute(
      "CALL traverse.pageRank.write('Person', 'Knows', {writeProperty: 'rank', maxIterations: 50})",
    );
    const ranks = await store.rows("GRAPH_PAGERANK('Person', 'Knows', MAX_ITER => 50)");
    expect(rowsOf(answer)).toEqual([{ rowsWritten: BigInt(ranks.length) }]);
    expect(written).toMatchObject({ verb: 'update', updated: ranks.length });
    store.clock.set('2024-01-09');
    const rows = await store.rows('SELECT id, name, rank FROM Person AS OF CURRENT ORDER BY rank DESC, id');
    expect(rows.map((row) => [row['id'], row['rank']])).toEqual(ranks.map((row) => [row['nodeId'], row['score']]));
    expect(rows.find((row) => row['id'] === 'ann')).toMatchObject({ name: "An'n" });
    const [job] = store.service.automation.jobs.list(analyst);
    expect(job).toMatchObject({
      kind: 'graph',
      about: 'Person',
      state: 'done',
      unit: 'rows',
      done: ranks.length,
      total: ranks.length,
    });
  });

  test.each([
    ["CALL traverse.pageRank.write('Person', 'Knows')", 'REL_PARSE'],
    ["CALL traverse.pageRank.write('Person', 'Knows', {writeProperty: 'colour'})", 'REL_UNKNOWN_COLUMN'],
    ["CALL traverse.pageRank.write('Person', 'Knows', {writeProperty: 'name'})", 'REL_TYPE_MISMATCH'],
    ["CALL traverse.pageRank.write('Person', 'Knows', {writeProperty: 'id'})", 'REL_INVALID'],
    ["CALL traverse.pageRank.write('Nobody', {writeProperty: 'rank'})", 'REL_UNKNOWN_TYPE'],
    ["CALL traverse.pageRanks.write('Person', {writeProperty: 'rank'})", 'REL_PARSE'],
  ])('%s is refused', async (text, code) => {
    expect(await refusal(text)).toMatchObject({ code });
  });
});

test('whoever may not write, may not read, or may not register, is refused; what is hidden is not joined', async () => {
  const policies = {
    all: 'permit(principal, action, resource);',
    writes: 'forbid(principal in Role::"reader", action == Action::"write", resource);',
    schema: 'forbid(principal in Role::"clerk", action == Action::"administer", resource);',
    rows: 'forbid(principal in Role::"clerk", action == Action::"read", resource is Person) when { resource has age && resource.age > 30 };',
  };
  for (const [id, text] of Object.entries(policies)) {
    await store.service.gate.invoke(admin, { action: 'administer', purpose: 'test', correlationId: 'c' }, (invocation) =>
      invocation.submit({ kind: 'put-policy', id, text }),
    );
  }
  expect(await refusal("CREATE (a:Person {id: 'x'})", reader)).toMatchObject({ code: 'REL_ACL' });
  expect(await refusal("CALL traverse.pageRank.write('Person', {writeProperty: 'rank'})", reader)).toMatchObject({
    code: 'REL_ACL',
  });
  expect(await refusal("CREATE (a:Boat {id: 'x'})", clerk)).toMatchObject({ code: 'REL_ACL' });
  await execute("CREATE (:Person {id: 'old', age: 40}), (:Person {id: 'young', age: 20})", {}, clerk);
  store.clock.set('2024-01-10');
  const { written } = await execute('MATCH (a:Person), (b:Person) CREATE (a)-[:Knows]->(b)', {}, clerk);
  expect(written).toMatchObject({ inserted: 1 });
  expect(await asked('MATCH (a:Person)-[:Knows]->(b) RETURN a.id, b', clerk)).toBe('young young');
});
