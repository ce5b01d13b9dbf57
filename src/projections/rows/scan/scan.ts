/** From a request to blocks: by key through the index, otherwise segment by segment, skipping what can't be visible. */
import { holdsTexts } from '../../../log/values/value.ts';
import {
  type Further,
  type IdentifierPredicate,
  pathColumn,
  type RowBlock,
  type RowWindow,
  type ScanEstimate,
  type ScanRequest,
  type SettledCells,
} from '../../access-paths.ts';
import { memoryOf } from '../../../log/values/column-memory.ts';
import type { Vector } from '../../../log/values/columns.ts';
import { BlockColumns, type ChosenRows } from './block-columns.ts';
import type { TableLayer } from '../tables/lineage-table.ts';
import { CHUNK_ROWS } from '../indexes/segment-indexes.ts';
import type { StoredBlock } from '../../stored-block.ts';
import type { TextIndex } from '../indexes/text/text-index.ts';
import { inheritedCounts } from '../tables/inherited-counts.ts';
import type { ScanSource } from './scan-source.ts';
import type { OrganisationCodes } from '../cells/path-codes.ts';
import type { ClosingOrders } from '../tables/closing-order.ts';
import { HIDDEN, type Inherited } from '../tables/branch-overlay.ts';
import { NO_ROW, type Segment } from '../segments/segment.ts';
import { SEGMENT_ROWS } from '../segments/segment-column.ts';
import type { Table } from '../tables/table.ts';
import {
  filterOf,
  isCurrent,
  isVisible,
  type SegmentFilter,
  selectRows,
  type VersionVisibility,
  visibilityOf,
} from './version-visibility.ts';
import { matchingPaths, ZonePruner, ZONE_ROWS } from '../tables/zone-maps.ts';

const BLOCK_ROWS = 8192;
const BLOCK_ROWS_MAX = 16_384;
/** Segments that are summarised, or have their closings ordered, before others get a turn: of long texts one takes milliseconds. */
const SUMMARIES_A_TURN = 1;
/** Below this share of a stretch, rows are gathered instead of being pointed at when system columns must be made. */
const SPARSE = 1 / 16;

/** So few rows are gathered wherever they lie: columns in segment row numbers would be made for rows that were not requested. */
const FEW = 512;

/** Columns that are made for each block: in segment row numbers they cost the stretch, gathered they cost the rows. */
const madeColumns: ReadonlySet<string> = new Set([
  'system_from',
  'system_to',
  'valid_from',
  'valid_to',
  'id',
  'tenant_id',
  'namespace_path',
]);

/** Texts that no segment stores as a column of its own: no index says them. */
const madeTexts: ReadonlySet<string> = new Set(['_pk', 'tenant_id', 'namespace_path']);

/** Positions of a layer lie below those of the next, so that layer after layer keeps the order of system_from. */
export function scanRows(source: ScanSource, request: ScanRequest): Generator<RowBlock, void> {
  const { layers } = source;
  return layers.length === 1 ? scanLayer(source, layers[0]!, request) : scanLayers(source, request);
}

function* scanLayers(source: ScanSource, request: ScanRequest): Generator<RowBlock, void> {
  for (const layer of source.layers) yield* scanLayer(source, layer, request);
}

/** A look-up of keys has a function of its own: what a scan of segments sets up would take half of its time. */
function scanLayer(source: ScanSource, layer: TableLayer, request: ScanRequest): Generator<RowBlock, void> {
  return request.keys ? keyBlocks(source, layer, request) : scanSegments(source, layer, request);
}

/** One scan of one layer: the request, and what was made of it once. */
interface LayerScan {
  readonly request: ScanRequest;
  readonly columns: BlockColumns;
  /** 1 by code of each organisation path that may be read; null: all may. */
  readonly allowed: Uint8Array | null;
  readonly blockRows: number;
}

