/** Stems of words by Snowball's rules, each word once. */
import { createRequire } from 'node:module';
import { LRUCache } from 'lru-cache';

interface Stemmers {
  newStemmer(language: string): { stem(word: string): string };
}

const require = createRequire(import.meta.url);
let library: Stemmers | undefined;

/** Stemming takes 12 µs a word. */
const wordsKept = 100_000;
const stemmers = new Map<string, (word: string) => string>();

/** The stemmer of one of `textLanguages`. */
export function stemmer(language: string): (word: string) => string {
  const known = stemmers.get(language);
  if (known) return known;
  if (language === 'none') return (word) => word;
  const { stem } = prepareStemmer(language);
  stemmers.set(language, stem);
  return stem;
}

function prepareStemmer(language: string): { stem: (word: string) => string } {
  const own = (library ??= require('snowball-stemmers') as Stemmers).newStemmer(language);
  const cache = new LRUCache<string, string>({ max: wordsKept });
  return {
    stem: (word) => {
      let stem = cache.get(word);
      if (stem === undefined) cache.set(word, (stem = own.stem(word)));
      return stem;
    },
  };
}
