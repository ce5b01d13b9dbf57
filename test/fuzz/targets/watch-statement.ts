/**
 * The texts that standing queries and views are made of, on any bytes. What must hold: nothing but a ServiceError is thrown;
 * what is accepted names one type, and the query that is run from then on parses to the same kind of statement, over the
 * same type, with no line more or less than was given.
 */
import { assert, ServiceError } from '../../../src/errors.ts';
import { parseStatement } from '../../../src/planner/languages/sql-parser.ts';
import { parseView, tablesOf } from '../../../src/planner/continuous/views/view-definition.ts';
import { readWatchStatement } from '../../../src/planner/continuous/watch/watch-statement.ts';

export const name = 'watch-statement';

export function seeds(): Uint8Array[] {
  const encoder = new TextEncoder();
  return texts.map((text) => encoder.encode(text));
}

export function run(bytes: Uint8Array): void {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
  refusing(() => {
    const { type, sql, asked } = readWatchStatement(text);
    assert(asked.length === text.length && asked.split('\n').length === text.split('\n').length, 'places stay as they are');
    const { statement } = parseStatement(sql);
    assert(statement.kind === 'query', 'what is run is a query');
    const tables = tablesOf(statement.query);
    assert(tables?.size === 1 && tables.has(type), 'over the type that was named');
    const { body } = statement.query;
    const first = body.kind === 'select' ? body.projection[0] : undefined;
    assert(first?.kind === 'expression' && first.alias === '#system_from', 'its first column is the system_from');
  });
  refusing(() => {
    const { query } = parseView(text);
    tablesOf(query);
  });
}

function refusing(read: () => void): void {
  try {
    read();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
  }
}

const texts = [
  "WATCH PURPOSE 'p' SELECT * FROM T WHERE a = 1",
  "PURPOSE 'p' WATCH SELECT a, b + 1 AS c FROM T AS OF '2024-01-01' WHERE a LIKE 'x%'",
  "watch purpose 'p'\n  select t.a -- why\n  from T t where not (a in (1, 2)) or b is null;",
  'SELECT "#system_from" FROM "T"',
  "WATCH PURPOSE 'SELECT' SELECT 'SELECT FROM' AS x FROM T",
  '/* SELECT */ WATCH (SELECT a FROM T)',
  'SELECT city, COUNT(*) AS n FROM T GROUP BY city',
  'WITH x AS (SELECT a FROM T) SELECT * FROM x UNION SELECT b FROM U',
  'WATCH SELECT MAX(a) FROM T',
  'SELECT a FROM T WHERE a < now() LIMIT 3',
  'SELECT LOOKUP t(a) -> v FROM T',
];
