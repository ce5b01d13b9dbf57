/** Time limits that clients set for their queries. */
import type { Clock } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';

export interface TimeLimit {
  readonly clock: Clock;
  readonly gone: AbortSignal;
  /** Null: no limit. */
  readonly milliseconds: number | null;
  /** The text of the error once the limit has passed. */
  readonly errorText: string;
}

/** Throws REL_TIMEOUT once the limit has passed. `run` gets the signal that cancels it: `gone` itself where there is no limit. */
export async function withTimeLimit<T>(
  { clock, gone, milliseconds, errorText }: TimeLimit,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (milliseconds === null) return run(gone);
  const ended = new AbortController();
  const late = new AbortController();
  void clock.sleep(milliseconds, ended.signal).then(() => ended.signal.aborted || late.abort());
  try {
    return await run(AbortSignal.any([gone, late.signal]));
  } catch (error) {
    if (!late.signal.aborted || !(error instanceof ServiceError) || error.code !== 'REL_CANCELLED') throw error;
    throw new ServiceError('REL_TIMEOUT', errorText);
  } finally {
    ended.abort();
  }
}
