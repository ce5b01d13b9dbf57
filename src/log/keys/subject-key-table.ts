/**
 * Subject keys in memory, by slot: found by id and by a keyed hash of the subject. A subject may have several keys; rows are sealed
 * under the newest one that is not retired. Invariant: a wiped slot is found no more, and its record is all zeros.
 */
import { SubjectIndex, SubjectRecords } from './subject-index.ts';
import { ID_BYTES, KEY_AT, RECORD_BYTES, SHARD_KEYS_MAX, SUBJECT_AT } from './subject-shard.ts';

export class SubjectKeyTable {
  readonly #subjectRecords = new SubjectRecords();
  readonly #slotsByKeyId = new SubjectIndex(this.#subjectRecords, 0);
  readonly #slotsBySubject = new SubjectIndex(this.#subjectRecords, SUBJECT_AT);
  /** Slots of earlier keys of subjects that have a newer one, oldest first. */
  readonly #earlierKeySlots = new Map<string, number[]>();
  readonly #retiredSlots = new Set<number>();

  /** Memory for so many keys, reserved before they come. */
  reserve(keys: number): void {
    this.#slotsByKeyId.reserve(keys);
    this.#slotsBySubject.reserve(keys);
  }

  addShard(): number {
    return this.#subjectRecords.addShard();
  }

  /** All records of a shard at once, from its first slot on. */
  fill(shard: number, records: Uint8Array): void {
    this.#subjectRecords.fill(shard, records);
  }

  /** The record of a slot, as a view. */
  record(slot: number): Buffer {
    return this.#subjectRecords.record(slot);
  }

  /** Copies of the records in use among records `from` to `to` of a shard. */
  usedRecords(shard: number, from: number, to: number): Buffer {
    return this.#subjectRecords.usedRecords(shard, from, to);
  }

  /** -1 for what is no id, too. */
  slotOfId(id: string): number {
    return /^[0-9a-f]{32}$/.test(id) ? this.slotOfIdBytes(Buffer.from(id, 'hex')) : -1;
  }

  slotOfIdBytes(id: Uint8Array): number {
    return this.#slotsByKeyId.find(id);
  }

  /** The slot of the subject's key that rows are sealed under; -1 where the subject has none. */
  sealingSlot(subjectHash: Uint8Array): number {
    const keySlot = this.#slotsBySubject.find(subjectHash);
    return this.#retiredSlots.has(keySlot) ? -1 : keySlot;
  }

  /** Ids of the subject's keys, newest first. */
  idsOfSubject(subjectHash: Buffer): string[] {
    const newestSlot = this.#slotsBySubject.find(subjectHash);
    if (newestSlot < 0) return [];
    const earlierSlots = this.#earlierKeySlots.get(subjectHash.toString('hex')) ?? [];
    return [newestSlot, ...earlierSlots.toReversed()].map((subjectSlot) => this.idAt(subjectSlot));
  }

  idAt(slot: number): string {
    return this.#subjectRecords.record(slot).toString('hex', 0, ID_BYTES);
  }

  /** As a view. */
  secretAt(slot: number): Buffer {
    return this.#subjectRecords.record(slot).subarray(KEY_AT);
  }

  /** Seals nothing under this key any more; sealed bytes still open. */
  retire(retiredSlot: number): void {
    this.#retiredSlots.add(retiredSlot);
  }

  /** Enters a slot whose record is there, as its subject's newest. */
  enter(keySlot: number): void {
    const recordSlab = this.#subjectRecords.slabOf(keySlot);
    const recordOffset = (keySlot % SHARD_KEYS_MAX) * RECORD_BYTES;
    this.#slotsByKeyId.set(recordSlab, recordOffset, keySlot);
    const previousSlot = this.#slotsBySubject.set(recordSlab, recordOffset + SUBJECT_AT, keySlot);
    if (previousSlot < 0) return;
    const subjectHashText = recordSlab.toString('hex', recordOffset + SUBJECT_AT, recordOffset + KEY_AT);
    this.#earlierKeySlots.set(subjectHashText, [...(this.#earlierKeySlots.get(subjectHashText) ?? []), previousSlot]);
  }

  wipe(wipedSlot: number): void {
    const wipedRecord = this.#subjectRecords.record(wipedSlot);
    const subjectHash = wipedRecord.subarray(SUBJECT_AT, KEY_AT);
    const subjectHashText = subjectHash.toString('hex');
    const earlierSlots = (this.#earlierKeySlots.get(subjectHashText) ?? []).filter((earlierSlot) => earlierSlot !== wipedSlot);
    if (this.#slotsBySubject.find(subjectHash) === wipedSlot) {
      const newestSlot = earlierSlots.pop();
      if (newestSlot === undefined) this.#slotsBySubject.delete(subjectHash, 0);
      else this.#slotsBySubject.set(subjectHash, 0, newestSlot);
    }
    if (earlierSlots.length > 0) this.#earlierKeySlots.set(subjectHashText, earlierSlots);
    else this.#earlierKeySlots.delete(subjectHashText);
    this.#slotsByKeyId.delete(wipedRecord, 0);
    this.#retiredSlots.delete(wipedSlot);
    wipedRecord.fill(0);
  }
}
