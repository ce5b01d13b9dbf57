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
interface Merged {
  readonly row: number;
  readonly over: number | null | readonly Cell[];
}

export class RowCells {
  /** Types of all columns that a version may have now. */
  readonly types: ReadonlyMap<string, ColumnType>;
  readonly #own: ReadonlyMap<string, NamedColumn>;
  readonly #length: number;
  readonly #table: StoredVersions | undefined;
  readonly #patch: SentCells | null;
  readonly #merged: Merged[] = [];
  readonly #slots = new Map<string, number>();

  /** `batch`: rows as they are checked; null where nothing is sent. `definition`: of the type once it is written. */
  constructor(
    definition: TypeDefinition,
    batch: { readonly cells: readonly NamedColumn[]; readonly length: number } | null,
    table: StoredVersions | undefined,
    patch: SentCells | null = null,
  ) {
    this.#table = table;
    this.#patch = patch;
    this.#length = batch?.length ?? 0;
    this.#own = new Map(batch?.cells.map((column) => [column.name, column]));
    const types = new Map<string, ColumnType>();
    for (const [name, { type }] of table?.columnTypes() ?? []) types.set(name, type);
    for (const [name, { type }] of this.#own) types.set(name, type);
    // An earlier entry of the same append may just have widened a column.
    for (const name of types.keys()) {
      const declared = Object.hasOwn(definition.properties, name) ? definition.properties[name]!.type : undefined;
      if (declared !== undefined) types.set(name, declared);
    }
    this.types = types;
    for (const name of types.keys()) this.#slots.set(name, this.#slots.size);
  }

  /** `cells`: as in `OpenVersion`. */
  cell(cells: number, name: string): Cell {
    const type = this.types.get(name);
    if (type === undefined) return null;
    if (cells >= 0) return this.#storedCell(cells, name, type);
    const row = -1 - cells;
    if (this.#patch === null) return this.#ownCell(row, name, type);
    const merged = this.#merged[row]!;
    if (merged.over !== null && typeof merged.over === 'object') return merged.over[this.#slots.get(name)!]!;
    if (this.#isSent(name, merged.row)) return this.#ownCell(merged.row, name, type);
    return merged.over === null ? null : this.#storedCell(merged.over, name, type);
  }

  #ownCell(row: number, name: string, type: ColumnType): Cell {
    const own = this.#own.get(name);
    return own === undefined ? null : cellAt(own.vector, type, row);
  }

  get mergedRows(): number {
    return this.#merged.length;
  }

  /** Row number of what a row of a patch makes of the cells of a version; null: of nothing. */
  merge(row: number, base: number | null): number {
    const over =
      base === null || base >= 0
        ? base
        : Array.from(this.types, ([name, type]) =>
            this.#isSent(name, row) ? this.#ownCell(row, name, type) : this.cell(base, name),
          );
    return this.#merged.push({ row, over }) - 1;
  }

  /** Merged rows from this one on never were. */
  forgetMerged(from: number): void {
    this.#merged.length = from;
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
    if (this.#patch === null && versions.every((cells) => cells < 0)) {
      const rows = Int32Array.from(versions, (cells) => -1 - cells);
      const whole = rows.length === this.#length && rows.every((row, i) => row === i);
      return [...this.#own.values()]
        .map((column) => ({ ...column, vector: whole ? column.vector : gather(column.vector, rows) }))
        .filter((column) => column.vector.kind !== 'null');
    }
    const sent = this.#rowsSent(versions);
    const columns: NamedColumn[] = [];
    for (const [name, type] of this.types) {
      yield;
      const vector = this.#vector(versions, sent, name, type);
      if (vector.kind !== 'null') columns.push({ name, type, vector });
    }
    return columns;
  }

  #vector(versions: readonly number[], sent: Int32Array | null, name: string, type: ColumnType): Vector {
    const own = this.#own.get(name);
    if (sent !== null && own?.type === type && sent.every((row) => this.#isSent(name, row))) return gather(own.vector, sent);
    const builder = new VectorBuilder(type, Math.max(1, versions.length));
    for (const cells of versions) {
      const cellAddress = type === 'string' || type === 'json' ? this.#placeOf(cells, name) : undefined;
      // As bytes: a long text takes as long to become a string, and bytes again, as all else that is done with it.
      if (cellAddress?.type === type && cellAddress.vector.kind === 'text' && cellAddress.vector.nulls?.[cellAddress.row] !== 1) {
        const { heap, offsets } = cellAddress.vector;
        builder.appendText(heap, offsets[cellAddress.row]!, offsets[cellAddress.row + 1]!);
      } else builder.append(this.cell(cells, name));
    }
    return builder.build();
  }

  /** Where a cell stands as it is written; undefined where it stands nowhere yet, or is NULL. */
  #placeOf(cells: number, name: string): CellAddress | undefined {
    if (cells >= 0) return this.#table!.placeOf(cells, name);
    const row = -1 - cells;
    if (this.#patch === null) return this.#ownPlace(row, name);
    const { row: merged, over } = this.#merged[row]!;
    if (over !== null && typeof over === 'object') return undefined;
    if (this.#isSent(name, merged)) return this.#ownPlace(merged, name);
    return over === null ? undefined : this.#table!.placeOf(over, name);
  }

  #ownPlace(row: number, name: string): CellAddress | undefined {
    const own = this.#own.get(name);
    return own && { vector: own.vector, type: own.type, row };
  }

  /** Rows of a patch that these versions are made of; null where some are of stored versions alone. */
  #rowsSent(versions: readonly number[]): Int32Array | null {
    if (this.#patch === null || versions.some((cells) => cells >= 0)) return null;
    return Int32Array.from(versions, (cells) => this.#merged[-1 - cells]!.row);
  }

  #isSent(name: string, row: number): boolean {
    const flags = this.#patch!.get(name);
    // An `id` that is the key itself is not a cell of the row.
    if (flags === undefined || (name === 'id' && !this.#own.has('id'))) return this.#own.has(name);
    return flags[row] === 1;
  }

  #storedCell(row: number, name: string, type: ColumnType): Cell {
    assert(this.#table, 'cells of stored versions come from a table');
    const cell = this.#table.cellOf(row, name);
    return type === 'number' && typeof cell === 'bigint' ? Number(cell) : cell;
  }
}
