/**
 * Runs work that no caller waits for: rules that judge rows as they come or by the clock, scheduled jobs and workflows, and long
 * work that callers started.
 */
import type { Clock, Ids } from './clock.ts';
import type { Settings } from './config.ts';
import { approverOf } from './doors/workflows/approver.ts';
import { builtinWorkflows } from './doors/workflows/builtin-workflows.ts';
import type { WorkflowDependencies, WorkflowRunner } from './doors/workflows/run-workflow.ts';
import { ServiceError } from './errors.ts';
import type { AbsentOwner, Authenticator } from './governance/authentication/authenticator.ts';
import { type Caller, tenantlessCaller } from './governance/caller.ts';
import type { Gate } from './governance/gate.ts';
import { JobDesk } from './governance/desks/job-desk.ts';
import { type BeginAgain, JobRunner, type JobWork } from './governance/jobs/job-runner.ts';
import { JobScheduler } from './governance/jobs/job-scheduler.ts';
import { WorkflowDesk } from './governance/desks/workflow-desk.ts';
import type { Json } from './log/values/canonical-json.ts';
import { tenantOf } from './log/values/value.ts';
import type { PlannerContract } from './planner/planner-contract.ts';
import type { Planner } from './planner/planner.ts';
import { alertPaused, performJobs } from './planner/continuous/jobs/job-run.ts';
import { performRetention } from './planner/continuous/jobs/retention-run.ts';
import type { LookupTables } from './planner/continuous/views/lookup-tables.ts';
import { IntervalRules } from './planner/continuous/rules/interval-rules.ts';
import { RuleJudge } from './planner/continuous/rules/commit-rules.ts';
import type { Dialect } from './planner/syntax/statement.ts';
import type { WorkRecord } from './projections/jobs/job.ts';
import type { Store } from './store.ts';
import type { EventLoopTurns } from './event-loop-turns.ts';

export interface AutomationDependencies {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly store: Store;
  readonly turns: EventLoopTurns;
  readonly gate: Gate;
  readonly authenticator: Authenticator;
  readonly planner: Pick<Planner, 'query' | 'execute'>;
  readonly lookups: LookupTables;
  readonly say: (line: string) => void;
  /** Work by the clock has stopped. */
  readonly onFailed: (error: unknown) => void;
}

export class Automation {
  readonly #automationDependencies: AutomationDependencies;
  readonly rules: RuleJudge;
  readonly intervalRules: IntervalRules;
  /** Long work that callers started. */
  readonly jobs: JobRunner;
  /** Runs scheduled jobs. */
  readonly scheduler: JobScheduler;
  readonly jobDesk: JobDesk;
  readonly workflows: WorkflowDesk;
  /** Runs of workflows; loaded with the first: a command on a directory has none. */
  #workflowRuns: Promise<WorkflowRunner> | null = null;
  #callDoorTool: WorkflowDependencies['callTool'] = () =>
    Promise.reject(new ServiceError('REL_NOT_IMPLEMENTED', 'no door serves tools here'));

