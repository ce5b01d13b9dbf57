/**
 * A scalar function: its names, arguments, result, evaluator and manual text. Each function is one entry of a list in this
 * folder, which `all.ts` joins; binder, kernels, EXPLAIN and `docs/sql.md` read the entry and know no function by name.
 *
 * An evaluator is pure: the same cells, the same result. One that can throw says so (`raises`), and then runs only for rows that
 * reach it.
 */
import { type ErrorReason, ServiceError } from '../../../errors.ts';
import type { Cell, ColumnType } from '../../../log/values/value.ts';
import type { SearchRules } from '../search-rules.ts';
import type { ValueType } from '../value-type.ts';
import { type Cost, spend, work } from '../expression-cost.ts';

/**
 * The type of an argument. `number` takes integers too; `same` is any comparable type, one for all such arguments, where integers
 * beside numbers are numbers; `any` is any type but vector.
 */
export type ArgumentType = ColumnType | 'same' | 'any';

/** The part of Postgres' catalogue that the caller sees, for one execution. */
export interface Catalogue {
  readonly isCatalogue: true;
}

export interface Signature {
  readonly takes: readonly ArgumentType[];
  /** How many of the last arguments may be left out. */
  readonly optional?: number;
  /** The last argument may come any number of times. */
  readonly repeats?: boolean;
  readonly yields: ColumnType | 'interval' | 'same';
  readonly evaluate: Evaluator;
  /** By the texts and vectors that it takes and yields; what costs more than this spends the rest as it goes. */
  readonly cost: Cost;
  /** The evaluator of a function that depends on the rules of searching; replaces `evaluate`. */
  readonly searching?: (rules: SearchRules) => Evaluator;
  /** The evaluator of a function that reads the caller's catalogue; replaces `evaluate`. */
  readonly inCatalogue?: (catalogue: Catalogue) => Evaluator;
  /** Another value at each call: it is called for each row, and never moved. */
  readonly draws?: boolean;
  /** The function can fail on some cells. */
  readonly raises?: boolean;
  /** The function is called with NULL arguments too; without this NULL yields NULL. */
  readonly takesNull?: boolean;
  /** An integer that it yields is exact in a double. */
  readonly small?: boolean;
  /** The same of a single instant in two halves of 32 bits, as a double: a loop over instants then makes no bigint. */
  readonly ofHalves?: (high: number, low: number) => number;
}

/** The cost in ns of a function of numbers or instants: not counted. */
export const quick: Cost = { call: 100, character: 0 };
/** The cost of a function that reads each character once. */
export const linear: Cost = { call: 100, character: 4 };

/** Whether the cost is counted; negligible costs are not. */
export function isCounted({ cost: { call, character } }: Pick<Signature, 'cost'>): boolean {
  return character > 0 || call > uncountedCallCost;
}

const uncountedCallCost = 200;

interface EvaluationContext {
  rules(): SearchRules;
  catalogue(): Catalogue;
}

/** The evaluator, counting its cost. */
export function countedEvaluator(signature: Signature, { rules, catalogue }: EvaluationContext): Evaluator {
  const evaluateFunction = signature.searching?.(rules()) ?? signature.inCatalogue?.(catalogue()) ?? signature.evaluate;
  if (!isCounted(signature)) return evaluateFunction;
  const { call: callCost, character: characterCost } = signature.cost;
  return (...cells) => {
    let characterCount = 0;
    for (const cell of cells) if (typeof cell === 'string' || cell instanceof Float32Array) characterCount += cell.length;
    spend(callCost + characterCount * characterCost);
    const functionResult = evaluateFunction(...cells);
    if (typeof functionResult === 'string') work.done += functionResult.length;
    return functionResult;
  };
}

export type Evaluator = (...cells: readonly Cell[]) => Cell;

export interface ScalarFunction {
  readonly name: string;
  /** Other names of the same. */
  readonly also?: readonly string[];
  readonly group: FunctionGroup;
  /** How a call is written, for the manual. */
  readonly usage: string;
  /** A summary of one sentence. */
  readonly summary: string;
  /** Expressions and their results, as text: the manual shows them and a test runs them. */
  readonly examples: readonly (readonly [sql: string, result: string])[];
  readonly signatures: readonly Signature[];
}

export type FunctionGroup = 'numbers' | 'text' | 'patterns' | 'time' | 'json' | 'choice' | 'vectors' | 'types';

