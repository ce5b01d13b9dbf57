/**
 * Reads the sections of `section-sealer.ts`, from the schema on. Rows whose key is destroyed come without cells: their index and
 * leaf hash are left. Malformed bytes never allocate more memory than they account for.
 */
import { type ByteReader, malformedError } from '../bytes/byte-stream.ts';
import { checkBits, checkLayout, checkOffsets, kinds } from './column-codec.ts';
import type { NamedColumn, RowBatch, Vector } from '../values/columns.ts';
import { keyColumns, SALT_BYTES, saltsOf } from './row-leaf.ts';
import { SECTION_NONCE_BYTES, SectionMemory } from './section-memory.ts';
import { HASH_BYTES, hexOf } from '../bytes/sha256.ts';
import type { SubjectKeys } from '../keys/subject-keys.ts';
import { type ColumnShape, cellBytesMin, KEY_ID_BYTES, SEED_BYTES, keyNames, spreadSalts, wordsOf } from './subject-sections.ts';
import { type ColumnType, columnTypes } from '../values/value.ts';

export interface OpenedSections {
  readonly keys: RowBatch;
  readonly cells: RowBatch;
  /** 16 bytes of each row; zeros where a row is erased. */
  readonly salts: Uint8Array;
  /** Rows that are sealed by subject, and the leaf hashes that the body states for them, in the same order. */
  readonly sealed: { readonly rows: Uint32Array; readonly hashes: Uint8Array };
  /** Leaf hashes of the rows whose key is destroyed, ascending. */
  readonly erased: ReadonlyMap<number, Uint8Array>;
}

interface Tables {
  readonly shapes: readonly ColumnShape[];
  readonly nonce: Uint8Array;
  readonly count: number;
  /** 16 bytes each. */
  readonly ids: Uint8Array;
}

/** Ids of the keys that open the sections of a body, 16 bytes each. */
export function readKeyIds(source: ByteReader): Uint8Array {
  const { ids } = readTables(source);
  checkKeyIds(ids);
  return ids;
}

/** Which key each row of a body lies under, as the body says. Opens nothing. */
export class RowKeys {
  readonly #ids: Uint8Array;
  /** By row: the number of its section, counted from 1; 0 without one. */
  readonly #sections: Uint32Array;

  private constructor(ids: Uint8Array, sections: Uint32Array) {
    this.#ids = ids;
    this.#sections = sections;
  }

  static read(source: ByteReader, rows: number): RowKeys {
    const { count, ids } = readTables(source);
    const counts = readNumbers(source, count);
    readNumbers(source, count);
    const sealed = readRows(source, counts, new Uint8Array(rows));
    const sections = new Uint32Array(rows);
    for (let s = 0, at = 0; s < count; s++) for (const end = at + counts[s]!; at < end; at++) sections[sealed[at]!] = s + 1;
    return new RowKeys(ids, sections);
  }

  /** Keys of rows without a subject. */
  static none(rows: number): RowKeys {
    return new RowKeys(new Uint8Array(0), new Uint32Array(rows));
  }

