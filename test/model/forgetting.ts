/** What makes rows go for good, and what keeps them: erasures, holds and schedules, as fast-check commands. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  apply,
  type Believed,
  type Command,
  compareEverything,
  count,
  holdsTold,
  keys,
  nameOf,
  paths,
  repeat,
  shown,
  subjects,
} from './believed.ts';
import { tenantOf } from './bitemporal.ts';
import type { SubjectBelief } from './erasures.ts';
import { type ErasedRow, type RealStore, refusalOf } from './store.ts';

const someBranch = fc.oneof(fc.constant(0), fc.nat(5));
const somePath = fc.constantFrom(...paths);
const someSubject = fc.constantFrom(...subjects);
/** Of 'acme/eu' nobody is a subject: every path below a tenant’s own is refused. */
const someTenant = fc.constantFrom(null, 'acme', 'acme-evil', 'acme/eu');
/** Mostly the row of one of the versions of the branch, by number, where it has any: most others are not there. */
const someRow = fc.record({
  branch: fc.nat(5),
  version: fc.option(fc.nat(100), { freq: 6 }),
  path: somePath,
  key: fc.constantFrom(...keys),
});
/** The same of subjects. */
const someWho = fc.record({
  branch: someBranch,
  version: fc.option(fc.nat(100), { freq: 3 }),
  path: someTenant,
  subject: someSubject,
});
const someSeconds = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 150_000 }));

export const someForgetting = (): fc.Arbitrary<Command>[] => [
  ...repeat(
    2,
    fc.tuple(someWho, fc.boolean()).map(([who, certify]) => new Erase(who, certify)),
  ),
  ...repeat(
    2,
    fc.tuple(someBranch, fc.nat(20), fc.boolean()).map(([branch, index, certify]) => new EraseAgain(branch, index, certify)),
  ),
  fc.tuple(someWho, fc.oneof(fc.nat(40), fc.nat(300)), fc.nat()).map(([who, steps, seed]) => new CrashInErase(who, steps, seed)),
  ...repeat(
    2,
    someRow.map((row) => new Remove(row)),
  ),
  ...repeat(
    2,
    someRow.map((row) => new Keep(row, null)),
  ),
  ...repeat(
    2,
    fc.tuple(someRow, someSeconds).map(([row, seconds]) => new Keep(row, seconds)),
  ),
  ...repeat(
    2,
    fc
      .tuple(fc.nat(100), fc.option(fc.tuple(someBranch, somePath), { freq: 2 }))
      .map(([index, elsewhere]) => new Release(index, elsewhere)),
  ),
  ...repeat(2, fc.constant(new Tend())),
];

interface AskedRow {
  readonly branch: number;
  readonly version: number | null;
  readonly path: string | null;
  readonly key: string;
}

interface AskedSubject extends Omit<AskedRow, 'key'> {
  readonly subject: string;
}

function rowOf({ model }: Believed, branch: string, { version, path, key }: AskedRow): Pick<AskedRow, 'path' | 'key'> {
  const rows = model.on(branch).rows();
  return version === null || rows.length === 0 ? { path, key } : rows[version % rows.length]!;
}

function subjectOf({ model }: Believed, branch: string, asked: AskedSubject): Pick<AskedSubject, 'path' | 'subject'> {
  const rows = model.on(branch).rows();
  const known = rows.flatMap(({ path, who }) => (typeof who === 'string' ? [{ path: tenantOf(path), subject: who }] : []));
  return asked.version === null || known.length === 0 ? asked : known[asked.version % known.length]!;
}

class Erase implements Command {
  constructor(
    readonly who: AskedSubject,
    readonly certify: boolean,
  ) {}
  check = (): boolean => true;
  toString = (): string => `erase ${shown(this.who)}${this.certify ? ', certified' : ''}`;

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, 'erase');
    const branch = nameOf(believed, this.who.branch);
    const { path, subject } = subjectOf(believed, branch, this.who);
    await erase(believed, real, { branch, path, subject, certify: this.certify });
  }
}

