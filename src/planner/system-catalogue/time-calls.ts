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
type TimeInterval = intervals.Interval;

/** Reading and writing an interval takes some 2 µs. */
const timeCost: Cost = { call: 2_000, character: 10 };
/** A zone's clock is asked for three times at most. */
const zonedTimeCost: Cost = { call: 30_000, character: 10 };

let lastIntervalText = '0';
let lastParsedInterval = parseInterval(lastIntervalText);

/** The same interval stands in row after row: it is read once. */
function readInterval(intervalCellGiven: Cell | undefined): TimeInterval {
  const intervalText = text(intervalCellGiven);
  if (intervalText !== lastIntervalText) {
    lastParsedInterval = parseInterval(intervalText);
    lastIntervalText = intervalText;
  }
  return lastParsedInterval;
}

const intervalCell = (interval: TimeInterval): string => formatInterval(interval);
const intervalFactor = (cell: Cell | undefined): number => Number(cell);

const eachInterval =
  (evaluateInterval: (interval: TimeInterval) => TimeInterval): Evaluator =>
  (intervalCellGiven) =>
    intervalCell(evaluateInterval(readInterval(intervalCellGiven)));
const twoIntervals =
  (evaluateTwo: (leftCell: TimeInterval, rightCell: TimeInterval) => TimeInterval): Evaluator =>
  (leftCell, rightCell) =>
    intervalCell(evaluateTwo(readInterval(leftCell), readInterval(rightCell)));
const intervalDifference = (leftInterval: TimeInterval, rightInterval: TimeInterval): TimeInterval =>
  intervals.sumOf(leftInterval, intervals.negateInterval(rightInterval));
const laterInstant: Evaluator = (instantCell, intervalCellGiven) =>
  intervals.later(integer(instantCell), readInterval(intervalCellGiven));
const laterByInterval: Evaluator = (intervalCellGiven, instantCell) =>
  intervals.later(integer(instantCell), readInterval(intervalCellGiven));
const earlierInstant: Evaluator = (instantCell, intervalCellGiven) =>
  intervals.earlier(integer(instantCell), readInterval(intervalCellGiven));
const instantsApart: Evaluator = (toInstant, fromInstant) =>
  intervalCell(intervals.between(integer(fromInstant), integer(toInstant)));

const makeIntervalCell: Evaluator = (years, months, weeks, days, hours, minutes, seconds) =>
  intervalCell(
    intervals.checkInterval({
      months: Number(years) * 12 + Number(months),
      days: Number(weeks) * 7 + Number(days),
      microseconds:
        integer(hours) * intervals.hour + integer(minutes) * intervals.minute + BigInt(Math.round(Number(seconds) * 1e6)),
    }),
  );

/** The clocks of a fixed zone are so far ahead of UTC. */
const zoneAhead = (interval: Cell | undefined): bigint => intervals.later(0n, readInterval(interval));

/** Two time ranges, each given by start and end or by start and length; without a length it is one instant. */
const overlapTest =
  (areLengths: readonly [boolean, boolean]): Evaluator =>
  (from1, to1, from2, to2) => {
    const firstRange = timeRange(from1!, to1!, areLengths[0]);
    const secondRange = timeRange(from2!, to2!, areLengths[1]);
    if (firstRange === null || secondRange === null) return null;
    const [earlyRange, lateRange] = firstRange[0] <= secondRange[0] ? [firstRange, secondRange] : [secondRange, firstRange];
    if (earlyRange[0] === lateRange[0]) return earlyRange[1] === null || lateRange[1] === null ? null : true;
    if (earlyRange[1] === null) return null;
    return lateRange[0] < earlyRange[1] ? true : lateRange[1] === null ? null : false;
  };

/** The earlier instant, and the later one where both are known. */
function timeRange(from: Cell, to: Cell, isLength: boolean): readonly [bigint, bigint | null] | null {
  const end = isLength ? (from === null || to === null ? null : (laterInstant(from, to) as bigint)) : (to as bigint | null);
  const start = from as bigint | null;
  if (start === null || end === null) return start === null && end === null ? null : [start ?? end!, null];
  return start <= end ? [start, end] : [end, start];
}

