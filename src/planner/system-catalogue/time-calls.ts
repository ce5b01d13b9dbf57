/**
 * Functions and operators of instants, days and intervals, as PostgreSQL chooses them by the types that they are given. An
 * interval is the text of itself; a `timestamp` is an instant that the clock of UTC shows.
 */
import { ServiceError } from '../../errors.ts';
import { FOREVER } from '../../log/values/timestamp.ts';
import type { Cell, ColumnType } from '../../log/values/value.ts';
import type { CatalogueCall } from '../expressions/functions/catalogue.ts';
import { truncateTo, unitNamed } from '../expressions/functions/instants.ts';
import * as intervals from '../expressions/functions/intervals.ts';
import { integer, invalid, type Evaluator, text } from '../expressions/functions/scalar-function.ts';
import { type Cost, spend } from '../expressions/expression-cost.ts';
import { shownByTemplate } from '../expressions/functions/to-char.ts';
import { instantIn, shownIn } from '../expressions/functions/zones.ts';

const { formatInterval, parseInterval } = intervals;
type Interval = intervals.Interval;

/** Reading and writing an interval takes some 2 µs. */
const cost: Cost = { call: 2_000, character: 10 };
/** A zone's clock is asked for three times at most. */
const zoned: Cost = { call: 30_000, character: 10 };

let lastText = '0';
let lastInterval = parseInterval(lastText);

/** The same interval stands in row after row: it is read once. */
function intervalOf(cell: Cell | undefined): Interval {
  const given = text(cell);
  if (given !== lastText) {
    lastInterval = parseInterval(given);
    lastText = given;
  }
  return lastInterval;
}

const showInterval = (interval: Interval): string => formatInterval(interval);
const factor = (cell: Cell | undefined): number => Number(cell);

const each =
  (evaluate: (interval: Interval) => Interval): Evaluator =>
  (cell) =>
    showInterval(evaluate(intervalOf(cell)));
const two =
  (evaluate: (a: Interval, b: Interval) => Interval): Evaluator =>
  (a, b) =>
    showInterval(evaluate(intervalOf(a), intervalOf(b)));
const minus = (a: Interval, b: Interval): Interval => intervals.sumOf(a, intervals.negateInterval(b));
const later: Evaluator = (instant, interval) => intervals.later(integer(instant), intervalOf(interval));
const laterBy: Evaluator = (interval, instant) => intervals.later(integer(instant), intervalOf(interval));
const earlier: Evaluator = (instant, interval) => intervals.earlier(integer(instant), intervalOf(interval));
const apart: Evaluator = (to, from) => showInterval(intervals.between(integer(from), integer(to)));

const makeInterval: Evaluator = (years, months, weeks, days, hours, minutes, seconds) =>
  showInterval(
    intervals.checkInterval({
      months: Number(years) * 12 + Number(months),
      days: Number(weeks) * 7 + Number(days),
      microseconds:
        integer(hours) * intervals.hour + integer(minutes) * intervals.minute + BigInt(Math.round(Number(seconds) * 1e6)),
    }),
  );

/** The clocks of a fixed zone are so far ahead of UTC. */
const ahead = (interval: Cell | undefined): bigint => intervals.later(0n, intervalOf(interval));

/** Two time ranges, each given by start and end or by start and length; without a length it is one instant. */
const overlap =
  (isLength: readonly [boolean, boolean]): Evaluator =>
  (from1, to1, from2, to2) => {
    const first = timeRange(from1!, to1!, isLength[0]);
    const second = timeRange(from2!, to2!, isLength[1]);
    if (first === null || second === null) return null;
    const [early, late] = first[0] <= second[0] ? [first, second] : [second, first];
    if (early[0] === late[0]) return early[1] === null || late[1] === null ? null : true;
    if (early[1] === null) return null;
    return late[0] < early[1] ? true : late[1] === null ? null : false;
  };

/** The earlier instant, and the later one where both are known. */
function timeRange(from: Cell, to: Cell, isLength: boolean): readonly [bigint, bigint | null] | null {
  const end = isLength ? (from === null || to === null ? null : (later(from, to) as bigint)) : (to as bigint | null);
  const start = from as bigint | null;
  if (start === null || end === null) return start === null && end === null ? null : [start ?? end!, null];
  return start <= end ? [start, end] : [end, start];
}

const seriesMax = 100_000;
const stepCost = 400;

/** Instants from one to another, each an interval behind the one before. */
const series: Evaluator = (from, to, by) => {
  const step = intervalOf(by);
  const end = integer(to);
  const first = integer(from);
  const second = intervals.later(first, step);
  if (second === first) throw invalid('the step of generate_series is not 0');
  const isUp = second > first;
  const instants: bigint[] = [];
  for (let at = first; isUp ? at <= end : at >= end; at = intervals.later(at, step)) {
    spend(stepCost);
    if (instants.push(at) > seriesMax) throw new ServiceError('REL_TOO_LARGE', `generate_series makes at most ${seriesMax} rows`);
  }
  return `{${instants.join(',')}}`;
};

