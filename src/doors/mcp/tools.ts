/** Tools for models, made from the list of verbs: their names and inputs, and one call of one. */
import { didYouMean, ServiceError } from '../../errors.ts';
import { admitAddress } from '../shared/door-dependencies.ts';
import { callVerb, type Called } from '../verbs/call-verb.ts';
import { verbs } from '../verbs/all.ts';
import { inputSchema, type Verb } from '../verbs/verb.ts';
import type { HttpContext, GateRequest } from '../http/context.ts';
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

/** Calls a tool. A request may make several calls: each is an invocation of its own. */
export function callTool(context: HttpContext, request: GateRequest, name: string, given: unknown): Promise<Called> {
  const { verb, purpose, input } = readCall(name, given);
  const stated = statedBy(request, purpose);
  request.recorded = true;
  takeTurn(context, verb, stated.caller.clientIp);
  return callVerb(context.gate, context, { verb, input, ...stated });
}

/** Which tool is called, and with what. Throws REL_NOT_FOUND for a tool that is none. */
export function readCall(name: string, given: unknown) {
  const verb = byName.get(name);
  if (verb === undefined) throw unknownTool(name);
  const { purpose, ...input } = argumentsOf(given);
  return { verb, purpose, input };
}

/** Tools of the specification whose capability is not built, by what they wait for. */
const needs: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'images, sounds and videos, which nothing reads': 'ingest_media search_video_frames',
  }).flatMap(([need, names]) => names.split(' ').map((name): [string, string] => [name, need])),
);

/** Matching faces needs an explicit permit, which no policy can give here. Source: specification, "Tool protocol (MCP)". */
const biometric = 'face_match';

function unknownTool(name: string): ServiceError {
  if (name === biometric)
    return new ServiceError('REL_ACL', 'face_match needs an explicit permit to match biometrics, which no policy can give');
  const need = needs.get(name);
  if (need !== undefined) return new ServiceError('REL_NOT_IMPLEMENTED', `the tool ${name} is not implemented: it needs ${need}`);
  const guess = didYouMean(name, [...byName.keys(), ...needs.keys(), biometric]);
  return new ServiceError('REL_NOT_FOUND', `no such tool: ${JSON.stringify(name.slice(0, 128))}${guess}`);
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

/** The route took from the bucket of reads; verbs of other buckets take from their own as well. */
function takeTurn({ writeLimit, memoryLimit, clock }: HttpContext, { bucket }: Verb, address: string | null): void {
  if (bucket === 'read') return;
  admitAddress({ clock }, bucket === 'write' ? writeLimit : memoryLimit, address);
}
