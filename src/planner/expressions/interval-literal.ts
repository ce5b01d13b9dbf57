/** `'N <unit>'` as nanoseconds. Source: specification, "SQL dialect" rule 6: a month is 30 days, a year 365. */
import { ServiceError } from '../../errors.ts';
import { FOREVER } from '../../log/values/timestamp.ts';

const minute = 60_000_000_000n;
const day = 1440n * minute;

const unitNanoseconds: Readonly<Record<string, bigint>> = {
  second: 1_000_000_000n,
  minute,
  hour: 60n * minute,
  day,
  week: 7n * day,
  month: 30n * day,
  year: 365n * day,
};

/** Throws REL_INVALID on any other text; the caller knows the place. */
export function intervalNanoseconds(text: string): bigint {
  const match = /^\s*(\d{1,19})\s+([a-z]{3,7})\s*$/i.exec(text);
  const unit = match && unitNanoseconds[match[2]!.toLowerCase().replace(/s$/, '')];
  if (!match || !unit) {
    throw new ServiceError(
      'REL_INVALID',
      "an interval is 'N <unit>' with the unit seconds, minutes, hours, days, weeks, months or years",
    );
  }
  const ns = BigInt(match[1]!) * unit;
  if (ns > FOREVER) throw new ServiceError('REL_INVALID', 'the interval is longer than 292 years');
  return ns;
}
