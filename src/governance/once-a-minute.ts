/** What goes by the clock, round after round until the signal aborts. */
import type { Clock } from '../clock.ts';
import { ServiceError } from '../errors.ts';

const everyMs = 60_000;

export async function onceAMinute(
  clock: Clock,
  signal: AbortSignal,
  round: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await round(signal);
    } catch (error) {
      // A drain, or a log that takes no more writes: what is left is done after the next start.
      if (!(error instanceof ServiceError)) throw error;
    }
    await clock.sleep(everyMs, signal);
  }
}
