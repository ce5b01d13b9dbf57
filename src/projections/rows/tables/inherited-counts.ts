/**
 * How many versions of each organisation path a branch inherited, and how many of them it still has open. Counted on the first
 * request: a fork copies nothing, counts included.
 */
import { HIDDEN, type Inherited } from './branch-overlay.ts';
import type { Segment } from '../segments/segment.ts';
import type { PathCounts, Table } from './table.ts';

interface ForkCounts {
  readonly removals: number;
  readonly counts: ReadonlyMap<number, PathCounts>;
}

const forksCountedMax = 16;

/** By segment, then by the position as of which it was counted. */
const countsBySegment = new WeakMap<Segment, Map<number, ForkCounts>>();

export function inheritedCounts(table: Table, inherited: Inherited): ReadonlyMap<number, PathCounts> {
  const inheritedTotals = new Map<number, PathCounts>();
  for (const segment of table.segments) {
    if (segment.base >= inherited.end) break;
    for (const [path, segmentCounts] of countsBelow(segment, inherited.end))
      addPathCounts(inheritedTotals, path, segmentCounts.versions, segmentCounts.live);
    if (inherited.touches(segment)) subtractChanged(inheritedTotals, segment, inherited);
  }
  return inheritedTotals;
}

/** Counts of the rows below a position, as of that position: removals alone change them. */
function countsBelow(segment: Segment, end: number): ReadonlyMap<number, PathCounts> {
  let countsByFork = countsBySegment.get(segment);
  if (!countsByFork) countsBySegment.set(segment, (countsByFork = new Map()));
  const countedBefore = countsByFork.get(end);
  if (countedBefore?.removals === segment.removals) return countedBefore.counts;
  const countsByPath = new Map<number, PathCounts>();
  const rowsBelow = segment.rowAtOrAfter(end);
  const isWholeOnePath = rowsBelow === segment.length && segment.paths.constant !== null;
  if (isWholeOnePath && (segment.closedLeast >= end || segment.closedMost < end)) {
    // Uses the segment's own counts: the common case, and the difference between microseconds and a stall.
    const versionCount = rowsBelow - segment.removedCount;
    return new Map([
      [segment.paths.constant!, { versions: versionCount, live: segment.closedMost < end ? segment.liveCount : versionCount }],
    ]);
  }
  for (let row = 0; row < rowsBelow; row++) {
    if (!segment.isRemoved(row)) addPathCounts(countsByPath, segment.paths.codeAt(row), 1, segment.closingOf(row) >= end ? 1 : 0);
  }
  // Branches come and go: a request after so many others counts again.
  if (countsByFork.size === forksCountedMax) countsByFork.clear();
  countsByFork.set(end, { removals: segment.removals, counts: countsByPath });
  return countsByPath;
}

function subtractChanged(inheritedTotals: Map<number, PathCounts>, segment: Segment, inherited: Inherited): void {
  for (const changedRow of inherited.changedRows(segment)) {
    const inheritedClosing = inherited.closingOf(segment.firstRow + changedRow);
    if (inheritedClosing === Infinity || segment.isRemoved(changedRow)) continue;
    addPathCounts(
      inheritedTotals,
      segment.paths.codeAt(changedRow),
      inheritedClosing === HIDDEN ? -1 : 0,
      segment.closingOf(changedRow) >= inherited.end ? -1 : 0,
    );
  }
}

function addPathCounts(countsByPath: Map<number, PathCounts>, path: number, versions: number, live: number): void {
  const knownCounts = countsByPath.get(path);
  if (knownCounts) {
    knownCounts.versions += versions;
    knownCounts.live += live;
  } else countsByPath.set(path, { versions, live });
}
