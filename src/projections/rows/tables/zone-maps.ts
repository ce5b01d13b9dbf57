/**
 * Least and greatest value of each 2,048 rows of a segment's columns, found on first use and kept: a predicate that no value
 * between them can meet skips those rows. Never more than a necessary condition. Invariants:
 *
 * - cells below a segment's length never change but by being removed, so extremes stay true; of a segment that still grows
 *   only whole zones are summarised;
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
const ALL_STRETCHES = -1;
/** Bytes of a text that are kept: longer ones are known by how they begin. */
const ZONE_TEXT_BYTES = 24;

/** `summarised` rows, all of them whole zones unless the segment is full; a zone without a value has its bit unset. */
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
  /** Least and greatest of zone n: bytes ends[2n-1] .. ends[2n], then up to ends[2n+1]. */
  bytes: Uint8Array;
  readonly ends: Uint16Array;
  /** Stretches that have the least and the greatest of all texts; -1 where there is no text. */
  least: number;
  most: number;
  /** Bits of the zones of which no text is less than that of the row before it. */
  rising: number;
  /** The rows behind those that are summarised, as far as they were looked at. */
  tail: { readonly from: number; end: number; rises: boolean };
}

type ColumnZones = NumberZones | TextZones;

/** Summaries of a segment's columns, valid for one count of wipes. */
interface ZoneSummaries<T> {
  readonly wipes: number;
  readonly columns: Map<string, T>;
}

const zonesBySegment = new WeakMap<Segment, ZoneSummaries<ColumnZones>>();
/** Null where a column has no filter. */
const bloomsBySegment = new WeakMap<Segment, ZoneSummaries<Bloom | null>>();
const predicateEncoder = new TextEncoder();

/** Without a column: of all of them, keys included. */
export function forgetZoneMaps(segment: Segment, column?: string): void {
  forgetIndexes(segment, column);
  for (const zoneSummaries of [zonesBySegment, bloomsBySegment]) {
    if (column === undefined) zoneSummaries.delete(segment);
    else zoneSummaries.get(segment)?.columns.delete(column);
  }
}

function zoneSummaryOf<T>(summaries: WeakMap<Segment, ZoneSummaries<T>>, segment: Segment, column: string): T | undefined {
  const segmentSummaries = summaries.get(segment);
  return segmentSummaries?.wipes === segment.cells.wipes ? segmentSummaries.columns.get(column) : undefined;
}

function keepZoneSummary<T>(
  summaries: WeakMap<Segment, ZoneSummaries<T>>,
  segment: Segment,
  column: string,
  columnSummary: T,
): void {
  const { wipes } = segment.cells;
  let segmentSummaries = summaries.get(segment);
  if (segmentSummaries?.wipes !== wipes) summaries.set(segment, (segmentSummaries = { wipes, columns: new Map() }));
  segmentSummaries.columns.set(column, columnSummary);
}

interface PreparedPredicate extends ZonePredicate {
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
  let matchingCodes = paths;
  for (const { column, op, value: wantedPath } of predicates ?? []) {
    if (op !== '=' || typeof wantedPath !== 'string' || (column !== 'tenant_id' && column !== 'namespace_path')) continue;
    const matchesPath = (path: string | null): boolean => (column === 'tenant_id' ? path?.split('/', 1)[0] : path) === wantedPath;
    matchingCodes = (matchingCodes ?? Array.from({ length: codes.size }, (_, pathCode) => pathCode)).filter((pathCode) =>
      matchesPath(codes.path(pathCode)),
    );
  }
  return matchingCodes;
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
  readonly #zonePredicates: readonly PreparedPredicate[];
  readonly #zoneTimeline: Timeline;
  readonly #prunedTable: PrunedTable;
  /** As in `ScanSource`. */
  readonly #idIsKey: boolean;
  /** Segments that had to be summarised: each takes about a millisecond, so the scan gives others a turn in between. */
  made = 0;

