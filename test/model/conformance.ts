/** Runs random histories against the model and the real stack side by side, until enough commands were done. */
import fc from 'fast-check';
import { believing, compareEverything } from './believed.ts';
import type { Mistake } from './bitemporal.ts';
import { Branched } from './branched.ts';
import { someCommands } from './commands.ts';
import { someStatements } from './statements.ts';
import { someCopies } from './copies.ts';
import { Subjects } from './erasures.ts';
import { someForgetting } from './forgetting.ts';
import { someTransactions } from './transactions.ts';
import { compareNames, someNames } from './names.ts';
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
  /** How often each command was done, and each thing came of one. */
  readonly ran: Readonly<Record<string, number>>;
  readonly came: Readonly<Record<string, number>>;
  /** What fast-check says of the smallest history that differs; null when none does. */
  readonly failure: string | null;
}

export async function checkConformance(options: ConformanceOptions): Promise<Conformance> {
  let done = 0;
  let histories = 0;
  const derived: DerivedCounts = { checkpoints: 0, restored: 0, rebuilt: 0, hydrated: 0, compactions: 0 };
  const ran: Record<string, number> = {};
  const came: Record<string, number> = {};
  const property = fc.asyncProperty(
    // Rows of a type without subjects lie in other parts of entries, and removals name their keys.
    fc.integer({ min: 0, max: 3 }).map((each) => each > 0),
    fc.integer({ min: 0, max: 3 }).map((each) => each === 0),
    fc.commands(
      [...someCommands(), ...someForgetting(), ...someCopies(), ...someNames(), ...someStatements(), ...someTransactions()],
      {
        maxCommands: 40,
        size: 'max',
        ...(options.replayPath === undefined ? {} : { replayPath: options.replayPath }),
      },
    ),
    async (hasSubjects, hasEdges, history) => {
      if (done >= options.commands) return;
      const believed = believing(new Branched(options.mistake, hasSubjects), new Subjects(), hasEdges);
      const real = await RealStore.open(hasSubjects, hasEdges);
      await fc.asyncModelRun(() => ({ model: believed, real }), history);
      await compareEverything(believed, real);
      await compareNames(believed, real);
      await real.close();
      for (const [name, count] of Object.entries(real.counts)) derived[name as keyof DerivedCounts] += count;
      add(ran, believed.ran);
      add(came, believed.came);
      done += Object.values(believed.ran).reduce((sum, times) => sum + times, 0);
      histories++;
      options.onRun?.(done);
    },
  );
  // Each history is at least one command, so this many runs are always enough; those beyond the goal do nothing.
  const result = await fc.check(property, {
    numRuns: options.commands,
    seed: options.seed,
    // Nobody looks at the smallest history that tells a mistake apart.
    endOnFailure: options.mistake !== undefined,
    ...(options.path === undefined ? {} : { path: options.path }),
  });
  return {
    commands: done,
    histories,
    derived,
    ran,
    came,
    failure: result.failed ? `${fc.defaultReportMessage(result)}\n${String(result.errorInstance)}` : null,
  };
}

function add(sums: Record<string, number>, counts: Readonly<Record<string, number>>): void {
  for (const [name, times] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + times;
}
