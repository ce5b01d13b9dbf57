/**
 * One call of a verb on any protocol: one invocation, an access record of its reads and writes and one of the call, one ToolCall
 * row.
 */
import type { z } from 'zod';
import { ServiceError } from '../../errors.ts';
import type { Caller } from '../../governance/caller.ts';
import type { GateContract, InvocationRequest } from '../../governance/gate-contract.ts';
import { check, type Issue } from '../shared/schema-check.ts';
import { membersOf } from './member-spelling.ts';
import { VerbCall, type VerbDependencies } from './verb-call.ts';
import { exactJson } from '../shared/write-exact-json.ts';
import type { Verb } from './verb.ts';

export interface VerbRequest {
  readonly verb: Verb;
  readonly input: unknown;
  readonly caller: Caller;
  /** The stated purpose; null: none. */
  readonly purpose: string | null;
  readonly correlationId: string;
  readonly breakGlass?: string | null;
  readonly accessScopeRef?: string | null;
  readonly gone?: AbortSignal | undefined;
  /** Key of its ToolCall row: a call whose row is there already is refused whole, with REL_CONFLICT. */
  readonly callId?: string;
}

export class MissingPurpose extends ServiceError {
  constructor() {
    super('REL_INVALID', 'purpose: every call needs one, as an argument or by the header x-service-purpose');
  }
}

export interface Called {
  readonly output: unknown;
  readonly processingTimeMs: number;
}

export async function callVerb(gate: GateContract, verbDependencies: VerbDependencies, call: VerbRequest): Promise<Called> {
  const { verb: calledVerb, caller, correlationId, breakGlass = null, accessScopeRef = null, gone: callerGone } = call;
  const callPurpose = call.purpose ?? (calledVerb.purpose === 'required' ? null : calledVerb.purpose.byDefault);
  const verbInvocation: InvocationRequest = {
    action: calledVerb.action,
    purpose: callPurpose,
    purposeRequired: true,
    correlationId,
    breakGlass,
    accessScopeRef,
    ...(callerGone && { gone: callerGone }),
  };
  const startedMs = verbDependencies.clock.monotonicMs();
  const verbOutput = await gate.invoke(caller, verbInvocation, async (callInvocation) => {
    const verbTemplate = `${calledVerb.name} ?`;
    const describeToolCall = (toolCallLiterals: readonly string[]): void =>
      callInvocation.describe({
        template: verbTemplate,
        literals: toolCallLiterals,
        call: { objectType: 'ToolCall', template: verbTemplate, literals: toolCallLiterals },
      });
    describeToolCall([]);
    // A missing purpose is a missing argument. Source: specification, "Other contracts".
    if (callPurpose === null || callPurpose === '') throw new MissingPurpose();
    const verbInput = readInput(calledVerb.input, call.input ?? {});
    const recordedArguments = recordedArgumentsOf(calledVerb, verbInput);
    describeToolCall([exactJson(recordedArguments)]);
    const verbCall = new VerbCall(verbDependencies, callInvocation, {
      verb: calledVerb.name,
      purpose: callPurpose,
      signal: callerGone,
      callId: call.callId,
      arguments: recordedArguments,
    });
    const verbOutput = await calledVerb.run(verbCall, verbInput);
    await verbCall.end();
    callInvocation.describe({ costUnits: calledVerb.units });
    return verbOutput;
  });
  return { output: verbOutput, processingTimeMs: verbDependencies.clock.monotonicMs() - startedMs };
}

/** Checks arguments against the schema, in snake case or camel case. Throws REL_INVALID, also for an unknown member. */
export function readInput<T extends z.ZodObject>(inputSchema: T, givenArguments: unknown): z.output<T> {
  const checkedInput = check(inputSchema, membersOf(givenArguments, Object.keys(inputSchema.shape), 'arguments'));
  if (!checkedInput.success) throw new ServiceError('REL_INVALID', inputIssueText(checkedInput.issues));
  return checkedInput.data as z.output<T>;
}

/** Names the member and its error, never the value that was sent. */
function inputIssueText(inputIssues: readonly Issue[]): string {
  return inputIssues
    .map(
      ({ path: issuePath, message: issueMessage }) =>
        `${issuePath.length === 0 ? 'arguments' : issuePath.map(String).join('.')}: ${issueMessage}`,
    )
    .join('; ');
}

function recordedArgumentsOf({ contents: unrecordedFields = [] }: Verb, verbInput: Readonly<Record<string, unknown>>): unknown {
  return Object.fromEntries(Object.entries(verbInput).filter(([argumentName]) => !unrecordedFields.includes(argumentName)));
}
