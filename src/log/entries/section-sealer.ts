/** Writes what `subject-sections.ts` draws from the schema on: tables, cells, each section sealed under its key. */
import { assert } from '../../errors.ts';
import type { ByteWriter } from '../bytes/byte-stream.ts';
import { textOfDict } from './column-codec.ts';
import type { NamedColumn } from '../values/columns.ts';
import type { RowsBody } from './entry.ts';
import { SALT_BYTES, saltsOf } from './row-leaf.ts';
import { SECRET_BYTES, SECTION_NONCE_BYTES, SectionMemory } from './section-memory.ts';
import { HASH_BYTES } from '../bytes/sha256.ts';
import { columnsOf, SEED_BYTES, type SubjectSections, shapeOf, spreadSalts, wordsOf } from './subject-sections.ts';
import { columnTypes } from '../values/value.ts';

const BLOCK_BYTES = 64;
/** Bytes sealed between two yields: below a millisecond. */
const SLICE_BYTES = 256 << 10;
/** Cost of one section beside its bytes, in bytes. */
const SECTION_COST = 2 << 10;
/** Rows of which a column is written between two yields. */
const SLICE_ROWS = 8192;

export interface SealedSections {
  readonly bytes: Uint8Array;
  /** 16 bytes of each row. */
  readonly salts: Uint8Array;
  /** Leaf hashes of all rows, 32 bytes each, once they are known. */
  writeHashes(hashes: Uint8Array): void;
}

export function writeSchema({ keys, cells }: RowsBody, target: ByteWriter): void {
  for (const column of keys.columns) target.u8(shapeOf(column).layout);
  target.u32(cells.columns.length);
  for (const column of cells.columns) {
    const { name, type, layout, dims } = shapeOf(column);
    target.text(name);
    target.u8(columnTypes.indexOf(type));
    target.u8(layout);
    if (column.vector.kind === 'vec') target.u32(dims);
  }
}

/** `head` is what comes before the nonce. Neither nonce nor seed was used for another body. */
export function* sealSections(
  head: Uint8Array,
  body: RowsBody,
  sections: SubjectSections,
  nonce: Uint8Array,
  seed: Uint8Array,
): Generator<undefined, SealedSections> {
  assert(nonce.length === SECTION_NONCE_BYTES && seed.length === SEED_BYTES, 'a nonce and a seed');
  const rows = body.ops.length;
  const { ids, secrets, ends, rows: sealed } = sections;
  const count = ends.length;
  const columns: CellSource[] = [];
  for (const column of columnsOf(body)) if (column.vector.kind !== 'null') columns.push(new CellSource(column, rows));
  const fixed = head.length + SECTION_NONCE_BYTES + ids.length + count * 8 + SEED_BYTES + 8;
  const cells = columns.reduce((sum, { cellsBytes }) => sum + cellsBytes + rows + count + 1, 0);
  const target = new SectionWriter(fixed + sealed.length * (4 + HASH_BYTES + SALT_BYTES) + cells);
  target.raw(head);
  target.raw(nonce);
  target.u32(count);
  target.raw(ids);
  for (let s = 0; s < count; s++) target.u32(ends[s]! - (s > 0 ? ends[s - 1]! : 0));
  const sizesAt = target.skip(count * 4);
  for (let i = 0; i < sealed.length; i++) target.u32(sealed[i]!);
  const hashesAt = target.skip(sealed.length * HASH_BYTES);

  const salts = new Uint8Array(rows * SALT_BYTES);
  const open = rowsOfNobody(rows, sealed);
  if (open.length > 0) {
    target.raw(seed);
    const sizeAt = target.skip(4);
    for (const column of columns) {
      column.write(open, 0, open.length, target);
      if (open.length > SLICE_ROWS) yield;
    }
    target.view.setUint32(sizeAt, target.at - sizeAt - 4, true);
    spreadSalts(saltsOf(seed, open.length), 0, open, salts);
  }

  const { memory } = target;
  const { key } = memory;
  memory.setNonce(nonce);
  let cost = 0;
  for (let s = 0, first = 0; s < count; s++) {
    const end = ends[s]!;
    const start = target.at;
    // Zeros in front, which the keystream turns into the salts; the sealed cells then move to their place.
    const cellsAt = start + (end - first) * SALT_BYTES;
    target.bytes.fill(0, target.skip(cellsAt - start), cellsAt);
    for (let c = 0; c < columns.length; c++) {
      columns[c]!.write(sealed, first, end, target);
      if (end - first > SLICE_ROWS) yield;
    }
    for (let k = 0; k < SECRET_BYTES; k++) key[k] = secrets[s * SECRET_BYTES + k]!;
    for (let at = start; at < target.at; at += SLICE_BYTES) {
      memory.xor(at, Math.min(target.at, at + SLICE_BYTES), (at - start) / BLOCK_BYTES);
      if (target.at - at > SLICE_BYTES) yield;
    }
    spreadSalts(target.bytes, start, sealed, salts, first, end);
    target.bytes.copyWithin(start, cellsAt, target.at);
    target.view.setUint32(sizesAt + s * 4, target.at - cellsAt, true);
    target.at -= cellsAt - start;
    first = end;
    cost += target.at - start + SECTION_COST;
    if (cost < SLICE_BYTES) continue;
    cost = 0;
    yield;
  }
  assert(target.at <= target.bytes.length, 'what a body takes was counted');
  const bytes = Uint8Array.prototype.slice.call(target.bytes, 0, target.at);
  memory.giveBack();
  return {
    bytes,
    salts,
    writeHashes(hashes) {
      for (let i = 0, to = hashesAt; i < sealed.length; i++) {
        const from = sealed[i]! * HASH_BYTES;
        for (let k = 0; k < HASH_BYTES; k++) bytes[to++] = hashes[from + k]!;
      }
    },
  };
}

