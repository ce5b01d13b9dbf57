/** What patterns make of rows: entities, lists and maps, functions, UNWIND; and that what is not there is named. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { analyst, TestStore } from '../../harness.ts';
import { namedCell } from './entity-names.ts';

let store: TestStore;

beforeAll(async () => {
  store = await TestStore.open('2024-01-01');
  const person = { id: 'string', name: 'string', age: 'integer', born: 'timestamp', share: 'number', more: 'json' } as const;
  await store.register('Person', person, 'id');
  await store.register('City', { code: 'string', name: 'string' }, 'code');
  await store.register('Knows', { id: 'string', from_id: 'string', to_id: 'string', since: 'integer' }, 'id');
  await store.put('Person', [
    { id: 'ann', name: 'Ann', age: 30, born: '1994-01-01', share: 2, more: { big: 9_007_199_254_740_993n } },
    { id: 'bob', name: 'Bob', age: 9_223_372_036_854_775_807n },
    { id: 'cid' },
  ]);
  await store.put('City', [{ code: 'rome', name: 'Rome' }]);
  await store.put('Knows', [
    { id: 'k1', from_id: 'ann', to_id: 'bob', since: 2001 },
    { id: 'k2', from_id: 'bob', to_id: 'cid', since: 2002 },
    { id: 'k3', from_id: 'cid', to_id: 'ghost' },
    { id: 'k4', from_id: 'ann', to_id: 'rome' },
  ]);
});
afterAll(() => store.close());

const cells = async (pattern: string, named = true): Promise<string> => {
  const rows = await store.rows(pattern, analyst);
  return rows
    .map((row) =>
      Object.values(row)
        .map((cell) => String(named ? namedCell(cell) : cell))
        .join(' '),
    )
    .join(', ');
};

test('an entity shows its type, its key, when it was written and what the caller sees of it', async () => {
  const [row] = await store.rows("MATCH (a:Person {id: 'ann'})-[r]->(b:Person) RETURN a, r, b");
  const born = 757_382_400_000_000_000n;
  const of = async (type: string, key: string): Promise<bigint> =>
    (await store.rows(`SELECT system_from FROM ${type} WHERE _pk = '${key}'`))[0]!['system_from'] as bigint;
  expect(row!['a']).toBe(
    `{"labels":["Person"],"element_id":"Person/ann","system_from":${await of('Person', 'ann')},"properties":{"id":"ann","name":"Ann",` +
      `"age":30,"born":${born},"share":2,"more":{"big":9007199254740993}}}`,
  );
  expect(row!['r']).toBe(
    `{"type":"Knows","element_id":"Knows/k1","system_from":${await of('Knows', 'k1')},"properties":{"id":"k1","from_id":"ann","to_id":"bob",` +
      `"since":2001},"start":"Person/ann","start_system_from":${await of('Person', 'ann')},"end":"Person/bob",` +
      `"end_system_from":${await of('Person', 'bob')}}`,
  );
  expect(row!['b']).toContain('"age":9223372036854775807');
});

test.each([
  [
    "MATCH p = (a {id: 'ann'})-[:Knows*1..2]->(b:Person) RETURN p",
    '{"nodes":["ann","bob"],"relationships":["k1"]}, {"nodes":["ann","bob","cid"],"relationships":["k1","k2"]}',
  ],
  ["MATCH p = (a)<-[r:Knows*2]-(b {id: 'ann'}) RETURN r, length(p), nodes(p)", '["k2","k1"] 2 ["cid","bob","ann"]'],
  ["MATCH (a:Person {id: 'cid'})-[r]->(b) RETURN b, labels(b), r", ''],
  ["MATCH (a:Person {id: 'ann'})-[r]->(b:City) RETURN b, r, type(r)", 'rome k4 Knows'],
  [
    "MATCH (a:Person {id: 'ann'})-[r]->(b) RETURN type(r), elementId(b), b:Person, keys(r) ORDER BY elementId(b)",
    'Knows City/rome false ["id","from_id","to_id"], Knows Person/bob true ["id","from_id","to_id","since"]',
  ],
  ['MATCH (a) WHERE a:City OR a:Person AND a.age > 30 RETURN a ORDER BY a.name', 'bob, rome'],
  [
    "MATCH (a:Person) RETURN {name: toUpper(a.name), ages: [a.age, null, 1.5, true, 'x']} AS it ORDER BY a.id LIMIT 1",
    '{"name":"ANN","ages":[30,null,1.5,true,"x"]}',
  ],
  [
    'MATCH (a:Person) WITH a ORDER BY a.id WITH collect(a) AS all UNWIND all AS each RETURN each.id, each:Person, size(all), head(all)',
    '"ann" true 3 ann, "bob" true 3 ann, "cid" true 3 ann',
  ],
  ["MATCH p = (:Person {id: 'ann'})-[:Knows*2]->() UNWIND nodes(p) AS n RETURN n.name + '!' AS it", 'Ann!, Bob!, null'],
  ['UNWIND [3, 20, 1] AS x RETURN x, x * 2, x + 0.5 ORDER BY x DESC', '20 40 20.5, 3 6 3.5, 1 2 1.5'],
  ["UNWIND ['b', 'a'] AS x RETURN x + '-' + toString(1) AS it ORDER BY x", 'a-1, b-1'],
  [
    "UNWIND [{id: 'ann'}, {id: 'zed'}, {}] AS row OPTIONAL MATCH (a:Person {id: row.id}) RETURN row.id, a.name",
    '"ann" Ann, "zed" null, null null',
  ],
  ['UNWIND [30, 31] AS age MATCH (a:Person) WHERE a.age = age RETURN a.id', 'ann'],
  ['UNWIND [[1, 2], [], [3]] AS list UNWIND list AS x RETURN sum(x), count(*), collect(x)', '6 3 [1,2,3]'],
  ['UNWIND [] AS x RETURN x', ''],
  ['UNWIND range(1, 7, 3) AS x RETURN x', '1, 4, 7'],
  [
    "RETURN 1 AS one, 'a' AS text, [1, 2][1] AS two, {a: 'x'}.a AS x, [1] + 2 AS list, coalesce(null, 'c') AS c",
    '1 a 2 "x" [1,2] c',
  ],
  [
    "RETURN toInteger('12') AS a, toInteger('x') AS b, toInteger(1.9) AS c, toFloat('1.5') AS d, toBoolean('TRUE') AS e, size('añ') AS f",
    '12 null 1 1.5 true 2',
  ],
  [
    "MATCH (a:Person) RETURN CASE WHEN a.age > 30 THEN 'old' WHEN a.age IS NULL THEN 'who' ELSE 'young' END AS it ORDER BY a.id",
    'young, old, who',
  ],
  ["MATCH (a:Person) RETURN CASE a.id WHEN 'ann' THEN 1 ELSE 2 END AS it ORDER BY a.id", '1, 2, 2'],
  ["MATCH (a:Person) WHERE a.id IN ['ann', 'cid'] XOR a.age > 29 RETURN a.id", 'bob'],
  ["MATCH (a:Person) WHERE 20 < a.age <= 30 AND NOT a.id STARTS WITH 'b' RETURN a.id", 'ann'],
  ['MATCH (a:Person)-[r:Knows]->(b:Person) WITH a, collect(r.since) AS years WHERE 2001 IN years RETURN a.id', 'ann'],
  ['MATCH (a:Person)-[:Knows]->(b:Person) RETURN DISTINCT a ORDER BY a DESC', 'bob, ann'],
  ['MATCH (a:Person)-[:Knows]->(b) RETURN a, count(b) AS n ORDER BY n DESC, a', 'ann 2, bob 1'],
  ["MATCH (a:Person {id: 'ann'}) WITH *, a.age + 1 AS next RETURN *", 'ann 31'],
  ["MATCH (a:Person {id: 'ann'})-[r:Knows]->(:City) WITH a AS x, r AS y RETURN x, y", 'ann k4'],
  [
    "MATCH p = (a:Person {id: 'ann'})-[]->(:City) WITH p AS way RETURN length(way), way",
    '1 {"nodes":["ann","rome"],"relationships":["k4"]}',
  ],
])('%s', async (pattern, expected) => {
  expect(await cells(pattern)).toBe(expected);
});

test.each([
  ['MATCH (a:Person) RETURN shortestPath(a)', 'REL_PARSE', 'shortestPath() is not supported in patterns'],
  ['MATCH (a:Person) RETURN [x IN a.list | x] AS y', 'REL_PARSE', 'a comprehension'],
  ['MATCH (a:Person) WHERE EXISTS { (a)-[]->() } RETURN a', 'REL_PARSE', 'EXISTS {…} is not supported'],
  ['UNWIND [1, 2] AS x RETURN [1, 2][0..1] AS y', 'REL_PARSE', 'a part of a list'],
  ['MATCH (a:Person) RETURN a.name.first', 'REL_TYPE_MISMATCH', 'x.name'],
  ['MATCH (a:Person) UNWIND a.age AS x RETURN x', 'REL_TYPE_MISMATCH', 'UNWIND takes a list, not integer'],
  ['UNWIND [1] AS x MATCH (x:Person) RETURN x', 'REL_PARSE', 'is no node'],
  ['MATCH (a:Person) RETURN a.age + a.name > 3', 'REL_TYPE_MISMATCH', ''],
  ['MATCH (a:Person {$props}) RETURN a', 'REL_PARSE', ''],
  ['MATCH p = (a:Person)-[]->() RETURN p.name', 'REL_PARSE', 'a path has no properties'],
  ['RETURN range(1, 1000000) AS x', 'REL_INVALID', 'at most 100000 numbers'],
  ['UNWIND [1] AS x RETURN max(x)', 'REL_TYPE_MISMATCH', "MAX can't take json"],
])('%s is refused, and why', async (pattern, code, text) => {
  const error = await store.refusal(pattern);
  expect(error.code).toBe(code);
  expect(error.message).toContain(text);
});

test('a few paths look few nodes up, and all of them read the graph once', async () => {
  const plan = (await store.rows('EXPLAIN MATCH (a:Person)-[r:Knows]->(b:Person) RETURN r, a')).map((row) => String(row['plan']));
  // Both ends of each relationship are rows already.
  expect(plan.filter((line) => line.includes('#ROWS(nodes'))).toEqual([]);
  expect(plan.filter((line) => line.includes('#ENTITIES'))).toHaveLength(1);
});
