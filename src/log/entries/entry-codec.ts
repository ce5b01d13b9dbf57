/**
 * An entry as the two byte strings that a frame holds: the leaf, which is hashed into the chain and the tree and says
 * nothing of any row, and the payload, which is the sealed body.
 *
 *   leaf      +-----------+---------+----------+--------------+---------------+----------+
 *             | format u8 | kind u8 | leaf u64 | position u64 | positions u32 | time i64 |  little-endian
 *             +-----------+---------+----------+--------------+---------------+----------+
 *             | previous leaf hash [32]  | rows root [32]   | payload digest [32]         |
 *             +--------------------------+------------------+-----------------------------+
 *             | branch, tenant?, path?, principal, door, purpose?, correlation id, policy digest |  u32 texts
 *             +-----------------------------------------------------------------------------------+
 *   payload   the sealed body, see body-sealer.ts
 *
 *   leaf hash = SHA-256(0x00 | leaf)          payload digest = SHA-256(payload)
 *   rows root = see row-leaf.ts; of a branch or an exhibit the hash of its statement, see statement-root.ts; of any other
 *               kind the hash of no bytes
 *
 * The previous leaf hash inside the leaf makes the chain. Hashes cover the sealed payload, so forgetting a data key
 * changes none of them. A payload from which rows were dropped can't match its digest any more: its frame says so, and
 * what it still holds is checked against the rows root instead.
 * Rows that are sealed by subject are missing once their key is destroyed, and no byte of theirs changes.
 * Changing this needs a new format version and a fixture.
 */
import * as crypto from 'node:crypto';
import * as lz4 from 'lz4-napi';
import type { Random } from '../../clock.ts';
import { assert, ServiceError } from '../../errors.ts';
import { decodeBody, encodeBody, kindNumber, kindOfNumber } from './body-codec.ts';
import { type DecodedRows, noSubjects, type RowSecrets, type SealedRows, type SubjectOpener, saltsOfRows } from './rows-codec.ts';
import {
  LZ4_FLAG,
  NONCE_BYTES,
  noSeed,
  type PartSeal,
  PAYLOAD_EXTRA,
  PAYLOAD_FORMAT,
  PAYLOAD_HEAD,
  payloadBytesMax,
  sealParts,
  sealPayload,
  seedOf,
  subjectBody,
  TAG_BYTES,
} from './body-sealer.ts';
import { isBlank } from './text-redaction.ts';
import type { BulkSealer, SealedBody, Sealing } from './bulk-sealer.ts';
import { ByteReader, ByteWriter, malformedError } from '../bytes/byte-stream.ts';
import { isEmbedded, type SealedVectors, sealedVectors } from './embedded-vectors.ts';
import {
  type CommittedEntry,
  type EntryBody,
  type EntryContext,
  type EntryDraft,
  type EntryKind,
  isOpen,
  kindOf,
  positionsOf,
  type RowPartsBody,
  type RowsBody,
} from './entry.ts';
import type { Keyring } from '../keys/keys.ts';
import { rootOfHashes, rowsRoot, SALT_BYTES } from './row-leaf.ts';
import { statementRoot } from './statement-root.ts';
import { finishSteps } from '../threads/stepping-job.ts';
import { equalBytes, HASH_BYTES, sha256 } from '../bytes/sha256.ts';
import type { SubjectKey } from '../keys/recent-subject-keys.ts';
import { sectionsOf, type SubjectSections } from './subject-sections.ts';

export const LEAF_FORMAT = 1;
export const LEAF_BYTES_MAX = 65_535;
/** Maximum size of a body, sealed or not: it bounds the memory that a length field can make a reader allocate. */
export const BODY_BYTES_MAX = 1 << 30;

/** LZ4 can't expand further than this: a body that claims more lies. */
const BODY_LZ4_RATIO_MAX = 255;
/** Explicit salts of so few rows are no longer than a seed, and need no keystream. */
const EXPLICIT_SALT_ROWS_MAX = 2;
const LEAF_FIXED_BYTES = 30;
const LEAF_ROWS_ROOT_AT = LEAF_FIXED_BYTES + HASH_BYTES;
const LEAF_DIGEST_AT = LEAF_ROWS_ROOT_AT + HASH_BYTES;

