/**
 * Append and apply as one step of one turn: no other append can come between them, so projections are never behind the
 * log when the next command is decided. If an entry can't be applied, state and log disagree: nothing is served any more.
 */
import { ServiceError } from '../../errors.ts';
import type { CommittedEntry, EntryDraft } from '../../log/entries/entry.ts';
import type { Appended, AppendOptions, LogStore } from '../../log/log-store.ts';

export class Committer {
  readonly #committedLog: LogStore;
  readonly #applyEntry: (entry: CommittedEntry) => void;
  #haltCause: { readonly cause: unknown } | undefined;

  constructor(log: LogStore, apply: (entry: CommittedEntry) => void) {
    this.#committedLog = log;
    this.#applyEntry = apply;
  }

  /** Throws REL_UNAVAILABLE once an entry could not be applied. */
  checkRunning(): void {
    if (this.#haltCause === undefined) return;
    throw new ServiceError('REL_UNAVAILABLE', 'the store has halted: an entry could not be applied', this.#haltCause);
  }

  commit(drafts: readonly EntryDraft[], options?: AppendOptions): Appended {
    this.checkRunning();
    const appended = this.#committedLog.append(drafts, options);
    try {
      for (const entry of appended.entries) this.#applyEntry(entry);
    } catch (cause) {
      this.#haltCause = { cause };
      throw cause;
    }
    return appended;
  }
}
