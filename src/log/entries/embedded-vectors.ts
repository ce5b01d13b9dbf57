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
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const DIGEST_BYTES = 32;
const DIMS_MAX = 4_096;

const field = { model: 1, digest: 2, type: 3, columns: 4, dims: 5, rows: 6, sections: 7, dropped: 8 } as const;

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
  keyOf: (subject: string) => SubjectKey,
  draw: (size: number) => Uint8Array,
): readonly SealedVectors[] | null {
  if (subjects === undefined) return null;
  const rowsOf = new Map<string, number[]>();
  for (const [row, subject] of subjects.entries()) {
    const rows = rowsOf.get(subject);
    if (rows === undefined) rowsOf.set(subject, [row]);
    else rows.push(row);
  }
  return [...rowsOf].map(([subject, rows]): SealedVectors => {
    const sealingKey = keyOf(subject);
    const key = Buffer.from(sealingKey.id, 'hex');
    const secret = Buffer.alloc(KEY_BYTES);
    sealingKey.copyTo(secret, 0);
    const plain = new Uint8Array(rows.length * dims * 4);
    for (const [i, row] of rows.entries()) plain.set(bytesOf(vectors.subarray(row * dims, (row + 1) * dims)), i * dims * 4);
    const nonce = draw(NONCE_BYTES).slice();
    const cipher = crypto.createCipheriv('aes-256-gcm', vectorKey(secret), nonce);
    cipher.setAAD(key);
    const sealed = Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
    return { key, nonce, positions: Float64Array.from(rows, (row) => positions[row]!), sealed };
  });
}

export function writeEmbedded(content: Embedded, sections: readonly SealedVectors[] | null, target: ByteWriter): void {
  const { model, digest, type, columns, dims, positions, vectors, dropped } = content;
  assert((sections === null) === (content.subjects === undefined), 'vectors of a subject are sealed');
  assert(vectors.length === positions.length * dims, 'each row has its vector');
  target.u8(2);
  const plain = sections === null && positions.length > 0;
  writeFields(
    [
      [field.model, (bytes) => bytes.text(model)],
      [field.digest, (bytes) => bytes.raw(Buffer.from(digest, 'hex'))],
      [field.type, (bytes) => bytes.text(type)],
      [
        field.columns,
        (bytes) => {
          bytes.u32(columns.length);
          for (const column of columns) bytes.text(column);
        },
      ],
      [field.dims, (bytes) => bytes.u32(dims)],
      [
        field.rows,
        plain
          ? (bytes) => {
              writePositions(positions, bytes);
              bytes.raw(bytesOf(vectors));
            }
          : null,
      ],
      [
        field.sections,
        sections === null
          ? null
          : (bytes) => {
              bytes.u32(sections.length);
              for (const section of sections) {
                bytes.raw(section.key);
                bytes.raw(section.nonce);
                writePositions(section.positions, bytes);
                bytes.raw(section.sealed);
              }
            },
      ],
      [field.dropped, dropped === 0 ? null : (bytes) => bytes.u32(dropped)],
    ],
    target,
  );
}

/** Rows whose key is destroyed are missing. */
export function readEmbedded(source: ByteReader, subjects: SubjectOpener): Embedded {
  let [model, digest, type] = ['', '', ''];
  let columns: readonly string[] = [];
  let [dims, dropped] = [0, 0];
  let rows: Pick<Embedded, 'positions' | 'vectors'> = { positions: new Float64Array(0), vectors: new Float32Array(0) };
  let isSealed = false as boolean;
  readFields(source, (tag, bytes) => {
    switch (tag) {
      case field.model:
        model = bytes.text();
        return true;
      case field.digest:
        digest = Buffer.from(bytes.raw(DIGEST_BYTES)).toString('hex');
        return true;
      case field.type:
        type = bytes.text();
        return true;
      case field.columns:
        columns = Array.from({ length: bytes.count(4) }, () => bytes.text());
        return true;
      case field.dims:
        dims = bytes.u32();
        if (dims === 0 || dims > DIMS_MAX) throw malformedError('vectors of no dimensions, or of too many');
        return true;
      case field.rows: {
        if (dims === 0) throw malformedError('vectors of no dimensions');
        const positions = readPositions(bytes);
        if (positions.length === 0) throw malformedError('vectors of no rows');
        rows = { positions, vectors: floatsOf(bytes.raw(positions.length * dims * 4)) };
        return true;
      }
      case field.sections:
        if (dims === 0 || rows.positions.length > 0) throw malformedError('sealed vectors beside open ones');
        rows = openSections(bytes, dims, subjects);
        isSealed = true;
        return true;
      case field.dropped:
        dropped = bytes.u32();
        if (dropped === 0) throw malformedError('a count of no rows that were dropped');
        return true;
      default:
        return false;
    }
  });
  if (digest === '' || dims === 0 || columns.length === 0) throw malformedError('vectors without a model, or of no texts');
  return { model, digest, type, columns, dims, ...rows, dropped, ...(isSealed && { isSealed: true as const }) };
}

