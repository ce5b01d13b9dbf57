/**
 * Least and greatest value of each 2,048 rows of a segment's columns, found on first use and kept: a predicate that no value
 * between them can meet skips those rows. Never more than a necessary condition. Invariants:
 *
 * - cells below a segment's length never change but by being removed, so extremes stay true; of a segment that still grows
 *   only whole stretches are summarised;
 * - every removal of cells, and every change of a column's stored type, calls `forgetZoneMaps`: extremes are values.
 */
import type { Vector } from '../../../log/values/columns.ts';
import type { Timeline } from '../../../log/values/timeline.ts';
import { FOREVER } from '../../../log/values/timestamp.ts';
import type { PathCodes, ZonePredicate } from '../../access-paths.ts';
import { Bloom, hashNumber, hashText } from '../cells/bloom.ts';
import type { ByteDictionary } from '../cells/byte-dictionary.ts';
import { forgetIndexes } from '../indexes/segment-indexes.ts';
import type { Segment } from '../segments/segment.ts';
import { SEGMENT_ROWS } from '../segments/segment-column.ts';

/** 32 to a segment: one bit of a word each. */
export const ZONE_ROWS = SEGMENT_ROWS / 32;
const ALL = -1;
/** Bytes of a text that are kept: longer ones are known by how they begin. */
const TEXT_BYTES = 24;

/** `summarised` rows, all of them whole stretches unless the segment is full; a stretch without a value has its bit unset. */
interface NumberZones {
  readonly kind: 'numbers';
  summarised: number;
  some: number;
  readonly least: Float64Array;
  readonly most: Float64Array;
  /** False where values are wider than a double: then equal extremes may stand for unequal values. */
  exact: boolean;
}

interface TextZones {
  readonly kind: 'texts';
  summarised: number;
  some: number;
  /** Least and greatest of stretch n: bytes ends[2n-1] .. ends[2n], then up to ends[2n+1]. */
  bytes: Uint8Array;
  readonly ends: Uint16Array;
  /** Stretches that have the least and the greatest of all texts; -1 where there is no text. */
  least: number;
  most: number;
  /** Bits of the stretches of which no text is less than that of the row before it. */
  rising: number;
  /** The rows behind those that are summarised, as far as they were looked at. */
  tail: { readonly from: number; end: number; rises: boolean };
}

type Zones = NumberZones | TextZones;

/** Summaries of a segment's columns, valid for one count of wipes. */
interface Summaries<T> {
  readonly wipes: number;
  readonly columns: Map<string, T>;
}

const known = new WeakMap<Segment, Summaries<Zones>>();
/** Null where a column has no filter. */
const blooms = new WeakMap<Segment, Summaries<Bloom | null>>();
const encoder = new TextEncoder();

/** Without a column: of all of them, keys included. */
export function forgetZoneMaps(segment: Segment, column?: string): void {
  forgetIndexes(segment, column);
  for (const summaries of [known, blooms]) {
    if (column === undefined) summaries.delete(segment);
    else summaries.get(segment)?.columns.delete(column);
  }
}

function summaryOf<T>(summaries: WeakMap<Segment, Summaries<T>>, segment: Segment, column: string): T | undefined {
  const of = summaries.get(segment);
  return of?.wipes === segment.cells.wipes ? of.columns.get(column) : undefined;
}

function keepSummary<T>(summaries: WeakMap<Segment, Summaries<T>>, segment: Segment, column: string, summary: T): void {
  const { wipes } = segment.cells;
  let of = summaries.get(segment);
  if (of?.wipes !== wipes) summaries.set(segment, (of = { wipes, columns: new Map() }));
  of.columns.set(column, summary);
}

interface Predicate extends ZonePredicate {
  /** UTF-8 of a text; null where it is none, or no text that a cell can hold. */
  readonly bytes: Uint8Array | null;
}

/** Since the start: segments of which no row was read, since none could match, and of these what a filter knew. */
export interface PruningCounts {
  segments: number;
  byBloom: number;
}

/**
 * Those of the paths that a scan may show (undefined: all) whose rows can match: what is asked of `tenant_id` and
 * `namespace_path` is known by path, without a look at any row.
 */
