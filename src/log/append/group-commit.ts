/**
 * Many appends, one write, one fsync. Appends of one turn of the event loop belong together, and a caller who committed just
 * before is expected to come again: an fsync waits for such callers as long as more keep coming, because one that leaves with the
 * first of them makes all the others wait for two. No append waits for a timer, and a lone committer waits for no other.
 *
 * - `always`, `interval`: acknowledged and visible after the group's fsync. `interval` may hold a group back for at most
 *   10 ms; as a group begins as soon as the disk is free, it never has to.
 * - `off`: acknowledged and visible after the write; `sync` appends still wait for an fsync.
 * - A frame is written once the keys of subjects that its rows are sealed under are on disk.
 * - A group of access records alone is written and not fsynced: no caller waits for that. The next fsync covers it, and where
 *   only reads happen `syncSoon` asks for one now and then, so that a power cut takes a bounded number of records. Answers wait
 *   for their records to be written, but never for expected commits, nor for a running fsync: the queued frames that they need
 *   are written during it, to the same file, and left to the next fsync.
 * - Where all expected callers wait for a small fsync, and nobody reads meanwhile, no other work is pending: it is made in the
 *   turn, which spares two changes of thread, for as long as the disk is fast.
 * - An append whose entries are not all linked, because a body is still being sealed, holds up those after it.
 * - A write that found no room is repeated, the same frame at the same offset, until there is some: callers that wait for it, or
 *   came after it, learn at once that the outcome is open. Earlier frames get their fsync meanwhile.
 * - After any other failed write, and after every failed fsync, nothing is tried again: every waiting and later append is
 *   refused, because what the disk holds is unknown.
 */
import type { Clock } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import type { Sealing } from '../entries/bulk-sealer.ts';
import { noRoomIn } from '../disk/disk.ts';
import { type FullDisk, sendAgain } from './full-disk.ts';
import type { EncodedEntry, PlacedEntry } from '../entries/entry-codec.ts';
import { LogFsync } from './log-fsync.ts';
import { CommitWait, ReadActivity } from './commit-wait.ts';
import type { Appended, Durability, WalSync } from '../log-store.ts';
import type { LogWriter } from '../files/log-writer.ts';
import { CommitQueue, FsyncBacklog, Outcome, PendingAppend } from './pending-append.ts';

export interface GroupListener {
  /** Null, or resolves once all keys that what was appended so far is sealed under are on disk: no frame is written before. */
  keysDurable(): Promise<void> | null;
  /** The payload is in the file: its slot is free. */
  onWritten(sealing: Sealing): void;
  /** All entries up to here meet the sync policy. */
  onCommitted(last: EncodedEntry): void;
  onFailed(cause: unknown): void;
}

/** A larger group would keep the next one waiting too long. One append is never divided. */
const GROUP_BYTES_MAX = 8 << 20;

/** Work on the log's files that no write and no fsync may run beside. */
interface ExclusiveWork {
  readonly work: () => Promise<void>;
  readonly resolve: () => void;
  readonly reject: (cause: unknown) => void;
}

type CommitState = { at: 'idle' } | { at: 'committing'; done: Promise<void> } | { at: 'failed'; error: ServiceError };

export class GroupCommit {
  readonly #logWriter: LogWriter;
  readonly #walSync: WalSync;
  readonly #diskRoom: FullDisk;
  readonly #groupListener: GroupListener;
  #commitState: CommitState = { at: 'idle' };
  readonly #commitQueue = new CommitQueue();
  /** A group that found no room: nothing else is written before it is. */
  #unwrittenGroup: readonly PendingAppend[] = [];
  /** Outcome of the newest append that holds more than access records. */
  #newestAcknowledgement: Outcome<Durability>;
  readonly #fsyncBacklog = new FsyncBacklog();
  readonly #commitWait: CommitWait;
  readonly #logFsync: LogFsync;
  readonly #readActivity: ReadActivity;
  /** Wakes the loop when something was linked. */
  #wakeCommitRound: () => void = ignoreOutcome;
  /** Runs while no group is written and no fsync is under way. */
  readonly #exclusiveWork: ExclusiveWork[] = [];

