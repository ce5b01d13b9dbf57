/**
 * Bodies of rows as canonical bytes. They add to their contract the secrets of their leaves: salts (a seed, or one each) and, of
 * rows that were dropped, their index and leaf hash, so that a frame without them still gives the root that its leaf commits to.
 * Rows that are sealed by subject are drawn in `subject-sections.ts`. Changing this needs a new version and a fixture.
 */
import { assert, ServiceError } from '../../errors.ts';
import { type ByteReader, type ByteWriter, malformedError } from '../bytes/byte-stream.ts';
import { decodeBatch, encodeBatch } from './column-codec.ts';
import type { Vector } from '../values/columns.ts';
import type { Provenance, RowsBody } from './entry.ts';
import { keyColumns, SALT_BYTES, saltsOf } from './row-leaf.ts';
import { hexOf } from '../bytes/sha256.ts';
import type { SubjectKeys } from '../keys/subject-keys.ts';
import { openSections } from './section-opener.ts';
import { writeSchema } from './section-sealer.ts';

/** Salts that blind the leaf hashes of rows. Kept inside the sealed body. */
export type RowSecrets =
  | { readonly salts: 'seed'; readonly seed: Uint8Array }
  /** 16 bytes for each row that is still here, in order. */
  | { readonly salts: 'explicit'; readonly bytes: Uint8Array; readonly dropped: ReadonlyMap<number, Uint8Array> };

/** Rows that are sealed by subject and have no key any more are dropped. */
export interface DecodedRows {
  readonly body: RowsBody;
  readonly secrets: RowSecrets;
  /** Null where no row is sealed by subject. */
  readonly sealed: SealedRows | null;
}

/** Rows that are sealed by subject, and the leaf hashes that the body states for them, in the same order. */
export interface SealedRows {
  readonly rows: Uint32Array;
  readonly hashes: Uint8Array;
}

export type SubjectOpener = Pick<SubjectKeys, 'copyKey'>;

/** For bodies without sealed sections. */
export const noSubjects: SubjectOpener = {
  copyKey(id) {
    throw new ServiceError('REL_STORAGE', `the key ${hexOf(id)} of a subject was not handed over`);
  },
};

/** 16 bytes for every row; zeros where the row was dropped. */
export function saltsOfRows(rowSecrets: RowSecrets, rowCount: number): Uint8Array {
  if (rowSecrets.salts === 'seed') return saltsOf(rowSecrets.seed, rowCount);
  if (rowSecrets.dropped.size === 0) return rowSecrets.bytes;
  const rowSalts = new Uint8Array(rowCount * SALT_BYTES);
  let saltOffset = 0;
  for (let row = 0; row < rowCount; row++) {
    if (rowSecrets.dropped.has(row)) continue;
    rowSalts.set(rowSecrets.bytes.subarray(saltOffset, saltOffset + SALT_BYTES), row * SALT_BYTES);
    saltOffset += SALT_BYTES;
  }
  return rowSalts;
}

/** Writes the part of rows sealed by subject that precedes their nonce. */
export function encodeSubjectRowsHead(rowsBody: RowsBody, rowsWriter: ByteWriter): void {
  checkRowsBody(rowsBody);
  rowsWriter.text(rowsBody.type);
  rowsWriter.u32(rowsBody.ops.length);
  rowsWriter.raw(rowsBody.ops);
  encodeRowCloses(rowsBody, rowsWriter);
  encodeProvenance(rowsBody.provenance, rowsWriter);
  writeSchema(rowsBody, rowsWriter);
}

function checkRowsBody(rowsBody: RowsBody): void {
  const rowCount = rowsBody.ops.length;
  assert(rowsBody.keys.length === rowCount && rowsBody.cells.length === rowCount, 'ops, keys and cells have one length');
  assert(rowsBody.closeOffsets.length >= rowCount + 1, 'every row has a range of closes');
  keyColumns.forEach(({ name, type }, i) => {
    const keyColumn = rowsBody.keys.columns[i];
    assert(keyColumn?.name === name && keyColumn.type === type, 'keys are _pk, valid_from, valid_to');
  });
}

