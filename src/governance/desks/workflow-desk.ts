/**
 * Workflows and their runs as callers make, see and change them. A workflow is a job's definition that never runs itself; a run that is
 * asked for is a job that runs once. Workflows are those of the organisation path and below it, runs those of whoever asked for them.
 */
import type { Ids } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import type { Json } from '../../log/values/canonical-json.ts';
import type { JobDefinition, JobRecord, RecordedStep } from '../../projections/jobs/job.ts';
import { type Caller, sees } from '../caller.ts';
import type { Invocation } from '../gate-contract.ts';
import type { JobDesk } from './job-desk.ts';
import type { JobScheduler } from '../jobs/job-scheduler.ts';

/** One that every store has. */
export interface BuiltinWorkflow {
  readonly name: string;
  readonly steps: Json;
}

export interface WorkflowDeskDependencies {
  readonly jobs: {
    all(): Iterable<JobRecord>;
    job(id: string): JobRecord | undefined;
    namesOf(path: string | null): ReadonlyMap<string, string>;
    steps(id: string): ReadonlyMap<string, RecordedStep>;
  };
  readonly desk: JobDesk;
  readonly scheduler: JobScheduler;
  readonly ids: Pick<Ids, 'next'>;
  readonly beginning: (path: string | null) => bigint;
  readonly builtins: readonly BuiltinWorkflow[];
  /** The principal that is to approve the step of this path; null: none is. */
  readonly approver: (steps: Json, path: string) => string | null;
}

const unscheduled = {
  interval_secs: null,
  cron: null,
  time_zone: null,
  at: null,
  after: null,
  catch_up: 'one',
  timeout_secs: 86_400,
} as const;
const builtinId = 'builtin:';

export class WorkflowDesk {
  readonly #parts: WorkflowDeskDependencies;

  constructor(parts: WorkflowDeskDependencies) {
    this.#parts = parts;
  }

  get builtins(): readonly BuiltinWorkflow[] {
    return this.#parts.builtins;
  }

