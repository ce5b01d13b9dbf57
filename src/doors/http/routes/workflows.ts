/** /workflows: steps that are run one after the other, whatever crashes, and their runs. Source: specification, "Other HTTP routes". */
import { z } from 'zod';
import { record } from '../../schemas/schema-check.ts';
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

const tags = ['system'];
const params = z.object({ id: z.string() });
const reading = { access: 'token', action: 'inspect', bucket: 'read' } as const;
const changing = { access: 'token', action: 'schema', bucket: 'write' } as const;
/** A principal that is to approve a step may do no more than look at the run. */
const approving = { access: 'token', action: 'inspect', bucket: 'write' } as const;
const name = z.string().min(1).max(256);
const purpose = z.string().optional();

export const workflowRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/workflows',
    ...changing,
    summary: 'Make a workflow of steps; the same one again changes nothing',
    tags,
    body: z.strictObject({ name, steps: z.array(z.unknown()).max(200), purpose }),
    purposeIn: 'body',
    replies: { 201: workflowView },
    example: { body: { name: 'a new workflow', steps: [{ wait: { seconds: 1 } }] } },
    run: async (invocation, { body, context: { workflows } }) => {
      const steps = plainJson(body.steps);
      readSteps(steps);
      return reply(201, describeWorkflow(await workflows.make(invocation, body.name, steps)));
    },
  }),
  route({
    method: 'GET',
    path: '/workflows',
    ...reading,
    summary: 'Workflows of the organisation path and below it, then those that are built in',
    tags,
    replies: { 200: z.object({ workflows: z.array(workflowView), total: z.int() }) },
    run: async (invocation, { context: { workflows } }) => {
      const listed = listWorkflowViews(workflows, invocation.caller);
      invocation.describe({ rowCount: listed.length });
      return { workflows: listed, total: listed.length };
    },
  }),
  route({
    method: 'DELETE',
    path: '/workflows/:id',
    ...changing,
    summary: 'End a workflow: runs that are under way go on',
    tags,
    params,
    replies: { 200: z.object({ id: z.string(), ended: z.literal(true) }) },
    example: { params: { id: 'a workflow' } },
    run: async (invocation, { params: { id }, context: { workflows } }) => {
      await workflows.end(invocation, id);
      return { id, ended: true };
    },
  }),
  route({
    method: 'POST',
    path: '/workflows/runs',
    ...changing,
    summary: 'Begin a run of a workflow, by name: it is waited for ten seconds at most, and goes on behind the reply',
    tags,
    body: z.strictObject({ name, arguments: record(z.unknown()).default({}), purpose }),
    purposeIn: 'body',
    replies: { 201: runView },
    example: { body: { name: 'screen-against-lists', arguments: { names: ['Robert Tomb'] } } },
    run: async (invocation, { body, context: { workflows } }) =>
      reply(201, describeRun(workflows, await workflows.run(invocation, body.name, plainJson(body.arguments)))),
  }),
  route({
    method: 'GET',
    path: '/workflows/runs/:id',
    ...reading,
    summary: 'How far a run is: its state, and its steps',
    tags,
    params,
    replies: { 200: runView },
    example: { params: { id: 'a run' } },
    run: async ({ caller }, { params: { id }, context: { workflows } }) => findRunView(workflows, id, caller),
  }),
  route({
    method: 'POST',
    path: '/workflows/runs/:id/cancel',
    ...changing,
    summary: 'Cancel a run: steps that have ended stay',
    tags,
    params,
    replies: { 200: runView },
    example: { params: { id: 'a run' } },
    run: async (invocation, { params: { id }, context: { workflows } }) =>
      describeRun(workflows, await workflows.cancel(invocation, id)),
  }),
  route({
    method: 'POST',
    path: '/workflows/runs/:id/approve',
    ...approving,
    summary: 'Approve the step that a run waits at, or refuse it, which fails the run: for the principal that the step names',
    tags,
    params,
    body: z.strictObject({ approved: z.boolean().default(true), purpose }),
    purposeIn: 'body',
    replies: { 200: runView },
    example: { params: { id: 'a run' }, body: { approved: true } },
    run: async (invocation, { params: { id }, body: { approved }, context: { workflows } }) =>
      describeRun(workflows, await workflows.approve(invocation, id, approved)),
  }),
];
