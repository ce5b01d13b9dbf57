/** MATCH of one text by itself: what an index says of a row, said by looking at its words. */
import { assert } from '../../errors.ts';
import { stemmer } from '../../projections/rows/indexes/text/stems.ts';
import { jsonTokenSpans } from '../../projections/rows/indexes/text/json-texts.ts';
import { type TokenSpan, tokenSpans } from '../../projections/rows/indexes/text/tokens.ts';
import { type Condition, parseTextQuery, type QueryOptions, type TextQuery } from '../../governance/text-search/text-query.ts';
import { passes } from '../../governance/text-search/term-filter.ts';
import { spend } from './expression-cost.ts';

export class TextMatcher {
  readonly query: TextQuery;
  readonly #stem: (term: string) => string;
  /** By term: numbers of the leaves that it satisfies. */
  readonly #passed = new Map<string, readonly number[]>();

  constructor(text: string, options: QueryOptions) {
    this.#stem = stemmer(options.rules.language);
    this.query = parseTextQuery(text, options);
  }

  /** The text is searched, or the strings of JSON together. */
  matches(text: string, isJson: boolean): boolean {
    spend(text.length * characterCost);
    const { leaves, shape } = this.query;
    assert(shape !== 'rarest', 'how rare words are is known of the rows of a type alone');
    const spans = isJson ? jsonTokenSpans(text) : tokenSpans(text).spans;
    if (shape === 'phrase') return leaves.length > 0 && this.phrases(spans).length > 0;
    const held = new Set(spans.flatMap(({ term }) => this.leavesOf(term)));
    return shape === 'any' ? held.size > 0 : isFulfilled(shape, held);
  }

  /** The terms of each place where the phrase stands. */
  phrases(spans: readonly TokenSpan[]): readonly (readonly TokenSpan[])[] {
    const { leaves } = this.query;
    let open = spans.filter(({ term }) => this.leavesOf(term).includes(0)).map((span): readonly TokenSpan[] => [span]);
    for (let leaf = 1; leaf < leaves.length && open.length > 0; leaf++) {
      const next = new Map<number, TokenSpan[]>();
      for (const span of spans) {
        if (this.leavesOf(span.term).includes(leaf)) next.set(span.ordinal, [...(next.get(span.ordinal) ?? []), span]);
      }
      open = open.flatMap((before) => {
        const { ordinal: wordOffset, width } = before.at(-1)!;
        return (next.get(wordOffset + width) ?? []).map((span) => [...before, span]);
      });
    }
    return leaves.length > 0 ? open : [];
  }

  leavesOf(term: string): readonly number[] {
    let passed = this.#passed.get(term);
    if (passed) return passed;
    passed = this.query.leaves.flatMap((leaf, i) => (passes(leaf, term, this.#stem) ? [i] : []));
    if (this.#passed.size < termsKept) this.#passed.set(term, passed);
    return passed;
  }
}

function isFulfilled(condition: Condition, held: ReadonlySet<number>): boolean {
  if (typeof condition === 'number') return held.has(condition);
  if ('not' in condition) return !isFulfilled(condition.not, held);
  if ('any' in condition) return condition.any.some((each) => isFulfilled(each, held));
  return condition.all.length > 0 && condition.all.every((each) => isFulfilled(each, held));
}

const termsKept = 20_000;
/** Nanoseconds, of words that are met for the first time. */
const characterCost = 100;
