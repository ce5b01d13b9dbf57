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

const rowTextEncoder = new TextEncoder();
const zeroSalts = Buffer.alloc(SALT_BYTES * 1024);
const zeroIv = new Uint8Array(16);

/** Salts of `rowCount` rows from a seed: an AES-256-CTR keystream, so 32 bytes stand for any number of salts. */
export function saltsOf(saltSeed: Uint8Array, rowCount: number): Uint8Array {
  const saltBytes = rowCount * SALT_BYTES;
  const zeroBytes = saltBytes <= zeroSalts.length ? zeroSalts.subarray(0, saltBytes) : Buffer.alloc(saltBytes);
  return crypto.createCipheriv('aes-256-ctr', saltSeed, zeroIv).update(zeroBytes);
}

/**
 * Root over the rows of a body. `rowSalts` holds 16 bytes a row. A row that was dropped counts by the leaf hash that was
 * kept of it. Into `rowHashTarget`, if it is given, the leaf hashes of all rows are written.
 */
export function rowsRoot(
  rowsBody: RowsBody,
  organisationPath: string | null,
  rowSalts: Uint8Array,
  droppedRowHashes?: ReadonlyMap<number, Uint8Array>,
  rowHashTarget?: Uint8Array,
): Uint8Array {
  const rowCount = rowsBody.ops.length;
  assert(rowSalts.length >= rowCount * SALT_BYTES, 'every row has a salt');
  const rowHasher = new RowHasher(rowsBody, organisationPath);
  if (rowCount >= WASM_HASH_ROWS_MIN && sharedRowHashes.begin(rowHasher.input(rowSalts))) {
    sharedRowHashes.hash(0, rowCount);
    if (droppedRowHashes) for (const [leafRow, leafHash] of droppedRowHashes) sharedRowHashes.put(leafRow, leafHash);
    if (rowHashTarget) sharedRowHashes.take(0, rowCount, rowHashTarget);
    return sharedRowHashes.root();
  }
  if (rowCount === 1 && !droppedRowHashes?.size && !rowHashTarget) return hashBytesOf(rowHasher.hash(0, rowSalts));
  const rowTree = new RowTree();
  for (let row = 0; row < rowCount; row++) {
    const droppedHash = droppedRowHashes?.get(row);
    const rowHash = droppedHash ? Buffer.from(droppedHash).toString('binary') : rowHasher.hash(row, rowSalts);
    if (rowHashTarget) writeRowHash(rowHash, rowHashTarget, row);
    rowTree.append(rowHash);
  }
  return rowTree.root();
}

function writeRowHash(rowHash: string, hashTarget: Uint8Array, hashedRow: number): void {
  for (let i = 0, hashOffset = hashedRow * HASH_BYTES; i < HASH_BYTES; i++) hashTarget[hashOffset + i] = rowHash.charCodeAt(i);
}

/** Below this laying out the module's memory costs more than it saves. */
const WASM_HASH_ROWS_MIN = 32;
const sharedRowHashes = new RowHashes();
/** Slices that are not in use. */
const idleRowHashes: RowHashes[] = [];

/** Rows that are hashed between two yields: about a millisecond. */
const HASH_SLICE_ROWS = 1024;

