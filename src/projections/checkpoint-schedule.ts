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
  readonly #checkpointOptions: CheckpointScheduleOptions;
  readonly #derivedKinds: DerivedKinds;
  #lastCheckpointBytes: number;
  #lastCheckpointLeaves: number;
  #runningCheckpoint: Promise<CheckpointPosition | null> | null = null;
  #hasSaidFailure = false;
  #isRemovalPending = false;
  readonly #checkpointClosing = new AbortController();
  /** Longest that one turn took to capture a checkpoint, in milliseconds. */
  #captureMs = 0;

  constructor(options: CheckpointScheduleOptions) {
    this.#checkpointOptions = options;
    this.#lastCheckpointBytes = options.last?.bytes ?? 0;
    this.#lastCheckpointLeaves = options.last?.leaves ?? 0;
    const checkpointKind = (name: RegExp, prefix: string): DerivedKind => ({
      prefix,
      holds: (file) => name.test(this.#runningCheckpoint ? file.replace(/\.new$/, '') : file),
      whenWritten: async () => void (await this.#runningCheckpoint),
    });
    this.#derivedKinds = new DerivedKinds([
      checkpointKind(/^checkpoint$/, 'checkpoint'),
      // Hashes of the log's tree: they tell nothing of any row, and those of another tree are never read.
      checkpointKind(/^tree-\d+-[0-9a-f]{16}$/, 'tree-'),
      options.store,
      ...(options.kinds ?? []),
    ]);
  }

  get captureMs(): number {
    return this.#captureMs;
  }

  /** Leaves of the newest one. */
  get leaves(): number {
    return this.#lastCheckpointLeaves;
  }

  /** The log moved on. */
  look(): void {
    if (this.#runningCheckpoint || this.#checkpointClosing.signal.aborted) return;
    if (this.#checkpointOptions.log.status().bytes - this.#lastCheckpointBytes >= this.#checkpointOptions.bytesBetween)
      void this.take();
  }

  /** Rows were deleted for good and older files still hold them: replaces those files soon. */
  onRemoved(): void {
    if (this.#isRemovalPending || this.#checkpointClosing.signal.aborted) return;
    this.#isRemovalPending = true;
    const { clock } = this.#checkpointOptions;
    void clock.sleep(AFTER_REMOVAL_MS, this.#checkpointClosing.signal).then(async () => {
      await this.#runningCheckpoint;
      this.#isRemovalPending = false;
      if (!this.#checkpointClosing.signal.aborted) await this.take();
    });
  }

  /** Takes one, or waits for the one that is under way. False when it could not be written. */
  async take(): Promise<boolean> {
    return (await this.#beginCheckpoint()) !== null;
  }

  /** Begins one, and resolves in the turn that captures it: of all that was applied by then. Null where it can't be. */
  async capture(): Promise<SavedState | null> {
    // A checkpoint under way may have captured an earlier state.
    while (this.#runningCheckpoint) await this.#runningCheckpoint;
    if (this.#checkpointClosing.signal.aborted) return null;
    const { directory } = this.#checkpointOptions.home;
    let leaves: number | null = null;
    let resolveCaptured = (): void => undefined;
    const checkpointCaptured = new Promise<void>((resolve) => (resolveCaptured = resolve));
    const checkpointTaken = this.#beginCheckpoint((capturedLeaves) => {
      leaves = capturedLeaves;
      resolveCaptured();
    });
    await Promise.race([checkpointCaptured, checkpointTaken]);
    if (leaves === null) return null;
    const of: number = leaves;
    // Where it could not be saved any more as it was then, a later one is in its place.
    const written = checkpointTaken.then((checkpoint) => (checkpoint?.leaves === of ? checkpoint : null));
    return { leaves, directory, written };
  }

  #beginCheckpoint(onCaptured?: (leaves: number) => void): Promise<CheckpointPosition | null> {
    this.#runningCheckpoint ??= this.#takeCheckpoint(onCaptured).finally(() => {
      this.#runningCheckpoint = null;
    });
    return this.#runningCheckpoint;
  }

  /**
   * All that is saved is of now: a checkpoint that was captured after this call is in place, and files that held what was
   * wiped before are gone. False when something could not be written.
   */
  async renew(): Promise<boolean> {
    await this.#runningCheckpoint;
    return (await this.take()) && !this.#checkpointOptions.store.isBehind;
  }

  /** Names of derived files that no state needs, or of unknown kinds: erased rows may still be in them. */
  async strays(): Promise<readonly string[]> {
    const strayFiles = await this.#unknownFiles();
    if (strayFiles.length === 0) return strayFiles;
    // A file that was being written or removed during the first look has reached its final state by then.
    await this.#derivedKinds.whenWritten();
    const remainingStrays = new Set(await this.#unknownFiles());
    return strayFiles.filter((name) => remainingStrays.has(name));
  }

  async #unknownFiles(): Promise<readonly string[]> {
    const { disk, directory } = this.#checkpointOptions.home;
    return this.#derivedKinds.unknown(await disk.list(directory));
  }

  /** After the log was closed: the last one, unless nothing happened since. */
  async close(): Promise<void> {
    this.#checkpointClosing.abort();
    await this.#runningCheckpoint;
    if (this.#checkpointOptions.projector.watermark !== this.#lastCheckpointLeaves) await this.take();
  }

  /** Ends without another one. */
  async abandon(): Promise<void> {
    this.#checkpointClosing.abort();
    await this.#runningCheckpoint;
  }

  /**
   * A caller that needs only the capture does not wait for segments to be written, as long as the contents of their files are
   * known.
   */
  async #takeCheckpoint(onCaptured?: (leaves: number) => void): Promise<CheckpointPosition | null> {
    const { home, projector, store, log, clock, say: sayCheckpointFailed } = this.#checkpointOptions;
    const { bytes: checkpointLogBytes } = log.status();
    // Whether this one succeeds or not, the next is due after as many bytes again.
    this.#lastCheckpointBytes = checkpointLogBytes;
    try {
      const filesToCome = onCaptured !== undefined && store.isOnlyNew;
      if (!filesToCome) await store.whenIdle();
      const captureBegan = clock.monotonicMs();
      const { generation } = store;
      const capturedCheckpoint = captureCheckpoint(projector, filesToCome);
      const savedLog = log.savedState();
      this.#captureMs = Math.max(this.#captureMs, clock.monotonicMs() - captureBegan);
      onCaptured?.(savedLog.leaves);
      await log.durable(savedLog.leaves);
      if (filesToCome) await store.whenIdle();
      const checkpoint = await writeCheckpoint(home, capturedCheckpoint, savedLog);
      this.#lastCheckpointLeaves = checkpoint.leaves;
      await store.collect(generation, capturedCheckpoint.files);
      this.#hasSaidFailure = false;
      return checkpoint;
    } catch (error) {
      if (error instanceof SegmentChangedError) return await this.#takeCheckpoint();
      if (!this.#hasSaidFailure)
        sayCheckpointFailed(`a checkpoint can't be written (${error instanceof Error ? error.message : String(error)})`);
      this.#hasSaidFailure = true;
      return null;
    }
  }
}
