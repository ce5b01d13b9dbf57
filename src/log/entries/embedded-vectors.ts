/**
 * Vectors that a model gave for the texts of stored versions: the content of an `embedding` entry. Vectors of rows without a
 * subject lie in the clear; those of a subject's rows lie in a section of their own, sealed under a key that follows from the
 * subject's, so that forgetting 32 bytes erases them wherever the entry was copied to. An entry holds only vectors of the one
 * kind.
 *
 *   body      u8 form 2, then fields: 1 model, 2 digest [32], 3 type, 4 columns, 5 dims u32, 6 rows, 7 sections, 8 dropped u32
 *   rows      u32 count, positions u64 each, vectors of dims f32 each
 *   sections  u32 count, of each: key id [16], nonce [12], u32 count, positions u64 each, vectors sealed, tag [16]
 *
 * AES-256-GCM, its key HMAC-SHA-256(key of the subject, "annals embedding"), bound to the key's id. `dropped` counts rows whose vectors
 * were redacted: their versions were removed for good.
 */
import * as crypto from 'node:crypto';
import { assert, ServiceError } from '../../errors.ts';
import { type ByteReader, type ByteWriter, malformedError } from '../bytes/byte-stream.ts';
import type { Embedded, OpenBody } from './entry.ts';
import type { SubjectOpener } from './rows-codec.ts';
import type { SubjectKey } from '../keys/recent-subject-keys.ts';
import { readFields, writeFields } from '../bytes/tagged-fields.ts';

const KEY_ID_BYTES = 16;
const VECTOR_KEY_BYTES = 32;
const VECTOR_NONCE_BYTES = 12;
const VECTOR_TAG_BYTES = 16;
const MODEL_DIGEST_BYTES = 32;
const EMBEDDING_DIMS_MAX = 4_096;

const embeddedField = { model: 1, digest: 2, type: 3, columns: 4, dims: 5, rows: 6, sections: 7, dropped: 8 } as const;

/** Vectors of one subject's rows, sealed. */
export interface SealedVectors {
  readonly key: Uint8Array;
  readonly nonce: Uint8Array;
  readonly positions: Float64Array;
  /** Sealed vectors and their tag. */
  readonly sealed: Uint8Array;
}

/** The sections of a body whose rows have subjects; null where they have none. */
export function sealedVectors(
  { positions, vectors, dims, subjects }: Embedded,
  subjectKeyOf: (subject: string) => SubjectKey,
  drawRandom: (size: number) => Uint8Array,
): readonly SealedVectors[] | null {
  if (subjects === undefined) return null;
  const rowsBySubject = new Map<string, number[]>();
  for (const [embeddedRow, subject] of subjects.entries()) {
    const subjectRows = rowsBySubject.get(subject);
    if (subjectRows === undefined) rowsBySubject.set(subject, [embeddedRow]);
    else subjectRows.push(embeddedRow);
  }
  return [...rowsBySubject].map(([subject, subjectRows]): SealedVectors => {
    const sealingKey = subjectKeyOf(subject);
    const subjectKeyId = Buffer.from(sealingKey.id, 'hex');
    const keySecret = Buffer.alloc(VECTOR_KEY_BYTES);
    sealingKey.copyTo(keySecret, 0);
    const plainVectors = new Uint8Array(subjectRows.length * dims * 4);
    for (const [i, row] of subjectRows.entries())
      plainVectors.set(bytesOfFloats(vectors.subarray(row * dims, (row + 1) * dims)), i * dims * 4);
    const vectorNonce = drawRandom(VECTOR_NONCE_BYTES).slice();
    const vectorCipher = crypto.createCipheriv('aes-256-gcm', vectorKey(keySecret), vectorNonce);
    vectorCipher.setAAD(subjectKeyId);
    const sealedVectorBytes = Buffer.concat([vectorCipher.update(plainVectors), vectorCipher.final(), vectorCipher.getAuthTag()]);
    return {
      key: subjectKeyId,
      nonce: vectorNonce,
      positions: Float64Array.from(subjectRows, (row) => positions[row]!),
      sealed: sealedVectorBytes,
    };
  });
}

