/**
 * The queries of a write: the rows that it changes with the values that it sets, and, for ON CONFLICT, the existing rows. They
 * run as any query does; names that begin with a NUL are reserved, since no text can contain them.
 */
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { type ColumnType, systemColumns } from '../../log/values/value.ts';
import type {
  ColumnRef,
  CommonTable,
  Expression,
  GivenTable,
  Location,
  ProjectionItem,
  Query,
  QueryBody,
  Select,
  Source,
} from '../syntax/statement.ts';
import type {
  Conflict,
  DeleteStatement,
  InsertStatement,
  UpdateStatement,
  WriteStatement,
  WriteTarget,
} from '../syntax/write-statement.ts';
import { columnRefsIn, withColumns } from './column-refs.ts';

/** Columns of other tables that RETURNING names. */
export const capturedName = (index: number): string => `\0captured ${index}`;
/** A mark in front of the columns of `table.*`. */
export const starOf = (table: string): string => `\0star ${table}`;
const keyColumn = '\0key';
const rowColumn = '\0row';

/** By statement: a repeated one has the same query. */
const updating = new WeakMap<UpdateStatement, { withoutPath: Query | null; withPath: Query | null }>();

const inserting = new WeakMap<InsertStatement, { readonly without: string; readonly query: Query }>();

/**
 * The rows of an INSERT. Where it names no columns, `*` brings those that the target has along, not the store's own ones of each
 * row, so that `INSERT INTO a SELECT * FROM b` copies rows between types of the same columns.
 */
export function insertedRows(statement: InsertStatement, { properties }: TypeDefinition): Query {
  const { columns, source } = statement;
  if (columns !== null) return source;
  const without = Object.keys(systemColumns).filter((name) => !Object.hasOwn(properties, name));
  const key = without.join();
  let known = inserting.get(statement);
  if (known?.without !== key)
    inserting.set(statement, (known = { without: key, query: { ...source, body: starsWithout(source.body, without) } }));
  return known.query;
}

function starsWithout(body: QueryBody, without: readonly string[]): QueryBody {
  if (body.kind !== 'select')
    return { ...body, left: starsWithout(body.left, without), right: starsWithout(body.right, without) };
  return { ...body, projection: body.projection.map((item) => (item.kind === 'star' ? { ...item, without } : item)) };
}

/**
 * Key of each row, bounds of each where a portion of its time is written, then the values of SET, then the columns of other
 * tables for RETURNING.
 */
export function updatedRows(statement: UpdateStatement, path: string | null): Query {
  let known = updating.get(statement);
  if (known === undefined) updating.set(statement, (known = { withoutPath: null, withPath: null }));
  if (path === null) return (known.withoutPath ??= updatedQuery(statement, path));
  return (known.withPath ??= updatedQuery(statement, path));
}

function updatedQuery(statement: UpdateStatement, path: string | null): Query {
  const others = namedBeside(statement);
  const { target, set, from, where, returning } = statement;
  const projection = [
    keyOf(target),
    ...boundsOf(statement),
    ...set.map(({ value }, i) => item(value, `\0set ${i}`)),
    ...others.map((reference, i) => item(reference, capturedName(i))),
    ...starsBeside(returning ?? [], target, from).flatMap((table): ProjectionItem[] => [
      item(nullOf(statement), starOf(table)),
      { kind: 'star', table, location: target.location },
    ]),
  ];
  return changedRows(statement, projection, from, both(where, withinPortion(statement)), path);
}

/** Key of each row, then what RETURNING says of it. */
export function deletedRows(statement: DeleteStatement, path: string | null): Query {
  const { target, using, where, returning } = statement;
  return changedRows(statement, [keyOf(target), ...(returning ?? [])], using, both(where, withinPortion(statement)), path);
}

/** Columns in front of the values of SET: the valid time of rows of which a portion is written. */
function boundsOf({ target, portion }: UpdateStatement): ProjectionItem[] {
  if (portion === null) return [];
  return (['valid_from', 'valid_to'] as const).map((name) => item(column(target.name, name, target.location), `\0${name}`));
}

/** Rows that hold at some instant of the portion. */
function withinPortion({ target, portion }: UpdateStatement | DeleteStatement): Expression | null {
  if (portion === null) return null;
  const { location } = portion;
  const targetColumn = (name: string): Expression => column(target.name, name, location);
  const lessThan = (left: Expression, right: Expression): Expression => ({ kind: 'binary', op: '<', left, right, location });
  const begins = lessThan({ kind: 'literal', ...portion.from }, targetColumn('valid_to'));
  const ends = portion.to === null ? null : lessThan(targetColumn('valid_from'), { kind: 'literal', ...portion.to });
  return both(both(ends, begins), lessThan(targetColumn('valid_from'), targetColumn('valid_to')));
}

function changedRows(
  { target, with: common, nullSlot }: WriteStatement,
  projection: readonly ProjectionItem[],
  otherSource: Source | null,
  where: Expression | null,
  path: string | null,
): Query {
  const { location } = target;
  const own = tableOf(target);
  const from: Source =
    otherSource === null ? own : { kind: 'join', type: 'inner', left: own, right: otherSource, on: null, using: null, location };
  return selectOf({ projection, from, where: both(where, ownPath(target, nullSlot, path)) }, common, location);
}

