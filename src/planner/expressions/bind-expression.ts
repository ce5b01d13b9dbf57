/**
 * Gives every node of an expression a type, or refuses it with its location. The caller resolves names (`Leaf`): a column of a
 * type, an output of an aggregate, an alias.
 */
import { didYouMean, ServiceError } from '../../errors.ts';
import type { ColumnType } from '../../log/values/value.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { ColumnRef, Expression, Literal, Location, Subselect } from '../syntax/statement.ts';
import {
  asBeside,
  vectorsEqual,
  asDateLiteral,
  asJson,
  besideJson,
  calledByName,
  asInstantLiteral,
  asIntervals,
  bindCall,
  bindStated,
  commonResult,
  isText,
  isNumeric,
  jsonText,
  ofAnyType,
  ofCatalogue,
  recordOf,
} from './bind-call.ts';
import { dateArithmetic, isDate } from './date-arithmetic.ts';
import { bindMatch } from './bind-match.ts';
import { bindSimilar } from './bind-similar.ts';
import { type ArithmeticOp, type Bound, type CompareOp, columnsIn } from './bound-expression.ts';
import type { Caveat } from './comparison-notices.ts';
import type { ValueType } from './value-type.ts';
import type { CatalogueFunctions } from './functions/catalogue.ts';
import { wireTypeOf, withCommonWire } from './postgres-types.ts';
import { intervalLength } from './functions/intervals.ts';
import { jsonAsText } from './functions/json.ts';
import { calendarSteps, fixedIntervals, isCalendarUnit } from './functions/instants.ts';
import { degreeQuery } from './degree-query.ts';
import type { LookupTable } from './lookup-table.ts';
import type { PhoneticFunction } from './phonetic.ts';

/** Asked first at every node; undefined leaves the node to the general rules. */
export type Leaf = (expression: Expression) => Bound | undefined;

/** The surroundings of an expression: its names, functions and limits. */
export interface ExpressionContext {
  readonly environment: {
    readonly literals: readonly Literal[];
    /** Receives the caveats that binding finds; absent where nobody reads them. */
    readonly caveats?: Caveat[];
    lookup(name: string): LookupTable | undefined;
    /** The statement comes by a wire protocol, whose clients write the dialect of Postgres. */
    readonly wide?: boolean;
    /** Functions and types of the catalogue, on the wide dialect. */
    readonly catalogue?: CatalogueFunctions | undefined;
  };
  readonly leaf: Leaf;
  /** The column of a window function's results. */
  readonly over: (over: Over, bind: (operand: Expression) => Bound) => Bound;
  /** The column of the elements that a call yields; absent: none may stand here. */
  readonly spread?: (call: Extract<Expression, { kind: 'call' }>, bind: (operand: Expression) => Bound) => Bound;
  /** Binds a query inside an expression. */
  readonly subselect: (subselect: Subselect | InQuery, bind: (operand: Expression) => Bound) => Bound;
}

type InQuery = Extract<Expression, { kind: 'in-query' }>;
type Over = Extract<Expression, { kind: 'over' }>;

export function bindExpression(expression: Expression, context: ExpressionContext): Bound {
  return new ExpressionBinder(context).bind(expression);
}

/** A condition: boolean or NULL. */
export function bindPredicate(expression: Expression, context: ExpressionContext): Bound {
  const bound = ofAnyType(bindExpression(expression, context), 'boolean');
  if (bound.type !== 'boolean' && bound.type !== 'null') {
    throw errorAt('REL_TYPE_MISMATCH', `a condition is boolean, this is ${bound.type}`, expression.location, 'types-differ');
  }
  return bound;
}

