/** Rows of the catalogue's relations, made when a query reads them. A relation without an entry here is empty. */
import { procedures, valueProcedures } from './procedure-rows.ts';
import { relationColumns } from './relation-columns.ts';
import { constraintsOf, type CatalogueContents, indexOf, isKeyed, keyedName, keyName, type Table } from './catalogue-contents.ts';
import { informationRows } from './information-schema.ts';
import { type Cells, cellsOfColumns, type Maker, type OwnRelation, ownColumns } from './row-maker.ts';
import { quotedName } from '../expressions/quoted-name.ts';
import { namespaces, owner, userOid } from './object-names.ts';
import { relationOids } from './relation-oids.ts';
import { graphRows } from './graph-relations.ts';
import { systemRows } from './clickhouse-relations.ts';
import { detailsOf, elementOf, typesByOid, type Value, wireOf } from './catalogue-types.ts';

export interface Relation extends OwnRelation {
  /** Undefined: it has no rows. */
  readonly maker: Maker | undefined;
}

const relationKindOf = (schema: string): string => (schema === 'pg_catalog' ? 'r' : 'v');

const pgClassBase = {
  reltype: 0,
  reloftype: 0,
  relowner: owner.oid,
  reltablespace: 0,
  relpages: 0,
  reltuples: -1,
  relallvisible: 0,
  reltoastrelid: 0,
  relisshared: false,
  relpersistence: 'p',
  relchecks: 0,
  relhasrules: false,
  relhastriggers: false,
  relhassubclass: false,
  relrowsecurity: false,
  relforcerowsecurity: false,
  relispopulated: true,
  relispartition: false,
  relrewrite: 0,
  relfrozenxid: 0,
  relminmxid: 0,
} as const;

/** Columns that are alike in all rows. */
const pgAttributeBase = {
  attstattarget: -1,
  attcacheoff: -1,
  attcompression: '',
  atthasdef: false,
  atthasmissing: false,
  attidentity: '',
  attgenerated: '',
  attisdropped: false,
  attislocal: true,
  attinhcount: 0,
} as const;

