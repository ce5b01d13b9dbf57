/**
 * Everything that the bytes of a rows body need before their leaf can commit to them, and that asks for no order: sections
 * of rows that are sealed by subject, the root over the rows, LZ4, AES-256-GCM and the payload's digest. A function of its request alone, so that it may run
 * anywhere: in the calling turn, a slice a turn, or in a thread. The bytes are the same.
 *
 *   payload   +-----------+----------+------------+----------------+-----------+------------+---------+
 *             | format u8 | flags u8 | zero u16   | data key u32   | body u32  | nonce [12] | sealed  | tag [16]
 *             +-----------+----------+------------+----------------+-----------+------------+---------+
 *              flags: 1 = the body was LZ4-compressed before sealing; the first 12 bytes are authenticated
 */
import * as crypto from 'node:crypto';
import * as lz4 from 'lz4-napi';
import { assert } from '../../errors.ts';
import { bytesOfParts, decodeBody, encodeSubjectHead, joinParts } from './body-codec.ts';
import { type DecodedRows, noSubjects, type RowSecrets, saltsOfRows } from './rows-codec.ts';
import { ByteWriter } from '../bytes/byte-stream.ts';
import type { RowsBody } from './entry.ts';
import { rootOfHashes, rowsRoot, rowsRootInSlices } from './row-leaf.ts';
import { HASH_BYTES, sha256 } from '../bytes/sha256.ts';
import { sealSections } from './section-sealer.ts';
import { SEED_BYTES, type SubjectSections } from './subject-sections.ts';
import { finishSteps } from '../threads/stepping-job.ts';
import type { Job } from '../threads/workers.ts';

export const PAYLOAD_FORMAT = 1;
export const PAYLOAD_HEAD = 12;
export const NONCE_BYTES = 12;
export const TAG_BYTES = 16;
export const LZ4_FLAG = 1;
/** Bytes that a payload adds to its body at most. */
export const PAYLOAD_EXTRA = PAYLOAD_HEAD + NONCE_BYTES + TAG_BYTES;
/** Below this LZ4 costs more than it saves. */
const LZ4_FROM_BYTES = 2048;
/** Bytes sealed between two yields on the event loop: below a millisecond each. */
const SLICE_BYTES = 512 << 10;

/** How the rows of one part are sealed by subject. */
export interface PartSeal {
  /** Null where all rows are nobody's. */
  readonly sections: SubjectSections | null;
  /** Used for nothing else inside of bodies. */
  readonly nonce: Uint8Array;
}

export interface SealRequest {
  /** As it is without sections. */
  readonly body: Uint8Array;
  /** The seal of each part of the body. */
  readonly seals: readonly PartSeal[];
  readonly path: string | null;
  readonly keyId: number;
  readonly key: crypto.KeyObject;
  readonly nonce: Uint8Array;
  /** Where the payload goes; room for `payloadBytesMax`. */
  readonly target: Uint8Array;
}

export interface SealReply {
  readonly payloadBytes: number;
  readonly root: Uint8Array;
  readonly digest: Uint8Array;
}

/** Yields between slices; a promise that it yields is to be waited for and its result handed back. */
export type Slices = Generator<Promise<Buffer> | undefined, SealReply, Buffer | undefined>;

/** No payload of such a body is longer. */
export function payloadBytesMax({ body, seals }: Pick<SealRequest, 'body' | 'seals'>): number {
  return body.length + PAYLOAD_EXTRA + seals.reduce((sum, { sections }) => sum + (sections?.extraBytes ?? 0), 0);
}

