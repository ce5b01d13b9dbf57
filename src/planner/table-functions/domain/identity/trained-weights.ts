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

const trainingSeedsMax = 4_096;
const trainingPairsMax = 100_000;
const chancePairsMax = 16_384;
const trainingRoundsMax = 30;
const trainingStillness = 1e-4;
/** The matches that built-in weights count for: a few rows don't overturn them. */
const builtInMatchCount = 20;
const trainingPairsAtOnce = 128;
const trainingLooksPerPair = 100;

/** Null where there are no two rows to compare. */
export function* train(trainedCollection: Collection, countLooks: (count: number) => void): Steps<Training | null> {
  if (trainedCollection.size < 2) return null;
  const agreementsOfChance = yield* chanceAgreements(trainedCollection, countLooks);
  const agreementByChance = trainedCollection.groups.map((_, i) =>
    boundProbability((agreementsOfChance.agree[i]! + 0.5) / (agreementsOfChance.both[i]! + 1)),
  );
  const pairEvidence = yield* trainingPairs(trainedCollection, countLooks);
  const builtInAgreement = trainedCollection.groups.map((group, i) => 1 - (1 - agreementByChance[i]!) * 2 ** -againstBits(group));
  let agreementOfMatches = builtInAgreement;
  let expectedMatches = 0;
  let trainingRounds = 0;
  for (let largestChange = 1; largestChange > trainingStillness && trainingRounds < trainingRoundsMax; trainingRounds++) {
    const agreeingMatches = trainedCollection.groups.map((_, i) => builtInMatchCount * builtInAgreement[i]!);
    const comparedMatches = trainedCollection.groups.map(() => builtInMatchCount);
    const trainedSoFar = trainedOf(trainedCollection, trainedWeightsOf(trainedCollection, agreementOfMatches, agreementByChance));
    expectedMatches = 0;
    for (const [pairOrdinal, pairBits] of pairEvidence.entries()) {
      const matchChance = chanceOf(pairBits, trainedCollection, trainedSoFar);
      expectedMatches += matchChance;
      for (const [i, bits] of pairBits.entries()) {
        if (bits === null) continue;
        comparedMatches[i]! += matchChance;
        if (bits > 0) agreeingMatches[i]! += matchChance;
      }
      if (pairOrdinal % trainingPairsAtOnce === trainingPairsAtOnce - 1) yield;
    }
    countLooks(pairEvidence.length);
    const nextAgreement = trainedCollection.groups.map((_, i) => boundProbability(agreeingMatches[i]! / comparedMatches[i]!));
    largestChange = Math.max(...nextAgreement.map((each, i) => Math.abs(each - agreementOfMatches[i]!)));
    agreementOfMatches = nextAgreement;
  }
  return {
    weights: trainedWeightsOf(trainedCollection, agreementOfMatches, agreementByChance),
    pairs: pairEvidence.length,
    matches: Math.round(expectedMatches),
    rounds: trainingRounds,
  };
}

function trainedWeightsOf(trainedCollection: Collection, m: readonly number[], u: readonly number[]): Weights {
  return new Map(trainedCollection.groups.map(({ name }, i) => [name, { m: m[i]!, u: u[i]! }]));
}

function* chanceAgreements(
  trainedCollection: Collection,
  countLooks: (count: number) => void,
): Steps<{ agree: number[]; both: number[] }> {
  const agree = trainedCollection.groups.map(() => 0);
  const both = trainedCollection.groups.map(() => 0);
  const { entities } = trainedCollection;
  const chancePairCount = Math.min(chancePairsMax, (trainedCollection.size * (trainedCollection.size - 1)) / 2);
  for (let pairOrdinal = 0; pairOrdinal < chancePairCount; pairOrdinal++) {
    // Each row in turn, and another at a distance that changes from turn to turn.
    const firstEntity = pairOrdinal % trainedCollection.size;
    const secondEntity =
      (firstEntity +
        1 +
        ((Math.floor(pairOrdinal / trainedCollection.size) * 7_919 + pairOrdinal * 31) % (trainedCollection.size - 1))) %
      trainedCollection.size;
    for (const [i, bits] of bitsOf(entities[firstEntity]!, entities[secondEntity]!, trainedCollection).entries()) {
      if (bits === null) continue;
      both[i]!++;
      if (bits > 0) agree[i]!++;
    }
    if (pairOrdinal % trainingPairsAtOnce !== trainingPairsAtOnce - 1) continue;
    countLooks(trainingPairsAtOnce * trainingLooksPerPair);
    yield;
  }
  return { agree, both };
}

