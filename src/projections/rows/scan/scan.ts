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
/** Below this share of a block, rows are gathered instead of being pointed at when system columns must be made. */
const SPARSE_BLOCK_SHARE = 1 / 16;

/** So few rows are gathered wherever they lie: columns in segment row numbers would be made for rows that were not requested. */
const FEW_BLOCK_ROWS = 512;

/** Columns that are made for each block: in segment row numbers they cost the whole block, gathered they cost the rows. */
const computedColumns: ReadonlySet<string> = new Set([
  'system_from',
  'system_to',
  'valid_from',
  'valid_to',
  'id',
  'tenant_id',
  'namespace_path',
]);

/** Texts that no segment stores as a column of its own: no index says them. */
const computedTexts: ReadonlySet<string> = new Set(['_pk', 'tenant_id', 'namespace_path']);

/** Positions of a layer lie below those of the next, so that layer after layer keeps the order of system_from. */
export function scanRows(source: ScanSource, request: ScanRequest): Generator<RowBlock, void> {
  const { layers } = source;
  return layers.length === 1 ? scanLayer(source, layers[0]!, request) : scanLayers(source, request);
}

function* scanLayers(scanSource: ScanSource, scanRequest: ScanRequest): Generator<RowBlock, void> {
  for (const tableLayer of scanSource.layers) yield* scanLayer(scanSource, tableLayer, scanRequest);
}

/** A look-up of keys has a function of its own: what a scan of segments sets up would take half of its time. */
function scanLayer(scanSource: ScanSource, tableLayer: TableLayer, scanRequest: ScanRequest): Generator<RowBlock, void> {
  return scanRequest.keys ? keyBlocks(scanSource, tableLayer, scanRequest) : scanSegments(scanSource, tableLayer, scanRequest);
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
  const zones = inherited ? request.zones?.filter(({ column }) => isZoneInherited(column, table, inherited)) : request.zones;
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
      yield emptyBlock(request);
    }
    const filter = filterOf(segment, visibility);
    if (!filter) continue;
    if (request.indexed) {
      yield* searchedBlocks(source, segment, filter, reader, scan);
      continue;
    }
    if (request.candidates) {
      let rows = request.candidates.get(segment.segmentKey);
      for (; rows === null; rows = request.candidates.get(segment.segmentKey)) yield emptyBlock(request);
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
      yield emptyBlock(request);
    }
    if (zoneBits !== 0) table.ahead(number, request.columns);
    for (const whole of stretchFiltersOf(segment, visibility, zoneBits)) {
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
  { first: firstSearchedRow, end: searchedRowsEnd }: SegmentFilter,
  { visibility, inherited, openAt }: LayerReader,
  { request: scanRequest, columns: blockColumns, allowed: allowedPaths }: LayerScan,
): Generator<StoredBlock, void> {
  const isStoredText = (name: string): boolean => {
    if (computedTexts.has(name) || (name === 'id' && idIsKey)) return false;
    const type = segment.column(name)?.type;
    return type === undefined ? true : holdsTexts(type) && (inherited?.readsAsStored(name, type) ?? true);
  };
  const storedColumns = scanRequest.indexed!.filter(isStoredText);
  const coveredRows = storedColumns.map((name) =>
    scanRequest.builtOnly === 'look' ? segmentIndexes.indexedRows(segment, name) : segmentIndexes.coveredRows(segment, name),
  );
  const [firstCovered = SEGMENT_ROWS] = coveredRows;
  const coveredPrefix = coveredRows.every((rows) => rows === firstCovered) ? firstCovered : 0;
  for (
    let indexedBase = firstSearchedRow < coveredPrefix ? 0 : firstSearchedRow - (firstSearchedRow % CHUNK_ROWS), indexedStep;
    indexedBase < searchedRowsEnd;
    indexedBase += indexedStep
  ) {
    const isWholeIndex = indexedBase < coveredPrefix;
    indexedStep = isWholeIndex ? coveredPrefix - indexedBase : CHUNK_ROWS;
    if (!isWholeIndex && !(scanRequest.builtOnly !== undefined && segment.sealed)) {
      for (const name of storedColumns)
        for (const _ of segmentIndexes.makeChunk(segment, name, indexedBase / CHUNK_ROWS)) yield emptyBlock(scanRequest);
    }
    const segmentFilter = filterOf(segment, visibility);
    if (!segmentFilter) return;
    const [first, end] = [Math.max(indexedBase, segmentFilter.first), Math.min(indexedBase + indexedStep, segmentFilter.end)];
    if (first >= end) continue;
    const selectedRows = selectRows(segment, segmentFilter, visibility, allowedPaths, first, end, null);
    const rows = inherited ? inherited.keep(segment, selectedRows, first, end, openAt) : selectedRows;
    const count = rows ? rows.length : end - first;
    if (count === 0) continue;
    const chosenRows = { segment, rows, first: rows ? rows[0]! : first, count };
    const textIndexOf = (name: string): TextIndex | null => {
      if (!storedColumns.includes(name)) return null;
      return isWholeIndex ? segmentIndexes.whole(segment, name) : segmentIndexes.chunk(segment, name, indexedBase / CHUNK_ROWS);
    };
    const rowBlock = makeRowBlock(chosenRows, scanRequest, blockColumns, count, count, inherited);
    const indexes = {
      base: indexedBase,
      rows: Math.min(indexedBase + indexedStep, segment.length) - indexedBase,
      index: textIndexOf,
    };
    const isIndexLate = scanRequest.builtOnly !== undefined && !isWholeIndex && segment.sealed;
    const isComing =
      isIndexLate && storedColumns.some((name) => !segmentIndexes.hasChunk(segment, name, indexedBase / CHUNK_ROWS));
    yield { ...rowBlock, indexes: isComing ? { ...indexes, isComing } : indexes };
  }
}

