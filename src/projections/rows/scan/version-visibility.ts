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
  timeRequest: { time: TimeBounds; after?: bigint | undefined },
  basis: number,
  timeline: Timeline,
): VersionVisibility {
  const { system, valid } = timeRequest.time;
  const positionBound = system === 'all' ? basis : Math.min(basis, timeline.positionAfter(system));
  return {
    // Nothing holds at FOREVER: it is no instant but the absence of an end.
    bound: system === FOREVER || valid === FOREVER ? 0 : positionBound,
    basis,
    from: timeRequest.after === undefined ? 0 : timeline.positionAfter(timeRequest.after),
    openOnly: system !== 'all',
    valid,
    validBound: valid === 'all' ? Infinity : timeline.positionAfter(valid),
  };
}

/** One version, for reads by key. */
export function isVisible(segment: Segment, row: number, visibility: VersionVisibility): boolean {
  const versionPosition = segment.positionOf(row);
  if (versionPosition >= visibility.bound || versionPosition < visibility.from) return false;
  // Removed versions are the only ones with a closing below the segment's first row.
  if (segment.closingOf(row) < (visibility.openOnly ? visibility.bound : segment.base)) return false;
  if (visibility.valid === 'all') return true;
  const { validFrom, validTo } = segment;
  const isValidBegun = validFrom ? validFrom[row]! <= visibility.valid : versionPosition < visibility.validBound;
  return isValidBegun && (!validTo || visibility.valid < validTo[row]!);
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
  const lastRow = segment.length - 1;
  if (lastRow < 0 || segment.base >= bound || segment.positionOf(lastRow) < from) return null;
  let filterEnd = segment.positionOf(lastRow) < bound ? segment.length : segment.rowAtOrAfter(bound);
  const first = segment.base >= from ? 0 : segment.rowAtOrAfter(from);

  let closingBound: number | null = null;
  let onlyLiveRows = false;
  if (!visibility.openOnly) {
    // Removed versions are the only ones with a closing below the segment's first row.
    if (segment.removedCount > 0) closingBound = REMOVED + 1;
  } else if (segment.closedLeast < bound || segment.removedCount > 0) {
    if (segment.closedMost < bound) {
      if (segment.liveCount === 0) return null;
      onlyLiveRows = segment.live !== null;
    } else
      closingBound = !(segment.closings instanceof Float64Array) ? Math.min(bound - segment.base, OPEN) : bound - segment.base;
  }

  let validFrom = false;
  let validTo = false;
  if (valid !== 'all') {
    const validZone = segment.validZone();
    if (segment.validFrom) {
      if (validZone.fromLeast > valid) return null;
      if (validZone.fromMost > valid) validFrom = true;
    } else if (segment.base >= visibility.validBound) return null;
    else if (segment.positionOf(lastRow) >= visibility.validBound)
      filterEnd = Math.min(filterEnd, segment.rowAtOrAfter(visibility.validBound));
    if (segment.validTo) {
      if (validZone.toMost <= valid) return null;
      if (validZone.toLeast <= valid) validTo = true;
    }
  }
  return first < filterEnd ? { first, end: filterEnd, closing: closingBound, live: onlyLiveRows, validFrom, validTo } : null;
}

const selectedRows = new Int32Array(65_536);

/**
 * Visible rows of first .. end-1 under a filter and, where given, allowed paths (`allowed[code] === 1`). Null when all
 * of them are. `openRows` are those that the filter's closing leaves, where they are known already.
 */
export function selectRows(
  segment: Segment,
  segmentFilter: SegmentFilter,
  visibility: VersionVisibility,
  allowedPaths: Uint8Array | null,
  first: number,
  end: number,
  openRows: Int32Array | null,
): Int32Array | null {
  let selectedCount = -1;
  const { live, closings, validFrom, validTo } = segment;
  if (segmentFilter.live) selectedCount = keepLive(live!, first, end);
  else if (openRows) selectedCount = keepOpenRows(openRows);
  else if (segmentFilter.closing !== null && closings) selectedCount = keepOpen(closings, segmentFilter.closing, first, end);
  if (segmentFilter.validFrom) selectedCount = keepBegun(validFrom!, visibility.valid as bigint, first, end, selectedCount);
  if (segmentFilter.validTo) selectedCount = keepUnended(validTo!, visibility.valid as bigint, first, end, selectedCount);
  if (allowedPaths && segment.paths.values)
    selectedCount = keepPaths(segment.paths.values, allowedPaths, first, end, selectedCount);
  return selectedCount < 0 || selectedCount === end - first ? null : selectedRows.slice(0, selectedCount);
}

