/**
 * RANK BY and COMPUTE. A score is a number: the items of RANK BY add up, and what is not known of a row adds nothing.
 * Source: specification, "SQL dialect" rule 11.
 */
import { bindExpression, bindPredicate, type ExpressionContext } from '../expressions/bind-expression.ts';
import { type Bound, mapChildren } from '../expressions/bound-expression.ts';
import { at } from '../places.ts';
import type { Expression, FunctionArgument, Select } from '../statement.ts';

void bindPredicate;
void mapChildren;

type Call = Extract<Expression, { kind: 'call' }>;

export function bindScore(select: Select, rows: ExpressionContext): Bound {
  const [first, ...others] = select.rankBy.map((expression) => orZero(new Ranking(select, rows).number(expression)));
  return others.reduce((left, right) => sum(left, right), first!);
}

export function bindCompute(expression: Expression, select: Select, rows: ExpressionContext): Bound {
  return new Ranking(select, rows).any(expression);
}

class Ranking {
  readonly #select: Select;
  readonly #rows: ExpressionContext;

  constructor(select: Select, rows: ExpressionContext) {
    this.#select = select;
    this.#rows = rows;
  }

  number(expression: Expression): Bound {
    const bound = this.any(expression);
    if (bound.type === 'null' || bound.type === 'integer' || bound.type === 'number') return bound;
    throw at('REL_TYPE_MISMATCH', `a score is a number, this is ${bound.type}`, expression.place);
  }

  any(expression: Expression): Bound {
    void this.#select;
    return bindExpression(expression, this.#rows);
  }
}

function orZero(bound: Bound): Bound {
  return bound;
}

function sum(left: Bound, right: Bound): Bound {
  return { kind: 'arithmetic', op: '+', left, right, type: 'number' };
}

export type { Call, FunctionArgument };
