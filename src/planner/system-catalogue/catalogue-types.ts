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

const knownTypeDetails: ReadonlyMap<string, TypeDetails> = new Map(
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
  const typeDetails = knownTypeDetails.get(type);
  if (typeDetails) return typeDetails;
  const elementDetails = knownTypeDetails.get(type.slice(1))!;
  return details('A', elementDetails.align === 'd' ? 'd' : 'i', 'x', `${elementDetails.formatted}[]`);
}

const otherTypeNames: Readonly<Record<string, string>> = {
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
  const plainTypeName = !isQuoted && name === 'char' ? 'bpchar' : (otherTypeNames[name] ?? name);
  return catalogueTypes.has(plainTypeName) && !pseudoTypes.has(plainTypeName) ? plainTypeName : null;
}

/** Nothing can be cast to these. */
const pseudoTypes: ReadonlySet<string> = new Set(['any', 'anyarray', 'record', 'unknown', 'void']);

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

const numberTypes = new Set(
  'int2 int4 int8 oid xid float4 float8 numeric regclass regtype regproc regprocedure regoper regoperator regnamespace regrole'.split(
    ' ',
  ),
);

export function familyOf(type: string): Family {
  if (numberTypes.has(type)) return 'number';
  if (elementOf(type) !== null) return 'array';
  if (type === 'bool' || type === 'record' || type === 'unknown') return type;
  return type === 'timestamptz' || type === 'timestamp' || type === 'date' ? 'time' : 'text';
}

export function isReference(type: string): boolean {
  return type.startsWith('reg');
}

/** Each of them becomes any other: the first that comes counts. */
const plainTextTypes = new Set(['text', 'name', 'varchar', 'bpchar']);

const numberTypeRanks = 'int2 int4 int8 numeric float4 float8'.split(' ');

/** The type that values of two types have together; null: there is none. */
export function commonOf(leftType: string, rightType: string): string | null {
  if (leftType === rightType || rightType === 'unknown') return leftType;
  if (leftType === 'unknown') return rightType;
  const typeFamily = familyOf(leftType);
  if (typeFamily !== familyOf(rightType)) return null;
  if (typeFamily === 'text') return commonTextType(leftType, rightType);
  if (typeFamily === 'array') {
    const commonElement = commonOf(elementOf(leftType)!, elementOf(rightType)!);
    return commonElement === null ? null : `_${commonElement}`;
  }
  if (typeFamily !== 'number') return leftType;
  const [leftRank, rightRank] = [numberTypeRanks.indexOf(leftType), numberTypeRanks.indexOf(rightType)];
  if (leftRank >= 0 && rightRank >= 0) return numberTypeRanks[Math.max(leftRank, rightRank)]!;
  return leftRank < 0 && isReference(leftType) ? 'oid' : leftRank < 0 ? leftType : 'oid';
}

function commonTextType(leftType: string, rightType: string): string | null {
  if (plainTextTypes.has(leftType) && (plainTextTypes.has(rightType) || rightType === 'char')) return leftType;
  return leftType === 'char' && plainTextTypes.has(rightType) ? rightType : null;
}

const castMisfit = (misfitText: string, misfitType: string): ServiceError =>
  new ServiceError('REL_TYPE_MISMATCH', `${JSON.stringify(misfitText.slice(0, 100))} is no ${detailsOf(misfitType).formatted}`);

