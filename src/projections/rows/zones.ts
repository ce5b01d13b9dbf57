/**
 * Least and greatest value of a segment's columns, found on first use and kept: a predicate that no value between them
 * can meet skips the segment. Never more than a necessary condition. The segment that still grows is not summarised.
 */
import type { Vector } from '../../log/columns.ts';
import type { ZonePredicate } from '../access-paths.ts';
import type { Timeline } from '../../log/timeline.ts';
import type { Segment } from './segment.ts';

interface Zone {
  readonly least: number | bigint;
  readonly most: number | bigint;
}

/** No zone: nothing is known. Empty: no row has a value, so no comparison can hold. */
type ZoneState = Zone | 'unknown' | 'empty';

const zones = new WeakMap<Segment, Map<string, ZoneState>>();

/** True when no row of a sealed segment can meet all predicates. */
export function prunes(segment: Segment, predicates: readonly ZonePredicate[], timeline: Timeline): boolean {
  return predicates.some((predicate) => !canHold(segment, predicate, timeline));
}

function canHold(segment: Segment, predicate: ZonePredicate, timeline: Timeline): boolean {
  const { column, value } = predicate;
  if (column === 'system_from' || column === 'valid_from' || column === 'valid_to') {
    return typeof value !== 'bigint' || holdsWithin(predicate, timeZone(segment, column, timeline));
  }
  const cells = segment.column(column);
  if (!cells || column === 'id') return true;
  const vector = cells.vector(segment.length);
  if (typeof value === 'string') {
    // Codes rise with first appearance: a segment without the string may still hold its code's neighbours.
    if (vector.kind !== 'dict' || predicate.op !== '=') return true;
    const code = vector.dictionary.codeOf(value);
    return code >= 0 && holdsWithin({ column, op: '=', value: code }, zoneOf(segment, column, vector));
  }
  if (typeof value === 'boolean') return true;
  return holdsWithin(predicate, zoneOf(segment, column, vector));
}

function holdsWithin(predicate: ZonePredicate, zone: ZoneState): boolean {
  if (zone === 'unknown') return true;
  if (zone === 'empty') return false;
  const value = predicate.value as number | bigint;
  switch (predicate.op) {
    case '=':
      return zone.least <= value && value <= zone.most;
    case '<':
      return zone.least < value;
    case '<=':
      return zone.least <= value;
    case '>':
      return zone.most > value;
    case '>=':
      return zone.most >= value;
  }
}

function timeZone(segment: Segment, column: string, timeline: Timeline): ZoneState {
  const own: Zone = {
    least: timeline.timeOf(segment.base),
    most: timeline.timeOf(segment.positionOf(segment.length - 1)),
  };
  const valid = segment.validZone();
  if (column === 'system_from') return own;
  if (column === 'valid_from') return segment.validFrom ? { least: valid.fromLeast, most: valid.fromMost } : own;
  return { least: valid.toLeast, most: valid.toMost };
}

function zoneOf(segment: Segment, column: string, vector: Vector): ZoneState {
  let known = zones.get(segment);
  if (!known) zones.set(segment, (known = new Map()));
  let zone = known.get(column);
  if (zone === undefined) known.set(column, (zone = summarise(vector, segment.length)));
  return zone;
}

function summarise(vector: Vector, length: number): ZoneState {
  if (vector.kind === 'null') return 'empty';
  if (vector.kind !== 'i32' && vector.kind !== 'f64' && vector.kind !== 'i64' && vector.kind !== 'dict') return 'unknown';
  const { values, nulls } = vector;
  let least = -1;
  let most = -1;
  for (let row = 0; row < length; row++) {
    if (nulls?.[row] === 1) continue;
    if (least < 0 || values[row]! < values[least]!) least = row;
    if (most < 0 || values[row]! > values[most]!) most = row;
  }
  return least < 0 ? 'empty' : { least: values[least]!, most: values[most]! };
}
