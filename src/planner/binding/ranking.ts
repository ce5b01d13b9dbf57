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
const highlightCost: Cost = { call: 1_000, character: 300 };

type RankingCall = Extract<Expression, { kind: 'call' }>;

/** A rule of `SERVICE_RANKING_<Type>`. */
export interface RankingRule {
  readonly rule: 'recency' | 'custom' | 'exact';
  readonly field: string;
  readonly value: number;
}

/** The default score of rows that a MATCH finds, for statements without RANK BY: BM25 plus these rules. */
export function bindDefaultScore(rules: readonly RankingRule[], select: Select, rows: ExpressionContext): Bound {
  const ranking = new ScoreBinder(select, rows);
  return sumOf([ranking.bm25(select.location), ...rules.map((rule) => knownOrZero(ranking.byRule(rule)))]);
}

export function bindScore(select: Select, rows: ExpressionContext): Bound {
  const ranking = new ScoreBinder(select, rows);
  return sumOf(select.rankBy.map((expression) => knownOrZero(ranking.number(expression))));
}

export function bindCompute(expression: Expression, select: Select, rows: ExpressionContext): Bound {
  const computedColumn = new ScoreBinder(select, rows, 'compute').any(expression);
  if (computedColumn.type === 'interval') throw errorAt('REL_TYPE_MISMATCH', 'an INTERVAL is no column', expression.location);
  return computedColumn;
}

class ScoreBinder {
  readonly #rankedSelect: Select;
  readonly #rankingContext: ExpressionContext;

  readonly #sourceLeaf: ExpressionContext['leaf'];
  readonly #scoreUse: 'rank' | 'compute';

  constructor(select: Select, rows: ExpressionContext, use: 'rank' | 'compute' = 'rank') {
    this.#rankedSelect = select;
    this.#sourceLeaf = rows.leaf;
    this.#scoreUse = use;
    // Primitives nest in arithmetic and in each other.
    this.#rankingContext = {
      ...rows,
      leaf: (expression) => (expression.kind === 'call' ? this.#scoreCall(expression) : undefined) ?? rows.leaf(expression),
    };
  }

  any(expression: Expression): Bound {
    return bindExpression(expression, this.#rankingContext);
  }

  number(expression: Expression): Bound {
    const scoreOperand = this.any(expression);
    if (isNumberBound(scoreOperand)) return scoreOperand;
    throw errorAt('REL_TYPE_MISMATCH', `a score is a number, this is ${scoreOperand.type}`, expression.location);
  }

  bm25(location: Location): Bound {
    const bm25Score = this.#sourceLeaf(bm25Of(location));
    if (bm25Score) return bm25Score;
    throw errorAt('REL_INVALID', 'BM25() scores the rows of one type that a MATCH in WHERE finds', location);
  }

  byRule({ rule, field, value }: RankingRule): Bound {
    const column: Expression = { kind: 'column', table: null, name: field, location: this.#rankedSelect.location };
    const weight: Bound = { kind: 'constant', cell: value, type: 'number' };
    const ruleField = this.any(column);
    if (rule === 'recency') return this.#recencyOf(ruleField, weight, column.location);
    if (rule === 'exact') return this.#exactOf(ruleField, weight, this.#soughtTextsOf(column.location), column.location);
    if (isNumberBound(ruleField)) return productOf([ruleField, weight]);
    throw errorAt('REL_TYPE_MISMATCH', `a score is a number, ${JSON.stringify(field)} is ${ruleField.type}`, column.location);
  }

  #scoreCall(call: RankingCall): Bound | undefined {
    switch (call.name) {
      case 'RECENCY':
        return this.#recency(call);
      case 'CUSTOM': {
        const [field, customWeight] = this.#scoreNumbers(call, 2, 2);
        return productOf([field!, customWeight!]);
      }
      case 'EXACT':
        return this.#exact(call);
      case 'ATTRIBUTE': {
        const [attributeOperand] = positionalArguments(call, 1, 1);
        return this.any(attributeOperand!);
      }
      case 'SUM':
        return sumOf(this.#scoreNumbers(call, 1, 32).map(knownOrZero));
      case 'MAX':
        return { kind: 'function', name: 'greatest', operands: this.#scoreNumbers(call, 1, 32), type: 'number' };
      case 'PRODUCT':
        return productOf(this.#scoreNumbers(call, 1, 32));
      case 'SATURATE': {
        const [value, halfPoint] = this.#scoreNumbers(call, 2, 2);
        return arithmeticBound('/', value!, arithmeticBound('+', value!, halfPoint!));
      }
      case 'DECAY': {
        const [value, decayScale] = this.#scoreNumbers(call, 2, 2);
        return decayOf(arithmeticBound('/', scalarBound('abs', value!), decayScale!));
      }
      case 'DIST':
        return this.#distance(call);
      case 'BM25':
        positionalArguments(call, 0, 0);
        return this.bm25(call.location);
      case 'VECTOR':
        positionalArguments(call, 0, 0);
        return this.#vector(call.location);
      case 'HIGHLIGHT':
        return this.#highlight(call);
      default:
        return undefined;
    }
  }

  #recency(call: RankingCall): Bound {
    const [field, halfLife] = positionalArguments(call, 2, 2);
    return this.#recencyOf(this.any(field!), this.number(halfLife!), call.location);
  }

  /** Ages count from the instant that `now()` means. */
  #recencyOf(field: Bound, halfLife: Bound, location: Location): Bound {
    if (field.type !== 'timestamp' && field.type !== 'integer') {
      throw errorAt('REL_TYPE_MISMATCH', `RECENCY takes a timestamp or an integer of nanoseconds, not ${field.type}`, location);
    }
    const ageNanoseconds = scalarBound('elapsed', { kind: 'now', type: 'timestamp' }, field);
    return decayOf(arithmeticBound('/', ageNanoseconds, scalarBound('nanoseconds', halfLife)));
  }

  #exact(call: RankingCall): Bound {
    const [field, boost, text] = positionalArguments(call, 2, 3);
    const texts = text ? [text] : this.#soughtTextsOf(call.location);
    return this.#exactOf(this.any(field!), this.number(boost!), texts, call.location);
  }

  #exactOf(field: Bound, boost: Bound, texts: readonly Expression[], location: Location): Bound {
    if (field.type !== 'string') throw errorAt('REL_TYPE_MISMATCH', `EXACT takes text, not ${field.type}`, location);
    const exactBranches = texts.map((text) => {
      const exactPattern = this.any(text);
      if (exactPattern.kind !== 'literal' || exactPattern.type !== 'string') {
        throw errorAt('REL_TYPE_MISMATCH', 'EXACT compares with a text in quotes', text.location);
      }
      return { when: { kind: 'same-folded', operand: field, text: exactPattern, type: 'boolean' } as const, result: boost };
    });
    const noBoost: Bound = { kind: 'constant', cell: 0n, type: 'integer' };
    return {
      kind: 'case',
      operand: null,
      branches: exactBranches,
      otherwise: noBoost,
      type: boost.type === 'number' ? 'number' : 'integer',
    };
  }

