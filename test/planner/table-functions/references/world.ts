/**
 * A small world at random for the functions of the domain: rows that come late, are corrected and deleted, in several organisation paths and
 * on branches, and judgements among them. Beside the store stands a list of versions (`test/model/bitemporal.ts`) that says which rows are
 * there at a basis: a branch, a path, and an instant on each axis.
 */
import type { Caller } from '../../../../src/governance/caller.ts';
import { formatInstant, parseInstant } from '../../../../src/log/values/timestamp.ts';
import type { ColumnType } from '../../../../src/log/values/value.ts';
import { analyst, type Row, TestRandom, TestStore } from '../../../harness.ts';
import { Bitemporal, type Cells } from '../../../model/bitemporal.ts';
import { Judged } from './judged.ts';
import { typesOfWorld } from './made-rows.ts';

/** Where and when a question stands. */
export interface Basis {
  readonly branch: string;
  readonly path: string | null;
  readonly system: bigint;
  readonly valid: bigint;
  /** As it stands behind the question. */
  readonly clause: string;
}

export interface PlainRow {
  readonly type: string;
  readonly id: string;
  readonly systemFrom: bigint;
  readonly validFrom: bigint;
  readonly validTo: bigint;
  readonly cells: Cells;
}

/** A kind of rows: its columns, which are called `renamed` where the type has other names for them, and rows at random. */
export interface MadeType {
  readonly name: string;
  readonly role: string;
  readonly columns: Readonly<Record<string, ColumnType>>;
  readonly renamed?: Readonly<Record<string, string>>;
  readonly letter: string;
  readonly keys: number;
  readonly make: (dice: Dice, key: string) => Cells;
}

export class Dice {
  readonly #bytes = new Uint8Array(4);
  readonly #random: TestRandom;

  constructor(seed: number) {
    this.#random = new TestRandom(seed * 2_654_435 + 1);
    // The first draws of seeds that are near each other are alike.
    this.#random.fill(new Uint8Array(64));
  }

  below(sides: number): number {
    this.#random.fill(this.#bytes);
    return new DataView(this.#bytes.buffer).getUint32(0) % sides;
  }

  of<T>(all: readonly T[]): T {
    return all[this.below(all.length)]!;
  }

  /** In so many of a hundred cases. */
  chance(percent: number): boolean {
    return this.below(100) < percent;
  }

  /** Or nothing, in so many of a hundred cases. */
  maybe<T>(percent: number, value: T): T | null {
    return this.chance(percent) ? value : null;
  }
}

const hourNs = 3_600_000_000_000n;
const paths = [null, null, 'acme', 'acme', 'acme/eu', 'globex'];
/** Of rows, by path: rows below a path are beside its own, and have keys of their own. */
const keyMarks: ReadonlyMap<string | null, string> = new Map([['acme/eu', 'e']]);
const begun = parseInstant('2024-03-01');

interface Life {
  readonly tables: Map<string, Bitemporal>;
  readonly judged: Judged;
}

export class World {
  readonly store: TestStore;
  readonly dice: Dice;
  readonly #lives = new Map<string, Life>();
  /** Instants at which something was written. */
  readonly #instants: bigint[] = [];
  readonly differences: string[] = [];

  private constructor(store: TestStore, seed: number) {
    this.store = store;
    this.dice = new Dice(seed);
    const tables = new Map(typesOfWorld.map(({ name }) => [name, new Bitemporal()]));
    this.#lives.set('main', { tables, judged: new Judged() });
  }

  static async open(seed: number, steps = 90): Promise<World> {
    const world = new World(await TestStore.open(formatInstant(begun)), seed);
    await world.#register();
    for (const path of new Set(paths)) for (const made of typesOfWorld) await world.#write('main', path, made, made.keys);
    for (let step = 0; step < steps; step++) await world.#step(step, steps);
    world.store.clock.wallNs += 24n * hourNs;
    return world;
  }

  close(): Promise<boolean> {
    return this.store.close();
  }

