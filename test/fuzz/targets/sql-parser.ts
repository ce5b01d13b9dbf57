/**
 * The SQL lexer and parser on any bytes: mutated statements, and statements grown from a grammar that takes the bytes as
 * its choices. What must hold: nothing but a REL_PARSE error with its place is thrown, the template holds
 * no text literal, and a statement that parses does so again.
 */
import { assert, ServiceError } from '../../../src/errors.ts';
import { lexStatement, type MarkerValues, untyped } from '../../../src/planner/languages/sql-lexer.ts';
import { parseLexed } from '../../../src/planner/languages/sql-parser.ts';
import type { Dialect } from '../../../src/planner/syntax/statement.ts';
import { grown } from '../grown.ts';

export const name = 'sql-parser';

export function seeds(): Uint8Array[] {
  const encoder = new TextEncoder();
  return [...statements, ...literalForms, ...hostile].map((text) => encoder.encode(text));
}

export function run(bytes: Uint8Array): void {
  check(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes));
  check(grown(alternatives, bytes));
}

/** Values for `$1`, `$2` …, of every type and of none. */
const given: readonly ReturnType<MarkerValues>[] = [7n, "it's", null, 1.5, true, untyped, '\ud800', 2n ** 63n];

/** Reads a text as a statement, and looks at what comes of it. */
export function check(text: string): void {
  for (const dialect of ['spec', 'wide'] as const) {
    checkRead(text, null, dialect);
    if (text.includes('$')) checkRead(text, (marker) => given[Number(marker) - 1], dialect);
  }
}

