/**
 * Trees as texts: in our dialect and in SQLite's. Where the two differ, and what is done about it:
 *
 * - integer / integer is a number here, an integer there: one operand is cast.
 * - NULLs sort last here, first there: ORDER BY says NULLS LAST.
 * - LIKE tells case apart here: the connection sets `case_sensitive_like`.
 * - Instants are quoted here, integers of nanoseconds there; INTERVAL is an integer there.
 * - AS OF stands once here; there it is the condition that defines it, on every table of the statement.
 * - Set operations: INTERSECT binds tighter here, all bind alike there: arms are nested as subqueries there.
 * - ANY and ALL are spelled out as EXISTS there, VALUES as SELECTs, functions as `calls.ts` says.
 * - Booleans are 0 and 1 there, sums of integers that leave 64 bits an error in both and integer products there a double,
 *   doubles are summed with compensation there: the generator keeps to values where none of this shows.
 */
import { FOREVER, formatInstant } from '../../../src/log/values/timestamp.ts';
import { calls } from './calls.ts';
import {
  type AsOfNode,
  type BodyNode,
  type Expr,
  type LiteralNode,
  outputsOf,
  type QueryNode,
  type SelectNode,
  type SourceNode,
} from './tree.ts';

const dayNs = 86_400_000_000_000n;

interface Context {
  readonly dialect: 'annals' | 'sqlite';
  /** What stands for a stored table; null for one that the statement itself names. */
  readonly table: (name: string) => string | null;
  readonly now: bigint;
}

export function ourText(query: QueryNode): string {
  return queryText(query, { dialect: 'annals', table: () => null, now: 0n });
}

/** `now` is the instant of the snapshot. */
export function sqliteText(query: QueryNode, now: bigint): string {
  return queryText(query, { dialect: 'sqlite', table: filtered(query.asOf, now), now });
}

/** Our dialect without AS OF: each table stands behind the condition that defines it. */
export function spelledOut(query: QueryNode, tables: ReadonlySet<string>, now: bigint): string {
  const table = filtered(query.asOf, now);
  return queryText(
    { ...query, asOf: null },
    { dialect: 'annals', table: (name) => (tables.has(name) ? table(name) : null), now: 0n },
  );
}

export function ourExpression(expression: Expr): string {
  return text(expression, { dialect: 'annals', table: () => null, now: 0n });
}

function filtered(asOf: AsOfNode | null, now: bigint): Context['table'] {
  if (asOf === null) return () => null;
  const at = (axis: 'valid' | 'system', ns: bigint) => `${axis}_from <= ${ns} AND ${axis}_to > ${ns}`;
  const condition = asOf.axis === 'current' ? `${at('valid', now)} AND ${at('system', now)}` : at(asOf.axis, asOf.instant);
  return (name) => `(SELECT * FROM ${name} WHERE ${condition})`;
}

function queryText(query: QueryNode, context: Context): string {
  const named = new Set(query.with.map(({ name }) => name));
  // A common table shadows a stored one, and its instants are decided where it reads stored ones.
  const inner: Context =
    named.size === 0 ? context : { ...context, table: (name) => (named.has(name) ? null : context.table(name)) };
  const parts: string[] = [];
  if (query.with.length > 0) {
    const recursive = query.with.some((common) => common.recursive);
    const tables = query.with.map(
      ({ name, columns, query: each }) =>
        `${name}${columns.length > 0 ? `(${columns.join(', ')})` : ''} AS (${queryText(each, inner)})`,
    );
    parts.push(`WITH ${recursive ? 'RECURSIVE ' : ''}${tables.join(', ')}`);
  }
  const asOf = context.dialect === 'annals' ? asOfText(query.asOf) : '';
  parts.push(bodyText(query.body, inner, asOf));
  if (query.orderBy.length > 0) {
    const last = context.dialect === 'sqlite' ? ' NULLS LAST' : '';
    const outputs = outputsOf(query.body).map(({ alias }) => alias);
    const items = query.orderBy.map(({ column, descending, nullsFirst, byPlace }) => {
      const key = byPlace === true ? outputs.indexOf(column) + 1 : column;
      return `${key}${descending ? ' DESC' : ''}${nullsFirst === true ? ' NULLS FIRST' : last}`;
    });
    parts.push(`ORDER BY ${items.join(', ')}`);
  }
  if (query.limit !== null) parts.push(`LIMIT ${query.limit}`);
  return parts.join(' ');
}

function asOfText(asOf: AsOfNode | null): string {
  if (asOf === null) return '';
  if (asOf.axis === 'current') return ' AS OF CURRENT';
  return ` AS OF ${asOf.axis === 'system' ? 'SYSTEM TIME ' : ''}'${formatInstant(asOf.instant)}'`;
}

