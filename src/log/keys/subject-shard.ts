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

const SHARD_FORMAT = 1;
const SHARD_HEADER_BYTES = 80;
const SHARD_HEADER_NONCE_AT = 20;
/** Where a file's own key lies, sealed. */
export const FILE_KEY_AT = SHARD_HEADER_NONCE_AT;
export const FILE_KEY_BYTES = SHARD_HEADER_BYTES - SHARD_HEADER_NONCE_AT;
const SHARD_BLOCK_HEAD_BYTES = 40;
const SHARD_BLOCK_NONCE_AT = 28;
const SHARD_TAG_BYTES = 16;
const SHARD_NONCE_BYTES = 12;
const SHARD_KEY_BYTES = 32;
const RECEIPT_BYTES_MAX = 0xffff;
const shardMagic = Buffer.from('ANNALSUB', 'latin1');
const shardBlockMagic = Buffer.from('SKEY', 'latin1');
const emptyBody = Buffer.alloc(0);

export type BlockKind = 'keys' | 'tombstones' | 'mark';
const blockKindNumber: Readonly<Record<BlockKind, number>> = { keys: 1, tombstones: 2, mark: 3 };
const blockKindOfNumber: readonly (BlockKind | undefined)[] = [undefined, 'keys', 'tombstones', 'mark'];

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
export function shardNumber(shardFileName: string): number | undefined {
  const shardDigits = /^subjects-(\d{2,})$/.exec(shardFileName)?.[1];
  return shardDigits === undefined || shardName(Number(shardDigits)) !== shardFileName ? undefined : Number(shardDigits);
}

/** A whole file, under a file key of its own, and where its next block goes. */
export function encodeShard(
  shard: number,
  keyRecords: Uint8Array,
  tombstones: readonly Tombstone[],
  { dataKeys, random }: { readonly dataKeys: DataKeys; readonly random: Random },
): { readonly bytes: Buffer; readonly fileKey: KeyObject; readonly end: number } {
  const fileKeySecret = random.fill(new Uint8Array(SHARD_KEY_BYTES));
  const shardHeader = Buffer.alloc(SHARD_HEADER_BYTES);
  shardMagic.copy(shardHeader, 0);
  shardHeader.writeUInt32LE(SHARD_FORMAT, 8);
  shardHeader.writeUInt32LE(shard, 12);
  shardHeader.writeUInt32LE(dataKeys.activeDataKey, 16);
  random.fill(shardHeader.subarray(SHARD_HEADER_NONCE_AT, SHARD_HEADER_NONCE_AT + SHARD_NONCE_BYTES));
  const fileKeyCipher = crypto.createCipheriv(
    'aes-256-gcm',
    dataKeys.open(dataKeys.activeDataKey),
    shardHeader.subarray(SHARD_HEADER_NONCE_AT, SHARD_HEADER_NONCE_AT + SHARD_NONCE_BYTES),
  );
  fileKeyCipher.setAAD(fileKeyBinding(shardHeader));
  Buffer.concat([fileKeyCipher.update(fileKeySecret), fileKeyCipher.final(), fileKeyCipher.getAuthTag()]).copy(
    shardHeader,
    SHARD_HEADER_NONCE_AT + SHARD_NONCE_BYTES,
  );
  const fileKey = crypto.createSecretKey(fileKeySecret);
  fileKeySecret.fill(0);

  const shardBlocks: Buffer[] = [shardHeader];
  let shardEnd = SHARD_HEADER_BYTES;
  const addBlock = (blockKind: BlockKind, itemCount: number, blockBody: Uint8Array): void => {
    const shardBlock = encodeBlock({ kind: blockKind, count: itemCount, offset: shardEnd, body: blockBody }, fileKey, random);
    shardBlocks.push(shardBlock);
    shardEnd += shardBlock.length;
  };
  if (tombstones.length > 0) addBlock('tombstones', tombstones.length, encodeTombstones(tombstones));
  if (keyRecords.length > 0) addBlock('keys', keyRecords.length / RECORD_BYTES, keyRecords);
  shardBlocks.push(encodeMark(shardEnd, fileKey, random));
  return { bytes: Buffer.concat(shardBlocks), fileKey, end: shardEnd };
}