/** `background`: may use the thread pool, so that no slice is long. */
export function* sealInSlices(request: SealRequest, background: boolean): Slices {
  const { seals, path, keyId, key, nonce, target } = request;
  // The caller encoded the body: its cells are right.
  const { parts } = decodeBody(request.body, noSubjects, true);
  assert(parts.length === seals.length && parts.length > 0, 'only rows are sealed in bulk');
  yield;
  const { body, root } = yield* sealPartsInSlices(request.body, parts, seals, path);
  let plain: Uint8Array = body;
  let flags = 0;
  if (body.length >= LZ4_FROM_BYTES) {
    const source = Buffer.from(body.buffer, body.byteOffset, body.length);
    const packed = background && body.length > SLICE_BYTES ? yield lz4.compress(source) : lz4.compressSync(source);
    if (packed!.length < body.length) {
      plain = packed!;
      flags = LZ4_FLAG;
    }
  }
  yield;
  const payload = writePayloadHead(target, plain.length, flags, keyId, body.length, nonce);
  const cipher = crypto.createCipheriv('aes-256-gcm', key, nonce);
  cipher.setAAD(payload.subarray(0, PAYLOAD_HEAD));
  for (let at = 0; at < plain.length; at += SLICE_BYTES) {
    payload.set(cipher.update(plain.subarray(at, at + SLICE_BYTES)), PAYLOAD_HEAD + NONCE_BYTES + at);
    yield;
  }
  cipher.final();
  payload.set(cipher.getAuthTag(), payload.length - TAG_BYTES);
  return { payloadBytes: payload.length, root, digest: yield* digestInSlices(payload) };
}

interface SealedRowsBody {
  readonly body: Uint8Array;
  readonly root: Uint8Array;
}

/** A body of rows as it is with its sections, and the root over them. */
function* sealPartsInSlices(
  body: Uint8Array,
  parts: readonly Pick<DecodedRows, 'body' | 'secrets'>[],
  seals: readonly PartSeal[],
  path: string | null,
): Generator<undefined, SealedRowsBody> {
  const isOne = parts.length === 1;
  const rows = parts.reduce((sum, part) => sum + part.body.ops.length, 0);
  const hashes = isOne ? undefined : new Uint8Array(rows * HASH_BYTES);
  const bytes = [...bytesOfParts(body)];
  let root: Uint8Array | null = null;
  let first = 0;
  let since = 0;
  for (const [i, part] of parts.entries()) {
    const count = part.body.ops.length;
    const own = hashes?.subarray(first * HASH_BYTES, (first + count) * HASH_BYTES);
    const { sections, nonce } = seals[i]!;
    if (sections !== null) {
      const sealed = yield* subjectBodyInSlices(part.body, path, sections, nonce, seedOf(part.secrets), own);
      root = sealed.root;
      bytes[i] = sealed.body;
    } else root = yield* rootInSlices(part.body, path, saltsOfRows(part.secrets, count), own);
    first += count;
    since += count;
    if (since < SLICED_ROWS_MIN) continue;
    since = 0;
    yield;
  }
  if (hashes !== undefined) root = yield* rootOfHashes(hashes);
  assert(root, 'a body of rows has a part');
  if (seals.every(({ sections }) => sections === null)) return { body, root };
  if (isOne) return { body: bytes[0]!, root };
  const joined = new ByteWriter(bytes.reduce((sum, { length }) => sum + length + 16, 0));
  joinParts(bytes, joined);
  return { body: joined.view(), root };
}

/** A part whose rows are sealed by subject, and the root over them. */
function* subjectBodyInSlices(
  body: RowsBody,
  path: string | null,
  sections: SubjectSections,
  nonce: Uint8Array,
  seed: Uint8Array,
  hashes = new Uint8Array(body.ops.length * HASH_BYTES),
): Generator<undefined, SealedRowsBody> {
  const head = new ByteWriter();
  encodeSubjectHead(body, head);
  const sealed = yield* sealSections(head.view(), body, sections, nonce, seed);
  const root = yield* rootInSlices(body, path, sealed.salts, hashes);
  sealed.writeHashes(hashes);
  return { body: sealed.bytes, root };
}

function* rootInSlices(
  body: RowsBody,
  path: string | null,
  salts: Uint8Array,
  hashes: Uint8Array | undefined,
): Generator<undefined, Uint8Array> {
  if (body.ops.length < SLICED_ROWS_MIN) return rowsRoot(body, path, salts, undefined, hashes);
  return yield* rowsRootInSlices(body, path, salts, hashes);
}

