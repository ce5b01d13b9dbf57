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
const rowsInOnePiece = 2_000;
const bytesInOnePiece = 1 << 19;

const provenance = z.object({
  source: z.string(),
  method: z.string(),
  confidence: z.number(),
  recorded_at: z.int(),
  derived_from: z.string().nullable(),
});

const operator = z.object({
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
    provenance: z.array(provenance).optional(),
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
    operators: z.array(operator).optional().describe('EXPLAIN ANALYZE: what each line of the plan came to; null is not told'),
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
    handle: async ({ body, request, reply, context }) => {
      const answer = await answerTo(context, request, body);
      if ('whole' in answer) {
        const whole = answer.whole.body();
        const headers = { 'content-type': jsonType, 'content-length': String(whole.length) };
        await openBody(context, request, reply, headers, answer)?.sendAll([whole].values());
        return reply;
      }
      await openBody(context, request, reply, { 'content-type': jsonType }, answer)?.sendAll(answer.pieces);
      return reply;
    },
  }),
];

/** Questions that arrive whole, as nearly all do. */
export function plainQuery(context: HttpContext): FastPathRoute {
  return {
    url: '/query',
    action: 'query',
    bucket: 'read',
    takes: (target) => target === '/query',
    bodyOf: plainQuestion,
    answer: (request) => answerTo(context, request, request.body as Question),
  };
}

type Answered = Overtaken & { readonly contentType: string } & (
    | { readonly whole: ReplyBytes }
    | { readonly pieces: Iterator<Uint8Array> }
  );

/** Rows become text while they are read; an answer too long for one piece stays in columns until the client takes it. */
function answerTo(context: HttpContext, request: GateRequest, question: Question): Promise<Answered> {
  const reply = new ReplyBytes();
  const { writer } = reply;
  writer.string('{"rows":');
  const rows = new RowsText(writer, { rowsMax: rowsInOnePiece, bytesMax: bytesInOnePiece });
  return ask(context, request, question, { action: 'query', rows }, (answer) => {
    const { columns, batches, overtaken } = answer;
    let taken = 0;
    while (taken < batches.length && rows.take(columns, batches[taken]!)) taken++;
    if (taken === batches.length && facetValues(answer) <= rowsInOnePiece) {
      rows.close();
      writer.string(envelopeMembers(answer));
      writer.byte(closingBrace);
      return { contentType: jsonType, whole: reply, overtaken };
    }
    rows.leaveOpen();
    return { contentType: jsonType, overtaken, pieces: pieces(reply, rows.rows, { ...answer, batches: batches.slice(taken) }) };
  });
}

const closingBrace = 0x7d;
const jsonType = 'application/json; charset=utf-8';

/** The first piece holds the rows that are written already. */
function* pieces(reply: ReplyBytes, after: number, rest: Answer): Generator<Buffer, void> {
  yield reply.body();
  yield* moreRows(rest, { after });
  for (const piece of envelopePieces(rest)) yield Buffer.from(piece);
  yield Buffer.from('}');
}
