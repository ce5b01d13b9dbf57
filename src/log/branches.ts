/**
 * Which branches stand and what each of them reads. One log, positions for all: a branch is the position of the entry
 * that forked it, and reads its source's lineage below that position, then its own entries. So a lineage is a row of
 * stretches that follow each other, oldest first:
 *
 *   main [0, F1)  dev [F1, F2)  trial [F2, …)        trial was forked from dev at F2, dev from main at F1
 *
 * Names are reused after a deletion: an entry belongs to the newest fork of its branch's name. Pure.
 */
import { assert } from '../errors.ts';
import { mainBranch, type BranchBody, type CommittedEntry } from './entry.ts';

export interface Branch {
  /** Position of its fork; 0 for main. Never given twice, as names are. */
  readonly id: number;
  readonly name: string;
  /** Null for main. Keeps what a deleted source was. */
  readonly source: Branch | null;
  readonly shares: BranchBody['shares'];
}

/** Positions `branch.id <= p < end` of this branch's own entries. */
export interface Stretch {
  readonly branch: Branch;
  readonly end: number;
}

const main: Branch = { id: 0, name: mainBranch, source: null, shares: 'everything' };

/** Rows of a branch are those of these stretches, oldest first; the last one is the branch's own and has no end. */
export function lineageOf(branch: Branch): readonly Stretch[] {
  const stretches: Stretch[] = [{ branch, end: Infinity }];
  for (let at = branch; at.source !== null && at.shares === 'everything'; at = at.source) {
    stretches.unshift({ branch: at.source, end: at.id });
  }
  return stretches;
}

/** A tree at rest: branches by rising id, so that a source stands before what was forked from it. */
export interface SavedBranches {
  readonly branches: readonly {
    readonly id: number;
    readonly name: string;
    readonly source: number;
    readonly shares: BranchBody['shares'];
    readonly standing: boolean;
  }[];
}

export class BranchTree {
  #standing = new Map<string, Branch>([[mainBranch, main]]);
  /** Branches whose rows somebody reads: those that stand, and deleted ones below them. By id. */
  #kept = new Map<number, Branch>([[0, main]]);

  get(name: string): Branch | undefined {
    return this.#standing.get(name);
  }

  /** The branch that an entry belongs to. */
  of(entry: CommittedEntry): Branch {
    const branch = this.#standing.get(entry.context.branch);
    assert(branch, 'an entry belongs to a branch that stands');
    return branch;
  }

  /** Branches whose rows a standing one reads, by rising id. */
  kept(): readonly Branch[] {
    return [...this.#kept.values()];
  }

  /** True when another branch reads rows of this one. */
  isShared(branch: Branch): boolean {
    for (const other of this.#kept.values()) if (other.source === branch && other.shares === 'everything') return true;
    return false;
  }

  /** What a `branch` entry did: the branch that it made, or those that nobody reads any more. */
  apply(entry: CommittedEntry, body: BranchBody): { readonly forked: Branch | null; readonly released: readonly Branch[] } {
    const { name, change, shares } = body;
    if (change === 'forked') {
      const source = this.#standing.get(body.source);
      assert(source, 'a branch is forked from one that stands');
      assert(!this.#standing.has(name), 'a branch takes a name that is free');
      const forked: Branch = { id: entry.position, name, source, shares };
      this.#standing.set(name, forked);
      this.#kept.set(forked.id, forked);
      return { forked, released: [] };
    }
    assert(this.#standing.has(name) && name !== mainBranch, 'a branch that stands is deleted, and never main');
    this.#standing.delete(name);
    return { forked: null, released: this.#release() };
  }

  saved(): SavedBranches {
    return {
      branches: [...this.#kept.values()].slice(1).map(({ id, name, source, shares }) => ({
        id,
        name,
        // What nobody reads is not saved: a source of an ontology-only branch may be gone, and is of no consequence.
        source: source && this.#kept.has(source.id) ? source.id : 0,
        shares,
        standing: this.#standing.get(name)?.id === id,
      })),
    };
  }

  static restored(saved: SavedBranches): BranchTree {
    const tree = new BranchTree();
    for (const { standing, source: sourceId, ...rest } of saved.branches) {
      const source = tree.#kept.get(sourceId);
      assert(source, 'a saved branch follows its source');
      const branch: Branch = { ...rest, source };
      tree.#kept.set(branch.id, branch);
      if (standing) tree.#standing.set(branch.name, branch);
    }
    return tree;
  }

  /** Takes out what no standing branch reads. */
  #release(): readonly Branch[] {
    const read = new Set<Branch>();
    for (const branch of this.#standing.values()) for (const stretch of lineageOf(branch)) read.add(stretch.branch);
    const released = [...this.#kept.values()].filter((branch) => !read.has(branch));
    for (const { id } of released) this.#kept.delete(id);
    return released;
  }
}
