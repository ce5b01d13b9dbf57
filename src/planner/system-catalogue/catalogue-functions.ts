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
  run(context: FunctionContext, arrayValues: readonly Value[], types: readonly string[]): Value;
}

// oxlint-disable-next-line typescript/no-explicit-any -- what a function takes is said by its usage, which is what calls are checked against
type RunFunction = (context: FunctionContext, ...arrayValues: any[]) => Value;

const memberFields = (type: string): CatalogueFunction['fields'] => [
  { name: 'key', type: 'text' },
  { name: 'value', type },
];

const recordFields: Readonly<Record<string, CatalogueFunction['fields']>> = {
  _pg_expandarray: [
    { name: 'x', type: 'int4' },
    { name: 'n', type: 'int4' },
  ],
  json_each: memberFields('json'),
  jsonb_each: memberFields('json'),
  json_each_text: memberFields('text'),
  jsonb_each_text: memberFields('text'),
  pg_get_keywords: [
    { name: 'word', type: 'text' },
    { name: 'catcode', type: 'char' },
    { name: 'catdesc', type: 'text' },
    { name: 'barelabel', type: 'bool' },
    { name: 'baredesc', type: 'text' },
  ],
};

const yieldNull: RunFunction = () => null;
const yieldTrue: RunFunction = () => true;

const neverFailingFunctions: ReadonlySet<string> = new Set(
  (
    'unnest generate_subscripts array_to_string array_length array_upper array_lower cardinality format_type pg_typeof pg_get_userbyid ' +
    'pg_get_indexdef pg_get_constraintdef pg_table_is_visible pg_encoding_to_char obj_description shobj_description to_regclass to_regtype _array'
  ).split(' '),
);

/** `name(type, type?) yields`; `setof` before the type of a set. */
function catalogueFunction(
  functionUsage: string,
  runFunction: RunFunction,
  isMarked = true,
  takesTypes = false,
): CatalogueFunction {
  const [, functionName, givenTypes, isSetUsage, yieldedType, takesNulls] = /^(\w+)\((.*?)\) (setof )?(\w+)( null)?$/.exec(
    functionUsage,
  )!;
  const takenTypes = givenTypes === '' ? [] : givenTypes!.split(', ');
  return {
    name: functionName!,
    takes: takenTypes.map((type) => type.replace('?', '')),
    optional: takenTypes.filter((type) => type.endsWith('?')).length,
    yields: yieldedType!,
    isSet: isSetUsage !== undefined,
    fields: yieldedType === 'record' ? (recordFields[functionName!] ?? []) : [],
    takesNull: takesNulls !== undefined,
    mayFail: !(runFunction === yieldNull || runFunction === yieldTrue || neverFailingFunctions.has(functionName!)),
    marks: isMarked,
    run: (context, values, types) => (takesTypes ? runFunction(context, values, types) : runFunction(context, ...values)),
  };
}

const unmarkedFunction = (usage: string, run: RunFunction, takesTypes = false): CatalogueFunction =>
  catalogueFunction(usage, run, false, takesTypes);

const tableWithOid = ({ facts }: FunctionContext, tableOid: number): Table | undefined => {
  const foundTable = facts.tableOf(tableOid);
  return foundTable?.oid === tableOid ? foundTable : undefined;
};

/** Privileges on a table as clients see them; the policies decide when it is used. */
function mayReadTable(context: FunctionContext, tableOid: number): boolean | null {
  const readTable = tableWithOid(context, tableOid);
  if (readTable) return context.facts.isReadable(readTable);
  return context.names.nameOf('regclass', tableOid) === null ? null : true;
}

const relationOid = (context: FunctionContext, relationNameOrOid: string | number): number => {
  if (typeof relationNameOrOid === 'number') return relationNameOrOid;
  const oid = /^\d+$/.test(relationNameOrOid) ? Number(relationNameOrOid) : context.names.oidOf('regclass', relationNameOrOid);
  if (oid === null)
    throw new ServiceError('REL_UNKNOWN_TYPE', `there is no relation ${JSON.stringify(relationNameOrOid.slice(0, 200))}`);
  return oid;
};

