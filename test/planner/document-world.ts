/** A world of documents that is drawn from a seed, for tests that hold an index against what the rows themselves say. */
import type { Caller } from '../../src/governance/caller.ts';
import type { Action } from '../../src/governance/gate-contract.ts';
import { MemoryDisk } from '../../src/log/disk/memory-disk.ts';
import { formatInstant } from '../../src/log/values/timestamp.ts';
import { inlineWorker } from '../../src/log/threads/workers.ts';
import type { Command } from '../../src/projections/command.ts';
import { analyst, rowsOf, TestClock, TestRandom, TestStore } from '../harness.ts';

const admin: Caller = { ...analyst, principal: 'root', credential: 'admin' };
export const acme: Caller = { ...analyst, path: 'acme' };
const below: Caller = { ...analyst, path: 'acme/paris' };
const globex: Caller = { ...analyst, path: 'globex' };
const clerk: Caller = { ...analyst, principal: 'cleo', path: 'acme', roles: ['clerk'] };

export class Draw {
  #state: number;
  constructor(seed: number) {
    this.#state = seed;
  }
  upTo(most: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * most);
  }
  of<T>(all: readonly T[]): T {
    return all[this.upTo(all.length)]!;
  }
}

export const plainProperty = { required: false, masked: false, indexed: false, subject: false, dims: 0 };

type Properties = Parameters<TestStore['register']>[1];

/** Documents with an id, a subject, a region and a number, and what a test adds to them. */
export abstract class DocumentWorld {
  readonly disk = new MemoryDisk();
  readonly clock = new TestClock('2024-01-01');
  readonly draw: Draw;
  readonly instants: string[] = [];
  store!: TestStore;
  #starts = 0;

  constructor(seed: number) {
    this.draw = new Draw(seed);
  }

  /** Properties beside those that all have. */
  protected abstract readonly properties: Properties;
  /** Values of those properties for one more row. */
  protected abstract values(): Record<string, unknown>;
  /** One question, by index and by the rows. */
  protected abstract check(who: Caller, branch: string): Promise<void>;

  async open(): Promise<void> {
    const settings = { SERVICE_PURPOSES: 'test', SERVICE_IN_MEMORY: 'false', SERVICE_DATA_DIR: '/data' };
    this.store = await TestStore.open('2024-01-01', settings, {
      disk: this.disk,
      clock: this.clock,
      derived: { machineBytes: 1 << 30, segmentRows: 24 },
      random: new TestRandom(++this.#starts * 977),
      startKept: inlineWorker,
    });
  }

  register(): Promise<unknown> {
    const who = { ...plainProperty, type: 'string', subject: true } as const;
    return this.store.register('Doc', { id: 'string', who, region: 'string', n: 'integer', ...this.properties }, 'id');
  }

  /** Some rows for each of three callers. Rows of the subject `without` are left out. */
  async put(count: number, without: string | null = null): Promise<void> {
    const { draw } = this;
    for (const who of [acme, below, globex]) {
      this.clock.wallNs += 1_000_000_000n;
      const rows = Array.from({ length: count }, () => ({
        id: `k${draw.upTo(60)}`,
        who: `s${draw.upTo(5)}`,
        region: draw.of(['EU', 'US', 'XX']),
        n: draw.upTo(10),
        ...this.values(),
      }));
      const own = [...new Map(rows.map((row) => [row.id, row])).values()].filter((row) => row.who !== without);
      await this.store.put('Doc', own, who);
    }
    this.clock.wallNs += 1_000_000_000n;
    this.instants.push(formatInstant(this.clock.wallNs));
  }

  async ask(sql: string, who: Caller, branch: string): Promise<{ rows: Record<string, unknown>[]; hits: number }> {
    const request = { action: 'query', purpose: 'test', correlationId: 'c' } as const;
    const answer = await this.store.service.gate.invoke({ ...who, branch }, request, (invocation) =>
      this.store.service.planner.query(invocation, { sql, purpose: 'test' }),
    );
    return { rows: rowsOf(answer), hits: answer.estimatedTotalHits };
  }

  /**
   * Checks through a life: rows, a fork, deletions; then under policies; after an erasure, around which `erasing` may look;
   * after a restart and a compaction; after more rows. `counts` says how many checks at each of these five.
   */
  async live(
    policies: Readonly<Record<string, string>>,
    counts: readonly [number, number, number, number, number],
    erasing: (erase: () => Promise<unknown>) => Promise<unknown> = (erase) => erase(),
  ): Promise<void> {
    await this.open();
    await this.register();
    await this.put(20);
    await this.put(30);
    await this.#submit(acme, 'fork', { kind: 'fork-branch', name: 'trial', source: 'main', shares: 'everything' });
    await this.put(10);
    await this.store.delete('Doc', ['k1', 'k2'], acme);
    await this.#checks(counts[0]);
    const rows = { all: 'permit(principal, action, resource);', rows: hidesSome };
    for (const [id, text] of Object.entries({ ...rows, ...policies })) {
      await this.#submit(admin, 'administer', { kind: 'put-policy', id, text });
    }
    await this.#checks(counts[1]);
    await erasing(() => this.store.rows("ERASE SUBJECT 's1' REASON 'asked' CERTIFY", acme));
    await this.#checks(counts[2]);
    await this.store.close();
    await this.open();
    await this.store.service.store.columns!.compact();
    await this.#checks(counts[3]);
    await this.put(10);
    await this.#checks(counts[4]);
    await this.store.close();
  }

  async #checks(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      await this.check(this.draw.of([acme, below, clerk]), this.draw.of(['main', 'main', 'trial']));
    }
  }

  #submit(who: Caller, action: Action, command: Command): Promise<unknown> {
    return this.store.service.gate.invoke(who, { action, purpose: 'test', correlationId: 'c' }, (invocation) =>
      invocation.submit(command),
    );
  }
}

const hidesSome = 'forbid(principal in Role::"clerk", action, resource is Doc) when { resource.region == "XX" };';
