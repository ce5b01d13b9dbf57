/** The saved state of a table in a checkpoint. */
import type { Provenance } from '../../../log/entries/entry.ts';
import type { SegmentChanges, SegmentState } from '../segments/segment-state.ts';
import type { SegmentFile } from '../store/segment-file.ts';
import type { SavedColumns } from './table-columns.ts';

/** A table at rest, without its segments. */
export interface TableState {
  readonly tenant: string | null;
  readonly type: string;
  readonly segments: number;
  readonly columns: SavedColumns;
  readonly provenances: readonly Provenance[];
}

/** A table whose segments rest on no file. */
export interface WholeTable {
  readonly table: TableState;
  readonly segments: readonly SegmentState[];
}

/** A sealed segment, on a file of its own. */
export interface RestingSegment {
  readonly file: SegmentFile;
  readonly changes: SegmentChanges;
}
