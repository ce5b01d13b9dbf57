/**
 * One search within one block of rows: by the indexes of its columns, of visible rows alone. How many rows
 * hold each word, which rows match, and what they score.
 */
import { assert } from '../../errors.ts';
import { ORDINALS_MAX, type TextIndex, type OrdinalRange } from '../../projections/rows/indexes/text/text-index.ts';
import type { TopScores } from './top-scores.ts';
import type { Condition, TextQuery } from './text-query.ts';
import { isTolerant, passesAsWritten, termsOf } from './term-filter.ts';
import { fieldWeight, rarity, WordScores, wordScore } from './bm25f.ts';

/** A column of the block, and which of its cells are shown: a bit a row; null: all. */
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
const nearTermShare = 0.5;

/** So few words are looked at in all their combinations: which may come to a score. */
const leavesTogetherMax = 4;

/** Leaves of one plain word each that are gone through in one turn. */
const LEAVES_A_TURN = 8;

/** The most that a leaf adds to a score. */
interface LeafBound {
  readonly leaf: number;
  readonly most: number;
}

/** Sums of rounded numbers are rounded again. */
const scoreBoundSlack = 1 + 1e-9;

const BLOCK_ROWS = 65_536;

/** Words of which a row's fit a byte, beside two bits more. */
const FEW_LEAVES = 6;
/** Bits of a row that holds some leaf not just once, and of one that holds it more than once. */
const TIMES_TOLD = 0x40;
const TERM_OFTEN = 0x80;
/** By row: bits of the leaves that it holds; zeros between two searches. */
const heldLeafBits = new Uint8Array(BLOCK_ROWS);
/** Rows that hold any. */
const notedRows = new Int32Array(BLOCK_ROWS);
/** By leaf, how often a row holds it, where that is not once; zeros between two searches; and rows that this is said of. */
const fewLeafTimes = Array.from({ length: FEW_LEAVES }, () => ({
  times: new Float32Array(BLOCK_ROWS),
  rowIds: new Int32Array(BLOCK_ROWS),
  count: 0,
}));
/** Rows that are among the best, in no order. */
const takenRows = new Int32Array(BLOCK_ROWS);
/** By what is held of a row: 1 where it may score so much. */
const reachingBits = new Uint8Array(TERM_OFTEN + TIMES_TOLD);
/** By bits of leaves, the most that a row scores that holds these: each once, or as often as may be. */
const mostScoreOnce = new Float64Array(1 << FEW_LEAVES);
const mostScoreOften = new Float64Array(1 << FEW_LEAVES);
/** Postings of one block that are read in one turn. */
const POSTINGS_A_TURN = 4 * BLOCK_ROWS;

/** Rows of a range that may be among the best, rising; their scores; and how many rows match. */
export interface Matching {
  readonly rows: Int32Array;
  readonly scores: Float64Array;
  readonly matching: number;
}

const postingRows = new Int32Array(BLOCK_ROWS);
const postingCounts = new Int32Array(BLOCK_ROWS);
const termTimesByRow = new Float64Array(BLOCK_ROWS);
const weightsByRow = new Float64Array(BLOCK_ROWS);

export class BlockSearch {
  readonly rows: number;
  readonly #searchedFields: readonly Field[];
  /** By field: typo tolerance may be off in some. */
  readonly #fieldQueries: readonly TextQuery[];
  /** By field and leaf. */
  readonly #termsByField: (readonly number[])[][];
  readonly #bitmapWords: number;
  readonly #rowsByLeaf: Int32Array[] = [];

  constructor(fields: readonly Field[], queries: readonly TextQuery[]) {
    this.rows = fields[0]!.index.rows;
    this.#searchedFields = fields;
    this.#fieldQueries = queries;
    this.#termsByField = fields.map(() => []);
    this.#bitmapWords = (this.rows + 31) >>> 5;
  }

  get query(): TextQuery {
    return this.#fieldQueries[0]!;
  }

