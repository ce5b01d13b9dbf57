/**
 * How alike two names are: Jaccard over words, where a word may also be matched by one that stands for it or sounds like it, for
 * what that is worth. Where all words are plain ones, equal or not at all alike, it is the textbook's Jaccard.
 *
 *   score = Σ matched / (Σ weights left + Σ weights right − Σ matched)
 */
import { changesOf, distanceOf, slipOf } from './name-sounds.ts';
import { type NameFeatures, type NameWord, plainWords, wordOf } from './name-features.ts';

export interface NameMatch {
  readonly score: number;
  readonly plainJaccard: number;
  /** The matched words and how they match: `word:smith`, `nickname:bob=robert`, `sound:…`, `letters:…`, `initial:j=john`, `form:limited`. */
  readonly features: readonly string[];
}

interface NameWordPair {
  readonly left: number;
  readonly right: number;
  readonly worth: number;
  readonly how: string;
}

export const worths = {
  spelling: 0.95,
  nickname: 0.9,
  /** Beside one other word that is the same, it is not enough for the usual threshold. */
  translation: 0.7,
  vowelless: 0.88,
  initial: 0.85,
  /** Beside one other word that is the same, it is enough for the usual threshold. */
  slip: 0.72,
  letterCost: 1.6,
  least: 0.6,
  formDiffers: 0.97,
};

export function matchNames(leftName: NameFeatures, rightName: NameFeatures): NameMatch {
  const [leftWords, rightWords] = joinBothNames(leftName.words, rightName.words);
  const isVowelless = leftName.isVowelless || rightName.isVowelless;
  const wordPairs: NameWordPair[] = [];
  leftWords.forEach((leftWord, i) => {
    rightWords.forEach((rightWord, j) => {
      const wordLikeness = nameWordLikeness(leftWord, rightWord, isVowelless);
      if (wordLikeness !== null) wordPairs.push({ left: i, right: j, ...wordLikeness });
    });
  });
  // The best pair first; an initial says something beside a word only.
  wordPairs.sort(
    (onePair, otherPair) => otherPair.worth - onePair.worth || onePair.left - otherPair.left || onePair.right - otherPair.right,
  );
  const takenLeftWords = new Set<number>();
  const takenRightWords = new Set<number>();
  let matchedWeight = 0;
  let leftWeight = 0;
  let rightWeight = 0;
  const matchFeatures: string[] = [];
  let hasMatchedWord = false;
  for (const wordPair of wordPairs) {
    if (takenLeftWords.has(wordPair.left) || takenRightWords.has(wordPair.right)) continue;
    const [leftWord, rightWord] = [leftWords[wordPair.left]!, rightWords[wordPair.right]!];
    const isAnyInitial = leftWord.kind === 'initial' || rightWord.kind === 'initial';
    if (isAnyInitial && !hasMatchedWord && leftWord.text !== rightWord.text) continue;
    if (!isAnyInitial && leftWord.kind !== 'particle') hasMatchedWord = true;
    takenLeftWords.add(wordPair.left);
    takenRightWords.add(wordPair.right);
    const pairWeight = Math.max(leftWord.weight, rightWord.weight);
    matchedWeight += wordPair.worth * pairWeight;
    leftWeight += pairWeight;
    rightWeight += pairWeight;
    matchFeatures.push(
      leftWord.text === rightWord.text ? `word:${leftWord.text}` : `${wordPair.how}:${leftWord.text}=${rightWord.text}`,
    );
  }
  leftWords.forEach((nameWord, i) => (leftWeight += takenLeftWords.has(i) ? 0 : nameWord.weight));
  rightWords.forEach((nameWord, j) => (rightWeight += takenRightWords.has(j) ? 0 : nameWord.weight));
  const unionWeight = leftWeight + rightWeight - matchedWeight;
  let nameScore = unionWeight === 0 || !hasMatchedWord ? 0 : matchedWeight / unionWeight;
  if (leftName.form !== null && rightName.form !== null) {
    matchFeatures.push(leftName.form === rightName.form ? `form:${leftName.form}` : `form:${leftName.form}≠${rightName.form}`);
    if (leftName.form !== rightName.form) nameScore *= worths.formDiffers;
  }
  return { score: nameScore, plainJaccard: jaccard(leftName.plain, rightName.plain), features: matchFeatures };
}

/** The Jaccard index of two sets of words, as textbooks have it. */
export function jaccard(leftWords: ReadonlySet<string>, rightWords: ReadonlySet<string>): number {
  let sharedCount = 0;
  for (const leftWord of leftWords) if (rightWords.has(leftWord)) sharedCount++;
  const unionCount = leftWords.size + rightWords.size - sharedCount;
  return unionCount === 0 ? 0 : sharedCount / unionCount;
}

export function plainJaccard(left: string, right: string): number {
  return jaccard(plainWords(left), plainWords(right));
}