/** Takes rows at even distances, and gives the bits of each with all rows that RESOLVE_IDENTITY compares it with. */
function* trainingPairs(
  trainedCollection: Collection,
  countLooks: (count: number) => void,
): Steps<(readonly (number | null)[])[]> {
  const pairEvidence: (readonly (number | null)[])[] = [];
  const seedStride = Math.ceil(trainedCollection.size / trainingSeedsMax);
  for (
    let seedOrdinal = 0;
    seedOrdinal < trainedCollection.size && pairEvidence.length < trainingPairsMax;
    seedOrdinal += seedStride
  ) {
    const seedEntity = trainedCollection.entities[seedOrdinal]!;
    for (const keyedEntity of trainedCollection.withKeys(trainedCollection.keysOf(seedEntity), trainedCollection)) {
      // A pair of two seeds counts once.
      const isOtherSeed = trainedCollection.numberOf(keyedEntity) % seedStride === 0;
      if (keyedEntity === seedEntity || (isOtherSeed && trainedCollection.numberOf(keyedEntity) < seedOrdinal)) continue;
      pairEvidence.push(bitsOf(seedEntity, keyedEntity, trainedCollection));
      if (pairEvidence.length % trainingPairsAtOnce !== 0) continue;
      countLooks(trainingPairsAtOnce * trainingLooksPerPair);
      yield;
    }
    yield;
  }
  return pairEvidence;
}

/** Six digits; neither never nor always. */
function boundProbability(probability: number): number {
  return Math.round(Math.min(0.999_9, Math.max(0.000_01, probability)) * 1e6) / 1e6;
}

/** The built-in weights keep the rest: groups hang together more than expectation maximisation takes them to. */
const trainedBitsShare = 0.5;

/** Changes that the weights make in a collection; a group that they lack keeps its built-in weight. */
export function trainedOf({ groups }: Pick<Collection, 'groups'>, weights: Weights): Trained {
  const againstFactors: number[] = [];
  const agreementBits: number[] = [];
  for (const trainedGroup of groups) {
    const trainedWeight = weights.get(trainedGroup.name);
    const builtInBits = againstBits(trainedGroup);
    const trainedAgainst =
      trainedWeight === undefined ? builtInBits : Math.max(0, Math.log2((1 - trainedWeight.u) / (1 - trainedWeight.m)));
    againstFactors.push(builtInBits === 0 ? 1 : 1 - trainedBitsShare + (trainedBitsShare * trainedAgainst) / builtInBits);
    agreementBits.push(trainedWeight === undefined ? 0 : Math.log2(trainedWeight.m));
  }
  return { against: againstFactors, agreement: agreementBits };
}

export function weightsJson(weights: Weights): Json {
  return Object.fromEntries(weights);
}

/** Reads weights from JSON, or a text of it. Null where some group has no two shares between 0 and 1. */
export function weightsIn(weightsValue: Json): Weights | null {
  if (typeof weightsValue === 'string') return weightsIn(parseWeightsJson(weightsValue));
  if (typeof weightsValue !== 'object' || weightsValue === null || Array.isArray(weightsValue)) return null;
  const parsedWeights = new Map<string, { m: number; u: number }>();
  for (const [weightedGroup, groupWeight] of Object.entries(weightsValue)) {
    if (typeof groupWeight !== 'object' || groupWeight === null || Array.isArray(groupWeight)) return null;
    const { m, u } = groupWeight as Readonly<Record<string, Json>>;
    if (!isProbability(m) || !isProbability(u)) return null;
    parsedWeights.set(weightedGroup, { m, u });
  }
  return parsedWeights;
}

/** Null where the text is no JSON, or that of another text. */
function parseWeightsJson(weightsText: string): Json {
  try {
    const weightsValue = JSON.parse(weightsText) as Json;
    return typeof weightsValue === 'string' ? null : weightsValue;
  } catch {
    return null;
  }
}

function isProbability(probability: Json | undefined): probability is number {
  return typeof probability === 'number' && probability > 0 && probability < 1;
}
