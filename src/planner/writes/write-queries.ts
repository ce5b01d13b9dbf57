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
const updateQueries = new WeakMap<UpdateStatement, { withoutPath: Query | null; withPath: Query | null }>();

const insertQueries = new WeakMap<InsertStatement, { readonly without: string; readonly query: Query }>();

/**
 * The rows of an INSERT. Where it names no columns, `*` brings those that the target has along, not the store's own ones of each
 * row, so that `INSERT INTO a SELECT * FROM b` copies rows between types of the same columns.
 */
export function insertedRows(statement: InsertStatement, { properties }: TypeDefinition): Query {
  const { columns, source } = statement;
  if (columns !== null) return source;
  const systemNames = Object.keys(systemColumns).filter((name) => !Object.hasOwn(properties, name));
  const withoutKey = systemNames.join();
  let knownInsert = insertQueries.get(statement);
  if (knownInsert?.without !== withoutKey)
    insertQueries.set(
      statement,
      (knownInsert = { without: withoutKey, query: { ...source, body: starsWithout(source.body, systemNames) } }),
    );
  return knownInsert.query;
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
  let knownUpdate = updateQueries.get(statement);
  if (knownUpdate === undefined) updateQueries.set(statement, (knownUpdate = { withoutPath: null, withPath: null }));
  if (path === null) return (knownUpdate.withoutPath ??= updatedQuery(statement, path));
  return (knownUpdate.withPath ??= updatedQuery(statement, path));
}

function updatedQuery(statement: UpdateStatement, path: string | null): Query {
  const besideRefs = namedBeside(statement);
  const { target, set, from, where, returning } = statement;
  const updatedProjection = [
    keyOf(target),
    ...portionBoundsOf(statement),
    ...set.map(({ value }, i) => item(value, `\0set ${i}`)),
    ...besideRefs.map((reference, i) => item(reference, capturedName(i))),
    ...starTablesBeside(returning ?? [], target, from).flatMap((table): ProjectionItem[] => [
      item(nullOf(statement), starOf(table)),
      { kind: 'star', table, location: target.location },
    ]),
  ];
  return changedRowsQuery(statement, updatedProjection, from, both(where, isWithinPortion(statement)), path);
}

/** Key of each row, then what RETURNING says of it. */
export function deletedRows(statement: DeleteStatement, path: string | null): Query {
  const { target, using, where, returning } = statement;
  return changedRowsQuery(statement, [keyOf(target), ...(returning ?? [])], using, both(where, isWithinPortion(statement)), path);
}

/** Columns in front of the values of SET: the valid time of rows of which a portion is written. */
function portionBoundsOf({ target, portion }: UpdateStatement): ProjectionItem[] {
  if (portion === null) return [];
  return (['valid_from', 'valid_to'] as const).map((name) => item(tableColumn(target.name, name, target.location), `\0${name}`));
}

/** Rows that hold at some instant of the portion. */
function isWithinPortion({ target, portion }: UpdateStatement | DeleteStatement): Expression | null {
  if (portion === null) return null;
  const { location } = portion;
  const targetColumn = (name: string): Expression => tableColumn(target.name, name, location);
  const lessThan = (left: Expression, right: Expression): Expression => ({ kind: 'binary', op: '<', left, right, location });
  const beginsBefore = lessThan({ kind: 'literal', ...portion.from }, targetColumn('valid_to'));
  const endsAfter = portion.to === null ? null : lessThan(targetColumn('valid_from'), { kind: 'literal', ...portion.to });
  return both(both(endsAfter, beginsBefore), lessThan(targetColumn('valid_from'), targetColumn('valid_to')));
}

function changedRowsQuery(
  { target, with: common, nullSlot }: WriteStatement,
  projection: readonly ProjectionItem[],
  otherSource: Source | null,
  where: Expression | null,
  path: string | null,
): Query {
  const { location } = target;
  const targetTable = tableOf(target);
  const changedSource: Source =
    otherSource === null
      ? targetTable
      : { kind: 'join', type: 'inner', left: targetTable, right: otherSource, on: null, using: null, location };
  return selectOf({ projection, from: changedSource, where: both(where, ownPath(target, nullSlot, path)) }, common, location);
}

/** Columns of the tables beside the target that RETURNING names, and those of which nothing tells whose they are. */
export function namedBeside({ returning, from, target }: UpdateStatement): readonly ColumnRef[] {
  if (from === null || returning === null) return [];
  return columnRefsIn(returning).filter(({ table }) => table !== target.name);
}

