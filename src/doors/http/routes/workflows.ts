/** /workflows: steps that are run one after the other, whatever crashes, and their runs. Source: specification, "Other HTTP routes". */
import { z } from 'zod';
import { record } from '../../shared/schema-check.ts';
import { plainJson, readSteps } from '../../workflows/definition.ts';
import {
  describeRun,
  describeWorkflow,
  findRunView,
  listWorkflowViews,
  runView,
  workflowView,
} from '../../workflows/workflow-views.ts';
import { reply, route, type Route } from '../route.ts';

const workflowTags = ['system'];
const workflowParams = z.object({ id: z.string() });
const workflowReading = { access: 'token', action: 'inspect', bucket: 'read' } as const;
const workflowChanging = { access: 'token', action: 'schema', bucket: 'write' } as const;
/** A principal that is to approve a step may do no more than look at the run. */
const workflowApproving = { access: 'token', action: 'inspect', bucket: 'write' } as const;
const workflowNameField = z.string().min(1).max(256);
const workflowPurpose = z.string().optional();

export const workflowRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/workflows',
    ...workflowChanging,
    summary: 'Make a workflow of steps; the same one again changes nothing',
    tags: workflowTags,
    body: z.strictObject({ name: workflowNameField, steps: z.array(z.unknown()).max(200), purpose: workflowPurpose }),
    purposeIn: 'body',
    replies: { 201: workflowView },
    example: { body: { name: 'a new workflow', steps: [{ wait: { seconds: 1 } }] } },
    run: async (workflowInvocation, { body: workflowBody, context: { workflows: workflowDesk } }) => {
      const workflowSteps = plainJson(workflowBody.steps);
      readSteps(workflowSteps);
      return reply(201, describeWorkflow(await workflowDesk.make(workflowInvocation, workflowBody.name, workflowSteps)));
    },
  }),
  route({
    method: 'GET',
    path: '/workflows',
    ...workflowReading,
    summary: 'Workflows of the organisation path and below it, then those that are built in',
    tags: workflowTags,
    replies: { 200: z.object({ workflows: z.array(workflowView), total: z.int() }) },
    run: async (workflowInvocation, { context: { workflows: workflowDesk } }) => {
      const listedWorkflows = listWorkflowViews(workflowDesk, workflowInvocation.caller);
      workflowInvocation.describe({ rowCount: listedWorkflows.length });
      return { workflows: listedWorkflows, total: listedWorkflows.length };
    },
  }),
  route({
    method: 'DELETE',
    path: '/workflows/:id',
    ...workflowChanging,
    summary: 'End a workflow: runs that are under way go on',
    tags: workflowTags,
    params: workflowParams,
    replies: { 200: z.object({ id: z.string(), ended: z.literal(true) }) },
    example: { params: { id: 'a workflow' } },
    run: async (workflowInvocation, { params: { id: workflowRunId }, context: { workflows: workflowDesk } }) => {
      await workflowDesk.end(workflowInvocation, workflowRunId);
      return { id: workflowRunId, ended: true };
    },
  }),
  route({
    method: 'POST',
    path: '/workflows/runs',
    ...workflowChanging,
    summary: 'Begin a run of a workflow, by name: it is waited for ten seconds at most, and goes on behind the reply',
    tags: workflowTags,
    body: z.strictObject({ name: workflowNameField, arguments: record(z.unknown()).default({}), purpose: workflowPurpose }),
    purposeIn: 'body',
    replies: { 201: runView },
    example: { body: { name: 'screen-against-lists', arguments: { names: ['Robert Tomb'] } } },
    run: async (workflowInvocation, { body: workflowBody, context: { workflows: workflowDesk } }) =>
      reply(
        201,
        describeRun(
          workflowDesk,
          await workflowDesk.run(workflowInvocation, workflowBody.name, plainJson(workflowBody.arguments)),
        ),
      ),
  }),
  route({
    method: 'GET',
    path: '/workflows/runs/:id',
    ...workflowReading,
    summary: 'How far a run is: its state, and its steps',
    tags: workflowTags,
    params: workflowParams,
    replies: { 200: runView },
    example: { params: { id: 'a run' } },
    run: async ({ caller }, { params: { id: workflowRunId }, context: { workflows: workflowDesk } }) =>
      findRunView(workflowDesk, workflowRunId, caller),
  }),
  route({
    method: 'POST',
    path: '/workflows/runs/:id/cancel',
    ...workflowChanging,
    summary: 'Cancel a run: steps that have ended stay',
    tags: workflowTags,
    params: workflowParams,
    replies: { 200: runView },
    example: { params: { id: 'a run' } },
    run: async (workflowInvocation, { params: { id: workflowRunId }, context: { workflows: workflowDesk } }) =>
      describeRun(workflowDesk, await workflowDesk.cancel(workflowInvocation, workflowRunId)),
  }),
  route({
    method: 'POST',
    path: '/workflows/runs/:id/approve',
    ...workflowApproving,
    summary: 'Approve the step that a run waits at, or refuse it, which fails the run: for the principal that the step names',
    tags: workflowTags,
    params: workflowParams,
    body: z.strictObject({ approved: z.boolean().default(true), purpose: workflowPurpose }),
    purposeIn: 'body',
    replies: { 200: runView },
    example: { params: { id: 'a run' }, body: { approved: true } },
    run: async (
      workflowInvocation,
      { params: { id: workflowRunId }, body: { approved: isApproved }, context: { workflows: workflowDesk } },
    ) => describeRun(workflowDesk, await workflowDesk.approve(workflowInvocation, workflowRunId, isApproved)),
  }),
];
