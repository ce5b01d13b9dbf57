/**
 * The words that a name is compared by. Titles go, forms of companies become what they say, letters of every script become Latin ones,
 * and each word that is left carries its weight, its sound and the names that stand for it. Pure.
 */
import {
  commonWords,
  honorifics,
  type NameGroup,
  legalForms,
  legalFormWordsMax,
  nicknameGroups,
  particles,
  shipPrefixes,
  synonyms,
} from './name-tables.ts';
import { consonantsOf, spellingOf } from './name-sounds.ts';
import { toLatin } from './transliterate.ts';

export type WordKind = 'word' | 'initial' | 'number' | 'particle' | 'patronymic' | 'common';

export interface NameWord {
  readonly text: string;
  readonly kind: WordKind;
  /** Its weight where the other name does not have it. */
  readonly weight: number;
  /** One spelling for letters that are written in several ways. */
  readonly spelling: string;
  /** The spelling without its vowels, but for a first one. */
  readonly consonants: string;
  readonly groups: readonly NameGroup[];
  readonly hasDigit: boolean;
}

export interface NameFeatures {
  readonly words: readonly NameWord[];
  /** Words as they were written, for the plain Jaccard. */
  readonly plain: ReadonlySet<string>;
  /** The meaning of the legal form; null where none is written. */
  readonly form: string | null;
  readonly isVowelless: boolean;
}

/** The most words of a name: a longer one is a text, and the rest is left out. */
const wordsMax = 24;

const weights: Readonly<Record<WordKind, number>> = {
  word: 1,
  number: 1,
  common: 0.6,
  patronymic: 0.25,
  initial: 0.3,
  particle: 0.15,
};

export function featuresOf(name: string): NameFeatures {
  const { text, isVowelless } = toLatin(name);
  const plain = plainWords(name);
  const raw = words(text).flatMap((word) => splitWord(word, isVowelless));
  const { rest, form } = withoutForm(raw);
  const named = rest.filter((word) => !honorifics.has(word) && !(word === rest[0] && shipPrefixes.has(word)));
  // A name of nothing but titles is a name all the same.
  const nameParts = named.length === 0 ? (rest.length === 0 ? raw : rest) : named;
  const whole =
    nameParts.filter((word) => !particles.has(word)).length === 0 ? nameParts.map((word) => wordOf(word, 'word')) : null;
  const nameWords = whole ?? nameParts.map((word) => wordOf(word, kindOf(word, form !== null)));
  const isAllCommon = nameWords.every(({ kind }) => kind !== 'word');
  const final = isAllCommon
    ? nameWords.map((word) => (word.kind === 'common' ? { ...word, kind: 'word' as const, weight: 1 } : word))
    : nameWords;
  return { words: distinct(final).slice(0, wordsMax), plain, form, isVowelless };
}

/** Lower-case words between anything that is no letter and no digit. */
export function plainWords(name: string): ReadonlySet<string> {
  return new Set(
    name
      .normalize('NFC')
      .toLowerCase()
      .match(/[\p{L}\p{M}\p{N}]+/gu) ?? [],
  );
}

/** Dots and apostrophes within a word belong to it; letters with dots behind them are one abbreviation until they are split. */
function words(latin: string): string[] {
  const undotted = latin.replaceAll(/['"]/g, '').replaceAll(/\b(\p{L})\.(?=\s?\p{L}\b)/gu, '$1 ');
  const wordTexts = undotted.match(/[\p{L}\p{N}]+/gu) ?? [];
  return wordTexts.slice(0, 2 * wordsMax);
}

/** `abdulrahman`, and the Arabic article, which is written in one with its word. */
function splitWord(word: string, isVowelless: boolean): readonly string[] {
  const [, , servant] = /^(abd[aeuo][lr])(.{4,})$/.exec(word) ?? [];
  if (servant !== undefined) return ['abd', servant];
  const [, noun] = (isVowelless && /^al(.{3,})$/.exec(word)) || [];
  return noun === undefined ? [word] : ['al', noun];
}

/** The longest run of words that is a legal form, at the end or the beginning. */
function withoutForm(all: readonly string[]): { rest: readonly string[]; form: string | null } {
  let rest = all;
  let form: string | null = null;
  for (let again = true; again && rest.length > 1; ) {
    again = false;
    for (let count = Math.min(legalFormWordsMax, rest.length - 1); count > 0; count--) {
      const end = legalForms.get(rest.slice(-count).join(' '));
      const begin = legalForms.get(rest.slice(0, count).join(' '));
      if (end === undefined && begin === undefined) continue;
      form = end ?? begin!;
      rest = end === undefined ? rest.slice(count) : rest.slice(0, -count);
      again = true;
      break;
    }
  }
  return { rest, form };
}

function kindOf(word: string, isCompany: boolean): WordKind {
  if (/^\d/.test(word)) return 'number';
  if (word.length === 1) return 'initial';
  if (particles.has(word) || synonyms.get(word) === 'company' || word === 'company') return 'particle';
  if (/.{3}(ovich|evich|ovych|ovna|evna|ivna|oglu|ogly|kyzy|qizi)$/.test(word)) return 'patronymic';
  return isCompany && commonWords.has(synonyms.get(word) ?? word) ? 'common' : 'word';
}

export function wordOf(wordText: string, kind: WordKind): NameWord {
  const text = kind === 'initial' ? wordText : (synonyms.get(wordText) ?? wordText);
  const spelling = kind === 'number' ? text : spellingOf(text);
  return {
    text,
    kind: /^\d/.test(text) ? 'number' : kind,
    weight: weights[kind],
    spelling,
    consonants: kind === 'number' ? text : consonantsOf(spelling),
    groups: nicknameGroups(spelling),
    hasDigit: /\d/.test(text),
  };
}

function distinct(all: readonly NameWord[]): readonly NameWord[] {
  const seen = new Set<string>();
  return all.filter(({ text }) => !seen.has(text) && seen.add(text));
}