export function writeEmbedded(
  embeddedContent: Embedded,
  vectorSections: readonly SealedVectors[] | null,
  embeddedWriter: ByteWriter,
): void {
  const { model, digest, type, columns, dims, positions, vectors, dropped } = embeddedContent;
  assert((vectorSections === null) === (embeddedContent.subjects === undefined), 'vectors of a subject are sealed');
  assert(vectors.length === positions.length * dims, 'each row has its vector');
  embeddedWriter.u8(2);
  const isPlain = vectorSections === null && positions.length > 0;
  writeFields(
    [
      [embeddedField.model, (bytes) => bytes.text(model)],
      [embeddedField.digest, (bytes) => bytes.raw(Buffer.from(digest, 'hex'))],
      [embeddedField.type, (bytes) => bytes.text(type)],
      [
        embeddedField.columns,
        (bytes) => {
          bytes.u32(columns.length);
          for (const column of columns) bytes.text(column);
        },
      ],
      [embeddedField.dims, (bytes) => bytes.u32(dims)],
      [
        embeddedField.rows,
        isPlain
          ? (bytes) => {
              writePositions(positions, bytes);
              bytes.raw(bytesOfFloats(vectors));
            }
          : null,
      ],
      [
        embeddedField.sections,
        vectorSections === null
          ? null
          : (bytes) => {
              bytes.u32(vectorSections.length);
              for (const vectorSection of vectorSections) {
                bytes.raw(vectorSection.key);
                bytes.raw(vectorSection.nonce);
                writePositions(vectorSection.positions, bytes);
                bytes.raw(vectorSection.sealed);
              }
            },
      ],
      [embeddedField.dropped, dropped === 0 ? null : (bytes) => bytes.u32(dropped)],
    ],
    embeddedWriter,
  );
}

/** Rows whose key is destroyed are missing. */
export function readEmbedded(embeddedReader: ByteReader, subjectOpener: SubjectOpener): Embedded {
  let [model, digest, type] = ['', '', ''];
  let columns: readonly string[] = [];
  let [dims, dropped] = [0, 0];
  let embeddedRows: Pick<Embedded, 'positions' | 'vectors'> = { positions: new Float64Array(0), vectors: new Float32Array(0) };
  let isSealed = false as boolean;
  readFields(embeddedReader, (embeddedFieldTag, fieldReader) => {
    switch (embeddedFieldTag) {
      case embeddedField.model:
        model = fieldReader.text();
        return true;
      case embeddedField.digest:
        digest = Buffer.from(fieldReader.raw(MODEL_DIGEST_BYTES)).toString('hex');
        return true;
      case embeddedField.type:
        type = fieldReader.text();
        return true;
      case embeddedField.columns:
        columns = Array.from({ length: fieldReader.count(4) }, () => fieldReader.text());
        return true;
      case embeddedField.dims:
        dims = fieldReader.u32();
        if (dims === 0 || dims > EMBEDDING_DIMS_MAX) throw malformedError('vectors of no dimensions, or of too many');
        return true;
      case embeddedField.rows: {
        if (dims === 0) throw malformedError('vectors of no dimensions');
        const rowPositions = readPositions(fieldReader);
        if (rowPositions.length === 0) throw malformedError('vectors of no rows');
        embeddedRows = { positions: rowPositions, vectors: floatsOf(fieldReader.raw(rowPositions.length * dims * 4)) };
        return true;
      }
      case embeddedField.sections:
        if (dims === 0 || embeddedRows.positions.length > 0) throw malformedError('sealed vectors beside open ones');
        embeddedRows = openVectorSections(fieldReader, dims, subjectOpener);
        isSealed = true;
        return true;
      case embeddedField.dropped:
        dropped = fieldReader.u32();
        if (dropped === 0) throw malformedError('a count of no rows that were dropped');
        return true;
      default:
        return false;
    }
  });
  if (digest === '' || dims === 0 || columns.length === 0) throw malformedError('vectors without a model, or of no texts');
  return { model, digest, type, columns, dims, ...embeddedRows, dropped, ...(isSealed && { isSealed: true as const }) };
}

