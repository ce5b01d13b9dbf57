/** A body of rows without some of them: their leaf hashes take their places, and nothing else of them is left. */
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

/** `rows` ascending; those that were dropped before are passed over. Null when nothing is left to drop. */
export function withoutRows({ body, secrets }: Rows, path: string | null, rows: readonly number[]): Rows | null {
  const count = body.ops.length;
  const before = secrets.salts === 'explicit' ? secrets.dropped : new Map<number, Uint8Array>();
  const gone = new Set(rows.filter((row) => !before.has(row)));
  if (gone.size === 0) return null;
  const salts = saltsOfRows(secrets, count);
  const leaves = new RowLeaves(body, path, salts);
  const dropped = new Map(before);
  for (const row of gone) dropped.set(row, leaves.hashes(row, row + 1));
  const ordered = new Map([...dropped].sort(([a], [b]) => a - b));
  const remainingSalts = new Uint8Array((count - ordered.size) * SALT_BYTES);
  let at = 0;
  for (let row = 0; row < count; row++) {
    if (ordered.has(row)) continue;
    remainingSalts.set(salts.subarray(row * SALT_BYTES, (row + 1) * SALT_BYTES), at);
    at += SALT_BYTES;
  }
  for (const hash of ordered.values()) assert(hash.length === HASH_BYTES, 'a leaf hash has 32 bytes');
  return {
    body: { ...body, keys: emptyRows(body.keys, gone), cells: emptyRows(body.cells, gone), dropped: [...ordered.keys()] },
    secrets: { salts: 'explicit', bytes: remainingSalts, dropped: ordered },
  };
}

function emptyRows({ length, columns }: RowBatch, rows: ReadonlySet<number>): RowBatch {
  const without = ({ vector, ...column }: NamedColumn): NamedColumn => ({
    ...column,
    vector: withoutCells(vector, length, rows),
  });
  return { length, columns: columns.map(without) };
}

/** NULL in these rows, and no byte of what they held. */
function withoutCells(vector: Vector, length: number, rows: ReadonlySet<number>): Vector {
  if (vector.kind === 'null') return vector;
  assert(vector.kind !== 'dict', 'columns of a body have no dictionary');
  const nulls = new Uint8Array(length);
  if (vector.nulls) nulls.set(vector.nulls.subarray(0, length));
  for (const row of rows) nulls[row] = 1;
  if (nulls.every((isNull) => isNull === 1)) return { kind: 'null' };
  switch (vector.kind) {
    case 'text':
      return { kind: 'text', ...textsWithout(vector, length, rows), nulls };
    case 'vec': {
      const values = vector.values.slice(0, length * vector.dims);
      for (const row of rows) values.fill(0, row * vector.dims, (row + 1) * vector.dims);
      return { ...vector, values, nulls };
    }
    case 'i64': {
      const values = vector.values.slice(0, length);
      for (const row of rows) values[row] = 0n;
      return { ...vector, values, nulls };
    }
    case 'i32':
    case 'f64':
    case 'bool': {
      const values = vector.values.slice(0, length);
      for (const row of rows) values[row] = 0;
      return { ...vector, values, nulls } as Vector;
    }
  }
}

function textsWithout(
  { offsets, heap }: { readonly offsets: Uint32Array; readonly heap: Uint8Array },
  length: number,
  rows: ReadonlySet<number>,
): { readonly offsets: Uint32Array; readonly heap: Uint8Array } {
  const shorter = new Uint32Array(length + 1);
  const bytes = new Uint8Array(offsets[length]! - offsets[0]!);
  let end = 0;
  for (let row = 0; row < length; row++) {
    if (!rows.has(row)) {
      const cell = heap.subarray(offsets[row]!, offsets[row + 1]!);
      bytes.set(cell, end);
      end += cell.length;
    }
    shorter[row + 1] = end;
  }
  return { offsets: shorter, heap: bytes.subarray(0, end) };
}
