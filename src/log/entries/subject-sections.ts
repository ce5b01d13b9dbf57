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

const NO_SUBJECT = -1;

/** Null where no row has a subject. */
export function sectionsOf(rowsBody: RowsBody, keyOfSubject: KeyOfSubject): SubjectSections | null {
  const { subjects } = rowsBody;
  if (subjects === undefined || subjects.kind === 'null') return null;
  assert(subjects.kind === 'text' || subjects.kind === 'dict', 'subjects are texts');
  const subjectGrouping = new SubjectGrouping(keyOfSubject);
  const rowCount = rowsBody.ops.length;
  const subjectCount = subjects.kind === 'text' ? subjects.offsets.length - 1 : subjects.values.length;
  assert(subjectCount >= rowCount, 'it is told of every row whose it is');
  const sectionOfRow = new Int32Array(rowCount);
  const { nulls } = subjects;
  let sealedRowCount = 0;
  // Rows of one subject often follow each other, and a code needs no text.
  const sectionOfCode: number[] = [];
  let lastSubjectRow = -1;
  const subjectTextOf =
    subjects.kind === 'text' ? subjectTextsOf(subjects) : (subjectCode: number) => subjects.dictionary.text(subjectCode);
  for (let subjectRow = 0; subjectRow < rowCount; subjectRow++) {
    if (nulls?.[subjectRow] === 1) {
      sectionOfRow[subjectRow] = NO_SUBJECT;
      continue;
    }
    if (subjects.kind === 'dict') {
      const subjectCode = subjects.values[subjectRow]!;
      sectionOfRow[subjectRow] = sectionOfCode[subjectCode] ??= subjectGrouping.sectionOf(subjectTextOf(subjectCode));
    } else {
      sectionOfRow[subjectRow] =
        lastSubjectRow >= 0 && isSameSubjectText(subjects, lastSubjectRow, subjectRow)
          ? sectionOfRow[lastSubjectRow]!
          : subjectGrouping.sectionOf(subjectTextOf(subjectRow));
      lastSubjectRow = subjectRow;
    }
    sealedRowCount++;
  }
  return sealedRowCount === 0 ? null : subjectGrouping.sections(sectionOfRow, sealedRowCount, columnsOf(rowsBody).length);
}

class SubjectGrouping {
  readonly #keyOfSubject: KeyOfSubject;
  readonly #sectionBySubject = new Map<string, number>();
  readonly #sectionKeys: SubjectKey[] = [];

  constructor(keyOf: KeyOfSubject) {
    this.#keyOfSubject = keyOf;
  }

  sectionOf(subject: string): number {
    const knownSection = this.#sectionBySubject.get(subject);
    if (knownSection !== undefined) return knownSection;
    const newSection = this.#sectionKeys.push(this.#keyOfSubject(subject)) - 1;
    this.#sectionBySubject.set(subject, newSection);
    return newSection;
  }

  sections(sectionOfRow: Int32Array, sealedRowCount: number, columns: number): SubjectSections {
    const sectionCount = this.#sectionKeys.length;
    const subjectKeyIds = Buffer.alloc(sectionCount * KEY_ID_BYTES);
    const keySecrets = new Uint8Array(sectionCount * SECRET_BYTES);
    for (let sectionIndex = 0; sectionIndex < sectionCount; sectionIndex++) {
      const sectionKey = this.#sectionKeys[sectionIndex]!;
      const writtenIdBytes = subjectKeyIds.write(sectionKey.id, sectionIndex * KEY_ID_BYTES, 'hex');
      assert(writtenIdBytes === KEY_ID_BYTES && sectionKey.id.length === KEY_ID_BYTES * 2, 'an id is 32 hex digits');
      sectionKey.copyTo(keySecrets, sectionIndex * SECRET_BYTES);
    }
    assert(haveDistinctKeyIds(subjectKeyIds, KEY_ID_BYTES), 'no key has two sections, whose streams would be one');
    const sectionEnds = new Uint32Array(sectionCount);
    for (const section of sectionOfRow) if (section !== NO_SUBJECT) sectionEnds[section]!++;
    let sectionStart = 0;
    for (let section = 0; section < sectionEnds.length; section++) {
      const sectionRowCount = sectionEnds[section]!;
      sectionEnds[section] = sectionStart;
      sectionStart += sectionRowCount;
    }
    const sealedRows = new Uint32Array(sealedRowCount);
    for (let row = 0; row < sectionOfRow.length; row++) {
      const section = sectionOfRow[row]!;
      if (section !== NO_SUBJECT) sealedRows[sectionEnds[section]!++] = row;
    }
    const extraBytes = 256 + columns * 16 + sealedRowCount * (4 + HASH_BYTES) + sectionCount * (KEY_ID_BYTES + 8 + columns);
    return { ids: subjectKeyIds, secrets: keySecrets, ends: sectionEnds, rows: sealedRows, extraBytes };
  }
}

