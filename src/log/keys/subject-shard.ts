/**
 * The bytes of one file of subject keys. It holds up to 4,096 keys, so that destroying one of them rewrites a small file.
 *
 *   header     +---------------+------------+-----------+--------------+
 *   (80 bytes) | "ANNALSUB"    | format u32 | shard u32 | data key u32 |
 *              +---------------+------------+-----------+--------------+
 *              | nonce [12]    | file key [32], tag [16]: sealed under  |
 *              |               | the data key, bound to what is above   |
 *              +---------------+----------------------------------------+
 *   block      +---------------+------------+-----------+--------------+
 *   (40 bytes, | "SKEY"        | kind u32   | count u32 | size u32     |
 *    body, tag)+---------------+------------+-----------+--------------+
 *              | offset u64    | zero u32   | nonce [12]               |
 *              +---------------+------------+--------------------------+
 *              | body [size] sealed under the file key, bound to the   |
 *              | 28 bytes before the nonce                 | tag [16]  |
 *              +-------------------------------------------------------+
 *   keys       count × (id [16] | subject [16]: HMAC-SHA-256, cut | key [32])
 *   tombstones count × (id [16] | receipt size u16 | receipt, UTF-8)
 *   mark       nothing
 *
 * A block is written once all before it is on disk, so a block or a mark says of what precedes it that it was. The last
 * block is followed by a mark as soon as it is on disk; the next block takes the place of the mark. Hence what a later
 * block vouches for and doesn't open is rotten, and what nothing vouches for was never acknowledged to anyone.
 * A file that is written anew gets a new file key. Changing this needs a new format and a fixture.
 */
import * as crypto from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import type { Random } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';

export const SHARD_KEYS_MAX = 4096;
export const RECORD_BYTES = 64;
export const ID_BYTES = 16;
export const SUBJECT_AT = 16;
export const KEY_AT = 32;

const FORMAT = 1;
const HEADER_BYTES = 80;
const HEADER_NONCE_AT = 20;
/** Where a file's own key lies, sealed. */
export const FILE_KEY_AT = HEADER_NONCE_AT;
export const FILE_KEY_BYTES = HEADER_BYTES - HEADER_NONCE_AT;
const BLOCK_HEAD_BYTES = 40;
const BLOCK_NONCE_AT = 28;
const TAG_BYTES = 16;
const NONCE_BYTES = 12;
const KEY_BYTES = 32;
const RECEIPT_BYTES_MAX = 0xffff;
const magic = Buffer.from('ANNALSUB', 'latin1');
const blockMagic = Buffer.from('SKEY', 'latin1');
const nothing = Buffer.alloc(0);

export type BlockKind = 'keys' | 'tombstones' | 'mark';
const kindNumber: Readonly<Record<BlockKind, number>> = { keys: 1, tombstones: 2, mark: 3 };
const kindOf: readonly (BlockKind | undefined)[] = [undefined, 'keys', 'tombstones', 'mark'];

/** The data keys of the key file, which wrap file keys. */
export interface DataKeys {
  readonly activeDataKey: number;
  open(id: number): KeyObject;
}

export interface Tombstone {
  readonly id: string;
  readonly receipt: string;
}

export interface ShardContent {
  readonly fileKey: KeyObject;
  /** Records one after the other. */
  readonly records: Buffer;
  readonly tombstones: readonly Tombstone[];
  /** Where the next block goes. */
  readonly end: number;
  /** Nothing says that the last block was on disk, or something torn follows it. */
  readonly unconfirmed: boolean;
}

export function shardName(shard: number): string {
  return `subjects-${String(shard).padStart(2, '0')}`;
}

/** Number of the shard that a file of the key directory is; undefined for another file. */
export function shardNumber(name: string): number | undefined {
  const digits = /^subjects-(\d{2,})$/.exec(name)?.[1];
  return digits === undefined || shardName(Number(digits)) !== name ? undefined : Number(digits);
}