/** A number of rows: an integer or NULL. Texts are converted where they are literals. */
export function bindRowCount(expression: Expression, context: ExpressionContext, of: 'LIMIT' | 'OFFSET'): Bound {
  const { location } = expression;
  const bound = bindExpression(expression, context);
  const isText = bound.type === 'string' && bound.kind === 'literal';
  if (bound.type === 'integer') return bound;
  if (bound.type !== 'null' && bound.type !== 'number' && !isText)
    throw errorAt('REL_TYPE_MISMATCH', `${of} takes a number of rows, not ${bound.type}`, location, 'types-differ');
  const type: ColumnRef = { kind: 'column', table: null, name: 'BIGINT', location };
  const cast = {
    kind: 'call',
    name: 'CAST',
    arguments: [
      { name: null, value: expression },
      { name: 'TYPE', value: type },
    ],
    location,
  } as const;
  return bindCall(cast, () => bound, true);
}

/** Rank primitives, which a search computes for the rows that it finds. */
const rankPrimitives: ReadonlySet<string> = new Set(['BM25', 'HIGHLIGHT', 'VECTOR']);

class ExpressionBinder {
  readonly #context: ExpressionContext;

  constructor(context: ExpressionContext) {
    this.#context = context;
  }

  bind(expression: Expression): Bound {
    const known = this.#leaf(expression);
    if (known) return known;
    const location = expression.location;
    switch (expression.kind) {
      case 'column':
        throw errorAt('REL_UNKNOWN_COLUMN', `there is no column ${JSON.stringify(expression.name)}`, location);
      case 'literal':
        return this.#literal(expression);
      case 'constant': {
        const { cell } = expression;
        return { kind: 'constant', cell, type: cell === null ? 'null' : typeof cell === 'string' ? 'string' : 'integer' };
      }
      case 'now':
        return { kind: 'now', type: 'timestamp' };
      case 'interval':
        return this.#interval(expression);
      case 'binary':
        return this.#binary(expression);
      case 'not':
        return { kind: 'not', operand: this.#condition(expression.operand), type: 'boolean' };
      case 'negate':
        return this.#negate(expression);
      case 'is-null': {
        const test: Bound = { kind: 'is-null', operand: this.bind(expression.operand), type: 'boolean' };
        return expression.negated ? { kind: 'not', operand: test, type: 'boolean' } : test;
      }
      case 'between': {
        const [operand, [low, high]] = this.#alike(
          this.bind(expression.operand),
          [expression.low, expression.high],
          '>=',
          location,
        );
        return negatedIf(expression.negated, { kind: 'between', operand, low: low!, high: high!, type: 'boolean' });
      }
      case 'in-list':
        return negatedIf(expression.negated, this.#inList(expression));
      case 'case':
        return this.#case(expression);
      case 'call':
        return this.#call(expression);
      case 'in-query':
      case 'scalar-query':
      case 'exists':
      case 'quantified':
        return this.#context.subselect(expression, (operand) => this.bind(operand));
      case 'over':
        return this.#context.over(expression, (operand) => this.bind(operand));
      case 'row':
        return this.#row(expression);
      case 'aggregate':
        throw errorAt(
          'REL_INVALID',
          `${expression.function.toUpperCase()} can't stand here: it is computed after WHERE and GROUP BY`,
          location,
          'not-grouped',
        );
    }
  }

  #negate({ operand: operandExpression, location }: Extract<Expression, { kind: 'negate' }>): Bound {
    const operand = this.bind(operandExpression);
    if (isUnknown(operand))
      throw errorAt('REL_TYPE_MISMATCH', 'the sign of a parameter needs its type', location, 'ambiguous-type');
    if (operand.type === 'null') return operand;
    const negated = isInterval(operand) ? this.#context.environment.catalogue?.call('#negate', ['interval']) : null;
    if (negated) return ofCatalogue('-', negated, [operand], location);
    if (operand.type !== 'integer' && operand.type !== 'number')
      throw mismatch(`- needs a number, not ${operand.type}`, location);
    return { kind: 'negate', operand, type: operand.type };
  }

