/**
 * State derived from the log. Anything that a projection knows can be forgotten and rebuilt.
 *
 * - `apply` is deterministic and total: the entry was decided before it was appended. It reads no clock, draws no
 *   random number, iterates nothing in an order that its input did not fix, and never throws on a valid entry. Of an entry
 *   with parts it is given one after the other.
 * - `checkpoint`, then `restore` and the entries after its watermark = the same state.
 * - `reset`, then every entry from leaf 0 = the same state, whatever the batch sizes.
 * - `digest` is SHA-256 (hex) over a canonical dump: equal state, equal digest, on any machine and layout.
 */
import type { WholeEntry } from '../log/entries/entry.ts';
import type { StartWorker } from '../log/threads/workers.ts';

export interface Projection {
  readonly name: string;
  /** Raise to discard what checkpoints hold of this projection: the next start rebuilds it, and it alone, from the log. */
  readonly formatVersion: number;
  /** Names of projections that its saved state is of no use without. */
  readonly restsOn?: readonly string[];
  apply(entry: WholeEntry): void;
  checkpoint(target: CheckpointWriter): Promise<void>;
  restore(source: CheckpointReader): Promise<void>;
  reset(): void;
  digest(): string;
  /** The same, with a worker's help. Nothing may be applied before it resolves. */
  digestBeside?(startWorker: StartWorker): Promise<string>;
}

/** One atomic file for all projections: positions and data can't part. Sections are named and read back in any order. */
export interface CheckpointWriter {
  /** A function is called once, in a later turn, and must then give what the section held when it was handed over. */
  section(name: string, bytes: Uint8Array | (() => Uint8Array)): void;
  /** Files that are under way are written before functions are called. */
  readonly filesToCome?: boolean;
  /** A derived file that the sections rest on: it stays for as long as the checkpoint does. */
  file(name: string): void;
}

export interface CheckpointReader {
  section(name: string): Uint8Array | undefined;
}
