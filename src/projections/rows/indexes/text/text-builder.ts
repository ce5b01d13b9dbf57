/** Makes a text index of the cells of a column, some thousands of rows a step. */
import type { Progress } from '../../../../log/threads/stepping-job.ts';
import { assert } from '../../../../errors.ts';
import { compareText } from '../../../../log/values/value.ts';
import { SEGMENT_ROWS } from '../../segments/segment-column.ts';
import { asciiClasses, charClass, parts, TERM_MAX, tokenSpans } from './tokens.ts';
import { jsonTextSpans } from './json-texts.ts';
import { pack, PEAK_MOST, TextIndex } from './text-index.ts';
import { stemmer } from './stems.ts';

/** Texts of consecutive rows. With `codes`, row r has text codes[r]; without, text r. */
export interface TextCells {
  readonly rows: number;
  readonly offsets: Uint32Array;
  readonly heap: Uint8Array;
  readonly codes: Int32Array | null;
  /** 1 where a row has no text. */
  readonly absent: Uint8Array | null;
  /** The cells are JSON: their strings are indexed. */
  readonly isJson?: boolean;
}

/** Bytes of text, rows, tokens and terms between two steps. */
const STEP_BYTES = 1 << 18;
const STEP_ROWS = 4_096;
const STEP_TOKENS = 1 << 18;
const STEP_TERMS = 256;

export function* buildTextIndex(cells: TextCells, language: string): Generator<Progress, Uint8Array> {
  const { rows, offsets, heap, codes, absent, isJson } = cells;
  const terms = new Terms();
  const lengths = new Uint32Array(rows);
  let bytes = 0;
  let held = 0;
  for (let row = 0; row < rows; row++) {
    if (absent?.[row] === 1) continue;
    const text = codes === null ? row : codes[row]!;
    const [start, end] = [offsets[text]!, offsets[text + 1]!];
    terms.begin(row);
    if (isJson === true) {
      for (const text of jsonTextSpans(heap, start, end)) {
        terms.read(...text);
        terms.leavePlace();
      }
    } else terms.read(heap, start, end);
    lengths[row] = terms.ordinal;
    if (terms.ordinal > 0) held++;
    bytes += end - start + 16;
    if (bytes > STEP_BYTES) {
      bytes = 0;
      yield { done: row, of: rows };
    }
  }
  yield { done: rows, of: rows };
  return yield* terms.index(rows, lengths, held, stemmer(language));
}

