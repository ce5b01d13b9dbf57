import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseStatement } from '../../../src/planner/languages/sql-parser.ts';
import type { Expression } from '../../../src/planner/syntax/statement.ts';
import { condition, parsed, query, refused, select, where } from './parsing.ts';

describe('rule 10: not implemented', () => {
  test.each([
    ['SELECT SUM(MAX(a)) FROM T', '1:12: an aggregate within an aggregate is not implemented'],
    ['SELECT COALESCE(a, b) FROM T', '1:8: COALESCE is not implemented'],
    ['SELECT * FROM T LIMIT 5 OFFSET 5', '1:25: OFFSET'],
    ['SELECT * FROM T OFFSET 5', '1:17: OFFSET'],
    ['SELECT ROW_NUMBER() OVER (ORDER BY a) FROM T', '1:8: ROW_NUMBER is not implemented'],
    ['SELECT RANK() OVER (ORDER BY a) FROM T', '1:8: RANK is not implemented'],
    ['SELECT COUNT(*) FILTER (WHERE a = 1) FROM T', '1:17: FILTER within an aggregate is not implemented'],
    ["SELECT * FROM T FOR SYSTEM_TIME AS OF '2024-01-01'", '1:17: FOR SYSTEM_TIME'],
    ['SELECT * FROM T WHERE a OVERLAPS b', '1:25: OVERLAPS is not implemented'],
    ['SELECT * FROM T WHERE (a, b) OVERLAPS (c, d)', '1:23: OVERLAPS is not implemented'],
    ['CREATE INDEX i ON T (a)', '1:1: CREATE INDEX is not implemented'],
    ['CREATE UNIQUE INDEX i ON T (a)', '1:1: CREATE INDEX is not implemented'],
    ['CREATE TYPE t', '1:1: CREATE TYPE is not implemented'],
    ['create schema s', '1:1: CREATE SCHEMA is not implemented'],
  ])('%s', (text, message) => {
    const told = refused(text);
    expect(told).toContain(message);
    expect(told).toContain('is not implemented');
  });

  test('ALTER TABLE parses, to be answered with 501', () => {
    expect(parsed('ALTER TABLE T ADD COLUMN a integer', 'unimplemented').verb).toBe('ALTER TABLE');
  });
});

describe('rule 11: RANK BY and COMPUTE', () => {
  test('SUM and MAX are functions of several values there', () => {
    const ranked = select(
      'SELECT * FROM T RANK BY SUM(BM25(), MAX(CUSTOM(a, 2), EXACT(b, 1.5))) COMPUTE x AS SUM(a, b), h AS HIGHLIGHT(c)',
    );
    expect(ranked.rankBy).toMatchObject([
      { kind: 'call', name: 'SUM', arguments: [{ value: { name: 'BM25' } }, { value: { name: 'MAX' } }] },
    ]);
    expect(ranked.compute.map((each) => each.label)).toEqual(['x', 'h']);
  });
  test('ORDER BY may follow', () => expect(query('SELECT * FROM T RANK BY RECENCY(at, 60) ORDER BY a').orderBy.length).toBe(1));
  test('rank stays a name', () => expect(select('SELECT rank FROM T rank ORDER BY rank').from).toMatchObject({ alias: 'rank' }));
});

describe('rule 12: EXPLAIN', () => {
  test.each([
    ['EXPLAIN', 'plan'],
    ['EXPLAIN ANALYZE', 'analyze'],
    ['EXPLAIN POLICY', 'policy'],
  ])('%s', (prefix, mode) =>
    expect(parsed(`${prefix} SELECT * FROM T`, 'explain')).toMatchObject({ mode, statement: { kind: 'query' } }),
  );

  test('EXPLAIN_PATH and EXPLAIN_REPLAY', () => {
    expect(select("EXPLAIN_PATH('a', 'b')").from).toMatchObject({ kind: 'function', name: 'EXPLAIN_PATH' });
    expect(parsed("EXPLAIN_REPLAY('x', SEQ => 2)", 'control')).toMatchObject({
      what: 'explain-replay',
      options: [{ name: 'SEQ', value: { slot: 1 } }],
    });
  });
});

