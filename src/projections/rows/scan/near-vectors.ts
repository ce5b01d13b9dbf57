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
const VISIBLE_SHARE = 10;

interface Part {
  readonly path: number;
  /** Visible rows, ascending; null: all of the segment. */
  readonly rows: Int32Array | null;
  /** Rows of the path, visible or not. */
  readonly of: number;
  readonly isFull: boolean;
}

export async function rowsNearVector(source: ScanSource, request: NearRequest): Promise<Near> {
  const { graphs } = source.indexes;
  const candidates = new Map<object, Int32Array>();
  const nearBySegment = new Map<Segment, Int32Array[]>();
  const asked: PathRows[] = [];
  for (const layer of source.layers) {
    // By number, because segments may be added meanwhile; none of theirs is visible here.
    for (let number = 0; number < layer.table.segments.length; number++) {
      const segment = layer.table.segments[number]!;
      const parts = partsOf(segment, layer, source, request);
      if (parts === null) break;
      if (parts.length === 0) continue;
      const whole: Int32Array[] = [];
      nearBySegment.set(segment, whole);
      for (const { path, rows, of, isFull } of parts) {
        const visible = rows?.length ?? of;
        if (isFull && of >= GRAPH_ROWS && visible * VISIBLE_SHARE >= of) asked.push({ segment, path, visible: rows });
        else whole.push(rows ?? allOf(of));
      }
    }
  }
  const near = (await graphs?.near(request, asked)) ?? [];
  let byGraph = 0;
  for (const [i, { segment, visible }] of asked.entries()) {
    const rows = near[i];
    if (rows) byGraph++;
    nearBySegment.get(segment)!.push(rows ?? visible ?? allOf(segment.length));
  }
  for (const [{ segmentKey }, parts] of nearBySegment) candidates.set(segmentKey, inOrder(parts));
  return { candidates, byGraph, missing: asked.length - byGraph };
}

function allOf(rows: number): Int32Array {
  return Int32Array.from({ length: rows }, (_, row) => row);
}

/** Null where no row of this segment or of those behind it is seen. */
function partsOf(segment: Segment, layer: TableLayer, source: ScanSource, request: NearRequest): Part[] | null {
  const { visibility, inherited, openAt } = readerOf(layer, source, request);
  if (segment.base >= visibility.bound) return null;
  const filter = filterOf(segment, visibility);
  if (!filter) return [];
  const { first, end } = filter;
  const { constant, values } = segment.paths;
  const allowed = request.paths ? allowedCodes(request.paths, source.scopes) : null;
  if (allowed && constant !== null && allowed[constant] !== 1) return [];
  const selected = selectRows(segment, filter, visibility, allowed, first, end, null);
  const selectedRows = inherited ? inherited.keep(segment, selected, first, end, openAt) : selected;
  const isFull = (segment.sealed || segment.length >= SEGMENT_ROWS) && visibility.bound > segment.positionOf(segment.length - 1);
  if (constant !== null) {
    const isAll = selectedRows === null && first === 0 && end === segment.length;
    const rows = isAll ? null : (selectedRows ?? Int32Array.from({ length: end - first }, (_, i) => first + i));
    return rows?.length === 0 ? [] : [{ path: constant, rows, of: segment.length, isFull }];
  }
  const totals = new Map<number, number>();
  for (let row = 0; row < segment.length; row++) totals.set(values![row]!, (totals.get(values![row]!) ?? 0) + 1);
  const byPath = new Map<number, number[]>();
  const add = (row: number): void => {
    const path = values![row]!;
    const rows = byPath.get(path);
    if (rows) rows.push(row);
    else byPath.set(path, [row]);
  };
  if (selectedRows) selectedRows.forEach(add);
  else for (let row = first; row < end; row++) add(row);
  return [...byPath].map(([path, rows]) => ({ path, rows: Int32Array.from(rows), of: totals.get(path)!, isFull }));
}

function inOrder(parts: readonly Int32Array[]): Int32Array {
  const all = new Int32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all.sort();
}
