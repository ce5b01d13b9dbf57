/** Graph patterns: what of the subset gives which rows, and that all else is refused with its place. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Command } from '../../../src/projections/command.ts';
import { analyst, TestStore } from '../../harness.ts';
import { seedBase } from '../../runner/seed.ts';
import { whole } from '../../runner/turn.ts';
import { namedCell } from './entity-names.ts';
import { comparePatterns } from './pattern-differential.ts';

let store: TestStore;

beforeAll(async () => {
  store = await TestStore.open('2024-01-01');
  await store.register('Person', { id: 'string', name: 'string', age: 'integer' }, 'id');
  await store.register('City', { id: 'string', name: 'string' }, 'id');
  await store.register('Knows', { id: 'string', from_id: 'string', to_id: 'string', since: 'integer' }, 'id');
  await store.register('Lives', { id: 'string', from_id: 'string', to_id: 'string' }, 'id');
  await store.put('Person', [
    { id: 'ann', name: 'Ann', age: 30 },
    { id: 'bob', name: 'Bob', age: 40 },
    { id: 'cid', name: 'Cid', age: null },
    { id: 'dan', name: 'Dan', age: 50 },
  ]);
  await store.put('City', [{ id: 'rome', name: 'Rome' }]);
  await store.put('Knows', [
    { id: 'k1', from_id: 'ann', to_id: 'bob', since: 2001 },
    { id: 'k2', from_id: 'bob', to_id: 'cid', since: 2002 },
    { id: 'k3', from_id: 'cid', to_id: 'ann', since: 2003 },
    { id: 'k4', from_id: 'ann', to_id: 'bob', since: 2004 },
    { id: 'k5', from_id: 'dan', to_id: 'dan', since: 2005 },
    { id: 'k6', from_id: 'dan', to_id: 'ghost', since: 2006 },
  ]);
  await store.put('Lives', [
    { id: 'l1', from_id: 'ann', to_id: 'rome' },
    { id: 'l2', from_id: 'bob', to_id: 'rome' },
  ]);
  store.clock.set('2024-02-01');
  await store.delete('Knows', ['k2']);
  store.clock.set('2024-03-01');
});
afterAll(() => store.close());

async function asked(pattern: string): Promise<string> {
  const rows = await store.rows(pattern);
  return rows
    .map((row) =>
      Object.values(row)
        .map((cell) => String(namedCell(cell)))
        .join(' '),
    )
    .join(', ');
}

describe('patterns', () => {
  test.each([
    ['MATCH (a:Person) RETURN a.name ORDER BY a.name', 'Ann, Bob, Cid, Dan'],
    [
      "MATCH (a:Person {id: 'ann'})-[r:Knows]->(b:Person) RETURN a.name, r.since, b.name ORDER BY r.since",
      'Ann 2001 Bob, Ann 2004 Bob',
    ],
    ["MATCH (b:Person {name: 'Bob'})<-[:Knows]-(a) RETURN a", 'ann, ann'],
    ["MATCH (b:Person {name: 'Bob'})-[]-(a) RETURN DISTINCT a ORDER BY a", 'ann, rome'],
    ["MATCH (a:Person)-[:Lives]->(c:City) WHERE c.name STARTS WITH 'R' RETURN a.id ORDER BY a.id DESC", 'bob, ann'],
    ['MATCH (a:Person)-[:Lives]->(c)<-[:Lives]-(b:Person) RETURN a.id, b.id ORDER BY a.id', 'ann bob, bob ann'],
    ['MATCH (a:Person)-[:Knows]->(a) RETURN a.id', 'dan'],
    ['MATCH (a:Person)-[:Knows]-(b:Person) WHERE a.id = b.id RETURN a.id', 'dan'],
    ["MATCH (a:Person {id: 'cid'})-[:Knows*1..2]->(b) RETURN b ORDER BY b", 'ann, bob, bob'],
    ["MATCH (a:Person {id: 'cid'})-[:Knows*2]->(b:Person) RETURN b.name", 'Bob, Bob'],
    ["MATCH (a:Person {id: 'cid'})-[:Knows*0..1]->(b) RETURN b ORDER BY b", 'ann, cid'],
    ["MATCH (a:Person {id: 'ann'})-[*..2]-(b) RETURN b, count(*) ORDER BY b", 'ann 2, bob 3, cid 1, rome 3'],
    ["MATCH (a:Person {id: 'ann'})-[:Knows|Lives]->(b) RETURN b ORDER BY b", 'bob, bob, rome'],
    [
      'MATCH (a:Person)-[:Knows]->(b:Person) RETURN a.id AS who, count(*) AS n, collect(b.age) AS ages ORDER BY who',
      'ann 2 [40,40], cid 1 [30], dan 1 [50]',
    ],
    ['MATCH (a:Person) RETURN count(a.age) AS n, count(DISTINCT a.age) AS d, collect(a.age) AS all', '3 3 [30,40,50]'],
    [
      'MATCH (a:Person) OPTIONAL MATCH (a)-[:Lives]->(c:City) RETURN a.id, c.name ORDER BY a.id',
      'ann Rome, bob Rome, cid null, dan null',
    ],
    [
      "MATCH (a:Person) WHERE a.age > 35 OPTIONAL MATCH (a)-[:Knows]->(b:Person) WHERE b.name = 'Bob' RETURN a.id, b.id ORDER BY a.id",
      'bob null, dan null',
    ],
    ['MATCH (a:Person)-[:Knows]->(b:Person) WITH a, count(*) AS n WHERE n > 1 RETURN a.name, n', 'Ann 2'],
    [
      'MATCH (a:Person)-[:Knows]->(b:Person) WITH DISTINCT b MATCH (b)-[:Lives]->(c:City) RETURN b.name, c.name ORDER BY b.name',
      'Ann Rome, Bob Rome',
    ],
    ['MATCH (a:Person) WITH a.age AS age ORDER BY age DESC SKIP 1 LIMIT 2 RETURN age ORDER BY age', '30, 40'],
    ["MATCH (a:Person) WHERE a.age IN [30, 50] AND NOT a.name ENDS WITH 'n' OR a.age IS NULL RETURN a.id", 'cid'],
    ["MATCH (a:Person) WHERE (a.age >= 30 AND a.age <= 40) AND a.name CONTAINS 'o' RETURN a.id", 'bob'],
    ['MATCH (a:Person) WHERE a.age IS NOT NULL AND a.age <> 30 RETURN a.id ORDER BY a.id SKIP 1 LIMIT 1', 'dan'],
    ["MATCH (a:Person {id: 'dan'}), (c:City) RETURN a.id, c.id", 'dan rome'],
    [
      'MATCH (a:Person)-[:Knows]->(b), (b)-[:Lives]->(c) RETURN a.id, b, c ORDER BY a.id, b',
      'ann bob rome, ann bob rome, cid ann rome',
    ],
    ["MATCH (a:Person {id: 'bob'})-[:Knows]->(b) AS OF SYSTEM TIME '2024-01-15' RETURN b", 'cid'],
    ["MATCH (a:Person {id: 'bob'})-[:Knows]->(b) AS OF '2024-01-15' RETURN b", 'cid'],
    ["MATCH (a:Person {id: 'bob'})-[:Knows]->(b) RETURN b", ''],
    ['MATCH (x)-[:Knows]->(y) RETURN x, y ORDER BY x, y', 'ann bob, ann bob, cid ann, dan dan'],
    // A node without a label is a row of every type that is no edge, with edges or without.
    ['MATCH (n) RETURN count(*)', '5'],
    ['MATCH (n) OPTIONAL MATCH (n)-[:Lives]->(m) RETURN n, m ORDER BY n', 'ann rome, bob rome, cid null, dan null, rome null'],
    ["MATCH (n) WHERE n.name STARTS WITH 'R' RETURN n, n.name, n.age", 'rome Rome null'],
    ['MATCH (n)-[*0..1]->(n) RETURN n ORDER BY n', 'ann, bob, cid, dan, dan, rome'],
    ['MATCH (n:Person|City) WHERE n.age IS NULL RETURN n ORDER BY n', 'cid, rome'],
    ['MATCH (n) MATCH (n:City) RETURN n', 'rome'],
    ['MATCH (n:Person:City) RETURN count(n)', '0'],
    ['MATCH (a:Person)-[:Lives]->(b) RETURN b.name, b.id ORDER BY b.name', 'Rome rome, Rome rome'],
    // An OPTIONAL MATCH stands anywhere.
    ["OPTIONAL MATCH (a:Person {id: 'nobody'}) RETURN a.id, count(*)", 'null 1'],
    ['MATCH (c:City) OPTIONAL MATCH (a:Person {age: 30}) RETURN c.id, a.id', 'rome ann'],
    ['MATCH (c:City) OPTIONAL MATCH (:Person)-[:Knows]->(:City) RETURN c.id', 'rome'],
    // Edges are returned by their keys.
    ["MATCH (a:Person {id: 'ann'})-[r]->(b) RETURN r, b ORDER BY r", 'k1 bob, k4 bob, l1 rome'],
    ['MATCH (a:Person)-[r {since: 2003}]->(b) RETURN a.id, r', 'cid k3'],
    ['MATCH (a:Person)-[r]->(b) WHERE r.since > 2003 RETURN r.since ORDER BY r.since', '2004, 2005'],
    ['MATCH (a:Person)-[r:Knows]->(b) WITH r AS q WHERE q.since < 2003 RETURN q, q.since', 'k1 2001'],
    ['MATCH (a:Person)-[r]->() RETURN count(r) AS n, count(DISTINCT r) AS d', '6 6'],
    ["MATCH p = (a:Person {id: 'cid'})-[:Knows]->(b) RETURN a.id, b", 'cid ann'],
    // Of nothing there are none, and their sum is 0.
    [
      'MATCH (a:Person) WHERE a.age > 90 RETURN count(*), count(a), sum(a.age), avg(a.age), min(a.age), max(a.age), collect(a.id)',
      '0 0 0 null null null []',
    ],
    [
      'MATCH (a:Person) OPTIONAL MATCH (a)-[:Lives]->(c:City) RETURN a.id, collect(c.id) AS c ORDER BY a.id',
      'ann ["rome"], bob ["rome"], cid [], dan []',
    ],
    ['MATCH (a:Person) WITH count(*) AS n, collect(a.age) AS ages, sum(a.age) AS s RETURN n, ages, s', '4 [30,40,50] 120'],
    // Names that RETURN and WITH give may be sorted by.
    ['MATCH (a:Person) WITH a AS p ORDER BY p LIMIT 2 RETURN p AS q ORDER BY q DESC', 'bob, ann'],
  ])('%s', async (pattern, rows) => {
    expect(await asked(pattern)).toBe(rows);
  });

  test('a node that is all that is returned comes with its columns', async () => {
    const [row] = await store.rows("MATCH (a:Person {id: 'ann'}) RETURN a");
    expect(row).toMatchObject({ _pk: 'ann', id: 'ann', name: 'Ann', age: 30n });
  });

  test('an edge that is all that is returned comes with its columns', async () => {
    const [row] = await store.rows("MATCH (a:Person {id: 'bob'})-[r:Lives]->() RETURN r");
    expect(row).toMatchObject({ _pk: 'l2', id: 'l2', from_id: 'bob', to_id: 'rome' });
  });

  test('strings have the escapes of openCypher, and those of SQL have none', async () => {
    await store.register('Text', { id: 'string', text: 'string' }, 'id');
    const texts = ["it's", 'a\\b', 'one\ntwo', 'tab\there', 'say "hi"', '\u00e9😀', '\b\f\r'];
    await store.put(
      'Text',
      texts.map((text, i) => ({ id: `t${i}`, text })),
    );
    for (const [written, id] of [
      ["'it\\'s'", 't0'],
      ["'it''s'", 't0'],
      ['"it\'s"', 't0'],
      ["'a\\\\b'", 't1'],
      ["'one\\ntwo'", 't2'],
      ["'one\\u000Atwo'", 't2'],
      ["'tab\\there'", 't3'],
      ['"say \\"hi\\""', 't4'],
      ["'\\u00e9\\U0001F600'", 't5'],
      ["'\\u00E9\\uD83D\\uDE00'", 't5'],
      ["'\\b\\f\\r'", 't6'],
    ]) {
      expect(await asked(`MATCH (t:Text {text: ${written}}) RETURN t.id`), written).toBe(id);
      expect(await asked(`MATCH (t:Text) WHERE t.text CONTAINS ${written} RETURN t.id`), written).toBe(id);
    }
    expect(await asked("MATCH (t:Text) WHERE t.text CONTAINS '\\n' RETURN t.id")).toBe('t2');
    expect(await store.column("SELECT id FROM Text AS OF CURRENT WHERE text = 'a\\b'")).toEqual(['t1']);
    expect(await store.column("SELECT id FROM Text AS OF CURRENT WHERE text = 'it''s'")).toEqual(['t0']);
    expect(await store.column("SELECT id FROM Text AS OF CURRENT WHERE text = 'one\\ntwo'")).toEqual([]);
  });

  test('types that nobody named and the caller may not read have no part in a pattern, nor in its plan', async () => {
    const text = { type: 'string', required: false, masked: false, indexed: false, subject: false, dims: 0 } as const;
    const guard = { protected: false, accessScope: true } as const;
    await store.invoke(analyst, 'schema', (invocation) =>
      invocation.submit({
        kind: 'register-type',
        name: 'Sealed',
        properties: { id: text },
        primaryKey: 'id',
        graphTriggers: [],
        guard,
      } as Command),
    );
    for (const pattern of ['MATCH (n) OPTIONAL MATCH (n)-[r]->(m) RETURN n, m.name', 'MATCH (n:Person) RETURN n']) {
      expect((await store.rows(pattern)).length).toBeGreaterThan(0);
      for (const how of ['EXPLAIN', 'EXPLAIN ANALYZE']) {
        expect(JSON.stringify((await store.rows(`${how} ${pattern}`)).map((row) => String(row['plan'])))).not.toContain('Sealed');
      }
    }
    for (const pattern of [
      'MATCH (n:Sealed) RETURN n',
      'MATCH (n:Person|Sealed) RETURN n',
      'MATCH (n) MATCH (n:Sealed) RETURN n',
    ]) {
      expect(await store.refusal(pattern)).toMatchObject({ code: 'REL_ACCESS_SCOPE' });
      expect(await store.refusal(`EXPLAIN ${pattern}`)).toMatchObject({ code: 'REL_ACCESS_SCOPE' });
    }
  });

  test('random patterns are answered as by trying every row', async () => {
    const { rows, mismatches } = await comparePatterns(seedBase, whole ? 4_000 : 160);
    expect(mismatches).toEqual([]);
    expect(rows).toBeGreaterThan(0);
  }, 300_000);

  test('walks begin at the rows that a condition leaves, whatever label their ends have', async () => {
    const begun = async (pattern: string): Promise<string[]> => {
      // The first one reads the edges, too.
      await store.rows(pattern);
      const plan = (await store.rows(`EXPLAIN ANALYZE ${pattern}`)).map((row) => String(row['plan']));
      return plan.flatMap((line) => /#WALK.*\[in (\d+),/.exec(line)?.[1] ?? []);
    };
    for (const pattern of [
      "MATCH (a:Person {id: 'cid'})-[:Knows*3]->(b) RETURN count(*)",
      "MATCH (a:Person {id: 'cid'})-[:Knows*3]->(b:Person) RETURN count(*)",
      "MATCH (b:Person)<-[:Knows*3]-(a:Person) WHERE a.id = 'cid' RETURN count(*)",
      "MATCH (a:Person {id: 'cid'}) OPTIONAL MATCH (a)-[:Knows]->(b:Person) RETURN count(*)",
      "MATCH (a:Person {id: 'cid'}) WITH a AS p OPTIONAL MATCH (p)-[:Knows]->(b:Person) RETURN count(*)",
      "MATCH (a {id: 'cid'})-[:Knows*3]->(b:Person) RETURN count(*)",
      "MATCH (a:Person) WHERE a.name = 'Cid' OPTIONAL MATCH (a)-[:Knows]->(b:Person) RETURN count(*)",
      'MATCH (a:Person) WHERE a.age > 45 OPTIONAL MATCH (a)-[:Knows]->(b:Person) RETURN count(*)',
    ]) {
      expect([pattern, await begun(pattern)]).toEqual([pattern, ['1']]);
    }
  });

  test('within one MATCH no edge is gone along twice, between two it may', async () => {
    expect(await asked("MATCH (a:Person {id: 'cid'})-[:Knows]-(b)-[:Knows]-(c) RETURN c ORDER BY c")).toBe('bob, bob');
    expect(await asked("MATCH (a:Person {id: 'cid'})-[:Knows]-(b) MATCH (b)-[:Knows]-(c) RETURN c ORDER BY c")).toBe(
      'bob, bob, cid',
    );
    expect(await asked("MATCH (a:Person {id: 'dan'})-[:Knows*1..3]-(b) RETURN b")).toBe('dan');
  });

  test.each([
    ['MATCH (a:Person) SET a.age = 3 RETURN a', 'REL_READ_ONLY'],
    ["MATCH (a:Person) CREATE (b:Person {id: 'x'})", 'REL_READ_ONLY'],
    ["CREATE (b:Person {id: 'x'})", 'REL_READ_ONLY'],
    ["MERGE (b:Person {id: 'x'}) RETURN b", 'REL_READ_ONLY'],
    ['MATCH (a:Person)-[*]->(b) RETURN b', 'REL_PARSE'],
    ['MATCH (a:Person)-[*1..]->(b) RETURN b', 'REL_PARSE'],
    ['MATCH (a:Person)-[*1..11]->(b) RETURN b', 'REL_INVALID'],
    ["MATCH (a:Person) WHERE a.name = '\\q' RETURN a", 'REL_PARSE'],
    ["MATCH (a:Person) WHERE a.name = 'it\\'s RETURN a", 'REL_PARSE'],
    ['MATCH (a:Person:Nobody) RETURN a', 'REL_UNKNOWN_TYPE'],
    ['MATCH (a) MATCH (a:Nobody) RETURN a', 'REL_UNKNOWN_TYPE'],
    ['MATCH (a:Person) WHERE (a)-[:Knows]->() RETURN a', 'REL_PARSE'],
    ['MATCH (a:Person) WHERE a.age =~ 3 RETURN a', 'REL_PARSE'],
    ['MATCH (a:Person) RETURN b', 'REL_PARSE'],
    ['MATCH (a:Person) RETURN a UNION MATCH (b:City) RETURN b', 'REL_PARSE'],
    ['MATCH (a:Nobody) RETURN a', 'REL_UNKNOWN_TYPE'],
    ['MATCH (a:Person)-[:Nobody]->(b) RETURN b', 'REL_UNKNOWN_TYPE'],
    ['MATCH (a:Person)-[:City]->(b) RETURN b', 'REL_INVALID'],
    ['MATCH (a:Person) RETURN a.colour', 'REL_UNKNOWN_COLUMN'],
  ])('%s is refused', async (pattern, code) => {
    expect(await store.refusal(pattern)).toMatchObject({ code });
  });
});
