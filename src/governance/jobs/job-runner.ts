/**
 * Long work that callers started, in one list: the caller, the progress, and a way to cancel it. A job runs within an invocation
 * of its own, which its starter has entered, so that it is admitted, recorded and waited for as any other; here are only its
 * turn, its progress and its cancellation. Progress is memory; the beginning and the end of work that somebody asked for are entries, so
 * that a start knows them: work that it finds begun was cut off, and is begun again where that takes nothing but its record. Nothing of any
 * row is in the list.
 *
 *   queued -> running -> done | failed | cancelled
 */
import { ServiceError } from '../../errors.ts';
import type { Json } from '../../log/values/canonical-json.ts';
import { attemptsMax, type RunRecord, type Work, type WorkRecord, type WorkStatement } from '../../projections/jobs/job.ts';
import { administers } from '../authorization/access-rules.ts';
import { type Caller, covers, sees } from '../caller.ts';

export type JobKind =
  | 'scheduled'
  | 'ingest'
  | 'backup'
  | 'restore'
  | 'compaction'
  | 'reindex'
  | 'rebuild'
  | 'graph'
  | 'embedding';
export type JobState = 'queued' | 'running' | 'done' | 'failed' | 'cancelled';
export type JobUnit = 'rows' | 'bytes' | 'segments' | 'indexes' | 'tables' | 'edges';

export interface JobView {
  readonly id: string;
  readonly kind: JobKind;
  /** A type or the name of a backup; null where the kind says it all. */
  readonly about: string | null;
  readonly state: JobState;
  readonly unit: JobUnit;
  readonly done: number;
  /** Null while it is not known. */
  readonly total: number | null;
  readonly principal: string;
  /** Organisation path of the caller. */
  readonly path: string | null;
  /** Nanoseconds. */
  readonly queuedAt: bigint;
  readonly startedAt: bigint | null;
  readonly finishedAt: bigint | null;
  /** The error that ended a failed job. */
  readonly code: string | null;
  /** Counts and references, as they are on record. */
  readonly result: Json;
}

/** The environment of a running job. */
export interface JobWork {
  /** Aborted with a ServiceError: the job ends with it as soon as it can. */
  readonly signal: AbortSignal;
  /** `total` null: not known yet. */
  progress(done: number, total: number | null): void;
}

/** Jobs of a lane run so many at a time; the others wait in their order. */
export interface JobLane {
  readonly runningMax: number;
}

export interface JobSpec<T> {
  /** A new one where it has none. */
  readonly id?: string;
  /** The first one unless said otherwise. */
  readonly attempt?: number;
  readonly kind: JobKind;
  readonly about?: string;
  readonly unit: JobUnit;
  /** Absent: it runs at once. */
  readonly lane?: JobLane;
  /** A drain waits for promised jobs and cancels those that can be started again. */
  readonly onDrain: 'wait' | 'cancel';
  /** The statement that the work is of, where a start may run it again. */
  readonly statement?: Pick<WorkStatement, 'sql' | 'dialect' | 'purpose'>;
  run(work: JobWork): Promise<T>;
  /** Counts and references to keep on record: no text of any row. */
  resultOf?(result: T): Json;
}

export interface StartedJob<T> {
  readonly view: JobView;
  readonly ended: Promise<T>;
}

/** Kinds that are on record elsewhere, or that every start does again by itself. */
const unrecordedKinds: ReadonlySet<JobKind> = new Set(['scheduled', 'rebuild', 'embedding']);
/** The reason of work that an end of the process cut off and that nothing but its request can begin: it is gone, and asks again. */
const cutOffReason = 'cut_off';
/** Work that is begun again is on record as queued, and takes its turn. */
const againLane: JobLane = { runningMax: 1 };

/** Jobs that have ended can be asked for while there are not more of them. */
const endedJobsMax = 2_000;

interface Job {
  /** The only part that leaves this file. */
  readonly view: { -readonly [K in keyof JobView]: JobView[K] };
  readonly caller: Pick<Caller, 'credential' | 'tenant' | 'principal' | 'path'>;
  readonly attempt: number;
  readonly statement: WorkStatement | null;
  readonly ending: AbortController;
  readonly onDrain: 'wait' | 'cancel';
}

/** Under which id, as which attempt and in which lane work is begun again. */
export type Again = Required<Pick<JobSpec<unknown>, 'id' | 'attempt' | 'lane'>>;

