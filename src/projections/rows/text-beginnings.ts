/**
 * With which three letters the texts of a column begin: who looks for what a short text repeats of them has columns left out
 * that hold nothing of it, unread. A bit for each hash of three letters, lower-case; all bits where a text begins with anything
 * but plain ASCII, or would look otherwise quoted or composed. Texts of less than three letters are left out.
 */
import type { Vector } from '../../log/columns.ts';

type TextVector = Extract<Vector, { kind: 'text' }>;

const LETTERS = 3;
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
    if (end - at < LETTERS || nulls?.[row] === 1) continue;
    const [a, b, c] = [plain[heap[at]!]!, plain[heap[at + 1]!]!, plain[heap[at + 2]!]!];
    // A sign that follows may be composed with the last of them.
    if ((a | b | c) >= 0 && (end - at === LETTERS || heap[at + LETTERS]! < 0x80)) set(into, bitOf(a, b, c));
    else if (!isWiped(heap, at, end)) into.fill(0xff);
  }
}

/** What is left of a text that was removed says nothing. */
function isWiped(heap: Uint8Array, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (heap[at] !== 0) return false;
  return true;
}

/** What texts have anywhere of three letters in a row. */
export class LettersInARow {
  readonly #bits = noBeginnings();

  constructor(...texts: readonly string[]) {
    for (const text of texts) this.add(text);
  }

  add(text: string): void {
    const lower = text.toLowerCase();
    for (let at = 0; at + LETTERS <= lower.length; at++) {
      const [a, b, c] = [letterAt(lower, at), letterAt(lower, at + 1), letterAt(lower, at + 2)];
      if ((a | b | c) >= 0) set(this.#bits, bitOf(a, b, c));
    }
  }

  covers(others: LettersInARow): boolean {
    return others.#bits.every((byte, i) => (byte & ~this.#bits[i]!) === 0);
  }

  /** Something that begins so may be in one of the texts. Null: nobody knows how texts of the column begin. */
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

function bitOf(a: number, b: number, c: number): number {
  return (Math.imul(a | (b << 8) | (c << 16), 0x9e37_79b1) >>> 20) & (BITS - 1);
}
