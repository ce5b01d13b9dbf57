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

const plainProperty = { required: false, masked: false, indexed: false, subject: false, dims: 0 } as const;

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
  knownType: TypeDefinition | undefined,
  { name, catalog, stored: storedColumns, rejections, newKey, isPatch }: BatchChecks,
): CheckedBatch {
  const typeBefore = knownType ?? { name, properties: {}, open: true, primaryKey: null, graphTriggers: [], ontologyVersion: 0 };
  const typeContract = typeContractOf(typeBefore);
  /** The properties of the contract, until the batch adds to them. */
  let { properties: batchProperties } = typeContract;
  let isTypeChanged = knownType === undefined;
  const { columns } = batch;
  const checkedCells: NamedColumn[] = [];

  for (const batchColumn of batch.columns) {
    if (batchColumn.vector.kind === 'null' || isSystemInput(batchColumn.name, batchProperties, typeBefore.primaryKey)) continue;
    const declaredProperty = batchProperties.get(batchColumn.name);
    const fittedProperty = declaredProperty
      ? widenProperty(declaredProperty, batchColumn, typeBefore, batch.length, storedColumns)
      : inferProperty(batchColumn, typeBefore, batch.length);
    if (typeof fittedProperty === 'string') {
      refuseColumn(batchColumn, fittedProperty, batch.length, rejections);
      continue;
    }
    if (fittedProperty !== declaredProperty) {
      if (batchProperties === typeContract.properties) batchProperties = new Map(batchProperties);
      (batchProperties as Map<string, PropertyDefinition>).set(batchColumn.name, fittedProperty);
      isTypeChanged = true;
    }
    checkedCells.push({
      name: batchColumn.name,
      type: fittedProperty.type,
      vector: fitColumn(batchColumn, fittedProperty, batch.length, rejections, typeBefore.open),
    });
  }
  if (batchProperties.size > limits.columnsPerType) {
    throw new ServiceError('REL_INVALID', `a type has at most ${limits.columnsPerType} properties`);
  }
  if (!isPatch) checkRequired(typeContract.required, checkedCells, batch.length, rejections);
  const batchKeys = batchKeysOf(
    { primaryKey: typeBefore.primaryKey, columns, cells: checkedCells },
    batch.length,
    rejections,
    newKey,
    isPatch,
  );
  if (!batchProperties.has('id')) keepSentId(typeBefore.primaryKey, columns, checkedCells, batch.length, rejections);
  return {
    definition: isTypeChanged ? evolveDefinition(typeBefore, batchProperties, catalog) : typeBefore,
    definitionChanged: isTypeChanged,
    length: batch.length,
    subject: typeContract.subject,
    required: typeContract.required,
    cells: checkedCells,
    keys: batchKeys,
    validFrom: validBoundsOf(batchColumnNamed(columns, 'valid_from'), batch.length, rejections),
    validTo: validBoundsOf(batchColumnNamed(columns, 'valid_to'), batch.length, rejections),
  };
}

/** The part of a definition that every batch needs. */
interface TypeContract {
  readonly properties: ReadonlyMap<string, PropertyDefinition>;
  readonly required: readonly string[];
  readonly subject: string | null;
}

const typeContracts = new WeakMap<TypeDefinition, TypeContract>();

/** Kept for as long as its definition: for a batch of one row, making it would cost more than all the rest. */
function typeContractOf(definition: TypeDefinition): TypeContract {
  const knownContract = typeContracts.get(definition);
  if (knownContract) return knownContract;
  const declaredProperties = Object.entries(definition.properties);
  const requiredProperties = declaredProperties.filter(([, property]) => property.required).map(([name]) => name);
  const typeContract = {
    properties: new Map(declaredProperties),
    required: requiredProperties,
    subject: subjectProperty(definition),
  };
  typeContracts.set(definition, typeContract);
  return typeContract;
}

function batchColumnNamed(batchColumns: readonly NamedColumn[], name: string): NamedColumn | undefined {
  for (const batchColumn of batchColumns) if (batchColumn.name === name) return batchColumn;
  return undefined;
}

