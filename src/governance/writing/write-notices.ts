/**
 * Notifies subscribers when rows of a type that they may see become visible: after durability, outside the turn that committed,
 * and never for a write in an organisation path of which they may see nothing. So no effect, be it an access record or a moment,
 * can tell one tenant when another one writes. A notice says neither how many rows nor where.
 */
import { type EntryDraft, rowBodiesOf } from '../../log/entries/entry.ts';
import { finalOutcome } from '../../log/append/full-disk.ts';
import type { Appended } from '../../log/log-store.ts';
import type { WriteScope } from '../gate-contract.ts';

interface WriteListener extends WriteScope {
  readonly call: () => void;
}

/** Fork of the branch that a name means to a tenant. */
type BranchIds = (branch: string, tenant: string | null) => number | undefined;

export class WriteNotices {
  /** By type. */
  readonly #listenersByType = new Map<string, Set<WriteListener>>();
  /** Listeners that are due and not called yet: many writes of one turn are one call. */
  readonly #dueListeners = new Set<WriteListener>();
  readonly #deferNotices: (task: () => void) => void;
  readonly #branchIdOf: BranchIds;

  constructor(defer: (task: () => void) => void, idOf: BranchIds) {
    this.#deferNotices = defer;
    this.#branchIdOf = idOf;
  }

  /** Returns what ends the listening. */
  listen(scope: WriteScope, call: () => void): () => void {
    const { type } = scope;
    const listener = { ...scope, call };
    const typeListeners = this.#listenersByType.get(type) ?? new Set();
    this.#listenersByType.set(type, typeListeners.add(listener));
    return () => {
      this.#dueListeners.delete(listener);
      typeListeners.delete(listener);
      if (typeListeners.size === 0 && this.#listenersByType.get(type) === typeListeners) this.#listenersByType.delete(type);
    };
  }

  /** Called for every append, in the turn in which it was placed. */
  onPlaced(drafts: readonly EntryDraft[], appended: Appended): void {
    if (this.#listenersByType.size === 0) return;
    const concernedListeners = drafts.flatMap((draft) => this.#listenersConcerned(draft));
    if (concernedListeners.length === 0) return;
    // An entry that failed to become durable never becomes visible either.
    finalOutcome(appended).then(
      () => this.#markListenersDue(concernedListeners),
      () => undefined,
    );
  }

  #listenersConcerned({ context, body }: EntryDraft): readonly WriteListener[] {
    const rowBodies = rowBodiesOf(body);
    if (rowBodies.length > 0) {
      const listeners = [...new Set(rowBodies.map(({ type }) => type))].flatMap((type) => this.#listenersOfType(type));
      if (listeners.length === 0) return [];
      // Two tenants may each have a branch of this name.
      const writtenBranch = this.#branchIdOf(context.branch, context.tenant);
      return listeners.filter(
        ({ branch, tenant, shows }) => this.#branchIdOf(branch, tenant) === writtenBranch && shows(context.path),
      );
    }
    // A removal reaches what was forked from its branch, and which that is, is not known here; an erasure reaches all.
    if (body.kind === 'removal') return this.#listenersOfType(body.type).filter(({ shows }) => shows(context.path));
    if (body.kind !== 'erasure') return [];
    return body.versions.flatMap(({ type, paths }) => this.#listenersOfType(type).filter(({ shows }) => paths.some(shows)));
  }

  #listenersOfType(type: string): readonly WriteListener[] {
    return [...(this.#listenersByType.get(type) ?? [])];
  }

  #markListenersDue(concernedListeners: readonly WriteListener[]): void {
    if (this.#dueListeners.size === 0) this.#deferNotices(() => this.#callDueListeners());
    for (const listener of concernedListeners) {
      if (this.#listenersByType.get(listener.type)?.has(listener)) this.#dueListeners.add(listener);
    }
  }

  #callDueListeners(): void {
    const dueListeners = [...this.#dueListeners];
    this.#dueListeners.clear();
    for (const { call } of dueListeners) call();
  }
}