function checkRead(text: string, values: MarkerValues | null, dialect: Dialect): void {
  try {
    const { template, statement } = parseLexed(lexStatement(text, values), dialect);
    assert(!/[0-9]'|'/.test(template.replaceAll(/"(?:[^"]|"")*"/g, '')), 'the template holds no text literal');
    const again = parseLexed(lexStatement(text, values), dialect);
    assert(again.statement.kind === statement.kind && again.template === template, 'parsing is repeatable');
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    assert(error.code === 'REL_PARSE', `code ${error.code}`);
    const { line, column } = error.facts;
    assert(error.message.startsWith(`${line}:${column}: `), 'the detail starts with the place');
    const lines = text.split('\n');
    assert(line !== undefined && line >= 1 && line <= lines.length, 'the line is one of the text');
    assert(column !== undefined && column >= 1 && column <= lines[line - 1]!.length + 1, 'the column is in its line');
  }
}

/** The first alternative of each rule ends. */
const alternatives: Readonly<Record<string, string>> = {
  statement: 'query | prefix query | query tail | prefix query tail | control | query ; | query junk',
  prefix: "EXPLAIN | EXPLAIN ANALYZE | EXPLAIN POLICY | PURPOSE 'p:q' | EXPLAIN PURPOSE 'p' | junk",
  query:
    'select | select set query | WITH c AS ( query ) query | WITH RECURSIVE c ( a , b ) AS ( query ) query | ( query ) | PATHS_BETWEEN ( list ) | SELECT * FROM GRAPH_SCC ( list )',
  set: 'UNION | UNION ALL | INTERSECT | EXCEPT | EXCEPT ALL',
  select:
    'SELECT items FROM source | SELECT items FROM source asof where group | SELECT DISTINCT items FROM source where | SELECT items FROM source rank',
  items: '* | e | e AS x | items , items | t.* | COUNT(*) | SUM ( e ) | COUNT ( DISTINCT e ) y',
  source: 'T | T t | T AS "a b" | ( query ) s | source join source ON e | f ( list )',
  join: 'JOIN | INNER JOIN | LEFT JOIN | RIGHT OUTER JOIN | FULL JOIN | CROSS JOIN',
  asof: "AS OF CURRENT | AS OF '2024-05-01' | AS OF SYSTEM TIME '2024-05-01T10:00:00.5Z' | AS OF 'never' | AS OF 5 | asof asof",
  where: 'WHERE e | junk',
  group:
    "GROUP BY c | GROUP BY e , c HAVING e | GROUP BY TUMBLE ( c , INTERVAL '5 minutes' ) | GROUP BY HOP ( c , INTERVAL '1 days' , INTERVAL '2 days' )",
  rank: 'RANK BY f ( list ) | RANK BY SUM ( list ) COMPUTE x AS e',
  tail: "LIMIT 5 | ORDER BY c | ORDER BY e DESC COLLATE UNICODE , c LIMIT 3 | LIMIT 5 AFTER '17' | ORDER BY c LIMIT 1 AFTER '2' | WITH PROVENANCE | FACETS c , c | tail tail | OFFSET 5",
  list: 'l | e | e , list | NAME => l | T , l , X => l',
  c: 'a | t.b | "q""q" | `w` | größe',
  l: "1 | -9223372036854775808 | 9223372036854775808 | 'it''s' | 1.5e-3 | TRUE | NULL | .5 | 007 | $1 | $2 | $6 | $8 | $99",
  e: "c | l | e op e | ( e ) | NOT e | - e | e IS NULL | e IS NOT NULL | e IN ( list ) | e NOT IN ( query ) | e BETWEEN e AND e | e NOT LIKE '%x_' | CASE e WHEN e THEN e ELSE e END | CASE WHEN e THEN e END | now() | now() - INTERVAL '3 days' | MATCH ( c , 'q' , PHRASE ) | SOUNDEX ( c ) = 'x' | f ( list ) | LOOKUP n ( c ) -> d | ARRAY [ l , l ] | MAX ( e ) | COALESCE ( e , e ) | e <=> e",
  op: '= | != | <> | < | <= | > | >= | + | - | * | / | % | AND | OR',
  control:
    "BRANCH a FROM 'b' | WATCH query | CREATE MATERIALIZED VIEW v AS query REFRESH INCREMENTAL EVERY 5 | ERASE SUBJECT 's' REASON 'r' CERTIFY | CALL gds.wcc.stream ( 'a' , { x : l } ) YIELD n | MATCH ( a ) - [ r *1..3 ] -> ( b { n : \"x\" } ) RETURN a | FUSE_IDENTITIES ( l , l ) | INSERT INTO T VALUES ( l ) | ALTER TABLE T | REGISTER LOOKUP n FROM 'f' KEY ( a ) FIELDS ( b , c ) | DROP MATERIALIZED VIEW v | DROP LOOKUP n",
  junk: ') | SELECT | \' | " | -- | /* | ;; | AS | \u00e9 | \u{1F600} | ( | FROM FROM | OVERLAPS | FOR SYSTEM_TIME',
};

const statements = [
  "SELECT * FROM Customer WHERE _pk = 'c-1' LIMIT 1",
  "EXPLAIN ANALYZE PURPOSE 'p' SELECT DISTINCT a, SUM(b) AS s FROM T t AS OF SYSTEM TIME '2024-01-01' WHERE a > 1.5 AND b NOT IN (1, -2) GROUP BY a HAVING COUNT(*) > 3 ORDER BY s DESC COLLATE UNICODE LIMIT 5 FACETS a WITH PROVENANCE;",
  'WITH RECURSIVE n (i) AS (SELECT a FROM T UNION ALL SELECT i + 1 FROM n) SELECT * FROM n LEFT JOIN (SELECT b FROM U) u ON n.i = u.b',
  "SELECT CASE a WHEN 1 THEN 'x' ELSE NULL END, LOOKUP c(x) -> y FROM T WHERE at > now() - INTERVAL '7 days' OR MATCH(a, 'q', PHRASE)",
  'SELECT a FROM T AS OF $2 WHERE b = $1 AND c IN ($3, $4, -$4) AND d LIKE $6 LIMIT $6',
  'MATCH (a:P {n: "x"})-[r:K*1..3]->(b) RETURN b -- end',
  "/* c */ HYBRID_SEARCH FROM D QUERY 'x' LIMIT 3",
];

/** How texts, bits, bytes and typed literals are written in Postgres, well and badly. */
export const literalForms = [
  String.raw`SELECT E'a\n\'b''\x41\101\u00e9\U0001F600' 'c', E'\u12', E'\xg', E'`,
  "SELECT E'\\",
  String.raw`SELECT E'\ud83d\ude00', E'\ud83d', E'\U00110000', E'\000', e';\';' ; SELECT 2`,
  String.raw`SELECT U&'d\0061t\+01F600;' , U&'d!0061' UESCAPE '!', U&'\d83d\de00', U&'\d83d', u&'x' UESCAPE '+', U&"c\0061" FROM T`,
  'SELECT $$it\'s; \\ "so"$$, $tag$ $$ ; $b$ $tag$, $a$ $A$ $a$, $1, $é$x$é$, $t$ open',
  "SELECT B'0101', b'', X'1fF', x'', B'2', X'g', N'x', n'; ', 'a'\n'b' -- c\n'd'",
  "SELECT date '2024-05-01', timestamptz '2024-05-01 10:00+02', int4 '7', double precision '1.5', json '{\"a\":1}', '[1,2]'::vector",
];

const hostile = [
  `SELECT ${'('.repeat(3000)}`,
  `SELECT * FROM T WHERE ${'NOT '.repeat(3000)}a`,
  `SELECT a FROM T WHERE a IN (${'SELECT a FROM T WHERE a IN ('.repeat(50)}`,
  `SELECT a${' + 1'.repeat(2000)} FROM T`,
  `SELECT a FROM T WHERE ${'a = 1 OR '.repeat(2000)}b`,
  `SELECT '${"''".repeat(5000)}`,
  '/*'.repeat(4000),
  '\ufeffSELECT\u00a0* FROM T',
];