/** Columns that are read apart: key, bounds, provenance, and an undeclared `id`, be it as primary key. */
function isSystemInput(
  columnName: string,
  properties: ReadonlyMap<string, PropertyDefinition>,
  primaryKey: string | null,
): boolean {
  if (columnName === 'id') return !properties.has('id') && primaryKey !== 'id';
  return columnName === '_pk' || columnName === 'valid_from' || columnName === 'valid_to' || columnName === provenanceColumn;
}

/** The definition of an undeclared column, or why it is refused. */
function inferProperty(inferredColumn: NamedColumn, type: TypeDefinition, length: number): PropertyDefinition | string {
  const { name } = inferredColumn;
  if (isReservedName(name)) return 'is set by the store and cannot be written';
  if (name.startsWith(embeddingPrefix)) {
    const vectorDims = vectorDimsOf(inferredColumn, length);
    return vectorDims >= 1 && vectorDims <= limits.vectorDims
      ? { ...plainProperty, type: 'vector', dims: vectorDims }
      : 'must be a vector';
  }
  if (!type.open) return 'is not in the type contract';
  try {
    checkIdentifier(name, 'a property name');
  } catch (error) {
    if (error instanceof ServiceError) return error.message;
    throw error;
  }
  return {
    ...plainProperty,
    type: inferredColumn.type,
    dims: inferredColumn.vector.kind === 'vec' ? inferredColumn.vector.dims : 0,
  };
}

/**
 * An open type's integers become numbers when a fraction arrives and every stored one stays exact; its integers, numbers
 * and booleans become text when text arrives.
 */
function widenProperty(
  property: PropertyDefinition,
  widerColumn: NamedColumn,
  type: TypeDefinition,
  length: number,
  storedColumns: StoredColumns,
): PropertyDefinition {
  if (!type.open || type.primaryKey === widerColumn.name || property.subject) return property;
  if (widerColumn.type === 'string' && becomesText(property.type)) return { ...property, type: 'string' };
  if (property.type !== 'integer' || widerColumn.type !== 'number') return property;
  if (widerColumn.vector.kind !== 'f64') return property;
  const { values, nulls } = widerColumn.vector;
  for (let row = 0; row < length; row++) {
    if (nulls?.[row] === 1 || Number.isSafeInteger(values[row]!)) continue;
    return storedColumns.integersFitNumber(type.name, widerColumn.name) ? { ...property, type: 'number' } : property;
  }
  return property;
}

function refuseColumn(refusedColumn: NamedColumn, columnRefusal: string, length: number, rejections: RejectedRows): void {
  const refusedNulls = refusedColumn.vector.kind === 'null' ? null : refusedColumn.vector.nulls;
  for (let row = 0; row < length; row++) {
    if (refusedNulls?.[row] !== 1)
      rejections.add(
        row,
        'REL_UNKNOWN_COLUMN',
        `column ${JSON.stringify(refusedColumn.name.slice(0, limits.identifierLength))} ${columnRefusal}`,
      );
  }
}

function checkRequired(
  required: readonly string[],
  checkedCells: readonly NamedColumn[],
  length: number,
  rejections: RejectedRows,
): void {
  for (const requiredName of required) {
    const requiredVector = batchColumnNamed(checkedCells, requiredName)?.vector ?? { kind: 'null' };
    if (requiredVector.kind !== 'null' && !requiredVector.nulls) continue;
    for (let row = 0; row < length; row++) {
      if (isCellNull(requiredVector, row))
        rejections.add(row, 'REL_REQUIRED', `property ${JSON.stringify(requiredName)} is required`, requiredName);
    }
  }
}

