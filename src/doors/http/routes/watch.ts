/**
 * GET /watch/stream: a standing query as server-sent events. Source: specification, "Events".
 *
 * With `subscription` one that stands, with `watchedSql` one that stands as long as the stream; with neither all that the caller has
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

const watchStreamQuery = z.object({
  subscription: z.string().optional().describe('as WATCH on /query answered it; with neither this nor sql: all of the caller’s'),
  sql: z.string().optional().describe('instead: the standing query itself, WATCH PURPOSE or its SELECT'),
  purpose: z.string().optional().describe('with sql: why; recorded with every delivery'),
  branch: z.string().optional().describe('branch to follow; main by default'),
  break_glass: z.string().optional().describe('with sql: why a protected type is to be opened; recorded with every delivery'),
  access_scope_ref: z.string().optional().describe('with sql: the access scope that the reader was cleared for'),
  last_event_id: z.string().optional().describe('the same as the header Last-Event-ID, for clients that cannot send it'),
});

/** A client that takes nothing for so long is cut off; it may resume after the last id that it has. */
const stalledWatchMs = 30_000;
/** Time for a cut off client to read the reason. */
const watchLastWordsMs = 2_000;

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
    query: watchStreamQuery,
    replies: { 200: z.string().describe('text/event-stream') },
    example: { query: { sql: 'a statement', purpose: 'a purpose' } },
    handle: async ({ query: watchQuery, request: watchRequest, reply: watchReply, context: httpContext }) => {
      const { subscription: subscriptionId, sql: watchedSql, purpose: watchPurpose } = watchQuery;
      const { watch: standingQueries } = httpContext;
      if (subscriptionId === undefined && watchedSql === undefined) {
        await followAllSubscriptions(httpContext, watchRequest, watchReply, watchQuery.last_event_id);
        return watchReply;
      }
      if (subscriptionId !== undefined && watchedSql !== undefined) {
        throw new ServiceError('REL_INVALID', 'give subscription or sql, or neither for all of your subscriptions');
      }
      const resumeAfterEvent = lastEventId(watchRequest, watchQuery.last_event_id);
      let claimedSubscription: Subscription | null = null;
      try {
        await invoke(httpContext, watchRequest, 'watch', watchPurpose, async (watchInvocation) => {
          if (watchedSql !== undefined) checkText(watchedSql, 'the statement');
          const subscriptions =
            watchedSql === undefined
              ? standingQueries.requireSubscription(subscriptionId!, watchInvocation.caller)
              : await standingQueries.register(watchInvocation, watchedSql, statedPurpose(watchRequest, watchPurpose));
          watchInvocation.describe({
            purpose: subscriptions.purpose,
            objectType: subscriptions.statement.type,
            template: subscriptions.statement.template,
          });
          standingQueries.checkResumption(subscriptions, resumeAfterEvent, watchedSql !== undefined);
          claimedSubscription = standingQueries.claim(subscriptions);
        });
      } catch (watchError) {
        if (claimedSubscription !== null) standingQueries.release(claimedSubscription);
        throw watchError;
      }
      await followSubscription(httpContext, watchRequest, watchReply, claimedSubscription!, {
        resumeAfter: resumeAfterEvent,
        keep: watchedSql === undefined,
      });
      return watchReply;
    },
  }),
];

async function followSubscription(
  httpContext: HttpContext,
  watchRequest: FastifyRequest,
  watchReply: FastifyReply,
  followedSubscription: Subscription,
  followOptions: { readonly resumeAfter: bigint | null; readonly keep: boolean },
): Promise<void> {
  await streamWatchEvents(httpContext, watchRequest, watchReply, (watchClient) =>
    httpContext.watch.follow(followedSubscription, watchClient, followOptions),
  );
}

/** Follows all of the caller's unfollowed subscriptions; without one the stream waits for the first. */
async function followAllSubscriptions(
  httpContext: HttpContext,
  watchRequest: FastifyRequest,
  watchReply: FastifyReply,
  lastEventParameter: string | undefined,
): Promise<void> {
  const { watch: standingQueries } = httpContext;
  const lastEventText = lastEventIdText(watchRequest, lastEventParameter);
  const toldPositions = lastEventText === null ? new Map<string, bigint>() : readCursors(lastEventText);
  const claimedSubscriptions: Subscription[] = [];
  const watchCaller = await invoke(httpContext, watchRequest, 'watch', undefined, async (watchInvocation) => {
    const waitingSubscriptions = standingQueries.registeredBy(watchInvocation.caller);
    for (const waitingSubscription of waitingSubscriptions)
      standingQueries.checkResumption(waitingSubscription, cursorFor(toldPositions, waitingSubscription.id), false);
    const [firstSubscription] = waitingSubscriptions;
    if (firstSubscription !== undefined) watchInvocation.describe({ purpose: firstSubscription.purpose });
    for (const subscription of waitingSubscriptions) claimedSubscriptions.push(standingQueries.claim(subscription));
    return watchInvocation.caller;
  }).catch((watchError: unknown) => {
    for (const waitingSubscription of claimedSubscriptions) standingQueries.release(waitingSubscription);
    throw watchError;
  });
  await streamWatchEvents(httpContext, watchRequest, watchReply, async (watchClient) => {
    const streamOver = new AbortController();
    const checkWatchCaller = (): void => {
      watchClient.renew();
      httpContext.gate.checkStanding(watchCaller);
    };
    // Without a subscription no other check covers this stream.
    void watchStream(httpContext, checkWatchCaller, streamOver.signal, (watchRefusal) =>
      watchClient.end(errorEvent(problemText(watchRefusal))),
    );
    try {
      await standingQueries.followAll(watchCaller, watchClient, claimedSubscriptions, toldPositions);
    } finally {
      streamOver.abort();
    }
  });
}

