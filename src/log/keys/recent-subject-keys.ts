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
const RECENT_KEYS_MAX = 16_384;

/** Makes its key object on first use, which costs more than finding the bytes. The bytes are a copy: the key may be destroyed by then. */
export class LazySubjectKey implements SubjectKey {
  readonly id: string;
  #subjectKey: KeyObject | Buffer;

  constructor(id: string, secret: Buffer) {
    this.id = id;
    this.#subjectKey = Buffer.from(secret);
  }

  get key(): KeyObject {
    if (!Buffer.isBuffer(this.#subjectKey)) return this.#subjectKey;
    const keyObject = crypto.createSecretKey(this.#subjectKey);
    this.#subjectKey.fill(0);
    return (this.#subjectKey = keyObject);
  }

  copyTo(target: Uint8Array, at: number): void {
    if (Buffer.isBuffer(this.#subjectKey)) target.set(this.#subjectKey, at);
    else target.set(this.#subjectKey.export(), at);
  }
}

/** Keys that were asked for last, ready for use: two generations, of which the older is dropped when the newer is full. */
export class RecentSubjectKeys {
  #keysBySubject = new Map<string | null, Map<string, SubjectKey>>();
  #olderKeysBySubject = this.#keysBySubject;
  #recentKeyCount = 0;
  #keysById = new Map<string, KeyObject>();
  #olderKeysById = this.#keysById;

  ofSubject(tenant: string | null, subject: string): SubjectKey | undefined {
    const recentKey = this.#keysBySubject.get(tenant)?.get(subject);
    if (recentKey || this.#olderKeysBySubject === this.#keysBySubject) return recentKey;
    const olderKey = this.#olderKeysBySubject.get(tenant)?.get(subject);
    if (olderKey) this.keep(tenant, subject, olderKey);
    return olderKey;
  }

  keep(tenant: string | null, subject: string, subjectKey: SubjectKey): void {
    if (this.#recentKeyCount === RECENT_KEYS_MAX) {
      this.#olderKeysBySubject = this.#keysBySubject;
      this.#keysBySubject = new Map();
      this.#recentKeyCount = 0;
    }
    let tenantSubjects = this.#keysBySubject.get(tenant);
    if (!tenantSubjects) this.#keysBySubject.set(tenant, (tenantSubjects = new Map()));
    tenantSubjects.set(subject, subjectKey);
    this.#recentKeyCount++;
  }

  ofId(id: string): KeyObject | undefined {
    const recentKey = this.#keysById.get(id);
    if (recentKey || this.#olderKeysById === this.#keysById) return recentKey;
    const olderKey = this.#olderKeysById.get(id);
    if (olderKey) this.keepId(id, olderKey);
    return olderKey;
  }

  keepId(id: string, key: KeyObject): void {
    if (this.#keysById.size === RECENT_KEYS_MAX) {
      this.#olderKeysById = this.#keysById;
      this.#keysById = new Map();
    }
    this.#keysById.set(id, key);
  }

  /** Names of subjects and keys alike. */
  clear(): void {
    this.#keysBySubject = this.#olderKeysBySubject = new Map();
    this.#keysById = this.#olderKeysById = new Map();
    this.#recentKeyCount = 0;
  }
}
