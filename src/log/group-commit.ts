/**
 * Many appends, one write, one fsync. A group is everything that waited when the disk became free; the next one starts
 * when the last one ends, so nobody waits for a timer while the disk is idle. Where many append at a time a group begins
 * with about half of them: its fsync then runs while the others are placed, and theirs while the first come again.
 *
 * - `always`, `interval`: acknowledged and visible after the group's fsync. `interval` may hold a group back for at most
 *   10 ms; as a group begins as soon as the disk is free, it never has to.
 * - `off`: acknowledged and visible after the write; `sync` appends still wait for an fsync.
 * - A group of access records alone is written and not fsynced: nobody waits for that. The next fsync covers it, and
 *   where only reads happen `syncSoon` asks for one now and then, so that a power cut takes a bounded stretch of records.
 * - An append whose entries are not all linked, because a body is still being sealed, holds up those after it.
 * - After a failed write or fsync nothing is tried again: every waiting and later append is refused, because what the
 *   disk holds is unknown.
 */
import { ServiceError } from '../errors.ts';
import type { Sealing } from './bulk-sealer.ts';
import type { CommittedEntry } from './entry.ts';
import type { EncodedEntry, PlacedEntry } from './entry-codec.ts';
import { frameBytes } from './log-file.ts';
import type { Appended, Durability, WalSync } from './log-store.ts';
import type { LogWriter } from './log-writer.ts';

export interface GroupListener {
  /** The payload is in the file: its slot is free. */
  written(sealing: Sealing): void;
  /** All entries up to here meet the sync policy. */
  committed(last: EncodedEntry): void;
  failed(cause: unknown): void;
}

/** A larger group would make those who wait for the next one wait too long. One append is never divided. */
const GROUP_BYTES_MAX = 8 << 20;

/** Of fewer appends each is worth waiting for, until the turn of the event loop ends. */
const EARLY_APPENDS = 8;

/** One append, and whoever waits for it. */
class Waiting implements Appended {
  readonly placed: readonly PlacedEntry[];
  readonly entries: readonly CommittedEntry[];
  readonly needs: 'fsync' | 'write' | 'nothing';
  readonly acknowledged: Promise<Durability>;
  #acknowledge!: (durability: Durability) => void;
  #reject!: (error: ServiceError) => void;
  /** Made when somebody asks: most callers wait for the acknowledgement alone. */
  #written: Promise<void> | null = null;
  #writtenDone: () => void = ignore;
  #writtenReject: (error: ServiceError) => void = ignore;
  #outcome: 'waiting' | 'written' | ServiceError = 'waiting';

  constructor(placed: readonly PlacedEntry[], needs: Waiting['needs']) {
    this.placed = placed;
    this.entries = placed.length === 1 ? [placed[0]!.entry] : placed.map(({ entry }) => entry);
    this.needs = needs;
    this.acknowledged = new Promise((resolve, reject) => {
      this.#acknowledge = resolve;
      this.#reject = reject;
    });
    // A caller may wait for the other one: this must not count as an unhandled rejection.
    this.acknowledged.catch(ignore);
  }

  get written(): Promise<void> {
    if (this.#written) return this.#written;
    const outcome = this.#outcome;
    this.#written = new Promise((resolve, reject) => {
      if (outcome === 'waiting') {
        this.#writtenDone = resolve;
        this.#writtenReject = reject;
      } else if (outcome === 'written') resolve();
      else reject(outcome);
    });
    this.#written.catch(ignore);
    return this.#written;
  }

  acknowledge(durability: Durability): void {
    this.#acknowledge(durability);
  }

  wrote(): void {
    this.#outcome = 'written';
    this.#writtenDone();
  }

  reject(error: ServiceError): void {
    if (this.#outcome === 'waiting') this.#outcome = error;
    this.#reject(error);
    this.#writtenReject(error);
  }
}

type State = { at: 'idle' } | { at: 'committing'; done: Promise<void> } | { at: 'failed'; error: ServiceError };

export class GroupCommit {
  readonly #writer: LogWriter;
  readonly #walSync: WalSync;
  readonly #listener: GroupListener;
  #state: State = { at: 'idle' };
  #queue: Waiting[] = [];
  /** Written, and waiting for whatever fsync comes next. */
  #unsynced: Waiting[] = [];
  #syncDue = false;
  /** Of the queue: how many wait for an fsync. */
  #syncsQueued = 0;
  #lastGroup = 0;
  /** Whether the event loop has turned since the last group began: it must between any two. */
  #turned = true;
  /** Ends the gathering of a group. */
  #ripe: () => void = ignore;
  /** Wakes the loop when something was linked. */
  #wake: () => void = ignore;

