/** Tools for models, made from the list of verbs: what each is called and takes, and one call of one. */
import { ServiceError } from '../../errors.ts';
import { callVerb, type Called } from '../verbs/call.ts';
import { verbs } from '../verbs/all.ts';
import { inputSchema, type Verb } from '../verbs/verb.ts';
import type { HttpContext, RequestFacts } from '../http/context.ts';
import { exactJson } from '../http/exact-json.ts';
import { statedBy } from '../http/invoke.ts';

export const tools: readonly Verb[] = verbs.filter(({ tool }) => tool !== undefined);

const byName: ReadonlyMap<string, Verb> = new Map(tools.map((tool) => [tool.name, tool]));

export interface ToolListing {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: Readonly<Record<string, unknown>> & { readonly type: 'object' };
  readonly annotations: {
    readonly title: string;
    readonly readOnlyHint: boolean;
    readonly destructiveHint: boolean;
    readonly idempotentHint: boolean;
    readonly openWorldHint: boolean;
  };
}

/** `purposeKnown`: the connection states it for every call. */
export function toolList(purposeKnown: boolean): readonly ToolListing[] {
  return tools.map((verb) => {
    const { title, readOnly, destructive = false, idempotent = false } = verb.tool!;
    return {
      name: verb.name,
      title,
      description: verb.description,
      inputSchema: { type: 'object' as const, ...inputSchema(verb, purposeKnown) },
      annotations: {
        title,
        readOnlyHint: readOnly,
        destructiveHint: destructive,
        idempotentHint: readOnly || idempotent,
        openWorldHint: false,
      },
    };
  });
}

/** One call. A request may make several: each is an invocation of its own. */
export function callTool(context: HttpContext, request: RequestFacts, name: string, given: unknown): Promise<Called> {
  const { verb, purpose, input } = readCall(name, given);
  const stated = statedBy(request, purpose);
  request.recorded = true;
  takeTurn(context, verb, stated.caller.clientIp);
  return callVerb(context.gate, context, { verb, input, ...stated, missingPurpose: 'argument' });
}

/** Which tool is called, and with what. Throws REL_NOT_FOUND for a tool that is none. */
export function readCall(name: string, given: unknown) {
  const verb = byName.get(name);
  if (verb === undefined) throw new ServiceError('REL_NOT_FOUND', `no such tool: ${JSON.stringify(name.slice(0, 128))}`);
  const { purpose, ...input } = argumentsOf(given);
  return { verb, purpose, input };
}

function argumentsOf(given: unknown): Readonly<Record<string, unknown>> & { readonly purpose: string | undefined } {
  if (given === undefined || given === null) return { purpose: undefined };
  if (typeof given !== 'object' || Array.isArray(given))
    throw new ServiceError('REL_INVALID', 'arguments: one JSON object is expected');
  const { purpose, ...rest } = given as Record<string, unknown>;
  if (purpose !== undefined && purpose !== null && typeof purpose !== 'string')
    throw new ServiceError('REL_INVALID', 'purpose: a text is expected');
  return { ...rest, purpose: purpose ?? undefined };
}

/** The route took from the bucket of reads: what is more takes from its own as well. */
function takeTurn({ writeLimit, memoryLimit, clock }: HttpContext, { bucket }: Verb, address: string | null): void {
  if (bucket === 'read') return;
  const { allowed, limit, retryAfterSecs } = (bucket === 'write' ? writeLimit : memoryLimit).take(
    address ?? '',
    clock.monotonicMs(),
  );
  if (allowed) return;
  throw new ServiceError('REL_RATE_LIMITED', `more than ${limit} calls in a second from this address`, { retryAfterSecs });
}

/** Content of an answer as text; exact, so that integers of 64 bits are what they are. */
export function textContent(output: unknown): { readonly type: 'text'; readonly text: string } {
  return { type: 'text', text: exactJson(output) };
}
