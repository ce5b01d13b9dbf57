/** Rows of `information_schema`. */
import { type CatalogueContents, type Constraint, constraintsOf, keyName, type Table } from './catalogue-contents.ts';
import type { Cells, Maker } from './row-maker.ts';
import { namespaces, owner } from './object-names.ts';
import { detailsOf, elementOf } from './catalogue-types.ts';

const yesOrNo = (isYes: boolean): string => (isYes ? 'YES' : 'NO');
const isBaseTable = ({ kind }: Table): boolean => kind === 'r';
/** Materialized views are none of the standard's: this schema does not list them. */
const isListedTable = ({ kind }: Table): boolean => kind !== 'm';

function tableNameCells(namedTable: Table, { session }: CatalogueContents): Cells {
  return { table_catalog: session.database, table_schema: 'public', table_name: namedTable.name };
}

const tableConstraints = (constrainedTable: Table, facts: CatalogueContents): readonly Constraint[] =>
  isBaseTable(constrainedTable) ? constraintsOf(constrainedTable, facts) : [];

/** Columns of relations that are about constraints; `tableOfConstraint` is the table that a row tells of, and its column. */
const constraintCellRows = (
  constrainedTable: Table,
  facts: CatalogueContents,
  tableOfConstraint: (constraint: Constraint) => readonly [table: Table, column: string],
): readonly Cells[] =>
  tableConstraints(constrainedTable, facts).map(
    (tableConstraint) =>
      new ConstraintCells(facts.session.database, tableConstraint, tableOfConstraint(tableConstraint)) as unknown as Cells,
  );

const ownConstraintTable = ({ table, column }: Constraint): readonly [Table, string] => [table, column.name];

class ConstraintCells {
  readonly constraint_catalog: string;
  readonly #shownConstraint: Constraint;
  readonly #constrainedTable: string;
  readonly column_name: string;

  constructor(database: string, shownConstraint: Constraint, [table, column]: readonly [Table, string]) {
    this.constraint_catalog = database;
    this.#shownConstraint = shownConstraint;
    this.#constrainedTable = table.name;
    this.column_name = column;
  }

  get constraint_name(): string {
    return this.#shownConstraint.name;
  }

  get table_catalog(): string {
    return this.constraint_catalog;
  }

  get table_name(): string {
    return this.#constrainedTable;
  }

  get constraint_type(): string {
    return this.#shownConstraint.target === null ? 'PRIMARY KEY' : 'FOREIGN KEY';
  }

  get enforced(): string {
    return yesOrNo(this.#shownConstraint.target === null);
  }

  get position_in_unique_constraint(): number | null {
    return this.#shownConstraint.target === null ? null : 1;
  }

  get unique_constraint_catalog(): string {
    return this.constraint_catalog;
  }

  get unique_constraint_name(): string | null {
    const { target: referencedTable } = this.#shownConstraint;
    return referencedTable && keyName(referencedTable);
  }
}

const privilegeRows: Maker = {
  names: { table_name: 'name' },
  *ofTable(shownTable, facts) {
    for (const tablePrivilege of isBaseTable(shownTable) && facts.isReadable(shownTable)
      ? ['INSERT', 'SELECT', 'UPDATE', 'DELETE']
      : [])
      yield {
        grantor: owner.name,
        grantee: facts.session.user,
        ...tableNameCells(shownTable, facts),
        privilege_type: tablePrivilege,
        is_grantable: 'NO',
        with_hierarchy: yesOrNo(tablePrivilege === 'SELECT'),
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
    *ofTable(shownTable, facts) {
      if (!isListedTable(shownTable)) return;
      const [tableType, isInsertable] = isBaseTable(shownTable) ? ['BASE TABLE', 'YES'] : ['VIEW', 'NO'];
      yield { ...tableNameCells(shownTable, facts), table_type: tableType, is_insertable_into: isInsertable, is_typed: 'NO' };
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
    *ofTable(shownTable, facts) {
      if (shownTable.kind !== 'v') return;
      const viewUpdatability = {
        is_updatable: 'NO',
        is_insertable_into: 'NO',
        is_trigger_updatable: 'NO',
        is_trigger_deletable: 'NO',
      };
      const viewCells = { view_definition: shownTable.sql, check_option: 'NONE', is_trigger_insertable_into: 'NO' };
      yield { ...tableNameCells(shownTable, facts), ...viewCells, ...viewUpdatability };
    },
  },
  'information_schema.columns': {
    base: { is_self_referencing: 'NO', is_identity: 'NO', identity_cycle: 'NO', is_generated: 'NEVER' },
    names: { table_name: 'name' },
    ofColumns: {
      hasOwn: true,
      ofTable: (shownTable, facts) => (isListedTable(shownTable) ? [[shownTable, facts.columnsOf(shownTable)]] : []),
      cells: {
        table_catalog: (_, __, { session }) => session.database,
        table_schema: (_, { schema }) => schema ?? 'public',
        table_name: (_, { name }) => name,
        column_name: ({ name }) => name,
        ordinal_position: ({ number }) => number,
        is_nullable: ({ notNull }) => yesOrNo(!notNull),
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
        is_updatable: (_, { schema }) => yesOrNo(schema === undefined),
      },
    },
  },
  'information_schema.table_constraints': {
    base: { constraint_schema: 'public', table_schema: 'public', is_deferrable: 'NO', initially_deferred: 'NO' },
    names: { table_name: 'name' },
    refers: true,
    ofTable: (shownTable, facts) => constraintCellRows(shownTable, facts, ownConstraintTable),
  },
  'information_schema.key_column_usage': {
    base: { constraint_schema: 'public', table_schema: 'public', ordinal_position: 1 },
    names: { table_name: 'name' },
    refers: true,
    ofTable: (shownTable, facts) => constraintCellRows(shownTable, facts, ownConstraintTable),
  },
  'information_schema.constraint_column_usage': {
    base: { constraint_schema: 'public', table_schema: 'public' },
    refers: true,
    ofTable: (shownTable, facts) =>
      constraintCellRows(shownTable, facts, ({ target, column }) => [target ?? shownTable, target?.key?.name ?? column.name]),
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
    ofTable: (shownTable, facts) =>
      shownTable.references.length > 0
        ? constraintCellRows(shownTable, facts, ownConstraintTable).filter(({ unique_constraint_name: name }) => name !== null)
        : [],
  },
  'information_schema.table_privileges': privilegeRows,
  'information_schema.role_table_grants': privilegeRows,
};
