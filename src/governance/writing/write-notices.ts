/**
 * Notifies subscribers when rows of a type that they may see become visible: after durability, outside the turn that committed,
 * and never for a write in an organisation path of which they may see nothing. So no effect, be it an access record or a moment,
 * can tell one tenant when another one writes. A notice says neither how many rows nor where.
 */
import { type EntryDraft, rowBodiesOf } from '../../log/entries/entry.ts';
import { finalOutcome } from '../../log/append/full-disk.ts';
import type { Appended } from '../../log/log-store.ts';
import type { WriteScope } from '../gate-contract.ts';

interface Listener extends WriteScope {
  readonly call: () => void;
}

/** Fork of the branch that a name means to a tenant. */
type BranchIds = (branch: string, tenant: string | null) => number | undefined;

export class WriteNotices {
  /** By type. */
  readonly #listeners = new Map<string, Set<Listener>>();
  /** Listeners that are due and not called yet: many writes of one turn are one call. */
  readonly #due = new Set<Listener>();
  readonly #defer: (task: () => void) => void;
  readonly #idOf: BranchIds;

  constructor(defer: (task: () => void) => void, idOf: BranchIds) {
    this.#defer = defer;
    this.#idOf = idOf;
  }

  /** Returns what ends the listening. */
  listen(scope: WriteScope, call: () => void): () => void {
    const { type } = scope;
    const listener = { ...scope, call };
    const listeners = this.#listeners.get(type) ?? new Set();
    this.#listeners.set(type, listeners.add(listener));
    return () => {
      this.#due.delete(listener);
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(type) === listeners) this.#listeners.delete(type);
    };
  }

  /** Called for every append, in the turn in which it was placed. */
  onPlaced(drafts: readonly EntryDraft[], appended: Appended): void {
    if (this.#listeners.size === 0) return;
    const concerned = drafts.flatMap((draft) => this.#concernedBy(draft));
    if (concerned.length === 0) return;
    // An entry that failed to become durable never becomes visible either.
    finalOutcome(appended).then(
      () => this.#tell(concerned),
      () => undefined,
    );
  }

  #concernedBy({ context, body }: EntryDraft): readonly Listener[] {
    const rows = rowBodiesOf(body);
    if (rows.length > 0) {
      const listeners = [...new Set(rows.map(({ type }) => type))].flatMap((type) => this.#ofType(type));
      if (listeners.length === 0) return [];
      // Two tenants may each have a branch of this name.
      const written = this.#idOf(context.branch, context.tenant);
      return listeners.filter(({ branch, tenant, shows }) => this.#idOf(branch, tenant) === written && shows(context.path));
    }
    // A removal reaches what was forked from its branch, and which that is, is not known here; an erasure reaches all.
    if (body.kind === 'removal') return this.#ofType(body.type).filter(({ shows }) => shows(context.path));
    if (body.kind !== 'erasure') return [];
    return body.versions.flatMap(({ type, paths }) => this.#ofType(type).filter(({ shows }) => paths.some(shows)));
  }

  #ofType(type: string): readonly Listener[] {
    return [...(this.#listeners.get(type) ?? [])];
  }

  #tell(concerned: readonly Listener[]): void {
    if (this.#due.size === 0) this.#defer(() => this.#callAll());
    for (const listener of concerned) {
      if (this.#listeners.get(listener.type)?.has(listener)) this.#due.add(listener);
    }
  }

  #callAll(): void {
    const due = [...this.#due];
    this.#due.clear();
    for (const { call } of due) call();
  }
}
