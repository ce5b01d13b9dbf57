/** What callers and fate may do to a store, as fast-check commands: each is done to the model and to the real stack. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { formatInstant, parseInstant } from '../../src/log/values/timestamp.ts';
import {
  apply,
  asRow,
  beliefsOf,
  type Believed,
  columns,
  type Command,
  compare,
  compareEverything,
  count,
  holdsTold,
  keys,
  nameOf,
  paths,
  place,
  repeat,
  shown,
  subjects,
} from './believed.ts';
import { type Cells, type ModelCell, type Sent, type Version } from './bitemporal.ts';
import { type RealRow, type RealStore, refusalOf, type Step, type as factType, type Write } from './store.ts';

const days = ['2023-12-30', '2023-12-31', '2024-01-01', '2024-01-02', '2024-01-03', '2030-01-01'].map(parseInstant);
const names = ['', 'x', '%', 'a\u0000b', 'é€😀', '"quo\\ted"'];
const integers = [0n, 1n, -1n, 2n ** 53n - 1n, 2n ** 53n + 1n, 2n ** 63n - 1n, -(2n ** 63n)];
const numbers = [0, -0, 0.1, 1e300, -5e-324];

export const someKey = fc.constantFrom(...keys);
export const someKeys = fc.uniqueArray(someKey, { minLength: 1, maxLength: 3 });
export const somePath = fc.constantFrom(...paths);
const someDay = fc.constantFrom(...days);
const someCells: fc.Arbitrary<Cells> = fc.record({
  name: fc.option(fc.constantFrom(...names)),
  n: fc.option(fc.constantFrom(...integers)),
  x: fc.option(fc.constantFrom(...numbers)),
  who: fc.option(fc.constantFrom(...subjects), { freq: 2 }),
});
const unbounded: fc.Arbitrary<Sent> = fc.record({
  key: someKey,
  validFrom: fc.constant(null),
  validTo: fc.constant(null),
  cells: someCells,
});
export const someBounded: fc.Arbitrary<Sent> = fc.record({
  key: someKey,
  validFrom: fc.option(someDay),
  validTo: fc.option(someDay),
  cells: someCells,
});

/** One of the branches that stand by then; 0 is main. */
export const someBranch = fc.oneof(fc.constant(0), fc.nat(5));

const someRows = fc.array(fc.oneof(unbounded, someBounded), { minLength: 1, maxLength: 4 });
/** Rows that send some of their cells. */
const somePatches = fc.array(
  fc.tuple(fc.oneof(unbounded, someBounded), fc.subarray(['name', 'n', 'x', 'who'])).map(([row, sent]) => ({
    ...row,
    cells: Object.fromEntries(sent.map((name) => [name, row.cells[name] ?? null])),
  })),
  { minLength: 1, maxLength: 3 },
);
const someWhen = fc.oneof(
  fc.constantFrom('absent' as const, 'present' as const),
  someDay.map((unchangedSince) => ({ unchangedSince })),
);
const someHow: fc.Arbitrary<Pick<Extract<Write, { kind: 'put' }>, 'rows' | 'how'>> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ rows: someRows }) },
  { weight: 3, arbitrary: fc.record({ rows: somePatches, how: fc.constant({ patch: true }) }) },
  { weight: 1, arbitrary: fc.record({ rows: somePatches, how: someWhen.map((when) => ({ patch: true, when })) }) },
  { weight: 1, arbitrary: fc.record({ rows: someRows, how: someWhen.map((when) => ({ when })) }) },
  { weight: 1, arbitrary: fc.record({ rows: someRows, how: fc.constant({ replace: true }) }) },
);
const somePut: fc.Arbitrary<Extract<Write, { kind: 'put' }>> = fc
  .tuple(fc.record({ kind: fc.constant('put' as const), branch: someBranch, path: somePath }), someHow)
  .map(([write, how]) => ({ ...write, ...how }));
