/**
 * The escrow of the keys: everything that opens a data directory, as it stands now, in one file that is kept elsewhere than
 * the backups and is sealed under a secret of its own. Keys that were destroyed are not in it; that they were is.
 *
 *   line     JSON in the clear: format, when, whose log, how much is in it. Every piece is bound to it.
 *   pieces   size u32 | nonce [12] | kind u8 and content, sealed | tag [16]
 *            bound to the line, to their number and to whether they are the last one
 *   digest   SHA-256 of all before it
 *
 * The digest tells a damaged file without the secret; the seals tell an edited one. Changing this needs a new format and a
 * fixture.
 */
import * as crypto from 'node:crypto';
import type { Random } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import type { Disk } from '../disk/disk.ts';
import { formatSecrets, type KeySecrets, parseSecrets, sealKeyFile } from './key-file.ts';
import { type KeyContents, keyFilePath } from './keys.ts';
import { equalBytes, HASH_BYTES } from '../bytes/sha256.ts';
import { encodeShard, RECORD_BYTES, SHARD_KEYS_MAX, shardName, shardNumber, type Tombstone } from './subject-shard.ts';

const ESCROW_FORMAT = 1;
const ESCROW_KEY_BYTES = 32;
const ESCROW_NONCE_BYTES = 12;
const ESCROW_TAG_BYTES = 16;
const LABEL_LINE_BYTES_MAX = 1 << 16;
const PIECE_TOMBSTONES = 4096;
const secretsPiece = 1;
const recordsPiece = 2;
const tombstonesPiece = 3;

/** The part of an escrow that is readable without its secret. */
export interface EscrowLabel {
  readonly format: number;
  /** RFC 3339. */
  readonly made_at: string;
  /** Commitment to the secret that opens it. */
  readonly sealed_for: string;
  /** Hex of the Ed25519 key that the log signs with. */
  readonly log_key: string;
  readonly active_data_key: number;
  readonly data_keys: readonly number[];
  readonly subject_keys: number;
  readonly erased_keys: number;
}

export interface Escrow extends KeyContents {
  readonly label: EscrowLabel;
  readonly records: readonly Uint8Array[];
}

/** Between two pieces. */
interface PacedEscrow {
  readonly yieldTurn: () => Promise<void>;
}

/** Atomically in place of an earlier one: an escrow from before an erasure still opens what was erased. */
export async function writeEscrow(
  {
    disk,
    random,
    path: escrowPath,
    key: escrowKey,
    madeAt,
    yieldTurn,
  }: PacedEscrow & { disk: Disk; random: Random; path: string; key: Uint8Array; madeAt: string },
  { secrets, records: keyRecords, tombstones }: KeyContents,
): Promise<EscrowLabel> {
  requireEscrowKey(escrowKey);
  const shardRecords = [...keyRecords].filter((recordBytes) => recordBytes.length > 0);
  const escrowLabel: EscrowLabel = {
    format: ESCROW_FORMAT,
    made_at: madeAt,
    sealed_for: escrowKeyFingerprint(escrowKey),
    log_key: secrets.publicKeys[0] ?? '',
    active_data_key: secrets.active,
    data_keys: [...secrets.dataKeys.keys()].sort((a, b) => a - b),
    subject_keys: shardRecords.reduce((sum, recordBytes) => sum + recordBytes.length / RECORD_BYTES, 0),
    erased_keys: tombstones.length,
  };
  const escrowPieces: Buffer[] = [escrowPiece(secretsPiece, Buffer.from(formatSecrets(secrets)))];
  for (const bytes of shardRecords) escrowPieces.push(escrowPiece(recordsPiece, bytes));
  for (const tombstoneGroup of cutIntoGroups(tombstones, PIECE_TOMBSTONES))
    escrowPieces.push(escrowPiece(tombstonesPiece, Buffer.from(JSON.stringify(tombstoneGroup))));

  const labelLine = Buffer.from(`${JSON.stringify(escrowLabel)}\n`);
  const escrowChunks = [labelLine];
  const escrowDigest = crypto.createHash('sha256').update(labelLine);
  for (const [pieceNumber, plainPiece] of escrowPieces.entries()) {
    const pieceNonce = random.fill(Buffer.alloc(ESCROW_NONCE_BYTES));
    const pieceCipher = crypto.createCipheriv('aes-256-gcm', escrowKey, pieceNonce);
    pieceCipher.setAAD(pieceBinding(labelLine, pieceNumber, pieceNumber === escrowPieces.length - 1));
    const sealedPiece = Buffer.concat([pieceCipher.update(plainPiece), pieceCipher.final(), pieceCipher.getAuthTag()]);
    plainPiece.fill(0);
    const pieceLength = Buffer.alloc(4);
    pieceLength.writeUInt32LE(ESCROW_NONCE_BYTES + sealedPiece.length);
    for (const pieceChunk of [pieceLength, pieceNonce, sealedPiece]) {
      escrowChunks.push(pieceChunk);
      escrowDigest.update(pieceChunk);
    }
    await yieldTurn();
  }
  await disk.replaceFile(escrowPath, Buffer.concat([...escrowChunks, escrowDigest.digest()]), 0o600);
  return escrowLabel;
}