function* scanSegments(source: ScanSource, layer: TableLayer, request: ScanRequest): Generator<RowBlock, void> {
  const { timeline, scopes } = source;
  const { table, inherited } = layer;
  const reader = readerOf(layer, source, request);
  const { visibility } = reader;
  if (request.indexed && request.builtOnly !== 'look') table.noteSearched(request.indexed);
  const columns = new BlockColumns(source, inherited, request.distinct ?? false);
  const paths = matchingPaths(request.zones, request.paths, scopes);
  const allowed = paths ? allowedCodes(paths, scopes) : null;
  const blockRows = Math.max(1, Math.min(request.blockRows ?? BLOCK_ROWS, BLOCK_ROWS_MAX));
  const zones = inherited ? request.zones?.filter(({ column }) => zoneHolds(column, table, inherited)) : request.zones;
  const pruner = zones && zones.length > 0 ? new ZonePruner(zones, timeline, table, source.idIsKey) : null;
  const scan: LayerScan = { request, columns, allowed, blockRows };
  let summaries = 0;
  let orders = reader.orders.made;
  // By number, because segments may be added while the reader works on a block; none of theirs is visible to it.
  for (let number = 0; number < table.segments.length; number++) {
    const segment = table.segments[number]!;
    if (segment.base >= visibility.bound) return;
    if (allowed && segment.paths.constant !== null && allowed[segment.paths.constant] !== 1) continue;
    if (reader.orders.made - orders >= SUMMARIES_A_TURN) {
      orders = reader.orders.made;
      yield nothing(request);
    }
    const filter = filterOf(segment, visibility);
    if (!filter) continue;
    if (request.indexed) {
      yield* searchedBlocks(source, segment, filter, reader, scan);
      continue;
    }
    if (request.candidates) {
      let rows = request.candidates.get(segment.segmentKey);
      for (; rows === null; rows = request.candidates.get(segment.segmentKey)) yield nothing(request);
      if (rows) yield* candidateBlocks(segment, rows, reader, allowed, request, columns);
      continue;
    }
    const identified = request.identifiers ? identifiedRows(source, segment, inherited, request.identifiers) : null;
    if (identified) {
      yield* candidateBlocks(segment, identified, reader, allowed, request, columns);
      continue;
    }
    const sealed = number < table.segments.length - 1;
    const zoneBits = pruner ? pruner.zonesWhere(segment, sealed) : -1;
    if (pruner && pruner.made - summaries >= SUMMARIES_A_TURN) {
      summaries = pruner.made;
      yield nothing(request);
    }
    if (zoneBits !== 0) table.ahead(number, request.columns);
    for (const whole of partsOf(segment, visibility, zoneBits)) {
      const [first, end] = pruner ? pruner.narrow(segment, whole.first, whole.end) : [whole.first, whole.end];
      if (first === end) continue;
      const part = { ...whole, first, end };
      const left = request.unsiftedRows ? yield* unsiftedBlocks(segment, part, reader, request, columns) : part;
      if (left) yield* segmentBlocks(segment, left, reader, scan);
    }
  }
}

