/**
 * RANK BY and COMPUTE. Items of RANK BY add up to `_score`; what is not known of a row adds nothing. COMPUTE yields further
 * columns and changes neither match nor order. Source: specification, "SQL dialect" rule 11.
 *
 *   RECENCY(field, half_life_secs)   e ^ -(age / half life), 1 for what lies ahead
 *   CUSTOM(field, weight)            field * weight
 *   EXACT(field, boost[, 'text'])    boost where the field is the text, whatever the case; without one, any that WHERE seeks
 *   ATTRIBUTE(name)                  the field
 *   SUM, MAX, PRODUCT(x, ...)        of what is known
 *   SATURATE(x, k)                   x / (x + k)
 *   DECAY(x, scale)                  e ^ -(|x| / scale)
 *   DIST(attr, x[, y, ...])          Euclidean distance; a number has one coordinate, a vector as many as it has
 */
import { bindExpression, type ExpressionContext } from '../expressions/bind-expression.ts';
import type { Bound } from '../expressions/bound-expression.ts';
import type { ScalarFunction } from '../expressions/scalar-functions.ts';
import { at } from '../places.ts';
import type { Expression, FunctionArgument, Literal, Place, Select } from '../statement.ts';

type Call = Extract<Expression, { kind: 'call' }>;

export function bindScore(select: Select, rows: ExpressionContext): Bound {
  const ranking = new Ranking(select, rows);
  return added(select.rankBy.map((expression) => known(ranking.number(expression))));
}

export function bindCompute(expression: Expression, select: Select, rows: ExpressionContext): Bound {
  const bound = new Ranking(select, rows).any(expression);
  if (bound.type === 'interval') throw at('REL_TYPE_MISMATCH', 'an INTERVAL is no column', expression.place);
  return bound;
}

class Ranking {
  readonly #select: Select;
  readonly #rows: ExpressionContext;

  constructor(select: Select, rows: ExpressionContext) {
    this.#select = select;
    // Primitives nest in arithmetic and in each other.
    this.#rows = {
      ...rows,
      leaf: (expression) => (expression.kind === 'call' ? this.#call(expression) : rows.leaf(expression)),
    };
  }