/** AS OF stands behind the first FROM. */
function bodyText(body: BodyNode, context: Context, asOf: string): string {
  if (body.kind === 'select') return selectText(body, context, asOf);
  const op = body.op.toUpperCase();
  return `${armText(body.left, context, asOf)} ${op} ${armText(body.right, context, '')}`;
}

function armText(body: BodyNode, context: Context, asOf: string): string {
  const inner = bodyText(body, context, asOf);
  if (body.kind === 'select') return inner;
  return context.dialect === 'annals' ? `(${inner})` : `SELECT * FROM (${inner})`;
}

function selectText(select: SelectNode, context: Context, asOf: string): string {
  const items = select.items.map(({ expression, alias }) => `${text(expression, context)} AS ${alias}`);
  const parts = [`SELECT ${select.distinct ? 'DISTINCT ' : ''}${items.length > 0 ? items.join(', ') : '*'}`];
  parts.push(`FROM ${sourceText(select.from, context)}${asOf}`);
  if (select.where) parts.push(`WHERE ${text(select.where, context)}`);
  if (select.groupBy.length > 0)
    parts.push(`GROUP BY ${select.groupBy.map((each) => keyText(each, select, context)).join(', ')}`);
  if (select.having) parts.push(`HAVING ${text(select.having, context)}`);
  return parts.join(' ');
}

function keyText(key: Expr, { items, byPlace }: SelectNode, context: Context): string {
  const place = byPlace === true ? items.findIndex(({ expression }) => expression === key) + 1 : 0;
  return place > 0 ? String(place) : text(key, context);
}

function sourceText(source: SourceNode, context: Context): string {
  switch (source.kind) {
    case 'table': {
      const table = context.table(source.name) ?? source.name;
      return table === source.alias ? table : `${table} ${source.alias}`;
    }
    case 'subquery':
      return `(${queryText(source.query, context)}) ${source.alias}`;
    case 'values': {
      const { alias, columns, rows } = source;
      const cells = rows.map((row) => row.map((cell) => literalText(cell, context)));
      if (context.dialect === 'annals')
        return `(VALUES ${cells.map((row) => `(${row.join(', ')})`).join(', ')}) ${alias}(${columns.join(', ')})`;
      const selects = cells.map((row) => `SELECT ${row.map((cell, i) => `${cell} AS ${columns[i]!}`).join(', ')}`);
      return `(${selects.join(' UNION ALL ')}) ${alias}`;
    }
    case 'join': {
      const left = sourceText(source.left, context);
      if (source.using) {
        const right = sourceText(source.right, context);
        return source.using.length === 0
          ? `${left} CROSS JOIN ${right}`
          : `${left} ${source.type.toUpperCase()} JOIN ${right} USING (${source.using.join(', ')})`;
      }
      return `${left} ${source.type.toUpperCase()} JOIN ${sourceText(source.right, context)} ON ${text(source.on, context)}`;
    }
  }
}

