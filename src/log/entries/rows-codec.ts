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
export function saltsOfRows(secrets: RowSecrets, rows: number): Uint8Array {
  if (secrets.salts === 'seed') return saltsOf(secrets.seed, rows);
  if (secrets.dropped.size === 0) return secrets.bytes;
  const salts = new Uint8Array(rows * SALT_BYTES);
  let from = 0;
  for (let row = 0; row < rows; row++) {
    if (secrets.dropped.has(row)) continue;
    salts.set(secrets.bytes.subarray(from, from + SALT_BYTES), row * SALT_BYTES);
    from += SALT_BYTES;
  }
  return salts;
}

/** Writes the part of rows sealed by subject that precedes their nonce. */
export function encodeSubjectRowsHead(body: RowsBody, target: ByteWriter): void {
  checkRows(body);
  target.text(body.type);
  target.u32(body.ops.length);
  target.raw(body.ops);
  encodeCloses(body, target);
  encodeProvenance(body.provenance, target);
  writeSchema(body, target);
}

function checkRows(body: RowsBody): void {
  const rows = body.ops.length;
  assert(body.keys.length === rows && body.cells.length === rows, 'ops, keys and cells have one length');
  assert(body.closeOffsets.length >= rows + 1, 'every row has a range of closes');
  keyColumns.forEach(({ name, type }, i) => {
    const column = body.keys.columns[i];
    assert(column?.name === name && column.type === type, 'keys are _pk, valid_from, valid_to');
  });
}

export function encodeRows(body: RowsBody, secrets: RowSecrets, target: ByteWriter): void {
  checkRows(body);
  const rows = body.ops.length;
  target.text(body.type);
  target.u32(rows);
  target.raw(body.ops);
  target.u8(secrets.salts === 'seed' ? 0 : 1);
  if (secrets.salts === 'seed') target.raw(secrets.seed);
  else {
    assert(secrets.bytes.length === (rows - secrets.dropped.size) * SALT_BYTES, 'every row that is here has a salt');
    target.u32(secrets.dropped.size);
    for (const [row, hash] of secrets.dropped) {
      target.u32(row);
      target.raw(hash);
    }
    target.raw(secrets.bytes);
  }
  encodeCloses(body, target);
  encodeProvenance(body.provenance, target);
  encodeBatch(body.keys, target);
  encodeBatch(body.cells, target);
}

function encodeCloses(body: RowsBody, target: ByteWriter): void {
  const rows = body.ops.length;
  const closes = body.closeOffsets[rows]!;
  target.u32(closes);
  if (closes > 0) {
    for (let i = 0; i <= rows; i++) target.u32(body.closeOffsets[i]!);
    for (let i = 0; i < closes; i++) target.u64(body.closes[i]!);
  }
}

function encodeProvenance({ source, method, confidence, derivedFrom }: Provenance, target: ByteWriter): void {
  target.text(source);
  target.text(method);
  target.f64(confidence);
  target.optionalText(derivedFrom);
}

function decodeOps(source: ByteReader): Uint8Array {
  const rows = source.count(1);
  const ops = source.raw(rows);
  for (let i = 0; i < rows; i++) if (ops[i]! > 2) throw malformedError('an unknown row operation');
  return ops;
}

function decodeCloses(source: ByteReader, rows: number): Pick<RowsBody, 'closeOffsets' | 'closes'> {
  const total = source.count(8);
  const closeOffsets = new Uint32Array(rows + 1);
  const closes = new Float64Array(total);
  if (total > 0) {
    let last = 0;
    for (let i = 0; i <= rows; i++) {
      const offset = source.u32();
      if (offset < last || offset > total || (i === 0 && offset !== 0)) throw malformedError('close offsets that fall');
      closeOffsets[i] = last = offset;
    }
    if (last !== total) throw malformedError('close offsets that miss the end');
    for (let i = 0; i < total; i++) closes[i] = source.u64();
  }
  return { closeOffsets, closes };
}

function decodeProvenance(source: ByteReader): Provenance {
  return {
    source: source.text(),
    method: source.text(),
    confidence: source.f64(),
    derivedFrom: source.optionalText(),
  };
}

export function decodeRows(source: ByteReader, checked: boolean): DecodedRows {
  const type = source.text();
  const ops = decodeOps(source);
  const rows = ops.length;
  const secrets = decodeSecrets(source, rows);
  const closes = decodeCloses(source, rows);
  const provenance = decodeProvenance(source);
  const keys = decodeBatch(source, rows, checked);
  const cells = decodeBatch(source, rows, checked);
  if (keys.length !== rows || cells.length !== rows) throw malformedError('keys and cells of other lengths');
  keyColumns.forEach(({ name, type: columnType }, i) => {
    const column = keys.columns[i];
    if (keys.columns.length !== 3 || column?.name !== name || column.type !== columnType)
      throw malformedError('keys of other columns');
    if (!wellKeyed(column.vector, i)) throw malformedError('keys in another layout');
  });
  const body: RowsBody = { kind: 'rows', type, ops, keys, ...closes, cells, provenance };
  const dropped = secrets.salts === 'explicit' && secrets.dropped.size > 0 ? [...secrets.dropped.keys()] : null;
  return { body: dropped ? { ...body, dropped } : body, secrets, sealed: null };
}

export function decodeSubjectHead(source: ByteReader): Omit<RowsBody, 'keys' | 'cells'> {
  const type = source.text();
  const ops = decodeOps(source);
  return { kind: 'rows', type, ops, ...decodeCloses(source, ops.length), provenance: decodeProvenance(source) };
}

export function decodeSubjectRows(source: ByteReader, subjects: SubjectOpener): DecodedRows {
  const { kind, type, ops, closeOffsets, closes, provenance } = decodeSubjectHead(source);
  const { keys, cells, salts, erased, sealed } = openSections(source, ops.length, subjects);
  const body: RowsBody = { kind, type, ops, keys, closeOffsets, closes, cells, provenance };
  const secrets: RowSecrets = { salts: 'explicit', bytes: saltsLeft(salts, erased), dropped: erased };
  return { body: erased.size > 0 ? { ...body, dropped: [...erased.keys()] } : body, secrets, sealed };
}

/** Without those of rows that are erased. */
function saltsLeft(salts: Uint8Array, erased: ReadonlyMap<number, Uint8Array>): Uint8Array {
  if (erased.size === 0) return salts;
  const left = new Uint8Array(salts.length - erased.size * SALT_BYTES);
  for (let row = 0, at = 0; row * SALT_BYTES < salts.length; row++) {
    if (erased.has(row)) continue;
    left.set(salts.subarray(row * SALT_BYTES, (row + 1) * SALT_BYTES), at);
    at += SALT_BYTES;
  }
  return left;
}

function wellKeyed(vector: Vector, column: number): boolean {
  return vector.kind === 'null' || vector.kind === (column === 0 ? 'text' : 'i64');
}

function decodeSecrets(source: ByteReader, rows: number): RowSecrets {
  if (!source.flag()) return { salts: 'seed', seed: source.raw(32) };
  const count = source.count(36);
  if (count > rows) throw malformedError('more rows dropped than there are');
  const dropped = new Map<number, Uint8Array>();
  let last = -1;
  for (let i = 0; i < count; i++) {
    const row = source.u32();
    if (row <= last || row >= rows) throw malformedError('dropped rows out of order');
    dropped.set(row, source.raw(32));
    last = row;
  }
  return { salts: 'explicit', dropped, bytes: source.raw((rows - count) * SALT_BYTES) };
}
