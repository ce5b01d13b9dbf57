/** Every text stored in rows, on any branch: for searches over all of them. */
import type { Vector } from '../../../log/values/columns.ts';
import type { Timeline } from '../../../log/values/timeline.ts';
import type { Cell } from '../../../log/values/value.ts';
import { cellAt } from '../../../log/values/vector-builder.ts';
import type { BranchLayer } from '../tables/branch-layer.ts';
import type { Segment } from '../segments/segment.ts';
import { sameBytes } from '../segments/segment-state.ts';
import type { Table } from '../tables/table.ts';

export type TextVector = Extract<Vector, { kind: 'text' | 'dict' }>;

/** The texts of one column in a segment. Good until the next ones are asked for, over turns of others too. */
export interface StoredTexts {
  readonly type: string;
  /** `_pk`: the keys. */
  readonly column: string;
  /** Texts, or texts of JSON. */
  readonly of: 'string' | 'json';
  readonly vector: TextVector;
  readonly length: number;
  /** Whether a row is of the paths that were asked for, and not removed. */
  stands(row: number): boolean;
  /** The row's subject, from the type's subject column; null where it has none. */
  subjectOf(row: number): Cell;
  systemFrom(row: number): bigint;
  positionOf(row: number): number;
}

/** Under paths of these tenants. All texts of a column one after the other. A step is one column of one segment, and the time of reading it where it rests. */
export function* storedTexts(
  paths: ReadonlySet<number>,
  tenants: ReadonlySet<string | null>,
  layers: readonly BranchLayer[],
  timeline: Timeline,
  onlyColumn: { readonly type: string; readonly column: string } | null = null,
): Generator<StoredTexts, void> {
  for (const branchLayer of layers) {
    for (const table of [...tenants].flatMap((tenant) => branchLayer.tablesOf(tenant))) {
      const { type } = table;
      if (onlyColumn !== null && onlyColumn.type !== type) continue;
      const subjectColumn = branchLayer.names.subjectOf(table.tenant, type);
      const textColumns = [...table.columnTypes()].flatMap(([name, { type: of }]) =>
        (of === 'string' || of === 'json') && (onlyColumn === null || name === onlyColumn.column) ? [{ name, of }] : [],
      );
      for (const { name, of } of onlyColumn === null ? [{ name: null, of: 'string' as const }, ...textColumns] : textColumns)
        yield* textsOfColumn({ table, type, name, of, subject: subjectColumn, paths, timeline });
    }
  }
}

interface ColumnTextsRequest {
  readonly table: Table;
  readonly type: string;
  readonly name: string | null;
  readonly of: StoredTexts['of'];
  readonly subject: string | null;
  readonly paths: ReadonlySet<number>;
  readonly timeline: Timeline;
}

function* textsOfColumn({ table, type, name, of, subject, paths, timeline }: ColumnTextsRequest): Generator<StoredTexts, void> {
  const [columnBuffers, subjectBuffers] = [sameBytes(), sameBytes()];
  for (const segment of table.segments) {
    const { constant } = segment.paths;
    if (constant !== null && !paths.has(constant)) continue;
    const isVectorOwned = segment.cells.isAbsent(name);
    const textVector = segment.cells.glance(name, columnBuffers);
    if (textVector?.kind !== 'text' && textVector?.kind !== 'dict') continue;
    const { length } = segment;
    yield {
      type,
      column: name ?? '_pk',
      of,
      vector: isVectorOwned ? textVector : copyVector(textVector, length),
      length,
      stands: (row) => !segment.isRemoved(row) && paths.has(segment.paths.codeAt(row)),
      subjectOf: (row) => (subject === null ? null : subjectCellOf(table, segment, subject, row, subjectBuffers)),
      systemFrom: (row) => timeline.timeOf(segment.positionOf(row)),
      positionOf: (row) => segment.positionOf(row),
    };
  }
}

/** Copies a vector whose memory may be released or moved in other turns. */
function copyVector(textVector: TextVector, length: number): TextVector {
  const copiedNulls = textVector.nulls?.slice(0, length) ?? null;
  if (textVector.kind === 'dict') return { ...textVector, values: textVector.values.slice(0, length), nulls: copiedNulls };
  const copiedOffsets = textVector.offsets.slice(0, length + 1);
  return { ...textVector, offsets: copiedOffsets, heap: textVector.heap.slice(0, copiedOffsets[length]), nulls: copiedNulls };
}

function subjectCellOf(table: Table, { cells }: Segment, name: string, row: number, bytes: ReturnType<typeof sameBytes>): Cell {
  const subjectVector = cells.glance(name, bytes);
  return subjectVector ? cellAt(subjectVector, table.columnTypes().get(name)!.type, row) : null;
}
