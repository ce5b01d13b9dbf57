/**
 * Keys of subjects: rows of a subject are sealed under a key of their own inside the log, so that destroying 32 bytes makes
 * them unreadable in every copy of the log that was ever taken.
 *
 * - They lie in `<data>/keys/subjects-<nn>` (drawn in `subject-shard.ts`), sealed, never beside a subject's name: a keyed hash of
 *   tenant and subject finds a key again.
 * - A key is made in the turn that asks for it and is on disk before any frame that needs it is written: `durable`.
 *   All keys that wait share one write and one fsync.
 * - Destroying writes the file anew, without the key, under another file key; what stays is its id and a receipt.
 * - A file whose end is not known to be durable is rewritten before keys are added: bytes that can be read there may be on no
 *   disk.
 * - An id that is neither here nor known as destroyed is a loss, which is an error, and never an erasure.
 */
import * as crypto from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import type { Random } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import { type Disk, type DiskFile, writeFully } from '../disk/disk.ts';
import { KeyedHash } from '../bytes/sha256.ts';
import { LazySubjectKey, RecentSubjectKeys, type SubjectKey } from './recent-subject-keys.ts';
import { SubjectKeyTable } from './subject-key-table.ts';
import {
  checkReceipt,
  type DataKeys,
  decodeShard,
  encodeBlock,
  encodeMark,
  encodeShard,
  FILE_KEY_AT,
  FILE_KEY_BYTES,
  ID_BYTES,
  KEY_AT,
  RECORD_BYTES,
  SHARD_KEYS_MAX,
  shardName,
  shardNumber,
  SUBJECT_AT,
  type Tombstone,
} from './subject-shard.ts';

export interface SubjectKeys {
  /** The key that rows of a subject are sealed under; made in this turn where there is none. Not durable yet: see `durable`. */
  sealing(tenant: string | null, subject: string): SubjectKey;
  /** Null: destroyed. Throws REL_STORAGE for an id that is neither here nor known as destroyed: a lost key is no erasure. */
  opening(id: string): KeyObject | null;
  /** The same for the 16 bytes of an id, and into 32 bytes: false where the key is destroyed. */
  copyKey(id: Uint8Array, target: Uint8Array, at: number): boolean;
  /** Keys of a subject that stand now, the newest first: normally one or none. */
  idsOf(tenant: string | null, subject: string): readonly string[];
  /**
   * From this turn on nothing is sealed under these keys, while sealed bytes still open. An erasure calls it in the turn that
   * appends the intent, so that rows which come before the keys are destroyed get another key. Forgotten by a restart.
   */
  retire(ids: readonly string[]): void;
  /** Null: all keys handed out so far are on disk; else resolves when they are. The log waits for it before it writes a frame. */
  durable(): Promise<void> | null;
  /** Gone from memory and from every byte of the key files, a tombstone left. Durable when it resolves; doing it again changes nothing. */
  destroy(ids: readonly string[], receipt: string): Promise<void>;
  /** The destroyed keys: the erasure ledger. */
  tombstones(): readonly Tombstone[];
}

export interface SubjectKeyFilesOptions {
  readonly disk: Disk;
  readonly random: Random;
  /** Directory of the keys: `<data>/keys`. */
  readonly directory: string;
  readonly dataKeys: DataKeys;
  readonly hmacKey: Uint8Array;
  /** Maximum keys per file; tests lower it to force several files. */
  readonly shardKeysMax?: number;
}

/** Keys that random bytes are drawn for at a time. */
const DRAWN_KEYS = 64;
const DRAWN_KEY_BYTES = ID_BYTES + RECORD_BYTES - KEY_AT;

interface KeyShard {
  readonly number: number;
  /** Slots in use, and how many of them the file holds. */
  count: number;
  written: number;
  readonly tombstones: Map<string, string>;
  /** Null before the file is there. */
  fileKey: KeyObject | null;
  /** Where the next block goes. */
  end: number;
  /** Holds what was destroyed since. */
  stale: boolean;
  /** How its file ends is not known: it is not added to. */
  unconfirmed: boolean;
}