/** A signature that fits, and the result type of a call by it. */
export interface Resolved {
  readonly signature: Signature;
  readonly type: ValueType;
  /** The type that the arguments by `same` share. */
  readonly same: ValueType;
}

/**
 * Finds the signature that takes arguments of these types; null where none does. `isLiteralArgument` marks arguments that are literals:
 * their texts may be instants.
 */
export function resolveSignature(
  scalarFunction: ScalarFunction,
  argumentTypes: readonly ValueType[],
  isLiteralArgument: readonly boolean[],
): Resolved | null {
  // A signature that takes the arguments unconverted is preferred.
  for (const takesExactTypes of [true, false]) {
    for (const signature of scalarFunction.signatures) {
      const resolved = fitSignature(signature, argumentTypes, isLiteralArgument, takesExactTypes);
      if (resolved) return resolved;
    }
  }
  return null;
}

function fitSignature(
  signature: Signature,
  argumentTypes: readonly ValueType[],
  isLiteralArgument: readonly boolean[],
  takesExactTypes: boolean,
): Resolved | null {
  const { takes, optional = 0, repeats = false, yields } = signature;
  if (argumentTypes.length < takes.length - optional || (argumentTypes.length > takes.length && !repeats)) return null;
  let sharedType: ValueType = 'null';
  for (let i = 0; i < argumentTypes.length; i++) {
    const parameterType = takes[Math.min(i, takes.length - 1)]!;
    const argumentType = argumentTypes[i]!;
    if (argumentType === 'interval' || (argumentType === 'vector' && parameterType !== 'vector')) return null;
    if (argumentType === 'null' || parameterType === 'any' || parameterType === argumentType) continue;
    if (parameterType === 'same') {
      const sharedArgumentType = commonArgumentType(sharedType, argumentType, isLiteralArgument[i]!);
      if (sharedArgumentType === null) return null;
      sharedType = sharedArgumentType;
    } else if (takesExactTypes || !isConvertible(argumentType, parameterType, isLiteralArgument[i]!)) return null;
  }
  // A text that came before the instant that it stands beside must be a literal too.
  if (sharedType === 'timestamp') {
    for (let i = 0; i < argumentTypes.length; i++)
      if (argumentTypes[i] === 'string' && isSame(takes, i) && !isLiteralArgument[i]) return null;
  }
  return { signature, same: sharedType, type: yields === 'same' ? sharedType : yields };
}

export function isSame(parameterTypes: readonly ArgumentType[], i: number): boolean {
  return parameterTypes[Math.min(i, parameterTypes.length - 1)] === 'same';
}

function isConvertible(argumentType: ValueType, parameterType: ArgumentType, isLiteral: boolean): boolean {
  if (parameterType === 'number') return argumentType === 'integer';
  return parameterType === 'timestamp' && argumentType === 'string' && isLiteral;
}

function commonArgumentType(sharedType: ValueType, argumentType: ValueType, isLiteral: boolean): ValueType | null {
  if (sharedType === 'null' || sharedType === argumentType) return argumentType;
  if ((sharedType === 'integer' || sharedType === 'number') && (argumentType === 'integer' || argumentType === 'number'))
    return 'number';
  if (sharedType === 'timestamp' && argumentType === 'string' && isLiteral) return sharedType;
  return sharedType === 'string' && argumentType === 'timestamp' ? argumentType : null;
}

/** Texts that a function makes of shorter ones end here. */
export const textMax = 1 << 20;

export function checkLength(text: string): string {
  if (text.length > textMax) throw tooLong();
  return text;
}

export function tooLong(): ServiceError {
  return invalid(`a function yields texts of at most ${textMax} characters`);
}

export function invalid(detail: string, reason?: ErrorReason): ServiceError {
  return new ServiceError('REL_INVALID', detail, reason === undefined ? {} : { reason });
}

export function outOfRange(detail: string): ServiceError {
  return invalid(detail, 'out-of-range');
}

export function finite(result: number): number {
  if (!Number.isFinite(result)) throw outOfRange('number overflow: a result is too large for a double');
  // No integer is minus zero, and no text says it.
  return result === 0 ? 0 : result;
}

/** A cell that the signature says is a text, an integer, a number. */
export const text = (cell: Cell | undefined): string => cell as string;
export const integer = (cell: Cell | undefined): bigint => cell as bigint;
export const number = (cell: Cell | undefined): number => Number(cell as number);
