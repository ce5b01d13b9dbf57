/** Answers as files and streams: POST /query/arrow and GET /export. Source: specification, "Query". */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import {
  type OutputForm,
  type OutputFormat,
  outputFormats,
  outputForms,
  refuseLoss,
} from '../../../planner/formats/output-format.ts';
import { openBody } from '../streamed-reply.ts';
import { envelopeFields, envelopeHeaders } from '../result-envelope.ts';
import type { FastifyReply, FastifyRequest, HttpContext } from '../context.ts';
import { preferredType } from '../request-headers.ts';
import { ask, type AskOptions, type Question, questionBody, questionBytesMax } from '../query-body.ts';
import { route, type Route } from '../route.ts';
import { reasons } from '../../schemas/request-terms.ts';

const exportQuery = z.object({
  sql: z.string().optional().describe('one question'),
  query: z.string().optional().describe('the same under its other name'),
  format: z.enum(outputFormats).optional().describe('else what the Accept header likes best, else csv'),
  ...reasons,
});

const mediaTypes = outputFormats.map((name) => typeOf(outputForms[name]));

/** The media type without its parameters. */
function typeOf({ mediaType }: OutputForm): string {
  return mediaType.split(';')[0]!;
}

function formatOf(accepted: string | null): OutputFormat | undefined {
  return outputFormats.find((name) => typeOf(outputForms[name]) === accepted);
}

export const exportRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/query/arrow',
    access: 'token',
    inTransaction: true,
    action: 'query',
    bucket: 'read',
    bodyBytesMax: questionBytesMax,
    summary: 'Ask in SQL, answered as an Arrow IPC stream; its schema carries the envelope',
    tags: ['query'],
    body: questionBody,
    replies: { 200: z.string().describe('application/vnd.apache.arrow.stream') },
    example: { body: { sql: 'a statement' } },
    handle: ({ body, request, reply, context }) =>
      sendFile({ context, request, reply }, body, { action: 'query' }, outputForms.arrow),
  }),

  route({
    method: 'GET',
    path: '/export',
    access: 'token',
    action: 'export',
    bucket: 'read',
    summary: 'The rows of a question as a file: CSV, JSON, NDJSON, Arrow or Parquet',
    tags: ['query'],
    query: exportQuery,
    replies: { 200: z.string().describe('rows in the format asked for') },
    example: { query: { sql: 'a statement', format: 'csv' } },
    handle: ({ query, request, reply, context }) => {
      const { sql, query: other, format, purpose, branch } = query;
      if ((sql === undefined) === (other === undefined)) {
        throw new ServiceError('REL_INVALID', 'give the query in one parameter: sql, or query');
      }
      const accepted = format === undefined ? preferredType(request, mediaTypes) : null;
      const form = outputForms[format ?? formatOf(accepted) ?? 'csv'];
      const question = { sql: (sql ?? other)!, purpose, branch };
      return sendFile({ context, request, reply }, question, { action: 'export', queriesOnly: true }, form, {
        'content-disposition': `attachment; filename="export.${form.extension}"`,
        'cache-control': 'no-store',
      });
    },
  }),
];

interface FileRequest {
  readonly context: HttpContext;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

async function sendFile(
  { context, request, reply }: FileRequest,
  question: Question,
  options: AskOptions,
  form: OutputForm,
  headers: Readonly<Record<string, string>> = {},
): Promise<FastifyReply> {
  const write = await form.writer();
  const { answer, pieces, facts } = await ask(context, request, question, options, (given) => {
    refuseLoss(given, form);
    return { answer: given, pieces: write(given, envelopeFields(given)), facts: envelopeHeaders(given) };
  });
  const all = { 'content-type': form.mediaType, ...facts, ...headers };
  await openBody(context, request, reply, all, answer)?.sendAll(pieces);
  return reply;
}
