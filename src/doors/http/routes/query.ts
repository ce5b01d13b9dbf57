/** POST /query: a question in, the governed answer out. Source: specification, "Query" and "Result envelopes". */
import { Readable } from 'node:stream';
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import { checkText } from '../../../log/value.ts';
import { writeRowChunks, writeRowsLatin1 } from '../../../planner/formats/json-rows.ts';
import type { Answer } from '../../../planner/planner-contract.ts';
import type { App, FastifyReply, HttpContext } from '../context.ts';
import { exactJson } from '../exact-json.ts';
import { statedPurpose } from '../headers.ts';
import { invoke, signalOf } from '../invoke.ts';
import { problems } from '../schemas.ts';

/** Answers of more rows leave in pieces, as fast as the client takes them. */
const rowsInOnePiece = 2_000;

const typoTolerance = z.record(z.string(), z.unknown());

const queryBody = z
  .object({
    sql: z.string().describe('one read-only statement'),
    purpose: z.string().optional().describe('why; recorded in the audit trail'),
    branch: z.string().optional().describe('branch to read; main by default'),
    typo_tolerance: typoTolerance.optional(),
    typoTolerance: typoTolerance.optional(),
  })
  .meta({ id: 'Query' });

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
    plan: z.array(z.string()).optional().describe('EXPLAIN: one operator a line'),
    actual_rows: z.int().optional().describe('EXPLAIN ANALYZE'),
  })
  .meta({ id: 'QueryReply' });

export function registerQuery(app: App, context: HttpContext): void {
  app.route({
    method: 'POST',
    url: '/query',
    config: { access: 'token', action: 'query', bucket: 'read' },
    schema: { summary: 'Ask in SQL', tags: ['query'], body: queryBody, response: { 200: queryReply, ...problems } },
    handler: async (request, reply) => {
      const { sql, purpose, branch } = request.body;
      checkText(sql, 'the statement');
      const signal = signalOf(request.raw.socket);
      const answer = await invoke(context, request, 'query', purpose, (invocation) => {
        if (branch !== undefined && branch !== invocation.caller.branch) {
          throw new ServiceError('REL_NOT_FOUND', `no branch ${JSON.stringify(branch.slice(0, 128))}`);
        }
        return context.planner.query(invocation, { sql, purpose: statedPurpose(request, purpose), signal });
      });
      if (answer.rowCount <= rowsInOnePiece) return sendWhole(reply, answer);
      reply.header('content-type', jsonType);
      const body = Readable.from(pieces(answer), { objectMode: false });
      body.on('error', (error) => context.log({ event: 'answer cut off', correlationId: request.id, route: '/query', error }));
      return reply.send(body);
    },
  });
}

/**
 * Bytes as a latin1 string join the header in one write, where a buffer would take a second one: the difference is an
 * eighth of a point read.
 */
function sendWhole(reply: FastifyReply, answer: Answer): FastifyReply {
  let text = `{"rows":${writeRowsLatin1(answer)}`;
  const rest = `${envelope(answer)}}`;
  text += isAscii(rest) ? rest : Buffer.from(rest, 'utf8').toString('latin1');
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
  yield Buffer.from(`${envelope(answer)}}`);
}

const columnNames = new WeakMap<Answer['columns'], string>();

/** Everything after the rows, starting with a comma. */
function envelope(answer: Answer): string {
  let columns = columnNames.get(answer.columns);
  if (columns === undefined) {
    columns = JSON.stringify(answer.columns.map((column) => column.name));
    columnNames.set(answer.columns, columns);
  }
  const ms = Math.round(answer.processingTimeMs * 1000) / 1000;
  let text =
    `,"row_count":${answer.rowCount},"cost_units":${answer.costUnits},"columns":${columns},"processing_time_ms":${ms}` +
    `,"elapsed_ms":${ms},"estimatedTotalHits":${answer.estimatedTotalHits},"as_of_system":${answer.asOfSystem}`;
  if (answer.cursor !== null) text += `,"cursor":${JSON.stringify(answer.cursor)}`;
  if (answer.nextCursor !== null) text += `,"next_cursor":${JSON.stringify(answer.nextCursor)}`;
  if (answer.provenance !== null) {
    const entries = answer.provenance.map((entry) => ({
      source: entry.source,
      method: entry.method,
      confidence: entry.confidence,
      recorded_at: entry.recordedAt,
      derived_from: entry.derivedFrom,
    }));
    text += `,"provenance":${exactJson(entries)}`;
  }
  if (answer.plan !== null) text += `,"plan":${JSON.stringify(answer.plan.replace(/\n$/, '').split('\n'))}`;
  if (answer.actualRows !== null) text += `,"actual_rows":${answer.actualRows}`;
  return text;
}