function keepLive(live: Int32Array, first: number, end: number): number {
  let selectedCount = 0;
  for (let liveWord = first >>> 5; liveWord << 5 < end; liveWord++) {
    let liveBits = live[liveWord]!;
    const wordRow = liveWord << 5;
    if (wordRow < first) liveBits &= -1 << (first - wordRow);
    if (end - wordRow < 32) liveBits &= (1 << (end - wordRow)) - 1;
    while (liveBits !== 0) {
      selectedRows[selectedCount++] = wordRow + 31 - Math.clz32(liveBits & -liveBits);
      liveBits &= liveBits - 1;
    }
  }
  return selectedCount;
}

function keepOpenRows(openRows: Int32Array): number {
  selectedRows.set(openRows);
  return openRows.length;
}

function keepOpen(closings: Int32Array | Float64Array, closingBound: number, first: number, end: number): number {
  return closings instanceof Int32Array
    ? keepOpenNarrow(closings, closingBound, first, end)
    : keepOpenWide(closings, closingBound, first, end);
}

function keepOpenNarrow(closings: Int32Array, closingBound: number, first: number, end: number): number {
  let selectedCount = 0;
  for (let row = first; row < end; row++) {
    selectedRows[selectedCount] = row;
    selectedCount += closings[row]! >= closingBound ? 1 : 0;
  }
  return selectedCount;
}

function keepOpenWide(closings: Float64Array, closingBound: number, first: number, end: number): number {
  let selectedCount = 0;
  for (let row = first; row < end; row++) {
    selectedRows[selectedCount] = row;
    selectedCount += closings[row]! >= closingBound ? 1 : 0;
  }
  return selectedCount;
}

function keepBegun(validFrom: BigInt64Array, validInstant: bigint, first: number, end: number, selectedBefore: number): number {
  let selectedCount = 0;
  if (selectedBefore < 0) {
    for (let row = first; row < end; row++) if (validFrom[row]! <= validInstant) selectedRows[selectedCount++] = row;
  } else {
    for (let k = 0; k < selectedBefore; k++)
      if (validFrom[selectedRows[k]!]! <= validInstant) selectedRows[selectedCount++] = selectedRows[k]!;
  }
  return selectedCount;
}

function keepUnended(validTo: BigInt64Array, validInstant: bigint, first: number, end: number, selectedBefore: number): number {
  let selectedCount = 0;
  if (selectedBefore < 0) {
    for (let row = first; row < end; row++) if (validInstant < validTo[row]!) selectedRows[selectedCount++] = row;
  } else {
    for (let k = 0; k < selectedBefore; k++)
      if (validInstant < validTo[selectedRows[k]!]!) selectedRows[selectedCount++] = selectedRows[k]!;
  }
  return selectedCount;
}

function keepPaths(paths: Codes, allowedPaths: Uint8Array, first: number, end: number, selectedBefore: number): number {
  let selectedCount = 0;
  if (selectedBefore < 0) {
    for (let row = first; row < end; row++) if (allowedPaths[paths[row]!] === 1) selectedRows[selectedCount++] = row;
  } else {
    for (let k = 0; k < selectedBefore; k++)
      if (allowedPaths[paths[selectedRows[k]!]!] === 1) selectedRows[selectedCount++] = selectedRows[k]!;
  }
  return selectedCount;
}

/** True when a request is for what is believed now: nothing that the snapshot sees was closed before its bound alone. */
export function isCurrent(request: ScanRequest, visibility: VersionVisibility): boolean {
  return request.time.system !== 'all' && visibility.bound === visibility.basis;
}
