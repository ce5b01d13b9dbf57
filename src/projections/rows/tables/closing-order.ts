/**
 * Rows of sealed segments ordered by when they were superseded, so that a read of long ago over much history gathers the few
 * versions that were open then instead of comparing every closing. Made when a read first gains from one. Invariants:
 *
 * - rows that were open when an order was made come last, in row order: whatever closes them later is younger than all that
 *   was closed before, so that the versions open at a bound lie behind one place of the order, closed since or not;
 * - a removal changes closings of before: the order of its segment is made anew;
 * - entries are counted per type, main and branches together; beyond the most there are to be, closings are compared.
 */
import type { Segment } from '../segments/segment.ts';
import { SEGMENT_ROWS } from '../segments/segment-column.ts';

/** Gathering pays below this share of a segment's rows. */
const SHARE = 16;
const SAMPLES = 64;

interface Order {
  readonly rows: Uint16Array;
  /** So many of them were closed when it was made. */
  readonly closed: number;
  /** Removals of the segment, when it was made. */
  readonly removals: number;
  stale: boolean;
}

/** One bit a row; all zero between two uses. */
const marks = new Int32Array(SEGMENT_ROWS >>> 5);
const digits = new Int32Array(65_537);

/** Closing orders of the tables of one type. */
export class ClosingOrders {
  readonly #max: number;
  readonly #known = new WeakMap<Segment, Order>();
  /** Weakly: the segments of a branch that was deleted take theirs along. */
  #counted: WeakRef<Order>[] = [];
  #entries = 0;
  /** Orders that had to be made: each takes the time of a summary. */
  made = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /**
   * Rows of first .. end-1 whose closing, relative to the segment's base, is `closing` or later, ascending; null where
   * comparing all of them is no worse. Without `make`, by an order that is there already.
   */
  visible(segment: Segment, closing: number, first: number, end: number, make: boolean): Int32Array | null {
    const order = this.#orderOf(segment, closing, make);
    if (order === null) return null;
    const closings = segment.closings!;
    const { rows, closed } = order;
    let [from, high] = [0, closed];
    while (from < high) {
      const middle = (from + high) >>> 1;
      if (closings[rows[middle]!]! < closing) from = middle + 1;
      else high = middle;
    }
    if ((rows.length - from) * SHARE > segment.length) return null;
    let count = 0;
    for (let k = from; k < rows.length; k++) {
      const row = rows[k]!;
      if (row < first || row >= end || closings[row]! < closing) continue;
      marks[row >>> 5]! |= 1 << (row & 31);
      count++;
    }
    return takeMarked(count, first);
  }

  #orderOf(segment: Segment, closing: number, make: boolean): Order | null {
    const known = this.#known.get(segment);
    if (known?.removals === segment.removals) return known;
    if (known) {
      known.stale = true;
      this.#known.delete(segment);
    }
    if (!make || !segment.sealed || !gains(segment, closing) || !this.#hasRoom(segment.length)) return null;
    const order = orderOf(segment);
    this.#known.set(segment, order);
    this.#counted.push(new WeakRef(order));
    this.#entries += order.rows.length;
    this.made++;
    return order;
  }

  #hasRoom(entries: number): boolean {
    if (this.#entries + entries <= this.#max) return true;
    this.#entries = 0;
    this.#counted = this.#counted.filter((counted) => {
      const order = counted.deref();
      if (!order || order.stale) return false;
      this.#entries += order.rows.length;
      return true;
    });
    return this.#entries + entries <= this.#max;
  }
}

/** Whether few versions are open now and, by a sample, few were at the closing that is asked for. */
function gains(segment: Segment, closing: number): boolean {
  const { length, liveCount } = segment;
  const closings = segment.closings!;
  if (liveCount * SHARE > length) return false;
  let open = 0;
  for (let k = 0; k < SAMPLES; k++) if (closings[Math.floor((k * length) / SAMPLES)]! >= closing) open++;
  return open * SHARE <= SAMPLES;
}

function orderOf(segment: Segment): Order {
  const { length } = segment;
  const closings = segment.closings!;
  const live = segment.live!;
  let rows = new Uint16Array(length - segment.removedCount);
  let closed = 0;
  let most = 0;
  let open = rows.length - segment.liveCount;
  for (let row = 0; row < length; row++) {
    if (segment.isRemoved(row)) continue;
    if ((live[row >>> 5]! & (1 << (row & 31))) !== 0) {
      rows[open++] = row;
      continue;
    }
    most = Math.max(most, closings[row]!);
    rows[closed++] = row;
  }
  // Stable passes, from the least digit of 16 bits to the greatest that any closing has.
  for (let scale = 1; scale <= most; scale *= 65_536) {
    digits.fill(0);
    for (let k = 0; k < closed; k++) digits[((closings[rows[k]!]! / scale) & 0xffff) + 1]!++;
    for (let digit = 1; digit < 65_536; digit++) digits[digit]! += digits[digit - 1]!;
    const sorted = rows.slice();
    for (let k = 0; k < closed; k++) sorted[digits[(closings[rows[k]!]! / scale) & 0xffff]!++] = rows[k]!;
    rows = sorted;
  }
  return { rows, closed, removals: segment.removals, stale: false };
}

/** The rows that are marked, none of them below `first`; marks are taken away. */
function takeMarked(count: number, first: number): Int32Array {
  const openRows = new Int32Array(count);
  let used = 0;
  for (let word = first >>> 5; used < count; word++) {
    for (let bits = marks[word]!; bits !== 0; bits &= bits - 1) openRows[used++] = (word << 5) + 31 - Math.clz32(bits & -bits);
    marks[word] = 0;
  }
  return openRows;
}
