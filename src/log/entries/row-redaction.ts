/** Drops rows from a body: their leaf hashes stay in their stead, and nothing else of them. */
import { assert } from '../../errors.ts';
import type { RowSecrets } from './rows-codec.ts';
import { saltsOfRows } from './rows-codec.ts';
import type { NamedColumn, RowBatch, Vector } from '../values/columns.ts';
import type { RowsBody } from './entry.ts';
import { RowLeaves, SALT_BYTES } from './row-leaf.ts';
import { HASH_BYTES } from '../bytes/sha256.ts';

export interface Rows {
  readonly body: RowsBody;
  readonly secrets: RowSecrets;
}

/** `redactedRows` ascending; those that were dropped before are passed over. Null when nothing is left to drop. */
export function withoutRows(
  { body: rowsBody, secrets: rowSecrets }: Rows,
  organisationPath: string | null,
  redactedRows: readonly number[],
): Rows | null {
  const rowCount = rowsBody.ops.length;
  const alreadyDropped = rowSecrets.salts === 'explicit' ? rowSecrets.dropped : new Map<number, Uint8Array>();
  const newlyDropped = new Set(redactedRows.filter((redactedRow) => !alreadyDropped.has(redactedRow)));
  if (newlyDropped.size === 0) return null;
  const rowSalts = saltsOfRows(rowSecrets, rowCount);
  const rowLeaves = new RowLeaves(rowsBody, organisationPath, rowSalts);
  const droppedRowHashes = new Map(alreadyDropped);
  for (const row of newlyDropped) droppedRowHashes.set(row, rowLeaves.hashes(row, row + 1));
  const droppedInOrder = new Map([...droppedRowHashes].sort(([a], [b]) => a - b));
  const remainingSalts = new Uint8Array((rowCount - droppedInOrder.size) * SALT_BYTES);
  let saltOffset = 0;
  for (let row = 0; row < rowCount; row++) {
    if (droppedInOrder.has(row)) continue;
    remainingSalts.set(rowSalts.subarray(row * SALT_BYTES, (row + 1) * SALT_BYTES), saltOffset);
    saltOffset += SALT_BYTES;
  }
  for (const droppedHash of droppedInOrder.values()) assert(droppedHash.length === HASH_BYTES, 'a leaf hash has 32 bytes');
  return {
    body: {
      ...rowsBody,
      keys: blankRowCells(rowsBody.keys, newlyDropped),
      cells: blankRowCells(rowsBody.cells, newlyDropped),
      dropped: [...droppedInOrder.keys()],
    },
    secrets: { salts: 'explicit', bytes: remainingSalts, dropped: droppedInOrder },
  };
}

function blankRowCells({ length: batchRows, columns: batchColumns }: RowBatch, droppedRows: ReadonlySet<number>): RowBatch {
  const blankColumn = ({ vector, ...column }: NamedColumn): NamedColumn => ({
    ...column,
    vector: blankVectorCells(vector, batchRows, droppedRows),
  });
  return { length: batchRows, columns: batchColumns.map(blankColumn) };
}

/** NULL in these rows, and no byte of what they held. */
function blankVectorCells(blankedVector: Vector, vectorRows: number, droppedRows: ReadonlySet<number>): Vector {
  if (blankedVector.kind === 'null') return blankedVector;
  assert(blankedVector.kind !== 'dict', 'columns of a body have no dictionary');
  const blankedNulls = new Uint8Array(vectorRows);
  if (blankedVector.nulls) blankedNulls.set(blankedVector.nulls.subarray(0, vectorRows));
  for (const row of droppedRows) blankedNulls[row] = 1;
  if (blankedNulls.every((isNull) => isNull === 1)) return { kind: 'null' };
  switch (blankedVector.kind) {
    case 'text':
      return { kind: 'text', ...blankTextCells(blankedVector, vectorRows, droppedRows), nulls: blankedNulls };
    case 'vec': {
      const blankedValues = blankedVector.values.slice(0, vectorRows * blankedVector.dims);
      for (const row of droppedRows) blankedValues.fill(0, row * blankedVector.dims, (row + 1) * blankedVector.dims);
      return { ...blankedVector, values: blankedValues, nulls: blankedNulls };
    }
    case 'i64': {
      const blankedValues = blankedVector.values.slice(0, vectorRows);
      for (const row of droppedRows) blankedValues[row] = 0n;
      return { ...blankedVector, values: blankedValues, nulls: blankedNulls };
    }
    case 'i32':
    case 'f64':
    case 'bool': {
      const blankedValues = blankedVector.values.slice(0, vectorRows);
      for (const row of droppedRows) blankedValues[row] = 0;
      return { ...blankedVector, values: blankedValues, nulls: blankedNulls } as Vector;
    }
  }
}

function blankTextCells(
  { offsets: textOffsets, heap: textHeap }: { readonly offsets: Uint32Array; readonly heap: Uint8Array },
  textRows: number,
  droppedRows: ReadonlySet<number>,
): { readonly offsets: Uint32Array; readonly heap: Uint8Array } {
  const shorterOffsets = new Uint32Array(textRows + 1);
  const shorterHeap = new Uint8Array(textOffsets[textRows]! - textOffsets[0]!);
  let heapEnd = 0;
  for (let row = 0; row < textRows; row++) {
    if (!droppedRows.has(row)) {
      const textCell = textHeap.subarray(textOffsets[row]!, textOffsets[row + 1]!);
      shorterHeap.set(textCell, heapEnd);
      heapEnd += textCell.length;
    }
    shorterOffsets[row + 1] = heapEnd;
  }
  return { offsets: shorterOffsets, heap: shorterHeap.subarray(0, heapEnd) };
}
