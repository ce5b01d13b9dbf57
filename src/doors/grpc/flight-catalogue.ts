/**
 * Metadata of Flight SQL: the server, and its tables, schemas and keys. The latter are rows of `information_schema`, read by an
 * ordinary query; they leave in the columns that the protocol prescribes. Source: FlightSql.proto.
 */
import {
  Binary,
  Bool,
  type DataType,
  DenseUnion,
  Field,
  Int32,
  Int64,
  List,
  makeData,
  Map_,
  RecordBatch,
  Schema,
  Struct,
  Table,
  tableToIPC,
  Uint32,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import type { Cell } from '../../log/values/value.ts';
import type { CatalogueRequest } from './flight-messages.ts';

/** A question about the catalogue, and what its cells are called and typed in the answer. */
export interface CatalogueQuestion {
  readonly sql: string;
  readonly parameters: readonly string[];
}

const textColumn = (columnName: string, isNullable = false): Field => new Field(columnName, new Utf8(), isNullable);

/** Columns of an answer of each kind. */
export function catalogueFields(catalogueRequest: CatalogueRequest): Field[] {
  switch (catalogueRequest.kind) {
    case 'sql-info':
      return [new Field('info_name', new Uint32(), false), new Field('value', sqlInfoUnion, false)];
    case 'catalogs':
      return [textColumn('catalog_name')];
    case 'schemas':
      return [textColumn('catalog_name', true), textColumn('db_schema_name')];
    case 'tables':
      return [
        textColumn('catalog_name', true),
        textColumn('db_schema_name', true),
        textColumn('table_name'),
        textColumn('table_type'),
        ...(catalogueRequest.withSchemas ? [new Field('table_schema', new Binary(), false)] : []),
      ];
    case 'table-types':
      return [textColumn('table_type')];
    case 'primary-keys':
      return [
        textColumn('catalog_name', true),
        textColumn('db_schema_name', true),
        textColumn('table_name'),
        textColumn('column_name'),
        new Field('key_sequence', new Int32(), false),
        textColumn('key_name', true),
      ];
  }
}

/** The query for a catalogue command; null: it needs none. */
export function catalogueQuestion(catalogueRequest: CatalogueRequest): CatalogueQuestion | null {
  const catalogueConditions: string[] = [];
  const catalogueParameters: string[] = [];
  const narrowCatalogue = (catalogueCondition: string, conditionValue: string | null): void => {
    if (conditionValue === null) return;
    catalogueParameters.push(conditionValue);
    catalogueConditions.push(catalogueCondition.replace('?', `$${catalogueParameters.length}`));
  };
  const catalogueWhere = (): string => (catalogueConditions.length === 0 ? '' : ` WHERE ${catalogueConditions.join(' AND ')}`);
  switch (catalogueRequest.kind) {
    case 'sql-info':
      return null;
    case 'catalogs':
      return {
        sql: 'SELECT catalog_name FROM information_schema.information_schema_catalog_name',
        parameters: catalogueParameters,
      };
    case 'schemas':
      narrowCatalogue('catalog_name = ?', catalogueRequest.catalog);
      narrowCatalogue('schema_name LIKE ?', catalogueRequest.pattern);
      return {
        sql: `SELECT catalog_name, schema_name FROM information_schema.schemata${catalogueWhere()} ORDER BY 1, 2`,
        parameters: catalogueParameters,
      };
    case 'tables': {
      narrowCatalogue('table_catalog = ?', catalogueRequest.catalog);
      narrowCatalogue('table_schema LIKE ?', catalogueRequest.schemaPattern);
      narrowCatalogue('table_name LIKE ?', catalogueRequest.pattern);
      if (catalogueRequest.types.length > 0) {
        catalogueConditions.push(
          `table_type IN (${catalogueRequest.types.map((_, i) => `$${catalogueParameters.length + i + 1}`).join(', ')})`,
        );
        catalogueParameters.push(...catalogueRequest.types);
      }
      const tableColumns = 'table_catalog, table_schema, table_name, table_type';
      return {
        sql: `SELECT ${tableColumns} FROM information_schema.tables${catalogueWhere()} ORDER BY 4, 1, 2, 3`,
        parameters: catalogueParameters,
      };
    }
    case 'table-types':
      return { sql: 'SELECT DISTINCT table_type FROM information_schema.tables ORDER BY 1', parameters: catalogueParameters };
    case 'primary-keys':
      narrowCatalogue('k.table_catalog = ?', catalogueRequest.catalog);
      narrowCatalogue('k.table_schema = ?', catalogueRequest.schema);
      narrowCatalogue('k.table_name = ?', catalogueRequest.table);
      catalogueConditions.push("c.constraint_type = 'PRIMARY KEY'");
      return {
        sql:
          'SELECT k.table_catalog, k.table_schema, k.table_name, k.column_name, k.ordinal_position, k.constraint_name ' +
          'FROM information_schema.key_column_usage k JOIN information_schema.table_constraints c ' +
          `ON c.constraint_name = k.constraint_name AND c.table_name = k.table_name${catalogueWhere()} ORDER BY 5`,
        parameters: catalogueParameters,
      };
  }
}

/** A stream of Arrow IPC of these rows; a member of a row is a cell, or the bytes of one. */
export function catalogueStream(
  arrowFields: readonly Field[],
  catalogueRows: readonly (readonly (Cell | Uint8Array)[])[],
): Uint8Array {
  const arrowSchema = new Schema([...arrowFields]);
  const arrowColumns = arrowFields.map(({ type: arrowType }, i) =>
    arrowColumnOf(
      arrowType,
      catalogueRows.map((catalogueRow) => catalogueRow[i] ?? null),
    ),
  );
  return arrowStreamOf(arrowSchema, arrowColumns, catalogueRows.length);
}

function arrowColumnOf(arrowType: DataType, catalogueCells: readonly (Cell | Uint8Array)[]) {
  const arrowValues = catalogueCells.map((catalogueCell) =>
    arrowType instanceof Int32 && catalogueCell !== null ? Number(catalogueCell) : catalogueCell,
  );
  return vectorFromArray(arrowValues, arrowType).data[0] ?? makeData({ type: arrowType, length: 0 } as never);
}

function arrowStreamOf(arrowSchema: Schema, arrowColumns: ReturnType<typeof arrowColumnOf>[], rowCount: number): Uint8Array {
  const structData = makeData({ type: new Struct(arrowSchema.fields), length: rowCount, nullCount: 0, children: arrowColumns });
  return tableToIPC(new Table(arrowSchema, [new RecordBatch(arrowSchema, structData)]), 'stream');
}

/** Columns of server information: the place of a value is the number of its type in the union. */
const sqlInfoFields = [
  new Field('string_value', new Utf8(), false),
  new Field('bool_value', new Bool(), false),
  new Field('bigint_value', new Int64(), false),
  new Field('int32_bitmask', new Int32(), false),
  new Field('string_list', new List(new Field('item', new Utf8(), true)), false),
  new Field(
    'int32_to_int32_list_map',
    new Map_(
      new Field(
        'entries',
        new Struct<{ key: Int32; value: List<Int32> }>([
          new Field('keys', new Int32(), false),
          new Field('values', new List(new Field('item', new Int32(), true)), true),
        ]),
        false,
      ),
    ),
    false,
  ),
] as const;
const sqlInfoUnion = new DenseUnion(Int32Array.from(sqlInfoFields, (_, i) => i) as never, [...sqlInfoFields]);

/** Server information by its number. */
function sqlInfoOf(version: string): ReadonlyMap<number, string | boolean | bigint | number> {
  return new Map<number, string | boolean | bigint | number>([
    [0, 'annals'],
    [1, version],
    // SQL reads; rows are written by DoPut.
    [3, true],
    [4, true],
    [5, false],
    [8, 0],
    [9, false],
    [500, false],
    [501, false],
    [502, false],
    // Names without quotes keep their case, in quotes or not.
    [503, 1n],
    [504, '"'],
    [505, 1n],
    [506, true],
    [507, 0n],
  ]);
}

/** Facts of the server, all of them where none is named. */
export function infoStream(catalogueRequest: readonly number[], version: string): Uint8Array {
  const sqlInfoByName = sqlInfoOf(version);
  const shownNames = (catalogueRequest.length === 0 ? [...sqlInfoByName.keys()] : catalogueRequest).filter((infoName) =>
    sqlInfoByName.has(infoName),
  );
  const typeIds = new Int8Array(shownNames.length);
  const valueOffsets = new Int32Array(shownNames.length);
  const infoValues: (string | boolean | bigint | number)[][] = sqlInfoFields.map(() => []);
  shownNames.forEach((infoName, i) => {
    const infoValue = sqlInfoByName.get(infoName)!;
    typeIds[i] = ['string', 'boolean', 'bigint', 'number'].indexOf(typeof infoValue);
    valueOffsets[i] = infoValues[typeIds[i]!]!.push(infoValue) - 1;
  });
  const infoColumns = sqlInfoFields.map(
    ({ type: infoFieldType }, i) => vectorFromArray(infoValues[i]!, infoFieldType as DataType).data[0]!,
  );
  const infoUnion = makeData({
    type: sqlInfoUnion,
    length: shownNames.length,
    nullCount: 0,
    typeIds,
    valueOffsets,
    children: infoColumns,
  } as never);
  const infoStreamFields = catalogueFields({ kind: 'sql-info', info: [] });
  return arrowStreamOf(
    new Schema(infoStreamFields),
    [arrowColumnOf(new Uint32(), shownNames as never), infoUnion],
    shownNames.length,
  );
}
