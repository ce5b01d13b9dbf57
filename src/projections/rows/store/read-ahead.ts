/** Reads columns from their files beside the turn, before a scan asks for them. */
import type { SegmentColumns } from '../segments/segment-columns.ts';
import type { SegmentFile } from './segment-file.ts';

export class ReadAhead {
  readonly #loadsMax: number;
  readonly #names = new Map<SegmentColumns, Set<string | null>>();
  #loads = 0;
  #closed = false;

  constructor(loadsMax: number) {
    this.#loadsMax = loadsMax;
  }

  read(cells: SegmentColumns, names: readonly (string | null)[], file: SegmentFile): void {
    for (const name of names) {
      if (this.#loads >= this.#loadsMax) return;
      if (!cells.isAbsent(name) || this.#names.get(cells)?.has(name)) continue;
      void this.#load(cells, name, file);
    }
  }

  close(): void {
    this.#closed = true;
  }

  async #load(cells: SegmentColumns, name: string | null, file: SegmentFile): Promise<void> {
    this.#loads++;
    let names = this.#names.get(cells);
    if (!names) this.#names.set(cells, (names = new Set()));
    names.add(name);
    try {
      const saved = await file.load(name);
      if (!this.#closed) cells.adopt(name, file, saved);
    } catch {
      // A query that needs the column meets the same error, and reports it.
    } finally {
      this.#loads--;
      names.delete(name);
      if (names.size === 0) this.#names.delete(cells);
    }
  }
}
