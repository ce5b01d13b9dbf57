/** Runs random histories against the model and the real stack side by side, until enough commands were done. */
import fc from 'fast-check';
import { Branched, type Mistake } from './bitemporal.ts';
import { type Believed, compareEverything, someCommands } from './commands.ts';
import { type DerivedCounts, RealStore } from './store.ts';

export interface ConformanceOptions {
  readonly commands: number;
  readonly seed: number;
  /** Of a failure to look at again, as it was printed. */
  readonly path?: string;
  readonly replayPath?: string;
  readonly mistake?: Mistake;
  readonly onRun?: (commandsDone: number) => void;
}

export interface Conformance {
  readonly commands: number;
  readonly histories: number;
  /** How often derived files, evictions and restarts from checkpoints were among it. */
  readonly derived: DerivedCounts;
  /** What fast-check says of the smallest history that differs; null when none does. */
  readonly failure: string | null;
}

export async function checkConformance(options: ConformanceOptions): Promise<Conformance> {
  let done = 0;
  let histories = 0;
  const derived: DerivedCounts = { checkpoints: 0, restored: 0, rebuilt: 0, hydrated: 0, compactions: 0 };
  const property = fc.asyncProperty(
    fc.commands(someCommands(), {
      maxCommands: 40,
      size: 'max',
      ...(options.replayPath === undefined ? {} : { replayPath: options.replayPath }),
    }),
    async (history) => {
      if (done >= options.commands) return;
      const believed: Believed = { model: new Branched(options.mistake), last: 0n, commands: 0 };
      const real = await RealStore.open();
      await fc.asyncModelRun(() => ({ model: believed, real }), history);
      await compareEverything(believed, real);
      await real.close();
      for (const [name, count] of Object.entries(real.counts)) derived[name as keyof DerivedCounts] += count;
      done += believed.commands;
      histories++;
      options.onRun?.(done);
    },
  );
  // Each history is at least one command, so this many runs are always enough; those beyond the goal do nothing.
  const result = await fc.check(property, {
    numRuns: options.commands,
    seed: options.seed,
    endOnFailure: false,
    ...(options.path === undefined ? {} : { path: options.path }),
  });
  return {
    commands: done,
    histories,
    derived,
    failure: result.failed ? `${fc.defaultReportMessage(result)}\n${String(result.errorInstance)}` : null,
  };
}