  constructor(
    logWriter: LogWriter,
    walSync: WalSync,
    clock: Pick<Clock, 'monotonicMs'>,
    diskRoom: FullDisk,
    groupListener: GroupListener,
  ) {
    this.#logWriter = logWriter;
    this.#walSync = walSync;
    this.#commitWait = new CommitWait(clock);
    this.#logFsync = new LogFsync(logWriter, clock);
    this.#readActivity = new ReadActivity(clock);
    this.#diskRoom = diskRoom;
    this.#groupListener = groupListener;
    this.#newestAcknowledgement = new Outcome();
    this.#newestAcknowledgement.resolve(walSync === 'off' ? 'buffered' : 'synced');
  }

  /** Resolves once all commits that were added so far meet the sync policy. */
  get acknowledged(): Promise<Durability> {
    return this.#diskRoom.why === null ? this.#newestAcknowledgement.promise : Promise.reject(this.#diskRoom.uncertain());
  }

  /** `mustSync` asks for an fsync whatever the mode; `access` means that nothing but access records is in it. */
  add(placedEntries: readonly PlacedEntry[], appendKind: { readonly sync: boolean; readonly access: boolean }): Appended {
    const isFsyncDue = this.#fsyncBacklog.takeRequest();
    const mustSync = appendKind.sync || isFsyncDue;
    const acknowledgedBy = mustSync ? 'fsync' : this.#walSync === 'off' ? 'write' : appendKind.access ? 'nothing' : 'fsync';
    const pendingAppend = new PendingAppend(placedEntries, acknowledgedBy);
    if (appendKind.access && this.#waitingSyncs + this.#fsyncBacklog.running.syncs > 0) this.#readActivity.note();
    if (!appendKind.access) this.#newestAcknowledgement = pendingAppend.acknowledgement;
    if (this.#commitState.at === 'failed') pendingAppend.reject(this.#commitState.error);
    else {
      this.#commitQueue.add(pendingAppend);
      if (this.#commitState.at === 'idle') this.#commitState = { at: 'committing', done: this.#runCommitRounds() };
    }
    return pendingAppend;
  }

  /**
   * Runs `work` while no group is written and no fsync is under way. A rejection fails the log: its files are then in an unknown
   * state.
   */
  async runExclusively(work: () => Promise<void>): Promise<void> {
    if (this.#commitState.at === 'failed') throw this.#commitState.error;
    if (this.#diskRoom.why !== null) throw this.#diskRoom.refusal();
    const workDone = new Promise<void>((resolve, reject) => this.#exclusiveWork.push({ work, resolve, reject }));
    if (this.#commitState.at === 'idle') this.#commitState = { at: 'committing', done: this.#runCommitRounds() };
    this.#wakeCommitRound();
    await workDone;
  }

  /** Called when an added append has been linked. */
  onLinked(): void {
    this.#wakeCommitRound();
  }

  /** The next append, whatever it is, gets an fsync if something written still waits for one. */
  syncSoon(): void {
    this.#fsyncBacklog.request();
  }

  /** Resolves when everything added before has been committed or refused. */
  async idle(): Promise<void> {
    while (this.#commitState.at === 'committing') await this.#commitState.done;
  }

  /** Refuses all that waits and all that comes: also when something beside the groups has failed. */
  fail(failureCause: unknown): void {
    const isFirstFailure = this.#commitState.at !== 'failed';
    const logFailure =
      this.#commitState.at === 'failed'
        ? this.#commitState.error
        : new ServiceError('REL_UNAVAILABLE', failureText(failureCause), { cause: failureCause });
    this.#commitState = { at: 'failed', error: logFailure };
    const unsyncedOutcomes = this.#fsyncBacklog.clear();
    const unwrittenAppends = [...this.#unwrittenGroup, ...this.#commitQueue.clear()];
    this.#unwrittenGroup = [];
    for (const failedOutcome of [...unsyncedOutcomes, ...unwrittenAppends]) failedOutcome.reject(logFailure);
    for (const { reject } of this.#exclusiveWork.splice(0)) reject(logFailure);
    this.#wakeCommitRound();
    if (isFirstFailure) this.#groupListener.onFailed(failureCause);
  }

  async #runCommitRounds(): Promise<void> {
    try {
      this.#commitWait.resume();
      // The records were gathered before they were appended: they are written once this turn has linked them.
      if (this.#commitQueue.isOnlyRecords) await Promise.resolve();
      else await this.#gatherWriters();
      while (this.#isBusy() && this.#commitState.at !== 'failed') {
        if (this.#unwrittenGroup.length > 0) {
          await this.#writeGroupAgain();
          continue;
        }
        if (this.#exclusiveWork.length > 0) {
          await this.#runExclusive(this.#exclusiveWork.shift()!);
          continue;
        }
        const commitGroup = this.#commitQueue.take(GROUP_BYTES_MAX, 1);
        if (commitGroup.length > 0) await this.#writeGroup(commitGroup);
        else if (this.#fsyncBacklog.next.syncs === 0) {
          await new Promise<void>((resolve) => (this.#wakeCommitRound = resolve));
          continue;
        }
        const wokeNobody = commitGroup.every(({ isRecord }) => isRecord) && this.#fsyncBacklog.next.syncs === 0;
        if (this.#fsyncBacklog.next.syncs > 0 && !this.#commitWait.isWorthWaiting(this.#waitingSyncs)) await this.#syncFrames();
        if (!wokeNobody || this.#commitQueue.length > 0) await this.#gatherWriters();
      }
      if (this.#commitState.at === 'committing') this.#commitState = { at: 'idle' };
      // Another failure came while this group was under way: appends that wait for an fsync get none.
      else this.fail(undefined);
    } catch (commitFailure) {
      this.fail(commitFailure);
    }
  }

  #isBusy(): boolean {
    return (
      this.#commitQueue.length > 0 ||
      this.#unwrittenGroup.length > 0 ||
      this.#fsyncBacklog.next.syncs > 0 ||
      this.#exclusiveWork.length > 0
    );
  }

  async #runExclusive({ work, resolve, reject }: ExclusiveWork): Promise<void> {
    try {
      await work();
      resolve();
    } catch (workFailure) {
      reject(workFailure);
      // Nothing was changed for want of room: the caller asks again.
      if (noRoomIn(workFailure) === null) throw workFailure;
    }
  }

  /**
   * Callers that append in this turn of the event loop, woken by the same group, join the same next group; so do expected
   * callers, unless an append waits for a write alone.
   */
  async #gatherWriters(): Promise<void> {
    do {
      const syncsBefore = this.#commitQueue.syncs;
      await new Promise<void>((resolve) => setImmediate(resolve));
      this.#commitWait.turn(this.#commitQueue.syncs > syncsBefore);
    } while (this.#commitQueue.length === this.#commitQueue.syncs && this.#commitWait.isWorthWaiting(this.#waitingSyncs));
  }

  /** Appends that wait for an fsync that has not begun. */
  get #waitingSyncs(): number {
    return this.#commitQueue.syncs + this.#fsyncBacklog.next.syncs;
  }

  /** `isRetry`: it found no room before, and all waiting callers were told so. */
  async #writeGroup(commitGroup: readonly PendingAppend[], isRetry = false): Promise<void> {
    try {
      const keysWrite = this.#groupListener.keysDurable();
      if (keysWrite) await keysWrite;
      if (this.#commitState.at === 'failed') throw this.#commitState.error;
      const groupEntries = commitGroup.length === 1 ? commitGroup[0]!.placed : commitGroup.flatMap(({ placed }) => placed);
      await this.#logWriter.write(groupEntries);
      this.#diskRoom.clearShortage('frames');
      this.#fsyncBacklog.next.add(groupEntries, this.#commitQueue.countWritten(commitGroup));
      for (const { sealing } of groupEntries) if (sealing) this.#groupListener.onWritten(sealing);
      for (const { write } of commitGroup) write.resolve();
      if (this.#walSync === 'off') this.#groupListener.onCommitted(groupEntries[groupEntries.length - 1]!);
      for (const pendingAppend of commitGroup) {
        if (pendingAppend.needs === 'write') pendingAppend.acknowledgement.resolve('buffered');
        else this.#fsyncBacklog.next.acknowledgements.push(pendingAppend.acknowledgement);
      }
    } catch (writeFailure) {
      this.#unwrittenGroup = commitGroup;
      // Refused with all that waits.
      if (this.#hasFailed() || !(await this.#diskRoom.isShort('frames', writeFailure))) throw writeFailure;
      if (isRetry) return;
      const uncertainError = this.#diskRoom.uncertain();
      for (const pendingAppend of commitGroup) pendingAppend.postpone(uncertainError);
      this.#commitQueue.postpone(uncertainError);
      for (const { reject } of this.#exclusiveWork.splice(0)) reject(this.#diskRoom.refusal());
    }
  }

  /** Frames that were written before need no room to become durable. */
  async #writeGroupAgain(): Promise<void> {
    if (this.#fsyncBacklog.next.syncs > 0) return await this.#syncFrames();
    await this.#diskRoom.wait();
    const commitGroup = this.#unwrittenGroup;
    this.#unwrittenGroup = [];
    await this.#writeGroup(commitGroup, true);
  }

  #hasFailed(): boolean {
    return this.#commitState.at === 'failed';
  }

  async #syncFrames(): Promise<void> {
    const writtenFrames = this.#fsyncBacklog.begin();
    const isOnlyWriter = !this.#readActivity.isRecent() && this.#commitWait.isComplete(writtenFrames.syncs);
    const fsyncDone = this.#logFsync.sync(writtenFrames.bytes, isOnlyWriter).then(() => {
      if (this.#walSync !== 'off') this.#groupListener.onCommitted(writtenFrames.last!);
      for (const acknowledgement of writtenFrames.acknowledgements) acknowledgement.resolve('synced');
      this.#fsyncBacklog.end();
      this.#commitWait.begin(writtenFrames.syncs + this.#waitingSyncs);
    });
    await this.#writeDuringSync(fsyncDone);
  }

  /** Writes further groups while an fsync runs: an append that waits for a write alone is not held up by it. */
  async #writeDuringSync(fsyncDone: Promise<void>): Promise<void> {
    let isSyncing = true;
    const fsyncEnded = fsyncDone.finally(() => {
      isSyncing = false;
      this.#wakeCommitRound();
    });
    fsyncEnded.catch(ignoreOutcome);
    let keysWriteFails = false;
    while (isSyncing) {
      const waitsForWrite =
        this.#commitQueue.length > this.#commitQueue.syncs && this.#unwrittenGroup.length === 0 && !keysWriteFails;
      const keysWrite = waitsForWrite ? this.#groupListener.keysDurable() : null;
      // A file must not end during its fsync: appends without room wait.
      const commitGroup =
        waitsForWrite && !keysWrite ? this.#commitQueue.take(Math.min(GROUP_BYTES_MAX, this.#logWriter.room), 0) : [];
      if (commitGroup.length > 0) await this.#writeGroup(commitGroup);
      // The next writer asks for the keys again, and gets the error.
      else if (keysWrite) await Promise.race([keysWrite.catch(() => (keysWriteFails = true)), fsyncEnded]);
      else await new Promise<void>((resolve) => (this.#wakeCommitRound = resolve));
    }
    await fsyncEnded;
  }
}

/** Why nothing is written any more. */
export function failureText(failureCause: unknown): string {
  const causeText = failureCause instanceof Error ? failureCause.message : String(failureCause);
  return `the log has failed (${causeText}) and accepts no writes until the server is restarted; what was sent may have been written: ${sendAgain}`;
}

function ignoreOutcome(): void {}
