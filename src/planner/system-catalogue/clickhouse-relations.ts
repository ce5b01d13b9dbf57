/** Rows of `system`, as ClickHouse's clients ask for them: types and views are tables, branches are databases. */
import { scalarFunctions } from '../expressions/functions/all.ts';
import { aggregateFunctions } from '../aggregate-functions.ts';
import { relationColumns } from './relation-columns.ts';
import type { CatalogueContents, Table } from './catalogue-contents.ts';
import type { Maker } from './row-maker.ts';
import type { WireType } from './postgres-column-types.ts';

/** The database of the session: there is one branch that it reads. */
const sessionDatabase = ({ session }: CatalogueContents): string => session.database;

/** Relations of `system` are in it themselves. */
const systemRelations = relationColumns.filter(({ schema }) => schema === 'system');

const tableEngine = ({ kind }: Table): string => (kind === 'r' ? 'Annals' : 'MaterializedView');

export const systemRows: Readonly<Record<string, Maker>> = {
  'system.one': {
    *all() {
      yield { dummy: 0 };
    },
  },
  'system.databases': {
    base: { engine: 'Annals', data_path: '', metadata_path: '', uuid: nilUuid(), comment: '' },
    *all(facts) {
      const databaseNames = new Set([
        sessionDatabase(facts),
        ...facts.databases.map(({ name: systemName }) => (systemName === 'main' ? 'default' : systemName)),
      ]);
      for (const name of databaseNames) if (name !== 'annals') yield { name };
      yield { name: 'system' };
    },
  },
  'system.tables': {
    base: {
      uuid: nilUuid(),
      is_temporary: 0,
      metadata_path: '',
      create_table_query: '',
      partition_key: '',
      sampling_key: '',
      comment: '',
    },
    *all() {
      for (const { name: systemName } of systemRelations)
        yield { database: 'system', name: systemName, engine: 'System', engine_full: 'System', as_select: '' };
    },
    *ofTable(table, facts) {
      const keyColumnName = table.key?.name ?? '';
      yield {
        database: sessionDatabase(facts),
        name: table.name,
        engine: tableEngine(table),
        engine_full: tableEngine(table),
        as_select: table.sql ?? '',
        sorting_key: keyColumnName,
        primary_key: keyColumnName,
      };
    },
  },
  'system.columns': {
    base: { default_kind: '', default_expression: '', comment: '' },
    *all() {
      for (const { name: table, columns } of systemRelations)
        for (const [columnOrdinal, { name: systemName, type }] of columns.entries())
          yield {
            database: 'system',
            table,
            name: systemName,
            type: type === 'int8' ? 'Nullable(Int64)' : 'Nullable(String)',
            position: columnOrdinal + 1,
            is_in_primary_key: 0,
          };
    },
    ofColumns: {
      hasOwn: false,
      ofTable: (table, facts) => [[table, facts.columnsOf(table)]],
      cells: {
        database: (_, __, facts) => sessionDatabase(facts),
        table: (_, { name }) => name,
        name: ({ name }) => name,
        type: ({ type }, _, { session }) => clickhouseTypeName(type, session.variables.instants === 'int8'),
        position: ({ number }) => number,
        is_in_primary_key: ({ name }, owner, facts) => (facts.tableOf(owner.oid)?.key?.name === name ? 1 : 0),
      },
    },
  },
  'system.settings': {
    base: { changed: 0, readonly: 0, min: null, max: null, type: 'String' },
    *all({ session }) {
      for (const { name: systemName, value, about } of session.variables.all())
        yield { name: systemName, value, description: about };
    },
  },
  'system.functions': {
    base: { case_insensitive: 1, alias_to: '' },
    *all() {
      for (const { name: systemName, summary } of scalarFunctions)
        yield { name: systemName, is_aggregate: 0, description: summary };
      for (const name of Object.keys(aggregateFunctions)) yield { name, is_aggregate: 1, description: '' };
    },
  },
};

function nilUuid(): string {
  return '00000000-0000-0000-0000-000000000000';
}

/** `isOldClient`: for a client that knows neither DateTime64 nor Bool. */
function clickhouseTypeName({ name }: WireType, isOldClient: boolean): string {
  switch (name) {
    case 'int8':
      return 'Nullable(Int64)';
    case 'float8':
      return 'Nullable(Float64)';
    case 'bool':
      return isOldClient ? 'Nullable(UInt8)' : 'Nullable(Bool)';
    case 'timestamptz':
      return "Nullable(DateTime64(9, 'UTC'))";
    case 'vector':
      return 'Array(Float32)';
    default:
      return 'Nullable(String)';
  }
}
