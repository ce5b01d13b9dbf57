/**
 * Types of the catalogue's values, and the casts between them. Numbers of all kinds are numbers here, a reference to a catalogue
 * object (`regclass` and its like) is its number until it is shown, arrays are arrays.
 */
import { ServiceError } from '../../errors.ts';
import { compareText } from '../../log/values/value.ts';
import { formatInterval, parseInterval } from '../expressions/functions/intervals.ts';
import { catalogueTypes, type WireType } from './postgres-column-types.ts';

export type Value = null | string | number | boolean | readonly Value[] | RecordValue;

/** A row of `_pg_expandarray`: fields by name. */
export interface RecordValue {
  readonly fields: Readonly<Record<string, Value>>;
}

/** Names of things by their numbers, and back; null where there is none. */
export interface Names {
  nameOf(kind: ReferenceKind, oid: number): string | null;
  oidOf(kind: ReferenceKind, name: string): number | null;
}

export type ReferenceKind = 'regclass' | 'regtype' | 'regproc' | 'regoper' | 'regoperator' | 'regnamespace' | 'regrole';

export interface TypeDetails {
  /** `typcategory`, `typalign`, `typstorage`. */
  readonly category: string;
  readonly align: string;
  readonly storage: string;
  /** The name that `format_type` gives. */
  readonly formatted: string;
}

const details = (category: string, align: string, storage: string, formatted: string): TypeDetails => ({
  category,
  align,
  storage,
  formatted,
});

const known: ReadonlyMap<string, TypeDetails> = new Map(
  Object.entries({
    bool: details('B', 'c', 'p', 'boolean'),
    bytea: details('U', 'i', 'x', 'bytea'),
    char: details('Z', 'c', 'p', '"char"'),
    name: details('S', 'c', 'p', 'name'),
    int8: details('N', 'd', 'p', 'bigint'),
    int2: details('N', 's', 'p', 'smallint'),
    int2vector: details('A', 'i', 'p', 'int2vector'),
    int4: details('N', 'i', 'p', 'integer'),
    regproc: details('N', 'i', 'p', 'regproc'),
    text: details('S', 'i', 'x', 'text'),
    oid: details('N', 'i', 'p', 'oid'),
    xid: details('U', 'i', 'p', 'xid'),
    oidvector: details('A', 'i', 'p', 'oidvector'),
    json: details('U', 'i', 'x', 'json'),
    pg_node_tree: details('Z', 'i', 'x', 'pg_node_tree'),
    float4: details('N', 'i', 'p', 'real'),
    float8: details('N', 'd', 'p', 'double precision'),
    unknown: details('X', 'c', 'p', 'unknown'),
    aclitem: details('U', 'i', 'p', 'aclitem'),
    bpchar: details('S', 'i', 'x', 'character'),
    varchar: details('S', 'i', 'x', 'character varying'),
    date: details('D', 'i', 'p', 'date'),
    time: details('D', 'd', 'p', 'time without time zone'),
    timestamp: details('D', 'd', 'p', 'timestamp without time zone'),
    timestamptz: details('D', 'd', 'p', 'timestamp with time zone'),
    interval: details('T', 'd', 'p', 'interval'),
    numeric: details('N', 'i', 'm', 'numeric'),
    regprocedure: details('N', 'i', 'p', 'regprocedure'),
    regoper: details('N', 'i', 'p', 'regoper'),
    regoperator: details('N', 'i', 'p', 'regoperator'),
    regclass: details('N', 'i', 'p', 'regclass'),
    regtype: details('N', 'i', 'p', 'regtype'),
    record: details('P', 'd', 'x', 'record'),
    any: details('P', 'i', 'p', '"any"'),
    anyarray: details('P', 'd', 'x', 'anyarray'),
    void: details('P', 'i', 'p', 'void'),
    trigger: details('P', 'i', 'p', 'trigger'),
    uuid: details('U', 'c', 'p', 'uuid'),
    jsonb: details('U', 'i', 'x', 'jsonb'),
    regnamespace: details('N', 'i', 'p', 'regnamespace'),
    regrole: details('N', 'i', 'p', 'regrole'),
    vector: details('U', 'i', 'e', 'vector'),
  }),
);

export function detailsOf(type: string): TypeDetails {
  const typeDetails = known.get(type);
  if (typeDetails) return typeDetails;
  const element = known.get(type.slice(1))!;
  return details('A', element.align === 'd' ? 'd' : 'i', 'x', `${element.formatted}[]`);
}

const others: Readonly<Record<string, string>> = {
  bigint: 'int8',
  boolean: 'bool',
  'character varying': 'varchar',
  character: 'bpchar',
  decimal: 'numeric',
  'double precision': 'float8',
  float: 'float8',
  int: 'int4',
  integer: 'int4',
  real: 'float4',
  smallint: 'int2',
  'timestamp with time zone': 'timestamptz',
  'timestamp without time zone': 'timestamp',
  // Domains of information_schema.
  cardinal_number: 'int4',
  character_data: 'varchar',
  sql_identifier: 'name',
  yes_or_no: 'varchar',
  time_stamp: 'timestamptz',
};

