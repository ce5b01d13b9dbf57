/**
 * The built-in embedding: a pure function of the text, without a model. Each word of the text, and every three neighbouring
 * characters of it with its ends marked, adds or takes a fixed amount at a place that its hash says; texts that share words, or
 * parts of words, point in similar directions.
 */
import { tokensOf } from '../../projections/rows/indexes/text/tokens.ts';

/** A change of any of these gives other vectors: answers of before are then not given again. */
export const hashedDims = 256;
const wordWeight = 2;
const partWeight = 1;

/** Words whose places are kept: texts repeat theirs. */
const wordsKept = 50_000;

/** Places of the features of a word: place * 2, + 1 where they take; those of the word itself first. */
const known = new Map<string, Int32Array>();

/** Adds the hashed words of a text to a sum of `hashedDims` numbers. */
export function addHashed(text: string, sum: Float64Array): void {
  for (const word of tokensOf(text)) {
    const features = featuresOf(word);
    for (let i = 0; i < features.length; i++) {
      const feature = features[i]!;
      const weight = i === 0 ? wordWeight : partWeight;
      sum[feature >>> 1]! += (feature & 1) === 0 ? weight : -weight;
    }
  }
}

/** Lets go of every word: some may be of a row that was erased. */
export function forgetHashed(): void {
  known.clear();
}

function featuresOf(word: string): Int32Array {
  const knownVector = known.get(word);
  if (knownVector !== undefined) return knownVector;
  const marked = `^${word}$`;
  const features = new Int32Array(1 + Math.max(0, marked.length - 2));
  features[0] = featureOf(marked, 0, marked.length, 1);
  for (let i = 0; i + 3 <= marked.length; i++) features[i + 1] = featureOf(marked, i, i + 3, 2);
  if (known.size >= wordsKept) known.clear();
  known.set(word, features);
  return features;
}

/** FNV-1a over UTF-16 units, its bits mixed at the end: neighbours would otherwise share places. */
function featureOf(text: string, from: number, to: number, seed: number): number {
  let hash = (0x811c9dc5 ^ seed) | 0;
  for (let i = from; i < to; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  hash ^= hash >>> 12;
  return (hash >>> 1) & (hashedDims * 2 - 1);
}

/** Cosine of the angle between two sums; 0 where either says nothing. */
export function cosineOf(a: Float64Array, b: Float64Array): number {
  let dot = 0;
  let ofA = 0;
  let ofB = 0;
  for (let i = 0; i < a.length; i++) {
    dot += a[i]! * b[i]!;
    ofA += a[i]! * a[i]!;
    ofB += b[i]! * b[i]!;
  }
  return ofA === 0 || ofB === 0 ? 0 : Math.max(-1, Math.min(1, dot / Math.sqrt(ofA * ofB)));
}
