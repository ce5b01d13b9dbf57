/** Signals that posts of an account give: rhythm, originality, style. Pure: numbers from 0 to 1, null where there is too little to go by. */
import type { Steps } from '../../../graph/stepped-sort.ts';
import { jaccard } from '../names/name-score.ts';
import { type Account, type Post, postsMin, wordsOf } from './scored-posts.ts';

const postingHourNs = 3_600_000_000_000n;
const postingHoursOfWeek = 168;

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
  const postInstants = posts.flatMap(({ at: postedAt }) => (postedAt === null ? [] : [postedAt]));
  if (postInstants.length < postsMin) return null;
  const postsByHour = new Map<number, number>();
  for (const at of postInstants) {
    const hourOfWeek = Number(
      (((at / postingHourNs) % BigInt(postingHoursOfWeek)) + BigInt(postingHoursOfWeek)) % BigInt(postingHoursOfWeek),
    );
    postsByHour.set(hourOfWeek, (postsByHour.get(hourOfWeek) ?? 0) + 1);
  }
  const hourEntropy = [...postsByHour.values()].reduce(
    (sum, hourCount) => sum - (hourCount / postInstants.length) * Math.log(hourCount / postInstants.length),
    0,
  );
  const postGapsSecs = postInstants.slice(1).map((postedAt, i) => Number(postedAt - postInstants[i]!) / 1e9);
  const meanGapSecs = postGapsSecs.reduce((sum, postGap) => sum + postGap, 0) / postGapsSecs.length;
  const gapDeviation = Math.sqrt(
    postGapsSecs.reduce((sum, postGap) => sum + (postGap - meanGapSecs) ** 2, 0) / postGapsSecs.length,
  );
  const sortedGaps = postGapsSecs.toSorted((a, b) => a - b);
  const medianGap = sortedGaps[sortedGaps.length >> 1]!;
  return {
    entropy: hourEntropy / Math.log(Math.min(postingHoursOfWeek, postInstants.length)),
    burstiness: meanGapSecs + gapDeviation === 0 ? -1 : (gapDeviation - meanGapSecs) / (gapDeviation + meanGapSecs),
    medianGapSecs: medianGap,
    periodSecs:
      medianGap > 0 && postGapsSecs.filter((postGap) => isPeriodMultiple(postGap, medianGap)).length >= 0.8 * postGapsSecs.length
        ? medianGap
        : null,
  };
}

/** Within two percent of the period. */
function isPeriodMultiple(postGap: number, period: number): boolean {
  const periodCount = Math.round(postGap / period);
  return periodCount > 0 && Math.abs(postGap - periodCount * period) <= 0.02 * period;
}

/** The share of posts whose text is unlike every other text of the account. */
export function* originalityOf(posts: readonly Post[]): Steps<number | null> {
  if (posts.length < postsMin) return null;
  const postWords = posts.slice(0, comparedPostsMax).map(({ text }) => new Set(wordsOf(text)));
  const isCopiedPost = new Uint8Array(postWords.length);
  for (const [i, onePostWords] of postWords.entries()) {
    if (i % 8 === 7) yield;
    for (let j = i + 1; j < postWords.length; j++) {
      const otherPostWords = postWords[j]!;
      const isLikeInSize =
        Math.min(onePostWords.size, otherPostWords.size) >= copiedPostLikeness * Math.max(onePostWords.size, otherPostWords.size);
      if (isLikeInSize && jaccard(onePostWords, otherPostWords) >= copiedPostLikeness) isCopiedPost[i] = isCopiedPost[j] = 1;
    }
  }
  return 1 - isCopiedPost.reduce((sum, copiedFlag) => sum + copiedFlag, 0) / postWords.length;
}

const copiedPostLikeness = 0.8;

/** Each of these posts is compared with each other. */
const comparedPostsMax = 200;

/** Posts that an account passes on: a repost has an object, and a reply is the account's own. */
export function repostsOf(posts: readonly Post[]): readonly Post[] {
  return posts.filter(({ object, replyTo }) => object !== null && replyTo === null);
}

/** How much of a profile is filled in, and not by a generator: a handle that ends in many digits says little. */
export function profileOf({ handle, name, bio, followers }: Account): number {
  const profileParts = [
    name !== null && name.trim() !== '' ? 1 : 0,
    bio !== null && wordsOf(bio).length >= 3 ? 1 : bio ? 0.5 : 0,
    handle !== null && !/\d{5}$/.test(handle) ? 1 : 0,
    followers === null ? 0.5 : Math.min(1, Math.log10(1 + followers) / 2),
  ];
  return profileParts.reduce((sum, profilePart) => sum + profilePart, 0) / profileParts.length;
}

const styleFunctionWords =
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

export function styleOf(styleTexts: readonly string[]): Style {
  const wordCounts = new Map<string, number>();
  let wordCount = 0;
  const trigramCounts = new Map<string, number>();
  for (const text of styleTexts) {
    for (const word of wordsOf(text)) {
      wordCount++;
      wordCounts.set(word, (wordCounts.get(word) ?? 0) + 1);
    }
    const plainText = ` ${text
      .toLowerCase()
      .replaceAll(/https?:\S+/g, '')
      .replaceAll(/\s+/g, ' ')} `;
    for (let i = 0; i + 3 <= plainText.length; i++) {
      const trigram = plainText.slice(i, i + 3);
      trigramCounts.set(trigram, (trigramCounts.get(trigram) ?? 0) + 1);
    }
  }
  const wordFrequencies = Float64Array.from(
    styleFunctionWords,
    (word) => (1_000 * (wordCounts.get(word) ?? 0)) / Math.max(1, wordCount),
  );
  let squaredCounts = 0;
  for (const trigramCount of trigramCounts.values()) squaredCounts += trigramCount * trigramCount;
  return { words: wordCount, frequencies: wordFrequencies, trigrams: trigramCounts, length: Math.sqrt(squaredCounts) };
}

/** The fewest words from which a style is told. */
export const styleWordsMin = 50;

/** How many per thousand of English words these function words are, by rank: what Burrows' Delta measures against. */
const expectedFrequencies = Float64Array.from(styleFunctionWords, (_, rank) => 60 / (1 + rank * 0.6));

/** Burrows' Delta: the mean distance of two styles in units of how much such a word varies between writers. */
export function deltaOf(leftStyle: Style, rightStyle: Style): number {
  let deviationSum = 0;
  for (let i = 0; i < expectedFrequencies.length; i++) {
    const wordDeviation = 0.35 * expectedFrequencies[i]! + 1;
    deviationSum += Math.abs(leftStyle.frequencies[i]! - rightStyle.frequencies[i]!) / wordDeviation;
  }
  return deviationSum / expectedFrequencies.length;
}

/** Cosine of the trigrams of letters. */
export function trigramLikeness(leftStyle: Style, rightStyle: Style): number {
  let trigramDot = 0;
  for (const [trigram, trigramCount] of leftStyle.trigrams) trigramDot += trigramCount * (rightStyle.trigrams.get(trigram) ?? 0);
  return trigramDot === 0 ? 0 : trigramDot / (leftStyle.length * rightStyle.length);
}

/** From 0 to 1: one style is near 1. */
export function styleLikeness(leftStyle: Style, rightStyle: Style): number | null {
  if (leftStyle.words < styleWordsMin || rightStyle.words < styleWordsMin) return null;
  return 0.5 * Math.exp(-deltaOf(leftStyle, rightStyle)) + 0.5 * trigramLikeness(leftStyle, rightStyle);
}
