/**
 * What a row commits to, and the root over the rows of an entry.
 *
 *   leaf hash  SHA-256(0x00 | salt[16] | row)
 *   rows root  RFC 9162 tree over the leaf hashes, so one row is proven without showing its neighbours
 *   row        +-----------+-----------+-----------+-------------+-------+---------+
 *              | format u8 | path?     | type      | provenance  | op u8 | pk      |
 *              +-----------+--------+--+----------+-------------++-------+---------+
 *              | valid_from? i64    | valid_to? i64 | closes u32, u64 each | cells  |
 *              +--------------------+---------------+----------------------+--------+
 *   cell       name (u16 length), type u8, value; only cells that are not NULL, sorted bytewise by name
 *
 * Everything is big-endian and independent of the layout a vector rests in: an integer is eight bytes whether it came
 * from i32, f64 or i64. `?` is a presence byte. Texts have u32 lengths. The salt makes a leaf hash say nothing about a
 * row that was dropped: a survivor's proof stays valid, a guess at the missing row can't be tested.
 * Changing this needs a new `ROW_FORMAT` and a fixture.
 */
import * as crypto from 'node:crypto';
import { assert } from '../errors.ts';
import { textOfDict } from './column-codec.ts';
import type { Vector } from './columns.ts';
import type { RowsBody } from './entry.ts';
import { sha256 } from './sha256.ts';
import { type ColumnType, columnTypes, compareText } from './value.ts';

export const ROW_FORMAT = 1;
export const SALT_BYTES = 16;

const CELL_BYTES = 65;
const encoder = new TextEncoder();
const noSalts = Buffer.alloc(SALT_BYTES * 1024);
const noIv = new Uint8Array(16);

/** Salts of `rows` rows from a seed: an AES-256-CTR keystream, so 32 bytes stand for any number of salts. */
export function saltsOf(seed: Uint8Array, rows: number): Uint8Array {
  const size = rows * SALT_BYTES;
  const zeros = size <= noSalts.length ? noSalts.subarray(0, size) : Buffer.alloc(size);
  return crypto.createCipheriv('aes-256-ctr', seed, noIv).update(zeros);
}

/**
 * Root over the rows of a body. `salts` holds 16 bytes a row. A row that was dropped counts by the leaf hash that was
 * kept of it.
 */
export function rowsRoot(
  body: RowsBody,
  path: string | null,
  salts: Uint8Array,
  dropped?: ReadonlyMap<number, Uint8Array>,
): Uint8Array {
  const rows = body.ops.length;
  assert(salts.length >= rows * SALT_BYTES, 'every row has a salt');
  const hasher = new RowHasher(body, path);
  const nodes = nodesFor(rows);
  for (let row = 0; row < rows; row++) {
    const at = nodeOffset(row);
    const kept = dropped?.get(row);
    if (kept) nodes.set(kept, at);
    else nodes.write(hasher.hash(row, salts), at, 32, 'binary');
  }
  return rootOfNodes(nodes, rows);
}

/** Leaf hashes of all rows, 32 bytes each: for proofs of single rows and for dropping one. */
export function rowLeafHashes(body: RowsBody, path: string | null, salts: Uint8Array): Uint8Array {
  const rows = body.ops.length;
  const hasher = new RowHasher(body, path);
  const hashes = Buffer.alloc(rows * 32);
  for (let row = 0; row < rows; row++) hashes.write(hasher.hash(row, salts), row * 32, 32, 'binary');
  return hashes;
}

// Nodes rest in pairs as the input of their parent's hash: 0x01, left, right. Hashing a level copies nothing.
let pool = Buffer.alloc(CELL_BYTES * 1024, 1);

function nodesFor(count: number): Buffer {
  const cells = (count + 1) >> 1;
  if (cells * CELL_BYTES <= pool.length) {
    for (let i = 0; i < cells; i++) pool[i * CELL_BYTES] = 1;
    return pool;
  }
  const nodes = Buffer.alloc(cells * CELL_BYTES, 1);
  if (nodes.length <= 8 << 20) pool = nodes;
  return nodes;
}

