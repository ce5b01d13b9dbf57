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
const ROW_PARTS_FIELD = 1;

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

/** `rowSecrets`: of each part of a body of rows. `sealedEmbedding`: the vectors of a body whose rows are subjects'. */
export function encodeBody(
  entryBody: EntryBody,
  rowSecrets: readonly RowSecrets[],
  bodyWriter: ByteWriter,
  sealedEmbedding: readonly SealedVectors[] | null = null,
): void {
  if (entryBody.kind === 'parts') {
    assert(rowSecrets.length === entryBody.parts.length, 'every part has salts');
    return joinParts(
      entryBody.parts.map((rowPart, i) => encodePart(rowPart, rowSecrets[i]!)),
      bodyWriter,
    );
  }
  bodyWriter.u8(entryBody.kind === 'rows' ? ROWS_VERSION : FIELDS_VERSION);
  bodyWriter.u8(kindNumber[kindOf(entryBody)]);
  if (entryBody.kind === 'rows') {
    assert(rowSecrets[0], 'rows have salts');
    return encodeRows(entryBody, rowSecrets[0], bodyWriter);
  }
  if (isOpen(entryBody)) return writeOpen(entryBody, bodyWriter, sealedEmbedding);
  encodeFixed(entryBody, bodyWriter);
  writeFieldsOf(entryBody, bodyWriter);
}

/** The bytes of one part, no row of which is sealed by subject. */
export function encodePart(part: RowsBody, secrets: RowSecrets): Uint8Array {
  const partWriter = new ByteWriter();
  encodeBody(part, [secrets], partWriter);
  return partWriter.view();
}

/** Parts as one body. */
export function joinParts(encodedParts: readonly Uint8Array[], bodyWriter: ByteWriter): void {
  assert(encodedParts.length > 1, 'one part alone is a body of its own');
  bodyWriter.u8(FIELDS_VERSION);
  bodyWriter.u8(kindNumber.rows);
  const writeParts = (field: ByteWriter): void => {
    field.u32(encodedParts.length);
    for (const encodedPart of encodedParts) {
      field.u32(encodedPart.length);
      field.raw(encodedPart);
    }
  };
  writeFields([[ROW_PARTS_FIELD, writeParts]], bodyWriter);
}

/** The bytes of each part of a body of rows, in views of it: itself where it has none. */
export function bytesOfParts(bodyBytes: Uint8Array): readonly Uint8Array[] {
  if (bodyBytes[0] !== FIELDS_VERSION || bodyBytes[1] !== kindNumber.rows) return [bodyBytes];
  const bodyReader = new ByteReader(bodyBytes.subarray(2));
  const partBytes: Uint8Array[] = [];
  readFields(bodyReader, (tag, field) => {
    if (tag !== ROW_PARTS_FIELD) return false;
    for (let partsLeft = field.count(ROW_PART_BYTES_MIN); partsLeft > 0; partsLeft--) partBytes.push(field.raw(field.u32()));
    return true;
  });
  bodyReader.end();
  if (partBytes.length < 2) throw malformedError('a body of fewer than two parts');
  return partBytes;
}

/** Its size, its version and kind, and a type. */
const ROW_PART_BYTES_MIN = 10;

/** Writes the part of rows sealed by subject that precedes their tables and cells: see `subject-sections.ts`. */
export function encodeSubjectHead(rowsBody: RowsBody, headWriter: ByteWriter): void {
  headWriter.u8(SUBJECT_ROWS_VERSION);
  headWriter.u8(kindNumber.rows);
  encodeSubjectRowsHead(rowsBody, headWriter);
}

/**
 * Reads bytes that may be anything: REL_STORAGE, never more memory than the bytes themselves account for. `isChecked`: these
 * very bytes were read before, and the cells of their columns are not looked at again. Only rows that are sealed by subject
 * ask for keys.
 */
export function decodeBody(bodyBytes: Uint8Array, subjectOpener: SubjectOpener = noSubjects, isChecked = false): DecodedBody {
  const bodyReader = new ByteReader(bodyBytes);
  const bodyVersion = bodyReader.u8();
  const entryKind = kindOfNumber.get(bodyReader.u8());
  if (entryKind === undefined) throw malformedError('an unknown entry kind');
  if (entryKind === 'rows') {
    if (bodyVersion === FIELDS_VERSION) return decodeRowParts(bodyBytes, subjectOpener, isChecked);
    const decodedRows = decodeRowBody(bodyVersion, bodyReader, subjectOpener, isChecked);
    bodyReader.end();
    return { body: decodedRows.body, parts: [decodedRows] };
  }
  const decodedBody = decodeOtherBody(entryKind, bodyVersion, bodyReader, subjectOpener);
  bodyReader.end();
  return { body: decodedBody, parts: [] };
}

