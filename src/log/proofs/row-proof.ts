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
const SLICE_ROWS = 512;

/** `parts`: of the entry's rows. Null for a row of which only the hash is left. */
export async function proveRow(facts: LeafFields, parts: readonly DecodedRows[], index: number): Promise<RowProof | null> {
  const nodes = new TreeStore();
  const tree = new Frontier(0, [], nodes);
  let shown: Pick<RowProof, 'pk' | 'salt' | 'row'> | null = null;
  let rows = 0;
  let since = 0;
  for (const { body, secrets } of parts) {
    const count = body.ops.length;
    const own = index - rows;
    const dropped = secrets.salts === 'explicit' ? secrets.dropped : undefined;
    if (dropped?.has(own)) return null;
    const leaves = new RowLeaves(body, facts.context.path, saltsOfRows(secrets, count));
    for (let first = 0; first < count; ) {
      const end = Math.min(count, first + SLICE_ROWS - since);
      const hashes = leaves.hashes(first, end);
      for (let at = 0; at < hashes.length; at += HASH_BYTES) {
        tree.append(dropped?.get(first + at / HASH_BYTES) ?? hashes.slice(at, at + HASH_BYTES));
      }
      since += end - first;
      first = end;
      if (since < SLICE_ROWS) continue;
      since = 0;
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (own >= 0 && own < count)
      shown = { pk: pkOf(body.keys.columns[0]!.vector, own), salt: leaves.salt(own), row: leaves.row(own) };
    rows += count;
  }
  assert(shown !== null, 'the entry has the row');
  if (!equalBytes(tree.root(), facts.rowsRoot)) throw malformedError('the rows do not give the root that their leaf commits to');
  return {
    ...shown,
    index,
    rowHash: nodes.node(0, index),
    rowsRoot: facts.rowsRoot,
    path: nodes.inclusion(index, rows),
  };
}

/** Rows of this key, in order; a row that was dropped has none. */
export function rowsOfKey(body: RowsBody, pk: string): number[] {
  const keyRows: number[] = [];
  const gone = new Set(body.dropped);
  const cells = body.keys.columns[0]!.vector;
  const wanted = Buffer.from(pk);
  for (let row = 0; row < body.ops.length; row++) {
    const same =
      cells.kind === 'text'
        ? wanted.equals(cells.heap.subarray(cells.offsets[row]!, cells.offsets[row + 1]!))
        : pkOf(cells, row) === pk;
    if (same && !gone.has(row)) keyRows.push(row);
  }
  return keyRows;
}

function pkOf(cells: Vector, row: number): string {
  if (cells.kind === 'dict') return cells.dictionary.text(cells.values[row]!);
  assert(cells.kind === 'text', 'rows have keys, and keys are text');
  return Buffer.from(cells.heap.subarray(cells.offsets[row]!, cells.offsets[row + 1]!)).toString('utf8');
}
