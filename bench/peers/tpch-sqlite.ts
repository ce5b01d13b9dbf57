/** TPC-H in SQLite: primary and foreign keys indexed, dates as text, and the questions in words that it knows. */
import { type MadeTable } from '../joins-data.ts';
import { tpchTables } from '../tpch.ts';

/** Columns of each index; the first of a table is its primary key. */
const keys: Readonly<Record<string, readonly string[]>> = {
  region: ['r_regionkey'],
  nation: ['n_nationkey', 'n_regionkey'],
  supplier: ['s_suppkey', 's_nationkey'],
  part: ['p_partkey'],
  partsupp: ['ps_partkey, ps_suppkey', 'ps_suppkey'],
  customer: ['c_custkey', 'c_nationkey'],
  orders: ['o_orderkey', 'o_custkey'],
  lineitem: ['l_orderkey', 'l_partkey, l_suppkey', 'l_suppkey'],
};

/** Makes and fills the tables. */
export function sqliteScript(csvOf: (table: MadeTable) => string): string {
  const types = { integer: 'INTEGER', number: 'REAL', string: 'TEXT', timestamp: 'TEXT' } as const;
  return tpchTables
    .map((table) => {
      const [primary, ...foreign] = keys[table.name]!;
      const columns = Object.entries(table.columns).map(
        ([name, type]) => `${name} ${types[type]}${name === primary && table.name !== 'lineitem' ? ' PRIMARY KEY' : ''}`,
      );
      const indexed = columns.some((column) => column.endsWith('PRIMARY KEY')) ? foreign : [primary!, ...foreign];
      const indexes = indexed.map((on, i) => `CREATE INDEX ${table.name}_${i} ON ${table.name} (${on});\n`);
      const create = `CREATE TABLE ${table.name} (${columns.join(', ')});\n`;
      return `${create}.mode csv\n.import ${csvOf(table)} ${table.name}\n${indexes.join('')}`;
    })
    .join('');
}

/** Dates are texts there, their arithmetic is done before; a derived table takes no list of columns. */
export function sqliteQuery(sql: string): string {
  return sql
    .replaceAll(
      /date '([\d-]+)' ([+-]) interval '(\d+)' (day|month|year)/g,
      (_, date: string, sign: string, n: string, unit: string) => quoted(later(date, Number(`${sign}${n}`), unit)),
    )
    .replaceAll(/date '([\d-]+)'/g, (_, date: string) => quoted(date))
    .replaceAll(/extract\(year from (\w+)\)/g, 'cast(substr($1, 1, 4) as integer)')
    .replaceAll(/substring\((\w+) from (\d+) for (\d+)\)/g, 'substr($1, $2, $3)')
    .replace('select c_custkey, count(o_orderkey) from customer', 'select c_custkey, count(o_orderkey) as c_count from customer')
    .replace('as c_orders (c_custkey, c_count)', 'as c_orders');
}

const quoted = (text: string): string => `'${text}'`;

function later(date: string, n: number, unit: string): string {
  const at = new Date(`${date}T00:00:00Z`);
  if (unit === 'day') at.setUTCDate(at.getUTCDate() + n);
  else if (unit === 'month') at.setUTCMonth(at.getUTCMonth() + n);
  else at.setUTCFullYear(at.getUTCFullYear() + n);
  return at.toISOString().slice(0, 10);
}
