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
  storedVersions: StoredVersions | undefined,
  pathCode: number,
  firstPosition: NextPosition,
): Written | null {
  const { length, keys, validFrom, validTo } = batch;
  if (length === 1) return putSingleRow(batch, storedVersions, pathCode, firstPosition);
  const keyGroups = new BatchKeys(keys, length, pathCode);
  /** Version of each key within the batch so far: its row. */
  const latestRowOfGroup = new Int32Array(length);
  const closes: number[] = [];
  const closeOffsets = new Uint32Array(length + 1);
  const hasBounds = validFrom.kind !== 'null' || validTo.kind !== 'null';
  for (let blockStart = 0; blockStart < length; blockStart += 1024) {
    const blockEnd = Math.min(length, blockStart + 1024);
    if (storedVersions) storedVersions.touch(keyGroups.hashes.subarray(blockStart, blockEnd), blockEnd - blockStart);
    for (let row = blockStart; row < blockEnd; row++) {
      const knownGroupCount = keyGroups.groups;
      const keyGroup = keyGroups.groupOf(row);
      if (keyGroup < knownGroupCount) closes.push(firstPosition.position + latestRowOfGroup[keyGroup]!);
      else if (storedVersions && pathCode >= 0) {
        storedVersions.openPositions(
          pathCode,
          keys.heap,
          keys.offsets[row]!,
          keys.offsets[row + 1]!,
          keyGroups.hashes[row]!,
          closes,
        );
      }
      if (hasBounds) {
        const rowValidFrom = boundAt(validFrom, row);
        const rowValidTo = boundAt(validTo, row);
        if (rowValidFrom !== null || rowValidTo !== null) {
          if (closes.length > closeOffsets[row]! || (rowValidFrom ?? firstPosition.time + BigInt(row)) >= (rowValidTo ?? FOREVER))
            return null;
        }
      }
      latestRowOfGroup[keyGroup] = row;
      closeOffsets[row + 1] = closes.length;
    }
  }
  return {
    ops: new Uint8Array(length),
    keys: keyColumns(length, keys, validFrom, validTo),
    closeOffsets,
    closes: Float64Array.from(closes),
    cells: { length, columns: columnsWithCells(batch.cells) },
  };
}

/** Shared by bodies of one row that ends nothing: never written to. */
const singlePutOp = new Uint8Array(1);
const singleWithoutCloses = new Uint32Array(2);
const noCloses = new Float64Array(0);

/** Puts one row, without the bookkeeping that distinguishes rows of a batch. */
function putSingleRow(
  batch: CheckedBatch,
  storedVersions: StoredVersions | undefined,
  pathCode: number,
  rowPosition: NextPosition,
): Written | null {
  const { keys, validFrom, validTo } = batch;
  const closedPositions: number[] = [];
  if (storedVersions && pathCode >= 0) {
    const [keyStart, keyEnd] = [keys.offsets[0]!, keys.offsets[1]!];
    storedVersions.openPositions(
      pathCode,
      keys.heap,
      keyStart,
      keyEnd,
      hashBytes(keys.heap, keyStart, keyEnd, pathCode),
      closedPositions,
    );
  }
  const rowValidFrom = boundAt(validFrom, 0);
  const rowValidTo = boundAt(validTo, 0);
  if (rowValidFrom !== null || rowValidTo !== null) {
    if (closedPositions.length > 0 || (rowValidFrom ?? rowPosition.time) >= (rowValidTo ?? FOREVER)) return null;
  }
  return {
    ops: singlePutOp,
    keys: keyColumns(1, keys, validFrom, validTo),
    closeOffsets: closedPositions.length === 0 ? singleWithoutCloses : Uint32Array.of(0, closedPositions.length),
    closes: closedPositions.length === 0 ? noCloses : Float64Array.from(closedPositions),
    cells: { length: 1, columns: columnsWithCells(batch.cells) },
  };
}

function columnsWithCells(sentColumns: readonly NamedColumn[]): readonly NamedColumn[] {
  for (const { vector } of sentColumns)
    if (vector.kind === 'null') return sentColumns.filter((column) => column.vector.kind !== 'null');
  return sentColumns;
}
