/**
 * Sentiment by VADER: words, rules and constants are those of the package `vader-sentiment`, which is loaded with its first use. It is made
 * for sentences and compares each word with each, so a long text is given to it in pieces, and a word no longer than any that it knows.
 */
import { createRequire } from 'node:module';
import type { Steps } from '../../../graph/steps.ts';

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
    const written = readable(piece);
    const { compound, isKnown } = score(written);
    if (isKnown) {
      sum += compound;
      count++;
      for (const word of written.split(/\s+/)) if (words.size < wordsMax && score(word).isKnown) words.add(plain(word));
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

function score(text: string): { readonly compound: number; readonly isKnown: boolean } {
  const { pos, neg, compound } = vader().polarity_scores(text);
  // Its shares have three digits: a known word is more than that of any piece.
  return { compound, isKnown: pos > 0 || neg > 0 };
}

function plain(word: string): string {
  const [letters] = /\p{L}.*\p{L}/u.exec(word) ?? [word];
  return letters.toLowerCase();
}

interface Vader {
  polarity_scores(text: string): { readonly pos: number; readonly neg: number; readonly compound: number };
}

const require = createRequire(import.meta.url);
let analyzer: Vader | undefined;
function vader(): Vader {
  return (analyzer ??= (require('vader-sentiment') as { readonly SentimentIntensityAnalyzer: Vader }).SentimentIntensityAnalyzer);
}