/** Rows that may hold one of the identifiers, ascending; null where some column has no index by now. */
function identifiedRows(
  { indexes, idIsKey }: ScanSource,
  segment: Segment,
  inherited: Inherited | null,
  wantedIdentifiers: readonly IdentifierPredicate[],
): Int32Array | null {
  const identifierRows = new Set<number>();
  let areAllIndexed = true;
  for (const { column, kind, forms } of wantedIdentifiers) {
    if (computedTexts.has(column) || (column === 'id' && idIsKey)) return null;
    const type = segment.column(column)?.type;
    if (type !== undefined && inherited && !inherited.readsAsStored(column, type)) return null;
    // Every index that is missing is begun.
    const identifierRun = indexes.identifiers(segment, column, kind);
    if (identifierRun) identifierRun.find(forms, identifierRows);
    else areAllIndexed = false;
  }
  return areAllIndexed ? Int32Array.from(identifierRows).sort() : null;
}

/** Rows of a segment that the reader asks for, as far as they are visible. */
function* candidateBlocks(
  segment: Segment,
  candidates: Int32Array,
  { visibility, inherited, openAt }: LayerReader,
  allowedPaths: Uint8Array | null,
  scanRequest: ScanRequest,
  blockColumns: BlockColumns,
): Generator<RowBlock, void> {
  const blockRows = Math.max(1, Math.min(scanRequest.blockRows ?? BLOCK_ROWS, BLOCK_ROWS_MAX));
  for (let candidateOffset = 0; candidateOffset < candidates.length; candidateOffset += blockRows) {
    const candidateRows = new Int32Array(Math.min(blockRows, candidates.length - candidateOffset));
    let visibleCandidates = 0;
    for (const row of candidates.subarray(candidateOffset, candidateOffset + candidateRows.length)) {
      if (row >= segment.length || !isVisible(segment, row, visibility)) continue;
      if (allowedPaths && allowedPaths[segment.paths.codeAt(row)] !== 1) continue;
      const inheritedClosing = inherited ? inherited.closingOf(segment.firstRow + row) : Infinity;
      if (inheritedClosing !== HIDDEN && (openAt === null || inheritedClosing >= openAt))
        candidateRows[visibleCandidates++] = row;
    }
    if (visibleCandidates === 0) continue;
    const chosenRows = {
      segment,
      rows: candidateRows.subarray(0, visibleCandidates),
      first: candidateRows[0]!,
      count: visibleCandidates,
    };
    yield makeRowBlock(chosenRows, scanRequest, blockColumns, visibleCandidates, SEGMENT_ROWS, inherited);
  }
}