function nodeOffset(index: number): number {
  return (index >> 1) * CELL_BYTES + 1 + (index & 1) * 32;
}

/** Pairing level by level, an odd last node moving up as it is, gives the tree of RFC 9162 section 2.1.1. */
function rootOfNodes(nodes: Buffer, count: number): Uint8Array {
  if (count === 0) return sha256(new Uint8Array(0));
  let width = count;
  while (width > 1) {
    const pairs = width >> 1;
    for (let i = 0; i < pairs; i++) {
      const cell = i * CELL_BYTES;
      const hash = crypto.hash('sha256', nodes.subarray(cell, cell + CELL_BYTES), 'binary');
      nodes.write(hash, nodeOffset(i), 32, 'binary');
    }
    if (width % 2 === 1) nodes.copyWithin(nodeOffset(pairs), nodeOffset(width - 1), nodeOffset(width - 1) + 32);
    width = pairs + (width % 2);
  }
  return new Uint8Array(nodes.subarray(1, 33));
}

interface CellSource {
  readonly name: string;
  /** u16 length, name, type: what every cell of the column starts with. */
  readonly head: Uint8Array;
  readonly type: ColumnType;
  readonly vector: Exclude<Vector, { kind: 'null' | 'dict' }>;
}

const views: Uint8Array[] = [];
let scratch = new Uint8Array(1 << 16);
let scratchView = new DataView(scratch.buffer);

/** Writes row after row over the same scratch bytes: what the rows of an entry share is written once. */
class RowHasher {
  readonly #body: RowsBody;
  readonly #columns: CellSource[] = [];
  readonly #pk: CellSource['vector'] | null;
  readonly #validFrom: Vector;
  readonly #validTo: Vector;
  readonly #start: number;

  constructor(body: RowsBody, path: string | null) {
    const rows = body.ops.length;
    this.#body = body;
    const [pk, validFrom, validTo] = body.keys.columns;
    assert(pk && validFrom && validTo, 'keys are _pk, valid_from, valid_to');
    this.#pk = plain(pk.vector, rows);
    this.#validFrom = validFrom.vector;
    this.#validTo = validTo.vector;
    for (const column of body.cells.columns) {
      const vector = plain(column.vector, rows);
      if (!vector) continue;
      const name = encoder.encode(column.name);
      const head = new Uint8Array(3 + name.length);
      head[0] = name.length >> 8;
      head[1] = name.length & 255;
      head.set(name, 2);
      head[2 + name.length] = columnTypes.indexOf(column.type);
      this.#columns.push({ name: column.name, head, type: column.type, vector });
    }
    this.#columns.sort((a, b) => compareText(a.name, b.name));
    this.#start = this.#writeShared(path);
  }

  /** SHA-256 as a binary string. */
  hash(row: number, salts: Uint8Array): string {
    const salt = row * SALT_BYTES;
    for (let i = 0; i < SALT_BYTES; i++) scratch[1 + i] = salts[salt + i]!;
    const end = this.#writeRow(row);
    const view = end < 4096 ? (views[end] ??= scratch.subarray(0, end)) : scratch.subarray(0, end);
    return crypto.hash('sha256', view, 'binary');
  }