/** Somebody who was erased, whether they have rows again or not. */
class EraseAgain implements Command {
  constructor(
    readonly branch: number,
    readonly index: number,
    readonly certify: boolean,
  ) {}
  check = (believed: Readonly<Believed>): boolean => believed.subjects.erased().length > 0;
  toString = (): string => `erase ${this.index} again${this.certify ? ', certified' : ''}`;

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, 'erase again');
    const erased = believed.subjects.erased();
    const { tenant: path, subject } = erased[this.index % erased.length]!;
    await erase(believed, real, { branch: nameOf(believed, this.branch), path, subject, certify: this.certify });
  }
}

interface Asked {
  readonly branch: string;
  readonly path: string | null;
  readonly subject: string;
  readonly certify: boolean;
}

async function erase(believed: Believed, real: RealStore, { branch, path, subject, certify }: Asked): Promise<void> {
  const { model } = believed;
  const erasing = real.erase(path, branch, subject, certify);
  if (path !== tenantOf(path)) {
    assert.equal((await refusalOf(erasing)).code, 'REL_ACL');
    return;
  }
  const going = model.ofSubject(path, subject);
  const belief = believed.subjects.of(path, subject);
  const holds = model.holdsOn(going);
  if (holds.length > 0) {
    const refused = await refusalOf(erasing);
    assert.deepEqual([refused.code, holdsTold(refused.message).toSorted()], ['REL_CONFLICT', holds.toSorted()]);
    count(believed.came, 'erasure refused by a hold');
    return;
  }
  const mustBeNew = going.length > 0 || belief.written;
  if (!mustBeNew && belief.erasures.length === 0 && !belief.unsure) {
    assert.equal((await refusalOf(erasing)).code, 'REL_NOT_FOUND');
    count(believed.came, 'nothing to erase');
    return;
  }
  const erased = await answerOf(erasing, belief, mustBeNew);
  if (erased === null) return;
  if (certify) assert.ok(erased.certified, 'certified where that was asked for');
  const last = belief.erasures.at(-1);
  if (last?.id === null && !mustBeNew) last.id = erased.id;
  if (erased.id === last?.id) {
    assert.ok(!mustBeNew, 'what was written since the last erasure is another one’s');
    count(believed.came, 'erased before: the first receipt');
  } else {
    assert.ok(mustBeNew || belief.unsure, 'asked for again, it is the same erasure');
    // Edges go with their rows, and what branches that are gone had written may lie there still.
    if (model.hasDropped || believed.hasEdges) assert.ok(erased.versions >= going.length, 'versions erased');
    else assert.equal(erased.versions, going.length, 'versions erased');
    if (!belief.unsure) assert.equal(erased.salt !== null, belief.erasures.length === 0, 'the salt is told once');
    model.erase(path, subject);
    believed.saved?.erased.push({ tenant: path, subject });
    belief.erasures.push({ id: erased.id, receipt: null });
    belief.written = belief.unsure = false;
    count(believed.came, going.length > 0 ? 'erased' : 'erased a key alone');
  }
  const told = belief.erasures.at(-1)!;
  if (told.receipt !== null && erased.receipt !== null) assert.equal(erased.receipt, told.receipt);
  told.receipt ??= erased.receipt;
  await compareEverything(believed, real);
}

/** Null: nothing is there to erase, where that may be. */
async function answerOf(erasing: Promise<ErasedRow>, belief: SubjectBelief, mustBeNew: boolean): Promise<ErasedRow | null> {
  if (mustBeNew || !belief.unsure) return erasing;
  try {
    return await erasing;
  } catch (error) {
    if ((error as { code?: unknown }).code === 'REL_NOT_FOUND') return null;
    throw error;
  }
}