/** Throws REL_UNPROCESSABLE for a file that is damaged, edited, sealed for another secret, or of a format that is not known here. */
export async function readEscrow({
  disk,
  path: escrowPath,
  key: escrowKey,
  yieldTurn,
}: PacedEscrow & { disk: Disk; path: string; key: Uint8Array }): Promise<Escrow> {
  requireEscrowKey(escrowKey);
  const storedEscrow = await disk.readFile(escrowPath);
  if (!storedEscrow) throw new ServiceError('REL_NOT_FOUND', `there is no escrow at ${escrowPath}`);
  const escrowBytes = Buffer.from(storedEscrow.buffer, storedEscrow.byteOffset, storedEscrow.length);
  const { label, line } = readEscrowLabel(escrowPath, escrowBytes);
  const digestOffset = escrowBytes.length - HASH_BYTES;
  const escrowDigest = crypto.createHash('sha256');
  for (let escrowOffset = 0; escrowOffset < digestOffset; escrowOffset += 1 << 20) {
    escrowDigest.update(escrowBytes.subarray(escrowOffset, Math.min(digestOffset, escrowOffset + (1 << 20))));
    await yieldTurn();
  }
  if (!equalBytes(escrowDigest.digest(), escrowBytes.subarray(digestOffset)))
    throw damagedEscrowError(escrowPath, 'its digest is another');
  if (label.sealed_for !== escrowKeyFingerprint(escrowKey)) {
    throw new ServiceError('REL_UNPROCESSABLE', `the escrow key given is not the one that ${escrowPath} was sealed with`);
  }
  let escrowSecrets: KeySecrets | null = null;
  const escrowRecords: Uint8Array[] = [];
  const escrowTombstones: Tombstone[] = [];
  for (let at = line.length, pieceNumber = 0; at < digestOffset; pieceNumber++) {
    const nextPieceOffset = at + 4 + (at + 4 <= digestOffset ? escrowBytes.readUInt32LE(at) : 0);
    if (nextPieceOffset > digestOffset || nextPieceOffset < at + 4 + ESCROW_NONCE_BYTES + ESCROW_TAG_BYTES)
      throw damagedEscrowError(escrowPath, 'it ends early');
    const plainPiece = unsealPiece(
      escrowKey,
      escrowBytes.subarray(at + 4, nextPieceOffset),
      pieceBinding(line, pieceNumber, nextPieceOffset === digestOffset),
    );
    if (!plainPiece || (plainPiece[0] === secretsPiece) !== (pieceNumber === 0))
      throw damagedEscrowError(escrowPath, 'it was edited');
    const pieceContent = plainPiece.subarray(1);
    if (pieceNumber === 0) escrowSecrets = parseSecrets(pieceContent.toString('utf8'));
    else if (plainPiece[0] === recordsPiece) escrowRecords.push(pieceContent);
    else escrowTombstones.push(...(JSON.parse(pieceContent.toString('utf8')) as Tombstone[]));
    at = nextPieceOffset;
    await yieldTurn();
  }
  if (!escrowSecrets) throw damagedEscrowError(escrowPath, 'it holds nothing');
  return { label, secrets: escrowSecrets, records: escrowRecords, tombstones: escrowTombstones };
}

/**
 * Writes the key directory of an escrow below a data directory that has none, under a key-encryption key of its own. The file
 * that everything else depends on comes last: an interrupted directory opens nothing and says so.
 */
