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
type ReadType = Pick<RoleType, 'type' | 'columns' | 'isNamed'>;

/** Rows whose column is one of these texts: looked up by key, pruned by zones, and compared exactly. */
export interface RowsWanted {
  readonly column: string;
  readonly texts: readonly string[];
}

/** The columns that rows of every role have. */
const rowColumns = ['_pk', 'system_from', 'valid_from', 'valid_to'] as const;

/** Rows of one type on their way: good until the reader takes the next. Rows are numbered 0 .. count-1. */
export class RoleBatch {
  readonly type: string;
  readonly count: number;
  readonly #batch: Batch;
  readonly #columns: readonly PlanColumn[];
  /** Index of each column, by its name in the role. */
  readonly #columnIndexes: ReadonlyMap<string, number>;

  constructor(type: string, batch: Batch, columns: readonly PlanColumn[], columnIndexes: ReadonlyMap<string, number>) {
    this.type = type;
    this.count = batch.count;
    this.#batch = batch;
    this.#columns = columns;
    this.#columnIndexes = columnIndexes;
  }

  /** `_pk`; null where it is masked. */
  nodeId(row: number): string | null {
    return this.text('_pk', row);
  }

  /** A text, or a whole number as one; null for JSON and NULL. */
  text(column: string, row: number): string | null {
    const cell = this.#cell(column, row);
    return typeof cell === 'string' ? cell : typeof cell === 'bigint' ? String(cell) : null;
  }

  number(column: string, row: number): number | null {
    const cell = this.#cell(column, row);
    return typeof cell === 'number' || typeof cell === 'bigint' ? Number(cell) : null;
  }

  /** Nanoseconds; a text that says no instant is none. */
  instant(column: string, row: number): bigint | null {
    const cell = this.#cell(column, row);
    if (typeof cell === 'bigint') return cell;
    return typeof cell === 'string' ? instantIn(cell) : null;
  }

  /** The texts of a JSON array, or one text. */
  list(column: string, row: number): readonly string[] {
    const cell = this.#cell(column, row);
    if (typeof cell !== 'string' || cell === '') return [];
    const parsed = jsonOf(cell);
    if (Array.isArray(parsed)) return parsed.filter((each) => typeof each === 'string');
    return [typeof parsed === 'string' ? parsed : cell];
  }

  /** A cell of any type that JSON has a form for; a whole number that it has none for as a text. */
  json(column: string, row: number): Json {
    const cell = this.#cell(column, row);
    const columnIndex = this.#columnIndexes.get(column);
    if (cell === null || columnIndex === undefined || cell instanceof Float32Array) return null;
    const { type } = this.#columns[columnIndex]!;
    if (type === 'json' && typeof cell === 'string') return (jsonOf(cell) as Json | undefined) ?? null;
    if (typeof cell !== 'bigint') return cell;
    if (type === 'timestamp') return formatInstant(cell);
    return cell >= -(2n ** 53n) && cell <= 2n ** 53n ? Number(cell) : String(cell);
  }

  systemFrom(row: number): bigint | null {
    return this.instant('system_from', row);
  }

  #cell(column: string, row: number): ReturnType<typeof cellAt> {
    const columnIndex = this.#columnIndexes.get(column);
    if (columnIndex === undefined) return null;
    const { columns, selection, first } = this.#batch;
    return cellAt(columns[columnIndex]!, this.#columns[columnIndex]!.type, selection === null ? first + row : selection[row]!);
  }
}

