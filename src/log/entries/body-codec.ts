/**
 * Bodies as canonical bytes. A body starts with its version and its kind:
 *
 *   u8 1, rows      column batches: `rows-codec.ts`
 *   u8 3, rows      rows that are sealed by subject: `subject-sections.ts`
 *   u8 5, rows      rows of several parts, in the field 1: u32 count, then of each part u32 size and a body of version 1 or 3
 *   u8 5, any other fixed fields (`fixed-fields.ts`), then tagged fields (`body-fields.ts`); open kinds as drawn there
 *
 * `earlier-bodies.ts` reads the formats of earlier releases. A new field is a tag; anything else needs a new version and a
 * fixture.
 */
import { assert } from '../../errors.ts';
import { ByteReader, ByteWriter, malformedError } from '../bytes/byte-stream.ts';
import { readFields, writeFields } from '../bytes/tagged-fields.ts';
import { readFieldsOf, readOpen, writeFieldsOf, writeOpen } from './body-fields.ts';
import { decodeEarlier } from './earlier-bodies.ts';
import type { SealedVectors } from './embedded-vectors.ts';
import type { EntryBody, EntryKind, RowsBody } from './entry.ts';
import { isOpen, isOpenKind, kindOf, openKindNumbers } from './entry.ts';
import { decodeFixed, encodeFixed } from './fixed-fields.ts';
import {
  type DecodedRows,
  decodeRows,
  decodeSubjectHead,
  decodeSubjectRows,
  encodeRows,
  encodeSubjectRowsHead,
  noSubjects,
  type RowSecrets,
  type SubjectOpener,
} from './rows-codec.ts';
import { readKeyIds, RowKeys } from './section-opener.ts';

const ROWS_VERSION = 1;
const SUBJECT_ROWS_VERSION = 3;
const FIELDS_VERSION = 5;
const PARTS_FIELD = 1;

/** Numbers never change; a new kind takes the next one. */
export const kindNumber: Record<EntryKind, number> = {
  genesis: 1,
  seal: 2,
  rows: 3,
  removal: 4,
  type: 5,
  token: 6,
  access: 7,
  branch: 8,
  exhibit: 9,
  view: 10,
  receipt: 11,
  policy: 12,
  tenant: 13,
  agreement: 14,
  erasure: 15,
  retention: 16,
  redaction: 17,
  ...openKindNumbers,
};

export const kindOfNumber: ReadonlyMap<number, EntryKind> = new Map(
  (Object.entries(kindNumber) as [EntryKind, number][]).map(([kind, number]) => [number, kind]),
);

export interface DecodedBody {
  readonly body: EntryBody;
  /** Each part of a body of rows, which is one where it has no parts; empty elsewhere. */
  readonly parts: readonly DecodedRows[];
}

/** `secrets`: of each part of a body of rows. `sealed`: the vectors of a body whose rows are subjects'. */
export function encodeBody(
  body: EntryBody,
  secrets: readonly RowSecrets[],
  target: ByteWriter,
  sealed: readonly SealedVectors[] | null = null,
): void {
  if (body.kind === 'parts') {
    assert(secrets.length === body.parts.length, 'every part has salts');
    return joinParts(
      body.parts.map((part, i) => encodePart(part, secrets[i]!)),
      target,
    );
  }
  target.u8(body.kind === 'rows' ? ROWS_VERSION : FIELDS_VERSION);
  target.u8(kindNumber[kindOf(body)]);
  if (body.kind === 'rows') {
    assert(secrets[0], 'rows have salts');
    return encodeRows(body, secrets[0], target);
  }
  if (isOpen(body)) return writeOpen(body, target, sealed);
  encodeFixed(body, target);
  writeFieldsOf(body, target);
}

/** The bytes of one part, no row of which is sealed by subject. */
export function encodePart(part: RowsBody, secrets: RowSecrets): Uint8Array {
  const target = new ByteWriter();
  encodeBody(part, [secrets], target);
  return target.view();
}

/** Parts as one body. */
export function joinParts(parts: readonly Uint8Array[], target: ByteWriter): void {
  assert(parts.length > 1, 'one part alone is a body of its own');
  target.u8(FIELDS_VERSION);
  target.u8(kindNumber.rows);
  const write = (field: ByteWriter): void => {
    field.u32(parts.length);
    for (const part of parts) {
      field.u32(part.length);
      field.raw(part);
    }
  };
  writeFields([[PARTS_FIELD, write]], target);
}

