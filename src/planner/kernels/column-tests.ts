/**
 * Conditions that kernels judge: one column against constants. A constant is translated once per layout, into a range of values
 * or a set of codes; where neither expresses the condition exactly, it is left to generated code.
 */
import type { Dictionary, Vector } from '../../log/values/columns.ts';
import {
  type Bound,
  type BoundColumn,
  childrenOf,
  columnsIn,
  type CompareOp,
  mayRaise,
  partsOf,
} from '../expressions/bound-expression.ts';
import type { KernelContext, Parameter } from '../expressions/kernel-context.ts';

/** A necessary and sufficient condition on one column. */
export interface ColumnTest {
  readonly column: number;
  readonly bound: Bound;
}

/** Rows with a value from `least` to `most`, or all other rows with a value. Nothing lies within where `least > most`. */
export interface Range<T extends number | bigint> {
  readonly least: T;
  readonly most: T;
  readonly outside: boolean;
}

/** The condition of a test on the values of a vector. NULL satisfies `isNull` alone. */
export type Demand =
  | { readonly kind: 'isNull' }
  | { readonly kind: 'isNotNull' }
  | ({ readonly kind: 'i32' } & Range<number>)
  | ({ readonly kind: 'f64' } & Range<number>)
  | ({ readonly kind: 'i64' } & Range<bigint>)
  | { readonly kind: 'set'; readonly items: readonly number[]; readonly outside: boolean }
  | { readonly kind: 'codes'; readonly table: Uint8Array };

export interface SplitPredicate {
  readonly tests: readonly ColumnTest[];
  /** The condition that remains for generated code; null: nothing. */
  readonly rest: Bound | null;
}

const demandedSetMax = 16;
/** Texts that are judged in one turn, and parts of conditions that are. */
const judgedCodesMax = 4_096;
const judgedPartsMax = 16_384;
const i32Least = -2_147_483_648;
const i32Most = 2_147_483_647;
const i64Least = -(2n ** 63n);
const i64Most = 2n ** 63n - 1n;

export function splitPredicate(predicate: Bound): SplitPredicate {
  const predicateConjuncts = predicate.kind === 'and' ? predicate.operands : [predicate];
  const columnTests: ColumnTest[] = [];
  const untestedConjuncts: Bound[] = [];
  for (const bound of predicateConjuncts) {
    const column = columnUnderTest(bound);
    if (column === null) untestedConjuncts.push(bound);
    else columnTests.push({ column: column.index, bound });
  }
  const [firstUntested] = untestedConjuncts;
  return {
    tests: columnTests,
    rest: untestedConjuncts.length > 1 ? { kind: 'and', operands: untestedConjuncts, type: 'boolean' } : (firstUntested ?? null),
  };
}

/** The column of a condition that has the form of a test. */
function columnUnderTest(bound: Bound): BoundColumn | null {
  const negatedInner = bound.kind === 'not' ? bound.operand : bound;
  if (negatedInner.kind === 'is-null') return negatedInner.operand.kind === 'column' ? negatedInner.operand : null;
  const numberColumn = numericTestColumn(bound);
  if (numberColumn) return numberColumn;
  // A predicate over a single text column is judged once per distinct text.
  if (mayRaise(bound) || bound.type !== 'boolean' || columnsIn(bound).size !== 1) return null;
  const textColumn = firstColumnIn(bound);
  return textColumn?.type === 'string' ? textColumn : null;
}

function numericTestColumn(bound: Bound): BoundColumn | null {
  const isNumberColumn = (each: Bound): each is BoundColumn =>
    each.kind === 'column' && (each.type === 'integer' || each.type === 'number' || each.type === 'timestamp');
  const isParameter = (each: Bound): boolean => each.kind === 'parameter';
  switch (bound.kind) {
    case 'compare':
      if (isNumberColumn(bound.left) && isParameter(bound.right)) return bound.left;
      return isNumberColumn(bound.right) && isParameter(bound.left) ? bound.right : null;
    case 'between':
      return isNumberColumn(bound.operand) && isParameter(bound.low) && isParameter(bound.high) ? bound.operand : null;
    case 'in':
      return isNumberColumn(bound.operand) && bound.items.length <= demandedSetMax && bound.items.every(isParameter)
        ? bound.operand
        : null;
    default:
      return null;
  }
}

function firstColumnIn(bound: Bound): BoundColumn | null {
  let boundColumn: BoundColumn | null = null;
  const rememberColumn = (each: Bound): void => {
    if (each.kind === 'column') boundColumn ??= each;
  };
  visitBound(bound, rememberColumn);
  return boundColumn;
}

