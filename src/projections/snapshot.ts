/** All projections at one branch, position and instant. */
import { ServiceError } from '../errors.ts';
import type { Basis } from '../log/log-store.ts';
import type { AccessPaths, CatalogReader } from './access-paths.ts';
import type { Rows } from './rows/projection.ts';

export const mainBranch = 'main';

/**
 * The catalog is that of now: a definition only ever widens, so what a snapshot stored earlier still reads under it, and
 * a column whose entry is not visible yet reads as NULL. Rows are those below the basis.
 */
export function takeSnapshot(catalog: CatalogReader, rows: Rows, basis: Basis, branch: string): AccessPaths {
  if (branch !== mainBranch) throw new ServiceError('REL_NOT_FOUND', `no branch ${JSON.stringify(branch)}`);
  return { branch, position: basis.position, instant: basis.instant, catalog, rows: rows.reader(basis.position) };
}
