/**
 * One call of a verb on any protocol: one invocation, an access record of its reads and writes and one of the call, one ToolCall
 * row.
 */
import type { z } from 'zod';
import { ServiceError } from '../../errors.ts';
import type { Caller } from '../../governance/caller.ts';
import type { GateContract, InvocationRequest } from '../../governance/gate-contract.ts';
import { check, type Issue } from '../schemas/schema-check.ts';
import { membersOf } from '../schemas/member-spelling.ts';
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

export async function callVerb(gate: GateContract, parts: VerbDependencies, call: VerbRequest): Promise<Called> {
  const { verb, caller, correlationId, breakGlass = null, accessScopeRef = null, gone } = call;
  const purpose = call.purpose ?? (verb.purpose === 'required' ? null : verb.purpose.byDefault);
  const request: InvocationRequest = {
    action: verb.action,
    purpose,
    purposeRequired: true,
    correlationId,
    breakGlass,
    accessScopeRef,
    ...(gone && { gone }),
  };
  const startedMs = parts.clock.monotonicMs();
  const output = await gate.invoke(caller, request, async (invocation) => {
    const template = `${verb.name} ?`;
    const describe = (literals: readonly string[]): void =>
      invocation.describe({ template, literals, call: { objectType: 'ToolCall', template, literals } });
    describe([]);
    // A missing purpose is a missing argument. Source: specification, "Other contracts".
    if (purpose === null || purpose === '') throw new MissingPurpose();
    const input = readInput(verb.input, call.input ?? {});
    const given = recordedOf(verb, input);
    describe([exactJson(given)]);
    const verbCall = new VerbCall(parts, invocation, {
      verb: verb.name,
      purpose,
      signal: gone,
      callId: call.callId,
      arguments: given,
    });
    const verbOutput = await verb.run(verbCall, input);
    await verbCall.end();
    invocation.describe({ costUnits: verb.units });
    return verbOutput;
  });
  return { output, processingTimeMs: parts.clock.monotonicMs() - startedMs };
}

/** Checks arguments against the schema, in snake case or camel case. Throws REL_INVALID, also for an unknown member. */
export function readInput<T extends z.ZodObject>(schema: T, given: unknown): z.output<T> {
  const read = check(schema, membersOf(given, Object.keys(schema.shape), 'arguments'));
  if (!read.success) throw new ServiceError('REL_INVALID', issuesOf(read.issues));
  return read.data as z.output<T>;
}

/** Names the member and its error, never the value that was sent. */
function issuesOf(issues: readonly Issue[]): string {
  return issues
    .map(({ path, message }) => `${path.length === 0 ? 'arguments' : path.map(String).join('.')}: ${message}`)
    .join('; ');
}

function recordedOf({ contents = [] }: Verb, input: Readonly<Record<string, unknown>>): unknown {
  return Object.fromEntries(Object.entries(input).filter(([name]) => !contents.includes(name)));
}