/** Blocks of which an index each says all: whole segments, or chunks of those that have none. */
function* searchedBlocks(
  { indexes: segmentIndexes, idIsKey }: ScanSource,
  segment: Segment,
  { first: from, end: to }: SegmentFilter,
  { visibility, inherited, openAt }: LayerReader,
  { request, columns, allowed }: LayerScan,
): Generator<StoredBlock, void> {
  const isStored = (name: string): boolean => {
    if (madeTexts.has(name) || (name === 'id' && idIsKey)) return false;
    const type = segment.column(name)?.type;
    return type === undefined ? true : holdsTexts(type) && (inherited?.readsAsStored(name, type) ?? true);
  };
  const stored = request.indexed!.filter(isStored);
  const covered = stored.map((name) =>
    request.builtOnly === 'look' ? segmentIndexes.indexedRows(segment, name) : segmentIndexes.coveredRows(segment, name),
  );
  const [one = SEGMENT_ROWS] = covered;
  const prefix = covered.every((rows) => rows === one) ? one : 0;
  for (let base = from < prefix ? 0 : from - (from % CHUNK_ROWS), step; base < to; base += step) {
    const whole = base < prefix;
    step = whole ? prefix - base : CHUNK_ROWS;
    if (!whole && !(request.builtOnly !== undefined && segment.sealed)) {
      for (const name of stored)
        for (const _ of segmentIndexes.makeChunk(segment, name, base / CHUNK_ROWS)) yield nothing(request);
    }
    const filter = filterOf(segment, visibility);
    if (!filter) return;
    const [first, end] = [Math.max(base, filter.first), Math.min(base + step, filter.end)];
    if (first >= end) continue;
    const selected = selectRows(segment, filter, visibility, allowed, first, end, null);
    const rows = inherited ? inherited.keep(segment, selected, first, end, openAt) : selected;
    const count = rows ? rows.length : end - first;
    if (count === 0) continue;
    const chosen = { segment, rows, first: rows ? rows[0]! : first, count };
    const index = (name: string): TextIndex | null => {
      if (!stored.includes(name)) return null;
      return whole ? segmentIndexes.whole(segment, name) : segmentIndexes.chunk(segment, name, base / CHUNK_ROWS);
    };
    const rowBlock = block(chosen, request, columns, count, count, inherited);
    const indexes = { base, rows: Math.min(base + step, segment.length) - base, index };
    const isLate = request.builtOnly !== undefined && !whole && segment.sealed;
    const isComing = isLate && stored.some((name) => !segmentIndexes.hasChunk(segment, name, base / CHUNK_ROWS));
    yield { ...rowBlock, indexes: isComing ? { ...indexes, isComing } : indexes };
  }
}

/** Rows that may hold one of the identifiers, ascending; null where some column has no index by now. */
function identifiedRows(
  { indexes, idIsKey }: ScanSource,
  segment: Segment,
  inherited: Inherited | null,
  wanted: readonly IdentifierPredicate[],
): Int32Array | null {
  const rows = new Set<number>();
  let isWhole = true;
  for (const { column, kind, forms } of wanted) {
    if (madeTexts.has(column) || (column === 'id' && idIsKey)) return null;
    const type = segment.column(column)?.type;
    if (type !== undefined && inherited && !inherited.readsAsStored(column, type)) return null;
    // Every index that is missing is begun.
    const run = indexes.identifiers(segment, column, kind);
    if (run) run.find(forms, rows);
    else isWhole = false;
  }
  return isWhole ? Int32Array.from(rows).sort() : null;
}

/** Rows of a segment that the reader asks for, as far as they are visible. */
function* candidateBlocks(
  segment: Segment,
  candidates: Int32Array,
  { visibility, inherited, openAt }: LayerReader,
  allowed: Uint8Array | null,
  request: ScanRequest,
  columns: BlockColumns,
): Generator<RowBlock, void> {
  const blockRows = Math.max(1, Math.min(request.blockRows ?? BLOCK_ROWS, BLOCK_ROWS_MAX));
  for (let at = 0; at < candidates.length; at += blockRows) {
    const rows = new Int32Array(Math.min(blockRows, candidates.length - at));
    let count = 0;
    for (const row of candidates.subarray(at, at + rows.length)) {
      if (row >= segment.length || !isVisible(segment, row, visibility)) continue;
      if (allowed && allowed[segment.paths.codeAt(row)] !== 1) continue;
      const closing = inherited ? inherited.closingOf(segment.firstRow + row) : Infinity;
      if (closing !== HIDDEN && (openAt === null || closing >= openAt)) rows[count++] = row;
    }
    if (count === 0) continue;
    const chosen = { segment, rows: rows.subarray(0, count), first: rows[0]!, count };
    yield block(chosen, request, columns, count, SEGMENT_ROWS, inherited);
  }
}

