/** Shares between parties, and what they come to. Pure: arrays in, numbers out. */
import type { Steps } from '../../graph/stepped-sort.ts';

export interface Share {
  readonly owner: string;
  readonly owned: string;
  /** Percent; null where it is unknown. */
  readonly pct: number | null;
  /** Nanoseconds. */
  readonly validFrom: bigint | null;
  readonly validTo: bigint | null;
}

/** Owners of a party through at most this many steps. */
export interface Reached {
  /** Steps to the party, by node; the party itself has 0. */
  readonly depths: ReadonlyMap<string, number>;
  /** Shares among them, by what is owned. */
  readonly shares: ReadonlyMap<string, readonly Share[]>;
}

export function reachedAbove(ownedParty: string, byOwned: ReadonlyMap<string, readonly Share[]>, depthMax: number): Reached {
  const ownerDepths = new Map([[ownedParty, 0]]);
  const sharesReached = new Map<string, readonly Share[]>();
  for (const [reachedParty, ownerDepth] of ownerDepths) {
    const sharesAbove = ownerDepth < depthMax ? byOwned.get(reachedParty) : undefined;
    if (sharesAbove === undefined) continue;
    sharesReached.set(reachedParty, sharesAbove);
    for (const { owner } of sharesAbove) if (!ownerDepths.has(owner)) ownerDepths.set(owner, ownerDepth + 1);
  }
  return { depths: ownerDepths, shares: sharesReached };
}

const effectiveSweepsMax = 10_000;

/**
 * By owner, the percent of the party that is its own through all walks: x = W(e + x), solved by sweeps. null where they do not
 * come to an end, as where two own all of each other.
 */
export function effectiveShares(ownedParty: string, { depths, shares }: Reached): ReadonlyMap<string, number> | null {
  const effectivePcts = new Map<string, number>();
  for (const reachedParty of depths.keys()) effectivePcts.set(reachedParty, 0);
  const sharesByOwner = new Map<string, Share[]>();
  for (const reachedShare of [...shares.values()].flat()) {
    const ownerShares = sharesByOwner.get(reachedShare.owner);
    if (ownerShares === undefined) sharesByOwner.set(reachedShare.owner, [reachedShare]);
    else ownerShares.push(reachedShare);
  }
  for (let effectiveSweep = 0; effectiveSweep < effectiveSweepsMax; effectiveSweep++) {
    let largestChange = 0;
    for (const [owner, heldShares] of sharesByOwner) {
      let ownerPctSum = 0;
      for (const { owned, pct } of heldShares)
        ownerPctSum += ((pct ?? 0) / 100) * ((owned === ownedParty ? 100 : 0) + effectivePcts.get(owned)!);
      largestChange = Math.max(largestChange, Math.abs(ownerPctSum - effectivePcts.get(owner)!));
      effectivePcts.set(owner, ownerPctSum);
    }
    if (largestChange < 1e-10) return effectivePcts;
    if (!Number.isFinite(largestChange) || largestChange > 1e12) return null;
  }
  return null;
}

/** Whether what one party holds and what parties hold that are held so themselves comes to half of each step, up to the party. */
export function isHeldByHalf(owner: string, ownedParty: string, { shares }: Reached): boolean {
  const heldParties = new Set([owner]);
  for (let heldCount = 0; heldCount < heldParties.size; ) {
    heldCount = heldParties.size;
    for (const [owned, sharesOfOwned] of shares) {
      if (heldParties.has(owned)) continue;
      let heldPctSum = 0;
      for (const heldShare of sharesOfOwned) if (heldParties.has(heldShare.owner)) heldPctSum += heldShare.pct ?? 0;
      // Thirds that add up to half may stay a little below it.
      if (heldPctSum >= 50 - 1e-9) heldParties.add(owned);
    }
  }
  return heldParties.has(ownedParty);
}

/** Paths without a node twice, from an owner down to the party, by owner; calls `countLooks` for each step. */
export function* pathsAbove(
  ownedParty: string,
  { shares }: Reached,
  depthMax: number,
  countLooks: (count: number) => void,
): Steps<ReadonlyMap<string, readonly (readonly Share[])[]>> {
  const pathsByOwner = new Map<string, (readonly Share[])[]>();
  // Depth first: what is above the end of each path, and how far it was looked at.
  const openPaths: { readonly path: readonly Share[]; readonly above: readonly Share[]; next: number }[] = [
    { path: [], above: shares.get(ownedParty) ?? [], next: 0 },
  ];
  for (let pathStepCount = 1; openPaths.length > 0; pathStepCount++) {
    if (pathStepCount % ownershipStepsAtOnce === 0) yield;
    const pathEnd = openPaths.at(-1)!;
    const nextShare = pathEnd.above[pathEnd.next++];
    if (nextShare === undefined) {
      openPaths.pop();
      continue;
    }
    countLooks(ownershipPathLooks);
    if (nextShare.owner === ownedParty || pathEnd.path.some(({ owner }) => owner === nextShare.owner)) continue;
    const longerPath = [nextShare, ...pathEnd.path];
    const ownerPaths = pathsByOwner.get(nextShare.owner);
    if (ownerPaths === undefined) pathsByOwner.set(nextShare.owner, [longerPath]);
    else ownerPaths.push(longerPath);
    if (longerPath.length < depthMax) openPaths.push({ path: longerPath, above: shares.get(nextShare.owner) ?? [], next: 0 });
  }
  return pathsByOwner;
}

const ownershipStepsAtOnce = 1_024;

const ownershipPathLooks = 20;

/** Parties of which more than all is said to be owned, with how much that is. */
export function overOwned({ shares }: Reached): ReadonlyMap<string, number> {
  const overOwnedPcts = new Map<string, number>();
  for (const [owned, sharesOfOwned] of shares) {
    const ownedPctSum = sharesOfOwned.reduce((pctTotal, { pct }) => pctTotal + (pct ?? 0), 0);
    if (ownedPctSum > 100 + 1e-9) overOwnedPcts.set(owned, ownedPctSum);
  }
  return overOwnedPcts;
}
