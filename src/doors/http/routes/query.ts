/** POST /query: a question in, the governed answer out. Source: specification, "Query" and "Result envelopes". */
import { z } from 'zod';
import { writeRowChunks, writeRowsLatin1 } from '../../../planner/formats/json-rows.ts';
import type { Answer } from '../../../planner/planner-contract.ts';
import { openBody } from '../answer-body.ts';
import { envelopeMembers, envelopePieces, facetValues } from '../answer-envelope.ts';
import type { App, FastifyReply, HttpContext } from '../context.ts';
import type { PlainRoute } from '../plain-lane.ts';
import { ask, plainQuestion, type Question, questionBody, questionBytesMax } from '../question.ts';
import { problems } from '../schemas.ts';

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

const queryReply = z
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
    plan: z.array(z.string()).optional().describe('EXPLAIN: one operator a line'),
    actual_rows: z.int().optional().describe('EXPLAIN ANALYZE'),
  })
  .meta({ id: 'QueryReply' });

export function registerQuery(app: App, context: HttpContext): void {
  app.route({
    method: 'POST',
    url: '/query',
    config: { access: 'token', action: 'query', bucket: 'read' },
    bodyLimit: questionBytesMax,
    schema: { summary: 'Ask in SQL', tags: ['query'], body: questionBody, response: { 200: queryReply, ...problems } },
    handler: async (request, reply) => {
      const answer = await ask(context, request, request.body, { action: 'query' }, (given) => given);
      const whole = wholeLatin1(answer);
      if (whole !== null) return sendWhole(reply, whole);
      await openBody(context, request, reply, { 'content-type': jsonType })?.sendAll(pieces(answer));
      return reply;
    },
  });
}

/** Questions that arrive whole, as nearly all do. */
export function plainQuery(context: HttpContext): PlainRoute {
  return {
    url: '/query',
    action: 'query',
    bucket: 'read',
    takes: (target) => target === '/query',
    bodyOf: plainQuestion,
    answer: async (request) => {
      const answer = await ask(context, request, request.body as Question, { action: 'query' }, (given) => given);
      const latin1 = wholeLatin1(answer);
      return latin1 === null ? { contentType: jsonType, pieces: pieces(answer) } : { contentType: jsonType, latin1 };
    },
  };
}

/**
 * An answer in one string, a character a byte: so it joins the header in one write, where a buffer would take a second one,
 * an eighth of a point read. null where it is too long for that.
 */
function wholeLatin1(answer: Answer): string | null {
  const isShort = answer.rowCount + facetValues(answer) <= rowsInOnePiece;
  const rows = isShort ? writeRowsLatin1(answer, bytesInOnePiece) : null;
  if (rows === null) return null;
  const rest = `${envelopeMembers(answer)}}`;
  return `{"rows":${rows}${isAscii(rest) ? rest : Buffer.from(rest, 'utf8').toString('latin1')}`;
}

function sendWhole(reply: FastifyReply, text: string): FastifyReply {
  reply.hijack();
  reply.raw.writeHead(200, ['content-type', jsonType, 'content-length', String(text.length)]);
  reply.raw.end(text, 'latin1');
  return reply;
}

const jsonType = 'application/json; charset=utf-8';

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return false;
  return true;
}

function* pieces(answer: Answer): Generator<Buffer, void> {
  yield Buffer.from('{"rows":');
  yield* writeRowChunks(answer);
  for (const piece of envelopePieces(answer)) yield Buffer.from(piece);
  yield Buffer.from('}');
}
