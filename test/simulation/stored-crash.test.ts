/**
 * Derived files can be wrong in any way and no answer is: crashes before every disk call while checkpoints are written and
 * made current, failing calls, damage, files of another time. The canary is a store that breaks a rule.
 */
import { describe, expect, it } from 'vitest';
import { Checkpoint } from '../../src/projections/checkpoint.ts';
import { whole } from '../runner/turn.ts';
import { StoredSimulation } from './stored-crash.ts';

const statesMin = Number(process.env['SIMULATION_STORED_STATES'] ?? (whole ? 250 : 130));

describe('a store that goes on from derived files', () => {
  it('is what its log says, however they were left', { timeout: 900_000 }, async () => {
    const simulation = new StoredSimulation({ statesMax: statesMin, crashesPerSeed: whole ? 40 : 15 });
    for (let seed = 1; !simulation.enough; seed++) await simulation.run(seed);
    expect(simulation.failures).toEqual([]);
    const { unreadable, ...marks } = simulation.marks;
    for (const [mark, count] of Object.entries(marks)) expect(count, mark).toBeGreaterThan(0);
    // Found at the start or when a column is asked for.
    expect(marks.rebuilt + unreadable).toBeGreaterThan(simulation.states / 10);
    // A crash leaves a checkpoint that is of use, or none: what is refused was damaged by hand.
    expect(simulation.marks.restored).toBeGreaterThan(simulation.states / 4);
  });
});

describe('canary: a broken store that the simulation must catch', () => {
  it('one that goes on from a checkpoint and passes over the first entry behind it', async () => {
    await expectCaught(
      Checkpoint.prototype,
      'restore',
      (restore) =>
        async function (this: Checkpoint, projector) {
          await restore.call(this, projector);
          for (const name of projector.names) projector.markRestored(name, projector.watermarkOf(name) + 1);
        },
    );
  });
});

/** Runs lives with one method of the store replaced. */
async function expectCaught<T extends object, K extends keyof T>(
  prototype: T,
  name: K,
  broken: (original: T[K]) => T[K],
): Promise<void> {
  const original = prototype[name];
  prototype[name] = broken(original);
  try {
    const simulation = new StoredSimulation({ statesMax: 120, crashesPerSeed: 40 });
    for (let seed = 1; seed < 6 && simulation.failures.length === 0 && !simulation.enough; seed++) await simulation.run(seed);
    expect(simulation.failures).not.toEqual([]);
  } finally {
    prototype[name] = original;
  }
}
