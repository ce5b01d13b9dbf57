/** Tools as steps of workflows call them: the door that serves tools calls them for runs, which no request began. */
import { ServiceError } from '../../errors.ts';
import { readCall } from '../mcp/tools.ts';
import type { HttpContext } from '../http/context.ts';
import { callVerb } from '../verbs/call-verb.ts';
import type { StepCall, WorkflowDependencies } from './run-workflow.ts';

/** A call whose row is there already was made by an earlier attempt: its output is gone, and it is not made again. */
export async function callStep(context: HttpContext, step: StepCall): ReturnType<WorkflowDependencies['callTool']> {
  const { verb, purpose, input } = readCall(step.name, step.input);
  const { caller, signal: gone, correlationId, callId } = step;
  const call = { verb, input, caller, gone, correlationId, callId, purpose: purpose ?? step.purpose };
  const readsOnly = verb.tool!.readOnly;
  try {
    return { output: (await callVerb(context.gate, context, call)).output, readsOnly };
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'REL_CONFLICT' || error.facts.refused?.type !== 'ToolCall')
      throw error;
    return { output: null, readsOnly };
  }
}
