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
const INDEX_HEAD_WORDS = 12;
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

const termDecoder = new TextDecoder();
const termEncoder = new TextEncoder();

export class TextIndex {
  readonly rows: number;
  readonly terms: number;
  /** Terms by row. */
  readonly lengths: Uint32Array;
  readonly bytes: Uint8Array;
  /** How many rows have any term, and how many terms they have together. */
  readonly held: number;
  readonly total: number;
  readonly #indexArrays: TextIndexArrays;
  /** First four bytes of every 32nd term: a search for one begins with these, which lie together. */
  readonly #termHeads: Uint32Array;

  private constructor(indexBytes: Uint8Array, indexArrays: TextIndexArrays, held: number, total: number) {
    this.bytes = indexBytes;
    this.#indexArrays = indexArrays;
    this.rows = indexArrays.rows;
    this.terms = indexArrays.frequencies.length;
    this.lengths = indexArrays.lengths;
    this.held = held;
    this.total = total;
    this.#termHeads = Uint32Array.from({ length: Math.ceil(this.terms / TERMS_A_HEAD) }, (_, i) => {
      const headTermStart = indexArrays.termOffsets[i * TERMS_A_HEAD]!;
      return termHeadOf(indexArrays.termHeap.subarray(headTermStart, indexArrays.termOffsets[i * TERMS_A_HEAD + 1]));
    });
  }

  static open(indexBytes: Uint8Array): TextIndex {
    const indexHead = new Uint32Array(indexBytes.buffer, indexBytes.byteOffset, INDEX_HEAD_WORDS);
    const [textFormat, rows, terms, stemmed, stems, termBytes, stemBytes, postingBytes, ordinalBytes, held, total] = indexHead;
    assert(textFormat === TEXT_FORMAT, 'a text index is of this format');
    let indexOffset = INDEX_HEAD_WORDS * 4;
    const readWords = (count: number): Uint32Array => {
      const wordView = new Uint32Array(indexBytes.buffer, indexBytes.byteOffset + indexOffset, count);
      indexOffset += count * 4;
      return wordView;
    };
    const readByteRun = (count: number): Uint8Array => {
      const runView = indexBytes.subarray(indexOffset, indexOffset + count);
      indexOffset += count;
      return runView;
    };
    const indexArrays: TextIndexArrays = {
      rows: rows!,
      lengths: readWords(rows!),
      frequencies: readWords(terms!),
      peaks: readWords(terms!),
      termOffsets: readWords(terms! + 1),
      postingOffsets: readWords(terms! + 1),
      ordinalOffsets: readWords(terms! + 1),
      stemmed: readWords(stemmed!),
      stemOf: readWords(stemmed!),
      stemOffsets: readWords(stems! + 1),
      termHeap: readByteRun(termBytes!),
      stemHeap: readByteRun(stemBytes!),
      postings: readByteRun(postingBytes!),
      ordinals: readByteRun(ordinalBytes!),
    };
    assert(indexOffset === indexBytes.length, 'a text index is as long as its head says');
    return new TextIndex(indexBytes, indexArrays, held!, total!);
  }

  /** How many rows hold a term. */
  frequency(term: number): number {
    return this.#indexArrays.frequencies[term]!;
  }

  /** Most times that a row holds a term; Infinity where that is not known. */
  timesMost(term: number): number {
    const termTimesMost = this.#indexArrays.peaks[term]! >>> 16;
    return termTimesMost === PEAK_MOST ? Infinity : termTimesMost;
  }

  /** Least length of a row that holds a term, or less. */
  lengthLeast(term: number): number {
    return this.#indexArrays.peaks[term]! & PEAK_MOST;
  }

  /** Number of a term; -1 where no row holds it. */
  find(wantedTerm: string): number {
    return this.findBytes(termEncoder.encode(wantedTerm));
  }

  /** Finds a term by its UTF-8. */
  findBytes(wantedTerm: Uint8Array): number {
    const { termHeap, termOffsets } = this.#indexArrays;
    const foundTerm = this.#firstTermAtOrAfter(wantedTerm);
    return foundTerm < this.terms &&
      compareTermAt(termHeap, termOffsets[foundTerm]!, termOffsets[foundTerm + 1]!, wantedTerm) === 0
      ? foundTerm
      : -1;
  }

  /** Numbers of terms that begin so: from the first up to, and without, the second. */
  beginning(prefix: string): readonly [number, number] {
    const firstWithPrefix = this.#firstTermAtOrAfter(termEncoder.encode(prefix));
    let prefixEnd = firstWithPrefix;
    while (prefixEnd < this.terms && this.term(prefixEnd).startsWith(prefix)) prefixEnd++;
    return [firstWithPrefix, prefixEnd];
  }

  /** Characters of a term, as far as there is room for them; gives their number. */
  characters(term: number, codePoints: Int32Array): number {
    const { termHeap, termOffsets } = this.#indexArrays;
    const termEnd = termOffsets[term + 1]!;
    let characterCount = 0;
    for (let termOffset = termOffsets[term]!; termOffset < termEnd && characterCount < codePoints.length; ) {
      const termByte = termHeap[termOffset++]!;
      if (termByte < 0x80) codePoints[characterCount++] = termByte;
      else {
        const continuationBytes = termByte < 0xe0 ? 1 : termByte < 0xf0 ? 2 : 3;
        let codePoint = termByte & (0x3f >> continuationBytes);
        for (let i = 0; i < continuationBytes; i++) codePoint = (codePoint << 6) | (termHeap[termOffset++]! & 0x3f);
        codePoints[characterCount++] = codePoint;
      }
    }
    return characterCount;
  }

  /** Number of the first term after this one that does not begin with so many of its bytes. */
  termAfter(number: number, size: number): number {
    const { termHeap, termOffsets } = this.#indexArrays;
    const own = termOffsets[number]!;
    const begins = (term: number): boolean => {
      const termStart = termOffsets[term]!;
      if (termOffsets[term + 1]! - termStart < size) return false;
      for (let i = 0; i < size; i++) if (termHeap[termStart + i] !== termHeap[own + i]) return false;
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
    const heldText = termEncoder.encode(text);
    const { termHeap, termOffsets } = this.#indexArrays;
    const stemTerms: number[] = [];
    const isTextAt = (at: number): boolean => {
      for (let i = 0; i < heldText.length; i++) if (termHeap[at + i] !== heldText[i]) return false;
      return true;
    };
    for (let term = 0; term < this.terms; term++) {
      const lastTextStart = termOffsets[term + 1]! - heldText.length;
      for (
        let termOffset = atEnd ? lastTextStart : termOffsets[term]!;
        termOffset <= lastTextStart && termOffset >= termOffsets[term]!;
        termOffset++
      ) {
        if (!isTextAt(termOffset)) continue;
        stemTerms.push(term);
        break;
      }
    }
    return stemTerms;
  }

  term(termNumber: number): string {
    const { termHeap, termOffsets } = this.#indexArrays;
    return termTextOf(termHeap, termOffsets[termNumber]!, termOffsets[termNumber + 1]!);
  }

  /** Numbers of terms of one stem, ascending. */
  ofStem(stem: string): number[] {
    const { stemHeap, stemOffsets, stemmed, stemOf } = this.#indexArrays;
    const stemBytes = termEncoder.encode(stem);
    const termsOfStem: number[] = [];
    const stemNumber = firstTermFrom(stemHeap, stemOffsets, stemBytes);
    if (
      stemNumber + 1 < stemOffsets.length &&
      compareTermAt(stemHeap, stemOffsets[stemNumber]!, stemOffsets[stemNumber + 1]!, stemBytes) === 0
    ) {
      for (let i = 0; i < stemOf.length; i++) if (stemOf[i] === stemNumber) termsOfStem.push(stemmed[i]!);
    }
    const stemAsTerm = this.findBytes(stemBytes);
    if (stemAsTerm < 0 || isTermIn(stemmed, stemAsTerm)) return termsOfStem;
    return [...termsOfStem, stemAsTerm].sort((x, y) => x - y);
  }

  /** Rows of a term, ascending, and how often each holds it; returns how many. The targets have room for all rows. */
  postings(term: number, postingRows: Int32Array, postingCounts: Int32Array): number {
    const { frequencies, postings, postingOffsets } = this.#indexArrays;
    const rowCount = frequencies[term]!;
    const postingStart = postingOffsets[term]!;
    const postingEnd = postingOffsets[term + 1]!;
    let postingOffset = postingStart + rowCount * 2;
    for (let i = 0, shortOffset = postingStart; shortOffset < postingOffset; i++, shortOffset += 2)
      postingRows[i] = postings[shortOffset]! | (postings[shortOffset + 1]! << 8);
    postingCounts.fill(1, 0, rowCount);
    for (let i = 0; postingOffset < postingEnd; ) {
      postingOffset = readVarint(postings, postingOffset);
      i += varintValue;
      postingOffset = readVarint(postings, postingOffset);
      postingCounts[i] = varintValue;
    }
    return rowCount;
  }

  /**
   * Every ordinal of a term in rows of these bits, as `row * 2^21 + ordinal`, ascending; those that take several go to `wideOrdinals`, with their
   * last ones. The other targets are those of `postings`.
   */
  occurrences(
    term: number,
    wantedRowBits: Int32Array,
    postingRows: Int32Array,
    postingCounts: Int32Array,
    into: number[],
    wideOrdinals: OrdinalRange[],
  ): void {
    const { ordinals, ordinalOffsets } = this.#indexArrays;
    const rowCount = this.postings(term, postingRows, postingCounts);
    let placeOffset = ordinalOffsets[term]!;
    for (let i = 0; i < rowCount; i++) {
      const postingRow = postingRows[i]!;
      const isRowWanted = ((wantedRowBits[postingRow >>> 5]! >>> (postingRow & 31)) & 1) === 1;
      for (let occurrencesLeft = postingCounts[i]!, ordinal = 0; occurrencesLeft > 0; occurrencesLeft--) {
        if (isRowWanted) {
          placeOffset = readVarint(ordinals, placeOffset);
          let wordWidth = 1;
          if (varintValue === 0) {
            placeOffset = readVarint(ordinals, placeOffset);
            wordWidth = varintValue;
            placeOffset = readVarint(ordinals, placeOffset);
          }
          ordinal += varintValue - 1;
          const firstOrdinal = postingRow * ORDINALS_MAX + ordinal;
          if (wordWidth === 1) into.push(firstOrdinal);
          else wideOrdinals.push({ first: firstOrdinal, last: firstOrdinal + wordWidth - 1 });
        } else {
          if (ordinals[placeOffset] === 0) {
            placeOffset++;
            while (ordinals[placeOffset++]! >= 0x80);
          }
          while (ordinals[placeOffset++]! >= 0x80);
        }
      }
    }
  }

  #firstTermAtOrAfter(term: Uint8Array): number {
    const termHead = termHeadOf(term);
    const headsBelow = this.#headsBelow(termHead);
    const lowTerm = headsBelow === 0 ? 0 : (headsBelow - 1) * TERMS_A_HEAD + 1;
    const highTerm = Math.min(this.terms, this.#headsBelow(termHead + 1) * TERMS_A_HEAD);
    return firstTermFrom(this.#indexArrays.termHeap, this.#indexArrays.termOffsets, term, lowTerm, highTerm);
  }

  #headsBelow(termHead: number): number {
    const termHeads = this.#termHeads;
    let [lowHead, highHead] = [0, termHeads.length];
    while (lowHead < highHead) {
      const middleHead = (lowHead + highHead) >>> 1;
      if (termHeads[middleHead]! < termHead) lowHead = middleHead + 1;
      else highHead = middleHead;
    }
    return lowHead;
  }
}

