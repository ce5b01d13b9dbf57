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
const VISIBLE_SHARE = 16;
const CLOSING_SAMPLES = 64;

interface ClosingOrder {
  readonly rows: Uint16Array;
  /** So many of them were closed when it was made. */
  readonly closed: number;
  /** Removals of the segment, when it was made. */
  readonly removals: number;
  stale: boolean;
}

/** One bit a row; all zero between two uses. */
const visibleRowMarks = new Int32Array(SEGMENT_ROWS >>> 5);
const closingDigits = new Int32Array(65_537);

/** Closing orders of the tables of one type. */
export class ClosingOrders {
  readonly #orderEntriesMax: number;
  readonly #ordersBySegment = new WeakMap<Segment, ClosingOrder>();
  /** Weakly: the segments of a branch that was deleted take theirs along. */
  #countedOrders: WeakRef<ClosingOrder>[] = [];
  #orderEntryCount = 0;
  /** Orders that had to be made: each takes the time of a summary. */
  made = 0;

  constructor(orderEntriesMax: number) {
    this.#orderEntriesMax = orderEntriesMax;
  }

  /**
   * Rows of first .. end-1 whose closing, relative to the segment's base, is `closingBound` or later, ascending; null where
   * comparing all of them is no worse. Without `make`, by an order that is there already.
   */
  visible(segment: Segment, closingBound: number, first: number, end: number, make: boolean): Int32Array | null {
    const closingOrder = this.#closingOrderOf(segment, closingBound, make);
    if (closingOrder === null) return null;
    const closings = segment.closings!;
    const { rows: orderedRows, closed } = closingOrder;
    let [firstOpen, highClosed] = [0, closed];
    while (firstOpen < highClosed) {
      const middleClosed = (firstOpen + highClosed) >>> 1;
      if (closings[orderedRows[middleClosed]!]! < closingBound) firstOpen = middleClosed + 1;
      else highClosed = middleClosed;
    }
    if ((orderedRows.length - firstOpen) * VISIBLE_SHARE > segment.length) return null;
    let visibleCount = 0;
    for (let k = firstOpen; k < orderedRows.length; k++) {
      const orderedRow = orderedRows[k]!;
      if (orderedRow < first || orderedRow >= end || closings[orderedRow]! < closingBound) continue;
      visibleRowMarks[orderedRow >>> 5]! |= 1 << (orderedRow & 31);
      visibleCount++;
    }
    return takeMarkedRows(visibleCount, first);
  }

  #closingOrderOf(segment: Segment, closingBound: number, make: boolean): ClosingOrder | null {
    const knownOrder = this.#ordersBySegment.get(segment);
    if (knownOrder?.removals === segment.removals) return knownOrder;
    if (knownOrder) {
      knownOrder.stale = true;
      this.#ordersBySegment.delete(segment);
    }
    if (!make || !segment.sealed || !isOrderWorthwhile(segment, closingBound) || !this.#hasOrderRoom(segment.length)) return null;
    const newOrder = makeClosingOrder(segment);
    this.#ordersBySegment.set(segment, newOrder);
    this.#countedOrders.push(new WeakRef(newOrder));
    this.#orderEntryCount += newOrder.rows.length;
    this.made++;
    return newOrder;
  }

  #hasOrderRoom(addedEntries: number): boolean {
    if (this.#orderEntryCount + addedEntries <= this.#orderEntriesMax) return true;
    this.#orderEntryCount = 0;
    this.#countedOrders = this.#countedOrders.filter((countedOrder) => {
      const closingOrder = countedOrder.deref();
      if (!closingOrder || closingOrder.stale) return false;
      this.#orderEntryCount += closingOrder.rows.length;
      return true;
    });
    return this.#orderEntryCount + addedEntries <= this.#orderEntriesMax;
  }
}

/** Whether few versions are open now and, by a sample, few were at the closing that is asked for. */
function isOrderWorthwhile(segment: Segment, closingBound: number): boolean {
  const { length, liveCount } = segment;
  const closings = segment.closings!;
  if (liveCount * VISIBLE_SHARE > length) return false;
  let openSamples = 0;
  for (let k = 0; k < CLOSING_SAMPLES; k++)
    if (closings[Math.floor((k * length) / CLOSING_SAMPLES)]! >= closingBound) openSamples++;
  return openSamples * VISIBLE_SHARE <= CLOSING_SAMPLES;
}

function makeClosingOrder(segment: Segment): ClosingOrder {
  const { length } = segment;
  const closings = segment.closings!;
  const liveBits = segment.live!;
  let orderedRows = new Uint16Array(length - segment.removedCount);
  let closedCount = 0;
  let mostClosing = 0;
  let nextOpenSlot = orderedRows.length - segment.liveCount;
  for (let row = 0; row < length; row++) {
    if (segment.isRemoved(row)) continue;
    if ((liveBits[row >>> 5]! & (1 << (row & 31))) !== 0) {
      orderedRows[nextOpenSlot++] = row;
      continue;
    }
    mostClosing = Math.max(mostClosing, closings[row]!);
    orderedRows[closedCount++] = row;
  }
  // Stable passes, from the least digit of 16 bits to the greatest that any closing has.
  for (let digitScale = 1; digitScale <= mostClosing; digitScale *= 65_536) {
    closingDigits.fill(0);
    for (let k = 0; k < closedCount; k++) closingDigits[((closings[orderedRows[k]!]! / digitScale) & 0xffff) + 1]!++;
    for (let closingDigit = 1; closingDigit < 65_536; closingDigit++)
      closingDigits[closingDigit]! += closingDigits[closingDigit - 1]!;
    const sortedByDigit = orderedRows.slice();
    for (let k = 0; k < closedCount; k++)
      sortedByDigit[closingDigits[(closings[orderedRows[k]!]! / digitScale) & 0xffff]!++] = orderedRows[k]!;
    orderedRows = sortedByDigit;
  }
  return { rows: orderedRows, closed: closedCount, removals: segment.removals, stale: false };
}

/** The rows that are marked, none of them below `first`; marks are taken away. */
function takeMarkedRows(count: number, first: number): Int32Array {
  const openRows = new Int32Array(count);
  let markedCount = 0;
  for (let markWord = first >>> 5; markedCount < count; markWord++) {
    for (let markBits = visibleRowMarks[markWord]!; markBits !== 0; markBits &= markBits - 1)
      openRows[markedCount++] = (markWord << 5) + 31 - Math.clz32(markBits & -markBits);
    visibleRowMarks[markWord] = 0;
  }
  return openRows;
}
