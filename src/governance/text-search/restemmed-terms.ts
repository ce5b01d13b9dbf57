/**
 * Terms of an index by their stems in another language than it was made with: a tenant's, a type's, or one of an earlier time.
 * Computed in steps, since a stem takes some microseconds, and cached for as long as the index lives.
 */
import { stemmer } from '../../projections/rows/indexes/text/stems.ts';
import type { TextIndex } from '../../projections/rows/indexes/text/text-index.ts';

type TermsByStem = ReadonlyMap<string, readonly number[]>;

const termsPerStemStep = 256;
const stemsByIndex = new WeakMap<TextIndex, Map<string, TermsByStem>>();

/** Must finish before `termsOfStem` is called. */
export function* stemTerms(index: TextIndex, language: string): Generator<undefined, void> {
  let stemsByLanguage = stemsByIndex.get(index);
  if (!stemsByLanguage) stemsByIndex.set(index, (stemsByLanguage = new Map()));
  if (stemsByLanguage.has(language)) return;
  const stem = stemmer(language);
  const stems = new Map<string, number[]>();
  for (let term = 0; term < index.terms; term++) {
    const termStem = stem(index.term(term));
    const sameStemTerms = stems.get(termStem);
    if (sameStemTerms) sameStemTerms.push(term);
    else stems.set(termStem, [term]);
    if (term % termsPerStemStep === termsPerStemStep - 1) yield;
  }
  stemsByLanguage.set(language, stems);
}

export function termsOfStem(index: TextIndex, language: string, stem: string): readonly number[] {
  const stemmedTerms = stemsByIndex.get(index)?.get(language);
  if (stemmedTerms) return stemmedTerms.get(stem) ?? [];
  for (const _ of stemTerms(index, language)) continue;
  return termsOfStem(index, language, stem);
}
