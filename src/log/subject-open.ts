/**
 * Reads what `subject-seal.ts` wrote, from the schema on. Rows whose key is destroyed come without cells: of them their place
 * and leaf hash are left. Whatever the bytes say, no more memory is taken than they account for.
 */
import * as crypto from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { type ByteReader, malformed } from './byte-stream.ts';
import { checkBits, checkLayout, checkOffsets, kinds } from './column-codec.ts';
import type { NamedColumn, RowBatch, Vector } from './columns.ts';
import { keyColumns, SALT_BYTES, saltsOf } from './row-leaf.ts';
import { HASH_BYTES } from './sha256.ts';
import type { SubjectKeys } from './subject-keys.ts';
import {
  type ColumnShape,
  cellBytesMin,
  KEY_ID_BYTES,
  SECTION_NONCE_BYTES,
  SEED_BYTES,
  spreadSalts,
  wordsOf,
} from './subject-sections.ts';
import { columnTypes } from './value.ts';

export interface OpenedSections {
  readonly keys: RowBatch;
  readonly cells: RowBatch;
  /** 16 bytes of each row; zeros where a row is erased. */
  readonly salts: Uint8Array;
  /** Rows that are sealed by subject, and what the body states their leaf hashes to be, in the same order. */
  readonly sealed: { readonly rows: Uint32Array; readonly hashes: Uint8Array };
  /** Leaf hashes of the rows whose key is destroyed, ascending. */
  readonly erased: ReadonlyMap<number, Uint8Array>;
}

interface Tables {
  readonly shapes: readonly ColumnShape[];
  readonly nonce: Uint8Array;
  readonly ids: readonly string[];
}

/** Ids of the keys that open the sections of a body. */
export function readKeyIds(source: ByteReader): readonly string[] {
  return readTables(source).ids;
}

export function openSections(source: ByteReader, rows: number, subjects: Pick<SubjectKeys, 'opening'>): OpenedSections {
  const { shapes, nonce, ids } = readTables(source);
  const counts = ids.map(() => source.u32());
  const sizes = ids.map(() => source.u32());
  const taken = new Uint8Array(rows);
  const sealedRows = readRows(source, counts, taken);
  const sealedHashes = source.raw(sealedRows.length * HASH_BYTES);
  const cellsMin = shapes.reduce((sum, shape) => sum + cellBytesMin(shape), 0);
  const flags = shapes.filter(({ layout }) => layout !== kinds.null).length;

  const salts = new Uint8Array(rows * SALT_BYTES);
  const arena = new Arena(source.left);
  const parts: Part[] = [];
  const open = rowsLeft(taken, rows - sealedRows.length);
  if (open.length > 0) {
    const seed = source.raw(SEED_BYTES);
    const bytes = source.raw(source.u32());
    if (bytes.length < open.length * cellsMin + flags) throw malformed('cells too short for their rows');
    spreadSalts(saltsOf(seed, open.length), 0, open, salts);
    parts.push({ rows: open, ...arena.add(bytes, 0) });
  }

  const erased: [number, Uint8Array][] = [];
  const iv = new Uint8Array(16);
  iv.set(nonce);
  for (let s = 0, first = 0; s < ids.length; s++) {
    const end = first + counts[s]!;
    const sealed = source.raw(sizes[s]!);
    if (sealed.length < (end - first) * cellsMin + flags) throw malformed('a section too short for its rows');
    const key = subjects.opening(ids[s]!);
    const ofSection = sealedRows.subarray(first, end);
    if (key === null) {
      for (let i = first; i < end; i++)
        erased.push([sealedRows[i]!, sealedHashes.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES)]);
    } else {
      const saltBytes = ofSection.length * SALT_BYTES;
      const stream = decrypted(sealed, saltBytes, key, iv);
      spreadSalts(stream, 0, ofSection, salts);
      parts.push({ rows: ofSection, ...arena.add(stream, saltBytes) });
    }
    first = end;
  }
  erased.sort(([a], [b]) => a - b);
  const erasedRows = erased.map(([row]) => row);
  const cursors = parts.map(({ from }) => from);
  const columns = shapes.map(
    (shape): NamedColumn => ({
      name: shape.name,
      type: shape.type,
      vector: shape.layout === kinds.null ? { kind: 'null' } : readColumn(shape, rows, arena, parts, cursors, erasedRows),
    }),
  );
  if (parts.some(({ to }, i) => cursors[i] !== to)) throw malformed('a section with bytes after its end');
  return {
    keys: { length: rows, columns: columns.slice(0, 3) },
    cells: { length: rows, columns: columns.slice(3) },
    salts,
    sealed: { rows: sealedRows, hashes: sealedHashes },
    erased: new Map(erased),
  };
}

