/**
 * GET /watch/stream: a standing query as server-sent events. Source: specification, "Events".
 *
 * With `subscription` one that stands, with `sql` one that stands as long as the stream; with neither all that the caller has
 * registered and nobody follows, and what it registers meanwhile. Ids of events are then of all of them.
 *
 *   retry: 1000
 *   event: insert | update | delete | leave     id: <system_from>   data: {subscription, system_from, row, before?}
 *   event: heartbeat                            id: <instant up to which all was told>
 *   event: error                                data: {code, status, detail}; the stream ends with it
 */
import type { ServerResponse } from 'node:http';
import { z } from 'zod';
import type { Clock } from '../../../clock.ts';
import { ServiceError } from '../../../errors.ts';
import { checkText } from '../../../log/values/value.ts';
import { readCursors, cursorFor } from '../../../planner/continuous/watch/merged-stream.ts';
import type { Subscription, WatchClient } from '../../../planner/continuous/watch/subscription.ts';
import { problemText } from '../../../planner/continuous/watch/watch.ts';
import { errorEvent, type WatchEvent } from '../../../planner/continuous/watch/watch-events.ts';
import type { FastifyReply, FastifyRequest, HttpContext } from '../context.ts';
import { eventText, retryLine } from '../server-sent-events.ts';
import { headerText, statedPurpose } from '../request-headers.ts';
import { invoke, signalOf } from '../invoke.ts';
import { watchStream } from '../../shared/stream-lease.ts';
import { route, type Route } from '../route.ts';

const streamQuery = z.object({
  subscription: z.string().optional().describe('as WATCH on /query answered it; with neither this nor sql: all of the caller’s'),
  sql: z.string().optional().describe('instead: the standing query itself, WATCH PURPOSE or its SELECT'),
  purpose: z.string().optional().describe('with sql: why; recorded with every delivery'),
  branch: z.string().optional().describe('branch to follow; main by default'),
  break_glass: z.string().optional().describe('with sql: why a protected type is to be opened; recorded with every delivery'),
  access_scope_ref: z.string().optional().describe('with sql: the access scope that the reader was cleared for'),
  last_event_id: z.string().optional().describe('the same as the header Last-Event-ID, for clients that cannot send it'),
});

/** A client that takes nothing for so long is cut off; it may resume after the last id that it has. */
const stalledMs = 30_000;
/** Time for a cut off client to read the reason. */
const lastWordsMs = 2_000;

export const watchRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/watch/stream',
    framework: { exposeHeadRoute: false },
    access: 'token',
    action: 'watch',
    bucket: 'read',
    summary: 'Follow a standing query as server-sent events: insert, update, delete, leave, heartbeat, error',
    tags: ['query'],
    query: streamQuery,
    replies: { 200: z.string().describe('text/event-stream') },
    example: { query: { sql: 'a statement', purpose: 'a purpose' } },
    handle: async ({ query, request, reply, context }) => {
      const { subscription: id, sql, purpose } = query;
      const { watch } = context;
      if (id === undefined && sql === undefined) {
        await followAll(context, request, reply, query.last_event_id);
        return reply;
      }
      if (id !== undefined && sql !== undefined) {
        throw new ServiceError('REL_INVALID', 'give subscription or sql, or neither for all of your subscriptions');
      }
      const resumeAfter = lastEventId(request, query.last_event_id);
      let claimed: Subscription | null = null;
      try {
        await invoke(context, request, 'watch', purpose, async (invocation) => {
          if (sql !== undefined) checkText(sql, 'the statement');
          const subscriptions =
            sql === undefined
              ? watch.requireSubscription(id!, invocation.caller)
              : await watch.register(invocation, sql, statedPurpose(request, purpose));
          invocation.describe({
            purpose: subscriptions.purpose,
            objectType: subscriptions.statement.type,
            template: subscriptions.statement.template,
          });
          watch.checkResumption(subscriptions, resumeAfter, sql !== undefined);
          claimed = watch.claim(subscriptions);
        });
      } catch (error) {
        if (claimed !== null) watch.release(claimed);
        throw error;
      }
      await follow(context, request, reply, claimed!, { resumeAfter, keep: sql === undefined });
      return reply;
    },
  }),
];

async function follow(
  context: HttpContext,
  request: FastifyRequest,
  reply: FastifyReply,
  subscription: Subscription,
  options: { readonly resumeAfter: bigint | null; readonly keep: boolean },
): Promise<void> {
  await stream(context, request, reply, (client) => context.watch.follow(subscription, client, options));
}