  constructor(predicates: readonly ZonePredicate[], timeline: Timeline, table: PrunedTable, idIsKey: boolean) {
    this.#zonePredicates = predicates.map((zonePredicate) => ({
      ...zonePredicate,
      bytes: predicateBytesOf(zonePredicate.value),
    }));
    this.#zoneTimeline = timeline;
    this.#prunedTable = table;
    this.#idIsKey = idIsKey;
  }

  /** A bit for each zone of the segment in which all predicates may hold. */
  zonesWhere(segment: Segment, sealed: boolean): number {
    let left = this.#mayEndInBounds(segment) ? ALL_STRETCHES : 0;
    for (const predicate of this.#zonePredicates) {
      if (left !== 0) left &= this.#stretchesHolding(segment, predicate, sealed);
    }
    if (left === 0) this.#prunedTable.pruned.segments++;
    return left;
  }

  /** Whether a row of the segment may have ended between the bounds of `system_to`: what is open ends at FOREVER. */
  #mayEndInBounds({ closedLeast, closedMost }: Segment): boolean {
    let [endsAfter, endsUntil] = [0n, FOREVER];
    for (const { column, op, value } of this.#zonePredicates) {
      if (column !== 'system_to' || typeof value !== 'bigint') continue;
      if ((op === '<' || op === '<=' || op === '=') && value < endsUntil) endsUntil = value;
      if ((op === '>' || op === '>=' || op === '=') && value > endsAfter) endsAfter = value;
    }
    if (endsUntil === FOREVER) return true;
    return (
      closedLeast <= closedMost &&
      this.#zoneTimeline.timeOf(closedLeast) <= endsUntil &&
      this.#zoneTimeline.timeOf(closedMost) >= endsAfter
    );
  }

  #stretchesHolding(segment: Segment, zonePredicate: PreparedPredicate, isSegmentSealed: boolean): number {
    const { column, value } = zonePredicate;
    if (column === 'system_to') return ALL_STRETCHES;
    if (column === 'system_from' || column === 'valid_from' || column === 'valid_to') {
      // Rows that a growing segment gets meanwhile are none that the reader sees.
      if (typeof value !== 'bigint') return ALL_STRETCHES;
      return isWithinTimes(zonePredicate.op, value, segment, column, this.#zoneTimeline) ? ALL_STRETCHES : 0;
    }
    if (typeof value === 'boolean' || (typeof value === 'string' && zonePredicate.bytes === null)) return ALL_STRETCHES;
    const storedColumn = this.#storedName(segment, column);
    const columnZones = storedColumn === null ? null : this.#columnZonesOf(segment, storedColumn, isSegmentSealed);
    if (columnZones === null) return ALL_STRETCHES;
    const holdingStretches =
      columnZones.kind === 'texts'
        ? textStretchesHolding(columnZones, zonePredicate)
        : this.#numberStretchesHolding(columnZones, zonePredicate);
    const bloomTest =
      holdingStretches !== 0 && isSegmentSealed && zonePredicate.op === '=' && this.#prunedTable.bloomColumns.includes(column);
    // A filter over rows of several organisations would tell by its time whether another one has the value.
    if (bloomTest && segment.paths.constant !== null && this.#isRuledOutByBloom(segment, columnZones.kind, zonePredicate)) {
      this.#prunedTable.pruned.byBloom++;
      return 0;
    }
    return holdingStretches | unsummarisedRows(columnZones.summarised);
  }

  /** True when the filter of a column knows that no row of the segment has the value. */
  #isRuledOutByBloom(segment: Segment, kind: ColumnZones['kind'], { column, value, bytes }: PreparedPredicate): boolean {
    let columnBloom = zoneSummaryOf(bloomsBySegment, segment, column);
    if (columnBloom === undefined) {
      const bloomVector = segment.column(column)?.vector(segment.length);
      columnBloom = bloomVector ? Bloom.fromVector(bloomVector, segment.length) : null;
      keepZoneSummary(bloomsBySegment, segment, column, columnBloom);
      this.made++;
    }
    if (columnBloom === null) return false;
    if (kind === 'texts') return bytes !== null && !columnBloom.mayHold(hashText(bytes, 0, bytes.length));
    const dictionaryCode = typeof value === 'string' ? this.#prunedTable.dictionaryOf(column)?.codeOf(value) : Number(value);
    return dictionaryCode !== undefined && !columnBloom.mayHold(hashNumber(dictionaryCode));
  }

  /**
   * Narrows rows first .. end-1, which lie in neighbouring ranges, by predicates over ascending texts: keys that arrive in order
   * are reduced to exactly the matching range.
   */
  narrow(segment: Segment, first: number, end: number): readonly [number, number] {
    let [narrowedFirst, narrowedEnd] = [first, end];
    for (const { column, op, bytes } of this.#zonePredicates) {
      const storedColumn = bytes === null ? null : this.#storedName(segment, column);
      const columnZones = storedColumn === null ? undefined : zoneSummaryOf(zonesBySegment, segment, storedColumn);
      if (bytes === null || columnZones?.kind !== 'texts') continue;
      const risingTexts = (storedColumn === '_pk' ? segment.keys : segment.column(storedColumn!))?.vector(segment.length);
      if (risingTexts?.kind !== 'text' || !areTextsRising(columnZones, risingTexts, narrowedFirst, narrowedEnd)) continue;
      if (op === '>' || op === '>=' || op === '=')
        narrowedFirst = firstRowAfterText(risingTexts, bytes, op === '>', narrowedFirst, narrowedEnd);
      if (op === '<' || op === '<=' || op === '=')
        narrowedEnd = firstRowAfterText(risingTexts, bytes, op !== '<', narrowedFirst, narrowedEnd);
    }
    return [narrowedFirst, narrowedEnd];
  }

  /** The column whose extremes tell of `column`. */
  #storedName(segment: Segment, column: string): string | null {
    if (column === '_pk' || (column === 'id' && this.#idIsKey && !segment.columnNames().includes('id'))) return '_pk';
    // An undeclared `id` stands beside keys that stand for those that are missing.
    return column === 'id' && this.#idIsKey ? null : column;
  }

  #numberStretchesHolding(numberZones: NumberZones, { column, op, value }: PreparedPredicate): number {
    if (typeof value !== 'string') return numberZonesHolding(numberZones, op, value as number | bigint);
    // Codes rise with first appearance: they say nothing about order.
    const zoneDictionary = op === '=' ? this.#prunedTable.dictionaryOf(column) : null;
    if (numberZones.some === 0) return 0;
    if (zoneDictionary === null) return ALL_STRETCHES;
    const dictionaryCode = zoneDictionary.codeOf(value);
    return dictionaryCode < 0 ? 0 : numberZonesHolding(numberZones, op, dictionaryCode);
  }

  /** Null where nothing can be said of the column. */
  #columnZonesOf(segment: Segment, column: string, isSegmentSealed: boolean): ColumnZones | null {
    let columnZones = zoneSummaryOf(zonesBySegment, segment, column);
    const rowsToSummarise = isSegmentSealed ? segment.length : segment.length - (segment.length % ZONE_ROWS);
    if (columnZones && columnZones.summarised >= rowsToSummarise) return columnZones;
    const zoneColumn = column === '_pk' ? segment.keys : segment.column(column);
    const zoneVector = withoutRemoved(segment, zoneColumn?.vector(segment.length));
    if (zoneVector?.kind === 'null') return noValueZones;
    if (!zoneVector || zoneVector.kind === 'bool' || zoneVector.kind === 'vec') return null;
    if (!columnZones) {
      columnZones = zoneVector.kind === 'text' ? noTextZones() : noNumberZones();
      keepZoneSummary(zonesBySegment, segment, column, columnZones);
    }
    if (columnZones.kind === 'texts' && zoneVector.kind === 'text') summariseTexts(columnZones, zoneVector, rowsToSummarise);
    else if (columnZones.kind === 'numbers' && zoneVector.kind !== 'text')
      summariseNumbers(columnZones, zoneVector, rowsToSummarise);
    else return null;
    this.made++;
    return columnZones;
  }
}