export function encodeBlock(
  {
    kind: blockKind,
    count: itemCount,
    offset: blockOffset,
    body: blockBody,
  }: { kind: BlockKind; count: number; offset: number; body: Uint8Array },
  fileKey: KeyObject,
  random: Random,
): Buffer {
  const blockHead = Buffer.alloc(SHARD_BLOCK_HEAD_BYTES);
  shardBlockMagic.copy(blockHead, 0);
  blockHead.writeUInt32LE(blockKindNumber[blockKind], 4);
  blockHead.writeUInt32LE(itemCount, 8);
  blockHead.writeUInt32LE(blockBody.length, 12);
  blockHead.writeBigUInt64LE(BigInt(blockOffset), 16);
  const blockNonce = random.fill(blockHead.subarray(SHARD_BLOCK_NONCE_AT));
  const blockCipher = crypto.createCipheriv('aes-256-gcm', fileKey, blockNonce);
  blockCipher.setAAD(blockHead.subarray(0, SHARD_BLOCK_NONCE_AT));
  return Buffer.concat([blockHead, blockCipher.update(blockBody), blockCipher.final(), blockCipher.getAuthTag()]);
}

export function encodeMark(markOffset: number, fileKey: KeyObject, random: Random): Buffer {
  return encodeBlock({ kind: 'mark', count: 0, offset: markOffset, body: emptyBody }, fileKey, random);
}

/** `isLastShard`: nothing was begun after this file, so that what it ends with may be torn. */
export function decodeShard(
  shardPath: string,
  shard: number,
  isLastShard: boolean,
  shardBytes: Buffer,
  dataKeys: DataKeys,
): ShardContent {
  const fileKey = openShardHeader(shardPath, shard, shardBytes, dataKeys);
  const keyRecords: Uint8Array[] = [];
  const tombstones: Tombstone[] = [];
  let blockOffset = SHARD_HEADER_BYTES;
  let confirmedOffset = SHARD_HEADER_BYTES;
  for (
    let shardBlock = openShardBlock(shardBytes, blockOffset, fileKey);
    shardBlock;
    shardBlock = openShardBlock(shardBytes, blockOffset, fileKey)
  ) {
    confirmedOffset = blockOffset;
    if (shardBlock.kind === 'mark') break;
    if (shardBlock.kind === 'keys') {
      if (shardBlock.body.length !== shardBlock.count * RECORD_BYTES)
        throw damagedShardError(shardPath, 'a block of keys has another length than it says');
      keyRecords.push(shardBlock.body);
    } else tombstones.push(...decodeTombstones(shardPath, shardBlock.body, shardBlock.count));
    blockOffset += shardBlock.length;
  }
  const markLength = openShardBlock(shardBytes, blockOffset, fileKey)?.length ?? 0;
  const isTorn = blockOffset + markLength < shardBytes.length;
  if (isTorn) {
    const laterBlockOffset = findBlockAfter(shardBytes, blockOffset, fileKey);
    if (laterBlockOffset !== null)
      throw damagedShardError(
        shardPath,
        `byte ${blockOffset} and what follows do not open, and byte ${laterBlockOffset} says that they were written`,
      );
    if (!isLastShard)
      throw damagedShardError(shardPath, `byte ${blockOffset} and what follows do not open, and another file was begun after it`);
  }
  return {
    fileKey,
    records: Buffer.concat(keyRecords),
    tombstones,
    end: blockOffset,
    unconfirmed: isTorn || confirmedOffset < blockOffset,
  };
}

function openShardHeader(shardPath: string, shard: number, shardBytes: Buffer, dataKeys: DataKeys): KeyObject {
  if (shardBytes.length < SHARD_HEADER_BYTES || !shardBytes.subarray(0, shardMagic.length).equals(shardMagic))
    throw damagedShardError(shardPath, 'it does not begin like one');
  const shardFormat = shardBytes.readUInt32LE(8);
  if (shardFormat !== SHARD_FORMAT)
    throw new ServiceError('REL_STORAGE', `${shardPath} has format ${shardFormat}; this version reads ${SHARD_FORMAT}`);
  if (shardBytes.readUInt32LE(12) !== shard) throw damagedShardError(shardPath, 'it was written under another name');
  const wrappingDataKey = dataKeys.open(shardBytes.readUInt32LE(16));
  const plainFileKey = unsealShardBlock(
    wrappingDataKey,
    shardBytes.subarray(SHARD_HEADER_NONCE_AT, SHARD_HEADER_BYTES),
    fileKeyBinding(shardBytes),
  );
  if (!plainFileKey) throw damagedShardError(shardPath, 'its header does not open');
  const fileKey = crypto.createSecretKey(plainFileKey);
  plainFileKey.fill(0);
  return fileKey;
}

interface ShardBlock {
  readonly kind: BlockKind;
  readonly count: number;
  readonly body: Buffer;
  /** Length of the whole block. */
  readonly length: number;
}

