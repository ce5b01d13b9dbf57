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
  #tree = new BranchTree();
  /** By type, in order of time. */
  #removals = new Map<string, KnownRemoval[]>();

  /** The removals known to a snapshot of the branch with this fork and basis. */
  reader(branch: number, basis: number): RemovalReader {
    return { removedAfter: (type, instant) => this.#removalsAfter(branch, basis, type, instant) };
  }

  apply(entry: CommittedEntry): void {
    const { body, context, position, time } = entry;
    if (body.kind === 'branch') this.#tree.apply(entry, body);
    if (body.kind === 'removal' && body.positions.length > 0) {
      const { id: branch } = this.#tree.branchOf(entry);
      const oldest = body.positions[0]!;
      this.#add(body.type, {
        branch,
        path: context.path,
        position,
        oldest,
        instant: time,
        keys: body.keys,
        sources: body.sources ?? [],
      });
    }
    if (body.kind !== 'erasure') return;
    for (const { type, paths, positions } of body.versions) {
      for (const path of paths)
        this.#add(type, { branch: null, path, position, oldest: positions[0]!, instant: time, keys: [], sources: [] });
    }
    this.#wipe(new Set(body.mentions), new Set(body.keys));
  }

  /** Sealed sources in removals of a tenant's rows, at positions from `from` on. */
  *sources(tenant: string | null, from = 0): Generator<SealedSource> {
    for (const [type, known] of this.#removals) {
      for (const { path, position, sources } of known) {
        if (position < from || tenantOf(path) !== tenant) continue;
        for (const text of sources) yield { type, path, position, text };
      }
    }
  }

  hasSources(tenant: string | null): boolean {
    return this.sources(tenant).next().done !== true;
  }

  /** Positions of the removals, in paths that one `owns`, that list a key which has one of the names in it. */
  mentioning(names: NameTest, owns: (path: string | null) => boolean): readonly number[] {
    const known = [...this.#removals.values()].flat();
    return known.filter(({ path, keys }) => owns(path) && keys.some((key) => names.areIn(key))).map(({ position }) => position);
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    target.section('removals', serialize({ tree: this.#tree.savedState(), removals: [...this.#removals] }));
  }

  async restore(source: CheckpointReader): Promise<void> {
    const bytes = source.section('removals');
    assert(bytes, 'a checkpoint of removed keys has removals');
    const state = deserialize(bytes) as { tree: SavedBranches; removals: [string, KnownRemoval[]][] };
    this.#tree = BranchTree.fromSaved(state.tree);
    this.#removals = new Map(state.removals);
  }

  reset(): void {
    this.#tree = new BranchTree();
    this.#removals = new Map();
  }

  digest(): string {
    const hash = new CanonicalHash();
    hash.value([...this.#removals].sort(([a], [b]) => compareText(a, b)));
    return hash.hex();
  }

  #add(type: string, removal: KnownRemoval): void {
    const known = this.#removals.get(type);
    if (known === undefined) this.#removals.set(type, [removal]);
    else known.push(removal);
  }

  #wipe(mentions: ReadonlySet<number>, destroyed: ReadonlySet<string>): void {
    const isGone = (text: string): boolean => sealedKeyOf(text).some((id) => destroyed.has(id));
    for (const [type, known] of this.#removals) {
      this.#removals.set(
        type,
        known.map((removal) => {
          const { position, keys, sources } = removal;
          const left = sources.some(isGone) ? sources.filter((text) => !isGone(text)) : sources;
          const named = mentions.has(position) ? [] : keys;
          return left === sources && named === keys ? removal : { ...removal, keys: named, sources: left };
        }),
      );
    }
  }

  #removalsAfter(branch: number, basis: number, type: string, instant: bigint): readonly Removal[] {
    const known = this.#removals.get(type);
    const at = this.#tree.byId(branch);
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