  constructor(writer: LogWriter, walSync: WalSync, listener: GroupListener) {
    this.#writer = writer;
    this.#walSync = walSync;
    this.#listener = listener;
  }

  /** `sync` asks for an fsync whatever the mode; `access` means that nothing but access records is in it. */
  add(entries: readonly PlacedEntry[], kind: { readonly sync: boolean; readonly access: boolean }): Appended {
    const sync = kind.sync || this.#syncDue;
    this.#syncDue = false;
    const needs = sync ? 'fsync' : this.#walSync === 'off' ? 'write' : kind.access ? 'nothing' : 'fsync';
    const waiting = new Waiting(entries, needs);
    if (this.#state.at === 'failed') waiting.reject(this.#state.error);
    else {
      this.#queue.push(waiting);
      if (needs === 'fsync') this.#syncsQueued++;
      if (this.#isRipe()) this.#ripe();
      if (this.#state.at === 'idle') this.#state = { at: 'committing', done: this.#commit() };
    }
    return waiting;
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
      this.#state.at === 'failed'
        ? this.#state.error
        : new ServiceError('REL_UNAVAILABLE', 'the log has failed and accepts no writes', { cause });
    this.#state = { at: 'failed', error };
    const waiting = [...this.#unsynced, ...this.#queue];
    this.#unsynced = [];
    this.#queue = [];
    this.#syncsQueued = 0;
    for (const each of waiting) each.reject(error);
    this.#wake();
    if (first) this.#listener.failed(cause);
  }

  async #commit(): Promise<void> {
    let group: Waiting[] = [];
    try {
      await this.#gather();
      while (this.#queue.length > 0 && this.#state.at !== 'failed') {
        group = this.#takeGroup();
        if (group.length === 0) {
          await new Promise<void>((resolve) => (this.#wake = resolve));
          continue;
        }
        this.#turned = false;
        setImmediate(() => (this.#turned = true));
        await this.#commitGroup(group);
        this.#lastGroup = group.length;
        await this.#gather();
      }
      if (this.#state.at === 'committing') this.#state = { at: 'idle' };
      // Something else failed while this group was under way: what it left waiting for an fsync gets none.
      else this.fail(undefined);
    } catch (cause) {
      this.#unsynced.push(...group);
      this.fail(cause);
    }
  }

  /** Access records alone never are: their callers may come again and again without an fsync to wait for. */
  #isRipe(): boolean {
    return this.#turned && this.#syncsQueued >= Math.max(EARLY_APPENDS, this.#lastGroup >> 1);
  }

  /** Whoever else appends in this turn of the event loop, woken by the same group, belongs to the same next group. */
  async #gather(): Promise<void> {
    if (this.#isRipe()) return;
    await new Promise<void>((resolve) => {
      this.#ripe = resolve;
      setImmediate(resolve);
    });
  }

  /** All that is linked, up to what one write may hold. */
  #takeGroup(): Waiting[] {
    let count = 0;
    for (let bytes = 0; count < this.#queue.length; count++) {
      const { placed } = this.#queue[count]!;
      if (!placed[placed.length - 1]!.linked) break;
      bytes += frameBytes(placed);
      if (count > 0 && bytes > GROUP_BYTES_MAX) break;
    }
    const group = this.#queue.splice(0, count);
    for (const { needs } of group) if (needs === 'fsync') this.#syncsQueued--;
    return group;
  }

  async #commitGroup(group: readonly Waiting[]): Promise<void> {
    const entries = group.length === 1 ? group[0]!.placed : group.flatMap(({ placed }) => placed);
    const last = entries[entries.length - 1]!;
    await this.#writer.write(entries);
    for (const { sealing } of entries) if (sealing) this.#listener.written(sealing);
    for (const waiting of group) waiting.wrote();
    if (this.#walSync === 'off') {
      this.#listener.committed(last);
      for (const waiting of group) if (waiting.needs === 'write') waiting.acknowledge('buffered');
    }
    if (group.some(({ needs }) => needs === 'fsync')) {
      await this.#writer.sync();
      if (this.#walSync !== 'off') this.#listener.committed(last);
      for (const waiting of this.#unsynced) waiting.acknowledge('synced');
      this.#unsynced = [];
      for (const waiting of group) waiting.acknowledge('synced');
    } else {
      for (const waiting of group) if (waiting.needs === 'nothing') this.#unsynced.push(waiting);
    }
  }
}

function ignore(): void {}
