/**
 * Tables as values: `SELECT t` and `(t).a`; `row_to_json(t)`, `to_jsonb(t)`, `json_agg(t)`, `count(t)` take an object of the columns of t.
 * Each is NULL where an outer join found no row of it.
 */
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { systemColumns } from '../../log/values/value.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Expression, Location, Select, Source } from '../syntax/statement.ts';
import type { Scope, ScopeTable } from './scope.ts';

/** The function that makes the object which a call takes, by the call; PostgreSQL writes json and jsonb differently. */
const rowMakers: ReadonlyMap<string, string> = new Map([
  ['ROW_TO_JSON', '_ROW_TO_JSON'],
  ['TO_JSON', '_ROW_TO_JSON'],
  ['TO_JSONB', 'JSONB_BUILD_OBJECT'],
  ['json_agg', '_ROW_TO_JSON'],
  ['count', '_ROW_TO_JSON'],
]);

interface RowScope {
  readonly scope: Scope;
  typeOf(name: string): TypeDefinition | undefined;
}

export function withWholeRows(select: Select, around: RowScope): Select {
  const replaceRows = <T>(tree: T): T => replaceSource(tree, select.from, around);
  const projection = replaceRows(withRowNames(select.projection, around));
  const having = replaceRows(select.having);
  const where = replaceRows(select.where);
  const isSame = projection === select.projection && having === select.having && where === select.where;
  return isSame ? select : { ...select, projection, having, where };
}

/** A column of rows is named as its table. */
function withRowNames(projection: Select['projection'], around: RowScope): Select['projection'] {
  const isUnnamedRow = (item: Select['projection'][number]): boolean =>
    item.kind === 'expression' && item.alias === null && tableNamed(item.expression, around) !== undefined;
  if (!projection.some(isUnnamedRow)) return projection;
  return projection.map((item) =>
    isUnnamedRow(item) && item.kind === 'expression' && item.expression.kind === 'column'
      ? { ...item, alias: item.expression.name }
      : item,
  );
}

/** Trees are plain data. Queries within have tables of their own. */
function replaceSource<T>(tree: T, fromSource: Source, around: RowScope): T {
  if (typeof tree !== 'object' || tree === null) return tree;
  if (Array.isArray(tree)) {
    const replacedItems = tree.map((item: unknown) => replaceSource(item, fromSource, around));
    return replacedItems.every((item, i) => item === tree[i]) ? tree : (replacedItems as T);
  }
  const node = tree as { readonly kind?: unknown };
  if (node.kind === 'literal' || node.kind === 'select' || 'body' in node) return tree;
  const rowOrNode = wholeRowOf(node as Expression, fromSource, around) ?? node;
  let replacedCopy: Record<string, unknown> | null = null;
  for (const [name, treeMember] of Object.entries(rowOrNode)) {
    if (name === 'location') continue;
    const replacedValue: unknown = replaceSource(treeMember, fromSource, around);
    if (replacedValue !== treeMember) (replacedCopy ??= { ...rowOrNode })[name] = replacedValue;
  }
  return (replacedCopy ?? rowOrNode) as T;
}

function wholeRowOf(expression: Expression, fromSource: Source, around: RowScope): Expression | null {
  if (expression.kind === 'call') {
    const [rowArgument, ...moreArguments] = expression.arguments;
    if (rowArgument === undefined || moreArguments.length > 0) return null;
    const { value: rowValue } = rowArgument;
    if (expression.name.startsWith('.')) {
      const rowTable = tableNamed(rowValue, around);
      return rowTable ? { ...keyColumnOf(rowTable, rowValue.location), name: expression.name.slice(1) } : null;
    }
    const rowMaker = rowMakers.get(expression.name);
    if (rowMaker === undefined) return null;
    return rowValue.kind === 'row'
      ? jsonObjectOf(
          rowValue.items.map((item, i) => [`f${i + 1}`, item]),
          rowMaker,
          rowValue.location,
        )
      : (withinQuery(expression, rowValue) ?? rowOfTable(rowValue, rowMaker, fromSource, around));
  }
  if (expression.kind === 'is-null') {
    const { operand, negated, location } = expression;
    const rowTable = tableNamed(operand, around);
    if (rowTable === undefined) return null;
    const nullTests = shownNames(rowTable, around.typeOf).map((name): Expression => {
      return { kind: 'is-null', operand: { ...keyColumnOf(rowTable, location), name }, negated, location };
    });
    return nullTests.reduce((left, right): Expression => ({ kind: 'binary', op: 'and', left, right, location }));
  }
  if (expression.kind === 'column') return rowOfTable(expression, null, fromSource, around);
  if (expression.kind !== 'aggregate' || expression.operand === null) return null;
  const maker = rowMakers.get(expression.function);
  const operand = maker === undefined ? null : rowOfTable(expression.operand, maker, fromSource, around);
  return operand && { ...expression, operand };
}

