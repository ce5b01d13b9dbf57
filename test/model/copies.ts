/** A store that is made anew, from its log alone or from a backup, as fast-check commands. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type Believed, type Command, compareEverything, count, repeat } from './believed.ts';
import type { RealStore } from './store.ts';

export const someCopies = (): fc.Arbitrary<Command>[] => [
  fc.constant(new Rebuild()),
  fc.constant(new Backup()),
  ...repeat(2, fc.constant(new Restore(false))),
  fc.constant(new Restore(true)),
];

class Rebuild implements Command {
  check = (): boolean => true;
  toString = (): string => 'rebuild';

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, 'rebuild');
    await real.rebuild();
    await compareEverything(believed, real);
  }
}

class Backup implements Command {
  check = (): boolean => true;
  toString = (): string => 'backup';

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, 'backup');
    await save(believed, real);
  }
}

/** The store that is made of a backup goes on in place of the one that was backed up. */
class Restore implements Command {
  constructor(readonly anew: boolean) {}
  check = (): boolean => true;
  toString = (): string => (this.anew ? 'backup and restore' : 'restore');

  async run(believed: Believed, real: RealStore): Promise<void> {
    count(believed.ran, this.anew ? 'backup and restore' : 'restore');
    // What is intended and not done yet is of the log that is left behind.
    await real.tend();
    believed.model.expire(real.clock.wallNs);
    const saved = this.anew || believed.saved === null ? await save(believed, real) : believed.saved;
    const { root_match: isSame, erased_absent: areAbsent } = await real.restore(saved.backup);
    assert.deepEqual([isSame, areAbsent], [true, true]);
    if (saved.erased.length > 0) count(believed.came, 'restored what is of before an erasure');
    believed.model = saved.model.withoutKeysOf(saved.erased);
    believed.subjects = saved.subjects.restored();
    // Their keys are gone with them, whatever was written before the backup.
    for (const { tenant, subject } of saved.erased) believed.subjects.of(tenant, subject).written = false;
    believed.last = saved.last;
    await compareEverything(believed, real);
  }
}

async function save(believed: Believed, real: RealStore): Promise<NonNullable<Believed['saved']>> {
  const backup = await real.backup();
  const { model, subjects, last } = believed;
  return (believed.saved = { backup, model: model.copy(), subjects: subjects.copy(), last, erased: [] });
}