  /** The cosine that SIMILAR in WHERE compares, or the score of a function that ranks by likeness. */
  #vector(location: Location): Bound {
    const similarCall = similarIn(this.#rankedSelect.where);
    if (similarCall) return bindSimilarity(similarCall, (operand) => this.any(operand));
    const isRanked = this.#rankedSelect.from.kind === 'function' && this.#rankedSelect.from.name === 'SIMILAR';
    const vectorScore = isRanked ? this.#sourceLeaf({ kind: 'column', table: null, name: scoreName, location }) : undefined;
    if (vectorScore) return vectorScore;
    throw errorAt(
      'REL_INVALID',
      'VECTOR() scores rows that SIMILAR finds: SIMILAR(column, ARRAY[…], threshold=0.5) in WHERE',
      location,
    );
  }

  #highlight(call: RankingCall): Bound {
    if (this.#scoreUse === 'rank') throw errorAt('REL_INVALID', 'HIGHLIGHT yields text: write it in COMPUTE', call.location);
    const [field] = positionalArguments(call, 1, 1);
    const highlightOperand = this.any(field!);
    const { type } = highlightOperand;
    if (type !== 'string' && type !== 'json')
      throw errorAt('REL_TYPE_MISMATCH', `HIGHLIGHT takes text, not ${highlightOperand.type}`, call.location);
    const matchesSought = matchesIn(this.#rankedSelect.where).map(readMatch);
    if (matchesSought.length === 0)
      throw errorAt('REL_INVALID', 'HIGHLIGHT marks the words of a MATCH, and WHERE has none', call.location);
    const matchModes = matchesSought.map(({ mode }) => mode);
    const highlightColumn = highlightOperand.kind === 'column' ? highlightOperand.name : '';
    const highlightSignature: Signature = {
      takes: [type],
      cost: highlightCost,
      repeats: true,
      yields: 'string',
      evaluate: (text) => text!,
      searching:
        (rules) =>
        (text, ...queries) => {
          const highlighter = rules.highlighter(queries.map(String), matchModes, highlightColumn);
          return type === 'json' ? highlighter.ofJson(String(text)) : highlighter.mark(String(text));
        },
    };
    const matchQueries = matchesSought.map(
      ({ slot }): Bound => ({ kind: 'literal', slot, as: 'value', type: 'string', location: call.location }),
    );
    return {
      kind: 'call',
      name: call.name,
      function: highlightSignature,
      operands: [highlightOperand, ...matchQueries],
      type: 'string',
    };
  }

  /** Texts that WHERE compares something with. */
  #soughtTextsOf(location: Location): Expression[] {
    const soughtTexts: Expression[] = [];
    const literals: readonly Literal[] = this.#rankingContext.environment.literals;
    const isText = (each: Expression): boolean => each.kind === 'literal' && typeof literals[each.slot] === 'string';
    const walkCondition = (each: Expression): void => {
      if (each.kind === 'binary') {
        if (each.op === 'and' || each.op === 'or') {
          walkCondition(each.left);
          walkCondition(each.right);
        } else if (each.op === '=' || each.op === 'like') soughtTexts.push(...[each.left, each.right].filter(isText));
      } else if (each.kind === 'in-list' && !each.negated) soughtTexts.push(...each.items.filter(isText));
      else if (each.kind === 'call' && each.name === 'MATCH') {
        const { slot } = readMatch(each);
        soughtTexts.push({ kind: 'literal', slot, location: each.location });
      }
    };
    if (this.#rankedSelect.where) walkCondition(this.#rankedSelect.where);
    if (soughtTexts.length === 0 || soughtTexts.length > 32) {
      throw errorAt(
        'REL_INVALID',
        "EXACT needs a text: EXACT(field, boost, 'text'), or a WHERE that compares with one to 32 texts",
        location,
      );
    }
    return soughtTexts;
  }

  #distance(call: RankingCall): Bound {
    const [distanceAttribute, ...coordinates] = positionalArguments(call, 2, 4_097);
    const distanceFrom = this.any(distanceAttribute!);
    const distanceCoordinates = coordinates.map((each) => this.number(each));
    if (distanceFrom.type === 'vector') {
      if (distanceFrom.kind !== 'column') throw errorAt('REL_TYPE_MISMATCH', 'DIST takes a column', call.location);
      return { kind: 'function', name: 'distance', operands: [distanceFrom, ...distanceCoordinates], type: 'number' };
    }
    if (!isNumberBound(distanceFrom) || distanceCoordinates.length > 1) {
      throw errorAt(
        'REL_TYPE_MISMATCH',
        `DIST of ${distanceCoordinates.length} coordinates takes a vector, not ${distanceFrom.type}`,
        call.location,
      );
    }
    return scalarBound('abs', arithmeticBound('-', distanceFrom, distanceCoordinates[0]!));
  }

