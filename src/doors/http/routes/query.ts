/** POST /query: a question in, the governed answer out. Source: specification, "Query" and "Result envelopes". */
import { z } from 'zod';
import { moreRows, RowsText } from '../../../planner/formats/json-rows.ts';
import type { Answer } from '../../../planner/planner-contract.ts';
import { openBody } from '../streamed-reply.ts';
import { envelopeMembers, envelopePieces, facetValues } from '../result-envelope.ts';
import type { HttpContext, GateRequest } from '../context.ts';
import type { Overtaken } from '../../shared/stream-lease.ts';
import type { FastPathRoute } from '../fast-path.ts';
import { ask, plainQuestion, type Question, questionBody, questionBytesMax } from '../query-body.ts';
import { ReplyBytes } from '../fast-path-reply.ts';
import { route, type Route } from '../route.ts';

/** Longer answers leave in pieces, as fast as the client takes them. */
const rowsPerQueryPiece = 2_000;
const bytesPerQueryPiece = 1 << 19;

const provenanceReply = z.object({
  source: z.string(),
  method: z.string(),
  confidence: z.number(),
  recorded_at: z.int(),
  derived_from: z.string().nullable(),
});

const operatorReply = z.object({
  part: z.string().describe('answer, facets, or a query that runs before the answer: set 1, scalar 1, exists 1 …'),
  depth: z.int().describe('its inputs stand below it, one deeper'),
  operator: z.string(),
  line: z.string().describe('as in plan'),
  state: z.enum(['read', 'stopped early', 'not read', 'within the line above']),
  rows_in: z.int().nullable(),
  rows_out: z.int().nullable(),
  rows_expected: z.int(),
  time_ms: z.number().nullable().describe('its own, without its inputs'),
  memory_bytes: z.int().nullable().describe('of the cells that it held, at most'),
  index: z.string().nullable(),
});

export const answerReply = z
  .object({
    rows: z.array(z.record(z.string(), z.unknown())),
    row_count: z.int(),
    cost_units: z.number(),
    columns: z.array(z.string()),
    processing_time_ms: z.number(),
    elapsed_ms: z.number().describe('the same figure under its older name'),
    estimatedTotalHits: z.int().describe('rows that match before LIMIT; exact up to 100,000, else a lower bound'),
    as_of_system: z.int().describe('the instant that the answer is true of, nanoseconds UTC'),
    cursor: z.string().optional().describe('system_from of the last row, for LIMIT n AFTER'),
    next_cursor: z.string().optional().describe('opaque cursor that stays on this snapshot'),
    provenance: z.array(provenanceReply).optional(),
    facets: z
      .record(z.string(), z.record(z.string(), z.int()))
      .optional()
      .describe('FACETS: attribute to value to count over the matching set, up to 100,000 rows'),
    facetStats: z
      .record(z.string(), z.object({ min: z.number(), max: z.number(), sum: z.number(), avg: z.number(), count: z.int() }))
      .optional()
      .describe('figures of the numeric attributes'),
    approximate: z
      .boolean()
      .optional()
      .describe('nearest rows may be missing, or scores went on from those of an earlier answer'),
    plan: z.array(z.string()).optional().describe('EXPLAIN: one operator a line'),
    actual_rows: z.int().optional().describe('EXPLAIN ANALYZE: rows of the answer'),
    operators: z
      .array(operatorReply)
      .optional()
      .describe('EXPLAIN ANALYZE: what each line of the plan came to; null is not told'),
  })
  .meta({ id: 'QueryReply' });

export const queryRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/query',
    access: 'token',
    inTransaction: true,
    action: 'query',
    bucket: 'read',
    bodyBytesMax: questionBytesMax,
    summary: 'Ask in SQL',
    tags: ['query'],
    body: questionBody,
    replies: { 200: answerReply },
    example: { body: { sql: 'a statement' } },
    handle: async ({ body: sqlQuestion, request: queryRequest, reply: queryHttpReply, context: httpContext }) => {
      const queryReply = await answerQuery(httpContext, queryRequest, sqlQuestion);
      if ('whole' in queryReply) {
        const wholeReply = queryReply.whole.body();
        const queryHeaders = { 'content-type': jsonContentType, 'content-length': String(wholeReply.length) };
        await openBody(httpContext, queryRequest, queryHttpReply, queryHeaders, queryReply)?.sendAll([wholeReply].values());
        return queryHttpReply;
      }
      await openBody(httpContext, queryRequest, queryHttpReply, { 'content-type': jsonContentType }, queryReply)?.sendAll(
        queryReply.pieces,
      );
      return queryHttpReply;
    },
  }),
];

/** Questions that arrive whole, as nearly all do. */
export function plainQuery(httpContext: HttpContext): FastPathRoute {
  return {
    url: '/query',
    action: 'query',
    bucket: 'read',
    takes: (requestTarget) => requestTarget === '/query',
    bodyOf: plainQuestion,
    answer: (plainRequest) => answerQuery(httpContext, plainRequest, plainRequest.body as Question),
  };
}

type QueryReply = Overtaken & { readonly contentType: string } & (
    | { readonly whole: ReplyBytes }
    | { readonly pieces: Iterator<Uint8Array> }
  );

/** Rows become text while they are read; an answer too long for one piece stays in columns until the client takes it. */
function answerQuery(httpContext: HttpContext, queryRequest: GateRequest, sqlQuestion: Question): Promise<QueryReply> {
  const replyBytes = new ReplyBytes();
  const { writer: replyWriter } = replyBytes;
  replyWriter.string('{"rows":');
  const rowsText = new RowsText(replyWriter, { rowsMax: rowsPerQueryPiece, bytesMax: bytesPerQueryPiece });
  return ask(httpContext, queryRequest, sqlQuestion, { action: 'query', rows: rowsText }, (queryAnswer) => {
    const { columns: answerColumns, batches: answerBatches, overtaken: isOvertaken } = queryAnswer;
    let writtenBatches = 0;
    while (writtenBatches < answerBatches.length && rowsText.take(answerColumns, answerBatches[writtenBatches]!))
      writtenBatches++;
    if (writtenBatches === answerBatches.length && facetValues(queryAnswer) <= rowsPerQueryPiece) {
      rowsText.close();
      replyWriter.string(envelopeMembers(queryAnswer));
      replyWriter.byte(closingBraceByte);
      return { contentType: jsonContentType, whole: replyBytes, overtaken: isOvertaken };
    }
    rowsText.leaveOpen();
    return {
      contentType: jsonContentType,
      overtaken: isOvertaken,
      pieces: queryReplyPieces(replyBytes, rowsText.rows, { ...queryAnswer, batches: answerBatches.slice(writtenBatches) }),
    };
  });
}

const closingBraceByte = 0x7d;
const jsonContentType = 'application/json; charset=utf-8';

/** The first piece holds the rows that are written already. */
function* queryReplyPieces(replyBytes: ReplyBytes, rowsBefore: number, restOfAnswer: Answer): Generator<Buffer, void> {
  yield replyBytes.body();
  yield* moreRows(restOfAnswer, { after: rowsBefore });
  for (const envelopePiece of envelopePieces(restOfAnswer)) yield Buffer.from(envelopePiece);
  yield Buffer.from('}');
}