/** The ordinals of a word that are those of its parts. */
export interface OrdinalRange {
  readonly first: number;
  readonly last: number;
}

/** Places of a row, at most. */
export const ORDINALS_MAX = 2 ** 21;

/** Puts an index into one run of bytes, in shared memory: threads hand it over without a copy. */
export function pack(indexArrays: TextIndexArrays, held: number, total: number): Uint8Array {
  const { rows, frequencies, stemmed, stemOffsets, termHeap, stemHeap, postings, ordinals } = indexArrays;
  const wordArrays = [
    indexArrays.lengths,
    frequencies,
    indexArrays.peaks,
    indexArrays.termOffsets,
    indexArrays.postingOffsets,
    indexArrays.ordinalOffsets,
    stemmed,
    indexArrays.stemOf,
    stemOffsets,
  ];
  const byteRuns = [termHeap, stemHeap, postings, ordinals];
  const packedBytes =
    INDEX_HEAD_WORDS * 4 + [...wordArrays, ...byteRuns].reduce((sum, arrayToPack) => sum + arrayToPack.byteLength, 0);
  const packedIndex = new Uint8Array(new SharedArrayBuffer(packedBytes));
  const arrayLengths = [rows, frequencies.length, stemmed.length, stemOffsets.length - 1];
  const indexHead = [TEXT_FORMAT, ...arrayLengths, ...byteRuns.map((byteRun) => byteRun.length), held, total];
  new Uint32Array(packedIndex.buffer, 0, INDEX_HEAD_WORDS).set(indexHead);
  let packedOffset = INDEX_HEAD_WORDS * 4;
  for (const packedArray of [...wordArrays, ...byteRuns]) {
    packedIndex.set(new Uint8Array(packedArray.buffer, packedArray.byteOffset, packedArray.byteLength), packedOffset);
    packedOffset += packedArray.byteLength;
  }
  return packedIndex;
}

