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
const DRAWN = 64;
const DRAW_BYTES = ID_BYTES + RECORD_BYTES - KEY_AT;

interface Shard {
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
  readonly #options: SubjectKeyFilesOptions;
  readonly #shardKeysMax: number;
  readonly #hash: KeyedHash;
  readonly #table = new SubjectKeyTable();
  readonly #tombstones = new Map<string, Shard>();
  readonly #shards: Shard[] = [];
  /** Where something waits to be written that a frame may need. */
  readonly #waiting = new Set<Shard>();
  /** Writes that have not begun, for all who come until then. */
  #flush: Promise<void> | null = null;
  /** One change of the files at a time. */
  #last: Promise<unknown> = Promise.resolve();
  /** The file that was added to last. */
  #open: { readonly shard: Shard; readonly file: DiskFile } | null = null;
  readonly #recent = new RecentSubjectKeys();
  readonly #randomPool: RandomPool;

  private constructor(options: SubjectKeyFilesOptions) {
    this.#options = options;
    this.#shardKeysMax = options.shardKeysMax ?? SHARD_KEYS_MAX;
    this.#hash = new KeyedHash(options.hmacKey);
    this.#randomPool = new RandomPool(options.random);
  }

  /** Reads what is there, and changes nothing; the names in the directory have been made durable. */
  static async open(options: SubjectKeyFilesOptions): Promise<SubjectKeyFiles> {
    const { disk, directory, dataKeys } = options;
    const keys = new SubjectKeyFiles(options);
    const numbers = (await disk.list(directory)).flatMap((name) => shardNumber(name) ?? []).sort((a, b) => a - b);
    // The last shard may have few keys, and mostly there is no other.
    const full = Math.max(0, numbers.length - 1);
    keys.#table.reserve(full * SHARD_KEYS_MAX);
    for (const [i, number] of numbers.entries()) {
      const path = `${directory}/${shardName(number)}`;
      if (number !== i)
        throw new ServiceError('REL_STORAGE', `${directory}/${shardName(i)} is missing: restore the keys from their escrow`);
      const bytes = (await disk.readFile(path))!;
      keys.#load(path, decodeShard(path, number, i === numbers.length - 1, Buffer.from(bytes), dataKeys));
    }
    return keys;
  }

