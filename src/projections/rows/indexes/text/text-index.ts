/**
 * Which rows of one segment hold which terms in one column, how often, and at which ordinals of its text: a pure function of the column's
 * cells. One run of bytes, so that it travels between threads and rests on a file as it is:
 *
 *   head [12 x u32] · lengths u32 a row · document frequencies u32 a term · peaks u32 a term · offsets u32 a term and one, of terms,
 *   postings and ordinals · stemmed u32 each · number of the stem of each u32 · offsets u32 a stem and one · terms in bytewise order ·
 *   stems in bytewise order · postings · ordinals
 *
 *   peak      what no row of the term scores beyond, whatever the figures are that scores go by: most times in a row * 2^16 + least
 *             length of a row, either at most 65,535
 *
 *   stemmed   numbers of terms that are not their own stem, ascending; the others need no other text
 *
 *   postings  the rows of a term, u16 each, then of those that hold it more than once: varint of postings since the one before, and
 *             varint of how often. Rows of one size are read twice as fast as varints, and take about as much
 *   ordinals  of each posting in turn: varint of the first and one, then of the distance to each next and one; before that, where the
 *             term is a word whose parts are terms too, a zero and a varint of how many ordinals these take
 *
 * Rows without the text, NULL, removed or of no term, have length 0.
 */
import { assert } from '../../../../errors.ts';

export const TEXT_FORMAT = 5;
/** Most that half a peak says. */
export const PEAK_MOST = 0xffff;
const HEAD_WORDS = 12;
const TERMS_A_HEAD = 32;

export interface TextIndexArrays {
  readonly rows: number;
  readonly lengths: Uint32Array;
  readonly frequencies: Uint32Array;
  readonly peaks: Uint32Array;
  readonly termOffsets: Uint32Array;
  readonly postingOffsets: Uint32Array;
  readonly ordinalOffsets: Uint32Array;
  readonly stemmed: Uint32Array;
  readonly stemOf: Uint32Array;
  readonly stemOffsets: Uint32Array;
  readonly termHeap: Uint8Array;
  readonly stemHeap: Uint8Array;
  readonly postings: Uint8Array;
  readonly ordinals: Uint8Array;
}

const decoder = new TextDecoder();
const encoder = new TextEncoder();

export class TextIndex {
  readonly rows: number;
  readonly terms: number;
  /** Terms by row. */
  readonly lengths: Uint32Array;
  readonly bytes: Uint8Array;
  /** How many rows have any term, and how many terms they have together. */
  readonly held: number;
  readonly total: number;
  readonly #parts: TextIndexArrays;
  /** First four bytes of every 32nd term: a search for one begins with these, which lie together. */
  readonly #heads: Uint32Array;

