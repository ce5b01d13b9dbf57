/** All projections at one branch, position and instant, as one tenant's names are. */
import type { Basis } from '../log/log-store.ts';
import type { AccessPaths, TenantPaths } from './access-paths.ts';
import { unknownBranch } from './branches/commands.ts';
import type { Branches } from './branches/projection.ts';
import type { Catalog } from './catalog/projection.ts';
import type { Embeddings } from './embeddings/projection.ts';
import type { Judgements } from './entity-resolution/judgements.ts';
import type { RecallCounts } from './recalls/projection.ts';
import type { Erasures } from './erasures/projection.ts';
import type { RemovedKeys } from './removed-keys/projection.ts';
import type { Rows } from './rows/projection.ts';
import type { Rules } from './rules/projection.ts';
import type { Tenants } from './tenants/projection.ts';
import type { Views } from './views/projection.ts';

interface SnapshotSources {
  readonly branches: Branches;
  readonly catalog: Catalog;
  readonly rows: Rows;
  readonly erasures: Erasures;
  readonly removedKeys: RemovedKeys;
  readonly recalls: RecallCounts;
  readonly embeddings: Embeddings;
  readonly judgements: Judgements;
  readonly views: Views;
  readonly rules: Rules;
  readonly tenants: Tenants;
}

/**
 * The catalog is that of now: a definition only ever widens, so earlier rows still read under it, and a column whose entry is not
 * visible yet reads as NULL. Rows are those below the basis. Throws REL_NOT_FOUND for a name that means no branch to the tenant,
 * or one whose fork the basis does not cover.
 */
export function takeSnapshot(
  { branches, catalog, rows, erasures, removedKeys, recalls, embeddings, judgements, views, rules, tenants }: SnapshotSources,
  basis: Basis,
  branch: string,
  tenant: string | null,
): AccessPaths {
  const branchId = branches.idOf(branch, tenant);
  if (branchId === undefined || (branchId > 0 && branchId >= basis.position)) throw unknownBranch(branch);
  const pathsOf = (owner: string | null): TenantPaths => {
    const types = catalog.catalogOn(branchId, owner);
    return {
      tenant: owner,
      catalog: types,
      protection: (type) => catalog.protection(branchId, owner, type),
      protectionEpoch: catalog.protectionEpoch(owner),
      rows: rows.reader({ branch: branchId, tenant: owner, catalog: types }, basis.position),
    };
  };
  const ownPaths = pathsOf(tenant);
  // Written out: one is taken for every question, and to spread `ownPaths` takes as long as all the rest.
  return {
    tenant,
    catalog: ownPaths.catalog,
    protection: ownPaths.protection,
    protectionEpoch: ownPaths.protectionEpoch,
    rows: ownPaths.rows,
    pathsOf,
    branch,
    branchId,
    position: basis.position,
    instant: basis.instant,
    removals: removedKeys.reader(branchId, basis.position),
    recalls: (instant) => recalls.reader(instant < basis.instant ? instant : basis.instant),
    embeddings: (model, instant, columns) => embeddings.reader(model, basis.position, instant, columns),
    erasures: erasures.reader,
    textLanguage: rows.indexes.language,
    searchAt: (instant) => tenants.searchAt(tenant, instant),
    views: views.viewsOn(branchId, basis.position),
    judgements: (instant) => judgements.judgementsOn(branchId, basis.position, instant),
    rules: () => rules.rulesOn(branchId, basis.position),
    isPrivate: false,
  };
}