/** The name that Postgres keeps of a type; null: it is none that is known here. */
export function typeNamed(name: string, isQuoted = false): string | null {
  const plain = !isQuoted && name === 'char' ? 'bpchar' : (others[name] ?? name);
  return catalogueTypes.has(plain) && !pseudo.has(plain) ? plain : null;
}

/** Nothing can be cast to these. */
const pseudo: ReadonlySet<string> = new Set(['any', 'anyarray', 'record', 'unknown', 'void']);

export function wireOf(type: string): WireType {
  return catalogueTypes.get(type)!;
}

export const typesByOid: ReadonlyMap<number, string> = new Map([...catalogueTypes.values()].map(({ oid, name }) => [oid, name]));

/** Element of a type of arrays; null for all others. */
export function elementOf(type: string): string | null {
  if (type === 'int2vector') return 'int2';
  if (type === 'oidvector') return 'oid';
  if (type === 'anyarray') return 'text';
  return type.startsWith('_') ? type.slice(1) : null;
}

export type Family = 'number' | 'text' | 'bool' | 'array' | 'record' | 'unknown' | 'time';

const numbers = new Set(
  'int2 int4 int8 oid xid float4 float8 numeric regclass regtype regproc regprocedure regoper regoperator regnamespace regrole'.split(
    ' ',
  ),
);

export function familyOf(type: string): Family {
  if (numbers.has(type)) return 'number';
  if (elementOf(type) !== null) return 'array';
  if (type === 'bool' || type === 'record' || type === 'unknown') return type;
  return type === 'timestamptz' || type === 'timestamp' || type === 'date' ? 'time' : 'text';
}

export function isReference(type: string): boolean {
  return type.startsWith('reg');
}

/** Each of them becomes any other: the first that comes counts. */
const plainTexts = new Set(['text', 'name', 'varchar', 'bpchar']);

const ranks = 'int2 int4 int8 numeric float4 float8'.split(' ');

/** The type that values of two types have together; null: there is none. */
export function commonOf(a: string, b: string): string | null {
  if (a === b || b === 'unknown') return a;
  if (a === 'unknown') return b;
  const family = familyOf(a);
  if (family !== familyOf(b)) return null;
  if (family === 'text') return commonText(a, b);
  if (family === 'array') {
    const element = commonOf(elementOf(a)!, elementOf(b)!);
    return element === null ? null : `_${element}`;
  }
  if (family !== 'number') return a;
  const [x, y] = [ranks.indexOf(a), ranks.indexOf(b)];
  if (x >= 0 && y >= 0) return ranks[Math.max(x, y)]!;
  return x < 0 && isReference(a) ? 'oid' : x < 0 ? a : 'oid';
}

function commonText(a: string, b: string): string | null {
  if (plainTexts.has(a) && (plainTexts.has(b) || b === 'char')) return a;
  return a === 'char' && plainTexts.has(b) ? b : null;
}

const misfit = (value: string, type: string): ServiceError =>
  new ServiceError('REL_TYPE_MISMATCH', `${JSON.stringify(value.slice(0, 100))} is no ${detailsOf(type).formatted}`);

/** Casts a value of one type to another; null: there is no such cast. */
export function castOf(source: string, target: string, names: Names): ((value: Value) => Value) | null {
  if (source === target) return (value) => value;
  const [from, to] = [familyOf(source), familyOf(target)];
  if (to === 'array' && from === 'array') {
    const each = castOf(elementOf(source)!, elementOf(target)!, names);
    return each && strict((value) => (value as Value[]).map((one) => (one === null ? null : each(one))));
  }
  if (from === 'unknown' || from === 'text') {
    if (target === 'interval') return strict((value) => formatInterval(parseInterval(value as string)));
    switch (to) {
      case 'number':
        return strict((value) => numberOf(value as string, target, names));
      case 'bool':
        return strict((value) => boolOf(value as string));
      case 'array':
        return from === 'text' && source !== 'text' && source !== 'varchar'
          ? null
          : strict((value) => arrayOf(value as string, target, names));
      case 'time':
      case 'text':
        return target === 'char' ? strict((value) => firstLetter(value as string)) : (value) => value;
      default:
        return null;
    }
  }
  if (to === 'text') {
    if (target === 'json' || target === 'jsonb' || from === 'record') return null;
    return strict((value) => (typeof value === 'boolean' ? String(value) : textOf(value, source, names)));
  }
  if (from === 'number' && to === 'number') {
    const whole = target !== 'float4' && target !== 'float8' && target !== 'numeric';
    return strict((value) => (whole ? Math.round(value as number) : value));
  }
  if (from === 'number' && to === 'bool') return strict((value) => value !== 0);
  if (from === 'bool' && to === 'number') return strict((value) => (value === true ? 1 : 0));
  return from === to ? (value) => value : null;
}