/** With or without a role in front of the object. */
const privilegeFunction = (
  privilegeName: string,
  judgePrivilege: (context: FunctionContext, grantedObject: string | number) => boolean | null,
): CatalogueFunction[] => [
  catalogueFunction(`${privilegeName}(any, text) bool`, (context, grantedObject) => judgePrivilege(context, grantedObject)),
  catalogueFunction(`${privilegeName}(any, any, text) bool`, (context, _role, grantedObject) =>
    judgePrivilege(context, grantedObject),
  ),
];

const prettySize = (bytes: number): string => {
  const sizeUnits = ['bytes', 'kB', 'MB', 'GB', 'TB'];
  let [sizeInUnit, unitOrdinal] = [bytes, 0];
  while (Math.abs(sizeInUnit) >= 10_240 && unitOrdinal < sizeUnits.length - 1) {
    sizeInUnit /= 1024;
    unitOrdinal++;
  }
  return `${Math.round(sizeInUnit)} ${sizeUnits[unitOrdinal]!}`;
};

const currentUserName: RunFunction = ({ facts }) => facts.session.user;
const currentDatabaseName: RunFunction = ({ facts }) => facts.session.database;

function sessionSetting({ facts }: FunctionContext, name: string, mayBeMissing = false): Value {
  const setting = [...facts.session.variables.all(), ...constants].find(
    (sessionVariable) => sessionVariable.name === name.toLowerCase(),
  );
  if (setting) return setting.value;
  if (mayBeMissing) return null;
  throw new ServiceError('REL_NOT_FOUND', `there is no setting ${JSON.stringify(name.slice(0, 100))}; SHOW ALL lists them`);
}

function formattedType(_: FunctionContext, oid: number | null, typeModifier: number | null): Value {
  if (oid === null) return null;
  const formattedTypeNamed = typesByOid.get(oid);
  if (formattedTypeNamed === undefined) return '???';
  const { formatted: formattedTypeName } = detailsOf(formattedTypeNamed);
  return formattedTypeNamed === 'vector' && typeModifier !== null && typeModifier > 0
    ? `${formattedTypeName}(${typeModifier})`
    : formattedTypeName;
}

function indexDefinitionText({ facts }: FunctionContext, oid: number, indexColumn = 0): Value {
  const indexedTable = facts.tableOf(oid);
  if (!indexedTable?.key || oid !== indexOf(indexedTable)) return null;
  return indexColumn === 0 ? indexDefinition(indexedTable) : indexColumn === 1 ? quotedName(indexedTable.key.name) : '';
}

const formattedTypeOid = (oid: number): string => detailsOf(typesByOid.get(oid)!).formatted;

function procedureArguments(procedureOid: number, withDefaults: boolean): Value {
  const procedure = procedures.find((each) => each.oid === procedureOid);
  if (!procedure) return null;
  const { takes: takenOids, names, optional } = procedure;
  return takenOids
    .map((type, i) => {
      const argumentText = `${names ? `${names[i]!} ` : ''}${formattedTypeOid(type)}`;
      return withDefaults && i >= takenOids.length - optional ? `${argumentText} DEFAULT NULL` : argumentText;
    })
    .join(', ');
}

/** As many arguments as a function of Postgres may take. */
const anyArgumentCount = Array.from({ length: 100 }, () => 'any?').join(', ');

export const version = 'PostgreSQL 15.0 (Annals)';

