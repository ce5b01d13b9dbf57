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

export function reachedAbove(party: string, byOwned: ReadonlyMap<string, readonly Share[]>, depthMax: number): Reached {
  const depths = new Map([[party, 0]]);
  const shares = new Map<string, readonly Share[]>();
  for (const [node, depth] of depths) {
    const above = depth < depthMax ? byOwned.get(node) : undefined;
    if (above === undefined) continue;
    shares.set(node, above);
    for (const { owner } of above) if (!depths.has(owner)) depths.set(owner, depth + 1);
  }
  return { depths, shares };
}

const sweepsMax = 10_000;

/**
 * By owner, the percent of the party that is its own through all walks: x = W(e + x), solved by sweeps. null where they do not
 * come to an end, as where two own all of each other.
 */
export function effectiveShares(party: string, { depths, shares }: Reached): ReadonlyMap<string, number> | null {
  const effective = new Map<string, number>();
  for (const node of depths.keys()) effective.set(node, 0);
  const byOwner = new Map<string, Share[]>();
  for (const share of [...shares.values()].flat()) {
    const all = byOwner.get(share.owner);
    if (all === undefined) byOwner.set(share.owner, [share]);
    else all.push(share);
  }
  for (let sweep = 0; sweep < sweepsMax; sweep++) {
    let change = 0;
    for (const [owner, held] of byOwner) {
      let sum = 0;
      for (const { owned, pct } of held) sum += ((pct ?? 0) / 100) * ((owned === party ? 100 : 0) + effective.get(owned)!);
      change = Math.max(change, Math.abs(sum - effective.get(owner)!));
      effective.set(owner, sum);
    }
    if (change < 1e-10) return effective;
    if (!Number.isFinite(change) || change > 1e12) return null;
  }
  return null;
}

/** Whether what one party holds and what parties hold that are held so themselves comes to half of each step, up to the party. */
export function isHeldByHalf(owner: string, party: string, { shares }: Reached): boolean {
  const held = new Set([owner]);
  for (let size = 0; size < held.size; ) {
    size = held.size;
    for (const [owned, all] of shares) {
      if (held.has(owned)) continue;
      let sum = 0;
      for (const share of all) if (held.has(share.owner)) sum += share.pct ?? 0;
      // Thirds that add up to half may stay a little below it.
      if (sum >= 50 - 1e-9) held.add(owned);
    }
  }
  return held.has(party);
}

/** Paths without a node twice, from an owner down to the party, by owner; calls `look` for each step. */
export function* pathsAbove(
  party: string,
  { shares }: Reached,
  depthMax: number,
  look: (count: number) => void,
): Steps<ReadonlyMap<string, readonly (readonly Share[])[]>> {
  const pathsByOwner = new Map<string, (readonly Share[])[]>();
  // Depth first: what is above the end of each path, and how far it was looked at.
  const open: { readonly path: readonly Share[]; readonly above: readonly Share[]; next: number }[] = [
    { path: [], above: shares.get(party) ?? [], next: 0 },
  ];
  for (let steps = 1; open.length > 0; steps++) {
    if (steps % stepsAtOnce === 0) yield;
    const end = open.at(-1)!;
    const share = end.above[end.next++];
    if (share === undefined) {
      open.pop();
      continue;
    }
    look(pathLooks);
    if (share.owner === party || end.path.some(({ owner }) => owner === share.owner)) continue;
    const path = [share, ...end.path];
    const all = pathsByOwner.get(share.owner);
    if (all === undefined) pathsByOwner.set(share.owner, [path]);
    else all.push(path);
    if (path.length < depthMax) open.push({ path, above: shares.get(share.owner) ?? [], next: 0 });
  }
  return pathsByOwner;
}

const stepsAtOnce = 1_024;

const pathLooks = 20;

/** Parties of which more than all is said to be owned, with how much that is. */
export function overOwned({ shares }: Reached): ReadonlyMap<string, number> {
  const over = new Map<string, number>();
  for (const [owned, all] of shares) {
    const sum = all.reduce((total, { pct }) => total + (pct ?? 0), 0);
    if (sum > 100 + 1e-9) over.set(owned, sum);
  }
  return over;
}
