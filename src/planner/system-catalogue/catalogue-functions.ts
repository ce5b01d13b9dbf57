/**
 * Functions for queries of the catalogue. Each states its arguments and result in the words of Postgres; NULL in is NULL out,
 * except for those that end with `null`.
 */
import { ServiceError } from '../../errors.ts';
import { type CatalogueContents, indexOf, type Table } from './catalogue-contents.ts';
import type { Draws } from './random-draws.ts';
import type { CatalogueNames } from './object-names.ts';
import { listKeyWords, quotedName } from '../expressions/quoted-name.ts';
import { formatText } from '../expressions/functions/text-format.ts';
import { asText } from '../expressions/functions/json.ts';
import { membersOf, rowsOfList } from '../expressions/functions/json-trees.ts';
import { procedures } from './procedure-rows.ts';
import { constants, indexDefinition } from './relations.ts';
import { checkNotGlobal, findMatches, type Match, splitText } from '../expressions/functions/patterns.ts';
import { compare, detailsOf, elementOf, quotedElement, textOf, typesByOid, type Value, wireOf } from './catalogue-types.ts';

export interface FunctionContext {
  readonly facts: CatalogueContents;
  readonly names: CatalogueNames;
  readonly draws: Draws;
}

export interface CatalogueFunction {
  readonly name: string;
  /** Names of types; `any` and `anyarray` take any type. */
  readonly takes: readonly string[];
  readonly optional: number;
  /** `element`, `same`: as the first argument says; `second`: as the second. */
  readonly yields: string;
  readonly isSet: boolean;
  /** Fields of the records that it yields. */
  readonly fields: readonly { readonly name: string; readonly type: string }[];
  readonly takesNull: boolean;
  /** Whether values of the right types may be refused. */
  readonly mayFail: boolean;
  /** Whether a question without FROM is one of the catalogue because of it. */
  readonly marks: boolean;
  run(context: FunctionContext, values: readonly Value[], types: readonly string[]): Value;
}

// oxlint-disable-next-line typescript/no-explicit-any -- what a function takes is said by its usage, which is what calls are checked against
type Run = (context: FunctionContext, ...values: any[]) => Value;

const membersAs = (type: string): CatalogueFunction['fields'] => [
  { name: 'key', type: 'text' },
  { name: 'value', type },
];

const records: Readonly<Record<string, CatalogueFunction['fields']>> = {
  _pg_expandarray: [
    { name: 'x', type: 'int4' },
    { name: 'n', type: 'int4' },
  ],
  json_each: membersAs('json'),
  jsonb_each: membersAs('json'),
  json_each_text: membersAs('text'),
  jsonb_each_text: membersAs('text'),
  pg_get_keywords: [
    { name: 'word', type: 'text' },
    { name: 'catcode', type: 'char' },
    { name: 'catdesc', type: 'text' },
    { name: 'barelabel', type: 'bool' },
    { name: 'baredesc', type: 'text' },
  ],
};

const nothing: Run = () => null;
const yes: Run = () => true;

const neverFailing: ReadonlySet<string> = new Set(
  (
    'unnest generate_subscripts array_to_string array_length array_upper array_lower cardinality format_type pg_typeof pg_get_userbyid ' +
    'pg_get_indexdef pg_get_constraintdef pg_table_is_visible pg_encoding_to_char obj_description shobj_description to_regclass to_regtype _array'
  ).split(' '),
);

/** `name(type, type?) yields`; `setof` before the type of a set. */
function catalogueFunction(usage: string, run: Run, marks = true, takesTypes = false): CatalogueFunction {
  const [, name, given, set, yields, nulls] = /^(\w+)\((.*?)\) (setof )?(\w+)( null)?$/.exec(usage)!;
  const takes = given === '' ? [] : given!.split(', ');
  return {
    name: name!,
    takes: takes.map((type) => type.replace('?', '')),
    optional: takes.filter((type) => type.endsWith('?')).length,
    yields: yields!,
    isSet: set !== undefined,
    fields: yields === 'record' ? (records[name!] ?? []) : [],
    takesNull: nulls !== undefined,
    mayFail: !(run === nothing || run === yes || neverFailing.has(name!)),
    marks,
    run: (context, values, types) => (takesTypes ? run(context, values, types) : run(context, ...values)),
  };
}

