/** `'N <unit>'` as nanoseconds. Source: specification, "SQL dialect" rule 6: a month is 30 days, a year 365. */
import { ServiceError } from '../../errors.ts';
import { FOREVER } from '../../log/values/timestamp.ts';

const minuteNs = 60_000_000_000n;
const dayNs = 1440n * minuteNs;

const unitNanoseconds: Readonly<Record<string, bigint>> = {
  second: 1_000_000_000n,
  minute: minuteNs,
  hour: 60n * minuteNs,
  day: dayNs,
  week: 7n * dayNs,
  month: 30n * dayNs,
  year: 365n * dayNs,
};

/** Throws REL_INVALID on any other text; the caller knows the place. */
export function intervalNanoseconds(intervalText: string): bigint {
  const intervalMatch = /^\s*(\d{1,19})\s+([a-z]{3,7})\s*$/i.exec(intervalText);
  const unitNs = intervalMatch && unitNanoseconds[intervalMatch[2]!.toLowerCase().replace(/s$/, '')];
  if (!intervalMatch || !unitNs) {
    throw new ServiceError(
      'REL_INVALID',
      "an interval is 'N <unit>' with the unit seconds, minutes, hours, days, weeks, months or years",
    );
  }
  const intervalNs = BigInt(intervalMatch[1]!) * unitNs;
  if (intervalNs > FOREVER) throw new ServiceError('REL_INVALID', 'the interval is longer than 292 years');
  return intervalNs;
}