export const someStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: someHow.map((put): Step => ({ kind: 'put', ...put })) },
  {
    weight: 1,
    arbitrary: fc.uniqueArray(someKey, { minLength: 1, maxLength: 2 }).map((ended): Step => ({ kind: 'delete', keys: ended })),
  },
);
/** Each of a key of its own. */
export const someOwnSteps: fc.Arbitrary<Step[]> = fc
  .tuple(fc.array(fc.tuple(someHow, fc.nat(4)), { minLength: 1, maxLength: 3 }), fc.shuffledSubarray(keys, { minLength: 3 }))
  .map(([steps, own]) =>
    steps.map(([{ rows, how }, kind], i): Step => {
      const key = own[i]!;
      if (kind === 0) return { kind: 'delete', keys: [key] };
      return { kind: 'put', rows: [{ ...rows[0]!, key }], ...(how !== undefined && { how }) };
    }),
  );
/** Mostly of different keys, as most batches with a key in two of their steps are refused. */
const someBatch: fc.Arbitrary<Write> = fc
  .tuple(
    fc.record({ kind: fc.constant('batch' as const), branch: someBranch, path: somePath }),
    fc.array(fc.tuple(someHow, fc.boolean()), { minLength: 1, maxLength: 3 }),
    fc.shuffledSubarray(keys, { minLength: 3 }),
    fc.integer({ min: 0, max: 4 }),
  )
  .map(([write, steps, own, kind]) => ({
    ...write,
    steps: steps.map(([{ rows, how }, isShort], i): Step => {
      if (kind === 0) return { kind: 'delete', keys: [own[i]!] };
      const some = kind === 1 ? rows : (isShort ? rows.slice(0, 1) : rows).map((row) => ({ ...row, key: own[i]! }));
      return { kind: 'put', rows: some, ...(how !== undefined && { how }) };
    }),
  }));
const someEnd: fc.Arbitrary<Write> = fc.record({
  kind: fc.constantFrom('delete' as const, 'delete' as const, 'remove' as const),
  branch: someBranch,
  path: somePath,
  keys: fc.uniqueArray(someKey, { minLength: 1, maxLength: 2 }),
});
const someWrite = fc.oneof(
  { weight: 4, arbitrary: somePut },
  { weight: 1, arbitrary: someBatch },
  { weight: 1, arbitrary: someEnd },
);

/** An instant of either axis: one of the days, or at, before or after something was believed. */
const someMoment = fc.oneof(
  someDay.map((day) => () => day),
  fc.tuple(fc.nat(50), fc.constantFrom(-1n, 0n, 1n)).map(([index, offset]) => (instants: readonly bigint[]) => {
    return instants.length === 0 ? days[2]! : instants[index % instants.length]! + offset;
  }),
);
type Moment = (instants: readonly bigint[]) => bigint;

export const someCommands = (): fc.Arbitrary<Command>[] => [
  ...repeat(
    6,
    somePut.map((write) => new DoWrite(write)),
  ),
  ...repeat(
    3,
    someEnd.map((write) => new DoWrite(write)),
  ),
  ...repeat(
    2,
    someBatch.map((write) => new DoWrite(write)),
  ),
  ...repeat(
    2,
    fc.array(someWrite, { minLength: 2, maxLength: 4 }).map((writes) => new WriteTogether(writes)),
  ),
  ...repeat(
    2,
    fc
      .tuple(
        someBranch,
        fc.constantFrom('everything' as const, 'everything' as const, 'everything' as const, 'ontology' as const),
      )
      .map(([source, shares]) => new Fork(source, shares)),
  ),
  fc.nat(5).map((branch) => new Drop(branch)),
  fc.integer({ min: -5_000, max: 200_000 }).map((seconds) => new Advance(seconds)),
  fc.constant(new Restart()),
  ...repeat(2, fc.constant(new Derive('checkpoint'))),
  ...repeat(2, fc.constant(new Derive('evict'))),
  fc.constant(new Derive('compact')),
  fc.nat().map((seed) => new Crash(seed)),
  ...repeat(
    2,
    fc.tuple(someWrite, fc.nat(12), fc.nat()).map(([write, steps, seed]) => new CrashInWrite(write, steps, seed)),
  ),
  ...repeat(
    3,
    fc
      .tuple(someBranch, somePath, someMoment, someMoment)
      .map(([branch, path, system, valid]) => new ReadAll(branch, path, system, valid)),
  ),
  fc.tuple(someBranch, somePath, someKey).map(([branch, path, key]) => new ReadKey(branch, path, key)),
  fc.tuple(someBranch, somePath, fc.integer({ min: 1, max: 4 })).map(([branch, path, size]) => new ReadPages(branch, path, size)),
  fc.tuple(someBranch, somePath, someMoment).map(([branch, path, system]) => new ReadGroups(branch, path, system)),
];

