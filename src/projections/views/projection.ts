/**
 * Materialized views by name: what each stands for. A view belongs to the organisation path of whoever made it, so that a
 * name and the literals of a query are nobody else's to find. A branch starts with its source's views. What is cached of
 * a view's answer is no state: it lives with those who ask. A view that names an erased subject is gone with it, on every branch.
 */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import { BranchTree, type SavedBranches } from '../../log/branches.ts';
import type { CommittedEntry } from '../../log/entry.ts';
import { compareText } from '../../log/value.ts';
import type { ViewRecord } from '../access-paths.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import type { NameTest } from '../names.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';

type Named = Map<string, ViewRecord>;

export class Views implements Projection {
  readonly name = 'views';
  readonly formatVersion = 1;
  #tree = new BranchTree();
  /** By fork of the branch, main's is 0; then by owner and name. */
  #branches = new Map<number, Named>([[0, new Map()]]);

  /** Of the branch with this fork, in the order in which they were made. */
  on(branch: number): readonly ViewRecord[] {
    return [...(this.#branches.get(branch)?.values() ?? [])];
  }

  apply(entry: CommittedEntry): void {
    const { body, context } = entry;
    if (body.kind === 'view') {
      const { name, sql, refreshSecs } = body;
      const view = { name, sql, refreshSecs, owner: context.path, position: entry.position };
      this.#branches.get(this.#tree.of(entry).id)!.set(keyOf(context.path, name), view);
    } else if (body.kind === 'erasure') {
      const mentions = new Set(body.mentions);
      for (const named of this.#branches.values()) {
        for (const [key, { position }] of named) if (mentions.has(position)) named.delete(key);
      }
    } else if (body.kind === 'branch') {
      const { forked, ended } = this.#tree.apply(entry, body);
      if (forked) this.#branches.set(forked.id, new Map(this.#branches.get(forked.source!.id)));
      else this.#branches.delete(ended.id);
    }
  }

  /** Positions of the views, on any branch and of paths that one `owns`, whose name or query has one of the names in it. */
  mentioning(names: NameTest, owns: (path: string | null) => boolean): readonly number[] {
    const views = [...this.#branches.values()].flatMap((named) => [...named.values()]);
    const found = views
      .filter(({ name, sql, owner }) => owns(owner) && (names.areIn(name) || names.areIn(sql)))
      .map(({ position }) => position);
    return [...new Set(found)];
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    target.section('views', serialize({ tree: this.#tree.saved(), branches: [...this.#branches] }));
  }

  async restore(source: CheckpointReader): Promise<void> {
    const bytes = source.section('views');
    assert(bytes, 'a checkpoint of views has them');
    const state = deserialize(bytes) as { tree: SavedBranches; branches: [number, Named][] };
    this.#tree = BranchTree.restored(state.tree);
    this.#branches = new Map(state.branches);
  }

  reset(): void {
    this.#tree = new BranchTree();
    this.#branches = new Map([[0, new Map()]]);
  }

  digest(): string {
    const hash = new CanonicalHash();
    for (const [branch, named] of [...this.#branches].sort(([a], [b]) => a - b)) {
      hash.number(branch);
      hash.value([...named].sort(([a], [b]) => compareText(a, b)));
    }
    return hash.hex();
  }
}

export const keyOf = (owner: string | null, name: string): string => `${owner ?? ''}\u0000${name}`;
