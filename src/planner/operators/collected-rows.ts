/**
 * All rows of an input, for operators that need the last one before they can hand out the first. They are collected in
 * pieces and put together once, a share a step: one growing copy would move all that is there whenever it doubles, and all
 * of its columns would do so at the same row.
 */
import type { Vector } from '../../log/values/columns.ts';
import type { ColumnType } from '../../log/values/value.ts';
import { ColumnSink, RowSink } from './column-sink.ts';
import type { Batch, RowPiece } from './operator.ts';

const fullPieceRows = 65_536;
const joinedRowsPerStep = 8_192;

export class CollectedRows {
  readonly #columnTypes: readonly ColumnType[];
  readonly #fullSinks: RowSink[] = [];
  #openSink: RowSink;
  #fullSinkRows = 0;
  #fullSinkBytes = 0;
  #joinedBytes = 0;

  constructor(types: readonly ColumnType[]) {
    this.#columnTypes = types;
    this.#openSink = new RowSink(types);
  }

  get length(): number {
    return this.#fullSinkRows + this.#openSink.length;
  }

  /** Columns that are put together leave their pieces behind: both are held of one column at a time. */
  get bytes(): number {
    return Math.max(this.#fullSinkBytes + this.#openSink.bytes, this.#joinedBytes);
  }

  append(batch: Batch): void {
    this.#openSink.append(batch);
    if (this.#openSink.length < fullPieceRows) return;
    this.#fullSinks.push(this.#openSink);
    this.#fullSinkRows += this.#openSink.length;
    this.#fullSinkBytes += this.#openSink.bytes;
    this.#openSink = new RowSink(this.#columnTypes, null, this.#openSink);
  }

  /** All rows as they were collected, nothing of them moved; nothing is appended after this. */
  pieces(): readonly RowPiece[] {
    return [...this.#fullSinks, this.#openSink].map((sink) => ({ columns: sink.vectors(), count: sink.length }));
  }

  /** Columns of all rows; nothing is appended after this. */
  *vectors(): Generator<undefined, Vector[], void> {
    if (this.#fullSinks.length === 0) return this.#openSink.vectors();
    const collectedRows = this.length;
    const sinkPieces = [...this.#fullSinks, this.#openSink].map((joinedSink) => ({
      vectors: joinedSink.vectors(),
      count: joinedSink.length,
    }));
    this.#fullSinks.length = 0;
    const joinedColumns: Vector[] = [];
    for (const [columnIndex, columnType] of this.#columnTypes.entries()) {
      let heapBytes = 0;
      for (const { vectors, count } of sinkPieces) {
        const pieceVector = vectors[columnIndex]!;
        if (pieceVector.kind === 'text') heapBytes += pieceVector.offsets[count]!;
      }
      const joinedSink = ColumnSink.withRoom(columnType, collectedRows, heapBytes);
      for (const { vectors, count } of sinkPieces) {
        for (let pieceRow = 0; pieceRow < count; pieceRow += joinedRowsPerStep) {
          joinedSink.append(vectors[columnIndex]!, null, pieceRow, Math.min(joinedRowsPerStep, count - pieceRow));
          yield;
        }
        vectors[columnIndex] = { kind: 'null' };
      }
      this.#joinedBytes += joinedSink.bytes;
      joinedColumns.push(joinedSink.vector());
    }
    return joinedColumns;
  }
}
