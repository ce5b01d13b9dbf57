/**
 * Rows as nodes and relationships: one cell of json with every property that the caller sees; masked ones appear as their masks
 * show them.
 */
import { splitTypeName } from '../../projections/access-paths.ts';
import type { ColumnType } from '../../log/values/value.ts';
import { vectorAsText } from '../expressions/bind-call.ts';
import type { Bound } from '../expressions/bound-expression.ts';
import { scalarFunction } from '../expressions/functions/all.ts';
import type { Signature } from '../expressions/functions/scalar-function.ts';
import { entityCalls } from '../graph/pattern-columns.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Expression, Location } from '../syntax/statement.ts';
import type { Environment } from './environment.ts';
import type { Scope, ScopeTable } from './scope.ts';

type Of = keyof typeof entityCalls;
type EntityCall = Extract<Expression, { kind: 'call' }>;

export function isEntityCall(expression: Expression): expression is EntityCall {
  return expression.kind === 'call' && (expression.name === entityCalls.nodes || expression.name === entityCalls.edges);
}

/** Undefined for any other expression. */
export function bindEntity(expression: Expression, scope: Scope, environment: Environment): Bound | undefined {
  if (!isEntityCall(expression)) return undefined;
  const { location, name } = expression;
  const key = expression.arguments[0]!.value;
  const table = key.kind === 'column' ? scope.tables.find((each) => each.name === key.table) : undefined;
  if (table === undefined) throw errorAt('REL_PARSE', 'an entity is the row of a table', location);
  return entityOf({ of: name === entityCalls.nodes ? 'nodes' : 'edges', table, scope, environment, location });
}

export function entityOf(row: {
  readonly of: Of;
  readonly table: ScopeTable;
  readonly scope: Scope;
  readonly environment: Environment;
  readonly location: Location;
}): Bound {
  const { of, table, scope, environment, location } = row;
  const type = splitTypeName(table.type!)?.type ?? table.type!;
  const { properties } = environment.catalog.type(table.type!)!;
  const names = table.columns.flatMap(({ name }) => (Object.hasOwn(properties, name) ? [name] : []));
  const visibleProperty = (name: string): Bound => {
    const bound = scope.column({ kind: 'column', table: table.name, name, location });
    return scope.shownAs(bound) ?? bound;
  };
  const columns = names.map((name) => ({ name, bound: visibleProperty(name) }));
  for (const { name, bound } of columns) environment.entityTypes.add(type, name, bound.type as ColumnType);
  const operands = [
    constant(type),
    constant(JSON.stringify(names)),
    visibleProperty('_pk'),
    visibleProperty('system_from'),
    ...columns.map(({ bound }) => propertyOf(bound, location)),
  ];
  const { name, signatures } = scalarFunction(entityCalls[of])!;
  return { kind: 'call', name, function: signatures[0]!, operands, type: 'json' };
}

function propertyOf(bound: Bound, location: Location): Bound {
  switch (bound.type) {
    case 'json':
      return bound;
    case 'timestamp':
      return json('#PROPERTY', bound);
    case 'vector':
      return json('#PROPERTY', vectorAsText(bound, location));
    default:
      return json('#JSON', bound);
  }
}

function json(name: string, operand: Bound): Bound {
  const signature = scalarFunction(name)!.signatures.find(({ takes }): boolean => takes[0] === operand.type) as Signature;
  return { kind: 'call', name, function: signature, operands: [operand], type: 'json' };
}

const constant = (cell: string): Bound => ({ kind: 'constant', cell, type: 'string' });
