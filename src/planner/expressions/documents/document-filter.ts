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
type ValueTest = (value: Stored | undefined) => boolean;

/** A malformed filter, with MongoDB's error number. */
export class FilterError extends ServiceError {
  readonly number: 2 | 9 | 14 | 51_075 | 51_091 | 51_108;

  constructor(detail: string, number: FilterError['number'] = 2) {
    super('REL_INVALID', detail);
    this.number = number;
  }
}

const invalidFilter = (detail: string, number?: FilterError['number']): FilterError => new FilterError(detail, number);
const missingOperator = (name: string): ServiceError => new ServiceError('REL_NOT_IMPLEMENTED', `${name} is not implemented`);

/** Limited by characters: long filters run for row after row too, and two of them may alternate. */
const compiledFilters = new LRUCache<string, Filter>({ maxSize: 4 << 20, sizeCalculation: (_filter, text) => text.length + 64 });
/** The last filter: most calls repeat its text, so no lookup is needed. */
let lastFilter: { readonly text: string; readonly filter: Filter } | null = null;

/** The compiled filter of a text, cached. */
export function filterOf(filterText: string): Filter {
  if (lastFilter?.text === filterText) return lastFilter.filter;
  let compiledFilter = compiledFilters.get(filterText);
  if (compiledFilter === undefined) {
    // Compiling takes one turn at most, whatever the filter: the cost of a single row counts it.
    work.done += Math.min(filterText.length * compileCost, turnMost);
    compiledFilters.set(filterText, (compiledFilter = compileWhole(readText(filterText))));
  }
  lastFilter = { text: filterText, filter: compiledFilter };
  return compiledFilter;
}

/** Nanoseconds in which a character of a filter is read and compiled. */
const compileCost = 40;

/** Each is looked at for each document: a list of values that a field may have counts as one. */
const conditionsMax = 1_000;
const operandsMax = 100_000;

function checkSize(filter: Stored): void {
  let filterLevels: Stored[] = [filter];
  for (let filterDepth = 0, filterValueCount = 0; filterLevels.length > 0; filterDepth++) {
    if (filterDepth > depthMax) throw invalidFilter(`a filter is at most ${depthMax} levels deep`);
    filterValueCount += filterLevels.length;
    if (filterValueCount > operandsMax) throw invalidFilter(`a filter has at most ${operandsMax} values`);
    filterLevels = filterLevels.flatMap((levelValue): Stored[] =>
      isList(levelValue) ? [...levelValue] : isObject(levelValue) ? [...levelValue.values()] : [],
    );
  }
}

/** Compiles a filter for documents outside of expressions: each document may take the work of a row. */
export function compileFilter(filter: Stored): Filter {
  const compiledFilter = compileWhole(filter);
  return (document) => {
    work.done = 0;
    return compiledFilter(document);
  };
}

function compileWhole(filter: Stored): Filter {
  checkSize(filter);
  const { done: outerWorkDone } = work;
  work.done = 0;
  try {
    return new FilterCompiler().filter(filter);
  } finally {
    work.done = outerWorkDone + Math.min(work.done, turnMost);
  }
}

/** Nanoseconds of a value that a condition is asked of, and of a character and an instruction of a pattern. */
const filterValueCost = 120;
const regexMatchCost = 6;

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

const unbuiltOperators: ReadonlySet<string> = new Set(
  '$where $expr $text $jsonSchema $geoWithin $geoIntersects $near $nearSphere $bitsAllSet $bitsAnySet $bitsAllClear $bitsAnyClear'.split(
    ' ',
  ),
);

/** About all values that a path leads to together: `$ne` and `$not` are about none of them. */
type PathTest = (values: readonly (Stored | undefined)[]) => boolean;

const dbRefFields: ReadonlySet<string> = new Set(['$ref', '$id', '$db']);

/** Its first name says whether an object is one of operators; all that come after it are, then. */
export function isOperators(value: Stored | undefined): value is StoredObject {
  if (!isObject(value)) return false;
  const [firstField] = value.keys();
  return firstField !== undefined && firstField.startsWith('$') && !dbRefFields.has(firstField);
}

class FilterCompiler {
  #conditionCount = 0;

