/** The call SIMILAR as a condition: whether a vector of a row is as alike to one of the statement as a threshold says. */
import { errorAt } from '../syntax/error-location.ts';
import type { Expression } from '../syntax/statement.ts';
import type { Bound } from './bound-expression.ts';

type Call = Extract<Expression, { kind: 'call' }>;
type Bind = (expression: Expression) => Bound;

export function bindSimilar(call: Call, bind: Bind): Bound {
  const threshold = call.arguments.find(({ name }) => name === 'THRESHOLD')?.value;
  if (threshold === undefined) {
    throw errorAt(
      'REL_INVALID',
      'SIMILAR as a condition needs a threshold: SIMILAR(column, ARRAY[…], threshold=0.5)',
      call.location,
    );
  }
  const least = bind(threshold);
  if (least.type !== 'number' && least.type !== 'integer') {
    throw errorAt('REL_TYPE_MISMATCH', `a threshold is a number, not ${least.type}`, threshold.location);
  }
  return { kind: 'compare', op: '>=', left: bindSimilarity(call, bind), right: least, type: 'boolean' };
}

/** The cosine that it compares. */
export function bindSimilarity(call: Call, bind: Bind): Bound {
  const [column, vector, ...others] = call.arguments.filter(({ name }) => name === null).map(({ value }) => value);
  if (!column || others.length > 0 || vector?.kind !== 'call' || vector.name !== 'ARRAY' || vector.arguments.length === 0) {
    throw errorAt('REL_INVALID', 'SIMILAR as a condition is written SIMILAR(column, ARRAY[…], threshold=0.5)', call.location);
  }
  const of = bind(column);
  if (of.kind !== 'column' || of.type !== 'vector') {
    throw errorAt('REL_TYPE_MISMATCH', `SIMILAR takes a column of vectors, not ${of.type}`, column.location);
  }
  const components = vector.arguments.map(({ value }) => {
    const bound = bind(value);
    const isNumber = bound.type === 'number' || bound.type === 'integer';
    if (isNumber && isConstant(value)) return bound;
    throw errorAt(
      'REL_TYPE_MISMATCH',
      `a component of a vector is a number, not ${isNumber ? 'an expression' : bound.type}`,
      value.location,
    );
  });
  return { kind: 'function', name: 'cosine', operands: [of, ...components], type: 'number' };
}

/** The first SIMILAR that a condition requires: what `_score` means beside it. */
export function similarIn(where: Expression | null): Call | null {
  if (where === null) return null;
  if (where.kind === 'binary' && where.op === 'and') return similarIn(where.left) ?? similarIn(where.right);
  return where.kind === 'call' && where.name === 'SIMILAR' ? where : null;
}

function isConstant(value: Expression): boolean {
  return value.kind === 'literal' || (value.kind === 'negate' && isConstant(value.operand));
}