export function encodeRows(rowsBody: RowsBody, rowSecrets: RowSecrets, rowsWriter: ByteWriter): void {
  checkRowsBody(rowsBody);
  const rowCount = rowsBody.ops.length;
  rowsWriter.text(rowsBody.type);
  rowsWriter.u32(rowCount);
  rowsWriter.raw(rowsBody.ops);
  rowsWriter.u8(rowSecrets.salts === 'seed' ? 0 : 1);
  if (rowSecrets.salts === 'seed') rowsWriter.raw(rowSecrets.seed);
  else {
    assert(rowSecrets.bytes.length === (rowCount - rowSecrets.dropped.size) * SALT_BYTES, 'every row that is here has a salt');
    rowsWriter.u32(rowSecrets.dropped.size);
    for (const [row, droppedRowHash] of rowSecrets.dropped) {
      rowsWriter.u32(row);
      rowsWriter.raw(droppedRowHash);
    }
    rowsWriter.raw(rowSecrets.bytes);
  }
  encodeRowCloses(rowsBody, rowsWriter);
  encodeProvenance(rowsBody.provenance, rowsWriter);
  encodeBatch(rowsBody.keys, rowsWriter);
  encodeBatch(rowsBody.cells, rowsWriter);
}

function encodeRowCloses(rowsBody: RowsBody, closeWriter: ByteWriter): void {
  const rowCount = rowsBody.ops.length;
  const closeCount = rowsBody.closeOffsets[rowCount]!;
  closeWriter.u32(closeCount);
  if (closeCount > 0) {
    for (let i = 0; i <= rowCount; i++) closeWriter.u32(rowsBody.closeOffsets[i]!);
    for (let i = 0; i < closeCount; i++) closeWriter.u64(rowsBody.closes[i]!);
  }
}

function encodeProvenance({ source, method, confidence, derivedFrom }: Provenance, provenanceWriter: ByteWriter): void {
  provenanceWriter.text(source);
  provenanceWriter.text(method);
  provenanceWriter.f64(confidence);
  provenanceWriter.optionalText(derivedFrom);
}

function decodeRowOps(opReader: ByteReader): Uint8Array {
  const opCount = opReader.count(1);
  const rowOps = opReader.raw(opCount);
  for (let i = 0; i < opCount; i++) if (rowOps[i]! > 2) throw malformedError('an unknown row operation');
  return rowOps;
}

function decodeRowCloses(closeReader: ByteReader, rowCount: number): Pick<RowsBody, 'closeOffsets' | 'closes'> {
  const closeCount = closeReader.count(8);
  const closeOffsets = new Uint32Array(rowCount + 1);
  const closes = new Float64Array(closeCount);
  if (closeCount > 0) {
    let lastCloseOffset = 0;
    for (let i = 0; i <= rowCount; i++) {
      const closeOffset = closeReader.u32();
      if (closeOffset < lastCloseOffset || closeOffset > closeCount || (i === 0 && closeOffset !== 0))
        throw malformedError('close offsets that fall');
      closeOffsets[i] = lastCloseOffset = closeOffset;
    }
    if (lastCloseOffset !== closeCount) throw malformedError('close offsets that miss the end');
    for (let i = 0; i < closeCount; i++) closes[i] = closeReader.u64();
  }
  return { closeOffsets, closes };
}

function decodeProvenance(provenanceReader: ByteReader): Provenance {
  return {
    source: provenanceReader.text(),
    method: provenanceReader.text(),
    confidence: provenanceReader.f64(),
    derivedFrom: provenanceReader.optionalText(),
  };
}

