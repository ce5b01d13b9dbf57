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

type EntityKind = keyof typeof entityCalls;
type EntityCall = Extract<Expression, { kind: 'call' }>;

export function isEntityCall(expression: Expression): expression is EntityCall {
  return expression.kind === 'call' && (expression.name === entityCalls.nodes || expression.name === entityCalls.edges);
}

/** Undefined for any other expression. */
export function bindEntity(expression: Expression, scope: Scope, environment: Environment): Bound | undefined {
  if (!isEntityCall(expression)) return undefined;
  const { location, name } = expression;
  const entityKey = expression.arguments[0]!.value;
  const entityTable = entityKey.kind === 'column' ? scope.tables.find((each) => each.name === entityKey.table) : undefined;
  if (entityTable === undefined) throw errorAt('REL_PARSE', 'an entity is the row of a table', location);
  return entityOf({ of: name === entityCalls.nodes ? 'nodes' : 'edges', table: entityTable, scope, environment, location });
}

export function entityOf(entityRow: {
  readonly of: EntityKind;
  readonly table: ScopeTable;
  readonly scope: Scope;
  readonly environment: Environment;
  readonly location: Location;
}): Bound {
  const { of, table, scope, environment, location } = entityRow;
  const type = splitTypeName(table.type!)?.type ?? table.type!;
  const { properties } = environment.catalog.type(table.type!)!;
  const propertyNames = table.columns.flatMap(({ name }) => (Object.hasOwn(properties, name) ? [name] : []));
  const visibleProperty = (name: string): Bound => {
    const bound = scope.column({ kind: 'column', table: table.name, name, location });
    return scope.shownAs(bound) ?? bound;
  };
  const propertyColumns = propertyNames.map((name) => ({ name, bound: visibleProperty(name) }));
  for (const { name, bound } of propertyColumns) environment.entityTypes.add(type, name, bound.type as ColumnType);
  const entityOperands = [
    stringConstant(type),
    stringConstant(JSON.stringify(propertyNames)),
    visibleProperty('_pk'),
    visibleProperty('system_from'),
    ...propertyColumns.map(({ bound }) => propertyAsJson(bound, location)),
  ];
  const { name, signatures } = scalarFunction(entityCalls[of])!;
  return { kind: 'call', name, function: signatures[0]!, operands: entityOperands, type: 'json' };
}

function propertyAsJson(bound: Bound, location: Location): Bound {
  switch (bound.type) {
    case 'json':
      return bound;
    case 'timestamp':
      return jsonCall('#PROPERTY', bound);
    case 'vector':
      return jsonCall('#PROPERTY', vectorAsText(bound, location));
    default:
      return jsonCall('#JSON', bound);
  }
}

function jsonCall(name: string, operand: Bound): Bound {
  const jsonSignature = scalarFunction(name)!.signatures.find(({ takes }): boolean => takes[0] === operand.type) as Signature;
  return { kind: 'call', name, function: jsonSignature, operands: [operand], type: 'json' };
}

const stringConstant = (cell: string): Bound => ({ kind: 'constant', cell, type: 'string' });