/** The root over the rows of a whole body, a slice at a time. */
export function* rowsRootInSlices(
  rowsBody: RowsBody,
  organisationPath: string | null,
  rowSalts: Uint8Array,
  hashTarget?: Uint8Array,
): Generator<undefined, Uint8Array> {
  const rowCount = rowsBody.ops.length;
  assert(rowSalts.length >= rowCount * SALT_BYTES, 'every row has a salt');
  const rowHasher = new RowHasher(rowsBody, organisationPath);
  const wasmRowHashes = idleRowHashes.pop() ?? new RowHashes();
  if (rowCount > 0 && wasmRowHashes.begin(rowHasher.input(rowSalts))) {
    for (let sliceStart = 0; sliceStart < rowCount; sliceStart += HASH_SLICE_ROWS) {
      const sliceEnd = Math.min(rowCount, sliceStart + HASH_SLICE_ROWS);
      wasmRowHashes.hash(sliceStart, sliceEnd);
      if (hashTarget) wasmRowHashes.take(sliceStart, sliceEnd, hashTarget);
      yield;
    }
    const rowTreeRoot = wasmRowHashes.root();
    idleRowHashes.push(wasmRowHashes);
    return rowTreeRoot;
  }
  const rowTree = new RowTree();
  for (let first = 0; first < rowCount; first += HASH_SLICE_ROWS) {
    // Other rows may have used the scratch bytes since the last slice.
    rowHasher.restart(organisationPath);
    for (let leafRow = first; leafRow < Math.min(rowCount, first + HASH_SLICE_ROWS); leafRow++) {
      const rowHash = rowHasher.hash(leafRow, rowSalts);
      if (hashTarget) writeRowHash(rowHash, hashTarget, leafRow);
      rowTree.append(rowHash);
    }
    yield;
  }
  return rowTree.root();
}

/** The root over leaf hashes, 32 bytes each, a slice at a time: of rows that stand in several parts. */
export function* rootOfHashes(hashes: Uint8Array): Generator<undefined, Uint8Array> {
  const hashBuffer = Buffer.from(hashes.buffer, hashes.byteOffset, hashes.length);
  const rowTree = new RowTree();
  for (let hashOffset = 0; hashOffset < hashBuffer.length; hashOffset += HASH_BYTES) {
    rowTree.append(hashBuffer.toString('binary', hashOffset, hashOffset + HASH_BYTES));
    if (hashOffset % (HASH_SLICE_ROWS * HASH_BYTES) === 0 && hashOffset > 0) yield;
  }
  return rowTree.root();
}

/** Leaf hashes of all rows, 32 bytes each: for dropping one. */
export function rowLeafHashes(rowsBody: RowsBody, organisationPath: string | null, rowSalts: Uint8Array): Uint8Array {
  return new RowLeaves(rowsBody, organisationPath, rowSalts).hashes(0, rowsBody.ops.length);
}

/** The leaves of one entry, a few at a time: for proofs of single rows out of entries of many. */
export class RowLeaves {
  readonly #rowHasher: RowHasher;
  readonly #organisationPath: string | null;
  readonly #rowSalts: Uint8Array;

  constructor(rowsBody: RowsBody, organisationPath: string | null, rowSalts: Uint8Array) {
    this.#rowHasher = new RowHasher(rowsBody, organisationPath);
    this.#organisationPath = organisationPath;
    this.#rowSalts = rowSalts;
  }