export function matchingPaths(
  predicates: readonly ZonePredicate[] | undefined,
  paths: readonly number[] | undefined,
  codes: PathCodes,
): readonly number[] | undefined {
  let left = paths;
  for (const { column, op, value } of predicates ?? []) {
    if (op !== '=' || typeof value !== 'string' || (column !== 'tenant_id' && column !== 'namespace_path')) continue;
    const matches = (path: string | null): boolean => (column === 'tenant_id' ? path?.split('/', 1)[0] : path) === value;
    left = (left ?? Array.from({ length: codes.size }, (_, code) => code)).filter((code) => matches(codes.path(code)));
  }
  return left;
}

/** The table whose segments are pruned. */
interface PrunedTable {
  /** Columns of which sealed segments keep a filter for equality. */
  readonly bloomColumns: readonly string[];
  readonly pruned: PruningCounts;
  dictionaryOf(column: string): ByteDictionary | null;
}

/** The predicates of one scan. */
export class ZonePruner {
  readonly #predicates: readonly Predicate[];
  readonly #timeline: Timeline;
  readonly #table: PrunedTable;
  /** As in `ScanSource`. */
  readonly #idIsKey: boolean;
  /** Segments that had to be summarised: each takes about a millisecond, so the scan gives others a turn in between. */
  made = 0;

  constructor(predicates: readonly ZonePredicate[], timeline: Timeline, table: PrunedTable, idIsKey: boolean) {
    this.#predicates = predicates.map((predicate) => ({ ...predicate, bytes: bytesOf(predicate.value) }));
    this.#timeline = timeline;
    this.#table = table;
    this.#idIsKey = idIsKey;
  }

  /** A bit for each stretch of the segment in which all predicates may hold. */
  zonesWhere(segment: Segment, sealed: boolean): number {
    let left = this.#mayEnd(segment) ? ALL : 0;
    for (const predicate of this.#predicates) {
      if (left !== 0) left &= this.#holding(segment, predicate, sealed);
    }
    if (left === 0) this.#table.pruned.segments++;
    return left;
  }

