/**
 * Rows of a body that belong to subjects, and the bytes of such a body. The rows of one subject lie in a section of their own,
 * sealed under the subject's key inside the body, which is sealed under the data key like any other. Forgetting 32 bytes then
 * erases these rows wherever the body was copied to, and no hash changes.
 *
 *   body      +-----------+---------+-----------+----------+--------+--------+------------+
 *             | version 3 | kind u8 | type text | rows u32 | ops[n] | closes | provenance |  as in version 1
 *             +-----------+---------+-----------+----------+--------+--------+------------+
 *             | schema | nonce [12] | sections u32 | key id [16] each | rows u32 each | bytes u32 each |
 *             +--------+------------+--------------+------------------+---------------+----------------+
 *             | row number u32 of each sealed row | leaf hash [32] of each |  section after section, rows of one ascending
 *             +-----------------------------------+------------------------+
 *             | seed [32], bytes u32, cells of the rows that are nobody's |  where there are some
 *             +-----------------------------------------------------------+
 *             | sealed cells of one section after the other |
 *             +---------------------------------------------+
 *   schema    layouts u8 of the three key columns, columns u32; each: name text, type u8, layout u8, of vectors dims u32
 *   cells     column after column, keys first, none of a column that is NULL throughout:
 *             nulls u8, if 1 a byte a row, then values of 1, 4 or 8 bytes, or dims of 4; of texts all lengths u32, then the bytes
 *
 * Sections are sealed with ChaCha20 (RFC 8439): the body around them is authenticated, its size and the row hashes as well.
 * The keystream of a section begins with the salts of its rows, 16 bytes each, which are thus written nowhere, and are as
 * unknown as the cells once the key is gone. It counts from (nonce, 0): a nonce is used for one body (see `EntrySealer`),
 * a key for one section of a body, and a body is shorter than 2^32 blocks, so no block of a keystream is used twice.
 * Changing this needs a new body version and a fixture.
 */
import { assert } from '../../errors.ts';
import { kinds } from './column-codec.ts';
import type { NamedColumn, Vector } from '../values/columns.ts';
import type { RowsBody } from './entry.ts';
import { SALT_BYTES } from './row-leaf.ts';
import { SECRET_BYTES } from './section-memory.ts';
import { HASH_BYTES } from '../bytes/sha256.ts';
import type { SubjectKey } from '../keys/recent-subject-keys.ts';
import type { ColumnType } from '../values/value.ts';

export const KEY_ID_BYTES = 16;
export const SEED_BYTES = 32;

/** Maps rows of a body to subjects: sealing needs it beside the rows. */
export interface SubjectSections {
  /** 16 bytes each, no two alike. */
  readonly ids: Uint8Array;
  /** 32 bytes each. */
  readonly secrets: Uint8Array;
  /** Where the rows of each section end in `rows`. */
  readonly ends: Uint32Array;
  /** Section after section in order of their first rows; rows ascending within each. */
  readonly rows: Uint32Array;
  /** More than the body grows by when it is sealed this way. */
  readonly extraBytes: number;
}

export type KeyOfSubject = (subject: string) => SubjectKey;

const NOBODY = -1;

/** Null where no row has a subject. */
export function sectionsOf(body: RowsBody, keyOf: KeyOfSubject): SubjectSections | null {
  const { subjects } = body;
  if (subjects === undefined || subjects.kind === 'null') return null;
  assert(subjects.kind === 'text' || subjects.kind === 'dict', 'subjects are texts');
  const grouping = new Grouping(keyOf);
  const rows = body.ops.length;
  const subjectCount = subjects.kind === 'text' ? subjects.offsets.length - 1 : subjects.values.length;
  assert(subjectCount >= rows, 'it is told of every row whose it is');
  const ofRow = new Int32Array(rows);
  const { nulls } = subjects;
  let sealed = 0;
  // Rows of one subject often follow each other, and a code needs no text.
  const ofCode: number[] = [];
  let last = -1;
  const textOf = subjects.kind === 'text' ? textsOf(subjects) : (code: number) => subjects.dictionary.text(code);
  for (let row = 0; row < rows; row++) {
    if (nulls?.[row] === 1) {
      ofRow[row] = NOBODY;
      continue;
    }
    if (subjects.kind === 'dict') {
      const code = subjects.values[row]!;
      ofRow[row] = ofCode[code] ??= grouping.sectionOf(textOf(code));
    } else {
      ofRow[row] = last >= 0 && sameText(subjects, last, row) ? ofRow[last]! : grouping.sectionOf(textOf(row));
      last = row;
    }
    sealed++;
  }
  return sealed === 0 ? null : grouping.sections(ofRow, sealed, columnsOf(body).length);
}

class Grouping {
  readonly #keyOf: KeyOfSubject;
  readonly #ofSubject = new Map<string, number>();
  readonly #keys: SubjectKey[] = [];

  constructor(keyOf: KeyOfSubject) {
    this.#keyOf = keyOf;
  }

  sectionOf(subject: string): number {
    const known = this.#ofSubject.get(subject);
    if (known !== undefined) return known;
    const section = this.#keys.push(this.#keyOf(subject)) - 1;
    this.#ofSubject.set(subject, section);
    return section;
  }