export function seedOf(secrets: RowSecrets): Uint8Array {
  assert(secrets.salts === 'seed', 'salts of rows that are sealed by subject come from a seed');
  return secrets.seed;
}

/** Fewer rows are hashed at once. */
const SLICED_ROWS_MIN = 256;

/** The same at once. */
export function subjectBody(
  body: RowsBody,
  path: string | null,
  sections: SubjectSections,
  nonce: Uint8Array,
  seed: Uint8Array,
): SealedRowsBody {
  return finishSteps(subjectBodyInSlices(body, path, sections, nonce, seed));
}

/** A body of several parts at once: see `sealPartsInSlices`. */
export function sealParts(
  body: Uint8Array,
  parts: readonly Pick<DecodedRows, 'body' | 'secrets'>[],
  seals: readonly PartSeal[],
  path: string | null,
): SealedRowsBody {
  return finishSteps(sealPartsInSlices(body, parts, seals, path));
}

/** The seed of rows without a subject; zeros where there are none. */
export const noSeed: RowSecrets = { salts: 'seed', seed: new Uint8Array(SEED_BYTES) };

/** The head of the payload at hand: a view of the payload would cost more than the copy. */
const head = Buffer.alloc(PAYLOAD_HEAD);

/** The same at once, for a body of any kind that has no rows root to compute. */
export function sealPayload(body: Uint8Array, { keyId, key, nonce }: Pick<SealRequest, 'keyId' | 'key' | 'nonce'>): Uint8Array {
  let flags = 0;
  let plain = body;
  if (body.length >= LZ4_FROM_BYTES) {
    const packed = lz4.compressSync(Buffer.from(body.buffer, body.byteOffset, body.length));
    if (packed.length < body.length) {
      plain = packed;
      flags = LZ4_FLAG;
    }
  }
  const target = Buffer.allocUnsafe(plain.length + PAYLOAD_EXTRA);
  const payload = writePayloadHead(target, plain.length, flags, keyId, body.length, nonce);
  const cipher = crypto.createCipheriv('aes-256-gcm', key, nonce);
  for (let i = 0; i < PAYLOAD_HEAD; i++) head[i] = payload[i]!;
  cipher.setAAD(head);
  payload.set(cipher.update(plain), PAYLOAD_HEAD + NONCE_BYTES);
  cipher.final();
  payload.set(cipher.getAuthTag(), payload.length - TAG_BYTES);
  return payload;
}

/** The payload of a body of `plainBytes` once packed, without what is sealed. */
function writePayloadHead(
  target: Uint8Array,
  plainBytes: number,
  flags: number,
  keyId: number,
  bodyBytes: number,
  nonce: Uint8Array,
): Uint8Array {
  assert(plainBytes + PAYLOAD_EXTRA <= target.length, 'the payload has room');
  const size = plainBytes + PAYLOAD_EXTRA;
  const payload = size === target.length ? target : target.subarray(0, size);
  payload[0] = PAYLOAD_FORMAT;
  payload[1] = flags;
  payload[2] = payload[3] = 0;
  for (let i = 0; i < 4; i++) {
    payload[4 + i] = keyId >>> (8 * i);
    payload[8 + i] = bodyBytes >>> (8 * i);
  }
  for (let i = 0; i < NONCE_BYTES; i++) payload[PAYLOAD_HEAD + i] = nonce[i]!;
  return payload;
}

function* digestInSlices(bytes: Uint8Array): Generator<undefined, Uint8Array> {
  if (bytes.length <= SLICE_BYTES) return sha256(bytes);
  const hash = crypto.createHash('sha256');
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
    hash.update(bytes.subarray(at, at + SLICE_BYTES));
    yield;
  }
  const digest = new Uint8Array(HASH_BYTES);
  digest.set(hash.digest());
  return digest;
}

/** From the first slice to the last at once. */
export function sealAtOnce(request: SealRequest): SealReply {
  return finishSteps(sealInSlices(request, false));
}

export const sealJob: Job<null, SealRequest, SealReply> = {
  module: import.meta.url,
  name: 'sealJob',
  begin: () => sealAtOnce,
};