  /** Whether a row of the segment may have ended between the bounds of `system_to`: what is open ends at FOREVER. */
  #mayEnd({ closedLeast, closedMost }: Segment): boolean {
    let [after, until] = [0n, FOREVER];
    for (const { column, op, value } of this.#predicates) {
      if (column !== 'system_to' || typeof value !== 'bigint') continue;
      if ((op === '<' || op === '<=' || op === '=') && value < until) until = value;
      if ((op === '>' || op === '>=' || op === '=') && value > after) after = value;
    }
    if (until === FOREVER) return true;
    return closedLeast <= closedMost && this.#timeline.timeOf(closedLeast) <= until && this.#timeline.timeOf(closedMost) >= after;
  }

  #holding(segment: Segment, predicate: Predicate, sealed: boolean): number {
    const { column, value } = predicate;
    if (column === 'system_to') return ALL;
    if (column === 'system_from' || column === 'valid_from' || column === 'valid_to') {
      // Rows that a growing segment gets meanwhile are none that the reader sees.
      if (typeof value !== 'bigint') return ALL;
      return withinTimes(predicate.op, value, segment, column, this.#timeline) ? ALL : 0;
    }
    if (typeof value === 'boolean' || (typeof value === 'string' && predicate.bytes === null)) return ALL;
    const stored = this.#storedName(segment, column);
    const zones = stored === null ? null : this.#zonesOf(segment, stored, sealed);
    if (zones === null) return ALL;
    const holding = zones.kind === 'texts' ? textsHolding(zones, predicate) : this.#numbersHolding(zones, predicate);
    const asked = holding !== 0 && sealed && predicate.op === '=' && this.#table.bloomColumns.includes(column);
    // A filter over rows of several organisations would tell by its time whether another one has the value.
    if (asked && segment.paths.constant !== null && this.#ruledOut(segment, zones.kind, predicate)) {
      this.#table.pruned.byBloom++;
      return 0;
    }
    return holding | unsummarisedRows(zones.summarised);
  }

  /** True when the filter of a column knows that no row of the segment has the value. */
  #ruledOut(segment: Segment, kind: Zones['kind'], { column, value, bytes }: Predicate): boolean {
    let bloom = summaryOf(blooms, segment, column);
    if (bloom === undefined) {
      const vector = segment.column(column)?.vector(segment.length);
      bloom = vector ? Bloom.fromVector(vector, segment.length) : null;
      keepSummary(blooms, segment, column, bloom);
      this.made++;
    }
    if (bloom === null) return false;
    if (kind === 'texts') return bytes !== null && !bloom.mayHold(hashText(bytes, 0, bytes.length));
    const code = typeof value === 'string' ? this.#table.dictionaryOf(column)?.codeOf(value) : Number(value);
    return code !== undefined && !bloom.mayHold(hashNumber(code));
  }

  /**
   * Narrows rows first .. end-1, which lie in neighbouring ranges, by predicates over ascending texts: keys that arrive in order
   * are reduced to exactly the matching range.
   */
  narrow(segment: Segment, first: number, end: number): readonly [number, number] {
    let [from, to] = [first, end];
    for (const { column, op, bytes } of this.#predicates) {
      const stored = bytes === null ? null : this.#storedName(segment, column);
      const zones = stored === null ? undefined : summaryOf(known, segment, stored);
      if (bytes === null || zones?.kind !== 'texts') continue;
      const texts = (stored === '_pk' ? segment.keys : segment.column(stored!))?.vector(segment.length);
      if (texts?.kind !== 'text' || !rises(zones, texts, from, to)) continue;
      if (op === '>' || op === '>=' || op === '=') from = rowAfter(texts, bytes, op === '>', from, to);
      if (op === '<' || op === '<=' || op === '=') to = rowAfter(texts, bytes, op !== '<', from, to);
    }
    return [from, to];
  }

  /** The column whose extremes tell of `column`. */
  #storedName(segment: Segment, column: string): string | null {
    if (column === '_pk' || (column === 'id' && this.#idIsKey && !segment.columnNames().includes('id'))) return '_pk';
    // An undeclared `id` stands beside keys that stand for those that are missing.
    return column === 'id' && this.#idIsKey ? null : column;
  }

  #numbersHolding(zones: NumberZones, { column, op, value }: Predicate): number {
    if (typeof value !== 'string') return numbersHolding(zones, op, value as number | bigint);
    // Codes rise with first appearance: they say nothing about order.
    const dictionary = op === '=' ? this.#table.dictionaryOf(column) : null;
    if (zones.some === 0) return 0;
    if (dictionary === null) return ALL;
    const code = dictionary.codeOf(value);
    return code < 0 ? 0 : numbersHolding(zones, op, code);
  }

  /** Null where nothing can be said of the column. */
  #zonesOf(segment: Segment, column: string, sealed: boolean): Zones | null {
    let zones = summaryOf(known, segment, column);
    const rows = sealed ? segment.length : segment.length - (segment.length % ZONE_ROWS);
    if (zones && zones.summarised >= rows) return zones;
    const cells = column === '_pk' ? segment.keys : segment.column(column);
    const vector = withoutRemoved(segment, cells?.vector(segment.length));
    if (vector?.kind === 'null') return noValues;
    if (!vector || vector.kind === 'bool' || vector.kind === 'vec') return null;
    if (!zones) {
      zones = vector.kind === 'text' ? noTexts() : noNumbers();
      keepSummary(known, segment, column, zones);
    }
    if (zones.kind === 'texts' && vector.kind === 'text') summariseTexts(zones, vector, rows);
    else if (zones.kind === 'numbers' && vector.kind !== 'text') summariseNumbers(zones, vector, rows);
    else return null;
    this.made++;
    return zones;
  }
}

/** A removed cell leaves no value: extremes that counted it would rule nothing out. */
function withoutRemoved(segment: Segment, vector: Vector | undefined): Vector | undefined {
  if (!vector || vector.kind === 'null' || segment.removedCount === 0) return vector;
  const nulls = new Uint8Array(segment.length);
  if (vector.nulls) nulls.set(vector.nulls.subarray(0, segment.length));
  for (let row = 0; row < segment.length; row++) if (segment.isRemoved(row)) nulls[row] = 1;
  return { ...vector, nulls };
}

