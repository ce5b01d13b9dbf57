/**
 * Decides which versions a read sees, once per scan: instants become position bounds, and from there on rows are
 * compared by integers. The valid axis compares nanoseconds, and only in segments whose bounds leave it open.
 */
import { FOREVER } from '../../../log/values/timestamp.ts';
import type { ScanRequest, TimeBounds } from '../../access-paths.ts';
import type { Timeline } from '../../../log/values/timeline.ts';
import type { Codes } from '../cells/code-column.ts';
import { OPEN, REMOVED } from '../segments/closings.ts';
import type { Segment } from '../segments/segment.ts';

export interface VersionVisibility {
  /** Versions at positions below this one. */
  readonly bound: number;
  /** Closings at or after this position have not happened yet: everything that the snapshot sees is below it. */
  readonly basis: number;
  /** Versions at positions from this one on. */
  readonly from: number;
  /** False on `system: 'all'`: superseded versions show too. */
  readonly openOnly: boolean;
  readonly valid: 'all' | bigint;
  /** Versions below this position have system_from <= the valid instant. */
  readonly validBound: number;
}

export function visibilityOf(
  request: { time: TimeBounds; after?: bigint | undefined },
  basis: number,
  timeline: Timeline,
): VersionVisibility {
  const { system, valid } = request.time;
  const bound = system === 'all' ? basis : Math.min(basis, timeline.positionAfter(system));
  return {
    // Nothing holds at FOREVER: it is no instant but the absence of an end.
    bound: system === FOREVER || valid === FOREVER ? 0 : bound,
    basis,
    from: request.after === undefined ? 0 : timeline.positionAfter(request.after),
    openOnly: system !== 'all',
    valid,
    validBound: valid === 'all' ? Infinity : timeline.positionAfter(valid),
  };
}

/** One version, for reads by key. */
export function isVisible(segment: Segment, row: number, visibility: VersionVisibility): boolean {
  const position = segment.positionOf(row);
  if (position >= visibility.bound || position < visibility.from) return false;
  // Removed versions are the only ones with a closing below the segment's first row.
  if (segment.closingOf(row) < (visibility.openOnly ? visibility.bound : segment.base)) return false;
  if (visibility.valid === 'all') return true;
  const { validFrom, validTo } = segment;
  const begun = validFrom ? validFrom[row]! <= visibility.valid : position < visibility.validBound;
  return begun && (!validTo || visibility.valid < validTo[row]!);
}

/**
 * The rows of a segment that could be visible, as a range, and what is left to compare row by row within it. It says which
 * columns, and holds none: they may rest elsewhere by the time of the next block.
 */
export interface SegmentFilter {
  readonly first: number;
  readonly end: number;
  /** Least closing, relative to the segment's base, that a visible version has; null: closings need no look. */
  readonly closing: number | null;
  /** True when bits of open versions answer for closings: no closing is younger than the bound. */
  readonly live: boolean;
  readonly validFrom: boolean;
  readonly validTo: boolean;
}

/** Null when no row of the segment can be visible. */
export function filterOf(segment: Segment, visibility: VersionVisibility): SegmentFilter | null {
  const { bound, from, valid } = visibility;
  const last = segment.length - 1;
  if (last < 0 || segment.base >= bound || segment.positionOf(last) < from) return null;
  let end = segment.positionOf(last) < bound ? segment.length : segment.rowAtOrAfter(bound);
  const first = segment.base >= from ? 0 : segment.rowAtOrAfter(from);

  let closing: number | null = null;
  let live = false;
  if (!visibility.openOnly) {
    // Removed versions are the only ones with a closing below the segment's first row.
    if (segment.removedCount > 0) closing = REMOVED + 1;
  } else if (segment.closedLeast < bound || segment.removedCount > 0) {
    if (segment.closedMost < bound) {
      if (segment.liveCount === 0) return null;
      live = segment.live !== null;
    } else closing = !(segment.closings instanceof Float64Array) ? Math.min(bound - segment.base, OPEN) : bound - segment.base;
  }

  let validFrom = false;
  let validTo = false;
  if (valid !== 'all') {
    const zone = segment.validZone();
    if (segment.validFrom) {
      if (zone.fromLeast > valid) return null;
      if (zone.fromMost > valid) validFrom = true;
    } else if (segment.base >= visibility.validBound) return null;
    else if (segment.positionOf(last) >= visibility.validBound) end = Math.min(end, segment.rowAtOrAfter(visibility.validBound));
    if (segment.validTo) {
      if (zone.toMost <= valid) return null;
      if (zone.toLeast <= valid) validTo = true;
    }
  }
  return first < end ? { first, end, closing, live, validFrom, validTo } : null;
}

