/**
 * The six letters with which the texts of a column begin: a search for repetitions of its texts in a short text skips, unread,
 * the columns whose texts cannot occur in it. A bit for each hash of six letters, lower-case; of three where a text has no six
 * that are plain ASCII and look the same quoted and composed; all bits where it has no such three. Texts of less than three are
 * left out.
 */
import type { Vector } from '../../../log/values/columns.ts';

type TextVector = Extract<Vector, { kind: 'text' }>;

/** The first that a text has is taken. */
const LETTERS = [6, 3];
const SHORTEST = 3;
const BITS = 4_096;
const [lowerFrom, lowerTo] = ['A'.charCodeAt(0), 'Z'.charCodeAt(0)];
const otherwiseQuoted = new Set(['"', "'", '\\'].map((sign) => sign.charCodeAt(0)));
/** By byte: in lower case, or -1. */
const plain = Int16Array.from({ length: 256 }, (_, byte) =>
  byte < 0x20 || byte > 0x7e || otherwiseQuoted.has(byte) ? -1 : byte >= lowerFrom && byte <= lowerTo ? byte + 0x20 : byte,
);

export function noBeginnings(): Uint8Array {
  return new Uint8Array(BITS / 8);
}

/** Beginnings of cells[from .. to) besides those that are there. */
export function addBeginnings({ offsets, heap, nulls }: TextVector, from: number, to: number, into: Uint8Array): void {
  for (let row = from; row < to; row++) {
    const at = offsets[row]!;
    const end = offsets[row + 1]!;
    if (end - at < SHORTEST || nulls?.[row] === 1) continue;
    const bit = beginningOf(heap, at, end);
    if (bit >= 0) set(into, bit);
    else if (!isWiped(heap, at, end)) into.fill(0xff);
  }
}

/** -1: it has none that would be found wherever the text is. */
function beginningOf(heap: Uint8Array, from: number, to: number): number {
  for (const letters of LETTERS) {
    // A sign that follows may be composed with the last of them.
    if (to - from < letters || (to - from > letters && heap[from + letters]! >= 0x80)) continue;
    const bit = bitOf(letters, (i) => plain[heap[from + i]!]!);
    if (bit >= 0) return bit;
  }
  return -1;
}

/** Bytes of a removed text are zero and count as no text. */
function isWiped(heap: Uint8Array, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (heap[at] !== 0) return false;
  return true;
}

/** Runs of six letters, and of three, that occur anywhere in texts. */
export class LettersInARow {
  readonly #bits = noBeginnings();

  constructor(...texts: readonly string[]) {
    for (const text of texts) this.add(text);
  }

  add(text: string): void {
    const lower = text.toLowerCase();
    for (const letters of LETTERS) {
      for (let at = 0; at + letters <= lower.length; at++) {
        const bit = bitOf(letters, (i) => letterAt(lower, at + i));
        if (bit >= 0) set(this.#bits, bit);
      }
    }
  }

  covers(others: LettersInARow): boolean {
    return others.#bits.every((byte, i) => (byte & ~this.#bits[i]!) === 0);
  }

  /**
   * Whether a text with one of these beginnings may be among the texts. Null: the beginnings of the column's texts are unknown.
   */
  mayHold(beginnings: Uint8Array | null): boolean {
    return beginnings === null || isFull(beginnings) || beginnings.some((byte, i) => (byte & this.#bits[i]!) !== 0);
  }
}

function isFull(bits: Uint8Array): boolean {
  return bits.every((byte) => byte === 0xff);
}

function letterAt(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code < 256 ? plain[code]! : -1;
}

function set(bits: Uint8Array, bit: number): void {
  bits[bit >>> 3]! |= 1 << (bit & 7);
}

/** -1 where one of so many letters is not plain. */
function bitOf(letters: number, letter: (i: number) => number): number {
  let hash = letters;
  for (let i = 0; i < letters; i++) {
    const code = letter(i);
    if (code < 0) return -1;
    hash = Math.imul(hash ^ code, 0x0100_0193);
  }
  return (Math.imul(hash, 0x9e37_79b1) >>> 20) & (BITS - 1);
}