  sealing(tenant: string | null, subject: string): SubjectKey {
    const known = this.#recent.ofSubject(tenant, subject);
    if (known) return known;
    const hash = this.#hashOf(tenant, subject);
    let slot = this.#table.sealingSlot(hash);
    if (slot < 0) slot = this.#addKey(hash);
    const key = new LazySubjectKey(this.#table.idAt(slot), this.#table.secretAt(slot));
    this.#recent.keep(tenant, subject, key);
    return key;
  }

  opening(id: string): KeyObject | null {
    const known = this.#recent.ofId(id);
    if (known) return known;
    const slot = this.#table.slotOfId(id);
    if (slot < 0) {
      if (this.#tombstones.has(id)) return null;
      throw lostKeyError(id);
    }
    const key = crypto.createSecretKey(this.#table.secretAt(slot));
    this.#recent.keepId(id, key);
    return key;
  }

  copyKey(id: Uint8Array, target: Uint8Array, at: number): boolean {
    const bytes = Buffer.from(id.buffer, id.byteOffset, ID_BYTES);
    const slot = this.#table.slotOfIdBytes(bytes);
    if (slot >= 0) {
      this.#table.secretAt(slot).copy(target, at);
      return true;
    }
    const name = bytes.toString('hex');
    if (this.#tombstones.has(name)) return false;
    throw lostKeyError(name);
  }

  idsOf(tenant: string | null, subject: string): readonly string[] {
    return this.#table.idsOfSubject(this.#hashOf(tenant, subject));
  }

  retire(ids: readonly string[]): void {
    for (const id of ids) {
      const slot = this.#table.slotOfId(id);
      if (slot >= 0) this.#table.retire(slot);
    }
    this.#recent.clear();
  }

  durable(): Promise<void> | null {
    if (this.#waiting.size === 0) return null;
    this.#flush ??= this.#next(async () => {
      this.#flush = null;
      for (const shard of [...this.#waiting].sort((a, b) => a.number - b.number)) {
        const { count } = shard;
        await this.#write(shard);
        if (shard.count === count) this.#waiting.delete(shard);
      }
    });
    return this.#flush;
  }

  async destroy(ids: readonly string[], receipt: string): Promise<void> {
    checkReceipt(receipt);
    const unknown = ids.find((id) => this.#table.slotOfId(id) < 0 && !this.#tombstones.has(id));
    if (unknown !== undefined) throw lostKeyError(unknown);
    const shards = new Set<Shard>();
    for (const id of ids) {
      const slot = this.#table.slotOfId(id);
      if (slot >= 0) this.#wipe(id, slot, receipt);
      shards.add(this.#tombstones.get(id)!);
    }
    this.#recent.clear();
    await this.#next(async () => {
      for (const shard of shards) if (shard.stale) await this.#writeAnew(shard);
    });
  }

  tombstones(): readonly Tombstone[] {
    return [...this.#tombstones].map(([id, shard]) => ({ id, receipt: shard.tombstones.get(id)! }));
  }

  /** Records of all keys that stand, one shard after the other: for the escrow. */
  *usedRecords(): Generator<Buffer> {
    for (const { number, count } of this.#shards) yield this.#table.usedRecords(number, 0, count);
  }

  /** Waits for pending writes; records without a waiting caller are not written. */
  async close(): Promise<void> {
    await this.#next(() => this.#closeOpenFile());
  }

  #load(path: string, content: ReturnType<typeof decodeShard>): void {
    const { records, tombstones } = content;
    const count = records.length / RECORD_BYTES;
    if (count > SHARD_KEYS_MAX) throw new ServiceError('REL_STORAGE', `${path} is damaged (it holds ${count} keys)`);
    const shard = this.#addShard();
    this.#table.fill(shard.number, records);
    for (let i = 0; i < count; i++) this.#enterNext(shard);
    for (const { id, receipt } of tombstones) {
      shard.tombstones.set(id, receipt);
      this.#tombstones.set(id, shard);
    }
    Object.assign(shard, { written: count, fileKey: content.fileKey, end: content.end, unconfirmed: content.unconfirmed });
    if (content.unconfirmed) this.#waiting.add(shard);
  }

  #addShard(): Shard {
    const number = this.#table.addShard();
    const shard: Shard = {
      number,
      count: 0,
      written: 0,
      tombstones: new Map(),
      fileKey: null,
      end: 0,
      stale: false,
      unconfirmed: false,
    };
    this.#shards.push(shard);
    return shard;
  }

  #addKey(hash: Buffer): number {
    const drawn = this.#randomPool.draw();
    let shard = this.#shards.at(-1);
    if (!shard || shard.count >= this.#shardKeysMax) shard = this.#addShard();
    const record = this.#table.record(shard.number * SHARD_KEYS_MAX + shard.count);
    drawn.copy(record, 0, 0, ID_BYTES);
    hash.copy(record, SUBJECT_AT);
    drawn.copy(record, KEY_AT, ID_BYTES);
    drawn.fill(0);
    const slot = this.#enterNext(shard);
    this.#waiting.add(shard);
    return slot;
  }

  /** Takes the next slot of a shard, whose record is there, as its subject's newest. */
  #enterNext(shard: Shard): number {
    const slot = shard.number * SHARD_KEYS_MAX + shard.count++;
    this.#table.enter(slot);
    return slot;
  }

  #wipe(id: string, slot: number, receipt: string): void {
    this.#table.wipe(slot);
    const shard = this.#shards[Math.floor(slot / SHARD_KEYS_MAX)]!;
    shard.tombstones.set(id, receipt);
    shard.stale = true;
    this.#tombstones.set(id, shard);
  }

  /**
   * Writes the records that a shard holds beyond its file. A full shard is rewritten as one block: a start reads mostly those.
   */
  async #write(shard: Shard): Promise<void> {
    const { fileKey, count, written, end } = shard;
    if (!fileKey || shard.unconfirmed || count >= this.#shardKeysMax) return await this.#writeAnew(shard);
    const body = this.#table.usedRecords(shard.number, written, count);
    if (body.length === 0) {
      shard.written = count;
      return;
    }
    const { random } = this.#options;
    const block = encodeBlock({ kind: 'keys', count: body.length / RECORD_BYTES, offset: end, body }, fileKey, random);
    try {
      const file = await this.#openShard(shard);
      await writeFully(file, block, end);
      await file.sync();
      shard.end = end + block.length;
      shard.written = count;
      // Tells the next start, unless the power is cut soon, that nothing here was torn.
      await writeFully(file, encodeMark(shard.end, fileKey, random), shard.end);
    } catch (error) {
      shard.unconfirmed = true;
      await this.#closeOpenFile().catch(() => undefined);
      throw error;
    }
  }

  async #writeAnew(shard: Shard): Promise<void> {
    const { disk, directory } = this.#options;
    await this.#closeOpenFile();
    const { count, stale } = shard;
    const path = `${directory}/${shardName(shard.number)}`;
    const records = this.#table.usedRecords(shard.number, 0, count);
    const tombstones = [...shard.tombstones].map(([id, receipt]) => ({ id, receipt }));
    const { bytes, fileKey, end } = encodeShard(shard.number, records, tombstones, this.#options);
    shard.stale = false;
    let before: DiskFile | null = null;
    try {
      if (stale && shard.fileKey) before = await disk.open(path, 'write');
      await disk.replaceFile(path, bytes, 0o600);
    } catch (error) {
      // Which of the two files a start will find is not known.
      Object.assign(shard, { stale: stale || shard.stale, unconfirmed: true });
      await before?.close().catch(() => undefined);
      throw error;
    }
    Object.assign(shard, { fileKey, end, written: count, unconfirmed: false });
    if (before) await forget(before);
  }

  async #openShard(shard: Shard): Promise<DiskFile> {
    if (this.#open?.shard === shard) return this.#open.file;
    await this.#closeOpenFile();
    const { disk, directory } = this.#options;
    const file = await disk.open(`${directory}/${shardName(shard.number)}`, 'write');
    this.#open = { shard, file };
    return file;
  }

  async #closeOpenFile(): Promise<void> {
    const open = this.#open;
    this.#open = null;
    await open?.file.close();
  }

  /** After all that was asked for before, whatever became of it. */
  #next(work: () => Promise<void>): Promise<void> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return done;
  }