/** Casts a value of one type to another; null: there is no such cast. */
export function castOf(sourceType: string, targetType: string, catalogueNames: Names): ((castValue: Value) => Value) | null {
  if (sourceType === targetType) return (castValue) => castValue;
  const [sourceFamily, targetFamily] = [familyOf(sourceType), familyOf(targetType)];
  if (targetFamily === 'array' && sourceFamily === 'array') {
    const castElement = castOf(elementOf(sourceType)!, elementOf(targetType)!, catalogueNames);
    return (
      castElement &&
      castUnlessNull((castValue) =>
        (castValue as Value[]).map((arrayElement) => (arrayElement === null ? null : castElement(arrayElement))),
      )
    );
  }
  if (sourceFamily === 'unknown' || sourceFamily === 'text') {
    if (targetType === 'interval') return castUnlessNull((castValue) => formatInterval(parseInterval(castValue as string)));
    switch (targetFamily) {
      case 'number':
        return castUnlessNull((castValue) => parseNumberType(castValue as string, targetType, catalogueNames));
      case 'bool':
        return castUnlessNull((castValue) => parseBool(castValue as string));
      case 'array':
        return sourceFamily === 'text' && sourceType !== 'text' && sourceType !== 'varchar'
          ? null
          : castUnlessNull((castValue) => parseArray(castValue as string, targetType, catalogueNames));
      case 'time':
      case 'text':
        return targetType === 'char'
          ? castUnlessNull((castValue) => firstCharacter(castValue as string))
          : (castValue) => castValue;
      default:
        return null;
    }
  }
  if (targetFamily === 'text') {
    if (targetType === 'json' || targetType === 'jsonb' || sourceFamily === 'record') return null;
    return castUnlessNull((castValue) =>
      typeof castValue === 'boolean' ? String(castValue) : textOf(castValue, sourceType, catalogueNames),
    );
  }
  if (sourceFamily === 'number' && targetFamily === 'number') {
    const isWholeNumber = targetType !== 'float4' && targetType !== 'float8' && targetType !== 'numeric';
    return castUnlessNull((castValue) => (isWholeNumber ? Math.round(castValue as number) : castValue));
  }
  if (sourceFamily === 'number' && targetFamily === 'bool') return castUnlessNull((castValue) => castValue !== 0);
  if (sourceFamily === 'bool' && targetFamily === 'number') return castUnlessNull((castValue) => (castValue === true ? 1 : 0));
  return sourceFamily === targetFamily ? (castValue) => castValue : null;
}

/** Whether a cast may refuse a value: one that reads a text may. */
export function castMayFail(sourceType: string, targetType: string): boolean {
  const [sourceFamily, targetFamily] = [familyOf(sourceType), familyOf(targetType)];
  if (sourceType === targetType || targetFamily === 'text') return targetType === 'interval' && sourceType !== targetType;
  if (sourceFamily === 'array' && targetFamily === 'array') return castMayFail(elementOf(sourceType)!, elementOf(targetType)!);
  return sourceFamily !== 'number' && sourceFamily !== 'bool' && sourceFamily !== 'time';
}

const castUnlessNull =
  (castNonNull: (castValue: Exclude<Value, null>) => Value) =>
  (castValue: Value): Value =>
    castValue === null ? null : castNonNull(castValue);

function parseNumberType(numberText: string, numberType: string, catalogueNames: Names): number {
  const trimmedNumber = numberText.trim();
  if (/^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(trimmedNumber)) {
    const parsedNumber = Number(trimmedNumber);
    if (Number.isInteger(parsedNumber) || numberType === 'numeric' || numberType.startsWith('float')) return parsedNumber;
  }
  if (!isReference(numberType)) throw castMisfit(numberText, numberType);
  if (trimmedNumber === '-') return 0;
  const oid = catalogueNames.oidOf(referenceKind(numberType), trimmedNumber);
  if (oid === null)
    throw new ServiceError('REL_UNKNOWN_TYPE', `${JSON.stringify(trimmedNumber.slice(0, 200))} is no ${numberType}`);
  return oid;
}

export function referenceKind(type: string): ReferenceKind {
  return type === 'regprocedure' ? 'regproc' : (type as ReferenceKind);
}

function parseBool(boolText: string): boolean {
  const trimmedBool = boolText.trim().toLowerCase();
  if (['t', 'true', 'y', 'yes', 'on', '1'].includes(trimmedBool)) return true;
  if (['f', 'false', 'n', 'no', 'off', '0'].includes(trimmedBool)) return false;
  throw castMisfit(boolText, 'bool');
}

/** `{a,"b c",NULL}` of one dimension; `1 2` for the vectors of the catalogue. */
function parseArray(arrayText: string, arrayType: string, catalogueNames: Names): Value[] {
  const elementType = elementOf(arrayType)!;
  const castElement = castOf('unknown', elementType, catalogueNames)!;
  if (arrayType === 'int2vector' || arrayType === 'oidvector') return arrayText.split(/\s+/).filter(Boolean).map(castElement);
  return elementsOf(arrayText, arrayType).map((elementText) => (elementText === null ? null : castElement(elementText)));
}