export class SubjectKeyFiles implements SubjectKeys {
  readonly #keyFilesOptions: SubjectKeyFilesOptions;
  readonly #keysPerShardMax: number;
  readonly #subjectHash: KeyedHash;
  readonly #subjectKeyTable = new SubjectKeyTable();
  readonly #shardsOfTombstones = new Map<string, KeyShard>();
  readonly #keyShards: KeyShard[] = [];
  /** Where something waits to be written that a frame may need. */
  readonly #unwrittenShards = new Set<KeyShard>();
  /** Writes that have not begun, for all who come until then. */
  #shardFlush: Promise<void> | null = null;
  /** One change of the files at a time. */
  #lastShardWork: Promise<unknown> = Promise.resolve();
  /** The file that was added to last. */
  #openShardFile: { readonly shard: KeyShard; readonly file: DiskFile } | null = null;
  readonly #recentKeys = new RecentSubjectKeys();
  readonly #drawnKeyPool: DrawnKeyPool;

  private constructor(keyFilesOptions: SubjectKeyFilesOptions) {
    this.#keyFilesOptions = keyFilesOptions;
    this.#keysPerShardMax = keyFilesOptions.shardKeysMax ?? SHARD_KEYS_MAX;
    this.#subjectHash = new KeyedHash(keyFilesOptions.hmacKey);
    this.#drawnKeyPool = new DrawnKeyPool(keyFilesOptions.random);
  }

