/** Rows of all branches as they are now. Ungoverned: whoever reads them here shows them to nobody. */
import { mainBranch } from '../../log/entry.ts';
import type { CatalogReader } from '../../projections/access-paths.ts';
import type { Branches } from '../../projections/branches/projection.ts';
import type { BranchRows } from '../../projections/rows/branch-rows.ts';

export interface BranchesRead {
  readonly branches: Pick<Branches, 'list'>;
  readonly catalog: { on(branch: number): CatalogReader };
  readonly rows: { on(branch: number, catalog: CatalogReader): BranchRows };
}

/** A branch that stands, as all of it is now. */
export interface BranchNow {
  /** Nanosecond of its fork: what it wrote itself came after it. Of main 0. */
  readonly since: bigint;
  readonly types: CatalogReader;
  readonly rows: BranchRows;
}

/** Main first. */
export function branchesNow({ branches, catalog, rows }: BranchesRead): BranchNow[] {
  const forks = [{ name: mainBranch, fork: 0, instant: 0n }, ...branches.list()];
  return forks.map(({ fork, instant }) => {
    const types = catalog.on(fork);
    return { since: instant, types, rows: rows.on(fork, types) };
  });
}
