/** Signals that posts of an account give: rhythm, originality, style. Pure: numbers from 0 to 1, null where there is too little to go by. */
import type { Steps } from '../../../graph/stepped-sort.ts';
import { jaccard } from '../names/name-score.ts';
import { type Account, type Post, postsMin, wordsOf } from './scored-posts.ts';

const hourNs = 3_600_000_000_000n;
const hoursOfWeek = 168;

export interface Rhythm {
  /** The entropy of hours of the week, as a share of the most that this number of posts can have. */
  readonly entropy: number;
  /** (σ − μ)/(σ + μ) of the gaps: −1 like a clock, 0 by chance, 1 in bursts. */
  readonly burstiness: number;
  readonly medianGapSecs: number;
  /** Seconds that most gaps are a multiple of; null: none. */
  readonly periodSecs: number | null;
}

export function rhythmOf(posts: readonly Post[]): Rhythm | null {
  const instants = posts.flatMap(({ at }) => (at === null ? [] : [at]));
  if (instants.length < postsMin) return null;
  const hours = new Map<number, number>();
  for (const at of instants) {
    const hour = Number((((at / hourNs) % BigInt(hoursOfWeek)) + BigInt(hoursOfWeek)) % BigInt(hoursOfWeek));
    hours.set(hour, (hours.get(hour) ?? 0) + 1);
  }
  const entropy = [...hours.values()].reduce(
    (sum, count) => sum - (count / instants.length) * Math.log(count / instants.length),
    0,
  );
  const gaps = instants.slice(1).map((at, i) => Number(at - instants[i]!) / 1e9);
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
  const deviation = Math.sqrt(gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length);
  const middle = gaps.toSorted((a, b) => a - b);
  const median = middle[middle.length >> 1]!;
  return {
    entropy: entropy / Math.log(Math.min(hoursOfWeek, instants.length)),
    burstiness: mean + deviation === 0 ? -1 : (deviation - mean) / (deviation + mean),
    medianGapSecs: median,
    periodSecs: median > 0 && gaps.filter((gap) => isMultiple(gap, median)).length >= 0.8 * gaps.length ? median : null,
  };
}

/** Within two percent of the period. */
function isMultiple(gap: number, period: number): boolean {
  const times = Math.round(gap / period);
  return times > 0 && Math.abs(gap - times * period) <= 0.02 * period;
}

/** The share of posts whose text is unlike every other text of the account. */
export function* originalityOf(posts: readonly Post[]): Steps<number | null> {
  if (posts.length < postsMin) return null;
  const seen = posts.slice(0, comparedMax).map(({ text }) => new Set(wordsOf(text)));
  const isCopy = new Uint8Array(seen.length);
  for (const [i, words] of seen.entries()) {
    if (i % 8 === 7) yield;
    for (let j = i + 1; j < seen.length; j++) {
      const other = seen[j]!;
      const isLike = Math.min(words.size, other.size) >= copyLikeness * Math.max(words.size, other.size);
      if (isLike && jaccard(words, other) >= copyLikeness) isCopy[i] = isCopy[j] = 1;
    }
  }
  return 1 - isCopy.reduce((sum, copy) => sum + copy, 0) / seen.length;
}

const copyLikeness = 0.8;

/** Each of these posts is compared with each other. */
const comparedMax = 200;

/** Posts that an account passes on: a repost has an object, and a reply is the account's own. */
export function repostsOf(posts: readonly Post[]): readonly Post[] {
  return posts.filter(({ object, replyTo }) => object !== null && replyTo === null);
}

/** How much of a profile is filled in, and not by a generator: a handle that ends in many digits says little. */
export function profileOf({ handle, name, bio, followers }: Account): number {
  const parts = [
    name !== null && name.trim() !== '' ? 1 : 0,
    bio !== null && wordsOf(bio).length >= 3 ? 1 : bio ? 0.5 : 0,
    handle !== null && !/\d{5}$/.test(handle) ? 1 : 0,
    followers === null ? 0.5 : Math.min(1, Math.log10(1 + followers) / 2),
  ];
  return parts.reduce((sum, part) => sum + part, 0) / parts.length;
}

const functionWords =
  'the of and a to in is you that it he was for on are as with his they i at be this have from or had by but not what all were we when your can said there an which she do their if will up other about out many then them these so some her would make like him into has'.split(
    ' ',
  );

/** Frequencies of function words, a thousand words each, and of punctuation. */
export interface Style {
  readonly words: number;
  readonly frequencies: Float64Array;
  readonly trigrams: ReadonlyMap<string, number>;
  /** Length of the vector of trigrams. */
  readonly length: number;
}

export function styleOf(texts: readonly string[]): Style {
  const counts = new Map<string, number>();
  let words = 0;
  const trigrams = new Map<string, number>();
  for (const text of texts) {
    for (const word of wordsOf(text)) {
      words++;
      counts.set(word, (counts.get(word) ?? 0) + 1);
    }
    const plain = ` ${text
      .toLowerCase()
      .replaceAll(/https?:\S+/g, '')
      .replaceAll(/\s+/g, ' ')} `;
    for (let i = 0; i + 3 <= plain.length; i++) {
      const trigram = plain.slice(i, i + 3);
      trigrams.set(trigram, (trigrams.get(trigram) ?? 0) + 1);
    }
  }
  const frequencies = Float64Array.from(functionWords, (word) => (1_000 * (counts.get(word) ?? 0)) / Math.max(1, words));
  let squares = 0;
  for (const count of trigrams.values()) squares += count * count;
  return { words, frequencies, trigrams, length: Math.sqrt(squares) };
}

/** The fewest words from which a style is told. */
export const styleWordsMin = 50;

/** How many per thousand of English words these function words are, by rank: what Burrows' Delta measures against. */
const expected = Float64Array.from(functionWords, (_, rank) => 60 / (1 + rank * 0.6));

/** Burrows' Delta: the mean distance of two styles in units of how much such a word varies between writers. */
export function deltaOf(left: Style, right: Style): number {
  let sum = 0;
  for (let i = 0; i < expected.length; i++) {
    const deviation = 0.35 * expected[i]! + 1;
    sum += Math.abs(left.frequencies[i]! - right.frequencies[i]!) / deviation;
  }
  return sum / expected.length;
}

/** Cosine of the trigrams of letters. */
export function trigramLikeness(left: Style, right: Style): number {
  let dot = 0;
  for (const [trigram, count] of left.trigrams) dot += count * (right.trigrams.get(trigram) ?? 0);
  return dot === 0 ? 0 : dot / (left.length * right.length);
}

/** From 0 to 1: one style is near 1. */
export function styleLikeness(left: Style, right: Style): number | null {
  if (left.words < styleWordsMin || right.words < styleWordsMin) return null;
  return 0.5 * Math.exp(-deltaOf(left, right)) + 0.5 * trigramLikeness(left, right);
}
