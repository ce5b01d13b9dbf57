/**
 * One search within one stretch of rows: by the indexes of its columns, of nothing but the rows that may be seen. How many rows
 * hold each word, which rows match, and what they score.
 */
import { assert } from '../../errors.ts';
import { PLACES, type TextIndex } from '../../projections/rows/indexes/text/text-index.ts';
import type { TextQuery } from './query.ts';
import { isTolerant, passesAsWritten, termsOf } from './terms.ts';

/** A column of the stretch, and which of its cells are shown: a bit a row; null: all. */
export interface Field {
  readonly index: TextIndex;
  readonly shown: Int32Array | null;
}

/** Rows that hold any term in a column, and how many terms they have. */
export interface FieldFigures {
  readonly held: number;
  readonly total: number;
}

export interface Scoring {
  /** Rows that hold any term in any of the columns. */
  readonly rows: number;
  /** By leaf: rows that hold it. */
  readonly frequencies: readonly number[];
  /** By column. */
  readonly averages: readonly number[];
  readonly weights: readonly number[];
  /** By leaf, as far as they were asked for: what rows of usual lengths score by it. */
  readonly tables: WordScores[];
}

/** Saturation of how often a term stands in a row, and how much a long row counts for less. */
const K1 = 1.2;
const B = 0.75;

/** What a leaf weighs: the rarer it is, the more. */
export function rarity(rows: number, frequency: number): number {
  return Math.log(1 + (rows - frequency + 0.5) / (frequency + 0.5));
}

/** BM25F: what one column adds to the weight of a word in a row. */
export function fieldWeight(weight: number, often: number, length: number, average: number): number {
  return weight * (often / (1 - B + (B * length) / average));
}

/** What a word adds to the score of a row. */
export function wordScore(idf: number, weighted: number): number {
  return idf * ((weighted * (K1 + 1)) / (weighted + K1));
}

/** What a word counts that differs from what is written, beside one that does not. */
const nearShare = 0.5;

const ROWS = 65_536;

const rowsOf = new Int32Array(ROWS);
const countsOf = new Int32Array(ROWS);
const often = new Float64Array(ROWS);
const weights = new Float64Array(ROWS);

/** Most words stand once or twice in a row, and most rows are short: two divisions a row that need not be made. */
const USUAL_TIMES = 4;
const USUAL_LENGTH = 128;

/** What rows score by one word of one column. */
class WordScores {
  readonly #idf: number;
  readonly #weight: number;
  readonly #average: number;
  /** By `times * USUAL_LENGTH + length`. */
  readonly usual = new Float64Array(USUAL_TIMES * USUAL_LENGTH);

  constructor(idf: number, weight: number, average: number) {
    this.#idf = idf;
    this.#weight = weight;
    this.#average = average;
    for (let times = 1; times < USUAL_TIMES; times++) {
      for (let length = 1; length < USUAL_LENGTH; length++) this.usual[times * USUAL_LENGTH + length] = this.of(times, length);
    }
  }

  of(times: number, length: number): number {
    return wordScore(this.#idf, fieldWeight(this.#weight, times, length, this.#average));
  }
}

/** Adds what the rows in `rowsOf` score by a word; rows that had no score before are noted. Returns how many are noted now. */
function addScores(
  word: WordScores,
  { index: { lengths }, shown }: Field,
  count: number,
  into: Float64Array,
  noted: Int32Array,
  notedBefore: number,
): number {
  const { usual } = word;
  let at = notedBefore;
  for (let i = 0; i < count; i++) {
    const row = rowsOf[i]!;
    if (shown !== null && ((shown[row >>> 5]! >>> (row & 31)) & 1) === 0) continue;
    const before = into[row]!;
    if (before === 0) noted[at++] = row;
    const times = countsOf[i]!;
    const length = lengths[row]!;
    into[row] =
      before + (times < USUAL_TIMES && length < USUAL_LENGTH ? usual[times * USUAL_LENGTH + length]! : word.of(times, length));
  }
  return at;
}

export class StretchSearch {
  readonly rows: number;
  readonly #fields: readonly Field[];
  /** By field: typo tolerance may be off in some. */
  readonly #queries: readonly TextQuery[];
  /** By field and leaf. */
  readonly #terms: (readonly number[])[][];
  readonly #words: number;
  readonly #leafRows: Int32Array[] = [];

