/**
 * Many appends, one write, one fsync. What is added in a turn of the event loop belongs together, and whoever committed
 * just before is expected to come again: an fsync waits for them as long as others keep coming, because one that leaves
 * with the first of them makes all the others wait for two. Nobody waits for a timer, and a lone committer for nobody.
 *
 * - `always`, `interval`: acknowledged and visible after the group's fsync. `interval` may hold a group back for at most
 *   10 ms; as a group begins as soon as the disk is free, it never has to.
 * - `off`: acknowledged and visible after the write; `sync` appends still wait for an fsync.
 * - A frame is written once the keys of subjects that its rows are sealed under are on disk.
 * - A group of access records alone is written and not fsynced: nobody waits for that. The next fsync covers it, and
 *   where only reads happen `syncSoon` asks for one now and then, so that a power cut takes a bounded stretch of records.
 *   Answers wait for their records to be written, so these never wait for commits that are expected, nor for an fsync
 *   that is under way: what they need of the queue is written beside it, to the same file, and left to the next fsync.
 * - Where all who are expected wait for a small fsync there is nobody to serve meanwhile: it is made in the turn, which
 *   spares two changes of thread, for as long as the disk is fast.
 * - An append whose entries are not all linked, because a body is still being sealed, holds up those after it.
 * - A write that found no room is made again, the same frame at the same place, until there is some: whoever waits for it,
 *   or came after it, is told at once that the outcome is open. What was written before it gets its fsync meanwhile.
 * - After any other failed write, and after every failed fsync, nothing is tried again: every waiting and later append is
 *   refused, because what the disk holds is unknown.
 */
import type { Clock } from '../clock.ts';
import { ServiceError } from '../errors.ts';
import type { Sealing } from './entries/bulk-sealer.ts';
import { noRoomIn } from './disk/disk.ts';
import { type DiskRoom, sendAgain } from './disk-room.ts';
import type { CommittedEntry } from './entries/entry.ts';
import type { EncodedEntry, PlacedEntry } from './entries/entry-codec.ts';
import { frameBytes } from './files/log-file.ts';
import type { Appended, Durability, WalSync } from './log-store.ts';
import type { LogWriter } from './files/log-writer.ts';

export interface GroupListener {
  /** Null, or resolves once all keys that what was appended so far is sealed under are on disk: no frame is written before. */
  keysDurable(): Promise<void> | null;
  /** The payload is in the file: its slot is free. */
  written(sealing: Sealing): void;
  /** All entries up to here meet the sync policy. */
  committed(last: EncodedEntry): void;
  failed(cause: unknown): void;
}

/** A larger group would make those who wait for the next one wait too long. One append is never divided. */
const GROUP_BYTES_MAX = 8 << 20;

/** Who is expected and has not come so long after the last one who did is not waited for. */
const PATIENCE_MS = 0.15;
/** The same in turns of the event loop, whatever the clock says. */
const PATIENCE_TURNS = 16;
/** Whoever comes back later than this after an fsync was not waiting to. */
const EXPECTED_MS = 5;
/** Nobody's fsync waits longer than this for others, however many keep coming. */
const GATHER_MS_MAX = 2;

/** The event loop is not held for what takes longer: larger groups, and a disk whose last fsync in the turn was slow. */
const IN_TURN_BYTES_MAX = 64 << 10;
const IN_TURN_MS_MAX = 0.5;
/** Fsyncs beside the loop before another one is tried in the turn; doubled each time that one is slow. */
const BESIDE_MIN = 16;
const BESIDE_MAX = 4096;

/** What will have become of an append; a promise of it is made when somebody asks. */
class Outcome<T> {
  #promise: Promise<T> | null = null;
  #resolve: ((value: T) => void) | null = null;
  #reject: ((error: ServiceError) => void) | null = null;
  #settled: { readonly value: T } | { readonly error: ServiceError } | null = null;

  get promise(): Promise<T> {
    if (this.#promise) return this.#promise;
    const settled = this.#settled;
    this.#promise = new Promise((resolve, reject) => {
      if (settled === null) {
        this.#resolve = resolve;
        this.#reject = reject;
      } else if ('value' in settled) resolve(settled.value);
      else reject(settled.error);
    });
    // Who asked may wait for the other outcome: this must not count as an unhandled rejection.
    this.#promise.catch(ignore);
    return this.#promise;
  }

  /** The first outcome stays. */
  resolve(value: T): void {
    this.#settled ??= { value };
    this.#resolve?.(value);
  }

  reject(error: ServiceError): void {
    this.#settled ??= { error };
    this.#reject?.(error);
  }

  /** Whoever has asked is told that it is not known yet; whoever asks from now on waits for the outcome. */
  postpone(error: ServiceError): void {
    this.#reject?.(error);
    this.#promise = this.#resolve = this.#reject = null;
  }
}

