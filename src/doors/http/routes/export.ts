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
import { reasons } from '../request-terms.ts';

const exportParameters = z.object({
  sql: z.string().optional().describe('one question'),
  query: z.string().optional().describe('the same under its other name'),
  format: z.enum(outputFormats).optional().describe('else what the Accept header likes best, else csv'),
  ...reasons,
});

const exportMediaTypes = outputFormats.map((exportFormat) => mediaTypeOf(outputForms[exportFormat]));

/** The media type without its parameters. */
function mediaTypeOf({ mediaType: formMediaType }: OutputForm): string {
  return formMediaType.split(';')[0]!;
}

function formatOfMediaType(acceptedType: string | null): OutputFormat | undefined {
  return outputFormats.find((exportFormat) => mediaTypeOf(outputForms[exportFormat]) === acceptedType);
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
    handle: ({ body: arrowQuestion, request: exportHttpRequest, reply: exportReply, context: httpContext }) =>
      sendExportFile(
        { context: httpContext, request: exportHttpRequest, reply: exportReply },
        arrowQuestion,
        { action: 'query' },
        outputForms.arrow,
      ),
  }),

  route({
    method: 'GET',
    path: '/export',
    access: 'token',
    action: 'export',
    bucket: 'read',
    summary: 'The rows of a question as a file: CSV, JSON, NDJSON, Arrow or Parquet',
    tags: ['query'],
    query: exportParameters,
    replies: { 200: z.string().describe('rows in the format asked for') },
    example: { query: { sql: 'a statement', format: 'csv' } },
    handle: ({ query: exportRequest, request: exportHttpRequest, reply: exportReply, context: httpContext }) => {
      const {
        sql: exportSql,
        query: otherSql,
        format: exportFormat,
        purpose: exportPurpose,
        branch: exportBranch,
      } = exportRequest;
      if ((exportSql === undefined) === (otherSql === undefined)) {
        throw new ServiceError('REL_INVALID', 'give the query in one parameter: sql, or query');
      }
      const acceptedType = exportFormat === undefined ? preferredType(exportHttpRequest, exportMediaTypes) : null;
      const exportForm = outputForms[exportFormat ?? formatOfMediaType(acceptedType) ?? 'csv'];
      const exportQuestion = { sql: (exportSql ?? otherSql)!, purpose: exportPurpose, branch: exportBranch };
      return sendExportFile(
        { context: httpContext, request: exportHttpRequest, reply: exportReply },
        exportQuestion,
        { action: 'export', queriesOnly: true },
        exportForm,
        {
          'content-disposition': `attachment; filename="export.${exportForm.extension}"`,
          'cache-control': 'no-store',
        },
      );
    },
  }),
];

interface ExportFileRequest {
  readonly context: HttpContext;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

async function sendExportFile(
  { context: httpContext, request: exportHttpRequest, reply: exportReply }: ExportFileRequest,
  exportQuestion: Question,
  askOptions: AskOptions,
  exportForm: OutputForm,
  exportHeaders: Readonly<Record<string, string>> = {},
): Promise<FastifyReply> {
  const writeExport = await exportForm.writer();
  const {
    answer: sentAnswer,
    pieces: exportPieces,
    facts: envelopeHeaderFacts,
  } = await ask(httpContext, exportHttpRequest, exportQuestion, askOptions, (exportAnswer) => {
    refuseLoss(exportAnswer, exportForm);
    return {
      answer: exportAnswer,
      pieces: writeExport(exportAnswer, envelopeFields(exportAnswer)),
      facts: envelopeHeaders(exportAnswer),
    };
  });
  const replyHeaders = { 'content-type': exportForm.mediaType, ...envelopeHeaderFacts, ...exportHeaders };
  await openBody(httpContext, exportHttpRequest, exportReply, replyHeaders, sentAnswer)?.sendAll(exportPieces);
  return exportReply;
}