function nameWordLikeness(
  leftWord: NameWord,
  rightWord: NameWord,
  isVowelless: boolean,
): Pick<NameWordPair, 'worth' | 'how'> | null {
  if (leftWord.text === rightWord.text) return { worth: 1, how: 'word' };
  if (leftWord.kind === 'number' || rightWord.kind === 'number') return null;
  if (leftWord.kind === 'initial' || rightWord.kind === 'initial') {
    const isInitialLetter =
      leftWord.kind === 'initial' ? rightWord.text.startsWith(leftWord.text) : leftWord.text.startsWith(rightWord.text);
    return isInitialLetter && leftWord.kind !== rightWord.kind && leftWord.kind !== 'particle' && rightWord.kind !== 'particle'
      ? { worth: worths.initial, how: 'initial' }
      : null;
  }
  if (leftWord.kind === 'particle' || rightWord.kind === 'particle') {
    return leftWord.kind === rightWord.kind && leftWord.consonants === rightWord.consonants ? { worth: 0.9, how: 'sound' } : null;
  }
  const nameFamily = isOneName(leftWord, rightWord);
  if (nameFamily === 'nickname') return { worth: worths.nickname, how: nameFamily };
  if (leftWord.spelling === rightWord.spelling) return { worth: worths.spelling, how: 'sound' };
  if (isVowelless) {
    const [bareConsonants, otherBareConsonants] = [bareOf(leftWord.consonants), bareOf(rightWord.consonants)];
    if (bareConsonants === otherBareConsonants && bareConsonants.length > 1) return { worth: worths.vowelless, how: 'sound' };
  }
  const letterLikeness = likenessByLetters(leftWord, rightWord);
  const isTranslatedName = nameFamily !== null && worths.translation > (letterLikeness?.worth ?? 0);
  return isTranslatedName ? { worth: worths.translation, how: 'translation' } : letterLikeness;
}

function likenessByLetters(leftWord: NameWord, rightWord: NameWord): Pick<NameWordPair, 'worth' | 'how'> | null {
  const letterSlip = slipOf(leftWord.text, rightWord.text);
  const slipWorth =
    letterSlip === null
      ? 0
      : letterSlip === 'turned' || Math.max(leftWord.text.length, rightWord.text.length) > 3
        ? worths.slip
        : worths.least;
  if (!areConsonantsNear(leftWord.consonants, rightWord.consonants))
    return letterSlip === null ? null : { worth: slipWorth, how: 'letters' };
  const spellingLength = Math.max(leftWord.spelling.length, rightWord.spelling.length);
  const spellingDistance = Math.min(distanceOf(leftWord.spelling, rightWord.spelling), distanceOf(leftWord.text, rightWord.text));
  const letterCost = (spellingDistance * worths.letterCost * (spellingLength < 5 ? 2 : 1)) / spellingLength;
  const letterWorth = Math.max(slipWorth, Math.min(worths.spelling, 1 - letterCost));
  return letterWorth < worths.least
    ? null
    : { worth: letterWorth, how: leftWord.consonants === rightWord.consonants ? 'sound' : 'letters' };
}

/** Whether one stands for the other, by a short form or by one in another language. */
export function isOneName({ groups }: NameWord, { groups: otherGroups }: NameWord): 'nickname' | 'translation' | null {
  let matchKind: 'translation' | null = null;
  for (const { forms, family } of groups) {
    for (const otherGroup of otherGroups) {
      if (forms === otherGroup.forms) return 'nickname';
      if (family === otherGroup.family) matchKind = 'translation';
    }
  }
  return matchKind;
}

/** Letters that a script without vowels may write for one go as well. */
export function bareOf(consonants: string): string {
  return consonants.replaceAll(/(?!^)[vyj]|h$/g, '').replace(/[^a]a/g, (pair) => pair[0]!);
}

function areConsonantsNear(leftConsonants: string, rightConsonants: string): boolean {
  if (leftConsonants === rightConsonants) return true;
  if (Math.abs(leftConsonants.length - rightConsonants.length) > 1) return false;
  const consonantChanges = new Set(changesOf(leftConsonants));
  return changesOf(rightConsonants).some((changedConsonants) => consonantChanges.has(changedConsonants));
}

/** Words that are one in the other name: `abdul rahman` beside `abdulrahman`. */
function joinBothNames(
  leftWords: readonly NameWord[],
  rightWords: readonly NameWord[],
): [readonly NameWord[], readonly NameWord[]] {
  return [joinedLikeOther(leftWords, rightWords), joinedLikeOther(rightWords, leftWords)];
}

const joinedNameWordsMax = 3;

/** The words that neighbours make together. */
export function joinsOf(words: readonly NameWord[]): readonly NameWord[] {
  const joinedWords: NameWord[] = [];
  for (let joinedCount = 2; joinedCount <= joinedNameWordsMax; joinedCount++) {
    for (let i = 0; i + joinedCount <= words.length; i++) joinedWords.push(joinNameWords(words.slice(i, i + joinedCount)));
  }
  return joinedWords;
}

function joinNameWords(joinedParts: readonly NameWord[]): NameWord {
  return wordOf(joinedParts.map(({ text }) => text).join(''), 'word');
}

function joinedLikeOther(words: readonly NameWord[], otherWords: readonly NameWord[]): readonly NameWord[] {
  const otherTexts = new Set(otherWords.map(({ text }) => text));
  const unsharedCount = words.filter(({ text }) => !otherTexts.has(text)).length;
  if (unsharedCount < 2 || otherTexts.size === 0) return words;
  const otherSpellings = new Set(otherWords.map(({ spelling }) => spelling));
  const letterWords: NameWord[] = [];
  for (let i = 0; i < words.length; ) {
    let takenCount = 1;
    for (let joinedCount = Math.min(joinedNameWordsMax, words.length - i); joinedCount > 1 && takenCount === 1; joinedCount--) {
      const joinedParts = words.slice(i, i + joinedCount);
      if (joinedParts.some(({ text }) => otherTexts.has(text))) continue;
      const joinedName = joinNameWords(joinedParts);
      if (!otherTexts.has(joinedName.text) && (joinedName.text.length < 5 || !otherSpellings.has(joinedName.spelling))) continue;
      letterWords.push(joinedName);
      takenCount = joinedCount;
    }
    if (takenCount === 1) letterWords.push(words[i]!);
    i += takenCount;
  }
  return letterWords;
}