function readTables(source: ByteReader): Tables {
  const shapes: ColumnShape[] = keyColumns.map(({ name, type }) => {
    const layout = source.u8();
    if (layout !== kinds.null) checkLayout(type, layout);
    return { name, type, layout, dims: 0 };
  });
  const names = new Set<string>();
  for (let left = source.count(6); left > 0; left--) {
    const name = source.text();
    if (names.has(name)) throw malformed('a column twice');
    names.add(name);
    const type = columnTypes[source.u8()];
    if (type === undefined) throw malformed('an unknown column type');
    const layout = source.u8();
    if (layout !== kinds.null) checkLayout(type, layout);
    const dims = layout === kinds.vec ? source.u32() : 0;
    if (layout === kinds.vec && dims === 0) throw malformed('vectors of no dimension');
    shapes.push({ name, type, layout, dims });
  }
  const nonce = source.raw(SECTION_NONCE_BYTES);
  const count = source.count(KEY_ID_BYTES + 8);
  if (count === 0) throw malformed('rows sealed by subject without a section');
  const bytes = source.raw(count * KEY_ID_BYTES);
  const ids: string[] = [];
  const seen = new Set<string>();
  for (let s = 0; s < count; s++) {
    const id = Buffer.from(bytes.buffer, bytes.byteOffset + s * KEY_ID_BYTES, KEY_ID_BYTES).toString('hex');
    if (seen.has(id)) throw malformed('two sections under one key');
    seen.add(id);
    ids.push(id);
  }
  return { shapes, nonce, ids };
}

/** Section after section: every row once, ascending within a section, sections in order of their first rows. */
function readRows(source: ByteReader, counts: readonly number[], taken: Uint8Array): Uint32Array {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total > taken.length) throw malformed('more rows in sections than there are');
  const rows = new Uint32Array(total);
  let at = 0;
  let lastFirst = -1;
  for (const count of counts) {
    if (count === 0) throw malformed('a section without a row');
    let last = lastFirst;
    for (let i = 0; i < count; i++) {
      const row = source.u32();
      if (row <= last) throw malformed('rows of sections out of order');
      if (row >= taken.length || taken[row] === 1) throw malformed('a row that is not there, or in two sections');
      taken[row] = 1;
      rows[at++] = last = row;
      if (i === 0) lastFirst = row;
    }
  }
  return rows;
}

function rowsLeft(taken: Uint8Array, count: number): Uint32Array {
  const rows = new Uint32Array(count);
  if (count > 0) for (let row = 0, i = 0; row < taken.length; row++) if (taken[row] === 0) rows[i++] = row;
  return rows;
}

let scratch = Buffer.alloc(1 << 14);

/** The salts of a section, then its cells. */
function decrypted(sealed: Uint8Array, saltBytes: number, key: KeyObject, iv: Uint8Array): Buffer {
  const size = saltBytes + sealed.length;
  const source =
    size <= scratch.length ? scratch : size <= SCRATCH_BYTES_MAX ? (scratch = Buffer.alloc(size * 2)) : Buffer.alloc(size);
  source.fill(0, 0, saltBytes);
  source.set(sealed, saltBytes);
  return crypto.createDecipheriv('aes-256-ctr', key, iv).update(source.subarray(0, size));
}

const SCRATCH_BYTES_MAX = 1 << 20;

/** The cells of rows, between two places of the arena. */
interface Part {
  readonly rows: Uint32Array;
  readonly from: number;
  readonly to: number;
}

/** Cells of all sections that are open, one after the other. */
class Arena {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  #at = 0;

  constructor(size: number) {
    this.bytes = new Uint8Array(size);
    this.view = new DataView(this.bytes.buffer);
  }