/** Without the rows that are `isRowGone`; null where there are none of them, or they are sealed: their key is what is destroyed. */
export function withoutVectors(embeddedContent: Embedded, isRowGone: (position: number) => boolean): Embedded | null {
  if (embeddedContent.isSealed === true) return null;
  const { positions, vectors, dims } = embeddedContent;
  const remainingRows: number[] = [];
  for (const [vectorRow, position] of positions.entries()) if (!isRowGone(position)) remainingRows.push(vectorRow);
  if (remainingRows.length === positions.length) return null;
  const keptVectors = new Float32Array(remainingRows.length * dims);
  for (const [i, row] of remainingRows.entries()) keptVectors.set(vectors.subarray(row * dims, (row + 1) * dims), i * dims);
  return {
    ...embeddedContent,
    positions: Float64Array.from(remainingRows, (row) => positions[row]!),
    vectors: keptVectors,
    dropped: embeddedContent.dropped + positions.length - remainingRows.length,
  };
}

/** Whether an open body holds vectors. */
export function isEmbedded(content: OpenBody['content']): content is Embedded {
  return typeof content !== 'string' && !(content instanceof Uint8Array);
}

type EmbeddedRows = Pick<Embedded, 'positions' | 'vectors'>;

function openVectorSections(sectionReader: ByteReader, vectorDims: number, subjectOpener: SubjectOpener): EmbeddedRows {
  const openedPositions: number[] = [];
  const openedVectors: Float32Array[] = [];
  const keySecret = Buffer.alloc(VECTOR_KEY_BYTES);
  let sectionsLeft = sectionReader.count(KEY_ID_BYTES + VECTOR_NONCE_BYTES + 4 + VECTOR_TAG_BYTES);
  if (sectionsLeft === 0) throw malformedError('sealed vectors of nobody');
  for (; sectionsLeft > 0; sectionsLeft--) {
    const subjectKeyId = sectionReader.raw(KEY_ID_BYTES);
    const vectorNonce = sectionReader.raw(VECTOR_NONCE_BYTES);
    const sectionPositions = readPositions(sectionReader);
    const sealedVectorBytes = sectionReader.raw(sectionPositions.length * vectorDims * 4 + VECTOR_TAG_BYTES);
    if (!subjectOpener.copyKey(subjectKeyId, keySecret, 0)) continue;
    const vectorDecipher = crypto.createDecipheriv('aes-256-gcm', vectorKey(keySecret), vectorNonce, {
      authTagLength: VECTOR_TAG_BYTES,
    });
    vectorDecipher.setAAD(subjectKeyId);
    vectorDecipher.setAuthTag(sealedVectorBytes.subarray(-VECTOR_TAG_BYTES));
    const plainVectors = vectorDecipher.update(sealedVectorBytes.subarray(0, -VECTOR_TAG_BYTES));
    try {
      vectorDecipher.final();
    } catch (cause) {
      throw new ServiceError('REL_STORAGE', "vectors of a subject's rows do not open under its key", { cause });
    }
    openedPositions.push(...sectionPositions);
    openedVectors.push(floatsOf(plainVectors));
  }
  const vectorFloats = new Float32Array(openedPositions.length * vectorDims);
  let vectorOffset = 0;
  for (const sectionVectors of openedVectors) {
    vectorFloats.set(sectionVectors, vectorOffset);
    vectorOffset += sectionVectors.length;
  }
  return { positions: Float64Array.from(openedPositions), vectors: vectorFloats };
}

function vectorKey(subjectSecret: Uint8Array): Buffer {
  return crypto.createHmac('sha256', subjectSecret).update('annals embedding').digest();
}

function writePositions(positions: Float64Array, positionWriter: ByteWriter): void {
  positionWriter.u32(positions.length);
  for (const position of positions) positionWriter.u64(position);
}

function readPositions(positionReader: ByteReader): Float64Array {
  const positions = new Float64Array(positionReader.count(8));
  for (let row = 0; row < positions.length; row++) positions[row] = positionReader.u64();
  return positions;
}

function bytesOfFloats({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** A copy, at a place where floats may lie. */
function floatsOf(floatBytes: Uint8Array): Float32Array {
  return new Float32Array(floatBytes.slice().buffer);
}
