/** BM25F: the share of each word in the score of a row. */

/** Saturation of how often a term stands in a row, and how much a long row counts for less. */
const BM25_K1 = 1.2;
const BM25_B = 0.75;

/** The weight of a leaf: rarer leaves weigh more. */
export function rarity(rows: number, frequency: number): number {
  return Math.log(1 + (rows - frequency + 0.5) / (frequency + 0.5));
}

/** The contribution of one column to the weight of a word in a row. */
export function fieldWeight(weight: number, termTimes: number, length: number, averageLength: number): number {
  return weight * (termTimes / (1 - BM25_B + (BM25_B * length) / averageLength));
}

/** The contribution of a word to the score of a row. */
export function wordScore(idf: number, weightedTimes: number): number {
  return idf * ((weightedTimes * (BM25_K1 + 1)) / (weightedTimes + BM25_K1));
}

/** Most words stand once or twice in a row, and most rows are short: two divisions a row that need not be made. */
const USUAL_TIMES = 4;
const USUAL_LENGTH = 128;

/** Scores of rows for one word of one column. */
export class WordScores {
  readonly #idf: number;
  readonly #fieldWeight: number;
  readonly #averageLength: number;
  /** By `times * 2 * USUAL_LENGTH + length`, as far as it was asked for: how often is a multiple of a half. */
  readonly #usualScores = new Float64Array(USUAL_TIMES * 2 * USUAL_LENGTH);

  constructor(idf: number, weight: number, average: number) {
    this.#idf = idf;
    this.#fieldWeight = weight;
    this.#averageLength = average;
  }

  score(termTimes: number, textLength: number): number {
    if (termTimes >= USUAL_TIMES || textLength >= USUAL_LENGTH) return this.#computeScore(termTimes, textLength);
    const usualIndex = termTimes * 2 * USUAL_LENGTH + textLength;
    const knownScore = this.#usualScores[usualIndex]!;
    return knownScore === 0 ? (this.#usualScores[usualIndex] = this.#computeScore(termTimes, textLength)) : knownScore;
  }

  #computeScore(times: number, length: number): number {
    return wordScore(this.#idf, fieldWeight(this.#fieldWeight, times, length, this.#averageLength));
  }
}
