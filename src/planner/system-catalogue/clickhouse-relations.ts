/** Rows of `system`, as ClickHouse's clients ask for them: types and views are tables, branches are databases. */
import { scalarFunctions } from '../expressions/functions/all.ts';
import { aggregateFunctions } from '../aggregate-functions.ts';
import { relationColumns } from './relation-columns.ts';
import type { CatalogueContents, Table } from './catalogue-contents.ts';
import type { Maker } from './row-maker.ts';
import type { WireType } from './postgres-column-types.ts';

/** The database of the session: there is one branch that it reads. */
const databaseOf = ({ session }: CatalogueContents): string => session.database;

/** Relations of `system` are in it themselves. */
const own = relationColumns.filter(({ schema }) => schema === 'system');

const engineOf = ({ kind }: Table): string => (kind === 'r' ? 'Annals' : 'MaterializedView');

export const systemRows: Readonly<Record<string, Maker>> = {
  'system.one': {
    *all() {
      yield { dummy: 0 };
    },
  },
  'system.databases': {
    base: { engine: 'Annals', data_path: '', metadata_path: '', uuid: nobody(), comment: '' },
    *all(facts) {
      const names = new Set([databaseOf(facts), ...facts.databases.map(({ name }) => (name === 'main' ? 'default' : name))]);
      for (const name of names) if (name !== 'annals') yield { name };
      yield { name: 'system' };
    },
  },
  'system.tables': {
    base: {
      uuid: nobody(),
      is_temporary: 0,
      metadata_path: '',
      create_table_query: '',
      partition_key: '',
      sampling_key: '',
      comment: '',
    },
    *all() {
      for (const { name } of own) yield { database: 'system', name, engine: 'System', engine_full: 'System', as_select: '' };
    },
    *ofTable(table, facts) {
      const key = table.key?.name ?? '';
      yield {
        database: databaseOf(facts),
        name: table.name,
        engine: engineOf(table),
        engine_full: engineOf(table),
        as_select: table.sql ?? '',
        sorting_key: key,
        primary_key: key,
      };
    },
  },
  'system.columns': {
    base: { default_kind: '', default_expression: '', comment: '' },
    *all() {
      for (const { name: table, columns } of own)
        for (const [at, { name, type }] of columns.entries())
          yield {
            database: 'system',
            table,
            name,
            type: type === 'int8' ? 'Nullable(Int64)' : 'Nullable(String)',
            position: at + 1,
            is_in_primary_key: 0,
          };
    },
    ofColumns: {
      hasOwn: false,
      ofTable: (table, facts) => [[table, facts.columnsOf(table)]],
      cells: {
        database: (_, __, facts) => databaseOf(facts),
        table: (_, { name }) => name,
        name: ({ name }) => name,
        type: ({ type }, _, { session }) => columnarTypeName(type, session.variables.instants === 'int8'),
        position: ({ number }) => number,
        is_in_primary_key: ({ name }, owner, facts) => (facts.tableOf(owner.oid)?.key?.name === name ? 1 : 0),
      },
    },
  },
  'system.settings': {
    base: { changed: 0, readonly: 0, min: null, max: null, type: 'String' },
    *all({ session }) {
      for (const { name, value, about } of session.variables.all()) yield { name, value, description: about };
    },
  },
  'system.functions': {
    base: { case_insensitive: 1, alias_to: '' },
    *all() {
      for (const { name, summary } of scalarFunctions) yield { name, is_aggregate: 0, description: summary };
      for (const name of Object.keys(aggregateFunctions)) yield { name, is_aggregate: 1, description: '' };
    },
  },
};

function nobody(): string {
  return '00000000-0000-0000-0000-000000000000';
}

/** `isOld`: for a client that knows neither DateTime64 nor Bool. */
function columnarTypeName({ name }: WireType, isOld: boolean): string {
  switch (name) {
    case 'int8':
      return 'Nullable(Int64)';
    case 'float8':
      return 'Nullable(Float64)';
    case 'bool':
      return isOld ? 'Nullable(UInt8)' : 'Nullable(Bool)';
    case 'timestamptz':
      return "Nullable(DateTime64(9, 'UTC'))";
    case 'vector':
      return 'Array(Float32)';
    default:
      return 'Nullable(String)';
  }
}
