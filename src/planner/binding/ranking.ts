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
 *   BM25()                           how well the row matches the MATCHes of WHERE
 *   VECTOR()                         the cosine to what SIMILAR seeks
 *   HIGHLIGHT(field)                 of COMPUTE alone: the text with the words marked that MATCH seeks
 */
import { bindExpression, type ExpressionContext } from '../expressions/bind-expression.ts';
import { readMatch } from '../expressions/bind-match.ts';
import { bindSimilarity, similarIn } from '../expressions/bind-similar.ts';
import type { Bound } from '../expressions/bound-expression.ts';
import type { Signature } from '../expressions/functions/scalar-function.ts';
import type { ScalarFunction } from '../expressions/ranking-functions.ts';
import type { Cost } from '../expressions/expression-cost.ts';
import { errorAt } from '../syntax/error-location.ts';
import { scoreName } from './match-columns.ts';
import type { Expression, FunctionArgument, Literal, Location, Select } from '../syntax/statement.ts';

/** Nanoseconds. */
const perHighlighted: Cost = { call: 1_000, character: 300 };

type Call = Extract<Expression, { kind: 'call' }>;

/** A rule of `SERVICE_RANKING_<Type>`. */
export interface RankingRule {
  readonly rule: 'recency' | 'custom' | 'exact';
  readonly field: string;
  readonly value: number;
}

/** The default score of rows that a MATCH finds, for statements without RANK BY: BM25 plus these rules. */
export function bindDefaultScore(rules: readonly RankingRule[], select: Select, rows: ExpressionContext): Bound {
  const ranking = new Ranking(select, rows);
  return sumOf([ranking.bm25(select.location), ...rules.map((rule) => knownOrZero(ranking.byRule(rule)))]);
}

export function bindScore(select: Select, rows: ExpressionContext): Bound {
  const ranking = new Ranking(select, rows);
  return sumOf(select.rankBy.map((expression) => knownOrZero(ranking.number(expression))));
}

export function bindCompute(expression: Expression, select: Select, rows: ExpressionContext): Bound {
  const bound = new Ranking(select, rows, 'compute').any(expression);
  if (bound.type === 'interval') throw errorAt('REL_TYPE_MISMATCH', 'an INTERVAL is no column', expression.location);
  return bound;
}

class Ranking {
  readonly #select: Select;
  readonly #rows: ExpressionContext;

  readonly #leaf: ExpressionContext['leaf'];
  readonly #use: 'rank' | 'compute';

  constructor(select: Select, rows: ExpressionContext, use: 'rank' | 'compute' = 'rank') {
    this.#select = select;
    this.#leaf = rows.leaf;
    this.#use = use;
    // Primitives nest in arithmetic and in each other.
    this.#rows = {
      ...rows,
      leaf: (expression) => (expression.kind === 'call' ? this.#call(expression) : undefined) ?? rows.leaf(expression),
    };
  }

  any(expression: Expression): Bound {
    return bindExpression(expression, this.#rows);
  }

  number(expression: Expression): Bound {
    const bound = this.any(expression);
    if (isNumber(bound)) return bound;
    throw errorAt('REL_TYPE_MISMATCH', `a score is a number, this is ${bound.type}`, expression.location);
  }

  bm25(location: Location): Bound {
    const score = this.#leaf(bm25Of(location));
    if (score) return score;
    throw errorAt('REL_INVALID', 'BM25() scores the rows of one type that a MATCH in WHERE finds', location);
  }

  byRule({ rule, field, value }: RankingRule): Bound {
    const column: Expression = { kind: 'column', table: null, name: field, location: this.#select.location };
    const weight: Bound = { kind: 'constant', cell: value, type: 'number' };
    const of = this.any(column);
    if (rule === 'recency') return this.#recencyOf(of, weight, column.location);
    if (rule === 'exact') return this.#exactOf(of, weight, this.#soughtTexts(column.location), column.location);
    if (isNumber(of)) return product([of, weight]);
    throw errorAt('REL_TYPE_MISMATCH', `a score is a number, ${JSON.stringify(field)} is ${of.type}`, column.location);
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
        return sumOf(this.#numbers(call, 1, 32).map(knownOrZero));
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
        return decay(arithmetic('/', scalar('abs', value!), scale!));
      }
      case 'DIST':
        return this.#distance(call);
      case 'BM25':
        arguments_(call, 0, 0);
        return this.bm25(call.location);
      case 'VECTOR':
        arguments_(call, 0, 0);
        return this.#vector(call.location);
      case 'HIGHLIGHT':
        return this.#highlight(call);
      default:
        return undefined;
    }
  }

  #recency(call: Call): Bound {
    const [field, halfLife] = arguments_(call, 2, 2);
    return this.#recencyOf(this.any(field!), this.number(halfLife!), call.location);
  }

