/** The sources of a scan of one type on one branch. */
import type { Timeline } from '../../../log/values/timeline.ts';
import type { TableLayer } from '../tables/lineage-table.ts';
import type { SegmentIndexes } from '../indexes/segment-indexes.ts';
import type { DeclaredTypes } from '../tables/branch-overlay.ts';
import type { OrganisationCodes } from '../cells/path-codes.ts';

export interface ScanSource {
  readonly timeline: Timeline;
  readonly scopes: OrganisationCodes;
  readonly indexes: SegmentIndexes;
  /** Oldest first: on a branch, what it inherited comes before its own. Empty when no row of the type was ever written. */
  readonly layers: readonly TableLayer[];
  /** Positions below this one are visible. */
  readonly basis: number;
  /** Types of columns as a branch declares them; null on main, whose tables know them. */
  readonly types: DeclaredTypes | null;
  /** The type declares no `id`: a row that was sent without one reads as its key there. A declared one is a cell like any other. */
  readonly idIsKey: boolean;
}
