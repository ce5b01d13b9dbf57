/** Instants in requests. */
import { z } from 'zod';
import { ServiceError } from '../../errors.ts';
import { FOREVER, nanosecondsOf, parseInstant } from '../../log/values/timestamp.ts';
import type { DefaultTime } from '../../planner/syntax/statement.ts';
import { exactNumber } from './exact-numbers.ts';

/** ISO-8601 in UTC, or nanoseconds since 1970: as a number, as replies have them, or as text. */
export const instant = z.union([z.string(), exactNumber]);
export type StatedInstant = z.output<typeof instant>;

/** Takes every instant that a reply gives, as it came. */
export function toInstant(statedInstant: StatedInstant): bigint {
  if (typeof statedInstant === 'string') {
    if (statedInstant === 'forever') return FOREVER;
    return /^-?\d{1,19}$/.test(statedInstant) ? nanosecondsOf(BigInt(statedInstant)) : parseInstant(statedInstant);
  }
  if (!Number.isInteger(statedInstant) && typeof statedInstant === 'number')
    throw new ServiceError('REL_INVALID', 'an instant is ISO-8601 in UTC, or whole nanoseconds');
  return nanosecondsOf(BigInt(statedInstant));
}

/** The instants that a request states: of valid time and of system time. */
export interface StatedInstants {
  readonly as_of?: StatedInstant | undefined;
  readonly as_of_system?: StatedInstant | undefined;
}

/**
 * The current time where neither is stated. With a system instant alone, valid time is the same instant; with a valid instant
 * alone, system time is now.
 */
export function timeOf({ as_of, as_of_system }: StatedInstants): DefaultTime {
  if (as_of === undefined && as_of_system === undefined) return 'current';
  const systemTime = as_of_system === undefined ? 'now' : toInstant(as_of_system);
  return { system: systemTime, valid: as_of === undefined ? systemTime : toInstant(as_of) };
}