const catalogueFunctionList: readonly CatalogueFunction[] = [
  catalogueFunction('version() text', () => version),
  catalogueFunction('current_database() name', currentDatabaseName),
  catalogueFunction('current_catalog() name', currentDatabaseName),
  catalogueFunction('current_schema() name', () => 'public'),
  catalogueFunction('current_schemas(bool) _name', (_, implicit) => (implicit ? ['pg_catalog', 'public'] : ['public'])),
  catalogueFunction('current_user() name', currentUserName),
  catalogueFunction('session_user() name', currentUserName),
  catalogueFunction('current_role() name', currentUserName),
  catalogueFunction('user() name', currentUserName),
  catalogueFunction('current_setting(text, bool?) text', sessionSetting),
  catalogueFunction(
    'set_config(text, text, bool) text null',
    ({ facts }, name: string | null, value: string | null, local: boolean | null) => {
      if (name === null) throw new ServiceError('REL_INVALID', 'set_config() takes the name of a setting');
      facts.session.variables.set(name.toLowerCase(), value, local === true);
      return sessionSetting({ facts } as FunctionContext, name);
    },
  ),
  catalogueFunction('pg_backend_pid() int4', ({ facts }) => facts.session.process),
  // There is nothing to unlock: locks are never given.
  catalogueFunction('pg_advisory_unlock_all() void', () => ''),
  catalogueFunction('pg_is_in_recovery() bool', () => false),
  catalogueFunction('pg_my_temp_schema() oid', () => 0),
  catalogueFunction('pg_is_other_temp_schema(oid) bool', () => false),
  catalogueFunction('txid_current_if_assigned() int8', yieldNull),
  catalogueFunction('inet_server_addr() text', yieldNull),
  catalogueFunction('inet_client_addr() text', yieldNull),
  catalogueFunction('pg_client_encoding() name', () => 'UTF8'),
  catalogueFunction('getdatabaseencoding() name', () => 'UTF8'),
  catalogueFunction('pg_encoding_to_char(int4) name', (_, encoding) => (encoding === 6 ? 'UTF8' : '')),
  catalogueFunction('pg_char_to_encoding(name) int4', (_, name) => (/^utf-?8$/i.test(name) ? 6 : -1)),
  catalogueFunction('pg_encoding_max_length(int4) int4', (_, encoding) => (encoding === 6 ? 4 : null)),
  catalogueFunction('pg_get_userbyid(oid) name', ({ names }, oid) => names.roleName(oid) ?? `unknown (OID=${oid})`),
  catalogueFunction('format_type(oid, int4) text null', formattedType),
  catalogueFunction('pg_typeof(any) regtype null', (_, __, [type]: string[]) => wireOf(type!).oid, true, true),
  catalogueFunction('pg_get_expr(pg_node_tree, oid, bool?) text', yieldNull),
  catalogueFunction('pg_get_indexdef(oid, int4?, bool?) text', indexDefinitionText),
  catalogueFunction('pg_get_constraintdef(oid, bool?) text', ({ names }, oid) => {
    const constraint = names.constraint(oid);
    if (constraint === null) return null;
    const { column, target } = constraint;
    if (target === null) return `PRIMARY KEY (${quotedName(column.name)})`;
    return `FOREIGN KEY (${quotedName(column.name)}) REFERENCES ${quotedName(target.name)}(${quotedName(target.key!.name)}) NOT VALID`;
  }),
  catalogueFunction(
    'pg_get_viewdef(any, any?) text',
    (context, givenOperand) => context.facts.tableOf(relationOid(context, givenOperand))?.sql ?? null,
  ),
  catalogueFunction('pg_get_partkeydef(oid) text', yieldNull),
  catalogueFunction('pg_get_partition_constraintdef(oid) text', yieldNull),
  catalogueFunction('pg_get_triggerdef(oid, bool?) text', yieldNull),
  catalogueFunction('pg_get_ruledef(oid, bool?) text', yieldNull),
  catalogueFunction('pg_get_statisticsobjdef_columns(oid) text', yieldNull),
  catalogueFunction('pg_get_serial_sequence(text, text) text', yieldNull),
  catalogueFunction('pg_get_functiondef(oid) text', yieldNull),
  catalogueFunction('pg_get_function_sqlbody(oid) text', yieldNull),
  catalogueFunction('pg_get_function_result(oid) text', (_, oid) => {
    const procedure = procedures.find((each) => each.oid === oid);
    if (!procedure) return null;
    return `${procedure.isSet ? 'SETOF ' : ''}${formattedTypeOid(procedure.yields)}`;
  }),
  catalogueFunction('pg_get_function_arguments(oid) text', (_, oid) => procedureArguments(oid, true)),
  catalogueFunction('pg_get_function_identity_arguments(oid) text', (_, oid) => procedureArguments(oid, false)),
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
  ].map((kind) => catalogueFunction(`pg_${kind}_is_visible(oid) bool`, kind === 'table' ? isRelationVisible : yieldTrue)),
  catalogueFunction('pg_relation_is_publishable(regclass) bool', () => false),
  catalogueFunction('pg_relation_is_updatable(regclass, bool) int4', (context, oid) =>
    tableWithOid(context, oid)?.kind === 'r' ? 28 : 0,
  ),
  catalogueFunction(
    'pg_column_is_updatable(regclass, int2, bool) bool',
    (context, oid) => tableWithOid(context, oid)?.kind === 'r',
  ),
  catalogueFunction('pg_index_column_has_property(regclass, int4, text) bool', yieldNull),
  catalogueFunction('pg_index_has_property(regclass, text) bool', yieldNull),
  catalogueFunction('pg_indexam_has_property(oid, text) bool', yieldNull),
  catalogueFunction('pg_get_keywords() setof record', () =>
    listKeyWords().map((word) => ({
      fields: { word, catcode: 'R', catdesc: 'reserved', barelabel: true, baredesc: 'can be bare label' },
    })),
  ),
  catalogueFunction('obj_description(oid, name?) text', (_, oid, catalogue) =>
    catalogue === 'pg_proc' ? (procedures.find((each) => each.oid === oid)?.summary ?? null) : null,
  ),
  catalogueFunction('col_description(oid, int4) text', yieldNull),
  catalogueFunction('pg_describe_object(oid, oid, int4) text', yieldNull),
  catalogueFunction('shobj_description(oid, name) text', yieldNull),
  ...[
    'pg_table_size(regclass)',
    'pg_total_relation_size(regclass)',
    'pg_relation_size(regclass, text?)',
    'pg_indexes_size(regclass)',
  ].map((usage) => catalogueFunction(`${usage} int8`, yieldNull)),
  catalogueFunction('pg_database_size(any) int8', yieldNull),
  catalogueFunction('pg_stat_get_numscans(oid) int8', yieldNull),
  catalogueFunction('pg_tablespace_location(oid) text', () => ''),
  catalogueFunction('pg_tablespace_size(any) int8', yieldNull),
  catalogueFunction('pg_size_pretty(float8) text', (_, bytes) => prettySize(bytes)),
  ...privilegeFunction('has_table_privilege', (context, givenOperand) =>
    mayReadTable(context, relationOid(context, givenOperand)),
  ),
  ...privilegeFunction('has_any_column_privilege', (context, givenOperand) =>
    mayReadTable(context, relationOid(context, givenOperand)),
  ),
  catalogueFunction('has_column_privilege(any, any, text) bool', (context, givenOperand) =>
    mayReadTable(context, relationOid(context, givenOperand)),
  ),
  catalogueFunction('has_column_privilege(any, any, any, text) bool', (context, _, givenOperand) =>
    mayReadTable(context, relationOid(context, givenOperand)),
  ),
  ...['schema', 'database', 'function', 'type', 'language', 'sequence', 'tablespace'].flatMap((kind) =>
    privilegeFunction(`has_${kind}_privilege`, () => true),
  ),
  catalogueFunction('pg_has_role(any, text) bool', yieldTrue),
  catalogueFunction('pg_has_role(any, any, text) bool', yieldTrue),
  catalogueFunction('to_regclass(text) regclass', ({ names }, givenText) => names.oidOf('regclass', givenText)),
  catalogueFunction('to_regtype(text) regtype', ({ names }, givenText) => names.oidOf('regtype', givenText)),
  catalogueFunction('to_regnamespace(text) regnamespace', ({ names }, givenText) => names.oidOf('regnamespace', givenText)),
  catalogueFunction('to_regproc(text) regproc', ({ names }, givenText) => names.oidOf('regproc', givenText)),
  catalogueFunction('to_regrole(text) regrole', ({ names }, givenText) => names.oidOf('regrole', givenText)),
  catalogueFunction('_pg_expandarray(anyarray) setof record', (_, arrayValues: Value[]) =>
    arrayValues.map((x, i) => ({ fields: { x, n: i + 1 } })),
  ),
  unmarkedFunction('_array(anyarray) same null', (_, arrayValues: Value[] | null) => arrayValues ?? []),
  catalogueFunction(
    'array_to_string(anyarray, text, text?) text null',
    ({ names }, [arrayValues, elementSeparator, nullReplacement = null]: Value[], [type]: string[]) => {
      if (arrayValues === null || elementSeparator === null) return null;
      return (arrayValues as Value[])
        .flatMap((value) =>
          value === null
            ? nullReplacement === null
              ? []
              : [nullReplacement as string]
            : [textOf(value, elementOf(type!)!, names)],
        )
        .join(elementSeparator as string);
    },
    false,
    true,
  ),
  unmarkedFunction(
    'string_to_array(text, text, text?) _text null',
    (_, givenText: string | null, by: string | null, nullReplacement: string | null = null) =>
      splitTextPieces(givenText, by, nullReplacement),
  ),
  unmarkedFunction('regexp_match(text, text, text?) _text', (_, givenText: string, givenPattern: string, regexpFlags = '') => {
    for (const regexpMatch of findMatches(givenText, givenPattern, checkNotGlobal('REGEXP_MATCH', regexpFlags)))
      return regexpGroups(regexpMatch);
    return null;
  }),
  unmarkedFunction(
    'regexp_matches(text, text, text?) setof _text',
    (_, givenText: string, givenPattern: string, regexpFlags = '') => {
      const formatted: string[] = [];
      for (const regexpMatch of findMatches(givenText, givenPattern, regexpFlags)) {
        formatted.push(
          `{${regexpGroups(regexpMatch)
            .map((each) => (each === null ? 'NULL' : quotedElement(each)))
            .join(',')}}`,
        );
        if (!regexpFlags.includes('g')) break;
      }
      return formatted;
    },
  ),
  unmarkedFunction(
    'regexp_split_to_array(text, text, text?) _text',
    (_, givenText: string, givenPattern: string, regexpFlags = '') =>
      splitText(givenText, givenPattern, checkNotGlobal('REGEXP_SPLIT_TO_ARRAY', regexpFlags)),
  ),
  unmarkedFunction(
    'regexp_split_to_table(text, text, text?) setof text',
    (_, givenText: string, givenPattern: string, regexpFlags = '') =>
      splitText(givenText, givenPattern, checkNotGlobal('REGEXP_SPLIT_TO_TABLE', regexpFlags)),
  ),
  unmarkedFunction(
    'string_to_table(text, text, text?) setof text null',
    (_, givenText: string | null, by: string | null, nullReplacement: string | null = null) =>
      splitTextPieces(givenText, by, nullReplacement) ?? [],
  ),
  unmarkedFunction('array_append(anyarray, any) same null', (_, arrayValues: Value[] | null, each: Value) => [
    ...(arrayValues ?? []),
    each,
  ]),
  unmarkedFunction('array_prepend(any, anyarray) second null', (_, each: Value, arrayValues: Value[] | null) => [
    each,
    ...(arrayValues ?? []),
  ]),
  unmarkedFunction('array_cat(anyarray, anyarray) same null', (_, first: Value[] | null, second: Value[] | null) =>
    first === null || second === null ? (first ?? second) : [...first, ...second],
  ),
  unmarkedFunction('array_remove(anyarray, any) same null', (_, arrayValues: Value[] | null, each: Value) =>
    arrayValues === null ? null : arrayValues.filter((value) => !isSameArrayElement(value, each)),
  ),
  unmarkedFunction('array_replace(anyarray, any, any) same null', (_, arrayValues: Value[] | null, each: Value, by: Value) =>
    arrayValues === null ? null : arrayValues.map((value) => (isSameArrayElement(value, each) ? by : value)),
  ),
  unmarkedFunction('array_positions(anyarray, any) _int4 null', (_, arrayValues: Value[] | null, each: Value) =>
    arrayValues === null ? null : arrayValues.flatMap((value, i) => (isSameArrayElement(value, each) ? [i + 1] : [])),
  ),
  unmarkedFunction('trim_array(anyarray, int4) same', (_, arrayValues: Value[], givenNumber: number) => {
    if (givenNumber < 0 || givenNumber > arrayValues.length)
      throw new ServiceError('REL_INVALID', 'trim_array() takes 0 to as many elements as there are');
    return arrayValues.slice(0, arrayValues.length - givenNumber);
  }),
  unmarkedFunction('array_dims(anyarray) text', (_, arrayValues: Value[]) =>
    arrayValues.length > 0 ? `[1:${arrayValues.length}]` : null,
  ),
  catalogueFunction('parse_ident(text, bool?) _text', (_, givenText: string, strict = true) =>
    parseIdentifiers(givenText, strict),
  ),
  unmarkedFunction('array_length(anyarray, int4) int4', (_, arrayValues: Value[], dimension) =>
    dimension === 1 && arrayValues.length > 0 ? arrayValues.length : null,
  ),
  unmarkedFunction('array_upper(anyarray, int4) int4', (_, arrayValues: Value[], dimension) =>
    dimension === 1 && arrayValues.length > 0 ? arrayValues.length : null,
  ),
  unmarkedFunction('array_lower(anyarray, int4) int4', (_, arrayValues: Value[], dimension) =>
    dimension === 1 && arrayValues.length > 0 ? 1 : null,
  ),
  unmarkedFunction('array_ndims(anyarray) int4', (_, arrayValues: Value[]) => (arrayValues.length > 0 ? 1 : null)),
  unmarkedFunction('cardinality(anyarray) int4', (_, arrayValues: Value[]) => arrayValues.length),
  unmarkedFunction('array_position(anyarray, any) int4', (_, arrayValues: Value[], givenOperand: Value) => {
    const elementIndex = arrayValues.findIndex((value) => value !== null && compare(value, givenOperand) === 0);
    return elementIndex < 0 ? null : elementIndex + 1;
  }),
  unmarkedFunction('unnest(anyarray) setof element', (_, arrayValues: Value[]) => arrayValues),
  unmarkedFunction('_ordinality(anyarray) setof int8', (_, arrayValues: Value[]) => arrayValues.map((_each, i) => i + 1)),
  unmarkedFunction('generate_series(int8, int8, int8?) setof int4', (_, givenStart: number, givenEnd: number, seriesStep = 1) =>
    generatedSeries(givenStart, givenEnd, seriesStep),
  ),
  // The vectors of the catalogue count from 0, all else from 1.
  catalogueFunction(
    'generate_subscripts(anyarray, int4) setof int4',
    (_, [arrayValues]: [Value[]], [type]: string[]) => {
      const first = type === 'int2vector' || type === 'oidvector' ? 0 : 1;
      return arrayValues.map((_each, i) => i + first);
    },
    false,
    true,
  ),
  catalogueFunction(
    `format(text, ${anyArgumentCount}) text null`,
    ({ names }, [givenPattern, ...arrayValues]: Value[], [, ...types]: string[]) =>
      givenPattern === null
        ? null
        : formatText(
            givenPattern as string,
            arrayValues.map((value, i) => (value === null ? null : textOf(value, types[i]!, names))),
          ),
    true,
    true,
  ),
  catalogueFunction('_no_oids(any) setof oid', () => []),
  catalogueFunction('_no_flags(any) setof bool', () => []),
  unmarkedFunction('_json_values(json) setof json', (_, jsonObject: string) => membersOf(jsonObject).map(([, value]) => value)),
  unmarkedFunction('_json_texts(json) setof text', (_, jsonObject: string) =>
    membersOf(jsonObject).map(([, value]) => asText(value)),
  ),
  unmarkedFunction('_json_ordinality(json) setof int8', (_, jsonList: string) => rowsOfList(jsonList).map((_each, i) => i + 1)),
  ...['json', 'jsonb'].flatMap((kind) => [
    unmarkedFunction(`${kind}_array_elements(json) setof json`, (_, jsonList: string) => rowsOfList(jsonList)),
    unmarkedFunction(`${kind}_array_elements_text(json) setof text`, (_, jsonList: string) => rowsOfList(jsonList).map(asText)),
    unmarkedFunction(`${kind}_object_keys(json) setof text`, (_, jsonObject: string) =>
      membersOf(jsonObject).map(([name]) => name),
    ),
    unmarkedFunction(`${kind}_each(json) setof record`, (_, jsonObject: string) =>
      membersOf(jsonObject).map(([key, value]) => ({ fields: { key, value } })),
    ),
    unmarkedFunction(`${kind}_each_text(json) setof record`, (_, jsonObject: string) =>
      membersOf(jsonObject).map(([key, value]) => ({ fields: { key, value: asText(value) } })),
    ),
  ]),
  unmarkedFunction('lower(text) text', (_, givenText) => givenText.toLowerCase()),
  unmarkedFunction('upper(text) text', (_, givenText) => givenText.toUpperCase()),
  unmarkedFunction('length(text) int4', (_, givenText) => [...givenText].length),
  unmarkedFunction('char_length(text) int4', (_, givenText) => [...givenText].length),
  unmarkedFunction('ltrim(text, text?) text', (_, givenText, trimmedLetters = ' ') =>
    trimLetters(givenText, trimmedLetters, true, false),
  ),
  unmarkedFunction('rtrim(text, text?) text', (_, givenText, trimmedLetters = ' ') =>
    trimLetters(givenText, trimmedLetters, false, true),
  ),
  unmarkedFunction('btrim(text, text?) text', (_, givenText, trimmedLetters = ' ') =>
    trimLetters(givenText, trimmedLetters, true, true),
  ),
  unmarkedFunction('substring(text, int4, int4?) text', sqlSubstring),
  unmarkedFunction('substr(text, int4, int4?) text', sqlSubstring),
  unmarkedFunction('left(text, int4) text', (_, givenText, givenNumber) => [...givenText].slice(0, givenNumber).join('')),
  unmarkedFunction('replace(text, text, text) text', (_, givenText, searchedText, by) =>
    searchedText === '' ? givenText : givenText.replaceAll(searchedText, by),
  ),
  unmarkedFunction('strpos(text, text) int4', (_, givenText, searchedText) =>
    givenText.includes(searchedText) ? [...givenText.split(searchedText, 1)[0]].length + 1 : 0,
  ),
  unmarkedFunction(
    'split_part(text, text, int4) text',
    (_, givenText, by, givenNumber) => givenText.split(by)[givenNumber - 1] ?? '',
  ),
  unmarkedFunction('abs(float8) float8', (_, value) => Math.abs(value)),
  unmarkedFunction('random() float8', ({ draws }) => draws.number()),
  unmarkedFunction('setseed(float8) void', ({ draws }, givenStart: number) => {
    draws.seed(givenStart);
    return '';
  }),
  unmarkedFunction('gen_random_uuid() uuid', ({ draws }) => draws.uuid()),
];

