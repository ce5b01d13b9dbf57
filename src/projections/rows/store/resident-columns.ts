/**
 * Columns in memory that could leave it. They leave in a turn of their own, when they exceed what the budget leaves for them:
 * those that were not read since the hand last passed go first.
 */
import type { SegmentColumn } from '../segments/segment-column.ts';
import type { SegmentColumns } from '../segments/segment-columns.ts';
import type { ColumnStoreOptions } from './store-contract.ts';

interface Resident {
  readonly cells: SegmentColumns;
  readonly name: string | null;
  readonly column: SegmentColumn;
  readonly bytes: number;
}

/** One part in so many of the budget is for columns, however much the rest takes. */
const LEAST_SHARE = 8;

export class ResidentColumns {
  readonly #options: Pick<ColumnStoreOptions, 'budgetBytes' | 'defer'>;
  /** Whether the file of a segment was packed as tightly as can be: its columns leave first. */
  readonly #isDense: (cells: SegmentColumns) => boolean;
  #ring: Resident[] = [];
  #hand = 0;
  #bytes = 0;
  #evicted = 0;
  #trimming = false;
  /** Bytes that rows hold beside columns at rest. */
  #fixedBytes: () => number = () => 0;
  #closed = false;

  constructor(options: Pick<ColumnStoreOptions, 'budgetBytes' | 'defer'>, isDense: (cells: SegmentColumns) => boolean) {
    this.#options = options;
    this.#isDense = isDense;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** How many columns left memory. */
  get evicted(): number {
    return this.#evicted;
  }

  measureBy(fixed: () => number): void {
    this.#fixedBytes = fixed;
  }

  add(cells: SegmentColumns, name: string | null, column: SegmentColumn): void {
    const { bytes } = column;
    this.#ring.push({ cells, name, column, bytes });
    this.#bytes += bytes;
    this.#trimLater();
  }

  /** Forgets columns that are in memory for good, or are gone. */
  drop(gone: (cells: SegmentColumns) => boolean): void {
    this.#ring = this.#ring.filter(({ cells }) => !gone(cells));
    this.#bytes = this.#ring.reduce((sum, { bytes }) => sum + bytes, 0);
    this.#hand = 0;
  }

  trim(limit = this.#limit()): void {
    if (this.#bytes <= limit) return;
    // Somewhat below, so that the next column does not begin it all again.
    const goal = limit - Math.floor(limit / 16);
    for (let steps = this.#ring.length * 2; this.#bytes > goal && steps > 0 && this.#ring.length > 0; steps--) {
      if (this.#hand >= this.#ring.length) this.#hand = 0;
      const each = this.#ring[this.#hand]!;
      if (!each.cells.isAtRest) {
        // It is written again first.
        this.#hand++;
      } else if (each.column.recent && !this.#isDense(each.cells)) {
        each.column.recent = false;
        this.#hand++;
      } else {
        each.cells.evict(each.name);
        this.#evicted++;
        this.#bytes -= each.bytes;
        this.#ring[this.#hand] = this.#ring.at(-1)!;
        this.#ring.pop();
      }
    }
  }

  /** Nothing is trimmed any more. */
  close(): void {
    this.#closed = true;
  }

  /** Measuring walks over all segments: not where the least that columns have is enough. */
  #limit(): number {
    const { budgetBytes } = this.#options;
    const least = Math.floor(budgetBytes / LEAST_SHARE);
    return this.#bytes <= least ? least : Math.max(budgetBytes - this.#fixedBytes(), least);
  }

  #trimLater(): void {
    if (this.#trimming || this.#closed) return;
    this.#trimming = true;
    this.#options.defer(() => {
      this.#trimming = false;
      this.trim();
    });
  }
}
