/** One short life of a log under a seed: several writers, seals, pauses, a clock that jumps, and mostly a clean end. */
import { AssertionError, assert } from '../../src/errors.ts';
import type { CommittedEntry } from '../../src/log/entries/entry.ts';
import type { BulkOptions } from '../../src/log/entries/bulk-sealer.ts';
import type { LogStore, WalSync } from '../../src/log/log-store.ts';
import { inlineWorker, type StartWorker } from '../../src/log/threads/workers.ts';
import type { ResumeOptions } from '../../src/log/files/saved-log.ts';
import { draftsFor } from './drafts.ts';
import { type DiskState, FaultyDisk, type Fault, type Image, type Step } from './faulty-disk.ts';
import { History, type Promises } from './history.ts';
import { Seeded } from './seeded.ts';
import { SimulatedClock, settle, Turnstile } from './world.ts';

export interface Scenario {
  readonly seed: number;
  readonly walSync: WalSync;
  readonly writers: number;
  readonly appendsPerWriter: number;
  readonly fileBytes: number;
  /** How bodies of more than one row are sealed: in the turn of their append, in slices, or by a worker that takes its time. */
  readonly bulk: 'turn' | 'slices' | 'worker';
}

export type OpenLog = (world: {
  readonly disk: FaultyDisk;
  readonly clock: SimulatedClock;
  readonly random: Seeded;
  readonly walSync: WalSync;
  readonly fileBytes: number;
  readonly bulk?: BulkOptions;
  readonly resume?: ResumeOptions;
  /** Told every entry that is replayed. */
  readonly replay?: (entry: CommittedEntry) => void;
}) => Promise<LogStore>;

/** An instant at which the machine could have stopped, and what had been promised by then. */
export interface CrashPoint {
  /** The disk call that did not happen any more. */
  readonly step: number;
  readonly disk: DiskState;
  readonly promises: Promises;
}

export interface Life {
  readonly scenario: Scenario;
  readonly history: History;
  readonly points: readonly CrashPoint[];
  readonly steps: readonly Step[];
  readonly syncsAfterFailure: number;
  readonly state: ReturnType<LogStore['status']>['state'] | 'unopened';
  readonly files: number;
  readonly closed: boolean;
  /** The disk call with which the closing began; Infinity where it never did. */
  readonly closing: number;
  /** What must not happen even with a failing disk, or null. */
  readonly error: string | null;
}

export interface LifeOptions {
  /** Replaces the effect of steps; also where the power goes off. */
  readonly fault?: (step: Step, disk: FaultyDisk) => Fault | undefined;
  /** First step from which crash points are taken. */
  readonly pointsFrom?: number;
  readonly image?: Image;
  /** Waits at the end until there is room, and all that was taken is durable. */
  readonly outlast?: boolean;
}

export function scenarioOf(seed: number): Scenario {
  const random = new Seeded(seed);
  return {
    seed,
    walSync: random.pick(['always', 'interval', 'interval', 'off'] as const),
    writers: 1 + random.below(3),
    appendsPerWriter: 2 + random.below(3),
    fileBytes: random.pick([1500, 3000, 1 << 16]),
    bulk: random.pick(['turn', 'slices', 'worker'] as const),
  };
}

export async function live(scenario: Scenario, openLog: OpenLog, options: LifeOptions = {}): Promise<Life> {
  const random = new Seeded(scenario.seed + 1);
  const clock = new SimulatedClock();
  const turnstile = new Turnstile(random);
  const history = new History();
  const points: CrashPoint[] = [];
  const steps: Step[] = [];
  let seen = '';
  const takePoint = (step: number): void => {
    const now = `${disk.version}/${history.version}`;
    if (now === seen || step < (options.pointsFrom ?? 0)) return;
    seen = now;
    points.push({ step, disk: disk.state(), promises: history.promises() });
  };
  const disk: FaultyDisk = new FaultyDisk(
    {
      turn: turnstile.turn,
      beforeStep: (step) => {
        takePoint(step.index);
        steps.push(step);
        return options.fault?.(step, disk);
      },
    },
    options.image,
  );

  let log: LogStore | null = null;
  let closed = false;
  let closing = Infinity;
  const { walSync, fileBytes, bulk: how } = scenario;
  const bulk = bulkOptions(how, new Seeded(scenario.seed + 3));
  const whole = async (): Promise<void> => {
    log = await openLog({ disk, clock, random: new Seeded(scenario.seed + 2), walSync, fileBytes, ...(bulk ? { bulk } : {}) });
    if (walSync !== 'off') log.onVisible(({ position }) => history.show(position));
    await Promise.all(
      Array.from({ length: scenario.writers }, (_, writer) => write(writer, log!, scenario, random, clock, history)),
    );
    // A close waits for no room.
    if (options.outlast) await outlast(log, clock);
    if (!random.chance(0.7)) return;
    closing = disk.steps;
    closed = await succeeds(log.close());
  };
  let error: string | null = null;
  const lived = whole().catch((thrown: unknown) => {
    // A log that can't be opened on a failing disk is right to say so; our own assertions are never right.
    if (!options.fault || log || thrown instanceof AssertionError)
      error = thrown instanceof Error ? thrown.stack! : String(thrown);
  });
  if (!(await drive(lived, clock, { turnstile, random }))) error = 'somebody waits for what will never come';
  takePoint(disk.steps);
  const status = (log as LogStore | null)?.status();
  return {
    scenario,
    history,
    points,
    steps,
    closed,
    closing,
    error,
    syncsAfterFailure: disk.syncsAfterFailure,
    state: status?.state ?? 'unopened',
    files: status?.files ?? 0,
  };
}