  #call(expression: Extract<Expression, { kind: 'call' }>): Bound {
    const { location } = expression;
    if (expression.name === 'LOOKUP') return this.#lookup(expression);
    if (expression.name === 'SIMILAR') return bindSimilar(expression, (operand) => this.bind(operand));
    if (expression.name === 'DEGREE') return this.#degree(expression);
    if (expression.name === '#PLUS') return this.#plus(expression);
    if (expression.name === '#LIST' || expression.name === '#IN' || expression.name === '#MAP') return this.#ofJson(expression);
    if (expression.name === 'MATCH') return bindMatch(expression, (operand) => this.bind(operand));
    if (phoneticFunctions.has(expression.name))
      throw errorAt('REL_INVALID', `${expression.name}(column) stands beside a text, with = or != between them`, location);
    if (rankPrimitives.has(expression.name))
      throw errorAt('REL_INVALID', `${expression.name}() stands in RANK BY or COMPUTE, over rows that WHERE searches`, location);
    if (expression.name === 'ARRAY' && this.#context.environment.catalogue === undefined)
      throw errorAt('REL_NOT_IMPLEMENTED', "ARRAY[…] is not implemented here: a vector is written '[1, 2]'", location);
    if (this.#context.spread && this.#context.environment.catalogue?.isSet(expression.name.toLowerCase()) === true)
      return this.#context.spread(expression, (argument) => this.bind(argument));
    return bindCall(
      expression,
      (argument) => this.bind(argument),
      this.#context.environment.wide === true,
      this.#context.environment.catalogue,
    );
  }

  #row(expression: Extract<Expression, { kind: 'row' }>): Bound {
    const { catalogue } = this.#context.environment;
    if (catalogue && expression.items.length > 0) return recordOf(expression, (item) => this.bind(item), catalogue);
    throw errorAt(
      'REL_INVALID',
      'a row of values stands beside another one, with a comparison or IN between them',
      expression.location,
    );
  }

