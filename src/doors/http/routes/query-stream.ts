/**
 * POST /query/stream: the answer as server-sent events, so that a reader can start before the last row is there.
 *
 *   : running                 now and then, while the question runs; no data leaves before its access record
 *   event: schema             {"columns":[{"name":…,"type":…},…],"as_of_system":…}
 *   event: rows               [{…},…]  some hundred rows of the same form as in /query
 *   event: end                the envelope of /query without its rows
 *   event: error              a problem record, in place of `end`
 *
 * A question that fails before the first comment was due is answered with an ordinary problem record.
 */
import { z } from 'zod';
import { writeRowGroups } from '../../../planner/formats/json-rows.ts';
import type { Answer } from '../../../planner/planner-contract.ts';
import type { AnswerBody } from '../../shared/http-answer-body.ts';
import { openBody } from '../streamed-reply.ts';
import { envelopeMembers } from '../result-envelope.ts';
import type { FastifyReply, FastifyRequest, HttpContext } from '../context.ts';
import { exactJson } from '../../shared/write-exact-json.ts';
import { problemOf, toServiceError } from '../problem.ts';
import { callerOf } from '../invoke.ts';
import { checkCaller, type Overtaken } from '../../shared/stream-lease.ts';
import { ask, questionBody, questionBytesMax } from '../query-body.ts';
import { route, type Route } from '../route.ts';

const rowsInAnEvent = 500;
const heartbeatMs = 500;

const headers = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  // Proxies that hold replies back would make one piece of it again.
  'x-accel-buffering': 'no',
};

export const queryStreamRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/query/stream',
    access: 'token',
    action: 'query',
    bucket: 'read',
    bodyBytesMax: questionBytesMax,
    summary: 'Ask in SQL, answered as server-sent events: schema, rows, end or error',
    tags: ['query'],
    body: questionBody,
    replies: { 200: z.string().describe('text/event-stream') },
    example: { body: { sql: 'a statement' } },
    handle: async ({ body, request, reply, context }) => {
      const answered = new AbortController();
      let answer: Answer | null = null;
      const lease: Overtaken = { overtaken: () => answer?.overtaken() ?? false };
      const opened = heartbeats(context, request, reply, lease, answered.signal);
      try {
        answer = await ask(context, request, body, { action: 'query' }, (given) => given);
      } catch (error) {
        answered.abort();
        return fail(context, request, reply, await opened, error);
      }
      answered.abort();
      const sent = await opened;
      try {
        checkCaller(context, callerOf(request));
      } catch (refusal) {
        return fail(context, request, reply, sent, refusal);
      }
      const open = sent ?? openBody(context, request, reply, headers, lease);
      await open?.sendAll(events(context, request, answer));
      return reply;
    },
  }),
];

/** Reports an error: as a problem record, or as the last event where events were sent already. */
async function fail(
  context: HttpContext,
  request: FastifyRequest,
  reply: FastifyReply,
  open: AnswerBody | null,
  error: unknown,
): Promise<FastifyReply> {
  if (open === null) throw error;
  if (!open.gone) await open.sendAll(one(failure(context, request, error)));
  return reply;
}

/** Keeps the connection alive until `answered`; the body, when it had to be opened for that. */
async function heartbeats(
  context: HttpContext,
  request: FastifyRequest,
  reply: FastifyReply,
  lease: Overtaken,
  answered: AbortSignal,
): Promise<AnswerBody | null> {
  let body: AnswerBody | null = null;
  for (;;) {
    await context.clock.sleep(heartbeatMs, answered);
    if (answered.aborted) return body;
    try {
      checkCaller(context, callerOf(request));
    } catch (refusal) {
      if (body === null) continue;
      await body.sendAll(one(failure(context, request, refusal)));
      // Ends the request, because its question has no reader any more.
      request.raw.socket.destroySoon();
      return body;
    }
    body ??= openBody(context, request, reply, headers, lease);
    await body!.send(one(Buffer.from(': running\n\n')));
  }
}

function* events(context: HttpContext, request: FastifyRequest, answer: Answer): Generator<Uint8Array, void> {
  try {
    yield event('schema', `{"columns":${JSON.stringify(answer.columns)},"as_of_system":${answer.asOfSystem}}`);
    for (const rows of writeRowGroups(answer, rowsInAnEvent)) yield Buffer.concat([rowsStart, rows, eventEnd]);
    yield event('end', `{${envelopeMembers(answer).slice(1)}}`);
  } catch (error) {
    yield failure(context, request, error);
  }
}

function failure(context: HttpContext, request: FastifyRequest, thrown: unknown): Buffer {
  const error = toServiceError(thrown);
  const route = request.routeOptions.url ?? '/query/stream';
  if (error.code === 'REL_INTERNAL') {
    context.log({ event: 'internal error', correlationId: request.id, route, error: error.facts.cause ?? error });
  }
  const problem = problemOf(error, context.settings.SERVICE_ERRORS_BASE, route, request.id);
  return event('error', exactJson({ ...problem, ...error.facts.extras }));
}

function* one(piece: Uint8Array): Generator<Uint8Array, void> {
  yield piece;
}

/** `data` is JSON, which has no bare line break. */
function event(name: string, data: string): Buffer {
  return Buffer.from(`event: ${name}\ndata: ${data}\n\n`);
}

const rowsStart = Buffer.from('event: rows\ndata: ');
const eventEnd = Buffer.from('\n\n');
