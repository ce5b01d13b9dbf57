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

interface Pair {
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

export function matchNames(left: NameFeatures, right: NameFeatures): NameMatch {
  const [leftWords, rightWords] = joinBoth(left.words, right.words);
  const isVowelless = left.isVowelless || right.isVowelless;
  const pairs: Pair[] = [];
  leftWords.forEach((one, i) => {
    rightWords.forEach((other, j) => {
      const alike = likeness(one, other, isVowelless);
      if (alike !== null) pairs.push({ left: i, right: j, ...alike });
    });
  });
  // The best pair first; an initial says something beside a word only.
  pairs.sort((a, b) => b.worth - a.worth || a.left - b.left || a.right - b.right);
  const isLeftTaken = new Set<number>();
  const isRightTaken = new Set<number>();
  let matched = 0;
  let leftWeight = 0;
  let rightWeight = 0;
  const features: string[] = [];
  let hasWord = false;
  for (const pair of pairs) {
    if (isLeftTaken.has(pair.left) || isRightTaken.has(pair.right)) continue;
    const [one, other] = [leftWords[pair.left]!, rightWords[pair.right]!];
    const isInitial = one.kind === 'initial' || other.kind === 'initial';
    if (isInitial && !hasWord && one.text !== other.text) continue;
    if (!isInitial && one.kind !== 'particle') hasWord = true;
    isLeftTaken.add(pair.left);
    isRightTaken.add(pair.right);
    const weight = Math.max(one.weight, other.weight);
    matched += pair.worth * weight;
    leftWeight += weight;
    rightWeight += weight;
    features.push(one.text === other.text ? `word:${one.text}` : `${pair.how}:${one.text}=${other.text}`);
  }
  leftWords.forEach((word, i) => (leftWeight += isLeftTaken.has(i) ? 0 : word.weight));
  rightWords.forEach((word, j) => (rightWeight += isRightTaken.has(j) ? 0 : word.weight));
  const union = leftWeight + rightWeight - matched;
  let score = union === 0 || !hasWord ? 0 : matched / union;
  if (left.form !== null && right.form !== null) {
    features.push(left.form === right.form ? `form:${left.form}` : `form:${left.form}≠${right.form}`);
    if (left.form !== right.form) score *= worths.formDiffers;
  }
  return { score, plainJaccard: jaccard(left.plain, right.plain), features };
}

/** The Jaccard index of two sets of words, as textbooks have it. */
export function jaccard(left: ReadonlySet<string>, right: ReadonlySet<string>): number {
  let shared = 0;
  for (const word of left) if (right.has(word)) shared++;
  const all = left.size + right.size - shared;
  return all === 0 ? 0 : shared / all;
}

export function plainJaccard(left: string, right: string): number {
  return jaccard(plainWords(left), plainWords(right));
}

function likeness(one: NameWord, other: NameWord, isVowelless: boolean): Pick<Pair, 'worth' | 'how'> | null {
  if (one.text === other.text) return { worth: 1, how: 'word' };
  if (one.kind === 'number' || other.kind === 'number') return null;
  if (one.kind === 'initial' || other.kind === 'initial') {
    const isLetter = one.kind === 'initial' ? other.text.startsWith(one.text) : one.text.startsWith(other.text);
    return isLetter && one.kind !== other.kind && one.kind !== 'particle' && other.kind !== 'particle'
      ? { worth: worths.initial, how: 'initial' }
      : null;
  }
  if (one.kind === 'particle' || other.kind === 'particle') {
    return one.kind === other.kind && one.consonants === other.consonants ? { worth: 0.9, how: 'sound' } : null;
  }
  const family = isOneName(one, other);
  if (family === 'nickname') return { worth: worths.nickname, how: family };
  if (one.spelling === other.spelling) return { worth: worths.spelling, how: 'sound' };
  if (isVowelless) {
    const [bare, otherBare] = [bareOf(one.consonants), bareOf(other.consonants)];
    if (bare === otherBare && bare.length > 1) return { worth: worths.vowelless, how: 'sound' };
  }
  const letters = byLetters(one, other);
  const isTranslated = family !== null && worths.translation > (letters?.worth ?? 0);
  return isTranslated ? { worth: worths.translation, how: 'translation' } : letters;
}

function byLetters(one: NameWord, other: NameWord): Pick<Pair, 'worth' | 'how'> | null {
  const slip = slipOf(one.text, other.text);
  const bySlip =
    slip === null ? 0 : slip === 'turned' || Math.max(one.text.length, other.text.length) > 3 ? worths.slip : worths.least;
  if (!isNear(one.consonants, other.consonants)) return slip === null ? null : { worth: bySlip, how: 'letters' };
  const length = Math.max(one.spelling.length, other.spelling.length);
  const distance = Math.min(distanceOf(one.spelling, other.spelling), distanceOf(one.text, other.text));
  const cost = (distance * worths.letterCost * (length < 5 ? 2 : 1)) / length;
  const worth = Math.max(bySlip, Math.min(worths.spelling, 1 - cost));
  return worth < worths.least ? null : { worth, how: one.consonants === other.consonants ? 'sound' : 'letters' };
}

/** Whether one stands for the other, by a short form or by one in another language. */
export function isOneName({ groups }: NameWord, { groups: others }: NameWord): 'nickname' | 'translation' | null {
  let matchKind: 'translation' | null = null;
  for (const { forms, family } of groups) {
    for (const other of others) {
      if (forms === other.forms) return 'nickname';
      if (family === other.family) matchKind = 'translation';
    }
  }
  return matchKind;
}

/** Letters that a script without vowels may write for one go as well. */
export function bareOf(consonants: string): string {
  return consonants.replaceAll(/(?!^)[vyj]|h$/g, '').replace(/[^a]a/g, (pair) => pair[0]!);
}

function isNear(left: string, right: string): boolean {
  if (left === right) return true;
  if (Math.abs(left.length - right.length) > 1) return false;
  const changes = new Set(changesOf(left));
  return changesOf(right).some((each) => changes.has(each));
}

/** Words that are one in the other name: `abdul rahman` beside `abdulrahman`. */
function joinBoth(left: readonly NameWord[], right: readonly NameWord[]): [readonly NameWord[], readonly NameWord[]] {
  return [joinedLike(left, right), joinedLike(right, left)];
}

const joinMax = 3;

/** The words that neighbours make together. */
export function joinsOf(words: readonly NameWord[]): readonly NameWord[] {
  const joins: NameWord[] = [];
  for (let count = 2; count <= joinMax; count++) {
    for (let i = 0; i + count <= words.length; i++) joins.push(joinOf(words.slice(i, i + count)));
  }
  return joins;
}

function joinOf(parts: readonly NameWord[]): NameWord {
  return wordOf(parts.map(({ text }) => text).join(''), 'word');
}

function joinedLike(words: readonly NameWord[], others: readonly NameWord[]): readonly NameWord[] {
  const texts = new Set(others.map(({ text }) => text));
  const open = words.filter(({ text }) => !texts.has(text)).length;
  if (open < 2 || texts.size === 0) return words;
  const spellings = new Set(others.map(({ spelling }) => spelling));
  const letterWords: NameWord[] = [];
  for (let i = 0; i < words.length; ) {
    let taken = 1;
    for (let count = Math.min(joinMax, words.length - i); count > 1 && taken === 1; count--) {
      const parts = words.slice(i, i + count);
      if (parts.some(({ text }) => texts.has(text))) continue;
      const word = joinOf(parts);
      if (!texts.has(word.text) && (word.text.length < 5 || !spellings.has(word.spelling))) continue;
      letterWords.push(word);
      taken = count;
    }
    if (taken === 1) letterWords.push(words[i]!);
    i += taken;
  }
  return letterWords;
}
