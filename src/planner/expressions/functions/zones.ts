/** Zones of time: how far their clocks are ahead of UTC. */
import { invalid } from './scalar-function.ts';

const nsPerMinute = 60_000_000_000n;
const known = new Map<string, Intl.DateTimeFormat>();
const knownMax = 100;

function formatOf(zone: string): Intl.DateTimeFormat {
  const before = known.get(zone);
  if (before) return before;
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat('en-US', {
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
  if (known.size === knownMax) known.clear();
  known.set(zone, format);
  return format;
}

/** Nanoseconds that a zone's clock is ahead of UTC at an instant. */
export function aheadAt(zone: string, instant: bigint): bigint {
  const plain = zone.trim();
  // A number of hours is written as POSIX has it: those to the west of Greenwich are positive.
  const hours = /^(?:utc|gmt)?([+-]?)(\d{1,2})(?::(\d{2}))?$/i.exec(plain);
  if (hours) {
    const minutes = BigInt(Number(hours[2]) * 60 + Number(hours[3] ?? 0)) * nsPerMinute;
    return hours[1] === '-' ? minutes : -minutes;
  }
  if (/^(utc|gmt|z|zulu)$/i.test(plain)) return 0n;
  const ms = Number(instant / 1_000_000n - (instant % 1_000_000n < 0n ? 1n : 0n));
  const read: Record<string, string> = {};
  for (const { type, value } of formatOf(plain).formatToParts(ms)) read[type] = value;
  const local = new Date(0);
  const year = Number(read['year']);
  local.setUTCFullYear(read['era'] === 'BC' ? 1 - year : year, Number(read['month']) - 1, Number(read['day']));
  local.setUTCHours(Number(read['hour']), Number(read['minute']), Number(read['second']));
  return BigInt(local.getTime() - Math.floor(ms / 1_000) * 1_000) * 1_000_000n;
}

/** The instant at which the clock of UTC shows the same as a zone's clock does at another. */
export function shownIn(zone: string, instant: bigint): bigint {
  return instant + aheadAt(zone, instant);
}

/** The instant at which a zone's clock shows a time: of two, where clocks are put back, the later; in a gap, what it was before. */
export function instantIn(zone: string, shown: bigint): bigint {
  const day = 1_440n * nsPerMinute;
  const [before, after] = [aheadAt(zone, shown - day), aheadAt(zone, shown + day)];
  const late = shown - after;
  if (aheadAt(zone, late) === after) return late;
  return shown - before;
}