  /** Reads what is there, and changes nothing; the names in the directory have been made durable. */
  static async open(keyFilesOptions: SubjectKeyFilesOptions): Promise<SubjectKeyFiles> {
    const { disk, directory, dataKeys } = keyFilesOptions;
    const subjectKeys = new SubjectKeyFiles(keyFilesOptions);
    const shardNumbers = (await disk.list(directory)).flatMap((name) => shardNumber(name) ?? []).sort((a, b) => a - b);
    // The last shard may have few keys, and mostly there is no other.
    const fullShards = Math.max(0, shardNumbers.length - 1);
    subjectKeys.#subjectKeyTable.reserve(fullShards * SHARD_KEYS_MAX);
    for (const [i, listedShard] of shardNumbers.entries()) {
      const shardPath = `${directory}/${shardName(listedShard)}`;
      if (listedShard !== i)
        throw new ServiceError('REL_STORAGE', `${directory}/${shardName(i)} is missing: restore the keys from their escrow`);
      const shardBytes = (await disk.readFile(shardPath))!;
      subjectKeys.#loadShard(
        shardPath,
        decodeShard(shardPath, listedShard, i === shardNumbers.length - 1, Buffer.from(shardBytes), dataKeys),
      );
    }
    return subjectKeys;
  }

  sealing(tenant: string | null, sealedSubject: string): SubjectKey {
    const recentKey = this.#recentKeys.ofSubject(tenant, sealedSubject);
    if (recentKey) return recentKey;
    const subjectHash = this.#hashOfSubject(tenant, sealedSubject);
    let keySlot = this.#subjectKeyTable.sealingSlot(subjectHash);
    if (keySlot < 0) keySlot = this.#addSubjectKey(subjectHash);
    const sealingKey = new LazySubjectKey(this.#subjectKeyTable.idAt(keySlot), this.#subjectKeyTable.secretAt(keySlot));
    this.#recentKeys.keep(tenant, sealedSubject, sealingKey);
    return sealingKey;
  }

  opening(id: string): KeyObject | null {
    const recentKey = this.#recentKeys.ofId(id);
    if (recentKey) return recentKey;
    const keySlot = this.#subjectKeyTable.slotOfId(id);
    if (keySlot < 0) {
      if (this.#shardsOfTombstones.has(id)) return null;
      throw lostSubjectKeyError(id);
    }
    const openedKey = crypto.createSecretKey(this.#subjectKeyTable.secretAt(keySlot));
    this.#recentKeys.keepId(id, openedKey);
    return openedKey;
  }

  copyKey(id: Uint8Array, keyTarget: Uint8Array, keyTargetOffset: number): boolean {
    const keyIdBytes = Buffer.from(id.buffer, id.byteOffset, ID_BYTES);
    const keySlot = this.#subjectKeyTable.slotOfIdBytes(keyIdBytes);
    if (keySlot >= 0) {
      this.#subjectKeyTable.secretAt(keySlot).copy(keyTarget, keyTargetOffset);
      return true;
    }
    const keyIdText = keyIdBytes.toString('hex');
    if (this.#shardsOfTombstones.has(keyIdText)) return false;
    throw lostSubjectKeyError(keyIdText);
  }

  idsOf(tenant: string | null, subject: string): readonly string[] {
    return this.#subjectKeyTable.idsOfSubject(this.#hashOfSubject(tenant, subject));
  }

  retire(ids: readonly string[]): void {
    for (const retiredId of ids) {
      const keySlot = this.#subjectKeyTable.slotOfId(retiredId);
      if (keySlot >= 0) this.#subjectKeyTable.retire(keySlot);
    }
    this.#recentKeys.clear();
  }

  durable(): Promise<void> | null {
    if (this.#unwrittenShards.size === 0) return null;
    this.#shardFlush ??= this.#queueShardWork(async () => {
      this.#shardFlush = null;
      for (const unwrittenShard of [...this.#unwrittenShards].sort((a, b) => a.number - b.number)) {
        const { count } = unwrittenShard;
        await this.#writeShard(unwrittenShard);
        if (unwrittenShard.count === count) this.#unwrittenShards.delete(unwrittenShard);
      }
    });
    return this.#shardFlush;
  }

  async destroy(ids: readonly string[], erasureReceipt: string): Promise<void> {
    checkReceipt(erasureReceipt);
    const unknownKeyId = ids.find((id) => this.#subjectKeyTable.slotOfId(id) < 0 && !this.#shardsOfTombstones.has(id));
    if (unknownKeyId !== undefined) throw lostSubjectKeyError(unknownKeyId);
    const wipedShards = new Set<KeyShard>();
    for (const id of ids) {
      const keySlot = this.#subjectKeyTable.slotOfId(id);
      if (keySlot >= 0) this.#wipeKey(id, keySlot, erasureReceipt);
      wipedShards.add(this.#shardsOfTombstones.get(id)!);
    }
    this.#recentKeys.clear();
    await this.#queueShardWork(async () => {
      for (const wipedShard of wipedShards) if (wipedShard.stale) await this.#rewriteShard(wipedShard);
    });
  }

  tombstones(): readonly Tombstone[] {
    return [...this.#shardsOfTombstones].map(([id, shard]) => ({ id, receipt: shard.tombstones.get(id)! }));
  }

  /** Records of all keys that stand, one shard after the other: for the escrow. */
  *usedRecords(): Generator<Buffer> {
    for (const { number, count } of this.#keyShards) yield this.#subjectKeyTable.usedRecords(number, 0, count);
  }

  /** Waits for pending writes; records without a waiting caller are not written. */
  async close(): Promise<void> {
    await this.#queueShardWork(() => this.#closeShardFile());
  }

  #loadShard(shardPath: string, shardContent: ReturnType<typeof decodeShard>): void {
    const { records, tombstones } = shardContent;
    const keyCount = records.length / RECORD_BYTES;
    if (keyCount > SHARD_KEYS_MAX) throw new ServiceError('REL_STORAGE', `${shardPath} is damaged (it holds ${keyCount} keys)`);
    const loadedShard = this.#addShard();
    this.#subjectKeyTable.fill(loadedShard.number, records);
    for (let i = 0; i < keyCount; i++) this.#enterNextKey(loadedShard);
    for (const { id, receipt } of tombstones) {
      loadedShard.tombstones.set(id, receipt);
      this.#shardsOfTombstones.set(id, loadedShard);
    }
    Object.assign(loadedShard, {
      written: keyCount,
      fileKey: shardContent.fileKey,
      end: shardContent.end,
      unconfirmed: shardContent.unconfirmed,
    });
    if (shardContent.unconfirmed) this.#unwrittenShards.add(loadedShard);
  }

  #addShard(): KeyShard {
    const number = this.#subjectKeyTable.addShard();
    const newShard: KeyShard = {
      number,
      count: 0,
      written: 0,
      tombstones: new Map(),
      fileKey: null,
      end: 0,
      stale: false,
      unconfirmed: false,
    };
    this.#keyShards.push(newShard);
    return newShard;
  }

  #addSubjectKey(subjectHash: Buffer): number {
    const drawnKey = this.#drawnKeyPool.draw();
    let lastShard = this.#keyShards.at(-1);
    if (!lastShard || lastShard.count >= this.#keysPerShardMax) lastShard = this.#addShard();
    const keyRecord = this.#subjectKeyTable.record(lastShard.number * SHARD_KEYS_MAX + lastShard.count);
    drawnKey.copy(keyRecord, 0, 0, ID_BYTES);
    subjectHash.copy(keyRecord, SUBJECT_AT);
    drawnKey.copy(keyRecord, KEY_AT, ID_BYTES);
    drawnKey.fill(0);
    const newSlot = this.#enterNextKey(lastShard);
    this.#unwrittenShards.add(lastShard);
    return newSlot;
  }

  /** Takes the next slot of a shard, whose record is there, as its subject's newest. */
  #enterNextKey(keyShard: KeyShard): number {
    const keySlot = keyShard.number * SHARD_KEYS_MAX + keyShard.count++;
    this.#subjectKeyTable.enter(keySlot);
    return keySlot;
  }

  #wipeKey(id: string, wipedSlot: number, receipt: string): void {
    this.#subjectKeyTable.wipe(wipedSlot);
    const wipedShard = this.#keyShards[Math.floor(wipedSlot / SHARD_KEYS_MAX)]!;
    wipedShard.tombstones.set(id, receipt);
    wipedShard.stale = true;
    this.#shardsOfTombstones.set(id, wipedShard);
  }

  /**
   * Writes the records that a shard holds beyond its file. A full shard is rewritten as one block: a start reads mostly those.
   */
  async #writeShard(unwrittenShard: KeyShard): Promise<void> {
    const { fileKey, count, written, end } = unwrittenShard;
    if (!fileKey || unwrittenShard.unconfirmed || count >= this.#keysPerShardMax) return await this.#rewriteShard(unwrittenShard);
    const body = this.#subjectKeyTable.usedRecords(unwrittenShard.number, written, count);
    if (body.length === 0) {
      unwrittenShard.written = count;
      return;
    }
    const { random } = this.#keyFilesOptions;
    const keyBlock = encodeBlock({ kind: 'keys', count: body.length / RECORD_BYTES, offset: end, body }, fileKey, random);
    try {
      const shardFile = await this.#openShard(unwrittenShard);
      await writeFully(shardFile, keyBlock, end);
      await shardFile.sync();
      unwrittenShard.end = end + keyBlock.length;
      unwrittenShard.written = count;
      // Tells the next start, unless the power is cut soon, that nothing here was torn.
      await writeFully(shardFile, encodeMark(unwrittenShard.end, fileKey, random), unwrittenShard.end);
    } catch (error) {
      unwrittenShard.unconfirmed = true;
      await this.#closeShardFile().catch(() => undefined);
      throw error;
    }
  }

  async #rewriteShard(rewrittenShard: KeyShard): Promise<void> {
    const { disk, directory } = this.#keyFilesOptions;
    await this.#closeShardFile();
    const { count, stale } = rewrittenShard;
    const shardPath = `${directory}/${shardName(rewrittenShard.number)}`;
    const liveRecords = this.#subjectKeyTable.usedRecords(rewrittenShard.number, 0, count);
    const shardTombstones = [...rewrittenShard.tombstones].map(([id, receipt]) => ({ id, receipt }));
    const {
      bytes: shardBytes,
      fileKey,
      end,
    } = encodeShard(rewrittenShard.number, liveRecords, shardTombstones, this.#keyFilesOptions);
    rewrittenShard.stale = false;
    let previousShardFile: DiskFile | null = null;
    try {
      if (stale && rewrittenShard.fileKey) previousShardFile = await disk.open(shardPath, 'write');
      await disk.replaceFile(shardPath, shardBytes, 0o600);
    } catch (error) {
      // Which of the two files a start will find is not known.
      Object.assign(rewrittenShard, { stale: stale || rewrittenShard.stale, unconfirmed: true });
      await previousShardFile?.close().catch(() => undefined);
      throw error;
    }
    Object.assign(rewrittenShard, { fileKey, end, written: count, unconfirmed: false });
    if (previousShardFile) await wipeFileKey(previousShardFile);
  }

  async #openShard(shard: KeyShard): Promise<DiskFile> {
    if (this.#openShardFile?.shard === shard) return this.#openShardFile.file;
    await this.#closeShardFile();
    const { disk, directory } = this.#keyFilesOptions;
    const shardFile = await disk.open(`${directory}/${shardName(shard.number)}`, 'write');
    this.#openShardFile = { shard, file: shardFile };
    return shardFile;
  }

  async #closeShardFile(): Promise<void> {
    const openShard = this.#openShardFile;
    this.#openShardFile = null;
    await openShard?.file.close();
  }

  /** After all that was asked for before, whatever became of it. */
  #queueShardWork(shardWork: () => Promise<void>): Promise<void> {
    const workDone = this.#lastShardWork.then(shardWork);
    this.#lastShardWork = workDone.catch(() => undefined);
    return workDone;
  }

  #hashOfSubject(tenant: string | null, subject: string): Buffer {
    // A tenant is a segment of a path and has no NUL: two different pairs are two different texts.
    return this.#subjectHash.digest(`annals subject\0${tenant === null ? '-' : `+${tenant}`}\0${subject}`).subarray(0, ID_BYTES);
  }
}

