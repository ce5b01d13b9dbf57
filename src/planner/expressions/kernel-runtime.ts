/** Functions that a running kernel calls for the few tasks that are no loop over typed arrays. */
import { compareText } from '../../log/values/value.ts';
import { inexactNumber, integerOverflow, numberOverflow } from './evaluate.ts';
import type { Bound } from './bound-expression.ts';
import { countedEvaluator, type Evaluator } from './functions/scalar-function.ts';
import type { KernelContext } from './kernel-context.ts';
import { likeMatches, LikePattern, likeText } from './like.ts';
import { cosine, direction, distance, elapsedNs, foldCase, nanoseconds } from './ranking-functions.ts';
import { phoneticCode } from './phonetic.ts';
import { turnMost, work } from './expression-cost.ts';

/** Thrown by a narrow kernel: the block needs bigints. */
export const widen = Symbol('widen');

const heapDecoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** All functions that generated code may call. */
export const runtime = {
  widen,
  work,
  turnMost,
  integerOverflow,
  numberOverflow,
  inexactNumber,
  compareText,
  exp: Math.exp,
  abs: Math.abs,
  elapsed: elapsedNs,
  nanoseconds,
  cosine,
  direction,
  distance,
  folded: foldCase,
  phoneticCode,
  likeMatches,
  /** A call's function, whose integers are numbers where the call yields one. */
  evaluator: (
    { function: signature, type }: Extract<Bound, { kind: 'call' }>,
    context: Pick<KernelContext, 'rules' | 'catalogue'>,
  ): Evaluator => {
    const evaluateCounted = countedEvaluator(signature, { rules: () => context.rules, catalogue: () => context.catalogue });
    if (type !== 'number') return evaluateCounted;
    return (...cells) => {
      const evaluatedCell = evaluateCounted(...cells);
      return typeof evaluatedCell === 'bigint' ? Number(evaluatedCell) : evaluatedCell;
    };
  },
  like: (pattern: string, escapes: boolean): LikePattern => new LikePattern(pattern, escapes),
  likeText,
  words: (bigintValues: BigInt64Array): Int32Array =>
    new Int32Array(bigintValues.buffer, bigintValues.byteOffset, bigintValues.length * 2),
  decode: (heap: Uint8Array, textStart: number, textEnd: number): string => {
    work.done += textEnd - textStart;
    return heapDecoder.decode(heap.subarray(textStart, textEnd));
  },
  equalBytes: (heap: Uint8Array, heapStart: number, heapEnd: number, parameterBytes: Uint8Array): boolean => {
    if (heapEnd - heapStart !== parameterBytes.length) return false;
    for (let i = heapStart, j = 0; i < heapEnd; i++, j++) if (heap[i] !== parameterBytes[j]) return false;
    return true;
  },
  /** Bytewise order of UTF-8 is codepoint order. */
  compareHeaps: (
    leftHeap: Uint8Array,
    aStart: number,
    aEnd: number,
    rightHeap: Uint8Array,
    bStart: number,
    bEnd: number,
  ): number => {
    const sharedLength = Math.min(aEnd - aStart, bEnd - bStart);
    for (let j = 0; j < sharedLength; j++) {
      const byteDifference = leftHeap[aStart + j]! - rightHeap[bStart + j]!;
      if (byteDifference !== 0) return byteDifference;
    }
    return aEnd - aStart - (bEnd - bStart);
  },
  compareBytes: (heap: Uint8Array, heapStart: number, heapEnd: number, parameterBytes: Uint8Array): number => {
    const sharedLength = Math.min(heapEnd - heapStart, parameterBytes.length);
    for (let j = 0; j < sharedLength; j++) {
      const byteDifference = heap[heapStart + j]! - parameterBytes[j]!;
      if (byteDifference !== 0) return byteDifference;
    }
    return heapEnd - heapStart - parameterBytes.length;
  },
};
