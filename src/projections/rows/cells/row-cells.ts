/**
 * Cells of what a command writes, by where a plan says that they are: in stored versions, in rows of its batch, or, of a patch, in
 * rows that were merged from both.
 */
import { assert } from '../../../errors.ts';
import type { NamedColumn, Vector } from '../../../log/values/columns.ts';
import type { TypeDefinition } from '../../../log/entries/entry.ts';
import type { Cell, ColumnType } from '../../../log/values/value.ts';
import { cellAt, VectorBuilder } from '../../../log/values/vector-builder.ts';
import type { SentCells } from '../../command.ts';
import { gather } from './gather-rows.ts';
import type { CellAddress, StoredVersions } from './stored-versions.ts';
import { finishSteps } from '../../../log/threads/stepping-job.ts';

/** A row of a patch: its cells, in the order of `types`, where it is over another row of the batch, else the version that it is over. */
interface MergedRow {
  readonly row: number;
  readonly over: number | null | readonly Cell[];
}

export class RowCells {
  /** Types of all columns that a version may have now. */
  readonly types: ReadonlyMap<string, ColumnType>;
  readonly #sentColumns: ReadonlyMap<string, NamedColumn>;
  readonly #sentRowCount: number;
  readonly #storedTable: StoredVersions | undefined;
  readonly #sentPatch: SentCells | null;
  readonly #mergedRows: MergedRow[] = [];
  readonly #columnSlots = new Map<string, number>();

