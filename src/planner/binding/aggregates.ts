/** Aggregate functions in expressions: where they stand, and what they yield. */
import type { ColumnType } from '../../log/value.ts';
import type { Bound } from '../expressions/bound-expression.ts';
import type { AggregateCall } from '../logical-plan.ts';
import { at } from '../places.ts';
import type { Expression } from '../statement.ts';

export function aggregateType(call: AggregateCall['function'], bound: Bound, operand: Expression): ColumnType {
  const type = bound.type;
  const refuse = (): never => {
    throw at('REL_TYPE_MISMATCH', `${call.toUpperCase()} can't take ${type}`, operand.place);
  };
  switch (call) {
    case 'count':
      return type === 'interval' || type === 'vector' ? refuse() : 'integer';
    case 'sum':
      return type === 'integer' || type === 'number' ? type : refuse();
    case 'avg':
      return type === 'integer' || type === 'number' ? 'number' : refuse();
    case 'min':
    case 'max':
      return type === 'integer' || type === 'number' || type === 'timestamp' || type === 'string' ? type : refuse();
  }
}

const known = new WeakMap<Expression, boolean>();

/** Asked at every node of a tree, answered by one walk of it. */
export function containsAggregate(expression: Expression): boolean {
  let found = known.get(expression);
  if (found === undefined)
    known.set(expression, (found = expression.kind === 'aggregate' || operandsOf(expression).some(containsAggregate)));
  return found;
}

function operandsOf(expression: Expression): readonly Expression[] {
  switch (expression.kind) {
    case 'aggregate':
    case 'column':
    case 'literal':
    case 'now':
    case 'interval':
      return [];
    case 'binary':
      return [expression.left, expression.right];
    case 'not':
    case 'negate':
    case 'is-null':
    case 'in-query':
      return [expression.operand];
    case 'in-list':
      return [expression.operand, ...expression.items];
    case 'between':
      return [expression.operand, expression.low, expression.high];
    case 'case': {
      const branches = expression.branches.flatMap(({ when, then }) => [when, then]);
      return [
        ...(expression.operand ? [expression.operand] : []),
        ...branches,
        ...(expression.otherwise ? [expression.otherwise] : []),
      ];
    }
    case 'call':
      return expression.arguments.map(({ value }) => value);
  }
}
