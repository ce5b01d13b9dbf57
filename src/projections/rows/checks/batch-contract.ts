/**
 * A batch against the contract of its type: which columns are properties, which are the store's own, what each cell must
 * be. Gives the cells to store, the keys and the bounds, and the definition if the batch adds to it. Pure.
 */
import { ServiceError } from '../../../errors.ts';
import type { NamedColumn, RowBatch, Vector } from '../../../log/values/columns.ts';
import type { PropertyDefinition, TypeDefinition } from '../../../log/entries/entry.ts';
import { becomesText, checkIdentifier, embeddingPrefix, limits } from '../../../log/values/value.ts';
import { cellAt, VectorBuilder } from '../../../log/values/vector-builder.ts';
import type { CatalogReader } from '../../access-paths.ts';
import { canBeKey, evolveDefinition, isReservedName, type StoredColumns } from '../../catalog/commands.ts';
import { subjectProperty } from '../../catalog/subject-property.ts';
import { fitColumn, keyText } from './fit-column.ts';
import type { RejectedRows } from '../cells/rejected-rows.ts';
import { provenanceColumn } from '../cells/row-provenance.ts';

export interface CheckedBatch {
  /** As it stands once the batch is written. */
  readonly definition: TypeDefinition;
  /** True when a `type` entry must come before the rows. */
  readonly definitionChanged: boolean;
  readonly length: number;
  /** The property that holds a row's subject; null: none. */
  readonly subject: string | null;
  /** Properties that no row is without. */
  readonly required: readonly string[];
  readonly cells: readonly NamedColumn[];
  /** Key of each row; of a rejected one maybe NULL. */
  readonly keys: Extract<Vector, { kind: 'text' }>;
  /** Bounds that rows brought; NULL or a null vector where none. */
  readonly validFrom: Vector;
  readonly validTo: Vector;
}

const plain = { required: false, masked: false, indexed: false, subject: false, dims: 0 } as const;

export interface BatchChecks {
  /** The type, which may be a new one. */
  readonly name: string;
  readonly catalog: CatalogReader;
  readonly stored: StoredColumns;
  readonly rejections: RejectedRows;
  readonly newKey: () => string;
  readonly isPatch: boolean;
}

/** `isPatch`: rows are not whole yet. Missing cells may be stored, and a `_pk` alone may name the row. */
export function checkBatch(
  batch: RowBatch,
  known: TypeDefinition | undefined,
  { name, catalog, stored, rejections, newKey, isPatch }: BatchChecks,
): CheckedBatch {
  const before = known ?? { name, properties: {}, open: true, primaryKey: null, graphTriggers: [], ontologyVersion: 0 };
  const contract = contractOf(before);
  /** The properties of the contract, until the batch adds to them. */
  let { properties } = contract;
  let changed = known === undefined;
  const { columns } = batch;
  const cells: NamedColumn[] = [];

  for (const column of batch.columns) {
    if (column.vector.kind === 'null' || isOwn(column.name, properties, before.primaryKey)) continue;
    const declared = properties.get(column.name);
    const property = declared
      ? widenProperty(declared, column, before, batch.length, stored)
      : inferProperty(column, before, batch.length);
    if (typeof property === 'string') {
      refuseColumn(column, property, batch.length, rejections);
      continue;
    }
    if (property !== declared) {
      if (properties === contract.properties) properties = new Map(properties);
      (properties as Map<string, PropertyDefinition>).set(column.name, property);
      changed = true;
    }
    cells.push({
      name: column.name,
      type: property.type,
      vector: fitColumn(column, property, batch.length, rejections, before.open),
    });
  }
  if (properties.size > limits.columnsPerType) {
    throw new ServiceError('REL_INVALID', `a type has at most ${limits.columnsPerType} properties`);
  }
  if (!isPatch) checkRequired(contract.required, cells, batch.length, rejections);
  const keys = keysOf({ primaryKey: before.primaryKey, columns, cells }, batch.length, rejections, newKey, isPatch);
  if (!properties.has('id')) keepSentId(before.primaryKey, columns, cells, batch.length, rejections);
  return {
    definition: changed ? evolveDefinition(before, properties, catalog) : before,
    definitionChanged: changed,
    length: batch.length,
    subject: contract.subject,
    required: contract.required,
    cells,
    keys,
    validFrom: boundOf(columnNamed(columns, 'valid_from'), batch.length, rejections),
    validTo: boundOf(columnNamed(columns, 'valid_to'), batch.length, rejections),
  };
}

