/** No alert is lost and none is there twice, wherever the disk stops; and the simulation would tell. */
import { expect, test } from 'vitest';
import { Jobs } from '../../src/projections/jobs/projection.ts';
import { seedBase } from '../runner/seed.ts';
import { JobsSimulation } from './jobs-crash.ts';

test('after a crash at any call of the disk there are the alerts of all rules over all rows, each once', {
  timeout: 300_000,
}, async () => {
  const simulation = new JobsSimulation(120);
  const misses = (): boolean => Object.values(simulation.marks).some((count) => count === 0);
  // Lives that leave something out are followed by others.
  for (let seed = seedBase; !simulation.enough && (simulation.states < 60 || misses()); seed++) await simulation.run(seed, 10);
  expect(simulation.failures).toEqual([]);
  for (const [mark, count] of Object.entries(simulation.marks)) expect(count, mark).toBeGreaterThan(0);
});

test('canary: a store that forgets up to where it judged is caught', { timeout: 300_000 }, async () => {
  const judgedUpTo = Jobs.prototype.judgedUpTo;
  let asked = 0;
  Jobs.prototype.judgedUpTo = function (group) {
    const instant = judgedUpTo.call(this, group);
    return instant !== undefined && ++asked % 5 === 0 ? instant + 1n : instant;
  };
  try {
    const simulation = new JobsSimulation(100);
    for (let seed = seedBase; !simulation.enough; seed++) await simulation.run(seed, 10);
    expect(simulation.failures).not.toEqual([]);
  } finally {
    Jobs.prototype.judgedUpTo = judgedUpTo;
  }
});