/** Whether a cast may refuse a value: one that reads a text may. */
export function castMayFail(source: string, target: string): boolean {
  const [from, to] = [familyOf(source), familyOf(target)];
  if (source === target || to === 'text') return target === 'interval' && source !== target;
  if (from === 'array' && to === 'array') return castMayFail(elementOf(source)!, elementOf(target)!);
  return from !== 'number' && from !== 'bool' && from !== 'time';
}

const strict =
  (each: (value: Exclude<Value, null>) => Value) =>
  (value: Value): Value =>
    value === null ? null : each(value);

function numberOf(text: string, type: string, names: Names): number {
  const plain = text.trim();
  if (/^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(plain)) {
    const value = Number(plain);
    if (Number.isInteger(value) || type === 'numeric' || type.startsWith('float')) return value;
  }
  if (!isReference(type)) throw misfit(text, type);
  if (plain === '-') return 0;
  const oid = names.oidOf(referenceKind(type), plain);
  if (oid === null) throw new ServiceError('REL_UNKNOWN_TYPE', `${JSON.stringify(plain.slice(0, 200))} is no ${type}`);
  return oid;
}

export function referenceKind(type: string): ReferenceKind {
  return type === 'regprocedure' ? 'regproc' : (type as ReferenceKind);
}

function boolOf(text: string): boolean {
  const plain = text.trim().toLowerCase();
  if (['t', 'true', 'y', 'yes', 'on', '1'].includes(plain)) return true;
  if (['f', 'false', 'n', 'no', 'off', '0'].includes(plain)) return false;
  throw misfit(text, 'bool');
}

/** `{a,"b c",NULL}` of one dimension; `1 2` for the vectors of the catalogue. */
function arrayOf(text: string, type: string, names: Names): Value[] {
  const element = elementOf(type)!;
  const cast = castOf('unknown', element, names)!;
  if (type === 'int2vector' || type === 'oidvector') return text.split(/\s+/).filter(Boolean).map(cast);
  return elementsOf(text, type).map((one) => (one === null ? null : cast(one)));
}

/** Without the blanks around it, but for one at the end that a backslash takes as it is. */
function withoutBlanks(element: string): string {
  const from = element.trimStart();
  const trimmed = from.trimEnd();
  let backslashes = 0;
  while (trimmed.at(-1 - backslashes) === '\\') backslashes++;
  return backslashes % 2 === 1 ? from.slice(0, trimmed.length + 1) : trimmed;
}

export function elementsOf(text: string, type: string): (string | null)[] {
  const inner = /^\s*\{([^]*)\}\s*$/.exec(text)?.[1];
  if (inner === undefined || /^\s*\{/.test(inner)) throw misfit(text, type);
  if (inner.trim() === '') return [];
  const elements: (string | null)[] = [];
  const pattern = /(?:\s*"((?:[^"\\]|\\[^])*)"\s*|((?:[^,"\\{}]|\\[^])*))(,|$)/y;
  for (;;) {
    const match = pattern.exec(inner);
    if (match === null) throw misfit(text, type);
    const [, quoted, between = '', end] = match;
    const plain = withoutBlanks(between);
    if (quoted === undefined && plain === '') throw misfit(text, type);
    const bare = (quoted ?? plain).replaceAll(/\\([^])/g, '$1');
    elements.push(quoted === undefined && bare.toUpperCase() === 'NULL' ? null : bare);
    if (end === '') return elements;
  }
}

/** The value in the protocol's text format. */
export function textOf(value: Exclude<Value, null>, type: string, names: Names): string {
  if (typeof value === 'boolean') return value ? 't' : 'f';
  if (typeof value === 'string') return value;
  if (typeof value === 'number') {
    if (!isReference(type)) return String(value);
    return value === 0 ? '-' : (names.nameOf(referenceKind(type), value) ?? String(value));
  }
  if ('fields' in value)
    return `(${Object.values(value.fields)
      .map((each) => (each === null ? '' : textOf(each, 'text', names)))
      .join(',')})`;
  const element = elementOf(type)!;
  const texts = value.map((each) => (each === null ? null : textOf(each, element, names)));
  if (type === 'int2vector' || type === 'oidvector') return texts.join(' ');
  return `{${texts.map((text) => (text === null ? 'NULL' : quotedElement(text))).join(',')}}`;
}

/** The element as it stands in the text of an array. */
export function quotedElement(text: string): string {
  return text === '' || /[\s{},"\\]/.test(text) || text.toUpperCase() === 'NULL'
    ? `"${text.replaceAll(/["\\]/g, '\\$&')}"`
    : text;
}

/** Below 0, 0, above: for two values of one family, neither of them NULL. */
export function compare(a: Value, b: Value): number {
  if (Array.isArray(a) && Array.isArray(b)) {
    for (let i = 0; i < Math.min(a.length, b.length); i++) {
      const order =
        a[i] === null || b[i] === null ? Number(a[i] === null) - Number(b[i] === null) : compare(a[i] as Value, b[i] as Value);
      if (order !== 0) return order;
    }
    return a.length - b.length;
  }
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b);
  return a! < b! ? -1 : a! > b! ? 1 : 0;
}

function firstLetter(text: string): string {
  return text === '' ? '' : String.fromCodePoint(text.codePointAt(0)!);
}