  /** Joins the keys of several parts, their sections numbered on. */
  static join(parts: readonly RowKeys[]): RowKeys {
    const sections: number[] = [];
    let before = 0;
    for (const part of parts) {
      for (const section of part.#sections) sections.push(section === 0 ? 0 : before + section);
      before += part.#ids.length / KEY_ID_BYTES;
    }
    return new RowKeys(Uint8Array.from(Buffer.concat(parts.map((part) => part.#ids))), Uint32Array.from(sections));
  }

  /** 32 hex digits; null where the row is not sealed by subject. */
  keyIdOf(row: number): string | null {
    const section = this.#sections[row] ?? 0;
    return section === 0 ? null : hexOf(this.#ids.subarray((section - 1) * KEY_ID_BYTES, section * KEY_ID_BYTES));
  }
}

export function openSections(source: ByteReader, rows: number, subjects: Pick<SubjectKeys, 'copyKey'>): OpenedSections {
  const tables = readTables(source);
  checkKeyIds(tables.ids);
  const counts = readNumbers(source, tables.count);
  const sizes = readNumbers(source, tables.count);
  const taken = new Uint8Array(rows);
  const sealedRows = readRows(source, counts, taken);
  const sealed = { rows: sealedRows, hashes: source.raw(sealedRows.length * HASH_BYTES) };
  const memory = SectionMemory.acquire(source.left + sealedRows.length * SALT_BYTES);
  try {
    return new Opening(source, tables, memory).open(counts, sizes, sealed, taken, subjects);
  } finally {
    memory.giveBack();
  }
}

function readTables(source: ByteReader): Tables {
  const shapes: ColumnShape[] = keyColumns.map(({ name, type }) => ({ name, type, ...readLayout(source, type) }));
  const names = new Set<string>();
  for (let left = source.count(6); left > 0; left--) {
    const name = source.text();
    if (names.has(name)) throw malformedError('a column twice');
    names.add(name);
    const type = columnTypes[source.u8()];
    if (type === undefined) throw malformedError('an unknown column type');
    shapes.push({ name, type, ...readLayout(source, type) });
  }
  const nonce = source.raw(SECTION_NONCE_BYTES);
  const count = source.count(KEY_ID_BYTES + 8);
  if (count === 0) throw malformedError('rows sealed by subject without a section');
  return { shapes, nonce, count, ids: source.raw(count * KEY_ID_BYTES) };
}

function checkKeyIds(ids: Uint8Array): void {
  if (new Set(keyNames(ids)).size * KEY_ID_BYTES < ids.length) throw malformedError('two sections under one key');
}

function readLayout(source: ByteReader, type: ColumnType): Pick<ColumnShape, 'layout' | 'dims'> {
  const layout = source.u8();
  if (layout !== kinds.null) checkLayout(type, layout);
  const dims = layout === kinds.vec ? source.u32() : 0;
  if (layout === kinds.vec && dims === 0) throw malformedError('vectors of no dimension');
  return { layout, dims };
}

function readNumbers(source: ByteReader, count: number): Uint32Array {
  const numbers = new Uint32Array(count);
  for (let i = 0; i < count; i++) numbers[i] = source.u32();
  return numbers;
}

/** Section after section: every row once, ascending within a section, sections in order of their first rows. */
function readRows(source: ByteReader, counts: Uint32Array, taken: Uint8Array): Uint32Array {
  let total = 0;
  for (const count of counts) total += count;
  if (total > taken.length) throw malformedError('more rows in sections than there are');
  const rows = new Uint32Array(total);
  let at = 0;
  let lastFirst = -1;
  for (const count of counts) {
    if (count === 0) throw malformedError('a section without a row');
    let last = lastFirst;
    for (let i = 0; i < count; i++) {
      const row = source.u32();
      if (row <= last) throw malformedError('rows of sections out of order');
      if (row >= taken.length || taken[row] === 1) throw malformedError('a row that is not there, or in two sections');
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

/** Cells of rows[first .. end], not read yet from `at` to `to`. */
class Part {
  readonly rows: Uint32Array;
  readonly first: number;
  readonly end: number;
  readonly to: number;
  at: number;

  constructor(rows: Uint32Array, first: number, end: number, at: number, to: number) {
    this.rows = rows;
    this.first = first;
    this.end = end;
    this.at = at;
    this.to = to;
  }
}

/** The opened part of one body: the cells of all sections that have a key, one after the other in memory. */
class Opening {
  readonly #source: ByteReader;
  readonly #tables: Tables;
  readonly #memory: SectionMemory;
  readonly #parts: Part[] = [];
  /** Bytes that a row takes at least, and a section's flags before its rows. */
  readonly #rowBytes: number;
  readonly #flagBytes: number;
  #at = 0;

  constructor(source: ByteReader, tables: Tables, memory: SectionMemory) {
    this.#source = source;
    this.#tables = tables;
    this.#memory = memory;
    this.#rowBytes = tables.shapes.reduce((sum, shape) => sum + cellBytesMin(shape), 0);
    this.#flagBytes = tables.shapes.filter(({ layout }) => layout !== kinds.null).length;
  }

  open(
    counts: Uint32Array,
    sizes: Uint32Array,
    sealed: OpenedSections['sealed'],
    taken: Uint8Array,
    subjects: Pick<SubjectKeys, 'copyKey'>,
  ): OpenedSections {
    const { count, nonce, shapes } = this.#tables;
    const rows = taken.length;
    const salts = new Uint8Array(rows * SALT_BYTES);
    const open = rowsLeft(taken, rows - sealed.rows.length);
    if (open.length > 0) this.#addOpen(open, salts);
    this.#memory.setNonce(nonce);
    const erased: [number, Uint8Array][] = [];
    for (let s = 0, first = 0; s < count; s++) {
      const end = first + counts[s]!;
      const bytes = this.#raw(sizes[s]!, end - first);
      if (subjects.copyKey(this.#idAt(s), this.#memory.key, 0)) this.#addSealed(bytes, sealed.rows, first, end, salts);
      else
        for (let i = first; i < end; i++)
          erased.push([sealed.rows[i]!, sealed.hashes.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES)]);
      first = end;
    }
    erased.sort(([a], [b]) => a - b);
    const without = new Map(erased);
    const columns = shapes.map((shape): NamedColumn => {
      const vector: Vector = shape.layout === kinds.null ? { kind: 'null' } : this.#column(shape, rows, without);
      return { name: shape.name, type: shape.type, vector };
    });
    if (this.#parts.some(({ at, to }) => at !== to)) throw malformedError('a section with bytes after its end');
    const [keys, cells] = [columns.slice(0, keyColumns.length), columns.slice(keyColumns.length)];
    return { keys: { length: rows, columns: keys }, cells: { length: rows, columns: cells }, salts, sealed, erased: without };
  }

  #idAt(section: number): Uint8Array {
    return this.#tables.ids.subarray(section * KEY_ID_BYTES, (section + 1) * KEY_ID_BYTES);
  }

  #raw(size: number, rows: number): Uint8Array {
    if (size < rows * this.#rowBytes + this.#flagBytes) throw malformedError('a section too short for its rows');
    return this.#source.raw(size);
  }

  #addOpen(open: Uint32Array, salts: Uint8Array): void {
    spreadSalts(saltsOf(this.#source.raw(SEED_BYTES), open.length), 0, open, salts);
    const bytes = this.#raw(this.#source.u32(), open.length);
    this.#memory.bytes.set(bytes, 0);
    this.#parts.push(new Part(open, 0, open.length, 0, bytes.length));
    this.#at = bytes.length;
  }

  /** The keystream begins with the salts: zeros in front of what is sealed show them. */
  #addSealed(sealed: Uint8Array, rows: Uint32Array, first: number, end: number, salts: Uint8Array): void {
    const { bytes } = this.#memory;
    const start = this.#at;
    const cellsAt = start + (end - first) * SALT_BYTES;
    const to = cellsAt + sealed.length;
    bytes.fill(0, start, cellsAt);
    bytes.set(sealed, cellsAt);
    this.#memory.xor(start, to);
    spreadSalts(bytes, start, rows, salts, first, end);
    this.#parts.push(new Part(rows, first, end, cellsAt, to));
    this.#at = to;
  }

  /** The next column of every part, as one vector over all rows. */
  #column(shape: ColumnShape, rows: number, erased: ReadonlyMap<number, unknown>): Vector {
    const { bytes, view } = this.#memory;
    const words = wordsOf(shape);
    const isText = shape.layout === kinds.text;
    const cells = new Cells(rows, words, isText);
    for (const row of erased.keys()) cells.nullAt(row);
    const each = isText ? 4 : words > 0 ? words * 4 : 1;
    for (const part of this.#parts) {
      const { rows: of, first, end, to } = part;
      const count = end - first;
      let { at } = part;
      const has = at < to ? bytes[at++]! : 2;
      if (has > 1) throw malformedError('a flag that is neither 0 nor 1');
      if (count * (has + each) > to - at) throw malformedError('a section that ends early');
      if (has === 1) {
        if (checkBits(bytes.subarray(at, at + count)) === 0) throw malformedError('a null map without a NULL');
        for (let i = first; i < end; i++) if (bytes[at++] === 1) cells.nullAt(of[i]!);
      }
      if (isText) {
        let cellAt = at + count * 4;
        for (let i = first; i < end; i++, at += 4) {
          const size = view.getUint32(at, true);
          if (size > to - cellAt) throw malformedError('a text beyond the end of its section');
          cells.starts[of[i]!] = cellAt;
          cells.words[of[i]!] = size;
          cellAt += size;
        }
        at = cellAt;
      } else if (words > 0) {
        for (let i = first; i < end; i++) {
          for (let k = of[i]! * words; k < (of[i]! + 1) * words; k++, at += 4) cells.words[k] = view.getInt32(at, true);
        }
      } else for (let i = first; i < end; i++) cells.bits[of[i]!] = bytes[at++]!;
      part.at = at;
    }
    return cells.vector(shape, bytes);
  }
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
