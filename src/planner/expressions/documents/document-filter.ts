/**
 * Filters of the document door: `{age: {$gt: 20}, 'address.city': 'Oslo'}` over stored documents, by the order and the rules of
 * BSON. A known operator that is missing here is REL_NOT_IMPLEMENTED, anything else malformed is REL_INVALID: no operator is ever
 * ignored.
 */
import { LRUCache } from 'lru-cache';
import { RE2JS } from 're2js';
import { AssertionError, ServiceError } from '../../../errors.ts';
import { compileRegex } from '../regular-expression.ts';
import { spend, turnMost, work } from '../expression-cost.ts';
import { readText } from './document-json.ts';
import { isNumeric, type NumberType, numberType, type Numeric, toNumber, toTruncated, toWhole } from './document-numbers.ts';
import {
  asSpecial,
  compare,
  depthMax,
  identityOf,
  isList,
  isObject,
  type Kind,
  kindOf,
  type Stored,
  type StoredObject,
  valuesAt,
} from './document-values.ts';

export type Filter = (document: Stored) => boolean;
/** Whether a value that a path leads to is meant; undefined: it leads to none. */
type Test = (value: Stored | undefined) => boolean;

/** A malformed filter, with MongoDB's error number. */
export class FilterError extends ServiceError {
  readonly number: 2 | 9 | 14 | 51_075 | 51_091 | 51_108;

  constructor(detail: string, number: FilterError['number'] = 2) {
    super('REL_INVALID', detail);
    this.number = number;
  }
}

const invalid = (detail: string, number?: FilterError['number']): FilterError => new FilterError(detail, number);
const missing = (name: string): ServiceError => new ServiceError('REL_NOT_IMPLEMENTED', `${name} is not implemented`);

/** Limited by characters: long filters run for row after row too, and two of them may alternate. */
const compiled = new LRUCache<string, Filter>({ maxSize: 4 << 20, sizeCalculation: (_filter, text) => text.length + 64 });
/** The last filter: most calls repeat its text, so no lookup is needed. */
let last: { readonly text: string; readonly filter: Filter } | null = null;

/** The compiled filter of a text, cached. */
export function filterOf(text: string): Filter {
  if (last?.text === text) return last.filter;
  let known = compiled.get(text);
  if (known === undefined) {
    // Compiling takes one turn at most, whatever the filter: the cost of a single row counts it.
    work.done += Math.min(text.length * compileCost, turnMost);
    compiled.set(text, (known = compileWhole(readText(text))));
  }
  last = { text, filter: known };
  return known;
}

/** Nanoseconds in which a character of a filter is read and compiled. */
const compileCost = 40;

/** Each is looked at for each document: a list of values that a field may have counts as one. */
const conditionsMax = 1_000;
const operandsMax = 100_000;

function checkSize(filter: Stored): void {
  let levels: Stored[] = [filter];
  for (let depth = 0, seen = 0; levels.length > 0; depth++) {
    if (depth > depthMax) throw invalid(`a filter is at most ${depthMax} levels deep`);
    seen += levels.length;
    if (seen > operandsMax) throw invalid(`a filter has at most ${operandsMax} values`);
    levels = levels.flatMap((value): Stored[] => (isList(value) ? [...value] : isObject(value) ? [...value.values()] : []));
  }
}

/** Compiles a filter for documents outside of expressions: each document may take the work of a row. */
export function compileFilter(filter: Stored): Filter {
  const whole = compileWhole(filter);
  return (document) => {
    work.done = 0;
    return whole(document);
  };
}

function compileWhole(filter: Stored): Filter {
  checkSize(filter);
  const { done } = work;
  work.done = 0;
  try {
    return new Compiler().filter(filter);
  } finally {
    work.done = done + Math.min(work.done, turnMost);
  }
}

/** Nanoseconds of a value that a condition is asked of, and of a character and an instruction of a pattern. */
const valueCost = 120;
const matchCost = 6;