/** The power goes at a disk call of it: afterwards nothing of the subject is there, or all; nothing, if it was answered. */
class CrashInErase implements Command {
  constructor(
    readonly who: AskedSubject,
    readonly steps: number,
    readonly seed: number,
  ) {}
  check = (): boolean => true;
  toString = (): string => `crash ${this.seed} at disk call ${this.steps} of erasing ${shown(this.who)}`;

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, 'crash in an erasure');
    const { steps, seed } = this;
    const { model } = believed;
    const branch = nameOf(believed, this.who.branch);
    const { path, subject } = subjectOf(believed, branch, this.who);
    const isOwn = path === tenantOf(path);
    const belief = believed.subjects.of(tenantOf(path), subject);
    const going = isOwn ? model.ofSubject(path, subject) : [];
    const held = model.holdsOn(going).length > 0;
    const answer = await real.crashIn(() => real.erase(path, branch, subject, true), steps, seed);
    assert.ok(answer === null || (isOwn && !held && model.hasSubjects), 'what is refused is not answered');
    if (isOwn && !held && model.hasSubjects) {
      const isGone = going.length > 0 && !(await real.hasSubject(path, subject, model.names()));
      assert.ok(isGone || answer === null || going.length === 0, 'an erasure that was answered was done');
      if (isGone) {
        model.erase(path, subject);
        believed.saved?.erased.push({ tenant: path, subject });
        belief.erasures.push({ id: answer?.id ?? null, receipt: answer?.receipt ?? null });
        count(believed.came, answer === null ? 'erased before a crash' : 'erased and answered before a crash');
      }
      // A key without rows may have gone, and with it what a backup has of them.
      if (going.length === 0) believed.saved = null;
      if (isGone || going.length === 0) {
        belief.written = false;
        belief.unsure = true;
      }
    }
    await compareEverything(believed, real);
  }
}

/** For good, and nothing where it is held. */
class Remove implements Command {
  constructor(readonly row: AskedRow) {}
  check = (): boolean => true;
  toString = (): string => `remove ${shown(this.row)}`;

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, 'remove');
    const branch = nameOf(believed, this.row.branch);
    const { path, key } = rowOf(believed, branch, this.row);
    const write = { kind: 'remove', branch: this.row.branch, path, keys: [key] } as const;
    apply(believed, write, await real.write(write, branch), real.clock.wallNs);
  }
}

/** A schedule, or a hold without an end. */
class Keep implements Command {
  constructor(
    readonly row: AskedRow,
    readonly seconds: number | null,
  ) {}
  check = (): boolean => true;
  toString = (): string => `${this.seconds === null ? 'hold' : `schedule in ${this.seconds} s`} ${shown(this.row)}`;

  async run(believed: Believed, real: RealStore): Promise<void> {
    const { seconds } = this;
    count(believed.ran, seconds === null ? 'hold' : 'schedule');
    const branch = nameOf(believed, this.row.branch);
    const { path, key } = rowOf(believed, branch, this.row);
    const id = `k${String(believed.ids.length).padStart(4, '0')}`;
    const until = seconds === null ? null : real.clock.wallNs + BigInt(seconds) * 1_000_000_000n;
    const kept = real.keep(path, branch, id, key, until);
    if (!believed.model.keep(id, branch, path, key, until)) {
      assert.equal((await refusalOf(kept)).code, 'REL_NOT_FOUND');
      return;
    }
    assert.ok((await kept).changed);
    believed.ids.push(id);
    count(believed.came, seconds === null ? 'held' : 'scheduled');
  }
}

/** Of an id that was given once, by a caller of its path and branch or of another. */
class Release implements Command {
  constructor(
    readonly index: number,
    readonly elsewhere: readonly [number, string | null] | null,
  ) {}
  check = (believed: Readonly<Believed>): boolean => believed.ids.length > 0;
  toString = (): string => `release ${this.index}${this.elsewhere === null ? '' : ` from ${this.elsewhere.join()}`}`;

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, 'release');
    const { model, ids } = believed;
    const id = ids[this.index % ids.length]!;
    const own = model.placeOf(id) ?? { branch: 'main', path: null };
    const { branch, path } =
      this.elsewhere === null ? own : { branch: nameOf(believed, this.elsewhere[0]), path: this.elsewhere[1] };
    const released = real.release(path, branch, id);
    if (model.release(id, branch, path)) {
      assert.ok((await released).changed);
      count(believed.came, 'released');
    } else {
      assert.equal((await refusalOf(released)).code, 'REL_NOT_FOUND');
    }
  }
}

/** As the clock does once a minute. */
class Tend implements Command {
  check = (): boolean => true;
  toString = (): string => 'tend';

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, 'tend');
    await real.tend();
    const gone = believed.model.expire(real.clock.wallNs);
    if (gone === 0) return;
    count(believed.came, 'expired');
    await compareEverything(believed, real);
  }
}
