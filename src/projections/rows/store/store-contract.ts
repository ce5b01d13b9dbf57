/** Options, counts and listeners of a column store. */
import type { Segment } from '../segments/segment.ts';

export interface ColumnStoreOptions {
  /** Memory for rows, in bytes: columns get what indexes, closings and growing segments leave of it. */
  readonly budgetBytes: number;
  /** Columns that are read ahead at once. */
  readonly hydrateMax: number;
  /** Segments that are rewritten at once. */
  readonly compactMax: number;
  /** One line for the operator. */
  readonly say: (line: string) => void;
  /** Runs a task in a later turn of the event loop. */
  readonly defer: (task: () => void) => void;
  /** Resolves a while later, or when the signal is aborted: for so long no segment comes before the first is written. Absent: at once. */
  readonly lull?: (signal: AbortSignal) => Promise<void>;
  /** A derived file turned out to be damaged: state that rests on it must not be trusted again. */
  readonly onDamaged?: () => void;
}

/** Counts since the store was opened. */
export interface ColumnCounts {
  /** Columns that were read from files, and that left memory. */
  hydrated: number;
  evicted: number;
  /** Segment files that were written. */
  written: number;
  compacted: number;
}

export interface Compacted {
  readonly segments: number;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}

export interface CompactOptions {
  /** Ends it between two segments: those rewritten by then stay so. */
  readonly signal?: AbortSignal;
  /** Segments, of those that are worth it. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** Keeps derived files beside those of segments. */
export interface SegmentWatcher {
  /** A file says what its columns hold now. */
  onRest(segment: Segment): void;
  /** Some segment does not hold any more what its file says, or is gone. */
  onChanged(): void;
  close(): Promise<void>;
}
