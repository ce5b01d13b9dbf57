/** Words of cells, each kept once, and how alike two of them are. Pure. */
import { featuresOf, type NameWord, wordOf } from '../names/name-features.ts';
import { isOneName } from '../names/name-score.ts';
import { distanceOf } from '../names/name-sounds.ts';
import { toLatin } from '../names/transliterate.ts';

/** The most words of a cell that are compared. */
const textWordsMax = 32;

/** Words of a person's or a company's name: without titles and legal forms. */
export function wordsOfName(text: string): readonly NameWord[] {
  return featuresOf(text).words;
}

/**
 * Words of any other text: letters of every script become Latin ones. What hyphens, dots and slashes join, as in `DSC-W80`, is one word
 * where it has a digit, and its parts are words too.
 */
export function wordsOfText(text: string): readonly string[] {
  const { text: latinText } = toLatin(text);
  const textWords = new Set<string>();
  for (const [wordChunk] of latinText.matchAll(/[\p{L}\p{N}]+(?:[-./][\p{L}\p{N}]+)*/gu)) {
    const chunkParts = wordChunk.split(/[-./]/);
    if (chunkParts.length > 1 && /\p{N}/u.test(wordChunk)) textWords.add(chunkParts.join(''));
    else for (const chunkPart of chunkParts) textWords.add(chunkPart);
    if (textWords.size >= textWordsMax) break;
  }
  return [...textWords];
}

/** A word with what it is compared by. */
export type Word = NameWord;

export function textWord(wordText: string): Word {
  // A letter may stand for a word: `A. Reid`, `e. main st`.
  return wordOf(wordText, /^\d/.test(wordText) ? 'number' : /^\p{L}$/u.test(wordText) ? 'initial' : 'word');
}

const letterDistanceWeight = 1.3;
const slippedWordMin = 0.55;
/** For each letter: further apart, words are not alike. A little more than that, since sums are rounded. */
const letterDistanceMost = (1 - slippedWordMin) / letterDistanceWeight + 1e-6;

/** 0 to 1; less than half is nothing. */
export function likenessOf(leftWord: Word, rightWord: Word): number {
  const [leftText, rightText] = [leftWord.text, rightWord.text];
  if (leftText === rightText) return 1;
  const isAnyNumber = leftWord.kind === 'number' || rightWord.kind === 'number';
  if (leftWord.kind === 'initial' || rightWord.kind === 'initial')
    return !isAnyNumber && leftText[0] === rightText[0] && leftText.length !== rightText.length ? 0.7 : 0;
  const longerLength = Math.max(leftText.length, rightText.length);
  if (longerLength < 4) return 0;
  if (leftWord.kind === 'number' && rightWord.kind === 'number')
    return leftText.length === rightText.length && changedLetterCount(leftText, rightText) === 1 ? 0.6 : 0;
  const shorterLength = Math.min(leftText.length, rightText.length);
  const isWordBeginning =
    shorterLength >= 3 && (leftText.length > rightText.length ? leftText.startsWith(rightText) : rightText.startsWith(leftText));
  // Another digit is another model.
  if (isAnyNumber || leftWord.hasDigit || rightWord.hasDigit) return isWordBeginning && shorterLength >= 5 ? 0.85 : 0;
  if (isOneName(leftWord, rightWord) !== null) return 0.9;
  if (leftWord.spelling === rightWord.spelling) return 0.95;
  if (isWordBeginning) return 0.6 + 0.3 * (shorterLength / longerLength);
  if (
    longerLength - shorterLength > 2 ||
    (leftText[0] !== rightText[0] && leftText[1] !== rightText[1] && leftText[0] !== rightText[1])
  )
    return 0;
  const letterDistance = distanceOf(leftText, rightText, letterDistanceMost * longerLength);
  const wordLikeness = 1 - (letterDistanceWeight * letterDistance) / longerLength;
  return wordLikeness < slippedWordMin ? 0 : Math.min(0.95, wordLikeness);
}

/** Places in which two texts of one length differ, two neighbours in each other's place counting once. */
function changedLetterCount(leftText: string, rightText: string): number {
  let changedCount = 0;
  for (let i = 0; i < leftText.length; i++) {
    if (leftText[i] === rightText[i]) continue;
    changedCount++;
    if (leftText[i] === rightText[i + 1] && leftText[i + 1] === rightText[i]) i++;
  }
  return changedCount;
}
