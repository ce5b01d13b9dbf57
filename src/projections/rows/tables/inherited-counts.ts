/**
 * How many versions of each organisation path a branch inherited, and how many of them it still has open. Counted on the first
 * request: a fork copies nothing, counts included.
 */
import { HIDDEN, type Inherited } from './branch-overlay.ts';
import type { Segment } from '../segments/segment.ts';
import type { PathCounts, Table } from './table.ts';

interface Counted {
  readonly removals: number;
  readonly counts: ReadonlyMap<number, PathCounts>;
}

const forksKept = 16;

/** By segment, then by the position as of which it was counted. */
const counted = new WeakMap<Segment, Map<number, Counted>>();

export function inheritedCounts(table: Table, inherited: Inherited): ReadonlyMap<number, PathCounts> {
  const total = new Map<number, PathCounts>();
  for (const segment of table.segments) {
    if (segment.base >= inherited.end) break;
    for (const [path, counts] of countsBelow(segment, inherited.end)) add(total, path, counts.versions, counts.live);
    if (inherited.touches(segment)) subtractChanged(total, segment, inherited);
  }
  return total;
}

/** Counts of the rows below a position, as of that position: removals alone change them. */
function countsBelow(segment: Segment, end: number): ReadonlyMap<number, PathCounts> {
  let known = counted.get(segment);
  if (!known) counted.set(segment, (known = new Map()));
  const before = known.get(end);
  if (before?.removals === segment.removals) return before.counts;
  const counts = new Map<number, PathCounts>();
  const rows = segment.rowAtOrAfter(end);
  const whole = rows === segment.length && segment.paths.constant !== null;
  if (whole && (segment.closedLeast >= end || segment.closedMost < end)) {
    // Uses the segment's own counts: the common case, and the difference between microseconds and a stall.
    const versions = rows - segment.removedCount;
    return new Map([[segment.paths.constant!, { versions, live: segment.closedMost < end ? segment.liveCount : versions }]]);
  }
  for (let row = 0; row < rows; row++) {
    if (!segment.isRemoved(row)) add(counts, segment.paths.codeAt(row), 1, segment.closingOf(row) >= end ? 1 : 0);
  }
  // Branches come and go: a request after so many others counts again.
  if (known.size === forksKept) known.clear();
  known.set(end, { removals: segment.removals, counts });
  return counts;
}

function subtractChanged(total: Map<number, PathCounts>, segment: Segment, inherited: Inherited): void {
  for (const row of inherited.changedRows(segment)) {
    const closing = inherited.closingOf(segment.firstRow + row);
    if (closing === Infinity || segment.isRemoved(row)) continue;
    add(total, segment.paths.codeAt(row), closing === HIDDEN ? -1 : 0, segment.closingOf(row) >= inherited.end ? -1 : 0);
  }
}

function add(counts: Map<number, PathCounts>, path: number, versions: number, live: number): void {
  const known = counts.get(path);
  if (known) {
    known.versions += versions;
    known.live += live;
  } else counts.set(path, { versions, live });
}