  /** Ages count from the instant that `now()` means. */
  #recencyOf(field: Bound, halfLife: Bound, location: Location): Bound {
    if (field.type !== 'timestamp' && field.type !== 'integer') {
      throw errorAt('REL_TYPE_MISMATCH', `RECENCY takes a timestamp or an integer of nanoseconds, not ${field.type}`, location);
    }
    const nanoseconds = scalar('elapsed', { kind: 'now', type: 'timestamp' }, field);
    return decay(arithmetic('/', nanoseconds, scalar('nanoseconds', halfLife)));
  }

  #exact(call: Call): Bound {
    const [field, boost, text] = arguments_(call, 2, 3);
    const texts = text ? [text] : this.#soughtTexts(call.location);
    return this.#exactOf(this.any(field!), this.number(boost!), texts, call.location);
  }

  #exactOf(field: Bound, boost: Bound, texts: readonly Expression[], location: Location): Bound {
    if (field.type !== 'string') throw errorAt('REL_TYPE_MISMATCH', `EXACT takes text, not ${field.type}`, location);
    const branches = texts.map((text) => {
      const pattern = this.any(text);
      if (pattern.kind !== 'literal' || pattern.type !== 'string') {
        throw errorAt('REL_TYPE_MISMATCH', 'EXACT compares with a text in quotes', text.location);
      }
      return { when: { kind: 'same-folded', operand: field, text: pattern, type: 'boolean' } as const, result: boost };
    });
    const none: Bound = { kind: 'constant', cell: 0n, type: 'integer' };
    return { kind: 'case', operand: null, branches, otherwise: none, type: boost.type === 'number' ? 'number' : 'integer' };
  }

  /** The cosine that SIMILAR in WHERE compares, or the score of a function that ranks by likeness. */
  #vector(location: Location): Bound {
    const call = similarIn(this.#select.where);
    if (call) return bindSimilarity(call, (operand) => this.any(operand));
    const isRanked = this.#select.from.kind === 'function' && this.#select.from.name === 'SIMILAR';
    const score = isRanked ? this.#leaf({ kind: 'column', table: null, name: scoreName, location }) : undefined;
    if (score) return score;
    throw errorAt(
      'REL_INVALID',
      'VECTOR() scores rows that SIMILAR finds: SIMILAR(column, ARRAY[…], threshold=0.5) in WHERE',
      location,
    );
  }

  #highlight(call: Call): Bound {
    if (this.#use === 'rank') throw errorAt('REL_INVALID', 'HIGHLIGHT yields text: write it in COMPUTE', call.location);
    const [field] = arguments_(call, 1, 1);
    const operand = this.any(field!);
    const { type } = operand;
    if (type !== 'string' && type !== 'json')
      throw errorAt('REL_TYPE_MISMATCH', `HIGHLIGHT takes text, not ${operand.type}`, call.location);
    const sought = matchesIn(this.#select.where).map(readMatch);
    if (sought.length === 0)
      throw errorAt('REL_INVALID', 'HIGHLIGHT marks the words of a MATCH, and WHERE has none', call.location);
    const modes = sought.map(({ mode }) => mode);
    const column = operand.kind === 'column' ? operand.name : '';
    const signature: Signature = {
      takes: [type],
      cost: perHighlighted,
      repeats: true,
      yields: 'string',
      evaluate: (text) => text!,
      searching:
        (rules) =>
        (text, ...queries) => {
          const highlighter = rules.highlighter(queries.map(String), modes, column);
          return type === 'json' ? highlighter.ofJson(String(text)) : highlighter.mark(String(text));
        },
    };
    const queries = sought.map(
      ({ slot }): Bound => ({ kind: 'literal', slot, as: 'value', type: 'string', location: call.location }),
    );
    return { kind: 'call', name: call.name, function: signature, operands: [operand, ...queries], type: 'string' };
  }

  /** Texts that WHERE compares something with. */
  #soughtTexts(location: Location): Expression[] {
    const soughtTexts: Expression[] = [];
    const literals: readonly Literal[] = this.#rows.environment.literals;
    const isText = (each: Expression): boolean => each.kind === 'literal' && typeof literals[each.slot] === 'string';
    const walk = (each: Expression): void => {
      if (each.kind === 'binary') {
        if (each.op === 'and' || each.op === 'or') {
          walk(each.left);
          walk(each.right);
        } else if (each.op === '=' || each.op === 'like') soughtTexts.push(...[each.left, each.right].filter(isText));
      } else if (each.kind === 'in-list' && !each.negated) soughtTexts.push(...each.items.filter(isText));
      else if (each.kind === 'call' && each.name === 'MATCH') {
        const { slot } = readMatch(each);
        soughtTexts.push({ kind: 'literal', slot, location: each.location });
      }
    };
    if (this.#select.where) walk(this.#select.where);
    if (soughtTexts.length === 0 || soughtTexts.length > 32) {
      throw errorAt(
        'REL_INVALID',
        "EXACT needs a text: EXACT(field, boost, 'text'), or a WHERE that compares with one to 32 texts",
        location,
      );
    }
    return soughtTexts;
  }

  #distance(call: Call): Bound {
    const [attribute, ...coordinates] = arguments_(call, 2, 4_097);
    const from = this.any(attribute!);
    const to = coordinates.map((each) => this.number(each));
    if (from.type === 'vector') {
      if (from.kind !== 'column') throw errorAt('REL_TYPE_MISMATCH', 'DIST takes a column', call.location);
      return { kind: 'function', name: 'distance', operands: [from, ...to], type: 'number' };
    }
    if (!isNumber(from) || to.length > 1) {
      throw errorAt('REL_TYPE_MISMATCH', `DIST of ${to.length} coordinates takes a vector, not ${from.type}`, call.location);
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
    throw errorAt('REL_PARSE', `${call.name} takes ${many} arguments, by position`, call.location);
  }
  return call.arguments.map(({ value }) => value);
}

/** The call that a search answers with its score. */
function bm25Of(location: Location): Expression {
  return { kind: 'call', name: 'BM25', arguments: [], location };
}

/** The MATCH calls of WHERE that seek words; not those under NOT. */
function matchesIn(where: Expression | null): readonly Call[] {
  if (where === null) return [];
  if (where.kind === 'binary' && (where.op === 'and' || where.op === 'or')) {
    return [...matchesIn(where.left), ...matchesIn(where.right)];
  }
  return where.kind === 'call' && where.name === 'MATCH' ? [where] : [];
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

function decay(exponent: Bound): Bound {
  return scalar('exp', { kind: 'negate', operand: exponent, type: 'number' });
}

function product(bounds: readonly Bound[]): Bound {
  return bounds.reduce((left, right) => arithmetic('*', left, right));
}

function sumOf(bounds: readonly Bound[]): Bound {
  const [first, ...others] = bounds;
  return others.reduce(
    (left, right) => arithmetic('+', left, right),
    arithmetic('+', first!, { kind: 'constant', cell: 0n, type: 'integer' }),
  );
}

function knownOrZero(bound: Bound): Bound {
  return scalar('known', bound);
}
