/**
 * Tables as values: `row_to_json(t)`, `to_jsonb(t)`, `json_agg(t)`, `count(t)`. Each takes an object of the columns of t, and NULL
 * where an outer join found no row of it. Anywhere else the name of a table is no value.
 */
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { systemColumns } from '../../log/values/value.ts';
import { errorAt } from '../error-location.ts';
import type { Expression, Location, Select, Source } from '../statement.ts';
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
  const replace = <T>(tree: T): T => replaced(tree, select.from, around);
  const projection = replace(select.projection);
  const having = replace(select.having);
  const where = replace(select.where);
  const isSame = projection === select.projection && having === select.having && where === select.where;
  return isSame ? select : { ...select, projection, having, where };
}

/** Trees are plain data. Queries within have tables of their own. */
function replaced<T>(tree: T, from: Source, around: Around): T {
  if (typeof tree !== 'object' || tree === null) return tree;
  if (Array.isArray(tree)) {
    const items = tree.map((item: unknown) => replaced(item, from, around));
    return items.every((item, i) => item === tree[i]) ? tree : (items as T);
  }
  const node = tree as { readonly kind?: unknown };
  if (node.kind === 'select' || 'body' in node) return tree;
  const own = wholeRowCall(node as Expression, from, around) ?? node;
  let copy: Record<string, unknown> | null = null;
  for (const [name, value] of Object.entries(own)) {
    const other: unknown = replaced(value, from, around);
    if (other !== value) (copy ??= { ...own })[name] = other;
  }
  return (copy ?? own) as T;
}

function wholeRowCall(expression: Expression, from: Source, around: Around): Expression | null {
  if (expression.kind === 'call') {
    const maker = makers.get(expression.name);
    const [given, ...more] = expression.arguments;
    if (maker === undefined || given === undefined || more.length > 0) return null;
    return objectOf(given.value, maker, from, around);
  }
  if (expression.kind !== 'aggregate' || expression.operand === null) return null;
  const maker = makers.get(expression.function);
  const operand = maker === undefined ? null : objectOf(expression.operand, maker, from, around);
  return operand && { ...expression, operand };
}

function objectOf(expression: Expression, maker: string, from: Source, { scope, typeOf }: Around): Expression | null {
  if (expression.kind !== 'column' || expression.table !== null || scope.knows(expression)) return null;
  const { place } = expression;
  const table = scope.tables.find(({ name }) => name === expression.name);
  if (table === undefined) return null;
  const names = shownNames(table, typeOf);
  const column = (name: string): Expression => ({ kind: 'column', table: table.name, name, quoted: true, place });
  const pairs = names.flatMap((name): Expression[] => [{ kind: 'constant', cell: name, place }, column(name)]);
  const made: Expression = { kind: 'call', name: maker, arguments: pairs.map((value) => ({ name: null, value })), place };
  if (!hasOuterJoin(from)) return made;
  if (table.type === null) throw unknownRow(place);
  const isAbsent: Expression = { kind: 'is-null', operand: column('_pk'), negated: false, place };
  // oxlint-disable-next-line no-thenable -- the word of the language; nobody awaits a branch
  const branches = [{ when: isAbsent, then: { kind: 'constant', cell: null, place } as const }];
  return { kind: 'case', operand: null, branches, otherwise: made, place };
}

const unknownRow = (place: Location): Error =>
  errorAt('REL_NOT_IMPLEMENTED', 'the rows of a subquery as values beside an outer join: name its columns', place);

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