function bulkOptions(how: Scenario['bulk'], random: Seeded): BulkOptions | undefined {
  if (how === 'turn') return undefined;
  return { rowsMin: 2, startWorker: how === 'slices' ? null : lateWorker(random) };
}

/** The twin, its replies some turns late, in order. */
function lateWorker(random: Seeded): StartWorker {
  return (job, data) => {
    const worker = inlineWorker(job, data);
    let before: Promise<unknown> = Promise.resolve();
    return {
      ask: (request) => {
        const reply = before.then(async () => {
          for (let turns = random.below(12); turns > 0; turns--) await settle();
          return await worker.ask(request);
        });
        before = reply.catch(() => undefined);
        return reply;
      },
      end: () => worker.end(),
    };
  };
}

async function write(
  writer: number,
  log: LogStore,
  scenario: Scenario,
  random: Seeded,
  clock: SimulatedClock,
  history: History,
): Promise<void> {
  const acknowledgements: Promise<boolean>[] = [];
  const states: Promise<boolean>[] = [];
  for (let i = 0; i < scenario.appendsPerWriter; i++) {
    while (log.status().state === 'full') await clock.sleep(100);
    if (random.chance(0.5)) await clock.sleep(random.pick([0, 0, 1, 5, 20, 1500]));
    if (random.chance(0.2)) clock.jump(random.pick([-1n, 1n, -3_600_000_000_000n, 10_000_000_000n, -315_360_000_000_000_000n]));
    if (random.chance(0.08)) await succeeds(log.seal());
    if (random.chance(0.2)) states.push(succeeds(keep(history, log, random.chance(0.3))));
    const drafts = draftsFor(random, writer, history.submissions.length);
    const expected = log.next();
    let acknowledged: Promise<boolean>;
    try {
      const appended = log.append(drafts, { at: expected, sync: random.chance(0.3) });
      assert(appended.entries[0]!.time === expected.time, 'an append lands where next() said');
      acknowledged = history.follow(appended);
      const size = appended.entries[appended.entries.length - 1]!.leaf + 1;
      // A look at the head would seal everything at once.
      if (scenario.bulk === 'turn') history.roots.set(size, log.head().root);
      else
        void appended.written.then(
          () => history.roots.set(size, log.proofs.root(size)),
          () => undefined,
        );
    } catch (error) {
      if (log.status().state === 'open') throw error;
      return;
    }
    acknowledgements.push(acknowledged);
    if (random.chance(0.6)) await acknowledged;
  }
  await Promise.all([...acknowledgements, ...states]);
}

/** A state is taken of a log that works; one that has failed has nothing to give. */
async function keep(history: History, log: LogStore, early: boolean): Promise<void> {
  if (log.status().state === 'open') await history.keep(log, early);
}

/**
 * Lets calls and sleepers through, one at a time, until `task` has ended; false when it never will. Time passes while
 * calls are under way too: disks may be slow.
 */
export async function drive(
  task: Promise<unknown>,
  clock: SimulatedClock,
  world?: { readonly turnstile: Turnstile; readonly random: Seeded },
): Promise<boolean> {
  let done = false;
  const end = (): void => {
    done = true;
  };
  task.then(end, end);
  let idleRounds = 0;
  for (let round = 0; ; round++) {
    await settle();
    if (done) return true;
    assert(round < 100_000, 'the simulation makes progress');
    const slowDisk = world?.random.chance(0.3) && clock.advance();
    if (slowDisk || world?.turnstile.admit() || clock.advance()) idleRounds = 0;
    else if (idleRounds++ > 100) return false;
  }
}

async function outlast(log: LogStore, clock: SimulatedClock): Promise<void> {
  do {
    while (log.status().state === 'full') await clock.sleep(100);
    await succeeds(log.seal());
  } while (log.status().state === 'full');
}

async function succeeds(task: Promise<unknown>): Promise<boolean> {
  try {
    await task;
    return true;
  } catch {
    return false;
  }
}
