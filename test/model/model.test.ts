import { describe, expect, it } from 'vitest';
import { mistakes } from './bitemporal.ts';
import { checkConformance } from './conformance.ts';
import { tell } from '../runner/tell.ts';
import { inTurn, whole } from '../runner/turn.ts';

/** Of a seed under which every command and every outcome is among so few. */
const commandsMin = whole ? 5_000 : 2_500;

const tried = inTurn(mistakes, 15);
tell(`${tried.length} of ${mistakes.length} mistakes of the model (npm run test:whole -- test/model/model.test.ts)`);

describe('the store answers as the reference model does', () => {
  it('over random histories of writes, erasures, holds, restores, checkpoints, restarts and crashes in four organisations', {
    timeout: 600_000,
  }, async () => {
    const { commands, derived, ran, came, failure } = await checkConformance({ commands: commandsMin, seed: 2 });
    expect(failure).toBeNull();
    expect(commands).toBeGreaterThanOrEqual(commandsMin);
    for (const [what, count] of Object.entries(derived))
      if (what !== 'rebuilt') expect(count, what).toBeGreaterThan(commandsMin / 100);
    for (const [what, count] of Object.entries(ran)) expect(count, what).toBeGreaterThan(commandsMin / 500);
    // Each of them at least once, but for the rarest (a drop refused by a hold): a command of which nothing comes says little.
    expect(
      Object.keys(came)
        .filter((what) => what !== 'drop refused by a hold')
        .toSorted(),
    ).toEqual([
      'a definition refused',
      'batch refused',
      'batch written',
      'erased',
      'erased a key alone',
      'erased and answered before a crash',
      'erased before a crash',
      'erased before: the first receipt',
      'erasure refused by a hold',
      'expired',
      'held',
      'nothing to erase',
      'refused meanwhile',
      'released',
      'removal refused by a hold',
      'restored what is of before an erasure',
      'scheduled',
      'transaction in conflict',
      'transaction rolled back',
      'transaction written',
      'written meanwhile',
    ]);
    // Whatever a crash leaves is a checkpoint that is of use.
    expect(derived.rebuilt).toBe(0);
  });
});

describe('a model with one rule wrong is told apart from the store', () => {
  for (const mistake of tried) {
    it(mistake, { timeout: 300_000 }, async () => {
      const { failure } = await checkConformance({ commands: 3_000, seed: 1, mistake });
      expect(failure).not.toBeNull();
    });
  }
});