  basis(): Basis {
    const { dice } = this;
    const now = this.store.clock.wallNs;
    const [branch, path] = [dice.of([...this.#lives.keys()]), dice.of(paths)];
    const at = dice.of(this.#instants) + dice.of([0n, 0n, 1n, hourNs]) - dice.of([0n, 0n, 1n]);
    const which = dice.below(5);
    if (which < 2) return { branch, path, system: now, valid: now, clause: '' };
    if (which < 4) return { branch, path, system: at, valid: at, clause: `AS OF SYSTEM TIME '${formatInstant(at)}'` };
    return { branch, path, system: now, valid: at, clause: `AS OF '${formatInstant(at)}'` };
  }

  /** Rows of the types that play a role, by the names of its columns, in the order of types and of system_from. */
  rows(basis: Basis, role: string): PlainRow[] {
    return typesOfWorld
      .filter((each) => each.role === role)
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
      .flatMap(({ name }) => this.rowsOf(basis, name));
  }

  rowsOf({ branch, path, system, valid }: Basis, type: string): PlainRow[] {
    const versions = this.#lives.get(branch)!.tables.get(type)!.read(path, { system, valid });
    return versions.map(({ key, systemFrom, validFrom, validTo, cells }) => ({
      type,
      id: key,
      systemFrom,
      validFrom,
      validTo,
      cells,
    }));
  }

  judged({ branch, path, system }: Basis): Judged {
    return this.#lives.get(branch)!.judged.seen(path, system);
  }

  ask({ branch, path, clause }: Basis, call: string): Promise<Row[]> {
    return this.store.rows(`SELECT * FROM ${call} ${clause}`, this.#caller(branch, path));
  }

  #caller(branch: string, path: string | null): Caller {
    return { ...analyst, branch, path, tenant: path?.split('/')[0] ?? null };
  }

  async #register(): Promise<void> {
    for (const { name, role, columns, renamed = {} } of typesOfWorld) {
      const named = Object.fromEntries(Object.entries(columns).map(([column, type]) => [renamed[column] ?? column, type]));
      const says = Object.keys(renamed).length === 0 ? {} : { role, roleColumns: renamed };
      await this.store.register(name, { id: 'string', ...named }, 'id', says);
    }
    for (const [i, keep] of (['newest', 'longest', 'most_frequent'] as const).entries()) {
      const definition = {
        kind: 'enrich',
        name: `r${i}`,
        object_type: 'Party',
        field: ['name', 'country', 'email'][i]!,
        keep,
      } as const;
      await this.store.invoke(analyst, 'schema', (invocation) =>
        invocation.submit({ kind: 'put-rule', id: `r${i}`, definition, author: { credential: 'token', token: null } }),
      );
    }
  }

  async #step(step: number, steps: number): Promise<void> {
    const { dice, store } = this;
    store.clock.wallNs += hourNs * BigInt(1 + dice.below(9));
    if (step === Math.floor(steps / 2) || step === Math.floor((steps * 3) / 4)) await this.#fork(`b${this.#lives.size}`);
    const branch = dice.of([...this.#lives.keys()]);
    const path = dice.of(paths);
    if (step % 6 === 5) await this.#judge(branch, path);
    else await this.#write(branch, path, dice.of(typesOfWorld), 2 + dice.below(7));
    this.#instants.push(store.clock.wallNs);
  }

  async #fork(name: string): Promise<void> {
    const source = this.dice.of([...this.#lives.keys()]);
    await this.store.service.gate.invoke(analyst, { action: 'fork', purpose: null, correlationId: 'c' }, (invocation) =>
      invocation.submit({ kind: 'fork-branch', name, source, shares: 'everything' }),
    );
    const { tables, judged } = this.#lives.get(source)!;
    this.#lives.set(name, {
      tables: new Map([...tables].map(([type, table]) => [type, table.copy()])),
      judged: judged.copy(),
    });
  }

  async #write(branch: string, path: string | null, made: MadeType, count: number): Promise<void> {
    const { dice } = this;
    const table = this.#lives.get(branch)!.tables.get(made.name)!;
    const caller = this.#caller(branch, path);
    const key = (): string => `${made.letter}${keyMarks.get(path) ?? ''}${String(dice.below(made.keys)).padStart(2, '0')}`;
    const now = this.store.clock.wallNs;
    if (count < made.keys && dice.chance(12)) {
      const live = new Set(table.read(path, { system: now, valid: 'all' }).map((version) => version.key));
      const keys = [...new Set([key(), key()])].filter((each) => live.has(each));
      const { systemFrom } = await this.store.delete(made.name, keys, caller);
      table.delete(path, keys, systemFrom);
      return;
    }
    const rows = [...new Set(Array.from({ length: count }, key))].map((each) => ({
      key: each,
      cells: made.make(dice, each),
      ...this.#bounds(now),
    }));
    const renamed = made.renamed ?? {};
    const { systemFrom } = await this.store.put(
      made.name,
      rows.map(({ key: id, cells, validFrom, validTo }) => ({
        id,
        ...Object.fromEntries(
          Object.entries(cells).map(([column, cell]) => [
            renamed[column] ?? column,
            made.columns[column] === 'json' && typeof cell === 'string' ? JSON.parse(cell) : cell,
          ]),
        ),
        ...(validFrom !== null && { valid_from: formatInstant(validFrom) }),
        ...(validTo !== null && { valid_to: formatInstant(validTo) }),
      })),
      caller,
    );
    table.put(path, rows, systemFrom);
  }

  /** Mostly from now on; else of a stretch that is over, or that goes on for a while. */
  #bounds(now: bigint): { readonly validFrom: bigint | null; readonly validTo: bigint | null } {
    const { dice } = this;
    const ago = BigInt(dice.below(400));
    const validFrom = dice.maybe(30, now - ago * hourNs);
    return { validFrom, validTo: validFrom === null ? null : dice.maybe(50, validFrom + BigInt(1 + dice.below(600)) * hourNs) };
  }

  /** Whether it was refused, or changed anything, is as it has to be by the judgements before. */
  async #judge(branch: string, path: string | null): Promise<void> {
    const now = this.store.clock.wallNs;
    const basis = { branch, path, system: now, valid: now, clause: '' };
    const rows = ['Account', 'Listing', 'Party'].flatMap((type) => this.rowsOf(basis, type));
    if (rows.length < 2) return;
    const [a, b] = [this.dice.of(rows), this.dice.of(rows)];
    if (a.id === b.id && a.type === b.type) return;
    const isOne = this.dice.chance(60);
    const { judged } = this.#lives.get(branch)!;
    const expected = judged.judge(isOne, a, b, path, now, (id) => rows.some((row) => `${row.type} ${row.id}` === id));
    const sql = `${isOne ? 'FUSE' : 'SPLIT'}_IDENTITIES('${a.id}', '${b.id}')`;
    let got: string;
    try {
      const [row] = await this.store.rows(sql, this.#caller(branch, path));
      got = row!['changed'] === true ? 'changed' : 'same';
    } catch (error) {
      got = String((error as { code?: string }).code);
    }
    if (got !== expected) this.differences.push(`${sql} on ${branch} of ${path}: ${got}, not ${expected}`);
  }
}