describe('rule 13: table functions', () => {
  test('both forms give one source', () => {
    const call = "PATHS_BETWEEN('a', 'b', MAX_HOPS => 3)";
    const keyword = select(call);
    const table = select(`SELECT * FROM ${call}`);
    for (const form of [keyword, table]) {
      expect(form).toMatchObject({
        projection: [{ kind: 'star' }],
        from: { kind: 'function', name: 'PATHS_BETWEEN', arguments: [{ name: null }, { name: null }, { name: 'MAX_HOPS' }] },
      });
    }
  });

  test('type-first arguments, named arguments, a limit', () => {
    expect(query("GRAPH_PAGERANK(Person, 'KNOWS', DAMPING => 0.85) LIMIT 5")).toMatchObject({
      limit: {},
      body: {
        from: { name: 'GRAPH_PAGERANK', arguments: [{ value: { kind: 'column', name: 'Person' } }, {}, { name: 'DAMPING' }] },
      },
    });
  });

  test('HYBRID_SEARCH FROM and SIMILAR TO', () => {
    expect(query("HYBRID_SEARCH FROM Doc QUERY 'solar' LIMIT 5")).toMatchObject({
      limit: {},
      body: { from: { name: 'HYBRID_SEARCH', arguments: [{}, { name: 'QUERY' }] } },
    });
    expect(query("SIMILAR TO Doc WHERE id = 'd1' LIMIT 5")).toMatchObject({
      body: { from: { name: 'SIMILAR' }, where: { kind: 'binary' } },
    });
    expect(condition('SIMILAR(embedding, ARRAY[1.0, 2.0], threshold=0.5)')).toBe(
      'SIMILAR(embedding, ARRAY(1, 2), THRESHOLD => 0.5)',
    );
  });

  test.each([
    ["SELECT a FROM PATHS_BETWEEN('a', 'b')", '1:15'],
    ["SELECT DISTINCT * FROM PATHS_BETWEEN('a', 'b')", '1:24'],
    ["SELECT * FROM PATHS_BETWEEN('a', 'b') p JOIN T ON p.a = T.a", '1:15'],
    ["SELECT * FROM T JOIN PATHS_BETWEEN('a', 'b') p ON p.a = T.a", '1:22'],
    ["SELECT * FROM (SELECT * FROM PATHS_BETWEEN('a', 'b')) p", '1:30'],
    ["SELECT * FROM PATHS_BETWEEN('a', 'b') UNION SELECT * FROM T", '1:15'],
  ])('refused: %s', (text, place) => expect(refused(text)).toContain(`${place}: a table function stands alone`));
});

describe('control statements', () => {
  test.each([
    ['BRANCH dev FROM main', { what: 'branch', names: ['dev', 'main'] }],
    ["BRANCH 'my branch' FROM 'main'", { what: 'branch', names: ['my branch', 'main'] }],
    [
      "REGISTER LOOKUP c FROM '/x.csv' KEY (code) FIELDS (name, iso) REFRESH EVERY 5 MINUTES",
      { what: 'register-lookup', names: ['c', 'code', 'name', 'iso'], options: [{ name: 'MINUTES' }] },
    ],
    [
      'CREATE MATERIALIZED VIEW v AS SELECT a FROM T REFRESH INCREMENTAL EVERY 60',
      { what: 'create-materialized-view', names: ['v'], query: { body: { from: { name: 'T', alias: null } } } },
    ],
    ['DROP MATERIALIZED VIEW v', { what: 'drop-materialized-view', names: ['v'] }],
    ['PURPOSE \'p\' drop lookup "c";', { what: 'drop-lookup', names: ['c'], purpose: { slot: 0 } }],
    ["WATCH PURPOSE 'x' SELECT * FROM T WHERE a = 1", { what: 'watch', purpose: { slot: 0 }, query: {} }],
    [
      "ERASE SUBJECT 's' REASON 'r' CERTIFY",
      { what: 'erase-subject', arguments: [{ slot: 0 }, { slot: 1 }], names: ['CERTIFY'] },
    ],
    ["ERASE SUBJECT 's' REASON 'r'", { what: 'erase-subject', arguments: [{ slot: 0 }, { slot: 1 }], names: [] }],
    ["FUSE_IDENTITIES('a', 'b')", { what: 'fuse-identities' }],
    ["SELECT * FROM SPLIT_IDENTITIES('a', 'b')", { what: 'split-identities' }],
  ])('%s', (text, expected) => expect(parsed(text, 'control')).toMatchObject(expected));

  test.each([
    ["BRANCH '' FROM main", '1:8: a branch name has 1 to 128'],
    ["ERASE SUBJECT 's' CERTIFY", '1:19: expected REASON'],
    ["ERASE SUBJECT 's' REASON ' ' CERTIFY", '1:26: the reason is empty'],
    ['DROP MATERIALIZED v', '1:19: expected VIEW'],
    ['DROP LOOKUP', '1:12: expected the name of the lookup table'],
    ['DROP LOOKUP a, b', '1:14'],
    ['FUSE_IDENTITIES(a, b)', '1:17: only literals'],
    ["FUSE_IDENTITIES('a')", '1:1: FUSE_IDENTITIES takes 2 or 3 values'],
    ['MATCH (a)-[(b)] RETURN a )', '1:12: expected ]'],
    ['MATCH (a', '1:9: expected )'],
    ['MATCH (a)', '1:10: expected MATCH, OPTIONAL MATCH, UNWIND, WITH or RETURN'],
    ['BRANCH a FROM b LIMIT 1', '1:17: LIMIT cannot stand here'],
  ])('refused: %s', (text, message) => expect(refused(text)).toContain(message));
});