/** The ranges of a segment that are left when only some may match; neighbouring ranges are joined. */
function* partsOf(segment: Segment, visibility: VersionVisibility, zoneBits: number): Generator<SegmentFilter, void> {
  for (let at = 0; at < 32; at++) {
    if (((zoneBits >>> at) & 1) === 0) continue;
    const from = at;
    while (at < 31 && ((zoneBits >>> (at + 1)) & 1) === 1) at++;
    // Since the part before, entries may have been applied.
    const filter = filterOf(segment, visibility);
    if (!filter) return;
    const first = Math.max(filter.first, from * ZONE_ROWS);
    const end = Math.min(filter.end, (at + 1) * ZONE_ROWS);
    if (first < end) yield { ...filter, first, end };
  }
}

/** No row: the reader may give others a turn. */
function nothing({ columns, paths }: ScanRequest): RowBlock {
  return {
    columns: columns.map(() => ({ kind: 'null' })),
    selection: null,
    first: 0,
    count: 0,
    scanned: 0,
    path: paths?.[0] ?? 0,
  };
}

/** The visibility rules of one layer of a scan. */
export interface LayerReader {
  readonly visibility: VersionVisibility;
  readonly inherited: Inherited | null;
  /** On an inherited layer: versions that a branch closed below this position are superseded; null: they show too. */
  readonly openAt: number | null;
  readonly orders: ClosingOrders;
  /** A read of what is believed now is about to have bits of open versions again: it makes no order. */
  readonly ordering: boolean;
}

export function readerOf(
  { table, inherited }: TableLayer,
  { basis, timeline }: ScanSource,
  request: Pick<ScanRequest, 'time' | 'after'>,
): LayerReader {
  const orders = table.closingOrders;
  if (!inherited) {
    const visibility = visibilityOf(request, basis, timeline);
    return { visibility, inherited, openAt: null, orders, ordering: visibility.bound < basis };
  }
  const { bound, openOnly } = visibilityOf(request, basis, timeline);
  // The source as of the fork: that a version was closed later has not happened here.
  const visibility = visibilityOf(request, Math.min(basis, inherited.end), timeline);
  return { visibility, inherited, openAt: openOnly ? bound : null, orders, ordering: true };
}

/** A segment's extremes are of what it stores: they say nothing where the branch reads a column in another type. */
function zoneHolds(column: string, table: Table, inherited: Inherited): boolean {
  if (column === 'system_from' || column === 'valid_from' || column === 'valid_to') return true;
  // Rows may have ended on the branch.
  if (column === 'system_to') return false;
  return inherited.readsAsStored(column, table.columnTypes().get(column)?.type);
}

export function estimateRows(source: ScanSource, request: ScanRequest): ScanEstimate {
  const { layers, timeline, scopes, basis } = source;
  const access = request.keys
    ? 'primary key'
    : request.time.system === 'all'
      ? 'all versions'
      : isCurrent(request, visibilityOf(request, basis, timeline))
        ? 'live'
        : 'as of';
  if (request.keys) {
    let rows = 0;
    for (const layer of layers) {
      // Until its keys are loaded, the scan does not wait for them to learn more than was requested.
      if (layer.table.isEntering) rows += request.keys.length;
      else rows += keyRows(layer.table, request, readerOf(layer, source, request), scopes).length;
    }
    return { access, rows, segments: rows === 0 ? 0 : 1 };
  }
  const paths = matchingPaths(request.zones, request.paths, scopes);
  const allowed = paths ? new Set(paths) : null;
  let rows = 0;
  for (const { table, inherited } of layers) {
    const counts = inherited ? inheritedCounts(table, inherited) : table.counts;
    for (const [code, { versions, live }] of counts) {
      if (!allowed || allowed.has(code)) rows += access === 'live' ? live : versions;
    }
  }
  // Other tenants' segments must not show: at most as many as the visible rows alone would fill, and never fewer than one.
  const segments = rows === 0 ? 0 : Math.ceil(rows / 65_536);
  return { access, rows, segments };
}