  filter(filter: Stored): Filter {
    if (!isObject(filter)) throw invalidFilter('a filter is an object');
    const fieldFilters = [...filter].map(([filterField, condition]) =>
      filterField.startsWith('$') ? this.#compileTopLevel(filterField, condition) : this.#compileField(filterField, condition),
    );
    const [onlyFilter] = fieldFilters;
    return fieldFilters.length === 1 ? onlyFilter! : (document) => fieldFilters.every((fieldFilter) => fieldFilter(document));
  }

  #countCondition<T>(test: T): T {
    if (++this.#conditionCount > conditionsMax) throw invalidFilter(`a filter has at most ${conditionsMax} conditions`);
    return test;
  }

  #compileTopLevel(topLevelOperator: string, condition: Stored): Filter {
    switch (topLevelOperator) {
      case '$and':
      case '$or':
      case '$nor': {
        if (!isList(condition) || condition.length === 0) throw invalidFilter(`${topLevelOperator} must be a nonempty array`);
        if (!condition.every(isObject)) throw invalidFilter(`${topLevelOperator} entries need to be full objects`);
        const sharedFieldOr = topLevelOperator === '$or' ? sharedField(condition) : null;
        if (sharedFieldOr !== null) return this.#compileField(sharedFieldOr.name, new Map([['$in', sharedFieldOr.values]]));
        const clauseFilters = condition.map((clause) => this.filter(clause));
        if (topLevelOperator === '$and') return (document) => clauseFilters.every((filter) => filter(document));
        const anyClause: Filter = (document) => clauseFilters.some((filter) => filter(document));
        return topLevelOperator === '$or' ? anyClause : (document) => !anyClause(document);
      }
      case '$comment':
        return () => true;
    }
    if (unbuiltOperators.has(topLevelOperator)) throw missingOperator(topLevelOperator);
    throw invalidFilter(`unknown top level operator: ${topLevelOperator}`);
  }

  #compileField(name: string, condition: Stored): Filter {
    const fieldPath = name.split('.');
    const pathTest = this.#compileCondition(condition);
    return (document) => {
      const pathValues = valuesAt(document, fieldPath);
      spend(pathValues.length * filterValueCost);
      return pathTest(pathValues);
    };
  }

  #compileCondition(condition: Stored): PathTest {
    if (isOperators(condition)) return this.#compileOperators(condition);
    this.#countCondition(null);
    return someValue(kindOf(condition) === 'regex' ? regexTest(condition) : equalityTest(condition));
  }

  #compileOperators(condition: StoredObject): PathTest {
    const operatorTests = [...condition].flatMap(([name, value]) => {
      if (name !== '$options') return [this.#countCondition(this.#compileCosted(name, value, condition))];
      if (!condition.has('$regex')) throw invalidFilter('$options needs a $regex');
      return [];
    });
    const [onlyOperatorTest] = operatorTests;
    return operatorTests.length === 1 ? onlyOperatorTest! : (values) => operatorTests.every((test) => test(values));
  }

  #compileCosted(operatorName: string, operatorOperand: Stored, operatorObject: StoredObject): PathTest {
    const operatorCost = Object.hasOwn(operatorCosts, operatorName) ? operatorCosts[operatorName] : undefined;
    if (operatorCost === undefined)
      throw unbuiltOperators.has(operatorName)
        ? missingOperator(operatorName)
        : invalidFilter(`unknown operator: ${operatorName}`);
    const operatorTest = this.#compileOperator(operatorName, operatorOperand, operatorObject);
    return (values) => {
      spend(values.length * operatorCost);
      return operatorTest(values);
    };
  }

  #compileOperator(operatorName: string, operatorOperand: Stored, operatorObject: StoredObject): PathTest {
    switch (operatorName) {
      case '$eq':
        return someValue(equalityTest(operatorOperand));
      case '$ne':
        if (kindOf(operatorOperand) === 'regex') throw invalidFilter("Can't have regex as arg to $ne.");
        return noValue(someValue(equalityTest(operatorOperand)));
      case '$gt':
        return someValue(orderTest(operatorOperand, (order) => order > 0));
      case '$gte':
        return someValue(orderTest(operatorOperand, (order) => order >= 0));
      case '$lt':
        return someValue(orderTest(operatorOperand, (order) => order < 0));
      case '$lte':
        return someValue(orderTest(operatorOperand, (order) => order <= 0));
      case '$in':
      case '$nin': {
        if (!isList(operatorOperand)) throw invalidFilter(`${operatorName} needs an array`);
        if (operatorOperand.some(isOperators)) throw invalidFilter(`cannot nest $ under ${operatorName}`);
        for (const pathValue of operatorOperand) if (kindOf(pathValue) === 'regex') this.#countCondition(pathValue);
        const anyListed = someValue(membershipTest(operatorOperand));
        return operatorName === '$in' ? anyListed : noValue(anyListed);
      }
      case '$exists': {
        const wantsPresence = isTrue(operatorOperand);
        return (pathValues) => pathValues.some((pathValue) => pathValue !== undefined) === wantsPresence;
      }
      case '$not': {
        if (kindOf(operatorOperand) === 'regex') return noValue(someValue(regexTest(operatorOperand)));
        if (!isObject(operatorOperand)) throw invalidFilter('$not needs a regex or a document');
        if (operatorOperand.size === 0) throw invalidFilter('$not cannot be empty');
        return noValue(this.#compileOperators(operatorOperand));
      }
      case '$regex':
        return someValue(regexTest(operatorOperand, operatorObject.get('$options')));
      case '$size': {
        const wantedSize = sizeOperand(operatorOperand);
        return (pathValues) => pathValues.some((pathValue) => isList(pathValue) && pathValue.length === wantedSize);
      }
      case '$all':
        return this.#compileAll(operatorOperand);
      case '$elemMatch': {
        const elementFits = this.#compileElemMatch(operatorOperand);
        return (pathValues) =>
          pathValues.some((pathValue) => {
            if (!isList(pathValue)) return false;
            spend(pathValue.length * filterValueCost);
            return pathValue.some(elementFits);
          });
      }
      case '$mod':
        return someValue(modTest(operatorOperand));
      case '$type': {
        const typeTests = [...new Set((isList(operatorOperand) ? operatorOperand : [operatorOperand]).map(typeName))].map(
          typeTest,
        );
        if (typeTests.length === 0) throw invalidFilter('$type must match at least one type', 9);
        return (pathValues) =>
          pathValues.some(
            (pathValue) =>
              pathValue !== undefined &&
              typeTests.some((isOfType) => isOfType(pathValue) || (isList(pathValue) && pathValue.some(isOfType))),
          );
      }
    }
    throw new AssertionError(`${operatorName} states what it costs, and is made`);
  }

  #compileAll(value: Stored): PathTest {
    if (!isList(value)) throw invalidFilter('$all needs an array');
    const usesElemMatch = value.map((each) => isObject(each) && each.has('$elemMatch') && isOperators(each));
    if (usesElemMatch.includes(true) && usesElemMatch.includes(false))
      throw invalidFilter('$all/$elemMatch has to be consistent');
    if (usesElemMatch[0] !== true && value.some(isOperators)) throw invalidFilter('no $ expressions in $all');
    const elementTests = value.map((each) => this.#compileCondition(each));
    return (values) => elementTests.length > 0 && elementTests.every((test) => test(values));
  }

  #compileElemMatch(value: Stored): (element: Stored) => boolean {
    if (!isObject(value)) throw invalidFilter('$elemMatch needs an Object');
    const [firstOperator = ''] = value.keys();
    if (isOperators(value) && !['$and', '$or', '$nor', '$where', '$expr', '$comment'].includes(firstOperator)) {
      const elementTest = this.#compileOperators(value);
      return (element) => elementTest([element]);
    }
    const elementFilter = this.filter(value);
    return (element) => {
      if (isList(element)) return elementFilter(new Map(element.map((each, i) => [String(i), each])));
      return isObject(element) && elementFilter(element);
    };
  }
}