/** The value that the last call read. */
let varintValue = 0;

/** Reads a varint; gives where it ends. */
function readVarint(varintBytes: Uint8Array, varintStart: number): number {
  let varintEnd = varintStart;
  let varintByte = varintBytes[varintEnd++]!;
  varintValue = varintByte & 0x7f;
  for (let shift = 7; varintByte >= 0x80; shift += 7) {
    varintByte = varintBytes[varintEnd++]!;
    varintValue |= (varintByte & 0x7f) << shift;
  }
  return varintEnd;
}

function termTextOf(heap: Uint8Array, termStart: number, termEnd: number): string {
  let termText = '';
  for (let i = termStart; i < termEnd; i++) {
    const termByte = heap[i]!;
    // A copy: decoders take no view of shared memory.
    if (termByte >= 0x80) return termDecoder.decode(heap.slice(termStart, termEnd));
    termText += String.fromCharCode(termByte);
  }
  return termText;
}

/** First four bytes of a term: of two terms the one with the lower head is below. */
function termHeadOf(term: Uint8Array): number {
  let termHead = 0;
  for (let i = 0; i < 4; i++) termHead = termHead * 256 + (term[i] ?? 0);
  return termHead;
}

/** Number of the first of these, in bytewise order, that is not below. */
function firstTermFrom(
  heap: Uint8Array,
  offsets: Uint32Array,
  soughtTerm: Uint8Array,
  firstTerm = 0,
  end = offsets.length - 1,
): number {
  let lowTerm = firstTerm;
  let highTerm = end;
  while (lowTerm < highTerm) {
    const middleTerm = (lowTerm + highTerm) >>> 1;
    if (compareTermAt(heap, offsets[middleTerm]!, offsets[middleTerm + 1]!, soughtTerm) < 0) lowTerm = middleTerm + 1;
    else highTerm = middleTerm;
  }
  return lowTerm;
}

function isTermIn(ascendingTerms: Uint32Array, soughtTerm: number): boolean {
  let [low, high] = [0, ascendingTerms.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ascendingTerms[middle]! < soughtTerm) low = middle + 1;
    else high = middle;
  }
  return ascendingTerms[low] === soughtTerm;
}

function compareTermAt(heap: Uint8Array, start: number, end: number, soughtTerm: Uint8Array): number {
  const sharedBytes = Math.min(end - start, soughtTerm.length);
  for (let i = 0; i < sharedBytes; i++) {
    const byteDifference = heap[start + i]! - soughtTerm[i]!;
    if (byteDifference !== 0) return byteDifference;
  }
  return end - start - soughtTerm.length;
}