assert(LEAF_FIXED_BYTES === 1 + 1 + 8 + 8 + 4 + 8, 'the drawing above is what is written');

export interface EntryPosition {
  readonly leaf: number;
  readonly position: number;
  readonly time: bigint;
}

export interface EncodedEntry {
  readonly entry: CommittedEntry;
  readonly leaf: Uint8Array;
  readonly payload: Uint8Array;
  readonly leafHash: Uint8Array;
}

/** The fields of a leaf, readable without opening its body. */
export interface LeafFields {
  readonly kind: EntryKind;
  readonly leaf: number;
  readonly position: number;
  readonly positions: number;
  readonly time: bigint;
  readonly previousHash: Uint8Array;
  readonly rowsRoot: Uint8Array;
  readonly payloadDigest: Uint8Array;
  readonly context: EntryContext;
}

/** The hash that the first leaf links to. */
export const noPreviousHash: Uint8Array = new Uint8Array(HASH_BYTES);

/** An entry whose place is given. It is hashed into the chain once its body is sealed and the entry before it is hashed. */
export class PlacedEntry implements EncodedEntry {
  readonly entry: CommittedEntry;
  /** Null unless the body is sealed beside the event loop. */
  readonly sealing: Sealing | null;
  readonly #sealedBody: SealedBody | null;
  /** The leaf behind the 0x00 of its hash, so that hashing it copies nothing. */
  readonly #leafBytes: Uint8Array;
  readonly leaf: Uint8Array;
  #linkedLeafHash: Uint8Array | null = null;
  #entryPayload: Uint8Array | null = null;

  constructor(committedEntry: CommittedEntry, leafBytes: Uint8Array, bodyOrSealing: SealedBody | Sealing) {
    this.entry = committedEntry;
    this.#leafBytes = leafBytes;
    this.leaf = leafBytes.subarray(1);
    this.sealing = 'payload' in bodyOrSealing ? null : bodyOrSealing;
    this.#sealedBody = 'payload' in bodyOrSealing ? bodyOrSealing : null;
  }

  /** Whether its body is sealed. */
  get ready(): boolean {
    return this.sealing === null || this.sealing.sealed !== null;
  }

  /** Whether it is in the chain: from here on the fields below are there. */
  get linked(): boolean {
    return this.#linkedLeafHash !== null;
  }

  /** Does within the turn what is not done yet. */
  link(previousHash: Uint8Array): void {
    const { payload: entryPayload, root: rowsRootHash, digest: payloadDigest } = this.#sealedBody ?? this.sealing!.now();
    const leafBytes = this.#leafBytes;
    leafBytes.set(previousHash, 1 + LEAF_FIXED_BYTES);
    leafBytes.set(rowsRootHash, 1 + LEAF_ROWS_ROOT_AT);
    leafBytes.set(payloadDigest, 1 + LEAF_DIGEST_AT);
    this.#entryPayload = entryPayload;
    this.#linkedLeafHash = sha256(leafBytes);
  }

