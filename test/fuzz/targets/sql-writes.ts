/**
 * INSERT, UPDATE and DELETE on any bytes: mutated statements, and statements grown from a grammar. What must hold: nothing but a
 * REL_PARSE error with its place is thrown; what is read has its literals among those of the text, NULL aside; the same text
 * is read the same way again; and whoever only reads refuses it by name, or as no SQL.
 */
import { assert, ServiceError } from '../../../src/errors.ts';
import { lexStatement, type MarkerValues, untyped } from '../../../src/planner/languages/sql-lexer.ts';
import { parseLexed } from '../../../src/planner/languages/sql-parser.ts';
import { parseWrite } from '../../../src/planner/languages/sql-writes.ts';
import { grown } from '../grown.ts';

export const name = 'sql-writes';

export function seeds(): Uint8Array[] {
  const encoder = new TextEncoder();
  return [...statements, ...hostile].map((text) => encoder.encode(text));
}

export function run(bytes: Uint8Array): void {
  check(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes));
  check(grown(grammar, bytes));
}

const given: readonly ReturnType<MarkerValues>[] = [7n, "it's", null, untyped];

function check(text: string): void {
  try {
    const lexed = lexStatement(text, (marker) => given[Number(marker) - 1]);
    const statement = parseWrite(lexed, 'wide');
    assert(JSON.stringify(parseWrite(lexed, 'wide')) === JSON.stringify(statement), 'parsing is repeatable');
    if (statement === null) return;
    for (const slot of slotsIn(statement))
      assert(slot >= 0 && slot <= statement.nullSlot, 'a literal is one of the text, or NULL');
    assert(statement.nullSlot === lexed.parameters.length, 'NULL stands behind the literals');
    const read = parseLexed(lexed).statement;
    assert(read.kind === 'write', 'who reads knows it for a write');
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    assert(error.code === 'REL_PARSE', `code ${error.code}`);
    const { line, column } = error.facts;
    assert(error.message.startsWith(`${line}:${column}: `), 'the detail starts with the place');
  }
}

function slotsIn(tree: unknown): number[] {
  if (typeof tree !== 'object' || tree === null) return [];
  return Object.entries(tree).flatMap(([key, value]) => (key === 'slot' ? [value as number] : slotsIn(value as unknown)));
}

/** The first alternative of each rule ends. */
const grammar = {
  statement: "write | PURPOSE 'p' write | WITH c AS ( query ) write | write ; | write junk",
  write: 'insert | update | delete | insert returning | update returning | delete returning',
  insert:
    'INSERT INTO T source | INSERT INTO T ( columns ) source | INSERT INTO T AS t ( columns ) source conflict | INSERT INTO T DEFAULT VALUES | INSERT INTO T query conflict',
  source: 'VALUES ( values ) | VALUES ( values ) , ( values ) | query | ( query ) | WITH d AS ( query ) query',
  values: 'e | DEFAULT | e , values | $1 , $2 , $3 , $4',
  columns: 'a | a , columns | "b c" | valid_from',
  conflict:
    'ON CONFLICT DO NOTHING | ON CONFLICT ( a ) DO NOTHING | ON CONFLICT ( a ) DO UPDATE SET sets | ON CONFLICT DO UPDATE SET sets WHERE e | ON CONFLICT ON CONSTRAINT x DO NOTHING',
  update: 'UPDATE T SET sets | UPDATE T t SET sets where | UPDATE T AS t SET sets FROM from where | UPDATE T portion SET sets',
  delete:
    'DELETE FROM T | DELETE FROM T where | DELETE FROM T AS t USING from where | DELETE FROM T portion where | DELETE FROM T.U',
  portion: "FOR PORTION OF VALID_TIME FROM '2024-01-01' TO NULL | FOR PORTION OF VALID_TIME FROM 1 TO '2025' AS t | FOR PORTION",
  sets: 'a = e | a = e , b = DEFAULT | ( a , b ) = ( e , e ) | ( a , b ) = ROW ( e , e ) | ( a , b ) = e | sets , c = EXCLUDED.c',
  from: 'U | U u , V | ( query ) s JOIN V ON e | U AS OF CURRENT',
  where: 'WHERE e | junk',
  returning: 'RETURNING * | RETURNING a , t.* , e AS x | RETURNING e returning',
  query: "SELECT e FROM T where | SELECT * FROM T AS OF '2024-01-01' | SELECT 1 | VALUES ( e )",
  e: "a | t.a | 1 | 'x' | $1 | $4 | e + e | e = e | EXCLUDED.a | ( SELECT a FROM T ) | EXISTS ( query ) | NULL | DEFAULT | NOT e | now()",
  junk: ") | SELECT | ' | RETURNING | ON | SET | DEFAULT | ;; | AS OF",
};

const statements = [
  "INSERT INTO T (a, b) VALUES (1, DEFAULT), ('x', $1) ON CONFLICT (a) DO UPDATE SET b = EXCLUDED.b WHERE T.b < 3 RETURNING *, a + 1 AS c;",
  'WITH s AS (SELECT a FROM U) UPDATE T AS t SET (a, b) = (s.a, NULL), c = $2 FROM s WHERE s.a = t.a RETURNING t.*, s.a',
  'DELETE FROM T USING U u JOIN V ON u.a = V.a WHERE T.a = u.a AND T.b IN (SELECT b FROM W) RETURNING a',
  "PURPOSE 'p' INSERT INTO T SELECT * FROM U AS OF SYSTEM TIME '2024-01-01' WHERE a LIKE 'x%' ON CONFLICT DO NOTHING",
  "UPDATE T FOR PORTION OF VALID_TIME FROM '2024-01-01' TO NULL SET a = 1 WHERE b = 2",
];

const hostile = [
  `INSERT INTO T VALUES ${'(1), '.repeat(3000)}(1)`,
  `INSERT INTO T (${'a, '.repeat(3000)}b) VALUES (1)`,
  `UPDATE T SET a = ${'('.repeat(3000)}`,
  `UPDATE T SET ${'a = 1, '.repeat(2000)}b = 2`,
  `DELETE FROM T WHERE ${'NOT '.repeat(3000)}a`,
  `INSERT INTO T ${'('.repeat(3000)}SELECT 1`,
  `WITH ${'c AS (SELECT 1), '.repeat(500)}d AS (SELECT 2) DELETE FROM T`,
];