describe('CALL is the query that it stands for', () => {
  test.each([
    [
      "CALL traverse.pageRank.stream('Person', 'KNOWS', {maxIterations: 20, dampingFactor: 0.85}) YIELD nodeId, score AS s",
      {
        projection: [{ alias: null }, { alias: 's' }],
        from: { name: 'GRAPH_PAGERANK', arguments: [{ name: null }, { name: null }, { name: 'MAX_ITER' }, { name: 'DAMPING' }] },
      },
    ],
    ["CALL gds.wcc.stats('Person')", { projection: [{ kind: 'star' }], from: { name: '#STATS CONNECTED_COMPONENTS' } }],
    ["CALL traverse.linkPredict('Person') LIMIT 3", { from: { name: 'LINK_PREDICT' } }],
    [
      "CALL traverse.graphLinkPredict('Person', {from: 'a'})",
      { from: { name: 'GRAPH_LINK_PREDICT', arguments: [{}, { name: 'FROM' }] } },
    ],
    [
      "CALL traverse.dijkstra('P', {sourceNode: 'a', targetNode: 'b'}) AS OF CURRENT WHERE hop > 1",
      { from: { name: 'GRAPH_DIJKSTRA' } },
    ],
  ])('%s', (text, expected) => expect(select(text)).toMatchObject(expected));

  test.each([
    ['CALL db.nothing()', '1:9: there is no procedure "db.nothing"'],
    ['CALL sys.nothing()', '1:6: expected traverse'],
    ["CALL gds.dijkstra('P')", '1:10: gds has no algorithm "dijkstra": use GRAPH_DIJKSTRA'],
    [
      "CALL gds.betweenness.stream('P')",
      `1:10: gds has no algorithm "betweenness": use GRAPH_NODE_METRIC with METRIC => 'betweenness'`,
    ],
    ["CALL gds.louvain('P')", '1:10: gds has no algorithm "louvain": use GRAPH_COMMUNITY'],
    ["CALL gds.shortestPath.dijkstra.stream('P')", '1:10: gds has no algorithm "shortestPath": use GRAPH_DIJKSTRA'],
    [
      "CALL traverse.hits('P')",
      `1:15: traverse has no algorithm "hits": use GRAPH_NODE_METRIC with METRIC => 'hub' or 'authority'`,
    ],
    ["CALL gds.zzz('P')", '1:10: gds has no algorithm "zzz": docs/graph.md lists those there are'],
    ["CALL traverse.pagerunk('P')", '1:15: traverse has no algorithm "pagerunk"'],
    ["CALL traverse.wcc.mutate('P')", '1:19: expected stream, stats or write'],
    ['CALL traverse.wcc(P)', '1:19: expected a value'],
  ])('refused: %s', (text, message) => expect(refused(text)).toContain(message));

  test('writing is a write', () => {
    expect(parsed("CALL gds.pageRank.write('Person', {writeProperty: 'rank'})", 'write')).toMatchObject({
      verb: 'CALL gds.write',
    });
  });
});

