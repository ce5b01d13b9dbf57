/** The envelope of tool replies and of memory verbs, and a refusal in it. Source: specification, "Result envelopes" and "Other contracts". */
import { z } from 'zod';
import type { Action } from '../../governance/gate-contract.ts';
import type { FastifyReply, FastifyRequest, HttpContext } from './context.ts';
import { exactJson } from '../shared/write-exact-json.ts';
import { parseExactJson } from '../shared/read-exact-json.ts';
import { refusalOf } from './error-reply.ts';
import { problem } from './schemas.ts';

export const toolEnvelope = {
  content: z.array(
    z.union([z.object({ type: z.literal('text'), text: z.string() }), z.object({ type: z.literal('json'), json: z.unknown() })]),
  ),
  isError: z.boolean(),
  meta: z.object({ processing_time_ms: z.number() }),
};

export const toolProblem = problem
  .extend(toolEnvelope)
  .meta({ id: 'ToolProblem', description: 'a problem record in the envelope of tool replies' });

/** Content of an answer as text, with exact integers of 64 bits. */
export function textContent(toolOutput: unknown): { readonly type: 'text'; readonly text: string } {
  return { type: 'text', text: exactJson(toolOutput) };
}

interface FailedToolCall {
  readonly route: string;
  readonly action: Action;
  readonly elapsedMs: number;
}

/** An error as the tool protocol has it, under the status that the same error has everywhere. */
export async function refuseInEnvelope(
  httpContext: HttpContext,
  request: FastifyRequest,
  reply: FastifyReply,
  { route: toolRoute, action: toolAction, elapsedMs: toolElapsedMs }: FailedToolCall,
  toolError: unknown,
): Promise<unknown> {
  const {
    status: problemStatus,
    headers: problemHeaders,
    text: problemText,
  } = await refusalOf(httpContext, request, { route: toolRoute, access: 'token', action: toolAction }, toolError);
  const toolProblemFields = parseExactJson(problemText) as { type: string; detail: string; correlation_id: string };
  const { type: problemType, detail: problemDetail, correlation_id: problemCorrelation } = toolProblemFields;
  for (const [headerName, headerValue] of problemHeaders) reply.header(headerName, headerValue);
  const toolErrorCode = problemType.slice(problemType.lastIndexOf('/') + 1);
  const problemDocument = { code: toolErrorCode, detail: problemDetail, correlation_id: problemCorrelation };
  const envelopeBody = {
    ...toolProblemFields,
    content: [
      { type: 'text', text: `${toolErrorCode}: ${problemDetail}` },
      { type: 'json', json: problemDocument },
    ],
    isError: true,
    meta: { processing_time_ms: toolElapsedMs },
  };
  void reply
    .code(problemStatus)
    .header('content-type', 'application/json; charset=utf-8')
    .serializer((value: unknown) => value as string);
  return exactJson(envelopeBody);
}
