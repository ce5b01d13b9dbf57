/** Workflows as tools. Source: specification, "Tools". */
import { z } from 'zod';
import { describeRun, findRunView, listWorkflowViews, runView, workflowView } from '../workflows/workflow-views.ts';
import { record } from '../schemas/schema-check.ts';
import { plainJson } from '../workflows/definition.ts';
import { verb } from './verb.ts';

const output = runView as unknown as z.ZodType;

export const listWorkflows = verb({
  name: 'list_workflows',
  description: 'Workflows of your organisation path and below it with their steps, then those that are built in.',
  input: z.object({ limit: z.int().min(1).max(1_000).default(100) }),
  output: z.object({ workflows: z.array(workflowView), total: z.int() }),
  action: 'inspect',
  units: 0,
  purpose: 'required',
  bucket: 'read',
  tool: { title: 'Workflows', readOnly: true },
  example: {},
  run: async ({ parts, invocation: { caller } }, { limit }) => {
    const listed = listWorkflowViews(parts.workflows, caller);
    return { workflows: listed.slice(0, limit), total: listed.length };
  },
});

export const runWorkflow = verb({
  name: 'run_workflow',
  description:
    'Begin a run of a workflow, by name. It goes on by itself, by your grants as they are then, and behind its last step after a restart; workflow_status tells how far it is.',
  input: z.object({
    name: z.string().min(1).max(256),
    arguments: record(z.unknown()).default({}).describe('values of {{arguments.x}} in its steps'),
  }),
  output: z.object({ run_id: z.string(), state: z.enum(['queued', 'running', 'done', 'failed', 'cancelled']) }),
  action: 'schema',
  units: 1,
  purpose: 'required',
  bucket: 'write',
  tool: { title: 'Run a workflow', readOnly: false },
  contents: ['arguments'],
  example: { name: 'a workflow', arguments: {} },
  run: async ({ invocation, parts: { workflows } }, { name, arguments: given }) => {
    const { run_id: id, state } = describeRun(workflows, await workflows.run(invocation, name, plainJson(given)));
    return { run_id: id, state };
  },
});

export const workflowStatus = verb({
  name: 'workflow_status',
  description: 'How far a run of a workflow is: its state, and its steps with times, attempts and counts.',
  input: z.object({ run_id: z.string().min(1).max(1_024) }),
  output,
  action: 'inspect',
  units: 0,
  purpose: 'required',
  bucket: 'read',
  tool: { title: 'Run of a workflow', readOnly: true },
  example: { run_id: 'a run' },
  run: async ({ parts, invocation: { caller } }, { run_id: id }) => findRunView(parts.workflows, id, caller),
});
