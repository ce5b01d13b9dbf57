/**
 * Rows of roles, read through the gate: a hidden row is not there, a masked cell is NULL. A reader is given batches, in the
 * order of the types and of system_from, with the columns that it asked for by their names in the role.
 */
import { cellAt } from '../../../log/values/vector-builder.ts';
import type { ColumnType } from '../../../log/values/value.ts';
import type { Json } from '../../../log/values/canonical-json.ts';
import { formatInstant, parseZonedInstant } from '../../../log/values/timestamp.ts';
import type { IdentifierPredicate } from '../../../projections/access-paths.ts';
import { isClosed } from '../../graph/node-and-edge-types.ts';
import type { Steps } from '../../graph/stepped-sort.ts';
import type { PlanColumn, ScanNode } from '../../logical-plan.ts';
import type { Batch, Execution } from '../../operators/operator.ts';
import { ScanOperator } from '../../operators/scan.ts';
import type { RoleType } from './roles.ts';

/** A type, and its columns by the names that a reader has for them. */
type ReadRoleType = Pick<RoleType, 'type' | 'columns' | 'isNamed'>;

/** Rows whose column is one of these texts: looked up by key, pruned by zones, and compared exactly. */
export interface RowsWanted {
  readonly column: string;
  readonly texts: readonly string[];
}

/** The columns that rows of every role have. */
const roleRowColumns = ['_pk', 'system_from', 'valid_from', 'valid_to'] as const;

/** Rows of one type on their way: good until the reader takes the next. Rows are numbered 0 .. count-1. */
export class RoleBatch {
  readonly type: string;
  readonly count: number;
  readonly #roleBatch: Batch;
  readonly #roleColumns: readonly PlanColumn[];
  /** Index of each column, by its name in the role. */
  readonly #columnIndexes: ReadonlyMap<string, number>;

  constructor(type: string, batch: Batch, columns: readonly PlanColumn[], columnIndexes: ReadonlyMap<string, number>) {
    this.type = type;
    this.count = batch.count;
    this.#roleBatch = batch;
    this.#roleColumns = columns;
    this.#columnIndexes = columnIndexes;
  }

  /** `_pk`; null where it is masked. */
  nodeId(row: number): string | null {
    return this.text('_pk', row);
  }

  /** A text, or a whole number as one; null for JSON and NULL. */
  text(column: string, row: number): string | null {
    const textCell = this.#roleCell(column, row);
    return typeof textCell === 'string' ? textCell : typeof textCell === 'bigint' ? String(textCell) : null;
  }

  number(column: string, row: number): number | null {
    const numberCell = this.#roleCell(column, row);
    return typeof numberCell === 'number' || typeof numberCell === 'bigint' ? Number(numberCell) : null;
  }

  /** Nanoseconds; a text that says no instant is none. */
  instant(column: string, row: number): bigint | null {
    const instantCell = this.#roleCell(column, row);
    if (typeof instantCell === 'bigint') return instantCell;
    return typeof instantCell === 'string' ? parseRoleInstant(instantCell) : null;
  }

  /** The texts of a JSON array, or one text. */
  list(column: string, row: number): readonly string[] {
    const listCell = this.#roleCell(column, row);
    if (typeof listCell !== 'string' || listCell === '') return [];
    const parsedList = parseRoleJson(listCell);
    if (Array.isArray(parsedList)) return parsedList.filter((listItem) => typeof listItem === 'string');
    return [typeof parsedList === 'string' ? parsedList : listCell];
  }

  /** A cell of any type that JSON has a form for; a whole number that it has none for as a text. */
  json(column: string, row: number): Json {
    const jsonCell = this.#roleCell(column, row);
    const columnIndex = this.#columnIndexes.get(column);
    if (jsonCell === null || columnIndex === undefined || jsonCell instanceof Float32Array) return null;
    const { type } = this.#roleColumns[columnIndex]!;
    if (type === 'json' && typeof jsonCell === 'string') return (parseRoleJson(jsonCell) as Json | undefined) ?? null;
    if (typeof jsonCell !== 'bigint') return jsonCell;
    if (type === 'timestamp') return formatInstant(jsonCell);
    return jsonCell >= -(2n ** 53n) && jsonCell <= 2n ** 53n ? Number(jsonCell) : String(jsonCell);
  }

  systemFrom(row: number): bigint | null {
    return this.instant('system_from', row);
  }

  #roleCell(column: string, row: number): ReturnType<typeof cellAt> {
    const columnIndex = this.#columnIndexes.get(column);
    if (columnIndex === undefined) return null;
    const { columns, selection, first } = this.#roleBatch;
    return cellAt(
      columns[columnIndex]!,
      this.#roleColumns[columnIndex]!.type,
      selection === null ? first + row : selection[row]!,
    );
  }
}

function parseRoleInstant(instantText: string): bigint | null {
  try {
    return parseZonedInstant(instantText);
  } catch {
    return null;
  }
}

function parseRoleJson(jsonText: string): unknown {
  try {
    return JSON.parse(jsonText);
  } catch {
    return undefined;
  }
}

/**
 * Hands rows of these types to `takeRoleBatch`, a batch each step; those alone that are wanted. `columns` are names in the role. With
 * `identifiers`, rows without any of them may be left out.
 */
