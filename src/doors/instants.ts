/** Instants in requests. */
import { ServiceError } from '../errors.ts';
import { FOREVER, parseInstant } from '../log/timestamp.ts';
import type { DefaultTime } from '../planner/statement.ts';

/** ISO-8601 or nanoseconds. */
export function toInstant(text: string): bigint {
  if (!/^\d{11,19}$/.test(text)) return parseInstant(text);
  const instant = BigInt(text);
  if (instant > FOREVER) throw new ServiceError('REL_INVALID', 'an instant is out of range');
  return instant;
}

/** What was true then, and what was believed then, as a request states them: ISO-8601, or nanoseconds as text. */
export interface StatedInstants {
  readonly as_of?: string | undefined;
  readonly as_of_system?: string | undefined;
}

/** Now where nothing is stated. What was believed then is asked for as it was true then; what was true then, as it is believed now. */
export function timeOf({ as_of, as_of_system }: StatedInstants): DefaultTime {
  if (as_of === undefined && as_of_system === undefined) return 'current';
  const system = as_of_system === undefined ? 'now' : toInstant(as_of_system);
  return { system, valid: as_of === undefined ? system : toInstant(as_of) };
}
