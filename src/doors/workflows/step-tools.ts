/** Tools as steps of workflows call them: the door that serves tools calls them for runs, which no request began. */
import { ServiceError } from '../../errors.ts';
import { readCall } from '../mcp/tools.ts';
import type { HttpContext } from '../http/context.ts';
import { callVerb } from '../verbs/call-verb.ts';
import type { StepCall, WorkflowDependencies } from './run-workflow.ts';

/** A call whose row is there already was made by an earlier attempt: its output is gone, and it is not made again. */
export async function callStep(httpContext: HttpContext, toolStep: StepCall): ReturnType<WorkflowDependencies['callTool']> {
  const { verb: stepVerb, purpose: argumentPurpose, input: stepInput } = readCall(toolStep.name, toolStep.input);
  const { caller: runCaller, signal: runAborted, correlationId, callId } = toolStep;
  const stepCall = {
    verb: stepVerb,
    input: stepInput,
    caller: runCaller,
    gone: runAborted,
    correlationId,
    callId,
    purpose: argumentPurpose ?? toolStep.purpose,
  };
  const isReadOnlyTool = stepVerb.tool!.readOnly;
  try {
    return { output: (await callVerb(httpContext.gate, httpContext, stepCall)).output, readsOnly: isReadOnlyTool };
  } catch (stepError) {
    if (!(stepError instanceof ServiceError) || stepError.code !== 'REL_CONFLICT' || stepError.facts.refused?.type !== 'ToolCall')
      throw stepError;
    return { output: null, readsOnly: isReadOnlyTool };
  }
}
