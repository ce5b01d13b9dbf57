/** Words of cells, each kept once, and how alike two of them are. Pure. */
import { featuresOf, type NameWord, wordOf } from '../names/name-features.ts';
import { isOneName } from '../names/name-score.ts';
import { distanceOf } from '../names/name-sounds.ts';
import { toLatin } from '../names/transliterate.ts';

/** The most words of a cell that are compared. */
const wordsMax = 32;

/** Words of a person's or a company's name: without titles and legal forms. */
export function wordsOfName(text: string): readonly NameWord[] {
  return featuresOf(text).words;
}

/**
 * Words of any other text: letters of every script become Latin ones. What hyphens, dots and slashes join, as in `DSC-W80`, is one word
 * where it has a digit, and its parts are words too.
 */
export function wordsOfText(text: string): readonly string[] {
  const { text: latin } = toLatin(text);
  const words = new Set<string>();
  for (const [chunk] of latin.matchAll(/[\p{L}\p{N}]+(?:[-./][\p{L}\p{N}]+)*/gu)) {
    const parts = chunk.split(/[-./]/);
    if (parts.length > 1 && /\p{N}/u.test(chunk)) words.add(parts.join(''));
    else for (const part of parts) words.add(part);
    if (words.size >= wordsMax) break;
  }
  return [...words];
}

/** A word with what it is compared by. */
export type Word = NameWord;

export function textWord(text: string): Word {
  // A letter may stand for a word: `A. Reid`, `e. main st`.
  return wordOf(text, /^\d/.test(text) ? 'number' : /^\p{L}$/u.test(text) ? 'initial' : 'word');
}

const distanceWeight = 1.3;
const slipLikenessMin = 0.55;
/** For each letter: further apart, words are not alike. A little more than that, since sums are rounded. */
const distanceMost = (1 - slipLikenessMin) / distanceWeight + 1e-6;

/** 0 to 1; less than half is nothing. */
export function likenessOf(left: Word, right: Word): number {
  const [a, b] = [left.text, right.text];
  if (a === b) return 1;
  const isNumber = left.kind === 'number' || right.kind === 'number';
  if (left.kind === 'initial' || right.kind === 'initial') return !isNumber && a[0] === b[0] && a.length !== b.length ? 0.7 : 0;
  const longer = Math.max(a.length, b.length);
  if (longer < 4) return 0;
  if (left.kind === 'number' && right.kind === 'number') return a.length === b.length && changedLetters(a, b) === 1 ? 0.6 : 0;
  const shorter = Math.min(a.length, b.length);
  const isBeginning = shorter >= 3 && (a.length > b.length ? a.startsWith(b) : b.startsWith(a));
  // Another digit is another model.
  if (isNumber || left.hasDigit || right.hasDigit) return isBeginning && shorter >= 5 ? 0.85 : 0;
  if (isOneName(left, right) !== null) return 0.9;
  if (left.spelling === right.spelling) return 0.95;
  if (isBeginning) return 0.6 + 0.3 * (shorter / longer);
  if (longer - shorter > 2 || (a[0] !== b[0] && a[1] !== b[1] && a[0] !== b[1])) return 0;
  const distance = distanceOf(a, b, distanceMost * longer);
  const likeness = 1 - (distanceWeight * distance) / longer;
  return likeness < slipLikenessMin ? 0 : Math.min(0.95, likeness);
}

/** Places in which two texts of one length differ, two neighbours in each other's place counting once. */
function changedLetters(a: string, b: string): number {
  let changed = 0;
  for (let i = 0; i < a.length; i++) {
    if (a[i] === b[i]) continue;
    changed++;
    if (a[i] === b[i + 1] && a[i + 1] === b[i]) i++;
  }
  return changed;
}
