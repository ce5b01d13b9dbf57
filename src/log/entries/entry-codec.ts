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
const LZ4_RATIO_MAX = 255;
/** Explicit salts of so few rows are no longer than a seed, and need no keystream. */
const EXPLICIT_SALTS_MAX = 2;
const LEAF_FIXED = 30;
const ROWS_ROOT_AT = LEAF_FIXED + HASH_BYTES;
const DIGEST_AT = ROWS_ROOT_AT + HASH_BYTES;

assert(LEAF_FIXED === 1 + 1 + 8 + 8 + 4 + 8, 'the drawing above is what is written');

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
  readonly #body: SealedBody | null;
  /** The leaf behind the 0x00 of its hash, so that hashing it copies nothing. */
  readonly #bytes: Uint8Array;
  readonly leaf: Uint8Array;
  #leafHash: Uint8Array | null = null;
  #payload: Uint8Array | null = null;

  constructor(entry: CommittedEntry, bytes: Uint8Array, body: SealedBody | Sealing) {
    this.entry = entry;
    this.#bytes = bytes;
    this.leaf = bytes.subarray(1);
    this.sealing = 'payload' in body ? null : body;
    this.#body = 'payload' in body ? body : null;
  }

  /** Whether its body is sealed. */
  get ready(): boolean {
    return this.sealing === null || this.sealing.sealed !== null;
  }

  /** Whether it is in the chain: from here on the fields below are there. */
  get linked(): boolean {
    return this.#leafHash !== null;
  }

  /** Does within the turn what is not done yet. */
  link(previousHash: Uint8Array): void {
    const { payload, root, digest } = this.#body ?? this.sealing!.now();
    const bytes = this.#bytes;
    bytes.set(previousHash, 1 + LEAF_FIXED);
    bytes.set(root, 1 + ROWS_ROOT_AT);
    bytes.set(digest, 1 + DIGEST_AT);
    this.#payload = payload;
    this.#leafHash = sha256(bytes);
  }

  get payload(): Uint8Array {
    assert(this.#payload, 'an entry that is linked has its payload');
    return this.#payload;
  }

  get leafHash(): Uint8Array {
    assert(this.#leafHash, 'an entry that is linked has its hash');
    return this.#leafHash;
  }

  /** More than the entry takes in a frame. */
  get bytesMax(): number {
    const body = this.#body ? this.#body.payload.length : payloadBytesMax(this.sealing!.request);
    return this.#bytes.length + body;
  }
}

/** Encodes and seals entries of one process. Holds scratch memory and the nonce counter; never used concurrently. */
export class EntrySealer {
  readonly #keyring: Keyring;
  readonly #random: Random;
  readonly #bulk: BulkSealer | null;
  readonly #body = new ByteWriter(1 << 16);
  readonly #leaf = new ByteWriter(1024);
  readonly #pool = new Uint8Array(8192);
  #poolAt = this.#pool.length;
  // Eight random bytes a process and a counter: no nonce comes twice under a key, even for leaves that are cut and redone.
  readonly #nonce = new Uint8Array(NONCE_BYTES);
  #nonceCounter = 0;

  /** With `bulk`, large bodies of rows are sealed there. */
  constructor(keyring: Keyring, random: Random, bulk: BulkSealer | null = null) {
    this.#keyring = keyring;
    this.#random = random;
    this.#bulk = bulk;
    random.fill(this.#nonce.subarray(0, 8));
  }

  /** Placed and linked in one turn. */
  encode(draft: EntryDraft, position: EntryPosition, previousHash: Uint8Array): EncodedEntry {
    const placed = this.placeDraft(draft, position);
    placed.link(previousHash);
    return placed;
  }

  /** Throws for what can't be encoded. A body that `bulk` is to seal is encoded only: nothing is started. */
  placeDraft({ body, context }: EntryDraft, position: EntryPosition): PlacedEntry {
    const positions = positionsOf(body);
    const bytes = this.#encodeLeaf(context, kindOf(body), position, positions);
    if (body.kind === 'parts') return this.#placeParts({ body, context }, bytes, position);
    const sections = body.kind === 'rows' && body.subjects ? this.#sections(body, context) : null;
    const secrets = body.kind === 'rows' ? this.#secrets(positions, sections) : null;
    const keyId = this.#keyring.activeDataKey;
    const key = this.#keyring.open(keyId);
    const entry = { context, body, leaf: position.leaf, position: position.position, positions, time: position.time };
    if (body.kind === 'rows' && this.#bulk?.takes(body)) {
      const nonce = this.#nextNonce().slice();
      return new PlacedEntry(
        entry,
        bytes,
        this.#prepare(body, [secrets!], [{ sections, nonce }], { path: context.path, keyId, key, nonce }),
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
    this.#body.reset();
    encodeBody(body, secrets === null ? [] : [secrets], this.#body, this.#vectors(body, context));
    assert(this.#body.length <= BODY_BYTES_MAX, 'a body fits its length field');
    const payload = sealPayload(this.#body.view(), { keyId, key, nonce: this.#nextNonce() });
    const root = secrets ? rowsRoot(body as RowsBody, context.path, saltsOfRows(secrets, positions)) : statementRoot(body);
    return new PlacedEntry(entry, bytes, { payload, root, digest: sha256(payload) });
  }

  /** Each part has salts, a nonce and sections of its own. */
  #placeParts(
    { body, context }: EntryDraft & { readonly body: RowPartsBody },
    bytes: Uint8Array,
    { leaf, position, time }: EntryPosition,
  ): PlacedEntry {
    const { path } = context;
    const entry = { context, body, leaf, position, positions: positionsOf(body), time };
    const parts: Pick<DecodedRows, 'body' | 'secrets'>[] = [];
    const seals: PartSeal[] = [];
    for (const part of body.parts) {
      const sections = part.subjects ? this.#sections(part, context) : null;
      seals.push({ sections, nonce: this.#nextNonce().slice() });
      parts.push({ body: part, secrets: this.#secrets(part.ops.length, sections) });
    }
    const secrets = parts.map((part) => part.secrets);
    const keyId = this.#keyring.activeDataKey;
    const sealedBy = { keyId, key: this.#keyring.open(keyId), nonce: this.#nextNonce().slice() };
    if (this.#bulk?.takes(body)) return new PlacedEntry(entry, bytes, this.#prepare(body, secrets, seals, { path, ...sealedBy }));
    this.#body.reset();
    encodeBody(body, secrets, this.#body);
    const sealed = sealParts(this.#body.view(), parts, seals, path);
    for (const { sections } of seals) sections?.secrets.fill(0);
    assert(sealed.body.length <= BODY_BYTES_MAX, 'a body fits its length field');
    const payload = sealPayload(sealed.body, sealedBy);
    return new PlacedEntry(entry, bytes, { payload, root: sealed.root, digest: sha256(payload) });
  }

  /** Encodes a body that `bulk` takes. */
  #prepare(
    body: RowsBody | RowPartsBody,
    secrets: readonly RowSecrets[],
    seals: readonly PartSeal[],
    sealedBy: {
      readonly path: string | null;
      readonly keyId: number;
      readonly key: crypto.KeyObject;
      readonly nonce: Uint8Array;
    },
  ): Sealing {
    const sealing = this.#bulk!.prepare(body, (target) => encodeBody(body, secrets, target), { ...sealedBy, seals });
    assert(payloadBytesMax(sealing.request) <= BODY_BYTES_MAX, 'a body fits its length field');
    return sealing;
  }

  /** Encodes the hashed part of a leaf: 0x00 and the leaf, without the fields that only sealing its body yields. */
  #encodeLeaf(context: EntryContext, kind: EntryKind, position: EntryPosition, positions: number): Uint8Array {
    const leaf = this.#leaf;
    leaf.reset();
    leaf.u8(0);
    leaf.u8(LEAF_FORMAT);
    leaf.u8(kindNumber[kind]);
    leaf.u64(position.leaf);
    leaf.u64(position.position);
    leaf.u32(positions);
    leaf.i64(position.time);
    for (let hashes = 0; hashes < 3; hashes++) leaf.raw(noPreviousHash);
    leaf.text(context.branch);
    leaf.optionalText(context.tenant);
    leaf.optionalText(context.path);
    leaf.text(context.principal);
    leaf.text(context.door);
    leaf.optionalText(context.purpose);
    leaf.text(context.correlationId);
    leaf.text(context.policyDigest);
    if (leaf.length > LEAF_BYTES_MAX) throw new ServiceError('REL_TOO_LARGE', 'the names that an entry shows exceed 64 KiB');
    return leaf.take();
  }

  #nextNonce(): Uint8Array {
    const count = this.#nonceCounter++;
    if (this.#nonceCounter === 0x1_0000_0000) {
      this.#random.fill(this.#nonce.subarray(0, 8));
      this.#nonceCounter = 0;
    }
    this.#nonce[8] = count >>> 24;
    this.#nonce[9] = count >>> 16;
    this.#nonce[10] = count >>> 8;
    this.#nonce[11] = count;
    return this.#nonce;
  }

  /** Keys are made for subjects that have none. */
  #sections(body: RowsBody, context: EntryContext): SubjectSections | null {
    return sectionsOf(body, this.#keyOf(context));
  }

  #vectors(body: EntryBody, context: EntryContext): readonly SealedVectors[] | null {
    if (!isOpen(body) || !isEmbedded(body.content)) return null;
    return sealedVectors(body.content, this.#keyOf(context), (size) => this.#draw(size));
  }

  #keyOf({ tenant, path }: EntryContext): (subject: string) => SubjectKey {
    const of = tenant ?? (path === null ? null : path.split('/', 1)[0]!);
    return (subject) => this.#keyring.subjects.sealing(of, subject);
  }

  #secrets(rows: number, sections: SubjectSections | null): RowSecrets {
    if (sections) return sections.rows.length === rows ? noSeed : { salts: 'seed', seed: this.#draw(32) };
    if (rows > EXPLICIT_SALTS_MAX) return { salts: 'seed', seed: this.#draw(32) };
    return { salts: 'explicit', bytes: this.#draw(rows * SALT_BYTES), dropped: new Map() };
  }

  #draw(size: number): Uint8Array {
    if (this.#poolAt + size > this.#pool.length) {
      this.#random.fill(this.#pool);
      this.#poolAt = 0;
    }
    return this.#pool.slice(this.#poolAt, (this.#poolAt += size));
  }
}

export function leafHashOf(leaf: Uint8Array): Uint8Array {
  return sha256(leafPrefix, leaf);
}

const leafPrefix = new Uint8Array(1);

/** Where a leaf stands, nothing else of it looked at: for a search over many. */
export function leafSpan(leaf: Uint8Array): Pick<LeafFields, 'leaf' | 'position' | 'positions'> {
  const source = new ByteReader(leaf.subarray(2, LEAF_FIXED));
  return { leaf: source.u64(), position: source.u64(), positions: source.u32() };
}

export function decodeLeaf(bytes: Uint8Array): LeafFields {
  const source = new ByteReader(bytes);
  if (bytes.length > LEAF_BYTES_MAX) throw malformedError('a leaf over 64 KiB');
  if (source.u8() !== LEAF_FORMAT) throw malformedError('an unknown leaf format');
  const kind = kindOfNumber.get(source.u8());
  if (kind === undefined) throw malformedError('an unknown entry kind');
  const facts: LeafFields = {
    kind,
    leaf: source.u64(),
    position: source.u64(),
    positions: source.u32(),
    time: source.i64(),
    previousHash: source.raw(HASH_BYTES),
    rowsRoot: source.raw(HASH_BYTES),
    payloadDigest: source.raw(HASH_BYTES),
    context: {
      branch: source.text(),
      tenant: source.optionalText(),
      path: source.optionalText(),
      principal: source.text(),
      door: source.text(),
      purpose: source.optionalText(),
      correlationId: source.text(),
      policyDigest: source.text(),
    },
  };
  source.end();
  return facts;
}

/** Keys that open bodies. */
export type BodyKeys = Pick<Keyring, 'open'> & { readonly subjects: SubjectOpener };

/**
 * Opens a payload and checks it against its leaf: digest, kind and number of positions. With `rows` the rows root is
 * recomputed too, which costs a microsecond a row; a redacted payload is always checked that way.
 */
export function decodeEntry(
  facts: LeafFields,
  payload: Uint8Array,
  keyring: BodyKeys,
  check: { readonly redacted: boolean; readonly rows: boolean },
): CommittedEntry {
  return decodeEntryWithSecrets(facts, payload, keyring, check).entry;
}

export interface OpenedEntry {
  readonly entry: CommittedEntry;
  /** Each part of its rows; empty for what has none. */
  readonly parts: readonly DecodedRows[];
}

/** The same, with what the leaves of its rows hide behind: for proofs of single rows. */
export function decodeEntryWithSecrets(
  facts: LeafFields,
  payload: Uint8Array,
  keyring: BodyKeys,
  check: { readonly redacted: boolean; readonly rows: boolean },
): OpenedEntry {
  checkDigest(facts, payload, check.redacted);
  return decodeOpened(facts, openPayload(payload, keyring), check, keyring.subjects);
}

export function checkDigest(facts: LeafFields, payload: Uint8Array, redacted: boolean): void {
  if (!redacted && !equalBytes(sha256(payload), facts.payloadDigest))
    throw malformedError('the payload does not match its digest');
}

/** The data key that a payload names; null where there are too few bytes for one. */
export function payloadKey(bytes: Uint8Array, payload: number): number | null {
  if (payload + PAYLOAD_HEAD > bytes.length) return null;
  return new DataView(bytes.buffer, bytes.byteOffset + payload, PAYLOAD_HEAD).getUint32(4, true);
}

/** An entry of a body that `decodeOpened` has found in order. */
export function entryOfChecked(facts: LeafFields, plain: Uint8Array): CommittedEntry {
  const { context, leaf, position, positions, time } = facts;
  return { context, body: decodeBody(plain, noSubjects, true).body, leaf, position, positions, time };
}

/**
 * A body once it is open: everything that its leaf says of it, its digest left out. Rows are missing from a whole payload
 * where they are sealed under a key that is destroyed, and nowhere else.
 */
export function decodeOpened(
  facts: LeafFields,
  plain: Uint8Array,
  check: { readonly redacted: boolean; readonly rows: boolean },
  subjects: SubjectOpener,
): OpenedEntry {
  const { body, parts } = decodeBody(plain, subjects);
  if (kindOf(body) !== facts.kind) throw malformedError('a body of another kind than its leaf says');
  if (positionsOf(body) !== facts.positions) throw malformedError('a body of another length than its leaf says');
  if (check.redacted && parts.length === 0 && !isBlank(body) && !hasDropped(body))
    throw malformedError('a body from which nothing was dropped, marked as if it were');
  if (!check.redacted && parts.some((part) => part.body.dropped && !part.sealed))
    throw malformedError('rows are missing from a whole payload');
  if (parts.length === 0 && !equalBytes(facts.rowsRoot, statementRoot(body)))
    throw malformedError('a root that is not of what the entry states');
  if (parts.length > 0 && (check.rows || check.redacted)) checkRoot(facts, parts);
  const { context, leaf, position, positions, time } = facts;
  return { entry: { context, body, leaf, position, positions, time }, parts };
}

function checkRoot({ positions, context, rowsRoot: stated }: LeafFields, parts: readonly DecodedRows[]): void {
  const isOne = parts.length === 1;
  const hashes = isOne && parts[0]!.sealed === null ? undefined : new Uint8Array(positions * HASH_BYTES);
  let at = 0;
  const checked = parts.map(({ body, secrets, sealed }) => {
    const rows = body.ops.length;
    const dropped = secrets.salts === 'explicit' ? secrets.dropped : undefined;
    const own = hashes?.subarray(at, (at += rows * HASH_BYTES));
    return { root: rowsRoot(body, context.path, saltsOfRows(secrets, rows), dropped, own), sealed, hashes: own };
  });
  const root = isOne ? checked[0]!.root : finishSteps(rootOfHashes(hashes!));
  if (!equalBytes(root, stated)) throw malformedError('the rows do not give the root that their leaf commits to');
  for (const part of checked) if (part.sealed) checkSealedHashes(part.sealed, part.hashes!);
}

function hasDropped(body: EntryBody): boolean {
  return isOpen(body) && isEmbedded(body.content) && body.content.dropped > 0;
}

/**
 * After their key is destroyed only these hashes are left of sealed rows, so they are checked while the rows can still be read.
 */
function checkSealedHashes({ rows, hashes: stated }: SealedRows, hashes: Uint8Array): void {
  for (let i = 0, at = 0; i < rows.length; i++) {
    const from = rows[i]! * HASH_BYTES;
    for (let k = 0; k < HASH_BYTES; k++) {
      if (hashes[from + k] !== stated[at++]) throw malformedError('a sealed row of another hash than its body states');
    }
  }
}

export function openPayload(payload: Uint8Array, keyring: Pick<Keyring, 'open'>): Uint8Array {
  if (payload.length < PAYLOAD_EXTRA) throw malformedError('a payload shorter than its frame');
  const head = new ByteReader(payload.subarray(0, PAYLOAD_HEAD));
  if (head.u8() !== PAYLOAD_FORMAT) throw malformedError('an unknown payload format');
  const flags = head.u8();
  if (flags > LZ4_FLAG || head.u16() !== 0) throw malformedError('unknown payload flags');
  const keyId = head.u32();
  const size = head.u32();
  const nonceEnd = PAYLOAD_HEAD + NONCE_BYTES;
  const sealedEnd = payload.length - TAG_BYTES;
  const decipher = crypto.createDecipheriv('aes-256-gcm', keyring.open(keyId), payload.subarray(PAYLOAD_HEAD, nonceEnd), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(payload.subarray(0, PAYLOAD_HEAD));
  decipher.setAuthTag(payload.subarray(sealedEnd));
  const plain = decipher.update(payload.subarray(nonceEnd, sealedEnd));
  try {
    decipher.final();
  } catch (cause) {
    throw new ServiceError('REL_STORAGE', `a payload does not open under data key ${keyId}`, { cause });
  }
  if (flags === 0) {
    if (plain.length !== size) throw malformedError('a body of another length');
    return plain;
  }
  return unpack(plain, size);
}

/** The codec trusts the size in its own prefix and stays silent on truncated input, so both are checked around it. */
function unpack(packed: Buffer, size: number): Uint8Array {
  if (size > BODY_BYTES_MAX || size > packed.length * LZ4_RATIO_MAX)
    throw malformedError('a compressed body that claims too much');
  if (packed.length < 4 || packed.readUInt32LE(0) !== size) throw malformedError('a compressed body of another length');
  let body: Buffer;
  try {
    body = lz4.uncompressSync(packed);
  } catch (cause) {
    throw new ServiceError('REL_STORAGE', 'malformed bytes: a compressed body does not unpack', { cause });
  }
  if (body.length !== size) throw malformedError('a compressed body that ends early');
  return body;
}