async function streamWatchEvents(
  httpContext: HttpContext,
  watchRequest: FastifyRequest,
  watchReply: FastifyReply,
  followEvents: (watchClient: WatchClient) => Promise<void>,
): Promise<void> {
  watchReply.hijack();
  watchReply.raw.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    // Proxies that hold replies back would make batches of it.
    'x-accel-buffering': 'no',
  });
  // A client may wait for the head before it registers anything.
  watchReply.raw.flushHeaders();
  watchReply.raw.write(retryLine);
  const watchClient = new WatchStreamClient(httpContext, watchRequest, watchReply.raw);
  try {
    await followEvents(watchClient);
  } catch (watchError) {
    httpContext.log({ event: 'internal error', correlationId: watchRequest.id, route: '/watch/stream', error: watchError });
  }
}

class WatchStreamClient implements WatchClient {
  readonly gone: AbortSignal;
  readonly #watchClock: Clock;
  readonly #eventResponse: ServerResponse;
  readonly #renewWatchCaller: WatchClient['renew'];
  readonly #streamEnded = new AbortController();

  constructor(
    { clock, authenticator: watchAuthenticator }: HttpContext,
    watchRequest: FastifyRequest,
    eventResponse: ServerResponse,
  ) {
    this.#watchClock = clock;
    this.#eventResponse = eventResponse;
    this.gone = signalOf(watchRequest.raw.socket);
    const watchCredentials = {
      authorization: watchRequest.headers.authorization,
      organization: headerText(watchRequest, 'x-organization-id') ?? undefined,
      door: 'http',
      clientIp: watchRequest.ip,
    };
    this.#renewWatchCaller = () => watchAuthenticator.dataCaller(watchCredentials);
  }

  renew(): ReturnType<WatchClient['renew']> {
    return this.#renewWatchCaller();
  }

  async write(watchEvents: readonly WatchEvent[]): Promise<boolean> {
    if (this.#isStreamOver()) return false;
    if (this.#eventResponse.write(watchEvents.map(eventText).join(''))) return true;
    const eventsTaken = new AbortController();
    const finishWaiting = (): void => eventsTaken.abort();
    this.#eventResponse.once('drain', finishWaiting).once('close', finishWaiting);
    this.#streamEnded.signal.addEventListener('abort', finishWaiting, { once: true });
    await this.#watchClock.sleep(stalledWatchMs, eventsTaken.signal);
    this.#eventResponse.off('drain', finishWaiting).off('close', finishWaiting);
    this.#streamEnded.signal.removeEventListener('abort', finishWaiting);
    if (this.#isStreamOver()) return false;
    if (eventsTaken.signal.aborted) return true;
    this.end(errorEvent('{"code":"REL_TIMEOUT","status":408,"detail":"the events were not taken in time"}'));
    return false;
  }

  end(lastEvent: WatchEvent | null): void {
    if (this.#isStreamOver()) return;
    this.#streamEnded.abort();
    this.#eventResponse.end(lastEvent === null ? '' : eventText(lastEvent));
    void this.#watchClock.sleep(watchLastWordsMs).then(() => this.#eventResponse.destroy());
  }

  #isStreamOver(): boolean {
    return this.#streamEnded.signal.aborted || this.gone.aborted || this.#eventResponse.destroyed;
  }
}

function lastEventIdText(watchRequest: FastifyRequest, lastEventParameter: string | undefined): string | null {
  return headerText(watchRequest, 'last-event-id') || lastEventParameter || null;
}

/** From the header, which browsers send by themselves when they come back, or from the query. */
function lastEventId(watchRequest: FastifyRequest, lastEventParameter: string | undefined): bigint | null {
  const eventIdText = lastEventIdText(watchRequest, lastEventParameter);
  if (eventIdText === null) return null;
  if (!/^\d{1,19}$/.test(eventIdText)) throw new ServiceError('REL_INVALID', 'Last-Event-ID is the id of an event: nanoseconds');
  return BigInt(eventIdText);
}
