/** Workflows and their runs as callers see them, on routes and as tools. */
import { z } from 'zod';
import type { Caller } from '../../governance/caller.ts';
import type { WorkflowDesk } from '../../governance/desks/workflow-desk.ts';
import type { JobRecord, RecordedStep } from '../../projections/jobs/job.ts';

const workflowNanoseconds = z.int().describe('nanoseconds since 1970 UTC, exact');

export const workflowView = z
  .object({
    id: z.string().nullable().describe('null: it is built in'),
    name: z.string(),
    steps: z.array(z.unknown()),
    principal: z.string().nullable().describe('who made it'),
    organization: z.string().nullable(),
  })
  .meta({ id: 'Workflow' });

export const runView = z
  .object({
    run_id: z.string(),
    workflow: z.string(),
    state: z.enum(['queued', 'running', 'done', 'failed', 'cancelled']),
    waiting: z.boolean().describe('it waits at a step, for rows, for a time or for somebody'),
    attempt: z.int(),
    error: z.string().nullable().describe('the code that a failed run ended in'),
    alerts: z.int(),
    steps: z.array(
      z.object({
        path: z.string().describe('number of the step; inside of others behind theirs, with that of the item or the branch'),
        state: z.enum(['waiting', 'done', 'failed']),
        started_at: workflowNanoseconds,
        ended_at: workflowNanoseconds.nullable(),
        attempts: z.int(),
        result: z.record(z.string(), z.unknown()).describe('counts and references, never rows'),
      }),
    ),
    steps_total: z.int(),
  })
  .meta({ id: 'WorkflowRun' });

/** Steps of a run that a reply lists, the last ones. */
const runStepsShown = 1_000;

export function listWorkflowViews(workflowDesk: WorkflowDesk, workflowCaller: Caller): z.output<typeof workflowView>[] {
  const storedWorkflows = workflowDesk.list(workflowCaller).map(describeWorkflow);
  const builtinViews = workflowDesk.builtins.map(({ name: workflowName, steps: workflowSteps }) => ({
    id: null,
    name: workflowName,
    steps: workflowSteps as unknown[],
    principal: null,
    organization: null,
  }));
  return [...storedWorkflows, ...builtinViews];
}

export function describeWorkflow({
  id: workflowId,
  definition: jobDefinition,
  owner: workflowOwner,
  path: workflowPath,
}: JobRecord): z.output<typeof workflowView> {
  const workflowSteps = jobDefinition.run.steps as unknown[];
  return {
    id: workflowId,
    name: jobDefinition.name,
    steps: workflowSteps,
    principal: workflowOwner.principal,
    organization: workflowPath,
  };
}

export function describeRun(workflowDesk: WorkflowDesk, runJob: JobRecord) {
  const workflowRun = runJob.open ?? runJob.last;
  const runSteps = workflowDesk.steps(runJob);
  return {
    run_id: runJob.id,
    workflow: runJob.definition.name,
    state: workflowRun?.state ?? ('queued' as const),
    waiting: runJob.open?.state === 'queued' && runJob.open.until !== undefined,
    attempt: workflowRun?.attempt ?? 1,
    error: workflowRun?.state === 'failed' || workflowRun?.state === 'cancelled' ? workflowRun.reason : null,
    alerts: runJob.totalAlerts,
    steps: runSteps.map(describeRunStep).slice(-runStepsShown),
    steps_total: runSteps.length,
  };
}

function describeRunStep(
  {
    path: stepPath,
    state: stepState,
    started: stepStarted,
    attempt: stepAttempt,
    result: stepResult,
    at: stepEndedAt,
  }: RecordedStep,
  stepOrdinal: number,
  recordedSteps: readonly RecordedStep[],
) {
  return {
    path: stepPath,
    state: stepState,
    started_at: BigInt(stepStarted),
    ended_at: stepState === 'waiting' ? null : stepEndedAt,
    // It was begun in each attempt since the one that ended the step before it.
    attempts: stepAttempt - (recordedSteps[stepOrdinal - 1]?.attempt ?? 1) + 1,
    result: stepResult,
  };
}

export function findRunView(workflowDesk: WorkflowDesk, workflowRunId: string, workflowCaller: Caller) {
  return describeRun(workflowDesk, workflowDesk.findRun(workflowRunId, workflowCaller));
}