function text(expression: Expr, context: Context): string {
  const of = (each: Expr): string => text(each, context);
  switch (expression.kind) {
    case 'column':
      return expression.table === null ? expression.name : `${expression.table}.${expression.name}`;
    case 'literal':
      return literalText(expression, context);
    case 'arithmetic': {
      const { op, left, right } = expression;
      const exact = op === '/' && context.dialect === 'sqlite';
      return `(${exact ? `CAST(${of(left)} AS REAL)` : of(left)} ${op} ${of(right)})`;
    }
    case 'negate':
      return `(- ${of(expression.operand)})`;
    case 'shift': {
      const { operand, days } = expression;
      const interval =
        context.dialect === 'annals' ? `INTERVAL '${Math.abs(days)} days'` : String(BigInt(Math.abs(days)) * dayNs);
      return `(${of(operand)} ${days < 0 ? '-' : '+'} ${interval})`;
    }
    case 'now':
      return context.dialect === 'annals' ? 'now()' : String(context.now);
    case 'compare':
      return `(${of(expression.left)} ${expression.op} ${of(expression.right)})`;
    case 'distinct-from': {
      const { left, right, negated } = expression;
      if (context.dialect === 'sqlite') return `(${of(left)} IS ${negated ? '' : 'NOT '}${of(right)})`;
      return `(${of(left)} IS ${not(expression)}DISTINCT FROM ${of(right)})`;
    }
    case 'row-compare':
      return `(${rowText(expression.left, of)} ${expression.op} ${rowText(expression.right, of)})`;
    case 'row-in': {
      const rows = expression.among.map(({ cells }) => rowText(cells, of)).join(', ');
      const list = context.dialect === 'sqlite' ? `VALUES ${rows}` : rows;
      return `(${rowText(expression.row, of)} ${not(expression)}IN (${list}))`;
    }
    case 'logic':
      return `(${of(expression.left)} ${expression.op.toUpperCase()} ${of(expression.right)})`;
    case 'not':
      return `(NOT ${of(expression.operand)})`;
    case 'is-null':
      return `(${of(expression.operand)} IS ${expression.negated ? 'NOT ' : ''}NULL)`;
    case 'in-list':
      return `(${of(expression.operand)} ${not(expression)}IN (${expression.items.map(of).join(', ')}))`;
    case 'in-query':
      return `(${of(expression.operand)} ${not(expression)}IN (${queryText(expression.query, context)}))`;
    case 'exists':
      return `(${not(expression)}EXISTS (${queryText(expression.query, context)}))`;
    case 'scalar-query':
      return `(${queryText(expression.query, context)})`;
    case 'quantified':
      return quantifiedText(expression, context);
    case 'call': {
      const { ours, theirs } = calls[expression.name]!;
      return (context.dialect === 'annals' ? ours : theirs)(expression.operands.map(of));
    }
    case 'window': {
      const { function: name, operand, partition, order, whole } = expression;
      const nulls = context.dialect === 'sqlite' ? ' NULLS LAST' : '';
      const parts = [
        ...(partition.length > 0 ? [`PARTITION BY ${partition.map(of).join(', ')}`] : []),
        ...(order.length > 0 ? [`ORDER BY ${order.map((each) => of(each) + nulls).join(', ')}`] : []),
        ...(whole ? ['ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING'] : []),
      ];
      const given = operand ? of(operand) : name === 'count' ? '*' : '';
      return `${name.toUpperCase()}(${given}) OVER (${parts.join(' ')})`;
    }
    case 'between':
      return `(${of(expression.operand)} ${not(expression)}BETWEEN ${of(expression.low)} AND ${of(expression.high)})`;
    case 'like':
      return `(${of(expression.operand)} ${not(expression)}LIKE ${of(expression.pattern)})`;
    case 'case': {
      const branches = expression.branches.map(({ when, result }) => `WHEN ${of(when)} THEN ${of(result)}`).join(' ');
      const operand = expression.operand ? ` ${of(expression.operand)}` : '';
      return `(CASE${operand} ${branches}${expression.otherwise ? ` ELSE ${of(expression.otherwise)}` : ''} END)`;
    }
    case 'aggregate': {
      const { operand, distinct, filter } = expression;
      const where = filter ? ` FILTER (WHERE ${of(filter)})` : '';
      return `${expression.function.toUpperCase()}(${distinct ? 'DISTINCT ' : ''}${operand ? of(operand) : '*'})${where}`;
    }
  }
}

const rowText = (cells: readonly Expr[], of: (each: Expr) => string): string => `(${cells.map(of).join(', ')})`;

const opposites = { '=': '!=', '!=': '=', '<': '>=', '<=': '>', '>': '<=', '>=': '<' } as const;

/** SQLite has neither ANY nor ALL: whether some row meets it, else whether one might. */
function quantifiedText(expression: Extract<Expr, { kind: 'quantified' }>, context: Context): string {
  const { op, all, operand, query } = expression;
  const of = text(operand, context);
  const rows = queryText(query, context);
  if (context.dialect === 'annals') return `(${of} ${op} ${all ? 'ALL' : 'ANY'} (${rows}))`;
  const { alias } = outputsOf(query.body)[0]!;
  const meets = `(${of} ${all ? opposites[op] : op} z.${alias})`;
  const some = (condition: string): string => `EXISTS (SELECT 1 FROM (${rows}) z WHERE ${condition})`;
  const any = `(CASE WHEN ${some(meets)} THEN TRUE WHEN ${some(`${meets} IS NULL`)} THEN NULL ELSE FALSE END)`;
  return all ? `(NOT ${any})` : any;
}

const not = ({ negated }: { readonly negated: boolean }): string => (negated ? 'NOT ' : '');

function literalText({ value, type }: LiteralNode, { dialect }: Context): string {
  if (value === null) return 'NULL';
  switch (typeof value) {
    case 'bigint':
      if (type === 'timestamp') {
        return dialect === 'annals' && value !== FOREVER ? `'${formatInstant(value)}'` : String(value);
      }
      return value < 0n ? `(${value})` : String(value);
    case 'number': {
      const written = Number.isInteger(value) ? value.toFixed(1) : String(value);
      return value < 0 ? `(${written})` : written;
    }
    case 'string':
      return `'${value.replaceAll("'", "''")}'`;
    case 'boolean':
      return value ? 'TRUE' : 'FALSE';
  }
}
