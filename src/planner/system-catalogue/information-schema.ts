/** Rows of `information_schema`. */
import { type CatalogueContents, type Constraint, constraintsOf, keyName, type Table } from './catalogue-contents.ts';
import type { Cells, Maker } from './row-maker.ts';
import { namespaces, owner } from './object-names.ts';
import { detailsOf, elementOf } from './catalogue-types.ts';

const yesNo = (flag: boolean): string => (flag ? 'YES' : 'NO');
const isTable = ({ kind }: Table): boolean => kind === 'r';
/** Materialized views are none of the standard's: this schema does not list them. */
const isListed = ({ kind }: Table): boolean => kind !== 'm';

function tableName(table: Table, { session }: CatalogueContents): Cells {
  return { table_catalog: session.database, table_schema: 'public', table_name: table.name };
}

const constraints = (table: Table, facts: CatalogueContents): readonly Constraint[] =>
  isTable(table) ? constraintsOf(table, facts) : [];

/** Columns of relations that are about constraints; `of` is the table that a row tells of, and its column. */
const constraintRows = (
  table: Table,
  facts: CatalogueContents,
  of: (constraint: Constraint) => readonly [table: Table, column: string],
): readonly Cells[] =>
  constraints(table, facts).map((each) => new ConstraintCells(facts.session.database, each, of(each)) as unknown as Cells);

const ownTable = ({ table, column }: Constraint): readonly [Table, string] => [table, column.name];

class ConstraintCells {
  readonly constraint_catalog: string;
  readonly #constraint: Constraint;
  readonly #table: string;
  readonly column_name: string;

  constructor(database: string, constraint: Constraint, [table, column]: readonly [Table, string]) {
    this.constraint_catalog = database;
    this.#constraint = constraint;
    this.#table = table.name;
    this.column_name = column;
  }

  get constraint_name(): string {
    return this.#constraint.name;
  }

  get table_catalog(): string {
    return this.constraint_catalog;
  }

  get table_name(): string {
    return this.#table;
  }

  get constraint_type(): string {
    return this.#constraint.target === null ? 'PRIMARY KEY' : 'FOREIGN KEY';
  }

