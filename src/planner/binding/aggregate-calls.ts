/** Aggregate functions in expressions: where they stand, and what they yield. */
import type { ColumnType } from '../../log/values/value.ts';
import type { Bound } from '../expressions/bound-expression.ts';
import { isVector } from '../expressions/bind-call.ts';
import { isInterval } from '../expressions/bind-expression.ts';
import { type AggregateFunction, aggregateFunctions } from '../aggregate-functions.ts';
import type { AggregateCall } from '../logical-plan.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Expression } from '../syntax/statement.ts';

export function aggregateType(call: AggregateCall['function'], boundOperand: Bound, operand: Expression): ColumnType {
  const { name, yields, isOrdered = false } = aggregateFunctions[call];
  if (isInterval(boundOperand)) {
    if (isSumOrAverage(call) || isTextExtreme(call)) return 'string';
    if (isOrdered)
      throw errorAt(
        'REL_NOT_IMPLEMENTED',
        `${name} of intervals is not implemented: take EXTRACT(EPOCH FROM x)`,
        operand.location,
      );
  }
  // A value that comes later, of which nothing tells the type, is text.
  const resultType = yields(
    boundOperand.type === 'null' && isTextExtreme(call)
      ? 'string'
      : isSumOrAverage(call) && isVector(boundOperand)
        ? 'vector'
        : boundOperand.type,
  );
  if (resultType === null)
    throw errorAt('REL_TYPE_MISMATCH', `${name} can't take ${boundOperand.type}`, operand.location, 'no-such-function');
  return resultType;
}

export function checkSecond(
  name: string,
  takesType: AggregateFunction['second'],
  { type }: Bound,
  secondOperand: Expression,
): void {
  const fitsSecond =
    takesType === 'any'
      ? type !== 'vector' && type !== 'interval'
      : type === 'null' || (takesType === 'number' ? type === 'integer' || type === 'number' : type === takesType);
  if (!fitsSecond)
    throw errorAt(
      'REL_TYPE_MISMATCH',
      `the second value of ${name} can't be ${type}`,
      secondOperand.location,
      'no-such-function',
    );
}

const isSumOrAverage = (call: AggregateCall['function']): boolean => call === 'sum' || call === 'avg';
const isTextExtreme = (call: AggregateCall['function']): boolean => call === 'min' || call === 'max';

const aggregateByExpression = new WeakMap<Expression, boolean>();

/** Asked at every node of a tree, answered by one walk of it. */
export function containsAggregate(expression: Expression): boolean {
  // A list may have a hundred thousand of them.
  if (expression.kind === 'literal') return false;
  let isAggregate = aggregateByExpression.get(expression);
  if (isAggregate === undefined)
    aggregateByExpression.set(
      expression,
      (isAggregate = expression.kind === 'aggregate' || operandsOf(expression).some(containsAggregate)),
    );
  return isAggregate;
}

const noOperands: readonly Expression[] = [];

/** Expressions that one is made of; queries inside it are their own. */
export function operandsOf(expression: Expression): readonly Expression[] {
  switch (expression.kind) {
    case 'aggregate':
      return [
        expression.operand,
        expression.second,
        expression.filter,
        ...(expression.orderBy ?? []).map((item) => item.expression),
      ].filter((part) => part !== null);
    case 'column':
    case 'literal':
    case 'constant':
    case 'now':
    case 'interval':
    // A query groups its own rows.
    case 'scalar-query':
    case 'exists':
      return noOperands;
    case 'row':
      return expression.items;
    case 'over':
      return [
        ...expression.arguments,
        ...expression.partition,
        ...expression.orderBy.map((item) => item.expression),
        ...(expression.filter ? [expression.filter] : []),
      ];
    case 'binary':
      return [expression.left, expression.right];
    case 'not':
    case 'negate':
    case 'is-null':
    case 'in-query':
    case 'quantified':
      return [expression.operand];
    case 'in-list':
      return [expression.operand, ...expression.items];
    case 'between':
      return [expression.operand, expression.low, expression.high];
    case 'case': {
      const caseOperands = expression.branches.flatMap(({ when, then }) => [when, then]);
      return [
        ...(expression.operand ? [expression.operand] : []),
        ...caseOperands,
        ...(expression.otherwise ? [expression.otherwise] : []),
      ];
    }
    case 'call':
      return expression.arguments.map(({ value }) => value);
  }
}