  constructor(automationDependencies: AutomationDependencies) {
    this.#automationDependencies = automationDependencies;
    const { settings, clock, ids, turns, gate, authenticator, planner, lookups, say } = automationDependencies;
    const { projections } = automationDependencies.store;
    const yieldTurn = turns.yieldFor('chores');
    const tenantBeginning = (path: string | null): bigint => projections.tenants.sinceOf(tenantOf(path))?.time ?? 0n;
    const absentCaller = (owner: AbsentOwner): Caller => authenticator.absentCaller(owner);
    this.jobs = new JobRunner({
      now: () => clock.now(),
      newId: () => ids.next(),
      record: (run, at) => gate.recordWork(run, at),
      listRecorded: () => [...projections.jobs.works()].filter(({ run, path }) => BigInt(run.due) >= tenantBeginning(path)),
      warn: say,
    });
    // Nobody waits for the answers of jobs as callers do for theirs.
    const backgroundPlanner: PlannerContract = {
      query: (invocation, request) => planner.query(invocation, { ...request, inBackground: true }),
    };
    const ruleJudging = {
      gate,
      planner,
      clock,
      ids,
      rules: projections.rules,
      judgedUpTo: (group: string) => projections.jobs.judgedUpTo(group),
      beginning: (tenant: string | null) => projections.tenants.sinceOf(tenant)?.time ?? 0n,
      absentCaller,
      lookups,
      yieldTurn,
    };
    this.rules = new RuleJudge(ruleJudging);
    this.intervalRules = new IntervalRules(ruleJudging);
    this.scheduler = new JobScheduler({
      gate,
      clock,
      ids,
      runner: this.jobs,
      jobs: projections.jobs,
      beginning: tenantBeginning,
      absentCaller,
      perform: performJobs({ planner: backgroundPlanner, chores: this.#choresByName() }),
      performWorkflow: (job, work) => this.#loadWorkflowRuns().then(({ perform }) => perform(job, work)),
      performRetention: performRetention({ gate, planner: backgroundPlanner, foundMax: 100_000 }),
      alertOf: alertPaused,
      workflowOf: (name, job) => this.workflows.idOf(name, job),
      warn: say,
      yieldTurn,
      parallelMax: settings.SERVICE_JOBS_MAX_PARALLEL,
    });
    const { scheduler, jobs: runner } = this;
    this.jobDesk = new JobDesk({ jobs: projections.jobs, scheduler, runner, clock, ids, beginning: tenantBeginning });
    this.workflows = new WorkflowDesk({
      jobs: projections.jobs,
      desk: this.jobDesk,
      scheduler,
      ids,
      beginning: tenantBeginning,
      builtins: builtinWorkflows,
      approver: approverOf,
    });
  }

  /** Takes the way in which steps of workflows call tools, from the door that serves them. */
  serveTools(call: WorkflowDependencies['callTool']): void {
    this.#callDoorTool = call;
  }

  /** Drops what runs of workflows of the tenant keep of rows. */
  forget(tenant: string | null): void {
    void this.#workflowRuns?.then((workflowRuns) => workflowRuns.forget(tenant));
  }

  /** From here on every commit makes rules and the scheduler look. */
  follow(): void {
    const { log } = this.#automationDependencies.store;
    log.onVisible(() => this.rules.look());
    log.onVisible(() => {
      this.scheduler.look();
      this.intervalRules.look();
    });
    this.rules.look();
  }

  /** Takes up the work that an earlier process left, and goes by the clock until the signal aborts. */
  run(signal: AbortSignal): void {
    const { onFailed } = this.#automationDependencies;
    this.jobs.takeUp((work) => this.#resumeWork(work)).catch(onFailed);
    this.scheduler.run(signal).catch(onFailed);
    this.intervalRules.run(signal).catch(onFailed);
  }

  /** Makes the indexes of keys, as a job where there are any to make. */
  async enterKeys(): Promise<void> {
    const { store, turns } = this.#automationDependencies;
    const { rows } = store.projections;
    const yieldTurn = turns.yieldFor('chores');
    const tablesToEnter = rows.entering;
    if (tablesToEnter === 0) return rows.enterKeys(yieldTurn);
    const runKeyEntry = async ({ signal, progress }: JobWork): Promise<void> => {
      let enteredTables = 0;
      progress(0, tablesToEnter);
      const cancellableTurn = async (): Promise<void> => {
        signal.throwIfAborted();
        await yieldTurn();
      };
      await rows.enterKeys(cancellableTurn, () => progress(++enteredTables, tablesToEnter));
    };
    const { ended: entryEnded } = this.jobs.start(
      { kind: 'rebuild', about: 'key indexes', unit: 'tables', onDrain: 'cancel', run: runKeyEntry },
      tenantlessCaller('annals', 'operator', 'start'),
    );
    await entryEnded.catch((error: unknown) => {
      // An index that was not filled is filled on first use.
      if (!(error instanceof ServiceError) || (error.code !== 'REL_CANCELLED' && error.code !== 'REL_UNAVAILABLE')) throw error;
    });
  }

  #loadWorkflowRuns(): Promise<WorkflowRunner> {
    const { gate, planner, clock, store } = this.#automationDependencies;
    const { erasures } = store.projections;
    this.#workflowRuns ??= import('./doors/workflows/run-workflow.ts').then(({ performWorkflows }) =>
      performWorkflows({
        gate,
        planner,
        clock,
        stepsOf: (id) => this.workflows.stepsOf(id),
        callTool: (call) => this.#callDoorTool(call),
        erasedOf: (tenant) => erasures.all().filter((erasure) => erasure.tenant === tenant).length,
      }),
    );
    return this.#workflowRuns;
  }

  /** Work of the store's own that a job may do. */
  #choresByName(): Readonly<Record<string, (signal: AbortSignal) => Promise<Json>>> {
    const { columns, projections } = this.#automationDependencies.store;
    return {
      compaction: async (signal) => {
        const done = await columns?.compact({ signal });
        return { segments: done?.segments ?? 0 };
      },
      reindex: async (signal) => {
        const done = await projections.rows.renewIndexes(null, { signal });
        return { indexes: done?.indexes ?? 0 };
      },
    };
  }

  /** Null: only its request can begin it. */
  #resumeWork({ run: { work }, path }: WorkRecord): BeginAgain | null {
    const { store, gate, planner, authenticator } = this.#automationDependencies;
    const { kind, about, principal, statement } = work;
    const credential = work.credential as Caller['credential'];
    if (statement !== undefined) {
      const { sql, purpose, token, branch } = statement;
      const statementRequest = { sql, purpose, dialect: statement.dialect as Dialect, graph: 'scores' } as const;
      return async (resumedJob) => {
        const absentCaller = authenticator.absentCaller({ principal, credential, token, path, branch });
        const gateRequest = { action: 'query', purpose, correlationId: resumedJob.id } as const;
        return gate.invoke(absentCaller, gateRequest, (invocation) =>
          planner.execute(invocation, { ...statementRequest, as: resumedJob }),
        );
      };
    }
    const runChore = async ({ signal, progress }: JobWork): Promise<Json> => {
      const followed = { signal, onProgress: progress };
      if (kind === 'reindex') return { indexes: (await store.projections.rows.renewIndexes(about, followed))?.indexes ?? 0 };
      return { segments: (await store.columns?.compact(followed))?.segments ?? 0 };
    };
    // No backup is: every store that is restored from one finds it begun.
    if (kind !== 'reindex' && kind !== 'compaction') return null;
    const choreUnit = kind === 'reindex' ? 'indexes' : 'segments';
    const choreJob = { kind, unit: choreUnit, ...(about !== null && { about }), onDrain: 'cancel', run: runChore } as const;
    return async (resumedJob) => {
      const absentCaller = authenticator.absentCaller({ principal, credential, token: null, path, branch: 'main' });
      const gateRequest = { action: 'administer', purpose: null, correlationId: resumedJob.id } as const;
      return gate.invoke(absentCaller, gateRequest, (invocation) => {
        invocation.describe({ template: `${kind} again` });
        return this.jobs.start({ ...choreJob, ...resumedJob, resultOf: (result) => result }, absentCaller).ended;
      });
    };
  }
}
