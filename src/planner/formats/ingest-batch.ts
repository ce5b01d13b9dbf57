/** Options of reading a body, and the batches that it yields. */
import type { TypeDefinition } from '../../log/entries/entry.ts';
import type { RowBatch } from '../../log/values/columns.ts';
import type { RowRejection, SentCells } from '../../projections/command.ts';

export interface IngestOptions {
  /** Values are taken as the declared types; null or an open type: undeclared columns are inferred. */
  readonly definition: TypeDefinition | null;
  /**
   * A batch ends at this many rows, refused ones included, … A function is called for each batch: its value may depend on other
   * running work.
   */
  readonly batchRows: number | (() => number);
  /** … or when this many bytes were read for it. */
  readonly batchBytes: number;
  /** More bytes than this in all end the stream with REL_TOO_LARGE. */
  readonly limitBytes?: number;
  /** Largest single row. */
  readonly rowBytesMax?: number;
  /** CSV: names of the columns of a file without a header. */
  readonly columns?: readonly string[];
  /** CSV: an unquoted field with this text is NULL, as an empty one always is. */
  readonly nullText?: string;
  /** Batches tell which cells their rows sent. */
  readonly tracksSent?: boolean;
  /** JSON rows of one shape are read many at a time where this many bytes of them are there; Infinity: never. */
  readonly predictBytesMin?: number;
  /** Others have their turn between rows of one message of Arrow, which is here as a whole. */
  readonly yieldTurn?: () => Promise<void>;
}

export interface IngestBatch {
  /** Accepted rows. */
  readonly rows: RowBatch;
  /** Index in the stream of the first row that this batch read, accepted or not. */
  readonly firstIndex: number;
  /** Index in the stream of each accepted row; null: firstIndex, firstIndex + 1, … */
  readonly indexes: Float64Array | null;
  /** Refused rows, by index in the stream. */
  readonly rejections: readonly RowRejection[];
  /** The cells that rows sent, where the caller asked for it. */
  readonly sent?: SentCells;
  /** Offset in the stream behind what this batch read: the same for the same bytes, however they arrived. */
  readonly endOffset: number;
  /** Columns whose scalars are of different kinds, and are kept as text. */
  readonly mixed: readonly string[];
}
