/**
 * Graph patterns on any bytes: mutated ones, and such as grow from a grammar. What must hold is what holds of every statement:
 * nothing but REL_PARSE with its place is thrown, and what can be read becomes a query, or is a write that who reads refuses and
 * the graph doors read the same.
 */
import { assert, ServiceError } from '../../../src/errors.ts';
import { parseGraphWrite } from '../../../src/planner/languages/graph-writes.ts';
import { lexStatement } from '../../../src/planner/languages/sql-lexer.ts';
import { parseLexed } from '../../../src/planner/languages/sql-parser.ts';
import { grown } from '../grown.ts';
import { check } from './sql-parser.ts';

export const name = 'graph-pattern';

export function seeds(): Uint8Array[] {
  const encoder = new TextEncoder();
  return patterns.map((text) => encoder.encode(text));
}

export function run(bytes: Uint8Array): void {
  for (const text of [`MATCH (${new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)}`, grown(grammar, bytes)]) {
    check(text);
    checkWrite(text);
  }
}

function checkWrite(text: string): void {
  try {
    const lexed = lexStatement(text, (marker) => (marker === 1 || marker === 'named' ? 7n : undefined));
    const write = parseGraphWrite(lexed, 'spec');
    if (write === null) return;
    assert(write.nullSlot === lexed.parameters.length, 'NULL stands behind the literals');
    assert(parseLexed(lexed).statement.kind === 'write', 'who reads knows it for a write');
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    assert(error.code === 'REL_PARSE', `code ${error.code}`);
    assert(error.message.startsWith(`${error.facts.line}:${error.facts.column}: `), 'the detail starts with the place');
  }
}

/** The first alternative of each rule ends. */
const grammar = {
  statement:
    'MATCH chain return | UNWIND l AS x return | return | clause statement | clause clause return | write | MATCH chain write | MATCH chain statement',
  clause:
    'MATCH chain | MATCH chain , chain where | OPTIONAL MATCH chain where | WITH items where | WITH DISTINCT items tail where | WITH * | UNWIND e AS x | UNWIND l AS n | junk',
  chain: 'node | node edge chain | node edge node | p = node edge node | junk',
  node: '( ) | ( n ) | ( n : T ) | ( : T ) | ( n : T { k : l } ) | ( n { k : l , k : l } ) | ( `odd n` ) | ( n : T : T ) | ( n : T | U )',
  edge: '- - | - -> | < - - | - [ r : K ] -> | < - [ r ] - | - [ : K | L ] - | - [ * 1 .. 3 ] -> | - [ r : K * 2 ] - | - [ * .. 4 ] -> | - [ * ] -> | - [ r { k : l } ] -> | < - [ r ] ->',
  where: 'WHERE c | AS OF CURRENT | AS OF SYSTEM TIME l WHERE c | junk',
  return: 'RETURN items | RETURN DISTINCT items tail | RETURN items tail | RETURN * | RETURN',
  items:
    'e | e AS x | e AS x , items | count(*) | collect ( e ) AS y | count ( DISTINCT e ) , e | sum ( e ) , avg ( e ) | min ( DISTINCT e )',
  tail: 'LIMIT 3 | ORDER BY e | ORDER BY e DESC SKIP 1 LIMIT 2 | SKIP l | tail tail',
  c: 'e = l | e = e = e | n : T | c XOR c | e IN e | e <> e | e < l | e IS NULL | e IS NOT NULL | e IN [ l , l ] | e STARTS WITH l | e ENDS WITH l | e CONTAINS l | c AND c | c OR c | NOT c | ( c ) | e =~ l | ( n ) --> ( m )',
  e: 'n | n.k | l | r.k | x | a.b.c | f ( n ) | labels ( n ) | size ( e ) | coalesce ( e , l ) | range ( e , e ) | [ e , e ] | [ ] | { k : e , a : e } | e [ 0 ] | e + e | e * e - e | - e | ( e ) | CASE e WHEN e THEN e END | CASE WHEN c THEN e ELSE e END | [ x IN e | x ] | e [ 1 .. 2 ] | EXISTS { chain } | c',
  l: "1 | 'x' | 'it\\\\'s \\\\u0041' | -2 | 1.5 | TRUE | NULL | $1 | $named | 9223372036854775808 | [ 1 ]",
  n: 'a | b | n',
  write:
    'MATCH chain SET n.k = l return | CREATE made | CREATE made , made names | MERGE made names | UNWIND e AS n MERGE made names | UNWIND l AS x MATCH chain CREATE made names | MERGE made write | CREATE node | MATCH chain DETACH DELETE n | CALL traverse.pageRank.write ( l , { writeProperty : l } )',
  made: '( n : T ) | ( n : T { k : e } ) | ( n : T { k : l } ) - [ r : K ] -> ( m : T ) | ( n ) < - [ : K { k : l } ] - ( : T ) | ( n ) - [ : K ] -> made | chain',
  names: 'RETURN n | RETURN n AS x , m | RETURN n , e ORDER BY e | return | junk',
  junk: ') | ( | - | RETURN | \' | " | .. | : | { | UNION | CALL { | \u{1F600}',
};

const patterns = [
  "a:P)-[r]->(b) UNWIND [1, {k: [a.x]}] AS q WITH *, q.k[0] + 1 AS n RETURN {a: a, l: labels(b)}, CASE n WHEN 1 THEN 'x' ELSE toUpper(b.s) END",
  'a:P) UNWIND $named AS row MERGE (c:T {id: row.id + 1})-[:K {w: -row.w}]->(a) RETURN c, row.id, count(*)',
  "a:P {n: 'x'})-[r:K*1..3]->(b)<-[:L|M]-(c) WHERE a.age >= 3 AND NOT b.n STARTS WITH 'q' RETURN DISTINCT b.n AS n, count(*) ORDER BY n DESC SKIP 1 LIMIT 2",
  'a)-->(b) OPTIONAL MATCH (b)--(c:T) WITH a, count(c) AS n WHERE n > 1 MATCH (a)-[r]-(d) RETURN a, r.k, collect(d) LIMIT 5',
  "a:P|Q:R) OPTIONAL MATCH p = (b {n: 'it\\'s\\u0041'})-[r*0..2]-() WITH sum(a.k) AS s, r AS q RETURN s, avg(s), min(s)",
  'a), (b), (c:T) AS OF CURRENT RETURN a, b, c',
  "a), (b:T) WITH a, b LIMIT 3 MERGE (a)-[r:K {k: 1}]->(c:T {id: 'x'})<-[:L]-(b) CREATE (c)-[:M]->(a) RETURN r, c AS made",
  `a:P) WHERE ${'NOT '.repeat(500)} a.b = 1 RETURN a`,
  `a:P) WHERE ${'a.b = 1 OR '.repeat(1500)} a.b = 1 RETURN a`,
  `a)${'-->()'.repeat(100)} RETURN a`,
  `a) ${'WITH a '.repeat(60)} RETURN a`,
];