/** The ranges of a segment that are left when only some may match; neighbouring ranges are joined. */
function* stretchFiltersOf(segment: Segment, visibility: VersionVisibility, zoneBits: number): Generator<SegmentFilter, void> {
  for (let stretchBit = 0; stretchBit < 32; stretchBit++) {
    if (((zoneBits >>> stretchBit) & 1) === 0) continue;
    const firstStretch = stretchBit;
    while (stretchBit < 31 && ((zoneBits >>> (stretchBit + 1)) & 1) === 1) stretchBit++;
    // Since the part before, entries may have been applied.
    const segmentFilter = filterOf(segment, visibility);
    if (!segmentFilter) return;
    const first = Math.max(segmentFilter.first, firstStretch * ZONE_ROWS);
    const end = Math.min(segmentFilter.end, (stretchBit + 1) * ZONE_ROWS);
    if (first < end) yield { ...segmentFilter, first, end };
  }
}

/** No row: the reader may give others a turn. */
function emptyBlock({ columns, paths }: ScanRequest): RowBlock {
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
  const closingOrders = table.closingOrders;
  if (!inherited) {
    const versionVisibility = visibilityOf(request, basis, timeline);
    return {
      visibility: versionVisibility,
      inherited,
      openAt: null,
      orders: closingOrders,
      ordering: versionVisibility.bound < basis,
    };
  }
  const { bound, openOnly } = visibilityOf(request, basis, timeline);
  // The source as of the fork: that a version was closed later has not happened here.
  const visibility = visibilityOf(request, Math.min(basis, inherited.end), timeline);
  return { visibility, inherited, openAt: openOnly ? bound : null, orders: closingOrders, ordering: true };
}

/** A segment's extremes are of what it stores: they say nothing where the branch reads a column in another type. */
function isZoneInherited(zoneColumn: string, table: Table, inherited: Inherited): boolean {
  if (zoneColumn === 'system_from' || zoneColumn === 'valid_from' || zoneColumn === 'valid_to') return true;
  // Rows may have ended on the branch.
  if (zoneColumn === 'system_to') return false;
  return inherited.readsAsStored(zoneColumn, table.columnTypes().get(zoneColumn)?.type);
}

export function estimateRows(scanSource: ScanSource, scanRequest: ScanRequest): ScanEstimate {
  const { layers, timeline, scopes, basis } = scanSource;
  const scanAccess = scanRequest.keys
    ? 'primary key'
    : scanRequest.time.system === 'all'
      ? 'all versions'
      : isCurrent(scanRequest, visibilityOf(scanRequest, basis, timeline))
        ? 'live'
        : 'as of';
  if (scanRequest.keys) {
    let estimatedRows = 0;
    for (const tableLayer of layers) {
      // Until its keys are loaded, the scan does not wait for them to learn more than was requested.
      if (tableLayer.table.isEntering) estimatedRows += scanRequest.keys.length;
      else estimatedRows += keyRows(tableLayer.table, scanRequest, readerOf(tableLayer, scanSource, scanRequest), scopes).length;
    }
    return { access: scanAccess, rows: estimatedRows, segments: estimatedRows === 0 ? 0 : 1 };
  }
  const paths = matchingPaths(scanRequest.zones, scanRequest.paths, scopes);
  const allowedPaths = paths ? new Set(paths) : null;
  let rows = 0;
  for (const { table, inherited } of layers) {
    const pathCounts = inherited ? inheritedCounts(table, inherited) : table.counts;
    for (const [code, { versions, live }] of pathCounts) {
      if (!allowedPaths || allowedPaths.has(code)) rows += scanAccess === 'live' ? live : versions;
    }
  }
  // Other tenants' segments must not show: at most as many as the visible rows alone would fill, and never fewer than one.
  const segments = rows === 0 ? 0 : Math.ceil(rows / 65_536);
  return { access: scanAccess, rows, segments };
}

