/** Blocks as storage hands them to the gate, with indexes of their texts. No file above the gate may name this one. */
import type { RowBlock } from './access-paths.ts';
import type { TextIndex } from './rows/indexes/text/text-index.ts';

export interface StoredBlock extends RowBlock {
  /** Where the scan asked for it. */
  readonly indexes?: StoredIndexes;
}

/** Indexes of the texts of a block: of rows `base` .. `base + rows - 1` of its place, those included that are not visible. */
export interface StoredIndexes {
  readonly base: number;
  readonly rows: number;
  /** Made within the turn where there is none; null where the reader has the column in another form than storage. */
  index(column: string): TextIndex | null;
  /** An index is being made, and the reader did not want to wait for it. */
  readonly isComing?: true;
}
