/**
 * The hashed content of a row, and the root over the rows of an entry.
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
import { assert } from '../../errors.ts';
import { textOfDict } from './column-codec.ts';
import type { NamedColumn, Vector } from '../values/columns.ts';
import type { RowsBody } from './entry.ts';
import { type HashColumn, HashForm, type HashInput, RowHashes } from './row-hashes.ts';
import { HASH_BYTES, sha256 } from '../bytes/sha256.ts';
import { type ColumnType, columnTypes, compareText } from '../values/value.ts';

export const ROW_FORMAT = 1;
export const SALT_BYTES = 16;

/** Columns of every body beside its rows' cells. */
export const keyColumns = [
  { name: '_pk', type: 'string' },
  { name: 'valid_from', type: 'timestamp' },
  { name: 'valid_to', type: 'timestamp' },
] as const;

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
 * kept of it. Into `hashes`, if it is given, the leaf hashes of all rows are written.
 */
export function rowsRoot(
  body: RowsBody,
  path: string | null,
  salts: Uint8Array,
  dropped?: ReadonlyMap<number, Uint8Array>,
  hashes?: Uint8Array,
): Uint8Array {
  const rows = body.ops.length;
  assert(salts.length >= rows * SALT_BYTES, 'every row has a salt');
  const hasher = new RowHasher(body, path);
  if (rows >= MODULE_ROWS_MIN && sharedHashes.begin(hasher.input(salts))) {
    sharedHashes.hash(0, rows);
    if (dropped) for (const [row, leafHash] of dropped) sharedHashes.put(row, leafHash);
    if (hashes) sharedHashes.take(0, rows, hashes);
    return sharedHashes.root();
  }
  if (rows === 1 && !dropped?.size && !hashes) return bytesOf(hasher.hash(0, salts));
  const tree = new RowTree();
  for (let row = 0; row < rows; row++) {
    const droppedHash = dropped?.get(row);
    const hash = droppedHash ? Buffer.from(droppedHash).toString('binary') : hasher.hash(row, salts);
    if (hashes) writeHash(hash, hashes, row);
    tree.append(hash);
  }
  return tree.root();
}

function writeHash(hash: string, target: Uint8Array, row: number): void {
  for (let i = 0, at = row * HASH_BYTES; i < HASH_BYTES; i++) target[at + i] = hash.charCodeAt(i);
}

/** Below this laying out the module's memory costs more than it saves. */
const MODULE_ROWS_MIN = 32;
const sharedHashes = new RowHashes();
/** Slices that are not in use. */
const idleHashes: RowHashes[] = [];

/** Rows that are hashed between two yields: about a millisecond. */
const SLICE_ROWS = 1024;

/** The root over the rows of a whole body, a slice at a time. */
export function* rowsRootInSlices(
  body: RowsBody,
  path: string | null,
  salts: Uint8Array,
  target?: Uint8Array,
): Generator<undefined, Uint8Array> {
  const rows = body.ops.length;
  assert(salts.length >= rows * SALT_BYTES, 'every row has a salt');
  const hasher = new RowHasher(body, path);
  const hashes = idleHashes.pop() ?? new RowHashes();
  if (rows > 0 && hashes.begin(hasher.input(salts))) {
    for (let first = 0; first < rows; first += SLICE_ROWS) {
      const end = Math.min(rows, first + SLICE_ROWS);
      hashes.hash(first, end);
      if (target) hashes.take(first, end, target);
      yield;
    }
    const root = hashes.root();
    idleHashes.push(hashes);
    return root;
  }
  const tree = new RowTree();
  for (let first = 0; first < rows; first += SLICE_ROWS) {
    // Other rows may have used the scratch bytes since the last slice.
    hasher.restart(path);
    for (let row = first; row < Math.min(rows, first + SLICE_ROWS); row++) {
      const hash = hasher.hash(row, salts);
      if (target) writeHash(hash, target, row);
      tree.append(hash);
    }
    yield;
  }
  return tree.root();
}

/** The root over leaf hashes, 32 bytes each, a slice at a time: of rows that stand in several parts. */
export function* rootOfHashes(hashes: Uint8Array): Generator<undefined, Uint8Array> {
  const bytes = Buffer.from(hashes.buffer, hashes.byteOffset, hashes.length);
  const tree = new RowTree();
  for (let at = 0; at < bytes.length; at += HASH_BYTES) {
    tree.append(bytes.toString('binary', at, at + HASH_BYTES));
    if (at % (SLICE_ROWS * HASH_BYTES) === 0 && at > 0) yield;
  }
  return tree.root();
}