const relationMakers: Readonly<Record<string, Maker>> = {
  'pg_catalog.pg_namespace': {
    *all() {
      for (const [nspname, oid] of Object.entries(namespaces)) yield { oid, nspname, nspowner: owner.oid };
    },
  },
  'pg_catalog.pg_class': {
    base: pgClassBase,
    late: {
      relnatts: ({ oid, relnatts }, facts) => relnatts ?? facts.columnsOf(facts.tableOf(oid as number)!).length,
      relacl: ({ oid, relkind }, facts) => tablePrivilegesOf(oid as number, relkind as string, facts),
    },
    names: { oid: 'oid', relname: 'name' },
    ofTable: pgClassRowsOf,
    ofRelation: (relation) => [pgClassRowOf(relation)],
  },
  'pg_catalog.pg_attribute': {
    base: pgAttributeBase,
    names: { attrelid: 'oid' },
    ofColumns: {
      hasOwn: true,
      ofTable(table, facts) {
        const ownAttributes = [table, facts.columnsOf(table)] as const;
        if (!table.key) return [ownAttributes];
        return [ownAttributes, [{ oid: indexOf(table), name: keyName(table) }, [{ ...table.key, number: 1, notNull: false }]]];
      },
      cells: {
        attrelid: (_, { oid }) => oid,
        attname: ({ name }) => name,
        atttypid: ({ type }) => type.oid,
        attlen: ({ type }) => type.size,
        attnum: ({ number }) => number,
        attndims: ({ type }) => (elementOf(type.name) === null ? 0 : 1),
        atttypmod: ({ modifier }) => modifier,
        attbyval: ({ type: { size } }) => size > 0 && size <= 8,
        attalign: ({ type }) => detailsOf(type.name).align,
        attstorage: ({ type }) => detailsOf(type.name).storage,
        attnotnull: ({ notNull }) => notNull,
        attcollation: ({ type }) => typeCollationOf(type.name),
      },
    },
  },
  'pg_catalog.pg_index': {
    base: {
      indnatts: 1,
      indnkeyatts: 1,
      indisunique: true,
      indnullsnotdistinct: false,
      indisprimary: true,
      indisexclusion: false,
      indimmediate: true,
      indisclustered: false,
      indisvalid: true,
      indcheckxmin: false,
      indisready: true,
      indislive: true,
      indisreplident: false,
      indoption: [0],
    },
    names: { indrelid: 'oid', indexrelid: 'oid' },
    ofTable(table) {
      const { key } = table;
      if (!key) return [];
      const indexRow = {
        indexrelid: indexOf(table),
        indrelid: table.oid,
        indkey: [key.number],
        indcollation: [typeCollationOf(key.type.name)],
        indclass: [btreeOperatorClasses.find(({ type }) => type === key.type.name)?.oid ?? 0],
      };
      return [indexRow];
    },
  },
  'pg_catalog.pg_constraint': {
    base: {
      connamespace: namespaces.public,
      condeferrable: false,
      condeferred: false,
      contypid: 0,
      conparentid: 0,
      conislocal: true,
      coninhcount: 0,
      connoinherit: true,
    },
    names: { conrelid: 'oid' },
    refers: true,
    ofTable: (of, facts) =>
      constraintsOf(of, facts).map(({ oid, name, table, column, target }) => ({
        oid,
        conname: name,
        contype: target === null ? 'p' : 'f',
        // References are not enforced.
        convalidated: target === null,
        conrelid: table.oid,
        conindid: indexOf(target ?? table),
        confrelid: target?.oid ?? 0,
        confupdtype: target === null ? ' ' : 'a',
        confdeltype: target === null ? ' ' : 'a',
        confmatchtype: target === null ? ' ' : 's',
        conkey: [column.number],
        confkey: target === null ? null : [target.key!.number],
      })),
  },
  'pg_catalog.pg_type': {
    *all() {
      for (const [oid, name] of typesByOid) {
        const { category, align, storage } = detailsOf(name);
        const { size, array } = wireOf(name);
        const elementType = elementOf(name);
        const { input, output, receive, send } = valueProcedures.get(name)!;
        const isVectorType = name === 'vector' || name === '_vector';
        yield {
          oid,
          typname: name,
          typnamespace: isVectorType ? namespaces.public : namespaces.pg_catalog,
          typowner: owner.oid,
          typlen: size,
          typbyval: size > 0 && size <= 8,
          typtype: category === 'P' || category === 'X' ? 'p' : 'b',
          typcategory: category,
          typispreferred: ['bool', 'text', 'oid', 'float8', 'timestamptz', 'interval'].includes(name),
          typisdefined: true,
          typdelim: ',',
          typrelid: 0,
          typsubscript: 0,
          typelem: name === 'name' ? 18 : elementType === null || name === 'anyarray' ? 0 : wireOf(elementType).oid,
          typarray: array,
          typinput: input,
          typoutput: output,
          typreceive: receive,
          typsend: send,
          typmodin: 0,
          typmodout: 0,
          typanalyze: 0,
          typalign: align,
          typstorage: storage,
          typnotnull: false,
          typbasetype: 0,
          typtypmod: -1,
          typndims: 0,
          typcollation: typeCollationOf(name),
        };
      }
    },
  },
  'pg_catalog.pg_database': {
    *all({ databases }) {
      for (const { oid, name } of databases)
        yield {
          oid,
          datname: name,
          datdba: owner.oid,
          encoding: utf8Encoding,
          datlocprovider: 'c',
          datistemplate: false,
          datallowconn: true,
          datconnlimit: -1,
          datfrozenxid: 0,
          datminmxid: 0,
          dattablespace: 1663,
          datcollate: 'C',
          datctype: 'C.UTF-8',
        };
    },
  },
  'pg_catalog.pg_tablespace': {
    *all() {
      yield { oid: 1663, spcname: 'pg_default', spcowner: owner.oid };
    },
  },
  'pg_catalog.pg_roles': {
    *all({ session }) {
      for (const [oid, rolname] of catalogueRolesOf(session.user))
        yield {
          oid,
          rolname,
          rolsuper: false,
          rolinherit: true,
          rolcreaterole: false,
          rolcreatedb: false,
          rolcanlogin: oid === userOid,
          rolreplication: false,
          rolbypassrls: false,
          rolconnlimit: -1,
          rolpassword: '********',
        };
    },
  },
  'pg_catalog.pg_user': {
    *all({ session }) {
      for (const [usesysid, usename] of catalogueRolesOf(session.user))
        yield { usename, usesysid, usecreatedb: false, usesuper: false, userepl: false, usebypassrls: false, passwd: '********' };
    },
  },
  'pg_catalog.pg_proc': {
    *all() {
      for (const procedure of procedures) {
        const { oid, name, schema, kind, isSet, takes, names, optional, yields } = procedure;
        yield {
          oid,
          proname: name,
          pronamespace: namespaces[schema],
          proowner: owner.oid,
          prolang: 12,
          procost: 1,
          prorows: isSet ? 1000 : 0,
          provariadic: 0,
          prosupport: 0,
          prokind: kind,
          prosecdef: false,
          proleakproof: false,
          proisstrict: kind === 'f',
          proretset: isSet,
          provolatile: 's',
          proparallel: 's',
          pronargs: takes.length,
          pronargdefaults: optional,
          prorettype: yields,
          proargtypes: takes,
          proargnames: names,
          prosrc: name,
        };
      }
    },
  },
  'pg_catalog.pg_language': {
    *all() {
      yield {
        oid: 12,
        lanname: 'internal',
        lanowner: owner.oid,
        lanispl: false,
        lanpltrusted: false,
        lanplcallfoid: 0,
        laninline: 0,
        lanvalidator: 0,
      };
    },
  },
  'pg_catalog.pg_settings': {
    *all({ session }) {
      for (const { name, value, about } of [...session.variables.all(), ...constants])
        yield {
          name,
          setting: value,
          category: name.startsWith('annals.') ? 'Annals' : 'Client Connection Defaults',
          short_desc: about,
          context: 'user',
          vartype: 'string',
          source: 'session',
          reset_val: value,
          pending_restart: false,
        };
    },
  },
  'pg_catalog.pg_extension': {
    *all() {
      yield {
        oid: 16_383,
        extname: 'vector',
        extowner: owner.oid,
        extnamespace: namespaces.public,
        extrelocatable: false,
        extversion: vectorExtensionVersion,
      };
    },
  },
  'pg_catalog.pg_available_extensions': {
    *all() {
      yield {
        name: 'vector',
        default_version: vectorExtensionVersion,
        installed_version: vectorExtensionVersion,
        comment: 'vectors are always there',
      };
    },
  },
  'pg_catalog.pg_am': {
    *all() {
      yield { oid: 2, amname: 'heap', amhandler: 0, amtype: 't' };
      yield { oid: 403, amname: 'btree', amhandler: 0, amtype: 'i' };
    },
  },
  'pg_catalog.pg_opclass': {
    *all() {
      for (const { oid, name, type, family } of btreeOperatorClasses)
        yield {
          oid,
          opcmethod: 403,
          opcname: name,
          opcnamespace: namespaces.pg_catalog,
          opcowner: owner.oid,
          opcfamily: family,
          opcintype: wireOf(type).oid,
          opcdefault: true,
          opckeytype: 0,
        };
    },
  },
  'pg_catalog.pg_collation': {
    *all() {
      const collationBase = {
        collnamespace: namespaces.pg_catalog,
        collowner: owner.oid,
        collisdeterministic: true,
        collencoding: -1,
      };
      yield { oid: 100, collname: 'default', collprovider: 'd', ...collationBase };
      yield { oid: 950, collname: 'C', collprovider: 'c', collcollate: 'C', collctype: 'C', ...collationBase };
    },
  },
  'pg_catalog.pg_tables': {
    base: { tableowner: owner.name, hasrules: false, hastriggers: false, rowsecurity: false },
    names: { tablename: 'name' },
    *ofTable({ kind, name }) {
      if (kind === 'r') yield { schemaname: 'public', tablename: name, hasindexes: true };
    },
    *ofRelation({ schema, name }) {
      if (relationKindOf(schema) === 'r') yield { schemaname: schema, tablename: name, hasindexes: false };
    },
  },
  'pg_catalog.pg_views': {
    names: { viewname: 'name' },
    *ofTable({ kind, name, sql }) {
      if (kind === 'v') yield { schemaname: 'public', viewname: name, viewowner: owner.name, definition: sql };
    },
  },
  'pg_catalog.pg_matviews': {
    names: { matviewname: 'name' },
    *ofTable({ kind, name, sql }) {
      if (kind !== 'm') return;
      yield {
        schemaname: 'public',
        matviewname: name,
        matviewowner: owner.name,
        hasindexes: false,
        ispopulated: true,
        definition: sql,
      };
    },
  },
  'pg_catalog.pg_indexes': {
    names: { tablename: 'name', indexname: 'name' },
    *ofTable(table) {
      if (!table.key) return;
      yield { schemaname: 'public', tablename: table.name, indexname: keyName(table), indexdef: indexDefinition(table) };
    },
  },
  'pg_catalog.pg_stat_user_indexes': {
    names: { relid: 'oid', indexrelid: 'oid', relname: 'name', indexrelname: 'name' },
    *ofTable(table) {
      if (!table.key) return;
      yield {
        relid: table.oid,
        indexrelid: indexOf(table),
        schemaname: 'public',
        relname: table.name,
        indexrelname: keyName(table),
      };
    },
  },
  'pg_catalog.pg_stat_user_tables': {
    names: { relid: 'oid', relname: 'name' },
    ofTable: ({ oid, name }) => [{ relid: oid, schemaname: 'public', relname: name }],
  },
  'pg_catalog.pg_opfamily': {
    *all() {
      for (const { name, family } of btreeOperatorClasses)
        yield { oid: family, opfmethod: 403, opfname: name, opfnamespace: namespaces.pg_catalog, opfowner: owner.oid };
    },
  },
  // Shows only the caller's own session.
  'pg_catalog.pg_stat_activity': {
    *all({ session, databases }) {
      yield {
        datid: databases.find(({ name }) => name === session.database)?.oid ?? null,
        datname: session.database,
        pid: session.process,
        usesysid: userOid,
        usename: session.user,
        application_name: session.variables.all().find(({ name }) => name === 'application_name')?.value ?? '',
        state: 'active',
        backend_type: 'client backend',
      };
    },
  },
  'pg_catalog.pg_stat_gssapi': {
    *all({ session }) {
      yield { pid: session.process, gss_authenticated: false, encrypted: false };
    },
  },
  ...informationRows,
  ...systemRows,
  ...graphRows,
};