  constructor(fields: readonly Field[], queries: readonly TextQuery[]) {
    this.rows = fields[0]!.index.rows;
    this.#fields = fields;
    this.#queries = queries;
    this.#terms = fields.map(() => []);
    this.#words = (this.rows + 31) >>> 5;
  }

  get query(): TextQuery {
    return this.#queries[0]!;
  }

  /** Rows that hold any term in any of the columns; and by column, those that hold one there, with how many. */
  figures(): { readonly rows: number; readonly fields: readonly FieldFigures[] } {
    const fields = this.#fields.map(({ index, shown }): FieldFigures => {
      if (shown === null) return { held: index.held, total: index.total };
      let [held, total] = [0, 0];
      eachBit(shown, (row) => {
        const length = index.lengths[row]!;
        if (length > 0) held++;
        total += length;
      });
      return { held, total };
    });
    if (fields.length === 1) return { rows: fields[0]!.held, fields };
    const any = new Int32Array(this.#words);
    for (const { index, shown } of this.#fields) {
      for (let row = 0; row < this.rows; row++) {
        const isShown = shown === null || ((shown[row >>> 5]! >>> (row & 31)) & 1) === 1;
        if (isShown && index.lengths[row]! > 0) any[row >>> 5]! |= 1 << (row & 31);
      }
    }
    return { rows: bitCount(any), fields };
  }

  /** Lets go of what was found: it is found again where it is asked for. */
  release(): void {
    this.#leafRows.length = 0;
  }

