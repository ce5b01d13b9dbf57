/** Keys of subjects that are in memory alone: for tests of what seals and opens under them. */
import * as crypto from 'node:crypto';
import type { Random } from '../../src/clock.ts';
import { ServiceError } from '../../src/errors.ts';
import type { SubjectKey } from '../../src/log/keys/recent-subject-keys.ts';
import type { SubjectKeys } from '../../src/log/keys/subject-keys.ts';
import type { Tombstone } from '../../src/log/keys/subject-shard.ts';
import { SeededRandom } from './world.ts';

export class MemorySubjectKeys implements SubjectKeys {
  readonly #random: Random;
  readonly #keys = new Map<string, SubjectKey>();
  /** Newest last. */
  readonly #subjects = new Map<string, string[]>();
  readonly #retired = new Set<string>();
  readonly #receipts = new Map<string, string>();
  /** What `durable` answers: a test may make the log wait. */
  waiting: Promise<void> | null = null;

  constructor(random: Random = new SeededRandom('subjects')) {
    this.#random = random;
  }

  sealing(tenant: string | null, subject: string): SubjectKey {
    const ids = this.#idsOf(tenant, subject);
    const newest = ids.at(-1);
    if (newest !== undefined && !this.#retired.has(newest)) return this.#keys.get(newest)!;
    const id = Buffer.from(this.#random.fill(new Uint8Array(16))).toString('hex');
    const secret = this.#random.fill(new Uint8Array(32));
    const made: SubjectKey = { id, key: crypto.createSecretKey(secret), copyTo: (target, at) => target.set(secret, at) };
    this.#keys.set(made.id, made);
    ids.push(made.id);
    return made;
  }

  opening(id: string): crypto.KeyObject | null {
    const found = this.#keys.get(id);
    if (found) return found.key;
    if (this.#receipts.has(id)) return null;
    throw new ServiceError('REL_STORAGE', `subject key ${id} is not here, and was not erased`);
  }

  copyKey(id: Uint8Array, target: Uint8Array, at: number): boolean {
    const name = Buffer.from(id).toString('hex');
    if (this.opening(name) === null) return false;
    this.#keys.get(name)!.copyTo(target, at);
    return true;
  }

  idsOf(tenant: string | null, subject: string): readonly string[] {
    return this.#idsOf(tenant, subject).toReversed();
  }

  retire(ids: readonly string[]): void {
    for (const id of ids) this.#retired.add(id);
  }

  durable(): Promise<void> | null {
    return this.waiting;
  }

  async destroy(ids: readonly string[], receipt: string): Promise<void> {
    for (const id of ids) if (!this.#receipts.has(id)) this.opening(id);
    for (const id of ids) {
      if (!this.#keys.delete(id)) continue;
      this.#receipts.set(id, receipt);
      for (const of of this.#subjects.values()) if (of.includes(id)) of.splice(of.indexOf(id), 1);
    }
  }

  tombstones(): readonly Tombstone[] {
    return [...this.#receipts].map(([id, receipt]) => ({ id, receipt }));
  }

  #idsOf(tenant: string | null, subject: string): string[] {
    const name = JSON.stringify([tenant, subject]);
    let ids = this.#subjects.get(name);
    if (!ids) this.#subjects.set(name, (ids = []));
    return ids;
  }
}