/** Blocks for readers that select visible versions themselves. Returns the filter that is left to be read in the common way. */
function* unsiftedBlocks(
  segment: Segment,
  segmentFilter: SegmentFilter,
  layerReader: LayerReader,
  scanRequest: ScanRequest,
  blockColumns: BlockColumns,
): Generator<RowBlock, SegmentFilter | null> {
  const { visibility, inherited } = layerReader;
  if (scanRequest.columns.some((name) => computedColumns.has(name))) return segmentFilter;
  const partRows = Math.min(scanRequest.unsiftedRows!, SEGMENT_ROWS);
  for (let first = segmentFilter.first; first < segmentFilter.end; first += partRows) {
    // Between two blocks entries may have been applied.
    const filterNow = filterOf(segment, visibility);
    if (!filterNow) return null;
    const count = Math.min(segmentFilter.end - first, partRows);
    const siftedRest = { ...filterNow, first, end: segmentFilter.end };
    if (segment.paths.constant === null || inherited?.touches(segment) || filterNow.validFrom || filterNow.validTo)
      return siftedRest;
    const unsiftedVectors = blockColumns.vectors(scanRequest.columns, { segment, rows: null, first, count }, false);
    if (!areInOneMemory(unsiftedVectors, scanRequest.columns)) return siftedRest;
    const { live, closings, paths } = segment;
    const closing =
      filterNow.closing !== null && closings ? { closings, closing: filterNow.closing } : { closings: null, closing: 0 };
    const scanned = filterNow.live ? countLive(live!, first, first + count) : count;
    if (scanned === 0) continue;
    const path = paths.constant!;
    const fewOpenRows = openRowsThen(segment, filterNow, layerReader, first, first + count);
    if (fewOpenRows) {
      // As much is scanned as the whole range has, whether or not there is an order.
      const fewRowsBlock = {
        columns: unsiftedVectors,
        selection: fewOpenRows,
        first: fewOpenRows[0] ?? first,
        count: fewOpenRows.length,
        scanned,
        path,
      };
      yield withFurther(
        fewRowsBlock,
        { segment, rows: fewOpenRows, first: fewRowsBlock.first, count: fewOpenRows.length },
        scanRequest,
        blockColumns,
        inherited,
      );
      continue;
    }
    const sift = { live: filterNow.live ? live : null, ...closing, visible: null };
    const unsiftedBlock = { columns: unsiftedVectors, selection: null, first, count, scanned, path, sift };
    yield withFurther(unsiftedBlock, { segment, rows: null, first, count }, scanRequest, blockColumns, inherited);
  }
  return null;
}

/** Numbers and codes that kernels can read in place; the path code that every row has is no column of the reader. */
function areInOneMemory(vectors: readonly Vector[], names: readonly string[]): boolean {
  let vectorMemory: WebAssembly.Memory | undefined;
  for (const [vectorIndex, vector] of vectors.entries()) {
    if (vector.kind === 'null' || names[vectorIndex] === pathColumn) continue;
    if (vector.kind !== 'i32' && vector.kind !== 'f64' && vector.kind !== 'i64' && vector.kind !== 'dict') return false;
    const ownMemory = memoryOf(vector.values);
    if (ownMemory === undefined || (vectorMemory !== undefined && ownMemory !== vectorMemory)) return false;
    vectorMemory = ownMemory;
  }
  return vectorMemory !== undefined;
}