/** `row_to_json((SELECT e FROM … e))`: the call stands where the row is known. */
function withinQuery(call: Extract<Expression, { kind: 'call' }>, value: Expression): Expression | null {
  if (value.kind !== 'scalar-query' || value.query.body.kind !== 'select') return null;
  const { body } = value.query;
  const [queryItem] = body.projection;
  if (body.projection.length !== 1 || queryItem?.kind !== 'expression' || queryItem.expression.kind !== 'column') return null;
  const expression: Expression = { ...call, arguments: [{ name: null, value: queryItem.expression }] };
  return { ...value, query: { ...value.query, body: { ...body, projection: [{ ...queryItem, expression }] } } };
}

/** The table whose rows an expression names. */
function tableNamed(expression: Expression, { scope }: RowScope): ScopeTable | undefined {
  if (expression.kind !== 'column' || expression.table !== null || scope.knows(expression)) return undefined;
  const namedTable = scope.tables.find(({ name }) => name === expression.name);
  return namedTable?.isValue === true ? undefined : namedTable;
}

const keyColumnOf = (table: ScopeTable, location: Location): Extract<Expression, { kind: 'column' }> => ({
  kind: 'column',
  table: table.name,
  name: '_pk',
  quoted: true,
  location,
});

function jsonObjectOf(
  members: readonly (readonly [name: string, value: Expression])[],
  maker: string,
  location: Location,
): Expression {
  const memberPairs = members.flatMap(([name, value]): Expression[] => [{ kind: 'constant', cell: name, location }, value]);
  return { kind: 'call', name: maker, arguments: memberPairs.map((value) => ({ name: null, value })), location };
}

/** Without a maker a record. */
function rowOfTable(expression: Expression, maker: string | null, fromSource: Source, around: RowScope): Expression | null {
  const rowTable = tableNamed(expression, around);
  if (rowTable === undefined) return null;
  const { location } = expression;
  const rowColumns = shownNames(rowTable, around.typeOf).map(
    (name): Expression => ({ ...keyColumnOf(rowTable, location), name }),
  );
  const rowNames = shownNames(rowTable, around.typeOf);
  const rowObject: Expression =
    maker === null
      ? { kind: 'row', items: rowColumns, location }
      : jsonObjectOf(
          rowColumns.map((column, i) => [rowNames[i]!, column]),
          maker,
          location,
        );
  if (!hasOuterJoin(fromSource)) return rowObject;
  if (rowTable.type === null) throw unknownRow(location);
  const isAbsent: Expression = { kind: 'is-null', operand: keyColumnOf(rowTable, location), negated: false, location };
  // oxlint-disable-next-line no-thenable -- the word of the language; nobody awaits a branch
  const absentBranches = [{ when: isAbsent, then: { kind: 'constant', cell: null, location } as const }];
  return { kind: 'case', operand: null, branches: absentBranches, otherwise: rowObject, location };
}

const unknownRow = (location: Location): Error =>
  errorAt('REL_NOT_IMPLEMENTED', 'the rows of a subquery as values beside an outer join: name its columns', location);

/** The columns of `t.*` that a type has, without the store's own. */
function shownNames({ type, columns }: ScopeTable, typeOf: RowScope['typeOf']): string[] {
  const properties = type === null ? null : (typeOf(type)?.properties ?? {});
  return columns.flatMap(({ name }) =>
    properties !== null && Object.hasOwn(systemColumns, name) && !Object.hasOwn(properties, name) ? [] : [name],
  );
}

function hasOuterJoin(source: Source): boolean {
  return source.kind === 'join' && (source.type !== 'inner' || hasOuterJoin(source.left) || hasOuterJoin(source.right));
}
