/** Which holds stand in the way of removing versions: a hold is about a row, whatever version it was asked for at. Pure. */
import type { NextPosition } from '../../log/log-store.ts';
import { tenantOf } from '../../log/values/value.ts';
import type { CatalogReader, HoldReader } from '../access-paths.ts';
import type { RowCheck } from '../decision.ts';
import { refusedKeys } from '../rows/checks/row-check.ts';
import { type Rows, type RowsScope, rowsOf } from '../rows/projection.ts';
import type { RetentionRule, Retention } from './projection.ts';

export interface HeldState {
  readonly retention: Retention;
  readonly rows: Rows;
  readonly catalog: { catalogOn(fork: number, tenant: string | null): CatalogReader };
}

/** Where the row of a schedule or hold lies, and its versions on the branch where that was asked for, newest first. */
export interface HeldRowAddress {
  readonly path: string | null;
  readonly key: string;
  readonly positions: readonly number[];
}

/** Undefined when the version that it was asked for at is gone. */
export function rowOf(hold: RetentionRule, state: HeldState): HeldRowAddress | undefined {
  const { type, position } = hold;
  const branchRows = state.rows.tenantRows(rowsOfKept(hold, state));
  const keptVersions = branchRows.versions(type);
  const keptVersion = keptVersions?.versionAt(position) ?? -1;
  if (!keptVersions || keptVersion < 0) return undefined;
  const [path, key] = [keptVersions.pathOf(keptVersion), keptVersions.keyOf(keptVersion)];
  const positions = keptVersions
    .allVersions(keptVersions.newestOf(path, key))
    .map((versionOfKey) => keptVersions.positionOf(versionOfKey));
  return { path: branchRows.scopes.path(path), key, positions };
}

/** A hold, and the row that it is on. */
export interface HeldRow {
  readonly id: string;
  readonly path: string | null;
  readonly key: string;
}

/** Holds of a branch on rows of the type, without those on rows that `heldRowTest` refuses; `versions`: of which versions. */
export function heldRows(
  type: string,
  fork: number,
  state: HeldState,
  refused: { readonly check: RowCheck | undefined; readonly versions: 'open' | 'all'; readonly at: NextPosition },
): readonly HeldRow[] {
  const foundHolds: HeldRow[] = [];
  for (const hold of state.retention.holds(type)) {
    const keptRow = hold.fork === fork ? rowOf(hold, state) : undefined;
    if (keptRow === undefined) continue;
    const { path, key } = keptRow;
    const keptScope = rowsOfKept(hold, state);
    const heldRowTest = refused.check?.testFor(keptScope.catalog.type(type)!) ?? null;
    const writeContext = { path, rows: state.rows.tenantRows(keptScope), at: refused.at };
    if (heldRowTest === null || refusedKeys(heldRowTest, type, [key], writeContext, refused.versions).size === 0)
      foundHolds.push({ id: hold.id, path, key });
  }
  return foundHolds;
}

/** Where the row of a schedule or hold is: its tenant's, on the branch where that was asked for. */
export function rowsOfKept({ fork, path }: RetentionRule, { catalog }: HeldState): RowsScope {
  return rowsOf(catalog, fork, tenantOf(path));
}

/** The ids of these holds as text, up to a maximum. */
export function heldBy(holdIds: readonly string[]): string {
  const listedIds = holdIds.slice(0, idsListed).join(', ');
  return holdIds.length > idsListed ? `${listedIds} and ${holdIds.length - idsListed} more` : listedIds;
}

const idsListed = 100;

export function holds(state: HeldState): HoldReader {
  return {
    holdsOn: (type, positions) => {
      const held = state.retention.holds(type);
      if (held.length === 0) return [];
      const removed = new Set(positions);
      const stands = (hold: RetentionRule): boolean =>
        rowOf(hold, state)?.positions.some((position) => removed.has(position)) === true;
      return held.filter(stands).map(({ id }) => id);
    },
  };
}
