/**
 * Statements of the columnar doors and rows behind them, as any bytes. What must hold: nothing but a ServiceError is thrown, an INSERT
 * whose text comes in two pieces is the same statement, and rows become lines that one reader takes, or a refusal.
 */
import { isDeepStrictEqual } from 'node:util';
import { assert, ServiceError } from '../../../src/errors.ts';
import { inputColumns, inputForm } from '../../../src/doors/columnar/insert-formats.ts';
import { beginsInsert, type ColumnarStatement, statementOf } from '../../../src/doors/columnar/statement.ts';

export const name = 'columnar-statement';

const facts = {
  database: 'default',
  user: 'me',
  parameters: new Map([
    ['n', '7'],
    ['s', 'a\\tb'],
    ['t', '2024-05-01 10:00:00'],
  ]),
};
const columns = [
  { name: 'a', type: 'integer' },
  { name: 'b', type: 'timestamp' },
] as const;

export function run(bytes: Uint8Array): void {
  const text = Buffer.from(bytes).toString();
  const whole = read(text);
  if (whole === null || whole.kind !== 'insert') return;
  for (const at of [1, whole.dataAt >> 1, whole.dataAt - 1, whole.dataAt]) {
    const begun = text.slice(0, at);
    assert(beginsInsert(begun) !== false, 'an INSERT is told from its first letters');
    const early = statementOf(begun, facts, false);
    assert(early === null || isDeepStrictEqual(early, whole), 'an INSERT in pieces is the same');
  }
  rows(whole.format!, text.slice(whole.dataAt));
}

function read(text: string, isWhole = true): ColumnarStatement | null {
  try {
    beginsInsert(text);
    return statementOf(text, facts, isWhole);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return null;
  }
}

function rows(format: string, text: string): void {
  try {
    const { converter, needsColumns } = inputForm(format);
    inputColumns(['a', 'b'], null, needsColumns);
    converter(columns)?.(text);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
  }
}

export function seeds(): Uint8Array[] {
  return [
    'SELECT `a`, count() FROM default.T WHERE a == {n:Int64} AND s = {s:String} AND b > {t:DateTime64(9)} SETTINGS max_threads = 1 FORMAT JSON;',
    'WITH x AS (SELECT 1) SELECT \'it\\\'s\', "q""q", 0x1f -- c\n /* d */ FROM x',
    "SHOW TABLES FROM default NOT LIKE 'a%'",
    'DESCRIBE TABLE `T`',
    'EXISTS DATABASE x',
    "KILL QUERY WHERE query_id = 'a' ASYNC",
    "SET annals_as_of = '2024-05-01', max_threads = -1",
    'INSERT INTO T (a, b) FORMAT JSONEachRow\n{"a":"9223372036854775807","b":"2024-05-01 10:00:00.123456789"}\n',
    'INSERT INTO T (a, b) FORMAT JSONCompactEachRow\n["1",null]\n[2,{"x":[1,"]"]}]\n',
    "INSERT INTO T (a, b) VALUES (1, 'x'), (-.5, NULL), ([1, 2], true);",
    'INSERT INTO T (a, b) FORMAT CSV\n1,"a ""b"", c"\n\\N,\n',
    'INSERT INTO T FORMAT CSVWithNames\n"a","b"\n1,"2024-05-01 10:00:00"\n',
    'INSERT INTO T (a, b) SETTINGS async_insert = 1 FORMAT TSV\n1\ta\\tb\n\\N\t\n',
  ].map((text) => Buffer.from(text));
}