describe('writes are recognised', () => {
  test.each([
    ["INSERT INTO T (a) VALUES ('x')", 'INSERT'],
    ['UPDATE T SET a = 1', 'UPDATE'],
    ['DELETE FROM T', 'DELETE'],
    ['MERGE INTO T USING U', 'MERGE'],
    ['DROP TABLE T', 'DROP'],
    ['TRUNCATE T', 'TRUNCATE'],
    ['CREATE TABLE T (a text)', 'CREATE TABLE'],
    ['CREATE EXTENSION vector', 'CREATE EXTENSION'],
    ['CREATE (n:Person {name: "x"})', 'CREATE'],
    ['MATCH (n) DELETE n', 'DELETE'],
    ['MATCH (n) SET n.a = 1 RETURN n', 'SET'],
  ])('%s', (text, verb) => expect(parsed(text, 'write').verb).toBe(verb));

  test.each(['REMEMBER', 'RECALL', 'REFLECT', 'CONSOLIDATE MEMORY', 'FORGET MEMORY', 'ASSOCIATE MEMORY', 'RESOLVE MEMORY'])(
    '%s is recognised, and names the route that does it',
    (verb) => {
      const { verb: own, instead } = parsed(`${verb} 'x'`, 'unimplemented');
      expect(own).toBe(verb);
      expect(instead).toContain(`/memory/${verb.split(' ')[0]!.toLowerCase()}`);
    },
  );
});

describe('hostile text ends in an error with its place, not in an exhausted stack', () => {
  const many = 100_000;
  test.each([
    ['brackets', `SELECT * FROM T WHERE ${'('.repeat(many)}1`],
    ['NOT', `SELECT * FROM T WHERE ${'NOT '.repeat(many)}a`],
    ['signs', `SELECT ${'- '.repeat(many)}a FROM T`],
    ['CASE', `SELECT ${'CASE WHEN '.repeat(many)}a FROM T`],
    ['calls', `SELECT ${'f('.repeat(many)}a FROM T`],
    ['sums', `SELECT a${' + a'.repeat(many)} FROM T`],
    ['unions', `SELECT a FROM T${' UNION SELECT a FROM T'.repeat(many / 4)}`],
    ['joins', `SELECT a FROM T${' JOIN T ON a = a'.repeat(many / 4)}`],
    ['arms', `${'('.repeat(many)}SELECT a FROM T`],
    ['subqueries', `SELECT * FROM ${'('.repeat(many)}`],
    ['arrays', `SELECT ${'ARRAY['.repeat(many)} FROM T`],
  ])('%s', (_, text) => expect(refused(text)).toMatch(/^1:\d+: .*(nested deeper|more than 1000|more than 16384)/));

  test('a thousand conditions nest logarithmically', () => {
    const conditions = Array.from({ length: 4096 }, (_, i) => `a = ${i}`);
    const depth = (expression: Expression): number =>
      expression.kind === 'binary' ? 1 + Math.max(depth(expression.left), depth(expression.right)) : 0;
    expect(depth(where(conditions.join(' OR ')))).toBe(13);
    expect(depth(where(conditions.join(' AND ')))).toBe(13);
  });

  test('a list of 50,000 values is a thousand nodes, and one for the rest', () => {
    const list = where(`a IN (${Array.from({ length: 50_000 }, (_, i) => i).join(',')})`);
    const items = list.kind === 'in-list' ? list.items : [];
    expect(items.length).toBe(1_001);
    expect(items.reduce((sum, item) => sum + (('count' in item && item.count) || 1), 0)).toBe(50_000);
  });
});

test('one template means one tree, places aside', () => {
  const withoutPlaces = (value: unknown): unknown =>
    JSON.parse(JSON.stringify(value, (key, inner: unknown) => (key === 'location' ? undefined : inner)));
  const literal = fc.oneof(
    fc.integer().map(String),
    fc.string({ unit: 'grapheme-ascii' }).map((text) => `'${text.replaceAll("'", "''")}'`),
    fc.constantFrom('TRUE', 'FALSE', '1.5', '-2.0', 'NULL'),
  );
  const statement = (l: readonly string[], space: string) =>
    `SELECT a, b - ${l[0]} FROM T WHERE${space}a = ${l[1]} AND (b IN (${l[2]}, ${l[3]}) OR NOT c BETWEEN ${l[4]} AND ${l[5]})${space}LIMIT 5`;
  const texts = fc
    .tuple(fc.array(literal, { minLength: 6, maxLength: 6 }), fc.constantFrom(' ', '\n', ' /* x */ '))
    .map(([l, space]) => statement(l, space));
  const trees = new Map<string, unknown>();
  fc.assert(
    fc.property(texts, (text) => {
      const { template, statement: tree } = parseStatement(text);
      if (trees.has(template)) expect(withoutPlaces(tree)).toEqual(trees.get(template));
      trees.set(template, withoutPlaces(tree));
    }),
    { numRuns: 2000 },
  );
});
