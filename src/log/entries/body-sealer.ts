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
const LZ4_BODY_BYTES_MIN = 2048;
/** Bytes sealed between two yields on the event loop: below a millisecond each. */
const SEAL_SLICE_BYTES = 512 << 10;

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
export function payloadBytesMax({ body: bodyBytes, seals: partSeals }: Pick<SealRequest, 'body' | 'seals'>): number {
  return bodyBytes.length + PAYLOAD_EXTRA + partSeals.reduce((sum, { sections }) => sum + (sections?.extraBytes ?? 0), 0);
}

/** `inBackground`: may use the thread pool, so that no slice is long. */
export function* sealInSlices(sealRequest: SealRequest, inBackground: boolean): Slices {
  const { seals: partSeals, path, keyId, key, nonce: payloadNonce, target } = sealRequest;
  // The caller encoded the body: its cells are right.
  const { parts: rowParts } = decodeBody(sealRequest.body, noSubjects, true);
  assert(rowParts.length === partSeals.length && rowParts.length > 0, 'only rows are sealed in bulk');
  yield;
  const { body: sealedBody, root } = yield* sealPartsInSlices(sealRequest.body, rowParts, partSeals, path);
  let plainBody: Uint8Array = sealedBody;
  let payloadFlags = 0;
  if (sealedBody.length >= LZ4_BODY_BYTES_MIN) {
    const bodyBuffer = Buffer.from(sealedBody.buffer, sealedBody.byteOffset, sealedBody.length);
    const packedBody =
      inBackground && sealedBody.length > SEAL_SLICE_BYTES ? yield lz4.compress(bodyBuffer) : lz4.compressSync(bodyBuffer);
    if (packedBody!.length < sealedBody.length) {
      plainBody = packedBody!;
      payloadFlags = LZ4_FLAG;
    }
  }
  yield;
  const payload = writePayloadHead(target, plainBody.length, payloadFlags, keyId, sealedBody.length, payloadNonce);
  const payloadCipher = crypto.createCipheriv('aes-256-gcm', key, payloadNonce);
  payloadCipher.setAAD(payload.subarray(0, PAYLOAD_HEAD));
  for (let sealOffset = 0; sealOffset < plainBody.length; sealOffset += SEAL_SLICE_BYTES) {
    payload.set(
      payloadCipher.update(plainBody.subarray(sealOffset, sealOffset + SEAL_SLICE_BYTES)),
      PAYLOAD_HEAD + NONCE_BYTES + sealOffset,
    );
    yield;
  }
  payloadCipher.final();
  payload.set(payloadCipher.getAuthTag(), payload.length - TAG_BYTES);
  return { payloadBytes: payload.length, root, digest: yield* digestPayload(payload) };
}

interface SealedRowsBody {
  readonly body: Uint8Array;
  readonly root: Uint8Array;
}

