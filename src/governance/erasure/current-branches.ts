/** Rows of a tenant on all branches as they are now. Ungoverned: callers here must not show them. */
import { mainBranch } from '../../log/entries/entry.ts';
import type { CatalogReader } from '../../projections/access-paths.ts';
import type { Branches } from '../../projections/branches/projection.ts';
import type { TenantRows } from '../../projections/rows/tables/tenant-rows.ts';
import { type RowsScope, rowsOf } from '../../projections/rows/projection.ts';

export interface BranchesRead {
  readonly branches: Pick<Branches, 'list'>;
  readonly catalog: { catalogOn(branch: number, tenant: string | null): CatalogReader };
  readonly rows: { tenantRows(of: RowsScope): TenantRows };
}

/** A branch that stands, as all of it is now. */
export interface CurrentBranch {
  /** Nanosecond of its fork: its own writes came after it. Of main 0. */
  readonly since: bigint;
  readonly types: CatalogReader;
  readonly rows: TenantRows;
}

/** Main first. */
export function currentBranches({ branches, catalog, rows }: BranchesRead, tenant: string | null): CurrentBranch[] {
  const branchForks = [{ name: mainBranch, fork: 0, instant: 0n }, ...branches.list()];
  return branchForks.map(({ fork, instant }) => {
    const rowsScope = rowsOf(catalog, fork, tenant);
    return { since: instant, types: rowsScope.catalog, rows: rows.tenantRows(rowsScope) };
  });
}