  private constructor(bytes: Uint8Array, parts: TextIndexArrays, held: number, total: number) {
    this.bytes = bytes;
    this.#parts = parts;
    this.rows = parts.rows;
    this.terms = parts.frequencies.length;
    this.lengths = parts.lengths;
    this.held = held;
    this.total = total;
    this.#heads = Uint32Array.from({ length: Math.ceil(this.terms / TERMS_A_HEAD) }, (_, i) => {
      const start = parts.termOffsets[i * TERMS_A_HEAD]!;
      return headOf(parts.termHeap.subarray(start, parts.termOffsets[i * TERMS_A_HEAD + 1]));
    });
  }

  static open(bytes: Uint8Array): TextIndex {
    const head = new Uint32Array(bytes.buffer, bytes.byteOffset, HEAD_WORDS);
    const [format, rows, terms, stemmed, stems, termBytes, stemBytes, postingBytes, ordinalBytes, held, total] = head;
    assert(format === TEXT_FORMAT, 'a text index is of this format');
    let at = HEAD_WORDS * 4;
    const words = (count: number): Uint32Array => {
      const view = new Uint32Array(bytes.buffer, bytes.byteOffset + at, count);
      at += count * 4;
      return view;
    };
    const run = (count: number): Uint8Array => {
      const view = bytes.subarray(at, at + count);
      at += count;
      return view;
    };
    const parts: TextIndexArrays = {
      rows: rows!,
      lengths: words(rows!),
      frequencies: words(terms!),
      peaks: words(terms!),
      termOffsets: words(terms! + 1),
      postingOffsets: words(terms! + 1),
      ordinalOffsets: words(terms! + 1),
      stemmed: words(stemmed!),
      stemOf: words(stemmed!),
      stemOffsets: words(stems! + 1),
      termHeap: run(termBytes!),
      stemHeap: run(stemBytes!),
      postings: run(postingBytes!),
      ordinals: run(ordinalBytes!),
    };
    assert(at === bytes.length, 'a text index is as long as its head says');
    return new TextIndex(bytes, parts, held!, total!);
  }

  /** How many rows hold a term. */
  frequency(term: number): number {
    return this.#parts.frequencies[term]!;
  }

  /** Most times that a row holds a term; Infinity where that is not known. */
  timesMost(term: number): number {
    const times = this.#parts.peaks[term]! >>> 16;
    return times === PEAK_MOST ? Infinity : times;
  }

  /** Least length of a row that holds a term, or less. */
  lengthLeast(term: number): number {
    return this.#parts.peaks[term]! & PEAK_MOST;
  }

  /** Number of a term; -1 where no row holds it. */
  find(term: string): number {
    return this.findBytes(encoder.encode(term));
  }

  /** Finds a term by its UTF-8. */
  findBytes(term: Uint8Array): number {
    const { termHeap, termOffsets } = this.#parts;
    const at = this.#atOrAfter(term);
    return at < this.terms && compareAt(termHeap, termOffsets[at]!, termOffsets[at + 1]!, term) === 0 ? at : -1;
  }

  /** Numbers of terms that begin so: from the first up to, and without, the second. */
  beginning(prefix: string): readonly [number, number] {
    const first = this.#atOrAfter(encoder.encode(prefix));
    let end = first;
    while (end < this.terms && this.term(end).startsWith(prefix)) end++;
    return [first, end];
  }

  /** Characters of a term, as far as there is room for them; gives their number. */
  characters(term: number, into: Int32Array): number {
    const { termHeap, termOffsets } = this.#parts;
    const end = termOffsets[term + 1]!;
    let count = 0;
    for (let at = termOffsets[term]!; at < end && count < into.length; ) {
      const byte = termHeap[at++]!;
      if (byte < 0x80) into[count++] = byte;
      else {
        const more = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
        let code = byte & (0x3f >> more);
        for (let i = 0; i < more; i++) code = (code << 6) | (termHeap[at++]! & 0x3f);
        into[count++] = code;
      }
    }
    return count;
  }

  /** Number of the first term after this one that does not begin with so many of its bytes. */
  termAfter(number: number, size: number): number {
    const { termHeap, termOffsets } = this.#parts;
    const own = termOffsets[number]!;
    const begins = (term: number): boolean => {
      const start = termOffsets[term]!;
      if (termOffsets[term + 1]! - start < size) return false;
      for (let i = 0; i < size; i++) if (termHeap[start + i] !== termHeap[own + i]) return false;
      return true;
    };
    // Terms that begin alike lie together: strides double until one is beyond them.
    let low = number + 1;
    let stride = 1;
    while (low + stride - 1 < this.terms && begins(low + stride - 1)) {
      low += stride;
      stride *= 2;
    }
    let high = Math.min(this.terms, low + stride - 1);
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (begins(middle)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Numbers of terms that hold a text, or end with it. */
  holding(text: string, atEnd: boolean): number[] {
    const bytes = encoder.encode(text);
    const { termHeap, termOffsets } = this.#parts;
    const stemTerms: number[] = [];
    const isAt = (at: number): boolean => {
      for (let i = 0; i < bytes.length; i++) if (termHeap[at + i] !== bytes[i]) return false;
      return true;
    };
    for (let term = 0; term < this.terms; term++) {
      const last = termOffsets[term + 1]! - bytes.length;
      for (let at = atEnd ? last : termOffsets[term]!; at <= last && at >= termOffsets[term]!; at++) {
        if (!isAt(at)) continue;
        stemTerms.push(term);
        break;
      }
    }
    return stemTerms;
  }

  term(number: number): string {
    const { termHeap, termOffsets } = this.#parts;
    return textOf(termHeap, termOffsets[number]!, termOffsets[number + 1]!);
  }

  /** Numbers of terms of one stem, ascending. */
  ofStem(stem: string): number[] {
    const { stemHeap, stemOffsets, stemmed, stemOf } = this.#parts;
    const bytes = encoder.encode(stem);
    const terms: number[] = [];
    const stemNumber = lowerBound(stemHeap, stemOffsets, bytes);
    if (
      stemNumber + 1 < stemOffsets.length &&
      compareAt(stemHeap, stemOffsets[stemNumber]!, stemOffsets[stemNumber + 1]!, bytes) === 0
    ) {
      for (let i = 0; i < stemOf.length; i++) if (stemOf[i] === stemNumber) terms.push(stemmed[i]!);
    }
    const itself = this.findBytes(bytes);
    if (itself < 0 || isIn(stemmed, itself)) return terms;
    return [...terms, itself].sort((x, y) => x - y);
  }

  /** Rows of a term, ascending, and how often each holds it; returns how many. The targets have room for all rows. */
  postings(term: number, rows: Int32Array, counts: Int32Array): number {
    const { frequencies, postings, postingOffsets } = this.#parts;
    const rowCount = frequencies[term]!;
    const start = postingOffsets[term]!;
    const end = postingOffsets[term + 1]!;
    let at = start + rowCount * 2;
    for (let i = 0, from = start; from < at; i++, from += 2) rows[i] = postings[from]! | (postings[from + 1]! << 8);
    counts.fill(1, 0, rowCount);
    for (let i = 0; at < end; ) {
      at = varint(postings, at);
      i += read;
      at = varint(postings, at);
      counts[i] = read;
    }
    return rowCount;
  }

  /**
   * Every ordinal of a term in rows of these bits, as `row * 2^21 + ordinal`, ascending; those that take several go to `wide`, with their
   * last ones. The other targets are those of `postings`.
   */
  occurrences(term: number, only: Int32Array, rows: Int32Array, counts: Int32Array, into: number[], wide: OrdinalRange[]): void {
    const { ordinals, ordinalOffsets } = this.#parts;
    const rowCount = this.postings(term, rows, counts);
    let at = ordinalOffsets[term]!;
    for (let i = 0; i < rowCount; i++) {
      const row = rows[i]!;
      const isWanted = ((only[row >>> 5]! >>> (row & 31)) & 1) === 1;
      for (let left = counts[i]!, ordinal = 0; left > 0; left--) {
        if (isWanted) {
          at = varint(ordinals, at);
          let width = 1;
          if (read === 0) {
            at = varint(ordinals, at);
            width = read;
            at = varint(ordinals, at);
          }
          ordinal += read - 1;
          const first = row * PLACES + ordinal;
          if (width === 1) into.push(first);
          else wide.push({ first, last: first + width - 1 });
        } else {
          if (ordinals[at] === 0) {
            at++;
            while (ordinals[at++]! >= 0x80);
          }
          while (ordinals[at++]! >= 0x80);
        }
      }
    }
  }

  #atOrAfter(term: Uint8Array): number {
    const head = headOf(term);
    const below = this.#headsBelow(head);
    const low = below === 0 ? 0 : (below - 1) * TERMS_A_HEAD + 1;
    const high = Math.min(this.terms, this.#headsBelow(head + 1) * TERMS_A_HEAD);
    return lowerBound(this.#parts.termHeap, this.#parts.termOffsets, term, low, high);
  }

  #headsBelow(head: number): number {
    const heads = this.#heads;
    let [low, high] = [0, heads.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (heads[middle]! < head) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** The ordinals of a word that are those of its parts. */
export interface OrdinalRange {
  readonly first: number;
  readonly last: number;
}

/** Places of a row, at most. */
export const PLACES = 2 ** 21;

/** Puts an index into one run of bytes, in shared memory: threads hand it over without a copy. */
export function pack(parts: TextIndexArrays, held: number, total: number): Uint8Array {
  const { rows, frequencies, stemmed, stemOffsets, termHeap, stemHeap, postings, ordinals } = parts;
  const words = [
    parts.lengths,
    frequencies,
    parts.peaks,
    parts.termOffsets,
    parts.postingOffsets,
    parts.ordinalOffsets,
    stemmed,
    parts.stemOf,
    stemOffsets,
  ];
  const runs = [termHeap, stemHeap, postings, ordinals];
  const size = HEAD_WORDS * 4 + [...words, ...runs].reduce((sum, each) => sum + each.byteLength, 0);
  const bytes = new Uint8Array(new SharedArrayBuffer(size));
  const counts = [rows, frequencies.length, stemmed.length, stemOffsets.length - 1];
  const head = [TEXT_FORMAT, ...counts, ...runs.map((run) => run.length), held, total];
  new Uint32Array(bytes.buffer, 0, HEAD_WORDS).set(head);
  let at = HEAD_WORDS * 4;
  for (const part of [...words, ...runs]) {
    bytes.set(new Uint8Array(part.buffer, part.byteOffset, part.byteLength), at);
    at += part.byteLength;
  }
  return bytes;
}

/** The value that the last call read. */
let read = 0;

/** Reads a varint; gives where it ends. */
function varint(bytes: Uint8Array, from: number): number {
  let at = from;
  let byte = bytes[at++]!;
  read = byte & 0x7f;
  for (let shift = 7; byte >= 0x80; shift += 7) {
    byte = bytes[at++]!;
    read |= (byte & 0x7f) << shift;
  }
  return at;
}

function textOf(heap: Uint8Array, start: number, end: number): string {
  let text = '';
  for (let i = start; i < end; i++) {
    const byte = heap[i]!;
    // A copy: decoders take no view of shared memory.
    if (byte >= 0x80) return decoder.decode(heap.slice(start, end));
    text += String.fromCharCode(byte);
  }
  return text;
}

/** First four bytes of a term: of two terms the one with the lower head is below. */
function headOf(term: Uint8Array): number {
  let head = 0;
  for (let i = 0; i < 4; i++) head = head * 256 + (term[i] ?? 0);
  return head;
}

/** Number of the first of these, in bytewise order, that is not below. */
function lowerBound(heap: Uint8Array, offsets: Uint32Array, sought: Uint8Array, from = 0, end = offsets.length - 1): number {
  let low = from;
  let high = end;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareAt(heap, offsets[middle]!, offsets[middle + 1]!, sought) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

function isIn(ascending: Uint32Array, sought: number): boolean {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ascending[middle]! < sought) low = middle + 1;
    else high = middle;
  }
  return ascending[low] === sought;
}

function compareAt(heap: Uint8Array, start: number, end: number, sought: Uint8Array): number {
  const shared = Math.min(end - start, sought.length);
  for (let i = 0; i < shared; i++) {
    const difference = heap[start + i]! - sought[i]!;
    if (difference !== 0) return difference;
  }
  return end - start - sought.length;
}