/** The bytes of each part of a body of rows, in views of it: itself where it has none. */
export function bytesOfParts(bytes: Uint8Array): readonly Uint8Array[] {
  if (bytes[0] !== FIELDS_VERSION || bytes[1] !== kindNumber.rows) return [bytes];
  const source = new ByteReader(bytes.subarray(2));
  const parts: Uint8Array[] = [];
  readFields(source, (tag, field) => {
    if (tag !== PARTS_FIELD) return false;
    for (let left = field.count(PART_BYTES_MIN); left > 0; left--) parts.push(field.raw(field.u32()));
    return true;
  });
  source.end();
  if (parts.length < 2) throw malformedError('a body of fewer than two parts');
  return parts;
}

/** Its size, its version and kind, and a type. */
const PART_BYTES_MIN = 10;

/** Writes the part of rows sealed by subject that precedes their tables and cells: see `subject-sections.ts`. */
export function encodeSubjectHead(body: RowsBody, target: ByteWriter): void {
  target.u8(SUBJECT_ROWS_VERSION);
  target.u8(kindNumber.rows);
  encodeSubjectRowsHead(body, target);
}

/**
 * Reads bytes that may be anything: REL_STORAGE, never more memory than the bytes themselves account for. `checked`: these
 * very bytes were read before, and the cells of their columns are not looked at again. Only rows that are sealed by subject
 * ask for keys.
 */
export function decodeBody(bytes: Uint8Array, subjects: SubjectOpener = noSubjects, checked = false): DecodedBody {
  const source = new ByteReader(bytes);
  const version = source.u8();
  const kind = kindOfNumber.get(source.u8());
  if (kind === undefined) throw malformedError('an unknown entry kind');
  if (kind === 'rows') {
    if (version === FIELDS_VERSION) return decodeParts(bytes, subjects, checked);
    const rows = rowsOf(version, source, subjects, checked);
    source.end();
    return { body: rows.body, parts: [rows] };
  }
  const body = otherBody(kind, version, source, subjects);
  source.end();
  return { body, parts: [] };
}

function decodeParts(bytes: Uint8Array, subjects: SubjectOpener, checked: boolean): DecodedBody {
  const parts = bytesOfParts(bytes).map((part) => {
    const source = new ByteReader(part);
    const version = source.u8();
    if (source.u8() !== kindNumber.rows) throw malformedError('a part of another kind than rows');
    const rows = rowsOf(version, source, subjects, checked);
    source.end();
    if (rows.body.ops.length === 0) throw malformedError('a part without rows');
    return rows;
  });
  return { body: { kind: 'parts', parts: parts.map(({ body }) => body) }, parts };
}

function rowsOf(version: number, source: ByteReader, subjects: SubjectOpener, checked: boolean): DecodedRows {
  if (version === ROWS_VERSION) return decodeRows(source, checked);
  if (version === SUBJECT_ROWS_VERSION) return decodeSubjectRows(source, subjects);
  throw unknownVersion();
}

function otherBody(kind: Exclude<EntryKind, 'rows'>, version: number, source: ByteReader, subjects: SubjectOpener): EntryBody {
  if (version === FIELDS_VERSION) {
    return isOpenKind(kind) ? readOpen(kind, source, subjects) : readFieldsOf(decodeFixed(kind, source), source);
  }
  const earlier = isOpenKind(kind) ? null : decodeEarlier(version, kind, source);
  if (earlier === null) throw unknownVersion();
  return earlier;
}

function unknownVersion(): Error {
  return malformedError('an unknown body version');
}

/** Ids of the keys that a body asks for, 16 bytes each. */
export function subjectKeysOf(bytes: Uint8Array): Uint8Array {
  const ids: Uint8Array[] = [];
  for (const part of bytesOfParts(bytes)) {
    const source = subjectRows(part);
    if (source === null) continue;
    decodeSubjectHead(source);
    ids.push(readKeyIds(source));
  }
  return ids.length === 1 ? ids[0]! : Uint8Array.from(Buffer.concat(ids));
}

/** Which keys the rows of a body lie under; null where none is sealed by subject. */
export function rowKeysOf(bytes: Uint8Array): RowKeys | null {
  const parts = bytesOfParts(bytes);
  const sealed = parts.map(subjectRows);
  if (sealed.every((source) => source === null)) return null;
  const keys = sealed.map((source, i) =>
    source === null ? RowKeys.none(rowsIn(parts[i]!)) : RowKeys.read(source, decodeSubjectHead(source).ops.length),
  );
  return keys.length === 1 ? keys[0]! : RowKeys.join(keys);
}

/** Counts the rows of a part without rows sealed by subject. */
function rowsIn(part: Uint8Array): number {
  const source = new ByteReader(part.subarray(2));
  source.text();
  return source.u32();
}

/** Skips the version and the kind of rows that are sealed by subject; null: they are not. */
function subjectRows(part: Uint8Array): ByteReader | null {
  const source = new ByteReader(part);
  if (source.u8() !== SUBJECT_ROWS_VERSION) return null;
  if (source.u8() !== kindNumber.rows) throw malformedError('an unknown body version');
  return source;
}