class DoWrite implements Command {
  constructor(readonly write: Write) {}
  check = (): boolean => true;
  toString = (): string => shown(this.write);

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, this.write.kind);
    const outcome = await real.write(this.write, nameOf(believed, this.write.branch));
    assert.ok(!outcome.changed || outcome.systemFrom > real.readInstant, 'placed after every instant that a reader was given');
    apply(believed, this.write, outcome, real.clock.wallNs);
  }
}

/** Writes under way at once: each is decided against those placed before it, whether they are durable yet or not. */
class WriteTogether implements Command {
  constructor(readonly writes: readonly Write[]) {}
  check = (): boolean => true;
  toString = (): string => `together ${this.writes.map(shown).join(' ')}`;

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, 'write together');
    const outcomes = await Promise.all(this.writes.map((write) => real.write(write, nameOf(believed, write.branch))));
    const placed = outcomes
      .map((outcome, i) => ({ outcome, write: this.writes[i]! }))
      .filter(({ outcome }) => outcome.changed)
      .toSorted((a, b) => (a.outcome.systemFrom < b.outcome.systemFrom ? -1 : 1));
    for (const { outcome, write } of placed) apply(believed, write, outcome, real.clock.wallNs);
  }
}

const branchNames = ['dev', 'trial', 'try'];

class Fork implements Command {
  constructor(
    readonly source: number,
    readonly shares: 'everything' | 'ontology',
  ) {}
  check = (): boolean => true;
  toString = (): string => `fork ${this.shares} of branch ${this.source}`;

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, 'fork');
    const name = branchNames.find((each) => !believed.model.names().includes(each));
    if (name === undefined) return;
    const source = nameOf(believed, this.source);
    const outcome = await real.fork(name, source, this.shares);
    assert.ok(outcome.systemFrom > believed.last, 'system time rises');
    believed.last = outcome.systemFrom;
    believed.model.fork(name, source, this.shares);
  }
}

class Drop implements Command {
  constructor(readonly branch: number) {}
  check = (): boolean => true;
  toString = (): string => `drop branch ${this.branch}`;

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, 'drop branch');
    const name = nameOf(believed, this.branch);
    if (name === 'main') return;
    const holds = believed.model.drop(name);
    if (holds.length > 0) {
      count(believed.came, 'drop refused by a hold');
      const refused = await refusalOf(real.drop(name));
      assert.deepEqual([refused.code, holdsTold(refused.message)], ['REL_CONFLICT', holds]);
      return;
    }
    believed.last = (await real.drop(name)).systemFrom;
    await assert.rejects(real.query(null, `SELECT _pk FROM ${factType}`, name), { code: 'REL_NOT_FOUND' });
  }
}

class Advance implements Command {
  constructor(readonly seconds: number) {}
  check = (): boolean => true;
  toString = (): string => `advance ${this.seconds} s`;

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, 'advance');
    real.clock.wallNs += BigInt(this.seconds) * 1_000_000_000n;
  }
}