/** The cost of each operator. A name without a cost is no operator. */
export const operatorCosts: Readonly<Record<string, number>> = {
  $eq: 120,
  $ne: 120,
  $gt: 120,
  $gte: 120,
  $lt: 120,
  $lte: 120,
  $in: 250,
  $nin: 250,
  $exists: 20,
  $not: 20,
  $regex: 200,
  $size: 20,
  $all: 120,
  $elemMatch: 120,
  $mod: 150,
  $type: 80,
};

const unbuilt: ReadonlySet<string> = new Set(
  '$where $expr $text $jsonSchema $geoWithin $geoIntersects $near $nearSphere $bitsAllSet $bitsAnySet $bitsAllClear $bitsAnyClear'.split(
    ' ',
  ),
);

/** About all values that a path leads to together: `$ne` and `$not` are about none of them. */
type PathTest = (values: readonly (Stored | undefined)[]) => boolean;

const references: ReadonlySet<string> = new Set(['$ref', '$id', '$db']);

/** Its first name says whether an object is one of operators; all that come after it are, then. */
export function isOperators(value: Stored | undefined): value is StoredObject {
  if (!isObject(value)) return false;
  const [first] = value.keys();
  return first !== undefined && first.startsWith('$') && !references.has(first);
}

class Compiler {
  #conditions = 0;

  filter(filter: Stored): Filter {
    if (!isObject(filter)) throw invalid('a filter is an object');
    const parts = [...filter].map(([name, condition]) =>
      name.startsWith('$') ? this.#whole(name, condition) : this.#field(name, condition),
    );
    const [only] = parts;
    return parts.length === 1 ? only! : (document) => parts.every((part) => part(document));
  }

  #count<T>(test: T): T {
    if (++this.#conditions > conditionsMax) throw invalid(`a filter has at most ${conditionsMax} conditions`);
    return test;
  }

  #whole(name: string, condition: Stored): Filter {
    switch (name) {
      case '$and':
      case '$or':
      case '$nor': {
        if (!isList(condition) || condition.length === 0) throw invalid(`${name} must be a nonempty array`);
        if (!condition.every(isObject)) throw invalid(`${name} entries need to be full objects`);
        const alike = name === '$or' ? oneField(condition) : null;
        if (alike !== null) return this.#field(alike.name, new Map([['$in', alike.values]]));
        const filters = condition.map((each) => this.filter(each));
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

  #field(name: string, condition: Stored): Filter {
    const path = name.split('.');
    const test = this.#condition(condition);
    return (document) => {
      const values = valuesAt(document, path);
      spend(values.length * valueCost);
      return test(values);
    };
  }

  #condition(condition: Stored): PathTest {
    if (isOperators(condition)) return this.#operators(condition);
    this.#count(null);
    return some(kindOf(condition) === 'regex' ? regex(condition) : equals(condition));
  }

  #operators(condition: StoredObject): PathTest {
    const tests = [...condition].flatMap(([name, value]) => {
      if (name !== '$options') return [this.#count(this.#costing(name, value, condition))];
      if (!condition.has('$regex')) throw invalid('$options needs a $regex');
      return [];
    });
    const [only] = tests;
    return tests.length === 1 ? only! : (values) => tests.every((test) => test(values));
  }