/** Leaf hashes of all rows, 32 bytes each: for dropping one. */
export function rowLeafHashes(body: RowsBody, path: string | null, salts: Uint8Array): Uint8Array {
  return new RowLeaves(body, path, salts).hashes(0, body.ops.length);
}

/** The leaves of one entry, a few at a time: for proofs of single rows out of entries of many. */
export class RowLeaves {
  readonly #hasher: RowHasher;
  readonly #path: string | null;
  readonly #salts: Uint8Array;

  constructor(body: RowsBody, path: string | null, salts: Uint8Array) {
    this.#hasher = new RowHasher(body, path);
    this.#path = path;
    this.#salts = salts;
  }

  /** Hashes of rows first .. end-1, 32 bytes each. */
  hashes(first: number, end: number): Uint8Array {
    this.#hasher.restart(this.#path);
    const hashes = Buffer.alloc((end - first) * HASH_BYTES);
    for (let row = first; row < end; row++) {
      hashes.write(this.#hasher.hash(row, this.#salts), (row - first) * HASH_BYTES, HASH_BYTES, 'binary');
    }
    return new Uint8Array(hashes.buffer, hashes.byteOffset, hashes.length);
  }

  /** The canonical bytes of a row, its salt left out. */
  row(row: number): Uint8Array {
    this.#hasher.restart(this.#path);
    return this.#hasher.bytes(row, this.#salts);
  }

  salt(row: number): Uint8Array {
    return Uint8Array.from(this.#salts.subarray(row * SALT_BYTES, (row + 1) * SALT_BYTES));
  }
}

/** 0x01, left, right: the hashed bytes of every inner node. */
const pair = Buffer.alloc(1 + 2 * HASH_BYTES, 1);

/**
 * The tree of RFC 9162 section 2.1.1 over hashes as binary strings. It keeps one open subtree a level and no leaf: tens of
 * thousands of hashes held until the end would all be copied by the garbage collector.
 */
class RowTree {
  /** Root of the open subtree of 2^level leaves; empty where there is none. */
  readonly #open: string[] = [];

  append(leaf: string): void {
    let node = leaf;
    let level = 0;
    for (let left = this.#open[level]; left; left = this.#open[level]) {
      node = parent(left, node);
      this.#open[level++] = '';
    }
    this.#open[level] = node;
  }

  root(): Uint8Array {
    let right = '';
    for (const left of this.#open) if (left) right = right ? parent(left, right) : left;
    if (!right) return sha256(new Uint8Array(0));
    return bytesOf(right);
  }
}

function bytesOf(hash: string): Uint8Array {
  const bytes = new Uint8Array(HASH_BYTES);
  for (let i = 0; i < HASH_BYTES; i++) bytes[i] = hash.charCodeAt(i);
  return bytes;
}

function parent(left: string, right: string): string {
  pair.write(left, 1, HASH_BYTES, 'binary');
  pair.write(right, 1 + HASH_BYTES, HASH_BYTES, 'binary');
  return crypto.hash('sha256', pair, 'binary');
}

/** A column laid flat: one shape whatever the vector's kind, because a row loop over many shapes is several times slower. */
class CellSource {
  readonly head: CellHead;
  readonly form: Form;
  readonly nulls: Uint8Array | null;
  /** Values of `i32` and `f64`. */
  numbers: Int32Array | Float64Array = noNumbers;
  wide: BigInt64Array = noWide;
  bytes: Uint8Array = noBytes;
  /** Over `bytes`; null where there are too few rows to be worth it. */
  bytesView: DataView | null = null;
  offsets: Uint32Array = noOffsets;
  floats: Float32Array = noFloats;
  dims = 0;
  /** No cell of the column takes more. */
  cellBytesMax = 8;

  constructor(head: CellHead, form: Form, nulls: Uint8Array | null) {
    this.head = head;
    this.form = form;
    this.nulls = nulls;
  }
}

/** u16 length, name, type: the beginning of every cell of a column, as words, the last one padded with zeros. */
interface CellHead {
  readonly name: string;
  readonly words: Uint32Array;
  readonly bytes: number;
  readonly raw: Uint8Array;
}

const Form = { text: 0, integer: 1, number: 2, wide: 3, bool: 4, vec: 5 } as const;
type Form = (typeof Form)[keyof typeof Form];

const noNumbers = new Float64Array(0);
const noWide = new BigInt64Array(0);
const noBytes = new Uint8Array(0);
const noOffsets = new Uint32Array(0);
const noFloats = new Float32Array(0);

/** Views of the scratch bytes by length: making one costs as much as writing a cell. */
const views: Uint8Array[] = [];
let scratch = new Uint8Array(1 << 16);
let scratchView = new DataView(scratch.buffer);

/** Writes row after row over the same scratch bytes: the bytes that all rows of an entry share are written once. */
class RowHasher {
  readonly #body: RowsBody;
  readonly #columns: CellSource[];
  readonly #pk: CellSource | null;
  readonly #validFrom: Vector;
  readonly #validTo: Vector;
  readonly #start: number;
  /** Bytes of a row at most, its closes left out. */
  readonly #rowBytesMax: number;

  constructor(body: RowsBody, path: string | null) {
    const rows = body.ops.length;
    this.#body = body;
    const [pk, validFrom, validTo] = body.keys.columns;
    assert(pk && validFrom && validTo, 'keys are _pk, valid_from, valid_to');
    this.#pk = cellSource(pk, rows);
    this.#validFrom = validFrom.vector;
    this.#validTo = validTo.vector;
    this.#columns = [];
    let cells = 0;
    for (const i of orderByName(body.cells.columns)) {
      const source = cellSource(body.cells.columns[i]!, rows);
      if (source === null) continue;
      this.#columns.push(source);
      cells += source.head.bytes + source.cellBytesMax;
    }
    this.#start = this.#writeShared(path);
    this.#rowBytesMax = this.#start + 64 + (this.#pk?.cellBytesMax ?? 4) + cells;
  }

  /** Writes what rows share once more: another hasher has used the scratch bytes since. */
  restart(path: string | null): void {
    this.#writeShared(path);
  }

  /** The same rows for the module. */
  input(salts: Uint8Array): HashInput {
    const { ops, closeOffsets, closes } = this.#body;
    const boundColumn = (vector: Vector): HashColumn | null =>
      vector.kind === 'i64'
        ? {
            form: HashForm.wide,
            head: noBytes,
            data: vector.values,
            offsets: null,
            nulls: vector.nulls,
            dims: 0,
            cellBytesMax: 9,
          }
        : null;
    assert(
      [this.#validFrom, this.#validTo].every(({ kind }) => kind === 'i64' || kind === 'null'),
      'bounds are timestamps',
    );
    return {
      rows: ops.length,
      prefix: scratch.slice(0, this.#start),
      salts,
      ops,
      pk: this.#pk && hashColumn(this.#pk),
      validFrom: boundColumn(this.#validFrom),
      validTo: boundColumn(this.#validTo),
      closeOffsets,
      closes,
      columns: this.#columns.map(hashColumn),
    };
  }

  /** SHA-256 as a binary string. */
  hash(row: number, salts: Uint8Array): string {
    const end = this.#write(row, salts);
    const view = end < 4096 ? (views[end] ??= scratch.subarray(0, end)) : scratch.subarray(0, end);
    return crypto.hash('sha256', view, 'binary');
  }

  /** A copy of what is hashed behind the salt. */
  bytes(row: number, salts: Uint8Array): Uint8Array {
    return scratch.slice(1 + SALT_BYTES, this.#write(row, salts));
  }

  /** 0x00, salt, row over the scratch bytes; where they end. */
  #write(row: number, salts: Uint8Array): number {
    const closes = this.#body.closeOffsets[row + 1]! - this.#body.closeOffsets[row]!;
    reserve(this.#rowBytesMax + closes * 8);
    const salt = row * SALT_BYTES;
    for (let i = 0; i < SALT_BYTES; i++) scratch[1 + i] = salts[salt + i]!;
    return this.#writeRow(row, scratch, scratchView);
  }

  #writeShared(path: string | null): number {
    const { type, provenance } = this.#body;
    const { source, method, derivedFrom } = provenance;
    const characters = (path?.length ?? 0) + type.length + source.length + method.length + (derivedFrom?.length ?? 0);
    reserve(64 + 5 * 5 + characters * 3);
    scratch[0] = 0;
    let at = 1 + SALT_BYTES;
    scratch[at++] = ROW_FORMAT;
    at = writeOptional(path, at);
    at = writeText(type, at);
    at = writeText(source, at);
    at = writeText(method, at);
    scratchView.setFloat64(at, provenance.confidence);
    return writeOptional(derivedFrom, at + 8);
  }

  #writeRow(row: number, target: Uint8Array, view: DataView): number {
    const { ops, closeOffsets, closes } = this.#body;
    let at = this.#start;
    target[at++] = ops[row]!;
    if (this.#pk === null) {
      view.setUint32(at, 0);
      at += 4;
    } else at = writeCell(this.#pk, row, target, view, at);
    at = writeBound(this.#validFrom, row, target, view, at);
    at = writeBound(this.#validTo, row, target, view, at);
    const firstClose = closeOffsets[row]!;
    const lastClose = closeOffsets[row + 1]!;
    view.setUint32(at, lastClose - firstClose);
    at += 4;
    for (let i = firstClose; i < lastClose; i++, at += 8) writeInteger(closes[i]!, view, at);
    const columns = this.#columns;
    for (let i = 0; i < columns.length; i++) {
      const column = columns[i]!;
      const { nulls, head } = column;
      if (nulls !== null && nulls[row] === 1) continue;
      // Word by word, past the end where need be: the next write covers the excess.
      const { words } = head;
      for (let k = 0; k < words.length; k++) view.setUint32(at + k * 4, words[k]!);
      at = writeCell(column, row, target, view, at + head.bytes);
    }
    return at;
  }
}

function hashColumn({ head, form, nulls, numbers, wide, bytes, offsets, floats, dims, cellBytesMax }: CellSource): HashColumn {
  const common = { head: head.raw, nulls, dims, cellBytesMax, offsets: form === Form.text ? offsets : null };
  const narrow = numbers instanceof Int32Array;
  switch (form) {
    case Form.text:
      return { ...common, form: HashForm.text, data: bytes };
    case Form.integer:
      return { ...common, form: narrow ? HashForm.integerOfI32 : HashForm.integerOfF64, data: numbers };
    case Form.number:
      return { ...common, form: narrow ? HashForm.numberOfI32 : HashForm.numberOfF64, data: numbers };
    case Form.wide:
      return { ...common, form: HashForm.wide, data: wide };
    case Form.bool:
      return { ...common, form: HashForm.bool, data: bytes };
    case Form.vec:
      return { ...common, form: HashForm.vec, data: floats };
  }
}

let orderedNames: readonly string[] = [];
let order: readonly number[] = [];

/** Indices of columns, sorted bytewise by name. Kept: one entry after the other has the same columns. */
function orderByName(columns: readonly NamedColumn[]): readonly number[] {
  let same = columns.length === orderedNames.length;
  for (let i = 0; same && i < columns.length; i++) same = columns[i]!.name === orderedNames[i];
  if (same) return order;
  orderedNames = columns.map(({ name }) => name);
  order = columns.map((_, i) => i).sort((a, b) => compareText(orderedNames[a]!, orderedNames[b]!));
  return order;
}

/** Null for a column of NULLs. */
function cellSource({ name, type, vector: given }: NamedColumn, rows: number): CellSource | null {
  const vector = given.kind === 'dict' ? textOfDict(given.values, given.dictionary, given.nulls, rows) : given;
  if (vector.kind === 'null') return null;
  assert(vector.kind !== 'dict', 'dict vectors were turned into text');
  const source = new CellSource(cellHead(name, type), formOf(vector, type), vector.nulls);
  switch (vector.kind) {
    case 'text':
      source.bytes = vector.heap;
      source.offsets = vector.offsets;
      source.cellBytesMax = 4 + longestCell(vector.offsets, rows);
      if (rows >= VIEW_ROWS_MIN)
        source.bytesView = new DataView(vector.heap.buffer, vector.heap.byteOffset, vector.heap.byteLength);
      return source;
    case 'i32':
    case 'f64':
      source.numbers = vector.values;
      return source;
    case 'i64':
      source.wide = vector.values;
      return source;
    case 'bool':
      source.bytes = vector.values;
      return source;
    case 'vec':
      source.floats = vector.values;
      source.dims = vector.dims;
      source.cellBytesMax = 4 + 4 * vector.dims;
      return source;
  }
}

function formOf(vector: Exclude<Vector, { kind: 'null' | 'dict' }>, type: ColumnType): Form {
  switch (vector.kind) {
    case 'text':
      return Form.text;
    case 'i32':
    case 'f64':
      return type === 'number' ? Form.number : Form.integer;
    case 'i64':
      return Form.wide;
    case 'bool':
      return Form.bool;
    case 'vec':
      return Form.vec;
  }
}

function longestCell(offsets: Uint32Array, rows: number): number {
  let longest = 0;
  for (let i = 0; i < rows; i++) {
    const size = offsets[i + 1]! - offsets[i]!;
    if (size > longest) longest = size;
  }
  return longest;
}

const VIEW_ROWS_MIN = 16;
const HEADS_MAX = 4096;
const heads = new Map<ColumnType, Map<string, CellHead>>(columnTypes.map((type) => [type, new Map()]));

/** Kept by name: for an entry of one row, making the heads would cost more than all the rest. */
function cellHead(name: string, type: ColumnType): CellHead {
  const ofType = heads.get(type)!;
  const known = ofType.get(name);
  if (known) return known;
  const nameBytes = encoder.encode(name);
  const bytes = 3 + nameBytes.length;
  const padded = new DataView(new ArrayBuffer((bytes + 3) & ~3));
  padded.setUint16(0, nameBytes.length);
  new Uint8Array(padded.buffer).set(nameBytes, 2);
  padded.setUint8(bytes - 1, columnTypes.indexOf(type));
  const words = Uint32Array.from({ length: padded.byteLength / 4 }, (_, i) => padded.getUint32(i * 4));
  if (ofType.size >= HEADS_MAX) ofType.clear();
  const head = { name, words, bytes, raw: new Uint8Array(padded.buffer, 0, bytes) };
  ofType.set(name, head);
  return head;
}

function writeCell(column: CellSource, row: number, target: Uint8Array, view: DataView, at: number): number {
  switch (column.form) {
    case Form.text: {
      const { offsets, bytes, bytesView } = column;
      const start = offsets[row]!;
      const size = offsets[row + 1]! - start;
      view.setUint32(at, size);
      if (size > 128) target.set(bytes.subarray(start, start + size), at + 4);
      else if (bytesView !== null && start + size + 3 < bytes.length) {
        for (let i = 0; i < size; i += 4) view.setUint32(at + 4 + i, bytesView.getUint32(start + i));
      } else for (let i = 0; i < size; i++) target[at + 4 + i] = bytes[start + i]!;
      return at + 4 + size;
    }
    case Form.integer:
      writeInteger(column.numbers[row]!, view, at);
      return at + 8;
    case Form.number:
      view.setFloat64(at, column.numbers[row]!);
      return at + 8;
    case Form.wide:
      view.setBigInt64(at, column.wide[row]!);
      return at + 8;
    case Form.bool:
      target[at] = column.bytes[row]!;
      return at + 1;
    case Form.vec: {
      const { dims, floats } = column;
      view.setUint32(at, dims);
      for (let i = 0; i < dims; i++) view.setFloat32(at + 4 + i * 4, floats[row * dims + i]!);
      return at + 4 + dims * 4;
    }
  }
}

function writeBound(vector: Vector, row: number, target: Uint8Array, view: DataView, at: number): number {
  if (vector.kind === 'null' || vector.nulls?.[row] === 1) {
    target[at] = 0;
    return at + 1;
  }
  assert(vector.kind === 'i64', 'bounds are timestamps');
  target[at] = 1;
  view.setBigInt64(at + 1, vector.values[row]!);
  return at + 9;
}

/** An exact integer of at most 2^53 as a big-endian i64. */
function writeInteger(value: number, view: DataView, at: number): void {
  const high = Math.floor(value / 4_294_967_296);
  view.setInt32(at, high);
  view.setUint32(at + 4, value - high * 4_294_967_296);
}

function writeText(text: string, at: number): number {
  if (text.length <= 64) {
    let i = 0;
    for (; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code > 127) break;
      scratch[at + 4 + i] = code;
    }
    if (i === text.length) {
      scratchView.setUint32(at, i);
      return at + 4 + i;
    }
  }
  const { written } = encoder.encodeInto(text, scratch.subarray(at + 4));
  scratchView.setUint32(at, written);
  return at + 4 + written;
}

function writeOptional(text: string | null, at: number): number {
  scratch[at] = text === null ? 0 : 1;
  return text === null ? at + 1 : writeText(text, at + 1);
}

/** Grows the scratch buffer and keeps its bytes: rows share the written prefix. */
function reserve(size: number): void {
  if (size <= scratch.length) return;
  const grown = new Uint8Array(Math.max(scratch.length * 2, size));
  grown.set(scratch);
  scratch = grown;
  scratchView = new DataView(scratch.buffer);
  views.length = 0;
}