/** Schemas that Postgres does not have: its catalogue lists none of them. */
const otherSchemas: ReadonlySet<string> = new Set(['system', 'db', 'dbms']);

/** Relations of Postgres that have rows, where there is something to tell; the others are empty. */
export const filledRelations = Object.keys(relationMakers).filter((path) => !otherSchemas.has(path.replace(/\..*/s, '')));

/** Asked for as settings, and not to be set. */
export const constants = [
  { name: 'max_identifier_length', value: '128', about: 'characters of a name' },
  { name: 'max_index_keys', value: '32', about: 'columns that are asked for of an index' },
];

const utf8Encoding = 6;
/** The version of pgvector whose type and operators are there. */
const vectorExtensionVersion = '0.8.0';

const btreeOperatorClasses = [
  { oid: 10_003, name: 'bool_ops', type: 'bool', family: 424 },
  { oid: 3123, name: 'float8_ops', type: 'float8', family: 1970 },
  { oid: 3124, name: 'int8_ops', type: 'int8', family: 1976 },
  { oid: 3126, name: 'text_ops', type: 'text', family: 1994 },
  { oid: 3127, name: 'timestamptz_ops', type: 'timestamptz', family: 434 },
] as const;

export function indexDefinition(table: Table): string {
  return `CREATE UNIQUE INDEX ${quotedName(keyName(table))} ON public.${quotedName(table.name)} USING btree (${quotedName(table.key!.name)})`;
}

