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
  readonly #stemTerm: (term: string) => string;
  /** By term: numbers of the leaves that it satisfies. */
  readonly #leavesByTerm = new Map<string, readonly number[]>();

  constructor(text: string, options: QueryOptions) {
    this.#stemTerm = stemmer(options.rules.language);
    this.query = parseTextQuery(text, options);
  }

  /** The text is searched, or the strings of JSON together. */
  matches(searchedText: string, isJson: boolean): boolean {
    spend(searchedText.length * matchCharacterCost);
    const { leaves, shape } = this.query;
    assert(shape !== 'rarest', 'how rare words are is known of the rows of a type alone');
    const matchedSpans = isJson ? jsonTokenSpans(searchedText) : tokenSpans(searchedText).spans;
    if (shape === 'phrase') return leaves.length > 0 && this.phrases(matchedSpans).length > 0;
    const heldLeaves = new Set(matchedSpans.flatMap(({ term }) => this.leavesOf(term)));
    return shape === 'any' ? heldLeaves.size > 0 : isFulfilled(shape, heldLeaves);
  }

  /** The terms of each place where the phrase stands. */
  phrases(spans: readonly TokenSpan[]): readonly (readonly TokenSpan[])[] {
    const { leaves } = this.query;
    let openPhrases = spans
      .filter(({ term }) => this.leavesOf(term).includes(0))
      .map((termSpan): readonly TokenSpan[] => [termSpan]);
    for (let leaf = 1; leaf < leaves.length && openPhrases.length > 0; leaf++) {
      const nextSpans = new Map<number, TokenSpan[]>();
      for (const termSpan of spans) {
        if (this.leavesOf(termSpan.term).includes(leaf))
          nextSpans.set(termSpan.ordinal, [...(nextSpans.get(termSpan.ordinal) ?? []), termSpan]);
      }
      openPhrases = openPhrases.flatMap((phraseSpans) => {
        const { ordinal: wordOffset, width } = phraseSpans.at(-1)!;
        return (nextSpans.get(wordOffset + width) ?? []).map((span) => [...phraseSpans, span]);
      });
    }
    return leaves.length > 0 ? openPhrases : [];
  }

  leavesOf(term: string): readonly number[] {
    let passedLeaves = this.#leavesByTerm.get(term);
    if (passedLeaves) return passedLeaves;
    passedLeaves = this.query.leaves.flatMap((leaf, i) => (passes(leaf, term, this.#stemTerm) ? [i] : []));
    if (this.#leavesByTerm.size < cachedTermsMax) this.#leavesByTerm.set(term, passedLeaves);
    return passedLeaves;
  }
}

function isFulfilled(matchCondition: Condition, heldLeaves: ReadonlySet<number>): boolean {
  if (typeof matchCondition === 'number') return heldLeaves.has(matchCondition);
  if ('not' in matchCondition) return !isFulfilled(matchCondition.not, heldLeaves);
  if ('any' in matchCondition) return matchCondition.any.some((partCondition) => isFulfilled(partCondition, heldLeaves));
  return matchCondition.all.length > 0 && matchCondition.all.every((partCondition) => isFulfilled(partCondition, heldLeaves));
}

const cachedTermsMax = 20_000;
/** Nanoseconds, of words that are met for the first time. */
const matchCharacterCost = 100;
