/**
 * Rows under the column types of an earlier catalog. A column that was widened since is stored in its wider type; earlier cells
 * read back as they were written, value for value: JSON text as the scalar that it was made from.
 */
import { assert } from '../../../errors.ts';
import type { Vector } from '../../../log/values/columns.ts';
import { becomesText, type Cell, type ColumnType } from '../../../log/values/value.ts';
import { cellAt, VectorBuilder } from '../../../log/values/vector-builder.ts';
import type {
  CatalogReader,
  PathCodes,
  Preparation,
  RowBlock,
  RowProvenance,
  RowReader,
  RowWindow,
  ScanEstimate,
  ScanRequest,
} from '../../access-paths.ts';
import { columnTypeOf } from '../../catalog/projection.ts';

/** The former and the stored type of a column; null where the vectors are the same. */
type Change = { readonly was: ColumnType; readonly is: ColumnType } | null;

export class EarlierTypeRows implements RowReader {
  readonly #rows: RowReader;
  readonly #then: CatalogReader;
  readonly #now: (type: string, column: string) => ColumnType | undefined;

  constructor(rows: RowReader, then: CatalogReader, now: (type: string, column: string) => ColumnType | undefined) {
    this.#rows = rows;
    this.#then = then;
    this.#now = now;
  }

  prepare(type: string, columns: readonly string[]): Preparation | null {
    return this.#rows.prepare?.(type, columns) ?? null;
  }

  scan(request: ScanRequest): Iterator<RowBlock, void> {
    const changes = request.columns.map((column) => this.#change(request.type, column));
    const blocks = this.#rows.scan(this.#withoutChangedZones(request));
    const further = request.further ? (column: string) => this.#change(request.type, column) : null;
    return further === null && changes.every((change) => change === null) ? blocks : changedBlocks(blocks, changes, further);
  }

  estimate(request: ScanRequest): ScanEstimate {
    return this.#rows.estimate(this.#withoutChangedZones(request));
  }

  pathCodes(): PathCodes {
    return this.#rows.pathCodes();
  }

  provenanceOf(type: string, systemFrom: bigint, paths?: readonly number[]): RowProvenance | undefined {
    return this.#rows.provenanceOf(type, systemFrom, paths);
  }

  /** Zones and identifiers of a column that changed its type say nothing about values of the old one. */
  #withoutChangedZones(request: ScanRequest): ScanRequest {
    const { type, identifiers } = request;
    if (identifiers?.some(({ column }) => this.#types(type, column) !== null)) {
      return this.#withoutChangedZones({ ...request, identifiers: undefined });
    }
    const zones = request.zones?.filter(({ column }) => this.#types(type, column) === null);
    return zones === undefined ? request : { ...request, zones };
  }

  #types(type: string, column: string): Change {
    const definition = this.#then.type(type);
    const was = definition && columnTypeOf(definition, column);
    const is = this.#now(type, column);
    return was === undefined || is === undefined || was === is ? null : { was, is };
  }

  #change(type: string, column: string): Change {
    const change = this.#types(type, column);
    // An integer that rests as a double is a form in which integers rest anyway.
    return change !== null && change.was === 'integer' && change.is === 'number' ? null : change;
  }
}

function* changedBlocks(
  blocks: Iterator<RowBlock, void>,
  changes: readonly Change[],
  further: ((column: string) => Change) | null,
): Generator<RowBlock, void> {
  try {
    for (let step = blocks.next(); step.done !== true; step = blocks.next()) {
      const block = changedColumns(step.value, changes);
      const { further: more } = block;
      // Facts about all cells of a block hold for the cells as stored.
      if (!more || !further) yield block;
      else yield { ...block, further: { rows: (names) => changedColumns(more.rows(names), names.map(further)) } };
    }
  } finally {
    blocks.return?.();
  }
}

function changedColumns<T extends RowWindow>(rows: T, changes: readonly Change[]): T {
  const columns = rows.columns.map((vector, i) => {
    const change = changes[i] ?? null;
    return change === null ? vector : convertVector(vector, change, rows);
  });
  return { ...rows, columns };
}

/** In the row numbers of the block; rows that it does not select are NULL. */
function convertVector(vector: Vector, { was, is }: Exclude<Change, null>, { selection, first, count }: RowWindow): Vector {
  if (vector.kind === 'null' || count === 0) return vector;
  const builder = new VectorBuilder(was, count);
  let row = 0;
  for (let k = 0; k < count; k++) {
    const at = selection === null ? first + k : selection[k]!;
    for (; row < at; row++) builder.appendNull();
    const cell = cellAt(vector, is, at);
    builder.append(cell === null ? null : cellOfThen(cell, was, is));
    row++;
  }
  return builder.build();
}

function cellOfThen(cell: Exclude<Cell, null>, was: ColumnType, is: ColumnType): Cell {
  assert(is === 'json' || (is === 'string' && becomesText(was)), `${was} does not become ${is}`);
  const text = String(cell);
  switch (was) {
    case 'integer':
    case 'timestamp':
      return BigInt(text);
    case 'vector':
      return Float32Array.from(JSON.parse(text) as number[]);
    case 'string':
    case 'number':
    case 'boolean':
      return JSON.parse(text) as string | number | boolean;
    case 'json':
      return text;
  }
}