function visitBound(bound: Bound, lookAt: (each: Bound) => void): void {
  lookAt(bound);
  for (const childBound of childrenOf(bound)) visitBound(childBound, lookAt);
}

/** Translates the test into a demand on a vector; null where kernels can't express it. */
export function demandOf({ bound }: ColumnTest, vector: Vector, context: KernelContext): Demand | null {
  if (bound.kind === 'is-null') return { kind: 'isNull' };
  if (bound.kind === 'not' && bound.operand.kind === 'is-null') return { kind: 'isNotNull' };
  if (vector.kind === 'dict') return codesDemand(bound, vector.dictionary, context);
  if (vector.kind !== 'i32' && vector.kind !== 'f64' && vector.kind !== 'i64') return null;
  const testParameter = (each: Bound): Parameter | null => (each.kind === 'parameter' ? context.parameters[each.index]! : null);
  switch (bound.kind) {
    case 'compare': {
      const isTurned = bound.left.kind !== 'column';
      const testedSide = isTurned ? bound.right : bound.left;
      const testedParameter = testParameter(isTurned ? bound.left : bound.right);
      return (
        testedParameter && rangeDemand(vector.kind, testedSide, isTurned ? mirroredOps[bound.op] : bound.op, testedParameter)
      );
    }
    case 'between': {
      const [lowParameter, highParameter] = [testParameter(bound.low), testParameter(bound.high)];
      const leastDemand = lowParameter && rangeDemand(vector.kind, bound.operand, '>=', lowParameter);
      const mostDemand = highParameter && rangeDemand(vector.kind, bound.operand, '<=', highParameter);
      return leastDemand && mostDemand && both(leastDemand, mostDemand);
    }
    case 'in': {
      if (vector.kind !== 'i32') return null;
      const demandedItems: number[] = [];
      for (const listItem of bound.items) {
        const itemDemand = rangeDemand('i32', bound.operand, '=', testParameter(listItem)!);
        if (itemDemand?.kind !== 'i32') return null;
        if (itemDemand.least === itemDemand.most) demandedItems.push(itemDemand.least);
      }
      return { kind: 'set', items: demandedItems, outside: false };
    }
    default:
      return null;
  }
}

const mirroredOps: Readonly<Record<CompareOp, CompareOp>> = { '=': '=', '!=': '!=', '<': '>', '<=': '>=', '>': '<', '>=': '<=' };

/** Both of two demands in one range, where they are ranges of one kind. */
export function both(leftDemand: Demand, rightDemand: Demand): Demand | null {
  if (
    (leftDemand.kind === 'i32' || leftDemand.kind === 'f64') &&
    rightDemand.kind === leftDemand.kind &&
    !leftDemand.outside &&
    !rightDemand.outside
  )
    return {
      kind: leftDemand.kind,
      least: Math.max(leftDemand.least, rightDemand.least),
      most: Math.min(leftDemand.most, rightDemand.most),
      outside: false,
    };
  if (leftDemand.kind === 'i64' && rightDemand.kind === 'i64' && !leftDemand.outside && !rightDemand.outside) {
    const greaterLeast = leftDemand.least > rightDemand.least ? leftDemand.least : rightDemand.least;
    return {
      kind: 'i64',
      least: greaterLeast,
      most: leftDemand.most < rightDemand.most ? leftDemand.most : rightDemand.most,
      outside: false,
    };
  }
  return null;
}

function rangeDemand(
  columnLayout: 'i32' | 'f64' | 'i64',
  column: Bound,
  op: CompareOp,
  { letter, cell: parameterCell }: Parameter,
): Demand | null {
  const isOutside = op === '!=';
  // Nothing compares with NULL.
  if (letter === 'z') return { kind: 'i32', least: 1, most: 0, outside: false };
  if (typeof parameterCell !== 'number' && typeof parameterCell !== 'bigint') return null;
  if (columnLayout === 'f64') {
    // An integer that no double equals lies between two of them.
    if (letter === 'b' || Number.isNaN(Number(parameterCell))) return null;
    return { kind: 'f64', ...doubleRange(isOutside ? '=' : op, Number(parameterCell)), outside: isOutside };
  }
  if (typeof parameterCell === 'number' && !Number.isFinite(parameterCell)) return null;
  const wholeRange = integerRange(isOutside ? '=' : op, parameterCell);
  if (columnLayout === 'i32') {
    const least = wholeRange.least < i32Least ? i32Least : wholeRange.least;
    const most = wholeRange.most > i32Most ? i32Most : wholeRange.most;
    if (least > most) return { kind: 'i32', least: 1, most: 0, outside: isOutside };
    return { kind: 'i32', least: Number(least), most: Number(most), outside: isOutside };
  }
  // Beside a number such a column is read as doubles, which rounds.
  return column.type === 'number' ? null : { kind: 'i64', ...wholeRange, outside: isOutside };
}

