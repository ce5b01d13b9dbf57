/**
 * Indexes of texts, by segment and column: each a pure function of the cells that a segment holds, in the segment's own row
 * numbers. What is visible, to whom and when, is the reader's business, so versions, branches and policies need nothing here.
 *
 * - A sealed segment is indexed as a whole, by a worker, once somebody searched the column; until then, and of a segment that
 *   grows, chunks of some hundred rows are indexed when a reader comes to them, so that every answer is complete.
 * - Whoever removes cells or changes what a column rests as has the segment's indexes forgotten: none holds a word of a row that
 *   is gone, and the next reader has new ones made.
 * - All of them share one budget: those that nobody asked for lately go first, and are made again when they are asked for.
 */
import { LRUCache } from 'lru-cache';
import type { Vector } from '../../../log/columns.ts';
import type { SteppedJob } from '../../../log/stepping-job.ts';
import type { WorkerKeeper } from '../../../log/worker-keeper.ts';
import type { ColumnSpace } from '../extents.ts';
import type { Segment } from '../segment.ts';
import { buildTextIndex, type TextCells, textIndexOf } from './text/text-builder.ts';
import { TextIndex } from './text/text-index.ts';
import { cellsOf } from './text-cells.ts';

/** Rows that are indexed in one turn. */
export const CHUNK_ROWS = 512;

export interface SegmentIndexesOptions {
  /** null: nothing is made beside the event loop, and segments are indexed chunk by chunk. */
  readonly workers: WorkerKeeper | null;
  /** Of stems. */
  readonly language: string;
  readonly budgetBytes: number;
  /** One line for the operator. */
  readonly say: (line: string) => void;
}

export const defaultIndexes: SegmentIndexesOptions = {
  workers: null,
  language: 'english',
  budgetBytes: 64 * 1024 * 1024,
  say: () => undefined,
};

/** Of one column of one segment. */
interface Kept {
  readonly segment: Segment;
  whole: TextIndex | null;
  building: AbortController | null;
  /** By number. */
  readonly chunks: Map<number, TextIndex>;
  bytes: number;
  /** Takes it off the budget. */
  readonly release: () => void;
}

interface BuildRequest {
  readonly cells: TextCells;
  readonly language: string;
}

export const textIndexJob: SteppedJob<BuildRequest, Uint8Array> = {
  module: import.meta.url,
  name: 'textIndexJob',
  steps: ({ cells, language }) => buildTextIndex(cells, language),
};

/** Who forgets what is kept of a segment, by segment. */
const keepers = new WeakMap<Segment, Map<string, Kept>>();

/** Without a column: of all of them. */
export function forgetIndexes(segment: Segment, column?: string): void {
  const columns = keepers.get(segment);
  if (!columns) return;
  for (const [name, kept] of columns) {
    if (column !== undefined && name !== column) continue;
    kept.building?.abort();
    kept.whole = null;
    kept.chunks.clear();
    kept.release();
    columns.delete(name);
  }
}

export class SegmentIndexes {
  readonly #options: SegmentIndexesOptions;
  readonly #space: ColumnSpace;
  /** By their age; those over the budget are let go. */
  readonly #ages: LRUCache<Kept, Kept>;

  constructor(space: ColumnSpace, options: SegmentIndexesOptions = defaultIndexes) {
    this.#options = options;
    this.#space = space;
    this.#ages = new LRUCache({
      maxSize: Math.max(1, options.budgetBytes),
      sizeCalculation: ({ bytes }) => Math.max(1, bytes),
      dispose: (kept, _, reason) => {
        if (reason !== 'evict') return;
        kept.whole = null;
        kept.chunks.clear();
        kept.bytes = 0;
      },
    });
  }

  get bytes(): number {
    return this.#ages.calculatedSize;
  }

  get language(): string {
    return this.#options.language;
  }

  /** Of all rows of a sealed segment; null while there is none, and then one is asked for. */
  whole(segment: Segment, column: string): TextIndex | null {
    if (!segment.sealed) return null;
    const kept = this.#kept(segment, column);
    if (kept.whole) this.#ages.get(kept);
    else this.#build(kept, column);
    return kept.whole;
  }

  /** Of the rows of a chunk that are there by now. */
  chunk(segment: Segment, column: string, number: number): TextIndex {
    const kept = this.#kept(segment, column);
    const first = number * CHUNK_ROWS;
    const rows = Math.min(CHUNK_ROWS, segment.length - first);
    const found = kept.chunks.get(number);
    if (found?.rows === rows) return found;
    const made = textIndexOf(cellsOf(segment, vectorOf(segment, column), first, rows), this.#options.language);
    kept.chunks.set(number, made);
    this.#resize(kept, made.bytes.length - (found?.bytes.length ?? 0));
    return made;
  }

  #kept(segment: Segment, column: string): Kept {
    let columns = keepers.get(segment);
    if (!columns) keepers.set(segment, (columns = new Map()));
    const kept = columns.get(column);
    if (kept) return kept;
    const made: Kept = {
      segment,
      whole: null,
      building: null,
      chunks: new Map(),
      bytes: 0,
      release: () => void this.#ages.delete(made),
    };
    columns.set(column, made);
    return made;
  }

  #resize(kept: Kept, by: number): void {
    kept.bytes += by;
    this.#ages.delete(kept);
    this.#ages.set(kept, kept);
  }

  #build(kept: Kept, column: string): void {
    const { workers, language, say } = this.#options;
    if (!workers || kept.building) return;
    const { segment } = kept;
    const abort = new AbortController();
    kept.building = abort;
    // What the worker reads stays where it is until it is done, whatever leaves memory meanwhile.
    const hold = this.#space.read([null]);
    hold.next();
    const cells = cellsOf(segment, vectorOf(segment, column), 0, segment.length);
    const built = workers.run(textIndexJob, { cells, language }, 'index', abort.signal);
    built
      .then((bytes) => {
        if (abort.signal.aborted) return;
        kept.whole = TextIndex.open(bytes);
        const chunks = [...kept.chunks.values()].reduce((sum, chunk) => sum + chunk.bytes.length, 0);
        kept.chunks.clear();
        this.#resize(kept, bytes.length - chunks);
      })
      .catch((error: unknown) => {
        if (!abort.signal.aborted && !isCancelled(error)) say(`a text index can't be made (${messageOf(error)})`);
      })
      .finally(() => {
        kept.building = null;
        hold.return();
      });
  }
}

function vectorOf(segment: Segment, column: string): Vector {
  return segment.column(column)?.vector(segment.length) ?? { kind: 'null' };
}

function isCancelled(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'REL_CANCELLED';
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