function rowsOfNobody(rows: number, sealed: Uint32Array): Uint32Array {
  const open = new Uint32Array(rows - sealed.length);
  if (open.length === 0) return open;
  const taken = new Uint8Array(rows);
  for (let i = 0; i < sealed.length; i++) taken[sealed[i]!] = 1;
  for (let row = 0, i = 0; row < rows; row++) if (taken[row] === 0) open[i++] = row;
  return open;
}

/** Memory of a size that is known to be enough: no write looks whether there is room, the end does. */
class SectionWriter {
  readonly memory: SectionMemory;
  readonly bytes: Buffer;
  readonly view: DataView;
  at = 0;

  constructor(size: number) {
    this.memory = SectionMemory.acquire(size);
    this.bytes = this.memory.bytes;
    this.view = this.memory.view;
  }

  u32(value: number): void {
    this.view.setUint32(this.at, value, true);
    this.at += 4;
  }

  raw(bytes: Uint8Array): void {
    this.bytes.set(bytes, this.at);
    this.at += bytes.length;
  }

  /** Where the bytes begin that are written later. */
  skip(bytes: number): number {
    const { at } = this;
    this.at += bytes;
    return at;
  }
}

const noWords = new Int32Array(0);
const noBytes = new Uint8Array(0);

/** A column as words, bytes or texts, whatever its type: one shape, because a loop over many shapes is several times slower. */
class CellSource {
  readonly cellsBytes: number;
  readonly #nulls: Uint8Array | null;
  /** Words of a cell; 0 where cells are bits or texts. */
  readonly #wordsEach: number;
  readonly #words: Int32Array = noWords;
  /** Bits, or what texts are made of. */
  readonly #bytes: Uint8Array = noBytes;
  readonly #offsets: Uint32Array | null = null;

  constructor(column: NamedColumn, rows: number) {
    const given = column.vector;
    const vector = given.kind === 'dict' ? textOfDict(given.values, given.dictionary, given.nulls, rows) : given;
    assert(vector.kind !== 'null' && vector.kind !== 'dict', 'a column with cells');
    this.#nulls = vector.nulls;
    this.#wordsEach = wordsOf(shapeOf(column));
    this.cellsBytes = rows * this.#wordsEach * 4;
    if (vector.kind === 'text') {
      this.#bytes = vector.heap;
      this.#offsets = vector.offsets;
      this.cellsBytes = rows * 4 + vector.offsets[rows]! - vector.offsets[0]!;
    } else if (vector.kind === 'bool') {
      this.#bytes = vector.values;
      this.cellsBytes = rows;
    } else this.#words = new Int32Array(vector.values.buffer, vector.values.byteOffset, rows * this.#wordsEach);
  }

  /** Cells of rows[first .. end]. */
  write(rows: Uint32Array, first: number, end: number, target: SectionWriter): void {
    const { bytes, view } = target;
    let at = target.at;
    const nulls = this.#nulls;
    bytes[at++] = 0;
    if (nulls !== null) {
      let some = 0;
      for (let i = first; i < end; i++) some |= nulls[rows[i]!]!;
      if (some === 1) {
        bytes[at - 1] = 1;
        for (let i = first; i < end; i++) bytes[at++] = nulls[rows[i]!]!;
      }
    }
    const offsets = this.#offsets;
    const source = this.#bytes;
    const words = this.#words;
    const each = this.#wordsEach;
    if (offsets !== null) {
      for (let i = first; i < end; i++, at += 4) view.setUint32(at, offsets[rows[i]! + 1]! - offsets[rows[i]!]!, true);
      for (let i = first; i < end; i++) {
        const from = offsets[rows[i]!]!;
        const to = offsets[rows[i]! + 1]!;
        if (to - from > 64) {
          bytes.set(source.subarray(from, to), at);
          at += to - from;
        } else for (let k = from; k < to; k++) bytes[at++] = source[k]!;
      }
    } else if (each === 1) {
      for (let i = first; i < end; i++, at += 4) view.setInt32(at, words[rows[i]!]!, true);
    } else if (each === 2) {
      for (let i = first; i < end; i++, at += 8) {
        view.setInt32(at, words[rows[i]! * 2]!, true);
        view.setInt32(at + 4, words[rows[i]! * 2 + 1]!, true);
      }
    } else if (each > 0) {
      for (let i = first; i < end; i++) {
        const from = rows[i]! * each;
        for (let k = from; k < from + each; k++, at += 4) view.setInt32(at, words[k]!, true);
      }
    } else for (let i = first; i < end; i++) bytes[at++] = source[rows[i]!]!;
    target.at = at;
  }
}