const plain = (usage: string, run: Run, takesTypes = false): CatalogueFunction =>
  catalogueFunction(usage, run, false, takesTypes);

const tableOf = ({ facts }: FunctionContext, oid: number): Table | undefined => {
  const table = facts.tableOf(oid);
  return table?.oid === oid ? table : undefined;
};

/** Privileges on a table as clients see them; the policies decide when it is used. */
function mayTable(context: FunctionContext, oid: number): boolean | null {
  const table = tableOf(context, oid);
  if (table) return context.facts.isReadable(table);
  return context.names.nameOf('regclass', oid) === null ? null : true;
}

const classOid = (context: FunctionContext, of: string | number): number => {
  if (typeof of === 'number') return of;
  const oid = /^\d+$/.test(of) ? Number(of) : context.names.oidOf('regclass', of);
  if (oid === null) throw new ServiceError('REL_UNKNOWN_TYPE', `there is no relation ${JSON.stringify(of.slice(0, 200))}`);
  return oid;
};

/** With or without a role in front of the object. */
const privilege = (
  name: string,
  judge: (context: FunctionContext, of: string | number) => boolean | null,
): CatalogueFunction[] => [
  catalogueFunction(`${name}(any, text) bool`, (context, of) => judge(context, of)),
  catalogueFunction(`${name}(any, any, text) bool`, (context, _role, of) => judge(context, of)),
];