/** A flag is true as conditions take it. */
const isTrue = (value: Stored): boolean =>
  kindOf(value) !== 'null' && value !== false && !(isNumeric(value) && toWhole(value) === 0n);

/** A test of one of the values, or of the elements of one. */
const someValue =
  (test: ValueTest): PathTest =>
  (values) =>
    values.some((value) => {
      if (test(value)) return true;
      if (!isList(value)) return false;
      spend(value.length * filterValueCost);
      return value.some((element) => test(element));
    });

const noValue =
  (test: PathTest): PathTest =>
  (values) =>
    !test(values);

function checkComparable(wanted: Stored): void {
  if (asSpecial(wanted, '$undefined') !== null) throw invalidFilter('cannot compare to undefined');
}

function equalityTest(wantedValue: Stored): ValueTest {
  checkComparable(wantedValue);
  return (value) => compare(value, wantedValue) === 0;
}

/** Tests by lookup: a list may be long, and there are many documents. */
function membershipTest(wantedValues: readonly Stored[]): ValueTest {
  for (const wantedValue of wantedValues) checkComparable(wantedValue);
  const plainValues = new Set(wantedValues.filter((each) => typeof each === 'string' || typeof each === 'number'));
  const regexTests = wantedValues.filter((each) => kindOf(each) === 'regex').map((each) => regexTest(each));
  let wantedIdentities: ReadonlySet<string> | null = null;
  return (value) => {
    if ((typeof value === 'string' || typeof value === 'number') && plainValues.has(value)) return true;
    if (regexTests.some((regexMatches) => regexMatches(value))) return true;
    wantedIdentities ??= new Set(wantedValues.map(identityOf));
    return wantedIdentities.has(identityOf(value));
  };
}