function decodeRowParts(bodyBytes: Uint8Array, subjectOpener: SubjectOpener, isChecked: boolean): DecodedBody {
  const decodedParts = bytesOfParts(bodyBytes).map((partBytes) => {
    const partReader = new ByteReader(partBytes);
    const partVersion = partReader.u8();
    if (partReader.u8() !== kindNumber.rows) throw malformedError('a part of another kind than rows');
    const decodedPart = decodeRowBody(partVersion, partReader, subjectOpener, isChecked);
    partReader.end();
    if (decodedPart.body.ops.length === 0) throw malformedError('a part without rows');
    return decodedPart;
  });
  return { body: { kind: 'parts', parts: decodedParts.map(({ body }) => body) }, parts: decodedParts };
}

function decodeRowBody(
  bodyVersion: number,
  rowsReader: ByteReader,
  subjectOpener: SubjectOpener,
  isChecked: boolean,
): DecodedRows {
  if (bodyVersion === ROWS_VERSION) return decodeRows(rowsReader, isChecked);
  if (bodyVersion === SUBJECT_ROWS_VERSION) return decodeSubjectRows(rowsReader, subjectOpener);
  throw unknownVersionError();
}

function decodeOtherBody(
  entryKind: Exclude<EntryKind, 'rows'>,
  bodyVersion: number,
  bodyReader: ByteReader,
  subjectOpener: SubjectOpener,
): EntryBody {
  if (bodyVersion === FIELDS_VERSION) {
    return isOpenKind(entryKind)
      ? readOpen(entryKind, bodyReader, subjectOpener)
      : readFieldsOf(decodeFixed(entryKind, bodyReader), bodyReader);
  }
  const earlierBody = isOpenKind(entryKind) ? null : decodeEarlier(bodyVersion, entryKind, bodyReader);
  if (earlierBody === null) throw unknownVersionError();
  return earlierBody;
}

function unknownVersionError(): Error {
  return malformedError('an unknown body version');
}

/** Ids of the keys that a body asks for, 16 bytes each. */
export function subjectKeysOf(bodyBytes: Uint8Array): Uint8Array {
  const subjectKeyIds: Uint8Array[] = [];
  for (const partBytes of bytesOfParts(bodyBytes)) {
    const partReader = readerOfSealedPart(partBytes);
    if (partReader === null) continue;
    decodeSubjectHead(partReader);
    subjectKeyIds.push(readKeyIds(partReader));
  }
  return subjectKeyIds.length === 1 ? subjectKeyIds[0]! : Uint8Array.from(Buffer.concat(subjectKeyIds));
}

/** Which keys the rows of a body lie under; null where none is sealed by subject. */
export function rowKeysOf(bodyBytes: Uint8Array): RowKeys | null {
  const partBytes = bytesOfParts(bodyBytes);
  const sealedParts = partBytes.map(readerOfSealedPart);
  if (sealedParts.every((partReader) => partReader === null)) return null;
  const rowKeysOfParts = sealedParts.map((partReader, i) =>
    partReader === null
      ? RowKeys.none(rowCountOfPart(partBytes[i]!))
      : RowKeys.read(partReader, decodeSubjectHead(partReader).ops.length),
  );
  return rowKeysOfParts.length === 1 ? rowKeysOfParts[0]! : RowKeys.join(rowKeysOfParts);
}

/** Counts the rows of a part without rows sealed by subject. */
function rowCountOfPart(partBytes: Uint8Array): number {
  const partReader = new ByteReader(partBytes.subarray(2));
  partReader.text();
  return partReader.u32();
}

/** Skips the version and the kind of rows that are sealed by subject; null: they are not. */
function readerOfSealedPart(partBytes: Uint8Array): ByteReader | null {
  const partReader = new ByteReader(partBytes);
  if (partReader.u8() !== SUBJECT_ROWS_VERSION) return null;
  if (partReader.u8() !== kindNumber.rows) throw malformedError('an unknown body version');
  return partReader;
}
