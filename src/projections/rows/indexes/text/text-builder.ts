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
const TEXT_STEP_BYTES = 1 << 18;
const TEXT_STEP_ROWS = 4_096;
const TEXT_STEP_TOKENS = 1 << 18;
const TEXT_STEP_TERMS = 256;

export function* buildTextIndex(cells: TextCells, language: string): Generator<Progress, Uint8Array> {
  const { rows, offsets, heap, codes, absent, isJson } = cells;
  const indexTerms = new IndexTerms();
  const rowLengths = new Uint32Array(rows);
  let bytesSinceYield = 0;
  let rowsWithTerms = 0;
  for (let row = 0; row < rows; row++) {
    if (absent?.[row] === 1) continue;
    const text = codes === null ? row : codes[row]!;
    const [cellStart, cellEnd] = [offsets[text]!, offsets[text + 1]!];
    indexTerms.begin(row);
    if (isJson === true) {
      for (const text of jsonTextSpans(heap, cellStart, cellEnd)) {
        indexTerms.read(...text);
        indexTerms.leaveOrdinal();
      }
    } else indexTerms.read(heap, cellStart, cellEnd);
    rowLengths[row] = indexTerms.ordinal;
    if (indexTerms.ordinal > 0) rowsWithTerms++;
    bytesSinceYield += cellEnd - cellStart + 16;
    if (bytesSinceYield > TEXT_STEP_BYTES) {
      bytesSinceYield = 0;
      yield { done: row, of: rows };
    }
  }
  yield { done: rows, of: rows };
  return yield* indexTerms.index(rows, rowLengths, rowsWithTerms, stemmer(language));
}

/** In steps, beginning with the cells. */
export function* textIndexOf(cells: Generator<undefined, TextCells>, language: string): Generator<unknown, TextIndex> {
  return TextIndex.open(yield* buildTextIndex(yield* cells, language));
}

const termEncoder = new TextEncoder();
const termDecoder = new TextDecoder();

class IndexTerms {
  /** Number of the next term of its row. */
  ordinal = 0;
  #termHeap = new Uint8Array(1 << 16);
  #termHeapUsed = 0;
  #termStarts = new Uint32Array(1 << 12);
  #termHashes = new Int32Array(1 << 12);
  #termCount = 0;
  /** Number of a term plus one, by hash; 0 is free. */
  #termSlots = new Int32Array(1 << 13);
  /** Terms of all rows one after the other. */
  #tokenTerms = new Uint32Array(1 << 14);
  #tokenCount = 0;
  /** Words that are there beside their parts, four numbers each: term, row, ordinal, width; by row and ordinal. */
  readonly #wholeWords: number[] = [];
  /** Places that are left free, two numbers each: row, and number of the term that follows. */
  readonly #placeGaps: number[] = [];
  #indexedRow = 0;
  readonly #lowerWord = new Uint8Array(TERM_MAX * 4);

  begin(row: number): void {
    this.ordinal = 0;
    this.#indexedRow = row;
  }

  /** No phrase runs over what follows. */
  leaveOrdinal(): void {
    const isLeft = this.#placeGaps.at(-2) === this.#indexedRow && this.#placeGaps.at(-1) === this.ordinal;
    if (this.ordinal > 0 && !isLeft) this.#placeGaps.push(this.#indexedRow, this.ordinal);
  }

  read(textHeap: Uint8Array, textStart: number, textEnd: number): void {
    for (let i = textStart; i < textEnd; i++)
      if (textHeap[i]! >= 0x80) return this.#readUnicodeText(termDecoder.decode(textHeap.slice(textStart, textEnd)));
    let wordStart = -1;
    let classBefore = 0;
    /** Where the letters at hand begin, and the ordinal of their first part. */
    let [wholeStart, firstWordPlace] = [-1, 0];
    for (let i = textStart; i < textEnd; i++) {
      const charClassHere = asciiClasses[textHeap[i]!]!;
      if (
        charClassHere === charClass.separator ||
        (charClassHere === charClass.digit) !== (classBefore === charClass.digit) ||
        wordStart < 0
      ) {
        if (wordStart >= 0) this.#addLowerWord(textHeap, wordStart, i);
        if (wholeStart >= 0) this.#addWholeWord(textHeap, wholeStart, i, firstWordPlace);
        wordStart = charClassHere === charClass.separator ? -1 : i;
        wholeStart = charClassHere === charClass.separator || charClassHere === charClass.digit ? -1 : i;
        firstWordPlace = this.ordinal;
        classBefore = charClassHere;
        continue;
      }
      if (parts(classBefore, charClassHere)) {
        this.#addLowerWord(textHeap, wordStart, i);
        wordStart = i;
      } else if (classBefore === charClass.upper && charClassHere === charClass.lower && i - 1 > wordStart) {
        this.#addLowerWord(textHeap, wordStart, i - 1);
        wordStart = i - 1;
      }
      classBefore = charClassHere;
    }
    if (wordStart >= 0) this.#addLowerWord(textHeap, wordStart, textEnd);
    if (wholeStart >= 0) this.#addWholeWord(textHeap, wholeStart, textEnd, firstWordPlace);
  }