/** Without the blanks around it, but for one at the end that a backslash takes as it is. */
function trimElement(rawElement: string): string {
  const trimmedStart = rawElement.trimStart();
  const trimmedElement = trimmedStart.trimEnd();
  let backslashCount = 0;
  while (trimmedElement.at(-1 - backslashCount) === '\\') backslashCount++;
  return backslashCount % 2 === 1 ? trimmedStart.slice(0, trimmedElement.length + 1) : trimmedElement;
}

export function elementsOf(arrayText: string, arrayType: string): (string | null)[] {
  const arrayBody = /^\s*\{([^]*)\}\s*$/.exec(arrayText)?.[1];
  if (arrayBody === undefined || /^\s*\{/.test(arrayBody)) throw castMisfit(arrayText, arrayType);
  if (arrayBody.trim() === '') return [];
  const arrayElements: (string | null)[] = [];
  const elementPattern = /(?:\s*"((?:[^"\\]|\\[^])*)"\s*|((?:[^,"\\{}]|\\[^])*))(,|$)/y;
  for (;;) {
    const match = elementPattern.exec(arrayBody);
    if (match === null) throw castMisfit(arrayText, arrayType);
    const [, quotedElementText, bareElementText = '', elementSeparator] = match;
    const trimmedElement = trimElement(bareElementText);
    if (quotedElementText === undefined && trimmedElement === '') throw castMisfit(arrayText, arrayType);
    const unescapedElement = (quotedElementText ?? trimmedElement).replaceAll(/\\([^])/g, '$1');
    arrayElements.push(quotedElementText === undefined && unescapedElement.toUpperCase() === 'NULL' ? null : unescapedElement);
    if (elementSeparator === '') return arrayElements;
  }
}

/** The value in the protocol's text format. */
export function textOf(typedValue: Exclude<Value, null>, valueType: string, catalogueNames: Names): string {
  if (typeof typedValue === 'boolean') return typedValue ? 't' : 'f';
  if (typeof typedValue === 'string') return typedValue;
  if (typeof typedValue === 'number') {
    if (!isReference(valueType)) return String(typedValue);
    return typedValue === 0 ? '-' : (catalogueNames.nameOf(referenceKind(valueType), typedValue) ?? String(typedValue));
  }
  if ('fields' in typedValue)
    return `(${Object.values(typedValue.fields)
      .map((elementValue) => (elementValue === null ? '' : textOf(elementValue, 'text', catalogueNames)))
      .join(',')})`;
  const elementType = elementOf(valueType)!;
  const elementTexts = typedValue.map((elementValue) =>
    elementValue === null ? null : textOf(elementValue, elementType, catalogueNames),
  );
  if (valueType === 'int2vector' || valueType === 'oidvector') return elementTexts.join(' ');
  return `{${elementTexts.map((elementText) => (elementText === null ? 'NULL' : quotedElement(elementText))).join(',')}}`;
}

/** The element as it stands in the text of an array. */
export function quotedElement(elementText: string): string {
  return elementText === '' || /[\s{},"\\]/.test(elementText) || elementText.toUpperCase() === 'NULL'
    ? `"${elementText.replaceAll(/["\\]/g, '\\$&')}"`
    : elementText;
}

/** Below 0, 0, above: for two values of one family, neither of them NULL. */
export function compare(oneValue: Value, otherValue: Value): number {
  if (Array.isArray(oneValue) && Array.isArray(otherValue)) {
    for (let i = 0; i < Math.min(oneValue.length, otherValue.length); i++) {
      const elementOrder =
        oneValue[i] === null || otherValue[i] === null
          ? Number(oneValue[i] === null) - Number(otherValue[i] === null)
          : compare(oneValue[i] as Value, otherValue[i] as Value);
      if (elementOrder !== 0) return elementOrder;
    }
    return oneValue.length - otherValue.length;
  }
  if (typeof oneValue === 'string' && typeof otherValue === 'string') return compareText(oneValue, otherValue);
  return oneValue! < otherValue! ? -1 : oneValue! > otherValue! ? 1 : 0;
}

function firstCharacter(charText: string): string {
  return charText === '' ? '' : String.fromCodePoint(charText.codePointAt(0)!);
}
