/**
 * Terms of an index by their stems in another language than it was made with: a tenant's, a type's, or one of an earlier time.
 * Made in steps, since a stem takes some microseconds, and kept for as long as the index is.
 */
import { stemmer } from '../../projections/rows/indexes/text/stems.ts';
import type { TextIndex } from '../../projections/rows/indexes/text/text-index.ts';

type Stems = ReadonlyMap<string, readonly number[]>;

const termsAtOnce = 256;
const stemsByIndex = new WeakMap<TextIndex, Map<string, Stems>>();

/** Must finish before `termsOfStem` is called. */
export function* stemTerms(index: TextIndex, language: string): Generator<undefined, void> {
  let languages = stemsByIndex.get(index);
  if (!languages) stemsByIndex.set(index, (languages = new Map()));
  if (languages.has(language)) return;
  const stem = stemmer(language);
  const stems = new Map<string, number[]>();
  for (let term = 0; term < index.terms; term++) {
    const own = stem(index.term(term));
    const others = stems.get(own);
    if (others) others.push(term);
    else stems.set(own, [term]);
    if (term % termsAtOnce === termsAtOnce - 1) yield;
  }
  languages.set(language, stems);
}

export function termsOfStem(index: TextIndex, language: string, stem: string): readonly number[] {
  const known = stemsByIndex.get(index)?.get(language);
  if (known) return known.get(stem) ?? [];
  for (const _ of stemTerms(index, language)) continue;
  return termsOfStem(index, language, stem);
}
