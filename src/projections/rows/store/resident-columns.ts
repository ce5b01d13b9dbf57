/**
 * Columns in memory that could leave it. They leave in a turn of their own, when they exceed what the budget leaves for them:
 * those that were not read since the hand last passed go first.
 */
import type { SegmentColumn } from '../segments/segment-column.ts';
import type { SegmentColumns } from '../segments/segment-columns.ts';
import type { ColumnStoreOptions } from './store-contract.ts';

interface ResidentColumn {
  readonly cells: SegmentColumns;
  readonly name: string | null;
  readonly column: SegmentColumn;
  readonly bytes: number;
}

/** One part in so many of the budget is for columns, however much the rest takes. */
const LEAST_RESIDENT_SHARE = 8;

export class ResidentColumns {
  readonly #residentOptions: Pick<ColumnStoreOptions, 'budgetBytes' | 'defer'>;
  /** Whether the file of a segment was packed as tightly as can be: its columns leave first. */
  readonly #areCellsDense: (cells: SegmentColumns) => boolean;
  #residentRing: ResidentColumn[] = [];
  #clockHand = 0;
  #residentBytes = 0;
  #evictedCount = 0;
  #isTrimQueued = false;
  /** Bytes that rows hold beside columns at rest. */
  #fixedBytes: () => number = () => 0;
  #areResidentsClosed = false;

  constructor(options: Pick<ColumnStoreOptions, 'budgetBytes' | 'defer'>, isDense: (cells: SegmentColumns) => boolean) {
    this.#residentOptions = options;
    this.#areCellsDense = isDense;
  }

  get bytes(): number {
    return this.#residentBytes;
  }

  /** How many columns left memory. */
  get evicted(): number {
    return this.#evictedCount;
  }

  measureBy(fixed: () => number): void {
    this.#fixedBytes = fixed;
  }

  add(cells: SegmentColumns, name: string | null, residentColumn: SegmentColumn): void {
    const { bytes } = residentColumn;
    this.#residentRing.push({ cells, name, column: residentColumn, bytes });
    this.#residentBytes += bytes;
    this.#queueResidentTrim();
  }

  /** Forgets columns that are in memory for good, or are gone. */
  drop(areCellsGone: (cells: SegmentColumns) => boolean): void {
    this.#residentRing = this.#residentRing.filter(({ cells }) => !areCellsGone(cells));
    this.#residentBytes = this.#residentRing.reduce((residentSum, { bytes }) => residentSum + bytes, 0);
    this.#clockHand = 0;
  }

  trim(residentLimit = this.#residentLimit()): void {
    if (this.#residentBytes <= residentLimit) return;
    // Somewhat below, so that the next column does not begin it all again.
    const residentGoal = residentLimit - Math.floor(residentLimit / 16);
    for (
      let handSteps = this.#residentRing.length * 2;
      this.#residentBytes > residentGoal && handSteps > 0 && this.#residentRing.length > 0;
      handSteps--
    ) {
      if (this.#clockHand >= this.#residentRing.length) this.#clockHand = 0;
      const residentAtHand = this.#residentRing[this.#clockHand]!;
      if (!residentAtHand.cells.isAtRest) {
        // It is written again first.
        this.#clockHand++;
      } else if (residentAtHand.column.recent && !this.#areCellsDense(residentAtHand.cells)) {
        residentAtHand.column.recent = false;
        this.#clockHand++;
      } else {
        residentAtHand.cells.evict(residentAtHand.name);
        this.#evictedCount++;
        this.#residentBytes -= residentAtHand.bytes;
        this.#residentRing[this.#clockHand] = this.#residentRing.at(-1)!;
        this.#residentRing.pop();
      }
    }
  }

  /** Nothing is trimmed any more. */
  close(): void {
    this.#areResidentsClosed = true;
  }

  /** Measuring walks over all segments: not where the least that columns have is enough. */
  #residentLimit(): number {
    const { budgetBytes } = this.#residentOptions;
    const leastResident = Math.floor(budgetBytes / LEAST_RESIDENT_SHARE);
    return this.#residentBytes <= leastResident ? leastResident : Math.max(budgetBytes - this.#fixedBytes(), leastResident);
  }

  #queueResidentTrim(): void {
    if (this.#isTrimQueued || this.#areResidentsClosed) return;
    this.#isTrimQueued = true;
    this.#residentOptions.defer(() => {
      this.#isTrimQueued = false;
      this.trim();
    });
  }
}
