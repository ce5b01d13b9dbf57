/**
 * Values of Cedar's expressions, and their equality. Longs are bigint: a number would lose digits. An error is the value `ERROR`,
 * not an exception: it is an ordinary outcome of a row.
 */

export type Value = boolean | bigint | string | Entity | Instant | Span | SetValue | RecordValue;

export const ERROR = Symbol('error');
export type Outcome = Value | typeof ERROR;

export class Entity {
  readonly type: string;
  readonly id: string;
  constructor(type: string, id: string) {
    this.type = type;
    this.id = id;
  }
}

/** Cedar's datetime: milliseconds since 1970. */
export class Instant {
  readonly ms: bigint;
  constructor(ms: bigint) {
    this.ms = ms;
  }
}

/** Cedar's duration. */
export class Span {
  readonly ms: bigint;
  constructor(ms: bigint) {
    this.ms = ms;
  }
}

export class SetValue {
  readonly items: readonly Value[];
  constructor(items: readonly Value[]) {
    this.items = items;
  }

  has(value: Value): boolean {
    return this.items.some((item) => equal(item, value));
  }

  hasAll(other: SetValue): boolean {
    return other.items.every((item) => this.has(item));
  }
}

export class RecordValue {
  readonly fields: ReadonlyMap<string, Value>;
  constructor(fields: ReadonlyMap<string, Value>) {
    this.fields = fields;
  }
}

export const LONG_MAX = 9_223_372_036_854_775_807n;
export const LONG_MIN = -9_223_372_036_854_775_808n;

/** ERROR where 64 bits do not hold it. */
export function long(value: bigint): bigint | typeof ERROR {
  return value > LONG_MAX || value < LONG_MIN ? ERROR : value;
}

/** Values of different types are never equal, and comparing them is no error. */
export function equal(a: Value, b: Value): boolean {
  if (typeof a !== 'object' || typeof b !== 'object') return a === b;
  if (a instanceof Entity) return b instanceof Entity && a.type === b.type && a.id === b.id;
  if (a instanceof Instant) return b instanceof Instant && a.ms === b.ms;
  if (a instanceof Span) return b instanceof Span && a.ms === b.ms;
  if (a instanceof SetValue) return b instanceof SetValue && a.hasAll(b) && b.hasAll(a);
  if (!(b instanceof RecordValue) || a.fields.size !== b.fields.size) return false;
  for (const [name, value] of a.fields) {
    const otherField = b.fields.get(name);
    if (otherField === undefined || !equal(value, otherField)) return false;
  }
  return true;
}

const datetimePattern = /^(\d{4})-(\d{2})-(\d{2})(?:T(\d{2}):(\d{2}):(\d{2})(?:\.(\d{3}))?(?:Z|([+-])(\d{2})(\d{2})))?$/;

/** Undefined for what is none. */
export function parseInstant(text: string): Instant | undefined {
  const datetimeMatch = datetimePattern.exec(text);
  if (datetimeMatch === null) return undefined;
  const [year, month, day, hour, minute, second, ms] = [1, 2, 3, 4, 5, 6, 7].map((i) => Number(datetimeMatch[i] ?? 0)) as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  // A day that the month has not moves on into the next one.
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day || month < 1) return undefined;
  if (hour > 23 || minute > 59 || second > 59) return undefined;
  const offsetHours = Number(datetimeMatch[9] ?? 0);
  const offsetMinutes = Number(datetimeMatch[10] ?? 0);
  if (offsetHours > 23 || offsetMinutes > 59) return undefined;
  const zoneOffsetMs = (offsetHours * 60 + offsetMinutes) * 60_000 * (datetimeMatch[8] === '-' ? -1 : 1);
  return new Instant(BigInt(date.getTime() + ((hour * 60 + minute) * 60 + second) * 1000 + ms - zoneOffsetMs));
}

const durationPattern = /^(-)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?$/;
const durationUnits = [86_400_000n, 3_600_000n, 60_000n, 1000n, 1n];

/** Undefined for what is none, or more than 64 bits of milliseconds hold. */
export function parseSpan(text: string): Span | undefined {
  const durationMatch = durationPattern.exec(text);
  if (durationMatch === null || !/\d/.test(text)) return undefined;
  let ms = 0n;
  durationUnits.forEach((unit, i) => {
    ms += BigInt(durationMatch[i + 2] ?? '0') * unit;
  });
  const signedMs = long(durationMatch[1] === '-' ? -ms : ms);
  return signedMs === ERROR ? undefined : new Span(signedMs);
}
