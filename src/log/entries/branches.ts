/**
 * Which branches stand and what each of them reads. One log, positions for all: a branch is the position of the entry
 * that forked it, and reads its source's lineage below that position, then its own entries. So a lineage is a row of
 * ranges that follow each other, oldest first:
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
export interface LineageRange {
  readonly branch: Branch;
  readonly end: number;
}

const mainBranchRoot: Branch = { id: 0, name: mainBranch, tenant: null, source: null, shares: 'everything' };

/** Rows of a branch are those of these ranges, oldest first; the last one is the branch's own and has no end. */
export function lineageOf(lineageBranch: Branch): readonly LineageRange[] {
  const lineage: LineageRange[] = [{ branch: lineageBranch, end: Infinity }];
  for (
    let descendant = lineageBranch;
    descendant.source !== null && descendant.shares === 'everything';
    descendant = descendant.source
  ) {
    lineage.unshift({ branch: descendant.source, end: descendant.id });
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

type BranchChange =
  | { readonly forked: Branch; readonly ended: null; readonly released: readonly [] }
  | { readonly forked: null; readonly ended: Branch; readonly released: readonly Branch[] };

export class BranchTree {
  readonly #liveNames = new TenantNames<Branch>();
  /** Branches with readers: live ones, and deleted ones below them. By id. */
  #branchesById = new Map<number, Branch>([[0, mainBranchRoot]]);

  constructor() {
    this.#liveNames.set(mainBranch, null, mainBranchRoot);
  }

  /** The branch that a name means to a tenant. */
  get(branchName: string, tenant: string | null): Branch | undefined {
    return branchName === mainBranch ? mainBranchRoot : this.#liveNames.get(branchName, tenant);
  }

  /** A branch that is kept. */
  byId(branchId: number): Branch | undefined {
    return this.#branchesById.get(branchId);
  }

  /** The branch that an entry belongs to. */
  branchOf(branchedEntry: CommittedEntry): Branch {
    const { branch: branchName, tenant } = branchedEntry.context;
    const entryBranch = this.get(branchName, tenant);
    assert(entryBranch, 'an entry belongs to a branch that stands');
    return entryBranch;
  }

  /** Branches whose rows a standing one reads, by rising id. */
  keptBranches(): readonly Branch[] {
    return [...this.#branchesById.values()];
  }

  /** True when another branch reads rows of this one. */
  isShared(sharedBranch: Branch): boolean {
    for (const otherBranch of this.#branchesById.values())
      if (otherBranch.source === sharedBranch && otherBranch.shares === 'everything') return true;
    return false;
  }

  /** Applies a `branch` entry; returns the branch that it made, or the one that it ended and those without readers since. */
  apply(branchEntry: CommittedEntry, branchBody: BranchBody): BranchChange {
    const { name: branchName, change, shares } = branchBody;
    const branchTenant = scopeOfName(branchEntry, branchBody);
    const liveBranch = this.#liveNames.own(branchName, branchTenant);
    if (change === 'forked') {
      const sourceBranch = this.get(branchBody.source, branchEntry.context.tenant);
      assert(sourceBranch, 'a branch is forked from one that stands');
      assert(!liveBranch && branchName !== mainBranch, 'a branch takes a name that is free');
      const forkedBranch: Branch = {
        id: branchEntry.position,
        name: branchName,
        tenant: branchTenant,
        source: sourceBranch,
        shares,
      };
      this.#liveNames.set(branchName, branchTenant, forkedBranch);
      this.#branchesById.set(forkedBranch.id, forkedBranch);
      return { forked: forkedBranch, ended: null, released: [] };
    }
    assert(liveBranch && liveBranch !== mainBranchRoot, 'a branch that stands is deleted, and never main');
    this.#liveNames.delete(branchName, branchTenant);
    return { forked: null, ended: liveBranch, released: this.#releaseUnread() };
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

  static fromSaved(savedBranches: SavedBranches): BranchTree {
    const branchTree = new BranchTree();
    for (const { standing, source: sourceId, tenant = null, ...savedFields } of savedBranches.branches) {
      const sourceBranch = branchTree.#branchesById.get(sourceId);
      assert(sourceBranch, 'a saved branch follows its source');
      const restoredBranch: Branch = { ...savedFields, tenant, source: sourceBranch };
      branchTree.#branchesById.set(restoredBranch.id, restoredBranch);
      if (standing) branchTree.#liveNames.set(restoredBranch.name, tenant, restoredBranch);
    }
    return branchTree;
  }

  /** Takes out what no standing branch reads. */
  #releaseUnread(): readonly Branch[] {
    const readBranches = new Set<Branch>();
    for (const openBranch of this.#liveNames.values()) for (const range of lineageOf(openBranch)) readBranches.add(range.branch);
    const releasedBranches = [...this.#branchesById.values()].filter((branch) => !readBranches.has(branch));
    for (const { id: releasedId } of releasedBranches) this.#branchesById.delete(releasedId);
    return releasedBranches;
  }
}
