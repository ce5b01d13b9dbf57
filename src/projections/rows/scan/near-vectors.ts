/**
 * Rows that may be near a vector: by graphs of segments that were full at the basis, one for each organisation path, and all visible rows
 * of whatever has none: segments that grow, paths of few rows, and those of which time or the branch leave less than a tenth.
 */
import type { Near, NearRequest } from '../../access-paths.ts';
import type { TableLayer } from '../tables/lineage-table.ts';
import type { PathRows } from '../indexes/vectors/neighbour-graphs.ts';
import { allowedCodes, readerOf } from './scan.ts';
import type { ScanSource } from './scan-source.ts';
import type { Segment } from '../segments/segment.ts';
import { SEGMENT_ROWS } from '../segments/segment-column.ts';
import { filterOf, selectRows } from './version-visibility.ts';

/** Rows of a path from which on a graph of them is worth it. */
const GRAPH_ROWS = 512;
/** A graph of which less than one row in so many is visible is not asked. */
const GRAPH_VISIBLE_SHARE = 10;

interface NearPathRows {
  readonly path: number;
  /** Visible rows, ascending; null: all of the segment. */
  readonly rows: Int32Array | null;
  /** Rows of the path, visible or not. */
  readonly of: number;
  readonly isFull: boolean;
}

export async function rowsNearVector(scanSource: ScanSource, nearRequest: NearRequest): Promise<Near> {
  const { graphs } = scanSource.indexes;
  const nearCandidates = new Map<object, Int32Array>();
  const nearBySegment = new Map<Segment, Int32Array[]>();
  const pathRows: PathRows[] = [];
  for (const tableLayer of scanSource.layers) {
    // By number, because segments may be added meanwhile; none of theirs is visible here.
    for (let segmentNumber = 0; segmentNumber < tableLayer.table.segments.length; segmentNumber++) {
      const segment = tableLayer.table.segments[segmentNumber]!;
      const nearParts = nearPathRowsOf(segment, tableLayer, scanSource, nearRequest);
      if (nearParts === null) break;
      if (nearParts.length === 0) continue;
      const rowsLookedAt: Int32Array[] = [];
      nearBySegment.set(segment, rowsLookedAt);
      for (const { path, rows: neighbourRows, of, isFull } of nearParts) {
        const visibleCount = neighbourRows?.length ?? of;
        if (isFull && of >= GRAPH_ROWS && visibleCount * GRAPH_VISIBLE_SHARE >= of)
          pathRows.push({ segment, path, visible: neighbourRows });
        else rowsLookedAt.push(neighbourRows ?? allRowNumbers(of));
      }
    }
  }
  const graphNeighbours = (await graphs?.near(nearRequest, pathRows)) ?? [];
  let byGraph = 0;
  for (const [i, { segment, visible }] of pathRows.entries()) {
    const neighbourRows = graphNeighbours[i];
    if (neighbourRows) byGraph++;
    nearBySegment.get(segment)!.push(neighbourRows ?? visible ?? allRowNumbers(segment.length));
  }
  for (const [{ segmentKey }, parts] of nearBySegment) nearCandidates.set(segmentKey, rowsInOrder(parts));
  return { candidates: nearCandidates, byGraph, missing: pathRows.length - byGraph };
}

function allRowNumbers(rowCount: number): Int32Array {
  return Int32Array.from({ length: rowCount }, (_, row) => row);
}

/** Null where no row of this segment or of those behind it is seen. */
function nearPathRowsOf(
  segment: Segment,
  tableLayer: TableLayer,
  scanSource: ScanSource,
  nearRequest: NearRequest,
): NearPathRows[] | null {
  const { visibility, inherited, openAt } = readerOf(tableLayer, scanSource, nearRequest);
  if (segment.base >= visibility.bound) return null;
  const segmentFilter = filterOf(segment, visibility);
  if (!segmentFilter) return [];
  const { first: firstRow, end: rowsEnd } = segmentFilter;
  const { constant, values } = segment.paths;
  const allowedPaths = nearRequest.paths ? allowedCodes(nearRequest.paths, scanSource.scopes) : null;
  if (allowedPaths && constant !== null && allowedPaths[constant] !== 1) return [];
  const selected = selectRows(segment, segmentFilter, visibility, allowedPaths, firstRow, rowsEnd, null);
  const selectedRows = inherited ? inherited.keep(segment, selected, firstRow, rowsEnd, openAt) : selected;
  const isFull = (segment.sealed || segment.length >= SEGMENT_ROWS) && visibility.bound > segment.positionOf(segment.length - 1);
  if (constant !== null) {
    const areAllVisible = selectedRows === null && firstRow === 0 && rowsEnd === segment.length;
    const visibleRows = areAllVisible
      ? null
      : (selectedRows ?? Int32Array.from({ length: rowsEnd - firstRow }, (_, i) => firstRow + i));
    return visibleRows?.length === 0 ? [] : [{ path: constant, rows: visibleRows, of: segment.length, isFull }];
  }
  const pathTotals = new Map<number, number>();
  for (let row = 0; row < segment.length; row++) pathTotals.set(values![row]!, (pathTotals.get(values![row]!) ?? 0) + 1);
  const rowsByPath = new Map<number, number[]>();
  const addPathRow = (row: number): void => {
    const path = values![row]!;
    const rows = rowsByPath.get(path);
    if (rows) rows.push(row);
    else rowsByPath.set(path, [row]);
  };
  if (selectedRows) selectedRows.forEach(addPathRow);
  else for (let row = firstRow; row < rowsEnd; row++) addPathRow(row);
  return [...rowsByPath].map(([path, visibleRows]) => ({
    path,
    rows: Int32Array.from(visibleRows),
    of: pathTotals.get(path)!,
    isFull,
  }));
}

function rowsInOrder(nearRowParts: readonly Int32Array[]): Int32Array {
  const sortedRows = new Int32Array(nearRowParts.reduce((sum, { length }) => sum + length, 0));
  let sortedOffset = 0;
  for (const nearRows of nearRowParts) {
    sortedRows.set(nearRows, sortedOffset);
    sortedOffset += nearRows.length;
  }
  return sortedRows.sort();
}
