/**
 * Records of subject keys in memory, found by id and by subject: about 80 bytes each. Slabs of one shard each, so that
 * nothing is ever copied as a whole; indexes in 256 parts that grow one by one, so that no turn waits for all of them.
 */
import { ID_BYTES, RECORD_BYTES, SHARD_KEYS_MAX, SUBJECT_AT } from './subject-shard.ts';

const PARTS = 256;
const PART_SLOTS_MIN = 16;
const FREE = 0;
const REMOVED = 0xffff_ffff;
/** A part that never had a key: most stores have few or none. Too short to be written to. */
const UNUSED = new Uint32Array(1);

/** All records that ever had a slot: shard × 4,096 + place in the shard. */
export class SubjectRecords {
  readonly #slabs: Buffer[] = [];

  get shards(): number {
    return this.#slabs.length;
  }

  addShard(): number {
    return this.#slabs.push(Buffer.alloc(SHARD_KEYS_MAX * RECORD_BYTES)) - 1;
  }

  /** All records of a shard at once, from its first slot on. */
  fill(shard: number, records: Uint8Array): void {
    this.#slabs[shard]!.set(records);
  }

  /** As a view. */
  record(slot: number): Buffer {
    const at = (slot % SHARD_KEYS_MAX) * RECORD_BYTES;
    return this.#slabs[Math.floor(slot / SHARD_KEYS_MAX)]!.subarray(at, at + RECORD_BYTES);
  }

  /** Copies of those in use among records `from` to `to` of a shard. */
  usedRecords(shard: number, from: number, to: number): Buffer {
    const slab = this.#slabs[shard]!;
    const target = Buffer.alloc((to - from) * RECORD_BYTES);
    let end = 0;
    for (let at = from * RECORD_BYTES; at < to * RECORD_BYTES; at += RECORD_BYTES) {
      if (!isZero(slab, at)) end += slab.copy(target, end, at, at + RECORD_BYTES);
    }
    return target.subarray(0, end);
  }

  /** Whether 16 bytes of a record, from `offset` on, are those at `at`. */
  has(slot: number, offset: number, bytes: Uint8Array, at: number): boolean {
    const slab = this.#slabs[Math.floor(slot / SHARD_KEYS_MAX)]!;
    const start = (slot % SHARD_KEYS_MAX) * RECORD_BYTES + offset;
    for (let i = 0; i < ID_BYTES; i++) if (slab[start + i] !== bytes[at + i]) return false;
    return true;
  }

  /** The slab that a record lies in. */
  slabOf(slot: number): Buffer {
    return this.#slabs[Math.floor(slot / SHARD_KEYS_MAX)]!;
  }
}

/** Slots by 16 bytes of their records that are as good as random. Holds a key once: setting it again moves it. */
export class SubjectIndex {
  readonly #records: SubjectRecords;
  /** Where in a record the key lies. */
  readonly #offset: number;
  /** Slot + 1, by open addressing. */
  readonly #parts: Uint32Array[];
  readonly #used = new Uint32Array(PARTS);

  constructor(records: SubjectRecords, offset: 0 | typeof SUBJECT_AT) {
    this.#records = records;
    this.#offset = offset;
    this.#parts = Array.from({ length: PARTS }, () => UNUSED);
  }

  /** Room for so many, made before they come. */
  reserve(keys: number): void {
    if (keys === 0) return;
    const slots = slotsFor(Math.ceil(keys / PARTS));
    for (let number = 0; number < PARTS; number++) if (slots > this.#parts[number]!.length) this.#resize(number, slots);
  }

  /** The slot of the 16 bytes at `at`; -1 where there is none. */
  find(bytes: Uint8Array, at = 0): number {
    const part = this.#parts[bytes[at]!]!;
    return part[this.#placeOf(part, bytes, at)]! - 1;
  }

  /** Returns the slot of before; -1 where there was none. */
  set(bytes: Uint8Array, at: number, slot: number): number {
    const number = bytes[at]!;
    if ((this.#used[number]! + 1) * 2 > this.#parts[number]!.length) this.#grow(number);
    const part = this.#parts[number]!;
    const slotIndex = this.#placeOf(part, bytes, at);
    const before = part[slotIndex]! - 1;
    if (before < 0) this.#used[number]!++;
    part[slotIndex] = slot + 1;
    return before;
  }

  /** Before the record is wiped: a key is compared with what its slot holds. */
  delete(bytes: Uint8Array, at: number): void {
    const part = this.#parts[bytes[at]!]!;
    const slotIndex = this.#placeOf(part, bytes, at);
    if (part[slotIndex] !== FREE) part[slotIndex] = REMOVED;
  }

  /** Where the key is, or the free place where its search ends. */
  #placeOf(part: Uint32Array, bytes: Uint8Array, at: number): number {
    const mask = part.length - 1;
    const hash = bytes[at + 1]! | (bytes[at + 2]! << 8) | (bytes[at + 3]! << 16);
    for (let slotIndex = hash & mask; ; slotIndex = (slotIndex + 1) & mask) {
      const stored = part[slotIndex]!;
      if (stored === FREE) return slotIndex;
      if (stored !== REMOVED && this.#records.has(stored - 1, this.#offset, bytes, at)) return slotIndex;
    }
  }

  #grow(number: number): void {
    const usedSlots = this.#parts[number]!.reduce((sum, stored) => sum + (stored === FREE || stored === REMOVED ? 0 : 1), 0);
    this.#resize(number, slotsFor(usedSlots + 1));
  }

  #resize(number: number, slots: number): void {
    const old = this.#parts[number]!;
    const part = new Uint32Array(slots);
    let used = 0;
    for (const stored of old) {
      if (stored === FREE || stored === REMOVED) continue;
      const at = ((stored - 1) % SHARD_KEYS_MAX) * RECORD_BYTES + this.#offset;
      part[this.#placeOf(part, this.#records.slabOf(stored - 1), at)] = stored;
      used++;
    }
    this.#parts[number] = part;
    this.#used[number] = used;
  }
}

/** Slots of a part for so many keys: a quarter in use at first, a half at most. */
function slotsFor(keys: number): number {
  return Math.max(PART_SLOTS_MIN, 2 ** Math.ceil(Math.log2(keys * 4)));
}

/** A record that was wiped: no id is all zeros. */
function isZero(slab: Buffer, at: number): boolean {
  for (let i = at; i < at + ID_BYTES; i++) if (slab[i] !== 0) return false;
  return true;
}
