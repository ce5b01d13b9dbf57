/**
 * One search within one stretch of rows: by the indexes of its columns, of nothing but the rows that may be seen. How many rows
 * hold each word, which rows match, and what they score.
 */
import { assert } from '../../errors.ts';
import { PLACES, type TextIndex, type OrdinalRange } from '../../projections/rows/indexes/text/text-index.ts';
import type { TopScores } from './top-scores.ts';
import type { Condition, TextQuery } from './text-query.ts';
import { isTolerant, passesAsWritten, termsOf } from './term-filter.ts';
import { fieldWeight, rarity, WordScores, wordScore } from './bm25f.ts';

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
  /** Scores of rows of usual lengths, by leaf, as far as they were needed. */
  readonly tables: WordScores[];
}

/** The weight of a term that differs from the sought word, relative to an exact match. */
const nearShare = 0.5;

/** So few words are looked at in all their combinations: which may come to a score. */
const wordsTogether = 4;

/** Leaves of one plain word each that are gone through in one turn. */
const LEAVES_A_TURN = 8;

/** The most that a leaf adds to a score. */
interface Bound {
  readonly leaf: number;
  readonly most: number;
}

/** Sums of rounded numbers are rounded again. */
const boundSlack = 1 + 1e-9;

const ROWS = 65_536;

/** Words of which a row's fit a byte, beside two bits more. */
const FEW = 6;
/** Bits of a row that holds some leaf not just once, and of one that holds it more than once. */
const TOLD = 0x40;
const OFTEN = 0x80;
/** By row: bits of the leaves that it holds; zeros between two searches. */
const held = new Uint8Array(ROWS);
/** Rows that hold any. */
const noted = new Int32Array(ROWS);
/** By leaf, how often a row holds it, where that is not once; zeros between two searches; and rows that this is said of. */
const few = Array.from({ length: FEW }, () => ({ times: new Float32Array(ROWS), rowIds: new Int32Array(ROWS), count: 0 }));
/** Rows that are among the best, in no order. */
const taken = new Int32Array(ROWS);
/** By what is held of a row: 1 where it may score so much. */
const reaching = new Uint8Array(OFTEN + TOLD);
/** By bits of leaves, the most that a row scores that holds these: each once, or as often as may be. */
const mostOnce = new Float64Array(1 << FEW);
const mostOften = new Float64Array(1 << FEW);
/** Postings of one stretch that are gone through in one turn. */
const POSTINGS_A_TURN = 4 * ROWS;

/** Rows of a range that may be among the best, rising; their scores; and how many rows match. */
export interface Matching {
  readonly rows: Int32Array;
  readonly scores: Float64Array;
  readonly matching: number;
}

const rowsOf = new Int32Array(ROWS);
const countsOf = new Int32Array(ROWS);
const often = new Float64Array(ROWS);
const weights = new Float64Array(ROWS);

export class BlockSearch {
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
      return figuresOf(index, shown);
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
    if (others.length === 0) {
      const { index, shown } = field!;
      const terms = this.#termsOf(0, leaf);
      if (terms.length === 0) return 0;
      if (terms.length === 1) return shown === null ? index.frequency(terms[0]!) : frequencyAmong(index, terms[0]!, shown);
    }
    return bitCount(this.#rowsOf(leaf));
  }

  /** A bit a row of those that may be seen, by the shape of the query or what it came to. */
  matching(shape: TextQuery['shape'] = this.query.shape): Int32Array {
    const matchBits = this.#matching(shape);
    // A negation sets bits beyond the last row: clears them.
    const rest = this.rows & 31;
    if (rest > 0) matchBits[matchBits.length - 1]! &= (1 << rest) - 1;
    const [first, ...others] = this.#fields.map(({ shown }) => shown);
    if (first === null || others.includes(null)) return matchBits;
    const visible = first!.slice();
    for (const shown of others) join(visible, shown!);
    meet(matchBits, visible);
    return matchBits;
  }