/** The part of a definition that every batch needs. */
interface Contract {
  readonly properties: ReadonlyMap<string, PropertyDefinition>;
  readonly required: readonly string[];
  readonly subject: string | null;
}

const contracts = new WeakMap<TypeDefinition, Contract>();

/** Kept for as long as its definition: for a batch of one row, making it would cost more than all the rest. */
function contractOf(definition: TypeDefinition): Contract {
  const known = contracts.get(definition);
  if (known) return known;
  const entries = Object.entries(definition.properties);
  const required = entries.filter(([, property]) => property.required).map(([name]) => name);
  const contract = { properties: new Map(entries), required, subject: subjectProperty(definition) };
  contracts.set(definition, contract);
  return contract;
}

function columnNamed(columns: readonly NamedColumn[], name: string): NamedColumn | undefined {
  for (const column of columns) if (column.name === name) return column;
  return undefined;
}

/** Columns that are read apart: key, bounds, provenance, and an undeclared `id`, be it as primary key. */
function isOwn(name: string, properties: ReadonlyMap<string, PropertyDefinition>, primaryKey: string | null): boolean {
  if (name === 'id') return !properties.has('id') && primaryKey !== 'id';
  return name === '_pk' || name === 'valid_from' || name === 'valid_to' || name === provenanceColumn;
}

/** The definition of an undeclared column, or why it is refused. */
function inferProperty(column: NamedColumn, type: TypeDefinition, length: number): PropertyDefinition | string {
  const { name } = column;
  if (isReservedName(name)) return 'is set by the store and cannot be written';
  if (name.startsWith(embeddingPrefix)) {
    const dims = dimsOf(column, length);
    return dims >= 1 && dims <= limits.vectorDims ? { ...plain, type: 'vector', dims } : 'must be a vector';
  }
  if (!type.open) return 'is not in the type contract';
  try {
    checkIdentifier(name, 'a property name');
  } catch (error) {
    if (error instanceof ServiceError) return error.message;
    throw error;
  }
  return { ...plain, type: column.type, dims: column.vector.kind === 'vec' ? column.vector.dims : 0 };
}

/**
 * An open type's integers become numbers when a fraction arrives and every stored one stays exact; its integers, numbers
 * and booleans become text when text arrives.
 */
function widenProperty(
  property: PropertyDefinition,
  column: NamedColumn,
  type: TypeDefinition,
  length: number,
  stored: StoredColumns,
): PropertyDefinition {
  if (!type.open || type.primaryKey === column.name || property.subject) return property;
  if (column.type === 'string' && becomesText(property.type)) return { ...property, type: 'string' };
  if (property.type !== 'integer' || column.type !== 'number') return property;
  if (column.vector.kind !== 'f64') return property;
  const { values, nulls } = column.vector;
  for (let row = 0; row < length; row++) {
    if (nulls?.[row] === 1 || Number.isSafeInteger(values[row]!)) continue;
    return stored.integersFitNumber(type.name, column.name) ? { ...property, type: 'number' } : property;
  }
  return property;
}

function refuseColumn(column: NamedColumn, why: string, length: number, rejections: RejectedRows): void {
  const nulls = column.vector.kind === 'null' ? null : column.vector.nulls;
  for (let row = 0; row < length; row++) {
    if (nulls?.[row] !== 1)
      rejections.add(row, 'REL_UNKNOWN_COLUMN', `column ${JSON.stringify(column.name.slice(0, limits.identifierLength))} ${why}`);
  }
}

function checkRequired(
  required: readonly string[],
  cells: readonly NamedColumn[],
  length: number,
  rejections: RejectedRows,
): void {
  for (const name of required) {
    const vector = columnNamed(cells, name)?.vector ?? { kind: 'null' };
    if (vector.kind !== 'null' && !vector.nulls) continue;
    for (let row = 0; row < length; row++) {
      if (isNull(vector, row)) rejections.add(row, 'REL_REQUIRED', `property ${JSON.stringify(name)} is required`, name);
    }
  }
}

