/**
 * Texts in the order of their bytes, as most keys are: most keys share a prefix and differ behind it. Eight bytes behind what all
 * begin with are ordered digit by digit, and only texts that have these in common too are compared.
 */
import { byWords, edgesAtOnce, roomFor } from './edge-order.ts';
import { sortInSteps, type Steps } from './stepped-sort.ts';

/** Texts by code, as bytes. */
export interface Names {
  readonly size: number;
  readonly offsets: Uint32Array;
  readonly heap: Uint8Array;
}

/** Sorts codes by their texts. */
export function* inTextOrder(codes: Int32Array, names: Names): Steps<Int32Array> {
  const count = codes.length;
  if (count === 0) return codes;
  let alike = sizeOf(names, codes[0]!);
  for (let first = 0; first < count; first += edgesAtOnce) {
    alike = alikeWith(names, codes, first, Math.min(count, first + edgesAtOnce), alike);
    yield;
  }
  const records = roomFor(count, 3);
  for (let first = 0; first < count; first += edgesAtOnce) {
    spell(names, codes, records.words, alike, first, Math.min(count, first + edgesAtOnce));
    yield;
  }
  const { words } = yield* byWords(records, count, [1, 0], 32);
  const order = new Int32Array(count);
  const compare = comparing(names);
  for (let first = 0, end = 1; first < count; first = end++) {
    while (end < count && words[3 * end] === words[3 * first] && words[3 * end + 1] === words[3 * first + 1]) end++;
    for (let at = first; at < end; at++) order[at] = words[3 * at + 2]!;
    if (end - first > 1) order.set(yield* sortInSteps(order.slice(first, end), compare), first);
    if (first >>> 14 !== end >>> 14) yield;
  }
  return order;
}

function sizeOf({ offsets }: Names, code: number): number {
  return offsets[code + 1]! - offsets[code]!;
}

/** The length of the prefix that these share with the first text, `most` bytes at most. */
function alikeWith({ offsets, heap }: Names, codes: Int32Array, first: number, end: number, most: number): number {
  const start = offsets[codes[0]!]!;
  let alike = most;
  for (let i = first; i < end; i++) {
    const own = offsets[codes[i]!]!;
    const size = Math.min(alike, offsets[codes[i]! + 1]! - own);
    let at = 0;
    while (at < size && heap[own + at] === heap[start + at]) at++;
    alike = at;
  }
  return alike;
}

/** Two words of the bytes behind the first ones, and the code. */
function spell(
  { offsets, heap }: Names,
  codes: Int32Array,
  words: Int32Array,
  skipped: number,
  first: number,
  last: number,
): void {
  for (let i = first; i < last; i++) {
    const code = codes[i]!;
    const end = offsets[code + 1]!;
    const start = offsets[code]! + skipped;
    for (let word = 0; word < 2; word++) {
      let bytes = 0;
      for (let at = start + 4 * word, k = 0; k < 4; k++, at++) bytes = (bytes << 8) | (at < end ? heap[at]! : 0);
      words[3 * i + word] = bytes;
    }
    words[3 * i + 2] = code;
  }
}

function comparing({ offsets, heap }: Names): (a: number, b: number) => number {
  return (a, b) => {
    let [atA, atB] = [offsets[a]!, offsets[b]!];
    const [sizeA, sizeB] = [offsets[a + 1]! - atA, offsets[b + 1]! - atB];
    for (const end = atA + Math.min(sizeA, sizeB); atA < end; atA++, atB++) {
      const difference = heap[atA]! - heap[atB]!;
      if (difference !== 0) return difference;
    }
    return sizeA - sizeB;
  };
}