  #scoreNumbers(call: RankingCall, least: number, most: number): Bound[] {
    return positionalArguments(call, least, most).map((expression) => this.number(expression));
  }
}

function positionalArguments(call: RankingCall, argumentsLeast: number, argumentsMost: number): Expression[] {
  const namedArgument: FunctionArgument | undefined = call.arguments.find(({ name }) => name !== null);
  const argumentCount = call.arguments.length;
  if (namedArgument || argumentCount < argumentsLeast || argumentCount > argumentsMost) {
    const argumentCounts = argumentsLeast === argumentsMost ? `${argumentsLeast}` : `${argumentsLeast} to ${argumentsMost}`;
    throw errorAt('REL_PARSE', `${call.name} takes ${argumentCounts} arguments, by position`, call.location);
  }
  return call.arguments.map(({ value }) => value);
}

/** The call that a search answers with its score. */
function bm25Of(location: Location): Expression {
  return { kind: 'call', name: 'BM25', arguments: [], location };
}

/** The MATCH calls of WHERE that seek words; not those under NOT. */
function matchesIn(where: Expression | null): readonly RankingCall[] {
  if (where === null) return [];
  if (where.kind === 'binary' && (where.op === 'and' || where.op === 'or')) {
    return [...matchesIn(where.left), ...matchesIn(where.right)];
  }
  return where.kind === 'call' && where.name === 'MATCH' ? [where] : [];
}

function isNumberBound(bound: Bound): boolean {
  return bound.type === 'null' || bound.type === 'integer' || bound.type === 'number';
}

/** Scores are doubles: an order, not an account. */
function arithmeticBound(op: '+' | '-' | '*' | '/', left: Bound, right: Bound): Bound {
  return { kind: 'arithmetic', op, left, right, type: 'number' };
}

function scalarBound(name: ScalarFunction, ...operands: Bound[]): Bound {
  return { kind: 'function', name, operands, type: 'number' };
}

function decayOf(exponent: Bound): Bound {
  return scalarBound('exp', { kind: 'negate', operand: exponent, type: 'number' });
}

function productOf(bounds: readonly Bound[]): Bound {
  return bounds.reduce((left, right) => arithmeticBound('*', left, right));
}

function sumOf(bounds: readonly Bound[]): Bound {
  const [firstSummand, ...otherSummands] = bounds;
  return otherSummands.reduce(
    (left, right) => arithmeticBound('+', left, right),
    arithmeticBound('+', firstSummand!, { kind: 'constant', cell: 0n, type: 'integer' }),
  );
}

function knownOrZero(bound: Bound): Bound {
  return scalarBound('known', bound);
}