/** The collation of a type; 0: it has none. */
function typeCollationOf(type: string): number {
  const plainType = elementOf(type) ?? type;
  if (plainType === 'name') return 950;
  return ['text', 'varchar', 'bpchar', 'pg_node_tree'].includes(plainType) && type !== 'anyarray' ? 100 : 0;
}

function catalogueRolesOf(sessionUser: string): (readonly [number, string])[] {
  return sessionUser === owner.name
    ? [[owner.oid, sessionUser]]
    : [
        [owner.oid, owner.name],
        [userOid, sessionUser],
      ];
}

/** Privileges in the form of `pg_class.relacl`: grantee, privileges, grantor; null for indexes and for the catalogue itself. */
function tablePrivilegesOf(oid: number, relationKind: string, facts: CatalogueContents): readonly string[] | null {
  const privilegedTable = relationKind === 'i' ? undefined : facts.tableOf(oid);
  if (privilegedTable === undefined) return null;
  const { user } = facts.session;
  const granteeName = /^\w+$/.test(user) ? user : `"${user.replaceAll('"', '""')}"`;
  return facts.isReadable(privilegedTable) ? [`${granteeName}=${privilegedTable.kind === 'r' ? 'arwd' : 'r'}/${owner.name}`] : [];
}

function pgClassRowsOf(catalogueTable: Table): readonly Cells[] {
  const { oid, name, kind } = catalogueTable;
  const tableClass = {
    oid,
    relname: name,
    relnamespace: namespaces.public,
    relam: 2,
    relfilenode: oid,
    relhasindex: isKeyed(catalogueTable),
    relkind: kind,
    relreplident: 'd',
  };
  if (!isKeyed(catalogueTable)) return [tableClass];
  const indexClass = {
    oid: indexOf(catalogueTable),
    relname: keyName(catalogueTable),
    relnamespace: namespaces.public,
    relam: 403,
    relfilenode: indexOf(catalogueTable),
    relhasindex: false,
    relkind: 'i',
    relnatts: 1,
    relreplident: 'n',
  };
  return [tableClass, indexClass];
}

