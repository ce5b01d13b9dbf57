/**
 * Filters of the document door: `{age: {$gt: 20}, 'address.city': 'Oslo'}` over stored documents, by the order and the rules of BSON.
 * What is recognised and not there is REL_NOT_IMPLEMENTED, whatever else is malformed is REL_INVALID.
 */
import { LRUCache } from 'lru-cache';
import { RE2JS, RE2JSException } from 're2js';
import { ServiceError } from '../../errors.ts';
import { compare, isList, isObject, type Kind, kindOf, numberOf, type Stored, type StoredObject, valuesAt } from './values.ts';

export type Filter = (document: Stored) => boolean;
/** Whether a value that a path leads to is meant; undefined: it leads to none. */
type Test = (value: Stored | undefined) => boolean;

const invalid = (detail: string): ServiceError => new ServiceError('REL_INVALID', detail);
const missing = (name: string): ServiceError => new ServiceError('REL_NOT_IMPLEMENTED', `${name} is not implemented`);

const compiled = new LRUCache<string, Filter>({ max: 256 });
/** A long one is asked for row after row: the last is kept, whatever its length. */
let last: { readonly text: string; readonly filter: Filter } | null = null;

/** The same by the filter's text. */
export function filterOf(text: string): Filter {
  if (last?.text === text) return last.filter;
  let known = compiled.get(text);
  if (known === undefined) {
    let filter: Stored;
    try {
      filter = JSON.parse(text) as Stored;
    } catch {
      throw invalid('a filter is an object of JSON');
    }
    known = compileFilter(filter);
    if (text.length <= 4_096) compiled.set(text, known);
  }
  last = { text, filter: known };
  return known;
}

/** Filters and documents alike. */
export const depthMax = 64;

function checkDepth(value: Stored, left = depthMax): void {
  if (typeof value !== 'object' || value === null) return;
  if (left === 0) throw invalid(`a filter is at most ${depthMax} levels deep`);
  for (const inner of isList(value) ? value : Object.values(value)) checkDepth(inner, left - 1);
}

export function compileFilter(filter: Stored): Filter {
  checkDepth(filter);
  return compiledPart(filter);
}

function compiledPart(filter: Stored): Filter {
  if (!isObject(filter)) throw invalid('a filter is an object');
  const parts = Object.entries(filter).map(([name, condition]) =>
    name.startsWith('$') ? whole(name, condition) : field(name, condition),
  );
  return (document) => parts.every((part) => part(document));
}

const unbuilt: ReadonlySet<string> = new Set(
  '$where $expr $text $jsonSchema $geoWithin $geoIntersects $near $nearSphere $bitsAllSet $bitsAnySet $bitsAllClear $bitsAnyClear'.split(
    ' ',
  ),
);

function whole(name: string, condition: Stored): Filter {
  switch (name) {
    case '$and':
    case '$or':
    case '$nor': {
      if (!isList(condition) || condition.length === 0) throw invalid(`${name} takes a list of filters`);
      const alike = name === '$or' ? oneField(condition) : null;
      if (alike !== null) return field(alike.name, { $in: alike.values });
      const filters = condition.map(compiledPart);
      if (name === '$and') return (document) => filters.every((filter) => filter(document));
      const any: Filter = (document) => filters.some((filter) => filter(document));
      return name === '$or' ? any : (document) => !any(document);
    }
    case '$comment':
      return () => true;
  }
  if (unbuilt.has(name)) throw missing(name);
  throw invalid(`unknown top level operator: ${name}`);
}

function field(name: string, condition: Stored): Filter {
  const path = name.split('.');
  const test = testOf(condition);
  return (document) => test(valuesAt(document, path));
}

/** About all values that a path leads to together: `$ne` and `$not` are about none of them. */
type PathTest = (values: readonly (Stored | undefined)[]) => boolean;

function testOf(condition: Stored): PathTest {
  if (isObject(condition)) {
    const names = Object.keys(condition);
    if (names.some((name) => name.startsWith('$'))) {
      const tests = Object.entries(condition).flatMap(([name, value]) =>
        name === '$options' ? [] : [operator(name, value, condition)],
      );
      return (values) => tests.every((test) => test(values));
    }
  }
  if (kindOf(condition) === 'regex') return some(regex(condition));
  return some(equals(condition));
}

/** One of the values, or of the elements of one. */
const some =
  (test: Test): PathTest =>
  (values) =>
    values.some((value) => test(value) || (isList(value) && value.some((element) => test(element))));

