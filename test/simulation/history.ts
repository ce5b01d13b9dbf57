/**
 * What clients of a log were told, and what a restarted log must therefore hold: an exact prefix of the submissions, in
 * their order, each whole or not at all, with every acknowledged one and nothing that was refused.
 */
import { createHash } from 'node:crypto';
import type { CommittedEntry } from '../../src/log/entries/entry.ts';
import type { Appended, LogStore } from '../../src/log/log-store.ts';
import type { ResumeOptions, SavedLog } from '../../src/log/files/saved-log.ts';
import { textOf } from './drafts.ts';

export interface Submission {
  readonly entries: readonly CommittedEntry[];
  readonly texts: readonly string[];
}

/** What had been promised at one instant. Counts are of submissions, from the first. */
export interface Promises {
  readonly submitted: number;
  /** Acknowledged as synced: must survive a power cut. */
  readonly synced: number;
  /** Handed to the operating system: must survive the death of the process. */
  readonly written: number;
  /** Positions below this one were shown to readers as durable. */
  readonly visible: number;
  /** Of the history by then. */
  readonly version: number;
}

/** A state of the log that somebody keeps beside what was derived from it. */
export class KeptState {
  readonly leaves: number;
  /** Kept before what it stands for was durable. */
  readonly early: boolean;
  /** Version of the history from which on it was there. */
  readonly since: number;
  /** Of all that it says. */
  readonly digest: string;
  readonly #bytes: Uint8Array;
  readonly #blobs: ReadonlyMap<string, Uint8Array>;

  constructor(saved: SavedLog, early: boolean, since: number) {
    this.leaves = saved.leaves;
    this.early = early;
    this.since = since;
    this.#bytes = saved.bytes.slice();
    this.#blobs = new Map(saved.blobs.map(({ name, bytes }) => [name, bytes().slice()]));
    const hash = createHash('sha256').update(`${this.leaves}\n`).update(this.#bytes);
    for (const [name, bytes] of this.#blobs) hash.update(`\n${name}\n${bytes.length}\n`).update(bytes);
    this.digest = hash.digest('base64');
  }

  resume(refused: (reason: string) => void): ResumeOptions {
    const blob = (name: string): Uint8Array => {
      const found = this.#blobs.get(name);
      if (!found) throw new Error(`the state has no blob ${name}`);
      return found;
    };
    return { bytes: this.#bytes.slice(), blob, onRefused: refused };
  }
}

export class History {
  readonly submissions: Submission[] = [];
  /** In the order in which they were taken: those that may be gone by from some time on, and those that nobody waited for. */
  readonly kept: KeptState[] = [];
  /** Roots that the log gave out, by tree size. */
  readonly roots = new Map<number, Uint8Array>();
  /** Rises with every new promise. */
  version = 0;
  #synced = 0;
  #written = 0;
  #visible = 0;

  /** Starts from what a recovered log holds already. */
  static of(entries: readonly CommittedEntry[]): History {
    const history = new History();
    history.submit(entries);
    history.#synced = history.#written = history.submissions.length;
    return history;
  }

  /** Follows one append; the returned promise resolves to whether it was acknowledged. */
  follow(appended: Appended): Promise<boolean> {
    const count = this.submit(appended.entries);
    appended.written.then(
      () => this.#raise(() => (this.#written = Math.max(this.#written, count))),
      () => undefined,
    );
    return appended.acknowledged.then(
      (durability) => {
        if (durability === 'synced') this.#raise(() => (this.#synced = Math.max(this.#synced, count)));
        return true;
      },
      () => false,
    );
  }

  /** Keeps the state of the log, as a checkpoint does once it is durable, or as one must not do: at once. */
  async keep(log: LogStore, early: boolean): Promise<void> {
    const saved = log.savedState();
    if (early) this.#keep(saved, early);
    await log.durable(saved.leaves);
    if (!early) this.#keep(saved, early);
  }

  submit(entries: readonly CommittedEntry[]): number {
    this.submissions.push({ entries, texts: entries.map(textOf) });
    this.version++;
    return this.submissions.length;
  }

  show(position: number): void {
    this.#raise(() => (this.#visible = position));
  }

  promises(): Promises {
    const { version } = this;
    return { submitted: this.submissions.length, synced: this.#synced, written: this.#written, visible: this.#visible, version };
  }

  /** Says what is wrong with a recovered log, or null. Seals and the first entry are the log's own business. */
  faultOf(recovered: readonly CommittedEntry[], mustHold: number, promises: Promises): string | null {
    const entries = recovered.filter(({ body }) => body.kind !== 'seal' && body.kind !== 'genesis');
    let at = 0;
    let whole = 0;
    while (at < entries.length && whole < promises.submitted) {
      const { texts } = this.submissions[whole]!;
      for (const [i, text] of texts.entries()) {
        const entry = entries[at + i];
        if (!entry) return `submission ${whole} came back in part`;
        if (textOf(entry) !== text) return `entry ${at + i} is not what submission ${whole} said`;
      }
      at += texts.length;
      whole++;
    }
    if (at < entries.length) return `${entries.length - at} entries were never submitted`;
    if (whole < mustHold)
      return `${mustHold - whole} promised submissions are lost (${whole} of ${promises.submitted} are there)`;
    return null;
  }

  #keep(saved: SavedLog, early: boolean): void {
    this.#raise(() => this.kept.push(new KeptState(saved, early, this.version + 1)));
  }

  #raise(change: () => void): void {
    change();
    this.version++;
  }
}