class Restart implements Command {
  check = (): boolean => true;
  toString = (): string => 'restart';

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, 'restart');
    await real.restart();
    await compareEverything(believed, real);
  }
}

/** What the store does beside its log for its own sake: no answer may tell. */
class Derive implements Command {
  constructor(readonly what: 'checkpoint' | 'evict' | 'compact') {}
  check = (): boolean => true;
  toString = (): string => this.what;

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, this.what);
    await real[this.what]();
  }
}

class Crash implements Command {
  constructor(readonly seed: number) {}
  check = (): boolean => true;
  toString = (): string => `crash ${this.seed}`;

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, 'crash');
    await real.crash(this.seed);
    await compareEverything(believed, real);
  }
}

/** Afterwards all of the write is there or none of it; all, if it was acknowledged. */
class CrashInWrite implements Command {
  constructor(
    readonly write: Write,
    readonly steps: number,
    readonly seed: number,
  ) {}
  check = (): boolean => true;
  toString = (): string => `crash ${this.seed} at disk call ${this.steps} of ${shown(this.write)}`;

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, 'crash in a write');
    const branch = nameOf(believed, this.write.branch);
    const outcome = await real.crashIn(() => real.write(this.write, branch), this.steps, this.seed);
    if (outcome !== null) apply(believed, this.write, outcome, real.clock.wallNs);
    else await this.#learn(believed, real);
    await compareEverything(believed, real);
  }

  async #learn(believed: Believed, real: RealStore): Promise<void> {
    const { write } = this;
    const branch = nameOf(believed, write.branch);
    const { rows } = await real.query(write.path, `SELECT ${columns} FROM ${factType}`, branch);
    const before = believed.model.on(branch).read(write.path, { system: 'all', valid: 'all' });
    if (write.kind === 'remove') {
      if (rows.length < before.length) believed.model.remove(branch, write.path, write.keys);
      return;
    }
    // A key of its subject may be there without the row.
    const puts = write.kind === 'put' ? [write] : write.kind === 'batch' ? write.steps.filter(({ kind }) => kind === 'put') : [];
    for (const put of puts) {
      if (put.kind === 'put') for (const belief of beliefsOf(believed, write.path, put.rows)) belief.unsure = true;
    }
    const fresh = rows.filter((row) => (row['system_from'] as bigint) > believed.last);
    if (fresh.length === 0) return;
    const instantOf = (row: RealRow | undefined): bigint => (row?.['system_from'] ?? believed.last + 1n) as bigint;
    const times =
      write.kind !== 'batch'
        ? []
        : write.steps.map((step) => {
            const own = step.kind === 'put' ? step.rows.map(({ key }) => key) : step.keys;
            return instantOf(fresh.find((row) => own.includes(row['_pk'] as string)));
          });
    place(believed, write, instantOf(fresh[0]), times);
    believed.last = instantOf(fresh.at(-1));
  }
}

/** Every stored version, and what was believed and true at two instants, by both AS OF forms and by predicates. */
class ReadAll implements Command {
  constructor(
    readonly branch: number,
    readonly path: string | null,
    readonly system: Moment,
    readonly valid: Moment,
  ) {}
  check = (): boolean => true;
  toString = (): string => `read ${this.path} on branch ${this.branch}`;

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, 'read all');
    const branch = nameOf(believed, this.branch);
    const model = believed.model.on(branch);
    const instants = model.instants();
    const system = this.system(instants);
    const valid = this.valid(instants);
    const [believedAt, trueAt] = [formatInstant(system), formatInstant(valid)];
    await compare(believed, real, branch, this.path, '', { system: 'all', valid: 'all' });
    await compare(believed, real, branch, this.path, `AS OF '${trueAt}'`, { system: 'all', valid });
    await compare(believed, real, branch, this.path, `AS OF SYSTEM TIME '${believedAt}'`, { system, valid: 'all' });
    await compare(
      believed,
      real,
      branch,
      this.path,
      `AS OF SYSTEM TIME '${believedAt}' WHERE valid_from <= '${trueAt}' AND valid_to > '${trueAt}'`,
      { system, valid },
    );
    const { rows, answer } = await real.query(this.path, `SELECT ${columns} FROM ${factType} AS OF CURRENT`, branch);
    const now = answer.asOfSystem;
    assert.deepEqual(rows, model.read(this.path, { system: now, valid: now }).map(asRow));
  }
}