  /** Rows that hold any term in any of the columns; and by column, those that hold one there, with how many. */
  figures(): { readonly rows: number; readonly fields: readonly FieldFigures[] } {
    const fields = this.#searchedFields.map(({ index, shown }): FieldFigures => {
      if (shown === null) return { held: index.held, total: index.total };
      return shownFiguresOf(index, shown);
    });
    if (fields.length === 1) return { rows: fields[0]!.held, fields };
    const anyFieldRows = new Int32Array(this.#bitmapWords);
    for (const { index, shown } of this.#searchedFields) {
      for (let row = 0; row < this.rows; row++) {
        const isShown = shown === null || ((shown[row >>> 5]! >>> (row & 31)) & 1) === 1;
        if (isShown && index.lengths[row]! > 0) anyFieldRows[row >>> 5]! |= 1 << (row & 31);
      }
    }
    return { rows: bitCount(anyFieldRows), fields };
  }

  /** Lets go of what was found: it is found again where it is asked for. */
  release(): void {
    this.#rowsByLeaf.length = 0;
  }

  /** How many rows hold a leaf. */
  frequency(leaf: number): number {
    const [onlyField, ...otherFields] = this.#searchedFields;
    if (otherFields.length === 0) {
      const { index, shown } = onlyField!;
      const leafTerms = this.#leafTermsOf(0, leaf);
      if (leafTerms.length === 0) return 0;
      if (leafTerms.length === 1)
        return shown === null ? index.frequency(leafTerms[0]!) : frequencyAmongShown(index, leafTerms[0]!, shown);
    }
    return bitCount(this.#rowsOfLeaf(leaf));
  }

  /** A bit a row of those that may be seen, by the shape of the query or what it came to. */
  matching(shape: TextQuery['shape'] = this.query.shape): Int32Array {
    const matchBits = this.#matchingRows(shape);
    // A negation sets bits beyond the last row: clears them.
    const lastWordBits = this.rows & 31;
    if (lastWordBits > 0) matchBits[matchBits.length - 1]! &= (1 << lastWordBits) - 1;
    const [firstShown, ...otherShown] = this.#searchedFields.map(({ shown }) => shown);
    if (firstShown === null || otherShown.includes(null)) return matchBits;
    const visibleRows = firstShown!.slice();
    for (const shown of otherShown) joinBits(visibleRows, shown!);
    meetBits(matchBits, visibleRows);
    return matchBits;
  }

  #matchingRows(shape: TextQuery['shape']): Int32Array {
    const { leaves } = this.query;
    assert(shape !== 'rarest', 'it is known by now how rare words are');
    if (shape === 'any') {
      const fulfilledBits = new Int32Array(this.#bitmapWords);
      for (let leaf = 0; leaf < leaves.length; leaf++) {
        // The visibility of the only column is applied once, after all leaves.
        if (this.#searchedFields.length === 1 && !this.#rowsByLeaf[leaf]) this.#markLeafRows(0, leaf, fulfilledBits);
        else joinBits(fulfilledBits, this.#rowsOfLeaf(leaf));
      }
      return fulfilledBits;
    }
    if (shape === 'phrase') return this.#phraseRows();
    return this.#rowsFulfilling(shape);
  }

  #rowsFulfilling(condition: Condition): Int32Array {
    if (typeof condition === 'number') return this.#rowsOfLeaf(condition).slice();
    if ('not' in condition) {
      const negatedBits = this.#rowsFulfilling(condition.not);
      for (let i = 0; i < negatedBits.length; i++) negatedBits[i] = ~negatedBits[i]!;
      return negatedBits;
    }
    const isAll = 'all' in condition;
    const [firstCondition, ...otherConditions] = isAll ? condition.all : condition.any;
    const conditionBits = firstCondition === undefined ? new Int32Array(this.#bitmapWords) : this.#rowsFulfilling(firstCondition);
    for (const otherCondition of otherConditions)
      (isAll ? meetBits : joinBits)(conditionBits, this.#rowsFulfilling(otherCondition));
    return conditionBits;
  }

  /** Adds what leaves score to the rows that hold them, leaf after leaf; with `onlyRows`, to those of them that have their bit there. */
  score(scoring: Scoring, rowScores: Float64Array, onlyRows: Int32Array | null): void {
    this.query.leaves.forEach((_, leaf) => this.scoreLeaf(leaf, scoring, rowScores, onlyRows));
  }

  scoreLeaf(leaf: number, scoring: Scoring, rowScores: Float64Array, onlyRows: Int32Array | null): void {
    if (!this.query.scores[leaf] || scoring.frequencies[leaf] === 0) return;
    if (onlyRows !== null && !haveCommonBits(this.#rowsOfLeaf(leaf), onlyRows)) return;
    if (this.#isPlainLeaf(leaf)) this.#scorePlainLeaf(leaf, scoring, rowScores, onlyRows);
    else this.#scoreAcrossFields(leaf, scoring, rowScores, onlyRows);
  }

  /** Whether its leaves have to be gone through one by one, others having a turn in between. */
  get isSlow(): boolean {
    const { leaves } = this.query;
    return leaves.length > LEAVES_A_TURN || leaves.some((leaf) => leaf.kind !== 'term' || leaf.edits > 0);
  }

  /** Finds the terms and the rows of a leaf, which are known from then on until they are let go of. */
  seek(leaf: number): void {
    this.#rowsOfLeaf(leaf);
  }

  /**
   * The same of a query of few words of the only column, any of which is enough: of those rows only that are among the best so far.
   * null for any other query. Nothing as large as a block is read, since most words stand in few rows.
   */
  scoreFew(scoring: Scoring, best: TopScores): Matching | null {
    const { shape, leaves, scores: rankingLeaves } = this.query;
    if (this.#searchedFields.length > 1 || shape !== 'any' || leaves.length > FEW_LEAVES || rankingLeaves.includes(false))
      return null;
    const { index } = this.#searchedFields[0]!;
    if (scoring.weights[0]! <= 0 || (this.isSlow && this.#postingsCount(index) > POSTINGS_A_TURN)) return null;
    let matchingCount = 0;
    for (let leaf = 0; leaf < leaves.length; leaf++) matchingCount = this.#holdLeafRows(leaf, matchingCount);
    const mostScore = this.#findMostScores(scoring);
    const wordScores = leaves.map((_, leaf) => this.#wordScoresOf(leaf, scoring));
    // As long as any row is among the best, those that may score much go first.
    const takenAtFirst = best.least === -Infinity ? this.#takeBestRows(wordScores, best, mostScore / 2, matchingCount, 0) : 0;
    const topEnd = this.#takeBestRows(wordScores, best, best.least, matchingCount, takenAtFirst);
    const bestRows = takenRows.slice(0, topEnd).sort();
    const bestScores = new Float64Array(topEnd);
    for (let i = 0; i < topEnd; i++) {
      bestScores[i] = weightsByRow[bestRows[i]!]!;
      weightsByRow[bestRows[i]!] = 0;
    }
    for (let i = 0; i < matchingCount; i++) heldLeafBits[notedRows[i]!] = 0;
    for (let leaf = 0; leaf < leaves.length; leaf++) {
      const { times, rowIds, count } = fewLeafTimes[leaf]!;
      for (let i = 0; i < count; i++) times[rowIds[i]!] = 0;
    }
    return { rows: bestRows, scores: bestScores, matching: matchingCount };
  }

  /** Takes those of the noted rows that may score so much and are among the best; gives how many are taken then. */
  #takeBestRows(
    wordScores: readonly WordScores[],
    best: TopScores,
    least: number,
    matching: number,
    takenBefore: number,
  ): number {
    const { lengths } = this.#searchedFields[0]!.index;
    fillReachingBits(wordScores.length, least);
    let topEnd = takenBefore;
    for (let i = 0; i < matching; i++) {
      const row = notedRows[i]!;
      const leafBits = heldLeafBits[row]!;
      if (reachingBits[leafBits & ~TIMES_TOLD] === 0) continue;
      heldLeafBits[row] = 0;
      let rowScore = 0;
      for (let leaf = 0; leaf < wordScores.length; leaf++) {
        if (((leafBits >>> leaf) & 1) === 0) continue;
        const termTimes = (leafBits & TIMES_TOLD) === 0 ? 1 : fewLeafTimes[leaf]!.times[row]! || 1;
        rowScore += wordScores[leaf]!.score(termTimes, lengths[row]!);
      }
      if (!best.take(rowScore)) continue;
      weightsByRow[row] = rowScore;
      takenRows[topEnd++] = row;
    }
    return topEnd;
  }

  #postingsCount(index: TextIndex): number {
    let postingsSum = 0;
    for (let leaf = 0; leaf < this.query.leaves.length; leaf++) {
      for (const term of this.#leafTermsOf(0, leaf)) postingsSum += index.frequency(term);
    }
    return postingsSum;
  }

  /** Notes rows that hold a leaf, behind those that were noted before; gives how many are noted then. */
  #holdLeafRows(leaf: number, notedBefore: number): number {
    const { index, shown } = this.#searchedFields[0]!;
    const { times, rowIds } = fewLeafTimes[leaf]!;
    const leafBit = 1 << leaf;
    let [notedCount, toldCount] = [notedBefore, 0];
    for (const term of this.#leafTermsOf(0, leaf)) {
      const scoreShare = this.#scoreShareOf(0, leaf, term);
      const postingsCount = index.postings(term, postingRows, postingCounts);
      for (let i = 0; i < postingsCount; i++) {
        const row = postingRows[i]!;
        if (shown !== null && ((shown[row >>> 5]! >>> (row & 31)) & 1) === 0) continue;
        const heldBits = heldLeafBits[row]!;
        if (heldBits === 0) notedRows[notedCount++] = row;
        heldLeafBits[row] = heldBits | leafBit;
        const termTimes = scoreShare * postingCounts[i]!;
        const isFirst = (heldBits & leafBit) === 0;
        if (isFirst && termTimes === 1) continue;
        const knownTimes = times[row]!;
        if (knownTimes === 0) rowIds[toldCount++] = row;
        const leafTimes = isFirst ? termTimes : (knownTimes || 1) + termTimes;
        times[row] = leafTimes;
        heldLeafBits[row]! |= leafTimes > 1 ? TIMES_TOLD | TERM_OFTEN : TIMES_TOLD;
      }
    }
    fewLeafTimes[leaf]!.count = toldCount;
    return notedCount;
  }

  /** The weight of a term among those of its leaf. */
  #scoreShareOf(field: number, leaf: number, term: number): number {
    const soughtLeaf = this.#fieldQueries[field]!.leaves[leaf]!;
    return isTolerant(soughtLeaf) && !passesAsWritten(soughtLeaf, this.#searchedFields[field]!.index.term(term))
      ? nearTermShare
      : 1;
  }

  /** Computes upper bounds of the score for every set of leaves; returns the largest. */
  #findMostScores(scoring: Scoring): number {
    const leafSubsets = 1 << this.query.leaves.length;
    for (let bits = 1; bits < leafSubsets; bits++) {
      const [lowestLeafBit, otherLeafBits] = [bits & -bits, bits & (bits - 1)];
      if (otherLeafBits === 0) {
        const leaf = 31 - Math.clz32(lowestLeafBit);
        mostScoreOnce[bits] = this.#mostScoreOf(leaf, scoring, 1) * scoreBoundSlack;
        mostScoreOften[bits] = this.#mostScoreOf(leaf, scoring, Infinity) * scoreBoundSlack;
      } else {
        mostScoreOnce[bits] = mostScoreOnce[otherLeafBits]! + mostScoreOnce[lowestLeafBit]!;
        mostScoreOften[bits] = mostScoreOften[otherLeafBits]! + mostScoreOften[lowestLeafBit]!;
      }
    }
    return mostScoreOften[leafSubsets - 1]!;
  }

  #wordScoresOf(leaf: number, { rows, frequencies, averages, weights: fieldWeights, tables }: Scoring): WordScores {
    return (tables[leaf] ??= new WordScores(rarity(rows, frequencies[leaf]!), fieldWeights[0]!, averages[0]!));
  }

  /**
   * One bit per row that may reach this score. The bound of a word follows from how often it stands in any row, and from the
   * shortest row that holds it. Null: one of the words has no such bound.
   */
  reaching(scoring: Scoring, least: number): Int32Array | null {
    const leafBounds: LeafBound[] = [];
    for (let leaf = 0; leaf < this.query.leaves.length; leaf++) {
      if (!this.query.scores[leaf] || scoring.frequencies[leaf] === 0) continue;
      const mostScore = this.#mostScoreOf(leaf, scoring, Infinity);
      if (mostScore > 0) leafBounds.push({ leaf, most: mostScore * scoreBoundSlack });
      if (mostScore === Infinity) return null;
    }
    leafBounds.sort((a, b) => b.most - a.most);
    let remainingScore = 0;
    const remainingScores = leafBounds.map(() => 0);
    for (let i = leafBounds.length - 1; i >= 0; i--) remainingScores[i] = remainingScore += leafBounds[i]!.most;
    if (leafBounds.length <= leavesTogetherMax) return this.#rowsTogether(leafBounds, remainingScores, 0, least);
    const candidateBits = new Int32Array(this.#bitmapWords);
    // A row needs at least one of the words without which the others come to too little.
    for (const [i, { leaf }] of leafBounds.entries())
      if (remainingScores[i]! >= least) joinBits(candidateBits, this.#rowsOfLeaf(leaf));
    return candidateBits;
  }

  /** Rows whose words from the i-th on may come to so much. */
  #rowsTogether(leafBounds: readonly LeafBound[], remainingScores: readonly number[], i: number, leastScore: number): Int32Array {
    if ((remainingScores[i] ?? 0) < leastScore) return new Int32Array(this.#bitmapWords);
    const { leaf, most: mostScore } = leafBounds[i]!;
    const leafBits = this.#rowsOfLeaf(leaf).slice();
    if (mostScore < leastScore)
      meetBits(leafBits, this.#rowsTogether(leafBounds, remainingScores, i + 1, leastScore - mostScore));
    if ((remainingScores[i + 1] ?? 0) >= leastScore)
      joinBits(leafBits, this.#rowsTogether(leafBounds, remainingScores, i + 1, leastScore));
    return leafBits;
  }

  /** The most that a leaf adds to the score of any row that holds it no more often than so. */
  #mostScoreOf(leaf: number, { rows, frequencies, averages, weights: fieldWeights }: Scoring, timesMost: number): number {
    let weightedTimes = 0;
    for (const [field, { index }] of this.#searchedFields.entries()) {
      if (fieldWeights[field]! < 0) return Infinity;
      let timesInField = 0;
      let shortestLength = Infinity;
      for (const term of this.#leafTermsOf(field, leaf)) {
        timesInField += index.timesMost(term);
        shortestLength = Math.min(shortestLength, index.lengthLeast(term));
      }
      timesInField = Math.min(timesInField, timesMost);
      if (timesInField === Infinity) return Infinity;
      if (timesInField > 0) weightedTimes += fieldWeight(fieldWeights[field]!, timesInField, shortestLength, averages[field]!);
    }
    return weightedTimes === 0 ? 0 : wordScore(rarity(rows, frequencies[leaf]!), weightedTimes);
  }

  /** One word of the only column, as it is written. */
  #isPlainLeaf(leaf: number): boolean {
    return this.#searchedFields.length === 1 && !isTolerant(this.query.leaves[leaf]!) && this.#leafTermsOf(0, leaf).length === 1;
  }

  /** Multiplies scores by the highest of these numbers, by field, of those whose cell holds any of the words that rank. */
  raise(boosts: readonly (number | null)[], rowScores: Float64Array): void {
    const boostsFalling = [...boosts.entries()].flatMap(([field, by]) => (by === null ? [] : [{ field, by }]));
    boostsFalling.sort((a, b) => b.by - a.by);
    const raisedRows = new Int32Array(this.#bitmapWords);
    for (const { field, by } of boostsFalling) {
      const fieldRows = new Int32Array(this.#bitmapWords);
      this.query.leaves.forEach((_, leaf) => {
        if (this.query.scores[leaf]) joinBits(fieldRows, this.#leafRowsInField(field, leaf));
      });
      for (let i = 0; i < fieldRows.length; i++) fieldRows[i]! &= ~raisedRows[i]!;
      eachBit(fieldRows, (row) => (rowScores[row]! *= by));
      joinBits(raisedRows, fieldRows);
    }
  }

  #scorePlainLeaf(leaf: number, scoring: Scoring, rowScores: Float64Array, onlyRows: Int32Array | null): void {
    const { index, shown } = this.#searchedFields[0]!;
    const { lengths } = index;
    const plainWordScores = this.#wordScoresOf(leaf, scoring);
    const scoredRows = onlyRows ?? shown;
    const postingsCount = index.postings(this.#leafTermsOf(0, leaf)[0]!, postingRows, postingCounts);
    for (let i = 0; i < postingsCount; i++) {
      const row = postingRows[i]!;
      if (scoredRows !== null && ((scoredRows[row >>> 5]! >>> (row & 31)) & 1) === 0) continue;
      rowScores[row]! += plainWordScores.score(postingCounts[i]!, lengths[row]!);
    }
  }

  #scoreAcrossFields(leaf: number, scoring: Scoring, rowScores: Float64Array, onlyRows: Int32Array | null): void {
    const { averages, weights: fieldWeights } = scoring;
    const leafRows = onlyRows === null ? this.#rowsOfLeaf(leaf) : this.#rowsOfLeaf(leaf).slice();
    if (onlyRows !== null) meetBits(leafRows, onlyRows);
    this.#searchedFields.forEach(({ index, shown }, field) => {
      for (const term of this.#leafTermsOf(field, leaf)) {
        const scoreShare = this.#scoreShareOf(field, leaf, term);
        const postingsCount = index.postings(term, postingRows, postingCounts);
        for (let i = 0; i < postingsCount; i++) {
          const row = postingRows[i]!;
          if (((leafRows[row >>> 5]! >>> (row & 31)) & 1) === 1) termTimesByRow[row]! += scoreShare * postingCounts[i]!;
        }
      }
      eachBit(leafRows, (row) => {
        const rowCount = termTimesByRow[row]!;
        termTimesByRow[row] = 0;
        if (rowCount === 0 || (shown !== null && ((shown[row >>> 5]! >>> (row & 31)) & 1) === 0)) return;
        weightsByRow[row]! += fieldWeight(fieldWeights[field]!, rowCount, index.lengths[row]!, averages[field]!);
      });
    });
    const idf = rarity(scoring.rows, scoring.frequencies[leaf]!);
    eachBit(leafRows, (row) => {
      rowScores[row]! += wordScore(idf, weightsByRow[row]!);
      weightsByRow[row] = 0;
    });
  }

  /** Rows that hold a leaf in any column where their cell is shown. */
  #rowsOfLeaf(leaf: number): Int32Array {
    let leafBits = this.#rowsByLeaf[leaf];
    if (leafBits) return leafBits;
    for (const field of this.#searchedFields.keys()) {
      const fieldRows = this.#leafRowsInField(field, leaf);
      if (leafBits) joinBits(leafBits, fieldRows);
      else leafBits = fieldRows;
    }
    return (this.#rowsByLeaf[leaf] = leafBits!);
  }

  /** Rows that hold a leaf in one column, where their cell is shown. */
  #leafRowsInField(field: number, leaf: number): Int32Array {
    const { shown } = this.#searchedFields[field]!;
    const leafBits = new Int32Array(this.#bitmapWords);
    this.#markLeafRows(field, leaf, leafBits);
    if (shown !== null) meetBits(leafBits, shown);
    return leafBits;
  }

  /** Adds a bit of each row that holds a leaf in one column, shown or not. */
  #markLeafRows(field: number, leaf: number, markedRows: Int32Array): void {
    const { index } = this.#searchedFields[field]!;
    for (const term of this.#leafTermsOf(field, leaf)) {
      const postingsCount = index.postings(term, postingRows, postingCounts);
      for (let i = 0; i < postingsCount; i++) markedRows[postingRows[i]! >>> 5]! |= 1 << (postingRows[i]! & 31);
    }
  }

  #leafTermsOf(field: number, leaf: number): readonly number[] {
    return (this.#termsByField[field]![leaf] ??= termsOf(
      this.#searchedFields[field]!.index,
      this.#fieldQueries[field]!.leaves[leaf]!,
    ));
  }

  /** Rows where the leaves stand one after the other in one column. */
  #phraseRows(): Int32Array {
    const wordBits = new Int32Array(this.#bitmapWords);
    const { leaves } = this.query;
    if (leaves.length === 0) return wordBits;
    for (const [field, { index }] of this.#searchedFields.entries()) {
      const rowsWithAllTerms = this.#leafRowsInField(field, 0);
      for (let leaf = 1; leaf < leaves.length; leaf++) meetBits(rowsWithAllTerms, this.#leafRowsInField(field, leaf));
      if (!haveCommonBits(rowsWithAllTerms, rowsWithAllTerms)) continue;
      let phraseEnds: readonly number[] | null = null;
      for (let leaf = 0; leaf < leaves.length && phraseEnds?.length !== 0; leaf++) {
        const leafTerms = this.#leafTermsOf(field, leaf);
        const ordinals: number[] = [];
        const wideOccurrences: OrdinalRange[] = [];
        for (const term of leafTerms)
          index.occurrences(term, rowsWithAllTerms, postingRows, postingCounts, ordinals, wideOccurrences);
        if (leafTerms.length > 1) ordinals.sort((a, b) => a - b);
        phraseEnds = withWideOccurrences(
          phraseEnds === null ? ordinals : placesFollowing(phraseEnds, ordinals),
          wideOccurrences,
          phraseEnds,
        );
      }
      for (const ordinal of phraseEnds ?? []) {
        const row = Math.floor(ordinal / ORDINALS_MAX);
        wordBits[row >>> 5]! |= 1 << (row & 31);
      }
    }
    return wordBits;
  }
}

/** Lengths of the visible texts by the bits of the visible rows: callers under an equal condition share these bits. */
const figuresByShown = new WeakMap<Int32Array, WeakMap<TextIndex, FieldFigures>>();

function shownFiguresOf(index: TextIndex, shown: Int32Array): FieldFigures {
  let figuresByIndex = figuresByShown.get(shown);
  if (figuresByIndex === undefined) figuresByShown.set(shown, (figuresByIndex = new WeakMap()));
  let fieldFigures = figuresByIndex.get(index);
  if (fieldFigures === undefined) figuresByIndex.set(index, (fieldFigures = sumLengths(index, shown)));
  return fieldFigures;
}

function sumLengths({ lengths }: TextIndex, shown: Int32Array): FieldFigures {
  let [heldRows, totalLength] = [0, 0];
  for (let word = 0; word < shown.length; word++) {
    for (let shownBits = shown[word]!; shownBits !== 0; shownBits &= shownBits - 1) {
      // Bits are of a whole segment, which may have grown since its first rows were indexed.
      const textLength = lengths[(word << 5) + 31 - Math.clz32(shownBits & -shownBits)] ?? 0;
      if (textLength > 0) heldRows++;
      totalLength += textLength;
    }
  }
  return { held: heldRows, total: totalLength };
}

/** Ordinals of `places` that come right after one of `precedingPlaces`; both ascending. */
function placesFollowing(precedingPlaces: readonly number[], ordinals: readonly number[]): number[] {
  const followingOrdinals: number[] = [];
  let i = 0;
  for (const ordinal of ordinals) {
    while (i < precedingPlaces.length && precedingPlaces[i]! + 1 < ordinal) i++;
    if (i < precedingPlaces.length && precedingPlaces[i]! + 1 === ordinal && ordinal % ORDINALS_MAX !== 0)
      followingOrdinals.push(ordinal);
  }
  return followingOrdinals;
}

/** These ordinals, and the last ones of words that come right after one of `precedingPlaces`; ascending. */
function withWideOccurrences(
  phraseEnds: readonly number[],
  wide: readonly OrdinalRange[],
  precedingPlaces: readonly number[] | null,
): readonly number[] {
  if (wide.length === 0) return phraseEnds;
  const precedingEnds = precedingPlaces && new Set(precedingPlaces);
  const wideFollowing = wide.filter(
    ({ first }) => precedingEnds === null || (first % ORDINALS_MAX !== 0 && precedingEnds.has(first - 1)),
  );
  return [...new Set([...phraseEnds, ...wideFollowing.map(({ last }) => last)])].sort((a, b) => a - b);
}

/** Says which rows may score so much. */
function fillReachingBits(leaves: number, leastScore: number): void {
  reachingBits.fill(0);
  for (let leafBits = 1; leafBits < 1 << leaves; leafBits++) {
    if (mostScoreOnce[leafBits]! >= leastScore) reachingBits[leafBits] = 1;
    if (mostScoreOften[leafBits]! >= leastScore) reachingBits[leafBits | TERM_OFTEN] = 1;
  }
}

/** How many rows of these bits hold a term. */
function frequencyAmongShown(index: TextIndex, term: number, shown: Int32Array): number {
  const count = index.postings(term, postingRows, postingCounts);
  let shownFrequency = 0;
  for (let i = 0; i < count; i++) shownFrequency += (shown[postingRows[i]! >>> 5]! >>> (postingRows[i]! & 31)) & 1;
  return shownFrequency;
}

function haveCommonBits(a: Int32Array, b: Int32Array): boolean {
  for (let i = 0; i < a.length; i++) if ((a[i]! & b[i]!) !== 0) return true;
  return false;
}

function joinBits(joinedBits: Int32Array, addedBits: Int32Array): void {
  for (let i = 0; i < joinedBits.length; i++) joinedBits[i]! |= addedBits[i]!;
}

function meetBits(metBits: Int32Array, limitingBits: Int32Array): void {
  for (let i = 0; i < metBits.length; i++) metBits[i]! &= limitingBits[i] ?? 0;
}

export function bitCount(bits: Int32Array): number {
  let setBitCount = 0;
  for (let bitWord of bits) {
    bitWord -= (bitWord >>> 1) & 0x5555_5555;
    bitWord = (bitWord & 0x3333_3333) + ((bitWord >>> 2) & 0x3333_3333);
    setBitCount += Math.imul((bitWord + (bitWord >>> 4)) & 0x0f0f_0f0f, 0x0101_0101) >>> 24;
  }
  return setBitCount;
}

/** Numbers of bits, so many of them. */
export function rowsIn(bits: Int32Array, count: number): Int32Array {
  const rows = new Int32Array(count);
  let bitTotal = 0;
  for (let word = 0; word < bits.length; word++) {
    for (let wordBits = bits[word]!; wordBits !== 0; wordBits &= wordBits - 1)
      rows[bitTotal++] = (word << 5) + 31 - Math.clz32(wordBits & -wordBits);
  }
  return rows;
}

export function eachBit(bits: Int32Array, visitRow: (row: number) => void): void {
  for (let word = 0; word < bits.length; word++) {
    for (let wordBits = bits[word]!; wordBits !== 0; wordBits &= wordBits - 1)
      visitRow((word << 5) + 31 - Math.clz32(wordBits & -wordBits));
  }
}
