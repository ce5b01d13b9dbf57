/**
 * Sentiment by VADER: words, rules and constants are those of the package `vader-sentiment`, which is loaded with its first use. It is made
 * for sentences, so a long text is given to it in pieces, and a word no longer than any that it knows. It finds the words between signs by
 * writing every word with every sign: here they are found without that, and its rules are asked about each.
 */
import { createRequire } from 'node:module';
import type { Steps } from '../../../graph/stepped-sort.ts';

export interface Sentiment {
  /** From −1 to 1; null where no word is known. */
  readonly compound: number | null;
  /** Words that are known, without those that stand there again: as many as were asked for at most. */
  readonly words: readonly string[];
}

/** Longer texts are scored in pieces, each of which takes about a millisecond. */
export const pieceLettersMax = 600;
/** VADER's longest word has 18 letters; its test for capitals takes time by the third power of a word's length. */
const vaderWordLettersMax = 32;

/** The mean of the pieces that have a known word: a text of up to `pieceLettersMax` characters has VADER's own score. */
export function* sentimentOf(text: string, wordsMax = 0): Steps<Sentiment> {
  const sentimentWords = new Set<string>();
  let compoundSum = 0;
  let scoredPieceCount = 0;
  for (const textPiece of piecesOf(text)) {
    const { compound, known: knownWords } = vaderScore(readableForVader(textPiece));
    if (knownWords.length > 0) {
      compoundSum += compound;
      scoredPieceCount++;
      for (const knownWord of knownWords) if (sentimentWords.size < wordsMax) sentimentWords.add(plainSentimentWord(knownWord));
    }
    yield;
  }
  return scoredPieceCount === 0
    ? { compound: null, words: [] }
    : { compound: compoundSum / scoredPieceCount, words: [...sentimentWords] };
}

/** Parts of a text of at most `pieceLettersMax` characters, cut behind a sentence, else behind a word. */
export function* piecesOf(text: string): Generator<string, void> {
  for (let pieceStart = 0; pieceStart < text.length; ) {
    const nextLetters = text.slice(pieceStart, pieceStart + pieceLettersMax);
    const isLastPiece = pieceStart + pieceLettersMax >= text.length;
    const [piece] = isLastPiece
      ? [nextLetters]
      : (/^[^]*[.!?\n]\s/.exec(nextLetters) ?? /^[^]*\s/.exec(nextLetters) ?? [nextLetters]);
    yield piece;
    pieceStart += piece.length;
  }
}

/** Clauses of a piece, which stand for themselves. */
export function clausesOf(piece: string): readonly string[] {
  return piece.split(/[.;!?\n]+|,\s|\s(?:but|while|whereas|although|though|however)\s/u).filter((clause) => clause.trim() !== '');
}

/** The text in VADER's signs: it knows one apostrophe, and emoticons for emoji. */
function readableForVader(piece: string): string {
  return piece
    .replaceAll('’', "'")
    .replaceAll(/\p{Extended_Pictographic}/gu, (sign) => (gladSigns.has(sign) ? ' :) ' : sorrySigns.has(sign) ? ' :( ' : sign))
    .replaceAll(/\S+/g, (word) => word.slice(0, vaderWordLettersMax));
}

const gladSigns = new Set('😍❤🥰😊😀😃😄😁🙂🎉👏👍💖😂');
const sorrySigns = new Set('😢😭💔👎😡😠🤮🙁😞😱');

function vaderScore(scoredText: string): { readonly compound: number; readonly known: readonly string[] } {
  const bareTokens = new Set(scoredText.replaceAll(punctuationMarks, '').split(/\s/));
  const vaderWords = scoredText
    .split(/\s/)
    .flatMap((vaderWord) => (vaderWord.length > 1 ? [wordWithoutSigns(vaderWord, bareTokens)] : []));
  const capitalCount = vaderWords.filter((vaderWord) => capitalWord.test(vaderWord)).length;
  const vaderSentence: VaderSentence = {
    words_and_emoticons: vaderWords,
    is_cap_diff: capitalCount > 0 && capitalCount < vaderWords.length,
  };
  const { SentimentIntensityAnalyzer: vaderRules } = vader();
  let wordValences: number[] = [];
  const knownWords: string[] = [];
  for (const [i, token] of vaderWords.entries()) {
    wordValences = vaderRules.sentiment_valence(0, vaderSentence, token, i, wordValences);
    if (wordValences[i] === 0) continue;
    const isKindOf = token.toLowerCase() === 'kind' && vaderWords[i + 1]?.toLowerCase() === 'of';
    if (isKindOf || isStrengtheningWord(token.toLowerCase())) wordValences[i] = 0;
    else knownWords.push(token);
  }
  return {
    compound: vaderRules.score_valence(vaderRules.but_check(vaderWords, wordValences), scoredText).compound,
    known: knownWords,
  };
}

const punctuationMarks = /[!"#$%&'()*+,-./:;<=>?@[\\\]^_`{|}~]/g;
const punctuationSigns = [...'.!?,;:-\'"'.split(''), '!!', '!!!', '??', '???', '?!?', '!?!', '?!?!', '!?!?'];
const capitalWord = /^[^a-z]*[A-Z]+[^a-z]*$/;

/** The word within one sign before it or behind it. */
function wordWithoutSigns(signedWord: string, tokens: ReadonlySet<string>): string {
  if (tokens.has(signedWord)) return signedWord;
  for (const punctuationSign of punctuationSigns) {
    const bareWord = signedWord.endsWith(punctuationSign)
      ? signedWord.slice(0, -punctuationSign.length)
      : signedWord.startsWith(punctuationSign)
        ? signedWord.slice(punctuationSign.length)
        : '';
    if (bareWord.length > 1 && tokens.has(bareWord)) return bareWord;
  }
  return signedWord;
}

/** By word that has a value of its own, whether it counts for what it strengthens alone. */
const strengtheningWords = new Map<string, boolean>();
function isStrengtheningWord(word: string): boolean {
  let isKnownStrengthening = strengtheningWords.get(word);
  if (isKnownStrengthening === undefined) {
    const { pos, neg } = vader().SentimentIntensityAnalyzer.polarity_scores(word);
    strengtheningWords.set(word, (isKnownStrengthening = pos === 0 && neg === 0));
  }
  return isKnownStrengthening;
}

function plainSentimentWord(word: string): string {
  const [wordLetters] = /\p{L}.*\p{L}/u.exec(word) ?? [word];
  return wordLetters.toLowerCase();
}

interface VaderSentence {
  readonly words_and_emoticons: readonly string[];
  /** Some words are in capitals, and others not. */
  readonly is_cap_diff: boolean;
}

interface VaderLibrary {
  readonly SentimentIntensityAnalyzer: {
    polarity_scores(text: string): { readonly pos: number; readonly neg: number };
    /** Appends the value of one word as those around it make it. */
    sentiment_valence(valence: 0, sentence: VaderSentence, word: string, index: number, valences: number[]): number[];
    but_check(words: readonly string[], valences: number[]): number[];
    score_valence(valences: readonly number[], text: string): { readonly compound: number };
  };
}

const require = createRequire(import.meta.url);
let loadedVader: VaderLibrary | undefined;
function vader(): VaderLibrary {
  return (loadedVader ??= require('vader-sentiment') as VaderLibrary);
}