class ReadKey implements Command {
  constructor(
    readonly branch: number,
    readonly path: string | null,
    readonly key: string,
  ) {}
  check = (): boolean => true;
  toString = (): string => `read ${this.path} ${this.key} on branch ${this.branch}`;

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, 'read key');
    const branch = nameOf(believed, this.branch);
    const model = believed.model.on(branch);
    const expected = model.read(this.path, { system: 'all', valid: 'all' }).filter(({ key }) => key === this.key);
    const { rows } = await real.query(this.path, `SELECT ${columns} FROM ${factType} WHERE _pk = '${this.key}'`, branch);
    assert.deepEqual(rows, expected.map(asRow));
    const question = `SELECT ${columns} FROM ${factType} AS OF CURRENT WHERE _pk = '${this.key}'`;
    const current = await real.query(this.path, question, branch);
    const now = current.answer.asOfSystem;
    const live = model.read(this.path, { system: now, valid: now }).filter(({ key }) => key === this.key);
    assert.deepEqual(current.rows, live.map(asRow));
  }
}

/** Pages to the end are the whole, in order. */
class ReadPages implements Command {
  constructor(
    readonly branch: number,
    readonly path: string | null,
    readonly size: number,
  ) {}
  check = (): boolean => true;
  toString = (): string => `pages of ${this.size} of ${this.path} on branch ${this.branch}`;

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, 'read pages');
    const branch = nameOf(believed, this.branch);
    const all: RealRow[] = [];
    let after = '';
    for (;;) {
      const { rows } = await real.query(this.path, `SELECT ${columns} FROM ${factType} LIMIT ${this.size}${after}`, branch);
      all.push(...rows);
      if (rows.length < this.size) break;
      after = ` AFTER '${String(rows.at(-1)!['system_from'])}'`;
    }
    assert.deepEqual(all, believed.model.on(branch).read(this.path, { system: 'all', valid: 'all' }).map(asRow));
  }
}

class ReadGroups implements Command {
  constructor(
    readonly branch: number,
    readonly path: string | null,
    readonly system: Moment,
  ) {}
  check = (): boolean => true;
  toString = (): string => `groups of ${this.path} on branch ${this.branch}`;

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, 'read groups');
    const branch = nameOf(believed, this.branch);
    const model = believed.model.on(branch);
    const system = this.system(model.instants());
    const { rows } = await real.query(
      this.path,
      `SELECT name, COUNT(*) AS rows, COUNT(n) AS given, MIN(n) AS low, MAX(n) AS high FROM ${factType} AS OF SYSTEM TIME '${formatInstant(system)}' GROUP BY name`,
      branch,
    );
    const groups = new Map<ModelCell, Version[]>();
    for (const version of model.read(this.path, { system, valid: 'all' })) {
      const name = version.cells['name'] ?? null;
      groups.set(name, [...(groups.get(name) ?? []), version]);
    }
    const expected = [...groups].map(([name, versions]) => {
      const given = versions
        .map(({ cells }) => cells['n'])
        .filter((n) => typeof n === 'bigint')
        .toSorted((a, b) => (a < b ? -1 : 1));
      return {
        name,
        rows: BigInt(versions.length),
        given: BigInt(given.length),
        low: given[0] ?? null,
        high: given.at(-1) ?? null,
      };
    });
    const byName = (a: RealRow, b: RealRow): number => (String(a['name']) < String(b['name']) ? -1 : 1);
    assert.deepEqual(rows.toSorted(byName), expected.toSorted(byName));
  }
}
