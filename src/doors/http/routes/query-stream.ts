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

const rowsPerStreamEvent = 500;
const streamHeartbeatMs = 500;

const eventStreamHeaders = {
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
    handle: async ({ body: streamQuestion, request: streamRequest, reply: streamReply, context: httpContext }) => {
      const streamAnswered = new AbortController();
      let streamAnswer: Answer | null = null;
      const streamLease: Overtaken = { overtaken: () => streamAnswer?.overtaken() ?? false };
      const openedStream = sendHeartbeats(httpContext, streamRequest, streamReply, streamLease, streamAnswered.signal);
      try {
        streamAnswer = await ask(httpContext, streamRequest, streamQuestion, { action: 'query' }, (queryAnswer) => queryAnswer);
      } catch (streamError) {
        streamAnswered.abort();
        return failStream(httpContext, streamRequest, streamReply, await openedStream, streamError);
      }
      streamAnswered.abort();
      const heartbeatStream = await openedStream;
      try {
        checkCaller(httpContext, callerOf(streamRequest));
      } catch (callerRefusal) {
        return failStream(httpContext, streamRequest, streamReply, heartbeatStream, callerRefusal);
      }
      const openStream = heartbeatStream ?? openBody(httpContext, streamRequest, streamReply, eventStreamHeaders, streamLease);
      await openStream?.sendAll(streamEvents(httpContext, streamRequest, streamAnswer));
      return streamReply;
    },
  }),
];

/** Reports an error: as a problem record, or as the last event where events were sent already. */
async function failStream(
  httpContext: HttpContext,
  streamRequest: FastifyRequest,
  streamReply: FastifyReply,
  openStream: AnswerBody | null,
  streamError: unknown,
): Promise<FastifyReply> {
  if (openStream === null) throw streamError;
  if (!openStream.gone) await openStream.sendAll(oneStreamPiece(streamFailure(httpContext, streamRequest, streamError)));
  return streamReply;
}

/** Keeps the connection alive until `streamAnswered`; the body, when it had to be opened for that. */
async function sendHeartbeats(
  httpContext: HttpContext,
  streamRequest: FastifyRequest,
  streamReply: FastifyReply,
  streamLease: Overtaken,
  streamAnswered: AbortSignal,
): Promise<AnswerBody | null> {
  let heartbeatBody: AnswerBody | null = null;
  for (;;) {
    await httpContext.clock.sleep(streamHeartbeatMs, streamAnswered);
    if (streamAnswered.aborted) return heartbeatBody;
    try {
      checkCaller(httpContext, callerOf(streamRequest));
    } catch (callerRefusal) {
      if (heartbeatBody === null) continue;
      await heartbeatBody.sendAll(oneStreamPiece(streamFailure(httpContext, streamRequest, callerRefusal)));
      // Ends the request, because its question has no reader any more.
      streamRequest.raw.socket.destroySoon();
      return heartbeatBody;
    }
    heartbeatBody ??= openBody(httpContext, streamRequest, streamReply, eventStreamHeaders, streamLease);
    await heartbeatBody!.send(oneStreamPiece(Buffer.from(': running\n\n')));
  }
}

function* streamEvents(
  httpContext: HttpContext,
  streamRequest: FastifyRequest,
  streamAnswer: Answer,
): Generator<Uint8Array, void> {
  try {
    yield streamEvent('schema', `{"columns":${JSON.stringify(streamAnswer.columns)},"as_of_system":${streamAnswer.asOfSystem}}`);
    for (const rowGroup of writeRowGroups(streamAnswer, rowsPerStreamEvent))
      yield Buffer.concat([rowsEventStart, rowGroup, streamEventEnd]);
    yield streamEvent('end', `{${envelopeMembers(streamAnswer).slice(1)}}`);
  } catch (streamError) {
    yield streamFailure(httpContext, streamRequest, streamError);
  }
}

function streamFailure(httpContext: HttpContext, streamRequest: FastifyRequest, thrownError: unknown): Buffer {
  const streamError = toServiceError(thrownError);
  const streamRoute = streamRequest.routeOptions.url ?? '/query/stream';
  if (streamError.code === 'REL_INTERNAL') {
    httpContext.log({
      event: 'internal error',
      correlationId: streamRequest.id,
      route: streamRoute,
      error: streamError.facts.cause ?? streamError,
    });
  }
  const streamProblem = problemOf(streamError, httpContext.settings.SERVICE_ERRORS_BASE, streamRoute, streamRequest.id);
  return streamEvent('error', exactJson({ ...streamProblem, ...streamError.facts.extras }));
}

function* oneStreamPiece(streamPiece: Uint8Array): Generator<Uint8Array, void> {
  yield streamPiece;
}

/** `eventData` is JSON, which has no bare line break. */
function streamEvent(eventName: string, eventData: string): Buffer {
  return Buffer.from(`event: ${eventName}\ndata: ${eventData}\n\n`);
}

const rowsEventStart = Buffer.from('event: rows\ndata: ');
const streamEventEnd = Buffer.from('\n\n');
