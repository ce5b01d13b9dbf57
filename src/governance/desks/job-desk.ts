/**
 * Scheduled jobs as callers create, see and change them. A caller sees its own jobs, an administrator those of the tenant, the
 * operator of the store all of them.
 */
import type { Clock, Ids } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import { type JobDefinition, type JobRecord, nameKey } from '../../projections/jobs/job.ts';
import type { Caller } from '../caller.ts';
import type { Invocation } from '../gate-contract.ts';
import { isShownTo, type JobRunner, type JobView } from '../jobs/job-runner.ts';
import { checkSchedule } from '../jobs/job-schedule.ts';
import type { JobScheduler } from '../jobs/job-scheduler.ts';

export interface JobDeskDependencies {
  readonly jobs: {
    all(): Iterable<JobRecord>;
    job(id: string): JobRecord | undefined;
    namesOf(path: string | null): ReadonlyMap<string, string>;
  };
  readonly scheduler: JobScheduler;
  readonly runner: JobRunner;
  readonly clock: Clock;
  readonly ids: Pick<Ids, 'next'>;
  readonly beginning: (path: string | null) => bigint;
}

/** How long whoever asks for a run waits for it. */
const runAwaitedMs = 10_000;

export class JobDesk {
  readonly #jobDeskParts: JobDeskDependencies;

  constructor(parts: JobDeskDependencies) {
    this.#jobDeskParts = parts;
  }

  /** The newest first. */
  list(caller: Caller): readonly JobRecord[] {
    return [...this.#jobDeskParts.jobs.all()].filter((job) => this.#isJobShown(job, caller)).reverse();
  }

  /** The same REL_NOT_FOUND for a job that does not exist and for one that the caller may not see; null: it is no scheduled job. */
  find(id: string, caller: Caller): JobRecord | null {
    const job = this.#jobDeskParts.jobs.job(id);
    return job === undefined || !this.#isJobShown(job, caller) ? null : job;
  }

  /** Nanosecond of the next run; null: none is due. */
  next(id: string): bigint | null {
    return this.#jobDeskParts.scheduler.next(id);
  }

  /** Whether a run is due and finds no place. */
  waits(job: JobRecord): boolean {
    return this.#jobDeskParts.scheduler.waits(job);
  }

  /** The run that is under way in this process. */
  progress({ open: openRun }: JobRecord, caller: Caller): JobView | null {
    if (openRun === null) return null;
    return this.#jobDeskParts.runner.list(caller).find(({ id }) => id === openRun.id) ?? null;
  }

  /** Makes a job; its first run, where that is due at once, is waited for a while. */
  async make(invocation: Invocation, definition: JobDefinition): Promise<JobRecord> {
    checkSchedule(definition);
    const { jobs, ids, scheduler } = this.#jobDeskParts;
    const { after } = definition;
    if (after !== null && this.find(after, invocation.caller) === null)
      throw new ServiceError('REL_NOT_FOUND', 'after: there is no such job');
    invocation.describe({ template: 'job ?', literals: [definition.name] });
    const jobOwner = { credential: 'none', token: null } as const;
    const jobPut = await invocation.submit({ kind: 'put-job', id: ids.next(), definition, owner: jobOwner }, { sync: true });
    const madeJobId = jobPut.ids[0]!;
    await scheduler.begin(madeJobId);
    await this.awaitRun(madeJobId);
    return jobs.job(madeJobId)!;
  }

  /** Makes a job in place of the one of its name, and waits for its first run a while. */
  async replace(invocation: Invocation, definition: JobDefinition): Promise<JobRecord> {
    const { jobs, ids, scheduler } = this.#jobDeskParts;
    const replacedJob = this.findJob(invocation.caller, nameKey('', definition));
    const jobOwner = { credential: 'none', token: null } as const;
    const putJobCommand = { kind: 'put-job', id: ids.next(), definition, owner: jobOwner, replaces: true } as const;
    const replacingJobId = (await invocation.submit(putJobCommand, { sync: true })).ids[0]!;
    if (replacedJob !== null && replacedJob.id !== replacingJobId) this.#stopJobRun(replacedJob.id);
    await scheduler.begin(replacingJobId);
    await this.awaitRun(replacingJobId);
    return jobs.job(replacingJobId)!;
  }

  /** The job of the caller's own path that has this key among those of the path, whoever made it; null: there is none. */
  findJob({ path }: Caller, key: string): JobRecord | null {
    const { jobs, beginning } = this.#jobDeskParts;
    const job = jobs.job(jobs.namesOf(path).get(key) ?? '');
    return job === undefined || job.made < beginning(path) ? null : job;
  }

  /** Ends a job that its owner shares with others of the path. */
  async endNamed(invocation: Invocation, { id }: JobRecord): Promise<void> {
    await invocation.submit({ kind: 'change-job', id, change: 'ended', reason: null }, { sync: true });
    this.#stopJobRun(id);
    this.#jobDeskParts.scheduler.look();
  }

  /** The run that is under way, if any, ends. */
  #stopJobRun(id: string): void {
    const { open: openRun } = this.#jobDeskParts.jobs.job(id)!;
    if (openRun !== null) this.#jobDeskParts.runner.stop(openRun.id);
  }