  #costing(name: string, value: Stored, around: StoredObject): PathTest {
    const cost = Object.hasOwn(operatorCosts, name) ? operatorCosts[name] : undefined;
    if (cost === undefined) throw unbuilt.has(name) ? missing(name) : invalid(`unknown operator: ${name}`);
    const test = this.#operator(name, value, around);
    return (values) => {
      spend(values.length * cost);
      return test(values);
    };
  }

  #operator(name: string, value: Stored, around: StoredObject): PathTest {
    switch (name) {
      case '$eq':
        return some(equals(value));
      case '$ne':
        if (kindOf(value) === 'regex') throw invalid("Can't have regex as arg to $ne.");
        return none(some(equals(value)));
      case '$gt':
        return some(orderTest(value, (order) => order > 0));
      case '$gte':
        return some(orderTest(value, (order) => order >= 0));
      case '$lt':
        return some(orderTest(value, (order) => order < 0));
      case '$lte':
        return some(orderTest(value, (order) => order <= 0));
      case '$in':
      case '$nin': {
        if (!isList(value)) throw invalid(`${name} needs an array`);
        if (value.some(isOperators)) throw invalid(`cannot nest $ under ${name}`);
        for (const each of value) if (kindOf(each) === 'regex') this.#count(each);
        const any = some(oneOf(value));
        return name === '$in' ? any : none(any);
      }
      case '$exists': {
        const wanted = isTrue(value);
        return (values) => values.some((each) => each !== undefined) === wanted;
      }
      case '$not': {
        if (kindOf(value) === 'regex') return none(some(regex(value)));
        if (!isObject(value)) throw invalid('$not needs a regex or a document');
        if (value.size === 0) throw invalid('$not cannot be empty');
        return none(this.#operators(value));
      }
      case '$regex':
        return some(regex(value, around.get('$options')));
      case '$size': {
        const size = lengthOf(value);
        return (values) => values.some((each) => isList(each) && each.length === size);
      }
      case '$all':
        return this.#all(value);
      case '$elemMatch': {
        const fits = this.#element(value);
        return (values) =>
          values.some((each) => {
            if (!isList(each)) return false;
            spend(each.length * valueCost);
            return each.some(fits);
          });
      }
      case '$mod':
        return some(remainder(value));
      case '$type': {
        const kinds = [...new Set((isList(value) ? value : [value]).map(typeName))].map(typeTest);
        if (kinds.length === 0) throw invalid('$type must match at least one type', 9);
        return (values) =>
          values.some((each) => each !== undefined && kinds.some((is) => is(each) || (isList(each) && each.some(is))));
      }
    }
    throw new AssertionError(`${name} states what it costs, and is made`);
  }

  #all(value: Stored): PathTest {
    if (!isList(value)) throw invalid('$all needs an array');
    const isElements = value.map((each) => isObject(each) && each.has('$elemMatch') && isOperators(each));
    if (isElements.includes(true) && isElements.includes(false)) throw invalid('$all/$elemMatch has to be consistent');
    if (isElements[0] !== true && value.some(isOperators)) throw invalid('no $ expressions in $all');
    const tests = value.map((each) => this.#condition(each));
    return (values) => tests.length > 0 && tests.every((test) => test(values));
  }

  #element(value: Stored): (element: Stored) => boolean {
    if (!isObject(value)) throw invalid('$elemMatch needs an Object');
    const [first = ''] = value.keys();
    if (isOperators(value) && !['$and', '$or', '$nor', '$where', '$expr', '$comment'].includes(first)) {
      const test = this.#operators(value);
      return (element) => test([element]);
    }
    const filter = this.filter(value);
    return (element) => {
      if (isList(element)) return filter(new Map(element.map((each, i) => [String(i), each])));
      return isObject(element) && filter(element);
    };
  }
}

/** A flag is true as conditions take it. */
const isTrue = (value: Stored): boolean =>
  kindOf(value) !== 'null' && value !== false && !(isNumeric(value) && toWhole(value) === 0n);

/** A test of one of the values, or of the elements of one. */
const some =
  (test: Test): PathTest =>
  (values) =>
    values.some((value) => {
      if (test(value)) return true;
      if (!isList(value)) return false;
      spend(value.length * valueCost);
      return value.some((element) => test(element));
    });

const none =
  (test: PathTest): PathTest =>
  (values) =>
    !test(values);

function checkComparable(wanted: Stored): void {
  if (asSpecial(wanted, '$undefined') !== null) throw invalid('cannot compare to undefined');
}