function bytesOf(value: ZonePredicate['value']): Uint8Array | null {
  return typeof value === 'string' && value.isWellFormed() ? encoder.encode(value) : null;
}

/** Bits of the stretches after so many rows. */
function unsummarisedRows(rows: number): number {
  return from(Math.ceil(rows / ZONE_ROWS));
}

/** Bits of this stretch and those behind it. */
function from(zone: number): number {
  return zone >= 32 ? 0 : ALL << zone;
}

function noNumbers(): NumberZones {
  return { kind: 'numbers', summarised: 0, some: 0, least: new Float64Array(32), most: new Float64Array(32), exact: true };
}

const noValues: NumberZones = { ...noNumbers(), summarised: SEGMENT_ROWS };

function noTexts(): TextZones {
  return {
    kind: 'texts',
    summarised: 0,
    some: 0,
    bytes: new Uint8Array(0),
    ends: new Uint16Array(64),
    least: -1,
    most: -1,
    rising: 0,
    tail: { from: 0, end: 0, rises: true },
  };
}

function numbersHolding(zones: NumberZones, op: ZonePredicate['op'], value: number | bigint): number {
  const double = Number(value);
  // Rounding keeps order but not difference.
  const strict = zones.exact && (typeof value === 'number' || BigInt(double) === value);
  let holding = 0;
  for (let zone = 0; zone < 32; zone++) {
    if (((zones.some >>> zone) & 1) === 0) continue;
    const least = zones.least[zone]!;
    const most = zones.most[zone]!;
    const above = most > double || (most === double && !(strict && op === '>'));
    const below = least < double || (least === double && !(strict && op === '<'));
    const holds = op === '=' ? above && below : op === '<' || op === '<=' ? below : above;
    if (holds) holding |= 1 << zone;
  }
  return holding;
}

function summariseNumbers(
  zones: NumberZones,
  vector: Exclude<Vector, { kind: 'null' | 'text' | 'bool' | 'vec' }>,
  rows: number,
): void {
  if (vector.kind === 'i64') zones.exact = false;
  for (let from = zones.summarised - (zones.summarised % ZONE_ROWS); from < rows; from += ZONE_ROWS) {
    const end = Math.min(rows, from + ZONE_ROWS);
    const zone = from / ZONE_ROWS;
    const [least, most] = vector.kind === 'i64' ? wideExtremes(vector, from, end) : extremes(vector, from, end);
    zones.least[zone] = least;
    zones.most[zone] = most;
    if (least <= most) zones.some |= 1 << zone;
  }
  zones.summarised = rows;
}

function extremes(
  { values, nulls }: Extract<Vector, { kind: 'i32' | 'f64' | 'dict' }>,
  from: number,
  end: number,
): [number, number] {
  let least = Infinity;
  let most = -Infinity;
  for (let row = from; row < end; row++) {
    if (nulls !== null && nulls[row] === 1) continue;
    const value = values[row]!;
    if (value < least) least = value;
    if (value > most) most = value;
    if (Number.isNaN(value)) return [-Infinity, Infinity];
  }
  return [least, most];
}

function wideExtremes({ values, nulls }: Extract<Vector, { kind: 'i64' }>, from: number, end: number): [number, number] {
  let least: bigint | null = null;
  let most: bigint | null = null;
  for (let row = from; row < end; row++) {
    if (nulls !== null && nulls[row] === 1) continue;
    const value = values[row]!;
    if (least === null || value < least) least = value;
    if (most === null || value > most) most = value;
  }
  return least === null ? [Infinity, -Infinity] : [Number(least), Number(most)];
}

function textsHolding(zones: TextZones, { op, bytes }: Predicate): number {
  if (bytes === null) return ALL;
  // Where keys rise with arrival, this alone rules out all segments but one or two.
  if (zones.least < 0 || !mayHold(zones, zones.least, zones.most, op, bytes)) return 0;
  const zoneCount = Math.ceil(zones.summarised / ZONE_ROWS);
  const all = ~unsummarisedRows(zones.summarised);
  if (zones.some === all && (zones.rising & all) === all) return risingHolding(zones, zoneCount, op, bytes);
  let holding = 0;
  for (let zone = 0; zone < 32; zone++) {
    if (((zones.some >>> zone) & 1) === 1 && mayHold(zones, zone, zone, op, bytes)) holding |= 1 << zone;
  }
  return holding;
}

