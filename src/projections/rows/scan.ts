/** From a request to blocks: by key through the index, otherwise segment by segment, skipping what can't be visible. */
import type { RowBlock, ScanEstimate, ScanRequest } from '../access-paths.ts';
import type { Timeline } from '../../log/timeline.ts';
import { BlockColumns, type ChosenRows } from './block-columns.ts';
import type { Scopes } from './scopes.ts';
import { NO_ROW, type Segment } from './segment.ts';
import type { Table } from './table.ts';
import { filterOf, isCurrent, isVisible, type SegmentFilter, selectRows, type Visibility, visibilityOf } from './visibility.ts';
import { prunes } from './zones.ts';

const BLOCK_ROWS = 8192;
const BLOCK_ROWS_MAX = 16_384;
/** Below this share of a stretch, rows are gathered instead of being pointed at when system columns must be made. */
const SPARSE = 1 / 16;

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

export interface ScanSource {
  readonly timeline: Timeline;
  readonly scopes: Scopes;
  /** Undefined when no row of the type was ever written. */
  readonly table: Table | undefined;
  /** Positions below this one are visible. */
  readonly basis: number;
}

export function* scanRows(source: ScanSource, request: ScanRequest): Generator<RowBlock, void> {
  const { table, timeline, scopes, basis } = source;
  if (!table) return;
  const visibility = visibilityOf(request, basis, timeline);
  const columns = new BlockColumns(timeline, scopes, basis, table.columnTypes().get('id')?.type ?? 'string');
  if (request.keys) {
    yield* keyBlocks(table, request, visibility, columns, scopes);
    return;
  }
  const allowed = request.paths ? allowedCodes(request.paths, scopes) : null;
  const blockRows = Math.max(1, Math.min(request.blockRows ?? BLOCK_ROWS, BLOCK_ROWS_MAX));
  // By number, because segments may be added while the reader works on a block; none of theirs is visible to it.
  for (let number = 0; number < table.segments.length; number++) {
    const segment = table.segments[number]!;
    if (segment.base >= visibility.bound) return;
    if (allowed && segment.paths.constant !== null && allowed[segment.paths.constant] !== 1) continue;
    const filter = filterOf(segment, visibility);
    if (!filter) continue;
    const sealed = number < table.segments.length - 1;
    if (sealed && request.zones && prunes(segment, request.zones, timeline)) continue;
    yield* segmentBlocks(segment, filter, visibility, allowed, request.columns, columns, blockRows);
  }
}

export function estimateRows(source: ScanSource, request: ScanRequest): ScanEstimate {
  const { table, timeline, scopes, basis } = source;
  const visibility = visibilityOf(request, basis, timeline);
  const access = request.keys
    ? 'primary key'
    : request.time.system === 'all'
      ? 'all versions'
      : isCurrent(request, visibility)
        ? 'live'
        : 'as of';
  if (!table) return { access, rows: 0, segments: 0 };
  if (request.keys) {
    const rows = keyRows(table, request, visibility, scopes).length;
    return { access, rows, segments: rows === 0 ? 0 : 1 };
  }
  const allowed = request.paths ? new Set(request.paths) : null;
  let rows = 0;
  for (const [code, counts] of table.counts) {
    if (!allowed || allowed.has(code)) rows += access === 'live' ? counts.live : counts.versions;
  }
  // Other tenants' segments must not show: at most as many as the visible rows alone would fill, and never fewer than one.
  const segments = rows === 0 ? 0 : Math.ceil(rows / 65_536);
  return { access, rows, segments };
}

