/**
 * Records of subject keys in memory, found by id and by subject: about 80 bytes each. Slabs of one shard each, so that
 * nothing is ever copied as a whole; indexes in 256 parts that grow one by one, so that no turn waits for all of them.
 */
import { assert } from '../errors.ts';
import { ID_BYTES, RECORD_BYTES, SHARD_KEYS_MAX, SUBJECT_AT } from './subject-shard.ts';

const PARTS = 256;
const PART_SLOTS_MIN = 16;
const FREE = 0;
const REMOVED = 0xffff_ffff;

/** All records that ever had a slot: shard × 4,096 + place in the shard. */
export class SubjectRecords {
  readonly #slabs: Buffer[] = [];

  get shards(): number {
    return this.#slabs.length;
  }

  addShard(): number {
    return this.#slabs.push(Buffer.alloc(SHARD_KEYS_MAX * RECORD_BYTES)) - 1;
  }

  /** As a view. */
  record(slot: number): Buffer {
    const at = (slot % SHARD_KEYS_MAX) * RECORD_BYTES;
    return this.#slabs[Math.floor(slot / SHARD_KEYS_MAX)]!.subarray(at, at + RECORD_BYTES);
  }

  /** Copies of those in use among records `from` to `to` of a shard. */
  standing(shard: number, from: number, to: number): Buffer {
    const slab = this.#slabs[shard]!;
    const target = Buffer.alloc((to - from) * RECORD_BYTES);
    let end = 0;
    for (let at = from * RECORD_BYTES; at < to * RECORD_BYTES; at += RECORD_BYTES) {
      if (!isZero(slab, at)) end += slab.copy(target, end, at, at + RECORD_BYTES);
    }
    return target.subarray(0, end);
  }

  /** Whether the bytes of a record, from `offset` on, are these. */
  has(slot: number, offset: number, bytes: Uint8Array): boolean {
    const slab = this.#slabs[Math.floor(slot / SHARD_KEYS_MAX)]!;
    const at = (slot % SHARD_KEYS_MAX) * RECORD_BYTES + offset;
    return slab.compare(bytes, 0, bytes.length, at, at + bytes.length) === 0;
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
    this.#parts = Array.from({ length: PARTS }, () => new Uint32Array(PART_SLOTS_MIN));
  }

  /** -1 where there is none. */
  find(key: Buffer): number {
    const part = this.#parts[key[0]!]!;
    const place = this.#placeOf(part, key);
    return part[place] === FREE ? -1 : part[place]! - 1;
  }

  set(key: Buffer, slot: number): void {
    const number = key[0]!;
    if ((this.#used[number]! + 1) * 2 > this.#parts[number]!.length) this.#grow(number);
    const part = this.#parts[number]!;
    const place = this.#placeOf(part, key);
    if (part[place] === FREE) this.#used[number]!++;
    part[place] = slot + 1;
  }

  /** Before the record is wiped: a key is compared with what its slot holds. */
  delete(key: Buffer): void {
    const part = this.#parts[key[0]!]!;
    const place = this.#placeOf(part, key);
    if (part[place] !== FREE) part[place] = REMOVED;
  }

  /** Where the key is, or the free place where its search ends. */
  #placeOf(part: Uint32Array, key: Buffer): number {
    assert(key.length === ID_BYTES, 'a key of an index has 16 bytes');
    const mask = part.length - 1;
    for (let place = key.readUInt32LE(1) & mask; ; place = (place + 1) & mask) {
      const stored = part[place]!;
      if (stored === FREE) return place;
      if (stored !== REMOVED && this.#records.has(stored - 1, this.#offset, key)) return place;
    }
  }

  #grow(number: number): void {
    const old = this.#parts[number]!;
    const kept = old.filter((stored) => stored !== FREE && stored !== REMOVED);
    const part = new Uint32Array(Math.max(PART_SLOTS_MIN, 2 ** Math.ceil(Math.log2((kept.length + 1) * 4))));
    for (const stored of kept) {
      const record = this.#records.record(stored - 1);
      part[this.#placeOf(part, record.subarray(this.#offset, this.#offset + ID_BYTES))] = stored;
    }
    this.#parts[number] = part;
    this.#used[number] = kept.length;
  }
}

/** A record that was wiped: no id is all zeros. */
function isZero(slab: Buffer, at: number): boolean {
  for (let i = at; i < at + ID_BYTES; i++) if (slab[i] !== 0) return false;
  return true;
}