function instantIn(text: string): bigint | null {
  try {
    return parseZonedInstant(text);
  } catch {
    return null;
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Hands rows of these types to `take`, a batch each step; those alone that are wanted. `columns` are names in the role. With
 * `identifiers`, rows without any of them may be left out.
 */
export function* scanRoles(
  execution: Execution,
  types: readonly ReadType[],
  columns: readonly string[],
  take: (batch: RoleBatch) => void,
  wanted: RowsWanted | null = null,
  identifiers?: readonly IdentifierPredicate[],
): Steps<void> {
  for (const type of types) {
    let scan: ScanOperator;
    const stored = storedColumns(execution, type, wanted === null ? columns : [...columns, wanted.column]);
    const columnIndexes = new Map([...stored.keys()].map((name, i) => [name, i]));
    const read = [...stored.values()];
    try {
      scan = new ScanOperator(scanNode(execution, type.type, read, wantedOf(type, wanted)), execution, 0, { identifiers });
    } catch (error) {
      if (!type.isNamed && isClosed(error)) continue;
      throw error;
    }
    try {
      for (let batch = scan.next(); batch !== null; batch = scan.next()) {
        const left = wanted === null ? batch : only(new RoleBatch(type.type, batch, read, columnIndexes), batch, wanted);
        for (let at = 0; at < left.count; at += rowsAtOnce) {
          take(new RoleBatch(type.type, rowsFrom(left, at), read, columnIndexes));
          yield;
        }
        if (left.count === 0) yield;
      }
    } finally {
      scan.close();
    }
  }
}

/** A reader may take microseconds for a row. */
const rowsAtOnce = 1_024;

function rowsFrom({ columns, selection, first, count }: Batch, at: number): Batch {
  const rows = Math.min(rowsAtOnce, count - at);
  return selection === null
    ? { columns, selection, first: first + at, count: rows }
    : { columns, selection: selection.subarray(at, at + rows), first, count: rows };
}

/** Columns of the type by their names in the role; columns that the type lacks are left out. */
function storedColumns({ snapshot }: Execution, role: ReadType, names: readonly string[]): ReadonlyMap<string, PlanColumn> {
  const definition = snapshot.catalog.type(role.type);
  const columns = new Map<string, PlanColumn>();
  for (const name of rowColumns) columns.set(name, { name, type: name === '_pk' ? 'string' : 'timestamp' });
  for (const name of names) {
    const column = role.columns.get(name);
    const type: ColumnType | undefined = column === undefined ? undefined : (definition?.properties[column]?.type ?? 'string');
    if (column !== undefined && type !== undefined) columns.set(name, { name: column, type });
  }
  return columns;
}

function wantedOf({ columns }: ReadType, wanted: RowsWanted | null): RowsWanted | null {
  if (wanted === null || wanted.column === '_pk') return wanted;
  const column = columns.get(wanted.column);
  return column === undefined ? null : { ...wanted, column };
}

function scanNode({ snapshot }: Execution, type: string, columns: readonly PlanColumn[], wanted: RowsWanted | null): ScanNode {
  const definition = snapshot.catalog.type(type);
  const masked = snapshot.masksOf(type);
  const constant = (cell: string) => ({ kind: 'constant', cell, type: 'string' }) as const;
  const isKey = wanted !== null && !masked.has('_pk') && !masked.has(wanted.column);
  const byKey = isKey && (wanted.column === '_pk' || wanted.column === definition?.primaryKey);
  const only = wanted !== null && !byKey && wanted.texts.length === 1 && !masked.has(wanted.column) ? wanted : null;
  const property = only === null ? undefined : definition?.properties[only.column];
  return {
    kind: 'scan',
    type,
    primaryKey: definition?.primaryKey ?? null,
    masked,
    columns,
    keys: byKey ? wanted.texts.map(constant) : null,
    zones:
      property?.type === 'string' ? [{ column: only!.column, type: 'string', op: '=', value: constant(only!.texts[0]!) }] : [],
    after: null,
    whole: true,
  };
}

function only(rows: RoleBatch, batch: Batch, { column, texts }: RowsWanted): Batch {
  const roleRows: number[] = [];
  for (let row = 0; row < batch.count; row++) {
    const text = rows.text(column, row);
    if (text !== null && texts.includes(text))
      roleRows.push(batch.selection === null ? batch.first + row : batch.selection[row]!);
  }
  return { columns: batch.columns, selection: Int32Array.from(roleRows), first: 0, count: roleRows.length };
}