function pgClassRowOf({ oid, name, schema, columns }: OwnRelation): Cells {
  return {
    oid,
    relname: name,
    relnamespace: namespaces[schema as keyof typeof namespaces],
    relam: relationKindOf(schema) === 'r' ? 2 : 0,
    relfilenode: 0,
    relhasindex: false,
    relkind: relationKindOf(schema),
    relnatts: columns.length,
    relreplident: 'n',
  };
}

/** Relations by schema and name. */
export const relations: ReadonlyMap<string, Relation> = new Map(
  relationColumns.map((each) => {
    const path = `${each.schema}.${each.name}`;
    return [path, { ...each, oid: relationOids.get(path)!, maker: relationMakers[path] }];
  }),
);

/** The relations that the catalogue lists. */
export const shownRelations = [...relations.values()].filter(({ schema }) => !otherSchemas.has(schema));

/** Whether a row may have one of the values in a column: where all rows are alike, they have no other. */
export function mayHave({ maker }: Relation, soughtColumn: string, soughtValues: readonly Value[]): boolean {
  const relationBase = maker?.base;
  if (relationBase === undefined || !Object.hasOwn(relationBase, soughtColumn)) return true;
  const baseCell = relationBase[soughtColumn]!;
  // An array is sought by its text.
  return (typeof baseCell === 'object' && baseCell !== null) || soughtValues.includes(baseCell);
}

/** The rows with a value in a column; null: all rows have to be read. */
export function findRows(
  { maker }: Relation,
  facts: CatalogueContents,
  soughtColumn: string,
  soughtValue: Value,
): Iterable<Cells> | null {
  const lookupKey = maker?.names?.[soughtColumn];
  return lookupKey === undefined
    ? null
    : equalRows(selectedCells(maker!, facts, lookupKey, soughtValue), soughtColumn, soughtValue);
}

function* equalRows(candidateRows: Iterable<Cells>, column: string, soughtValue: Value): Iterable<Cells> {
  for (const candidateCells of candidateRows) if (candidateCells[column] === soughtValue) yield candidateCells;
}

/** Rows of the object with the number or name, and of its dependents: a table has an index. */
function* selectedCells(
  { ofTable, ofRelation, ofColumns }: Maker,
  facts: CatalogueContents,
  named: 'oid' | 'name',
  value: Value,
): Iterable<Cells> {
  const { tableOf, tableNamed } = facts;
  const tables =
    typeof value === 'number'
      ? [tableOf(value)]
      : typeof value === 'string'
        ? [tableNamed(value), tableNamed(keyedName(value))]
        : [];
  for (const table of new Set(tables)) {
    if (table && ofTable) yield* ofTable(table, facts);
    if (table && ofColumns) yield* cellsOfColumns(ofColumns, ofColumns.ofTable(table, facts), facts);
  }
  for (const relation of shownRelations) {
    if (relation[named] !== value) continue;
    if (ofRelation) yield* ofRelation(relation, facts);
    if (ofColumns?.hasOwn) yield* cellsOfColumns(ofColumns, [[relation, ownColumns(relation)]], facts);
  }
}