/** Random bytes of ids and keys, drawn many at a time, and wiped by whoever takes them. */
class DrawnKeyPool {
  readonly #keyRandom: Random;
  readonly #drawnKeyBytes = Buffer.alloc(DRAWN_KEYS * DRAWN_KEY_BYTES);
  #takenKeyBytes = this.#drawnKeyBytes.length;

  constructor(random: Random) {
    this.#keyRandom = random;
  }

  /** Bytes of one id and one key, as a view. */
  draw(): Buffer {
    if (this.#takenKeyBytes === this.#drawnKeyBytes.length) {
      this.#keyRandom.fill(this.#drawnKeyBytes);
      this.#takenKeyBytes = 0;
    }
    return this.#drawnKeyBytes.subarray(this.#takenKeyBytes, (this.#takenKeyBytes += DRAWN_KEY_BYTES));
  }
}

/**
 * A file without a name still lies on the disk until something overwrites it: without its file key it is noise. Annals cannot
 * control what the disk does with that write, nor a failure of it: no named file holds the destroyed key.
 */
async function wipeFileKey(previousShardFile: DiskFile): Promise<void> {
  try {
    await writeFully(previousShardFile, new Uint8Array(FILE_KEY_BYTES), FILE_KEY_AT);
    await previousShardFile.sync();
  } catch {
    return await previousShardFile.close().catch(() => undefined);
  }
  await previousShardFile.close();
}

function lostSubjectKeyError(id: string): ServiceError {
  return new ServiceError(
    'REL_STORAGE',
    `subject key ${id} is not in the key files, and was not erased: restore the keys from their escrow`,
  );
}