/** In steps, beginning with the cells. */
export function* textIndexOf(cells: Generator<undefined, TextCells>, language: string): Generator<unknown, TextIndex> {
  return TextIndex.open(yield* buildTextIndex(yield* cells, language));
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

class Terms {
  /** Number of the next term of its row. */
  ordinal = 0;
  #heap = new Uint8Array(1 << 16);
  #used = 0;
  #starts = new Uint32Array(1 << 12);
  #hashes = new Int32Array(1 << 12);
  #count = 0;
  /** Number of a term plus one, by hash; 0 is free. */
  #slots = new Int32Array(1 << 13);
  /** Terms of all rows one after the other. */
  #tokens = new Uint32Array(1 << 14);
  #tokenCount = 0;
  /** Words that are there beside their parts, four numbers each: term, row, ordinal, width; by row and ordinal. */
  readonly #wholes: number[] = [];
  /** Places that are left free, two numbers each: row, and number of the term that follows. */
  readonly #gaps: number[] = [];
  #row = 0;
  readonly #word = new Uint8Array(TERM_MAX * 4);

  begin(row: number): void {
    this.ordinal = 0;
    this.#row = row;
  }

  /** No phrase runs over what follows. */
  leavePlace(): void {
    const isLeft = this.#gaps.at(-2) === this.#row && this.#gaps.at(-1) === this.ordinal;
    if (this.ordinal > 0 && !isLeft) this.#gaps.push(this.#row, this.ordinal);
  }

  read(heap: Uint8Array, start: number, end: number): void {
    for (let i = start; i < end; i++) if (heap[i]! >= 0x80) return this.#readText(decoder.decode(heap.slice(start, end)));
    let from = -1;
    let before = 0;
    /** Where the letters at hand begin, and the ordinal of their first part. */
    let [whole, first] = [-1, 0];
    for (let i = start; i < end; i++) {
      const own = asciiClasses[heap[i]!]!;
      if (own === charClass.separator || (own === charClass.digit) !== (before === charClass.digit) || from < 0) {
        if (from >= 0) this.#word_(heap, from, i);
        if (whole >= 0) this.#whole(heap, whole, i, first);
        from = own === charClass.separator ? -1 : i;
        whole = own === charClass.separator || own === charClass.digit ? -1 : i;
        first = this.ordinal;
        before = own;
        continue;
      }
      if (parts(before, own)) {
        this.#word_(heap, from, i);
        from = i;
      } else if (before === charClass.upper && own === charClass.lower && i - 1 > from) {
        this.#word_(heap, from, i - 1);
        from = i - 1;
      }
      before = own;
    }
    if (from >= 0) this.#word_(heap, from, end);
    if (whole >= 0) this.#whole(heap, whole, end, first);
  }

  #readText(text: string): void {
    const before = this.ordinal;
    for (const { term, ordinal, width } of tokenSpans(text).spans) {
      const bytes = encoder.encode(term);
      let hash = 0x811c_9dc5;
      for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ bytes[i]!, 0x0100_0193);
      if (width === 1) this.#add(bytes, bytes.length, hash);
      else this.#wholes.push(this.#numberOf(bytes, bytes.length, hash), this.#row, before + ordinal, width);
    }
  }

  /** A run of letters, where capitals part it. */
  #whole(heap: Uint8Array, from: number, to: number, first: number): void {
    const width = this.ordinal - first;
    if (width < 2 || to - from > TERM_MAX) return;
    this.#wholes.push(this.#numberOf(this.#word, to - from, this.#lower(heap, from, to)), this.#row, first, width);
  }

  #word_(heap: Uint8Array, from: number, to: number): void {
    const end = Math.min(to, from + TERM_MAX);
    this.#add(this.#word, end - from, this.#lower(heap, from, end));
  }

  /** Brings letters into the word at hand, in small ones; gives their hash. */
  #lower(heap: Uint8Array, from: number, to: number): number {
    const word = this.#word;
    let hash = 0x811c_9dc5;
    for (let at = from; at < to; at++) {
      let byte = heap[at]!;
      if (byte >= 0x41 && byte <= 0x5a) byte |= 0x20;
      word[at - from] = byte;
      hash = Math.imul(hash ^ byte, 0x0100_0193);
    }
    return hash;
  }

  #add(word: Uint8Array, size: number, hash: number): void {
    if (this.#tokenCount === this.#tokens.length) this.#tokens = grow(this.#tokens);
    this.#tokens[this.#tokenCount++] = this.#numberOf(word, size, hash);
    this.ordinal++;
  }

  #numberOf(word: Uint8Array, size: number, hash: number): number {
    const mask = this.#slots.length - 1;
    for (let slot = (hash ^ (hash >>> 15)) & mask; ; slot = (slot + 1) & mask) {
      const number = this.#slots[slot]! - 1;
      if (number < 0) return this.#new(word, size, hash, slot);
      if (this.#hashes[number] === hash && this.#is(number, word, size)) return number;
    }
  }

  #is(number: number, word: Uint8Array, size: number): boolean {
    const start = this.#starts[number]!;
    if (this.#starts[number + 1]! - start !== size) return false;
    for (let i = 0; i < size; i++) if (this.#heap[start + i] !== word[i]) return false;
    return true;
  }

  #new(word: Uint8Array, size: number, hash: number, slot: number): number {
    const number = this.#count++;
    if (number + 1 >= this.#starts.length) {
      this.#starts = grow(this.#starts);
      this.#hashes = grow(this.#hashes);
    }
    while (this.#used + size > this.#heap.length) this.#heap = grow(this.#heap);
    this.#heap.set(word.subarray(0, size), this.#used);
    this.#used += size;
    this.#starts[number + 1] = this.#used;
    this.#hashes[number] = hash;
    this.#slots[slot] = number + 1;
    if (this.#count * 2 > this.#slots.length) this.#rehash();
    return number;
  }

  #rehash(): void {
    const slots = new Int32Array(this.#slots.length * 2);
    const mask = slots.length - 1;
    for (let number = 0; number < this.#count; number++) {
      const hash = this.#hashes[number]!;
      let slot = (hash ^ (hash >>> 15)) & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = number + 1;
    }
    this.#slots = slots;
  }

  *index(rows: number, lengths: Uint32Array, held: number, stem: (term: string) => string): Generator<Progress, Uint8Array> {
    assert(rows <= SEGMENT_ROWS, 'numbers of rows are u16');
    const whole = { done: rows, of: rows };
    const order = yield* this.#inOrder(whole);
    const tokens = yield* this.#tokensByTerm(lengths, whole);
    const [termOffsets, termHeap] = [new Uint32Array(this.#count + 1), new Uint8Array(this.#used)];
    const stemmed: number[] = [];
    const stems: string[] = [];
    const lists = new PostingLists(this.#count, this.#tokenCount, lengths);
    for (let i = 0; i < order.length; i++) {
      const term = order[i]!;
      const bytes = this.#heap.subarray(this.#starts[term]!, this.#starts[term + 1]!);
      termHeap.set(bytes, termOffsets[i]!);
      termOffsets[i + 1] = termOffsets[i]! + bytes.length;
      const text = decoder.decode(bytes);
      const own = stem(text);
      if (own !== text) {
        stemmed.push(i);
        stems.push(own);
      }
      lists.add(i, tokens, tokens.starts[term]!, tokens.starts[term + 1]!);
      if (i % STEP_TERMS === STEP_TERMS - 1) yield whole;
    }
    const steps = stemsOf(stems);
    let step = steps.next();
    for (; step.done !== true; step = steps.next()) yield whole;
    const { frequencies, peaks, postingOffsets, ordinalOffsets } = lists;
    const index = {
      rows,
      lengths,
      frequencies,
      peaks,
      termOffsets,
      postingOffsets,
      ordinalOffsets,
      stemmed: Uint32Array.from(stemmed),
      ...step.value,
      termHeap,
      postings: lists.postings.bytes(),
      ordinals: lists.ordinals.bytes(),
    };
    return pack(index, held, this.#tokenCount);
  }

  /** Sorts the tokens of all rows by term; those of one term stay in the order of rows and ordinals. */
  *#tokensByTerm(lengths: Uint32Array, whole: Progress): Generator<Progress, TokensByTerm> {
    const [count, tokens] = [this.#count, this.#tokens.subarray(0, this.#tokenCount)];
    const [wholes, gaps] = [this.#wholes, this.#gaps];
    const starts = new Uint32Array(count + 1);
    for (let at = 0; at < wholes.length; at += 4) starts[wholes[at]! + 1]!++;
    for (let token = 0; token < tokens.length; token++) {
      starts[tokens[token]! + 1]!++;
      if (token % STEP_TOKENS === STEP_TOKENS - 1) yield whole;
    }
    for (let term = 0; term < count; term++) starts[term + 1]! += starts[term]!;
    yield whole;
    const next = starts.slice(0, count);
    const tokenRows = new Uint32Array(tokens.length + wholes.length / 4);
    const tokenPlaces = new Uint32Array(tokenRows.length);
    const tokenWidths = new Uint8Array(tokenRows.length);
    for (let row = 0, token = 0, wide = 0, gap = 0; row < lengths.length; row++) {
      for (let ordinal = 0, free = 0; ordinal < lengths[row]!; ordinal++, token++) {
        if (gaps[gap] === row && gaps[gap + 1] === ordinal) {
          free++;
          gap += 2;
        }
        if (wholes[wide + 1] === row && wholes[wide + 2] === ordinal) {
          const at = next[wholes[wide]!]!++;
          tokenRows[at] = row;
          tokenPlaces[at] = ordinal + free;
          tokenWidths[at] = wholes[wide + 3]!;
          wide += 4;
        }
        const at = next[tokens[token]!]!++;
        tokenRows[at] = row;
        tokenPlaces[at] = ordinal + free;
      }
      // Behind the last term.
      if (gaps[gap] === row) gap += 2;
      if (row % STEP_ROWS === STEP_ROWS - 1) yield whole;
    }
    yield whole;
    return { starts, rows: tokenRows, ordinals: tokenPlaces, widths: tokenWidths };
  }

  /** Numbers of the terms, bytewise. */
  *#inOrder(whole: Progress): Generator<Progress, Uint32Array> {
    const [heap, starts] = [this.#heap, this.#starts];
    // By its first four bytes first, in which most terms differ: as numbers of 64 bits, which are sorted without a call for each pair.
    const keys = new BigUint64Array(this.#count);
    const halves = new Uint32Array(keys.buffer);
    for (let term = 0; term < this.#count; term++) {
      const start = starts[term]!;
      const size = starts[term + 1]! - start;
      let head = 0;
      for (let i = 0; i < 4; i++) head = (head << 8) | (i < size ? heap[start + i]! : 0);
      halves[term * 2] = term;
      halves[term * 2 + 1] = head;
    }
    yield whole;
    keys.sort();
    yield whole;
    const order = Uint32Array.from(keys, (_, at) => halves[at * 2]!);
    const compare = (a: number, b: number): number => {
      const [from, other] = [starts[a]!, starts[b]!];
      const [size, otherSize] = [starts[a + 1]! - from, starts[b + 1]! - other];
      for (let i = 0; i < size && i < otherSize; i++) {
        const bytes = heap[from + i]! - heap[other + i]!;
        if (bytes !== 0) return bytes;
      }
      return size - otherSize;
    };
    let sorted = 0;
    for (let first = 0, end = 1; first < order.length; first = end, end++) {
      while (end < order.length && halves[end * 2 + 1] === halves[first * 2 + 1]) end++;
      if (end - first > 1) order.subarray(first, end).sort(compare);
      if (end - sorted < STEP_ROWS) continue;
      sorted = end;
      yield whole;
    }
    yield whole;
    return order;
  }
}

/** Tokens of all rows, term after term: term t has those from starts[t] to starts[t + 1]. */
interface TokensByTerm {
  readonly starts: Uint32Array;
  readonly rows: Uint32Array;
  readonly ordinals: Uint32Array;
  /** 0 where a token takes one ordinal. */
  readonly widths: Uint8Array;
}

/** Postings and ordinals of the terms of an index, added in the order of its terms: `text-index.ts` draws their bytes. */
class PostingLists {
  /** Rows that hold each term. */
  readonly frequencies: Uint32Array;
  readonly peaks: Uint32Array;
  readonly postingOffsets: Uint32Array;
  readonly ordinalOffsets: Uint32Array;
  readonly postings: Varints;
  readonly ordinals: Varints;
  readonly #lengths: Uint32Array;

  constructor(terms: number, tokens: number, lengths: Uint32Array) {
    this.frequencies = new Uint32Array(terms);
    this.peaks = new Uint32Array(terms);
    this.postingOffsets = new Uint32Array(terms + 1);
    this.ordinalOffsets = new Uint32Array(terms + 1);
    this.postings = new Varints(tokens * 2);
    this.ordinals = new Varints(tokens * 2);
    this.#lengths = lengths;
  }

  /** Adds term `i`, whose tokens lie at [from, to). */
  add(i: number, { rows, ordinals: tokenPlaces, widths }: TokensByTerm, from: number, to: number): void {
    const { frequencies, postings, ordinals } = this;
    const lengths = this.#lengths;
    /** Postings of rows that hold the term more than once, each with how often. */
    const repeated: number[] = [];
    let [most, least] = [0, PEAK_MOST];
    for (let at = from; at < to; ) {
      const row = rows[at]!;
      let end = at + 1;
      while (end < to && rows[end] === row) end++;
      const often = end - at;
      postings.addShort(row);
      if (often > 1) repeated.push(frequencies[i]!, often);
      frequencies[i]!++;
      if (often > most) most = often;
      if (lengths[row]! < least) least = lengths[row]!;
      for (let previousOrdinal = 0; at < end; at++) {
        const width = widths[at]!;
        if (width > 0) {
          ordinals.add(0);
          ordinals.add(width);
        }
        ordinals.add(tokenPlaces[at]! - previousOrdinal + 1);
        previousOrdinal = tokenPlaces[at]!;
      }
    }
    for (let k = 0, previous = 0; k < repeated.length; k += 2) {
      postings.add(repeated[k]! - previous);
      postings.add(repeated[k + 1]!);
      previous = repeated[k]!;
    }
    this.peaks[i] = Math.min(most, PEAK_MOST) * (PEAK_MOST + 1) + least;
    this.postingOffsets[i + 1] = postings.length;
    this.ordinalOffsets[i + 1] = ordinals.length;
  }
}

/** Each of these stems once, in bytewise order, and which is whose. */
function* stemsOf(
  stems: readonly string[],
): Generator<undefined, { stemOf: Uint32Array; stemOffsets: Uint32Array; stemHeap: Uint8Array }> {
  const distinct = [...new Set(stems)];
  yield;
  distinct.sort(compareText);
  yield;
  const numbers = new Map(distinct.map((text, number) => [text, number]));
  const stemOf = Uint32Array.from(stems, (stem) => numbers.get(stem)!);
  yield;
  const stemOffsets = new Uint32Array(distinct.length + 1);
  distinct.forEach((text, number) => (stemOffsets[number + 1] = stemOffsets[number]! + Buffer.byteLength(text)));
  const stemHeap = new Uint8Array(stemOffsets.at(-1)!);
  distinct.forEach((text, number) => encoder.encodeInto(text, stemHeap.subarray(stemOffsets[number])));
  return { stemOf, stemOffsets, stemHeap };
}

class Varints {
  #bytes: Uint8Array;
  length = 0;

  constructor(capacity: number) {
    this.#bytes = new Uint8Array(Math.max(16, capacity));
  }

  add(value: number): void {
    if (this.length + 5 > this.#bytes.length) this.#bytes = grow(this.#bytes);
    let rest = value;
    while (rest >= 0x80) {
      this.#bytes[this.length++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.#bytes[this.length++] = rest;
  }

  addShort(value: number): void {
    if (this.length + 2 > this.#bytes.length) this.#bytes = grow(this.#bytes);
    this.#bytes[this.length++] = value & 0xff;
    this.#bytes[this.length++] = value >>> 8;
  }

  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.length);
  }
}

function grow<T extends Uint8Array | Uint32Array | Int32Array>(array: T): T {
  const larger = new (array.constructor as new (length: number) => T)(array.length * 2);
  larger.set(array);
  return larger;
}