/** Tables beside the target of which RETURNING wants every column. */
function starTablesBeside(returning: readonly ProjectionItem[], target: WriteTarget, from: Source | null): readonly string[] {
  if (from === null) return [];
  const starTables = returning.flatMap((each) => (each.kind === 'star' ? [each.table] : []));
  const besideNames = starTables.includes(null) ? namesOf(from) : [];
  return [...new Set([...besideNames, ...starTables.filter((table) => table !== null && table !== target.name)])] as string[];
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
  excludedColumns: readonly { readonly name: string; readonly type: ColumnType }[],
  keyCount: number,
  path: string | null,
): Query {
  const { set, where, location } = withColumns(conflict, (reference) =>
    reference.table !== null && /^excluded$/i.test(reference.table) ? { ...reference, table: 'excluded' } : reference,
  );
  const rowNumberColumns = [
    { name: rowColumn, type: 'integer' },
    { name: keyColumn, type: 'string' },
  ] as const;
  const excludedTable: GivenTable = { name: 'excluded', columns: [...rowNumberColumns, ...excludedColumns], apart: true };
  const knownKeys: Expression = {
    kind: 'in-list',
    operand: tableColumn(target.name, '_pk', location),
    // The added literals stand behind the path.
    items: Array.from({ length: keyCount }, (_, i) => ({ kind: 'literal', slot: nullSlot + 2 + i, location })),
    negated: false,
    location,
  };
  const conflictingTarget = selectOf(
    {
      projection: [{ kind: 'star', table: null, location }],
      from: tableOf(target),
      where: both(knownKeys, ownPath(target, nullSlot, path)),
    },
    [],
    location,
  );
  const conflictSource: Source = {
    kind: 'join',
    type: 'inner',
    left: { kind: 'given', rows: excludedRows, tables: [excludedTable], location },
    right: { kind: 'subquery', query: conflictingTarget, alias: target.name, columns: [], location },
    on: {
      kind: 'binary',
      op: '=',
      left: tableColumn('excluded', keyColumn, location),
      right: tableColumn(target.name, '_pk', location),
      location,
    },
    using: null,
    location,
  };
  const isConflictSet: Expression = where ?? {
    kind: 'is-null',
    operand: nullOf({ nullSlot, location }),
    negated: false,
    location,
  };
  const conflictProjection = [
    item(tableColumn('excluded', rowColumn, location), rowColumn),
    item(isConflictSet, '\0is set'),
    ...set.map(({ value }, i) => item(value, `\0set ${i}`)),
  ];
  return selectOf({ projection: conflictProjection, from: conflictSource, where: null }, common, location);
}

/** Name under which rows that are to be inserted are given. */
export const excludedRows = 'excluded';

/** Any query as a table to be read from: all of its columns. */
export function readFrom(from: Source, projection: readonly ProjectionItem[], location: Location): Query {
  return selectOf({ projection, from, where: null }, [], location);
}

export function selectOf(
  selectParts: Pick<Select, 'projection' | 'from' | 'where'>,
  common: readonly CommonTable[],
  location: Location,
): Query {
  const emptyClauses = { distinct: false, groupBy: [], window: null, having: null, rankBy: [], compute: [] };
  const selectBody: Select = { kind: 'select', ...emptyClauses, ...selectParts, location };
  return {
    with: common,
    body: selectBody,
    asOf: null,
    orderBy: [],
    limit: null,
    offset: null,
    after: null,
    facets: [],
    location,
  };
}

export function tableOf({ type, name, location }: WriteTarget): Source {
  return { kind: 'table', name: type, alias: name, location };
}

export function keyOf({ name, location }: WriteTarget): ProjectionItem {
  return item(tableColumn(name, '_pk', location), keyColumn);
}

/** Rows of other organisation paths are other rows, however their keys are written. */
export function ownPath({ name, location }: WriteTarget, nullSlot: number, path: string | null): Expression {
  const namespacePath = tableColumn(name, 'namespace_path', location);
  if (path === null) return { kind: 'is-null', operand: namespacePath, negated: false, location };
  return { kind: 'binary', op: '=', left: namespacePath, right: { kind: 'literal', slot: nullSlot + 1, location }, location };
}

export function both(left: Expression | null, right: Expression): Expression;
export function both(left: Expression | null, right: Expression | null): Expression | null;
export function both(left: Expression | null, right: Expression | null): Expression | null {
  return left === null || right === null ? (left ?? right) : { kind: 'binary', op: 'and', left, right, location: right.location };
}

export function nullOf({ nullSlot, location }: Pick<WriteStatement, 'nullSlot' | 'location'>): Expression {
  return { kind: 'literal', slot: nullSlot, location };
}

function tableColumn(table: string, name: string, location: Location): ColumnRef {
  return { kind: 'column', table, name, location };
}

export function item(expression: Expression, alias: string): ProjectionItem {
  return { kind: 'expression', expression, alias, location: expression.location };
}