/** `_pk`: the declared primary key, else a sent `_pk`, else `id`, else a new one. */
function keysOf(
  {
    primaryKey,
    columns,
    cells,
  }: {
    readonly primaryKey: string | null;
    readonly columns: readonly NamedColumn[];
    readonly cells: readonly NamedColumn[];
  },
  length: number,
  rejections: RejectedRows,
  newKey: () => string,
  isPatch: boolean,
): Extract<Vector, { kind: 'text' }> {
  const declared = primaryKey === null ? undefined : columnNamed(cells, primaryKey);
  const sent = columnNamed(columns, '_pk');
  const id = columnNamed(cells, 'id') ?? columnNamed(columns, 'id');
  const only = primaryKey === null ? (sent ?? id) : declared;
  if (only?.type === 'string' && only.vector.kind === 'text' && !only.vector.nulls && (primaryKey === null || !sent)) {
    checkKeySizes(only.vector, length, rejections);
    return only.vector;
  }
  const sources = (primaryKey === null ? [sent, id] : isPatch ? [declared, sent] : [declared]).filter(
    (column) => column !== undefined,
  );
  const builder = new VectorBuilder('string', Math.max(1, length));
  for (let row = 0; row < length; row++) {
    if (rejections.has(row)) {
      builder.appendNull();
      continue;
    }
    let key: string | null = null;
    for (const source of sources) {
      const cell = cellAt(source.vector, source.type, row);
      if (cell === null) continue;
      if (!canBeKey(source.type)) rejections.add(row, 'REL_TYPE_MISMATCH', `a key can't be ${source.type}`);
      key = keyText(cell);
      break;
    }
    if (primaryKey !== null) {
      const other = sent ? cellAt(sent.vector, sent.type, row) : null;
      if (key === null) rejections.add(row, 'REL_REQUIRED', `primary key ${JSON.stringify(primaryKey)} is required`, primaryKey);
      else if (other !== null && keyText(other) !== key) rejections.add(row, 'REL_INVALID', '_pk differs from the primary key');
      builder.append(key);
    } else builder.append(key ?? newKey());
  }
  const built = builder.build();
  const keys =
    built.kind === 'text'
      ? built
      : { kind: 'text' as const, offsets: new Uint32Array(length + 1), heap: new Uint8Array(), nulls: null };
  checkKeySizes(keys, length, rejections);
  return keys;
}

function checkKeySizes(keys: Extract<Vector, { kind: 'text' }>, length: number, rejections: RejectedRows): void {
  for (let row = 0; row < length; row++) {
    const size = keys.offsets[row + 1]! - keys.offsets[row]!;
    if (size === 0) rejections.add(row, 'REL_INVALID', 'a key must not be empty');
    else if (size > limits.keyBytes) rejections.add(row, 'REL_INVALID', `a key has at most ${limits.keyBytes} bytes`);
  }
}

/** An `id` beside another key is stored as text; one that is the key itself would be stored twice. */
function keepSentId(
  primaryKey: string | null,
  columns: readonly NamedColumn[],
  cells: NamedColumn[],
  length: number,
  rejections: RejectedRows,
): void {
  const id = columnNamed(columns, 'id');
  if (!id || id.vector.kind === 'null' || (primaryKey === null && !columnNamed(columns, '_pk'))) return;
  if (id.type === 'string') {
    cells.push(id);
    return;
  }
  const builder = new VectorBuilder('string', Math.max(1, length));
  for (let row = 0; row < length; row++) {
    const cell = cellAt(id.vector, id.type, row);
    if (cell !== null && !canBeKey(id.type)) rejections.add(row, 'REL_TYPE_MISMATCH', `an id can't be ${id.type}`);
    builder.append(cell === null ? null : keyText(cell));
  }
  cells.push({ name: 'id', type: 'string', vector: builder.build() });
}

function boundOf(column: NamedColumn | undefined, length: number, rejections: RejectedRows): Vector {
  return column ? fitColumn(column, { ...plain, type: 'timestamp' }, length, rejections) : { kind: 'null' };
}

function dimsOf(column: NamedColumn, length: number): number {
  const { vector } = column;
  if (vector.kind === 'vec') return vector.dims;
  if (column.type !== 'json') return 0;
  for (let row = 0; row < length; row++) {
    const cell = cellAt(vector, 'json', row);
    if (cell === null) continue;
    try {
      const value: unknown = JSON.parse(String(cell));
      return Array.isArray(value) ? value.length : 0;
    } catch {
      return 0;
    }
  }
  return 0;
}

function isNull(vector: Vector, row: number): boolean {
  return vector.kind === 'null' || vector.nulls?.[row] === 1;
}