  /** Bytes from `first` on. */
  add(bytes: Uint8Array, first: number): { readonly from: number; readonly to: number } {
    const from = this.#at;
    this.bytes.set(first === 0 ? bytes : bytes.subarray(first), from);
    this.#at += bytes.length - first;
    return { from, to: this.#at };
  }
}

/** The next column of every part, as one vector over all rows. */
function readColumn(
  shape: ColumnShape,
  rows: number,
  arena: Arena,
  parts: readonly Part[],
  cursors: number[],
  erased: readonly number[],
): Vector {
  const { bytes, view } = arena;
  const words = wordsOf(shape);
  const isText = shape.layout === kinds.text;
  const cells = new Cells(rows, words, isText);
  for (const row of erased) cells.nullAt(row);
  for (let p = 0; p < parts.length; p++) {
    const { rows: ofPart, to } = parts[p]!;
    let at = cursors[p]!;
    const has = at < to ? bytes[at++]! : 2;
    if (has > 1) throw malformed('a flag that is neither 0 nor 1');
    const each = isText ? 4 : words > 0 ? words * 4 : 1;
    if (ofPart.length * (has + each) > to - at) throw malformed('a section that ends early');
    if (has === 1) {
      if (checkBits(bytes.subarray(at, at + ofPart.length)) === 0) throw malformed('a null map without a NULL');
      for (let i = 0; i < ofPart.length; i++) if (bytes[at++] === 1) cells.nullAt(ofPart[i]!);
    }
    if (isText) {
      let cellAt = at + ofPart.length * 4;
      for (let i = 0; i < ofPart.length; i++, at += 4) {
        const size = view.getUint32(at, true);
        if (size > to - cellAt) throw malformed('a text beyond the end of its section');
        cells.starts[ofPart[i]!] = cellAt;
        cells.words[ofPart[i]!] = size;
        cellAt += size;
      }
      at = cellAt;
    } else if (words > 0) {
      for (let i = 0; i < ofPart.length; i++) {
        for (let k = ofPart[i]! * words; k < (ofPart[i]! + 1) * words; k++, at += 4) cells.words[k] = view.getInt32(at, true);
      }
    } else for (let i = 0; i < ofPart.length; i++) cells.bits[ofPart[i]!] = bytes[at++]!;
    cursors[p] = at;
  }
  return cells.vector(shape, bytes);
}

class Cells {
  /** Values; of texts how long they are. */
  readonly words: Int32Array;
  readonly bits: Uint8Array;
  /** Where texts begin. */
  readonly starts: Uint32Array;
  readonly #rows: number;
  #nulls: Uint8Array | null = null;

  constructor(rows: number, words: number, isText: boolean) {
    this.#rows = rows;
    this.words = new Int32Array(isText ? rows : rows * words);
    this.starts = new Uint32Array(isText ? rows : 0);
    this.bits = new Uint8Array(isText || words > 0 ? 0 : rows);
  }

  nullAt(row: number): void {
    this.#nulls ??= new Uint8Array(this.#rows);
    this.#nulls[row] = 1;
  }

  vector({ layout, dims }: ColumnShape, arena: Uint8Array): Vector {
    const { buffer } = this.words;
    const nulls = this.#nulls;
    switch (layout) {
      case kinds.i32:
        return { kind: 'i32', values: this.words, nulls };
      case kinds.f64:
        return { kind: 'f64', values: new Float64Array(buffer), nulls };
      case kinds.i64:
        return { kind: 'i64', values: new BigInt64Array(buffer), nulls };
      case kinds.vec:
        return { kind: 'vec', values: new Float32Array(buffer), dims, nulls };
      case kinds.bool:
        checkBits(this.bits);
        return { kind: 'bool', values: this.bits, nulls };
      default:
        return this.#texts(arena);
    }
  }

  /** Runs of cells that lie one after the other are copied at once. */
  #texts(arena: Uint8Array): Vector {
    const rows = this.#rows;
    const { words: sizes, starts } = this;
    const offsets = new Uint32Array(rows + 1);
    for (let row = 0; row < rows; row++) offsets[row + 1] = offsets[row]! + sizes[row]!;
    const heap = new Uint8Array(offsets[rows]!);
    for (let row = 0, at = 0; row < rows; ) {
      const from = starts[row]!;
      let to = from + sizes[row]!;
      for (row++; row < rows && starts[row] === to; row++) to += sizes[row]!;
      if (to - from > 64) heap.set(arena.subarray(from, to), at);
      else for (let k = from; k < to; k++) heap[at + k - from] = arena[k]!;
      at += to - from;
    }
    checkOffsets(offsets, heap);
    return { kind: 'text', offsets, heap, nulls: this.#nulls };
  }
}
