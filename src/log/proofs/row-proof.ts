/** One row out of an entry, proven against the rows root in the entry's leaf: its neighbours appear as hashes of salted bytes. */
import { assert } from '../../errors.ts';
import { type DecodedRows, saltsOfRows } from '../entries/rows-codec.ts';
import { malformedError } from '../bytes/byte-stream.ts';
import type { Vector } from '../values/columns.ts';
import type { RowsBody } from '../entries/entry.ts';
import type { LeafFields } from '../entries/entry-codec.ts';
import { Frontier } from '../tree/merkle-tree.ts';
import { RowLeaves } from '../entries/row-leaf.ts';
import { equalBytes, HASH_BYTES } from '../bytes/sha256.ts';
import { TreeStore } from '../tree/tree-store.ts';

/** `SHA-256(0x00 | salt | row)` is `rowHash`, and the path of RFC 9162 leads from it to `rowsRoot`. */
export interface RowProof {
  readonly pk: string;
  /** 0-based, among the rows of the entry. */
  readonly index: number;
  readonly rowHash: Uint8Array;
  readonly rowsRoot: Uint8Array;
  readonly path: readonly Uint8Array[];
  readonly salt: Uint8Array;
  /** Canonical bytes, drawn in `row-leaf.ts`. */
  readonly row: Uint8Array;
}

/** Rows hashed between two turns of the event loop: a millisecond or two. */
const PROOF_SLICE_ROWS = 512;

/** `decodedBodies`: of the entry's rows. Null for a row of which only the hash is left. */
export async function proveRow(
  entryLeaf: LeafFields,
  decodedBodies: readonly DecodedRows[],
  rowIndex: number,
): Promise<RowProof | null> {
  const rowTreeNodes = new TreeStore();
  const rowTree = new Frontier(0, [], rowTreeNodes);
  let provenRow: Pick<RowProof, 'pk' | 'salt' | 'row'> | null = null;
  let rowsBefore = 0;
  let rowsSinceYield = 0;
  for (const { body: rowsBody, secrets: rowSecrets } of decodedBodies) {
    const bodyRowCount = rowsBody.ops.length;
    const rowInBody = rowIndex - rowsBefore;
    const droppedRowHashes = rowSecrets.salts === 'explicit' ? rowSecrets.dropped : undefined;
    if (droppedRowHashes?.has(rowInBody)) return null;
    const rowLeaves = new RowLeaves(rowsBody, entryLeaf.context.path, saltsOfRows(rowSecrets, bodyRowCount));
    for (let sliceStart = 0; sliceStart < bodyRowCount; ) {
      const sliceEnd = Math.min(bodyRowCount, sliceStart + PROOF_SLICE_ROWS - rowsSinceYield);
      const rowHashes = rowLeaves.hashes(sliceStart, sliceEnd);
      for (let hashOffset = 0; hashOffset < rowHashes.length; hashOffset += HASH_BYTES) {
        rowTree.append(
          droppedRowHashes?.get(sliceStart + hashOffset / HASH_BYTES) ?? rowHashes.slice(hashOffset, hashOffset + HASH_BYTES),
        );
      }
      rowsSinceYield += sliceEnd - sliceStart;
      sliceStart = sliceEnd;
      if (rowsSinceYield < PROOF_SLICE_ROWS) continue;
      rowsSinceYield = 0;
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (rowInBody >= 0 && rowInBody < bodyRowCount)
      provenRow = {
        pk: rowPrimaryKey(rowsBody.keys.columns[0]!.vector, rowInBody),
        salt: rowLeaves.salt(rowInBody),
        row: rowLeaves.row(rowInBody),
      };
    rowsBefore += bodyRowCount;
  }
  assert(provenRow !== null, 'the entry has the row');
  if (!equalBytes(rowTree.root(), entryLeaf.rowsRoot))
    throw malformedError('the rows do not give the root that their leaf commits to');
  return {
    ...provenRow,
    index: rowIndex,
    rowHash: rowTreeNodes.node(0, rowIndex),
    rowsRoot: entryLeaf.rowsRoot,
    path: rowTreeNodes.inclusion(rowIndex, rowsBefore),
  };
}

/** Rows of this key, in order; a row that was dropped has none. */
export function rowsOfKey(rowsBody: RowsBody, primaryKey: string): number[] {
  const keyRows: number[] = [];
  const droppedRows = new Set(rowsBody.dropped);
  const keyCells = rowsBody.keys.columns[0]!.vector;
  const wantedKey = Buffer.from(primaryKey);
  for (let bodyRow = 0; bodyRow < rowsBody.ops.length; bodyRow++) {
    const hasSameKey =
      keyCells.kind === 'text'
        ? wantedKey.equals(keyCells.heap.subarray(keyCells.offsets[bodyRow]!, keyCells.offsets[bodyRow + 1]!))
        : rowPrimaryKey(keyCells, bodyRow) === primaryKey;
    if (hasSameKey && !droppedRows.has(bodyRow)) keyRows.push(bodyRow);
  }
  return keyRows;
}

function rowPrimaryKey(keyCells: Vector, bodyRow: number): string {
  if (keyCells.kind === 'dict') return keyCells.dictionary.text(keyCells.values[bodyRow]!);
  assert(keyCells.kind === 'text', 'rows have keys, and keys are text');
  return Buffer.from(keyCells.heap.subarray(keyCells.offsets[bodyRow]!, keyCells.offsets[bodyRow + 1]!)).toString('utf8');
}