const instantSeriesMax = 100_000;
const seriesStepCost = 400;

/** Instants from one to another, each an interval behind the one before. */
const instantSeries: Evaluator = (seriesFrom, seriesTo, seriesBy) => {
  const seriesStep = readInterval(seriesBy);
  const seriesEnd = integer(seriesTo);
  const firstInstant = integer(seriesFrom);
  const secondInstant = intervals.later(firstInstant, seriesStep);
  if (secondInstant === firstInstant) throw invalid('the step of generate_series is not 0');
  const isAscending = secondInstant > firstInstant;
  const instants: bigint[] = [];
  for (
    let seriesInstant = firstInstant;
    isAscending ? seriesInstant <= seriesEnd : seriesInstant >= seriesEnd;
    seriesInstant = intervals.later(seriesInstant, seriesStep)
  ) {
    spend(seriesStepCost);
    if (instants.push(seriesInstant) > instantSeriesMax)
      throw new ServiceError('REL_TOO_LARGE', `generate_series makes at most ${instantSeriesMax} rows`);
  }
  return `{${instants.join(',')}}`;
};

const timeCallTable: Readonly<Record<string, Evaluator>> = {
  'overlaps(timestamptz, timestamptz, timestamptz, timestamptz) bool null': overlapTest([false, false]),
  'overlaps(timestamptz, interval, timestamptz, timestamptz) bool null': overlapTest([true, false]),
  'overlaps(timestamptz, timestamptz, timestamptz, interval) bool null': overlapTest([false, true]),
  'overlaps(timestamptz, interval, timestamptz, interval) bool null': overlapTest([true, true]),
  '#series(timestamp, timestamp, interval) text': instantSeries,
  '#series(timestamptz, timestamptz, interval) text': instantSeries,
  '+(timestamptz, interval) timestamptz': laterInstant,
  '+(timestamp, interval) timestamp': laterInstant,
  '+(date, interval) timestamp': laterInstant,
  '+(interval, timestamptz) timestamptz': laterByInterval,
  '+(interval, timestamp) timestamp': laterByInterval,
  '+(interval, date) timestamp': laterByInterval,
  '+(interval, interval) interval': twoIntervals(intervals.sumOf),
  '-(interval, interval) interval': twoIntervals(intervalDifference),
  '-(timestamptz, interval) timestamptz': earlierInstant,
  '-(timestamp, interval) timestamp': earlierInstant,
  '-(date, interval) timestamp': earlierInstant,
  '-(timestamptz, timestamptz) interval': instantsApart,
  '*(interval, float8) interval': (interval, by) =>
    intervalCell(intervals.scaleInterval(readInterval(interval), (n) => n * intervalFactor(by))),
  '*(float8, interval) interval': (by, interval) =>
    intervalCell(intervals.scaleInterval(readInterval(interval), (n) => n * intervalFactor(by))),
  '/(interval, float8) interval': (interval, divisor) =>
    intervalFactor(divisor) === 0
      ? null
      : intervalCell(intervals.scaleInterval(readInterval(interval), (n) => n / intervalFactor(divisor))),
  '#negate(interval) interval': eachInterval(intervals.negateInterval),
  '#interval(text, text) interval': (given, unit) => intervalCell(intervals.intervalOf(text(given), text(unit))),
  'isfinite(timestamptz) bool': (instant) => integer(instant) !== FOREVER,
  'isfinite(interval) bool': (interval) => readInterval(interval) !== null,
  'age(timestamptz, timestamptz) interval': (to, from) => intervalCell(intervals.age(integer(to), integer(from))),
  'justify_days(interval) interval': eachInterval(intervals.justifyDays),
  'justify_hours(interval) interval': eachInterval(intervals.justifyHours),
  'justify_interval(interval) interval': eachInterval(intervals.justify),
  'make_interval(int4, int4, int4, int4, int4, int4, float8) interval': makeIntervalCell,
  'date_part(text, interval) float8': (unit, interval) => intervals.fieldOf(unitNamed(text(unit)), readInterval(interval)),
  'date_trunc(text, interval) interval': (unit, interval) =>
    intervalCell(intervals.truncateInterval(unitNamed(text(unit)), readInterval(interval))),
  'date_trunc(text, timestamp) timestamp': (unit, instant) => truncateTo(text(unit), integer(instant)),
  'date_trunc(text, timestamptz, text) timestamptz': (unit, instant, zone) =>
    instantIn(text(zone), truncateTo(text(unit), shownIn(text(zone), integer(instant)))),
  'date_bin(interval, timestamp, timestamp) timestamp': (stride, instant, origin) =>
    intervals.binOf(readInterval(stride), integer(instant), integer(origin)),
  'date_bin(interval, timestamptz, timestamptz) timestamptz': (stride, instant, origin) =>
    intervals.binOf(readInterval(stride), integer(instant), integer(origin)),
  'to_char(interval, text) text': (interval, template) => shownByTemplate(readInterval(interval), text(template)),
  'timezone(text, timestamp) timestamptz': (zone, instant) => instantIn(text(zone), integer(instant)),
  'timezone(text, timestamptz) timestamp': (zone, instant) => shownIn(text(zone), integer(instant)),
  'timezone(interval, timestamp) timestamptz': (zone, instant) => integer(instant) - zoneAhead(zone),
  'timezone(interval, timestamptz) timestamp': (zone, instant) => integer(instant) + zoneAhead(zone),
};