  /** USER, which Postgres reserves, may be a column here; where no table has one, it is the caller. */
  #leaf(expression: Expression): Bound | undefined {
    const { catalogue } = this.#context.environment;
    const isUser =
      expression.kind === 'column' && expression.table === null && !expression.quoted && /^user$/i.test(expression.name);
    if (!isUser || catalogue === undefined) return this.#context.leaf(expression);
    try {
      return this.#context.leaf(expression);
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code !== 'REL_UNKNOWN_COLUMN') throw error;
      return this.bind({ kind: 'call', name: 'USER', arguments: [], location: expression.location });
    }
  }

  #literal({ slot, typed, location }: Extract<Expression, { kind: 'literal' }>): Bound {
    const { literals, wide } = this.#context.environment;
    const zoned = wide === true ? { zoned: true as const } : {};
    if (typed === undefined || typed === 'unknown') {
      const type = literalType(literals[slot]!);
      return { kind: 'literal', slot, as: 'value', type, ...zoned, ...(typed && { unknown: true }), location };
    }
    return bindStated({ kind: 'literal', slot, as: 'value', type: 'string', ...zoned, location }, typed);
  }

  #condition(expression: Expression): Bound {
    return bindPredicate(expression, this.#context);
  }

  #binary(expression: Extract<Expression, { kind: 'binary' }>): Bound {
    const { op, left, right, location } = expression;
    switch (op) {
      case 'and':
      case 'or':
        return { kind: op, operands: [this.#condition(left), this.#condition(right)], type: 'boolean' };
      case 'like': {
        const operand = jsonText(this.bind(left));
        const pattern = jsonText(this.bind(right));
        for (const side of [operand, pattern]) {
          if (side.type !== 'string' && side.type !== 'null') throw mismatch(`LIKE compares text, not ${side.type}`, location);
        }
        const escapes = this.#context.environment.wide === true ? { escapes: true as const } : {};
        return { kind: 'like', operand, pattern, ...escapes, type: 'boolean' };
      }
      case '+':
      case '-':
      case '*':
      case '/':
      case '%':
        if (this.#context.environment.catalogue) return this.#arithmetic(op, this.bind(left), this.bind(right), location);
        if (isCalendarStep(right) && (op === '+' || op === '-')) return this.#calendarStep(op, left, right);
        if (isCalendarStep(left) && op === '+') return this.#calendarStep(op, right, left);
        return this.#arithmetic(op, this.bind(left), this.bind(right), location);
      default:
        return this.#compare(op, left, right, location);
    }
  }

  /** A month and a year are as long as they are beside an instant, and nowhere else. */
  #interval({ interval, unit, location }: Extract<Expression, { kind: 'interval' }>): Bound {
    const { slot } = interval.slot;
    const intervalCall = this.#context.environment.catalogue?.call('#interval', ['unknown', 'text']);
    if (intervalCall) {
      const given: Bound = { kind: 'literal', slot, as: 'value', type: 'string', location };
      return ofCatalogue('INTERVAL', intervalCall, [given, { kind: 'constant', cell: unit ?? '', type: 'string' }], location);
    }
    if (unit === null) return { kind: 'literal', slot, as: 'interval', type: 'interval', location };
    const fixed = fixedIntervals.get(unit);
    if (!fixed)
      throw errorAt('REL_TYPE_MISMATCH', `INTERVAL 'n' ${unit.toUpperCase()} stands behind an instant and + or -`, location);
    const operand: Bound = { kind: 'literal', slot, as: 'value', type: 'string', location };
    return { kind: 'call', name: fixed.name, function: fixed.signatures[0]!, operands: [operand], type: 'interval' };
  }

  #calendarStep(op: '+' | '-', instant: Expression, { interval, unit, location }: CalendarStep): Bound {
    const operand = asInstantLiteral(this.bind(instant));
    if (operand.type === 'null') return operand;
    if (operand.type !== 'timestamp') throw mismatch(`an INTERVAL is added to a timestamp, not to ${operand.type}`, location);
    const step = calendarSteps.get(`${op}${unit}`)!;
    const amount: Bound = { kind: 'literal', slot: interval.slot.slot, as: 'value', type: 'string', location };
    return { kind: 'call', name: step.name, function: step.signatures[0]!, operands: [operand, amount], type: 'timestamp' };
  }

  #compare(op: CompareOp, leftExpression: Expression, rightExpression: Expression, location: Location): Bound {
    const sounds = this.#phonetic(leftExpression, rightExpression) ?? this.#phonetic(rightExpression, leftExpression);
    if (sounds) return { kind: 'compare', op, ...sounds, type: 'boolean' };
    const [a, b] = [this.bind(leftExpression), this.bind(rightExpression)];
    const vectors = op === '=' || op === '!=' ? vectorsEqual(a, b, location) : null;
    if (vectors) return negatedIf(op === '!=', vectors);
    const [left, right] = this.#matchOperands(a, b, op, location);
    return { kind: 'compare', op, left, right, type: 'boolean' };
  }

  /** `matchOperands`, with caveats for a comparison that holds of no row. */
  #matchOperands(left: Bound, right: Bound, op: CompareOp, location: Location): [Bound, Bound] {
    this.#noteCaveat(left, right);
    this.#noteCaveat(right, left);
    return matchOperands(left, right, op, location);
  }

  #noteCaveat(side: Bound, other: Bound): void {
    if (side.kind !== 'literal') return;
    const { caveats } = this.#context.environment;
    if (side.type === 'null') caveats?.push({ kind: 'null', slot: side.slot });
    else if (side.type === 'string' && isJson(other)) caveats?.push({ kind: 'quoted', slot: side.slot });
  }

  /** Rule 6: how a column sounds, beside how a text sounds that is the same for every row, and so is encoded once. */
  #phonetic(call: Expression, other: Expression): { readonly left: Bound; readonly right: Bound } | undefined {
    const name = call.kind === 'call' ? phoneticFunctions.get(call.name) : undefined;
    if (call.kind !== 'call' || name === undefined) return undefined;
    const [argument, ...more] = call.arguments;
    if (!argument || argument.name !== null || more.length > 0)
      throw errorAt('REL_INVALID', `${call.name} takes one column`, call.location);
    const operand = this.bind(argument.value);
    const text = this.bind(other);
    for (const [side, location] of [
      [operand, argument.value.location],
      [text, other.location],
    ] as const) {
      if (side.type !== 'string' && side.type !== 'null') throw mismatch(`${call.name} is of text, not ${side.type}`, location);
    }
    if (operand.kind !== 'column') throw errorAt('REL_INVALID', `${call.name} is of a column`, argument.value.location);
    if (columnsIn(text).size > 0)
      throw errorAt('REL_INVALID', `${call.name} is compared with a text, not with a column`, other.location);
    const sound = (of: Bound): Bound => ({ kind: 'phonetic', function: name, operand: of, type: 'string' });
    return { left: sound(operand), right: sound(text) };
  }

  #inList(expression: Extract<Expression, { kind: 'in-list' }>): Bound {
    if (expression.items.length === 0) {
      this.bind(expression.operand);
      return { kind: 'constant', cell: false, type: 'boolean' };
    }
    const operand = this.bind(expression.operand);
    const values = this.#joinLiterals(expression.items, operand);
    const [alike, items] = this.#alike(operand, values, '=', expression.location);
    for (const [i, value] of values.entries()) {
      if (value.kind !== 'literal' || value.count === undefined) continue;
      items[i] = { kind: 'literals', first: items[i]!, slot: value.slot, count: value.count, type: items[i]!.type };
    }
    return { kind: 'in', operand: alike, items, type: 'boolean' };
  }

  /** Values that are all converted as the first of them stay one item. */
  #joinLiterals(items: readonly Expression[], { type }: Bound): readonly Expression[] {
    const literals: readonly Literal[] = this.#context.environment.literals;
    const isNumber = type === 'integer' || type === 'number';
    const stays = (value: Literal): boolean => (typeof value === 'string' ? type === 'string' : isNumber);
    if (!items.some((item) => item.kind === 'literal' && item.count !== undefined && !stays(literals[item.slot]!))) return items;
    return items.flatMap((item) => {
      if (item.kind !== 'literal' || item.count === undefined) return [item];
      const { slot, location } = item;
      return Array.from({ length: item.count }, (_, i): Expression => ({ kind: 'literal', slot: slot + i, location }));
    });
  }

  /** Its values as json; the first of a map are its names. */
  #ofJson({ name, arguments: given, location }: Extract<Expression, { kind: 'call' }>): Bound {
    const values = given.map(({ value }, i) => {
      const bound = this.bind(value);
      return name === '#MAP' && i === 0 ? bound : asJson(bound, location);
    });
    return calledByName(name, values, location);
  }

  /** Numbers and instants are added, texts and lists put one behind the other. */
  #plus({ arguments: given, location }: Extract<Expression, { kind: 'call' }>): Bound {
    const [left, right] = besideJson(this.bind(given[0]!.value), this.bind(given[1]!.value));
    const isOf = (type: ValueType): boolean => left.type === type || right.type === type;
    if (isOf('json')) return calledByName('#APPEND', [asJson(left, location), asJson(right, location)], location);
    if (isOf('string')) return calledByName('||', [left, right], location);
    return this.#arithmetic('+', left, right, location);
  }

  /** The number of edges from or to the node that a column names; 0 where there is no such node. */
  #degree(call: Extract<Expression, { kind: 'call' }>): Bound {
    const query = degreeQuery(call, this.#context.environment.literals);
    const degreeCell = this.#context.subselect({ kind: 'scalar-query', query, location: call.location }, (operand) =>
      this.bind(operand),
    );
    return { kind: 'coalesce', operands: [degreeCell, { kind: 'constant', cell: 0n, type: 'integer' }], type: 'integer' };
  }

  #lookup({ arguments: given, location }: Extract<Expression, { kind: 'call' }>): Bound {
    const [table, key, field] = given.map(({ value }) => value);
    if (table?.kind !== 'column' || field?.kind !== 'column' || !key) {
      throw errorAt('REL_PARSE', 'LOOKUP is written LOOKUP name(column) -> field', location);
    }
    const lookupTable = this.#context.environment.lookup(table.name);
    if (!lookupTable) throw errorAt('REL_NOT_FOUND', `there is no lookup table ${JSON.stringify(table.name)}`, table.location);
    if (lookupTable.fieldType(field.name) === undefined) {
      throw errorAt(
        'REL_UNKNOWN_COLUMN',
        `lookup table ${JSON.stringify(table.name)} has no field ${JSON.stringify(field.name)}${didYouMean(field.name, lookupTable.fields)}; it has ${lookupTable.fields.join(', ')}`,
        field.location,
      );
    }
    const operand = jsonText(this.bind(key));
    if (operand.type !== 'string' && operand.type !== 'integer' && operand.type !== 'null') {
      throw mismatch(`LOOKUP takes a key of text or integers, not ${operand.type}`, key.location);
    }
    return { kind: 'lookup', table: lookupTable, field: field.name, operand, type: 'string' };
  }

  /** An operand compared with several values must be bound to one type for all of them. */
  #alike(operand: Bound, values: readonly Expression[], op: CompareOp, location: Location): [Bound, Bound[]] {
    const bounds = values.map((value) => this.bind(value));
    const probe = bounds.some(({ type }) => type === 'string') ? jsonText(operand) : operand;
    let first: Bound | null = null;
    const types = new Set<ValueType>();
    // Converts in place: a list may have a hundred thousand values.
    let last: ValueType | null = null;
    for (let i = 0; i < bounds.length; i++) {
      const bound = bounds[i]!;
      if (bound.type === last && isPlainNumber(bound)) continue;
      const [each, value] = this.#matchOperands(probe, bound, op, values[i]!.location);
      first ??= each;
      types.add(each.type);
      bounds[i] = value;
      // Numbers behind one that stays as it is, stay too.
      last = value === bound && each === first ? bound.type : null;
    }
    if (types.size > 1) throw mismatch(`one value can't be compared as ${[...types].join(' and ')}`, location);
    return [first ?? probe, bounds];
  }

  #arithmetic(op: ArithmeticOp, one: Bound, other: Bound, location: Location): Bound {
    let [left, right] = besideJson(one, other);
    const refuse = (): never => {
      throw mismatch(`${left.type} ${op} ${right.type} is not defined`, location);
    };
    [left, right] = [asBeside(left, right.type), asBeside(right, left.type)];
    if (this.#context.environment.wide === true && op === '-') {
      if (isDate(left)) right = asDateLiteral(right);
      else if (left.type === 'timestamp') right = asInstantLiteral(right, 'text');
    }
    const timed = this.#bindTimed(op, left, right, location);
    if (timed) return timed;
    if (isUnknown(left) || isUnknown(right)) return besideUnknown(op, left, right, refuse);
    if (left.type === 'null') return left;
    if (right.type === 'null') return right;
    if (left.type === 'timestamp' || right.type === 'timestamp') {
      if (this.#context.environment.wide === true && (left.type === 'integer' || right.type === 'integer' || isDate(left)))
        return dateArithmetic(op, left, right, refuse);
      if (left.type === right.type && op === '-') return { kind: 'arithmetic', op, left, right, type: 'integer' };
      const shift = left.type === 'timestamp' ? right.type : left.type;
      const shifts = shift === 'interval' || shift === 'integer';
      if (!shifts || !(op === '+' || (op === '-' && left.type === 'timestamp'))) return refuse();
      return { kind: 'arithmetic', op, left, right, type: 'timestamp' };
    }
    if (!isNumeric(left.type) || !isNumeric(right.type)) return refuse();
    const integers = left.type === 'integer' && right.type === 'integer';
    return { kind: 'arithmetic', op, left, right, type: integers && op !== '/' ? 'integer' : 'number' };
  }

  /** The operator of Postgres, where one side is an interval or json, or the result is one. */
  #bindTimed(op: ArithmeticOp, left: Bound, right: Bound, location: Location): Bound | null {
    const { catalogue } = this.#context.environment;
    if (catalogue === undefined || op === '%') return null;
    const instants = [left, right].filter(({ type }) => type === 'timestamp').length;
    const takesInterval = isInterval(left) || isInterval(right);
    const yieldsInterval = op === '-' && instants === 2 && !(isDate(left) && isDate(right));
    const isText = (bound: Bound): boolean => bound.type === 'string' && bound.kind === 'literal';
    const hasText = op === '+' && instants === 1 && (isText(left) || isText(right));
    const deletes = op === '-' && left.type === 'json';
    if (!takesInterval && !yieldsInterval && !hasText && !deletes) return null;
    const catalogueCall = catalogue.call(op, [wireTypeOf(left), wireTypeOf(right)]);
    return catalogueCall && ofCatalogue(op, catalogueCall, [left, right], location);
  }

  #case(expression: Extract<Expression, { kind: 'case' }>): Bound {
    const values = expression.branches.map(({ when }) => when);
    const [operand, whens] = expression.operand
      ? this.#alike(this.bind(expression.operand), values, '=', expression.location)
      : [null, values.map((when) => this.#condition(when))];
    const bound = [...expression.branches.map(({ then }) => then), ...(expression.otherwise ? [expression.otherwise] : [])];
    const all = asIntervals(
      bound.map((each) => this.bind(each)),
      this.#context.environment.catalogue,
    );
    const results = all.slice(0, expression.branches.length);
    const otherwise = expression.otherwise ? all.at(-1)! : null;
    const { type, fit } = commonResult('a CASE', [...results, ...(otherwise ? [otherwise] : [])], expression.location);
    const recordCase = {
      kind: 'case' as const,
      operand,
      branches: whens.map((when, i) => ({ when, result: fit(results[i]!) })),
      otherwise: otherwise && fit(otherwise),
      type,
    };
    return withCommonWire(recordCase, [...results, ...(otherwise ? [otherwise] : [])], this.#context.environment.catalogue);
  }
}

function isPlainNumber(bound: Bound): boolean {
  return bound.kind === 'literal' && bound.as === 'value' && bound.unknown !== true && isNumeric(bound.type);
}

function isUnknown(bound: Bound): boolean {
  return bound.kind === 'literal' && bound.unknown === true && bound.type === 'null';
}

/** A value that comes later has the type of the operand beside it; only an instant can be subtracted from an instant. */
function besideUnknown(op: ArithmeticOp, left: Bound, right: Bound, refuse: () => never): Bound {
  const other = isUnknown(left) ? right : left;
  if (other.type === 'timestamp') return op === '-' ? { kind: 'arithmetic', op, left, right, type: 'integer' } : refuse();
  if (!isNumeric(other.type)) return refuse();
  return { kind: 'arithmetic', op, left, right, type: other.type === 'integer' && op !== '/' ? 'integer' : 'number' };
}

type CalendarStep = Extract<Expression, { kind: 'interval' }>;

function isCalendarStep(expression: Expression): expression is CalendarStep {
  return expression.kind === 'interval' && expression.unit !== null && isCalendarUnit(expression.unit);
}

const phoneticFunctions: ReadonlyMap<string, PhoneticFunction> = new Map([
  ['SOUNDEX', 'soundex'],
  ['METAPHONE', 'metaphone'],
  ['COLOGNE', 'cologne'],
]);

/**
 * Two operands of one comparison: literals beside a timestamp are instants, json beside a text is the text of its value. Refuses
 * types that can't be compared.
 */
export function matchOperands(one: Bound, other: Bound, op: CompareOp, location: Location): [Bound, Bound] {
  let [left, right] = besideJson(one, other);
  if (left.type === 'timestamp') right = asInstantLiteral(right);
  else if (right.type === 'timestamp') left = asInstantLiteral(left);
  [left, right] = [asBeside(left, right.type), asBeside(right, left.type)];
  if (left.type === 'string' || right.type === 'string') [left, right] = [jsonText(left), jsonText(right)];
  if (isInterval(left) || isInterval(right)) {
    for (const side of [left, right])
      if (side.type !== 'string' && side.type !== 'null') throw mismatch(noOperator(left, op, right), location);
    return [intervalOrder(left), intervalOrder(right)];
  }
  if (left.type === 'null' || right.type === 'null') return [left, right];
  const fits =
    (isNumeric(left.type) && isNumeric(right.type)) ||
    (isInstant(left.type) && isInstant(right.type)) ||
    (isText(left.type) && left.type === right.type) ||
    (left.type === 'boolean' && right.type === 'boolean');
  if (!fits) {
    const help = helpFor([left.type, right.type]);
    throw mismatch(`${left.type} can't be compared with ${right.type}${help}`, location);
  }
  const equality = op === '=' || op === '!=';
  if (!equality && (left.type === 'json' || right.type === 'json'))
    throw mismatch('json has no order beside json: only = and != compare it', location);
  if (!equality && left.type === 'boolean') throw mismatch('boolean has no order: only = and != compare it', location);
  return [left, right];
}

export function isInterval(bound: Bound): boolean {
  return 'wire' in bound && bound.wire === 'interval';
}

/** Intervals are compared and ordered by how long they are. */
export function intervalOrder(bound: Bound): Bound {
  if (bound.type !== 'string') return bound;
  return { kind: 'call', name: 'LENGTH', function: intervalLength, operands: [bound], type: 'integer' };
}

/** As Postgres says it: how long an interval is in nanoseconds is nobody's number. */
function noOperator(left: Bound, op: CompareOp, right: Bound): string {
  const nameOf = (side: Bound): string => (isInterval(side) ? 'interval' : side.type);
  return `operator does not exist: ${nameOf(left)} ${op} ${nameOf(right)}`;
}

/** A hint of what to write instead. */
function helpFor(types: readonly ValueType[]): string {
  if (types.includes('json')) return ': compare json with a text, or CAST it';
  const isTextBesideNumber = types.includes('string') && types.some(isNumeric);
  return isTextBesideNumber ? ': write CAST(<the number> AS TEXT), or CAST(<the text> AS INTEGER)' : '';
}

function negatedIf(negated: boolean, operand: Bound): Bound {
  return negated ? { kind: 'not', operand, type: 'boolean' } : operand;
}

/** json by itself, or already as the text that it is compared by. */
function isJson(bound: Bound): boolean {
  return bound.type === 'json' || (bound.kind === 'call' && bound.function === jsonAsText);
}

/** Timestamps compare with integers: both are exact 64-bit. */
function isInstant(type: ValueType): boolean {
  return type === 'timestamp' || type === 'integer';
}

function literalType(literal: Literal): ColumnType | 'null' {
  if (literal === null) return 'null';
  switch (typeof literal) {
    case 'string':
      return 'string';
    case 'bigint':
      return 'integer';
    case 'number':
      return 'number';
    default:
      return 'boolean';
  }
}

function mismatch(detail: string, location: Location): ServiceError {
  return errorAt('REL_TYPE_MISMATCH', detail, location, 'no-such-function');
}
