/**
 * Messages that a client streams, as they come. It has to keep the pace of a request body while we wait for it, so that silent senders
 * hold no calls open; time that we take ourselves never counts against it.
 */
import type { Clock } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import { pace } from '../shared/http-request-bodies.ts';
import type { RequestTurns } from '../shared/request-turns.ts';

interface ArrivalDependencies {
  readonly clock: Pick<Clock, 'sleep' | 'monotonicMs'>;
  readonly endings: Pick<RequestTurns, 'run'>;
}

/** Throws REL_TIMEOUT where the sender lags too far behind. `bytesOf`: the bytes that a message counts. */
export async function* receiveMessages<M>(
  { clock, endings }: ArrivalDependencies,
  messages: AsyncIterator<M>,
  bytesOf: (message: M) => number,
): AsyncGenerator<M, void> {
  for (let lagMs = 0; ; ) {
    const sinceMs = clock.monotonicMs();
    const came = new AbortController();
    const late = clock.sleep(pace.graceMs - lagMs, came.signal).then(() => {
      if (!came.signal.aborted) throw new ServiceError('REL_TIMEOUT', 'the messages of the call did not arrive in time');
      return { done: true, value: undefined } as const;
    });
    // The one that loses the race may still reject.
    late.catch(() => undefined);
    const next = messages.next();
    next.catch(() => undefined);
    let step: IteratorResult<M> | null = null;
    try {
      step = await Promise.race([next, late]);
    } finally {
      // A reason that Node would make for itself costs as much as all else here.
      came.abort(null);
      // A connection that ends, ends all of its calls.
      if (step?.done !== false) await endings.run(() => undefined, 1);
    }
    if (step.done === true) return;
    const waitedMs = clock.monotonicMs() - sinceMs;
    lagMs = Math.max(0, lagMs + waitedMs - (bytesOf(step.value) / pace.bytesPerSecond) * 1000);
    yield step.value;
  }
}
