/** What tenants do under the same names: each defines a `Thing` of its own, fills it, and forks a branch `own`. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Outcome } from '../../src/projections/command.ts';
import { asRow, type Believed, type Command, count, paths, repeat } from './believed.ts';
import type { Cells } from './bitemporal.ts';
import { ownBranch } from './branched.ts';
import { someKey, somePath } from './commands.ts';
import { type RealStore, refusalOf } from './store.ts';
import type { Columns } from './things.ts';

export const thing = 'Thing';
const variants: readonly Columns[] = [{ a: 'string' }, { a: 'integer' }, { b: 'string' }, { a: 'string', b: 'integer' }];
const additions = [
  ['b', 'string'],
  ['c', 'integer'],
  ['c', 'string'],
] as const;

/** Among the branches that the tenant of a path sees; 0 is main. */
const someVisible = fc.oneof(fc.constant(0), fc.nat(6));
const someTenant = fc.constantFrom('acme', 'acme-evil');

const someAct: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc
      .tuple(somePath, someVisible, fc.constantFrom(...variants))
      .map(([path, branch, columns]) => new DefineThing(path, branch, columns)),
  },
  fc
    .tuple(somePath, someVisible, fc.constantFrom(...additions))
    .map(([path, branch, [column, type]]) => new EvolveThing(path, branch, column, type)),
  {
    weight: 2,
    arbitrary: fc
      .tuple(somePath, someVisible, someKey, fc.nat(3))
      .map(([path, branch, key, cell]) => new PutThing(path, branch, key, cell)),
  },
  fc.tuple(somePath, someVisible).map(([path, branch]) => new ReadThing(path, branch)),
  fc.tuple(someTenant, fc.boolean()).map(([tenant, shares]) => new ForkOwn(tenant, shares ? 'everything' : 'ontology')),
  someTenant.map((tenant) => new DropOwn(tenant)),
);

/** A tenth of all commands. */
export const someNames = (): fc.Arbitrary<Command>[] => repeat(4, someAct);

/** What everybody means by the names, on main and on the tenants’ own branches. */
export async function compareNames(believed: Believed, real: RealStore): Promise<void> {
  for (const path of paths) await compareThing(believed, real, path, 'main');
  for (const tenant of believed.model.owners()) await compareThing(believed, real, tenant, ownBranch);
}

async function compareThing(believed: Believed, real: RealStore, path: string | null, branch: string): Promise<void> {
  const things = believed.model.things(branch, path);
  const columns = things.columns(path);
  const told = await real.typeOf(path, thing, branch);
  // The type of the facts is the one other change.
  assert.deepEqual(
    told,
    { columns: columns ?? null, version: things.changes(path) + (believed.hasEdges ? 2 : 1) },
    `${thing} of ${path} on ${branch}`,
  );
  if (columns === undefined) {
    assert.equal((await refusalOf(real.query(path, `SELECT _pk FROM ${thing}`, branch))).code, 'REL_UNKNOWN_TYPE');
    return;
  }
  const names = Object.keys(columns);
  const { rows } = await real.query(path, `SELECT _pk, system_from, ${names.join(', ')} FROM ${thing}`, branch);
  const expected = things.rows.read(path, { system: 'all', valid: 'all' }).map((version) => ({
    _pk: version.key,
    system_from: version.systemFrom,
    ...Object.fromEntries(names.map((name) => [name, version.cells[name] ?? null])),
  }));
  assert.deepEqual(rows, expected, `rows of ${thing} of ${path} on ${branch}`);
}

/** Held to what the model says came of it: true, it changed something; undefined, it was refused. */
async function hold(believed: Believed, made: Promise<Outcome>, expected: boolean | undefined, code: string): Promise<void> {
  if (expected === undefined) {
    assert.equal((await refusalOf(made)).code, code);
    count(believed.came, 'a definition refused');
    return;
  }
  const { changed, systemFrom, systemFromLast } = await made;
  assert.equal(changed, expected);
  if (!changed) return;
  assert.ok(systemFrom > believed.last, 'system time rises');
  believed.last = systemFromLast;
}

function branchOf({ model }: Believed, path: string | null, branch: number): string {
  const names = model.visibleTo(path);
  return names[branch % names.length]!;
}

