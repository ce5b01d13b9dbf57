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
  return character > 0 || call > callUncounted;
}

const callUncounted = 200;

interface Within {
  rules(): SearchRules;
  catalogue(): Catalogue;
}

/** The evaluator, counting its cost. */
export function countedEvaluator(signature: Signature, { rules, catalogue }: Within): Evaluator {
  const evaluate = signature.searching?.(rules()) ?? signature.inCatalogue?.(catalogue()) ?? signature.evaluate;
  if (!isCounted(signature)) return evaluate;
  const { call, character } = signature.cost;
  return (...cells) => {
    let length = 0;
    for (const cell of cells) if (typeof cell === 'string' || cell instanceof Float32Array) length += cell.length;
    spend(call + length * character);
    const result = evaluate(...cells);
    if (typeof result === 'string') work.done += result.length;
    return result;
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
 * Finds the signature that takes arguments of these types; null where none does. `literal` marks arguments that are literals:
 * their texts may be instants.
 */
export function resolveSignature(of: ScalarFunction, types: readonly ValueType[], literal: readonly boolean[]): Resolved | null {
  // A signature that takes the arguments unconverted is preferred.
  for (const exact of [true, false]) {
    for (const signature of of.signatures) {
      const resolved = fitting(signature, types, literal, exact);
      if (resolved) return resolved;
    }
  }
  return null;
}

function fitting(
  signature: Signature,
  types: readonly ValueType[],
  literal: readonly boolean[],
  exact: boolean,
): Resolved | null {
  const { takes, optional = 0, repeats = false, yields } = signature;
  if (types.length < takes.length - optional || (types.length > takes.length && !repeats)) return null;
  let same: ValueType = 'null';
  for (let i = 0; i < types.length; i++) {
    const wanted = takes[Math.min(i, takes.length - 1)]!;
    const type = types[i]!;
    if (type === 'interval' || (type === 'vector' && wanted !== 'vector')) return null;
    if (type === 'null' || wanted === 'any' || wanted === type) continue;
    if (wanted === 'same') {
      const common = commonType(same, type, literal[i]!);
      if (common === null) return null;
      same = common;
    } else if (exact || !converts(type, wanted, literal[i]!)) return null;
  }
  // A text that came before the instant that it stands beside must be a literal too.
  if (same === 'timestamp') {
    for (let i = 0; i < types.length; i++) if (types[i] === 'string' && isSame(takes, i) && !literal[i]) return null;
  }
  return { signature, same, type: yields === 'same' ? same : yields };
}

export function isSame(takes: readonly ArgumentType[], i: number): boolean {
  return takes[Math.min(i, takes.length - 1)] === 'same';
}

function converts(type: ValueType, wanted: ArgumentType, literal: boolean): boolean {
  if (wanted === 'number') return type === 'integer';
  return wanted === 'timestamp' && type === 'string' && literal;
}

function commonType(same: ValueType, type: ValueType, literal: boolean): ValueType | null {
  if (same === 'null' || same === type) return type;
  if ((same === 'integer' || same === 'number') && (type === 'integer' || type === 'number')) return 'number';
  if (same === 'timestamp' && type === 'string' && literal) return same;
  return same === 'string' && type === 'timestamp' ? type : null;
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
