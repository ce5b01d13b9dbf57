/** Scheduled jobs as callers make, see and change them: their own, an administrator those of the tenant, who runs the store all of them. */
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
const awaitedMs = 10_000;

export class JobDesk {
  readonly #parts: JobDeskDependencies;

  constructor(parts: JobDeskDependencies) {
    this.#parts = parts;
  }

  /** The newest first. */
  list(caller: Caller): readonly JobRecord[] {
    return [...this.#parts.jobs.all()].filter((job) => this.#isShown(job, caller)).reverse();
  }

  /** The same REL_NOT_FOUND for a job that does not exist and for one that the caller may not see; null: it is no scheduled job. */
  find(id: string, caller: Caller): JobRecord | null {
    const job = this.#parts.jobs.job(id);
    return job === undefined || !this.#isShown(job, caller) ? null : job;
  }

  /** Nanosecond of the next run; null: none is due. */
  next(id: string): bigint | null {
    return this.#parts.scheduler.next(id);
  }

  /** Whether a run is due and finds no place. */
  waits(job: JobRecord): boolean {
    return this.#parts.scheduler.waits(job);
  }

  /** The run that is under way in this process. */
  progress({ open }: JobRecord, caller: Caller): JobView | null {
    if (open === null) return null;
    return this.#parts.runner.list(caller).find(({ id }) => id === open.id) ?? null;
  }

  /** Makes a job; its first run, where that is due at once, is waited for a while. */
  async make(invocation: Invocation, definition: JobDefinition): Promise<JobRecord> {
    checkSchedule(definition);
    const { jobs, ids, scheduler } = this.#parts;
    const { after } = definition;
    if (after !== null && this.find(after, invocation.caller) === null)
      throw new ServiceError('REL_NOT_FOUND', 'after: there is no such job');
    invocation.describe({ template: 'job ?', literals: [definition.name] });
    const owner = { credential: 'none', token: null } as const;
    const jobPut = await invocation.submit({ kind: 'put-job', id: ids.next(), definition, owner }, { sync: true });
    const id = jobPut.ids[0]!;
    await scheduler.begin(id);
    await this.awaitRun(id);
    return jobs.job(id)!;
  }

  /** Makes a job in place of the one of its name, and waits for its first run a while. */
  async replace(invocation: Invocation, definition: JobDefinition): Promise<JobRecord> {
    const { jobs, ids, scheduler } = this.#parts;
    const before = this.findJob(invocation.caller, nameKey('', definition));
    const owner = { credential: 'none', token: null } as const;
    const command = { kind: 'put-job', id: ids.next(), definition, owner, replaces: true } as const;
    const id = (await invocation.submit(command, { sync: true })).ids[0]!;
    if (before !== null && before.id !== id) this.#stop(before.id);
    await scheduler.begin(id);
    await this.awaitRun(id);
    return jobs.job(id)!;
  }

  /** The job of the caller's own path that has this key among those of the path, whoever made it; null: there is none. */
  findJob({ path }: Caller, key: string): JobRecord | null {
    const { jobs, beginning } = this.#parts;
    const job = jobs.job(jobs.namesOf(path).get(key) ?? '');
    return job === undefined || job.made < beginning(path) ? null : job;
  }

  /** Ends a job that its owner shares with others of the path. */
  async endNamed(invocation: Invocation, { id }: JobRecord): Promise<void> {
    await invocation.submit({ kind: 'change-job', id, change: 'ended', reason: null }, { sync: true });
    this.#stop(id);
    this.#parts.scheduler.look();
  }

  /** The run that is under way, if any, ends. */
  #stop(id: string): void {
    const { open } = this.#parts.jobs.job(id)!;
    if (open !== null) this.#parts.runner.stop(open.id);
  }

  /** `run`: now, beside its schedule. */
  async run(invocation: Invocation, id: string): Promise<JobRecord> {
    const job = this.#requireJob(id, invocation.caller);
    if (job.state === 'ended') throw new ServiceError('REL_CONFLICT', 'the job has ended');
    invocation.describe({ template: 'run job ?', literals: [id] });
    invocation.checkInspects();
    void this.#parts.scheduler.runNow(job);
    await this.awaitRun(id);
    return this.#parts.jobs.job(id)!;
  }

  async change(invocation: Invocation, id: string, change: 'paused' | 'resumed' | 'ended'): Promise<JobRecord> {
    this.#requireJob(id, invocation.caller);
    invocation.describe({ template: `${change} job ?`, literals: [id] });
    await invocation.submit({ kind: 'change-job', id, change, reason: null }, { sync: true });
    if (change === 'ended') await this.#cancel(id, invocation.caller);
    this.#parts.scheduler.look();
    return this.#parts.jobs.job(id)!;
  }

  /** Ends the run that is under way, if any, within a second; effects of it are there whole, or not at all. */
  async cancel(invocation: Invocation, id: string): Promise<JobRecord> {
    this.#requireJob(id, invocation.caller);
    invocation.describe({ template: 'cancel job ?', literals: [id] });
    invocation.checkInspects();
    if (await this.#cancel(id, invocation.caller)) await this.awaitRun(id);
    return this.#parts.jobs.job(id)!;
  }

  async #cancel(id: string, caller: Caller): Promise<boolean> {
    const job = this.#parts.jobs.job(id)!;
    const { open } = job;
    if ((open === null || open.state === 'queued') && this.#parts.scheduler.underWay(id) === undefined)
      await this.#parts.scheduler.endWaiting(job, 'REL_CANCELLED');
    const view = open === null ? undefined : this.#parts.runner.list(caller).find((each) => each.id === open.id);
    if (view === undefined || view.finishedAt !== null) return false;
    this.#parts.runner.cancel(view.id, caller);
    return true;
  }

  /** Until the run that is under way, if any, has ended or waits; ten seconds at most. */
  async awaitRun(id: string): Promise<void> {
    const run = this.#parts.scheduler.underWay(id);
    if (run === undefined) return;
    const timeout = new AbortController();
    await Promise.race([run, this.#parts.clock.sleep(awaitedMs, timeout.signal)]);
    timeout.abort();
  }

  #requireJob(id: string, caller: Caller): JobRecord {
    const job = this.find(id, caller);
    if (job === null) throw new ServiceError('REL_NOT_FOUND', 'no such job');
    return job;
  }

  #isShown({ owner, path, made, definition }: JobRecord, caller: Caller): boolean {
    if (made < this.#parts.beginning(path) || definition.run.steps !== undefined) return false;
    // The path tells tenants apart.
    return isShownTo(caller, { principal: owner.principal, credential: owner.credential, tenant: caller.tenant, path });
  }
}
