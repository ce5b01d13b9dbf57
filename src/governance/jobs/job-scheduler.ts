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

interface DueJob {
  readonly id: string;
  readonly from: bigint;
}

interface TimedJob {
  readonly record: JobRecord;
  readonly due: bigint | null;
}

/** The loop looks at the clock this often at least: it may be set. */
const schedulerTickMsMax = 30_000;
/** Looks at schedules end a slice this soon: the first one compiles what it runs, and may lose the processor to that for milliseconds. */
const schedulerSliceMs = 0.5;
/** So many are begun between two looks at all jobs. */
const dueJobsMax = 64;
const jobRestNs = 10_000_000_000n;
const instantOrNull = (text: string | null | undefined): bigint | null =>
  text === null || text === undefined ? null : BigInt(text);
const jobCaretaker = tenantlessCaller('annals', 'operator', 'internal');

export class JobScheduler {
  readonly #schedulerParts: JobSchedulerDependencies;
  readonly #scheduledLane: JobLane;
  /** By job; computed again only where its record is another one. */
  readonly #timedJobs = new Map<string, TimedJob>();
  readonly #runsUnderWay = new Map<string, Promise<void>>();
  /** Nanosecond before which a job is not begun again: its run could not be put on record. */
  readonly #restsUntil = new Map<string, bigint>();
  /** The last run of a path that judges rules: they do so one after the other, so that each sees the alerts of those before it. */
  readonly #judgingByPath = new Map<string | null, Promise<unknown>>();
  #jobsEpoch: number | null = null;
  /** Jobs that the last look found to be due and that have not begun, the longest due first. Those that are due since wait behind them. */
  #dueJobs: DueJob[] = [];
  /** The last look, where it found nothing that is due. */
  #lastLook: { readonly epoch: number; readonly next: bigint | null } | null = null;
  /** Whether something has happened since the loop looked last. */
  #hasNewJobs = true;
  #wakeScheduler: (() => void) | null = null;

  constructor(parts: JobSchedulerDependencies) {
    this.#schedulerParts = parts;
    this.#scheduledLane = { runningMax: parts.parallelMax };
    // The first look at the clock of a zone reads all zones, for tens of milliseconds: before anybody asks.
    for (const job of parts.jobs.all()) {
      if (job.definition.cron === null) continue;
      this.#jobDueAt(job);
      break;
    }
  }

  /** Until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#schedulerParts;
    while (!signal.aborted) {
      this.#hasNewJobs = false;
      const nextDueAt = await this.tick();
      if (this.#hasNewJobs) continue;
      const sleepMs = nextDueAt === null ? schedulerTickMsMax : Number((nextDueAt - clock.now()) / 1_000_000n) + 1;
      const wokenEarly = new AbortController();
      this.#wakeScheduler = () => wokenEarly.abort();
      await clock.sleep(Math.max(0, Math.min(sleepMs, schedulerTickMsMax)), AbortSignal.any([signal, wokenEarly.signal]));
      this.#wakeScheduler = null;
    }
  }

  /** A job was made, or a run has ended: the loop looks now. */
  look(): void {
    if (this.#schedulerParts.jobs.epoch !== this.#jobsEpoch) this.#stirScheduler();
  }

  #stirScheduler(): void {
    this.#hasNewJobs = true;
    this.#wakeScheduler?.();
  }

  /** When the next run of a job is due; null: none is. */
  next(id: string): bigint | null {
    const job = this.#schedulerParts.jobs.job(id);
    return job === undefined || job.state !== 'scheduled' || job.open !== null ? null : this.#jobDueAt(job);
  }

  /** Whether a run of the job is due and finds no place. */
  waits(job: JobRecord): boolean {
    const beginsAt = job.open === null ? this.#beginsAt(job) : null;
    return beginsAt !== null && beginsAt <= this.#schedulerParts.clock.now();
  }