const size = (bytes: number): string => {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];
  let [value, unit] = [bytes, 0];
  while (Math.abs(value) >= 10_240 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${Math.round(value)} ${units[unit]!}`;
};

const currentUser: Run = ({ facts }) => facts.session.user;
const currentDatabase: Run = ({ facts }) => facts.session.database;

function setting({ facts }: FunctionContext, name: string, missing = false): Value {
  const setting = [...facts.session.variables.all(), ...constants].find((each) => each.name === name.toLowerCase());
  if (setting) return setting.value;
  if (missing) return null;
  throw new ServiceError('REL_NOT_FOUND', `there is no setting ${JSON.stringify(name.slice(0, 100))}; SHOW ALL lists them`);
}

function formatType(_: FunctionContext, oid: number | null, modifier: number | null): Value {
  if (oid === null) return null;
  const type = typesByOid.get(oid);
  if (type === undefined) return '???';
  const { formatted } = detailsOf(type);
  return type === 'vector' && modifier !== null && modifier > 0 ? `${formatted}(${modifier})` : formatted;
}

function indexText({ facts }: FunctionContext, oid: number, column = 0): Value {
  const table = facts.tableOf(oid);
  if (!table?.key || oid !== indexOf(table)) return null;
  return column === 0 ? indexDefinition(table) : column === 1 ? quotedName(table.key.name) : '';
}

const formattedOid = (oid: number): string => detailsOf(typesByOid.get(oid)!).formatted;

function argumentsOf(oid: number, withDefaults: boolean): Value {
  const procedure = procedures.find((each) => each.oid === oid);
  if (!procedure) return null;
  const { takes, names, optional } = procedure;
  return takes
    .map((type, i) => {
      const text = `${names ? `${names[i]!} ` : ''}${formattedOid(type)}`;
      return withDefaults && i >= takes.length - optional ? `${text} DEFAULT NULL` : text;
    })
    .join(', ');
}

/** As many arguments as a function of Postgres may take. */
const anyNumber = Array.from({ length: 100 }, () => 'any?').join(', ');

export const version = 'PostgreSQL 15.0 (Annals)';

const functions: readonly CatalogueFunction[] = [
  catalogueFunction('version() text', () => version),
  catalogueFunction('current_database() name', currentDatabase),
  catalogueFunction('current_catalog() name', currentDatabase),
  catalogueFunction('current_schema() name', () => 'public'),
  catalogueFunction('current_schemas(bool) _name', (_, implicit) => (implicit ? ['pg_catalog', 'public'] : ['public'])),
  catalogueFunction('current_user() name', currentUser),
  catalogueFunction('session_user() name', currentUser),
  catalogueFunction('current_role() name', currentUser),
  catalogueFunction('user() name', currentUser),
  catalogueFunction('current_setting(text, bool?) text', setting),
  catalogueFunction(
    'set_config(text, text, bool) text null',
    ({ facts }, name: string | null, value: string | null, local: boolean | null) => {
      if (name === null) throw new ServiceError('REL_INVALID', 'set_config() takes the name of a setting');
      facts.session.variables.set(name.toLowerCase(), value, local === true);
      return setting({ facts } as FunctionContext, name);
    },
  ),
  catalogueFunction('pg_backend_pid() int4', ({ facts }) => facts.session.process),
  // There is nothing to unlock: locks are never given.
  catalogueFunction('pg_advisory_unlock_all() void', () => ''),
  catalogueFunction('pg_is_in_recovery() bool', () => false),
  catalogueFunction('pg_my_temp_schema() oid', () => 0),
  catalogueFunction('pg_is_other_temp_schema(oid) bool', () => false),
  catalogueFunction('txid_current_if_assigned() int8', nothing),
  catalogueFunction('inet_server_addr() text', nothing),
  catalogueFunction('inet_client_addr() text', nothing),
  catalogueFunction('pg_client_encoding() name', () => 'UTF8'),
  catalogueFunction('getdatabaseencoding() name', () => 'UTF8'),
  catalogueFunction('pg_encoding_to_char(int4) name', (_, encoding) => (encoding === 6 ? 'UTF8' : '')),
  catalogueFunction('pg_char_to_encoding(name) int4', (_, name) => (/^utf-?8$/i.test(name) ? 6 : -1)),
  catalogueFunction('pg_encoding_max_length(int4) int4', (_, encoding) => (encoding === 6 ? 4 : null)),
  catalogueFunction('pg_get_userbyid(oid) name', ({ names }, oid) => names.roleName(oid) ?? `unknown (OID=${oid})`),
  catalogueFunction('format_type(oid, int4) text null', formatType),
  catalogueFunction('pg_typeof(any) regtype null', (_, __, [type]: string[]) => wireOf(type!).oid, true, true),
  catalogueFunction('pg_get_expr(pg_node_tree, oid, bool?) text', nothing),
  catalogueFunction('pg_get_indexdef(oid, int4?, bool?) text', indexText),
  catalogueFunction('pg_get_constraintdef(oid, bool?) text', ({ names }, oid) => {
    const constraint = names.constraint(oid);
    if (constraint === null) return null;
    const { column, target } = constraint;
    if (target === null) return `PRIMARY KEY (${quotedName(column.name)})`;
    return `FOREIGN KEY (${quotedName(column.name)}) REFERENCES ${quotedName(target.name)}(${quotedName(target.key!.name)}) NOT VALID`;
  }),
  catalogueFunction('pg_get_viewdef(any, any?) text', (context, of) => context.facts.tableOf(classOid(context, of))?.sql ?? null),
  catalogueFunction('pg_get_partkeydef(oid) text', nothing),
  catalogueFunction('pg_get_partition_constraintdef(oid) text', nothing),
  catalogueFunction('pg_get_triggerdef(oid, bool?) text', nothing),
  catalogueFunction('pg_get_ruledef(oid, bool?) text', nothing),
  catalogueFunction('pg_get_statisticsobjdef_columns(oid) text', nothing),
  catalogueFunction('pg_get_serial_sequence(text, text) text', nothing),
  catalogueFunction('pg_get_functiondef(oid) text', nothing),
  catalogueFunction('pg_get_function_sqlbody(oid) text', nothing),
  catalogueFunction('pg_get_function_result(oid) text', (_, oid) => {
    const procedure = procedures.find((each) => each.oid === oid);
    if (!procedure) return null;
    return `${procedure.isSet ? 'SETOF ' : ''}${formattedOid(procedure.yields)}`;
  }),
  catalogueFunction('pg_get_function_arguments(oid) text', (_, oid) => argumentsOf(oid, true)),
  catalogueFunction('pg_get_function_identity_arguments(oid) text', (_, oid) => argumentsOf(oid, false)),
  ...[
    'table',
    'type',
    'function',
    'operator',
    'opclass',
    'opfamily',
    'collation',
    'conversion',
    'statistics_obj',
    'ts_config',
    'ts_dict',
    'ts_parser',
    'ts_template',
  ].map((kind) => catalogueFunction(`pg_${kind}_is_visible(oid) bool`, kind === 'table' ? isVisible : yes)),
  catalogueFunction('pg_relation_is_publishable(regclass) bool', () => false),
  catalogueFunction('pg_relation_is_updatable(regclass, bool) int4', (context, oid) =>
    tableOf(context, oid)?.kind === 'r' ? 28 : 0,
  ),
  catalogueFunction('pg_column_is_updatable(regclass, int2, bool) bool', (context, oid) => tableOf(context, oid)?.kind === 'r'),
  catalogueFunction('pg_index_column_has_property(regclass, int4, text) bool', nothing),
  catalogueFunction('pg_index_has_property(regclass, text) bool', nothing),
  catalogueFunction('pg_indexam_has_property(oid, text) bool', nothing),
  catalogueFunction('pg_get_keywords() setof record', () =>
    listKeyWords().map((word) => ({
      fields: { word, catcode: 'R', catdesc: 'reserved', barelabel: true, baredesc: 'can be bare label' },
    })),
  ),
  catalogueFunction('obj_description(oid, name?) text', (_, oid, catalogue) =>
    catalogue === 'pg_proc' ? (procedures.find((each) => each.oid === oid)?.summary ?? null) : null,
  ),
  catalogueFunction('col_description(oid, int4) text', nothing),
  catalogueFunction('pg_describe_object(oid, oid, int4) text', nothing),
  catalogueFunction('shobj_description(oid, name) text', nothing),
  ...[
    'pg_table_size(regclass)',
    'pg_total_relation_size(regclass)',
    'pg_relation_size(regclass, text?)',
    'pg_indexes_size(regclass)',
  ].map((usage) => catalogueFunction(`${usage} int8`, nothing)),
  catalogueFunction('pg_database_size(any) int8', nothing),
  catalogueFunction('pg_stat_get_numscans(oid) int8', nothing),
  catalogueFunction('pg_tablespace_location(oid) text', () => ''),
  catalogueFunction('pg_tablespace_size(any) int8', nothing),
  catalogueFunction('pg_size_pretty(float8) text', (_, bytes) => size(bytes)),
  ...privilege('has_table_privilege', (context, of) => mayTable(context, classOid(context, of))),
  ...privilege('has_any_column_privilege', (context, of) => mayTable(context, classOid(context, of))),
  catalogueFunction('has_column_privilege(any, any, text) bool', (context, of) => mayTable(context, classOid(context, of))),
  catalogueFunction('has_column_privilege(any, any, any, text) bool', (context, _, of) =>
    mayTable(context, classOid(context, of)),
  ),
  ...['schema', 'database', 'function', 'type', 'language', 'sequence', 'tablespace'].flatMap((kind) =>
    privilege(`has_${kind}_privilege`, () => true),
  ),
  catalogueFunction('pg_has_role(any, text) bool', yes),
  catalogueFunction('pg_has_role(any, any, text) bool', yes),
  catalogueFunction('to_regclass(text) regclass', ({ names }, text) => names.oidOf('regclass', text)),
  catalogueFunction('to_regtype(text) regtype', ({ names }, text) => names.oidOf('regtype', text)),
  catalogueFunction('to_regnamespace(text) regnamespace', ({ names }, text) => names.oidOf('regnamespace', text)),
  catalogueFunction('to_regproc(text) regproc', ({ names }, text) => names.oidOf('regproc', text)),
  catalogueFunction('to_regrole(text) regrole', ({ names }, text) => names.oidOf('regrole', text)),
  catalogueFunction('_pg_expandarray(anyarray) setof record', (_, values: Value[]) =>
    values.map((x, i) => ({ fields: { x, n: i + 1 } })),
  ),
  plain('_array(anyarray) same null', (_, values: Value[] | null) => values ?? []),
  catalogueFunction(
    'array_to_string(anyarray, text, text?) text null',
    ({ names }, [values, between, nulls = null]: Value[], [type]: string[]) => {
      if (values === null || between === null) return null;
      return (values as Value[])
        .flatMap((value) =>
          value === null ? (nulls === null ? [] : [nulls as string]) : [textOf(value, elementOf(type!)!, names)],
        )
        .join(between as string);
    },
    false,
    true,
  ),
  plain(
    'string_to_array(text, text, text?) _text null',
    (_, text: string | null, by: string | null, nulls: string | null = null) => piecesOf(text, by, nulls),
  ),
  plain('regexp_match(text, text, text?) _text', (_, text: string, pattern: string, flags = '') => {
    for (const match of findMatches(text, pattern, checkNotGlobal('REGEXP_MATCH', flags))) return groupsOf(match);
    return null;
  }),
  plain('regexp_matches(text, text, text?) setof _text', (_, text: string, pattern: string, flags = '') => {
    const formatted: string[] = [];
    for (const match of findMatches(text, pattern, flags)) {
      formatted.push(
        `{${groupsOf(match)
          .map((each) => (each === null ? 'NULL' : quotedElement(each)))
          .join(',')}}`,
      );
      if (!flags.includes('g')) break;
    }
    return formatted;
  }),
  plain('regexp_split_to_array(text, text, text?) _text', (_, text: string, pattern: string, flags = '') =>
    splitText(text, pattern, checkNotGlobal('REGEXP_SPLIT_TO_ARRAY', flags)),
  ),
  plain('regexp_split_to_table(text, text, text?) setof text', (_, text: string, pattern: string, flags = '') =>
    splitText(text, pattern, checkNotGlobal('REGEXP_SPLIT_TO_TABLE', flags)),
  ),
  plain(
    'string_to_table(text, text, text?) setof text null',
    (_, text: string | null, by: string | null, nulls: string | null = null) => piecesOf(text, by, nulls) ?? [],
  ),
  plain('array_append(anyarray, any) same null', (_, values: Value[] | null, each: Value) => [...(values ?? []), each]),
  plain('array_prepend(any, anyarray) second null', (_, each: Value, values: Value[] | null) => [each, ...(values ?? [])]),
  plain('array_cat(anyarray, anyarray) same null', (_, first: Value[] | null, second: Value[] | null) =>
    first === null || second === null ? (first ?? second) : [...first, ...second],
  ),
  plain('array_remove(anyarray, any) same null', (_, values: Value[] | null, each: Value) =>
    values === null ? null : values.filter((value) => !isSameValue(value, each)),
  ),
  plain('array_replace(anyarray, any, any) same null', (_, values: Value[] | null, each: Value, by: Value) =>
    values === null ? null : values.map((value) => (isSameValue(value, each) ? by : value)),
  ),
  plain('array_positions(anyarray, any) _int4 null', (_, values: Value[] | null, each: Value) =>
    values === null ? null : values.flatMap((value, i) => (isSameValue(value, each) ? [i + 1] : [])),
  ),
  plain('trim_array(anyarray, int4) same', (_, values: Value[], n: number) => {
    if (n < 0 || n > values.length)
      throw new ServiceError('REL_INVALID', 'trim_array() takes 0 to as many elements as there are');
    return values.slice(0, values.length - n);
  }),
  plain('array_dims(anyarray) text', (_, values: Value[]) => (values.length > 0 ? `[1:${values.length}]` : null)),
  catalogueFunction('parse_ident(text, bool?) _text', (_, text: string, strict = true) => identifiersIn(text, strict)),
  plain('array_length(anyarray, int4) int4', (_, values: Value[], dimension) =>
    dimension === 1 && values.length > 0 ? values.length : null,
  ),
  plain('array_upper(anyarray, int4) int4', (_, values: Value[], dimension) =>
    dimension === 1 && values.length > 0 ? values.length : null,
  ),
  plain('array_lower(anyarray, int4) int4', (_, values: Value[], dimension) => (dimension === 1 && values.length > 0 ? 1 : null)),
  plain('array_ndims(anyarray) int4', (_, values: Value[]) => (values.length > 0 ? 1 : null)),
  plain('cardinality(anyarray) int4', (_, values: Value[]) => values.length),
  plain('array_position(anyarray, any) int4', (_, values: Value[], of: Value) => {
    const elementIndex = values.findIndex((value) => value !== null && compare(value, of) === 0);
    return elementIndex < 0 ? null : elementIndex + 1;
  }),
  plain('unnest(anyarray) setof element', (_, values: Value[]) => values),
  plain('_ordinality(anyarray) setof int8', (_, values: Value[]) => values.map((_each, i) => i + 1)),
  plain('generate_series(int8, int8, int8?) setof int4', (_, from: number, to: number, step = 1) => series(from, to, step)),
  // The vectors of the catalogue count from 0, all else from 1.
  catalogueFunction(
    'generate_subscripts(anyarray, int4) setof int4',
    (_, [values]: [Value[]], [type]: string[]) => {
      const first = type === 'int2vector' || type === 'oidvector' ? 0 : 1;
      return values.map((_each, i) => i + first);
    },
    false,
    true,
  ),
  catalogueFunction(
    `format(text, ${anyNumber}) text null`,
    ({ names }, [pattern, ...values]: Value[], [, ...types]: string[]) =>
      pattern === null
        ? null
        : formatText(
            pattern as string,
            values.map((value, i) => (value === null ? null : textOf(value, types[i]!, names))),
          ),
    true,
    true,
  ),
  catalogueFunction('_no_oids(any) setof oid', () => []),
  catalogueFunction('_no_flags(any) setof bool', () => []),
  plain('_json_values(json) setof json', (_, object: string) => membersOf(object).map(([, value]) => value)),
  plain('_json_texts(json) setof text', (_, object: string) => membersOf(object).map(([, value]) => asText(value))),
  plain('_json_ordinality(json) setof int8', (_, list: string) => rowsOfList(list).map((_each, i) => i + 1)),
  ...['json', 'jsonb'].flatMap((kind) => [
    plain(`${kind}_array_elements(json) setof json`, (_, list: string) => rowsOfList(list)),
    plain(`${kind}_array_elements_text(json) setof text`, (_, list: string) => rowsOfList(list).map(asText)),
    plain(`${kind}_object_keys(json) setof text`, (_, object: string) => membersOf(object).map(([name]) => name)),
    plain(`${kind}_each(json) setof record`, (_, object: string) =>
      membersOf(object).map(([key, value]) => ({ fields: { key, value } })),
    ),
    plain(`${kind}_each_text(json) setof record`, (_, object: string) =>
      membersOf(object).map(([key, value]) => ({ fields: { key, value: asText(value) } })),
    ),
  ]),
  plain('lower(text) text', (_, text) => text.toLowerCase()),
  plain('upper(text) text', (_, text) => text.toUpperCase()),
  plain('length(text) int4', (_, text) => [...text].length),
  plain('char_length(text) int4', (_, text) => [...text].length),
  plain('ltrim(text, text?) text', (_, text, letters = ' ') => trim(text, letters, true, false)),
  plain('rtrim(text, text?) text', (_, text, letters = ' ') => trim(text, letters, false, true)),
  plain('btrim(text, text?) text', (_, text, letters = ' ') => trim(text, letters, true, true)),
  plain('substring(text, int4, int4?) text', substring),
  plain('substr(text, int4, int4?) text', substring),
  plain('left(text, int4) text', (_, text, n) => [...text].slice(0, n).join('')),
  plain('replace(text, text, text) text', (_, text, what, by) => (what === '' ? text : text.replaceAll(what, by))),
  plain('strpos(text, text) int4', (_, text, what) => (text.includes(what) ? [...text.split(what, 1)[0]].length + 1 : 0)),
  plain('split_part(text, text, int4) text', (_, text, by, n) => text.split(by)[n - 1] ?? ''),
  plain('abs(float8) float8', (_, value) => Math.abs(value)),
  plain('random() float8', ({ draws }) => draws.number()),
  plain('setseed(float8) void', ({ draws }, from: number) => {
    draws.seed(from);
    return '';
  }),
  plain('gen_random_uuid() uuid', ({ draws }) => draws.uuid()),
];

/** The groups of a match, or the match where its pattern has none. */
function groupsOf(match: Match): (string | null)[] {
  const groups = match.groups();
  return groups.length === 0 ? [match.text] : groups;
}

function isVisible({ names, facts }: FunctionContext, oid: number): Value {
  const table = facts.tableOf(oid);
  if (table) return oid === table.oid || (table.key !== null && oid === indexOf(table)) ? true : null;
  const name = names.nameOf('regclass', oid);
  return name === null ? null : !name.startsWith('information_schema.');
}

/** Without a separator each character is a piece. */
function piecesOf(text: string | null, by: string | null, nulls: string | null): (string | null)[] | null {
  if (text === null) return null;
  const parts = text === '' ? [] : by === null ? Array.from(text) : by === '' ? [text] : text.split(by);
  return parts.map((part) => (part === nulls ? null : part));
}

/** NULL is the same as NULL. */
function isSameValue(a: Value, b: Value): boolean {
  return a === null || b === null ? a === b : compare(a, b) === 0;
}

/** The names of `a."B"."c"`, in lower case where they have no quotes. */
function identifiersIn(text: string, strict: boolean): string[] {
  const part = /\s*(?:"((?:[^"]|"")+)"|([\p{L}_][\p{L}\p{N}_$]*))\s*(\.?)/uy;
  const names: string[] = [];
  for (let goesOn = true; goesOn; ) {
    const match = part.exec(text);
    if (match === null) throw new ServiceError('REL_INVALID', `${JSON.stringify(text.slice(0, 100))} is no name`);
    names.push(match[1]?.replaceAll('""', '"') ?? match[2]!.toLowerCase());
    goesOn = match[3] === '.';
    if (!goesOn && strict && part.lastIndex < text.length)
      throw new ServiceError('REL_INVALID', `${JSON.stringify(text.slice(0, 100))} is no name`);
  }
  return names;
}

function trim(text: string, letters: string, before: boolean, behind: boolean): string {
  let [from, to] = [0, text.length];
  while (before && from < to && letters.includes(text[from]!)) from++;
  while (behind && from < to && letters.includes(text[to - 1]!)) to--;
  return text.slice(from, to);
}

function substring(_: FunctionContext, text: string, from: number, length?: number): Value {
  const letters = Array.from(text);
  const start = from - 1;
  return letters.slice(Math.max(0, start), length === undefined ? undefined : Math.max(0, start + length)).join('');
}

const seriesMax = 100_000;

function series(from: number, to: number, step: number): number[] {
  if (step === 0) throw new ServiceError('REL_INVALID', 'the step of generate_series is not 0');
  const count = Math.max(0, Math.floor((to - from) / step) + 1);
  if (count > seriesMax) throw new ServiceError('REL_TOO_LARGE', `generate_series makes at most ${seriesMax} rows`);
  return Array.from({ length: count }, (_, i) => from + i * step);
}

const byName = new Map<string, CatalogueFunction[]>();
for (const each of functions) byName.set(each.name, [...(byName.get(each.name) ?? []), each]);

/** Finds a function by name and number of arguments; null: there is none. */
export function functionOf(name: string, given: number): CatalogueFunction | null {
  const catalogueFunction = byName
    .get(name)
    ?.find(({ takes, optional }) => given <= takes.length && given >= takes.length - optional);
  return catalogueFunction ?? null;
}

/** Whether a name, called without FROM, makes a question one of the catalogue. */
export function marksCatalogue(name: string): boolean {
  return byName.get(name)?.some(({ marks }) => marks) === true;
}

export function isFunction(name: string): boolean {
  return byName.has(name);
}

/** Names that mark a question, as its text has them. */
export const markingNames: readonly string[] = [...byName.keys()].filter(
  (name) => marksCatalogue(name) && !name.startsWith('pg_'),
);

/** Functions that yield several rows. */
export const setFunctions: ReadonlySet<string> = new Set(functions.flatMap(({ name, isSet }) => (isSet ? [name] : [])));