interface TimeCallForm {
  readonly takes: readonly string[];
  readonly call: CatalogueCall;
}

const timeCallsByName = new Map<string, TimeCallForm[]>();
for (const [timeCallUsage, evaluate] of Object.entries(timeCallTable)) {
  const [, name, takenWireList, yieldedWire, takesNulls] = /^([^(]+)\(([^)]+)\) (\w+)( null)?$/.exec(timeCallUsage)!;
  const takenWires = takenWireList!.split(', ');
  const raises = true;
  const type = timeCellType(yieldedWire!);
  const signature = {
    takes: takenWires.map(timeCellType),
    yields: type,
    cost: takenWires.includes('text') ? zonedTimeCost : timeCost,
    raises,
    evaluate,
    takesNull: takesNulls !== undefined,
  };
  timeCallsByName.set(name!, [
    ...(timeCallsByName.get(name!) ?? []),
    { takes: takenWires, call: { signature, type, wire: yieldedWire! } },
  ]);
}

function timeCellType(wire: string): ColumnType {
  if (wire === 'timestamptz' || wire === 'timestamp' || wire === 'date') return 'timestamp';
  if (wire === 'bool') return 'boolean';
  return wire === 'float8' ? 'number' : wire.startsWith('int') && wire !== 'interval' ? 'integer' : 'string';
}

const numberWires: ReadonlySet<string> = new Set('int2 int4 int8 float4 float8'.split(' '));
const textWires: ReadonlySet<string> = new Set('text varchar bpchar name'.split(' '));

function fitsTimeType(givenWire: string, wantedWire: string): boolean {
  if (givenWire === wantedWire) return true;
  if (givenWire === 'unknown') return wantedWire !== 'float8' && !wantedWire.startsWith('int4');
  if (wantedWire === 'timestamptz') return givenWire === 'timestamp' || givenWire === 'date';
  if (wantedWire === 'text') return textWires.has(givenWire);
  return wantedWire === 'float8'
    ? numberWires.has(givenWire)
    : wantedWire === 'int4' && givenWire.startsWith('int') && givenWire !== 'interval';
}

/** The function or operator for such types, first one that takes them as they are; null: there is none. */
export function timeCall(timeCallName: string, givenWires: readonly string[]): CatalogueCall | null {
  const fittingCalls = timeCallsByName
    .get(timeCallName)
    ?.filter(({ takes }) => takes.length === givenWires.length && givenWires.every((type, i) => fitsTimeType(type, takes[i]!)));
  if (!fittingCalls || fittingCalls.length === 0 || givenWires.every((type) => type === 'unknown')) return null;
  const exactTypeCount = ({ takes }: TimeCallForm): number => takes.filter((type, i) => type === givenWires[i]).length;
  return fittingCalls.reduce((bestCall, nextCall) => (exactTypeCount(nextCall) > exactTypeCount(bestCall) ? nextCall : bestCall))
    .call;
}
