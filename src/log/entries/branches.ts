/**
 * Which branches stand and what each of them reads. One log, positions for all: a branch is the position of the entry
 * that forked it, and reads its source's lineage below that position, then its own entries. So a lineage is a row of
 * stretches that follow each other, oldest first:
 *
 *   main [0, F1)  dev [F1, F2)  trial [F2, …)        trial was forked from dev at F2, dev from main at F1
 *
 * A branch has its name within a tenant, or within the whole store, as its fork says; main is everybody's. Names are reused
 * after a deletion: an entry belongs to the newest fork of the branch that its branch's name means to its tenant. Pure.
 */
import { assert } from '../../errors.ts';
import { mainBranch, type BranchBody, type CommittedEntry, scopeOfName } from './entry.ts';
import { TenantNames } from '../values/tenant-names.ts';

export interface Branch {
  /** Position of its fork; 0 for main. Never given twice, as names are. */
  readonly id: number;
  readonly name: string;
  /** The tenant that owns the name; null: the store. */
  readonly tenant: string | null;
  /** Null for main. Keeps what a deleted source was. */
  readonly source: Branch | null;
  readonly shares: BranchBody['shares'];
}

/** Positions `branch.id <= p < end` of this branch's own entries. */
export interface Stretch {
  readonly branch: Branch;
  readonly end: number;
}

const main: Branch = { id: 0, name: mainBranch, tenant: null, source: null, shares: 'everything' };

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
    /** Absent in what an earlier release saved: the store's. */
    readonly tenant?: string | null;
    readonly source: number;
    readonly shares: BranchBody['shares'];
    readonly standing: boolean;
  }[];
}

type Change =
  | { readonly forked: Branch; readonly ended: null; readonly released: readonly [] }
  | { readonly forked: null; readonly ended: Branch; readonly released: readonly Branch[] };

export class BranchTree {
  readonly #standing = new TenantNames<Branch>();
  /** Branches with readers: live ones, and deleted ones below them. By id. */
  #kept = new Map<number, Branch>([[0, main]]);

  constructor() {
    this.#standing.set(mainBranch, null, main);
  }

  /** The branch that a name means to a tenant. */
  get(name: string, tenant: string | null): Branch | undefined {
    return name === mainBranch ? main : this.#standing.get(name, tenant);
  }

  /** A branch that is kept. */
  byId(id: number): Branch | undefined {
    return this.#kept.get(id);
  }

  /** The branch that an entry belongs to. */
  branchOf(entry: CommittedEntry): Branch {
    const { branch: name, tenant } = entry.context;
    const branch = this.get(name, tenant);
    assert(branch, 'an entry belongs to a branch that stands');
    return branch;
  }

  /** Branches whose rows a standing one reads, by rising id. */
  keptBranches(): readonly Branch[] {
    return [...this.#kept.values()];
  }

  /** True when another branch reads rows of this one. */
  isShared(branch: Branch): boolean {
    for (const other of this.#kept.values()) if (other.source === branch && other.shares === 'everything') return true;
    return false;
  }

  /** Applies a `branch` entry; returns the branch that it made, or the one that it ended and those without readers since. */
  apply(entry: CommittedEntry, body: BranchBody): Change {
    const { name, change, shares } = body;
    const tenant = scopeOfName(entry, body);
    const standing = this.#standing.own(name, tenant);
    if (change === 'forked') {
      const source = this.get(body.source, entry.context.tenant);
      assert(source, 'a branch is forked from one that stands');
      assert(!standing && name !== mainBranch, 'a branch takes a name that is free');
      const forked: Branch = { id: entry.position, name, tenant, source, shares };
      this.#standing.set(name, tenant, forked);
      this.#kept.set(forked.id, forked);
      return { forked, ended: null, released: [] };
    }
    assert(standing && standing !== main, 'a branch that stands is deleted, and never main');
    this.#standing.delete(name, tenant);
    return { forked: null, ended: standing, released: this.#release() };
  }

  savedState(): SavedBranches {
    return {
      branches: [...this.#kept.values()].slice(1).map(({ id, name, tenant, source, shares }) => ({
        id,
        name,
        tenant,
        // A branch without readers is not saved: the source of an ontology-only branch may be gone, and nothing reads it.
        source: source && this.#kept.has(source.id) ? source.id : 0,
        shares,
        standing: this.#standing.own(name, tenant)?.id === id,
      })),
    };
  }

  static fromSaved(saved: SavedBranches): BranchTree {
    const tree = new BranchTree();
    for (const { standing, source: sourceId, tenant = null, ...rest } of saved.branches) {
      const source = tree.#kept.get(sourceId);
      assert(source, 'a saved branch follows its source');
      const branch: Branch = { ...rest, tenant, source };
      tree.#kept.set(branch.id, branch);
      if (standing) tree.#standing.set(branch.name, tenant, branch);
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