  /** Those that were made, in that order. */
  list(caller: Caller): readonly JobRecord[] {
    return [...this.#parts.jobs.all()].filter((each) => each.state !== 'ended' && this.#isShown(each, caller));
  }

  /** The same name and steps again are a no-op, other steps REL_CONFLICT. */
  async make(invocation: Invocation, name: string, steps: Json): Promise<JobRecord> {
    if (this.#builtin(name) !== undefined) throw new ServiceError('REL_CONFLICT', 'a built-in workflow has this name');
    invocation.describe({ template: 'workflow ?', literals: [name] });
    const definition: JobDefinition = { ...unscheduled, name, run: { steps }, run_now: false, purpose: null };
    return this.#put(invocation, definition);
  }

  /** Runs that are under way go on to their end. */
  async end(invocation: Invocation, id: string): Promise<void> {
    const jobRecord = this.#parts.jobs.job(id);
    invocation.describe({ template: 'end workflow ?', literals: [id] });
    if (jobRecord === undefined || !this.#isShown(jobRecord, invocation.caller))
      throw new ServiceError('REL_NOT_FOUND', 'no such workflow');
    await invocation.submit({ kind: 'change-job', id, change: 'ended', reason: null }, { sync: true });
  }

  /** Begins a run, and waits for it a while; it goes on behind the reply. */
  async run(invocation: Invocation, name: string, given: Json): Promise<JobRecord> {
    invocation.describe({ template: 'run workflow ?', literals: [name] });
    const { caller } = invocation;
    if (this.idOf(name, caller) === null) throw unknownWorkflow(name);
    const { purpose } = invocation.snapshot();
    const run = { workflow: name, arguments: given };
    const putRun = await this.#put(invocation, { ...unscheduled, name, run, run_now: true, purpose, once: true });
    const { scheduler, desk, jobs } = this.#parts;
    await scheduler.begin(putRun.id);
    await desk.awaitRun(putRun.id);
    return jobs.job(putRun.id)!;
  }

  /** A run that was asked for, for whoever did and whoever is to approve a step of it. REL_NOT_FOUND. */
  findRun(id: string, caller: Caller): JobRecord {
    const { jobs, desk } = this.#parts;
    const job = jobs.job(id);
    if (job?.definition.run.workflow !== undefined && (desk.find(id, caller) !== null || this.#mayApprove(job, caller)))
      return job;
    throw new ServiceError('REL_NOT_FOUND', 'no such run');
  }

  steps(job: JobRecord): readonly RecordedStep[] {
    return [...this.#parts.jobs.steps(job.id).values()];
  }

  async cancel(invocation: Invocation, id: string): Promise<JobRecord> {
    this.findRun(id, invocation.caller);
    return this.#parts.desk.cancel(invocation, id);
  }

  /** `isApproved` false: the run fails. REL_ACL for everybody but the principal that the step names. */
  async approve(invocation: Invocation, id: string, isApproved: boolean): Promise<JobRecord> {
    const { caller } = invocation;
    const job = this.findRun(id, caller);
    invocation.describe({ template: 'approve ?', literals: [id] });
    invocation.checkInspects();
    const step = this.#waiting(job);
    if (step === undefined) throw new ServiceError('REL_CONFLICT', 'the run waits for nobody');
    if (!this.#mayApprove(job, caller)) throw new ServiceError('REL_ACL', 'the step is for another principal to approve');
    const { at: _, ...rest } = step;
    const { scheduler, jobs } = this.#parts;
    if (isApproved) await scheduler.goOn(job, { ...rest, state: 'done', result: { approved: true } });
    else await scheduler.endWaiting(job, 'not_approved');
    return jobs.job(id)!;
  }

  /** Id of the workflow that the name means at this path; null: there is none. */
  idOf(name: string, { path }: Pick<JobRecord, 'path'>): string | null {
    const { jobs, beginning } = this.#parts;
    const id = jobs.namesOf(path).get(`workflow ${name}`);
    const own = id === undefined ? undefined : jobs.job(id);
    if (own !== undefined && own.made >= beginning(path)) return own.id;
    return this.#builtin(name) === undefined ? null : `${builtinId}${name}`;
  }

  /** Null: it is gone with a subject that it named. */
  stepsOf(id: string): Json | null {
    if (id.startsWith(builtinId)) return this.#builtin(id.slice(builtinId.length))?.steps ?? null;
    return this.#parts.jobs.job(id)?.definition.run.steps ?? null;
  }

  #waiting({ id, open }: JobRecord): RecordedStep | undefined {
    if (open?.state !== 'queued') return undefined;
    return [...this.#parts.jobs.steps(id).values()].find(({ state }) => state === 'waiting');
  }

  #mayApprove(job: JobRecord, caller: Caller): boolean {
    const step = this.#waiting(job);
    const steps = job.open?.workflow === undefined ? null : this.stepsOf(job.open.workflow);
    if (step === undefined || steps === null || job.made < this.#parts.beginning(job.path)) return false;
    return this.#parts.approver(steps, step.path) === caller.principal && sees(caller.path, job.path);
  }

  async #put(invocation: Invocation, definition: JobDefinition): Promise<JobRecord> {
    const { ids, jobs } = this.#parts;
    const owner = { credential: 'none', token: null } as const;
    const jobPut = await invocation.submit({ kind: 'put-job', id: ids.next(), definition, owner }, { sync: true });
    return jobs.job(jobPut.ids[0]!)!;
  }

  #builtin(name: string): BuiltinWorkflow | undefined {
    return this.#parts.builtins.find((each) => each.name === name);
  }

  #isShown({ definition, path, made }: JobRecord, caller: Caller): boolean {
    return definition.run.steps !== undefined && made >= this.#parts.beginning(path) && sees(caller.path, path);
  }
}

const unknownWorkflow = (name: string): ServiceError =>
  new ServiceError('REL_NOT_FOUND', `there is no workflow ${JSON.stringify(name.slice(0, 128))}`);