const none =
  (test: PathTest): PathTest =>
  (values) =>
    !test(values);

const equals =
  (wanted: Stored): Test =>
  (value) =>
    compare(value, wanted) === 0;

/** Texts and numbers are looked up: a list may be long, and there are many documents. */
function oneOf(wanted: readonly Stored[]): Test {
  const plain = new Set(wanted.filter((each) => typeof each === 'string' || typeof each === 'number'));
  const others = wanted.filter((each) => typeof each !== 'string' && typeof each !== 'number');
  const test = (each: Stored): Test => (kindOf(each) === 'regex' ? regex(each) : equals(each));
  const rest = others.map(test);
  let all: readonly Test[] | null = null;
  return (value) => {
    if (typeof value === 'string' || typeof value === 'number') return plain.has(value) || rest.some((each) => each(value));
    return (all ??= wanted.map(test)).some((each) => each(value));
  };
}

/** Alternatives that are all about what one field equals; null: they are not. */
function oneField(alternatives: readonly Stored[]): { readonly name: string; readonly values: readonly Stored[] } | null {
  let name: string | null = null;
  const values: Stored[] = [];
  for (const each of alternatives) {
    const [only, ...others] = isObject(each) ? Object.entries(each) : [];
    if (only === undefined || others.length > 0 || only[0].startsWith('$') || (name ??= only[0]) !== only[0]) return null;
    if (isObject(only[1]) && Object.keys(only[1]).some((key) => key.startsWith('$'))) return null;
    values.push(only[1]);
  }
  return name === null ? null : { name, values };
}

/** Among values of one kind only: no number is more than a text. */
const ordered =
  (wanted: Stored, holds: (order: number) => boolean): Test =>
  (value) => {
    if (kindOf(value) !== kindOf(wanted)) return false;
    if (kindOf(value) === 'number' && (Number.isNaN(numberOf(value!)) || Number.isNaN(numberOf(wanted)))) {
      return Number.isNaN(numberOf(value!)) && Number.isNaN(numberOf(wanted)) && holds(0);
    }
    return holds(compare(value, wanted));
  };

function operator(name: string, value: Stored, around: StoredObject): PathTest {
  switch (name) {
    case '$eq':
      return some(equals(value));
    case '$ne':
      return none(some(equals(value)));
    case '$gt':
      return some(ordered(value, (order) => order > 0));
    case '$gte':
      return some(ordered(value, (order) => order >= 0));
    case '$lt':
      return some(ordered(value, (order) => order < 0));
    case '$lte':
      return some(ordered(value, (order) => order <= 0));
    case '$in':
    case '$nin': {
      if (!isList(value)) throw invalid(`${name} needs an array`);
      const any = some(oneOf(value));
      return name === '$in' ? any : none(any);
    }
    case '$exists': {
      const wanted = value !== false && value !== null && !(kindOf(value) === 'number' && Number(numberOf(value)) === 0);
      return (values) => values.some((each) => each !== undefined) === wanted;
    }
    case '$not':
      if (!isObject(value) && kindOf(value) !== 'regex') throw invalid('$not needs a regex or a document');
      return none(testOf(value));
    case '$regex':
      return some(regex(value, around['$options']));
    case '$size': {
      const size = whole32(value, '$size');
      return (values) => values.some((each) => isList(each) && each.length === size);
    }
    case '$all': {
      if (!isList(value)) throw invalid('$all needs an array');
      const tests = value.map((each) => testOf(each));
      return (values) => tests.length > 0 && tests.every((test) => test(values));
    }
    case '$elemMatch': {
      if (!isObject(value)) throw invalid('$elemMatch needs an Object');
      const isOperators = Object.keys(value).some((each) => each.startsWith('$') && !['$and', '$or', '$nor'].includes(each));
      const byValue = isOperators ? testOf(value) : null;
      const byFilter = isOperators ? null : compiledPart(value);
      const fits = (element: Stored): boolean => (byValue ? byValue([element]) : isObject(element) && byFilter!(element));
      return (values) => values.some((each) => isList(each) && each.some(fits));
    }
    case '$mod': {
      if (!isList(value) || value.length !== 2) throw invalid('malformed mod, not enough elements');
      const [divisor, rest] = value.map((each) => BigInt(Math.trunc(Number(numberIn(each, '$mod')))));
      if (divisor === 0n) throw invalid('divisor cannot be 0');
      return some((each) => {
        if (kindOf(each) !== 'number') return false;
        const number = Number(numberOf(each!));
        return Number.isFinite(number) && BigInt(Math.trunc(number)) % divisor! === rest;
      });
    }
    case '$type': {
      const kinds = (isList(value) ? value : [value]).map(typeTest);
      return (values) =>
        values.some((each) => each !== undefined && kinds.some((is) => is(each) || (isList(each) && each.some(is))));
    }
  }
  if (unbuilt.has(name)) throw missing(name);
  throw invalid(`unknown operator: ${name}`);
}

