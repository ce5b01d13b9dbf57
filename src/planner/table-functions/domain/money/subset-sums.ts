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
  return amounts.length <= exactMax ? yield* exactSubset(amounts, total, tolerance) : greedySubset(amounts, total, tolerance);
}

function* exactSubset(amounts: readonly number[], total: number, tolerance: number): Steps<Subset | null> {
  const sums = new Float64Array(1 << amounts.length);
  let best = 0;
  let bestCount = 0;
  let bestApart = Infinity;
  for (let mask = 1; mask < sums.length; mask++) {
    if (mask % stepsAtOnce === 0) yield;
    const low = 31 - Math.clz32(mask & -mask);
    sums[mask] = sums[mask & (mask - 1)]! + amounts[low]!;
    const apart = Math.abs(sums[mask]! - total);
    if (apart > tolerance || apart > bestApart + rounding * total) continue;
    const count = bitCount(mask);
    const isNearer = apart < bestApart - rounding * total;
    if (!isNearer && (count > bestCount || (count === bestCount && reverseBits(mask) < reverseBits(best)))) continue;
    [best, bestCount, bestApart] = [mask, count, Math.min(apart, bestApart)];
  }
  if (best === 0) return null;
  const chosen = amounts.flatMap((_, i) => ((best >> i) & 1 ? [i] : []));
  return { chosen, sum: sums[best]!, isExact: true };
}

const rounding = 1e-12;

function bitCount(mask: number): number {
  let count = 0;
  for (let rest = mask; rest !== 0; rest &= rest - 1) count++;
  return count;
}

/** Ranks masks so that one with an earlier amount is above one without. */
function reverseBits(mask: number): number {
  let turned = 0;
  for (let i = 0; i < exactMax; i++) turned = turned * 2 + ((mask >> i) & 1);
  return turned;
}

function greedySubset(amounts: readonly number[], total: number, tolerance: number): Subset | null {
  const order = [...amounts.keys()].sort((a, b) => amounts[b]! - amounts[a]! || a - b);
  const chosen: number[] = [];
  let sum = 0;
  for (const i of order) {
    if (sum + amounts[i]! > total + tolerance) continue;
    sum += amounts[i]!;
    chosen.push(i);
  }
  return chosen.length > 0 && Math.abs(sum - total) <= tolerance
    ? { chosen: chosen.sort((a, b) => a - b), sum, isExact: false }
    : null;
}