  sections(ofRow: Int32Array, sealed: number, columns: number): SubjectSections {
    const count = this.#keys.length;
    const ids = Buffer.alloc(count * KEY_ID_BYTES);
    const secrets = new Uint8Array(count * SECRET_BYTES);
    for (let s = 0; s < count; s++) {
      const key = this.#keys[s]!;
      const written = ids.write(key.id, s * KEY_ID_BYTES, 'hex');
      assert(written === KEY_ID_BYTES && key.id.length === KEY_ID_BYTES * 2, 'an id is 32 hex digits');
      key.copyTo(secrets, s * SECRET_BYTES);
    }
    assert(allDiffer(ids, KEY_ID_BYTES), 'no key has two sections, whose streams would be one');
    const ends = new Uint32Array(count);
    for (const section of ofRow) if (section !== NOBODY) ends[section]!++;
    let start = 0;
    for (let section = 0; section < ends.length; section++) {
      const rowsOf = ends[section]!;
      ends[section] = start;
      start += rowsOf;
    }
    const rows = new Uint32Array(sealed);
    for (let row = 0; row < ofRow.length; row++) {
      const section = ofRow[row]!;
      if (section !== NOBODY) rows[ends[section]!++] = row;
    }
    const extraBytes = 256 + columns * 16 + sealed * (4 + HASH_BYTES) + count * (KEY_ID_BYTES + 8 + columns);
    return { ids, secrets, ends, rows, extraBytes };
  }
}

type TextVector = Extract<Vector, { kind: 'text' }>;

function sameText({ offsets, heap }: TextVector, a: number, b: number): boolean {
  const from = offsets[a]!;
  const size = offsets[a + 1]! - from;
  const other = offsets[b]!;
  if (offsets[b + 1]! - other !== size) return false;
  for (let i = 0; i < size; i++) if (heap[from + i] !== heap[other + i]) return false;
  return true;
}

/** Flat strings, which a map takes without looking at them twice. */
function textsOf({ offsets, heap }: TextVector): (row: number) => string {
  const bytes = Buffer.from(heap.buffer, heap.byteOffset, heap.length);
  return (row) => bytes.toString('utf8', offsets[row]!, offsets[row + 1]!);
}

/** Whether random values of `size` bytes each all differ; they are compared by their first four bytes. */
function allDiffer(bytes: Uint8Array, size: number): boolean {
  const count = bytes.length / size;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let slotCount = 8;
  while (slotCount < count * 2) slotCount *= 2;
  const table = new Int32Array(slotCount);
  for (let i = 0; i < count; i++) {
    let slot = view.getUint32(i * size) & (slotCount - 1);
    for (; table[slot] !== 0; slot = (slot + 1) & (slotCount - 1)) {
      const other = table[slot]! - 1;
      let k = 0;
      while (k < size && bytes[other * size + k] === bytes[i * size + k]) k++;
      if (k === size) return false;
    }
    table[slot] = i + 1;
  }
  return true;
}

/** The schema of a column. */
export interface ColumnShape {
  readonly name: string;
  readonly type: ColumnType;
  readonly layout: number;
  readonly dims: number;
}

export function shapeOf({ name, type, vector }: NamedColumn): ColumnShape {
  return {
    name,
    type,
    layout: kinds[vector.kind === 'dict' ? 'text' : vector.kind],
    dims: vector.kind === 'vec' ? vector.dims : 0,
  };
}

/** Words of four bytes that a cell of a column takes; 0 of texts, bits and NULL. */
export function wordsOf({ layout, dims }: ColumnShape): number {
  switch (layout) {
    case kinds.i32:
      return 1;
    case kinds.f64:
    case kinds.i64:
      return 2;
    case kinds.vec:
      return dims;
    default:
      return 0;
  }
}

/** Bytes that a cell takes at least. */
export function cellBytesMin(shape: ColumnShape): number {
  if (shape.layout === kinds.text) return 4;
  return shape.layout === kinds.bool ? 1 : wordsOf(shape) * 4;
}

/** All columns in the order in which their cells are written. */
export function columnsOf({ keys, cells }: RowsBody): readonly NamedColumn[] {
  return [...keys.columns, ...cells.columns];
}

/** Salts of rows[first .. end], which lie one after the other, to the places of these rows. */
export function spreadSalts(
  source: Uint8Array,
  at: number,
  rows: Uint32Array,
  salts: Uint8Array,
  first = 0,
  end = rows.length,
): void {
  for (let i = first, from = at; i < end; i++) {
    const to = rows[i]! * SALT_BYTES;
    for (let k = 0; k < SALT_BYTES; k++) salts[to + k] = source[from++]!;
  }
}

/** Ids as texts of 16 characters. */
export function keyNames(ids: Uint8Array): string[] {
  const bytes = Buffer.from(ids.buffer, ids.byteOffset, ids.length);
  return Array.from({ length: ids.length / KEY_ID_BYTES }, (_, i) =>
    bytes.toString('latin1', i * KEY_ID_BYTES, (i + 1) * KEY_ID_BYTES),
  );
}