  get payload(): Uint8Array {
    assert(this.#entryPayload, 'an entry that is linked has its payload');
    return this.#entryPayload;
  }

  get leafHash(): Uint8Array {
    assert(this.#linkedLeafHash, 'an entry that is linked has its hash');
    return this.#linkedLeafHash;
  }

  /** More than the entry takes in a frame. */
  get bytesMax(): number {
    const payloadBytes = this.#sealedBody ? this.#sealedBody.payload.length : payloadBytesMax(this.sealing!.request);
    return this.#leafBytes.length + payloadBytes;
  }
}

/** Encodes and seals entries of one process. Holds scratch memory and the nonce counter; never used concurrently. */
export class EntrySealer {
  readonly #sealerKeyring: Keyring;
  readonly #saltRandom: Random;
  readonly #bulkSealer: BulkSealer | null;
  readonly #bodyWriter = new ByteWriter(1 << 16);
  readonly #leafWriter = new ByteWriter(1024);
  readonly #randomPool = new Uint8Array(8192);
  #randomPoolOffset = this.#randomPool.length;
  // Eight random bytes a process and a counter: no nonce comes twice under a key, even for leaves that are cut and redone.
  readonly #payloadNonce = new Uint8Array(NONCE_BYTES);
  #payloadNonceCount = 0;

  /** With `bulkSealer`, large bodies of rows are sealed there. */
  constructor(sealerKeyring: Keyring, saltRandom: Random, bulkSealer: BulkSealer | null = null) {
    this.#sealerKeyring = sealerKeyring;
    this.#saltRandom = saltRandom;
    this.#bulkSealer = bulkSealer;
    saltRandom.fill(this.#payloadNonce.subarray(0, 8));
  }

  /** Placed and linked in one turn. */
  encode(draft: EntryDraft, position: EntryPosition, previousHash: Uint8Array): EncodedEntry {
    const placedEntry = this.placeDraft(draft, position);
    placedEntry.link(previousHash);
    return placedEntry;
  }

  /** Throws for what can't be encoded. A body that `bulk` is to seal is encoded only: nothing is started. */
  placeDraft({ body, context }: EntryDraft, position: EntryPosition): PlacedEntry {
    const positions = positionsOf(body);
    const bytes = this.#encodeLeaf(context, kindOf(body), position, positions);
    if (body.kind === 'parts') return this.#placeRowParts({ body, context }, bytes, position);
    const sections = body.kind === 'rows' && body.subjects ? this.#subjectSections(body, context) : null;
    const secrets = body.kind === 'rows' ? this.#drawRowSecrets(positions, sections) : null;
    const keyId = this.#sealerKeyring.activeDataKey;
    const key = this.#sealerKeyring.open(keyId);
    const entry = { context, body, leaf: position.leaf, position: position.position, positions, time: position.time };
    if (body.kind === 'rows' && this.#bulkSealer?.takes(body)) {
      const nonce = this.#nextNonce().slice();
      return new PlacedEntry(
        entry,
        bytes,
        this.#prepareBulk(body, [secrets!], [{ sections, nonce }], { path: context.path, keyId, key, nonce }),
      );
    }
    if (body.kind === 'rows' && sections) {
      const nonce = this.#nextNonce();
      const sealed = subjectBody(body, context.path, sections, nonce, seedOf(secrets!));
      sections.secrets.fill(0);
      assert(sealed.body.length <= BODY_BYTES_MAX, 'a body fits its length field');
      const payload = sealPayload(sealed.body, { keyId, key, nonce });
      return new PlacedEntry(entry, bytes, { payload, root: sealed.root, digest: sha256(payload) });
    }
    this.#bodyWriter.reset();
    encodeBody(body, secrets === null ? [] : [secrets], this.#bodyWriter, this.#sealEmbedded(body, context));
    assert(this.#bodyWriter.length <= BODY_BYTES_MAX, 'a body fits its length field');
    const payload = sealPayload(this.#bodyWriter.view(), { keyId, key, nonce: this.#nextNonce() });
    const root = secrets ? rowsRoot(body as RowsBody, context.path, saltsOfRows(secrets, positions)) : statementRoot(body);
    return new PlacedEntry(entry, bytes, { payload, root, digest: sha256(payload) });
  }

  /** Each part has salts, a nonce and sections of its own. */
  #placeRowParts(
    { body, context }: EntryDraft & { readonly body: RowPartsBody },
    leafBytes: Uint8Array,
    { leaf, position, time }: EntryPosition,
  ): PlacedEntry {
    const { path } = context;
    const partsEntry = { context, body, leaf, position, positions: positionsOf(body), time };
    const partsToSeal: Pick<DecodedRows, 'body' | 'secrets'>[] = [];
    const partSeals: PartSeal[] = [];
    for (const rowPart of body.parts) {
      const subjectSections = rowPart.subjects ? this.#subjectSections(rowPart, context) : null;
      partSeals.push({ sections: subjectSections, nonce: this.#nextNonce().slice() });
      partsToSeal.push({ body: rowPart, secrets: this.#drawRowSecrets(rowPart.ops.length, subjectSections) });
    }
    const partSecrets = partsToSeal.map((part) => part.secrets);
    const dataKeyId = this.#sealerKeyring.activeDataKey;
    const sealedBy = { keyId: dataKeyId, key: this.#sealerKeyring.open(dataKeyId), nonce: this.#nextNonce().slice() };
    if (this.#bulkSealer?.takes(body))
      return new PlacedEntry(partsEntry, leafBytes, this.#prepareBulk(body, partSecrets, partSeals, { path, ...sealedBy }));
    this.#bodyWriter.reset();
    encodeBody(body, partSecrets, this.#bodyWriter);
    const sealedParts = sealParts(this.#bodyWriter.view(), partsToSeal, partSeals, path);
    for (const { sections } of partSeals) sections?.secrets.fill(0);
    assert(sealedParts.body.length <= BODY_BYTES_MAX, 'a body fits its length field');
    const payload = sealPayload(sealedParts.body, sealedBy);
    return new PlacedEntry(partsEntry, leafBytes, { payload, root: sealedParts.root, digest: sha256(payload) });
  }

  /** Encodes a body that `bulk` takes. */
  #prepareBulk(
    rowsToSeal: RowsBody | RowPartsBody,
    partSecrets: readonly RowSecrets[],
    partSeals: readonly PartSeal[],
    sealedBy: {
      readonly path: string | null;
      readonly keyId: number;
      readonly key: crypto.KeyObject;
      readonly nonce: Uint8Array;
    },
  ): Sealing {
    const bulkSealing = this.#bulkSealer!.prepare(rowsToSeal, (target) => encodeBody(rowsToSeal, partSecrets, target), {
      ...sealedBy,
      seals: partSeals,
    });
    assert(payloadBytesMax(bulkSealing.request) <= BODY_BYTES_MAX, 'a body fits its length field');
    return bulkSealing;
  }

  /** Encodes the hashed part of a leaf: 0x00 and the leaf, without the fields that only sealing its body yields. */
  #encodeLeaf(entryContext: EntryContext, entryKind: EntryKind, position: EntryPosition, positions: number): Uint8Array {
    const leafWriter = this.#leafWriter;
    leafWriter.reset();
    leafWriter.u8(0);
    leafWriter.u8(LEAF_FORMAT);
    leafWriter.u8(kindNumber[entryKind]);
    leafWriter.u64(position.leaf);
    leafWriter.u64(position.position);
    leafWriter.u32(positions);
    leafWriter.i64(position.time);
    for (let hashFields = 0; hashFields < 3; hashFields++) leafWriter.raw(noPreviousHash);
    leafWriter.text(entryContext.branch);
    leafWriter.optionalText(entryContext.tenant);
    leafWriter.optionalText(entryContext.path);
    leafWriter.text(entryContext.principal);
    leafWriter.text(entryContext.door);
    leafWriter.optionalText(entryContext.purpose);
    leafWriter.text(entryContext.correlationId);
    leafWriter.text(entryContext.policyDigest);
    if (leafWriter.length > LEAF_BYTES_MAX)
      throw new ServiceError('REL_TOO_LARGE', 'the names that an entry shows exceed 64 KiB');
    return leafWriter.take();
  }

  #nextNonce(): Uint8Array {
    const nonceCount = this.#payloadNonceCount++;
    if (this.#payloadNonceCount === 0x1_0000_0000) {
      this.#saltRandom.fill(this.#payloadNonce.subarray(0, 8));
      this.#payloadNonceCount = 0;
    }
    this.#payloadNonce[8] = nonceCount >>> 24;
    this.#payloadNonce[9] = nonceCount >>> 16;
    this.#payloadNonce[10] = nonceCount >>> 8;
    this.#payloadNonce[11] = nonceCount;
    return this.#payloadNonce;
  }

  /** Keys are made for subjects that have none. */
  #subjectSections(rowsBody: RowsBody, entryContext: EntryContext): SubjectSections | null {
    return sectionsOf(rowsBody, this.#subjectKeyOf(entryContext));
  }

  #sealEmbedded(entryBody: EntryBody, entryContext: EntryContext): readonly SealedVectors[] | null {
    if (!isOpen(entryBody) || !isEmbedded(entryBody.content)) return null;
    return sealedVectors(entryBody.content, this.#subjectKeyOf(entryContext), (size) => this.#drawRandom(size));
  }

  #subjectKeyOf({ tenant, path }: EntryContext): (subject: string) => SubjectKey {
    const keyTenant = tenant ?? (path === null ? null : path.split('/', 1)[0]!);
    return (subject) => this.#sealerKeyring.subjects.sealing(keyTenant, subject);
  }

  #drawRowSecrets(rowCount: number, subjectSections: SubjectSections | null): RowSecrets {
    if (subjectSections) return subjectSections.rows.length === rowCount ? noSeed : { salts: 'seed', seed: this.#drawRandom(32) };
    if (rowCount > EXPLICIT_SALT_ROWS_MAX) return { salts: 'seed', seed: this.#drawRandom(32) };
    return { salts: 'explicit', bytes: this.#drawRandom(rowCount * SALT_BYTES), dropped: new Map() };
  }

  #drawRandom(drawnByteCount: number): Uint8Array {
    if (this.#randomPoolOffset + drawnByteCount > this.#randomPool.length) {
      this.#saltRandom.fill(this.#randomPool);
      this.#randomPoolOffset = 0;
    }
    return this.#randomPool.slice(this.#randomPoolOffset, (this.#randomPoolOffset += drawnByteCount));
  }
}

export function leafHashOf(leafBytes: Uint8Array): Uint8Array {
  return sha256(leafHashPrefix, leafBytes);
}

const leafHashPrefix = new Uint8Array(1);

/** Where a leaf stands, nothing else of it looked at: for a search over many. */
export function leafSpan(leaf: Uint8Array): Pick<LeafFields, 'leaf' | 'position' | 'positions'> {
  const leafReader = new ByteReader(leaf.subarray(2, LEAF_FIXED_BYTES));
  return { leaf: leafReader.u64(), position: leafReader.u64(), positions: leafReader.u32() };
}

export function decodeLeaf(leafBytes: Uint8Array): LeafFields {
  const leafReader = new ByteReader(leafBytes);
  if (leafBytes.length > LEAF_BYTES_MAX) throw malformedError('a leaf over 64 KiB');
  if (leafReader.u8() !== LEAF_FORMAT) throw malformedError('an unknown leaf format');
  const kind = kindOfNumber.get(leafReader.u8());
  if (kind === undefined) throw malformedError('an unknown entry kind');
  const leafFields: LeafFields = {
    kind,
    leaf: leafReader.u64(),
    position: leafReader.u64(),
    positions: leafReader.u32(),
    time: leafReader.i64(),
    previousHash: leafReader.raw(HASH_BYTES),
    rowsRoot: leafReader.raw(HASH_BYTES),
    payloadDigest: leafReader.raw(HASH_BYTES),
    context: {
      branch: leafReader.text(),
      tenant: leafReader.optionalText(),
      path: leafReader.optionalText(),
      principal: leafReader.text(),
      door: leafReader.text(),
      purpose: leafReader.optionalText(),
      correlationId: leafReader.text(),
      policyDigest: leafReader.text(),
    },
  };
  leafReader.end();
  return leafFields;
}

/** Keys that open bodies. */
export type BodyKeys = Pick<Keyring, 'open'> & { readonly subjects: SubjectOpener };

/**
 * Opens a payload and checks it against its leaf: digest, kind and number of positions. With `rows` the rows root is
 * recomputed too, which costs a microsecond a row; a redacted payload is always checked that way.
 */
export function decodeEntry(
  leafFields: LeafFields,
  payload: Uint8Array,
  keyring: BodyKeys,
  entryChecks: { readonly redacted: boolean; readonly rows: boolean },
): CommittedEntry {
  return decodeEntryWithSecrets(leafFields, payload, keyring, entryChecks).entry;
}

export interface OpenedEntry {
  readonly entry: CommittedEntry;
  /** Each part of its rows; empty for what has none. */
  readonly parts: readonly DecodedRows[];
}

/** The same, with what the leaves of its rows hide behind: for proofs of single rows. */
export function decodeEntryWithSecrets(
  leafFields: LeafFields,
  payload: Uint8Array,
  keyring: BodyKeys,
  entryChecks: { readonly redacted: boolean; readonly rows: boolean },
): OpenedEntry {
  checkDigest(leafFields, payload, entryChecks.redacted);
  return decodeOpened(leafFields, openPayload(payload, keyring), entryChecks, keyring.subjects);
}

export function checkDigest(leafFields: LeafFields, payload: Uint8Array, redacted: boolean): void {
  if (!redacted && !equalBytes(sha256(payload), leafFields.payloadDigest))
    throw malformedError('the payload does not match its digest');
}

/** The data key that a payload names; null where there are too few bytes for one. */
export function payloadKey(bytes: Uint8Array, payloadOffset: number): number | null {
  if (payloadOffset + PAYLOAD_HEAD > bytes.length) return null;
  return new DataView(bytes.buffer, bytes.byteOffset + payloadOffset, PAYLOAD_HEAD).getUint32(4, true);
}

/** An entry of a body that `decodeOpened` has found in order. */
export function entryOfChecked(leafFields: LeafFields, checkedBody: Uint8Array): CommittedEntry {
  const { context, leaf, position, positions, time } = leafFields;
  return { context, body: decodeBody(checkedBody, noSubjects, true).body, leaf, position, positions, time };
}

/**
 * A body once it is open: everything that its leaf says of it, its digest left out. Rows are missing from a whole payload
 * where they are sealed under a key that is destroyed, and nowhere else.
 */
export function decodeOpened(
  leafFields: LeafFields,
  openedBody: Uint8Array,
  entryChecks: { readonly redacted: boolean; readonly rows: boolean },
  subjects: SubjectOpener,
): OpenedEntry {
  const { body, parts: decodedParts } = decodeBody(openedBody, subjects);
  if (kindOf(body) !== leafFields.kind) throw malformedError('a body of another kind than its leaf says');
  if (positionsOf(body) !== leafFields.positions) throw malformedError('a body of another length than its leaf says');
  if (entryChecks.redacted && decodedParts.length === 0 && !isBlank(body) && !hasDroppedVectors(body))
    throw malformedError('a body from which nothing was dropped, marked as if it were');
  if (!entryChecks.redacted && decodedParts.some((part) => part.body.dropped && !part.sealed))
    throw malformedError('rows are missing from a whole payload');
  if (decodedParts.length === 0 && !equalBytes(leafFields.rowsRoot, statementRoot(body)))
    throw malformedError('a root that is not of what the entry states');
  if (decodedParts.length > 0 && (entryChecks.rows || entryChecks.redacted)) checkRowsRoot(leafFields, decodedParts);
  const { context, leaf, position, positions, time } = leafFields;
  return { entry: { context, body, leaf, position, positions, time }, parts: decodedParts };
}

function checkRowsRoot(
  { positions: entryPositions, context, rowsRoot: statedRoot }: LeafFields,
  parts: readonly DecodedRows[],
): void {
  const isOnePart = parts.length === 1;
  const leafRowHashes = isOnePart && parts[0]!.sealed === null ? undefined : new Uint8Array(entryPositions * HASH_BYTES);
  let hashOffset = 0;
  const checkedParts = parts.map(({ body, secrets, sealed }) => {
    const partRowCount = body.ops.length;
    const droppedRows = secrets.salts === 'explicit' ? secrets.dropped : undefined;
    const ownRowHashes = leafRowHashes?.subarray(hashOffset, (hashOffset += partRowCount * HASH_BYTES));
    return {
      root: rowsRoot(body, context.path, saltsOfRows(secrets, partRowCount), droppedRows, ownRowHashes),
      sealed,
      hashes: ownRowHashes,
    };
  });
  const checkedRoot = isOnePart ? checkedParts[0]!.root : finishSteps(rootOfHashes(leafRowHashes!));
  if (!equalBytes(checkedRoot, statedRoot)) throw malformedError('the rows do not give the root that their leaf commits to');
  for (const checkedPart of checkedParts) if (checkedPart.sealed) checkSealedHashes(checkedPart.sealed, checkedPart.hashes!);
}

function hasDroppedVectors(body: EntryBody): boolean {
  return isOpen(body) && isEmbedded(body.content) && body.content.dropped > 0;
}

/**
 * After their key is destroyed only these hashes are left of sealed rows, so they are checked while the rows can still be read.
 */
function checkSealedHashes({ rows: sealedRows, hashes: statedHashes }: SealedRows, leafRowHashes: Uint8Array): void {
  for (let i = 0, statedOffset = 0; i < sealedRows.length; i++) {
    const rowHashOffset = sealedRows[i]! * HASH_BYTES;
    for (let k = 0; k < HASH_BYTES; k++) {
      if (leafRowHashes[rowHashOffset + k] !== statedHashes[statedOffset++])
        throw malformedError('a sealed row of another hash than its body states');
    }
  }
}

export function openPayload(sealedPayload: Uint8Array, keyring: Pick<Keyring, 'open'>): Uint8Array {
  if (sealedPayload.length < PAYLOAD_EXTRA) throw malformedError('a payload shorter than its frame');
  const payloadHead = new ByteReader(sealedPayload.subarray(0, PAYLOAD_HEAD));
  if (payloadHead.u8() !== PAYLOAD_FORMAT) throw malformedError('an unknown payload format');
  const payloadFlags = payloadHead.u8();
  if (payloadFlags > LZ4_FLAG || payloadHead.u16() !== 0) throw malformedError('unknown payload flags');
  const dataKeyId = payloadHead.u32();
  const bodySize = payloadHead.u32();
  const nonceEnd = PAYLOAD_HEAD + NONCE_BYTES;
  const sealedEnd = sealedPayload.length - TAG_BYTES;
  const payloadDecipher = crypto.createDecipheriv(
    'aes-256-gcm',
    keyring.open(dataKeyId),
    sealedPayload.subarray(PAYLOAD_HEAD, nonceEnd),
    {
      authTagLength: TAG_BYTES,
    },
  );
  payloadDecipher.setAAD(sealedPayload.subarray(0, PAYLOAD_HEAD));
  payloadDecipher.setAuthTag(sealedPayload.subarray(sealedEnd));
  const plainBody = payloadDecipher.update(sealedPayload.subarray(nonceEnd, sealedEnd));
  try {
    payloadDecipher.final();
  } catch (cause) {
    throw new ServiceError('REL_STORAGE', `a payload does not open under data key ${dataKeyId}`, { cause });
  }
  if (payloadFlags === 0) {
    if (plainBody.length !== bodySize) throw malformedError('a body of another length');
    return plainBody;
  }
  return unpackBody(plainBody, bodySize);
}

/** The codec trusts the size in its own prefix and stays silent on truncated input, so both are checked around it. */
function unpackBody(packedBody: Buffer, bodySize: number): Uint8Array {
  if (bodySize > BODY_BYTES_MAX || bodySize > packedBody.length * BODY_LZ4_RATIO_MAX)
    throw malformedError('a compressed body that claims too much');
  if (packedBody.length < 4 || packedBody.readUInt32LE(0) !== bodySize)
    throw malformedError('a compressed body of another length');
  let unpackedBody: Buffer;
  try {
    unpackedBody = lz4.uncompressSync(packedBody);
  } catch (cause) {
    throw new ServiceError('REL_STORAGE', 'malformed bytes: a compressed body does not unpack', { cause });
  }
  if (unpackedBody.length !== bodySize) throw malformedError('a compressed body that ends early');
  return unpackedBody;
}