  /** Begins what is due, as far as there are places. Resolves with the next instant at which something is; null: nothing is. */
  async tick(): Promise<bigint | null> {
    const { jobs, clock, parallelMax } = this.#schedulerParts;
    // A run that ends gives its place back, and the loop looks again.
    if (this.#runsUnderWay.size >= parallelMax) return null;
    const now = clock.now();
    const workSlices = this.#newSlices();
    if (this.#dueJobs.length === 0) {
      const nextDueAt = await this.#lookAtAllJobs(now, workSlices);
      if (this.#dueJobs.length === 0) return nextDueAt;
    }
    while (this.#dueJobs.length > 0 && this.#runsUnderWay.size < parallelMax) {
      const [{ id }] = this.#dueJobs.splice(0, 1) as [DueJob];
      // The beginning of a run is work of its own.
      await workSlices.next();
      const job = jobs.job(id);
      if (job !== undefined && !this.#isJudgingRules(job)) await this.#considerJob(id, now, workSlices);
    }
    // Those that are left are the longest due of then: with places left, all are looked at again.
    return this.#runsUnderWay.size < parallelMax ? now : null;
  }

  /** Finds the longest due, and when the next of the others is; null: none is. */
  async #lookAtAllJobs(now: bigint, workSlices: WorkSlices): Promise<bigint | null> {
    const { jobs } = this.#schedulerParts;
    const lastLook = this.#lastLook;
    if (lastLook?.epoch === jobs.epoch && (lastLook.next === null || lastLook.next > now)) return lastLook.next;
    this.#lastLook = null;
    const { epoch } = jobs;
    this.#jobsEpoch = epoch;
    let nextDueAt: bigint | null = null;
    const dueJobs: DueJob[] = [];
    for (const job of jobs.all()) {
      const beginsAt = this.#beginsAt(job);
      if (beginsAt !== null && beginsAt <= now) {
        // It would take a place only to wait there; the end of the other is looked at.
        if (this.#isJudgingRules(job)) continue;
        const dueOrdinal = dueJobs.findLastIndex((earlierDue) => earlierDue.from <= beginsAt) + 1;
        if (dueOrdinal < dueJobsMax) dueJobs.splice(dueOrdinal, 0, { id: job.id, from: beginsAt });
        dueJobs.length = Math.min(dueJobs.length, dueJobsMax);
      } else if (beginsAt !== null && (nextDueAt === null || beginsAt < nextDueAt)) nextDueAt = beginsAt;
      // The clock of a zone may take a millisecond where it is asked for the first time.
      if (workSlices.isOver()) await workSlices.next();
    }
    for (const id of this.#timedJobs.keys()) {
      if (jobs.job(id) === undefined) this.#timedJobs.delete(id);
      if (workSlices.isOver()) await workSlices.next();
    }
    this.#dueJobs = dueJobs;
    if (dueJobs.length === 0) this.#lastLook = { epoch, next: nextDueAt };
    return nextDueAt;
  }

  #newSlices(): WorkSlices {
    return new WorkSlices({ ...this.#schedulerParts, sliceMs: schedulerSliceMs });
  }

  /** Whether a job judges rules, and another one of its path does so now. */
  #isJudgingRules({ definition, path }: JobRecord): boolean {
    if (definition.run.rules === undefined) return false;
    for (const id of this.#runsUnderWay.keys()) {
      const runningJob = this.#schedulerParts.jobs.job(id);
      if (runningJob?.path === path && runningJob.definition.run.rules !== undefined) return true;
    }
    return false;
  }

  /** Begins what is due of one job now, whatever else waits: somebody asks for it. */
  async begin(id: string): Promise<void> {
    await this.#considerJob(id, this.#schedulerParts.clock.now(), this.#newSlices());
  }

  /** Null: a run of the job was begun, or none will be; else when the next one is. */
  async #considerJob(id: string, now: bigint, workSlices: WorkSlices): Promise<bigint | null> {
    const { jobs } = this.#schedulerParts;
    const job = jobs.job(id);
    const beginsAt = job === undefined ? null : this.#beginsAt(job);
    if (job === undefined || beginsAt === null || beginsAt > now) return beginsAt;
    if (job.open !== null) {
      // A run that an earlier process began: this one does not run it.
      const { until: _, ...openRun } = job.open;
      void this.#beginRun(job, {
        ...openRun,
        state: 'running',
        attempt: openRun.attempt + (openRun.state === 'running' ? 1 : 0),
      });
      return null;
    }
    const dueRuns = await workSlices.finish(dueAt(job, now, (priorJobId) => this.#jobDoneAt(priorJobId)));
    const laterDue = dueRuns === null ? await workSlices.finish(dueAfter(job, now)) : null;
    // Others had their turn meanwhile.
    if (jobs.job(id) !== job || this.#runsUnderWay.has(id)) return this.#considerJob(id, now, workSlices);
    if (dueRuns !== null) {
      void this.#beginRun(job, this.#newRunOf(job, dueRuns.instant, dueRuns.missed, now));
      return null;
    }
    this.#timedJobs.set(id, { record: job, due: laterDue });
    return laterDue;
  }

  /** Nanosecond from which a run of the job is to be begun, or begun again; null: none is. */
  #beginsAt(job: JobRecord): bigint | null {
    const { id, open, state, path, made } = job;
    if (this.#runsUnderWay.has(id) || (state !== 'scheduled' && open === null)) return null;
    const isQueued = open?.state === 'queued' && open.until !== undefined;
    const dueFrom = open === null ? this.#jobDueAt(job) : isQueued ? instantOrNull(open.until) : BigInt(open.due);
    if (dueFrom === null || made < this.#schedulerParts.beginning(path)) return null;
    const restsUntil = this.#restsUntil.get(id);
    return restsUntil !== undefined && restsUntil > dueFrom ? restsUntil : dueFrom;
  }

  #jobDueAt(job: JobRecord): bigint | null {
    const doneAt = (id: string): bigint | null => this.#jobDoneAt(id);
    // It depends on the runs of another job.
    if (job.definition.after !== null) return nextDue(job, doneAt);
    let timedJob = this.#timedJobs.get(job.id);
    if (timedJob?.record !== job) this.#timedJobs.set(job.id, (timedJob = { record: job, due: nextDue(job, doneAt) }));
    return timedJob.due;
  }

  /** Begins a run now, beside those that are due. REL_CONFLICT while one is under way. */
  runNow(job: JobRecord): Promise<void> {
    if (job.open !== null || this.#runsUnderWay.has(job.id))
      throw new ServiceError('REL_CONFLICT', 'a run of the job is under way');
    const now = this.#schedulerParts.clock.now();
    return this.#beginRun(job, this.#newRunOf(job, now, 0, now));
  }

  /** Ends a run that waits, or that is due and finds no place. */
  async endWaiting(job: JobRecord, reason: string): Promise<void> {
    const { open } = job;
    if (open?.state === 'queued') {
      const { until: _, ...waitingRun } = open;
      return this.#recordRun({ ...waitingRun, state: 'cancelled', reason });
    }
    if (!this.waits(job)) return;
    const now = this.#schedulerParts.clock.now();
    const dueRuns = await this.#newSlices().finish(dueAt(job, now, (other) => this.#jobDoneAt(other)));
    if (dueRuns === null || this.#schedulerParts.jobs.job(job.id) !== job || this.#runsUnderWay.has(job.id)) return;
    await this.#recordRun({ ...this.#newRunOf(job, dueRuns.instant, dueRuns.missed, now), state: 'cancelled', reason });
  }

  /** A step that a run waits at has ended: the run goes on now. */
  async goOn({ id, open }: JobRecord, step: WorkflowStep): Promise<void> {
    if (open?.state !== 'queued') throw new ServiceError('REL_CONFLICT', 'the run does not wait');
    await this.#recordRun({ ...open, until: String(this.#schedulerParts.clock.now()), step });
    await this.begin(id);
  }

  /** The run of a job that is under way in this process; undefined where none is. */
  underWay(id: string): Promise<void> | undefined {
    return this.#runsUnderWay.get(id);
  }

  /** Begins what is due, and resolves when no run is under way and none is due. */
  async settle(): Promise<void> {
    for (await this.tick(); this.#runsUnderWay.size > 0; await this.tick()) await Promise.all(this.#runsUnderWay.values());
  }

  #jobDoneAt(id: string): bigint | null {
    const lastRun = this.#schedulerParts.jobs.job(id)?.last ?? null;
    return lastRun === null || lastRun.state !== 'done' ? null : BigInt(lastRun.basis);
  }

  #newRunOf({ id }: JobRecord, due: bigint, missed: number, now: bigint): RunRecord {
    return {
      id: this.#schedulerParts.ids.next(),
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

  #beginRun(job: JobRecord, run: RunRecord): Promise<void> {
    this.#restsUntil.delete(job.id);
    const jobRun = this.#runScheduled(job, run)
      .catch((error: unknown) => {
        // A drain, or a disk that is full: the run is on record as begun, and is begun again later.
        this.#restsUntil.set(job.id, this.#schedulerParts.clock.now() + jobRestNs);
        if (error instanceof ServiceError) return;
        this.#schedulerParts.warn(
          `the job ${job.id} has failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
        );
      })
      .finally(() => {
        this.#runsUnderWay.delete(job.id);
        this.#lastLook = null;
        this.#stirScheduler();
      });
    this.#runsUnderWay.set(job.id, jobRun);
    return jobRun;
  }

  async #runScheduled(job: JobRecord, begunRun: RunRecord): Promise<void> {
    // A workflow that gets on is not given up.
    const reachedAttempt = [...this.#schedulerParts.jobs.steps(job.id).values()].at(-1)?.attempt ?? 1;
    if (begunRun.attempt - reachedAttempt >= attemptsMax)
      return this.#recordRun({ ...begunRun, state: 'failed', reason: 'too_many_attempts' });
    let caller: Caller;
    try {
      caller = this.#schedulerParts.absentCaller({ ...job.owner, path: job.path, branch: job.branch });
    } catch (error) {
      return this.#pauseForLostRights(job, begunRun, error);
    }
    const { workflow: workflowName } = job.definition.run;
    const workflowJobId =
      workflowName === undefined ? undefined : (begunRun.workflow ?? this.#schedulerParts.workflowOf(workflowName, job));
    if (workflowJobId === null) return this.#recordRun({ ...begunRun, state: 'failed', reason: 'REL_NOT_FOUND' });
    const run: RunRecord = workflowJobId === undefined ? begunRun : { ...begunRun, workflow: workflowJobId };
    await this.#recordRun(run);
    const runTimeout = new AbortController();
    const waitsEnd = new AbortController();
    let timeoutWatch: Promise<void> = Promise.resolve();
    let runFailure: unknown = null;
    try {
      const { ended } = this.#schedulerParts.runner.start(
        {
          id: run.id,
          kind: 'scheduled',
          about: job.definition.name,
          unit: 'rows',
          lane: this.#scheduledLane,
          onDrain: 'cancel',
          run: ({ signal, progress }) => {
            // It counts from its turn.
            timeoutWatch = this.#schedulerParts.clock.sleep(job.definition.timeout_secs * 1000, waitsEnd.signal).then(() => {
              if (!waitsEnd.signal.aborted) runTimeout.abort(new ServiceError('REL_TIMEOUT', 'timed_out'));
            });
            return this.#performRun(job, run, caller, AbortSignal.any([signal, runTimeout.signal]), progress);
          },
        },
        caller,
      );
      await ended;
    } catch (error) {
      runFailure = error;
    } finally {
      waitsEnd.abort();
    }
    await timeoutWatch;
    if (runFailure === null) return;
    if (runTimeout.signal.aborted) return this.#recordRun({ ...run, state: 'failed', reason: 'timed_out' });
    if (!(runFailure instanceof ServiceError)) {
      await this.#recordRun({ ...run, state: 'failed', reason: 'REL_INTERNAL' });
      throw runFailure;
    }
    if (runFailure.code === 'REL_UNAVAILABLE') throw runFailure;
    const failedState = runFailure.code === 'REL_CANCELLED' ? 'cancelled' : 'failed';
    if (runFailure.code === 'REL_ACL' || runFailure.code === 'REL_TENANT_SUSPENDED')
      return this.#pauseForLostRights(job, run, runFailure);
    return this.#recordRun({ ...run, state: failedState, reason: runFailure.code });
  }

  async #performRun(
    job: JobRecord,
    run: RunRecord,
    caller: Caller,
    signal: AbortSignal,
    progress: JobWork['progress'],
  ): Promise<void> {
    signal.throwIfAborted();
    if (run.workflow !== undefined) return this.#performSteps(job, run, caller, signal, progress);
    if (job.definition.run.retention !== undefined) {
      const result = await this.#schedulerParts.performRetention(job, { caller, run, signal, progress });
      return this.#recordRun({ ...run, state: 'done', result });
    }
    if (job.definition.run.rules === undefined) return this.#performOnce(job, run, caller, signal, progress);
    const earlierJudging = this.#judgingByPath.get(job.path) ?? Promise.resolve();
    const ownJudging = earlierJudging.then(() => this.#performOnce(job, run, caller, signal, progress));
    const judgingOver: Promise<void> = ownJudging
      .catch(() => undefined)
      .then(() => {
        if (this.#judgingByPath.get(job.path) === judgingOver) this.#judgingByPath.delete(job.path);
      });
    this.#judgingByPath.set(job.path, judgingOver);
    // One that is cancelled while it waits ends now.
    const runAborted = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
    await Promise.race([ownJudging, runAborted]);
  }

  async #performOnce(
    job: JobRecord,
    run: RunRecord,
    caller: Caller,
    signal: AbortSignal,
    progress: JobWork['progress'],
  ): Promise<void> {
    signal.throwIfAborted();
    const request = { action: 'query', purpose: job.definition.purpose, correlationId: run.id, gone: signal } as const;
    const { isWritten, result } = await this.#schedulerParts.gate.invoke(caller, request, async (invocation) => {
      invocation.describe({ template: 'job ?', literals: [job.id] });
      const jobEffect = await this.#schedulerParts.perform(job, {
        invocation,
        caller,
        run: run.id,
        instant: BigInt(run.basis),
        signal,
        progress,
      });
      signal.throwIfAborted();
      const isWritten = jobEffect.rows !== null && jobEffect.rows.rows.length > 0;
      if (isWritten) {
        const doneRun: RunRecord = { ...run, state: 'done', alerts: jobEffect.alerts, result: jobEffect.result };
        await invocation.submit({ kind: 'record-run', run: doneRun, alerts: jobEffect.rows });
      }
      return { isWritten, result: jobEffect.result };
    });
    if (!isWritten) await this.#recordRun({ ...run, state: 'done', result });
  }

  async #performSteps(
    job: JobRecord,
    run: RunRecord,
    caller: Caller,
    signal: AbortSignal,
    progress: JobWork['progress'],
  ): Promise<void> {
    const { gate, jobs, performWorkflow } = this.#schedulerParts;
    const recordStep = async (step: WorkflowStep, alertRowsOf?: (invocation: Invocation) => PutRows): Promise<void> => {
      signal.throwIfAborted();
      if (alertRowsOf === undefined) return this.#recordRun({ ...run, step });
      const request = { action: 'ingest', purpose: job.definition.purpose, correlationId: run.id, gone: signal } as const;
      await gate.invoke(caller, request, (invocation) => {
        const alerts = alertRowsOf(invocation);
        invocation.describe({ template: 'step ? of ?', literals: [step.path, job.id], objectType: alerts.type });
        return invocation.submit({ kind: 'record-run', run: { ...run, step }, alerts });
      });
    };
    const steps = jobs.steps(job.id);
    const workflowEffect = await performWorkflow(job, { caller, run, steps, signal, progress, record: recordStep });
    signal.throwIfAborted();
    if ('until' in workflowEffect) {
      const waitsUntil = workflowEffect.until === null ? null : String(workflowEffect.until);
      return this.#recordRun({ ...run, state: 'queued', until: waitsUntil, step: workflowEffect.step });
    }
    return this.#recordRun({ ...run, state: 'done', alerts: workflowEffect.alerts, result: workflowEffect.result });
  }

  async #pauseForLostRights(job: JobRecord, run: RunRecord, error: unknown): Promise<void> {
    const lostRightsCode = error instanceof ServiceError ? error.code : 'REL_ACL';
    const failedRun: RunRecord = { ...run, state: 'failed', reason: lostRightsCode };
    if (job.definition.once === true) return this.#recordRun(failedRun);
    const { alertOf, warn } = this.#schedulerParts;
    try {
      await this.#tendJob(
        (invocation) => {
          const alerts = alertOf(invocation, job, run, lostRightsCode);
          return invocation.submit({ kind: 'record-run', run: failedRun, alerts });
        },
        { path: job.path, branch: job.branch },
      );
    } catch (alertRefusal) {
      if (!(alertRefusal instanceof ServiceError) || alertRefusal.code === 'REL_UNAVAILABLE') throw alertRefusal;
      warn(`the job ${job.id} is paused, and its owner has no alert: ${alertRefusal.code} ${alertRefusal.message}`);
      await this.#recordRun(failedRun);
    }
    const pauseCommand = { kind: 'change-job', id: job.id, change: 'paused', reason: lostRightsCode } as const;
    await this.#tendJob((invocation) => invocation.submit(pauseCommand), this.#pathOf(job.id));
  }

  #recordRun(run: RunRecord): Promise<void> {
    // Fails for a result that JSON can't say before anything is written.
    canonicalJson(run.result);
    return this.#tendJob((invocation) => invocation.submit({ kind: 'record-run', run, alerts: null }), this.#pathOf(run.job));
  }

  /** The records of a job lie where the job does: nobody else learns that it ran. */
  #pathOf(job: string | null): Pick<Caller, 'path'> {
    return { path: (job === null ? null : this.#schedulerParts.jobs.job(job)?.path) ?? null };
  }

  /** `jobScope`: the path, and the branch, that are written to. */
  async #tendJob(
    tendingAct: (invocation: Invocation) => Promise<unknown>,
    jobScope: Partial<Pick<JobRecord, 'path' | 'branch'>>,
  ): Promise<void> {
    const correlationId = this.#schedulerParts.ids.next();
    const request = { action: 'administer', purpose: null, correlationId, whileSuspended: true } as const;
    await this.#schedulerParts.gate.invoke({ ...jobCaretaker, ...jobScope }, request, tendingAct);
  }
}