/** The block that begins here; null where none does. */
function openShardBlock(shardBytes: Buffer, blockOffset: number, fileKey: KeyObject): ShardBlock | null {
  if (blockOffset + SHARD_BLOCK_HEAD_BYTES + SHARD_TAG_BYTES > shardBytes.length) return null;
  if (!shardBytes.subarray(blockOffset, blockOffset + shardBlockMagic.length).equals(shardBlockMagic)) return null;
  const blockKind = blockKindOfNumber[shardBytes.readUInt32LE(blockOffset + 4)];
  const blockBodySize = shardBytes.readUInt32LE(blockOffset + 12);
  const blockLength = SHARD_BLOCK_HEAD_BYTES + blockBodySize + SHARD_TAG_BYTES;
  if (
    !blockKind ||
    blockOffset + blockLength > shardBytes.length ||
    shardBytes.readBigUInt64LE(blockOffset + 16) !== BigInt(blockOffset)
  )
    return null;
  const blockBody = unsealShardBlock(
    fileKey,
    shardBytes.subarray(blockOffset + SHARD_BLOCK_NONCE_AT, blockOffset + blockLength),
    shardBytes.subarray(blockOffset, blockOffset + SHARD_BLOCK_NONCE_AT),
  );
  return blockBody && { kind: blockKind, count: shardBytes.readUInt32LE(blockOffset + 8), body: blockBody, length: blockLength };
}

/** Where a block begins after `shardOffset`, whatever lies between; null where none does. */
function findBlockAfter(shardBytes: Buffer, shardOffset: number, fileKey: KeyObject): number | null {
  for (
    let blockMagicOffset = shardBytes.indexOf(shardBlockMagic, shardOffset + 1);
    blockMagicOffset >= 0;
    blockMagicOffset = shardBytes.indexOf(shardBlockMagic, blockMagicOffset + 1)
  ) {
    if (openShardBlock(shardBytes, blockMagicOffset, fileKey)) return blockMagicOffset;
  }
  return null;
}

/** Nonce, sealed bytes, tag; null where they do not open. */
function unsealShardBlock(blockKey: KeyObject, sealedBlock: Buffer, blockBinding: Uint8Array): Buffer | null {
  const blockDecipher = crypto.createDecipheriv('aes-256-gcm', blockKey, sealedBlock.subarray(0, SHARD_NONCE_BYTES), {
    authTagLength: SHARD_TAG_BYTES,
  });
  blockDecipher.setAAD(blockBinding);
  blockDecipher.setAuthTag(sealedBlock.subarray(-SHARD_TAG_BYTES));
  try {
    return Buffer.concat([
      blockDecipher.update(sealedBlock.subarray(SHARD_NONCE_BYTES, -SHARD_TAG_BYTES)),
      blockDecipher.final(),
    ]);
  } catch {
    return null;
  }
}

function encodeTombstones(tombstones: readonly Tombstone[]): Buffer {
  return Buffer.concat(
    tombstones.flatMap(({ id, receipt }) => {
      const receiptText = Buffer.from(receipt, 'utf8');
      const receiptLength = Buffer.alloc(2);
      receiptLength.writeUInt16LE(receiptText.length);
      return [Buffer.from(id, 'hex'), receiptLength, receiptText];
    }),
  );
}

function decodeTombstones(path: string, blockBody: Buffer, tombstoneCount: number): Tombstone[] {
  const tombstones: Tombstone[] = [];
  let tombstoneOffset = 0;
  while (tombstoneOffset + ID_BYTES + 2 <= blockBody.length) {
    const tombstoneEnd = tombstoneOffset + ID_BYTES + 2 + blockBody.readUInt16LE(tombstoneOffset + ID_BYTES);
    tombstones.push({
      id: blockBody.toString('hex', tombstoneOffset, tombstoneOffset + ID_BYTES),
      receipt: blockBody.toString('utf8', tombstoneOffset + ID_BYTES + 2, tombstoneEnd),
    });
    tombstoneOffset = tombstoneEnd;
  }
  if (tombstoneOffset !== blockBody.length || tombstones.length !== tombstoneCount)
    throw damagedShardError(path, 'a block of tombstones has another length than it says');
  return tombstones;
}

/** Throws for a receipt that a tombstone has no room for. */
export function checkReceipt(erasureReceipt: string): void {
  if (Buffer.byteLength(erasureReceipt, 'utf8') > RECEIPT_BYTES_MAX)
    throw new ServiceError('REL_INVALID', `a receipt of a destroyed key has at most ${RECEIPT_BYTES_MAX} bytes`);
}

/** The authenticated data of a wrapped file key: the fields of the header before it. */
function fileKeyBinding(shardHeader: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from('annals subject key file\0', 'latin1'), shardHeader.subarray(0, SHARD_HEADER_NONCE_AT)]);
}

function damagedShardError(shardPath: string, shardDamage: string): ServiceError {
  return new ServiceError('REL_STORAGE', `${shardPath} is damaged (${shardDamage}): restore the keys from their escrow`);
}