function countLive(live: Int32Array, first: number, end: number): number {
  let liveCount = 0;
  for (let liveWord = first >>> 5; liveWord << 5 < end; liveWord++) {
    let liveBits = live[liveWord]! & (liveWord << 5 < first ? -1 << (first & 31) : -1);
    if (end - (liveWord << 5) < 32) liveBits &= (1 << (end & 31)) - 1;
    liveBits -= (liveBits >>> 1) & 0x5555_5555;
    liveBits = (liveBits & 0x3333_3333) + ((liveBits >>> 2) & 0x3333_3333);
    liveCount += Math.imul((liveBits + (liveBits >>> 4)) & 0x0f0f_0f0f, 0x0101_0101) >>> 24;
  }
  return liveCount;
}

function* segmentBlocks(
  segment: Segment,
  segmentFilter: SegmentFilter,
  layerReader: LayerReader,
  { request: scanRequest, columns: blockColumns, allowed: allowedPaths, blockRows }: LayerScan,
): Generator<RowBlock, void> {
  const { visibility, inherited, openAt } = layerReader;
  // Few open rows: one look at the bitmap for the whole segment, and one block.
  const rangeRows = segmentFilter.live && segment.liveCount <= blockRows ? segmentFilter.end - segmentFilter.first : blockRows;
  const { removals } = segment;
  const fewOpenRows = openRowsThen(segment, segmentFilter, layerReader, segmentFilter.first, segmentFilter.end);
  let usedOpenRows = 0;
  for (let first = segmentFilter.first; first < segmentFilter.end; first += rangeRows) {
    const end = Math.min(segmentFilter.end, first + rangeRows);
    // Between two blocks entries may have been applied. Rows that they closed were closed after the bound, which the bitmap can't
    // tell, and rows that they removed are gone.
    const isFilterStale =
      segment.removals !== removals || (segmentFilter.live !== null && segment.closedMost >= visibility.bound);
    const currentFilter = isFilterStale ? filterOf(segment, visibility) : segmentFilter;
    if (!currentFilter) return;
    const openRowsFrom = usedOpenRows;
    if (fewOpenRows) while (usedOpenRows < fewOpenRows.length && fewOpenRows[usedOpenRows]! < end) usedOpenRows++;
    const openRows = fewOpenRows && !isFilterStale ? fewOpenRows.subarray(openRowsFrom, usedOpenRows) : null;
    const selectedRows = selectRows(segment, currentFilter, visibility, allowedPaths, first, end, openRows);
    const rows = inherited ? inherited.keep(segment, selectedRows, first, end, openAt) : selectedRows;
    const count = rows ? rows.length : end - first;
    if (count === 0) continue;
    // Where paths mix, what lies between the rows of these is others' business.
    const hasMixedPaths = allowedPaths !== null && segment.paths.constant === null;
    const scanned = (currentFilter.live || hasMixedPaths) && rows ? count : end - first;
    const chosenRows = { segment, rows, first: rows ? rows[0]! : first, count };
    yield makeRowBlock(chosenRows, scanRequest, blockColumns, scanned, end - first, inherited);
  }
}

/** Rows of first .. end-1 that were open at the bound, where an order of closings has them at hand. */
function openRowsThen(
  segment: Segment,
  { closing }: SegmentFilter,
  { visibility, orders, ordering: canMakeOrder }: LayerReader,
  first: number,
  end: number,
): Int32Array | null {
  if (!visibility.openOnly || closing === null || !segment.sealed) return null;
  return orders.visible(segment, closing, first, end, canMakeOrder);
}