/** The values of an $or over equalities of one field; null for any other $or. */
function sharedField(
  alternatives: readonly StoredObject[],
): { readonly name: string; readonly values: readonly Stored[] } | null {
  let fieldName: string | null = null;
  const orValues: Stored[] = [];
  for (const alternative of alternatives) {
    const [onlyEntry, ...others] = alternative;
    if (
      onlyEntry === undefined ||
      others.length > 0 ||
      onlyEntry[0].startsWith('$') ||
      (fieldName ??= onlyEntry[0]) !== onlyEntry[0]
    )
      return null;
    if (isOperators(onlyEntry[1])) return null;
    orValues.push(onlyEntry[1]);
  }
  return fieldName === null ? null : { name: fieldName, values: orValues };
}

/** Compares within one kind only: no number is greater than a text. MinKey and MaxKey compare with every kind. */
function orderTest(orderOperand: Stored, orderHolds: (order: number) => boolean): ValueTest {
  checkComparable(orderOperand);
  const orderKind = kindOf(orderOperand);
  if (orderKind === 'regex') throw invalidFilter("Can't have RegEx as arg to predicate over field");
  const isNaN = (value: Stored | undefined): boolean => isNumeric(value) && Number.isNaN(toNumber(value));
  const wantsNaN = isNaN(orderOperand);
  return (value) => {
    if (kindOf(value) !== orderKind) return orderKind === 'minKey' || orderKind === 'maxKey';
    if (wantsNaN || isNaN(value)) return wantsNaN && isNaN(value) && orderHolds(0);
    return orderHolds(compare(value, orderOperand));
  };
}

function sizeOperand(value: Stored): number {
  const wholeSize = isNumeric(value) ? toWhole(value) : null;
  if (wholeSize === null) throw invalidFilter('Failed to parse $size. Expected an integer', 9);
  if (wholeSize < 0n) throw invalidFilter('Failed to parse $size. Expected a non-negative number', 9);
  return Number(wholeSize);
}

function modTest(value: Stored): ValueTest {
  if (!isList(value)) throw invalidFilter('malformed mod, needs to be an array');
  if (value.length < 2) throw invalidFilter('malformed mod, not enough elements');
  if (value.length > 2) throw invalidFilter('malformed mod, too many elements');
  const [divisor, wantedRemainder] = value.map((modOperand, i) => {
    const modOperandName = i === 0 ? 'divisor' : 'remainder';
    if (!isNumeric(modOperand)) throw invalidFilter(`malformed mod, ${modOperandName} not a number`);
    const wholeOperand = longOf(modOperand);
    if (wholeOperand === null) throw invalidFilter(`malformed mod, ${modOperandName} value is invalid`);
    return wholeOperand;
  });
  if (divisor === 0n) throw invalidFilter('divisor cannot be 0');
  return (modOperand) => {
    const wholeOperand = isNumeric(modOperand) ? longOf(modOperand) : null;
    return wholeOperand !== null && wholeOperand % divisor! === wantedRemainder;
  };
}