/** Blocks for readers that select visible versions themselves. Returns the filter that is left to be read in the common way. */
function* unsiftedBlocks(
  segment: Segment,
  filter: SegmentFilter,
  reader: LayerReader,
  request: ScanRequest,
  columns: BlockColumns,
): Generator<RowBlock, SegmentFilter | null> {
  const { visibility, inherited } = reader;
  if (request.columns.some((name) => madeColumns.has(name))) return filter;
  const partRows = Math.min(request.unsiftedRows!, SEGMENT_ROWS);
  for (let first = filter.first; first < filter.end; first += partRows) {
    // Between two blocks entries may have been applied.
    const now = filterOf(segment, visibility);
    if (!now) return null;
    const count = Math.min(filter.end - first, partRows);
    const rest = { ...now, first, end: filter.end };
    if (segment.paths.constant === null || inherited?.touches(segment) || now.validFrom || now.validTo) return rest;
    const vectors = columns.vectors(request.columns, { segment, rows: null, first, count }, false);
    if (!inOneMemory(vectors, request.columns)) return rest;
    const { live, closings, paths } = segment;
    const closing = now.closing !== null && closings ? { closings, closing: now.closing } : { closings: null, closing: 0 };
    const scanned = now.live ? countLive(live!, first, first + count) : count;
    if (scanned === 0) continue;
    const path = paths.constant!;
    const few = openThen(segment, now, reader, first, first + count);
    if (few) {
      // As much is scanned as the whole stretch has, whether or not there is an order.
      const rows = { columns: vectors, selection: few, first: few[0] ?? first, count: few.length, scanned, path };
      yield withFurther(rows, { segment, rows: few, first: rows.first, count: few.length }, request, columns, inherited);
      continue;
    }
    const sift = { live: now.live ? live : null, ...closing, visible: null };
    const whole = { columns: vectors, selection: null, first, count, scanned, path, sift };
    yield withFurther(whole, { segment, rows: null, first, count }, request, columns, inherited);
  }
  return null;
}

/** Numbers and codes that kernels can read in place; the path code that every row has is no column of the reader. */
function inOneMemory(vectors: readonly Vector[], names: readonly string[]): boolean {
  let memory: WebAssembly.Memory | undefined;
  for (const [at, vector] of vectors.entries()) {
    if (vector.kind === 'null' || names[at] === pathColumn) continue;
    if (vector.kind !== 'i32' && vector.kind !== 'f64' && vector.kind !== 'i64' && vector.kind !== 'dict') return false;
    const own = memoryOf(vector.values);
    if (own === undefined || (memory !== undefined && own !== memory)) return false;
    memory = own;
  }
  return memory !== undefined;
}

function countLive(live: Int32Array, first: number, end: number): number {
  let count = 0;
  for (let word = first >>> 5; word << 5 < end; word++) {
    let bits = live[word]! & (word << 5 < first ? -1 << (first & 31) : -1);
    if (end - (word << 5) < 32) bits &= (1 << (end & 31)) - 1;
    bits -= (bits >>> 1) & 0x5555_5555;
    bits = (bits & 0x3333_3333) + ((bits >>> 2) & 0x3333_3333);
    count += Math.imul((bits + (bits >>> 4)) & 0x0f0f_0f0f, 0x0101_0101) >>> 24;
  }
  return count;
}