/** One append, and whoever waits for it. */
class Waiting implements Appended {
  readonly placed: readonly PlacedEntry[];
  readonly entries: readonly CommittedEntry[];
  readonly needs: 'fsync' | 'write' | 'nothing';
  readonly write = new Outcome<void>();
  /** All that is kept of an append once it is written: what only an fsync every now and then settles would fill the heap. */
  readonly acknowledgement = new Outcome<Durability>();

  constructor(placed: readonly PlacedEntry[], needs: Waiting['needs']) {
    this.placed = placed;
    this.entries = placed.length === 1 ? [placed[0]!.entry] : placed.map(({ entry }) => entry);
    this.needs = needs;
  }

  get written(): Promise<void> {
    return this.write.promise;
  }

  get acknowledged(): Promise<Durability> {
    return this.acknowledgement.promise;
  }

  reject(error: ServiceError): void {
    this.write.reject(error);
    this.acknowledgement.reject(error);
  }

  postpone(error: ServiceError): void {
    this.write.postpone(error);
    this.acknowledgement.postpone(error);
  }
}

interface Between {
  readonly work: () => Promise<void>;
  readonly resolve: () => void;
  readonly reject: (cause: unknown) => void;
}

type State = { at: 'idle' } | { at: 'committing'; done: Promise<void> } | { at: 'failed'; error: ServiceError };

export class GroupCommit {
  readonly #writer: LogWriter;
  readonly #walSync: WalSync;
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #room: DiskRoom;
  readonly #listener: GroupListener;
  #state: State = { at: 'idle' };
  #queue: Waiting[] = [];
  /** A group that found no room: nothing else is written before it is. */
  #kept: readonly Waiting[] = [];
  /** Outcome of the newest append that holds more than access records. */
  #newest: Outcome<Durability>;
  /** Written before the fsync that is under way began. */
  #syncing: readonly Outcome<Durability>[] = [];
  /** Written, and waiting for whatever fsync comes next. */
  #unsynced: Outcome<Durability>[] = [];
  /** The last entry that is written. */
  #lastWritten: EncodedEntry | null = null;
  #bytesUnsynced = 0;
  #syncDue = false;
  /** Who waits for an fsync that has not begun, queued and written. */
  #syncsQueued = 0;
  #syncsWritten = 0;
  /** How many waited for a recent fsync, or arrived while it was made. */
  #expected = 1;
  /** Since when an fsync waits for those who are expected, since when nobody has come, and for how many turns. */
  #gatheringSinceMs = 0;
  #quietSinceMs = 0;
  #quietTurns = 0;
  /** Fsyncs that are still made beside the loop, because the last one in the turn was slow. */
  #besides = 0;
  #besidesNext = BESIDE_MIN;
  /** Wakes the loop when something was linked. */
  #wake: () => void = ignore;
  /** What is to be done while no group is written and no fsync is under way. */
  readonly #between: Between[] = [];