  any(expression: Expression): Bound {
    return bindExpression(expression, this.#rows);
  }

  number(expression: Expression): Bound {
    const bound = this.any(expression);
    if (isNumber(bound)) return bound;
    throw at('REL_TYPE_MISMATCH', `a score is a number, this is ${bound.type}`, expression.place);
  }

  #call(call: Call): Bound | undefined {
    switch (call.name) {
      case 'RECENCY':
        return this.#recency(call);
      case 'CUSTOM': {
        const [field, weight] = this.#numbers(call, 2, 2);
        return product([field!, weight!]);
      }
      case 'EXACT':
        return this.#exact(call);
      case 'ATTRIBUTE': {
        const [only] = arguments_(call, 1, 1);
        return this.any(only!);
      }
      case 'SUM':
        return added(this.#numbers(call, 1, 32).map(known));
      case 'MAX':
        return { kind: 'function', name: 'greatest', operands: this.#numbers(call, 1, 32), type: 'number' };
      case 'PRODUCT':
        return product(this.#numbers(call, 1, 32));
      case 'SATURATE': {
        const [value, half] = this.#numbers(call, 2, 2);
        return arithmetic('/', value!, arithmetic('+', value!, half!));
      }
      case 'DECAY': {
        const [value, scale] = this.#numbers(call, 2, 2);
        return decayed(arithmetic('/', scalar('abs', value!), scale!));
      }
      case 'DIST':
        return this.#distance(call);
      case 'BM25':
        throw needs(call, 'the text projection');
      case 'HIGHLIGHT':
        throw needs(call, 'the text projection');
      case 'VECTOR':
        throw needs(call, 'the vector projection');
      default:
        return undefined;
    }
  }

  /** Ages count from the instant that `now()` means. */
  #recency(call: Call): Bound {
    const [fieldExpression, halfExpression] = arguments_(call, 2, 2);
    const field = this.any(fieldExpression!);
    if (field.type !== 'timestamp' && field.type !== 'integer') {
      throw at('REL_TYPE_MISMATCH', `RECENCY is of a timestamp or an integer of nanoseconds, not ${field.type}`, call.place);
    }
    const halfLife = this.number(halfExpression!);
    const nanoseconds = scalar('elapsed', { kind: 'now', type: 'timestamp' }, field);
    return decayed(arithmetic('/', nanoseconds, scalar('nanoseconds', halfLife)));
  }

  #exact(call: Call): Bound {
    const [fieldExpression, boostExpression, textExpression] = arguments_(call, 2, 3);
    const field = this.any(fieldExpression!);
    if (field.type !== 'string') throw at('REL_TYPE_MISMATCH', `EXACT is of text, not ${field.type}`, call.place);
    const boost = this.number(boostExpression!);
    const texts = textExpression ? [textExpression] : this.#soughtTexts(call.place);
    const branches = texts.map((text) => {
      const pattern = this.any(text);
      if (pattern.kind !== 'literal' || pattern.type !== 'string') {
        throw at('REL_TYPE_MISMATCH', 'EXACT compares with a text in quotes', text.place);
      }
      return { when: { kind: 'same-folded', operand: field, text: pattern, type: 'boolean' } as const, result: boost };
    });
    const none: Bound = { kind: 'constant', cell: 0n, type: 'integer' };
    return { kind: 'case', operand: null, branches, otherwise: none, type: boost.type === 'number' ? 'number' : 'integer' };
  }

  /** Texts that WHERE compares something with. */
  #soughtTexts(place: Place): Expression[] {
    const found: Expression[] = [];
    const literals: readonly Literal[] = this.#rows.environment.literals;
    const isText = (each: Expression): boolean => each.kind === 'literal' && typeof literals[each.slot] === 'string';
    const walk = (each: Expression): void => {
      if (each.kind === 'binary') {
        if (each.op === 'and' || each.op === 'or') {
          walk(each.left);
          walk(each.right);
        } else if (each.op === '=' || each.op === 'like') found.push(...[each.left, each.right].filter(isText));
      } else if (each.kind === 'in-list' && !each.negated) found.push(...each.items.filter(isText));
    };
    if (this.#select.where) walk(this.#select.where);
    if (found.length === 0 || found.length > 32) {
      throw at(
        'REL_INVALID',
        "EXACT needs a text: EXACT(field, boost, 'text'), or a WHERE that compares with one to 32 texts",
        place,
      );
    }
    return found;
  }

  #distance(call: Call): Bound {
    const [attribute, ...coordinates] = arguments_(call, 2, 4_097);
    const from = this.any(attribute!);
    const to = coordinates.map((each) => this.number(each));
    if (from.type === 'vector') {
      if (from.kind !== 'column') throw at('REL_TYPE_MISMATCH', 'DIST is of a column', call.place);
      return { kind: 'function', name: 'distance', operands: [from, ...to], type: 'number' };
    }
    if (!isNumber(from) || to.length > 1) {
      throw at('REL_TYPE_MISMATCH', `DIST of ${to.length} coordinates is of a vector, not ${from.type}`, call.place);
    }
    return scalar('abs', arithmetic('-', from, to[0]!));
  }

  #numbers(call: Call, least: number, most: number): Bound[] {
    return arguments_(call, least, most).map((expression) => this.number(expression));
  }
}

function arguments_(call: Call, least: number, most: number): Expression[] {
  const named: FunctionArgument | undefined = call.arguments.find(({ name }) => name !== null);
  const count = call.arguments.length;
  if (named || count < least || count > most) {
    const many = least === most ? `${least}` : `${least} to ${most}`;
    throw at('REL_PARSE', `${call.name} takes ${many} arguments, by position`, call.place);
  }
  return call.arguments.map(({ value }) => value);
}

function needs(call: Call, what: string): Error {
  return at('REL_NOT_IMPLEMENTED', `${call.name}() is not implemented: it needs ${what}`, call.place);
}

function isNumber(bound: Bound): boolean {
  return bound.type === 'null' || bound.type === 'integer' || bound.type === 'number';
}

/** Scores are doubles: an order, not an account. */
function arithmetic(op: '+' | '-' | '*' | '/', left: Bound, right: Bound): Bound {
  return { kind: 'arithmetic', op, left, right, type: 'number' };
}

function scalar(name: ScalarFunction, ...operands: Bound[]): Bound {
  return { kind: 'function', name, operands, type: 'number' };
}

function decayed(exponent: Bound): Bound {
  return scalar('exp', { kind: 'negate', operand: exponent, type: 'number' });
}

function product(bounds: readonly Bound[]): Bound {
  return bounds.reduce((left, right) => arithmetic('*', left, right));
}

function added(bounds: readonly Bound[]): Bound {
  const [first, ...others] = bounds;
  return others.reduce(
    (left, right) => arithmetic('+', left, right),
    arithmetic('+', first!, { kind: 'constant', cell: 0n, type: 'integer' }),
  );
}

function known(bound: Bound): Bound {
  return scalar('known', bound);
}