  get enforced(): string {
    return yesNo(this.#constraint.target === null);
  }

  get position_in_unique_constraint(): number | null {
    return this.#constraint.target === null ? null : 1;
  }

  get unique_constraint_catalog(): string {
    return this.constraint_catalog;
  }

  get unique_constraint_name(): string | null {
    const { target } = this.#constraint;
    return target && keyName(target);
  }
}

const privileges: Maker = {
  names: { table_name: 'name' },
  *ofTable(table, facts) {
    for (const privilege of isTable(table) && facts.isReadable(table) ? ['INSERT', 'SELECT', 'UPDATE', 'DELETE'] : [])
      yield {
        grantor: owner.name,
        grantee: facts.session.user,
        ...tableName(table, facts),
        privilege_type: privilege,
        is_grantable: 'NO',
        with_hierarchy: yesNo(privilege === 'SELECT'),
      };
  },
};

export const informationRows: Readonly<Record<string, Maker>> = {
  'information_schema.information_schema_catalog_name': {
    *all({ session }) {
      yield { catalog_name: session.database };
    },
  },
  'information_schema.schemata': {
    *all({ session }) {
      for (const schema of Object.keys(namespaces))
        yield { catalog_name: session.database, schema_name: schema, schema_owner: owner.name };
    },
  },
  'information_schema.character_sets': {
    *all({ session }) {
      yield {
        character_set_name: 'UTF8',
        character_repertoire: 'UCS',
        form_of_use: 'UTF8',
        default_collate_catalog: session.database,
        default_collate_schema: 'pg_catalog',
        default_collate_name: 'default',
      };
    },
  },
  'information_schema.enabled_roles': {
    *all({ session }) {
      yield { role_name: session.user };
    },
  },
  'information_schema.tables': {
    names: { table_name: 'name' },
    *ofTable(table, facts) {
      if (!isListed(table)) return;
      const [type, isInsertable] = isTable(table) ? ['BASE TABLE', 'YES'] : ['VIEW', 'NO'];
      yield { ...tableName(table, facts), table_type: type, is_insertable_into: isInsertable, is_typed: 'NO' };
    },
    *ofRelation({ schema, name }, { session }) {
      yield {
        table_catalog: session.database,
        table_schema: schema,
        table_name: name,
        table_type: schema === 'pg_catalog' ? 'BASE TABLE' : 'VIEW',
        is_insertable_into: 'NO',
        is_typed: 'NO',
      };
    },
  },
  'information_schema.views': {
    names: { table_name: 'name' },
    *ofTable(table, facts) {
      if (table.kind !== 'v') return;
      const updates = { is_updatable: 'NO', is_insertable_into: 'NO', is_trigger_updatable: 'NO', is_trigger_deletable: 'NO' };
      const own = { view_definition: table.sql, check_option: 'NONE', is_trigger_insertable_into: 'NO' };
      yield { ...tableName(table, facts), ...own, ...updates };
    },
  },
  'information_schema.columns': {
    base: { is_self_referencing: 'NO', is_identity: 'NO', identity_cycle: 'NO', is_generated: 'NEVER' },
    names: { table_name: 'name' },
    ofColumns: {
      hasOwn: true,
      ofTable: (table, facts) => (isListed(table) ? [[table, facts.columnsOf(table)]] : []),
      cells: {
        table_catalog: (_, __, { session }) => session.database,
        table_schema: (_, { schema }) => schema ?? 'public',
        table_name: (_, { name }) => name,
        column_name: ({ name }) => name,
        ordinal_position: ({ number }) => number,
        is_nullable: ({ notNull }) => yesNo(!notNull),
        data_type: ({ type: { name } }) =>
          name === 'vector' ? 'USER-DEFINED' : elementOf(name) === null ? detailsOf(name).formatted : 'ARRAY',
        numeric_precision: ({ type: { name } }) => (name === 'int8' ? 64 : name === 'float8' ? 53 : null),
        numeric_precision_radix: ({ type: { name } }) => (name === 'int8' || name === 'float8' ? 2 : null),
        numeric_scale: ({ type: { name } }) => (name === 'int8' ? 0 : null),
        datetime_precision: ({ type: { name } }) => (name === 'timestamptz' ? 6 : null),
        character_octet_length: ({ type: { name } }) => (name === 'text' ? 1_073_741_824 : null),
        udt_catalog: (_, __, { session }) => session.database,
        udt_schema: ({ type: { name } }) => (name === 'vector' ? 'public' : 'pg_catalog'),
        udt_name: ({ type: { name } }) => name,
        dtd_identifier: ({ number }) => String(number),
        is_updatable: (_, { schema }) => yesNo(schema === undefined),
      },
    },
  },
  'information_schema.table_constraints': {
    base: { constraint_schema: 'public', table_schema: 'public', is_deferrable: 'NO', initially_deferred: 'NO' },
    names: { table_name: 'name' },
    refers: true,
    ofTable: (table, facts) => constraintRows(table, facts, ownTable),
  },
  'information_schema.key_column_usage': {
    base: { constraint_schema: 'public', table_schema: 'public', ordinal_position: 1 },
    names: { table_name: 'name' },
    refers: true,
    ofTable: (table, facts) => constraintRows(table, facts, ownTable),
  },
  'information_schema.constraint_column_usage': {
    base: { constraint_schema: 'public', table_schema: 'public' },
    refers: true,
    ofTable: (table, facts) =>
      constraintRows(table, facts, ({ target, column }) => [target ?? table, target?.key?.name ?? column.name]),
  },
  'information_schema.referential_constraints': {
    base: {
      constraint_schema: 'public',
      unique_constraint_schema: 'public',
      match_option: 'NONE',
      update_rule: 'NO ACTION',
      delete_rule: 'NO ACTION',
    },
    refers: true,
    ofTable: (table, facts) =>
      table.references.length > 0
        ? constraintRows(table, facts, ownTable).filter(({ unique_constraint_name: name }) => name !== null)
        : [],
  },
  'information_schema.table_privileges': privileges,
  'information_schema.role_table_grants': privileges,
};