/** `_pk`: the declared primary key, else a sent `_pk`, else `idColumn`, else a new one. */
function batchKeysOf(
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
  const primaryKeyColumn = primaryKey === null ? undefined : batchColumnNamed(cells, primaryKey);
  const sentKeyColumn = batchColumnNamed(columns, '_pk');
  const idColumn = batchColumnNamed(cells, 'id') ?? batchColumnNamed(columns, 'id');
  const onlyKeyColumn = primaryKey === null ? (sentKeyColumn ?? idColumn) : primaryKeyColumn;
  if (
    onlyKeyColumn?.type === 'string' &&
    onlyKeyColumn.vector.kind === 'text' &&
    !onlyKeyColumn.vector.nulls &&
    (primaryKey === null || !sentKeyColumn)
  ) {
    checkKeySizes(onlyKeyColumn.vector, length, rejections);
    return onlyKeyColumn.vector;
  }
  const keySources = (
    primaryKey === null ? [sentKeyColumn, idColumn] : isPatch ? [primaryKeyColumn, sentKeyColumn] : [primaryKeyColumn]
  ).filter((column) => column !== undefined);
  const keyBuilder = new VectorBuilder('string', Math.max(1, length));
  for (let row = 0; row < length; row++) {
    if (rejections.has(row)) {
      keyBuilder.appendNull();
      continue;
    }
    let rowKey: string | null = null;
    for (const keySource of keySources) {
      const keyCell = cellAt(keySource.vector, keySource.type, row);
      if (keyCell === null) continue;
      if (!canBeKey(keySource.type)) rejections.add(row, 'REL_TYPE_MISMATCH', `a key can't be ${keySource.type}`);
      rowKey = keyText(keyCell);
      break;
    }
    if (primaryKey !== null) {
      const sentKey = sentKeyColumn ? cellAt(sentKeyColumn.vector, sentKeyColumn.type, row) : null;
      if (rowKey === null)
        rejections.add(row, 'REL_REQUIRED', `primary key ${JSON.stringify(primaryKey)} is required`, primaryKey);
      else if (sentKey !== null && keyText(sentKey) !== rowKey)
        rejections.add(row, 'REL_INVALID', '_pk differs from the primary key');
      keyBuilder.append(rowKey);
    } else keyBuilder.append(rowKey ?? newKey());
  }
  const builtKeys = keyBuilder.build();
  const batchKeys =
    builtKeys.kind === 'text'
      ? builtKeys
      : { kind: 'text' as const, offsets: new Uint32Array(length + 1), heap: new Uint8Array(), nulls: null };
  checkKeySizes(batchKeys, length, rejections);
  return batchKeys;
}

function checkKeySizes(batchKeys: Extract<Vector, { kind: 'text' }>, length: number, rejections: RejectedRows): void {
  for (let row = 0; row < length; row++) {
    const keySize = batchKeys.offsets[row + 1]! - batchKeys.offsets[row]!;
    if (keySize === 0) rejections.add(row, 'REL_INVALID', 'a key must not be empty');
    else if (keySize > limits.keyBytes) rejections.add(row, 'REL_INVALID', `a key has at most ${limits.keyBytes} bytes`);
  }
}

/** An `idColumn` beside another key is stored as text; one that is the key itself would be stored twice. */
function keepSentId(
  primaryKey: string | null,
  columns: readonly NamedColumn[],
  checkedCells: NamedColumn[],
  length: number,
  rejections: RejectedRows,
): void {
  const idColumn = batchColumnNamed(columns, 'id');
  if (!idColumn || idColumn.vector.kind === 'null' || (primaryKey === null && !batchColumnNamed(columns, '_pk'))) return;
  if (idColumn.type === 'string') {
    checkedCells.push(idColumn);
    return;
  }
  const idBuilder = new VectorBuilder('string', Math.max(1, length));
  for (let row = 0; row < length; row++) {
    const idCell = cellAt(idColumn.vector, idColumn.type, row);
    if (idCell !== null && !canBeKey(idColumn.type)) rejections.add(row, 'REL_TYPE_MISMATCH', `an id can't be ${idColumn.type}`);
    idBuilder.append(idCell === null ? null : keyText(idCell));
  }
  checkedCells.push({ name: 'id', type: 'string', vector: idBuilder.build() });
}

function validBoundsOf(column: NamedColumn | undefined, length: number, rejections: RejectedRows): Vector {
  return column ? fitColumn(column, { ...plainProperty, type: 'timestamp' }, length, rejections) : { kind: 'null' };
}

function vectorDimsOf(column: NamedColumn, length: number): number {
  const { vector } = column;
  if (vector.kind === 'vec') return vector.dims;
  if (column.type !== 'json') return 0;
  for (let row = 0; row < length; row++) {
    const vectorCell = cellAt(vector, 'json', row);
    if (vectorCell === null) continue;
    try {
      const parsedVector: unknown = JSON.parse(String(vectorCell));
      return Array.isArray(parsedVector) ? parsedVector.length : 0;
    } catch {
      return 0;
    }
  }
  return 0;
}

function isCellNull(vector: Vector, row: number): boolean {
  return vector.kind === 'null' || vector.nulls?.[row] === 1;
}