  /** Hashes of rows first .. end-1, 32 bytes each. */
  hashes(firstRow: number, endRow: number): Uint8Array {
    this.#rowHasher.restart(this.#organisationPath);
    const leafHashBytes = Buffer.alloc((endRow - firstRow) * HASH_BYTES);
    for (let row = firstRow; row < endRow; row++) {
      leafHashBytes.write(this.#rowHasher.hash(row, this.#rowSalts), (row - firstRow) * HASH_BYTES, HASH_BYTES, 'binary');
    }
    return new Uint8Array(leafHashBytes.buffer, leafHashBytes.byteOffset, leafHashBytes.length);
  }

  /** The canonical bytes of a row, its salt left out. */
  row(leafRow: number): Uint8Array {
    this.#rowHasher.restart(this.#organisationPath);
    return this.#rowHasher.bytes(leafRow, this.#rowSalts);
  }

  salt(saltedRow: number): Uint8Array {
    return Uint8Array.from(this.#rowSalts.subarray(saltedRow * SALT_BYTES, (saltedRow + 1) * SALT_BYTES));
  }
}

/** 0x01, left, right: the hashed bytes of every inner node. */
const nodePair = Buffer.alloc(1 + 2 * HASH_BYTES, 1);

/**
 * The tree of RFC 9162 section 2.1.1 over hashes as binary strings. It keeps one open subtree a level and no leaf: tens of
 * thousands of hashes held until the end would all be copied by the garbage collector.
 */
class RowTree {
  /** Root of the open subtree of 2^level leaves; empty where there is none. */
  readonly #openNodes: string[] = [];

  append(rowLeafHash: string): void {
    let treeNode = rowLeafHash;
    let treeLevel = 0;
    for (let leftNode = this.#openNodes[treeLevel]; leftNode; leftNode = this.#openNodes[treeLevel]) {
      treeNode = parentHash(leftNode, treeNode);
      this.#openNodes[treeLevel++] = '';
    }
    this.#openNodes[treeLevel] = treeNode;
  }

  root(): Uint8Array {
    let rightNode = '';
    for (const leftNode of this.#openNodes) if (leftNode) rightNode = rightNode ? parentHash(leftNode, rightNode) : leftNode;
    if (!rightNode) return sha256(new Uint8Array(0));
    return hashBytesOf(rightNode);
  }
}

function hashBytesOf(binaryHash: string): Uint8Array {
  const hashBytes = new Uint8Array(HASH_BYTES);
  for (let i = 0; i < HASH_BYTES; i++) hashBytes[i] = binaryHash.charCodeAt(i);
  return hashBytes;
}

function parentHash(leftHash: string, rightHash: string): string {
  nodePair.write(leftHash, 1, HASH_BYTES, 'binary');
  nodePair.write(rightHash, 1 + HASH_BYTES, HASH_BYTES, 'binary');
  return crypto.hash('sha256', nodePair, 'binary');
}

/** A column laid flat: one shape whatever the vector's kind, because a row loop over many shapes is several times slower. */
class LeafCellSource {
  readonly head: CellHead;
  readonly form: CellForm;
  readonly nulls: Uint8Array | null;
  /** Values of `i32` and `f64`. */
  numbers: Int32Array | Float64Array = noNumberCells;
  wide: BigInt64Array = noWideCells;
  bytes: Uint8Array = noCellBytes;
  /** Over `bytes`; null where there are too few rows to be worth it. */
  bytesView: DataView | null = null;
  offsets: Uint32Array = noTextOffsets;
  floats: Float32Array = noFloatCells;
  dims = 0;
  /** No cell of the column takes more. */
  cellBytesMax = 8;

  constructor(head: CellHead, form: CellForm, nulls: Uint8Array | null) {
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

const CellForm = { text: 0, integer: 1, number: 2, wide: 3, bool: 4, vec: 5 } as const;
type CellForm = (typeof CellForm)[keyof typeof CellForm];

const noNumberCells = new Float64Array(0);
const noWideCells = new BigInt64Array(0);
const noCellBytes = new Uint8Array(0);
const noTextOffsets = new Uint32Array(0);
const noFloatCells = new Float32Array(0);

/** Views of the scratch bytes by length: making one costs as much as writing a cell. */
const rowViews: Uint8Array[] = [];
let rowScratch = new Uint8Array(1 << 16);
let rowScratchView = new DataView(rowScratch.buffer);

/** Writes row after row over the same scratch bytes: the bytes that all rows of an entry share are written once. */
class RowHasher {
  readonly #hashedBody: RowsBody;
  readonly #leafColumns: LeafCellSource[];
  readonly #primaryKeyCells: LeafCellSource | null;
  readonly #validFrom: Vector;
  readonly #validTo: Vector;
  readonly #sharedPrefixBytes: number;
  /** Bytes of a row at most, its closes left out. */
  readonly #rowBytesMax: number;

  constructor(rowsBody: RowsBody, organisationPath: string | null) {
    const rowCount = rowsBody.ops.length;
    this.#hashedBody = rowsBody;
    const [primaryKeyColumn, validFrom, validTo] = rowsBody.keys.columns;
    assert(primaryKeyColumn && validFrom && validTo, 'keys are _pk, valid_from, valid_to');
    this.#primaryKeyCells = cellSource(primaryKeyColumn, rowCount);
    this.#validFrom = validFrom.vector;
    this.#validTo = validTo.vector;
    this.#leafColumns = [];
    let cellBytesSum = 0;
    for (const i of orderColumnsByName(rowsBody.cells.columns)) {
      const leafCells = cellSource(rowsBody.cells.columns[i]!, rowCount);
      if (leafCells === null) continue;
      this.#leafColumns.push(leafCells);
      cellBytesSum += leafCells.head.bytes + leafCells.cellBytesMax;
    }
    this.#sharedPrefixBytes = this.#writeSharedPrefix(organisationPath);
    this.#rowBytesMax = this.#sharedPrefixBytes + 64 + (this.#primaryKeyCells?.cellBytesMax ?? 4) + cellBytesSum;
  }

  /** Writes what rows share once more: another hasher has used the scratch bytes since. */
  restart(organisationPath: string | null): void {
    this.#writeSharedPrefix(organisationPath);
  }

  /** The same rows for the module. */
  input(rowSalts: Uint8Array): HashInput {
    const { ops, closeOffsets, closes } = this.#hashedBody;
    const boundColumn = (vector: Vector): HashColumn | null =>
      vector.kind === 'i64'
        ? {
            form: HashForm.wide,
            head: noCellBytes,
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
      prefix: rowScratch.slice(0, this.#sharedPrefixBytes),
      salts: rowSalts,
      ops,
      pk: this.#primaryKeyCells && hashColumn(this.#primaryKeyCells),
      validFrom: boundColumn(this.#validFrom),
      validTo: boundColumn(this.#validTo),
      closeOffsets,
      closes,
      columns: this.#leafColumns.map(hashColumn),
    };
  }

  /** SHA-256 as a binary string. */
  hash(leafRow: number, rowSalts: Uint8Array): string {
    const leafEnd = this.#writeLeaf(leafRow, rowSalts);
    const leafView = leafEnd < 4096 ? (rowViews[leafEnd] ??= rowScratch.subarray(0, leafEnd)) : rowScratch.subarray(0, leafEnd);
    return crypto.hash('sha256', leafView, 'binary');
  }

  /** A copy of what is hashed behind the salt. */
  bytes(leafRow: number, rowSalts: Uint8Array): Uint8Array {
    return rowScratch.slice(1 + SALT_BYTES, this.#writeLeaf(leafRow, rowSalts));
  }

  /** 0x00, salt, row over the scratch bytes; where they end. */
  #writeLeaf(leafRow: number, rowSalts: Uint8Array): number {
    const closeCount = this.#hashedBody.closeOffsets[leafRow + 1]! - this.#hashedBody.closeOffsets[leafRow]!;
    reserveScratch(this.#rowBytesMax + closeCount * 8);
    const saltOffset = leafRow * SALT_BYTES;
    for (let i = 0; i < SALT_BYTES; i++) rowScratch[1 + i] = rowSalts[saltOffset + i]!;
    return this.#writeRowCells(leafRow, rowScratch, rowScratchView);
  }

  #writeSharedPrefix(organisationPath: string | null): number {
    const { type, provenance } = this.#hashedBody;
    const { source, method, derivedFrom } = provenance;
    const sharedCharacters =
      (organisationPath?.length ?? 0) + type.length + source.length + method.length + (derivedFrom?.length ?? 0);
    reserveScratch(64 + 5 * 5 + sharedCharacters * 3);
    rowScratch[0] = 0;
    let prefixOffset = 1 + SALT_BYTES;
    rowScratch[prefixOffset++] = ROW_FORMAT;
    prefixOffset = writeOptionalLeafText(organisationPath, prefixOffset);
    prefixOffset = writeLeafText(type, prefixOffset);
    prefixOffset = writeLeafText(source, prefixOffset);
    prefixOffset = writeLeafText(method, prefixOffset);
    rowScratchView.setFloat64(prefixOffset, provenance.confidence);
    return writeOptionalLeafText(derivedFrom, prefixOffset + 8);
  }

  #writeRowCells(leafRow: number, leafBytes: Uint8Array, leafView: DataView): number {
    const { ops, closeOffsets, closes } = this.#hashedBody;
    let leafOffset = this.#sharedPrefixBytes;
    leafBytes[leafOffset++] = ops[leafRow]!;
    if (this.#primaryKeyCells === null) {
      leafView.setUint32(leafOffset, 0);
      leafOffset += 4;
    } else leafOffset = writeLeafCell(this.#primaryKeyCells, leafRow, leafBytes, leafView, leafOffset);
    leafOffset = writeValidBound(this.#validFrom, leafRow, leafBytes, leafView, leafOffset);
    leafOffset = writeValidBound(this.#validTo, leafRow, leafBytes, leafView, leafOffset);
    const firstClose = closeOffsets[leafRow]!;
    const lastClose = closeOffsets[leafRow + 1]!;
    leafView.setUint32(leafOffset, lastClose - firstClose);
    leafOffset += 4;
    for (let i = firstClose; i < lastClose; i++, leafOffset += 8) writeLeafInteger(closes[i]!, leafView, leafOffset);
    const leafColumns = this.#leafColumns;
    for (let i = 0; i < leafColumns.length; i++) {
      const leafColumn = leafColumns[i]!;
      const { nulls, head } = leafColumn;
      if (nulls !== null && nulls[leafRow] === 1) continue;
      // Word by word, past the end where need be: the next write covers the excess.
      const { words } = head;
      for (let k = 0; k < words.length; k++) leafView.setUint32(leafOffset + k * 4, words[k]!);
      leafOffset = writeLeafCell(leafColumn, leafRow, leafBytes, leafView, leafOffset + head.bytes);
    }
    return leafOffset;
  }
}

function hashColumn({
  head,
  form,
  nulls,
  numbers,
  wide,
  bytes,
  offsets,
  floats,
  dims,
  cellBytesMax,
}: LeafCellSource): HashColumn {
  const commonFields = { head: head.raw, nulls, dims, cellBytesMax, offsets: form === CellForm.text ? offsets : null };
  const isNarrow = numbers instanceof Int32Array;
  switch (form) {
    case CellForm.text:
      return { ...commonFields, form: HashForm.text, data: bytes };
    case CellForm.integer:
      return { ...commonFields, form: isNarrow ? HashForm.integerOfI32 : HashForm.integerOfF64, data: numbers };
    case CellForm.number:
      return { ...commonFields, form: isNarrow ? HashForm.numberOfI32 : HashForm.numberOfF64, data: numbers };
    case CellForm.wide:
      return { ...commonFields, form: HashForm.wide, data: wide };
    case CellForm.bool:
      return { ...commonFields, form: HashForm.bool, data: bytes };
    case CellForm.vec:
      return { ...commonFields, form: HashForm.vec, data: floats };
  }
}

let orderedColumnNames: readonly string[] = [];
let columnOrder: readonly number[] = [];

/** Indices of columns, sorted bytewise by name. Kept: one entry after the other has the same columns. */
function orderColumnsByName(columns: readonly NamedColumn[]): readonly number[] {
  let isSameOrder = columns.length === orderedColumnNames.length;
  for (let i = 0; isSameOrder && i < columns.length; i++) isSameOrder = columns[i]!.name === orderedColumnNames[i];
  if (isSameOrder) return columnOrder;
  orderedColumnNames = columns.map(({ name }) => name);
  columnOrder = columns.map((_, i) => i).sort((a, b) => compareText(orderedColumnNames[a]!, orderedColumnNames[b]!));
  return columnOrder;
}

/** Null for a column of NULLs. */
function cellSource({ name, type, vector: columnVector }: NamedColumn, rowCount: number): LeafCellSource | null {
  const leafVector =
    columnVector.kind === 'dict'
      ? textOfDict(columnVector.values, columnVector.dictionary, columnVector.nulls, rowCount)
      : columnVector;
  if (leafVector.kind === 'null') return null;
  assert(leafVector.kind !== 'dict', 'dict vectors were turned into text');
  const leafCells = new LeafCellSource(cellHead(name, type), cellFormOf(leafVector, type), leafVector.nulls);
  switch (leafVector.kind) {
    case 'text':
      leafCells.bytes = leafVector.heap;
      leafCells.offsets = leafVector.offsets;
      leafCells.cellBytesMax = 4 + longestTextCell(leafVector.offsets, rowCount);
      if (rowCount >= TEXT_VIEW_ROWS_MIN)
        leafCells.bytesView = new DataView(leafVector.heap.buffer, leafVector.heap.byteOffset, leafVector.heap.byteLength);
      return leafCells;
    case 'i32':
    case 'f64':
      leafCells.numbers = leafVector.values;
      return leafCells;
    case 'i64':
      leafCells.wide = leafVector.values;
      return leafCells;
    case 'bool':
      leafCells.bytes = leafVector.values;
      return leafCells;
    case 'vec':
      leafCells.floats = leafVector.values;
      leafCells.dims = leafVector.dims;
      leafCells.cellBytesMax = 4 + 4 * leafVector.dims;
      return leafCells;
  }
}

function cellFormOf(cellVector: Exclude<Vector, { kind: 'null' | 'dict' }>, columnType: ColumnType): CellForm {
  switch (cellVector.kind) {
    case 'text':
      return CellForm.text;
    case 'i32':
    case 'f64':
      return columnType === 'number' ? CellForm.number : CellForm.integer;
    case 'i64':
      return CellForm.wide;
    case 'bool':
      return CellForm.bool;
    case 'vec':
      return CellForm.vec;
  }
}

function longestTextCell(textOffsets: Uint32Array, rowCount: number): number {
  let longestBytes = 0;
  for (let i = 0; i < rowCount; i++) {
    const textBytes = textOffsets[i + 1]! - textOffsets[i]!;
    if (textBytes > longestBytes) longestBytes = textBytes;
  }
  return longestBytes;
}

const TEXT_VIEW_ROWS_MIN = 16;
const CELL_HEADS_MAX = 4096;
const cellHeadsByType = new Map<ColumnType, Map<string, CellHead>>(columnTypes.map((type) => [type, new Map()]));

/** Kept by name: for an entry of one row, making the heads would cost more than all the rest. */
function cellHead(columnName: string, columnType: ColumnType): CellHead {
  const headsOfType = cellHeadsByType.get(columnType)!;
  const knownHead = headsOfType.get(columnName);
  if (knownHead) return knownHead;
  const nameBytes = rowTextEncoder.encode(columnName);
  const headBytes = 3 + nameBytes.length;
  const paddedHead = new DataView(new ArrayBuffer((headBytes + 3) & ~3));
  paddedHead.setUint16(0, nameBytes.length);
  new Uint8Array(paddedHead.buffer).set(nameBytes, 2);
  paddedHead.setUint8(headBytes - 1, columnTypes.indexOf(columnType));
  const headWords = Uint32Array.from({ length: paddedHead.byteLength / 4 }, (_, i) => paddedHead.getUint32(i * 4));
  if (headsOfType.size >= CELL_HEADS_MAX) headsOfType.clear();
  const newCellHead = {
    name: columnName,
    words: headWords,
    bytes: headBytes,
    raw: new Uint8Array(paddedHead.buffer, 0, headBytes),
  };
  headsOfType.set(columnName, newCellHead);
  return newCellHead;
}

function writeLeafCell(
  leafCells: LeafCellSource,
  leafRow: number,
  leafBytes: Uint8Array,
  leafView: DataView,
  leafOffset: number,
): number {
  switch (leafCells.form) {
    case CellForm.text: {
      const { offsets, bytes, bytesView } = leafCells;
      const textStart = offsets[leafRow]!;
      const textByteCount = offsets[leafRow + 1]! - textStart;
      leafView.setUint32(leafOffset, textByteCount);
      if (textByteCount > 128) leafBytes.set(bytes.subarray(textStart, textStart + textByteCount), leafOffset + 4);
      else if (bytesView !== null && textStart + textByteCount + 3 < bytes.length) {
        for (let i = 0; i < textByteCount; i += 4) leafView.setUint32(leafOffset + 4 + i, bytesView.getUint32(textStart + i));
      } else for (let i = 0; i < textByteCount; i++) leafBytes[leafOffset + 4 + i] = bytes[textStart + i]!;
      return leafOffset + 4 + textByteCount;
    }
    case CellForm.integer:
      writeLeafInteger(leafCells.numbers[leafRow]!, leafView, leafOffset);
      return leafOffset + 8;
    case CellForm.number:
      leafView.setFloat64(leafOffset, leafCells.numbers[leafRow]!);
      return leafOffset + 8;
    case CellForm.wide:
      leafView.setBigInt64(leafOffset, leafCells.wide[leafRow]!);
      return leafOffset + 8;
    case CellForm.bool:
      leafBytes[leafOffset] = leafCells.bytes[leafRow]!;
      return leafOffset + 1;
    case CellForm.vec: {
      const { dims, floats } = leafCells;
      leafView.setUint32(leafOffset, dims);
      for (let i = 0; i < dims; i++) leafView.setFloat32(leafOffset + 4 + i * 4, floats[leafRow * dims + i]!);
      return leafOffset + 4 + dims * 4;
    }
  }
}

function writeValidBound(
  boundVector: Vector,
  leafRow: number,
  leafBytes: Uint8Array,
  leafView: DataView,
  leafOffset: number,
): number {
  if (boundVector.kind === 'null' || boundVector.nulls?.[leafRow] === 1) {
    leafBytes[leafOffset] = 0;
    return leafOffset + 1;
  }
  assert(boundVector.kind === 'i64', 'bounds are timestamps');
  leafBytes[leafOffset] = 1;
  leafView.setBigInt64(leafOffset + 1, boundVector.values[leafRow]!);
  return leafOffset + 9;
}

/** An exact integer of at most 2^53 as a big-endian i64. */
function writeLeafInteger(leafInteger: number, leafView: DataView, leafOffset: number): void {
  const highWord = Math.floor(leafInteger / 4_294_967_296);
  leafView.setInt32(leafOffset, highWord);
  leafView.setUint32(leafOffset + 4, leafInteger - highWord * 4_294_967_296);
}

function writeLeafText(leafText: string, leafOffset: number): number {
  if (leafText.length <= 64) {
    let i = 0;
    for (; i < leafText.length; i++) {
      const charCode = leafText.charCodeAt(i);
      if (charCode > 127) break;
      rowScratch[leafOffset + 4 + i] = charCode;
    }
    if (i === leafText.length) {
      rowScratchView.setUint32(leafOffset, i);
      return leafOffset + 4 + i;
    }
  }
  const { written } = rowTextEncoder.encodeInto(leafText, rowScratch.subarray(leafOffset + 4));
  rowScratchView.setUint32(leafOffset, written);
  return leafOffset + 4 + written;
}

function writeOptionalLeafText(leafText: string | null, leafOffset: number): number {
  rowScratch[leafOffset] = leafText === null ? 0 : 1;
  return leafText === null ? leafOffset + 1 : writeLeafText(leafText, leafOffset + 1);
}

/** Grows the scratch buffer and keeps its bytes: rows share the written prefix. */
function reserveScratch(leafBytesMax: number): void {
  if (leafBytesMax <= rowScratch.length) return;
  const grownScratch = new Uint8Array(Math.max(rowScratch.length * 2, leafBytesMax));
  grownScratch.set(rowScratch);
  rowScratch = grownScratch;
  rowScratchView = new DataView(rowScratch.buffer);
  rowViews.length = 0;
}