/** A removed cell leaves no value: extremes that counted it would rule nothing out. */
function withoutRemoved(segment: Segment, zoneVector: Vector | undefined): Vector | undefined {
  if (!zoneVector || zoneVector.kind === 'null' || segment.removedCount === 0) return zoneVector;
  const nullsAndRemoved = new Uint8Array(segment.length);
  if (zoneVector.nulls) nullsAndRemoved.set(zoneVector.nulls.subarray(0, segment.length));
  for (let row = 0; row < segment.length; row++) if (segment.isRemoved(row)) nullsAndRemoved[row] = 1;
  return { ...zoneVector, nulls: nullsAndRemoved };
}

function predicateBytesOf(predicateValue: ZonePredicate['value']): Uint8Array | null {
  return typeof predicateValue === 'string' && predicateValue.isWellFormed() ? predicateEncoder.encode(predicateValue) : null;
}

/** Bits of the zones after so many rows. */
function unsummarisedRows(rows: number): number {
  return stretchesFrom(Math.ceil(rows / ZONE_ROWS));
}

/** Bits of this zone and those behind it. */
function stretchesFrom(zone: number): number {
  return zone >= 32 ? 0 : ALL_STRETCHES << zone;
}

function noNumberZones(): NumberZones {
  return { kind: 'numbers', summarised: 0, some: 0, least: new Float64Array(32), most: new Float64Array(32), exact: true };
}