  /** How many rows hold a leaf. */
  frequency(leaf: number): number {
    const [field, ...others] = this.#fields;
    if (others.length === 0 && field!.shown === null) {
      const terms = this.#termsOf(0, leaf);
      if (terms.length === 0) return 0;
      if (terms.length === 1) return field!.index.frequency(terms[0]!);
    }
    return bitCount(this.#rowsOf(leaf));
  }

  /** A bit a row of those that may be seen, by the shape of the query or what it came to. */
  matching(shape: TextQuery['shape'] = this.query.shape): Int32Array {
    const found = this.#matching(shape);
    // What is told by what a row does not hold is told of all rows.
    const rest = this.rows & 31;
    if (rest > 0) found[found.length - 1]! &= (1 << rest) - 1;
    const [first, ...others] = this.#fields.map(({ shown }) => shown);
    if (first === null || others.includes(null)) return found;
    const visible = first!.slice();
    for (const shown of others) join(visible, shown!);
    meet(found, visible);
    return found;
  }

  #matching(shape: TextQuery['shape']): Int32Array {
    const { leaves } = this.query;
    assert(shape !== 'rarest', 'it is known by now how rare words are');
    if (shape === 'any') {
      const found = new Int32Array(this.#words);
      for (let leaf = 0; leaf < leaves.length; leaf++) join(found, this.#rowsOf(leaf));
      return found;
    }
    if (shape === 'phrase') return this.#phrase();
    const found = new Int32Array(this.#words);
    for (const { op, negated, all } of shape) {
      const own = this.#rowsOf(all[0]!).slice();
      for (const leaf of all.slice(1)) meet(own, this.#rowsOf(leaf));
      if (negated) for (let i = 0; i < own.length; i++) own[i] = ~own[i]!;
      if (op === 'or') join(found, own);
      else meet(found, own);
    }
    return found;
  }

  /** Adds what leaves score to the rows that hold them, leaf after leaf. */
  score(scoring: Scoring, into: Float64Array): void {
    this.query.leaves.forEach((_, leaf) => {
      if (!this.query.scores[leaf]) return;
      const frequency = scoring.frequencies[leaf]!;
      if (frequency === 0) return;
      const idf = rarity(scoring.rows, frequency);
      const isPlain = this.#fields.length === 1 && !isTolerant(this.query.leaves[leaf]!);
      if (isPlain && this.#termsOf(0, leaf).length === 1) this.#scoreOne(leaf, idf, scoring, into);
      else this.#scoreMany(leaf, idf, scoring, into);
    });
  }

  /**
   * The same where any word is enough, all rank, and each is one term of the only column: at once which rows match, in no order, and
   * what they score. Returns how many match; null for any other query. `into` holds zeros, and `rows` has room for all.
   */
  scoreAny(
    { rows: all, frequencies, averages, weights: fieldWeights, tables }: Scoring,
    into: Float64Array,
    rows: Int32Array,
  ): number | null {
    const { shape, leaves, scores } = this.query;
    const weight = fieldWeights[0]!;
    if (this.#fields.length > 1 || shape !== 'any' || scores.includes(false) || weight <= 0) return null;
    if (leaves.some((each, leaf) => isTolerant(each) || this.#termsOf(0, leaf).length > 1)) return null;
    const field = this.#fields[0]!;
    let matching = 0;
    for (let leaf = 0; leaf < leaves.length; leaf++) {
      const [term] = this.#termsOf(0, leaf);
      if (term === undefined) continue;
      const word = (tables[leaf] ??= new WordScores(rarity(all, frequencies[leaf]!), weight, averages[0]!));
      matching = addScores(word, field, field.index.postings(term, rowsOf, countsOf), into, rows, matching);
    }
    return matching;
  }

  /** Multiplies scores by the highest of these numbers, by field, of those whose cell holds any of the words that rank. */
  raise(boosts: readonly (number | null)[], into: Float64Array): void {
    const falling = [...boosts.entries()].flatMap(([field, by]) => (by === null ? [] : [{ field, by }]));
    falling.sort((a, b) => b.by - a.by);
    const raised = new Int32Array(this.#words);
    for (const { field, by } of falling) {
      const held = new Int32Array(this.#words);
      this.query.leaves.forEach((_, leaf) => {
        if (this.query.scores[leaf]) join(held, this.#rowsIn(field, leaf));
      });
      for (let i = 0; i < held.length; i++) held[i]! &= ~raised[i]!;
      eachBit(held, (row) => (into[row]! *= by));
      join(raised, held);
    }
  }

  #scoreOne(leaf: number, idf: number, { averages, weights: fieldWeights }: Scoring, into: Float64Array): void {
    const { index, shown } = this.#fields[0]!;
    const { lengths } = index;
    const [average, weight] = [averages[0]!, fieldWeights[0]!];
    const count = index.postings(this.#termsOf(0, leaf)[0]!, rowsOf, countsOf);
    for (let i = 0; i < count; i++) {
      const row = rowsOf[i]!;
      if (shown !== null && ((shown[row >>> 5]! >>> (row & 31)) & 1) === 0) continue;
      into[row]! += wordScore(idf, fieldWeight(weight, countsOf[i]!, lengths[row]!, average));
    }
  }

  #scoreMany(leaf: number, idf: number, { averages, weights: fieldWeights }: Scoring, into: Float64Array): void {
    const rows = this.#rowsOf(leaf);
    this.#fields.forEach(({ index, shown }, field) => {
      const sought = this.#queries[field]!.leaves[leaf]!;
      for (const term of this.#termsOf(field, leaf)) {
        const share = isTolerant(sought) && !passesAsWritten(sought, index.term(term)) ? nearShare : 1;
        const count = index.postings(term, rowsOf, countsOf);
        for (let i = 0; i < count; i++) often[rowsOf[i]!]! += share * countsOf[i]!;
      }
      eachBit(rows, (row) => {
        const found = often[row]!;
        often[row] = 0;
        if (found === 0 || (shown !== null && ((shown[row >>> 5]! >>> (row & 31)) & 1) === 0)) return;
        weights[row]! += fieldWeight(fieldWeights[field]!, found, index.lengths[row]!, averages[field]!);
      });
      // Rows that may not be seen were counted too.
      for (const term of this.#termsOf(field, leaf)) {
        if (shown === null) break;
        const count = index.postings(term, rowsOf, countsOf);
        for (let i = 0; i < count; i++) often[rowsOf[i]!] = 0;
      }
    });
    eachBit(rows, (row) => {
      into[row]! += wordScore(idf, weights[row]!);
      weights[row] = 0;
    });
  }

  /** Rows that hold a leaf in any column where their cell is shown. */
  #rowsOf(leaf: number): Int32Array {
    let found = this.#leafRows[leaf];
    if (found) return found;
    for (const field of this.#fields.keys()) {
      const own = this.#rowsIn(field, leaf);
      if (found) join(found, own);
      else found = own;
    }
    return (this.#leafRows[leaf] = found!);
  }

  /** Rows that hold a leaf in one column, where their cell is shown. */
  #rowsIn(field: number, leaf: number): Int32Array {
    const { index, shown } = this.#fields[field]!;
    const found = new Int32Array(this.#words);
    for (const term of this.#termsOf(field, leaf)) {
      const count = index.postings(term, rowsOf, countsOf);
      for (let i = 0; i < count; i++) found[rowsOf[i]! >>> 5]! |= 1 << (rowsOf[i]! & 31);
    }
    if (shown !== null) meet(found, shown);
    return found;
  }

  #termsOf(field: number, leaf: number): readonly number[] {
    return (this.#terms[field]![leaf] ??= termsOf(this.#fields[field]!.index, this.#queries[field]!.leaves[leaf]!));
  }

  /** Rows where the leaves stand one after the other in one column. */
  #phrase(): Int32Array {
    const found = new Int32Array(this.#words);
    const { leaves } = this.query;
    if (leaves.length === 0) return found;
    for (const [field, { index, shown }] of this.#fields.entries()) {
      let ends: readonly number[] | null = null;
      for (let leaf = 0; leaf < leaves.length && ends?.length !== 0; leaf++) {
        const terms = this.#termsOf(field, leaf);
        const places: number[] = [];
        for (const term of terms) index.occurrences(term, places);
        if (terms.length > 1) places.sort((a, b) => a - b);
        ends = ends === null ? places : following(ends, places);
      }
      for (const place of ends ?? []) {
        const row = Math.floor(place / PLACES);
        if (shown === null || ((shown[row >>> 5]! >>> (row & 31)) & 1) === 1) found[row >>> 5]! |= 1 << (row & 31);
      }
    }
    return found;
  }
}

/** Those of `places` that come right after one of `before`; both ascending. */
function following(before: readonly number[], places: readonly number[]): number[] {
  const found: number[] = [];
  let i = 0;
  for (const place of places) {
    while (i < before.length && before[i]! + 1 < place) i++;
    if (i < before.length && before[i]! + 1 === place && place % PLACES !== 0) found.push(place);
  }
  return found;
}

function join(into: Int32Array, other: Int32Array): void {
  for (let i = 0; i < into.length; i++) into[i]! |= other[i]!;
}

function meet(into: Int32Array, other: Int32Array): void {
  for (let i = 0; i < into.length; i++) into[i]! &= other[i] ?? 0;
}

export function bitCount(bits: Int32Array): number {
  let sum = 0;
  for (let word of bits) {
    word -= (word >>> 1) & 0x5555_5555;
    word = (word & 0x3333_3333) + ((word >>> 2) & 0x3333_3333);
    sum += Math.imul((word + (word >>> 4)) & 0x0f0f_0f0f, 0x0101_0101) >>> 24;
  }
  return sum;
}

export function eachBit(bits: Int32Array, visit: (row: number) => void): void {
  for (let word = 0; word < bits.length; word++) {
    for (let left = bits[word]!; left !== 0; left &= left - 1) visit((word << 5) + 31 - Math.clz32(left & -left));
  }
}
