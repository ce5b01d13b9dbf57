/**
 * Questions of the Postgres catalogue, from any bytes and grown from a grammar: they are parsed in the wide dialect and bound over the
 * relations that nobody stores. What must hold: nothing but a ServiceError is thrown, and each column of the plan has a type.
 */
import { assert, ServiceError } from '../../../src/errors.ts';
import { bindQuery } from '../../../src/planner/binding/binder.ts';
import { lexStatement, untyped } from '../../../src/planner/languages/sql-lexer.ts';
import { parseLexed } from '../../../src/planner/languages/sql-parser.ts';
import { catalogueFunctions } from '../../../src/planner/system-catalogue/catalogue-calls.ts';
import { virtualNode } from '../../../src/planner/system-catalogue/relation-source.ts';
import { grown } from '../grown.ts';

export const name = 'catalogue-question';

export function run(bytes: Uint8Array): void {
  check(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes));
  check(grown(alternatives, bytes));
}

export function seeds(): Uint8Array[] {
  return questions.map((text) => new TextEncoder().encode(text));
}

const catalog = { types: () => [], type: () => undefined, ontologyVersion: 1 } as unknown as Parameters<
  typeof bindQuery
>[0]['catalog'];

function check(text: string): void {
  try {
    const { statement, parameters } = parseLexed(
      lexStatement(text, () => untyped),
      'wide',
    );
    if (statement.kind !== 'query') return;
    const { root, visible } = bindQuery({
      query: statement.query,
      withProvenance: false,
      dialect: 'wide',
      literals: parameters,
      catalog,
      virtual: virtualNode,
      catalogue: catalogueFunctions,
    });
    for (const { type } of root.columns.slice(0, visible)) assert(typeof type === 'string', 'each column has a type');
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    assert(error.code !== 'REL_INTERNAL', 'nothing that a client asks is an internal error');
  }
}

