/**
 * Runs jobs by the clock. The log is the queue: definitions, runs begun and runs ended are entries, so that a start knows which runs were
 * cut off. Progress is memory.
 *
 *   due -> run `running` on record -> work, in an invocation of the owner as it is now -> effects + run `done`, one append
 *
 * Invariants:
 * - One run of a job at a time. A run is begun at least once; its effects are there once, with the entry that ends it.
 * - No more runs are begun by the clock than may run at a time: the others wait as due, the longest due first, and cost nothing but a look for
 *   every so many that are begun.
 * - However many jobs there are, the loop of events waits for none of the looks at their schedules.
 * - A run that was cut off begins again, at most five times in all; that of a workflow goes on behind the last step that is on record. One
 *   that waits is on record as queued, and takes no place of those that run.
 * - An owner that has lost its rights has no runs: the job is paused, and says why.
 */
import type { Clock, Ids } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import type { Json } from '../../log/values/canonical-json.ts';
import { canonicalJson } from '../../log/values/canonical-json.ts';
import type { PutRows } from '../../projections/command.ts';
import { attemptsMax, type JobRecord, type RecordedStep, type RunRecord, type WorkflowStep } from '../../projections/jobs/job.ts';
import type { AbsentOwner } from '../authentication/authenticator.ts';
import { type Caller, tenantlessCaller } from '../caller.ts';
import type { GateContract, Invocation } from '../gate-contract.ts';
import type { JobLane, JobRunner, JobWork } from './job-runner.ts';
import { dueAfter, dueAt, lateNs, nextDue } from './job-schedule.ts';
import { WorkSlices } from './work-slices.ts';

/** The effects of a run. */
export interface JobEffect {
  /** Written with the entry that ends the run. */
  readonly rows: PutRows | null;
  /** How many of the rows are alerts. */
  readonly alerts: number;
  readonly result: Json;
}

/** The work of a run, which the composition root provides. */
export type PerformJob = (
  job: JobRecord,
  work: {
    readonly invocation: Invocation;
    readonly caller: Caller;
    readonly run: string;
    /** Nanoseconds: its `now()` and basis. */
    readonly instant: bigint;
    readonly signal: AbortSignal;
    readonly progress: JobWork['progress'];
  },
) => Promise<JobEffect>;

/** The work of a workflow's run: the steps that have not ended. Each step is an invocation of its own. */
export type PerformWorkflow = (
  job: JobRecord,
  work: {
    readonly caller: Caller;
    readonly run: RunRecord;
    readonly steps: ReadonlyMap<string, RecordedStep>;
    readonly signal: AbortSignal;
    readonly progress: JobWork['progress'];
    /** Puts a step on record, in one append with the rows that it writes. */
    readonly record: (step: WorkflowStep, rows?: (invocation: Invocation) => PutRows) => Promise<void>;
  },
) => Promise<WorkflowEffect>;

/** The work of a run that is several invocations of its owner; what it wrote stays where it is cut off, and it may be begun again. */
export type PerformAlone = (
  job: JobRecord,
  work: {
    readonly caller: Caller;
    readonly run: RunRecord;
    readonly signal: AbortSignal;
    readonly progress: JobWork['progress'];
  },
) => Promise<Json>;

/** `until`: it waits at this step, and goes on at this nanosecond; null: when somebody says so. */
export type WorkflowEffect =
  | { readonly alerts: number; readonly result: Json }
  | { readonly until: bigint | null; readonly step: WorkflowStep };

