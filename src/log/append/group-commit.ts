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

type State = { at: 'idle' } | { at: 'committing'; done: Promise<void> } | { at: 'failed'; error: ServiceError };

export class GroupCommit {
  readonly #writer: LogWriter;
  readonly #walSync: WalSync;
  readonly #room: FullDisk;
  readonly #listener: GroupListener;
  #state: State = { at: 'idle' };
  readonly #queue = new CommitQueue();
  /** A group that found no room: nothing else is written before it is. */
  #unwrittenGroup: readonly PendingAppend[] = [];
  /** Outcome of the newest append that holds more than access records. */
  #newest: Outcome<Durability>;
  readonly #backlog = new FsyncBacklog();
  readonly #commitWait: CommitWait;
  readonly #fsync: LogFsync;
  readonly #reads: ReadActivity;
  /** Wakes the loop when something was linked. */
  #wake: () => void = ignore;
  /** Runs while no group is written and no fsync is under way. */
  readonly #exclusive: ExclusiveWork[] = [];

  constructor(writer: LogWriter, walSync: WalSync, clock: Pick<Clock, 'monotonicMs'>, room: FullDisk, listener: GroupListener) {
    this.#writer = writer;
    this.#walSync = walSync;
    this.#commitWait = new CommitWait(clock);
    this.#fsync = new LogFsync(writer, clock);
    this.#reads = new ReadActivity(clock);
    this.#room = room;
    this.#listener = listener;
    this.#newest = new Outcome();
    this.#newest.resolve(walSync === 'off' ? 'buffered' : 'synced');
  }

  /** Resolves once all commits that were added so far meet the sync policy. */
  get acknowledged(): Promise<Durability> {
    return this.#room.why === null ? this.#newest.promise : Promise.reject(this.#room.uncertain());
  }