function doubleRange(op: CompareOp, boundaryDouble: number): { least: number; most: number } {
  switch (op) {
    case '<':
      return { least: Number.NEGATIVE_INFINITY, most: nextBelow(boundaryDouble) };
    case '<=':
      return { least: Number.NEGATIVE_INFINITY, most: boundaryDouble };
    case '>':
      return { least: -nextBelow(-boundaryDouble), most: Number.POSITIVE_INFINITY };
    case '>=':
      return { least: boundaryDouble, most: Number.POSITIVE_INFINITY };
    default:
      return { least: boundaryDouble, most: boundaryDouble };
  }
}

const doubleBits = new BigInt64Array(1);
const doubleOfBits = new Float64Array(doubleBits.buffer);

/** The greatest double below another one. */
function nextBelow(value: number): number {
  if (value === 0) return -Number.MIN_VALUE;
  doubleOfBits[0] = value;
  doubleBits[0]! += value > 0 ? -1n : 1n;
  // Below the least double there is none: a NaN, which nothing is within.
  return doubleOfBits[0];
}

/** Whole numbers of 64 bits that compare so with a value, exactly. */
function integerRange(op: CompareOp, boundaryNumber: number | bigint): { least: bigint; most: bigint } {
  const floorInteger = typeof boundaryNumber === 'bigint' ? boundaryNumber : BigInt(Math.floor(boundaryNumber));
  const ceilInteger = typeof boundaryNumber === 'bigint' ? boundaryNumber : BigInt(Math.ceil(boundaryNumber));
  const clampToInt64 = (least: bigint, most: bigint): { least: bigint; most: bigint } => {
    if (least > i64Most || most < i64Least) return { least: 1n, most: 0n };
    return { least: least < i64Least ? i64Least : least, most: most > i64Most ? i64Most : most };
  };
  switch (op) {
    case '<':
      return clampToInt64(i64Least, ceilInteger - 1n);
    case '<=':
      return clampToInt64(i64Least, floorInteger);
    case '>':
      return clampToInt64(floorInteger + 1n, i64Most);
    case '>=':
      return clampToInt64(ceilInteger, i64Most);
    default:
      return clampToInt64(ceilInteger, floorInteger);
  }
}

function codesDemand(bound: Bound, dictionary: Dictionary, context: KernelContext): Demand | null {
  const wantedTexts = demandedTexts(bound, context);
  if (wantedTexts) {
    const wantedCodes = wantedTexts.texts.map((text) => dictionary.codeOf(text)).filter((code) => code >= 0);
    return { kind: 'set', items: wantedCodes, outside: wantedTexts.outside };
  }
  if (dictionary.size > judgedCodesMax || dictionary.size * partsOf(bound) > judgedPartsMax) return null;
  const judgedCodes = context.truthTable(bound, dictionary, dictionary.size);
  // A condition that holds for NULL is not one on values alone.
  if ((judgedCodes.ofNull & 1) === 1) return null;
  for (let code = 0; code < judgedCodes.bytes.length; code++) if (judgedCodes.bytes[code] === 0) judgedCodes.fill(code);
  return { kind: 'codes', table: judgedCodes.bytes };
}

/** The few texts that a column must equal, or must not. */
function demandedTexts(bound: Bound, context: KernelContext): { texts: string[]; outside: boolean } | null {
  const parameterText = (each: Bound): string | null | undefined => {
    if (each.kind !== 'parameter') return undefined;
    const { cell } = context.parameters[each.index]!;
    return cell === null || typeof cell === 'string' ? cell : undefined;
  };
  if (bound.kind === 'compare' && (bound.op === '=' || bound.op === '!=')) {
    const constantSide = bound.left.kind === 'column' ? bound.right : bound.right.kind === 'column' ? bound.left : null;
    const constantText = constantSide && parameterText(constantSide);
    return typeof constantText === 'string' ? { texts: [constantText], outside: bound.op === '!=' } : null;
  }
  if (bound.kind !== 'in' || bound.operand.kind !== 'column' || bound.items.length > demandedSetMax) return null;
  const listedTexts = bound.items.map(parameterText);
  return listedTexts.includes(undefined)
    ? null
    : { texts: listedTexts.filter((constantText) => typeof constantText === 'string'), outside: false };
}