/** The groups of a match, or the match where its pattern has none. */
function regexpGroups(regexpMatched: Match): (string | null)[] {
  const matchGroups = regexpMatched.groups();
  return matchGroups.length === 0 ? [regexpMatched.text] : matchGroups;
}

function isRelationVisible({ names, facts }: FunctionContext, relationOidGiven: number): Value {
  const visibleTable = facts.tableOf(relationOidGiven);
  if (visibleTable)
    return relationOidGiven === visibleTable.oid || (visibleTable.key !== null && relationOidGiven === indexOf(visibleTable))
      ? true
      : null;
  const relationName = names.nameOf('regclass', relationOidGiven);
  return relationName === null ? null : !relationName.startsWith('information_schema.');
}

/** Without a separator each character is a piece. */
function splitTextPieces(text: string | null, separator: string | null, nullText: string | null): (string | null)[] | null {
  if (text === null) return null;
  const textParts = text === '' ? [] : separator === null ? Array.from(text) : separator === '' ? [text] : text.split(separator);
  return textParts.map((textPart) => (textPart === nullText ? null : textPart));
}

/** NULL is the same as NULL. */
function isSameArrayElement(oneElement: Value, otherElement: Value): boolean {
  return oneElement === null || otherElement === null ? oneElement === otherElement : compare(oneElement, otherElement) === 0;
}