const table: Readonly<Record<string, Evaluator>> = {
  'overlaps(timestamptz, timestamptz, timestamptz, timestamptz) bool null': overlap([false, false]),
  'overlaps(timestamptz, interval, timestamptz, timestamptz) bool null': overlap([true, false]),
  'overlaps(timestamptz, timestamptz, timestamptz, interval) bool null': overlap([false, true]),
  'overlaps(timestamptz, interval, timestamptz, interval) bool null': overlap([true, true]),
  '#series(timestamp, timestamp, interval) text': series,
  '#series(timestamptz, timestamptz, interval) text': series,
  '+(timestamptz, interval) timestamptz': later,
  '+(timestamp, interval) timestamp': later,
  '+(date, interval) timestamp': later,
  '+(interval, timestamptz) timestamptz': laterBy,
  '+(interval, timestamp) timestamp': laterBy,
  '+(interval, date) timestamp': laterBy,
  '+(interval, interval) interval': two(intervals.sumOf),
  '-(interval, interval) interval': two(minus),
  '-(timestamptz, interval) timestamptz': earlier,
  '-(timestamp, interval) timestamp': earlier,
  '-(date, interval) timestamp': earlier,
  '-(timestamptz, timestamptz) interval': apart,
  '*(interval, float8) interval': (interval, by) =>
    showInterval(intervals.scaleInterval(intervalOf(interval), (n) => n * factor(by))),
  '*(float8, interval) interval': (by, interval) =>
    showInterval(intervals.scaleInterval(intervalOf(interval), (n) => n * factor(by))),
  '/(interval, float8) interval': (interval, divisor) =>
    factor(divisor) === 0 ? null : showInterval(intervals.scaleInterval(intervalOf(interval), (n) => n / factor(divisor))),
  '#negate(interval) interval': each(intervals.negateInterval),
  '#interval(text, text) interval': (given, unit) => showInterval(intervals.intervalOf(text(given), text(unit))),
  'isfinite(timestamptz) bool': (instant) => integer(instant) !== FOREVER,
  'isfinite(interval) bool': (interval) => intervalOf(interval) !== null,
  'age(timestamptz, timestamptz) interval': (to, from) => showInterval(intervals.age(integer(to), integer(from))),
  'justify_days(interval) interval': each(intervals.justifyDays),
  'justify_hours(interval) interval': each(intervals.justifyHours),
  'justify_interval(interval) interval': each(intervals.justify),
  'make_interval(int4, int4, int4, int4, int4, int4, float8) interval': makeInterval,
  'date_part(text, interval) float8': (unit, interval) => intervals.fieldOf(unitNamed(text(unit)), intervalOf(interval)),
  'date_trunc(text, interval) interval': (unit, interval) =>
    showInterval(intervals.truncateInterval(unitNamed(text(unit)), intervalOf(interval))),
  'date_trunc(text, timestamp) timestamp': (unit, instant) => truncateTo(text(unit), integer(instant)),
  'date_trunc(text, timestamptz, text) timestamptz': (unit, instant, zone) =>
    instantIn(text(zone), truncateTo(text(unit), shownIn(text(zone), integer(instant)))),
  'date_bin(interval, timestamp, timestamp) timestamp': (stride, instant, origin) =>
    intervals.binOf(intervalOf(stride), integer(instant), integer(origin)),
  'date_bin(interval, timestamptz, timestamptz) timestamptz': (stride, instant, origin) =>
    intervals.binOf(intervalOf(stride), integer(instant), integer(origin)),
  'to_char(interval, text) text': (interval, template) => shownByTemplate(intervalOf(interval), text(template)),
  'timezone(text, timestamp) timestamptz': (zone, instant) => instantIn(text(zone), integer(instant)),
  'timezone(text, timestamptz) timestamp': (zone, instant) => shownIn(text(zone), integer(instant)),
  'timezone(interval, timestamp) timestamptz': (zone, instant) => integer(instant) - ahead(zone),
  'timezone(interval, timestamptz) timestamp': (zone, instant) => integer(instant) + ahead(zone),
};

interface TimeCall {
  readonly takes: readonly string[];
  readonly call: CatalogueCall;
}

const byName = new Map<string, TimeCall[]>();
for (const [usage, evaluate] of Object.entries(table)) {
  const [, name, given, yields, nulls] = /^([^(]+)\(([^)]+)\) (\w+)( null)?$/.exec(usage)!;
  const takes = given!.split(', ');
  const raises = true;
  const type = typeOf(yields!);
  const signature = {
    takes: takes.map(typeOf),
    yields: type,
    cost: takes.includes('text') ? zoned : cost,
    raises,
    evaluate,
    takesNull: nulls !== undefined,
  };
  byName.set(name!, [...(byName.get(name!) ?? []), { takes, call: { signature, type, wire: yields! } }]);
}

function typeOf(wire: string): ColumnType {
  if (wire === 'timestamptz' || wire === 'timestamp' || wire === 'date') return 'timestamp';
  if (wire === 'bool') return 'boolean';
  return wire === 'float8' ? 'number' : wire.startsWith('int') && wire !== 'interval' ? 'integer' : 'string';
}

const numbers: ReadonlySet<string> = new Set('int2 int4 int8 float4 float8'.split(' '));
const texts: ReadonlySet<string> = new Set('text varchar bpchar name'.split(' '));

function fits(given: string, wanted: string): boolean {
  if (given === wanted) return true;
  if (given === 'unknown') return wanted !== 'float8' && !wanted.startsWith('int4');
  if (wanted === 'timestamptz') return given === 'timestamp' || given === 'date';
  if (wanted === 'text') return texts.has(given);
  return wanted === 'float8' ? numbers.has(given) : wanted === 'int4' && given.startsWith('int') && given !== 'interval';
}

/** The function or operator for such types, first one that takes them as they are; null: there is none. */
export function timeCall(name: string, given: readonly string[]): CatalogueCall | null {
  const all = byName
    .get(name)
    ?.filter(({ takes }) => takes.length === given.length && given.every((type, i) => fits(type, takes[i]!)));
  if (!all || all.length === 0 || given.every((type) => type === 'unknown')) return null;
  const count = ({ takes }: TimeCall): number => takes.filter((type, i) => type === given[i]).length;
  return all.reduce((best, next) => (count(next) > count(best) ? next : best)).call;
}