function* segmentBlocks(
  segment: Segment,
  filter: SegmentFilter,
  visibility: Visibility,
  allowed: Uint8Array | null,
  names: readonly string[],
  columns: BlockColumns,
  blockRows: number,
): Generator<RowBlock, void> {
  // Few open rows: one look at the bitmap for the whole segment, and one block.
  const stretch = filter.live && segment.liveCount <= blockRows ? filter.end - filter.first : blockRows;
  const { removals } = segment;
  for (let first = filter.first; first < filter.end; first += stretch) {
    const end = Math.min(filter.end, first + stretch);
    // Between two blocks entries may have been applied. What they closed is younger than the bound, which the bitmap
    // can't tell, and what they removed is gone.
    const stale = segment.removals !== removals || (filter.live !== null && segment.closedMost >= visibility.bound);
    const current = stale ? filterOf(segment, visibility) : filter;
    if (!current) return;
    const rows = selectRows(segment, current, visibility, allowed, first, end);
    const count = rows ? rows.length : end - first;
    if (count === 0) continue;
    const scanned = current.live && rows ? count : end - first;
    yield block({ segment, rows, first: rows ? rows[0]! : first, count }, names, columns, scanned, end - first);
  }
}

function* keyBlocks(
  table: Table,
  request: ScanRequest,
  visibility: Visibility,
  columns: BlockColumns,
  scopes: Scopes,
): Generator<RowBlock, void> {
  const found = keyRows(table, request, visibility, scopes);
  const blockRows = Math.max(1, Math.min(request.blockRows ?? BLOCK_ROWS, BLOCK_ROWS_MAX));
  for (let at = 0; at < found.length; ) {
    const segment = table.segmentOf(found[at]!);
    let end = at + 1;
    while (end < found.length && end - at < blockRows && found[end]! >>> 16 === found[at]! >>> 16) end++;
    // Between two blocks a row may have been removed for good.
    const rows = new Int32Array(end - at);
    let count = 0;
    for (; at < end; at++) if (!segment.isRemoved(found[at]! & 0xffff)) rows[count++] = found[at]! & 0xffff;
    if (count === 0) continue;
    const chosen = count === rows.length ? rows : rows.slice(0, count);
    yield block({ segment, rows: chosen, first: chosen[0]!, count }, request.columns, columns, count, 65_536);
  }
}

/** Row numbers of visible versions of the keys, ascending. */
function keyRows(table: Table, request: ScanRequest, visibility: Visibility, scopes: Scopes): number[] {
  const rows: number[] = [];
  const keys = request.keys!.length === 1 ? request.keys! : new Set(request.keys);
  const paths = request.paths ?? Array.from({ length: scopes.size }, (_, code) => code);
  for (const key of keys) {
    for (const path of paths) {
      const newest = table.counts.has(path) ? table.newestOf(path, key) : NO_ROW;
      if (newest === NO_ROW) continue;
      // A key's versions are closed by younger ones only: with none younger than the bound, the open chain is the answer.
      const openOnly = visibility.openOnly && table.positionOf(newest) < visibility.bound;
      for (let row = newest; row !== NO_ROW; row = openOnly ? table.nextOpen(row) : table.previousOf(row)) {
        if (isVisible(table.segmentOf(row), row & 0xffff, visibility)) rows.push(row);
      }
    }
  }
  return rows.length > 1 ? rows.sort((a, b) => a - b) : rows;
}

function block(chosen: ChosenRows, names: readonly string[], columns: BlockColumns, scanned: number, stretch: number): RowBlock {
  const { segment, rows, first, count } = chosen;
  const path = segment.paths.constant ?? pathOfAll(segment, rows, first, count);
  const compact = rows !== null && count < stretch * SPARSE && names.some((name) => madeColumns.has(name));
  const vectors = columns.vectors(names, chosen, compact);
  if (compact) return { columns: vectors, selection: null, first: 0, count, scanned, path };
  return { columns: vectors, selection: rows, first, count, scanned, path };
}

function pathOfAll(segment: Segment, rows: Int32Array | null, first: number, count: number): number {
  const path = segment.paths.at(rows ? rows[0]! : first);
  for (let k = 1; k < count; k++) if (segment.paths.at(rows ? rows[k]! : first + k) !== path) return -1;
  return path;
}

function allowedCodes(paths: readonly number[], scopes: Scopes): Uint8Array {
  const allowed = new Uint8Array(scopes.size);
  for (const code of paths) allowed[code] = 1;
  return allowed;
}
