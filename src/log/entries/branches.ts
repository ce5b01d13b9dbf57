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
  const lineage: Stretch[] = [{ branch, end: Infinity }];
  for (let at = branch; at.source !== null && at.shares === 'everything'; at = at.source) {
    lineage.unshift({ branch: at.source, end: at.id });
  }
  return lineage;
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
  readonly #liveNames = new TenantNames<Branch>();
  /** Branches with readers: live ones, and deleted ones below them. By id. */
  #branchesById = new Map<number, Branch>([[0, main]]);

  constructor() {
    this.#liveNames.set(mainBranch, null, main);
  }

  /** The branch that a name means to a tenant. */
  get(name: string, tenant: string | null): Branch | undefined {
    return name === mainBranch ? main : this.#liveNames.get(name, tenant);
  }

  /** A branch that is kept. */
  byId(id: number): Branch | undefined {
    return this.#branchesById.get(id);
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
    return [...this.#branchesById.values()];
  }

  /** True when another branch reads rows of this one. */
  isShared(branch: Branch): boolean {
    for (const other of this.#branchesById.values()) if (other.source === branch && other.shares === 'everything') return true;
    return false;
  }

  /** Applies a `branch` entry; returns the branch that it made, or the one that it ended and those without readers since. */
  apply(entry: CommittedEntry, body: BranchBody): Change {
    const { name, change, shares } = body;
    const tenant = scopeOfName(entry, body);
    const liveBranch = this.#liveNames.own(name, tenant);
    if (change === 'forked') {
      const source = this.get(body.source, entry.context.tenant);
      assert(source, 'a branch is forked from one that stands');
      assert(!liveBranch && name !== mainBranch, 'a branch takes a name that is free');
      const forked: Branch = { id: entry.position, name, tenant, source, shares };
      this.#liveNames.set(name, tenant, forked);
      this.#branchesById.set(forked.id, forked);
      return { forked, ended: null, released: [] };
    }
    assert(liveBranch && liveBranch !== main, 'a branch that stands is deleted, and never main');
    this.#liveNames.delete(name, tenant);
    return { forked: null, ended: liveBranch, released: this.#release() };
  }

  savedState(): SavedBranches {
    return {
      branches: [...this.#branchesById.values()].slice(1).map(({ id, name, tenant, source, shares }) => ({
        id,
        name,
        tenant,
        // A branch without readers is not saved: the source of an ontology-only branch may be gone, and nothing reads it.
        source: source && this.#branchesById.has(source.id) ? source.id : 0,
        shares,
        standing: this.#liveNames.own(name, tenant)?.id === id,
      })),
    };
  }

  static fromSaved(saved: SavedBranches): BranchTree {
    const tree = new BranchTree();
    for (const { standing, source: sourceId, tenant = null, ...rest } of saved.branches) {
      const source = tree.#branchesById.get(sourceId);
      assert(source, 'a saved branch follows its source');
      const branch: Branch = { ...rest, tenant, source };
      tree.#branchesById.set(branch.id, branch);
      if (standing) tree.#liveNames.set(branch.name, tenant, branch);
    }
    return tree;
  }

  /** Takes out what no standing branch reads. */
  #release(): readonly Branch[] {
    const read = new Set<Branch>();
    for (const branch of this.#liveNames.values()) for (const range of lineageOf(branch)) read.add(range.branch);
    const released = [...this.#branchesById.values()].filter((branch) => !read.has(branch));
    for (const { id } of released) this.#branchesById.delete(id);
    return released;
  }
}