  /** `sentBatch`: rows as they are checked; null where nothing is sent. `definition`: of the type once it is written. */
  constructor(
    definition: TypeDefinition,
    sentBatch: { readonly cells: readonly NamedColumn[]; readonly length: number } | null,
    storedTable: StoredVersions | undefined,
    sentPatch: SentCells | null = null,
  ) {
    this.#storedTable = storedTable;
    this.#sentPatch = sentPatch;
    this.#sentRowCount = sentBatch?.length ?? 0;
    this.#sentColumns = new Map(sentBatch?.cells.map((column) => [column.name, column]));
    const columnTypes = new Map<string, ColumnType>();
    for (const [name, { type }] of storedTable?.columnTypes() ?? []) columnTypes.set(name, type);
    for (const [name, { type }] of this.#sentColumns) columnTypes.set(name, type);
    // An earlier entry of the same append may just have widened a column.
    for (const name of columnTypes.keys()) {
      const declaredType = Object.hasOwn(definition.properties, name) ? definition.properties[name]!.type : undefined;
      if (declaredType !== undefined) columnTypes.set(name, declaredType);
    }
    this.types = columnTypes;
    for (const name of columnTypes.keys()) this.#columnSlots.set(name, this.#columnSlots.size);
  }

  /** `cells`: as in `OpenVersion`. */
  cell(cells: number, columnName: string): Cell {
    const cellType = this.types.get(columnName);
    if (cellType === undefined) return null;
    if (cells >= 0) return this.#storedCell(cells, columnName, cellType);
    const row = -1 - cells;
    if (this.#sentPatch === null) return this.#sentCell(row, columnName, cellType);
    const mergedRow = this.#mergedRows[row]!;
    if (mergedRow.over !== null && typeof mergedRow.over === 'object') return mergedRow.over[this.#columnSlots.get(columnName)!]!;
    if (this.#isCellSent(columnName, mergedRow.row)) return this.#sentCell(mergedRow.row, columnName, cellType);
    return mergedRow.over === null ? null : this.#storedCell(mergedRow.over, columnName, cellType);
  }

  #sentCell(row: number, name: string, type: ColumnType): Cell {
    const sentColumn = this.#sentColumns.get(name);
    return sentColumn === undefined ? null : cellAt(sentColumn.vector, type, row);
  }

  get mergedRows(): number {
    return this.#mergedRows.length;
  }

  /** Row number of what a row of a patch makes of the cells of a version; null: of nothing. */
  merge(row: number, baseCells: number | null): number {
    const mergedOver =
      baseCells === null || baseCells >= 0
        ? baseCells
        : Array.from(this.types, ([name, type]) =>
            this.#isCellSent(name, row) ? this.#sentCell(row, name, type) : this.cell(baseCells, name),
          );
    return this.#mergedRows.push({ row, over: mergedOver }) - 1;
  }

  /** Merged rows from this one on never were. */
  forgetMerged(firstForgotten: number): void {
    this.#mergedRows.length = firstForgotten;
  }

  /** Columns of merged rows. */
  mergedColumns(rows: readonly number[]): NamedColumn[] {
    return this.columns(rows.map((row) => -1 - row));
  }

  columns(versions: readonly number[]): NamedColumn[] {
    return finishSteps(this.columnSteps(versions));
  }

  /** Columns of planned versions, one a step: gathered from the batch, or cell by cell where some are stored or merged. */
  *columnSteps(versions: readonly number[]): Generator<undefined, NamedColumn[]> {
    if (this.#sentPatch === null && versions.every((cells) => cells < 0)) {
      const sentRows = Int32Array.from(versions, (cells) => -1 - cells);
      const areAllRows = sentRows.length === this.#sentRowCount && sentRows.every((row, i) => row === i);
      return [...this.#sentColumns.values()]
        .map((column) => ({ ...column, vector: areAllRows ? column.vector : gather(column.vector, sentRows) }))
        .filter((column) => column.vector.kind !== 'null');
    }
    const sentRowNumbers = this.#rowsSent(versions);
    const rowColumns: NamedColumn[] = [];
    for (const [name, type] of this.types) {
      yield;
      const columnVector = this.#columnVector(versions, sentRowNumbers, name, type);
      if (columnVector.kind !== 'null') rowColumns.push({ name, type, vector: columnVector });
    }
    return rowColumns;
  }

  #columnVector(versions: readonly number[], sentRowNumbers: Int32Array | null, name: string, type: ColumnType): Vector {
    const sentColumn = this.#sentColumns.get(name);
    if (sentRowNumbers !== null && sentColumn?.type === type && sentRowNumbers.every((row) => this.#isCellSent(name, row)))
      return gather(sentColumn.vector, sentRowNumbers);
    const columnBuilder = new VectorBuilder(type, Math.max(1, versions.length));
    for (const cells of versions) {
      const cellAddress = type === 'string' || type === 'json' ? this.#addressOf(cells, name) : undefined;
      // As bytes: a long text takes as long to become a string, and bytes again, as all else that is done with it.
      if (cellAddress?.type === type && cellAddress.vector.kind === 'text' && cellAddress.vector.nulls?.[cellAddress.row] !== 1) {
        const { heap, offsets } = cellAddress.vector;
        columnBuilder.appendText(heap, offsets[cellAddress.row]!, offsets[cellAddress.row + 1]!);
      } else columnBuilder.append(this.cell(cells, name));
    }
    return columnBuilder.build();
  }

  /** Where a cell stands as it is written; undefined where it stands nowhere yet, or is NULL. */
  #addressOf(cells: number, name: string): CellAddress | undefined {
    if (cells >= 0) return this.#storedTable!.addressOf(cells, name);
    const row = -1 - cells;
    if (this.#sentPatch === null) return this.#ownAddress(row, name);
    const { row: merged, over } = this.#mergedRows[row]!;
    if (over !== null && typeof over === 'object') return undefined;
    if (this.#isCellSent(name, merged)) return this.#ownAddress(merged, name);
    return over === null ? undefined : this.#storedTable!.addressOf(over, name);
  }

  #ownAddress(row: number, name: string): CellAddress | undefined {
    const own = this.#sentColumns.get(name);
    return own && { vector: own.vector, type: own.type, row };
  }

  /** Rows of a patch that these versions are made of; null where some are of stored versions alone. */
  #rowsSent(versions: readonly number[]): Int32Array | null {
    if (this.#sentPatch === null || versions.some((cells) => cells >= 0)) return null;
    return Int32Array.from(versions, (cells) => this.#mergedRows[-1 - cells]!.row);
  }

  #isCellSent(name: string, row: number): boolean {
    const sentFlags = this.#sentPatch!.get(name);
    // An `id` that is the key itself is not a cell of the row.
    if (sentFlags === undefined || (name === 'id' && !this.#sentColumns.has('id'))) return this.#sentColumns.has(name);
    return sentFlags[row] === 1;
  }

  #storedCell(row: number, name: string, type: ColumnType): Cell {
    assert(this.#storedTable, 'cells of stored versions come from a table');
    const storedCell = this.#storedTable.cellOf(row, name);
    return type === 'number' && typeof storedCell === 'bigint' ? Number(storedCell) : storedCell;
  }
}
