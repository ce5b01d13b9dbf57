/** A simulated year: runs are due exactly when the clocks of their zones say, over both changes of the clock. */
import { expect, test } from 'vitest';
import type { Clock } from '../../src/clock.ts';
import { ServiceError } from '../../src/errors.ts';
import { tenantlessCaller } from '../../src/governance/caller.ts';
import type { GateContract } from '../../src/governance/gate-contract.ts';
import { JobRunner } from '../../src/governance/jobs/job-runner.ts';
import { JobScheduler, type JobSchedulerDependencies } from '../../src/governance/jobs/job-scheduler.ts';
import type { CommittedEntry } from '../../src/log/entries/entry.ts';
import type { Command } from '../../src/projections/command.ts';
import { decideChangeJob, decidePutJob, decideRun } from '../../src/projections/jobs/commands.ts';
import type { JobDefinition } from '../../src/projections/jobs/job.ts';
import { Jobs } from '../../src/projections/jobs/projection.ts';
import { decideContext } from '../../src/projections/decision.ts';
import { plainTexts } from '../projections/store.ts';

const nsOf = (iso: string): bigint => BigInt(Date.parse(iso)) * 1_000_000n;

/** Jobs and their scheduler over a log of nothing else, and a clock that jumps to whatever is due. */
class JobWorld {
  readonly jobs = new Jobs();
  now: bigint;
  down = false;
  /** What each look at the time takes, and turns that others had. */
  lookMs = 0;
  turns = 0;
  /** Jobs looked at and runs begun, in each of them. */
  readonly perTurn = [{ looks: 0, begun: 0 }];
  #ms = 0;
  readonly seen: { readonly job: string; readonly instant: bigint }[] = [];
  scheduler: JobScheduler;
  #position = 0;
  #id = 0;

  constructor(from: string) {
    this.now = nsOf(from);
    this.scheduler = this.start();
  }