const scratch = new Int32Array(65_536);

/**
 * Visible rows of first .. end-1 under a filter and, where given, allowed paths (`allowed[code] === 1`). Null when all
 * of them are. `open` are those that the filter's closing leaves, where they are known already.
 */
export function selectRows(
  segment: Segment,
  filter: SegmentFilter,
  visibility: VersionVisibility,
  allowed: Uint8Array | null,
  first: number,
  end: number,
  open: Int32Array | null,
): Int32Array | null {
  let count = -1;
  const { live, closings, validFrom, validTo } = segment;
  if (filter.live) count = keepLive(live!, first, end);
  else if (open) count = keepThese(open);
  else if (filter.closing !== null && closings) count = keepOpen(closings, filter.closing, first, end);
  if (filter.validFrom) count = keepBegun(validFrom!, visibility.valid as bigint, first, end, count);
  if (filter.validTo) count = keepUnended(validTo!, visibility.valid as bigint, first, end, count);
  if (allowed && segment.paths.values) count = keepPaths(segment.paths.values, allowed, first, end, count);
  return count < 0 || count === end - first ? null : scratch.slice(0, count);
}

function keepLive(live: Int32Array, first: number, end: number): number {
  let count = 0;
  for (let word = first >>> 5; word << 5 < end; word++) {
    let bits = live[word]!;
    const base = word << 5;
    if (base < first) bits &= -1 << (first - base);
    if (end - base < 32) bits &= (1 << (end - base)) - 1;
    while (bits !== 0) {
      scratch[count++] = base + 31 - Math.clz32(bits & -bits);
      bits &= bits - 1;
    }
  }
  return count;
}

function keepThese(rows: Int32Array): number {
  scratch.set(rows);
  return rows.length;
}

function keepOpen(closings: Int32Array | Float64Array, closing: number, first: number, end: number): number {
  return closings instanceof Int32Array
    ? keepOpenNarrow(closings, closing, first, end)
    : keepOpenWide(closings, closing, first, end);
}

function keepOpenNarrow(closings: Int32Array, closing: number, first: number, end: number): number {
  let count = 0;
  for (let row = first; row < end; row++) {
    scratch[count] = row;
    count += closings[row]! >= closing ? 1 : 0;
  }
  return count;
}

function keepOpenWide(closings: Float64Array, closing: number, first: number, end: number): number {
  let count = 0;
  for (let row = first; row < end; row++) {
    scratch[count] = row;
    count += closings[row]! >= closing ? 1 : 0;
  }
  return count;
}

function keepBegun(from: BigInt64Array, at: bigint, first: number, end: number, before: number): number {
  let count = 0;
  if (before < 0) {
    for (let row = first; row < end; row++) if (from[row]! <= at) scratch[count++] = row;
  } else {
    for (let k = 0; k < before; k++) if (from[scratch[k]!]! <= at) scratch[count++] = scratch[k]!;
  }
  return count;
}

function keepUnended(to: BigInt64Array, at: bigint, first: number, end: number, before: number): number {
  let count = 0;
  if (before < 0) {
    for (let row = first; row < end; row++) if (at < to[row]!) scratch[count++] = row;
  } else {
    for (let k = 0; k < before; k++) if (at < to[scratch[k]!]!) scratch[count++] = scratch[k]!;
  }
  return count;
}

function keepPaths(paths: Codes, allowed: Uint8Array, first: number, end: number, before: number): number {
  let count = 0;
  if (before < 0) {
    for (let row = first; row < end; row++) if (allowed[paths[row]!] === 1) scratch[count++] = row;
  } else {
    for (let k = 0; k < before; k++) if (allowed[paths[scratch[k]!]!] === 1) scratch[count++] = scratch[k]!;
  }
  return count;
}

/** True when a request is for what is believed now: nothing that the snapshot sees was closed before its bound alone. */
export function isCurrent(request: ScanRequest, visibility: VersionVisibility): boolean {
  return request.time.system !== 'all' && visibility.bound === visibility.basis;
}