class DefineThing implements Command {
  constructor(
    readonly path: string | null,
    readonly branch: number,
    readonly columns: Columns,
  ) {}
  check = (): boolean => true;
  toString = (): string => `define ${JSON.stringify(this.columns)} of ${this.path} on branch ${this.branch}`;

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, 'define');
    const branch = branchOf(believed, this.path, this.branch);
    const expected = believed.model.things(branch, this.path).register(this.path, this.columns);
    await hold(believed, real.register(this.path, thing, this.columns, branch), expected, 'REL_CONFLICT');
  }
}

class EvolveThing implements Command {
  constructor(
    readonly path: string | null,
    readonly branch: number,
    readonly column: string,
    readonly type: Columns[string],
  ) {}
  /** Integers may become texts: what that makes of stored cells is held by the tests of catalog and columns. */
  check = (believed: Believed): boolean => {
    const branch = branchOf(believed, this.path, this.branch);
    return this.type !== 'string' || believed.model.things(branch, this.path).columns(this.path)?.[this.column] !== 'integer';
  };
  toString = (): string => `add ${this.column} ${this.type} of ${this.path} on branch ${this.branch}`;

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, 'evolve');
    const branch = branchOf(believed, this.path, this.branch);
    const things = believed.model.things(branch, this.path);
    const code = things.columns(this.path) === undefined ? 'REL_UNKNOWN_TYPE' : 'REL_CONFLICT';
    const expected = things.evolve(this.path, this.column, this.type);
    await hold(believed, real.evolve(this.path, thing, { [this.column]: this.type }, branch), expected, code);
  }
}

class PutThing implements Command {
  constructor(
    readonly path: string | null,
    readonly branch: number,
    readonly key: string,
    readonly cell: number,
  ) {}
  check = (): boolean => true;
  toString = (): string => `put ${this.key} ${this.cell} of ${this.path} on branch ${this.branch}`;

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, 'put a thing');
    const branch = branchOf(believed, this.path, this.branch);
    const things = believed.model.things(branch, this.path);
    const columns = things.columns(this.path);
    if (columns === undefined) return;
    const cells: Cells = Object.fromEntries(
      Object.entries(columns).map(([name, type]) => [name, type === 'string' ? `${name}${this.cell}` : BigInt(this.cell)]),
    );
    const rows = [{ key: this.key, validFrom: null, validTo: null, cells }];
    const outcome = await real.write({ kind: 'put', branch: 0, path: this.path, rows }, branch, thing);
    assert.deepEqual(outcome.errors, []);
    assert.ok(outcome.systemFrom > believed.last, 'system time rises');
    things.rows.put(this.path, rows, outcome.systemFrom);
    believed.last = outcome.systemFromLast;
  }
}

class ReadThing implements Command {
  constructor(
    readonly path: string | null,
    readonly branch: number,
  ) {}
  check = (): boolean => true;
  toString = (): string => `read things of ${this.path} on branch ${this.branch}`;

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, 'read things');
    const branch = branchOf(believed, this.path, this.branch);
    await compareThing(believed, real, this.path, branch);
    const { rows } = await real.query(this.path, 'SELECT _pk, system_from, n FROM Fact', branch);
    const facts = believed.model.on(branch, this.path).read(this.path, { system: 'all', valid: 'all' }).map(asRow);
    assert.deepEqual(
      rows,
      facts.map(({ _pk, system_from, n }) => ({ _pk, system_from, n })),
      `${branch} of ${this.path}`,
    );
  }
}

class ForkOwn implements Command {
  constructor(
    readonly tenant: string,
    readonly shares: 'everything' | 'ontology',
  ) {}
  check = (): boolean => true;
  toString = (): string => `fork ${this.shares} as ${this.tenant}’s own`;

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, 'fork one’s own');
    if (believed.model.owners().includes(this.tenant)) {
      const refused = await refusalOf(real.fork(ownBranch, 'main', this.shares, this.tenant));
      assert.equal(refused.code, 'REL_CONFLICT');
      return;
    }
    believed.last = (await real.fork(ownBranch, 'main', this.shares, this.tenant)).systemFrom;
    believed.model.fork(ownBranch, 'main', this.shares, this.tenant);
  }
}

class DropOwn implements Command {
  constructor(readonly tenant: string) {}
  check = (): boolean => true;
  toString = (): string => `drop ${this.tenant}’s own`;

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, 'drop one’s own');
    if (!believed.model.owners().includes(this.tenant)) {
      assert.equal((await refusalOf(real.drop(ownBranch, this.tenant))).code, 'REL_NOT_FOUND');
      return;
    }
    believed.last = (await real.drop(ownBranch, this.tenant)).systemFrom;
    believed.model.dropOwn(this.tenant);
  }
}
