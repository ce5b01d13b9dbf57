/** Workflows and their runs as callers see them, on routes and as tools. */
import { z } from 'zod';
import type { Caller } from '../../governance/caller.ts';
import type { WorkflowDesk } from '../../governance/desks/workflow-desk.ts';
import type { JobRecord, RecordedStep } from '../../projections/jobs/job.ts';

const nanoseconds = z.int().describe('nanoseconds since 1970 UTC, exact');

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
        started_at: nanoseconds,
        ended_at: nanoseconds.nullable(),
        attempts: z.int(),
        result: z.record(z.string(), z.unknown()).describe('counts and references, never rows'),
      }),
    ),
    steps_total: z.int(),
  })
  .meta({ id: 'WorkflowRun' });

/** Steps of a run that a reply lists, the last ones. */
const stepsShown = 1_000;

export function listWorkflowViews(desk: WorkflowDesk, caller: Caller): z.output<typeof workflowView>[] {
  const made = desk.list(caller).map(describeWorkflow);
  const builtin = desk.builtins.map(({ name, steps }) => ({
    id: null,
    name,
    steps: steps as unknown[],
    principal: null,
    organization: null,
  }));
  return [...made, ...builtin];
}

export function describeWorkflow({ id, definition, owner, path }: JobRecord): z.output<typeof workflowView> {
  const steps = definition.run.steps as unknown[];
  return { id, name: definition.name, steps, principal: owner.principal, organization: path };
}

export function describeRun(desk: WorkflowDesk, job: JobRecord) {
  const run = job.open ?? job.last;
  const steps = desk.steps(job);
  return {
    run_id: job.id,
    workflow: job.definition.name,
    state: run?.state ?? ('queued' as const),
    waiting: job.open?.state === 'queued' && job.open.until !== undefined,
    attempt: run?.attempt ?? 1,
    error: run?.state === 'failed' || run?.state === 'cancelled' ? run.reason : null,
    alerts: job.totalAlerts,
    steps: steps.map(describeStep).slice(-stepsShown),
    steps_total: steps.length,
  };
}

function describeStep({ path, state, started, attempt, result, at }: RecordedStep, nth: number, all: readonly RecordedStep[]) {
  return {
    path,
    state,
    started_at: BigInt(started),
    ended_at: state === 'waiting' ? null : at,
    // It was begun in each attempt since the one that ended the step before it.
    attempts: attempt - (all[nth - 1]?.attempt ?? 1) + 1,
    result,
  };
}

export function findRunView(desk: WorkflowDesk, id: string, caller: Caller) {
  return describeRun(desk, desk.findRun(id, caller));
}