/** Columns of the tables beside the target that RETURNING names, and those of which nothing tells whose they are. */
export function namedBeside({ returning, from, target }: UpdateStatement): readonly ColumnRef[] {
  if (from === null || returning === null) return [];
  return columnRefsIn(returning).filter(({ table }) => table !== target.name);
}

/** Tables beside the target of which RETURNING wants every column. */
function starsBeside(returning: readonly ProjectionItem[], target: WriteTarget, from: Source | null): readonly string[] {
  if (from === null) return [];
  const stars = returning.flatMap((each) => (each.kind === 'star' ? [each.table] : []));
  const named = stars.includes(null) ? namesOf(from) : [];
  return [...new Set([...named, ...stars.filter((table) => table !== null && table !== target.name)])] as string[];
}

export function namesOf(source: Source): readonly string[] {
  switch (source.kind) {
    case 'join':
      return [...namesOf(source.left), ...namesOf(source.right)];
    case 'table':
      return [source.alias ?? source.name];
    case 'subquery':
    case 'function':
      return source.alias === null ? [] : [source.alias];
    default:
      return [];
  }
}

/** Rows of an INSERT, by their number: those whose key is there already, with what DO UPDATE sets and whether it does. */
export function conflictingRows(
  { target, with: common, nullSlot }: WriteStatement,
  conflict: Extract<Conflict, { do: 'update' }>,
  excluded: readonly { readonly name: string; readonly type: ColumnType }[],
  keys: number,
  path: string | null,
): Query {
  const { set, where, location } = withColumns(conflict, (reference) =>
    reference.table !== null && /^excluded$/i.test(reference.table) ? { ...reference, table: 'excluded' } : reference,
  );
  const own = [
    { name: rowColumn, type: 'integer' },
    { name: keyColumn, type: 'string' },
  ] as const;
  const given: GivenTable = { name: 'excluded', columns: [...own, ...excluded], apart: true };
  const known: Expression = {
    kind: 'in-list',
    operand: column(target.name, '_pk', location),
    // The added literals stand behind the path.
    items: Array.from({ length: keys }, (_, i) => ({ kind: 'literal', slot: nullSlot + 2 + i, location })),
    negated: false,
    location,
  };
  const there = selectOf(
    {
      projection: [{ kind: 'star', table: null, location }],
      from: tableOf(target),
      where: both(known, ownPath(target, nullSlot, path)),
    },
    [],
    location,
  );
  const from: Source = {
    kind: 'join',
    type: 'inner',
    left: { kind: 'given', rows: excludedRows, tables: [given], location },
    right: { kind: 'subquery', query: there, alias: target.name, columns: [], location },
    on: {
      kind: 'binary',
      op: '=',
      left: column('excluded', keyColumn, location),
      right: column(target.name, '_pk', location),
      location,
    },
    using: null,
    location,
  };
  const isSet: Expression = where ?? { kind: 'is-null', operand: nullOf({ nullSlot, location }), negated: false, location };
  const projection = [
    item(column('excluded', rowColumn, location), rowColumn),
    item(isSet, '\0is set'),
    ...set.map(({ value }, i) => item(value, `\0set ${i}`)),
  ];
  return selectOf({ projection, from, where: null }, common, location);
}

/** Name under which rows that are to be inserted are given. */
export const excludedRows = 'excluded';

/** Any query as a table to be read from: all of its columns. */
export function readFrom(from: Source, projection: readonly ProjectionItem[], location: Location): Query {
  return selectOf({ projection, from, where: null }, [], location);
}

export function selectOf(
  parts: Pick<Select, 'projection' | 'from' | 'where'>,
  common: readonly CommonTable[],
  location: Location,
): Query {
  const rest = { distinct: false, groupBy: [], window: null, having: null, rankBy: [], compute: [] };
  const body: Select = { kind: 'select', ...rest, ...parts, location };
  return { with: common, body, asOf: null, orderBy: [], limit: null, offset: null, after: null, facets: [], location };
}

export function tableOf({ type, name, location }: WriteTarget): Source {
  return { kind: 'table', name: type, alias: name, location };
}

export function keyOf({ name, location }: WriteTarget): ProjectionItem {
  return item(column(name, '_pk', location), keyColumn);
}

/** Rows of other organisation paths are other rows, however their keys are written. */
export function ownPath({ name, location }: WriteTarget, nullSlot: number, path: string | null): Expression {
  const operand = column(name, 'namespace_path', location);
  if (path === null) return { kind: 'is-null', operand, negated: false, location };
  return { kind: 'binary', op: '=', left: operand, right: { kind: 'literal', slot: nullSlot + 1, location }, location };
}

export function both(left: Expression | null, right: Expression): Expression;
export function both(left: Expression | null, right: Expression | null): Expression | null;
export function both(left: Expression | null, right: Expression | null): Expression | null {
  return left === null || right === null ? (left ?? right) : { kind: 'binary', op: 'and', left, right, location: right.location };
}

export function nullOf({ nullSlot, location }: Pick<WriteStatement, 'nullSlot' | 'location'>): Expression {
  return { kind: 'literal', slot: nullSlot, location };
}

function column(table: string, name: string, location: Location): ColumnRef {
  return { kind: 'column', table, name, location };
}

export function item(expression: Expression, alias: string): ProjectionItem {
  return { kind: 'expression', expression, alias, location: expression.location };
}
