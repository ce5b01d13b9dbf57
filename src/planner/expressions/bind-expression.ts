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
  readonly over: (over: OverExpression, bind: (operand: Expression) => Bound) => Bound;
  /** The column of the elements that a call yields; absent: none may stand here. */
  readonly spread?: (call: Extract<Expression, { kind: 'call' }>, bind: (operand: Expression) => Bound) => Bound;
  /** Binds a query inside an expression. */
  readonly subselect: (subselect: Subselect | InQuery, bind: (operand: Expression) => Bound) => Bound;
}

type InQuery = Extract<Expression, { kind: 'in-query' }>;
type OverExpression = Extract<Expression, { kind: 'over' }>;

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
export function bindRowCount(expression: Expression, context: ExpressionContext, rowCountClause: 'LIMIT' | 'OFFSET'): Bound {
  const { location } = expression;
  const bound = bindExpression(expression, context);
  const isTextLiteral = bound.type === 'string' && bound.kind === 'literal';
  if (bound.type === 'integer') return bound;
  if (bound.type !== 'null' && bound.type !== 'number' && !isTextLiteral)
    throw errorAt('REL_TYPE_MISMATCH', `${rowCountClause} takes a number of rows, not ${bound.type}`, location, 'types-differ');
  const bigintTypeName: ColumnRef = { kind: 'column', table: null, name: 'BIGINT', location };
  const rowCountCast = {
    kind: 'call',
    name: 'CAST',
    arguments: [
      { name: null, value: expression },
      { name: 'TYPE', value: bigintTypeName },
    ],
    location,
  } as const;
  return bindCall(rowCountCast, () => bound, true);
}

/** Rank primitives, which a search computes for the rows that it finds. */
const rankPrimitives: ReadonlySet<string> = new Set(['BM25', 'HIGHLIGHT', 'VECTOR']);

class ExpressionBinder {
  readonly #expressionContext: ExpressionContext;

  constructor(context: ExpressionContext) {
    this.#expressionContext = context;
  }