/** The same where texts rise from stretch to stretch: those that hold lie side by side, and where they begin and end is searched. */
function risingHolding(zones: TextZones, zoneCount: number, op: ZonePredicate['op'], bytes: Uint8Array): number {
  let holding = ~unsummarisedRows(zones.summarised);
  if (op !== '<' && op !== '<=') {
    const upwards = op === '=' ? '>=' : op;
    holding &= from(stretchAfter(zoneCount, (zone) => !mayHold(zones, zone, zone, upwards, bytes)));
  }
  if (op !== '>' && op !== '>=') {
    const downwards = op === '=' ? '<=' : op;
    holding &= ~from(stretchAfter(zoneCount, (zone) => mayHold(zones, zone, zone, downwards, bytes)));
  }
  return holding;
}

/** The first stretch that is not `before`, as all behind it are not. Most of the time it is the first one, or there is none. */
function stretchAfter(zoneCount: number, before: (zone: number) => boolean): number {
  if (!before(0)) return 0;
  let [low, high] = before(zoneCount - 1) ? [zoneCount, zoneCount] : [1, zoneCount - 1];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (before(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Whether a text between the least one of a stretch and the greatest one of another may meet the predicate. */
function mayHold(zones: TextZones, leastOf: number, mostOf: number, op: ZonePredicate['op'], value: Uint8Array): boolean {
  const { ends, bytes } = zones;
  if (op !== '>' && op !== '>=') {
    const least = compareBytes(bytes, startOfLeast(zones, leastOf), ends[leastOf * 2]!, value, 0, value.length);
    if (op === '<' ? least >= 0 : least > 0) return false;
    if (op !== '=') return true;
  }
  const start = ends[mostOf * 2]!;
  const end = ends[mostOf * 2 + 1]!;
  const most = compareBytes(bytes, start, end, value, 0, value.length);
  if (op === '>' ? most > 0 : most >= 0) return true;
  // A text that was cut off is greater than its kept beginning, by an unknown amount.
  return end - start === TEXT_BYTES && compareBytes(bytes, start, end, value, 0, Math.min(value.length, TEXT_BYTES)) === 0;
}

function startOfLeast({ ends }: TextZones, zone: number): number {
  return zone === 0 ? 0 : ends[zone * 2 - 1]!;
}

function summariseTexts(zones: TextZones, { offsets, heap, nulls }: Extract<Vector, { kind: 'text' }>, rows: number): void {
  const first = Math.floor(zones.summarised / ZONE_ROWS);
  const before = first === 0 ? 0 : zones.ends[first * 2 - 1]!;
  const bytes = new Uint8Array(before + (Math.ceil(rows / ZONE_ROWS) - first) * 2 * TEXT_BYTES);
  bytes.set(zones.bytes.subarray(0, before));
  let used = before;
  for (let zone = first; zone * ZONE_ROWS < rows; zone++) {
    let least = -1;
    let most = -1;
    const before = zone * ZONE_ROWS - 1;
    let rising = nulls === null && (before < 0 || compareCells(offsets, heap, before + 1, before) >= 0);
    for (let row = zone * ZONE_ROWS; row < Math.min(rows, (zone + 1) * ZONE_ROWS); row++) {
      if (nulls !== null && nulls[row] === 1) continue;
      if (most < 0) least = most = row;
      // Texts that rise, as keys often do, are compared once.
      else if (compareCells(offsets, heap, row, most) >= 0) most = row;
      else {
        rising = false;
        if (compareCells(offsets, heap, row, least) < 0) least = row;
      }
    }
    zones.rising = rising ? zones.rising | (1 << zone) : zones.rising & ~(1 << zone);
    if (least >= 0) zones.some |= 1 << zone;
    for (const [at, row] of [least, most].entries()) {
      const start = row < 0 ? 0 : offsets[row]!;
      const end = row < 0 ? 0 : Math.min(offsets[row + 1]!, start + TEXT_BYTES);
      for (let i = start; i < end; i++) bytes[used++] = heap[i]!;
      zones.ends[zone * 2 + at] = used;
    }
  }
  zones.bytes = bytes.slice(0, used);
  zones.summarised = rows;
  for (let zone = first; zone * ZONE_ROWS < rows; zone++) noteExtremes(zones, zone);
}

function noteExtremes(zones: TextZones, zone: number): void {
  const { bytes, ends, least, most } = zones;
  if (((zones.some >>> zone) & 1) === 0) return;
  const middle = ends[zone * 2]!;
  const start = startOfLeast(zones, zone);
  if (least < 0 || compareBytes(bytes, start, middle, bytes, startOfLeast(zones, least), ends[least * 2]!) < 0)
    zones.least = zone;
  const end = ends[zone * 2 + 1]!;
  if (most < 0 || compareBytes(bytes, middle, end, bytes, ends[most * 2]!, ends[most * 2 + 1]!) > 0) zones.most = zone;
}

function rises(zones: TextZones, texts: Extract<Vector, { kind: 'text' }>, from: number, to: number): boolean {
  const known = Math.min(to, zones.summarised);
  const isRising = (row: number): boolean => ((zones.rising >>> (row / ZONE_ROWS)) & 1) === 1;
  for (let row = from; row < known; row += ZONE_ROWS) if (!isRising(row)) return false;
  return (from >= known || isRising(known - 1)) && (to <= known || tailRises(zones, texts, to));
}

/** Looks at each row that no stretch has summarised yet once, however many scans ask. */
function tailRises(zones: TextZones, { offsets, heap, nulls }: Extract<Vector, { kind: 'text' }>, to: number): boolean {
  if (nulls !== null) return false;
  if (zones.tail.from !== zones.summarised) zones.tail = { from: zones.summarised, end: zones.summarised, rises: true };
  const { tail } = zones;
  for (; tail.rises && tail.end < to; tail.end++) {
    tail.rises = tail.end === 0 || compareCells(offsets, heap, tail.end, tail.end - 1) >= 0;
  }
  return tail.rises;
}

/** The first row of from .. to-1 whose text is not below `bytes`, or above them where `above` says so; else `to`. */
function rowAfter(
  { offsets, heap }: Extract<Vector, { kind: 'text' }>,
  bytes: Uint8Array,
  above: boolean,
  from: number,
  to: number,
): number {
  let [low, high] = [from, to];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const order = compareBytes(heap, offsets[middle]!, offsets[middle + 1]!, bytes, 0, bytes.length);
    if (order < 0 || (above && order === 0)) low = middle + 1;
    else high = middle;
  }
  return low;
}

function compareCells(offsets: Uint32Array, heap: Uint8Array, a: number, b: number): number {
  return compareBytes(heap, offsets[a]!, offsets[a + 1]!, heap, offsets[b]!, offsets[b + 1]!);
}

function compareBytes(a: Uint8Array, aFrom: number, aEnd: number, b: Uint8Array, bFrom: number, bEnd: number): number {
  const size = Math.min(aEnd - aFrom, bEnd - bFrom);
  for (let i = 0; i < size; i++) {
    const difference = a[aFrom + i]! - b[bFrom + i]!;
    if (difference !== 0) return difference;
  }
  return aEnd - aFrom - (bEnd - bFrom);
}

function withinTimes(op: ZonePredicate['op'], value: bigint, segment: Segment, column: string, timeline: Timeline): boolean {
  const valid = segment.validZone();
  const own = column === 'system_from' || (column === 'valid_from' && !segment.validFrom);
  const [least, most] = own
    ? [timeline.timeOf(segment.base), timeline.timeOf(segment.positionOf(segment.length - 1))]
    : column === 'valid_from'
      ? [valid.fromLeast, valid.fromMost]
      : [valid.toLeast, valid.toMost];
  switch (op) {
    case '=':
      return least <= value && value <= most;
    case '<':
      return least < value;
    case '<=':
      return least <= value;
    case '>':
      return most > value;
    case '>=':
      return most >= value;
  }
}