/** The number without its fraction; null: it does not fit 64 bits. */
function longOf(value: Numeric): bigint | null {
  const truncatedLong = toTruncated(value);
  return truncatedLong !== null && truncatedLong === BigInt.asIntN(64, truncatedLong) ? truncatedLong : null;
}

const regexMax = 1_000;

/** Matches in time linear in the text: back references and look-around are refused. */
function regexTest(value: Stored, regexOptions?: Stored): ValueTest {
  const regexObject = asSpecial(value, '$regularExpression');
  const regexPattern = regexObject?.pattern ?? value;
  if (typeof regexPattern !== 'string') throw invalidFilter('$regex has to be a string');
  if (regexOptions !== undefined && typeof regexOptions !== 'string') throw invalidFilter('$options has to be a string');
  if (regexOptions !== undefined && regexObject !== null && regexObject.options !== '')
    throw invalidFilter('options set in both $regex and $options', 51_075);
  const regexFlags = regexOptions ?? regexObject?.options ?? '';
  if (regexPattern.includes('\0') || regexFlags.includes('\0'))
    throw invalidFilter('$regex and its $options cannot contain embedded null bytes');
  if (regexPattern.length > regexMax) throw invalidFilter(`a regular expression has at most ${regexMax} characters`);
  let re2Flags = 0;
  for (const flag of regexFlags) {
    if (flag === 'i') re2Flags |= RE2JS.CASE_INSENSITIVE;
    else if (flag === 'm') re2Flags |= RE2JS.MULTILINE;
    else if (flag === 's') re2Flags |= RE2JS.DOTALL;
    else if (flag === 'x') throw missingOperator('the option x of regular expressions');
    else if (flag !== 'u') throw invalidFilter(`invalid flag in regex options: ${flag}`, 51_108);
  }
  const regex = compileRegex(regexPattern, re2Flags);
  if (regex === undefined)
    throw invalidFilter(
      'the regular expression is malformed, too large, or uses what linear time excludes: back references, look-around',
      51_091,
    );
  // All regular expressions of a filter are compiled in one turn.
  spend(0);
  const programSize = regex.programSize();
  const regexHolds = (testedText: string): boolean => {
    spend(testedText.length * programSize * regexMatchCost);
    return regex.test(testedText);
  };
  return (each) => {
    if (typeof each === 'string') return regexHolds(each);
    const symbolText = asSpecial(each, '$symbol');
    if (symbolText !== null) return regexHolds(symbolText);
    const comparedRegex = asSpecial(each, '$regularExpression');
    return comparedRegex !== null && comparedRegex.pattern === regexPattern && comparedRegex.options === regexFlags;
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
  if (!isNumeric(bsonType)) throw invalidFilter('type must be represented as a number or a string', 14);
  const typeCode = String(toWhole(bsonType));
  if (!Object.hasOwn(namesByNumber, typeCode)) throw invalidFilter(`Invalid numerical type code: ${toNumber(bsonType)}`);
  return namesByNumber[typeCode]!;
}

function typeTest(typeAlias: string): ValueTest {
  if (typeAlias === 'number') return isNumeric;
  if (numberTypes.has(typeAlias)) return (value) => isNumeric(value) && numberType(value) === typeAlias;
  if (typeAlias === 'null') return (value) => value === null;
  if (typeAlias === 'undefined') return (value) => asSpecial(value, '$undefined') !== null;
  if (typeAlias === 'symbol') return (value) => asSpecial(value, '$symbol') !== null;
  if (typeAlias === 'string') return (value) => typeof value === 'string';
  const aliasKind = Object.hasOwn(kindsByName, typeAlias) ? kindsByName[typeAlias]! : undefined;
  if (aliasKind === undefined) throw invalidFilter(`Unknown type name alias: ${typeAlias}`);
  return (value) => value !== undefined && kindOf(value) === aliasKind;
}
