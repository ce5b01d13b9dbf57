/**
 * Keys removed for good, with the time and the organisation path: a hard delete leaves no version, but subscribers of the type
 * must learn of it. Like the delete itself, the record covers the branch that it was made on and branches forked from it. It
 * grows with the keys removed; their rows are gone.
 *
 * For keys of a subject's rows, and for erased rows, it records the fact of the removal, never the keys. The chain from a removed
 * row to rows made from it stays here as in the log: sealed.
 */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import { BranchTree, lineageOf, type SavedBranches } from '../../log/entries/branches.ts';
import type { CommittedEntry } from '../../log/entries/entry.ts';
import { sealedKeyOf } from '../../log/keys/sealed-text.ts';
import { compareText, tenantOf } from '../../log/values/value.ts';
import type { Removal, RemovalReader } from '../access-paths.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import type { NameTest } from '../subject-names.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';

interface KnownRemoval extends Omit<Removal, 'inherited'> {
  /** Fork of the branch that it was asked on; 0 for main; null for an erasure, which reaches all of them. */
  readonly branch: number | null;
  readonly position: number;
  /** Position of the oldest version that it removed. */
  readonly oldest: number;
  /** As in `RemovalBody`. */
  readonly sources: readonly string[];
}

/** A removal's sealed record of one row, for an erasure. */
export interface SealedSource {
  readonly type: string;
  readonly path: string | null;
  /** Where its removal stands. */
  readonly position: number;
  readonly text: string;
}

export class RemovedKeys implements Projection {
  readonly name = 'removed-keys';
  readonly formatVersion = 2;
  #branchTree = new BranchTree();
  /** By type, in order of time. */
  #removalsByType = new Map<string, KnownRemoval[]>();

  /** The removals known to a snapshot of the branch with this fork and basis. */
  reader(branch: number, basis: number): RemovalReader {
    return { removedAfter: (type, instant) => this.#removalsAfter(branch, basis, type, instant) };
  }

  apply(removalEntry: CommittedEntry): void {
    const { body, context, position, time } = removalEntry;
    if (body.kind === 'branch') this.#branchTree.apply(removalEntry, body);
    if (body.kind === 'removal' && body.positions.length > 0) {
      const { id: branch } = this.#branchTree.branchOf(removalEntry);
      const oldestRemoved = body.positions[0]!;
      this.#addRemoval(body.type, {
        branch,
        path: context.path,
        position,
        oldest: oldestRemoved,
        instant: time,
        keys: body.keys,
        sources: body.sources ?? [],
      });
    }
    if (body.kind !== 'erasure') return;
    for (const { type, paths, positions } of body.versions) {
      for (const path of paths)
        this.#addRemoval(type, { branch: null, path, position, oldest: positions[0]!, instant: time, keys: [], sources: [] });
    }
    this.#wipeRemovals(new Set(body.mentions), new Set(body.keys));
  }

  /** Sealed sources in removals of a tenant's rows, at positions from `from` on. */
  *sources(tenant: string | null, from = 0): Generator<SealedSource> {
    for (const [type, known] of this.#removalsByType) {
      for (const { path, position, sources } of known) {
        if (position < from || tenantOf(path) !== tenant) continue;
        for (const text of sources) yield { type, path, position, text };
      }
    }
  }

  hasSources(tenant: string | null): boolean {
    return this.sources(tenant).next().done !== true;
  }

  /** Positions of the removals, in paths that one `ownsPath`, that list a key which has one of the names in it. */
  mentioning(subjectNames: NameTest, ownsPath: (path: string | null) => boolean): readonly number[] {
    const knownRemovals = [...this.#removalsByType.values()].flat();
    return knownRemovals
      .filter(({ path, keys }) => ownsPath(path) && keys.some((removedKey) => subjectNames.areIn(removedKey)))
      .map(({ position }) => position);
  }

  async checkpoint(removedKeyCheckpoint: CheckpointWriter): Promise<void> {
    removedKeyCheckpoint.section(
      'removals',
      serialize({ tree: this.#branchTree.savedState(), removals: [...this.#removalsByType] }),
    );
  }

  async restore(removedKeyCheckpoint: CheckpointReader): Promise<void> {
    const removedKeyBytes = removedKeyCheckpoint.section('removals');
    assert(removedKeyBytes, 'a checkpoint of removed keys has removals');
    const savedRemovals = deserialize(removedKeyBytes) as { tree: SavedBranches; removals: [string, KnownRemoval[]][] };
    this.#branchTree = BranchTree.fromSaved(savedRemovals.tree);
    this.#removalsByType = new Map(savedRemovals.removals);
  }

  reset(): void {
    this.#branchTree = new BranchTree();
    this.#removalsByType = new Map();
  }

  digest(): string {
    const removedKeysHash = new CanonicalHash();
    removedKeysHash.value([...this.#removalsByType].sort(([a], [b]) => compareText(a, b)));
    return removedKeysHash.hex();
  }

  #addRemoval(type: string, removal: KnownRemoval): void {
    const removalsOfType = this.#removalsByType.get(type);
    if (removalsOfType === undefined) this.#removalsByType.set(type, [removal]);
    else removalsOfType.push(removal);
  }

  #wipeRemovals(mentions: ReadonlySet<number>, destroyedKeys: ReadonlySet<string>): void {
    const isSealDestroyed = (text: string): boolean => sealedKeyOf(text).some((id) => destroyedKeys.has(id));
    for (const [type, removalsOfType] of this.#removalsByType) {
      this.#removalsByType.set(
        type,
        removalsOfType.map((removal) => {
          const { position, keys, sources } = removal;
          const remainingSources = sources.some(isSealDestroyed) ? sources.filter((text) => !isSealDestroyed(text)) : sources;
          const remainingKeys = mentions.has(position) ? [] : keys;
          return remainingSources === sources && remainingKeys === keys
            ? removal
            : { ...removal, keys: remainingKeys, sources: remainingSources };
        }),
      );
    }
  }

  #removalsAfter(branch: number, basis: number, type: string, instant: bigint): readonly Removal[] {
    const known = this.#removalsByType.get(type);
    const at = this.#branchTree.byId(branch);
    if (known === undefined || at === undefined) return [];
    let first = known.length;
    while (first > 0 && known[first - 1]!.instant > instant) first--;
    if (first === known.length) return [];
    const ends = new Map(lineageOf(at).map((range) => [range.branch.id, range.end]));
    return known
      .slice(first)
      .filter(({ position, oldest, branch: id }) => position < basis && (id === null || oldest < (ends.get(id) ?? -1)))
      .map(({ instant: removedAt, path, keys, branch: id }) => ({
        instant: removedAt,
        path,
        keys,
        inherited: id !== null && id !== at.id,
        ...(keys.length === 0 && { unnamed: true as const }),
      }));
  }
}