export function* scanRoles(
  execution: Execution,
  types: readonly ReadRoleType[],
  columns: readonly string[],
  takeRoleBatch: (scannedBatch: RoleBatch) => void,
  wantedRows: RowsWanted | null = null,
  identifiers?: readonly IdentifierPredicate[],
): Steps<void> {
  for (const readType of types) {
    let roleScan: ScanOperator;
    const storedColumnsRead = storedRoleColumns(
      execution,
      readType,
      wantedRows === null ? columns : [...columns, wantedRows.column],
    );
    const columnIndexes = new Map([...storedColumnsRead.keys()].map((name, i) => [name, i]));
    const readColumns = [...storedColumnsRead.values()];
    try {
      roleScan = new ScanOperator(
        roleScanNode(execution, readType.type, readColumns, wantedStored(readType, wantedRows)),
        execution,
        0,
        { identifiers },
      );
    } catch (error) {
      if (!readType.isNamed && isClosed(error)) continue;
      throw error;
    }
    try {
      for (let scannedBatch = roleScan.next(); scannedBatch !== null; scannedBatch = roleScan.next()) {
        const wantedBatch =
          wantedRows === null
            ? scannedBatch
            : onlyWanted(new RoleBatch(readType.type, scannedBatch, readColumns, columnIndexes), scannedBatch, wantedRows);
        for (let sliceStart = 0; sliceStart < wantedBatch.count; sliceStart += roleRowsAtOnce) {
          takeRoleBatch(new RoleBatch(readType.type, roleRowsFrom(wantedBatch, sliceStart), readColumns, columnIndexes));
          yield;
        }
        if (wantedBatch.count === 0) yield;
      }
    } finally {
      roleScan.close();
    }
  }
}

/** A reader may take microseconds for a row. */
const roleRowsAtOnce = 1_024;

function roleRowsFrom({ columns, selection, first, count }: Batch, sliceStart: number): Batch {
  const sliceRows = Math.min(roleRowsAtOnce, count - sliceStart);
  return selection === null
    ? { columns, selection, first: first + sliceStart, count: sliceRows }
    : { columns, selection: selection.subarray(sliceStart, sliceStart + sliceRows), first, count: sliceRows };
}

/** Columns of the type by their names in the role; columns that the type lacks are left out. */
function storedRoleColumns(
  { snapshot }: Execution,
  role: ReadRoleType,
  roleColumnNames: readonly string[],
): ReadonlyMap<string, PlanColumn> {
  const roleDefinition = snapshot.catalog.type(role.type);
  const storedByName = new Map<string, PlanColumn>();
  for (const name of roleRowColumns) storedByName.set(name, { name, type: name === '_pk' ? 'string' : 'timestamp' });
  for (const name of roleColumnNames) {
    const storedColumn = role.columns.get(name);
    const type: ColumnType | undefined =
      storedColumn === undefined ? undefined : (roleDefinition?.properties[storedColumn]?.type ?? 'string');
    if (storedColumn !== undefined && type !== undefined) storedByName.set(name, { name: storedColumn, type });
  }
  return storedByName;
}

function wantedStored({ columns }: ReadRoleType, wantedRows: RowsWanted | null): RowsWanted | null {
  if (wantedRows === null || wantedRows.column === '_pk') return wantedRows;
  const storedColumn = columns.get(wantedRows.column);
  return storedColumn === undefined ? null : { ...wantedRows, column: storedColumn };
}

function roleScanNode(
  { snapshot }: Execution,
  type: string,
  columns: readonly PlanColumn[],
  wantedRows: RowsWanted | null,
): ScanNode {
  const roleDefinition = snapshot.catalog.type(type);
  const maskedColumns = snapshot.masksOf(type);
  const textConstant = (constantCell: string) => ({ kind: 'constant', cell: constantCell, type: 'string' }) as const;
  const isKeyWanted = wantedRows !== null && !maskedColumns.has('_pk') && !maskedColumns.has(wantedRows.column);
  const isReadByKey = isKeyWanted && (wantedRows.column === '_pk' || wantedRows.column === roleDefinition?.primaryKey);
  const onlyText =
    wantedRows !== null && !isReadByKey && wantedRows.texts.length === 1 && !maskedColumns.has(wantedRows.column)
      ? wantedRows
      : null;
  const onlyProperty = onlyText === null ? undefined : roleDefinition?.properties[onlyText.column];
  return {
    kind: 'scan',
    type,
    primaryKey: roleDefinition?.primaryKey ?? null,
    masked: maskedColumns,
    columns,
    keys: isReadByKey ? wantedRows.texts.map(textConstant) : null,
    zones:
      onlyProperty?.type === 'string'
        ? [{ column: onlyText!.column, type: 'string', op: '=', value: textConstant(onlyText!.texts[0]!) }]
        : [],
    after: null,
    whole: true,
  };
}

function onlyWanted(rows: RoleBatch, batch: Batch, { column, texts: wantedTexts }: RowsWanted): Batch {
  const roleRows: number[] = [];
  for (let row = 0; row < batch.count; row++) {
    const rowText = rows.text(column, row);
    if (rowText !== null && wantedTexts.includes(rowText))
      roleRows.push(batch.selection === null ? batch.first + row : batch.selection[row]!);
  }
  return { columns: batch.columns, selection: Int32Array.from(roleRows), first: 0, count: roleRows.length };
}
