/**
 * Weights of Fellegi and Sunter as they are trained of rows without labels. `u` is how often a group of columns agrees in two rows that
 * were taken by chance; `m` how often in two that are one, by expectation maximisation: the chance of each pair that shares keys follows
 * from `m`, and `m` from the chances. The same rows give the same weights. Pure.
 */
import type { Json } from '../../../../log/values/canonical-json.ts';
import type { Steps } from '../../../graph/stepped-sort.ts';
import type { Collection } from './compared-rows.ts';
import { againstBits, bitsOf, chanceOf, type Trained } from './likelihood.ts';

/** By group of columns. No value of any row is in it. */
export type Weights = ReadonlyMap<string, { readonly m: number; readonly u: number }>;

export interface Training {
  readonly weights: Weights;
  /** Pairs that were compared, and as how many of them count that are one. */
  readonly pairs: number;
  readonly matches: number;
  readonly rounds: number;
}

const seedsMax = 4_096;
const pairsMax = 100_000;
const chancePairs = 16_384;
const roundsMax = 30;
const isStill = 1e-4;
/** The matches that built-in weights count for: a few rows don't overturn them. */
const builtInMatches = 20;
const pairsAtOnce = 128;
const looksPerPair = 100;

/** Null where there are no two rows to compare. */
export function* train(of: Collection, look: (count: number) => void): Steps<Training | null> {
  if (of.size < 2) return null;
  const agreements = yield* agreementsByChance(of, look);
  const u = of.groups.map((_, i) => boundShare((agreements.agree[i]! + 0.5) / (agreements.both[i]! + 1)));
  const pairEvidence = yield* pairsWithKeys(of, look);
  const builtIn = of.groups.map((group, i) => 1 - (1 - u[i]!) * 2 ** -againstBits(group));
  let m = builtIn;
  let matches = 0;
  let rounds = 0;
  for (let change = 1; change > isStill && rounds < roundsMax; rounds++) {
    const agree = of.groups.map((_, i) => builtInMatches * builtIn[i]!);
    const both = of.groups.map(() => builtInMatches);
    const trained = trainedOf(of, weightsOf(of, m, u));
    matches = 0;
    for (const [at, each] of pairEvidence.entries()) {
      const chance = chanceOf(each, of, trained);
      matches += chance;
      for (const [i, bits] of each.entries()) {
        if (bits === null) continue;
        both[i]! += chance;
        if (bits > 0) agree[i]! += chance;
      }
      if (at % pairsAtOnce === pairsAtOnce - 1) yield;
    }
    look(pairEvidence.length);
    const next = of.groups.map((_, i) => boundShare(agree[i]! / both[i]!));
    change = Math.max(...next.map((each, i) => Math.abs(each - m[i]!)));
    m = next;
  }
  return { weights: weightsOf(of, m, u), pairs: pairEvidence.length, matches: Math.round(matches), rounds };
}

function weightsOf(of: Collection, m: readonly number[], u: readonly number[]): Weights {
  return new Map(of.groups.map(({ name }, i) => [name, { m: m[i]!, u: u[i]! }]));
}

function* agreementsByChance(of: Collection, look: (count: number) => void): Steps<{ agree: number[]; both: number[] }> {
  const agree = of.groups.map(() => 0);
  const both = of.groups.map(() => 0);
  const { entities } = of;
  const pairs = Math.min(chancePairs, (of.size * (of.size - 1)) / 2);
  for (let at = 0; at < pairs; at++) {
    // Each row in turn, and another at a distance that changes from turn to turn.
    const first = at % of.size;
    const second = (first + 1 + ((Math.floor(at / of.size) * 7_919 + at * 31) % (of.size - 1))) % of.size;
    for (const [i, bits] of bitsOf(entities[first]!, entities[second]!, of).entries()) {
      if (bits === null) continue;
      both[i]!++;
      if (bits > 0) agree[i]!++;
    }
    if (at % pairsAtOnce !== pairsAtOnce - 1) continue;
    look(pairsAtOnce * looksPerPair);
    yield;
  }
  return { agree, both };
}

/** Takes rows at even distances, and gives the bits of each with all rows that RESOLVE_IDENTITY compares it with. */
function* pairsWithKeys(of: Collection, look: (count: number) => void): Steps<(readonly (number | null)[])[]> {
  const pairEvidence: (readonly (number | null)[])[] = [];
  const stride = Math.ceil(of.size / seedsMax);
  for (let at = 0; at < of.size && pairEvidence.length < pairsMax; at += stride) {
    const entity = of.entities[at]!;
    for (const other of of.withKeys(of.keysOf(entity), of)) {
      // A pair of two seeds counts once.
      const isSeed = of.numberOf(other) % stride === 0;
      if (other === entity || (isSeed && of.numberOf(other) < at)) continue;
      pairEvidence.push(bitsOf(entity, other, of));
      if (pairEvidence.length % pairsAtOnce !== 0) continue;
      look(pairsAtOnce * looksPerPair);
      yield;
    }
    yield;
  }
  return pairEvidence;
}

/** Six digits; neither never nor always. */
function boundShare(share: number): number {
  return Math.round(Math.min(0.999_9, Math.max(0.000_01, share)) * 1e6) / 1e6;
}

/** The built-in weights keep the rest: groups hang together more than expectation maximisation takes them to. */
const trainedShare = 0.5;

/** Changes that the weights make in a collection; a group that they lack keeps its built-in weight. */
export function trainedOf({ groups }: Pick<Collection, 'groups'>, weights: Weights): Trained {
  const against: number[] = [];
  const agreement: number[] = [];
  for (const group of groups) {
    const known = weights.get(group.name);
    const builtIn = againstBits(group);
    const bits = known === undefined ? builtIn : Math.max(0, Math.log2((1 - known.u) / (1 - known.m)));
    against.push(builtIn === 0 ? 1 : 1 - trainedShare + (trainedShare * bits) / builtIn);
    agreement.push(known === undefined ? 0 : Math.log2(known.m));
  }
  return { against, agreement };
}

export function weightsJson(weights: Weights): Json {
  return Object.fromEntries(weights);
}

/** Reads weights from JSON, or a text of it. Null where some group has no two shares between 0 and 1. */
export function weightsIn(json: Json): Weights | null {
  if (typeof json === 'string') return weightsIn(parseJson(json));
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return null;
  const weights = new Map<string, { m: number; u: number }>();
  for (const [group, each] of Object.entries(json)) {
    if (typeof each !== 'object' || each === null || Array.isArray(each)) return null;
    const { m, u } = each as Readonly<Record<string, Json>>;
    if (!isShare(m) || !isShare(u)) return null;
    weights.set(group, { m, u });
  }
  return weights;
}

/** Null where the text is no JSON, or that of another text. */
function parseJson(text: string): Json {
  try {
    const json = JSON.parse(text) as Json;
    return typeof json === 'string' ? null : json;
  } catch {
    return null;
  }
}

function isShare(value: Json | undefined): value is number {
  return typeof value === 'number' && value > 0 && value < 1;
}
