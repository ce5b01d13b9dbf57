/** Workflows as tools. Source: specification, "Tools". */
import { z } from 'zod';
import { describeRun, findRunView, listWorkflowViews, runView, workflowView } from '../workflows/workflow-views.ts';
import { record } from '../shared/schema-check.ts';
import { plainJson } from '../workflows/definition.ts';
import { verb } from './verb.ts';

const runOutput = runView as unknown as z.ZodType;

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
  run: async ({ parts: verbDependencies, invocation: { caller: workflowCaller } }, { limit: workflowLimit }) => {
    const listedWorkflows = listWorkflowViews(verbDependencies.workflows, workflowCaller);
    return { workflows: listedWorkflows.slice(0, workflowLimit), total: listedWorkflows.length };
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
  run: async (
    { invocation: workflowInvocation, parts: { workflows: workflowDesk } },
    { name: workflowName, arguments: workflowArguments },
  ) => {
    const { run_id: workflowRunId, state: workflowRunState } = describeRun(
      workflowDesk,
      await workflowDesk.run(workflowInvocation, workflowName, plainJson(workflowArguments)),
    );
    return { run_id: workflowRunId, state: workflowRunState };
  },
});

export const workflowStatus = verb({
  name: 'workflow_status',
  description: 'How far a run of a workflow is: its state, and its steps with times, attempts and counts.',
  input: z.object({ run_id: z.string().min(1).max(1_024) }),
  output: runOutput,
  action: 'inspect',
  units: 0,
  purpose: 'required',
  bucket: 'read',
  tool: { title: 'Run of a workflow', readOnly: true },
  example: { run_id: 'a run' },
  run: async ({ parts: verbDependencies, invocation: { caller: workflowCaller } }, { run_id: workflowRunId }) =>
    findRunView(verbDependencies.workflows, workflowRunId, workflowCaller),
});
