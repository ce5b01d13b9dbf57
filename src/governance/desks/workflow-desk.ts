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

const unscheduledRun = {
  interval_secs: null,
  cron: null,
  time_zone: null,
  at: null,
  after: null,
  catch_up: 'one',
  timeout_secs: 86_400,
} as const;
const builtinIdPrefix = 'builtin:';

export class WorkflowDesk {
  readonly #workflowDeskParts: WorkflowDeskDependencies;

  constructor(parts: WorkflowDeskDependencies) {
    this.#workflowDeskParts = parts;
  }

  get builtins(): readonly BuiltinWorkflow[] {
    return this.#workflowDeskParts.builtins;
  }

  /** Those that were made, in that order. */
  list(caller: Caller): readonly JobRecord[] {
    return [...this.#workflowDeskParts.jobs.all()].filter(
      (workflowJob) => workflowJob.state !== 'ended' && this.#isWorkflowShown(workflowJob, caller),
    );
  }

  /** The same name and steps again are a no-op, other steps REL_CONFLICT. */
  async make(invocation: Invocation, name: string, steps: Json): Promise<JobRecord> {
    if (this.#builtinWorkflow(name) !== undefined) throw new ServiceError('REL_CONFLICT', 'a built-in workflow has this name');
    invocation.describe({ template: 'workflow ?', literals: [name] });
    const definition: JobDefinition = { ...unscheduledRun, name, run: { steps }, run_now: false, purpose: null };
    return this.#putWorkflowJob(invocation, definition);
  }

  /** Runs that are under way go on to their end. */
  async end(invocation: Invocation, id: string): Promise<void> {
    const jobRecord = this.#workflowDeskParts.jobs.job(id);
    invocation.describe({ template: 'end workflow ?', literals: [id] });
    if (jobRecord === undefined || !this.#isWorkflowShown(jobRecord, invocation.caller))
      throw new ServiceError('REL_NOT_FOUND', 'no such workflow');
    await invocation.submit({ kind: 'change-job', id, change: 'ended', reason: null }, { sync: true });
  }

  /** Begins a run, and waits for it a while; it goes on behind the reply. */
  async run(invocation: Invocation, name: string, workflowArguments: Json): Promise<JobRecord> {
    invocation.describe({ template: 'run workflow ?', literals: [name] });
    const { caller } = invocation;
    if (this.idOf(name, caller) === null) throw unknownWorkflow(name);
    const { purpose } = invocation.snapshot();
    const workflowRun = { workflow: name, arguments: workflowArguments };
    const putRun = await this.#putWorkflowJob(invocation, {
      ...unscheduledRun,
      name,
      run: workflowRun,
      run_now: true,
      purpose,
      once: true,
    });
    const { scheduler, desk, jobs } = this.#workflowDeskParts;
    await scheduler.begin(putRun.id);
    await desk.awaitRun(putRun.id);
    return jobs.job(putRun.id)!;
  }

  /** A run that was asked for, for whoever did and whoever is to approve a step of it. REL_NOT_FOUND. */
  findRun(id: string, caller: Caller): JobRecord {
    const { jobs, desk } = this.#workflowDeskParts;
    const job = jobs.job(id);
    if (job?.definition.run.workflow !== undefined && (desk.find(id, caller) !== null || this.#mayApprove(job, caller)))
      return job;
    throw new ServiceError('REL_NOT_FOUND', 'no such run');
  }

  steps(job: JobRecord): readonly RecordedStep[] {
    return [...this.#workflowDeskParts.jobs.steps(job.id).values()];
  }

  async cancel(invocation: Invocation, id: string): Promise<JobRecord> {
    this.findRun(id, invocation.caller);
    return this.#workflowDeskParts.desk.cancel(invocation, id);
  }

  /** `isApproved` false: the run fails. REL_ACL for everybody but the principal that the step names. */
  async approve(invocation: Invocation, id: string, isApproved: boolean): Promise<JobRecord> {
    const { caller } = invocation;
    const runJob = this.findRun(id, caller);
    invocation.describe({ template: 'approve ?', literals: [id] });
    invocation.checkInspects();
    const waitingStep = this.#waitingStep(runJob);
    if (waitingStep === undefined) throw new ServiceError('REL_CONFLICT', 'the run waits for nobody');
    if (!this.#mayApprove(runJob, caller)) throw new ServiceError('REL_ACL', 'the step is for another principal to approve');
    const { at: _, ...stepFacts } = waitingStep;
    const { scheduler, jobs } = this.#workflowDeskParts;
    if (isApproved) await scheduler.goOn(runJob, { ...stepFacts, state: 'done', result: { approved: true } });
    else await scheduler.endWaiting(runJob, 'not_approved');
    return jobs.job(id)!;
  }

  /** Id of the workflow that the name means at this path; null: there is none. */
  idOf(name: string, { path }: Pick<JobRecord, 'path'>): string | null {
    const { jobs, beginning } = this.#workflowDeskParts;
    const workflowJobId = jobs.namesOf(path).get(`workflow ${name}`);
    const ownWorkflow = workflowJobId === undefined ? undefined : jobs.job(workflowJobId);
    if (ownWorkflow !== undefined && ownWorkflow.made >= beginning(path)) return ownWorkflow.id;
    return this.#builtinWorkflow(name) === undefined ? null : `${builtinIdPrefix}${name}`;
  }

  /** Null: it is gone with a subject that it named. */
  stepsOf(id: string): Json | null {
    if (id.startsWith(builtinIdPrefix)) return this.#builtinWorkflow(id.slice(builtinIdPrefix.length))?.steps ?? null;
    return this.#workflowDeskParts.jobs.job(id)?.definition.run.steps ?? null;
  }

  #waitingStep({ id, open }: JobRecord): RecordedStep | undefined {
    if (open?.state !== 'queued') return undefined;
    return [...this.#workflowDeskParts.jobs.steps(id).values()].find(({ state }) => state === 'waiting');
  }

  #mayApprove(job: JobRecord, caller: Caller): boolean {
    const waitingStep = this.#waitingStep(job);
    const workflowSteps = job.open?.workflow === undefined ? null : this.stepsOf(job.open.workflow);
    if (waitingStep === undefined || workflowSteps === null || job.made < this.#workflowDeskParts.beginning(job.path))
      return false;
    return this.#workflowDeskParts.approver(workflowSteps, waitingStep.path) === caller.principal && sees(caller.path, job.path);
  }

  async #putWorkflowJob(invocation: Invocation, definition: JobDefinition): Promise<JobRecord> {
    const { ids, jobs } = this.#workflowDeskParts;
    const workflowOwner = { credential: 'none', token: null } as const;
    const jobPut = await invocation.submit({ kind: 'put-job', id: ids.next(), definition, owner: workflowOwner }, { sync: true });
    return jobs.job(jobPut.ids[0]!)!;
  }

  #builtinWorkflow(name: string): BuiltinWorkflow | undefined {
    return this.#workflowDeskParts.builtins.find((each) => each.name === name);
  }

  #isWorkflowShown({ definition, path, made }: JobRecord, caller: Caller): boolean {
    return definition.run.steps !== undefined && made >= this.#workflowDeskParts.beginning(path) && sees(caller.path, path);
  }
}

const unknownWorkflow = (name: string): ServiceError =>
  new ServiceError('REL_NOT_FOUND', `there is no workflow ${JSON.stringify(name.slice(0, 128))}`);
