/** Which of some amounts add up to another. Pure. */
import { type Steps, stepsAtOnce } from '../../../graph/stepped-sort.ts';

/** Up to this many amounts every subset is tried; beyond, the largest that still fit are taken. */
export const exactMax = 20;

export interface Subset {
  /** Places of the amounts that were taken, ascending. */
  readonly chosen: readonly number[];
  readonly sum: number;
  readonly isExact: boolean;
}

/** The subset whose sum is nearest to `total` within `tolerance`; of several the one of fewer amounts, then of earlier ones. */
export function* subsetOf(amounts: readonly number[], total: number, tolerance: number): Steps<Subset | null> {
  return amounts.length <= exactMax
    ? yield* exactAmountSubset(amounts, total, tolerance)
    : greedyAmountSubset(amounts, total, tolerance);
}

function* exactAmountSubset(amounts: readonly number[], wantedTotal: number, tolerance: number): Steps<Subset | null> {
  const subsetSums = new Float64Array(1 << amounts.length);
  let bestMask = 0;
  let bestChosenCount = 0;
  let bestDistance = Infinity;
  for (let subsetMask = 1; subsetMask < subsetSums.length; subsetMask++) {
    if (subsetMask % stepsAtOnce === 0) yield;
    const lowestAmount = 31 - Math.clz32(subsetMask & -subsetMask);
    subsetSums[subsetMask] = subsetSums[subsetMask & (subsetMask - 1)]! + amounts[lowestAmount]!;
    const sumDistance = Math.abs(subsetSums[subsetMask]! - wantedTotal);
    if (sumDistance > tolerance || sumDistance > bestDistance + amountRounding * wantedTotal) continue;
    const maskChosenCount = chosenCount(subsetMask);
    const isSumNearer = sumDistance < bestDistance - amountRounding * wantedTotal;
    if (
      !isSumNearer &&
      (maskChosenCount > bestChosenCount ||
        (maskChosenCount === bestChosenCount && reversedMask(subsetMask) < reversedMask(bestMask)))
    )
      continue;
    [bestMask, bestChosenCount, bestDistance] = [subsetMask, maskChosenCount, Math.min(sumDistance, bestDistance)];
  }
  if (bestMask === 0) return null;
  const chosenAmounts = amounts.flatMap((_, i) => ((bestMask >> i) & 1 ? [i] : []));
  return { chosen: chosenAmounts, sum: subsetSums[bestMask]!, isExact: true };
}

const amountRounding = 1e-12;

function chosenCount(subsetMask: number): number {
  let bitsSet = 0;
  for (let bitsLeft = subsetMask; bitsLeft !== 0; bitsLeft &= bitsLeft - 1) bitsSet++;
  return bitsSet;
}

/** Ranks masks so that one with an earlier amount is above one without. */
function reversedMask(subsetMask: number): number {
  let reversed = 0;
  for (let i = 0; i < exactMax; i++) reversed = reversed * 2 + ((subsetMask >> i) & 1);
  return reversed;
}

function greedyAmountSubset(amounts: readonly number[], wantedTotal: number, tolerance: number): Subset | null {
  const amountOrder = [...amounts.keys()].sort((a, b) => amounts[b]! - amounts[a]! || a - b);
  const chosenAmounts: number[] = [];
  let chosenSum = 0;
  for (const i of amountOrder) {
    if (chosenSum + amounts[i]! > wantedTotal + tolerance) continue;
    chosenSum += amounts[i]!;
    chosenAmounts.push(i);
  }
  return chosenAmounts.length > 0 && Math.abs(chosenSum - wantedTotal) <= tolerance
    ? { chosen: chosenAmounts.sort((a, b) => a - b), sum: chosenSum, isExact: false }
    : null;
}
