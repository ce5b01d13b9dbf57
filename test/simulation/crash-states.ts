/** Half of the crash states of a run, those of every other seed: two files share them, to run at the same time. */
import { expect } from 'vitest';
import { seedBase } from '../runner/seed.ts';
import { tell } from '../runner/tell.ts';
import { hasTurn, whole } from '../runner/turn.ts';
import { CrashSimulation } from './crash.ts';
import { directory, openLocalLog } from './subject.ts';

const statesMin = Number(process.env['SIMULATION_STATES'] ?? (whole ? 50_000 : 2_400)) / 2;
/** A quarter of many lives shows more than all of one: what is rare is so by life. */
const livesShare = 4;

export async function expectNoLoss(parity: 0 | 1): Promise<void> {
  let seed = 0;
  const takes = (index: number): boolean => hasTurn(index + (seed >> 1), livesShare);
  const simulation = new CrashSimulation({ openLog: openLocalLog, directory, takes });
  const first = seedBase + ((seedBase ^ parity) & 1);
  seed = first;
  const unmarked = (): string[] => Object.keys(simulation.marks).filter((mark) => simulation.marks[mark as 'rolled'] === 0);
  // What is rare may want some seeds more; 30 without it have shown nothing.
  while (simulation.states < statesMin || (unmarked().length > 0 && seed < first + 60)) {
    await simulation.run(seed);
    if (simulation.failures.length > 0) break;
    seed += 2;
  }
  const { states, openings, failures } = simulation;
  tell(
    `${states} crash states, one in ${whole ? 1 : livesShare} of each life, ${openings} different openings, seeds ${first} to ${seed - 2} (npm run simulate -- --states 1e6)`,
  );
  expect(failures).toEqual([]);
  expect(states).toBeGreaterThanOrEqual(statesMin);
  expect(simulation.syncsAfterFailure).toBe(0);
  expect(unmarked()).toEqual([]);
}
