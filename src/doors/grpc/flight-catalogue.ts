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

const text = (name: string, nullable = false): Field => new Field(name, new Utf8(), nullable);

/** Columns of an answer of each kind. */
export function catalogueFields(catalogueRequest: CatalogueRequest): Field[] {
  switch (catalogueRequest.kind) {
    case 'sql-info':
      return [new Field('info_name', new Uint32(), false), new Field('value', infoType, false)];
    case 'catalogs':
      return [text('catalog_name')];
    case 'schemas':
      return [text('catalog_name', true), text('db_schema_name')];
    case 'tables':
      return [
        text('catalog_name', true),
        text('db_schema_name', true),
        text('table_name'),
        text('table_type'),
        ...(catalogueRequest.withSchemas ? [new Field('table_schema', new Binary(), false)] : []),
      ];
    case 'table-types':
      return [text('table_type')];
    case 'primary-keys':
      return [
        text('catalog_name', true),
        text('db_schema_name', true),
        text('table_name'),
        text('column_name'),
        new Field('key_sequence', new Int32(), false),
        text('key_name', true),
      ];
  }
}

/** The query for a catalogue command; null: it needs none. */
export function catalogueQuestion(catalogueRequest: CatalogueRequest): CatalogueQuestion | null {
  const conditions: string[] = [];
  const parameters: string[] = [];
  const narrow = (condition: string, value: string | null): void => {
    if (value === null) return;
    parameters.push(value);
    conditions.push(condition.replace('?', `$${parameters.length}`));
  };
  const where = (): string => (conditions.length === 0 ? '' : ` WHERE ${conditions.join(' AND ')}`);
  switch (catalogueRequest.kind) {
    case 'sql-info':
      return null;
    case 'catalogs':
      return { sql: 'SELECT catalog_name FROM information_schema.information_schema_catalog_name', parameters };
    case 'schemas':
      narrow('catalog_name = ?', catalogueRequest.catalog);
      narrow('schema_name LIKE ?', catalogueRequest.pattern);
      return { sql: `SELECT catalog_name, schema_name FROM information_schema.schemata${where()} ORDER BY 1, 2`, parameters };
    case 'tables': {
      narrow('table_catalog = ?', catalogueRequest.catalog);
      narrow('table_schema LIKE ?', catalogueRequest.schemaPattern);
      narrow('table_name LIKE ?', catalogueRequest.pattern);
      if (catalogueRequest.types.length > 0) {
        conditions.push(`table_type IN (${catalogueRequest.types.map((_, i) => `$${parameters.length + i + 1}`).join(', ')})`);
        parameters.push(...catalogueRequest.types);
      }
      const columns = 'table_catalog, table_schema, table_name, table_type';
      return { sql: `SELECT ${columns} FROM information_schema.tables${where()} ORDER BY 4, 1, 2, 3`, parameters };
    }
    case 'table-types':
      return { sql: 'SELECT DISTINCT table_type FROM information_schema.tables ORDER BY 1', parameters };
    case 'primary-keys':
      narrow('k.table_catalog = ?', catalogueRequest.catalog);
      narrow('k.table_schema = ?', catalogueRequest.schema);
      narrow('k.table_name = ?', catalogueRequest.table);
      conditions.push("c.constraint_type = 'PRIMARY KEY'");
      return {
        sql:
          'SELECT k.table_catalog, k.table_schema, k.table_name, k.column_name, k.ordinal_position, k.constraint_name ' +
          'FROM information_schema.key_column_usage k JOIN information_schema.table_constraints c ' +
          `ON c.constraint_name = k.constraint_name AND c.table_name = k.table_name${where()} ORDER BY 5`,
        parameters,
      };
  }
}

/** A stream of Arrow IPC of these rows; a member of a row is a cell, or the bytes of one. */
export function catalogueStream(fields: readonly Field[], rows: readonly (readonly (Cell | Uint8Array)[])[]): Uint8Array {
  const schema = new Schema([...fields]);
  const children = fields.map(({ type }, i) =>
    columnOf(
      type,
      rows.map((row) => row[i] ?? null),
    ),
  );
  return streamOf(schema, children, rows.length);
}

function columnOf(type: DataType, cells: readonly (Cell | Uint8Array)[]) {
  const values = cells.map((cell) => (type instanceof Int32 && cell !== null ? Number(cell) : cell));
  return vectorFromArray(values, type).data[0] ?? makeData({ type, length: 0 } as never);
}

function streamOf(schema: Schema, children: ReturnType<typeof columnOf>[], length: number): Uint8Array {
  const data = makeData({ type: new Struct(schema.fields), length, nullCount: 0, children });
  return tableToIPC(new Table(schema, [new RecordBatch(schema, data)]), 'stream');
}

/** Columns of server information: the place of a value is the number of its type in the union. */
const infoFields = [
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
const infoType = new DenseUnion(Int32Array.from(infoFields, (_, i) => i) as never, [...infoFields]);

/** Server information by its number. */
function factsOf(version: string): ReadonlyMap<number, string | boolean | bigint | number> {
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
  const facts = factsOf(version);
  const names = (catalogueRequest.length === 0 ? [...facts.keys()] : catalogueRequest).filter((name) => facts.has(name));
  const typeIds = new Int8Array(names.length);
  const valueOffsets = new Int32Array(names.length);
  const values: (string | boolean | bigint | number)[][] = infoFields.map(() => []);
  names.forEach((name, i) => {
    const value = facts.get(name)!;
    typeIds[i] = ['string', 'boolean', 'bigint', 'number'].indexOf(typeof value);
    valueOffsets[i] = values[typeIds[i]!]!.push(value) - 1;
  });
  const children = infoFields.map(({ type }, i) => vectorFromArray(values[i]!, type as DataType).data[0]!);
  const union = makeData({ type: infoType, length: names.length, nullCount: 0, typeIds, valueOffsets, children } as never);
  const fields = catalogueFields({ kind: 'sql-info', info: [] });
  return streamOf(new Schema(fields), [columnOf(new Uint32(), names as never), union], names.length);
}