  #matching(shape: TextQuery['shape']): Int32Array {
    const { leaves } = this.query;
    assert(shape !== 'rarest', 'it is known by now how rare words are');
    if (shape === 'any') {
      const fulfilledBits = new Int32Array(this.#words);
      for (let leaf = 0; leaf < leaves.length; leaf++) {
        // The visibility of the only column is applied once, after all leaves.
        if (this.#fields.length === 1 && !this.#leafRows[leaf]) this.#mark(0, leaf, fulfilledBits);
        else join(fulfilledBits, this.#rowsOf(leaf));
      }
      return fulfilledBits;
    }
    if (shape === 'phrase') return this.#phrase();
    return this.#fulfilling(shape);
  }

  #fulfilling(condition: Condition): Int32Array {
    if (typeof condition === 'number') return this.#rowsOf(condition).slice();
    if ('not' in condition) {
      const negatedBits = this.#fulfilling(condition.not);
      for (let i = 0; i < negatedBits.length; i++) negatedBits[i] = ~negatedBits[i]!;
      return negatedBits;
    }
    const isAll = 'all' in condition;
    const [first, ...others] = isAll ? condition.all : condition.any;
    const conditionBits = first === undefined ? new Int32Array(this.#words) : this.#fulfilling(first);
    for (const each of others) (isAll ? meet : join)(conditionBits, this.#fulfilling(each));
    return conditionBits;
  }

  /** Adds what leaves score to the rows that hold them, leaf after leaf; with `only`, to those of them that have their bit there. */
  score(scoring: Scoring, into: Float64Array, only: Int32Array | null): void {
    this.query.leaves.forEach((_, leaf) => this.scoreLeaf(leaf, scoring, into, only));
  }

  scoreLeaf(leaf: number, scoring: Scoring, into: Float64Array, only: Int32Array | null): void {
    if (!this.query.scores[leaf] || scoring.frequencies[leaf] === 0) return;
    if (only !== null && !areMeeting(this.#rowsOf(leaf), only)) return;
    if (this.#isPlain(leaf)) this.#scoreOne(leaf, scoring, into, only);
    else this.#scoreMany(leaf, scoring, into, only);
  }

  /** Whether its leaves have to be gone through one by one, others having a turn in between. */
  get isSlow(): boolean {
    const { leaves } = this.query;
    return leaves.length > LEAVES_A_TURN || leaves.some((leaf) => leaf.kind !== 'term' || leaf.edits > 0);
  }

  /** Finds the terms and the rows of a leaf, which are known from then on until they are let go of. */
  seek(leaf: number): void {
    this.#rowsOf(leaf);
  }

  /**
   * The same of a query of few words of the only column, any of which is enough: of those rows only that are among the best so far.
   * null for any other query. Nothing as large as a stretch is gone through, since most words stand in few rows.
   */
  scoreFew(scoring: Scoring, best: TopScores): Matching | null {
    const { shape, leaves, scores: ranking } = this.query;
    if (this.#fields.length > 1 || shape !== 'any' || leaves.length > FEW || ranking.includes(false)) return null;
    const { index } = this.#fields[0]!;
    if (scoring.weights[0]! <= 0 || (this.isSlow && this.#postings(index) > POSTINGS_A_TURN)) return null;
    let matching = 0;
    for (let leaf = 0; leaf < leaves.length; leaf++) matching = this.#hold(leaf, matching);
    const most = this.#findMost(scoring);
    const words = leaves.map((_, leaf) => this.#wordOf(leaf, scoring));
    // As long as any row is among the best, those that may score much go first.
    const first = best.least === -Infinity ? this.#take(words, best, most / 2, matching, 0) : 0;
    const topEnd = this.#take(words, best, best.least, matching, first);
    const rows = taken.slice(0, topEnd).sort();
    const scores = new Float64Array(topEnd);
    for (let i = 0; i < topEnd; i++) {
      scores[i] = weights[rows[i]!]!;
      weights[rows[i]!] = 0;
    }
    for (let i = 0; i < matching; i++) held[noted[i]!] = 0;
    for (let leaf = 0; leaf < leaves.length; leaf++) {
      const { times, rowIds, count } = few[leaf]!;
      for (let i = 0; i < count; i++) times[rowIds[i]!] = 0;
    }
    return { rows, scores, matching };
  }

  /** Takes those of the noted rows that may score so much and are among the best; gives how many are taken then. */
  #take(words: readonly WordScores[], best: TopScores, least: number, matching: number, from: number): number {
    const { lengths } = this.#fields[0]!.index;
    reach(words.length, least);
    let topEnd = from;
    for (let i = 0; i < matching; i++) {
      const row = noted[i]!;
      const bits = held[row]!;
      if (reaching[bits & ~TOLD] === 0) continue;
      held[row] = 0;
      let score = 0;
      for (let leaf = 0; leaf < words.length; leaf++) {
        if (((bits >>> leaf) & 1) === 0) continue;
        const times = (bits & TOLD) === 0 ? 1 : few[leaf]!.times[row]! || 1;
        score += words[leaf]!.score(times, lengths[row]!);
      }
      if (!best.take(score)) continue;
      weights[row] = score;
      taken[topEnd++] = row;
    }
    return topEnd;
  }

  #postings(index: TextIndex): number {
    let sum = 0;
    for (let leaf = 0; leaf < this.query.leaves.length; leaf++) {
      for (const term of this.#termsOf(0, leaf)) sum += index.frequency(term);
    }
    return sum;
  }

  /** Notes rows that hold a leaf, behind those that were noted before; gives how many are noted then. */
  #hold(leaf: number, from: number): number {
    const { index, shown } = this.#fields[0]!;
    const { times, rowIds } = few[leaf]!;
    const bit = 1 << leaf;
    let [noting, telling] = [from, 0];
    for (const term of this.#termsOf(0, leaf)) {
      const share = this.#shareOf(0, leaf, term);
      const count = index.postings(term, rowsOf, countsOf);
      for (let i = 0; i < count; i++) {
        const row = rowsOf[i]!;
        if (shown !== null && ((shown[row >>> 5]! >>> (row & 31)) & 1) === 0) continue;
        const before = held[row]!;
        if (before === 0) noted[noting++] = row;
        held[row] = before | bit;
        const own = share * countsOf[i]!;
        const isFirst = (before & bit) === 0;
        if (isFirst && own === 1) continue;
        const known = times[row]!;
        if (known === 0) rowIds[telling++] = row;
        const all = isFirst ? own : (known || 1) + own;
        times[row] = all;
        held[row]! |= all > 1 ? TOLD | OFTEN : TOLD;
      }
    }
    few[leaf]!.count = telling;
    return noting;
  }

  /** The weight of a term among those of its leaf. */
  #shareOf(field: number, leaf: number, term: number): number {
    const sought = this.#queries[field]!.leaves[leaf]!;
    return isTolerant(sought) && !passesAsWritten(sought, this.#fields[field]!.index.term(term)) ? nearShare : 1;
  }

  /** Computes upper bounds of the score for every set of leaves; returns the largest. */
  #findMost(scoring: Scoring): number {
    const all = 1 << this.query.leaves.length;
    for (let bits = 1; bits < all; bits++) {
      const [one, rest] = [bits & -bits, bits & (bits - 1)];
      if (rest === 0) {
        const leaf = 31 - Math.clz32(one);
        mostOnce[bits] = this.#mostOf(leaf, scoring, 1) * boundSlack;
        mostOften[bits] = this.#mostOf(leaf, scoring, Infinity) * boundSlack;
      } else {
        mostOnce[bits] = mostOnce[rest]! + mostOnce[one]!;
        mostOften[bits] = mostOften[rest]! + mostOften[one]!;
      }
    }
    return mostOften[all - 1]!;
  }

  #wordOf(leaf: number, { rows, frequencies, averages, weights: fieldWeights, tables }: Scoring): WordScores {
    return (tables[leaf] ??= new WordScores(rarity(rows, frequencies[leaf]!), fieldWeights[0]!, averages[0]!));
  }

  /**
   * One bit per row that may reach this score. The bound of a word follows from how often it stands in any row, and from the
   * shortest row that holds it. Null: one of the words has no such bound.
   */
  reaching(scoring: Scoring, least: number): Int32Array | null {
    const bounds: Bound[] = [];
    for (let leaf = 0; leaf < this.query.leaves.length; leaf++) {
      if (!this.query.scores[leaf] || scoring.frequencies[leaf] === 0) continue;
      const most = this.#mostOf(leaf, scoring, Infinity);
      if (most > 0) bounds.push({ leaf, most: most * boundSlack });
      if (most === Infinity) return null;
    }
    bounds.sort((a, b) => b.most - a.most);
    let rest = 0;
    const rests = bounds.map(() => 0);
    for (let i = bounds.length - 1; i >= 0; i--) rests[i] = rest += bounds[i]!.most;
    if (bounds.length <= wordsTogether) return this.#together(bounds, rests, 0, least);
    const candidateBits = new Int32Array(this.#words);
    // A row needs at least one of the words without which the others come to too little.
    for (const [i, { leaf }] of bounds.entries()) if (rests[i]! >= least) join(candidateBits, this.#rowsOf(leaf));
    return candidateBits;
  }

  /** Rows whose words from the i-th on may come to so much. */
  #together(bounds: readonly Bound[], rests: readonly number[], i: number, least: number): Int32Array {
    if ((rests[i] ?? 0) < least) return new Int32Array(this.#words);
    const { leaf, most } = bounds[i]!;
    const leafBits = this.#rowsOf(leaf).slice();
    if (most < least) meet(leafBits, this.#together(bounds, rests, i + 1, least - most));
    if ((rests[i + 1] ?? 0) >= least) join(leafBits, this.#together(bounds, rests, i + 1, least));
    return leafBits;
  }

  /** The most that a leaf adds to the score of any row that holds it no more often than so. */
  #mostOf(leaf: number, { rows, frequencies, averages, weights: fieldWeights }: Scoring, timesMost: number): number {
    let weighted = 0;
    for (const [field, { index }] of this.#fields.entries()) {
      if (fieldWeights[field]! < 0) return Infinity;
      let times = 0;
      let least = Infinity;
      for (const term of this.#termsOf(field, leaf)) {
        times += index.timesMost(term);
        least = Math.min(least, index.lengthLeast(term));
      }
      times = Math.min(times, timesMost);
      if (times === Infinity) return Infinity;
      if (times > 0) weighted += fieldWeight(fieldWeights[field]!, times, least, averages[field]!);
    }
    return weighted === 0 ? 0 : wordScore(rarity(rows, frequencies[leaf]!), weighted);
  }

  /** One word of the only column, as it is written. */
  #isPlain(leaf: number): boolean {
    return this.#fields.length === 1 && !isTolerant(this.query.leaves[leaf]!) && this.#termsOf(0, leaf).length === 1;
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

  #scoreOne(leaf: number, scoring: Scoring, into: Float64Array, only: Int32Array | null): void {
    const { index, shown } = this.#fields[0]!;
    const { lengths } = index;
    const word = this.#wordOf(leaf, scoring);
    const among = only ?? shown;
    const count = index.postings(this.#termsOf(0, leaf)[0]!, rowsOf, countsOf);
    for (let i = 0; i < count; i++) {
      const row = rowsOf[i]!;
      if (among !== null && ((among[row >>> 5]! >>> (row & 31)) & 1) === 0) continue;
      into[row]! += word.score(countsOf[i]!, lengths[row]!);
    }
  }

  #scoreMany(leaf: number, scoring: Scoring, into: Float64Array, only: Int32Array | null): void {
    const { averages, weights: fieldWeights } = scoring;
    const rows = only === null ? this.#rowsOf(leaf) : this.#rowsOf(leaf).slice();
    if (only !== null) meet(rows, only);
    this.#fields.forEach(({ index, shown }, field) => {
      for (const term of this.#termsOf(field, leaf)) {
        const share = this.#shareOf(field, leaf, term);
        const count = index.postings(term, rowsOf, countsOf);
        for (let i = 0; i < count; i++) {
          const row = rowsOf[i]!;
          if (((rows[row >>> 5]! >>> (row & 31)) & 1) === 1) often[row]! += share * countsOf[i]!;
        }
      }
      eachBit(rows, (row) => {
        const rowCount = often[row]!;
        often[row] = 0;
        if (rowCount === 0 || (shown !== null && ((shown[row >>> 5]! >>> (row & 31)) & 1) === 0)) return;
        weights[row]! += fieldWeight(fieldWeights[field]!, rowCount, index.lengths[row]!, averages[field]!);
      });
    });
    const idf = rarity(scoring.rows, scoring.frequencies[leaf]!);
    eachBit(rows, (row) => {
      into[row]! += wordScore(idf, weights[row]!);
      weights[row] = 0;
    });
  }

  /** Rows that hold a leaf in any column where their cell is shown. */
  #rowsOf(leaf: number): Int32Array {
    let leafBits = this.#leafRows[leaf];
    if (leafBits) return leafBits;
    for (const field of this.#fields.keys()) {
      const own = this.#rowsIn(field, leaf);
      if (leafBits) join(leafBits, own);
      else leafBits = own;
    }
    return (this.#leafRows[leaf] = leafBits!);
  }

  /** Rows that hold a leaf in one column, where their cell is shown. */
  #rowsIn(field: number, leaf: number): Int32Array {
    const { shown } = this.#fields[field]!;
    const leafBits = new Int32Array(this.#words);
    this.#mark(field, leaf, leafBits);
    if (shown !== null) meet(leafBits, shown);
    return leafBits;
  }

  /** Adds a bit of each row that holds a leaf in one column, shown or not. */
  #mark(field: number, leaf: number, into: Int32Array): void {
    const { index } = this.#fields[field]!;
    for (const term of this.#termsOf(field, leaf)) {
      const count = index.postings(term, rowsOf, countsOf);
      for (let i = 0; i < count; i++) into[rowsOf[i]! >>> 5]! |= 1 << (rowsOf[i]! & 31);
    }
  }

  #termsOf(field: number, leaf: number): readonly number[] {
    return (this.#terms[field]![leaf] ??= termsOf(this.#fields[field]!.index, this.#queries[field]!.leaves[leaf]!));
  }

  /** Rows where the leaves stand one after the other in one column. */
  #phrase(): Int32Array {
    const wordBits = new Int32Array(this.#words);
    const { leaves } = this.query;
    if (leaves.length === 0) return wordBits;
    for (const [field, { index }] of this.#fields.entries()) {
      const together = this.#rowsIn(field, 0);
      for (let leaf = 1; leaf < leaves.length; leaf++) meet(together, this.#rowsIn(field, leaf));
      if (!areMeeting(together, together)) continue;
      let ends: readonly number[] | null = null;
      for (let leaf = 0; leaf < leaves.length && ends?.length !== 0; leaf++) {
        const terms = this.#termsOf(field, leaf);
        const ordinals: number[] = [];
        const wide: OrdinalRange[] = [];
        for (const term of terms) index.occurrences(term, together, rowsOf, countsOf, ordinals, wide);
        if (terms.length > 1) ordinals.sort((a, b) => a - b);
        ends = withWide(ends === null ? ordinals : following(ends, ordinals), wide, ends);
      }
      for (const ordinal of ends ?? []) {
        const row = Math.floor(ordinal / PLACES);
        wordBits[row >>> 5]! |= 1 << (row & 31);
      }
    }
    return wordBits;
  }
}

/** Lengths of the visible texts by the bits of the visible rows: callers under an equal condition share these bits. */
const figuresKnown = new WeakMap<Int32Array, WeakMap<TextIndex, FieldFigures>>();

function figuresOf(index: TextIndex, shown: Int32Array): FieldFigures {
  let known = figuresKnown.get(shown);
  if (known === undefined) figuresKnown.set(shown, (known = new WeakMap()));
  let figures = known.get(index);
  if (figures === undefined) known.set(index, (figures = sumLengths(index, shown)));
  return figures;
}

function sumLengths({ lengths }: TextIndex, shown: Int32Array): FieldFigures {
  let [held, total] = [0, 0];
  for (let word = 0; word < shown.length; word++) {
    for (let left = shown[word]!; left !== 0; left &= left - 1) {
      // Bits are of a whole segment, which may have grown since its first rows were indexed.
      const length = lengths[(word << 5) + 31 - Math.clz32(left & -left)] ?? 0;
      if (length > 0) held++;
      total += length;
    }
  }
  return { held, total };
}

/** Ordinals of `places` that come right after one of `before`; both ascending. */
function following(before: readonly number[], ordinals: readonly number[]): number[] {
  const followingOrdinals: number[] = [];
  let i = 0;
  for (const ordinal of ordinals) {
    while (i < before.length && before[i]! + 1 < ordinal) i++;
    if (i < before.length && before[i]! + 1 === ordinal && ordinal % PLACES !== 0) followingOrdinals.push(ordinal);
  }
  return followingOrdinals;
}

/** These ordinals, and the last ones of words that come right after one of `before`; ascending. */
function withWide(ends: readonly number[], wide: readonly OrdinalRange[], before: readonly number[] | null): readonly number[] {
  if (wide.length === 0) return ends;
  const known = before && new Set(before);
  const more = wide.filter(({ first }) => known === null || (first % PLACES !== 0 && known.has(first - 1)));
  return [...new Set([...ends, ...more.map(({ last }) => last)])].sort((a, b) => a - b);
}

/** Says which rows may score so much. */
function reach(leaves: number, least: number): void {
  reaching.fill(0);
  for (let bits = 1; bits < 1 << leaves; bits++) {
    if (mostOnce[bits]! >= least) reaching[bits] = 1;
    if (mostOften[bits]! >= least) reaching[bits | OFTEN] = 1;
  }
}

/** How many rows of these bits hold a term. */
function frequencyAmong(index: TextIndex, term: number, shown: Int32Array): number {
  const count = index.postings(term, rowsOf, countsOf);
  let sum = 0;
  for (let i = 0; i < count; i++) sum += (shown[rowsOf[i]! >>> 5]! >>> (rowsOf[i]! & 31)) & 1;
  return sum;
}

function areMeeting(a: Int32Array, b: Int32Array): boolean {
  for (let i = 0; i < a.length; i++) if ((a[i]! & b[i]!) !== 0) return true;
  return false;
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

/** Numbers of bits, so many of them. */
export function rowsIn(bits: Int32Array, count: number): Int32Array {
  const rows = new Int32Array(count);
  let bitTotal = 0;
  for (let word = 0; word < bits.length; word++) {
    for (let left = bits[word]!; left !== 0; left &= left - 1) rows[bitTotal++] = (word << 5) + 31 - Math.clz32(left & -left);
  }
  return rows;
}

export function eachBit(bits: Int32Array, visit: (row: number) => void): void {
  for (let word = 0; word < bits.length; word++) {
    for (let left = bits[word]!; left !== 0; left &= left - 1) visit((word << 5) + 31 - Math.clz32(left & -left));
  }
}
