/** Tools for models, made from the list of verbs: their names and inputs, and one call of one. */
import { didYouMean, ServiceError } from '../../errors.ts';
import { admitAddress } from '../shared/door-dependencies.ts';
import { callVerb, type Called } from '../verbs/call-verb.ts';
import { verbs } from '../verbs/all.ts';
import { inputSchema, type Verb } from '../verbs/verb.ts';
import type { HttpContext, GateRequest } from '../http/context.ts';
import { statedBy } from '../http/invoke.ts';

export const tools: readonly Verb[] = verbs.filter(({ tool: listedTool }) => listedTool !== undefined);

const toolByName: ReadonlyMap<string, Verb> = new Map(tools.map((listedTool) => [listedTool.name, listedTool]));

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

/** `isPurposeKnown`: the connection states it for every call. */
export function toolList(isPurposeKnown: boolean): readonly ToolListing[] {
  return tools.map((toolVerb) => {
    const {
      title: toolTitle,
      readOnly: isReadOnlyTool,
      destructive: isDestructiveTool = false,
      idempotent: isIdempotentTool = false,
    } = toolVerb.tool!;
    return {
      name: toolVerb.name,
      title: toolTitle,
      description: toolVerb.description,
      inputSchema: { type: 'object' as const, ...inputSchema(toolVerb, isPurposeKnown) },
      annotations: {
        title: toolTitle,
        readOnlyHint: isReadOnlyTool,
        destructiveHint: isDestructiveTool,
        idempotentHint: isReadOnlyTool || isIdempotentTool,
        openWorldHint: false,
      },
    };
  });
}

/** Calls a tool. A request may make several calls: each is an invocation of its own. */
export function callTool(
  httpContext: HttpContext,
  toolRequest: GateRequest,
  toolName: string,
  toolArguments: unknown,
): Promise<Called> {
  const { verb: toolVerb, purpose: toolPurpose, input: toolInput } = readCall(toolName, toolArguments);
  const statedRequest = statedBy(toolRequest, toolPurpose);
  toolRequest.recorded = true;
  takeToolTurn(httpContext, toolVerb, statedRequest.caller.clientIp);
  return callVerb(httpContext.gate, httpContext, { verb: toolVerb, input: toolInput, ...statedRequest });
}

/** Which tool is called, and with what. Throws REL_NOT_FOUND for a tool that is none. */
export function readCall(toolName: string, toolArguments: unknown) {
  const toolVerb = toolByName.get(toolName);
  if (toolVerb === undefined) throw unknownTool(toolName);
  const { purpose: toolPurpose, ...toolInput } = toolArgumentsOf(toolArguments);
  return { verb: toolVerb, purpose: toolPurpose, input: toolInput };
}

/** Tools of the specification whose capability is not built, by what they wait for. */
const missingToolNeeds: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'images, sounds and videos, which nothing reads': 'ingest_media search_video_frames',
  }).flatMap(([toolNeed, neededTools]) => neededTools.split(' ').map((neededTool): [string, string] => [neededTool, toolNeed])),
);

/** Matching faces needs an explicit permit, which no policy can give here. Source: specification, "Tool protocol (MCP)". */
const biometricTool = 'face_match';

function unknownTool(toolName: string): ServiceError {
  if (toolName === biometricTool)
    return new ServiceError('REL_ACL', 'face_match needs an explicit permit to match biometrics, which no policy can give');
  const toolNeed = missingToolNeeds.get(toolName);
  if (toolNeed !== undefined)
    return new ServiceError('REL_NOT_IMPLEMENTED', `the tool ${toolName} is not implemented: it needs ${toolNeed}`);
  const toolGuess = didYouMean(toolName, [...toolByName.keys(), ...missingToolNeeds.keys(), biometricTool]);
  return new ServiceError('REL_NOT_FOUND', `no such tool: ${JSON.stringify(toolName.slice(0, 128))}${toolGuess}`);
}

function toolArgumentsOf(toolArguments: unknown): Readonly<Record<string, unknown>> & { readonly purpose: string | undefined } {
  if (toolArguments === undefined || toolArguments === null) return { purpose: undefined };
  if (typeof toolArguments !== 'object' || Array.isArray(toolArguments))
    throw new ServiceError('REL_INVALID', 'arguments: one JSON object is expected');
  const { purpose: toolPurpose, ...otherArguments } = toolArguments as Record<string, unknown>;
  if (toolPurpose !== undefined && toolPurpose !== null && typeof toolPurpose !== 'string')
    throw new ServiceError('REL_INVALID', 'purpose: a text is expected');
  return { ...otherArguments, purpose: toolPurpose ?? undefined };
}

/** The route took from the bucket of reads; verbs of other buckets take from their own as well. */
function takeToolTurn(
  { writeLimit, memoryLimit, clock }: HttpContext,
  { bucket: toolBucket }: Verb,
  callerAddress: string | null,
): void {
  if (toolBucket === 'read') return;
  admitAddress({ clock }, toolBucket === 'write' ? writeLimit : memoryLimit, callerAddress);
}