/** A whole file, under a file key of its own, and where its next block goes. */
export function encodeShard(
  shard: number,
  records: Uint8Array,
  tombstones: readonly Tombstone[],
  { dataKeys, random }: { readonly dataKeys: DataKeys; readonly random: Random },
): { readonly bytes: Buffer; readonly fileKey: KeyObject; readonly end: number } {
  const secret = random.fill(new Uint8Array(KEY_BYTES));
  const header = Buffer.alloc(HEADER_BYTES);
  magic.copy(header, 0);
  header.writeUInt32LE(FORMAT, 8);
  header.writeUInt32LE(shard, 12);
  header.writeUInt32LE(dataKeys.activeDataKey, 16);
  random.fill(header.subarray(HEADER_NONCE_AT, HEADER_NONCE_AT + NONCE_BYTES));
  const cipher = crypto.createCipheriv(
    'aes-256-gcm',
    dataKeys.open(dataKeys.activeDataKey),
    header.subarray(HEADER_NONCE_AT, HEADER_NONCE_AT + NONCE_BYTES),
  );
  cipher.setAAD(wrapBinding(header));
  Buffer.concat([cipher.update(secret), cipher.final(), cipher.getAuthTag()]).copy(header, HEADER_NONCE_AT + NONCE_BYTES);
  const fileKey = crypto.createSecretKey(secret);
  secret.fill(0);

  const parts: Buffer[] = [header];
  let end = HEADER_BYTES;
  const add = (kind: BlockKind, count: number, body: Uint8Array): void => {
    const block = encodeBlock({ kind, count, offset: end, body }, fileKey, random);
    parts.push(block);
    end += block.length;
  };
  if (tombstones.length > 0) add('tombstones', tombstones.length, encodeTombstones(tombstones));
  if (records.length > 0) add('keys', records.length / RECORD_BYTES, records);
  parts.push(encodeMark(end, fileKey, random));
  return { bytes: Buffer.concat(parts), fileKey, end };
}

export function encodeBlock(
  { kind, count, offset, body }: { kind: BlockKind; count: number; offset: number; body: Uint8Array },
  fileKey: KeyObject,
  random: Random,
): Buffer {
  const head = Buffer.alloc(BLOCK_HEAD_BYTES);
  blockMagic.copy(head, 0);
  head.writeUInt32LE(kindNumber[kind], 4);
  head.writeUInt32LE(count, 8);
  head.writeUInt32LE(body.length, 12);
  head.writeBigUInt64LE(BigInt(offset), 16);
  const nonce = random.fill(head.subarray(BLOCK_NONCE_AT));
  const cipher = crypto.createCipheriv('aes-256-gcm', fileKey, nonce);
  cipher.setAAD(head.subarray(0, BLOCK_NONCE_AT));
  return Buffer.concat([head, cipher.update(body), cipher.final(), cipher.getAuthTag()]);
}

export function encodeMark(offset: number, fileKey: KeyObject, random: Random): Buffer {
  return encodeBlock({ kind: 'mark', count: 0, offset, body: nothing }, fileKey, random);
}

/** `last`: nothing was begun after this file, so that what it ends with may be torn. */
export function decodeShard(path: string, shard: number, last: boolean, bytes: Buffer, dataKeys: DataKeys): ShardContent {
  const fileKey = openHeader(path, shard, bytes, dataKeys);
  const records: Uint8Array[] = [];
  const tombstones: Tombstone[] = [];
  let at = HEADER_BYTES;
  let confirmed = HEADER_BYTES;
  for (let block = openBlock(bytes, at, fileKey); block; block = openBlock(bytes, at, fileKey)) {
    confirmed = at;
    if (block.kind === 'mark') break;
    if (block.kind === 'keys') {
      if (block.body.length !== block.count * RECORD_BYTES)
        throw damagedError(path, 'a block of keys has another length than it says');
      records.push(block.body);
    } else tombstones.push(...decodeTombstones(path, block.body, block.count));
    at += block.length;
  }
  const markLength = openBlock(bytes, at, fileKey)?.length ?? 0;
  const torn = at + markLength < bytes.length;
  if (torn) {
    const later = blockAfter(bytes, at, fileKey);
    if (later !== null)
      throw damagedError(path, `byte ${at} and what follows do not open, and byte ${later} says that they were written`);
    if (!last) throw damagedError(path, `byte ${at} and what follows do not open, and another file was begun after it`);
  }
  return { fileKey, records: Buffer.concat(records), tombstones, end: at, unconfirmed: torn || confirmed < at };
}

