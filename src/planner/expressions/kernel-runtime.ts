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

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

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
    const evaluate = countedEvaluator(signature, { rules: () => context.rules, catalogue: () => context.catalogue });
    if (type !== 'number') return evaluate;
    return (...cells) => {
      const result = evaluate(...cells);
      return typeof result === 'bigint' ? Number(result) : result;
    };
  },
  like: (pattern: string, escapes: boolean): LikePattern => new LikePattern(pattern, escapes),
  likeText,
  words: (values: BigInt64Array): Int32Array => new Int32Array(values.buffer, values.byteOffset, values.length * 2),
  decode: (heap: Uint8Array, start: number, end: number): string => {
    work.done += end - start;
    return decoder.decode(heap.subarray(start, end));
  },
  equalBytes: (heap: Uint8Array, start: number, end: number, bytes: Uint8Array): boolean => {
    if (end - start !== bytes.length) return false;
    for (let i = start, j = 0; i < end; i++, j++) if (heap[i] !== bytes[j]) return false;
    return true;
  },
  /** Bytewise order of UTF-8 is codepoint order. */
  compareHeaps: (a: Uint8Array, aStart: number, aEnd: number, b: Uint8Array, bStart: number, bEnd: number): number => {
    const shared = Math.min(aEnd - aStart, bEnd - bStart);
    for (let j = 0; j < shared; j++) {
      const difference = a[aStart + j]! - b[bStart + j]!;
      if (difference !== 0) return difference;
    }
    return aEnd - aStart - (bEnd - bStart);
  },
  compareBytes: (heap: Uint8Array, start: number, end: number, bytes: Uint8Array): number => {
    const shared = Math.min(end - start, bytes.length);
    for (let j = 0; j < shared; j++) {
      const difference = heap[start + j]! - bytes[j]!;
      if (difference !== 0) return difference;
    }
    return end - start - bytes.length;
  },
};