/** The names of `a."B"."c"`, in lower case where they have no quotes. */
function parseIdentifiers(text: string, strict: boolean): string[] {
  const identifierPattern = /\s*(?:"((?:[^"]|"")+)"|([\p{L}_][\p{L}\p{N}_$]*))\s*(\.?)/uy;
  const parsedIdentifiers: string[] = [];
  for (let hasMoreIdentifiers = true; hasMoreIdentifiers; ) {
    const match = identifierPattern.exec(text);
    if (match === null) throw new ServiceError('REL_INVALID', `${JSON.stringify(text.slice(0, 100))} is no name`);
    parsedIdentifiers.push(match[1]?.replaceAll('""', '"') ?? match[2]!.toLowerCase());
    hasMoreIdentifiers = match[3] === '.';
    if (!hasMoreIdentifiers && strict && identifierPattern.lastIndex < text.length)
      throw new ServiceError('REL_INVALID', `${JSON.stringify(text.slice(0, 100))} is no name`);
  }
  return parsedIdentifiers;
}

function trimLetters(text: string, letters: string, trimsBefore: boolean, trimsBehind: boolean): string {
  let [trimmedFrom, trimmedTo] = [0, text.length];
  while (trimsBefore && trimmedFrom < trimmedTo && letters.includes(text[trimmedFrom]!)) trimmedFrom++;
  while (trimsBehind && trimmedFrom < trimmedTo && letters.includes(text[trimmedTo - 1]!)) trimmedTo--;
  return text.slice(trimmedFrom, trimmedTo);
}