  start(perform?: JobSchedulerDependencies['perform']): JobScheduler {
    const clock: Clock = {
      now: () => this.now,
      monotonicMs: () => (this.#ms += this.lookMs),
      sleep: (_, signal) => new Promise((resolve) => signal?.addEventListener('abort', () => resolve(), { once: true })),
    };
    const ids = { next: () => String(++this.#id).padStart(8, '0') };
    const gate = {
      invoke: async (_caller: unknown, _request: unknown, run: (invocation: unknown) => Promise<unknown>) =>
        run({ describe: () => undefined, submit: async (command: Command) => this.submit(command) }),
    } as unknown as GateContract;
    return (this.scheduler = new JobScheduler({
      gate,
      clock,
      ids,
      runner: new JobRunner({
        now: () => this.now,
        newId: () => ids.next(),
        record: () => Promise.reject(new Error('runs of jobs are on record with them')),
        listRecorded: () => [],
        warn: (line) => expect.unreachable(line),
      }),
      jobs: this.#countedJobs(),
      beginning: () => 0n,
      absentCaller: (owner) => ({ ...tenantlessCaller(owner.principal, 'none', 'internal') }),
      perform:
        perform ??
        (async ({ definition }, { instant }) => {
          this.seen.push({ job: definition.name, instant });
          return { rows: null, alerts: 0, result: null };
        }),
      performWorkflow: () => Promise.reject(new ServiceError('REL_NOT_IMPLEMENTED', 'no workflows here')),
      performRetention: () => Promise.reject(new ServiceError('REL_NOT_IMPLEMENTED', 'nothing is retained here')),
      workflowOf: () => null,
      alertOf: () => expect.unreachable('no job is paused'),
      warn: (line) => expect.unreachable(line),
      yieldTurn: async () => {
        this.turns++;
        this.perTurn.push({ looks: 0, begun: 0 });
      },
      parallelMax: 2,
    }));
  }

  #countedJobs(): JobSchedulerDependencies['jobs'] {
    const { jobs, perTurn } = this;
    return {
      get epoch() {
        return jobs.epoch;
      },
      job: (id) => jobs.job(id),
      steps: (id) => jobs.steps(id),
      *all() {
        for (const job of jobs.all()) {
          perTurn.at(-1)!.looks++;
          yield job;
        }
      },
    };
  }

  submit(command: Command, path: string | null = null): void {
    if (command.kind === 'record-run' && command.run.state === 'running') this.perTurn.at(-1)!.begun++;
    if (this.down) throw new ServiceError('REL_UNAVAILABLE', 'the service is draining');
    const { position, context } = { position: this.#position, context: contextOf(path) };
    const next = { position, time: this.now + BigInt(position) };
    const decision =
      command.kind === 'put-job'
        ? decidePutJob(command, this.jobs, context, next)
        : command.kind === 'change-job'
          ? decideChangeJob(command, this.jobs, context, next)
          : command.kind === 'record-run'
            ? decideRun(command, this.jobs, () => ({ drafts: [], outcome: {} }) as never, context, next)
            : null;
    for (const draft of decision!.drafts) {
      const entry: CommittedEntry = { ...draft, leaf: this.#position, position: this.#position, positions: 1, time: this.now };
      this.#position++;
      this.jobs.apply(entry);
    }
  }

  make(definition: Partial<JobDefinition> & Pick<JobDefinition, 'name'>, path: string | null = null): void {
    const owner = { credential: 'none', token: null } as const;
    this.submit({ kind: 'put-job', id: definition.name, definition: { ...plain, ...definition }, owner }, path);
  }

  async until(iso: string): Promise<void> {
    const end = nsOf(iso);
    for (;;) {
      await this.scheduler.settle();
      const next = await this.scheduler.tick();
      if (next === null || next > end) break;
      this.now = next;
    }
    this.now = end;
  }

  counts(): Record<string, number> {
    return Object.fromEntries([...this.jobs.all()].map(({ definition, runCount }) => [definition.name, runCount]));
  }
}

const plain: Omit<JobDefinition, 'name'> = {
  run: { sql: 'SELECT 1' },
  interval_secs: null,
  cron: null,
  time_zone: null,
  at: null,
  after: null,
  catch_up: 'one',
  run_now: false,
  timeout_secs: 3_600,
  purpose: null,
};

function contextOf(path: string | null) {
  const entry = {
    branch: 'main',
    tenant: path,
    path,
    principal: 'ann',
    door: 'test',
    purpose: null,
    correlationId: 'x',
    policyDigest: '',
  };
  return decideContext(entry, { newKey: () => 'unused', tokensMax: 1 }, { textSeals: plainTexts });
}

test('a year of daily, hourly and cron jobs has exactly the runs that its clocks say', async () => {
  const world = new JobWorld('2026-01-01T00:00:00Z');
  world.make({ name: 'hourly', interval_secs: 3_600 });
  world.make({ name: 'nightly in Berlin', cron: '0 4 * * *', time_zone: 'Europe/Berlin' });
  world.make({ name: 'in the hour that is missing', cron: '30 2 * * *', time_zone: 'Europe/Berlin' });
  world.make({ name: 'mondays', cron: '0 9 * * 1', time_zone: 'America/New_York' });
  world.make({ name: 'once', at: String(nsOf('2026-06-01T00:00:00Z')) });
  world.make({ name: 'behind the mondays', after: 'mondays' });
  await world.until('2026-12-31T23:59:59Z');
  expect(world.counts()).toEqual({
    hourly: 8_759,
    'nightly in Berlin': 365,
    'in the hour that is missing': 365,
    mondays: 52,
    once: 1,
    'behind the mondays': 52,
  });
  const hours = new Set(
    world.seen
      .filter(({ job }) => job === 'nightly in Berlin')
      .map(({ instant }) => String((instant / 3_600_000_000_000n) % 24n)),
  );
  // Three o'clock UTC in winter, two o'clock in summer.
  expect(hours).toEqual(new Set(['3', '2']));
});

test('runs that were missed are made up for by one, by all, or by none', async () => {
  const world = new JobWorld('2026-01-01T00:00:00Z');
  for (const catchUp of ['one', 'all', 'none'] as const) world.make({ name: catchUp, interval_secs: 3_600, catch_up: catchUp });
  world.now = nsOf('2026-01-01T05:30:00Z');
  world.start();
  await world.until('2026-01-01T05:59:00Z');
  expect(world.counts()).toEqual({ one: 1, all: 5, none: 0 });
  expect(world.jobs.job('one')!.last).toMatchObject({ missed: 4, basis: String(nsOf('2026-01-01T05:30:00Z')) });
  await world.until('2026-01-01T06:00:00Z');
  expect(world.counts()).toEqual({ one: 2, all: 6, none: 1 });
  expect(world.jobs.job('one')!.last!.basis).toBe(String(nsOf('2026-01-01T06:00:00Z')));
});

test('a run that was cut off begins again with the next attempt, and at most five times', async () => {
  const world = new JobWorld('2026-01-01T00:00:00Z');
  world.make({ name: 'cut', run_now: true });
  for (let attempt = 1; attempt <= 5; attempt++) {
    world.down = false;
    world.start(async () => {
      world.down = true;
      return { rows: null, alerts: 0, result: null };
    });
    await world.scheduler.tick();
    await world.scheduler.underWay('cut');
    expect(world.jobs.job('cut')!.open).toMatchObject({ state: 'running', attempt });
  }
  world.down = false;
  world.start();
  await world.scheduler.tick();
  await world.scheduler.settle();
  expect(world.jobs.job('cut')!.last).toMatchObject({ state: 'failed', reason: 'too_many_attempts' });
});

test('ten thousand waiting jobs cost a tick no look at their schedules', async () => {
  const world = new JobWorld('2026-01-01T00:00:00Z');
  for (let i = 0; i < 10_000; i++)
    world.submit({
      kind: 'put-job',
      id: `j${i}`,
      definition: { ...plain, name: `j${i}`, cron: '0 4 * * *', time_zone: 'Europe/Berlin' },
      owner: { credential: 'none', token: null },
    });
  await world.scheduler.tick();
  const records = [...world.jobs.all()];
  expect(await world.scheduler.tick()).toBe(nsOf('2026-01-01T03:00:00Z'));
  expect([...world.jobs.all()].every((job, i) => job === records[i])).toBe(true);
});

test('a look at jobs gives others their turn wherever its slice is over', async () => {
  const world = new JobWorld('2026-01-01T00:00:00Z');
  for (let i = 0; i < 10; i++) world.make({ name: `j${i}`, cron: '0 4 * * *' });
  world.lookMs = 2;
  await world.scheduler.tick();
  expect(world.turns).toBe(20);
});

test('of ten thousand jobs that are all due a turn looks at few and begins one, and they are looked at once for many runs', async () => {
  const world = new JobWorld('2026-01-01T00:00:00Z');
  const count = 10_000;
  for (let i = 0; i < count; i++) world.make({ name: `j${i}`, interval_secs: 3_600 + (i % 600) });
  world.now = nsOf('2026-01-01T02:30:00Z');
  world.lookMs = 0.1;
  for (let n = 0; n < 64; n += 2) {
    await world.scheduler.tick();
    for (const { id } of world.jobs.all()) await world.scheduler.underWay(id);
  }
  const most = (of: 'looks' | 'begun'): number => Math.max(...world.perTurn.map((turn) => turn[of]));
  expect([most('looks') < 20, most('begun')]).toEqual([true, 1]);
  expect(world.perTurn.reduce((sum, { looks }) => sum + looks, 0)).toBe(count);
  // The longest due of all, in their order.
  expect(world.seen.map(({ job }) => Number(job.slice(1)) % 600)).toEqual(
    Array.from({ length: 64 }, (_, i) => Math.floor(i / Math.ceil(count / 600))),
  );
});

test('of the runs that are due no more are begun than may run at a time, the longest due first', async () => {
  const world = new JobWorld('2026-01-01T00:00:00Z');
  for (const [i, name] of ['d', 'c', 'b', 'a'].entries()) world.make({ name, interval_secs: 3_600 - 60 * i });
  world.now = nsOf('2026-01-01T01:30:00Z');
  let go: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => (go = resolve));
  const begun: string[] = [];
  world.start(async ({ definition }) => {
    begun.push(definition.name);
    await gate;
    return { rows: null, alerts: 0, result: null };
  });
  await world.scheduler.tick();
  await world.scheduler.tick();
  await new Promise((resolve) => setImmediate(resolve));
  expect(begun).toEqual(['a', 'b']);
  expect(world.jobs.job('c')!.open).toBe(null);
  expect(world.scheduler.waits(world.jobs.job('c')!)).toBe(true);
  await world.scheduler.endWaiting(world.jobs.job('c')!, 'REL_CANCELLED');
  expect(world.jobs.job('c')!.last).toMatchObject({ state: 'cancelled', reason: 'REL_CANCELLED' });
  go();
  await world.scheduler.settle();
  expect(begun).toEqual(['a', 'b', 'd']);
});

test('rules of a path are judged one after the other, and wait for those of no other path', async () => {
  const world = new JobWorld('2026-01-01T00:00:00Z');
  for (const [name, path] of [
    ['a', 'acme'],
    ['b', 'acme'],
    ['c', 'globex'],
  ] as const)
    world.make({ name, interval_secs: 3_600, run: { rules: [] } }, path);
  world.now = nsOf('2026-01-01T01:30:00Z');
  let go: () => void = () => undefined;
  const slow = new Promise<void>((resolve) => (go = resolve));
  const ended: string[] = [];
  world.start(async ({ definition: { name } }) => {
    if (name === 'a') await slow;
    ended.push(name);
    return { rows: null, alerts: 0, result: null };
  });
  await world.scheduler.tick();
  await world.scheduler.tick();
  await world.scheduler.begin('b');
  await world.scheduler.underWay('c');
  expect([ended, world.jobs.job('b')!.open?.state]).toEqual([['c'], 'running']);
  go();
  await world.scheduler.settle();
  expect(ended).toEqual(['c', 'a', 'b']);
});