/** A body of rows as it is with its sections, and the root over them. */
function* sealPartsInSlices(
  rowsBytes: Uint8Array,
  rowParts: readonly Pick<DecodedRows, 'body' | 'secrets'>[],
  partSeals: readonly PartSeal[],
  organisationPath: string | null,
): Generator<undefined, SealedRowsBody> {
  const isOnePart = rowParts.length === 1;
  const totalRows = rowParts.reduce((sum, rowPart) => sum + rowPart.body.ops.length, 0);
  const partRowHashes = isOnePart ? undefined : new Uint8Array(totalRows * HASH_BYTES);
  const bytesOfEachPart = [...bytesOfParts(rowsBytes)];
  let bodyRoot: Uint8Array | null = null;
  let firstRow = 0;
  let rowsSinceYield = 0;
  for (const [i, part] of rowParts.entries()) {
    const partRows = part.body.ops.length;
    const ownRowHashes = partRowHashes?.subarray(firstRow * HASH_BYTES, (firstRow + partRows) * HASH_BYTES);
    const { sections, nonce } = partSeals[i]!;
    if (sections !== null) {
      const sealedPart = yield* subjectBodyInSlices(
        part.body,
        organisationPath,
        sections,
        nonce,
        seedOf(part.secrets),
        ownRowHashes,
      );
      bodyRoot = sealedPart.root;
      bytesOfEachPart[i] = sealedPart.body;
    } else bodyRoot = yield* rowsRootOfPart(part.body, organisationPath, saltsOfRows(part.secrets, partRows), ownRowHashes);
    firstRow += partRows;
    rowsSinceYield += partRows;
    if (rowsSinceYield < ROWS_IN_SLICES_MIN) continue;
    rowsSinceYield = 0;
    yield;
  }
  if (partRowHashes !== undefined) bodyRoot = yield* rootOfHashes(partRowHashes);
  assert(bodyRoot, 'a body of rows has a part');
  if (partSeals.every(({ sections }) => sections === null)) return { body: rowsBytes, root: bodyRoot };
  if (isOnePart) return { body: bytesOfEachPart[0]!, root: bodyRoot };
  const joinedParts = new ByteWriter(bytesOfEachPart.reduce((sum, { length }) => sum + length + 16, 0));
  joinParts(bytesOfEachPart, joinedParts);
  return { body: joinedParts.view(), root: bodyRoot };
}

/** A part whose rows are sealed by subject, and the root over them. */
function* subjectBodyInSlices(
  rowsBody: RowsBody,
  organisationPath: string | null,
  subjectSections: SubjectSections,
  sectionNonce: Uint8Array,
  saltSeed: Uint8Array,
  sectionRowHashes = new Uint8Array(rowsBody.ops.length * HASH_BYTES),
): Generator<undefined, SealedRowsBody> {
  const subjectHead = new ByteWriter();
  encodeSubjectHead(rowsBody, subjectHead);
  const sealedSections = yield* sealSections(subjectHead.view(), rowsBody, subjectSections, sectionNonce, saltSeed);
  const rowTreeRoot = yield* rowsRootOfPart(rowsBody, organisationPath, sealedSections.salts, sectionRowHashes);
  sealedSections.writeHashes(sectionRowHashes);
  return { body: sealedSections.bytes, root: rowTreeRoot };
}

function* rowsRootOfPart(
  rowsBody: RowsBody,
  organisationPath: string | null,
  rowSalts: Uint8Array,
  rowHashTarget: Uint8Array | undefined,
): Generator<undefined, Uint8Array> {
  if (rowsBody.ops.length < ROWS_IN_SLICES_MIN) return rowsRoot(rowsBody, organisationPath, rowSalts, undefined, rowHashTarget);
  return yield* rowsRootInSlices(rowsBody, organisationPath, rowSalts, rowHashTarget);
}

export function seedOf(secrets: RowSecrets): Uint8Array {
  assert(secrets.salts === 'seed', 'salts of rows that are sealed by subject come from a seed');
  return secrets.seed;
}

/** Fewer rows are hashed at once. */
const ROWS_IN_SLICES_MIN = 256;

/** The same at once. */
export function subjectBody(
  rowsBody: RowsBody,
  organisationPath: string | null,
  subjectSections: SubjectSections,
  sectionNonce: Uint8Array,
  saltSeed: Uint8Array,
): SealedRowsBody {
  return finishSteps(subjectBodyInSlices(rowsBody, organisationPath, subjectSections, sectionNonce, saltSeed));
}

/** A body of several parts at once: see `sealPartsInSlices`. */
export function sealParts(
  rowsBytes: Uint8Array,
  rowParts: readonly Pick<DecodedRows, 'body' | 'secrets'>[],
  partSeals: readonly PartSeal[],
  organisationPath: string | null,
): SealedRowsBody {
  return finishSteps(sealPartsInSlices(rowsBytes, rowParts, partSeals, organisationPath));
}

