/** Puts whose rows are all taken as they came: columns pass through, and only closings are worked out. Pure. */
import type { NamedColumn } from '../../../log/values/columns.ts';
import type { NextPosition } from '../../../log/log-store.ts';
import { FOREVER } from '../../../log/values/timestamp.ts';
import type { CheckedBatch } from '../checks/batch-contract.ts';
import { BatchKeys } from '../keys/batch-keys.ts';
import { hashBytes } from '../cells/byte-hash.ts';
import type { StoredVersions } from '../cells/stored-versions.ts';
import { boundAt, keyColumns, type Written } from '../checks/version-columns.ts';

/** Null when some row is not that simple: bounds that hold nothing, or bounds of a key that has open versions already. */
export function putColumns(
  batch: CheckedBatch,
  table: StoredVersions | undefined,
  path: number,
  at: NextPosition,
): Written | null {
  const { length, keys, validFrom, validTo } = batch;
  if (length === 1) return putOne(batch, table, path, at);
  const groups = new BatchKeys(keys, length, path);
  /** Version of each key within the batch so far: its row. */
  const latest = new Int32Array(length);
  const closes: number[] = [];
  const closeOffsets = new Uint32Array(length + 1);
  const bounded = validFrom.kind !== 'null' || validTo.kind !== 'null';
  for (let block = 0; block < length; block += 1024) {
    const end = Math.min(length, block + 1024);
    if (table) table.touch(groups.hashes.subarray(block, end), end - block);
    for (let row = block; row < end; row++) {
      const known = groups.groups;
      const group = groups.groupOf(row);
      if (group < known) closes.push(at.position + latest[group]!);
      else if (table && path >= 0) {
        table.openPositions(path, keys.heap, keys.offsets[row]!, keys.offsets[row + 1]!, groups.hashes[row]!, closes);
      }
      if (bounded) {
        const from = boundAt(validFrom, row);
        const to = boundAt(validTo, row);
        if (from !== null || to !== null) {
          if (closes.length > closeOffsets[row]! || (from ?? at.time + BigInt(row)) >= (to ?? FOREVER)) return null;
        }
      }
      latest[group] = row;
      closeOffsets[row + 1] = closes.length;
    }
  }
  return {
    ops: new Uint8Array(length),
    keys: keyColumns(length, keys, validFrom, validTo),
    closeOffsets,
    closes: Float64Array.from(closes),
    cells: { length, columns: withCells(batch.cells) },
  };
}

/** Shared by bodies of one row that ends nothing: never written to. */
const oneOp = new Uint8Array(1);
const oneWithoutCloses = new Uint32Array(2);
const noCloses = new Float64Array(0);

/** Puts one row, without the bookkeeping that distinguishes rows of a batch. */
function putOne(batch: CheckedBatch, table: StoredVersions | undefined, path: number, at: NextPosition): Written | null {
  const { keys, validFrom, validTo } = batch;
  const closes: number[] = [];
  if (table && path >= 0) {
    const [start, end] = [keys.offsets[0]!, keys.offsets[1]!];
    table.openPositions(path, keys.heap, start, end, hashBytes(keys.heap, start, end, path), closes);
  }
  const from = boundAt(validFrom, 0);
  const to = boundAt(validTo, 0);
  if (from !== null || to !== null) {
    if (closes.length > 0 || (from ?? at.time) >= (to ?? FOREVER)) return null;
  }
  return {
    ops: oneOp,
    keys: keyColumns(1, keys, validFrom, validTo),
    closeOffsets: closes.length === 0 ? oneWithoutCloses : Uint32Array.of(0, closes.length),
    closes: closes.length === 0 ? noCloses : Float64Array.from(closes),
    cells: { length: 1, columns: withCells(batch.cells) },
  };
}

function withCells(columns: readonly NamedColumn[]): readonly NamedColumn[] {
  for (const { vector } of columns) if (vector.kind === 'null') return columns.filter((column) => column.vector.kind !== 'null');
  return columns;
}