function* segmentBlocks(
  segment: Segment,
  filter: SegmentFilter,
  reader: LayerReader,
  { request, columns, allowed, blockRows }: LayerScan,
): Generator<RowBlock, void> {
  const { visibility, inherited, openAt } = reader;
  // Few open rows: one look at the bitmap for the whole segment, and one block.
  const rangeRows = filter.live && segment.liveCount <= blockRows ? filter.end - filter.first : blockRows;
  const { removals } = segment;
  const few = openThen(segment, filter, reader, filter.first, filter.end);
  let used = 0;
  for (let first = filter.first; first < filter.end; first += rangeRows) {
    const end = Math.min(filter.end, first + rangeRows);
    // Between two blocks entries may have been applied. Rows that they closed were closed after the bound, which the bitmap can't
    // tell, and rows that they removed are gone.
    const stale = segment.removals !== removals || (filter.live !== null && segment.closedMost >= visibility.bound);
    const current = stale ? filterOf(segment, visibility) : filter;
    if (!current) return;
    const from = used;
    if (few) while (used < few.length && few[used]! < end) used++;
    const open = few && !stale ? few.subarray(from, used) : null;
    const selected = selectRows(segment, current, visibility, allowed, first, end, open);
    const rows = inherited ? inherited.keep(segment, selected, first, end, openAt) : selected;
    const count = rows ? rows.length : end - first;
    if (count === 0) continue;
    // Where paths mix, what lies between the rows of these is others' business.
    const mixed = allowed !== null && segment.paths.constant === null;
    const scanned = (current.live || mixed) && rows ? count : end - first;
    const chosen = { segment, rows, first: rows ? rows[0]! : first, count };
    yield block(chosen, request, columns, scanned, end - first, inherited);
  }
}

/** Rows of first .. end-1 that were open at the bound, where an order of closings has them at hand. */
function openThen(
  segment: Segment,
  { closing }: SegmentFilter,
  { visibility, orders, ordering }: LayerReader,
  first: number,
  end: number,
): Int32Array | null {
  if (!visibility.openOnly || closing === null || !segment.sealed) return null;
  return orders.visible(segment, closing, first, end, ordering);
}

function* keyBlocks(source: ScanSource, layer: TableLayer, request: ScanRequest): Generator<RowBlock, void> {
  const { table, inherited } = layer;
  const reader = readerOf(layer, source, request);
  if (request.indexed && request.builtOnly !== 'look') table.noteSearched(request.indexed);
  const columns = new BlockColumns(source, inherited, false);
  while (table.enterSome()) yield nothing(request);
  const keyedRows = keyRows(table, request, reader, source.scopes);
  const blockRows = Math.max(1, Math.min(request.blockRows ?? BLOCK_ROWS, BLOCK_ROWS_MAX));
  for (let at = 0; at < keyedRows.length; ) {
    const segment = table.segmentOf(keyedRows[at]!);
    let end = at + 1;
    while (end < keyedRows.length && end - at < blockRows && keyedRows[end]! >>> 16 === keyedRows[at]! >>> 16) end++;
    // Between two blocks a row may have been removed for good.
    const rows = new Int32Array(end - at);
    let count = 0;
    for (; at < end; at++) if (!segment.isRemoved(keyedRows[at]! & 0xffff)) rows[count++] = keyedRows[at]! & 0xffff;
    if (count === 0) continue;
    // Rows that follow each other, as one alone does, are looked at where they lie.
    const first = rows[0]!;
    const dense = rows[count - 1]! - first === count - 1;
    const chosen = dense ? null : count === rows.length ? rows : rows.slice(0, count);
    yield block({ segment, rows: chosen, first, count }, request, columns, count, 65_536, reader.inherited);
  }
}

/** Row numbers of visible versions of the keys, ascending. */
function keyRows(table: Table, request: ScanRequest, reader: LayerReader, scopes: OrganisationCodes): number[] {
  const { visibility, inherited, openAt } = reader;
  const rows: number[] = [];
  const keys = request.keys!.length === 1 ? request.keys! : new Set(request.keys);
  const paths = request.paths ?? Array.from({ length: scopes.size }, (_, code) => code);
  for (const key of keys) {
    for (const path of paths) {
      const newest = table.counts.has(path) ? table.newestOf(path, key) : NO_ROW;
      if (newest === NO_ROW) continue;
      // A key's versions are closed by younger ones only: with none younger than the bound, the open chain is the answer.
      const openOnly = visibility.openOnly && table.positionOf(newest) < visibility.bound && table.lastGone < visibility.bound;
      for (let row = newest; row !== NO_ROW; row = openOnly ? table.nextOpen(row) : table.previousOf(row)) {
        if (!isVisible(table.segmentOf(row), row & 0xffff, visibility)) continue;
        const closing = inherited ? inherited.closingOf(row) : Infinity;
        if (closing !== HIDDEN && (openAt === null || closing >= openAt)) rows.push(row);
      }
    }
  }
  return rows.length > 1 ? rows.sort((a, b) => a - b) : rows;
}