function openHeader(path: string, shard: number, bytes: Buffer, dataKeys: DataKeys): KeyObject {
  if (bytes.length < HEADER_BYTES || !bytes.subarray(0, magic.length).equals(magic))
    throw damagedError(path, 'it does not begin like one');
  const format = bytes.readUInt32LE(8);
  if (format !== FORMAT) throw new ServiceError('REL_STORAGE', `${path} has format ${format}; this version reads ${FORMAT}`);
  if (bytes.readUInt32LE(12) !== shard) throw damagedError(path, 'it was written under another name');
  const dataKey = dataKeys.open(bytes.readUInt32LE(16));
  const plain = unseal(dataKey, bytes.subarray(HEADER_NONCE_AT, HEADER_BYTES), wrapBinding(bytes));
  if (!plain) throw damagedError(path, 'its header does not open');
  const fileKey = crypto.createSecretKey(plain);
  plain.fill(0);
  return fileKey;
}

interface Block {
  readonly kind: BlockKind;
  readonly count: number;
  readonly body: Buffer;
  /** Length of the whole block. */
  readonly length: number;
}

/** The block that begins here; null where none does. */
function openBlock(bytes: Buffer, at: number, fileKey: KeyObject): Block | null {
  if (at + BLOCK_HEAD_BYTES + TAG_BYTES > bytes.length) return null;
  if (!bytes.subarray(at, at + blockMagic.length).equals(blockMagic)) return null;
  const kind = kindOf[bytes.readUInt32LE(at + 4)];
  const size = bytes.readUInt32LE(at + 12);
  const length = BLOCK_HEAD_BYTES + size + TAG_BYTES;
  if (!kind || at + length > bytes.length || bytes.readBigUInt64LE(at + 16) !== BigInt(at)) return null;
  const body = unseal(fileKey, bytes.subarray(at + BLOCK_NONCE_AT, at + length), bytes.subarray(at, at + BLOCK_NONCE_AT));
  return body && { kind, count: bytes.readUInt32LE(at + 8), body, length };
}

/** Where a block begins after `at`, whatever lies between; null where none does. */
function blockAfter(bytes: Buffer, at: number, fileKey: KeyObject): number | null {
  for (let next = bytes.indexOf(blockMagic, at + 1); next >= 0; next = bytes.indexOf(blockMagic, next + 1)) {
    if (openBlock(bytes, next, fileKey)) return next;
  }
  return null;
}

/** Nonce, sealed bytes, tag; null where they do not open. */
function unseal(key: KeyObject, box: Buffer, binding: Uint8Array): Buffer | null {
  const decipher = crypto.createDecipheriv('aes-256-gcm', key, box.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAAD(binding);
  decipher.setAuthTag(box.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(box.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
  } catch {
    return null;
  }
}

function encodeTombstones(tombstones: readonly Tombstone[]): Buffer {
  return Buffer.concat(
    tombstones.flatMap(({ id, receipt }) => {
      const text = Buffer.from(receipt, 'utf8');
      const size = Buffer.alloc(2);
      size.writeUInt16LE(text.length);
      return [Buffer.from(id, 'hex'), size, text];
    }),
  );
}

function decodeTombstones(path: string, body: Buffer, count: number): Tombstone[] {
  const tombstones: Tombstone[] = [];
  let at = 0;
  while (at + ID_BYTES + 2 <= body.length) {
    const end = at + ID_BYTES + 2 + body.readUInt16LE(at + ID_BYTES);
    tombstones.push({
      id: body.toString('hex', at, at + ID_BYTES),
      receipt: body.toString('utf8', at + ID_BYTES + 2, end),
    });
    at = end;
  }
  if (at !== body.length || tombstones.length !== count)
    throw damagedError(path, 'a block of tombstones has another length than it says');
  return tombstones;
}

/** Throws for a receipt that a tombstone has no room for. */
export function checkReceipt(receipt: string): void {
  if (Buffer.byteLength(receipt, 'utf8') > RECEIPT_BYTES_MAX)
    throw new ServiceError('REL_INVALID', `a receipt of a destroyed key has at most ${RECEIPT_BYTES_MAX} bytes`);
}

/** The authenticated data of a wrapped file key: the fields of the header before it. */
function wrapBinding(header: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from('annals subject key file\0', 'latin1'), header.subarray(0, HEADER_NONCE_AT)]);
}

function damagedError(path: string, why: string): ServiceError {
  return new ServiceError('REL_STORAGE', `${path} is damaged (${why}): restore the keys from their escrow`);
}
