/** A store on a disk in memory with rows of two subjects, and what erasing them answers. */
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import type { Caller } from '../../../src/governance/caller.ts';
import type { Envelope } from '../../../src/governance/erasure/erasure-receipt.ts';
import type { Disk } from '../../../src/log/disk/disk.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import type { PropertyDefinition } from '../../../src/log/entries/entry.ts';
import type { ServiceDependencies } from '../../../src/service.ts';
import { analyst, TestClock, TestRandom, TestStore } from '../../harness.ts';

interface Verifier {
  verifyReceipt(
    receipt: string,
    logKey: string,
    erasureKey: string,
    told?: { readonly salt: string; readonly subject: string },
  ): string[];
}

/** The offline verifier’s own: throws what is not proven. */
export const { verifyReceipt } = (await import(
  fileURLToPath(new URL('../../../verify/annals-verify.mjs', import.meta.url))
)) as Verifier;

export const settings = {
  SERVICE_PURPOSES: 'test',
  SERVICE_IN_MEMORY: 'false',
  SERVICE_DATA_DIR: '/data',
};

export const acme: Caller = { ...analyst, path: 'acme' };
export const globex: Caller = { ...analyst, path: 'globex' };

const plain = { required: false, masked: false, indexed: false, subject: false, dims: 0 };
export const person: Record<string, PropertyDefinition> = {
  id: { ...plain, type: 'string' },
  who: { ...plain, type: 'string', subject: true },
  name: { ...plain, type: 'string' },
  age: { ...plain, type: 'integer' },
};

/** Each look at it takes a millisecond: slices end. */
class SlowClock extends TestClock {
  override monotonicMs = (): number => ++this.steadyMs;
}

export interface Answered {
  readonly id: string;
  readonly versions: bigint;
  readonly certified: boolean;
  readonly receipt: Envelope | null;
  readonly salt: string | null;
  readonly key: string;
}

export class ErasureWorld {
  readonly disk: Disk;
  readonly clock = new SlowClock('2024-01-01');
  readonly said: string[] = [];
  store!: TestStore;
  #starts = 0;

  constructor(disk: Disk = new MemoryDisk()) {
    this.disk = disk;
  }

  async open(parts: Partial<ServiceDependencies> = {}): Promise<this> {
    this.store = await TestStore.open('2024-01-01', settings, {
      disk: this.disk,
      clock: this.clock,
      derived: { machineBytes: 1 << 30, segmentRows: 64 },
      say: (line) => this.said.push(line),
      // Ids and keys of one process are not those of the one before.
      random: new TestRandom(++this.#starts * 7_919),
      ...parts,
    });
    return this;
  }

  async restart(parts: Partial<ServiceDependencies> = {}): Promise<this> {
    await this.store.close();
    return this.open(parts);
  }

  async fill(): Promise<this> {
    await this.store.register('Person', person, 'id');
    this.tick();
    await this.store.put(
      'Person',
      [
        { id: 'p1', who: 'alice', name: 'Alice Canary', age: 30 },
        { id: 'p2', who: 'bob', name: 'Bob', age: 40 },
        { id: 'p3', who: null, name: 'Nobody', age: 50 },
      ],
      acme,
    );
    this.tick();
    await this.store.put('Person', [{ id: 'p1', who: 'alice', name: 'Alice Married', age: 31 }], acme);
    await this.store.put('Person', [{ id: 'p1', who: 'alice', name: 'Alice Elsewhere', age: 77 }], globex);
    this.tick();
    return this;
  }

  tick(): void {
    this.clock.wallNs += 1_000_000_000n;
  }

  async erase(subject = 'alice', { reason = 'asked to', certify = true, caller = acme } = {}): Promise<Answered> {
    const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;
    const sql = `ERASE SUBJECT ${quoted(subject)} REASON ${quoted(reason)}${certify ? ' CERTIFY' : ''}`;
    const [row] = await this.store.rows(sql, caller);
    expect(row).toBeDefined();
    const { erasure_id: id, versions, certified, receipt, salt, verification_key: key } = row!;
    return {
      id: String(id),
      versions: versions as bigint,
      certified: certified as boolean,
      receipt: receipt === null ? null : (JSON.parse(String(receipt)) as Envelope),
      salt: salt as string | null,
      key: String(key),
    };
  }

  names(caller: Caller = acme, more = ''): Promise<unknown[]> {
    return this.store.column(`SELECT name FROM Person ${more}`, caller);
  }

  get logKey(): string {
    return this.store.service.store.log.proofs.key;
  }
}
