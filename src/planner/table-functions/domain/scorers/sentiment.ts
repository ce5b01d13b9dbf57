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
const wordLettersMax = 32;

/** The mean of the pieces that have a known word: a text of up to `pieceLettersMax` characters has VADER's own score. */
export function* sentimentOf(text: string, wordsMax = 0): Steps<Sentiment> {
  const words = new Set<string>();
  let sum = 0;
  let count = 0;
  for (const piece of piecesOf(text)) {
    const { compound, known } = score(readable(piece));
    if (known.length > 0) {
      sum += compound;
      count++;
      for (const word of known) if (words.size < wordsMax) words.add(plain(word));
    }
    yield;
  }
  return count === 0 ? { compound: null, words: [] } : { compound: sum / count, words: [...words] };
}

/** Parts of a text of at most `pieceLettersMax` characters, cut behind a sentence, else behind a word. */
export function* piecesOf(text: string): Generator<string, void> {
  for (let at = 0; at < text.length; ) {
    const next = text.slice(at, at + pieceLettersMax);
    const isLast = at + pieceLettersMax >= text.length;
    const [piece] = isLast ? [next] : (/^[^]*[.!?\n]\s/.exec(next) ?? /^[^]*\s/.exec(next) ?? [next]);
    yield piece;
    at += piece.length;
  }
}

/** Clauses of a piece, which stand for themselves. */
export function clausesOf(piece: string): readonly string[] {
  return piece.split(/[.;!?\n]+|,\s|\s(?:but|while|whereas|although|though|however)\s/u).filter((clause) => clause.trim() !== '');
}

/** The text in VADER's signs: it knows one apostrophe, and emoticons for emoji. */
function readable(piece: string): string {
  return piece
    .replaceAll('’', "'")
    .replaceAll(/\p{Extended_Pictographic}/gu, (sign) => (glad.has(sign) ? ' :) ' : sorry.has(sign) ? ' :( ' : sign))
    .replaceAll(/\S+/g, (word) => word.slice(0, wordLettersMax));
}

const glad = new Set('😍❤🥰😊😀😃😄😁🙂🎉👏👍💖😂');
const sorry = new Set('😢😭💔👎😡😠🤮🙁😞😱');

function score(text: string): { readonly compound: number; readonly known: readonly string[] } {
  const bareTokens = new Set(text.replaceAll(marks, '').split(/\s/));
  const tokens = text.split(/\s/).flatMap((token) => (token.length > 1 ? [bareOf(token, bareTokens)] : []));
  const capitals = tokens.filter((token) => isCapital.test(token)).length;
  const sentence: Sentence = { words_and_emoticons: tokens, is_cap_diff: capitals > 0 && capitals < tokens.length };
  const { SentimentIntensityAnalyzer: rules } = vader();
  let valences: number[] = [];
  const known: string[] = [];
  for (const [i, token] of tokens.entries()) {
    valences = rules.sentiment_valence(0, sentence, token, i, valences);
    if (valences[i] === 0) continue;
    const isWeakened = token.toLowerCase() === 'kind' && tokens[i + 1]?.toLowerCase() === 'of';
    if (isWeakened || strengthens(token.toLowerCase())) valences[i] = 0;
    else known.push(token);
  }
  return { compound: rules.score_valence(rules.but_check(tokens, valences), text).compound, known };
}

const marks = /[!"#$%&'()*+,-./:;<=>?@[\\\]^_`{|}~]/g;
const signs = [...'.!?,;:-\'"'.split(''), '!!', '!!!', '??', '???', '?!?', '!?!', '?!?!', '!?!?'];
const isCapital = /^[^a-z]*[A-Z]+[^a-z]*$/;

/** The word within one sign before it or behind it. */
function bareOf(token: string, tokens: ReadonlySet<string>): string {
  if (tokens.has(token)) return token;
  for (const sign of signs) {
    const bare = token.endsWith(sign) ? token.slice(0, -sign.length) : token.startsWith(sign) ? token.slice(sign.length) : '';
    if (bare.length > 1 && tokens.has(bare)) return bare;
  }
  return token;
}

/** By word that has a value of its own, whether it counts for what it strengthens alone. */
const strengthening = new Map<string, boolean>();
function strengthens(word: string): boolean {
  let known = strengthening.get(word);
  if (known === undefined) {
    const { pos, neg } = vader().SentimentIntensityAnalyzer.polarity_scores(word);
    strengthening.set(word, (known = pos === 0 && neg === 0));
  }
  return known;
}

function plain(word: string): string {
  const [letters] = /\p{L}.*\p{L}/u.exec(word) ?? [word];
  return letters.toLowerCase();
}

interface Sentence {
  readonly words_and_emoticons: readonly string[];
  /** Some words are in capitals, and others not. */
  readonly is_cap_diff: boolean;
}

interface Vader {
  readonly SentimentIntensityAnalyzer: {
    polarity_scores(text: string): { readonly pos: number; readonly neg: number };
    /** Appends the value of one word as those around it make it. */
    sentiment_valence(valence: 0, sentence: Sentence, word: string, index: number, valences: number[]): number[];
    but_check(words: readonly string[], valences: number[]): number[];
    score_valence(valences: readonly number[], text: string): { readonly compound: number };
  };
}

const require = createRequire(import.meta.url);
let loaded: Vader | undefined;
function vader(): Vader {
  return (loaded ??= require('vader-sentiment') as Vader);
}
