/**
 * Records of subject keys in memory, found by id and by subject: about 80 bytes each. Slabs of one shard each, so that
 * nothing is ever copied as a whole; indexes in 256 parts that grow one by one, so that no turn waits for all of them.
 */
import { ID_BYTES, RECORD_BYTES, SHARD_KEYS_MAX, SUBJECT_AT } from './subject-shard.ts';

const INDEX_PARTS = 256;
const INDEX_PART_SLOTS_MIN = 16;
const FREE_SLOT = 0;
const REMOVED_SLOT = 0xffff_ffff;
/** A part that never had a key: most stores have few or none. Too short to be written to. */
const UNUSED_PART = new Uint32Array(1);

/** All records that ever had a slot: shard × 4,096 + place in the shard. */
export class SubjectRecords {
  readonly #recordSlabs: Buffer[] = [];

  get shards(): number {
    return this.#recordSlabs.length;
  }

  addShard(): number {
    return this.#recordSlabs.push(Buffer.alloc(SHARD_KEYS_MAX * RECORD_BYTES)) - 1;
  }

  /** All records of a shard at once, from its first slot on. */
  fill(shardNumber: number, shardRecords: Uint8Array): void {
    this.#recordSlabs[shardNumber]!.set(shardRecords);
  }

  /** As a view. */
  record(recordSlot: number): Buffer {
    const recordOffset = (recordSlot % SHARD_KEYS_MAX) * RECORD_BYTES;
    return this.#recordSlabs[Math.floor(recordSlot / SHARD_KEYS_MAX)]!.subarray(recordOffset, recordOffset + RECORD_BYTES);
  }

  /** Copies of those in use among records `from` to `to` of a shard. */
  usedRecords(shard: number, from: number, to: number): Buffer {
    const slab = this.#recordSlabs[shard]!;
    const target = Buffer.alloc((to - from) * RECORD_BYTES);
    let end = 0;
    for (let at = from * RECORD_BYTES; at < to * RECORD_BYTES; at += RECORD_BYTES) {
      if (!isRecordZero(slab, at)) end += slab.copy(target, end, at, at + RECORD_BYTES);
    }
    return target.subarray(0, end);
  }

  /** Whether 16 bytes of a record, from `offset` on, are those at `keyIdOffset`. */
  has(recordSlot: number, offset: number, keyIdBytes: Uint8Array, keyIdOffset: number): boolean {
    const recordSlab = this.#recordSlabs[Math.floor(recordSlot / SHARD_KEYS_MAX)]!;
    const recordStart = (recordSlot % SHARD_KEYS_MAX) * RECORD_BYTES + offset;
    for (let i = 0; i < ID_BYTES; i++) if (recordSlab[recordStart + i] !== keyIdBytes[keyIdOffset + i]) return false;
    return true;
  }

  /** The slab that a record lies in. */
  slabOf(recordSlot: number): Buffer {
    return this.#recordSlabs[Math.floor(recordSlot / SHARD_KEYS_MAX)]!;
  }
}

/** Slots by 16 bytes of their records that are as good as random. Holds a key once: setting it again moves it. */
export class SubjectIndex {
  readonly #subjectRecords: SubjectRecords;
  /** Where in a record the key lies. */
  readonly #fieldOffset: number;
  /** Slot + 1, by open addressing. */
  readonly #indexParts: Uint32Array[];
  readonly #usedSlots = new Uint32Array(INDEX_PARTS);

  constructor(subjectRecords: SubjectRecords, fieldOffset: 0 | typeof SUBJECT_AT) {
    this.#subjectRecords = subjectRecords;
    this.#fieldOffset = fieldOffset;
    this.#indexParts = Array.from({ length: INDEX_PARTS }, () => UNUSED_PART);
  }

