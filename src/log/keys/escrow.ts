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

const FORMAT = 1;
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const LINE_BYTES_MAX = 1 << 16;
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
interface Paced {
  readonly yieldTurn: () => Promise<void>;
}

/** Atomically in place of an earlier one: an escrow from before an erasure still opens what was erased. */
export async function writeEscrow(
  {
    disk,
    random,
    path,
    key,
    madeAt,
    yieldTurn,
  }: Paced & { disk: Disk; random: Random; path: string; key: Uint8Array; madeAt: string },
  { secrets, records, tombstones }: KeyContents,
): Promise<EscrowLabel> {
  requireKey(key);
  const shards = [...records].filter((bytes) => bytes.length > 0);
  const label: EscrowLabel = {
    format: FORMAT,
    made_at: madeAt,
    sealed_for: fingerprint(key),
    log_key: secrets.publicKeys[0] ?? '',
    active_data_key: secrets.active,
    data_keys: [...secrets.dataKeys.keys()].sort((a, b) => a - b),
    subject_keys: shards.reduce((sum, bytes) => sum + bytes.length / RECORD_BYTES, 0),
    erased_keys: tombstones.length,
  };
  const pieces: Buffer[] = [piece(secretsPiece, Buffer.from(formatSecrets(secrets)))];
  for (const bytes of shards) pieces.push(piece(recordsPiece, bytes));
  for (const some of groups(tombstones, PIECE_TOMBSTONES)) pieces.push(piece(tombstonesPiece, Buffer.from(JSON.stringify(some))));

  const line = Buffer.from(`${JSON.stringify(label)}\n`);
  const file = [line];
  const digest = crypto.createHash('sha256').update(line);
  for (const [number, plain] of pieces.entries()) {
    const nonce = random.fill(Buffer.alloc(NONCE_BYTES));
    const cipher = crypto.createCipheriv('aes-256-gcm', key, nonce);
    cipher.setAAD(binding(line, number, number === pieces.length - 1));
    const sealed = Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
    plain.fill(0);
    const size = Buffer.alloc(4);
    size.writeUInt32LE(NONCE_BYTES + sealed.length);
    for (const part of [size, nonce, sealed]) {
      file.push(part);
      digest.update(part);
    }
    await yieldTurn();
  }
  await disk.replaceFile(path, Buffer.concat([...file, digest.digest()]), 0o600);
  return label;
}

/** Throws REL_UNPROCESSABLE for a file that is damaged, edited, sealed for another secret, or of a format that is not known here. */
export async function readEscrow({
  disk,
  path,
  key,
  yieldTurn,
}: Paced & { disk: Disk; path: string; key: Uint8Array }): Promise<Escrow> {
  requireKey(key);
  const stored = await disk.readFile(path);
  if (!stored) throw new ServiceError('REL_NOT_FOUND', `there is no escrow at ${path}`);
  const bytes = Buffer.from(stored.buffer, stored.byteOffset, stored.length);
  const { label, line } = readLabel(path, bytes);
  const end = bytes.length - HASH_BYTES;
  const digest = crypto.createHash('sha256');
  for (let at = 0; at < end; at += 1 << 20) {
    digest.update(bytes.subarray(at, Math.min(end, at + (1 << 20))));
    await yieldTurn();
  }
  if (!equalBytes(digest.digest(), bytes.subarray(end))) throw damagedError(path, 'its digest is another');
  if (label.sealed_for !== fingerprint(key)) {
    throw new ServiceError('REL_UNPROCESSABLE', `the escrow key given is not the one that ${path} was sealed with`);
  }
  let secrets: KeySecrets | null = null;
  const records: Uint8Array[] = [];
  const tombstones: Tombstone[] = [];
  for (let at = line.length, number = 0; at < end; number++) {
    const next = at + 4 + (at + 4 <= end ? bytes.readUInt32LE(at) : 0);
    if (next > end || next < at + 4 + NONCE_BYTES + TAG_BYTES) throw damagedError(path, 'it ends early');
    const plain = unseal(key, bytes.subarray(at + 4, next), binding(line, number, next === end));
    if (!plain || (plain[0] === secretsPiece) !== (number === 0)) throw damagedError(path, 'it was edited');
    const content = plain.subarray(1);
    if (number === 0) secrets = parseSecrets(content.toString('utf8'));
    else if (plain[0] === recordsPiece) records.push(content);
    else tombstones.push(...(JSON.parse(content.toString('utf8')) as Tombstone[]));
    at = next;
    await yieldTurn();
  }
  if (!secrets) throw damagedError(path, 'it holds nothing');
  return { label, secrets, records, tombstones };
}

