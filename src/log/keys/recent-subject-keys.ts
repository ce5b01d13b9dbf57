/** Subject keys that were used last, as key objects ready for sealing and opening. A destroyed key must not stay here: `clear`. */
import * as crypto from 'node:crypto';
import type { KeyObject } from 'node:crypto';

export interface SubjectKey {
  /** 32 hex digits, random: says nothing about the subject. */
  readonly id: string;
  /** AES-256. */
  readonly key: KeyObject;
  /** Copies the 32 bytes of the key, for seals so small that making a key object would cost more. */
  copyTo(target: Uint8Array, at: number): void;
}

/** Keys that are held ready, of as many subjects as were asked for last: twice as many at most. */
const RECENT_MAX = 16_384;

/** Makes its key object on first use, which costs more than finding the bytes. The bytes are a copy: the key may be destroyed by then. */
export class LazySubjectKey implements SubjectKey {
  readonly id: string;
  #key: KeyObject | Buffer;

  constructor(id: string, secret: Buffer) {
    this.id = id;
    this.#key = Buffer.from(secret);
  }

  get key(): KeyObject {
    if (!Buffer.isBuffer(this.#key)) return this.#key;
    const key = crypto.createSecretKey(this.#key);
    this.#key.fill(0);
    return (this.#key = key);
  }

  copyTo(target: Uint8Array, at: number): void {
    if (Buffer.isBuffer(this.#key)) target.set(this.#key, at);
    else target.set(this.#key.export(), at);
  }
}

/** Keys that were asked for last, ready for use: two generations, of which the older is dropped when the newer is full. */
export class RecentSubjectKeys {
  #subjects = new Map<string | null, Map<string, SubjectKey>>();
  #subjectsBefore = this.#subjects;
  #count = 0;
  #ids = new Map<string, KeyObject>();
  #idsBefore = this.#ids;

  ofSubject(tenant: string | null, subject: string): SubjectKey | undefined {
    const recentKey = this.#subjects.get(tenant)?.get(subject);
    if (recentKey || this.#subjectsBefore === this.#subjects) return recentKey;
    const before = this.#subjectsBefore.get(tenant)?.get(subject);
    if (before) this.keep(tenant, subject, before);
    return before;
  }

  keep(tenant: string | null, subject: string, key: SubjectKey): void {
    if (this.#count === RECENT_MAX) {
      this.#subjectsBefore = this.#subjects;
      this.#subjects = new Map();
      this.#count = 0;
    }
    let subjects = this.#subjects.get(tenant);
    if (!subjects) this.#subjects.set(tenant, (subjects = new Map()));
    subjects.set(subject, key);
    this.#count++;
  }

  ofId(id: string): KeyObject | undefined {
    const recentKey = this.#ids.get(id);
    if (recentKey || this.#idsBefore === this.#ids) return recentKey;
    const before = this.#idsBefore.get(id);
    if (before) this.keepId(id, before);
    return before;
  }

  keepId(id: string, key: KeyObject): void {
    if (this.#ids.size === RECENT_MAX) {
      this.#idsBefore = this.#ids;
      this.#ids = new Map();
    }
    this.#ids.set(id, key);
  }

  /** Names of subjects and keys alike. */
  clear(): void {
    this.#subjects = this.#subjectsBefore = new Map();
    this.#ids = this.#idsBefore = new Map();
    this.#count = 0;
  }
}
