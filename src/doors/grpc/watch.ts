/** Watch: a standing query as a stream of messages; the same events as `/watch/stream`, which may be resumed behind any id. */
import type { ServerWritableStream } from '@grpc/grpc-js';
import { checkText } from '../../log/values/value.ts';
import type { Subscription } from '../../planner/continuous/watch/subscription.ts';
import type { StandingQueries } from '../../planner/continuous/watch/watch.ts';
import type { WatchEvent } from '../../planner/continuous/watch/watch-events.ts';
import type { RpcCall, RpcDependencies } from './call.ts';

export interface WatchDependencies {
  readonly watch: Pick<StandingQueries, 'register' | 'checkResumption' | 'claim' | 'release' | 'follow'>;
}

/** A client that takes nothing for so long is cut off; it may resume behind the last id that it has. */
const watchStalledMs = 30_000;

export async function followSubscription(
  parts: RpcDependencies & WatchDependencies,
  rpcCall: RpcCall,
  { sql, resume_after: after }: { readonly sql: string; readonly resume_after: string },
  stream: ServerWritableStream<unknown, object>,
): Promise<void> {
  const { watch } = parts;
  const resumeAfter = after === '0' ? null : BigInt(after);
  let claimed: Subscription | null = null;
  try {
    await rpcCall.ask({ action: 'watch' }, async ({ invocation }) => {
      checkText(sql, 'the statement');
      const subscription = await watch.register(invocation, sql, rpcCall.terms.purpose);
      invocation.describe({
        purpose: subscription.purpose,
        objectType: subscription.statement.type,
        template: subscription.statement.template,
      });
      watch.checkResumption(subscription, resumeAfter, true);
      claimed = watch.claim(subscription);
    });
  } catch (error) {
    if (claimed !== null) watch.release(claimed);
    throw error;
  }
  const gone = new AbortController();
  rpcCall.signal.addEventListener('abort', () => gone.abort(), { once: true });
  let end = (): void => undefined;
  const over = new Promise<void>((resolve) => (end = resolve));
  const client = {
    renew: () => parts.authenticator.renew(rpcCall.caller),
    write: async (watchEvents: readonly WatchEvent[]): Promise<boolean> => {
      let streamTakesMore = true;
      for (const watchEvent of watchEvents) streamTakesMore = stream.write(watchMessageOf(watchEvent));
      return streamTakesMore || waitForStreamDrain(parts, stream, gone.signal);
    },
    end: (lastEvent: WatchEvent | null): void => {
      if (lastEvent !== null) stream.write(watchMessageOf(lastEvent));
      gone.abort();
      end();
    },
    gone: gone.signal,
  };
  await watch.follow(claimed!, client, { resumeAfter, keep: false });
  if (!gone.signal.aborted) gone.abort();
  end();
  await over;
}

/** True: the connection takes more. */
async function waitForStreamDrain(
  { clock }: Pick<RpcDependencies, 'clock'>,
  watchStream: ServerWritableStream<unknown, object>,
  watchGone: AbortSignal,
): Promise<boolean> {
  if (watchGone.aborted) return false;
  const drainOver = new AbortController();
  try {
    return await new Promise<boolean>((onDrained) => {
      watchStream.once('drain', () => onDrained(true));
      watchGone.addEventListener('abort', () => onDrained(false), { once: true, signal: drainOver.signal });
      void clock.sleep(watchStalledMs, drainOver.signal).then(() => onDrained(false));
    });
  } finally {
    drainOver.abort();
  }
}

const watchMessageOf = ({ event: eventName, id: eventId, data: eventData }: WatchEvent): object => ({
  event: eventName,
  id: eventId ?? '0',
  data: eventData,
});
