/** Zones of time: how far their clocks are ahead of UTC. */
import { invalid } from './scalar-function.ts';

const nsPerMinute = 60_000_000_000n;
const zoneFormats = new Map<string, Intl.DateTimeFormat>();
const zoneFormatsMax = 100;

function zoneFormat(zone: string): Intl.DateTimeFormat {
  const knownFormat = zoneFormats.get(zone);
  if (knownFormat) return knownFormat;
  let zoneClockFormat: Intl.DateTimeFormat;
  try {
    zoneClockFormat = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
      era: 'short',
    });
  } catch {
    throw invalid(`there is no zone of time ${JSON.stringify(zone.slice(0, 100))}`);
  }
  if (zoneFormats.size === zoneFormatsMax) zoneFormats.clear();
  zoneFormats.set(zone, zoneClockFormat);
  return zoneClockFormat;
}

/** Nanoseconds that a zone's clock is ahead of UTC at an instant. */
export function aheadAt(zone: string, instant: bigint): bigint {
  const trimmedZone = zone.trim();
  // A number of hours is written as POSIX has it: those to the west of Greenwich are positive.
  const hourOffset = /^(?:utc|gmt)?([+-]?)(\d{1,2})(?::(\d{2}))?$/i.exec(trimmedZone);
  if (hourOffset) {
    const offsetNs = BigInt(Number(hourOffset[2]) * 60 + Number(hourOffset[3] ?? 0)) * nsPerMinute;
    return hourOffset[1] === '-' ? offsetNs : -offsetNs;
  }
  if (/^(utc|gmt|z|zulu)$/i.test(trimmedZone)) return 0n;
  const epochMs = Number(instant / 1_000_000n - (instant % 1_000_000n < 0n ? 1n : 0n));
  const zoneFields: Record<string, string> = {};
  for (const { type, value } of zoneFormat(trimmedZone).formatToParts(epochMs)) zoneFields[type] = value;
  const zoneLocalDate = new Date(0);
  const zoneYear = Number(zoneFields['year']);
  zoneLocalDate.setUTCFullYear(
    zoneFields['era'] === 'BC' ? 1 - zoneYear : zoneYear,
    Number(zoneFields['month']) - 1,
    Number(zoneFields['day']),
  );
  zoneLocalDate.setUTCHours(Number(zoneFields['hour']), Number(zoneFields['minute']), Number(zoneFields['second']));
  return BigInt(zoneLocalDate.getTime() - Math.floor(epochMs / 1_000) * 1_000) * 1_000_000n;
}

/** The instant at which the clock of UTC shows the same as a zone's clock does at another. */
export function shownIn(zone: string, instant: bigint): bigint {
  return instant + aheadAt(zone, instant);
}

/** The instant at which a zone's clock shows a time: of two, where clocks are put back, the later; in a gap, what it was before. */
export function instantIn(zone: string, shown: bigint): bigint {
  const dayNs = 1_440n * nsPerMinute;
  const [offsetBefore, offsetAfter] = [aheadAt(zone, shown - dayNs), aheadAt(zone, shown + dayNs)];
  const laterInstant = shown - offsetAfter;
  if (aheadAt(zone, laterInstant) === offsetAfter) return laterInstant;
  return shown - offsetBefore;
}
