/** The call SIMILAR as a condition: whether a vector of a row is as alike to one of the statement as a threshold says. */
import { errorAt } from '../syntax/error-location.ts';
import type { Expression } from '../syntax/statement.ts';
import type { Bound } from './bound-expression.ts';

type SimilarCall = Extract<Expression, { kind: 'call' }>;
type Bind = (expression: Expression) => Bound;

export function bindSimilar(call: SimilarCall, bind: Bind): Bound {
  const thresholdArgument = call.arguments.find(({ name }) => name === 'THRESHOLD')?.value;
  if (thresholdArgument === undefined) {
    throw errorAt(
      'REL_INVALID',
      'SIMILAR as a condition needs a threshold: SIMILAR(column, ARRAY[…], threshold=0.5)',
      call.location,
    );
  }
  const similarityFloor = bind(thresholdArgument);
  if (similarityFloor.type !== 'number' && similarityFloor.type !== 'integer') {
    throw errorAt('REL_TYPE_MISMATCH', `a threshold is a number, not ${similarityFloor.type}`, thresholdArgument.location);
  }
  return { kind: 'compare', op: '>=', left: bindSimilarity(call, bind), right: similarityFloor, type: 'boolean' };
}

/** The cosine that it compares. */
export function bindSimilarity(call: SimilarCall, bind: Bind): Bound {
  const [columnArgument, vectorArgument, ...others] = call.arguments
    .filter(({ name }) => name === null)
    .map(({ value: componentExpression }) => componentExpression);
  if (
    !columnArgument ||
    others.length > 0 ||
    vectorArgument?.kind !== 'call' ||
    vectorArgument.name !== 'ARRAY' ||
    vectorArgument.arguments.length === 0
  ) {
    throw errorAt('REL_INVALID', 'SIMILAR as a condition is written SIMILAR(column, ARRAY[…], threshold=0.5)', call.location);
  }
  const vectorOperand = bind(columnArgument);
  if (vectorOperand.kind !== 'column' || vectorOperand.type !== 'vector') {
    throw errorAt('REL_TYPE_MISMATCH', `SIMILAR takes a column of vectors, not ${vectorOperand.type}`, columnArgument.location);
  }
  const vectorComponents = vectorArgument.arguments.map(({ value: componentExpression }) => {
    const boundComponent = bind(componentExpression);
    const isNumber = boundComponent.type === 'number' || boundComponent.type === 'integer';
    if (isNumber && isConstant(componentExpression)) return boundComponent;
    throw errorAt(
      'REL_TYPE_MISMATCH',
      `a component of a vector is a number, not ${isNumber ? 'an expression' : boundComponent.type}`,
      componentExpression.location,
    );
  });
  return { kind: 'function', name: 'cosine', operands: [vectorOperand, ...vectorComponents], type: 'number' };
}

/** The first SIMILAR that a condition requires: what `_score` means beside it. */
export function similarIn(whereCondition: Expression | null): SimilarCall | null {
  if (whereCondition === null) return null;
  if (whereCondition.kind === 'binary' && whereCondition.op === 'and')
    return similarIn(whereCondition.left) ?? similarIn(whereCondition.right);
  return whereCondition.kind === 'call' && whereCondition.name === 'SIMILAR' ? whereCondition : null;
}

function isConstant(componentExpression: Expression): boolean {
  return (
    componentExpression.kind === 'literal' || (componentExpression.kind === 'negate' && isConstant(componentExpression.operand))
  );
}