function equals(wanted: Stored): Test {
  checkComparable(wanted);
  return (value) => compare(value, wanted) === 0;
}

/** Tests by lookup: a list may be long, and there are many documents. */
function oneOf(wanted: readonly Stored[]): Test {
  for (const each of wanted) checkComparable(each);
  const plain = new Set(wanted.filter((each) => typeof each === 'string' || typeof each === 'number'));
  const patterns = wanted.filter((each) => kindOf(each) === 'regex').map((each) => regex(each));
  let identities: ReadonlySet<string> | null = null;
  return (value) => {
    if ((typeof value === 'string' || typeof value === 'number') && plain.has(value)) return true;
    if (patterns.some((pattern) => pattern(value))) return true;
    identities ??= new Set(wanted.map(identityOf));
    return identities.has(identityOf(value));
  };
}

/** The values of an $or over equalities of one field; null for any other $or. */
function oneField(alternatives: readonly StoredObject[]): { readonly name: string; readonly values: readonly Stored[] } | null {
  let name: string | null = null;
  const values: Stored[] = [];
  for (const each of alternatives) {
    const [only, ...others] = each;
    if (only === undefined || others.length > 0 || only[0].startsWith('$') || (name ??= only[0]) !== only[0]) return null;
    if (isOperators(only[1])) return null;
    values.push(only[1]);
  }
  return name === null ? null : { name, values };
}

/** Compares within one kind only: no number is greater than a text. MinKey and MaxKey compare with every kind. */
function orderTest(wanted: Stored, holds: (order: number) => boolean): Test {
  checkComparable(wanted);
  const kind = kindOf(wanted);
  if (kind === 'regex') throw invalid("Can't have RegEx as arg to predicate over field");
  const isNaN = (value: Stored | undefined): boolean => isNumeric(value) && Number.isNaN(toNumber(value));
  const wantsNaN = isNaN(wanted);
  return (value) => {
    if (kindOf(value) !== kind) return kind === 'minKey' || kind === 'maxKey';
    if (wantsNaN || isNaN(value)) return wantsNaN && isNaN(value) && holds(0);
    return holds(compare(value, wanted));
  };
}

function lengthOf(value: Stored): number {
  const whole = isNumeric(value) ? toWhole(value) : null;
  if (whole === null) throw invalid('Failed to parse $size. Expected an integer', 9);
  if (whole < 0n) throw invalid('Failed to parse $size. Expected a non-negative number', 9);
  return Number(whole);
}

function remainder(value: Stored): Test {
  if (!isList(value)) throw invalid('malformed mod, needs to be an array');
  if (value.length < 2) throw invalid('malformed mod, not enough elements');
  if (value.length > 2) throw invalid('malformed mod, too many elements');
  const [divisor, rest] = value.map((each, i) => {
    const name = i === 0 ? 'divisor' : 'remainder';
    if (!isNumeric(each)) throw invalid(`malformed mod, ${name} not a number`);
    const whole = longOf(each);
    if (whole === null) throw invalid(`malformed mod, ${name} value is invalid`);
    return whole;
  });
  if (divisor === 0n) throw invalid('divisor cannot be 0');
  return (each) => {
    const whole = isNumeric(each) ? longOf(each) : null;
    return whole !== null && whole % divisor! === rest;
  };
}

/** The number without its fraction; null: it does not fit 64 bits. */
function longOf(value: Numeric): bigint | null {
  const whole = toTruncated(value);
  return whole !== null && whole === BigInt.asIntN(64, whole) ? whole : null;
}

const regexMax = 1_000;