function* keyBlocks(scanSource: ScanSource, tableLayer: TableLayer, scanRequest: ScanRequest): Generator<RowBlock, void> {
  const { table, inherited } = tableLayer;
  const layerReader = readerOf(tableLayer, scanSource, scanRequest);
  if (scanRequest.indexed && scanRequest.builtOnly !== 'look') table.noteSearched(scanRequest.indexed);
  const blockColumns = new BlockColumns(scanSource, inherited, false);
  while (table.enterSome()) yield emptyBlock(scanRequest);
  const keyedRows = keyRows(table, scanRequest, layerReader, scanSource.scopes);
  const blockRows = Math.max(1, Math.min(scanRequest.blockRows ?? BLOCK_ROWS, BLOCK_ROWS_MAX));
  for (let keyRowIndex = 0; keyRowIndex < keyedRows.length; ) {
    const segment = table.segmentOf(keyedRows[keyRowIndex]!);
    let keyRowsEnd = keyRowIndex + 1;
    while (
      keyRowsEnd < keyedRows.length &&
      keyRowsEnd - keyRowIndex < blockRows &&
      keyedRows[keyRowsEnd]! >>> 16 === keyedRows[keyRowIndex]! >>> 16
    )
      keyRowsEnd++;
    // Between two blocks a row may have been removed for good.
    const rows = new Int32Array(keyRowsEnd - keyRowIndex);
    let count = 0;
    for (; keyRowIndex < keyRowsEnd; keyRowIndex++)
      if (!segment.isRemoved(keyedRows[keyRowIndex]! & 0xffff)) rows[count++] = keyedRows[keyRowIndex]! & 0xffff;
    if (count === 0) continue;
    // Rows that follow each other, as one alone does, are looked at where they lie.
    const first = rows[0]!;
    const areRowsDense = rows[count - 1]! - first === count - 1;
    const sparseKeyRows = areRowsDense ? null : count === rows.length ? rows : rows.slice(0, count);
    yield makeRowBlock(
      { segment, rows: sparseKeyRows, first, count },
      scanRequest,
      blockColumns,
      count,
      65_536,
      layerReader.inherited,
    );
  }
}

/** Row numbers of visible versions of the keys, ascending. */
function keyRows(table: Table, scanRequest: ScanRequest, layerReader: LayerReader, scopes: OrganisationCodes): number[] {
  const { visibility, inherited, openAt } = layerReader;
  const foundKeyRows: number[] = [];
  const wantedKeys = scanRequest.keys!.length === 1 ? scanRequest.keys! : new Set(scanRequest.keys);
  const paths = scanRequest.paths ?? Array.from({ length: scopes.size }, (_, code) => code);
  for (const key of wantedKeys) {
    for (const path of paths) {
      const newestOfKey = table.counts.has(path) ? table.newestOf(path, key) : NO_ROW;
      if (newestOfKey === NO_ROW) continue;
      // A key's versions are closed by younger ones only: with none younger than the bound, the open chain is the answer.
      const openOnly =
        visibility.openOnly && table.positionOf(newestOfKey) < visibility.bound && table.lastGone < visibility.bound;
      for (let row = newestOfKey; row !== NO_ROW; row = openOnly ? table.nextOpen(row) : table.previousOf(row)) {
        if (!isVisible(table.segmentOf(row), row & 0xffff, visibility)) continue;
        const inheritedClosing = inherited ? inherited.closingOf(row) : Infinity;
        if (inheritedClosing !== HIDDEN && (openAt === null || inheritedClosing >= openAt)) foundKeyRows.push(row);
      }
    }
  }
  return foundKeyRows.length > 1 ? foundKeyRows.sort((a, b) => a - b) : foundKeyRows;
}