  bind(expression: Expression): Bound {
    const leafBound = this.#bindLeaf(expression);
    if (leafBound) return leafBound;
    const location = expression.location;
    switch (expression.kind) {
      case 'column':
        throw errorAt('REL_UNKNOWN_COLUMN', `there is no column ${JSON.stringify(expression.name)}`, location);
      case 'literal':
        return this.#bindLiteral(expression);
      case 'constant': {
        const { cell } = expression;
        return { kind: 'constant', cell, type: cell === null ? 'null' : typeof cell === 'string' ? 'string' : 'integer' };
      }
      case 'now':
        return { kind: 'now', type: 'timestamp' };
      case 'interval':
        return this.#bindInterval(expression);
      case 'binary':
        return this.#bindBinary(expression);
      case 'not':
        return { kind: 'not', operand: this.#bindCondition(expression.operand), type: 'boolean' };
      case 'negate':
        return this.#negate(expression);
      case 'is-null': {
        const nullTest: Bound = { kind: 'is-null', operand: this.bind(expression.operand), type: 'boolean' };
        return expression.negated ? { kind: 'not', operand: nullTest, type: 'boolean' } : nullTest;
      }
      case 'between': {
        const [operand, [low, high]] = this.#bindAlike(
          this.bind(expression.operand),
          [expression.low, expression.high],
          '>=',
          location,
        );
        return negateBound(expression.negated, { kind: 'between', operand, low: low!, high: high!, type: 'boolean' });
      }
      case 'in-list':
        return negateBound(expression.negated, this.#bindInList(expression));
      case 'case':
        return this.#bindCase(expression);
      case 'call':
        return this.#call(expression);
      case 'in-query':
      case 'scalar-query':
      case 'exists':
      case 'quantified':
        return this.#expressionContext.subselect(expression, (operand) => this.bind(operand));
      case 'over':
        return this.#expressionContext.over(expression, (operand) => this.bind(operand));
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
    const negated = isInterval(operand) ? this.#expressionContext.environment.catalogue?.call('#negate', ['interval']) : null;
    if (negated) return ofCatalogue('-', negated, [operand], location);
    if (operand.type !== 'integer' && operand.type !== 'number')
      throw mismatch(`- needs a number, not ${operand.type}`, location);
    return { kind: 'negate', operand, type: operand.type };
  }

  #call(expression: Extract<Expression, { kind: 'call' }>): Bound {
    const { location } = expression;
    if (expression.name === 'LOOKUP') return this.#bindLookup(expression);
    if (expression.name === 'SIMILAR') return bindSimilar(expression, (operand) => this.bind(operand));
    if (expression.name === 'DEGREE') return this.#bindDegree(expression);
    if (expression.name === '#PLUS') return this.#bindPlus(expression);
    if (expression.name === '#LIST' || expression.name === '#IN' || expression.name === '#MAP')
      return this.#bindJsonCall(expression);
    if (expression.name === 'MATCH') return bindMatch(expression, (operand) => this.bind(operand));
    if (phoneticFunctions.has(expression.name))
      throw errorAt('REL_INVALID', `${expression.name}(column) stands beside a text, with = or != between them`, location);
    if (rankPrimitives.has(expression.name))
      throw errorAt('REL_INVALID', `${expression.name}() stands in RANK BY or COMPUTE, over rows that WHERE searches`, location);
    if (expression.name === 'ARRAY' && this.#expressionContext.environment.catalogue === undefined)
      throw errorAt('REL_NOT_IMPLEMENTED', "ARRAY[…] is not implemented here: a vector is written '[1, 2]'", location);
    if (
      this.#expressionContext.spread &&
      this.#expressionContext.environment.catalogue?.isSet(expression.name.toLowerCase()) === true
    )
      return this.#expressionContext.spread(expression, (argument) => this.bind(argument));
    return bindCall(
      expression,
      (argument) => this.bind(argument),
      this.#expressionContext.environment.wide === true,
      this.#expressionContext.environment.catalogue,
    );
  }

  #row(expression: Extract<Expression, { kind: 'row' }>): Bound {
    const { catalogue } = this.#expressionContext.environment;
    if (catalogue && expression.items.length > 0) return recordOf(expression, (item) => this.bind(item), catalogue);
    throw errorAt(
      'REL_INVALID',
      'a row of values stands beside another one, with a comparison or IN between them',
      expression.location,
    );
  }

  /** USER, which Postgres reserves, may be a column here; where no table has one, it is the caller. */
  #bindLeaf(expression: Expression): Bound | undefined {
    const { catalogue } = this.#expressionContext.environment;
    const isUser =
      expression.kind === 'column' && expression.table === null && !expression.quoted && /^user$/i.test(expression.name);
    if (!isUser || catalogue === undefined) return this.#expressionContext.leaf(expression);
    try {
      return this.#expressionContext.leaf(expression);
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code !== 'REL_UNKNOWN_COLUMN') throw error;
      return this.bind({ kind: 'call', name: 'USER', arguments: [], location: expression.location });
    }
  }

  #bindLiteral({ slot, typed, location }: Extract<Expression, { kind: 'literal' }>): Bound {
    const { literals, wide } = this.#expressionContext.environment;
    const zonedLiteral = wide === true ? { zoned: true as const } : {};
    if (typed === undefined || typed === 'unknown') {
      const type = literalType(literals[slot]!);
      return { kind: 'literal', slot, as: 'value', type, ...zonedLiteral, ...(typed && { unknown: true }), location };
    }
    return bindStated({ kind: 'literal', slot, as: 'value', type: 'string', ...zonedLiteral, location }, typed);
  }

  #bindCondition(expression: Expression): Bound {
    return bindPredicate(expression, this.#expressionContext);
  }

  #bindBinary(expression: Extract<Expression, { kind: 'binary' }>): Bound {
    const { op: binaryOp, left: leftExpression, right: rightExpression, location } = expression;
    switch (binaryOp) {
      case 'and':
      case 'or':
        return {
          kind: binaryOp,
          operands: [this.#bindCondition(leftExpression), this.#bindCondition(rightExpression)],
          type: 'boolean',
        };
      case 'like': {
        const operand = jsonText(this.bind(leftExpression));
        const pattern = jsonText(this.bind(rightExpression));
        for (const likeSide of [operand, pattern]) {
          if (likeSide.type !== 'string' && likeSide.type !== 'null')
            throw mismatch(`LIKE compares text, not ${likeSide.type}`, location);
        }
        const likeEscapes = this.#expressionContext.environment.wide === true ? { escapes: true as const } : {};
        return { kind: 'like', operand, pattern, ...likeEscapes, type: 'boolean' };
      }
      case '+':
      case '-':
      case '*':
      case '/':
      case '%':
        if (this.#expressionContext.environment.catalogue)
          return this.#bindArithmetic(binaryOp, this.bind(leftExpression), this.bind(rightExpression), location);
        if (isCalendarStep(rightExpression) && (binaryOp === '+' || binaryOp === '-'))
          return this.#bindCalendarStep(binaryOp, leftExpression, rightExpression);
        if (isCalendarStep(leftExpression) && binaryOp === '+')
          return this.#bindCalendarStep(binaryOp, rightExpression, leftExpression);
        return this.#bindArithmetic(binaryOp, this.bind(leftExpression), this.bind(rightExpression), location);
      default:
        return this.#bindComparison(binaryOp, leftExpression, rightExpression, location);
    }
  }

  /** A month and a year are as long as they are beside an instant, and nowhere else. */
  #bindInterval({ interval, unit, location }: Extract<Expression, { kind: 'interval' }>): Bound {
    const { slot } = interval.slot;
    const intervalCall = this.#expressionContext.environment.catalogue?.call('#interval', ['unknown', 'text']);
    if (intervalCall) {
      const intervalLiteral: Bound = { kind: 'literal', slot, as: 'value', type: 'string', location };
      return ofCatalogue(
        'INTERVAL',
        intervalCall,
        [intervalLiteral, { kind: 'constant', cell: unit ?? '', type: 'string' }],
        location,
      );
    }
    if (unit === null) return { kind: 'literal', slot, as: 'interval', type: 'interval', location };
    const fixedInterval = fixedIntervals.get(unit);
    if (!fixedInterval)
      throw errorAt('REL_TYPE_MISMATCH', `INTERVAL 'n' ${unit.toUpperCase()} stands behind an instant and + or -`, location);
    const operand: Bound = { kind: 'literal', slot, as: 'value', type: 'string', location };
    return {
      kind: 'call',
      name: fixedInterval.name,
      function: fixedInterval.signatures[0]!,
      operands: [operand],
      type: 'interval',
    };
  }

  #bindCalendarStep(op: '+' | '-', instant: Expression, { interval, unit, location }: CalendarStep): Bound {
    const operand = asInstantLiteral(this.bind(instant));
    if (operand.type === 'null') return operand;
    if (operand.type !== 'timestamp') throw mismatch(`an INTERVAL is added to a timestamp, not to ${operand.type}`, location);
    const calendarStep = calendarSteps.get(`${op}${unit}`)!;
    const stepAmount: Bound = { kind: 'literal', slot: interval.slot.slot, as: 'value', type: 'string', location };
    return {
      kind: 'call',
      name: calendarStep.name,
      function: calendarStep.signatures[0]!,
      operands: [operand, stepAmount],
      type: 'timestamp',
    };
  }

  #bindComparison(op: CompareOp, leftExpression: Expression, rightExpression: Expression, location: Location): Bound {
    const phoneticOperands =
      this.#bindPhonetic(leftExpression, rightExpression) ?? this.#bindPhonetic(rightExpression, leftExpression);
    if (phoneticOperands) return { kind: 'compare', op, ...phoneticOperands, type: 'boolean' };
    const [leftOperand, rightOperand] = [this.bind(leftExpression), this.bind(rightExpression)];
    const vectorEquality = op === '=' || op === '!=' ? vectorsEqual(leftOperand, rightOperand, location) : null;
    if (vectorEquality) return negateBound(op === '!=', vectorEquality);
    const [left, right] = this.#matchOperands(leftOperand, rightOperand, op, location);
    return { kind: 'compare', op, left, right, type: 'boolean' };
  }

  /** `matchOperands`, with caveats for a comparison that holds of no row. */
  #matchOperands(left: Bound, right: Bound, op: CompareOp, location: Location): [Bound, Bound] {
    this.#noteCaveat(left, right);
    this.#noteCaveat(right, left);
    return matchOperands(left, right, op, location);
  }

  #noteCaveat(caveatSide: Bound, comparedSide: Bound): void {
    if (caveatSide.kind !== 'literal') return;
    const { caveats } = this.#expressionContext.environment;
    if (caveatSide.type === 'null') caveats?.push({ kind: 'null', slot: caveatSide.slot });
    else if (caveatSide.type === 'string' && isJson(comparedSide)) caveats?.push({ kind: 'quoted', slot: caveatSide.slot });
  }

  /** Rule 6: how a column sounds, beside how a text sounds that is the same for every row, and so is encoded once. */
  #bindPhonetic(call: Expression, comparedExpression: Expression): { readonly left: Bound; readonly right: Bound } | undefined {
    const phoneticName = call.kind === 'call' ? phoneticFunctions.get(call.name) : undefined;
    if (call.kind !== 'call' || phoneticName === undefined) return undefined;
    const [argument, ...extraArguments] = call.arguments;
    if (!argument || argument.name !== null || extraArguments.length > 0)
      throw errorAt('REL_INVALID', `${call.name} takes one column`, call.location);
    const operand = this.bind(argument.value);
    const comparedText = this.bind(comparedExpression);
    for (const [phoneticSide, location] of [
      [operand, argument.value.location],
      [comparedText, comparedExpression.location],
    ] as const) {
      if (phoneticSide.type !== 'string' && phoneticSide.type !== 'null')
        throw mismatch(`${call.name} is of text, not ${phoneticSide.type}`, location);
    }
    if (operand.kind !== 'column') throw errorAt('REL_INVALID', `${call.name} is of a column`, argument.value.location);
    if (columnsIn(comparedText).size > 0)
      throw errorAt('REL_INVALID', `${call.name} is compared with a text, not with a column`, comparedExpression.location);
    const soundBound = (soundOperand: Bound): Bound => ({
      kind: 'phonetic',
      function: phoneticName,
      operand: soundOperand,
      type: 'string',
    });
    return { left: soundBound(operand), right: soundBound(comparedText) };
  }

  #bindInList(expression: Extract<Expression, { kind: 'in-list' }>): Bound {
    if (expression.items.length === 0) {
      this.bind(expression.operand);
      return { kind: 'constant', cell: false, type: 'boolean' };
    }
    const operand = this.bind(expression.operand);
    const listItems = this.#joinLiterals(expression.items, operand);
    const [alikeOperand, boundItems] = this.#bindAlike(operand, listItems, '=', expression.location);
    for (const [i, listItem] of listItems.entries()) {
      if (listItem.kind !== 'literal' || listItem.count === undefined) continue;
      boundItems[i] = {
        kind: 'literals',
        first: boundItems[i]!,
        slot: listItem.slot,
        count: listItem.count,
        type: boundItems[i]!.type,
      };
    }
    return { kind: 'in', operand: alikeOperand, items: boundItems, type: 'boolean' };
  }

  /** Values that are all converted as the first of them stay one item. */
  #joinLiterals(items: readonly Expression[], { type }: Bound): readonly Expression[] {
    const literals: readonly Literal[] = this.#expressionContext.environment.literals;
    const isNumber = type === 'integer' || type === 'number';
    const fitsOperand = (value: Literal): boolean => (typeof value === 'string' ? type === 'string' : isNumber);
    if (
      !items.some(
        (listItem) => listItem.kind === 'literal' && listItem.count !== undefined && !fitsOperand(literals[listItem.slot]!),
      )
    )
      return items;
    return items.flatMap((listItem) => {
      if (listItem.kind !== 'literal' || listItem.count === undefined) return [listItem];
      const { slot, location } = listItem;
      return Array.from({ length: listItem.count }, (_, i): Expression => ({ kind: 'literal', slot: slot + i, location }));
    });
  }

  /** Its values as json; the first of a map are its names. */
  #bindJsonCall({ name, arguments: jsonArguments, location }: Extract<Expression, { kind: 'call' }>): Bound {
    const jsonOperands = jsonArguments.map(({ value }, i) => {
      const boundArgument = this.bind(value);
      return name === '#MAP' && i === 0 ? boundArgument : asJson(boundArgument, location);
    });
    return calledByName(name, jsonOperands, location);
  }

  /** Numbers and instants are added, texts and lists put one behind the other. */
  #bindPlus({ arguments: plusArguments, location }: Extract<Expression, { kind: 'call' }>): Bound {
    const [left, right] = besideJson(this.bind(plusArguments[0]!.value), this.bind(plusArguments[1]!.value));
    const hasOperandType = (type: ValueType): boolean => left.type === type || right.type === type;
    if (hasOperandType('json')) return calledByName('#APPEND', [asJson(left, location), asJson(right, location)], location);
    if (hasOperandType('string')) return calledByName('||', [left, right], location);
    return this.#bindArithmetic('+', left, right, location);
  }

  /** The number of edges from or to the node that a column names; 0 where there is no such node. */
  #bindDegree(call: Extract<Expression, { kind: 'call' }>): Bound {
    const query = degreeQuery(call, this.#expressionContext.environment.literals);
    const degreeCell = this.#expressionContext.subselect({ kind: 'scalar-query', query, location: call.location }, (operand) =>
      this.bind(operand),
    );
    return { kind: 'coalesce', operands: [degreeCell, { kind: 'constant', cell: 0n, type: 'integer' }], type: 'integer' };
  }

  #bindLookup({ arguments: lookupArguments, location }: Extract<Expression, { kind: 'call' }>): Bound {
    const [lookupName, lookupKey, lookupField] = lookupArguments.map(({ value }) => value);
    if (lookupName?.kind !== 'column' || lookupField?.kind !== 'column' || !lookupKey) {
      throw errorAt('REL_PARSE', 'LOOKUP is written LOOKUP name(column) -> field', location);
    }
    const lookupTable = this.#expressionContext.environment.lookup(lookupName.name);
    if (!lookupTable)
      throw errorAt('REL_NOT_FOUND', `there is no lookup table ${JSON.stringify(lookupName.name)}`, lookupName.location);
    if (lookupTable.fieldType(lookupField.name) === undefined) {
      throw errorAt(
        'REL_UNKNOWN_COLUMN',
        `lookup table ${JSON.stringify(lookupName.name)} has no field ${JSON.stringify(lookupField.name)}${didYouMean(lookupField.name, lookupTable.fields)}; it has ${lookupTable.fields.join(', ')}`,
        lookupField.location,
      );
    }
    const operand = jsonText(this.bind(lookupKey));
    if (operand.type !== 'string' && operand.type !== 'integer' && operand.type !== 'null') {
      throw mismatch(`LOOKUP takes a key of text or integers, not ${operand.type}`, lookupKey.location);
    }
    return { kind: 'lookup', table: lookupTable, field: lookupField.name, operand, type: 'string' };
  }

  /** An operand compared with several values must be bound to one type for all of them. */
  #bindAlike(operand: Bound, comparedExpressions: readonly Expression[], op: CompareOp, location: Location): [Bound, Bound[]] {
    const boundValues = comparedExpressions.map((alikeValue) => this.bind(alikeValue));
    const probe = boundValues.some(({ type }) => type === 'string') ? jsonText(operand) : operand;
    let firstOperand: Bound | null = null;
    const operandTypes = new Set<ValueType>();
    // Converts in place: a list may have a hundred thousand values.
    let lastPlainType: ValueType | null = null;
    for (let i = 0; i < boundValues.length; i++) {
      const bound = boundValues[i]!;
      if (bound.type === lastPlainType && isPlainNumber(bound)) continue;
      const [alikeOperand, alikeValue] = this.#matchOperands(probe, bound, op, comparedExpressions[i]!.location);
      firstOperand ??= alikeOperand;
      operandTypes.add(alikeOperand.type);
      boundValues[i] = alikeValue;
      // Numbers behind one that stays as it is, stay too.
      lastPlainType = alikeValue === bound && alikeOperand === firstOperand ? bound.type : null;
    }
    if (operandTypes.size > 1) throw mismatch(`one value can't be compared as ${[...operandTypes].join(' and ')}`, location);
    return [firstOperand ?? probe, boundValues];
  }

  #bindArithmetic(op: ArithmeticOp, leftBound: Bound, rightBound: Bound, location: Location): Bound {
    let [left, right] = besideJson(leftBound, rightBound);
    const refuseOperands = (): never => {
      throw mismatch(`${left.type} ${op} ${right.type} is not defined`, location);
    };
    [left, right] = [asBeside(left, right.type), asBeside(right, left.type)];
    if (this.#expressionContext.environment.wide === true && op === '-') {
      if (isDate(left)) right = asDateLiteral(right);
      else if (left.type === 'timestamp') right = asInstantLiteral(right, 'text');
    }
    const timedArithmetic = this.#bindTimed(op, left, right, location);
    if (timedArithmetic) return timedArithmetic;
    if (isUnknown(left) || isUnknown(right)) return besideUnknown(op, left, right, refuseOperands);
    if (left.type === 'null') return left;
    if (right.type === 'null') return right;
    if (left.type === 'timestamp' || right.type === 'timestamp') {
      if (
        this.#expressionContext.environment.wide === true &&
        (left.type === 'integer' || right.type === 'integer' || isDate(left))
      )
        return dateArithmetic(op, left, right, refuseOperands);
      if (left.type === right.type && op === '-') return { kind: 'arithmetic', op, left, right, type: 'integer' };
      const shiftType = left.type === 'timestamp' ? right.type : left.type;
      const isShiftType = shiftType === 'interval' || shiftType === 'integer';
      if (!isShiftType || !(op === '+' || (op === '-' && left.type === 'timestamp'))) return refuseOperands();
      return { kind: 'arithmetic', op, left, right, type: 'timestamp' };
    }
    if (!isNumeric(left.type) || !isNumeric(right.type)) return refuseOperands();
    const areIntegers = left.type === 'integer' && right.type === 'integer';
    return { kind: 'arithmetic', op, left, right, type: areIntegers && op !== '/' ? 'integer' : 'number' };
  }

  /** The operator of Postgres, where one side is an interval or json, or the result is one. */
  #bindTimed(op: ArithmeticOp, left: Bound, right: Bound, location: Location): Bound | null {
    const { catalogue } = this.#expressionContext.environment;
    if (catalogue === undefined || op === '%') return null;
    const instantCount = [left, right].filter(({ type }) => type === 'timestamp').length;
    const takesInterval = isInterval(left) || isInterval(right);
    const yieldsInterval = op === '-' && instantCount === 2 && !(isDate(left) && isDate(right));
    const isText = (bound: Bound): boolean => bound.type === 'string' && bound.kind === 'literal';
    const hasText = op === '+' && instantCount === 1 && (isText(left) || isText(right));
    const deletesJsonKey = op === '-' && left.type === 'json';
    if (!takesInterval && !yieldsInterval && !hasText && !deletesJsonKey) return null;
    const catalogueCall = catalogue.call(op, [wireTypeOf(left), wireTypeOf(right)]);
    return catalogueCall && ofCatalogue(op, catalogueCall, [left, right], location);
  }

  #bindCase(expression: Extract<Expression, { kind: 'case' }>): Bound {
    const caseConditions = expression.branches.map(({ when }) => when);
    const [operand, boundWhens] = expression.operand
      ? this.#bindAlike(this.bind(expression.operand), caseConditions, '=', expression.location)
      : [null, caseConditions.map((when) => this.#bindCondition(when))];
    const outcomeExpressions = [
      ...expression.branches.map(({ then }) => then),
      ...(expression.otherwise ? [expression.otherwise] : []),
    ];
    const caseOutcomes = asIntervals(
      outcomeExpressions.map((outcomeExpression) => this.bind(outcomeExpression)),
      this.#expressionContext.environment.catalogue,
    );
    const caseResults = caseOutcomes.slice(0, expression.branches.length);
    const elseResult = expression.otherwise ? caseOutcomes.at(-1)! : null;
    const { type, fit: fitCaseResult } = commonResult(
      'a CASE',
      [...caseResults, ...(elseResult ? [elseResult] : [])],
      expression.location,
    );
    const recordCase = {
      kind: 'case' as const,
      operand,
      branches: boundWhens.map((when, i) => ({ when, result: fitCaseResult(caseResults[i]!) })),
      otherwise: elseResult && fitCaseResult(elseResult),
      type,
    };
    return withCommonWire(
      recordCase,
      [...caseResults, ...(elseResult ? [elseResult] : [])],
      this.#expressionContext.environment.catalogue,
    );
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
  const knownOperand = isUnknown(left) ? right : left;
  if (knownOperand.type === 'timestamp') return op === '-' ? { kind: 'arithmetic', op, left, right, type: 'integer' } : refuse();
  if (!isNumeric(knownOperand.type)) return refuse();
  return { kind: 'arithmetic', op, left, right, type: knownOperand.type === 'integer' && op !== '/' ? 'integer' : 'number' };
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
export function matchOperands(leftBound: Bound, rightBound: Bound, op: CompareOp, location: Location): [Bound, Bound] {
  let [left, right] = besideJson(leftBound, rightBound);
  if (left.type === 'timestamp') right = asInstantLiteral(right);
  else if (right.type === 'timestamp') left = asInstantLiteral(left);
  [left, right] = [asBeside(left, right.type), asBeside(right, left.type)];
  if (left.type === 'string' || right.type === 'string') [left, right] = [jsonText(left), jsonText(right)];
  if (isInterval(left) || isInterval(right)) {
    for (const comparedSide of [left, right])
      if (comparedSide.type !== 'string' && comparedSide.type !== 'null') throw mismatch(noOperator(left, op, right), location);
    return [intervalOrder(left), intervalOrder(right)];
  }
  if (left.type === 'null' || right.type === 'null') return [left, right];
  const areComparable =
    (isNumeric(left.type) && isNumeric(right.type)) ||
    (isInstant(left.type) && isInstant(right.type)) ||
    (isText(left.type) && left.type === right.type) ||
    (left.type === 'boolean' && right.type === 'boolean');
  if (!areComparable) {
    const comparisonHelpText = comparisonHelp([left.type, right.type]);
    throw mismatch(`${left.type} can't be compared with ${right.type}${comparisonHelpText}`, location);
  }
  const isEquality = op === '=' || op === '!=';
  if (!isEquality && (left.type === 'json' || right.type === 'json'))
    throw mismatch('json has no order beside json: only = and != compare it', location);
  if (!isEquality && left.type === 'boolean') throw mismatch('boolean has no order: only = and != compare it', location);
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
  const operandTypeName = (side: Bound): string => (isInterval(side) ? 'interval' : side.type);
  return `operator does not exist: ${operandTypeName(left)} ${op} ${operandTypeName(right)}`;
}

/** A hint of what to write instead. */
function comparisonHelp(types: readonly ValueType[]): string {
  if (types.includes('json')) return ': compare json with a text, or CAST it';
  const isTextBesideNumber = types.includes('string') && types.some(isNumeric);
  return isTextBesideNumber ? ': write CAST(<the number> AS TEXT), or CAST(<the text> AS INTEGER)' : '';
}

function negateBound(negated: boolean, operand: Bound): Bound {
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

function literalType(templateLiteral: Literal): ColumnType | 'null' {
  if (templateLiteral === null) return 'null';
  switch (typeof templateLiteral) {
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