export function decodeRows(rowsReader: ByteReader, isChecked: boolean): DecodedRows {
  const rowType = rowsReader.text();
  const rowOps = decodeRowOps(rowsReader);
  const rowCount = rowOps.length;
  const rowSecrets = decodeRowSecrets(rowsReader, rowCount);
  const rowCloses = decodeRowCloses(rowsReader, rowCount);
  const provenance = decodeProvenance(rowsReader);
  const keyBatch = decodeBatch(rowsReader, rowCount, isChecked);
  const cellBatch = decodeBatch(rowsReader, rowCount, isChecked);
  if (keyBatch.length !== rowCount || cellBatch.length !== rowCount) throw malformedError('keys and cells of other lengths');
  keyColumns.forEach(({ name, type: columnType }, i) => {
    const keyColumn = keyBatch.columns[i];
    if (keyBatch.columns.length !== 3 || keyColumn?.name !== name || keyColumn.type !== columnType)
      throw malformedError('keys of other columns');
    if (!hasKeyLayout(keyColumn.vector, i)) throw malformedError('keys in another layout');
  });
  const rowsBody: RowsBody = {
    kind: 'rows',
    type: rowType,
    ops: rowOps,
    keys: keyBatch,
    ...rowCloses,
    cells: cellBatch,
    provenance,
  };
  const droppedRows = rowSecrets.salts === 'explicit' && rowSecrets.dropped.size > 0 ? [...rowSecrets.dropped.keys()] : null;
  return { body: droppedRows ? { ...rowsBody, dropped: droppedRows } : rowsBody, secrets: rowSecrets, sealed: null };
}

export function decodeSubjectHead(subjectReader: ByteReader): Omit<RowsBody, 'keys' | 'cells'> {
  const rowType = subjectReader.text();
  const rowOps = decodeRowOps(subjectReader);
  return {
    kind: 'rows',
    type: rowType,
    ops: rowOps,
    ...decodeRowCloses(subjectReader, rowOps.length),
    provenance: decodeProvenance(subjectReader),
  };
}

export function decodeSubjectRows(subjectReader: ByteReader, subjectOpener: SubjectOpener): DecodedRows {
  const { kind, type, ops, closeOffsets, closes, provenance } = decodeSubjectHead(subjectReader);
  const { keys, cells, salts, erased, sealed } = openSections(subjectReader, ops.length, subjectOpener);
  const rowsBody: RowsBody = { kind, type, ops, keys, closeOffsets, closes, cells, provenance };
  const rowSecrets: RowSecrets = { salts: 'explicit', bytes: saltsOfUnerasedRows(salts, erased), dropped: erased };
  return { body: erased.size > 0 ? { ...rowsBody, dropped: [...erased.keys()] } : rowsBody, secrets: rowSecrets, sealed };
}

/** Without those of rows that are erased. */
function saltsOfUnerasedRows(rowSalts: Uint8Array, erasedRows: ReadonlyMap<number, Uint8Array>): Uint8Array {
  if (erasedRows.size === 0) return rowSalts;
  const unerasedSalts = new Uint8Array(rowSalts.length - erasedRows.size * SALT_BYTES);
  for (let row = 0, saltOffset = 0; row * SALT_BYTES < rowSalts.length; row++) {
    if (erasedRows.has(row)) continue;
    unerasedSalts.set(rowSalts.subarray(row * SALT_BYTES, (row + 1) * SALT_BYTES), saltOffset);
    saltOffset += SALT_BYTES;
  }
  return unerasedSalts;
}

function hasKeyLayout(keyVector: Vector, keyColumnNumber: number): boolean {
  return keyVector.kind === 'null' || keyVector.kind === (keyColumnNumber === 0 ? 'text' : 'i64');
}

function decodeRowSecrets(secretReader: ByteReader, rowCount: number): RowSecrets {
  if (!secretReader.flag()) return { salts: 'seed', seed: secretReader.raw(32) };
  const droppedCount = secretReader.count(36);
  if (droppedCount > rowCount) throw malformedError('more rows dropped than there are');
  const droppedRowHashes = new Map<number, Uint8Array>();
  let lastDroppedRow = -1;
  for (let i = 0; i < droppedCount; i++) {
    const droppedRow = secretReader.u32();
    if (droppedRow <= lastDroppedRow || droppedRow >= rowCount) throw malformedError('dropped rows out of order');
    droppedRowHashes.set(droppedRow, secretReader.raw(32));
    lastDroppedRow = droppedRow;
  }
  return { salts: 'explicit', dropped: droppedRowHashes, bytes: secretReader.raw((rowCount - droppedCount) * SALT_BYTES) };
}
