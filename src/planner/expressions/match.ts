/** MATCH of one text by itself: what an index says of a row, said by looking at its words. */
import { assert } from '../../errors.ts';
import { stemmer } from '../../projections/rows/indexes/text/stems.ts';
import { tokensOf } from '../../projections/rows/indexes/text/tokens.ts';
import { parseTextQuery, type QueryOptions, type TextQuery } from '../search/query.ts';
import { passes } from '../search/terms.ts';
import { spend } from './work.ts';

export class TextMatcher {
  readonly query: TextQuery;
  readonly #stem: (term: string) => string;
  /** By term: numbers of the leaves that it passes. */
  readonly #passed = new Map<string, readonly number[]>();

  constructor(text: string, options: QueryOptions) {
    this.#stem = stemmer(options.rules.language);
    this.query = parseTextQuery(text, options);
  }

  matches(text: string): boolean {
    spend(text.length * characterCost);
    const { leaves, shape } = this.query;
    assert(shape !== 'rarest', 'how rare words are is known of the rows of a type alone');
    const found = tokensOf(text).map((term) => this.leavesOf(term));
    const held = new Set(found.flat());
    if (shape === 'any') return held.size > 0;
    if (shape === 'phrase') {
      return leaves.length > 0 && found.some((_, from) => leaves.every((__, leaf) => found[from + leaf]?.includes(leaf)));
    }
    let result = false;
    for (const { op, negated, all } of shape) {
      const own = all.every((leaf) => held.has(leaf)) !== negated;
      result = op === 'or' ? result || own : result && own;
    }
    return result;
  }

  leavesOf(term: string): readonly number[] {
    let passed = this.#passed.get(term);
    if (passed) return passed;
    passed = this.query.leaves.flatMap((leaf, i) => (passes(leaf, term, this.#stem) ? [i] : []));
    if (this.#passed.size < termsKept) this.#passed.set(term, passed);
    return passed;
  }
}

const termsKept = 20_000;
/** Nanoseconds, of words that are met for the first time. */
const characterCost = 100;