type SubjectTextVector = Extract<Vector, { kind: 'text' }>;

function isSameSubjectText({ offsets, heap }: SubjectTextVector, firstRow: number, secondRow: number): boolean {
  const firstTextStart = offsets[firstRow]!;
  const subjectTextBytes = offsets[firstRow + 1]! - firstTextStart;
  const otherTextStart = offsets[secondRow]!;
  if (offsets[secondRow + 1]! - otherTextStart !== subjectTextBytes) return false;
  for (let i = 0; i < subjectTextBytes; i++) if (heap[firstTextStart + i] !== heap[otherTextStart + i]) return false;
  return true;
}

/** Flat strings, which a map takes without looking at them twice. */
function subjectTextsOf({ offsets, heap }: SubjectTextVector): (subjectRow: number) => string {
  const heapBuffer = Buffer.from(heap.buffer, heap.byteOffset, heap.length);
  return (subjectRow) => heapBuffer.toString('utf8', offsets[subjectRow]!, offsets[subjectRow + 1]!);
}

/** Whether random values of `keyIdSize` bytes each all differ; they are compared by their first four bytes. */
function haveDistinctKeyIds(keyIdBytes: Uint8Array, keyIdSize: number): boolean {
  const keyIdCount = keyIdBytes.length / keyIdSize;
  const keyIdView = new DataView(keyIdBytes.buffer, keyIdBytes.byteOffset, keyIdBytes.length);
  let slotCount = 8;
  while (slotCount < keyIdCount * 2) slotCount *= 2;
  const keyIdTable = new Int32Array(slotCount);
  for (let i = 0; i < keyIdCount; i++) {
    let slot = keyIdView.getUint32(i * keyIdSize) & (slotCount - 1);
    for (; keyIdTable[slot] !== 0; slot = (slot + 1) & (slotCount - 1)) {
      const otherKeyId = keyIdTable[slot]! - 1;
      let k = 0;
      while (k < keyIdSize && keyIdBytes[otherKeyId * keyIdSize + k] === keyIdBytes[i * keyIdSize + k]) k++;
      if (k === keyIdSize) return false;
    }
    keyIdTable[slot] = i + 1;
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
export function wordsOf({ layout, dims: vectorDims }: ColumnShape): number {
  switch (layout) {
    case kinds.i32:
      return 1;
    case kinds.f64:
    case kinds.i64:
      return 2;
    case kinds.vec:
      return vectorDims;
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
  packedSalts: Uint8Array,
  saltsOffset: number,
  rows: Uint32Array,
  rowSalts: Uint8Array,
  firstSealed = 0,
  endSealed = rows.length,
): void {
  for (let i = firstSealed, saltOffset = saltsOffset; i < endSealed; i++) {
    const rowSaltOffset = rows[i]! * SALT_BYTES;
    for (let k = 0; k < SALT_BYTES; k++) rowSalts[rowSaltOffset + k] = packedSalts[saltOffset++]!;
  }
}

/** Ids as texts of 16 characters. */
export function keyNames(subjectKeyIds: Uint8Array): string[] {
  const keyIdBuffer = Buffer.from(subjectKeyIds.buffer, subjectKeyIds.byteOffset, subjectKeyIds.length);
  return Array.from({ length: subjectKeyIds.length / KEY_ID_BYTES }, (_, i) =>
    keyIdBuffer.toString('latin1', i * KEY_ID_BYTES, (i + 1) * KEY_ID_BYTES),
  );
}