  /** `run`: now, beside its schedule. */
  async run(invocation: Invocation, id: string): Promise<JobRecord> {
    const job = this.#requireJob(id, invocation.caller);
    if (job.state === 'ended') throw new ServiceError('REL_CONFLICT', 'the job has ended');
    invocation.describe({ template: 'run job ?', literals: [id] });
    invocation.checkInspects();
    void this.#jobDeskParts.scheduler.runNow(job);
    await this.awaitRun(id);
    return this.#jobDeskParts.jobs.job(id)!;
  }

  async change(invocation: Invocation, id: string, change: 'paused' | 'resumed' | 'ended'): Promise<JobRecord> {
    this.#requireJob(id, invocation.caller);
    invocation.describe({ template: `${change} job ?`, literals: [id] });
    await invocation.submit({ kind: 'change-job', id, change, reason: null }, { sync: true });
    if (change === 'ended') await this.#cancelJobRun(id, invocation.caller);
    this.#jobDeskParts.scheduler.look();
    return this.#jobDeskParts.jobs.job(id)!;
  }

  /** Ends the run that is under way, if any, within a second; effects of it are there whole, or not at all. */
  async cancel(invocation: Invocation, id: string): Promise<JobRecord> {
    this.#requireJob(id, invocation.caller);
    invocation.describe({ template: 'cancel job ?', literals: [id] });
    invocation.checkInspects();
    if (await this.#cancelJobRun(id, invocation.caller)) await this.awaitRun(id);
    return this.#jobDeskParts.jobs.job(id)!;
  }

  async #cancelJobRun(id: string, caller: Caller): Promise<boolean> {
    const job = this.#jobDeskParts.jobs.job(id)!;
    const { open: openRun } = job;
    if ((openRun === null || openRun.state === 'queued') && this.#jobDeskParts.scheduler.underWay(id) === undefined)
      await this.#jobDeskParts.scheduler.endWaiting(job, 'REL_CANCELLED');
    const runView =
      openRun === null ? undefined : this.#jobDeskParts.runner.list(caller).find((jobView) => jobView.id === openRun.id);
    if (runView === undefined || runView.finishedAt !== null) return false;
    this.#jobDeskParts.runner.cancel(runView.id, caller);
    return true;
  }

  /** Until the run that is under way, if any, has ended or waits; ten seconds at most. */
  async awaitRun(id: string): Promise<void> {
    const runUnderWay = this.#jobDeskParts.scheduler.underWay(id);
    if (runUnderWay === undefined) return;
    const timeout = new AbortController();
    await Promise.race([runUnderWay, this.#jobDeskParts.clock.sleep(runAwaitedMs, timeout.signal)]);
    timeout.abort();
  }

  #requireJob(id: string, caller: Caller): JobRecord {
    const job = this.find(id, caller);
    if (job === null) throw new ServiceError('REL_NOT_FOUND', 'no such job');
    return job;
  }

  #isJobShown({ owner, path, made, definition }: JobRecord, caller: Caller): boolean {
    if (made < this.#jobDeskParts.beginning(path) || definition.run.steps !== undefined) return false;
    // The path tells tenants apart.
    return isShownTo(caller, { principal: owner.principal, credential: owner.credential, tenant: caller.tenant, path });
  }
}