  constructor(writer: LogWriter, walSync: WalSync, clock: Pick<Clock, 'monotonicMs'>, room: DiskRoom, listener: GroupListener) {
    this.#writer = writer;
    this.#walSync = walSync;
    this.#clock = clock;
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
    const sync = kind.sync || this.#syncDue;
    this.#syncDue = false;
    const needs = sync ? 'fsync' : this.#walSync === 'off' ? 'write' : kind.access ? 'nothing' : 'fsync';
    const waiting = new Waiting(entries, needs);
    if (!kind.access) this.#newest = waiting.acknowledgement;
    if (this.#state.at === 'failed') waiting.reject(this.#state.error);
    else {
      this.#queue.push(waiting);
      if (needs === 'fsync') this.#syncsQueued++;
      if (this.#state.at === 'idle') this.#state = { at: 'committing', done: this.#commit() };
    }
    return waiting;
  }

  /** Runs `work` while no group is written and no fsync is under way. What it rejects with fails the log: the files are not what they were thought to be. */
  async between(work: () => Promise<void>): Promise<void> {
    if (this.#state.at === 'failed') throw this.#state.error;
    if (this.#room.why !== null) throw this.#room.refusal();
    const done = new Promise<void>((resolve, reject) => this.#between.push({ work, resolve, reject }));
    if (this.#state.at === 'idle') this.#state = { at: 'committing', done: this.#commit() };
    this.#wake();
    await done;
  }

  /** Something that was added has been linked since. */
  linked(): void {
    this.#wake();
  }

  /** The next append, whatever it is, gets an fsync if something written still waits for one. */
  syncSoon(): void {
    this.#syncDue = this.#unsynced.length > 0;
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
    const waiting = [...this.#syncing, ...this.#unsynced, ...this.#kept, ...this.#queue];
    this.#syncing = [];
    this.#unsynced = [];
    this.#kept = this.#queue = [];
    this.#syncsQueued = this.#syncsWritten = 0;
    for (const each of waiting) each.reject(error);
    for (const { reject } of this.#between.splice(0)) reject(error);
    this.#wake();
    if (first) this.#listener.failed(cause);
  }

  async #commit(): Promise<void> {
    try {
      const idleMs = this.#clock.monotonicMs() - this.#gatheringSinceMs;
      if (idleMs > EXPECTED_MS) this.#expected = 1;
      this.#beginGathering();
      // Records have been gathered by whoever made them: they are written once this turn has linked them.
      if (this.#queue.every(isRecord)) await Promise.resolve();
      else await this.#gather();
      while (this.#isBusy() && this.#state.at !== 'failed') {
        if (this.#kept.length > 0) {
          await this.#writeKept();
          continue;
        }
        if (this.#between.length > 0) {
          await this.#doBetween(this.#between.shift()!);
          continue;
        }
        const group = this.#takeGroup(GROUP_BYTES_MAX, 1);
        if (group.length > 0) await this.#write(group);
        else if (this.#syncsWritten === 0) {
          await new Promise<void>((resolve) => (this.#wake = resolve));
          continue;
        }
        const nobodyWoken = group.every(isRecord) && this.#syncsWritten === 0;
        if (this.#syncsWritten > 0 && !this.#isWorthWaiting()) await this.#sync();
        if (!nobodyWoken || this.#queue.length > 0) await this.#gather();
      }
      if (this.#state.at === 'committing') this.#state = { at: 'idle' };
      // Something else failed while this group was under way: what it left waiting for an fsync gets none.
      else this.fail(undefined);
    } catch (cause) {
      this.fail(cause);
    }
  }

  #isBusy(): boolean {
    return this.#queue.length > 0 || this.#kept.length > 0 || this.#syncsWritten > 0 || this.#between.length > 0;
  }

  async #doBetween({ work, resolve, reject }: Between): Promise<void> {
    try {
      await work();
      resolve();
    } catch (cause) {
      reject(cause);
      // Nothing was changed for want of room: whoever asked for it comes again.
      if (noRoomIn(cause) === null) throw cause;
    }
  }

  #beginGathering(): void {
    this.#gatheringSinceMs = this.#quietSinceMs = this.#clock.monotonicMs();
    this.#quietTurns = 0;
  }

  /**
   * Whoever else appends in this turn of the event loop, woken by the same group, belongs to the same next group; and those
   * who are expected, unless somebody waits for a write alone.
   */
  async #gather(): Promise<void> {
    do {
      const before = this.#syncsQueued;
      await new Promise<void>((resolve) => setImmediate(resolve));
      if (this.#syncsQueued > before) {
        this.#quietSinceMs = this.#clock.monotonicMs();
        this.#quietTurns = 0;
      } else this.#quietTurns++;
    } while (this.#queue.length === this.#syncsQueued && this.#isWorthWaiting());
  }

  get #syncs(): number {
    return this.#syncsQueued + this.#syncsWritten;
  }

  /** Whether an fsync that somebody waits for had better wait for more of them. */
  #isWorthWaiting(): boolean {
    const syncs = this.#syncs;
    if (syncs === 0 || syncs >= this.#expected || this.#quietTurns >= PATIENCE_TURNS) return false;
    const nowMs = this.#clock.monotonicMs();
    return nowMs - this.#quietSinceMs < PATIENCE_MS && nowMs - this.#gatheringSinceMs < GATHER_MS_MAX;
  }

  /** All that is linked, up to so many bytes; of what is linked `countMin` whatever they hold. */
  #takeGroup(bytesMax: number, countMin: 0 | 1): Waiting[] {
    let count = 0;
    for (let bytes = 0; count < this.#queue.length; count++) {
      const { placed } = this.#queue[count]!;
      if (!placed[placed.length - 1]!.linked) break;
      bytes += frameBytes(placed);
      if (count >= countMin && bytes > bytesMax) break;
    }
    return count === 0 ? [] : this.#queue.splice(0, count);
  }

  /** `again`: it found no room before, which all who wait for it were told. */
  async #write(group: readonly Waiting[], again = false): Promise<void> {
    try {
      const keys = this.#listener.keysDurable();
      if (keys) await keys;
      if (this.#state.at === 'failed') throw this.#state.error;
      const entries = group.length === 1 ? group[0]!.placed : group.flatMap(({ placed }) => placed);
      await this.#writer.write(entries);
      this.#room.found('frames');
      for (const { needs } of group) {
        if (needs !== 'fsync') continue;
        this.#syncsQueued--;
        this.#syncsWritten++;
      }
      this.#bytesUnsynced += frameBytes(entries);
      const last = (this.#lastWritten = entries[entries.length - 1]!);
      for (const { sealing } of entries) if (sealing) this.#listener.written(sealing);
      for (const { write } of group) write.resolve();
      if (this.#walSync === 'off') this.#listener.committed(last);
      for (const waiting of group) {
        if (waiting.needs === 'write') waiting.acknowledgement.resolve('buffered');
        else this.#unsynced.push(waiting.acknowledgement);
      }
    } catch (cause) {
      this.#kept = group;
      // Refused with all that waits.
      if (this.#hasFailed() || !(await this.#room.isShort('frames', cause))) throw cause;
      if (again) return;
      const error = this.#room.uncertain();
      for (const waiting of [...group, ...this.#queue]) waiting.postpone(error);
      for (const { reject } of this.#between.splice(0)) reject(this.#room.refusal());
    }
  }

  /** What was written before it needs no room to be durable. */
  async #writeKept(): Promise<void> {
    if (this.#syncsWritten > 0) return await this.#sync();
    await this.#room.wait();
    const group = this.#kept;
    this.#kept = [];
    await this.#write(group, true);
  }

  #hasFailed(): boolean {
    return this.#state.at === 'failed';
  }

  async #sync(): Promise<void> {
    const synced = this.#syncsWritten;
    const last = this.#lastWritten!;
    const inTurn = synced >= this.#expected && this.#bytesUnsynced <= IN_TURN_BYTES_MAX;
    this.#syncing = this.#unsynced;
    this.#unsynced = [];
    this.#syncsWritten = 0;
    this.#bytesUnsynced = 0;
    const done = this.#syncFile(inTurn).then(() => {
      if (this.#walSync !== 'off') this.#listener.committed(last);
      for (const acknowledgement of this.#syncing) acknowledgement.resolve('synced');
      this.#syncing = [];
      this.#expected = synced + this.#syncs;
      this.#beginGathering();
    });
    await this.#writeBeside(done);
  }

  /** Waits for an fsync; who waits for a write alone is not kept waiting by it. */
  async #writeBeside(syncing: Promise<void>): Promise<void> {
    let underWay = true;
    const ended = syncing.finally(() => {
      underWay = false;
      this.#wake();
    });
    ended.catch(ignore);
    let keysFail = false;
    while (underWay) {
      const waitsForWrite = this.#queue.length > this.#syncsQueued && this.#kept.length === 0 && !keysFail;
      const keys = waitsForWrite ? this.#listener.keysDurable() : null;
      // The file is not ended under its fsync: what has no room waits.
      const group = waitsForWrite && !keys ? this.#takeGroup(Math.min(GROUP_BYTES_MAX, this.#writer.room), 0) : [];
      if (group.length > 0) await this.#write(group);
      // Whoever writes next asks for them again, and is told why.
      else if (keys) await Promise.race([keys.catch(() => (keysFail = true)), ended]);
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    await ended;
  }

  async #syncFile(nobodyElse: boolean): Promise<void> {
    if (!nobodyElse || this.#besides > 0) {
      this.#besides = Math.max(0, this.#besides - 1);
      return await this.#writer.sync();
    }
    const beganMs = this.#clock.monotonicMs();
    await this.#writer.sync(true);
    if (this.#clock.monotonicMs() - beganMs <= IN_TURN_MS_MAX) this.#besidesNext = BESIDE_MIN;
    else {
      this.#besides = this.#besidesNext;
      this.#besidesNext = Math.min(BESIDE_MAX, this.#besidesNext * 2);
    }
  }
}

/** Why nothing is written any more. */
export function failureText(cause: unknown): string {
  const why = cause instanceof Error ? cause.message : String(cause);
  return `the log has failed (${why}) and accepts no writes until the server is restarted; what was sent may have been written: ${sendAgain}`;
}

/** Whether it is access records alone, which no commit waits for. */
function isRecord({ needs }: Waiting): boolean {
  return needs === 'nothing';
}

function ignore(): void {}