function sqlSubstring(_: FunctionContext, text: string, firstLetterNumber: number, letterCount?: number): Value {
  const substringLetters = Array.from(text);
  const substringStart = firstLetterNumber - 1;
  return substringLetters
    .slice(Math.max(0, substringStart), letterCount === undefined ? undefined : Math.max(0, substringStart + letterCount))
    .join('');
}

const generatedSeriesMax = 100_000;

function generatedSeries(seriesFrom: number, seriesTo: number, stepOfSeries: number): number[] {
  if (stepOfSeries === 0) throw new ServiceError('REL_INVALID', 'the step of generate_series is not 0');
  const seriesCount = Math.max(0, Math.floor((seriesTo - seriesFrom) / stepOfSeries) + 1);
  if (seriesCount > generatedSeriesMax)
    throw new ServiceError('REL_TOO_LARGE', `generate_series makes at most ${generatedSeriesMax} rows`);
  return Array.from({ length: seriesCount }, (_, i) => seriesFrom + i * stepOfSeries);
}

const functionsByName = new Map<string, CatalogueFunction[]>();
for (const each of catalogueFunctionList) functionsByName.set(each.name, [...(functionsByName.get(each.name) ?? []), each]);

/** Finds a function by name and number of arguments; null: there is none. */
export function functionOf(name: string, givenCount: number): CatalogueFunction | null {
  const catalogueFunction = functionsByName
    .get(name)
    ?.find(({ takes, optional }) => givenCount <= takes.length && givenCount >= takes.length - optional);
  return catalogueFunction ?? null;
}

/** Whether a name, called without FROM, makes a question one of the catalogue. */
export function marksCatalogue(name: string): boolean {
  return functionsByName.get(name)?.some(({ marks }) => marks) === true;
}

export function isFunction(name: string): boolean {
  return functionsByName.has(name);
}

/** Names that mark a question, as its text has them. */
export const markingNames: readonly string[] = [...functionsByName.keys()].filter(
  (name) => marksCatalogue(name) && !name.startsWith('pg_'),
);

/** Functions that yield several rows. */
export const setFunctions: ReadonlySet<string> = new Set(
  catalogueFunctionList.flatMap(({ name, isSet }) => (isSet ? [name] : [])),
);