export async function writeKeysFrom(
  { secrets, records, tombstones }: KeyContents,
  options: PacedEscrow & { disk: Disk; random: Random; directory: string; kek: Uint8Array },
): Promise<void> {
  const { disk, random, directory, kek, yieldTurn } = options;
  if (kek.length !== ESCROW_KEY_BYTES)
    throw new ServiceError('REL_INVALID', `the key-encryption key must have ${ESCROW_KEY_BYTES} bytes`);
  const keyFile = keyFilePath(directory);
  const keysDirectory = `${directory}/keys`;
  const keyFileNames = await disk.list(keysDirectory);
  if ((await disk.size(keyFile)) !== undefined || keyFileNames.some((name) => shardNumber(name) !== undefined))
    throw new ServiceError('REL_CONFLICT', `${keysDirectory} holds keys already: they are put into an empty data directory only`);
  await disk.makeDirectory(keysDirectory);
  const dataKeys = {
    activeDataKey: secrets.active,
    open: () => crypto.createSecretKey(secrets.dataKeys.get(secrets.active)!),
  };
  const shardRecords = [...records].filter((shardBytes) => shardBytes.length > 0);
  const tombstoneGroups = [...cutIntoGroups(tombstones, SHARD_KEYS_MAX)];
  for (let shardIndex = 0; shardIndex < Math.max(shardRecords.length, tombstoneGroups.length); shardIndex++) {
    const { bytes: shardBytes } = encodeShard(
      shardIndex,
      shardRecords[shardIndex] ?? new Uint8Array(0),
      tombstoneGroups[shardIndex] ?? [],
      { dataKeys, random },
    );
    await disk.replaceFile(`${keysDirectory}/${shardName(shardIndex)}`, shardBytes, 0o600);
    await yieldTurn();
  }
  await disk.replaceFile(keyFile, sealKeyFile(secrets, kek, random), 0o600);
}

function readEscrowLabel(escrowPath: string, escrowBytes: Buffer): { readonly label: EscrowLabel; readonly line: Buffer } {
  const labelEnd = escrowBytes.subarray(0, LABEL_LINE_BYTES_MAX).indexOf(0x0a) + 1;
  let label: Partial<EscrowLabel> | null = null;
  try {
    label = JSON.parse(escrowBytes.toString('utf8', 0, labelEnd)) as Partial<EscrowLabel> | null;
  } catch (cause) {
    throw damagedEscrowError(escrowPath, 'it does not begin like one', cause);
  }
  if (typeof label?.format !== 'number') throw damagedEscrowError(escrowPath, 'it does not begin like one');
  if (label.format !== ESCROW_FORMAT)
    throw new ServiceError('REL_UNPROCESSABLE', `${escrowPath} has format ${label.format}; this version reads ${ESCROW_FORMAT}`);
  if (escrowBytes.length < labelEnd + HASH_BYTES) throw damagedEscrowError(escrowPath, 'it ends early');
  return { label: label as EscrowLabel, line: escrowBytes.subarray(0, labelEnd) };
}

function escrowPiece(pieceKind: number, pieceContent: Uint8Array): Buffer {
  const plainPiece = Buffer.alloc(1 + pieceContent.length);
  plainPiece[0] = pieceKind;
  plainPiece.set(pieceContent, 1);
  return plainPiece;
}

function* cutIntoGroups<T>(groupedItems: readonly T[], groupSize: number): Generator<T[]> {
  for (let groupStart = 0; groupStart < groupedItems.length; groupStart += groupSize)
    yield groupedItems.slice(groupStart, groupStart + groupSize);
}

function pieceBinding(labelLine: Uint8Array, pieceNumber: number, isLastPiece: boolean): Buffer {
  const shardNumber = Buffer.alloc(5);
  shardNumber.writeUInt32LE(pieceNumber);
  shardNumber[4] = isLastPiece ? 1 : 0;
  return Buffer.concat([
    Buffer.from('annals escrow\0', 'latin1'),
    crypto.createHash('sha256').update(labelLine).digest(),
    shardNumber,
  ]);
}

function unsealPiece(escrowKey: Uint8Array, sealedPiece: Buffer, boundTo: Uint8Array): Buffer | null {
  const pieceDecipher = crypto.createDecipheriv('aes-256-gcm', escrowKey, sealedPiece.subarray(0, ESCROW_NONCE_BYTES), {
    authTagLength: ESCROW_TAG_BYTES,
  });
  pieceDecipher.setAAD(boundTo);
  pieceDecipher.setAuthTag(sealedPiece.subarray(-ESCROW_TAG_BYTES));
  try {
    return Buffer.concat([
      pieceDecipher.update(sealedPiece.subarray(ESCROW_NONCE_BYTES, -ESCROW_TAG_BYTES)),
      pieceDecipher.final(),
    ]);
  } catch {
    return null;
  }
}

/** Says which secret sealed an escrow without helping to guess it. */
function escrowKeyFingerprint(key: Uint8Array): string {
  return crypto.createHmac('sha256', key).update('annals escrow').digest('hex').slice(0, 16);
}

function requireEscrowKey(key: Uint8Array): void {
  if (key.length !== ESCROW_KEY_BYTES)
    throw new ServiceError('REL_INVALID', `the escrow key must have ${ESCROW_KEY_BYTES} bytes, not ${key.length}`);
}

function damagedEscrowError(escrowPath: string, escrowDamage: string, damageCause?: unknown): ServiceError {
  return new ServiceError('REL_UNPROCESSABLE', `${escrowPath} is not a whole escrow (${escrowDamage}): take another copy`, {
    cause: damageCause,
  });
}