/** Without the rows that are `gone`; null where there are none of them, or they are sealed: their key is what is destroyed. */
export function withoutVectors(content: Embedded, gone: (position: number) => boolean): Embedded | null {
  if (content.isSealed === true) return null;
  const { positions, vectors, dims } = content;
  const remainingRows: number[] = [];
  for (const [row, position] of positions.entries()) if (!gone(position)) remainingRows.push(row);
  if (remainingRows.length === positions.length) return null;
  const left = new Float32Array(remainingRows.length * dims);
  for (const [i, row] of remainingRows.entries()) left.set(vectors.subarray(row * dims, (row + 1) * dims), i * dims);
  return {
    ...content,
    positions: Float64Array.from(remainingRows, (row) => positions[row]!),
    vectors: left,
    dropped: content.dropped + positions.length - remainingRows.length,
  };
}

/** Whether an open body holds vectors. */
export function isEmbedded(content: OpenBody['content']): content is Embedded {
  return typeof content !== 'string' && !(content instanceof Uint8Array);
}

type Rows = Pick<Embedded, 'positions' | 'vectors'>;

function openSections(source: ByteReader, dims: number, subjects: SubjectOpener): Rows {
  const positions: number[] = [];
  const parts: Float32Array[] = [];
  const secret = Buffer.alloc(KEY_BYTES);
  let left = source.count(KEY_ID_BYTES + NONCE_BYTES + 4 + TAG_BYTES);
  if (left === 0) throw malformedError('sealed vectors of nobody');
  for (; left > 0; left--) {
    const key = source.raw(KEY_ID_BYTES);
    const nonce = source.raw(NONCE_BYTES);
    const rows = readPositions(source);
    const sealed = source.raw(rows.length * dims * 4 + TAG_BYTES);
    if (!subjects.copyKey(key, secret, 0)) continue;
    const decipher = crypto.createDecipheriv('aes-256-gcm', vectorKey(secret), nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(key);
    decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
    const plain = decipher.update(sealed.subarray(0, -TAG_BYTES));
    try {
      decipher.final();
    } catch (cause) {
      throw new ServiceError('REL_STORAGE', "vectors of a subject's rows do not open under its key", { cause });
    }
    positions.push(...rows);
    parts.push(floatsOf(plain));
  }
  const vectors = new Float32Array(positions.length * dims);
  let at = 0;
  for (const part of parts) {
    vectors.set(part, at);
    at += part.length;
  }
  return { positions: Float64Array.from(positions), vectors };
}

function vectorKey(secret: Uint8Array): Buffer {
  return crypto.createHmac('sha256', secret).update('annals embedding').digest();
}

function writePositions(positions: Float64Array, target: ByteWriter): void {
  target.u32(positions.length);
  for (const position of positions) target.u64(position);
}

function readPositions(source: ByteReader): Float64Array {
  const positions = new Float64Array(source.count(8));
  for (let row = 0; row < positions.length; row++) positions[row] = source.u64();
  return positions;
}

function bytesOf({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** A copy, at a place where floats may lie. */
function floatsOf(bytes: Uint8Array): Float32Array {
  return new Float32Array(bytes.slice().buffer);
}