function makeRowBlock(
  chosenRows: ChosenRows,
  scanRequest: ScanRequest,
  blockColumns: BlockColumns,
  scanned: number,
  rangeRows: number,
  inherited: Inherited | null,
): RowBlock {
  const { segment, rows, first, count } = chosenRows;
  const pathOfBlock = segment.paths.constant ?? pathOfAllRows(segment, rows, first, count);
  const isSparse = rows === null ? count <= FEW_BLOCK_ROWS : count < rangeRows * SPARSE_BLOCK_SHARE;
  const isCompact = isSparse && scanRequest.columns.some((name) => computedColumns.has(name));
  const blockVectors = blockColumns.vectors(scanRequest.columns, chosenRows, isCompact);
  const rowBlock: RowBlock = isCompact
    ? { columns: blockVectors, selection: null, first: 0, count, scanned, path: pathOfBlock }
    : { columns: blockVectors, selection: rows, first, count, scanned, path: pathOfBlock };
  return withFurther(withAddresses(rowBlock, chosenRows, scanRequest), chosenRows, scanRequest, blockColumns, inherited);
}

function withAddresses(
  rowBlock: RowBlock,
  { segment, rows, first }: ChosenRows,
  { placed: wantsAddresses, indexed }: ScanRequest,
): RowBlock {
  if (!wantsAddresses && !indexed) return rowBlock;
  // A block that was gathered has numbers of its own.
  const isGathered = rowBlock.first !== first || rowBlock.selection !== rows;
  return { ...rowBlock, placed: { segmentKey: segment.segmentKey, rows: isGathered ? { selection: rows, first } : null } };
}

/** Adds access to further columns, for readers that may want them. */
function withFurther(
  rowBlock: RowBlock,
  chosenRows: ChosenRows,
  scanRequest: ScanRequest,
  blockColumns: BlockColumns,
  inherited: Inherited | null,
): RowBlock {
  if (!scanRequest.further) return rowBlock;
  return { ...rowBlock, further: new FurtherColumns(rowBlock, chosenRows, blockColumns, inherited) };
}

class FurtherColumns implements Further {
  readonly cells?: SettledCells;
  readonly #chosenRows: ChosenRows;
  readonly #blockColumns: BlockColumns;

  constructor(rowBlock: RowBlock, chosenRows: ChosenRows, blockColumns: BlockColumns, inherited: Inherited | null) {
    this.#chosenRows = chosenRows;
    this.#blockColumns = blockColumns;
    const { segment, rows, first } = chosenRows;
    // A branch that shares a part of a segment reads its cells up to the fork.
    if (inherited && segment.rowAtOrAfter(inherited.end) !== segment.length) return;
    // A block that was gathered has numbers of its own.
    const isGathered = rowBlock.first !== first || rowBlock.selection !== rows;
    this.cells = {
      identity: segment.extent,
      length: segment.length,
      rows: isGathered ? { selection: rows, first } : null,
      columns: (names) => blockColumns.vectors(names, { segment, rows: null, first: 0, count: segment.length }, false),
    };
  }

  rows(furtherNames: readonly string[]): RowWindow {
    const { rows, first, count } = this.#chosenRows;
    const isCompact = count <= FEW_BLOCK_ROWS && furtherNames.some((name) => computedColumns.has(name));
    const furtherVectors = this.#blockColumns.vectors(furtherNames, this.#chosenRows, isCompact);
    return isCompact
      ? { columns: furtherVectors, selection: null, first: 0, count }
      : { columns: furtherVectors, selection: rows, first, count };
  }
}

function pathOfAllRows(segment: Segment, rows: Int32Array | null, first: number, count: number): number {
  const firstPathCode = segment.paths.codeAt(rows ? rows[0]! : first);
  for (let k = 1; k < count; k++) if (segment.paths.codeAt(rows ? rows[k]! : first + k) !== firstPathCode) return -1;
  return firstPathCode;
}

export function allowedCodes(paths: readonly number[], scopes: OrganisationCodes): Uint8Array {
  const allowedPaths = new Uint8Array(scopes.size);
  for (const pathCode of paths) allowedPaths[pathCode] = 1;
  return allowedPaths;
}
