/**
 * The six letters with which the texts of a column begin: a search for repetitions of its texts in a short text skips, unread,
 * the columns whose texts cannot occur in it. A bit for each hash of six letters, lower-case; of three where a text has no six
 * that are plain ASCII and look the same quoted and composed; all bits where it has no such three. Texts of less than three are
 * left out.
 */
import type { Vector } from '../../../log/values/columns.ts';

type TextVector = Extract<Vector, { kind: 'text' }>;

/** The first that a text has is taken. */
const BEGINNING_LETTERS = [6, 3];
const SHORTEST_BEGINNING = 3;
const BEGINNING_BITS = 4_096;
const [upperCaseFrom, upperCaseTo] = ['A'.charCodeAt(0), 'Z'.charCodeAt(0)];
const otherwiseQuoted = new Set(['"', "'", '\\'].map((sign) => sign.charCodeAt(0)));
/** By byte: in lower case, or -1. */
const lowerLetters = Int16Array.from({ length: 256 }, (_, byte) =>
  byte < 0x20 || byte > 0x7e || otherwiseQuoted.has(byte)
    ? -1
    : byte >= upperCaseFrom && byte <= upperCaseTo
      ? byte + 0x20
      : byte,
);

export function noBeginnings(): Uint8Array {
  return new Uint8Array(BEGINNING_BITS / 8);
}

/** Beginnings of cells[from .. to) besides those that are there. */
export function addBeginnings(
  { offsets, heap, nulls }: TextVector,
  firstRow: number,
  rowsEnd: number,
  beginningBits: Uint8Array,
): void {
  for (let row = firstRow; row < rowsEnd; row++) {
    const textStart = offsets[row]!;
    const textEnd = offsets[row + 1]!;
    if (textEnd - textStart < SHORTEST_BEGINNING || nulls?.[row] === 1) continue;
    const beginningBit = beginningOf(heap, textStart, textEnd);
    if (beginningBit >= 0) setBeginningBit(beginningBits, beginningBit);
    else if (!isTextWiped(heap, textStart, textEnd)) beginningBits.fill(0xff);
  }
}

/** -1: it has none that would be found wherever the text is. */
function beginningOf(heap: Uint8Array, textStart: number, textEnd: number): number {
  for (const letterCount of BEGINNING_LETTERS) {
    // A sign that follows may be composed with the last of them.
    if (textEnd - textStart < letterCount || (textEnd - textStart > letterCount && heap[textStart + letterCount]! >= 0x80))
      continue;
    const beginningBit = beginningBitOf(letterCount, (i) => lowerLetters[heap[textStart + i]!]!);
    if (beginningBit >= 0) return beginningBit;
  }
  return -1;
}

/** Bytes of a removed text are zero and count as no text. */
function isTextWiped(heap: Uint8Array, textStart: number, textEnd: number): boolean {
  for (let wipedByte = textStart; wipedByte < textEnd; wipedByte++) if (heap[wipedByte] !== 0) return false;
  return true;
}

/** Runs of six letters, and of three, that occur anywhere in texts. */
export class LettersInARow {
  readonly #beginningBits = noBeginnings();

  constructor(...texts: readonly string[]) {
    for (const text of texts) this.add(text);
  }

  add(text: string): void {
    const lowerText = text.toLowerCase();
    for (const letterCount of BEGINNING_LETTERS) {
      for (let letterOffset = 0; letterOffset + letterCount <= lowerText.length; letterOffset++) {
        const beginningBit = beginningBitOf(letterCount, (i) => lowerLetterAt(lowerText, letterOffset + i));
        if (beginningBit >= 0) setBeginningBit(this.#beginningBits, beginningBit);
      }
    }
  }

  covers(others: LettersInARow): boolean {
    return others.#beginningBits.every((beginningByte, i) => (beginningByte & ~this.#beginningBits[i]!) === 0);
  }

  /**
   * Whether a text with one of these beginnings may be among the texts. Null: the beginnings of the column's texts are unknown.
   */
  mayHold(beginnings: Uint8Array | null): boolean {
    return (
      beginnings === null ||
      areAllBeginnings(beginnings) ||
      beginnings.some((beginningByte, i) => (beginningByte & this.#beginningBits[i]!) !== 0)
    );
  }
}

function areAllBeginnings(beginningBits: Uint8Array): boolean {
  return beginningBits.every((byte) => byte === 0xff);
}

function lowerLetterAt(text: string, at: number): number {
  const letterCode = text.charCodeAt(at);
  return letterCode < 256 ? lowerLetters[letterCode]! : -1;
}

function setBeginningBit(beginningBits: Uint8Array, bit: number): void {
  beginningBits[bit >>> 3]! |= 1 << (bit & 7);
}

/** -1 where one of so many letters is not plain. */
function beginningBitOf(letterCount: number, letterOf: (i: number) => number): number {
  let beginningHash = letterCount;
  for (let i = 0; i < letterCount; i++) {
    const letterCode = letterOf(i);
    if (letterCode < 0) return -1;
    beginningHash = Math.imul(beginningHash ^ letterCode, 0x0100_0193);
  }
  return (Math.imul(beginningHash, 0x9e37_79b1) >>> 20) & (BEGINNING_BITS - 1);
}