  #hashOf(tenant: string | null, subject: string): Buffer {
    // A tenant is a segment of a path and has no NUL: two different pairs are two different texts.
    return this.#hash.digest(`annals subject\0${tenant === null ? '-' : `+${tenant}`}\0${subject}`).subarray(0, ID_BYTES);
  }
}

/** Random bytes of ids and keys, drawn many at a time, and wiped by whoever takes them. */
class RandomPool {
  readonly #random: Random;
  readonly #bytes = Buffer.alloc(DRAWN * DRAW_BYTES);
  #taken = this.#bytes.length;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Bytes of one id and one key, as a view. */
  draw(): Buffer {
    if (this.#taken === this.#bytes.length) {
      this.#random.fill(this.#bytes);
      this.#taken = 0;
    }
    return this.#bytes.subarray(this.#taken, (this.#taken += DRAW_BYTES));
  }
}

/**
 * A file without a name still lies on the disk until something overwrites it: without its file key it is noise. Annals cannot
 * control what the disk does with that write, nor a failure of it: no named file holds the destroyed key.
 */
async function forget(file: DiskFile): Promise<void> {
  try {
    await writeFully(file, new Uint8Array(FILE_KEY_BYTES), FILE_KEY_AT);
    await file.sync();
  } catch {
    return await file.close().catch(() => undefined);
  }
  await file.close();
}

function lostKeyError(id: string): ServiceError {
  return new ServiceError(
    'REL_STORAGE',
    `subject key ${id} is not in the key files, and was not erased: restore the keys from their escrow`,
  );
}
