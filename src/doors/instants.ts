/** Instants in requests. */
import { z } from 'zod';
import { ServiceError } from '../errors.ts';
import { FOREVER, nanosecondsOf, parseInstant } from '../log/values/timestamp.ts';
import type { DefaultTime } from '../planner/statement.ts';
import { exactNumber } from './exact-values.ts';

/** ISO-8601 in UTC, or nanoseconds since 1970: as a number, as replies have them, or as text. */
export const instant = z.union([z.string(), exactNumber]);
export type StatedInstant = z.output<typeof instant>;

/** Takes every instant that a reply gives, as it came. */
export function toInstant(given: StatedInstant): bigint {
  if (typeof given === 'string') {
    if (given === 'forever') return FOREVER;
    return /^-?\d{1,19}$/.test(given) ? nanosecondsOf(BigInt(given)) : parseInstant(given);
  }
  if (!Number.isInteger(given) && typeof given === 'number')
    throw new ServiceError('REL_INVALID', 'an instant is ISO-8601 in UTC, or whole nanoseconds');
  return nanosecondsOf(BigInt(given));
}

/** What was true then, and what was believed then, as a request states them. */
export interface StatedInstants {
  readonly as_of?: StatedInstant | undefined;
  readonly as_of_system?: StatedInstant | undefined;
}

/** Now where nothing is stated. What was believed then is asked for as it was true then; what was true then, as it is believed now. */
export function timeOf({ as_of, as_of_system }: StatedInstants): DefaultTime {
  if (as_of === undefined && as_of_system === undefined) return 'current';
  const system = as_of_system === undefined ? 'now' : toInstant(as_of_system);
  return { system, valid: as_of === undefined ? system : toInstant(as_of) };
}
