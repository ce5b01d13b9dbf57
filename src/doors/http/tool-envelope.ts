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
export function textContent(output: unknown): { readonly type: 'text'; readonly text: string } {
  return { type: 'text', text: exactJson(output) };
}

interface Failed {
  readonly route: string;
  readonly action: Action;
  readonly elapsedMs: number;
}

/** An error as the tool protocol has it, under the status that the same error has everywhere. */
export async function refuseInEnvelope(
  context: HttpContext,
  request: FastifyRequest,
  reply: FastifyReply,
  { route, action, elapsedMs }: Failed,
  error: unknown,
): Promise<unknown> {
  const { status, headers, text } = await refusalOf(context, request, { route, access: 'token', action }, error);
  const said = parseExactJson(text) as { type: string; detail: string; correlation_id: string };
  const { type, detail, correlation_id: id } = said;
  for (const [name, value] of headers) reply.header(name, value);
  const code = type.slice(type.lastIndexOf('/') + 1);
  const problemDocument = { code, detail, correlation_id: id };
  const body = {
    ...said,
    content: [
      { type: 'text', text: `${code}: ${detail}` },
      { type: 'json', json: problemDocument },
    ],
    isError: true,
    meta: { processing_time_ms: elapsedMs },
  };
  void reply
    .code(status)
    .header('content-type', 'application/json; charset=utf-8')
    .serializer((value: unknown) => value as string);
  return exactJson(body);
}
