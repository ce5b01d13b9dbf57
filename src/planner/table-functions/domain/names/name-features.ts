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
const nameWordsMax = 24;

const nameWordWeights: Readonly<Record<WordKind, number>> = {
  word: 1,
  number: 1,
  common: 0.6,
  patronymic: 0.25,
  initial: 0.3,
  particle: 0.15,
};

export function featuresOf(name: string): NameFeatures {
  const { text: latinText, isVowelless } = toLatin(name);
  const plainNameWords = plainWords(name);
  const rawWords = latinNameWords(latinText).flatMap((nameWord) => splitNameWord(nameWord, isVowelless));
  const { rest: wordsWithoutForm, form: legalForm } = withoutLegalForm(rawWords);
  const namedWords = wordsWithoutForm.filter(
    (nameWord) => !honorifics.has(nameWord) && !(nameWord === wordsWithoutForm[0] && shipPrefixes.has(nameWord)),
  );
  // A name of nothing but titles is a name all the same.
  const nameParts = namedWords.length === 0 ? (wordsWithoutForm.length === 0 ? rawWords : wordsWithoutForm) : namedWords;
  const allParticleWords =
    nameParts.filter((nameWord) => !particles.has(nameWord)).length === 0
      ? nameParts.map((nameWord) => wordOf(nameWord, 'word'))
      : null;
  const nameWords = allParticleWords ?? nameParts.map((nameWord) => wordOf(nameWord, nameWordKind(nameWord, legalForm !== null)));
  const areAllCommon = nameWords.every(({ kind }) => kind !== 'word');
  const finalWords = areAllCommon
    ? nameWords.map((nameWord) => (nameWord.kind === 'common' ? { ...nameWord, kind: 'word' as const, weight: 1 } : nameWord))
    : nameWords;
  return { words: distinctNameWords(finalWords).slice(0, nameWordsMax), plain: plainNameWords, form: legalForm, isVowelless };
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
function latinNameWords(latin: string): string[] {
  const undottedName = latin.replaceAll(/['"]/g, '').replaceAll(/\b(\p{L})\.(?=\s?\p{L}\b)/gu, '$1 ');
  const wordTexts = undottedName.match(/[\p{L}\p{N}]+/gu) ?? [];
  return wordTexts.slice(0, 2 * nameWordsMax);
}

/** `abdulrahman`, and the Arabic article, which is written in one with its word. */
function splitNameWord(latinWord: string, isVowelless: boolean): readonly string[] {
  const [, , servantName] = /^(abd[aeuo][lr])(.{4,})$/.exec(latinWord) ?? [];
  if (servantName !== undefined) return ['abd', servantName];
  const [, articleNoun] = (isVowelless && /^al(.{3,})$/.exec(latinWord)) || [];
  return articleNoun === undefined ? [latinWord] : ['al', articleNoun];
}

/** The longest run of words that is a legal form, at the end or the beginning. */
function withoutLegalForm(nameWordsRead: readonly string[]): { rest: readonly string[]; form: string | null } {
  let wordsLeft = nameWordsRead;
  let legalForm: string | null = null;
  for (let hasFoundForm = true; hasFoundForm && wordsLeft.length > 1; ) {
    hasFoundForm = false;
    for (let formWordCount = Math.min(legalFormWordsMax, wordsLeft.length - 1); formWordCount > 0; formWordCount--) {
      const endForm = legalForms.get(wordsLeft.slice(-formWordCount).join(' '));
      const beginForm = legalForms.get(wordsLeft.slice(0, formWordCount).join(' '));
      if (endForm === undefined && beginForm === undefined) continue;
      legalForm = endForm ?? beginForm!;
      wordsLeft = endForm === undefined ? wordsLeft.slice(formWordCount) : wordsLeft.slice(0, -formWordCount);
      hasFoundForm = true;
      break;
    }
  }
  return { rest: wordsLeft, form: legalForm };
}

function nameWordKind(latinWord: string, isCompany: boolean): WordKind {
  if (/^\d/.test(latinWord)) return 'number';
  if (latinWord.length === 1) return 'initial';
  if (particles.has(latinWord) || synonyms.get(latinWord) === 'company' || latinWord === 'company') return 'particle';
  if (/.{3}(ovich|evich|ovych|ovna|evna|ivna|oglu|ogly|kyzy|qizi)$/.test(latinWord)) return 'patronymic';
  return isCompany && commonWords.has(synonyms.get(latinWord) ?? latinWord) ? 'common' : 'word';
}

export function wordOf(wordText: string, kind: WordKind): NameWord {
  const synonymText = kind === 'initial' ? wordText : (synonyms.get(wordText) ?? wordText);
  const spelling = kind === 'number' ? synonymText : spellingOf(synonymText);
  return {
    text: synonymText,
    kind: /^\d/.test(synonymText) ? 'number' : kind,
    weight: nameWordWeights[kind],
    spelling,
    consonants: kind === 'number' ? synonymText : consonantsOf(spelling),
    groups: nicknameGroups(spelling),
    hasDigit: /\d/.test(synonymText),
  };
}

function distinctNameWords(nameWordsRead: readonly NameWord[]): readonly NameWord[] {
  const seenWords = new Set<string>();
  return nameWordsRead.filter(({ text }) => !seenWords.has(text) && seenWords.add(text));
}
