/** BM25F: the share of each word in the score of a row. */

/** Saturation of how often a term stands in a row, and how much a long row counts for less. */
const K1 = 1.2;
const B = 0.75;

/** The weight of a leaf: rarer leaves weigh more. */
export function rarity(rows: number, frequency: number): number {
  return Math.log(1 + (rows - frequency + 0.5) / (frequency + 0.5));
}

/** The contribution of one column to the weight of a word in a row. */
export function fieldWeight(weight: number, often: number, length: number, average: number): number {
  return weight * (often / (1 - B + (B * length) / average));
}

/** The contribution of a word to the score of a row. */
export function wordScore(idf: number, weighted: number): number {
  return idf * ((weighted * (K1 + 1)) / (weighted + K1));
}

/** Most words stand once or twice in a row, and most rows are short: two divisions a row that need not be made. */
const USUAL_TIMES = 4;
const USUAL_LENGTH = 128;

/** Scores of rows for one word of one column. */
export class WordScores {
  readonly #idf: number;
  readonly #weight: number;
  readonly #average: number;
  /** By `times * 2 * USUAL_LENGTH + length`, as far as it was asked for: how often is a multiple of a half. */
  readonly #usual = new Float64Array(USUAL_TIMES * 2 * USUAL_LENGTH);

  constructor(idf: number, weight: number, average: number) {
    this.#idf = idf;
    this.#weight = weight;
    this.#average = average;
  }

  score(times: number, length: number): number {
    if (times >= USUAL_TIMES || length >= USUAL_LENGTH) return this.#scoreOf(times, length);
    const at = times * 2 * USUAL_LENGTH + length;
    const known = this.#usual[at]!;
    return known === 0 ? (this.#usual[at] = this.#scoreOf(times, length)) : known;
  }

  #scoreOf(times: number, length: number): number {
    return wordScore(this.#idf, fieldWeight(this.#weight, times, length, this.#average));
  }
}