/** The seed of rows without a subject; zeros where there are none. */
export const noSeed: RowSecrets = { salts: 'seed', seed: new Uint8Array(SEED_BYTES) };

/** The head of the payload at hand: a view of the payload would cost more than the copy. */
const payloadHead = Buffer.alloc(PAYLOAD_HEAD);

/** The same at once, for a body of any kind that has no rows root to compute. */
export function sealPayload(
  bodyToSeal: Uint8Array,
  { keyId: dataKeyId, key: dataKey, nonce: payloadNonce }: Pick<SealRequest, 'keyId' | 'key' | 'nonce'>,
): Uint8Array {
  let payloadFlags = 0;
  let plainBody = bodyToSeal;
  if (bodyToSeal.length >= LZ4_BODY_BYTES_MIN) {
    const packedBody = lz4.compressSync(Buffer.from(bodyToSeal.buffer, bodyToSeal.byteOffset, bodyToSeal.length));
    if (packedBody.length < bodyToSeal.length) {
      plainBody = packedBody;
      payloadFlags = LZ4_FLAG;
    }
  }
  const payloadBuffer = Buffer.allocUnsafe(plainBody.length + PAYLOAD_EXTRA);
  const payload = writePayloadHead(payloadBuffer, plainBody.length, payloadFlags, dataKeyId, bodyToSeal.length, payloadNonce);
  const payloadCipher = crypto.createCipheriv('aes-256-gcm', dataKey, payloadNonce);
  for (let i = 0; i < PAYLOAD_HEAD; i++) payloadHead[i] = payload[i]!;
  payloadCipher.setAAD(payloadHead);
  payload.set(payloadCipher.update(plainBody), PAYLOAD_HEAD + NONCE_BYTES);
  payloadCipher.final();
  payload.set(payloadCipher.getAuthTag(), payload.length - TAG_BYTES);
  return payload;
}

/** The payload of a body of `plainBytes` once packed, without what is sealed. */
function writePayloadHead(
  payloadBuffer: Uint8Array,
  plainBytes: number,
  payloadFlags: number,
  dataKeyId: number,
  bodyBytes: number,
  payloadNonce: Uint8Array,
): Uint8Array {
  assert(plainBytes + PAYLOAD_EXTRA <= payloadBuffer.length, 'the payload has room');
  const payloadSize = plainBytes + PAYLOAD_EXTRA;
  const payload = payloadSize === payloadBuffer.length ? payloadBuffer : payloadBuffer.subarray(0, payloadSize);
  payload[0] = PAYLOAD_FORMAT;
  payload[1] = payloadFlags;
  payload[2] = payload[3] = 0;
  for (let i = 0; i < 4; i++) {
    payload[4 + i] = dataKeyId >>> (8 * i);
    payload[8 + i] = bodyBytes >>> (8 * i);
  }
  for (let i = 0; i < NONCE_BYTES; i++) payload[PAYLOAD_HEAD + i] = payloadNonce[i]!;
  return payload;
}

function* digestPayload(payloadBytes: Uint8Array): Generator<undefined, Uint8Array> {
  if (payloadBytes.length <= SEAL_SLICE_BYTES) return sha256(payloadBytes);
  const payloadHash = crypto.createHash('sha256');
  for (let hashOffset = 0; hashOffset < payloadBytes.length; hashOffset += SEAL_SLICE_BYTES) {
    payloadHash.update(payloadBytes.subarray(hashOffset, hashOffset + SEAL_SLICE_BYTES));
    yield;
  }
  const payloadDigest = new Uint8Array(HASH_BYTES);
  payloadDigest.set(payloadHash.digest());
  return payloadDigest;
}

/** From the first slice to the last at once. */
export function sealAtOnce(sealRequest: SealRequest): SealReply {
  return finishSteps(sealInSlices(sealRequest, false));
}

export const sealJob: Job<null, SealRequest, SealReply> = {
  module: import.meta.url,
  name: 'sealJob',
  begin: () => sealAtOnce,
};