/** Begins work that was cut off. Rejects with REL_ACL where whoever asked for it has lost the right to. */
export type BeginAgain = (as: Again) => Promise<unknown>;

interface WaitingJob {
  readonly job: Job;
  readonly go: () => void;
}

interface LaneState {
  running: number;
  readonly waiting: WaitingJob[];
}

export interface JobRunnerDependencies {
  readonly now: () => bigint;
  readonly newId: () => string;
  /** Puts work on record. */
  readonly record: (run: RunRecord & { readonly work: Work }, at: { readonly path: string | null }) => Promise<void>;
  /** Work that is on record, in the order in which it was asked for; of tenants that are there. */
  readonly listRecorded: () => Iterable<WorkRecord>;
  /** One line for the operator. */
  readonly warn: (line: string) => void;
}

export class JobRunner {
  readonly #jobRunnerParts: JobRunnerDependencies;
  /** In the order in which they were asked for. */
  readonly #runnerJobs = new Map<string, Job>();
  readonly #endedJobIds: string[] = [];
  readonly #laneStates = new Map<JobLane, LaneState>();
  #isDraining = false;

  constructor(parts: JobRunnerDependencies) {
    this.#jobRunnerParts = parts;
  }

  /** Throws REL_UNAVAILABLE while the store drains. Within the caller's invocation, which must last as long as the job. */
  start<T>(jobSpec: JobSpec<T>, jobAsker: Caller): StartedJob<T> {
    if (this.#isDraining) throw drainingError();
    const { credential, tenant, principal, path, tokenId, branch } = jobAsker;
    const { kind, about = null, unit, onDrain, attempt = 1 } = jobSpec;
    const workStatement = jobSpec.statement === undefined ? null : { ...jobSpec.statement, token: tokenId, branch };
    const jobView: Job['view'] = {
      id: jobSpec.id ?? this.#jobRunnerParts.newId(),
      kind,
      about,
      state: 'queued',
      unit,
      done: 0,
      total: null,
      principal,
      path,
      queuedAt: this.#jobRunnerParts.now(),
      startedAt: null,
      finishedAt: null,
      code: null,
      result: null,
    };
    const caller = { credential, tenant, principal, path };
    const job: Job = { view: jobView, caller, attempt, statement: workStatement, ending: new AbortController(), onDrain };
    this.#runnerJobs.set(jobView.id, job);
    return { view: jobView, ended: this.#runJob(jobSpec, job) };
  }

  /** Jobs of a lane that wait for their turn. */
  waiting(lane: JobLane): number {
    return this.#laneStates.get(lane)?.waiting.length ?? 0;
  }

  /** The newest first: a caller's own, an administrator's of the tenant, and all of them for who runs the store. */
  list(caller: Caller): readonly JobView[] {
    const recordedJobs = [...this.#jobRunnerParts.listRecorded()].flatMap((work) =>
      !this.#runnerJobs.has(work.run.id) && isShownTo(caller, workOwnerOf(work)) ? recordedJobView(work) : [],
    );
    const runningJobs = [...this.#runnerJobs.values()].flatMap((job) => (isShownTo(caller, job.caller) ? job.view : []));
    return [...recordedJobs, ...runningJobs].reverse();
  }

  /**
   * Work that an earlier process has begun and not ended is begun again, one after the other; where that is not to be, or was tried often
   * enough, it has failed.
   */
  async takeUp(beginAgainOf: (work: WorkRecord) => BeginAgain | null): Promise<void> {
    const jobsToBegin: (readonly [WorkRecord, BeginAgain])[] = [];
    for (const recordedWork of this.#jobRunnerParts.listRecorded()) {
      const { run } = recordedWork;
      if (run.work.finished !== null || this.#runnerJobs.has(run.id)) continue;
      const beginAgain = beginAgainOf(recordedWork);
      if (beginAgain === null) await this.#endCutOffJob(recordedWork, cutOffReason);
      else if (run.attempt >= attemptsMax) await this.#endCutOffJob(recordedWork, 'too_many_attempts');
      else jobsToBegin.push([recordedWork, beginAgain]);
    }
    for (const [recordedWork, how] of jobsToBegin) await this.#beginJobAgain(recordedWork, how);
  }

  async #beginJobAgain(recordedWork: WorkRecord, begin: BeginAgain): Promise<void> {
    const { id, attempt, work } = recordedWork.run;
    try {
      await begin({ id, attempt: attempt + 1, lane: againLane });
    } catch (error) {
      // Its end is on record where it has begun; one that the drain keeps from beginning is for the next start.
      if (!(error instanceof ServiceError)) this.#jobRunnerParts.warn(`the ${work.kind} ${id} has failed: ${String(error)}`);
      else if (!this.#runnerJobs.has(id) && error.code !== 'REL_UNAVAILABLE') await this.#endCutOffJob(recordedWork, error.code);
    }
  }

  async #endCutOffJob({ run, path }: WorkRecord, reason: string): Promise<void> {
    const { statement: _, ...workFacts } = run.work;
    const finishedWork = { ...workFacts, finished: String(this.#jobRunnerParts.now()) };
    await this.#jobRunnerParts.record({ ...run, state: 'failed', reason, work: finishedWork }, { path });
  }

  /** The same REL_NOT_FOUND for a job that does not exist and for one that the caller may not see. */
  find(id: string, caller: Caller): JobView {
    if (this.#runnerJobs.has(id)) return this.#requireJob(id, caller).view;
    for (const work of this.#jobRunnerParts.listRecorded())
      if (work.run.id === id && isShownTo(caller, workOwnerOf(work))) return recordedJobView(work);
    throw new ServiceError('REL_NOT_FOUND', 'no such job');
  }

  /** Ends with REL_CANCELLED as soon as it can; its effects so far stay. REL_CONFLICT for one that has ended. */
  cancel(id: string, caller: Caller): JobView {
    const jobView = this.find(id, caller);
    if (jobView.finishedAt !== null) throw new ServiceError('REL_CONFLICT', `the job has ended: it is ${jobView.state}`);
    const { view, ending } = this.#requireJob(id, caller);
    ending.abort(new ServiceError('REL_CANCELLED', `the job was cancelled by ${caller.principal}`));
    return view;
  }

  /** Ends the job of this id, if it runs, as soon as it can: what asked for it is there no more. */
  stop(id: string): void {
    const job = this.#runnerJobs.get(id);
    if (job !== undefined && job.view.finishedAt === null)
      job.ending.abort(new ServiceError('REL_CANCELLED', 'the work is asked for no more'));
  }

  /** Takes no more jobs, and cancels those that were not promised to a caller. */
  drain(): void {
    this.#isDraining = true;
    for (const { view, onDrain, ending } of this.#runnerJobs.values()) {
      if (view.finishedAt === null && onDrain === 'cancel') ending.abort(drainingError());
    }
  }

  #requireJob(id: string, caller: Caller): Job {
    const job = this.#runnerJobs.get(id);
    if (job === undefined || !isShownTo(caller, job.caller)) throw new ServiceError('REL_NOT_FOUND', 'no such job');
    return job;
  }

  async #runJob<T>({ lane, run, resultOf }: JobSpec<T>, job: Job): Promise<T> {
    const { signal } = job.ending;
    const { view } = job;
    // The work does not wait for its first entry, and its end does.
    const startRecorded = this.#recordJob(job, lane === undefined ? 'running' : 'queued');
    try {
      if (lane !== undefined) await this.#waitForLane(lane, job);
      try {
        signal.throwIfAborted();
        view.state = 'running';
        view.startedAt = this.#jobRunnerParts.now();
        const progress = (done: number, total: number | null): void => {
          view.done = done;
          view.total = total;
        };
        const jobResult = await run({ signal, progress });
        view.state = 'done';
        view.done = view.total ?? view.done;
        view.result = resultOf?.(jobResult) ?? null;
        return jobResult;
      } finally {
        if (lane !== undefined) this.#passLaneOn(lane);
      }
    } catch (error) {
      const isCancelled = signal.aborted;
      view.state = isCancelled ? 'cancelled' : 'failed';
      // However the work noticed that it was to end, it says why.
      const cancelReason = signal.reason as ServiceError;
      const jobError = isCancelled
        ? new ServiceError(cancelReason.code, cancelReason.message, error instanceof ServiceError ? error.facts : {})
        : error;
      view.code = jobError instanceof ServiceError ? jobError.code : 'REL_INTERNAL';
      throw jobError;
    } finally {
      view.finishedAt = this.#jobRunnerParts.now();
      await startRecorded;
      await this.#recordJob(job, view.state);
      this.#endedJobIds.push(view.id);
      if (this.#endedJobIds.length > endedJobsMax) this.#runnerJobs.delete(this.#endedJobIds.shift()!);
    }
  }

  /** A disk that is full keeps nobody from reading: work that can not be put on record is in memory alone, and the operator hears of it. */
  async #recordJob({ view, caller, attempt, statement }: Job, state: JobState): Promise<void> {
    const { id, kind, about, unit, queuedAt, startedAt, finishedAt, code, result } = view;
    if (unrecordedKinds.has(kind)) return;
    const { principal, credential, tenant, path } = caller;
    const textOf = (instant: bigint | null): string | null => (instant === null ? null : String(instant));
    const jobTimes = { started: textOf(startedAt), finished: textOf(finishedAt) };
    const statementToRepeat = statement === null || finishedAt !== null ? {} : { statement };
    const run = {
      id,
      job: null,
      group: null,
      state,
      attempt,
      due: String(queuedAt),
      basis: String(startedAt ?? queuedAt),
      alerts: 0,
      reason: code,
      missed: 0,
      result,
      work: { kind, about, unit, principal, credential, tenant, ...jobTimes, ...statementToRepeat },
    } as const;
    try {
      await this.#jobRunnerParts.record(run, { path });
    } catch (error) {
      const recordFailure = error instanceof Error ? error.message : String(error);
      this.#jobRunnerParts.warn(`the ${kind} ${id} is not on record as ${state}: ${recordFailure}`);
    }
  }

  /** Resolves with a place in the lane; one that was cancelled while it waited gets its place at once, and gives it back. */
  async #waitForLane(lane: JobLane, job: Job): Promise<void> {
    const laneState = this.#laneStates.get(lane) ?? { running: 0, waiting: [] };
    this.#laneStates.set(lane, laneState);
    if (laneState.running < lane.runningMax) {
      laneState.running++;
      return;
    }
    await new Promise<void>((resolve) => {
      const waitingJob = { job, go: resolve };
      laneState.waiting.push(waitingJob);
      job.ending.signal.addEventListener('abort', () => {
        const waitingAt = laneState.waiting.indexOf(waitingJob);
        if (waitingAt < 0) return;
        laneState.waiting.splice(waitingAt, 1);
        laneState.running++;
        resolve();
      });
    });
  }

  /** Hands the slot to the next job without a release, so that none comes in between. */
  #passLaneOn(lane: JobLane): void {
    const laneState = this.#laneStates.get(lane)!;
    const nextWaiting = laneState.running > lane.runningMax ? undefined : laneState.waiting.shift();
    if (nextWaiting === undefined) laneState.running--;
    else nextWaiting.go();
  }
}

/** Whether a caller asked for something, or looks after who did. */
export function isShownTo(caller: Caller, owner: Pick<Caller, 'principal' | 'credential' | 'tenant' | 'path'>): boolean {
  if (administers(caller) && (caller.credential !== 'token' || caller.tenant === null)) return true;
  if (administers(caller)) return owner.path !== null && covers(caller.tenant!, owner.path);
  const { principal, credential, tenant } = owner;
  return (
    caller.principal === principal &&
    caller.credential === credential &&
    caller.tenant === tenant &&
    sees(caller.path, owner.path)
  );
}

function workOwnerOf({ run, path }: WorkRecord): Pick<Caller, 'principal' | 'credential' | 'tenant' | 'path'> {
  const { principal, credential, tenant } = run.work;
  return { principal, credential: credential as Caller['credential'], tenant, path };
}

function recordedJobView({ run, path }: WorkRecord): JobView {
  const { kind, about, unit, principal, started, finished } = run.work;
  return {
    id: run.id,
    kind: kind as JobKind,
    about,
    state: run.state,
    unit: unit as JobUnit,
    done: 0,
    total: null,
    principal,
    path,
    queuedAt: BigInt(run.due),
    startedAt: started === null ? null : BigInt(started),
    finishedAt: finished === null ? null : BigInt(finished),
    code: run.reason,
    result: run.result,
  };
}

function drainingError(): ServiceError {
  return new ServiceError('REL_UNAVAILABLE', 'the service is draining');
}