  /** `sync` asks for an fsync whatever the mode; `access` means that nothing but access records is in it. */
  add(entries: readonly PlacedEntry[], kind: { readonly sync: boolean; readonly access: boolean }): Appended {
    const isDue = this.#backlog.takeRequest();
    const sync = kind.sync || isDue;
    const needs = sync ? 'fsync' : this.#walSync === 'off' ? 'write' : kind.access ? 'nothing' : 'fsync';
    const waiting = new PendingAppend(entries, needs);
    if (kind.access && this.#syncs + this.#backlog.running.syncs > 0) this.#reads.note();
    if (!kind.access) this.#newest = waiting.acknowledgement;
    if (this.#state.at === 'failed') waiting.reject(this.#state.error);
    else {
      this.#queue.add(waiting);
      if (this.#state.at === 'idle') this.#state = { at: 'committing', done: this.#commit() };
    }
    return waiting;
  }

  /**
   * Runs `work` while no group is written and no fsync is under way. A rejection fails the log: its files are then in an unknown
   * state.
   */
  async runExclusively(work: () => Promise<void>): Promise<void> {
    if (this.#state.at === 'failed') throw this.#state.error;
    if (this.#room.why !== null) throw this.#room.refusal();
    const done = new Promise<void>((resolve, reject) => this.#exclusive.push({ work, resolve, reject }));
    if (this.#state.at === 'idle') this.#state = { at: 'committing', done: this.#commit() };
    this.#wake();
    await done;
  }

  /** Called when an added append has been linked. */
  onLinked(): void {
    this.#wake();
  }

  /** The next append, whatever it is, gets an fsync if something written still waits for one. */
  syncSoon(): void {
    this.#backlog.request();
  }

  /** Resolves when everything added before has been committed or refused. */
  async idle(): Promise<void> {
    while (this.#state.at === 'committing') await this.#state.done;
  }

  /** Refuses all that waits and all that comes: also when something beside the groups has failed. */
  fail(cause: unknown): void {
    const first = this.#state.at !== 'failed';
    const error =
      this.#state.at === 'failed' ? this.#state.error : new ServiceError('REL_UNAVAILABLE', failureText(cause), { cause });
    this.#state = { at: 'failed', error };
    const written = this.#backlog.clear();
    const unwritten = [...this.#unwrittenGroup, ...this.#queue.clear()];
    this.#unwrittenGroup = [];
    for (const each of [...written, ...unwritten]) each.reject(error);
    for (const { reject } of this.#exclusive.splice(0)) reject(error);
    this.#wake();
    if (first) this.#listener.onFailed(cause);
  }

  async #commit(): Promise<void> {
    try {
      this.#commitWait.resume();
      // The records were gathered before they were appended: they are written once this turn has linked them.
      if (this.#queue.isOnlyRecords) await Promise.resolve();
      else await this.#gather();
      while (this.#isBusy() && this.#state.at !== 'failed') {
        if (this.#unwrittenGroup.length > 0) {
          await this.#writeAgain();
          continue;
        }
        if (this.#exclusive.length > 0) {
          await this.#runExclusive(this.#exclusive.shift()!);
          continue;
        }
        const group = this.#queue.take(GROUP_BYTES_MAX, 1);
        if (group.length > 0) await this.#write(group);
        else if (this.#backlog.next.syncs === 0) {
          await new Promise<void>((resolve) => (this.#wake = resolve));
          continue;
        }
        const nobodyWoken = group.every(({ isRecord }) => isRecord) && this.#backlog.next.syncs === 0;
        if (this.#backlog.next.syncs > 0 && !this.#commitWait.isWorthWaiting(this.#syncs)) await this.#sync();
        if (!nobodyWoken || this.#queue.length > 0) await this.#gather();
      }
      if (this.#state.at === 'committing') this.#state = { at: 'idle' };
      // Another failure came while this group was under way: appends that wait for an fsync get none.
      else this.fail(undefined);
    } catch (cause) {
      this.fail(cause);
    }
  }

  #isBusy(): boolean {
    return (
      this.#queue.length > 0 || this.#unwrittenGroup.length > 0 || this.#backlog.next.syncs > 0 || this.#exclusive.length > 0
    );
  }

  async #runExclusive({ work, resolve, reject }: ExclusiveWork): Promise<void> {
    try {
      await work();
      resolve();
    } catch (cause) {
      reject(cause);
      // Nothing was changed for want of room: the caller asks again.
      if (noRoomIn(cause) === null) throw cause;
    }
  }

  /**
   * Callers that append in this turn of the event loop, woken by the same group, join the same next group; so do expected
   * callers, unless an append waits for a write alone.
   */
  async #gather(): Promise<void> {
    do {
      const before = this.#queue.syncs;
      await new Promise<void>((resolve) => setImmediate(resolve));
      this.#commitWait.turn(this.#queue.syncs > before);
    } while (this.#queue.length === this.#queue.syncs && this.#commitWait.isWorthWaiting(this.#syncs));
  }

  /** Appends that wait for an fsync that has not begun. */
  get #syncs(): number {
    return this.#queue.syncs + this.#backlog.next.syncs;
  }

  /** `again`: it found no room before, and all waiting callers were told so. */
  async #write(group: readonly PendingAppend[], again = false): Promise<void> {
    try {
      const keys = this.#listener.keysDurable();
      if (keys) await keys;
      if (this.#state.at === 'failed') throw this.#state.error;
      const entries = group.length === 1 ? group[0]!.placed : group.flatMap(({ placed }) => placed);
      await this.#writer.write(entries);
      this.#room.clearShortage('frames');
      this.#backlog.next.add(entries, this.#queue.countWritten(group));
      for (const { sealing } of entries) if (sealing) this.#listener.onWritten(sealing);
      for (const { write } of group) write.resolve();
      if (this.#walSync === 'off') this.#listener.onCommitted(entries[entries.length - 1]!);
      for (const waiting of group) {
        if (waiting.needs === 'write') waiting.acknowledgement.resolve('buffered');
        else this.#backlog.next.acknowledgements.push(waiting.acknowledgement);
      }
    } catch (cause) {
      this.#unwrittenGroup = group;
      // Refused with all that waits.
      if (this.#hasFailed() || !(await this.#room.isShort('frames', cause))) throw cause;
      if (again) return;
      const error = this.#room.uncertain();
      for (const waiting of group) waiting.postpone(error);
      this.#queue.postpone(error);
      for (const { reject } of this.#exclusive.splice(0)) reject(this.#room.refusal());
    }
  }

  /** Frames that were written before need no room to become durable. */
  async #writeAgain(): Promise<void> {
    if (this.#backlog.next.syncs > 0) return await this.#sync();
    await this.#room.wait();
    const group = this.#unwrittenGroup;
    this.#unwrittenGroup = [];
    await this.#write(group, true);
  }

  #hasFailed(): boolean {
    return this.#state.at === 'failed';
  }

  async #sync(): Promise<void> {
    const written = this.#backlog.begin();
    const nobodyElse = !this.#reads.isRecent() && this.#commitWait.isComplete(written.syncs);
    const done = this.#fsync.sync(written.bytes, nobodyElse).then(() => {
      if (this.#walSync !== 'off') this.#listener.onCommitted(written.last!);
      for (const acknowledgement of written.acknowledgements) acknowledgement.resolve('synced');
      this.#backlog.end();
      this.#commitWait.begin(written.syncs + this.#syncs);
    });
    await this.#writeBeside(done);
  }

  /** Writes further groups while an fsync runs: an append that waits for a write alone is not held up by it. */
  async #writeBeside(syncing: Promise<void>): Promise<void> {
    let underWay = true;
    const ended = syncing.finally(() => {
      underWay = false;
      this.#wake();
    });
    ended.catch(ignore);
    let keysFail = false;
    while (underWay) {
      const waitsForWrite = this.#queue.length > this.#queue.syncs && this.#unwrittenGroup.length === 0 && !keysFail;
      const keys = waitsForWrite ? this.#listener.keysDurable() : null;
      // A file must not end during its fsync: appends without room wait.
      const group = waitsForWrite && !keys ? this.#queue.take(Math.min(GROUP_BYTES_MAX, this.#writer.room), 0) : [];
      if (group.length > 0) await this.#write(group);
      // The next writer asks for the keys again, and gets the error.
      else if (keys) await Promise.race([keys.catch(() => (keysFail = true)), ended]);
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    await ended;
  }
}

/** Why nothing is written any more. */
export function failureText(cause: unknown): string {
  const why = cause instanceof Error ? cause.message : String(cause);
  return `the log has failed (${why}) and accepts no writes until the server is restarted; what was sent may have been written: ${sendAgain}`;
}

function ignore(): void {}