function block(
  chosen: ChosenRows,
  request: ScanRequest,
  columns: BlockColumns,
  scanned: number,
  rangeRows: number,
  inherited: Inherited | null,
): RowBlock {
  const { segment, rows, first, count } = chosen;
  const path = segment.paths.constant ?? pathOfAll(segment, rows, first, count);
  const sparse = rows === null ? count <= FEW : count < rangeRows * SPARSE;
  const compact = sparse && request.columns.some((name) => madeColumns.has(name));
  const vectors = columns.vectors(request.columns, chosen, compact);
  const rowBlock: RowBlock = compact
    ? { columns: vectors, selection: null, first: 0, count, scanned, path }
    : { columns: vectors, selection: rows, first, count, scanned, path };
  return withFurther(withAddresses(rowBlock, chosen, request), chosen, request, columns, inherited);
}

function withAddresses(
  rowBlock: RowBlock,
  { segment, rows, first }: ChosenRows,
  { placed: asked, indexed }: ScanRequest,
): RowBlock {
  if (!asked && !indexed) return rowBlock;
  // A block that was gathered has numbers of its own.
  const gathered = rowBlock.first !== first || rowBlock.selection !== rows;
  return { ...rowBlock, placed: { segmentKey: segment.segmentKey, rows: gathered ? { selection: rows, first } : null } };
}

/** Adds access to further columns, for readers that may want them. */
function withFurther(
  rowBlock: RowBlock,
  chosen: ChosenRows,
  request: ScanRequest,
  columns: BlockColumns,
  inherited: Inherited | null,
): RowBlock {
  if (!request.further) return rowBlock;
  return { ...rowBlock, further: new FurtherColumns(rowBlock, chosen, columns, inherited) };
}

class FurtherColumns implements Further {
  readonly cells?: SettledCells;
  readonly #chosen: ChosenRows;
  readonly #columns: BlockColumns;

  constructor(rowBlock: RowBlock, chosen: ChosenRows, columns: BlockColumns, inherited: Inherited | null) {
    this.#chosen = chosen;
    this.#columns = columns;
    const { segment, rows, first } = chosen;
    // A branch that shares a part of a segment reads its cells up to the fork.
    if (inherited && segment.rowAtOrAfter(inherited.end) !== segment.length) return;
    // A block that was gathered has numbers of its own.
    const gathered = rowBlock.first !== first || rowBlock.selection !== rows;
    this.cells = {
      identity: segment.extent,
      length: segment.length,
      rows: gathered ? { selection: rows, first } : null,
      columns: (names) => columns.vectors(names, { segment, rows: null, first: 0, count: segment.length }, false),
    };
  }

  rows(names: readonly string[]): RowWindow {
    const { rows, first, count } = this.#chosen;
    const compact = count <= FEW && names.some((name) => madeColumns.has(name));
    const columns = this.#columns.vectors(names, this.#chosen, compact);
    return compact ? { columns, selection: null, first: 0, count } : { columns, selection: rows, first, count };
  }
}

function pathOfAll(segment: Segment, rows: Int32Array | null, first: number, count: number): number {
  const path = segment.paths.codeAt(rows ? rows[0]! : first);
  for (let k = 1; k < count; k++) if (segment.paths.codeAt(rows ? rows[k]! : first + k) !== path) return -1;
  return path;
}

export function allowedCodes(paths: readonly number[], scopes: OrganisationCodes): Uint8Array {
  const allowed = new Uint8Array(scopes.size);
  for (const code of paths) allowed[code] = 1;
  return allowed;
}