const noValueZones: NumberZones = { ...noNumberZones(), summarised: SEGMENT_ROWS };

function noTextZones(): TextZones {
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

function numberZonesHolding(numberZones: NumberZones, op: ZonePredicate['op'], predicateValue: number | bigint): number {
  const predicateNumber = Number(predicateValue);
  // Rounding keeps order but not difference.
  const isStrict = numberZones.exact && (typeof predicateValue === 'number' || BigInt(predicateNumber) === predicateValue);
  let holdingStretches = 0;
  for (let zone = 0; zone < 32; zone++) {
    if (((numberZones.some >>> zone) & 1) === 0) continue;
    const leastInZone = numberZones.least[zone]!;
    const mostInZone = numberZones.most[zone]!;
    const reachesAbove = mostInZone > predicateNumber || (mostInZone === predicateNumber && !(isStrict && op === '>'));
    const reachesBelow = leastInZone < predicateNumber || (leastInZone === predicateNumber && !(isStrict && op === '<'));
    const zoneHolds = op === '=' ? reachesAbove && reachesBelow : op === '<' || op === '<=' ? reachesBelow : reachesAbove;
    if (zoneHolds) holdingStretches |= 1 << zone;
  }
  return holdingStretches;
}

function summariseNumbers(
  numberZones: NumberZones,
  vector: Exclude<Vector, { kind: 'null' | 'text' | 'bool' | 'vec' }>,
  rows: number,
): void {
  if (vector.kind === 'i64') numberZones.exact = false;
  for (
    let zoneFirstRow = numberZones.summarised - (numberZones.summarised % ZONE_ROWS);
    zoneFirstRow < rows;
    zoneFirstRow += ZONE_ROWS
  ) {
    const zoneEndRow = Math.min(rows, zoneFirstRow + ZONE_ROWS);
    const zone = zoneFirstRow / ZONE_ROWS;
    const [leastInZone, mostInZone] =
      vector.kind === 'i64' ? wideZoneExtremes(vector, zoneFirstRow, zoneEndRow) : zoneExtremes(vector, zoneFirstRow, zoneEndRow);
    numberZones.least[zone] = leastInZone;
    numberZones.most[zone] = mostInZone;
    if (leastInZone <= mostInZone) numberZones.some |= 1 << zone;
  }
  numberZones.summarised = rows;
}

function zoneExtremes(
  { values, nulls }: Extract<Vector, { kind: 'i32' | 'f64' | 'dict' }>,
  zoneFirstRow: number,
  zoneEndRow: number,
): [number, number] {
  let leastInZone = Infinity;
  let mostInZone = -Infinity;
  for (let row = zoneFirstRow; row < zoneEndRow; row++) {
    if (nulls !== null && nulls[row] === 1) continue;
    const zoneNumber = values[row]!;
    if (zoneNumber < leastInZone) leastInZone = zoneNumber;
    if (zoneNumber > mostInZone) mostInZone = zoneNumber;
    if (Number.isNaN(zoneNumber)) return [-Infinity, Infinity];
  }
  return [leastInZone, mostInZone];
}

function wideZoneExtremes(
  { values, nulls }: Extract<Vector, { kind: 'i64' }>,
  zoneFirstRow: number,
  zoneEndRow: number,
): [number, number] {
  let leastInZone: bigint | null = null;
  let mostInZone: bigint | null = null;
  for (let row = zoneFirstRow; row < zoneEndRow; row++) {
    if (nulls !== null && nulls[row] === 1) continue;
    const zoneNumber = values[row]!;
    if (leastInZone === null || zoneNumber < leastInZone) leastInZone = zoneNumber;
    if (mostInZone === null || zoneNumber > mostInZone) mostInZone = zoneNumber;
  }
  return leastInZone === null ? [Infinity, -Infinity] : [Number(leastInZone), Number(mostInZone)];
}

function textStretchesHolding(textZones: TextZones, { op, bytes: predicateText }: PreparedPredicate): number {
  if (predicateText === null) return ALL_STRETCHES;
  // Where keys rise with arrival, this alone rules out all segments but one or two.
  if (textZones.least < 0 || !mayTextZoneHold(textZones, textZones.least, textZones.most, op, predicateText)) return 0;
  const zoneCount = Math.ceil(textZones.summarised / ZONE_ROWS);
  const summarisedStretches = ~unsummarisedRows(textZones.summarised);
  if (textZones.some === summarisedStretches && (textZones.rising & summarisedStretches) === summarisedStretches)
    return risingHolding(textZones, zoneCount, op, predicateText);
  let holdingStretches = 0;
  for (let zone = 0; zone < 32; zone++) {
    if (((textZones.some >>> zone) & 1) === 1 && mayTextZoneHold(textZones, zone, zone, op, predicateText))
      holdingStretches |= 1 << zone;
  }
  return holdingStretches;
}

/** The same where texts rise from zone to zone: those that hold lie side by side, and where they begin and end is searched. */
function risingHolding(textZones: TextZones, zoneCount: number, op: ZonePredicate['op'], predicateText: Uint8Array): number {
  let holdingStretches = ~unsummarisedRows(textZones.summarised);
  if (op !== '<' && op !== '<=') {
    const upwardsOp = op === '=' ? '>=' : op;
    holdingStretches &= stretchesFrom(
      zoneAfter(zoneCount, (zone) => !mayTextZoneHold(textZones, zone, zone, upwardsOp, predicateText)),
    );
  }
  if (op !== '>' && op !== '>=') {
    const downwardsOp = op === '=' ? '<=' : op;
    holdingStretches &= ~stretchesFrom(
      zoneAfter(zoneCount, (zone) => mayTextZoneHold(textZones, zone, zone, downwardsOp, predicateText)),
    );
  }
  return holdingStretches;
}

/** The first zone that is not `before`, as all behind it are not. Most of the time it is the first one, or there is none. */
function zoneAfter(zoneCount: number, before: (zone: number) => boolean): number {
  if (!before(0)) return 0;
  let [low, high] = before(zoneCount - 1) ? [zoneCount, zoneCount] : [1, zoneCount - 1];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (before(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Whether a text between the least one of a zone and the greatest one of another may meet the predicate. */
function mayTextZoneHold(
  textZones: TextZones,
  leastOf: number,
  mostOf: number,
  op: ZonePredicate['op'],
  predicateText: Uint8Array,
): boolean {
  const { ends: zoneTextEnds, bytes } = textZones;
  if (op !== '>' && op !== '>=') {
    const leastCompared = compareZoneTexts(
      bytes,
      leastTextStartOf(textZones, leastOf),
      zoneTextEnds[leastOf * 2]!,
      predicateText,
      0,
      predicateText.length,
    );
    if (op === '<' ? leastCompared >= 0 : leastCompared > 0) return false;
    if (op !== '=') return true;
  }
  const mostTextStart = zoneTextEnds[mostOf * 2]!;
  const mostTextEnd = zoneTextEnds[mostOf * 2 + 1]!;
  const mostCompared = compareZoneTexts(bytes, mostTextStart, mostTextEnd, predicateText, 0, predicateText.length);
  if (op === '>' ? mostCompared > 0 : mostCompared >= 0) return true;
  // A text that was cut off is greater than its kept beginning, by an unknown amount.
  return (
    mostTextEnd - mostTextStart === ZONE_TEXT_BYTES &&
    compareZoneTexts(bytes, mostTextStart, mostTextEnd, predicateText, 0, Math.min(predicateText.length, ZONE_TEXT_BYTES)) === 0
  );
}

function leastTextStartOf({ ends }: TextZones, zone: number): number {
  return zone === 0 ? 0 : ends[zone * 2 - 1]!;
}

function summariseTexts(textZones: TextZones, { offsets, heap, nulls }: Extract<Vector, { kind: 'text' }>, rows: number): void {
  const firstStretch = Math.floor(textZones.summarised / ZONE_ROWS);
  const before = firstStretch === 0 ? 0 : textZones.ends[firstStretch * 2 - 1]!;
  const zoneTextBytes = new Uint8Array(before + (Math.ceil(rows / ZONE_ROWS) - firstStretch) * 2 * ZONE_TEXT_BYTES);
  zoneTextBytes.set(textZones.bytes.subarray(0, before));
  let zoneBytesUsed = before;
  for (let zone = firstStretch; zone * ZONE_ROWS < rows; zone++) {
    let leastTextRow = -1;
    let mostTextRow = -1;
    const before = zone * ZONE_ROWS - 1;
    let isStretchRising = nulls === null && (before < 0 || compareTextCells(offsets, heap, before + 1, before) >= 0);
    for (let row = zone * ZONE_ROWS; row < Math.min(rows, (zone + 1) * ZONE_ROWS); row++) {
      if (nulls !== null && nulls[row] === 1) continue;
      if (mostTextRow < 0) leastTextRow = mostTextRow = row;
      // Texts that rise, as keys often do, are compared once.
      else if (compareTextCells(offsets, heap, row, mostTextRow) >= 0) mostTextRow = row;
      else {
        isStretchRising = false;
        if (compareTextCells(offsets, heap, row, leastTextRow) < 0) leastTextRow = row;
      }
    }
    textZones.rising = isStretchRising ? textZones.rising | (1 << zone) : textZones.rising & ~(1 << zone);
    if (leastTextRow >= 0) textZones.some |= 1 << zone;
    for (const [extremeOrdinal, row] of [leastTextRow, mostTextRow].entries()) {
      const extremeStart = row < 0 ? 0 : offsets[row]!;
      const extremeEnd = row < 0 ? 0 : Math.min(offsets[row + 1]!, extremeStart + ZONE_TEXT_BYTES);
      for (let i = extremeStart; i < extremeEnd; i++) zoneTextBytes[zoneBytesUsed++] = heap[i]!;
      textZones.ends[zone * 2 + extremeOrdinal] = zoneBytesUsed;
    }
  }
  textZones.bytes = zoneTextBytes.slice(0, zoneBytesUsed);
  textZones.summarised = rows;
  for (let zone = firstStretch; zone * ZONE_ROWS < rows; zone++) noteTextExtremes(textZones, zone);
}

function noteTextExtremes(textZones: TextZones, zone: number): void {
  const { bytes, ends, least, most } = textZones;
  if (((textZones.some >>> zone) & 1) === 0) return;
  const leastTextEnd = ends[zone * 2]!;
  const leastTextStart = leastTextStartOf(textZones, zone);
  if (
    least < 0 ||
    compareZoneTexts(bytes, leastTextStart, leastTextEnd, bytes, leastTextStartOf(textZones, least), ends[least * 2]!) < 0
  )
    textZones.least = zone;
  const mostTextEnd = ends[zone * 2 + 1]!;
  if (most < 0 || compareZoneTexts(bytes, leastTextEnd, mostTextEnd, bytes, ends[most * 2]!, ends[most * 2 + 1]!) > 0)
    textZones.most = zone;
}

function areTextsRising(textZones: TextZones, zoneTexts: Extract<Vector, { kind: 'text' }>, from: number, to: number): boolean {
  const summarisedEnd = Math.min(to, textZones.summarised);
  const isRowRising = (row: number): boolean => ((textZones.rising >>> (row / ZONE_ROWS)) & 1) === 1;
  for (let row = from; row < summarisedEnd; row += ZONE_ROWS) if (!isRowRising(row)) return false;
  return (
    (from >= summarisedEnd || isRowRising(summarisedEnd - 1)) && (to <= summarisedEnd || isTailRising(textZones, zoneTexts, to))
  );
}

/** Looks at each row that no zone has summarised yet once, however many scans ask. */
function isTailRising(textZones: TextZones, { offsets, heap, nulls }: Extract<Vector, { kind: 'text' }>, to: number): boolean {
  if (nulls !== null) return false;
  if (textZones.tail.from !== textZones.summarised)
    textZones.tail = { from: textZones.summarised, end: textZones.summarised, rises: true };
  const { tail: risingTail } = textZones;
  for (; risingTail.rises && risingTail.end < to; risingTail.end++) {
    risingTail.rises = risingTail.end === 0 || compareTextCells(offsets, heap, risingTail.end, risingTail.end - 1) >= 0;
  }
  return risingTail.rises;
}

/** The first row of from .. to-1 whose text is not below `predicateText`, or above them where `above` says so; else `to`. */
function firstRowAfterText(
  { offsets, heap }: Extract<Vector, { kind: 'text' }>,
  predicateText: Uint8Array,
  above: boolean,
  from: number,
  to: number,
): number {
  let [lowRow, highRow] = [from, to];
  while (lowRow < highRow) {
    const middleRow = (lowRow + highRow) >>> 1;
    const textOrder = compareZoneTexts(
      heap,
      offsets[middleRow]!,
      offsets[middleRow + 1]!,
      predicateText,
      0,
      predicateText.length,
    );
    if (textOrder < 0 || (above && textOrder === 0)) lowRow = middleRow + 1;
    else highRow = middleRow;
  }
  return lowRow;
}

function compareTextCells(offsets: Uint32Array, heap: Uint8Array, a: number, b: number): number {
  return compareZoneTexts(heap, offsets[a]!, offsets[a + 1]!, heap, offsets[b]!, offsets[b + 1]!);
}

function compareZoneTexts(a: Uint8Array, aFrom: number, aEnd: number, b: Uint8Array, bFrom: number, bEnd: number): number {
  const sharedBytes = Math.min(aEnd - aFrom, bEnd - bFrom);
  for (let i = 0; i < sharedBytes; i++) {
    const byteDifference = a[aFrom + i]! - b[bFrom + i]!;
    if (byteDifference !== 0) return byteDifference;
  }
  return aEnd - aFrom - (bEnd - bFrom);
}

function isWithinTimes(
  op: ZonePredicate['op'],
  predicateTime: bigint,
  segment: Segment,
  column: string,
  timeline: Timeline,
): boolean {
  const validZone = segment.validZone();
  const isSystemTime = column === 'system_from' || (column === 'valid_from' && !segment.validFrom);
  const [leastTime, mostTime] = isSystemTime
    ? [timeline.timeOf(segment.base), timeline.timeOf(segment.positionOf(segment.length - 1))]
    : column === 'valid_from'
      ? [validZone.fromLeast, validZone.fromMost]
      : [validZone.toLeast, validZone.toMost];
  switch (op) {
    case '=':
      return leastTime <= predicateTime && predicateTime <= mostTime;
    case '<':
      return leastTime < predicateTime;
    case '<=':
      return leastTime <= predicateTime;
    case '>':
      return mostTime > predicateTime;
    case '>=':
      return mostTime >= predicateTime;
  }
}