/**
 * Writes the key directory of an escrow below a data directory that has none, under a key-encryption key of its own. The file
 * that everything else depends on comes last: an interrupted directory opens nothing and says so.
 */
export async function writeKeysFrom(
  { secrets, records, tombstones }: KeyContents,
  options: Paced & { disk: Disk; random: Random; directory: string; kek: Uint8Array },
): Promise<void> {
  const { disk, random, directory, kek, yieldTurn } = options;
  if (kek.length !== KEY_BYTES) throw new ServiceError('REL_INVALID', `the key-encryption key must have ${KEY_BYTES} bytes`);
  const path = keyFilePath(directory);
  const keys = `${directory}/keys`;
  const names = await disk.list(keys);
  if ((await disk.size(path)) !== undefined || names.some((name) => shardNumber(name) !== undefined))
    throw new ServiceError('REL_CONFLICT', `${keys} holds keys already: they are put into an empty data directory only`);
  await disk.makeDirectory(keys);
  const dataKeys = {
    activeDataKey: secrets.active,
    open: () => crypto.createSecretKey(secrets.dataKeys.get(secrets.active)!),
  };
  const held = [...records].filter((bytes) => bytes.length > 0);
  const ledger = [...groups(tombstones, SHARD_KEYS_MAX)];
  for (let shard = 0; shard < Math.max(held.length, ledger.length); shard++) {
    const { bytes } = encodeShard(shard, held[shard] ?? new Uint8Array(0), ledger[shard] ?? [], { dataKeys, random });
    await disk.replaceFile(`${keys}/${shardName(shard)}`, bytes, 0o600);
    await yieldTurn();
  }
  await disk.replaceFile(path, sealKeyFile(secrets, kek, random), 0o600);
}

function readLabel(path: string, bytes: Buffer): { readonly label: EscrowLabel; readonly line: Buffer } {
  const end = bytes.subarray(0, LINE_BYTES_MAX).indexOf(0x0a) + 1;
  let label: Partial<EscrowLabel> | null = null;
  try {
    label = JSON.parse(bytes.toString('utf8', 0, end)) as Partial<EscrowLabel> | null;
  } catch (cause) {
    throw damagedError(path, 'it does not begin like one', cause);
  }
  if (typeof label?.format !== 'number') throw damagedError(path, 'it does not begin like one');
  if (label.format !== FORMAT)
    throw new ServiceError('REL_UNPROCESSABLE', `${path} has format ${label.format}; this version reads ${FORMAT}`);
  if (bytes.length < end + HASH_BYTES) throw damagedError(path, 'it ends early');
  return { label: label as EscrowLabel, line: bytes.subarray(0, end) };
}

function piece(kind: number, content: Uint8Array): Buffer {
  const plain = Buffer.alloc(1 + content.length);
  plain[0] = kind;
  plain.set(content, 1);
  return plain;
}

function* groups<T>(items: readonly T[], size: number): Generator<T[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size);
}

function binding(line: Uint8Array, number: number, last: boolean): Buffer {
  const shardNumber = Buffer.alloc(5);
  shardNumber.writeUInt32LE(number);
  shardNumber[4] = last ? 1 : 0;
  return Buffer.concat([
    Buffer.from('annals escrow\0', 'latin1'),
    crypto.createHash('sha256').update(line).digest(),
    shardNumber,
  ]);
}

function unseal(key: Uint8Array, box: Buffer, bound: Uint8Array): Buffer | null {
  const decipher = crypto.createDecipheriv('aes-256-gcm', key, box.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAAD(bound);
  decipher.setAuthTag(box.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(box.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
  } catch {
    return null;
  }
}

/** Says which secret sealed an escrow without helping to guess it. */
function fingerprint(key: Uint8Array): string {
  return crypto.createHmac('sha256', key).update('annals escrow').digest('hex').slice(0, 16);
}

function requireKey(key: Uint8Array): void {
  if (key.length !== KEY_BYTES)
    throw new ServiceError('REL_INVALID', `the escrow key must have ${KEY_BYTES} bytes, not ${key.length}`);
}

function damagedError(path: string, why: string, cause?: unknown): ServiceError {
  return new ServiceError('REL_UNPROCESSABLE', `${path} is not a whole escrow (${why}): take another copy`, { cause });
}