/** The first alternative of each rule ends. */
const alternatives: Readonly<Record<string, string>> = {
  statement: 'query | query | query ; | query junk',
  query:
    'select | select | select tail | WITH w AS ( query ) SELECT * FROM w | WITH RECURSIVE w ( oid ) AS ( query UNION query ) SELECT * FROM w | ( WITH RECURSIVE w AS ( query UNION ALL SELECT c FROM w , pg_class k ) SELECT * FROM w ) | select set select | VALUES ( list ) | ( query ) set ( query )',
  set: 'UNION | UNION ALL | INTERSECT | EXCEPT',
  select:
    'SELECT items FROM source | SELECT items FROM source where | SELECT e | SELECT DISTINCT items FROM source where | SELECT DISTINCT ON ( e ) items FROM source | SELECT c , COUNT(*) , agg FROM source where GROUP BY c | SELECT agg FROM source where HAVING e',
  items: '* | e | e AS x | c , e | items , items | k.* | row_number() OVER ( PARTITION BY e ORDER BY e )',
  agg: 'array_agg ( e ORDER BY e DESC ) | string_agg ( e , l ) | max ( e ) | min ( c ) | bool_or ( e ) | count ( DISTINCT e ) | sum ( e ) FILTER ( WHERE e )',
  source:
    'pg_class k | pg_attribute k | pg_index k | pg_type k | pg_namespace | pg_catalog.pg_proc k | information_schema.columns k | w | ( query ) k | source join source ON e | source CROSS JOIN LATERAL ( SELECT unnest ( c ) ) u ( a ) | source , source | generate_series ( l , l ) k | unnest ( e ) WITH ORDINALITY k ( a , b ) | source JOIN source USING ( oid )',
  join: 'JOIN | LEFT JOIN | RIGHT JOIN | INNER JOIN | FULL JOIN',
  where: 'WHERE e | WHERE c = l AND e',
  tail: 'ORDER BY 1 | ORDER BY e DESC NULLS LAST | LIMIT l | OFFSET 1 LIMIT 2 | ORDER BY c , x LIMIT 3',
  list: 'l | e | e , list',
  c: 'oid | relname | k.relname | k.oid | attname | indkey | k.indkey | attnum | typname | relkind | nspname | x | a | "q""q"',
  l: "'Item' | 1 | 0 | NULL | '{1,2}' | '{a,b}' | 'r' | '1048576' | TRUE | $1 | $2 | $3 | $9 | E'a\\nb' | 1.5 | -3 | 99999999999 | '\"Item\"'",
  e: "c | l | e op e | ( e ) | NOT e | - e | e IS NULL | e IS NOT TRUE | e IS DISTINCT FROM e | e IN ( list ) | e NOT IN ( query ) | e BETWEEN e AND e | e LIKE l | e NOT ILIKE '%x_' | CASE e WHEN e THEN e ELSE e END | CASE WHEN e THEN e END | e = ANY ( e ) | e <> ALL ( query ) | e OPERATOR(pg_catalog.~) '^(Item)$' COLLATE pg_catalog.default | EXISTS ( query ) | ( query ) | ARRAY ( query ) | ARRAY [ list ] | e [ e ] | ( e ) . n | e :: type | CAST ( e AS type ) | f ( list ) | pg_catalog.f ( e ) | f ( ) | trim ( both l from e ) | substring ( e from l for l ) | ( e , e ) = ( e , e )",
  f: 'format_type | pg_get_userbyid | pg_get_expr | pg_get_indexdef | pg_get_constraintdef | obj_description | current_schemas | version | has_table_privilege | array_to_string | array_upper | unnest | generate_subscripts | information_schema._pg_expandarray | coalesce | nullif | greatest | format | concat | quote_ident | pg_size_pretty | pg_table_is_visible | pg_get_function_arguments | to_regclass | current_setting | lower | left | split_part | pg_typeof | max | nothing_known',
  type: 'text | int | oid | regclass | regtype | bool | "char" | name | int2[] | text[] | pg_catalog.regclass | pg_catalog.text | float8 | numeric | varchar ( 10 ) | regnamespace | regproc | timestamptz | character varying',
  op: '= | <> | != | < | >= | + | - | * | / | % | AND | OR | || | ~ | !~* | & | @> | && | ~~ | ->',
  junk: ') | SELECT | \' | " | -- | /* | ;; | AS | \u00e9 | ( | FROM FROM | FOR UPDATE | WINDOW w',
};

const questions = [
  "SELECT n.nspname as \"Schema\", CASE c.relkind WHEN 'r' THEN 'table' END FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r','') AND n.nspname !~ '^pg_toast' ORDER BY 1,2;",
  "SELECT a.attname, (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid, true) FROM pg_catalog.pg_attrdef d WHERE d.adrelid = a.attrelid) FROM pg_catalog.pg_attribute a WHERE a.attrelid = '1048576' AND NOT a.attisdropped",
  'SELECT (k).n, (k).x FROM (SELECT information_schema._pg_expandarray(i.indkey) AS k FROM pg_index i) s',
  'SELECT version(), current_schema(), $1::text',
  `SELECT ${'('.repeat(3000)}version()`,
  `SELECT ${'NOT '.repeat(3000)}version()`,
  `SELECT ${'('.repeat(40)}1${' BETWEEN 0 AND 1)'.repeat(40)}`,
  `SELECT ${'CASE '.repeat(40)}true${' WHEN true THEN true WHEN false THEN false END'.repeat(40)}`,
  `SELECT ${'('.repeat(40)}true${" = ANY ('{t,f}'))".repeat(40)}`,
  `SELECT 1 FROM pg_class WHERE ${'oid = 1 AND '.repeat(1500)}true`,
  `SELECT ${"'a' || ".repeat(3000)}version()`,
  `SELECT * FROM ${'pg_attribute, '.repeat(25)}pg_attribute`,
  `SELECT '${'%a'.repeat(400)}' LIKE '${'%a'.repeat(400)}', version()`,
  `SELECT ${'ARRAY['.repeat(100)}1`,
  `SELECT * FROM ${'('.repeat(200)}pg_class`,
];
