/**
 * When checkpoints are taken: after so much log since the last one, soon after a hard delete, and at a clean close. One at a
 * time, beside everything else; one that can't be written is said once, and the store goes on: it is derived data.
 */
import type { Clock } from '../clock.ts';
import type { DerivedHome } from '../log/blobs/derived-file.ts';
import type { LogStatus } from '../log/log-store.ts';
import type { SavedLog } from '../log/files/saved-log.ts';
import { captureCheckpoint, type CheckpointPosition, writeCheckpoint } from './checkpoint.ts';
import { type DerivedKind, DerivedKinds } from './derived-kinds.ts';
import type { Projector } from './projector.ts';
import { type ColumnStore, SegmentChangedError } from './rows/store/column-store.ts';

export interface CheckpointScheduleOptions {
  readonly home: DerivedHome;
  readonly projector: Projector;
  readonly store: ColumnStore;
  /** The owners of other derived files. */
  readonly kinds?: readonly DerivedKind[];
  readonly log: { status(): LogStatus; savedState(): SavedLog; durable(leaves: number): Promise<void> };
  readonly clock: Clock;
  /** Bytes of log from one to the next. */
  readonly bytesBetween: number;
  readonly say: (line: string) => void;
  /** The one that the start went on from. */
  readonly last: { readonly leaves: number; readonly bytes: number } | null;
}

/** A checkpoint on its way to the disk. */
export interface SavedState {
  /** Leaves that it stands for. */
  readonly leaves: number;
  /** Where derived files are. */
  readonly directory: string;
  /** The checkpoint once it is in place, until the next one is; null where it could not be written. */
  readonly written: Promise<CheckpointPosition | null>;
}

/** Deletions that follow each other share a checkpoint. */
const AFTER_REMOVAL_MS = 1000;

export class CheckpointSchedule {
  readonly #options: CheckpointScheduleOptions;
  readonly #kinds: DerivedKinds;
  #lastBytes: number;
  #lastLeaves: number;
  #running: Promise<CheckpointPosition | null> | null = null;
  #said = false;
  #removal = false;
  readonly #closing = new AbortController();
  /** Longest that one turn took to capture a checkpoint, in milliseconds. */
  #captureMs = 0;

  constructor(options: CheckpointScheduleOptions) {
    this.#options = options;
    this.#lastBytes = options.last?.bytes ?? 0;
    this.#lastLeaves = options.last?.leaves ?? 0;
    const own = (name: RegExp, prefix: string): DerivedKind => ({
      prefix,
      holds: (file) => name.test(this.#running ? file.replace(/\.new$/, '') : file),
      whenWritten: async () => void (await this.#running),
    });
    this.#kinds = new DerivedKinds([
      own(/^checkpoint$/, 'checkpoint'),
      // Hashes of the log's tree: they tell nothing of any row, and those of another tree are never read.
      own(/^tree-\d+-[0-9a-f]{16}$/, 'tree-'),
      options.store,
      ...(options.kinds ?? []),
    ]);
  }

  get captureMs(): number {
    return this.#captureMs;
  }

  /** Leaves of the newest one. */
  get leaves(): number {
    return this.#lastLeaves;
  }

  /** The log moved on. */
  look(): void {
    if (this.#running || this.#closing.signal.aborted) return;
    if (this.#options.log.status().bytes - this.#lastBytes >= this.#options.bytesBetween) void this.take();
  }

  /** Rows were deleted for good and older files still hold them: replaces those files soon. */
  onRemoved(): void {
    if (this.#removal || this.#closing.signal.aborted) return;
    this.#removal = true;
    const { clock } = this.#options;
    void clock.sleep(AFTER_REMOVAL_MS, this.#closing.signal).then(async () => {
      await this.#running;
      this.#removal = false;
      if (!this.#closing.signal.aborted) await this.take();
    });
  }

  /** Takes one, or waits for the one that is under way. False when it could not be written. */
  async take(): Promise<boolean> {
    return (await this.#begin()) !== null;
  }

  /** Begins one, and resolves in the turn that captures it: of all that was applied by then. Null where it can't be. */
  async capture(): Promise<SavedState | null> {
    // A checkpoint under way may have captured an earlier state.
    while (this.#running) await this.#running;
    if (this.#closing.signal.aborted) return null;
    const { directory } = this.#options.home;
    let leaves: number | null = null;
    let tell = (): void => undefined;
    const captured = new Promise<void>((resolve) => (tell = resolve));
    const taken = this.#begin((of) => {
      leaves = of;
      tell();
    });
    await Promise.race([captured, taken]);
    if (leaves === null) return null;
    const of: number = leaves;
    // Where it could not be saved any more as it was then, a later one is in its place.
    const written = taken.then((checkpoint) => (checkpoint?.leaves === of ? checkpoint : null));
    return { leaves, directory, written };
  }

  #begin(onCaptured?: (leaves: number) => void): Promise<CheckpointPosition | null> {
    this.#running ??= this.#take(onCaptured).finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /**
   * All that is saved is of now: a checkpoint that was captured after this call is in place, and files that held what was
   * wiped before are gone. False when something could not be written.
   */
  async renew(): Promise<boolean> {
    await this.#running;
    return (await this.take()) && !this.#options.store.isBehind;
  }

  /** Names of derived files that no state needs, or of unknown kinds: erased rows may still be in them. */
  async strays(): Promise<readonly string[]> {
    const seen = await this.#unknown();
    if (seen.length === 0) return seen;
    // A file that was being written or removed during the first look has reached its final state by then.
    await this.#kinds.whenWritten();
    const still = new Set(await this.#unknown());
    return seen.filter((name) => still.has(name));
  }

  async #unknown(): Promise<readonly string[]> {
    const { disk, directory } = this.#options.home;
    return this.#kinds.unknown(await disk.list(directory));
  }

  /** After the log was closed: the last one, unless nothing happened since. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
    if (this.#options.projector.watermark !== this.#lastLeaves) await this.take();
  }

  /** Ends without another one. */
  async abandon(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  /**
   * A caller that needs only the capture does not wait for segments to be written, as long as the contents of their files are
   * known.
   */
  async #take(onCaptured?: (leaves: number) => void): Promise<CheckpointPosition | null> {
    const { home, projector, store, log, clock, say } = this.#options;
    const { bytes } = log.status();
    // Whether this one succeeds or not, the next is due after as many bytes again.
    this.#lastBytes = bytes;
    try {
      const filesToCome = onCaptured !== undefined && store.isOnlyNew;
      if (!filesToCome) await store.whenIdle();
      const began = clock.monotonicMs();
      const { generation } = store;
      const captured = captureCheckpoint(projector, filesToCome);
      const saved = log.savedState();
      this.#captureMs = Math.max(this.#captureMs, clock.monotonicMs() - began);
      onCaptured?.(saved.leaves);
      await log.durable(saved.leaves);
      if (filesToCome) await store.whenIdle();
      const checkpoint = await writeCheckpoint(home, captured, saved);
      this.#lastLeaves = checkpoint.leaves;
      await store.collect(generation, captured.files);
      this.#said = false;
      return checkpoint;
    } catch (error) {
      if (error instanceof SegmentChangedError) return await this.#take();
      if (!this.#said) say(`a checkpoint can't be written (${error instanceof Error ? error.message : String(error)})`);
      this.#said = true;
      return null;
    }
  }
}