function numberIn(value: Stored | undefined, name: string): number | bigint {
  if (value === undefined || kindOf(value) !== 'number') throw invalid(`${name} takes numbers`);
  const number = numberOf(value);
  if (typeof number === 'number' && !Number.isFinite(number)) throw invalid(`${name} takes numbers`);
  return number;
}

function whole32(value: Stored, name: string): number {
  const number = Number(numberIn(value, name));
  if (!Number.isInteger(number) || number < 0) throw invalid(`${name} takes a whole number of at least 0`);
  return number;
}

const regexMax = 1_000;

/** In time linear in the text: back references and look-around are refused. */
function regex(value: Stored, options?: Stored): Test {
  const given = kindOf(value) === 'regex' ? ((value as StoredObject)['$regularExpression'] as StoredObject) : null;
  const pattern = given ? given['pattern'] : value;
  const flags = options ?? given?.['options'] ?? '';
  if (typeof pattern !== 'string' || typeof flags !== 'string') throw invalid('$regex has to be a string');
  if (pattern.length > regexMax) throw invalid(`a regular expression has at most ${regexMax} characters`);
  let bits = 0;
  for (const flag of flags) {
    if (flag === 'i') bits |= RE2JS.CASE_INSENSITIVE;
    else if (flag === 'm') bits |= RE2JS.MULTILINE;
    else if (flag === 's') bits |= RE2JS.DOTALL;
    else if (flag !== 'u') throw invalid(`invalid flag in regex options: ${flag}`);
  }
  let made: RE2JS;
  try {
    made = RE2JS.compile(pattern, bits);
  } catch (error) {
    if (error instanceof RE2JSException || error instanceof RangeError)
      throw invalid(
        'the regular expression is malformed, too large, or uses what linear time excludes: back references, look-around',
      );
    throw error;
  }
  return (text) => typeof text === 'string' && made.matcher(text).find();
}

const kindsByName: Readonly<Record<string, Kind>> = {
  double: 'number',
  string: 'string',
  object: 'object',
  array: 'array',
  binData: 'binData',
  objectId: 'objectId',
  bool: 'bool',
  date: 'date',
  null: 'null',
  regex: 'regex',
  javascript: 'javascript',
  int: 'number',
  timestamp: 'timestamp',
  long: 'number',
  decimal: 'number',
  minKey: 'minKey',
  maxKey: 'maxKey',
};
const namesByNumber: Readonly<Record<string, string>> = {
  '1': 'double',
  '2': 'string',
  '3': 'object',
  '4': 'array',
  '5': 'binData',
  '7': 'objectId',
  '8': 'bool',
  '9': 'date',
  '10': 'null',
  '11': 'regex',
  '13': 'javascript',
  '16': 'int',
  '17': 'timestamp',
  '18': 'long',
  '19': 'decimal',
  '-1': 'minKey',
  '127': 'maxKey',
};

function typeTest(asked: Stored): Test {
  const name = typeof asked === 'string' ? asked : (namesByNumber[String(Number(numberIn(asked, '$type')))] ?? '');
  if (name === 'number') return (value) => value !== undefined && kindOf(value) === 'number';
  const kind = Object.hasOwn(kindsByName, name) ? kindsByName[name]! : undefined;
  if (kind === undefined) throw invalid(`unknown type name alias: ${JSON.stringify(asked)}`);
  if (kind !== 'number') return (value) => value !== undefined && kindOf(value) === kind;
  return (value) => value !== undefined && kindOf(value) === 'number' && numberType(value) === name;
}

function numberType(value: Stored): string {
  if (typeof value === 'number') return Number.isInteger(value) ? 'int' : 'double';
  const [wrapper] = Object.keys(value as StoredObject);
  return wrapper === '$numberLong'
    ? 'long'
    : wrapper === '$numberDecimal'
      ? 'decimal'
      : wrapper === '$numberInt'
        ? 'int'
        : 'double';
}