export interface JobSchedulerDependencies {
  readonly gate: Pick<GateContract, 'invoke'>;
  readonly clock: Clock;
  readonly ids: Pick<Ids, 'next'>;
  readonly runner: Pick<JobRunner, 'start'>;
  readonly jobs: {
    readonly epoch: number;
    all(): Iterable<JobRecord>;
    job(id: string): JobRecord | undefined;
    steps(id: string): ReadonlyMap<string, RecordedStep>;
  };
  /** Nanosecond from which a tenant is the one that it is. */
  readonly beginning: (path: string | null) => bigint;
  /** Throws REL_ACL where the owner has lost its rights. */
  readonly absentCaller: (owner: AbsentOwner) => Caller;
  readonly perform: PerformJob;
  readonly performWorkflow: PerformWorkflow;
  readonly performRetention: PerformAlone;
  /** The alert that tells the owner of a job that it is paused, and why. */
  readonly alertOf: (invocation: Invocation, job: JobRecord, run: RunRecord, why: string) => PutRows;
  /** Id of the workflow that the name means to a job now; null: there is none. */
  readonly workflowOf: (name: string, job: Pick<JobRecord, 'path'>) => string | null;
  /** One line for the operator. */
  readonly warn: (line: string) => void;
  readonly yieldTurn: () => Promise<void>;
  /** SERVICE_JOBS_MAX_PARALLEL. */
  readonly parallelMax: number;
}

interface Due {
  readonly id: string;
  readonly from: bigint;
}

interface Timed {
  readonly record: JobRecord;
  readonly due: bigint | null;
}

/** The loop looks at the clock this often at least: it may be set. */
const tickMsMax = 30_000;
/** Looks at schedules end a slice this soon: the first one compiles what it runs, and may lose the processor to that for milliseconds. */
const sliceMs = 0.5;
/** So many are begun between two looks at all jobs. */
const dueMax = 64;
const restNs = 10_000_000_000n;
const instantOf = (text: string | null | undefined): bigint | null => (text === null || text === undefined ? null : BigInt(text));
const caretaker = tenantlessCaller('annals', 'operator', 'internal');

export class JobScheduler {
  readonly #parts: JobSchedulerDependencies;
  readonly #lane: JobLane;
  /** By job; computed again only where its record is another one. */
  readonly #timed = new Map<string, Timed>();
  readonly #running = new Map<string, Promise<void>>();
  /** Nanosecond before which a job is not begun again: its run could not be put on record. */
  readonly #rests = new Map<string, bigint>();
  /** The last run of a path that judges rules: they do so one after the other, so that each sees the alerts of those before it. */
  readonly #judging = new Map<string | null, Promise<unknown>>();
  #epoch: number | null = null;
  /** Jobs that the last look found to be due and that have not begun, the longest due first. Those that are due since wait behind them. */
  #due: Due[] = [];
  /** The last look, where it found nothing that is due. */
  #seen: { readonly epoch: number; readonly next: bigint | null } | null = null;
  /** Whether something has happened since the loop looked last. */
  #isStale = true;
  #wake: (() => void) | null = null;

  constructor(parts: JobSchedulerDependencies) {
    this.#parts = parts;
    this.#lane = { runningMax: parts.parallelMax };
    // The first look at the clock of a zone reads all zones, for tens of milliseconds: before anybody asks.
    for (const job of parts.jobs.all()) {
      if (job.definition.cron === null) continue;
      this.#dueOf(job);
      break;
    }
  }

  /** Until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    while (!signal.aborted) {
      this.#isStale = false;
      const next = await this.tick();
      if (this.#isStale) continue;
      const ms = next === null ? tickMsMax : Number((next - clock.now()) / 1_000_000n) + 1;
      const woken = new AbortController();
      this.#wake = () => woken.abort();
      await clock.sleep(Math.max(0, Math.min(ms, tickMsMax)), AbortSignal.any([signal, woken.signal]));
      this.#wake = null;
    }
  }

  /** A job was made, or a run has ended: the loop looks now. */
  look(): void {
    if (this.#parts.jobs.epoch !== this.#epoch) this.#stir();
  }

  #stir(): void {
    this.#isStale = true;
    this.#wake?.();
  }

  /** When the next run of a job is due; null: none is. */
  next(id: string): bigint | null {
    const job = this.#parts.jobs.job(id);
    return job === undefined || job.state !== 'scheduled' || job.open !== null ? null : this.#dueOf(job);
  }

  /** Whether a run of the job is due and finds no place. */
  waits(job: JobRecord): boolean {
    const from = job.open === null ? this.#beginsAt(job) : null;
    return from !== null && from <= this.#parts.clock.now();
  }