  #writeShared(path: string | null): number {
    const { type, provenance } = this.#body;
    const texts = [path, type, provenance.source, provenance.method, provenance.derivedFrom];
    reserve(0, 64 + texts.reduce((sum, text) => sum + 5 + (text?.length ?? 0) * 3, 0));
    scratch[0] = 0;
    let at = 1 + SALT_BYTES;
    scratch[at++] = ROW_FORMAT;
    at = writeOptional(path, at);
    at = writeText(type, at);
    at = writeText(provenance.source, at);
    at = writeText(provenance.method, at);
    scratchView.setFloat64(at, provenance.confidence);
    return writeOptional(provenance.derivedFrom, at + 8);
  }

  #writeRow(row: number): number {
    const body = this.#body;
    const firstClose = body.closeOffsets[row]!;
    const lastClose = body.closeOffsets[row + 1]!;
    let at = this.#start;
    reserve(at, 64 + (lastClose - firstClose) * 8);
    scratch[at++] = body.ops[row]!;
    at = this.#pk === null ? writeText('', at) : writeCell(this.#pk, 'string', row, at);
    at = writeBound(this.#validFrom, row, at);
    at = writeBound(this.#validTo, row, at);
    reserve(at, 8 + (lastClose - firstClose) * 8);
    scratchView.setUint32(at, lastClose - firstClose);
    at += 4;
    for (let i = firstClose; i < lastClose; i++, at += 8) writeInteger(body.closes[i]!, at);
    const columns = this.#columns;
    for (let i = 0; i < columns.length; i++) {
      const { head, type, vector } = columns[i]!;
      if (vector.nulls !== null && vector.nulls[row] === 1) continue;
      reserve(at, head.length + 16);
      for (let k = 0; k < head.length; k++) scratch[at + k] = head[k]!;
      at = writeCell(vector, type, row, at + head.length);
    }
    return at;
  }
}

function plain(vector: Vector, rows: number): CellSource['vector'] | null {
  if (vector.kind === 'null') return null;
  if (vector.kind !== 'dict') return vector;
  const text = textOfDict(vector.values, vector.dictionary, vector.nulls, rows);
  assert(text.kind === 'text', 'a dictionary holds text');
  return text;
}

function writeCell(vector: CellSource['vector'], type: ColumnType, row: number, at: number): number {
  switch (vector.kind) {
    case 'text': {
      const start = vector.offsets[row]!;
      const size = vector.offsets[row + 1]! - start;
      reserve(at, 4 + size);
      scratchView.setUint32(at, size);
      if (size <= 48) {
        const heap = vector.heap;
        for (let i = 0; i < size; i++) scratch[at + 4 + i] = heap[start + i]!;
      } else scratch.set(vector.heap.subarray(start, start + size), at + 4);
      return at + 4 + size;
    }
    case 'bool':
      scratch[at] = vector.values[row]!;
      return at + 1;
    case 'vec': {
      const { dims, values } = vector;
      reserve(at, 4 + dims * 4);
      scratchView.setUint32(at, dims);
      for (let i = 0; i < dims; i++) scratchView.setFloat32(at + 4 + i * 4, values[row * dims + i]!);
      return at + 4 + dims * 4;
    }
    case 'i64':
      scratchView.setBigInt64(at, vector.values[row]!);
      return at + 8;
    case 'i32':
    case 'f64':
      if (type === 'number') scratchView.setFloat64(at, vector.values[row]!);
      else writeInteger(vector.values[row]!, at);
      return at + 8;
  }
}

function writeBound(vector: Vector, row: number, at: number): number {
  if (vector.kind === 'null' || vector.nulls?.[row] === 1) {
    scratch[at] = 0;
    return at + 1;
  }
  assert(vector.kind === 'i64', 'bounds are timestamps');
  scratch[at] = 1;
  scratchView.setBigInt64(at + 1, vector.values[row]!);
  return at + 9;
}

/** An exact integer of at most 2^53 as a big-endian i64. */
function writeInteger(value: number, at: number): void {
  const high = Math.floor(value / 4_294_967_296);
  scratchView.setInt32(at, high);
  scratchView.setUint32(at + 4, value - high * 4_294_967_296);
}

function writeText(text: string, at: number): number {
  const { written } = encoder.encodeInto(text, scratch.subarray(at + 4));
  scratchView.setUint32(at, written);
  return at + 4 + written;
}

function writeOptional(text: string | null, at: number): number {
  scratch[at] = text === null ? 0 : 1;
  return text === null ? at + 1 : writeText(text, at + 1);
}

function reserve(at: number, size: number): void {
  if (at + size <= scratch.length) return;
  const grown = new Uint8Array(Math.max(scratch.length * 2, at + size));
  grown.set(scratch.subarray(0, at));
  scratch = grown;
  scratchView = new DataView(scratch.buffer);
  views.length = 0;
}
