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
const makers: ReadonlyMap<string, string> = new Map([
  ['ROW_TO_JSON', '_ROW_TO_JSON'],
  ['TO_JSON', '_ROW_TO_JSON'],
  ['TO_JSONB', 'JSONB_BUILD_OBJECT'],
  ['json_agg', '_ROW_TO_JSON'],
  ['count', '_ROW_TO_JSON'],
]);

interface Around {
  readonly scope: Scope;
  typeOf(name: string): TypeDefinition | undefined;
}

export function withWholeRows(select: Select, around: Around): Select {
  const replace = <T>(tree: T): T => replaceSource(tree, select.from, around);
  const projection = replace(withNames(select.projection, around));
  const having = replace(select.having);
  const where = replace(select.where);
  const isSame = projection === select.projection && having === select.having && where === select.where;
  return isSame ? select : { ...select, projection, having, where };
}

/** A column of rows is named as its table. */
function withNames(projection: Select['projection'], around: Around): Select['projection'] {
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
function replaceSource<T>(tree: T, from: Source, around: Around): T {
  if (typeof tree !== 'object' || tree === null) return tree;
  if (Array.isArray(tree)) {
    const items = tree.map((item: unknown) => replaceSource(item, from, around));
    return items.every((item, i) => item === tree[i]) ? tree : (items as T);
  }
  const node = tree as { readonly kind?: unknown };
  if (node.kind === 'literal' || node.kind === 'select' || 'body' in node) return tree;
  const own = wholeRow(node as Expression, from, around) ?? node;
  let copy: Record<string, unknown> | null = null;
  for (const [name, value] of Object.entries(own)) {
    if (name === 'location') continue;
    const other: unknown = replaceSource(value, from, around);
    if (other !== value) (copy ??= { ...own })[name] = other;
  }
  return (copy ?? own) as T;
}

function wholeRow(expression: Expression, from: Source, around: Around): Expression | null {
  if (expression.kind === 'call') {
    const [given, ...more] = expression.arguments;
    if (given === undefined || more.length > 0) return null;
    const { value } = given;
    if (expression.name.startsWith('.')) {
      const table = tableNamed(value, around);
      return table ? { ...columnOf(table, value.location), name: expression.name.slice(1) } : null;
    }
    const maker = makers.get(expression.name);
    if (maker === undefined) return null;
    return value.kind === 'row'
      ? objectOf(
          value.items.map((item, i) => [`f${i + 1}`, item]),
          maker,
          value.location,
        )
      : (withinQuery(expression, value) ?? ofTable(value, maker, from, around));
  }
  if (expression.kind === 'is-null') {
    const { operand, negated, location } = expression;
    const table = tableNamed(operand, around);
    if (table === undefined) return null;
    const tests = shownNames(table, around.typeOf).map((name): Expression => {
      return { kind: 'is-null', operand: { ...columnOf(table, location), name }, negated, location };
    });
    return tests.reduce((left, right): Expression => ({ kind: 'binary', op: 'and', left, right, location }));
  }
  if (expression.kind === 'column') return ofTable(expression, null, from, around);
  if (expression.kind !== 'aggregate' || expression.operand === null) return null;
  const maker = makers.get(expression.function);
  const operand = maker === undefined ? null : ofTable(expression.operand, maker, from, around);
  return operand && { ...expression, operand };
}

/** `row_to_json((SELECT e FROM … e))`: the call stands where the row is known. */
function withinQuery(call: Extract<Expression, { kind: 'call' }>, value: Expression): Expression | null {
  if (value.kind !== 'scalar-query' || value.query.body.kind !== 'select') return null;
  const { body } = value.query;
  const [item] = body.projection;
  if (body.projection.length !== 1 || item?.kind !== 'expression' || item.expression.kind !== 'column') return null;
  const expression: Expression = { ...call, arguments: [{ name: null, value: item.expression }] };
  return { ...value, query: { ...value.query, body: { ...body, projection: [{ ...item, expression }] } } };
}

/** The table whose rows an expression names. */
function tableNamed(expression: Expression, { scope }: Around): ScopeTable | undefined {
  if (expression.kind !== 'column' || expression.table !== null || scope.knows(expression)) return undefined;
  const table = scope.tables.find(({ name }) => name === expression.name);
  return table?.isValue === true ? undefined : table;
}

const columnOf = (table: ScopeTable, location: Location): Extract<Expression, { kind: 'column' }> => ({
  kind: 'column',
  table: table.name,
  name: '_pk',
  quoted: true,
  location,
});

function objectOf(
  members: readonly (readonly [name: string, value: Expression])[],
  maker: string,
  location: Location,
): Expression {
  const pairs = members.flatMap(([name, value]): Expression[] => [{ kind: 'constant', cell: name, location }, value]);
  return { kind: 'call', name: maker, arguments: pairs.map((value) => ({ name: null, value })), location };
}

/** Without a maker a record. */
function ofTable(expression: Expression, maker: string | null, from: Source, around: Around): Expression | null {
  const table = tableNamed(expression, around);
  if (table === undefined) return null;
  const { location } = expression;
  const columns = shownNames(table, around.typeOf).map((name): Expression => ({ ...columnOf(table, location), name }));
  const names = shownNames(table, around.typeOf);
  const rowObject: Expression =
    maker === null
      ? { kind: 'row', items: columns, location }
      : objectOf(
          columns.map((column, i) => [names[i]!, column]),
          maker,
          location,
        );
  if (!hasOuterJoin(from)) return rowObject;
  if (table.type === null) throw unknownRow(location);
  const isAbsent: Expression = { kind: 'is-null', operand: columnOf(table, location), negated: false, location };
  // oxlint-disable-next-line no-thenable -- the word of the language; nobody awaits a branch
  const branches = [{ when: isAbsent, then: { kind: 'constant', cell: null, location } as const }];
  return { kind: 'case', operand: null, branches, otherwise: rowObject, location };
}

const unknownRow = (location: Location): Error =>
  errorAt('REL_NOT_IMPLEMENTED', 'the rows of a subquery as values beside an outer join: name its columns', location);

/** The columns of `t.*` that a type has, without the store's own. */
function shownNames({ type, columns }: ScopeTable, typeOf: Around['typeOf']): string[] {
  const properties = type === null ? null : (typeOf(type)?.properties ?? {});
  return columns.flatMap(({ name }) =>
    properties !== null && Object.hasOwn(systemColumns, name) && !Object.hasOwn(properties, name) ? [] : [name],
  );
}

function hasOuterJoin(source: Source): boolean {
  return source.kind === 'join' && (source.type !== 'inner' || hasOuterJoin(source.left) || hasOuterJoin(source.right));
}
