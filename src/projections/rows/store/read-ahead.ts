/** Reads columns from their files beside the turn, before a scan asks for them. */
import type { SegmentColumns } from '../segments/segment-columns.ts';
import type { SegmentFile } from './segment-file.ts';

export class ReadAhead {
  readonly #readAheadMax: number;
  readonly #loadingColumns = new Map<SegmentColumns, Set<string | null>>();
  #loadCount = 0;
  #isReadAheadClosed = false;

  constructor(loadsMax: number) {
    this.#readAheadMax = loadsMax;
  }

  read(cells: SegmentColumns, names: readonly (string | null)[], segmentFile: SegmentFile): void {
    for (const columnAhead of names) {
      if (this.#loadCount >= this.#readAheadMax) return;
      if (!cells.isAbsent(columnAhead) || this.#loadingColumns.get(cells)?.has(columnAhead)) continue;
      void this.#loadAhead(cells, columnAhead, segmentFile);
    }
  }

  close(): void {
    this.#isReadAheadClosed = true;
  }

  async #loadAhead(cells: SegmentColumns, columnAhead: string | null, segmentFile: SegmentFile): Promise<void> {
    this.#loadCount++;
    let loadingColumns = this.#loadingColumns.get(cells);
    if (!loadingColumns) this.#loadingColumns.set(cells, (loadingColumns = new Set()));
    loadingColumns.add(columnAhead);
    try {
      const loadedColumn = await segmentFile.load(columnAhead);
      if (!this.#isReadAheadClosed) cells.adopt(columnAhead, segmentFile, loadedColumn);
    } catch {
      // A query that needs the column meets the same error, and reports it.
    } finally {
      this.#loadCount--;
      loadingColumns.delete(columnAhead);
      if (loadingColumns.size === 0) this.#loadingColumns.delete(cells);
    }
  }
}