/** Matches in time linear in the text: back references and look-around are refused. */
function regex(value: Stored, options?: Stored): Test {
  const given = asSpecial(value, '$regularExpression');
  const pattern = given?.pattern ?? value;
  if (typeof pattern !== 'string') throw invalid('$regex has to be a string');
  if (options !== undefined && typeof options !== 'string') throw invalid('$options has to be a string');
  if (options !== undefined && given !== null && given.options !== '')
    throw invalid('options set in both $regex and $options', 51_075);
  const flags = options ?? given?.options ?? '';
  if (pattern.includes('\0') || flags.includes('\0')) throw invalid('$regex and its $options cannot contain embedded null bytes');
  if (pattern.length > regexMax) throw invalid(`a regular expression has at most ${regexMax} characters`);
  let bits = 0;
  for (const flag of flags) {
    if (flag === 'i') bits |= RE2JS.CASE_INSENSITIVE;
    else if (flag === 'm') bits |= RE2JS.MULTILINE;
    else if (flag === 's') bits |= RE2JS.DOTALL;
    else if (flag === 'x') throw missing('the option x of regular expressions');
    else if (flag !== 'u') throw invalid(`invalid flag in regex options: ${flag}`, 51_108);
  }
  const regex = compileRegex(pattern, bits);
  if (regex === undefined)
    throw invalid(
      'the regular expression is malformed, too large, or uses what linear time excludes: back references, look-around',
      51_091,
    );
  // All regular expressions of a filter are compiled in one turn.
  spend(0);
  const size = regex.programSize();
  const holds = (text: string): boolean => {
    spend(text.length * size * matchCost);
    return regex.test(text);
  };
  return (each) => {
    if (typeof each === 'string') return holds(each);
    const symbol = asSpecial(each, '$symbol');
    if (symbol !== null) return holds(symbol);
    const same = asSpecial(each, '$regularExpression');
    return same !== null && same.pattern === pattern && same.options === flags;
  };
}

const kindsByName: Readonly<Record<string, Kind>> = {
  string: 'string',
  object: 'object',
  array: 'array',
  binData: 'binData',
  objectId: 'objectId',
  bool: 'bool',
  date: 'date',
  regex: 'regex',
  dbPointer: 'dbPointer',
  javascript: 'javascript',
  javascriptWithScope: 'javascriptWithScope',
  timestamp: 'timestamp',
  minKey: 'minKey',
  maxKey: 'maxKey',
};
const numberTypes: ReadonlySet<string> = new Set<NumberType>(['int', 'long', 'double', 'decimal']);
const namesByNumber: Readonly<Record<string, string>> = {
  '1': 'double',
  '2': 'string',
  '3': 'object',
  '4': 'array',
  '5': 'binData',
  '6': 'undefined',
  '7': 'objectId',
  '8': 'bool',
  '9': 'date',
  '10': 'null',
  '11': 'regex',
  '12': 'dbPointer',
  '13': 'javascript',
  '14': 'symbol',
  '15': 'javascriptWithScope',
  '16': 'int',
  '17': 'timestamp',
  '18': 'long',
  '19': 'decimal',
  '-1': 'minKey',
  '127': 'maxKey',
};

function typeName(bsonType: Stored): string {
  if (typeof bsonType === 'string') return bsonType;
  if (!isNumeric(bsonType)) throw invalid('type must be represented as a number or a string', 14);
  const code = String(toWhole(bsonType));
  if (!Object.hasOwn(namesByNumber, code)) throw invalid(`Invalid numerical type code: ${toNumber(bsonType)}`);
  return namesByNumber[code]!;
}

function typeTest(name: string): Test {
  if (name === 'number') return isNumeric;
  if (numberTypes.has(name)) return (value) => isNumeric(value) && numberType(value) === name;
  if (name === 'null') return (value) => value === null;
  if (name === 'undefined') return (value) => asSpecial(value, '$undefined') !== null;
  if (name === 'symbol') return (value) => asSpecial(value, '$symbol') !== null;
  if (name === 'string') return (value) => typeof value === 'string';
  const kind = Object.hasOwn(kindsByName, name) ? kindsByName[name]! : undefined;
  if (kind === undefined) throw invalid(`Unknown type name alias: ${name}`);
  return (value) => value !== undefined && kindOf(value) === kind;
}
