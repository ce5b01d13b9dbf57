/** Rows that a write has read: copied cell by cell, since there are few, and their batches don't last. */
import { ServiceError } from '../../errors.ts';
import type { Vector } from '../../log/values/columns.ts';
import type { Cell, ColumnType } from '../../log/values/value.ts';
import { cellAt, VectorBuilder } from '../../log/values/vector-builder.ts';
import { batchRowsMax } from '../../projections/command.ts';
import type { OutputBatch, OutputColumn, RowTaker } from '../planner-contract.ts';

export class RowsRead implements RowTaker {
  readonly #isByKey: boolean;
  readonly #rowsMax: number;
  readonly #before: number;
  #columns: readonly OutputColumn[] = [];
  #cells: Cell[][] = [];
  readonly #keys = new Set<Cell>();

  /** `byKey`: of several rows whose first cell is the same, the first counts. `before`: rows that count toward the most too. */
  constructor(byKey: boolean, rowsMax = batchRowsMax, before = 0) {
    this.#isByKey = byKey;
    this.#rowsMax = rowsMax;
    this.#before = before;
  }

  get columns(): readonly OutputColumn[] {
    return this.#columns;
  }

  get rows(): number {
    return this.#cells.length;
  }

  get bytes(): number {
    return this.#cells.length * (this.#columns.length + 1) * 32;
  }

  take(columns: readonly OutputColumn[], { columns: vectors, selection, first, count }: OutputBatch): boolean {
    this.#columns = columns;
    for (let i = 0; i < count; i++) {
      const row = selection === null ? first + i : selection[i]!;
      if (this.#isByKey) {
        const foundKey = cellAt(vectors[0]!, columns[0]!.type, row);
        if (this.#keys.has(foundKey)) continue;
        this.#keys.add(foundKey);
      }
      if (this.#before + this.#cells.length === this.#rowsMax) throw tooManyRowsError(this.#rowsMax);
      this.#cells.push(columns.map(({ type }, c) => cellAt(vectors[c]!, type, row)));
    }
    return true;
  }

  restart(): void {
    this.#cells = [];
    this.#keys.clear();
  }

  numbers(): number[] {
    return [...this.#cells.keys()];
  }

  cell(row: number, column: number): Cell {
    return this.#cells[row]![column]!;
  }

  /** Cells of these rows; of all of them where none are named. */
  vector(column: number, type: ColumnType, rows: readonly number[] | null = null): Vector {
    return vectorOf(
      (rows ?? [...this.#cells.keys()]).map((row) => this.cell(row, column)),
      type,
    );
  }
}

export function vectorOf(cells: readonly Cell[], type: ColumnType): Vector {
  const cellsBuilder = new VectorBuilder(type, Math.max(1, cells.length));
  for (const cell of cells) cellsBuilder.append(cell);
  return cellsBuilder.build();
}

function tooManyRowsError(rowsMax: number): ServiceError {
  return new ServiceError(
    'REL_INVALID',
    `a statement writes at most ${rowsMax} rows here, and this one would write more: write them in several, such as WHERE _pk IN (SELECT _pk … LIMIT ${rowsMax})`,
  );
}