  #readUnicodeText(text: string): void {
    const placeBefore = this.ordinal;
    for (const { term, ordinal, width } of tokenSpans(text).spans) {
      const termBytes = termEncoder.encode(term);
      let termHash = 0x811c_9dc5;
      for (let i = 0; i < termBytes.length; i++) termHash = Math.imul(termHash ^ termBytes[i]!, 0x0100_0193);
      if (width === 1) this.#addToken(termBytes, termBytes.length, termHash);
      else
        this.#wholeWords.push(
          this.#termNumberOf(termBytes, termBytes.length, termHash),
          this.#indexedRow,
          placeBefore + ordinal,
          width,
        );
    }
  }

  /** A run of letters, where capitals part it. */
  #addWholeWord(heap: Uint8Array, wholeStart: number, wholeEnd: number, firstWordPlace: number): void {
    const wholeWidth = this.ordinal - firstWordPlace;
    if (wholeWidth < 2 || wholeEnd - wholeStart > TERM_MAX) return;
    this.#wholeWords.push(
      this.#termNumberOf(this.#lowerWord, wholeEnd - wholeStart, this.#lowerTerm(heap, wholeStart, wholeEnd)),
      this.#indexedRow,
      firstWordPlace,
      wholeWidth,
    );
  }

  #addLowerWord(heap: Uint8Array, wordStart: number, to: number): void {
    const wordEnd = Math.min(to, wordStart + TERM_MAX);
    this.#addToken(this.#lowerWord, wordEnd - wordStart, this.#lowerTerm(heap, wordStart, wordEnd));
  }

  /** Brings letters into the word at hand, in small ones; gives their hash. */
  #lowerTerm(heap: Uint8Array, wordStart: number, wordEnd: number): number {
    const lowerWord = this.#lowerWord;
    let termHash = 0x811c_9dc5;
    for (let letterOffset = wordStart; letterOffset < wordEnd; letterOffset++) {
      let lowerByte = heap[letterOffset]!;
      if (lowerByte >= 0x41 && lowerByte <= 0x5a) lowerByte |= 0x20;
      lowerWord[letterOffset - wordStart] = lowerByte;
      termHash = Math.imul(termHash ^ lowerByte, 0x0100_0193);
    }
    return termHash;
  }

  #addToken(word: Uint8Array, wordBytes: number, termHash: number): void {
    if (this.#tokenCount === this.#tokenTerms.length) this.#tokenTerms = growTermArray(this.#tokenTerms);
    this.#tokenTerms[this.#tokenCount++] = this.#termNumberOf(word, wordBytes, termHash);
    this.ordinal++;
  }

  #termNumberOf(word: Uint8Array, size: number, termHash: number): number {
    const termSlotMask = this.#termSlots.length - 1;
    for (let termSlot = (termHash ^ (termHash >>> 15)) & termSlotMask; ; termSlot = (termSlot + 1) & termSlotMask) {
      const termNumber = this.#termSlots[termSlot]! - 1;
      if (termNumber < 0) return this.#addTerm(word, size, termHash, termSlot);
      if (this.#termHashes[termNumber] === termHash && this.#isTerm(termNumber, word, size)) return termNumber;
    }
  }

  #isTerm(termNumber: number, word: Uint8Array, size: number): boolean {
    const termStart = this.#termStarts[termNumber]!;
    if (this.#termStarts[termNumber + 1]! - termStart !== size) return false;
    for (let i = 0; i < size; i++) if (this.#termHeap[termStart + i] !== word[i]) return false;
    return true;
  }

  #addTerm(word: Uint8Array, size: number, termHash: number, termSlot: number): number {
    const newTermNumber = this.#termCount++;
    if (newTermNumber + 1 >= this.#termStarts.length) {
      this.#termStarts = growTermArray(this.#termStarts);
      this.#termHashes = growTermArray(this.#termHashes);
    }
    while (this.#termHeapUsed + size > this.#termHeap.length) this.#termHeap = growTermArray(this.#termHeap);
    this.#termHeap.set(word.subarray(0, size), this.#termHeapUsed);
    this.#termHeapUsed += size;
    this.#termStarts[newTermNumber + 1] = this.#termHeapUsed;
    this.#termHashes[newTermNumber] = termHash;
    this.#termSlots[termSlot] = newTermNumber + 1;
    if (this.#termCount * 2 > this.#termSlots.length) this.#growTermSlots();
    return newTermNumber;
  }

  #growTermSlots(): void {
    const grownTermSlots = new Int32Array(this.#termSlots.length * 2);
    const termSlotMask = grownTermSlots.length - 1;
    for (let termNumber = 0; termNumber < this.#termCount; termNumber++) {
      const termHash = this.#termHashes[termNumber]!;
      let termSlot = (termHash ^ (termHash >>> 15)) & termSlotMask;
      while (grownTermSlots[termSlot] !== 0) termSlot = (termSlot + 1) & termSlotMask;
      grownTermSlots[termSlot] = termNumber + 1;
    }
    this.#termSlots = grownTermSlots;
  }

  *index(
    rows: number,
    lengths: Uint32Array,
    rowsWithTerms: number,
    stem: (term: string) => string,
  ): Generator<Progress, Uint8Array> {
    assert(rows <= SEGMENT_ROWS, 'numbers of rows are u16');
    const wholeProgress = { done: rows, of: rows };
    const termOrder = yield* this.#sortTerms(wholeProgress);
    const tokens = yield* this.#tokensByTerm(lengths, wholeProgress);
    const [termOffsets, termHeap] = [new Uint32Array(this.#termCount + 1), new Uint8Array(this.#termHeapUsed)];
    const stemmedTerms: number[] = [];
    const stems: string[] = [];
    const lists = new PostingLists(this.#termCount, this.#tokenCount, lengths);
    for (let i = 0; i < termOrder.length; i++) {
      const term = termOrder[i]!;
      const termBytes = this.#termHeap.subarray(this.#termStarts[term]!, this.#termStarts[term + 1]!);
      termHeap.set(termBytes, termOffsets[i]!);
      termOffsets[i + 1] = termOffsets[i]! + termBytes.length;
      const termText = termDecoder.decode(termBytes);
      const termStem = stem(termText);
      if (termStem !== termText) {
        stemmedTerms.push(i);
        stems.push(termStem);
      }
      lists.add(i, tokens, tokens.starts[term]!, tokens.starts[term + 1]!);
      if (i % TEXT_STEP_TERMS === TEXT_STEP_TERMS - 1) yield wholeProgress;
    }
    const stemSteps = distinctStemsOf(stems);
    let stemStep = stemSteps.next();
    for (; stemStep.done !== true; stemStep = stemSteps.next()) yield wholeProgress;
    const { frequencies, peaks, postingOffsets, ordinalOffsets } = lists;
    const textIndexArrays = {
      rows,
      lengths,
      frequencies,
      peaks,
      termOffsets,
      postingOffsets,
      ordinalOffsets,
      stemmed: Uint32Array.from(stemmedTerms),
      ...stemStep.value,
      termHeap,
      postings: lists.postings.bytes(),
      ordinals: lists.ordinals.bytes(),
    };
    return pack(textIndexArrays, rowsWithTerms, this.#tokenCount);
  }

  /** Sorts the tokens of all rows by term; those of one term stay in the order of rows and ordinals. */
  *#tokensByTerm(lengths: Uint32Array, whole: Progress): Generator<Progress, TokensByTerm> {
    const [count, tokens] = [this.#termCount, this.#tokenTerms.subarray(0, this.#tokenCount)];
    const [wholes, gaps] = [this.#wholeWords, this.#placeGaps];
    const starts = new Uint32Array(count + 1);
    for (let at = 0; at < wholes.length; at += 4) starts[wholes[at]! + 1]!++;
    for (let token = 0; token < tokens.length; token++) {
      starts[tokens[token]! + 1]!++;
      if (token % TEXT_STEP_TOKENS === TEXT_STEP_TOKENS - 1) yield whole;
    }
    for (let term = 0; term < count; term++) starts[term + 1]! += starts[term]!;
    yield whole;
    const next = starts.slice(0, count);
    const tokenRows = new Uint32Array(tokens.length + wholes.length / 4);
    const tokenOrdinals = new Uint32Array(tokenRows.length);
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
          tokenOrdinals[at] = ordinal + free;
          tokenWidths[at] = wholes[wide + 3]!;
          wide += 4;
        }
        const at = next[tokens[token]!]!++;
        tokenRows[at] = row;
        tokenOrdinals[at] = ordinal + free;
      }
      // Behind the last term.
      if (gaps[gap] === row) gap += 2;
      if (row % TEXT_STEP_ROWS === TEXT_STEP_ROWS - 1) yield whole;
    }
    yield whole;
    return { starts, rows: tokenRows, ordinals: tokenOrdinals, widths: tokenWidths };
  }

  /** Numbers of the terms, bytewise. */
  *#sortTerms(wholeProgress: Progress): Generator<Progress, Uint32Array> {
    const [termHeap, termStarts] = [this.#termHeap, this.#termStarts];
    // By its first four bytes first, in which most terms differ: as numbers of 64 bits, which are sorted without a call for each pair.
    const termSortKeys = new BigUint64Array(this.#termCount);
    const sortKeyHalves = new Uint32Array(termSortKeys.buffer);
    for (let term = 0; term < this.#termCount; term++) {
      const termStart = termStarts[term]!;
      const termBytes = termStarts[term + 1]! - termStart;
      let termHead = 0;
      for (let i = 0; i < 4; i++) termHead = (termHead << 8) | (i < termBytes ? termHeap[termStart + i]! : 0);
      sortKeyHalves[term * 2] = term;
      sortKeyHalves[term * 2 + 1] = termHead;
    }
    yield wholeProgress;
    termSortKeys.sort();
    yield wholeProgress;
    const termOrder = Uint32Array.from(termSortKeys, (_, at) => sortKeyHalves[at * 2]!);
    const compareTerms = (a: number, b: number): number => {
      const [firstTermStart, otherTermStart] = [termStarts[a]!, termStarts[b]!];
      const [firstTermBytes, otherTermBytes] = [termStarts[a + 1]! - firstTermStart, termStarts[b + 1]! - otherTermStart];
      for (let i = 0; i < firstTermBytes && i < otherTermBytes; i++) {
        const byteDifference = termHeap[firstTermStart + i]! - termHeap[otherTermStart + i]!;
        if (byteDifference !== 0) return byteDifference;
      }
      return firstTermBytes - otherTermBytes;
    };
    let sortedTermCount = 0;
    for (let headStart = 0, headEnd = 1; headStart < termOrder.length; headStart = headEnd, headEnd++) {
      while (headEnd < termOrder.length && sortKeyHalves[headEnd * 2 + 1] === sortKeyHalves[headStart * 2 + 1]) headEnd++;
      if (headEnd - headStart > 1) termOrder.subarray(headStart, headEnd).sort(compareTerms);
      if (headEnd - sortedTermCount < TEXT_STEP_ROWS) continue;
      sortedTermCount = headEnd;
      yield wholeProgress;
    }
    yield wholeProgress;
    return termOrder;
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
  add(i: number, { rows, ordinals: tokenOrdinals, widths }: TokensByTerm, from: number, to: number): void {
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
        ordinals.add(tokenOrdinals[at]! - previousOrdinal + 1);
        previousOrdinal = tokenOrdinals[at]!;
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
function* distinctStemsOf(
  stems: readonly string[],
): Generator<undefined, { stemOf: Uint32Array; stemOffsets: Uint32Array; stemHeap: Uint8Array }> {
  const distinctStems = [...new Set(stems)];
  yield;
  distinctStems.sort(compareText);
  yield;
  const stemNumbers = new Map(distinctStems.map((stemText, stemNumber) => [stemText, stemNumber]));
  const stemOf = Uint32Array.from(stems, (stem) => stemNumbers.get(stem)!);
  yield;
  const stemOffsets = new Uint32Array(distinctStems.length + 1);
  distinctStems.forEach(
    (stemText, stemNumber) => (stemOffsets[stemNumber + 1] = stemOffsets[stemNumber]! + Buffer.byteLength(stemText)),
  );
  const stemHeap = new Uint8Array(stemOffsets.at(-1)!);
  distinctStems.forEach((stemText, stemNumber) => termEncoder.encodeInto(stemText, stemHeap.subarray(stemOffsets[stemNumber])));
  return { stemOf, stemOffsets, stemHeap };
}

class Varints {
  #varintBytes: Uint8Array;
  length = 0;

  constructor(varintCapacity: number) {
    this.#varintBytes = new Uint8Array(Math.max(16, varintCapacity));
  }

  add(varintValue: number): void {
    if (this.length + 5 > this.#varintBytes.length) this.#varintBytes = growTermArray(this.#varintBytes);
    let varintRest = varintValue;
    while (varintRest >= 0x80) {
      this.#varintBytes[this.length++] = (varintRest & 0x7f) | 0x80;
      varintRest >>>= 7;
    }
    this.#varintBytes[this.length++] = varintRest;
  }

  addShort(shortValue: number): void {
    if (this.length + 2 > this.#varintBytes.length) this.#varintBytes = growTermArray(this.#varintBytes);
    this.#varintBytes[this.length++] = shortValue & 0xff;
    this.#varintBytes[this.length++] = shortValue >>> 8;
  }

  bytes(): Uint8Array {
    return this.#varintBytes.subarray(0, this.length);
  }
}

function growTermArray<T extends Uint8Array | Uint32Array | Int32Array>(fullArray: T): T {
  const largerArray = new (fullArray.constructor as new (length: number) => T)(fullArray.length * 2);
  largerArray.set(fullArray);
  return largerArray;
}