/** Follows all of the caller's unfollowed subscriptions; without one the stream waits for the first. */
async function followAll(
  context: HttpContext,
  request: FastifyRequest,
  reply: FastifyReply,
  parameter: string | undefined,
): Promise<void> {
  const { watch } = context;
  const id = lastIdText(request, parameter);
  const toldPositions = id === null ? new Map<string, bigint>() : readCursors(id);
  const claimed: Subscription[] = [];
  const caller = await invoke(context, request, 'watch', undefined, async (invocation) => {
    const waiting = watch.registeredBy(invocation.caller);
    for (const subscription of waiting) watch.checkResumption(subscription, cursorFor(toldPositions, subscription.id), false);
    const [first] = waiting;
    if (first !== undefined) invocation.describe({ purpose: first.purpose });
    for (const subscription of waiting) claimed.push(watch.claim(subscription));
    return invocation.caller;
  }).catch((error: unknown) => {
    for (const subscription of claimed) watch.release(subscription);
    throw error;
  });
  await stream(context, request, reply, async (client) => {
    const over = new AbortController();
    const check = (): void => {
      client.renew();
      context.gate.checkStanding(caller);
    };
    // Without a subscription no other check covers this stream.
    void watchStream(context, check, over.signal, (refusal) => client.end(errorEvent(problemText(refusal))));
    try {
      await watch.followAll(caller, client, claimed, toldPositions);
    } finally {
      over.abort();
    }
  });
}

async function stream(
  context: HttpContext,
  request: FastifyRequest,
  reply: FastifyReply,
  follows: (client: WatchClient) => Promise<void>,
): Promise<void> {
  reply.hijack();
  reply.raw.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    // Proxies that hold replies back would make batches of it.
    'x-accel-buffering': 'no',
  });
  // A client may wait for the head before it registers anything.
  reply.raw.flushHeaders();
  reply.raw.write(retryLine);
  const client = new StreamClient(context, request, reply.raw);
  try {
    await follows(client);
  } catch (error) {
    context.log({ event: 'internal error', correlationId: request.id, route: '/watch/stream', error });
  }
}

class StreamClient implements WatchClient {
  readonly gone: AbortSignal;
  readonly #clock: Clock;
  readonly #response: ServerResponse;
  readonly #renew: WatchClient['renew'];
  readonly #ended = new AbortController();

  constructor({ clock, authenticator }: HttpContext, request: FastifyRequest, response: ServerResponse) {
    this.#clock = clock;
    this.#response = response;
    this.gone = signalOf(request.raw.socket);
    const credentials = {
      authorization: request.headers.authorization,
      organization: headerText(request, 'x-organization-id') ?? undefined,
      door: 'http',
      clientIp: request.ip,
    };
    this.#renew = () => authenticator.dataCaller(credentials);
  }

  renew(): ReturnType<WatchClient['renew']> {
    return this.#renew();
  }

  async write(events: readonly WatchEvent[]): Promise<boolean> {
    if (this.#isOver()) return false;
    if (this.#response.write(events.map(eventText).join(''))) return true;
    const taken = new AbortController();
    const finish = (): void => taken.abort();
    this.#response.once('drain', finish).once('close', finish);
    this.#ended.signal.addEventListener('abort', finish, { once: true });
    await this.#clock.sleep(stalledMs, taken.signal);
    this.#response.off('drain', finish).off('close', finish);
    this.#ended.signal.removeEventListener('abort', finish);
    if (this.#isOver()) return false;
    if (taken.signal.aborted) return true;
    this.end(errorEvent('{"code":"REL_TIMEOUT","status":408,"detail":"the events were not taken in time"}'));
    return false;
  }

  end(last: WatchEvent | null): void {
    if (this.#isOver()) return;
    this.#ended.abort();
    this.#response.end(last === null ? '' : eventText(last));
    void this.#clock.sleep(lastWordsMs).then(() => this.#response.destroy());
  }

  #isOver(): boolean {
    return this.#ended.signal.aborted || this.gone.aborted || this.#response.destroyed;
  }
}

function lastIdText(request: FastifyRequest, parameter: string | undefined): string | null {
  return headerText(request, 'last-event-id') || parameter || null;
}

/** From the header, which browsers send by themselves when they come back, or from the query. */
function lastEventId(request: FastifyRequest, parameter: string | undefined): bigint | null {
  const text = lastIdText(request, parameter);
  if (text === null) return null;
  if (!/^\d{1,19}$/.test(text)) throw new ServiceError('REL_INVALID', 'Last-Event-ID is the id of an event: nanoseconds');
  return BigInt(text);
}
