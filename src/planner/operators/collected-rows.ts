/**
 * All rows of an input, for operators that need the last one before they can hand out the first. They are collected in
 * pieces and put together once, a share a step: one growing copy would move all that is there whenever it doubles, and all
 * of its columns would do so at the same row.
 */
import type { Vector } from '../../log/values/columns.ts';
import type { ColumnType } from '../../log/values/value.ts';
import { ColumnSink, RowSink } from './column-sink.ts';
import type { Batch, RowPiece } from './operator.ts';

const pieceRows = 65_536;
const rowsPerStep = 8_192;

export class CollectedRows {
  readonly #types: readonly ColumnType[];
  readonly #full: RowSink[] = [];
  #sink: RowSink;
  #fullRows = 0;
  #fullBytes = 0;
  #joinedBytes = 0;

  constructor(types: readonly ColumnType[]) {
    this.#types = types;
    this.#sink = new RowSink(types);
  }

  get length(): number {
    return this.#fullRows + this.#sink.length;
  }

  /** Columns that are put together leave their pieces behind: both are held of one column at a time. */
  get bytes(): number {
    return Math.max(this.#fullBytes + this.#sink.bytes, this.#joinedBytes);
  }

  append(batch: Batch): void {
    this.#sink.append(batch);
    if (this.#sink.length < pieceRows) return;
    this.#full.push(this.#sink);
    this.#fullRows += this.#sink.length;
    this.#fullBytes += this.#sink.bytes;
    this.#sink = new RowSink(this.#types, null, this.#sink);
  }

  /** All rows as they were collected, nothing of them moved; nothing is appended after this. */
  pieces(): readonly RowPiece[] {
    return [...this.#full, this.#sink].map((sink) => ({ columns: sink.vectors(), count: sink.length }));
  }

  /** Columns of all rows; nothing is appended after this. */
  *vectors(): Generator<undefined, Vector[], void> {
    if (this.#full.length === 0) return this.#sink.vectors();
    const rows = this.length;
    const pieces = [...this.#full, this.#sink].map((sink) => ({ vectors: sink.vectors(), count: sink.length }));
    this.#full.length = 0;
    const columns: Vector[] = [];
    for (const [c, type] of this.#types.entries()) {
      let heapBytes = 0;
      for (const { vectors, count } of pieces) {
        const vector = vectors[c]!;
        if (vector.kind === 'text') heapBytes += vector.offsets[count]!;
      }
      const sink = ColumnSink.withRoom(type, rows, heapBytes);
      for (const { vectors, count } of pieces) {
        for (let first = 0; first < count; first += rowsPerStep) {
          sink.append(vectors[c]!, null, first, Math.min(rowsPerStep, count - first));
          yield;
        }
        vectors[c] = { kind: 'null' };
      }
      this.#joinedBytes += sink.bytes;
      columns.push(sink.vector());
    }
    return columns;
  }
}
