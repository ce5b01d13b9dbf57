/** Stems of words by Snowball's rules, each word once. */
import { createRequire } from 'node:module';
import { LRUCache } from 'lru-cache';

interface Stemmers {
  newStemmer(language: string): { stem(word: string): string };
}

const require = createRequire(import.meta.url);
let snowballLibrary: Stemmers | undefined;

/** Stemming takes 12 µs a word. */
const stemsCachedMax = 100_000;
const stemmers = new Map<string, (word: string) => string>();

/** The stemmer of one of `textLanguages`. */
export function stemmer(stemLanguage: string): (unstemmedWord: string) => string {
  const knownStemmer = stemmers.get(stemLanguage);
  if (knownStemmer) return knownStemmer;
  if (stemLanguage === 'none') return (unstemmedWord) => unstemmedWord;
  const { stem } = prepareStemmer(stemLanguage);
  stemmers.set(stemLanguage, stem);
  return stem;
}

function prepareStemmer(language: string): { stem: (unstemmedWord: string) => string } {
  const snowballStemmer = (snowballLibrary ??= require('snowball-stemmers') as Stemmers).newStemmer(language);
  const stemCache = new LRUCache<string, string>({ max: stemsCachedMax });
  return {
    stem: (word) => {
      let stem = stemCache.get(word);
      if (stem === undefined) stemCache.set(word, (stem = snowballStemmer.stem(word)));
      return stem;
    },
  };
}
