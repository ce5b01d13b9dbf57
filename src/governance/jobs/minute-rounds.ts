/** Runs background rounds by the clock until the signal aborts. */
import type { Clock } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import { noRoomIn } from '../../log/disk/disk.ts';

const minuteMs = 60_000;

export async function onceAMinute(
  clock: Clock,
  signal: AbortSignal,
  minuteRound: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await minuteRound(signal);
    } catch (error) {
      // A drain, a log that takes no more writes, a full disk: a later round, or the next start, does the rest.
      if (!(error instanceof ServiceError) && noRoomIn(error) === null) throw error;
    }
    await clock.sleep(minuteMs, signal);
  }
}
