/**
 * Subject keys in memory, by slot: found by id and by a keyed hash of the subject. A subject may have several keys; rows are sealed
 * under the newest one that is not retired. Invariant: a wiped slot is found no more, and its record is all zeros.
 */
import { SubjectIndex, SubjectRecords } from './subject-index.ts';
import { ID_BYTES, KEY_AT, RECORD_BYTES, SHARD_KEYS_MAX, SUBJECT_AT } from './subject-shard.ts';

export class SubjectKeyTable {
  readonly #records = new SubjectRecords();
  readonly #byId = new SubjectIndex(this.#records, 0);
  readonly #bySubject = new SubjectIndex(this.#records, SUBJECT_AT);
  /** Slots of earlier keys of subjects that have a newer one, oldest first. */
  readonly #earlier = new Map<string, number[]>();
  readonly #retired = new Set<number>();

  /** Memory for so many keys, reserved before they come. */
  reserve(keys: number): void {
    this.#byId.reserve(keys);
    this.#bySubject.reserve(keys);
  }

  addShard(): number {
    return this.#records.addShard();
  }

  /** All records of a shard at once, from its first slot on. */
  fill(shard: number, records: Uint8Array): void {
    this.#records.fill(shard, records);
  }

  /** The record of a slot, as a view. */
  record(slot: number): Buffer {
    return this.#records.record(slot);
  }

  /** Copies of the records in use among records `from` to `to` of a shard. */
  usedRecords(shard: number, from: number, to: number): Buffer {
    return this.#records.usedRecords(shard, from, to);
  }

  /** -1 for what is no id, too. */
  slotOfId(id: string): number {
    return /^[0-9a-f]{32}$/.test(id) ? this.slotOfIdBytes(Buffer.from(id, 'hex')) : -1;
  }

  slotOfIdBytes(id: Uint8Array): number {
    return this.#byId.find(id);
  }

  /** The slot of the subject's key that rows are sealed under; -1 where the subject has none. */
  sealingSlot(subjectHash: Uint8Array): number {
    const slot = this.#bySubject.find(subjectHash);
    return this.#retired.has(slot) ? -1 : slot;
  }

  /** Ids of the subject's keys, newest first. */
  idsOfSubject(subjectHash: Buffer): string[] {
    const slot = this.#bySubject.find(subjectHash);
    if (slot < 0) return [];
    const earlier = this.#earlier.get(subjectHash.toString('hex')) ?? [];
    return [slot, ...earlier.toReversed()].map((each) => this.idAt(each));
  }

  idAt(slot: number): string {
    return this.#records.record(slot).toString('hex', 0, ID_BYTES);
  }

  /** As a view. */
  secretAt(slot: number): Buffer {
    return this.#records.record(slot).subarray(KEY_AT);
  }

  /** Seals nothing under this key any more; sealed bytes still open. */
  retire(slot: number): void {
    this.#retired.add(slot);
  }

  /** Enters a slot whose record is there, as its subject's newest. */
  enter(slot: number): void {
    const slab = this.#records.slabOf(slot);
    const offset = (slot % SHARD_KEYS_MAX) * RECORD_BYTES;
    this.#byId.set(slab, offset, slot);
    const previous = this.#bySubject.set(slab, offset + SUBJECT_AT, slot);
    if (previous < 0) return;
    const name = slab.toString('hex', offset + SUBJECT_AT, offset + KEY_AT);
    this.#earlier.set(name, [...(this.#earlier.get(name) ?? []), previous]);
  }

  wipe(slot: number): void {
    const record = this.#records.record(slot);
    const subjectHash = record.subarray(SUBJECT_AT, KEY_AT);
    const name = subjectHash.toString('hex');
    const earlier = (this.#earlier.get(name) ?? []).filter((each) => each !== slot);
    if (this.#bySubject.find(subjectHash) === slot) {
      const newest = earlier.pop();
      if (newest === undefined) this.#bySubject.delete(subjectHash, 0);
      else this.#bySubject.set(subjectHash, 0, newest);
    }
    if (earlier.length > 0) this.#earlier.set(name, earlier);
    else this.#earlier.delete(name);
    this.#byId.delete(record, 0);
    this.#retired.delete(slot);
    record.fill(0);
  }
}
