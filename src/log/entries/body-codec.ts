/**
 * Bodies as canonical bytes. A body starts with its version and its kind:
 *
 *   u8 1, rows      column batches: `rows-codec.ts`
 *   u8 3, rows      rows that are sealed by subject: `subject-sections.ts`
 *   u8 5, any other fixed fields (`fixed-fields.ts`), then tagged fields (`body-fields.ts`); open kinds as drawn there
 *
 * `earlier-bodies.ts` reads the formats of earlier releases. A new field is a tag; anything else needs a new version and a
 * fixture.
 */
import { assert } from '../../errors.ts';
import { ByteReader, type ByteWriter, malformed } from '../bytes/byte-stream.ts';
import { readFieldsOf, readOpen, writeFieldsOf, writeOpen } from './body-fields.ts';
import { decodeEarlier } from './earlier-bodies.ts';
import type { SealedVectors } from './embedded.ts';
import type { EntryBody, EntryKind, RowsBody } from './entry.ts';
import { isOpen, isOpenKind } from './entry.ts';
import { decodeFixed, encodeFixed } from './fixed-fields.ts';
import {
  decodeRows,
  decodeSubjectHead,
  decodeSubjectRows,
  encodeRows,
  encodeSubjectRowsHead,
  noSubjects,
  type RowSecrets,
  type SealedRows,
  type SubjectOpener,
} from './rows-codec.ts';
import { readKeyIds, RowKeys } from './subject-open.ts';

const ROWS_VERSION = 1;
const SUBJECT_ROWS_VERSION = 3;
const FIELDS_VERSION = 5;

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
  batch: 18,
  edge: 19,
  embedding: 20,
  judgement: 21,
  identity: 22,
  model: 23,
  rule: 24,
  job: 25,
  run: 26,
  quarantine: 27,
  search: 28,
};

export const kindOfNumber: ReadonlyMap<number, EntryKind> = new Map(
  (Object.entries(kindNumber) as [EntryKind, number][]).map(([kind, number]) => [number, kind]),
);

export interface DecodedBody {
  readonly body: EntryBody;
  /** Secrets of a `rows` body; null elsewhere. */
  readonly secrets: RowSecrets | null;
  /** Rows that are sealed by subject, those without a key dropped. Null elsewhere. */
  readonly sealed: SealedRows | null;
}

/** `sealed`: the vectors of a body whose rows are subjects'. */
export function encodeBody(
  body: EntryBody,
  secrets: RowSecrets | null,
  target: ByteWriter,
  sealed: readonly SealedVectors[] | null = null,
): void {
  target.u8(body.kind === 'rows' ? ROWS_VERSION : FIELDS_VERSION);
  target.u8(kindNumber[body.kind]);
  if (body.kind === 'rows') {
    assert(secrets, 'rows have salts');
    return encodeRows(body, secrets, target);
  }
  if (isOpen(body)) return writeOpen(body, target, sealed);
  encodeFixed(body, target);
  writeFieldsOf(body, target);
}

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
  if (kind === undefined) throw malformed('an unknown entry kind');
  const decoded =
    kind === 'rows'
      ? rowsOf(version, source, subjects, checked)
      : { body: otherBody(kind, version, source, subjects), secrets: null, sealed: null };
  source.end();
  return decoded;
}

function rowsOf(version: number, source: ByteReader, subjects: SubjectOpener, checked: boolean): DecodedBody {
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
  return malformed('an unknown body version');
}

/** Ids of the keys that a body asks for, 16 bytes each. */
export function subjectKeysOf(bytes: Uint8Array): Uint8Array {
  const source = new ByteReader(bytes);
  if (source.u8() !== SUBJECT_ROWS_VERSION) return new Uint8Array(0);
  if (source.u8() !== kindNumber.rows) throw malformed('an unknown body version');
  decodeSubjectHead(source);
  return readKeyIds(source);
}

/** Which keys the rows of a body lie under; null where none is sealed by subject. */
export function rowKeysOf(bytes: Uint8Array): RowKeys | null {
  const source = new ByteReader(bytes);
  if (source.u8() !== SUBJECT_ROWS_VERSION) return null;
  if (source.u8() !== kindNumber.rows) throw malformed('an unknown body version');
  return RowKeys.read(source, decodeSubjectHead(source).ops.length);
}
