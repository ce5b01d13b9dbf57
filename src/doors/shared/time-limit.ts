/** Questions that clients give a time. */
import type { Clock } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';

export interface TimeLimit {
  readonly clock: Clock;
  readonly gone: AbortSignal;
  /** Null: as long as it takes. */
  readonly milliseconds: number | null;
  /** The error's text where it took longer. */
  readonly errorText: string;
}

/** Cancels what takes longer: REL_TIMEOUT. `run` gets the signal that ends it, which is `gone` where no time is given. */
export async function withTimeLimit<T>(
  { clock, gone, milliseconds, errorText: told }: TimeLimit,
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
    throw new ServiceError('REL_TIMEOUT', told);
  } finally {
    ended.abort();
  }
}
