/** A small world for tests of the log: a clock that is told the time, repeatable random bytes, and drafts to append. */
import { createHash } from 'node:crypto';
import type { Clock, Random } from '../../src/clock.ts';
import type { Disk } from '../../src/log/disk/disk.ts';
import type { AccessRecord, CommittedEntry, EntryContext, EntryDraft, RowsBody } from '../../src/log/entries/entry.ts';
import { type Keyring, openKeyring } from '../../src/log/keys/keys.ts';
import { LocalLog, type LocalLogOptions } from '../../src/log/log.ts';
import { VectorBuilder } from '../../src/log/values/vector-builder.ts';

export class ManualClock implements Clock {
  nanoseconds = 1_700_000_000_000_000_000n;
  milliseconds = 0;
  readonly #sleepers: { at: number; wake: () => void }[] = [];

  now(): bigint {
    return this.nanoseconds;
  }

  monotonicMs(): number {
    return this.milliseconds;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      this.#sleepers.push({ at: this.milliseconds + ms, wake: resolve });
      signal?.addEventListener('abort', () => resolve(), { once: true });
    });
  }

  /** Moves both clocks and wakes who has slept enough. */
  async advance(ms: number): Promise<void> {
    this.milliseconds += ms;
    this.nanoseconds += BigInt(ms) * 1_000_000n;
    for (const sleeper of this.#sleepers.splice(0)) {
      if (sleeper.at <= this.milliseconds) sleeper.wake();
      else this.#sleepers.push(sleeper);
    }
    await settle();
  }
}

/** Lets everything that waits for nothing but the event loop run. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** SHA-256 in counter mode: unpredictable enough to find order bugs, the same in every run. */
export class SeededRandom implements Random {
  readonly #seed: string;
  #count = 0;

  constructor(seed = 'annals') {
    this.#seed = seed;
  }

  fill<T extends Uint8Array>(target: T): T {
    for (let at = 0; at < target.length; at += 32) {
      const block = createHash('sha256')
        .update(`${this.#seed} ${this.#count++}`)
        .digest();
      target.set(block.subarray(0, Math.min(32, target.length - at)), at);
    }
    return target;
  }
}

export const kek = new Uint8Array(32).fill(7);
export const directory = '/data';
export const origin = 'annals.test/log/main';

export interface World {
  readonly disk: Disk;
  readonly clock: ManualClock;
  readonly random: SeededRandom;
}

export function worldOn(disk: Disk, seed?: string): World {
  return { disk, clock: new ManualClock(), random: new SeededRandom(seed) };
}

export async function keyringOf({ disk, random }: World): Promise<Keyring> {
  await disk.makeDirectory(directory);
  return openKeyring({ disk, random, directory, kek });
}

export interface OpenedLog {
  readonly log: LocalLog;
  readonly replayed: CommittedEntry[];
  readonly keyring: Keyring;
}

export async function openLog(world: World, options: Partial<LocalLogOptions> = {}): Promise<OpenedLog> {
  const replayed: CommittedEntry[] = [];
  const keyring = options.keyring ?? (await keyringOf(world));
  const log = await LocalLog.open({
    ...world,
    directory,
    keyring,
    origin,
    engineVersion: '0.0.0-test',
    walSync: 'always',
    sealIdleMs: 1000,
    replay: (entry) => replayed.push(entry),
    ...options,
  });
  return { log, replayed, keyring };
}

export const context: EntryContext = {
  branch: 'main',
  tenant: 'acme',
  path: 'acme/eu',
  principal: 'ada',
  door: 'http',
  purpose: 'test',
  correlationId: 'c-1',
  policyDigest: '',
};

/** Rows with one column of each easy type. */
export function rowsDraft(keys: readonly string[], seed = 0): EntryDraft {
  const pk = new VectorBuilder('string');
  const name = new VectorBuilder('string');
  const age = new VectorBuilder('integer');
  const score = new VectorBuilder('number');
  const alive = new VectorBuilder('boolean');
  keys.forEach((key, i) => {
    pk.appendString(key);
    name.appendString(`name of ${key}`);
    age.appendInteger(seed + i);
    score.appendNumber(seed + i / 8);
    alive.appendBoolean(i % 2 === 0);
  });
  const body: RowsBody = {
    kind: 'rows',
    type: 'Person',
    ops: new Uint8Array(keys.length),
    keys: {
      length: keys.length,
      columns: [
        { name: '_pk', type: 'string', vector: pk.build() },
        { name: 'valid_from', type: 'timestamp', vector: { kind: 'null' } },
        { name: 'valid_to', type: 'timestamp', vector: { kind: 'null' } },
      ],
    },
    closeOffsets: new Uint32Array(keys.length + 1),
    closes: new Float64Array(0),
    cells: {
      length: keys.length,
      columns: [
        { name: 'name', type: 'string', vector: name.build() },
        { name: 'age', type: 'integer', vector: age.build() },
        { name: 'score', type: 'number', vector: score.build() },
        { name: 'alive', type: 'boolean', vector: alive.build() },
      ],
    },
    provenance: { source: 'test', method: 'ingest', confidence: 1, derivedFrom: null },
  };
  return { context, body };
}

export function accessDraft(...principals: readonly string[]): EntryDraft {
  const records = principals.map(
    (principal): AccessRecord => ({
      time: 1n,
      correlationId: 'c-2',
      principal,
      tenant: null,
      path: null,
      door: 'http',
      action: 'query',
      purpose: null,
      objectType: 'Person',
      decision: 'allow',
      code: null,
      template: 'SELECT ?',
      literalDigest: null,
      basis: 9_007_199_254_740_993n,
      rowCount: 3,
      costUnits: 0.5,
      durationMs: 1.25,
    }),
  );
  return { context, body: { kind: 'access', records } };
}

/** What tests compare: everything of an entry, with bytes and columns as plain values. */
export function plain(entries: readonly CommittedEntry[]): string[] {
  return entries.map((entry) =>
    JSON.stringify(entry, (_, value: unknown) =>
      typeof value === 'bigint'
        ? `${value}n`
        : ArrayBuffer.isView(value)
          ? Array.from(value as unknown as Uint8Array, String)
          : value,
    ),
  );
}

export async function all<T>(source: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of source) items.push(item);
  return items;
}
