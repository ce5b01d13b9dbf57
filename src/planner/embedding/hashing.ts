/**
 * The built-in embedding: a pure function of the text, without a model. Each word of the text, and every three neighbouring
 * characters of it with its ends marked, adds or takes a fixed amount at a place that its hash says; texts that share words, or
 * parts of words, point in similar directions.
 */
import { tokensOf } from '../../projections/rows/indexes/text/tokens.ts';

/** A change of any of these gives other vectors: answers of before are then not given again. */
export const hashedDims = 256;
const wordWeight = 2;
const wordPartWeight = 1;

/** Words whose places are kept: texts repeat theirs. */
const hashedWordsMax = 50_000;

/** Places of the features of a word: place * 2, + 1 where they take; those of the word itself first. */
const featuresByWord = new Map<string, Int32Array>();

/** Adds the hashed words of a text to a sum of `hashedDims` numbers. */
export function addHashed(text: string, hashedSum: Float64Array): void {
  for (const word of tokensOf(text)) {
    const wordFeatures = wordFeaturesOf(word);
    for (let i = 0; i < wordFeatures.length; i++) {
      const hashedFeature = wordFeatures[i]!;
      const featureWeight = i === 0 ? wordWeight : wordPartWeight;
      hashedSum[hashedFeature >>> 1]! += (hashedFeature & 1) === 0 ? featureWeight : -featureWeight;
    }
  }
}

/** Lets go of every word: some may be of a row that was erased. */
export function forgetHashed(): void {
  featuresByWord.clear();
}

function wordFeaturesOf(word: string): Int32Array {
  const knownVector = featuresByWord.get(word);
  if (knownVector !== undefined) return knownVector;
  const markedWord = `^${word}$`;
  const wordFeatures = new Int32Array(1 + Math.max(0, markedWord.length - 2));
  wordFeatures[0] = hashedFeatureOf(markedWord, 0, markedWord.length, 1);
  for (let i = 0; i + 3 <= markedWord.length; i++) wordFeatures[i + 1] = hashedFeatureOf(markedWord, i, i + 3, 2);
  if (featuresByWord.size >= hashedWordsMax) featuresByWord.clear();
  featuresByWord.set(word, wordFeatures);
  return wordFeatures;
}

/** FNV-1a over UTF-16 units, its bits mixed at the end: neighbours would otherwise share places. */
function hashedFeatureOf(markedText: string, partStart: number, partEnd: number, hashSeed: number): number {
  let featureHash = (0x811c9dc5 ^ hashSeed) | 0;
  for (let i = partStart; i < partEnd; i++) featureHash = Math.imul(featureHash ^ markedText.charCodeAt(i), 0x01000193);
  featureHash = Math.imul(featureHash ^ (featureHash >>> 15), 0x2c1b3c6d);
  featureHash ^= featureHash >>> 12;
  return (featureHash >>> 1) & (hashedDims * 2 - 1);
}

/** Cosine of the angle between two sums; 0 where either says nothing. */
export function cosineOf(a: Float64Array, b: Float64Array): number {
  let dotProduct = 0;
  let squaresOfA = 0;
  let squaresOfB = 0;
  for (let i = 0; i < a.length; i++) {
    dotProduct += a[i]! * b[i]!;
    squaresOfA += a[i]! * a[i]!;
    squaresOfB += b[i]! * b[i]!;
  }
  return squaresOfA === 0 || squaresOfB === 0 ? 0 : Math.max(-1, Math.min(1, dotProduct / Math.sqrt(squaresOfA * squaresOfB)));
}