  /** Room for so many, made before they come. */
  reserve(keyCount: number): void {
    if (keyCount === 0) return;
    const partSlots = indexSlotsFor(Math.ceil(keyCount / INDEX_PARTS));
    for (let partNumber = 0; partNumber < INDEX_PARTS; partNumber++)
      if (partSlots > this.#indexParts[partNumber]!.length) this.#resizePart(partNumber, partSlots);
  }

  /** The slot of the 16 bytes at `keyIdOffset`; -1 where there is none. */
  find(keyIdBytes: Uint8Array, keyIdOffset = 0): number {
    const indexPart = this.#indexParts[keyIdBytes[keyIdOffset]!]!;
    return indexPart[this.#slotIndexOf(indexPart, keyIdBytes, keyIdOffset)]! - 1;
  }

  /** Returns the slot of before; -1 where there was none. */
  set(keyIdBytes: Uint8Array, keyIdOffset: number, recordSlot: number): number {
    const partNumber = keyIdBytes[keyIdOffset]!;
    if ((this.#usedSlots[partNumber]! + 1) * 2 > this.#indexParts[partNumber]!.length) this.#growPart(partNumber);
    const indexPart = this.#indexParts[partNumber]!;
    const slotIndex = this.#slotIndexOf(indexPart, keyIdBytes, keyIdOffset);
    const previousSlot = indexPart[slotIndex]! - 1;
    if (previousSlot < 0) this.#usedSlots[partNumber]!++;
    indexPart[slotIndex] = recordSlot + 1;
    return previousSlot;
  }

  /** Before the record is wiped: a key is compared with what its slot holds. */
  delete(keyIdBytes: Uint8Array, keyIdOffset: number): void {
    const indexPart = this.#indexParts[keyIdBytes[keyIdOffset]!]!;
    const slotIndex = this.#slotIndexOf(indexPart, keyIdBytes, keyIdOffset);
    if (indexPart[slotIndex] !== FREE_SLOT) indexPart[slotIndex] = REMOVED_SLOT;
  }

  /** Where the key is, or the free place where its search ends. */
  #slotIndexOf(part: Uint32Array, bytes: Uint8Array, at: number): number {
    const mask = part.length - 1;
    const hash = bytes[at + 1]! | (bytes[at + 2]! << 8) | (bytes[at + 3]! << 16);
    for (let slotIndex = hash & mask; ; slotIndex = (slotIndex + 1) & mask) {
      const stored = part[slotIndex]!;
      if (stored === FREE_SLOT) return slotIndex;
      if (stored !== REMOVED_SLOT && this.#subjectRecords.has(stored - 1, this.#fieldOffset, bytes, at)) return slotIndex;
    }
  }

  #growPart(partNumber: number): void {
    const usedSlots = this.#indexParts[partNumber]!.reduce(
      (sum, storedSlot) => sum + (storedSlot === FREE_SLOT || storedSlot === REMOVED_SLOT ? 0 : 1),
      0,
    );
    this.#resizePart(partNumber, indexSlotsFor(usedSlots + 1));
  }

  #resizePart(partNumber: number, slots: number): void {
    const oldPart = this.#indexParts[partNumber]!;
    const resizedPart = new Uint32Array(slots);
    let usedSlots = 0;
    for (const storedSlot of oldPart) {
      if (storedSlot === FREE_SLOT || storedSlot === REMOVED_SLOT) continue;
      const recordOffset = ((storedSlot - 1) % SHARD_KEYS_MAX) * RECORD_BYTES + this.#fieldOffset;
      resizedPart[this.#slotIndexOf(resizedPart, this.#subjectRecords.slabOf(storedSlot - 1), recordOffset)] = storedSlot;
      usedSlots++;
    }
    this.#indexParts[partNumber] = resizedPart;
    this.#usedSlots[partNumber] = usedSlots;
  }
}

/** Slots of a part for so many keys: a quarter in use at first, a half at most. */
function indexSlotsFor(keyCount: number): number {
  return Math.max(INDEX_PART_SLOTS_MIN, 2 ** Math.ceil(Math.log2(keyCount * 4)));
}

/** A record that was wiped: no id is all zeros. */
function isRecordZero(recordSlab: Buffer, recordOffset: number): boolean {
  for (let i = recordOffset; i < recordOffset + ID_BYTES; i++) if (recordSlab[i] !== 0) return false;
  return true;
}