  /** Begins what is due, as far as there are places. Resolves with the next instant at which something is; null: nothing is. */
  async tick(): Promise<bigint | null> {
    const { jobs, clock, parallelMax } = this.#parts;
    // A run that ends gives its place back, and the loop looks again.
    if (this.#running.size >= parallelMax) return null;
    const now = clock.now();
    const turn = this.#newSlices();
    if (this.#due.length === 0) {
      const next = await this.#lookAtAll(now, turn);
      if (this.#due.length === 0) return next;
    }
    while (this.#due.length > 0 && this.#running.size < parallelMax) {
      const [{ id }] = this.#due.splice(0, 1) as [Due];
      // The beginning of a run is work of its own.
      await turn.next();
      const job = jobs.job(id);
      if (job !== undefined && !this.#isJudged(job)) await this.#consider(id, now, turn);
    }
    // Those that are left are the longest due of then: with places left, all are looked at again.
    return this.#running.size < parallelMax ? now : null;
  }

  /** Finds the longest due, and when the next of the others is; null: none is. */
  async #lookAtAll(now: bigint, turn: WorkSlices): Promise<bigint | null> {
    const { jobs } = this.#parts;
    const seen = this.#seen;
    if (seen?.epoch === jobs.epoch && (seen.next === null || seen.next > now)) return seen.next;
    this.#seen = null;
    const { epoch } = jobs;
    this.#epoch = epoch;
    let next: bigint | null = null;
    const due: Due[] = [];
    for (const job of jobs.all()) {
      const from = this.#beginsAt(job);
      if (from !== null && from <= now) {
        // It would take a place only to wait there; the end of the other is looked at.
        if (this.#isJudged(job)) continue;
        const at = due.findLastIndex((other) => other.from <= from) + 1;
        if (at < dueMax) due.splice(at, 0, { id: job.id, from });
        due.length = Math.min(due.length, dueMax);
      } else if (from !== null && (next === null || from < next)) next = from;
      // The clock of a zone may take a millisecond where it is asked for the first time.
      if (turn.isOver()) await turn.next();
    }
    for (const id of this.#timed.keys()) {
      if (jobs.job(id) === undefined) this.#timed.delete(id);
      if (turn.isOver()) await turn.next();
    }
    this.#due = due;
    if (due.length === 0) this.#seen = { epoch, next };
    return next;
  }

  #newSlices(): WorkSlices {
    return new WorkSlices({ ...this.#parts, sliceMs });
  }

  /** Whether a job judges rules, and another one of its path does so now. */
  #isJudged({ definition, path }: JobRecord): boolean {
    if (definition.run.rules === undefined) return false;
    for (const id of this.#running.keys()) {
      const other = this.#parts.jobs.job(id);
      if (other?.path === path && other.definition.run.rules !== undefined) return true;
    }
    return false;
  }

  /** Begins what is due of one job now, whatever else waits: somebody asks for it. */
  async begin(id: string): Promise<void> {
    await this.#consider(id, this.#parts.clock.now(), this.#newSlices());
  }

  /** Null: a run of the job was begun, or none will be; else when the next one is. */
  async #consider(id: string, now: bigint, turn: WorkSlices): Promise<bigint | null> {
    const { jobs } = this.#parts;
    const job = jobs.job(id);
    const from = job === undefined ? null : this.#beginsAt(job);
    if (job === undefined || from === null || from > now) return from;
    if (job.open !== null) {
      // A run that an earlier process began: this one does not run it.
      const { until: _, ...run } = job.open;
      void this.#begin(job, { ...run, state: 'running', attempt: run.attempt + (run.state === 'running' ? 1 : 0) });
      return null;
    }
    const dueRuns = await turn.finish(dueAt(job, now, (other) => this.#doneAt(other)));
    const later = dueRuns === null ? await turn.finish(dueAfter(job, now)) : null;
    // Others had their turn meanwhile.
    if (jobs.job(id) !== job || this.#running.has(id)) return this.#consider(id, now, turn);
    if (dueRuns !== null) {
      void this.#begin(job, this.#runOf(job, dueRuns.instant, dueRuns.missed, now));
      return null;
    }
    this.#timed.set(id, { record: job, due: later });
    return later;
  }

  /** Nanosecond from which a run of the job is to be begun, or begun again; null: none is. */
  #beginsAt(job: JobRecord): bigint | null {
    const { id, open, state, path, made } = job;
    if (this.#running.has(id) || (state !== 'scheduled' && open === null)) return null;
    const isQueued = open?.state === 'queued' && open.until !== undefined;
    const from = open === null ? this.#dueOf(job) : isQueued ? instantOf(open.until) : BigInt(open.due);
    if (from === null || made < this.#parts.beginning(path)) return null;
    const rests = this.#rests.get(id);
    return rests !== undefined && rests > from ? rests : from;
  }

  #dueOf(job: JobRecord): bigint | null {
    const doneAt = (id: string): bigint | null => this.#doneAt(id);
    // It depends on the runs of another job.
    if (job.definition.after !== null) return nextDue(job, doneAt);
    let timed = this.#timed.get(job.id);
    if (timed?.record !== job) this.#timed.set(job.id, (timed = { record: job, due: nextDue(job, doneAt) }));
    return timed.due;
  }

  /** Begins a run now, beside those that are due. REL_CONFLICT while one is under way. */
  runNow(job: JobRecord): Promise<void> {
    if (job.open !== null || this.#running.has(job.id)) throw new ServiceError('REL_CONFLICT', 'a run of the job is under way');
    const now = this.#parts.clock.now();
    return this.#begin(job, this.#runOf(job, now, 0, now));
  }

  /** Ends a run that waits, or that is due and finds no place. */
  async endWaiting(job: JobRecord, reason: string): Promise<void> {
    const { open } = job;
    if (open?.state === 'queued') {
      const { until: _, ...run } = open;
      return this.#record({ ...run, state: 'cancelled', reason });
    }
    if (!this.waits(job)) return;
    const now = this.#parts.clock.now();
    const dueRuns = await this.#newSlices().finish(dueAt(job, now, (other) => this.#doneAt(other)));
    if (dueRuns === null || this.#parts.jobs.job(job.id) !== job || this.#running.has(job.id)) return;
    await this.#record({ ...this.#runOf(job, dueRuns.instant, dueRuns.missed, now), state: 'cancelled', reason });
  }

  /** A step that a run waits at has ended: the run goes on now. */
  async goOn({ id, open }: JobRecord, step: WorkflowStep): Promise<void> {
    if (open?.state !== 'queued') throw new ServiceError('REL_CONFLICT', 'the run does not wait');
    await this.#record({ ...open, until: String(this.#parts.clock.now()), step });
    await this.begin(id);
  }

  /** The run of a job that is under way in this process; undefined where none is. */
  underWay(id: string): Promise<void> | undefined {
    return this.#running.get(id);
  }

  /** Begins what is due, and resolves when no run is under way and none is due. */
  async settle(): Promise<void> {
    for (await this.tick(); this.#running.size > 0; await this.tick()) await Promise.all(this.#running.values());
  }

  #doneAt(id: string): bigint | null {
    const last = this.#parts.jobs.job(id)?.last ?? null;
    return last === null || last.state !== 'done' ? null : BigInt(last.basis);
  }

  #runOf({ id }: JobRecord, due: bigint, missed: number, now: bigint): RunRecord {
    return {
      id: this.#parts.ids.next(),
      job: id,
      group: null,
      state: 'running',
      attempt: 1,
      due: String(due),
      // It replays to the same: a run in time sees what was there when it was due.
      basis: String(now - due > lateNs ? now : due),
      alerts: 0,
      reason: null,
      missed,
      result: null,
    };
  }

  #begin(job: JobRecord, run: RunRecord): Promise<void> {
    this.#rests.delete(job.id);
    const work = this.#run(job, run)
      .catch((error: unknown) => {
        // A drain, or a disk that is full: the run is on record as begun, and is begun again later.
        this.#rests.set(job.id, this.#parts.clock.now() + restNs);
        if (error instanceof ServiceError) return;
        this.#parts.warn(
          `the job ${job.id} has failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
        );
      })
      .finally(() => {
        this.#running.delete(job.id);
        this.#seen = null;
        this.#stir();
      });
    this.#running.set(job.id, work);
    return work;
  }

  async #run(job: JobRecord, begun: RunRecord): Promise<void> {
    // A workflow that gets on is not given up.
    const reached = [...this.#parts.jobs.steps(job.id).values()].at(-1)?.attempt ?? 1;
    if (begun.attempt - reached >= attemptsMax) return this.#record({ ...begun, state: 'failed', reason: 'too_many_attempts' });
    let caller: Caller;
    try {
      caller = this.#parts.absentCaller({ ...job.owner, path: job.path, branch: job.branch });
    } catch (error) {
      return this.#lostRights(job, begun, error);
    }
    const { workflow: name } = job.definition.run;
    const follows = name === undefined ? undefined : (begun.workflow ?? this.#parts.workflowOf(name, job));
    if (follows === null) return this.#record({ ...begun, state: 'failed', reason: 'REL_NOT_FOUND' });
    const run: RunRecord = follows === undefined ? begun : { ...begun, workflow: follows };
    await this.#record(run);
    const timeout = new AbortController();
    const waitsEnd = new AbortController();
    let waits: Promise<void> = Promise.resolve();
    let failed: unknown = null;
    try {
      const { ended } = this.#parts.runner.start(
        {
          id: run.id,
          kind: 'scheduled',
          about: job.definition.name,
          unit: 'rows',
          lane: this.#lane,
          onDrain: 'cancel',
          run: ({ signal, progress }) => {
            // It counts from its turn.
            waits = this.#parts.clock.sleep(job.definition.timeout_secs * 1000, waitsEnd.signal).then(() => {
              if (!waitsEnd.signal.aborted) timeout.abort(new ServiceError('REL_TIMEOUT', 'timed_out'));
            });
            return this.#perform(job, run, caller, AbortSignal.any([signal, timeout.signal]), progress);
          },
        },
        caller,
      );
      await ended;
    } catch (error) {
      failed = error;
    } finally {
      waitsEnd.abort();
    }
    await waits;
    if (failed === null) return;
    if (timeout.signal.aborted) return this.#record({ ...run, state: 'failed', reason: 'timed_out' });
    if (!(failed instanceof ServiceError)) {
      await this.#record({ ...run, state: 'failed', reason: 'REL_INTERNAL' });
      throw failed;
    }
    if (failed.code === 'REL_UNAVAILABLE') throw failed;
    const state = failed.code === 'REL_CANCELLED' ? 'cancelled' : 'failed';
    if (failed.code === 'REL_ACL' || failed.code === 'REL_TENANT_SUSPENDED') return this.#lostRights(job, run, failed);
    return this.#record({ ...run, state, reason: failed.code });
  }

  async #perform(
    job: JobRecord,
    run: RunRecord,
    caller: Caller,
    signal: AbortSignal,
    progress: JobWork['progress'],
  ): Promise<void> {
    signal.throwIfAborted();
    if (run.workflow !== undefined) return this.#performSteps(job, run, caller, signal, progress);
    if (job.definition.run.retention !== undefined) {
      const result = await this.#parts.performRetention(job, { caller, run, signal, progress });
      return this.#record({ ...run, state: 'done', result });
    }
    if (job.definition.run.rules === undefined) return this.#performOne(job, run, caller, signal, progress);
    const before = this.#judging.get(job.path) ?? Promise.resolve();
    const mine = before.then(() => this.#performOne(job, run, caller, signal, progress));
    const over: Promise<void> = mine
      .catch(() => undefined)
      .then(() => {
        if (this.#judging.get(job.path) === over) this.#judging.delete(job.path);
      });
    this.#judging.set(job.path, over);
    // One that is cancelled while it waits ends now.
    const ended = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
    await Promise.race([mine, ended]);
  }

  async #performOne(
    job: JobRecord,
    run: RunRecord,
    caller: Caller,
    signal: AbortSignal,
    progress: JobWork['progress'],
  ): Promise<void> {
    signal.throwIfAborted();
    const request = { action: 'query', purpose: job.definition.purpose, correlationId: run.id, gone: signal } as const;
    const { isWritten, result } = await this.#parts.gate.invoke(caller, request, async (invocation) => {
      invocation.describe({ template: 'job ?', literals: [job.id] });
      const effect = await this.#parts.perform(job, {
        invocation,
        caller,
        run: run.id,
        instant: BigInt(run.basis),
        signal,
        progress,
      });
      signal.throwIfAborted();
      const isWritten = effect.rows !== null && effect.rows.rows.length > 0;
      if (isWritten) {
        const done: RunRecord = { ...run, state: 'done', alerts: effect.alerts, result: effect.result };
        await invocation.submit({ kind: 'record-run', run: done, alerts: effect.rows });
      }
      return { isWritten, result: effect.result };
    });
    if (!isWritten) await this.#record({ ...run, state: 'done', result });
  }

  async #performSteps(
    job: JobRecord,
    run: RunRecord,
    caller: Caller,
    signal: AbortSignal,
    progress: JobWork['progress'],
  ): Promise<void> {
    const { gate, jobs, performWorkflow } = this.#parts;
    const record = async (step: WorkflowStep, rows?: (invocation: Invocation) => PutRows): Promise<void> => {
      signal.throwIfAborted();
      if (rows === undefined) return this.#record({ ...run, step });
      const request = { action: 'ingest', purpose: job.definition.purpose, correlationId: run.id, gone: signal } as const;
      await gate.invoke(caller, request, (invocation) => {
        const alerts = rows(invocation);
        invocation.describe({ template: 'step ? of ?', literals: [step.path, job.id], objectType: alerts.type });
        return invocation.submit({ kind: 'record-run', run: { ...run, step }, alerts });
      });
    };
    const steps = jobs.steps(job.id);
    const effect = await performWorkflow(job, { caller, run, steps, signal, progress, record });
    signal.throwIfAborted();
    if ('until' in effect) {
      const until = effect.until === null ? null : String(effect.until);
      return this.#record({ ...run, state: 'queued', until, step: effect.step });
    }
    return this.#record({ ...run, state: 'done', alerts: effect.alerts, result: effect.result });
  }

  async #lostRights(job: JobRecord, run: RunRecord, error: unknown): Promise<void> {
    const why = error instanceof ServiceError ? error.code : 'REL_ACL';
    const failed: RunRecord = { ...run, state: 'failed', reason: why };
    if (job.definition.once === true) return this.#record(failed);
    const { alertOf, warn } = this.#parts;
    try {
      await this.#tend(
        (invocation) => {
          const alerts = alertOf(invocation, job, run, why);
          return invocation.submit({ kind: 'record-run', run: failed, alerts });
        },
        { path: job.path, branch: job.branch },
      );
    } catch (refused) {
      if (!(refused instanceof ServiceError) || refused.code === 'REL_UNAVAILABLE') throw refused;
      warn(`the job ${job.id} is paused, and its owner has no alert: ${refused.code} ${refused.message}`);
      await this.#record(failed);
    }
    const pause = { kind: 'change-job', id: job.id, change: 'paused', reason: why } as const;
    await this.#tend((invocation) => invocation.submit(pause), this.#pathOf(job.id));
  }

  #record(run: RunRecord): Promise<void> {
    // Fails for a result that JSON can't say before anything is written.
    canonicalJson(run.result);
    return this.#tend((invocation) => invocation.submit({ kind: 'record-run', run, alerts: null }), this.#pathOf(run.job));
  }

  /** The records of a job lie where the job does: nobody else learns that it ran. */
  #pathOf(job: string | null): Pick<Caller, 'path'> {
    return { path: (job === null ? null : this.#parts.jobs.job(job)?.path) ?? null };
  }

  /** `at`: the path, and the branch, that are written to. */
  async #tend(act: (invocation: Invocation) => Promise<unknown>, at: Partial<Pick<JobRecord, 'path' | 'branch'>>): Promise<void> {
    const correlationId = this.#parts.ids.next();
    const request = { action: 'administer', purpose: null, correlationId, whileSuspended: true } as const;
    await this.#parts.gate.invoke({ ...caretaker, ...at }, request, act);
  }
}
