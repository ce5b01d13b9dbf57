/**
 * Values of documents, with the types and the order of BSON. Documents keep their members in the order in which they were written:
 * an object of JavaScript would move names that look like numbers. Pure.
 */
import { spend, work } from '../expression-cost.ts';
import { compareNumbers, Decimal, Double, numberIdentity, type Numeric } from './document-numbers.ts';

/** A bare number is of 32 bits where it is whole and fits, else a double; a bigint is of 64 bits. */
export type Stored = null | boolean | Numeric | string | Special | readonly Stored[] | StoredObject;
export type StoredObject = ReadonlyMap<string, Stored>;

export type Kind =
  | 'minKey'
  | 'null'
  | 'number'
  | 'string'
  | 'object'
  | 'array'
  | 'binData'
  | 'objectId'
  | 'bool'
  | 'date'
  | 'timestamp'
  | 'regex'
  | 'dbPointer'
  | 'javascript'
  | 'javascriptWithScope'
  | 'maxKey';

/** Kinds in BSON order. */
const bsonKindOrder: readonly Kind[] = [
  'minKey',
  'null',
  'number',
  'string',
  'object',
  'array',
  'binData',
  'objectId',
  'bool',
  'date',
  'timestamp',
  'regex',
  'dbPointer',
  'javascript',
  'javascriptWithScope',
  'maxKey',
];
const bsonKindRank = new Map(bsonKindOrder.map((kind, i) => [kind, i]));

/** Values of other types, by their name in Extended JSON. */
interface SpecialInner {
  /** 24 hexadecimal digits. */
  readonly $oid: string;
  /** Milliseconds. */
  readonly $date: bigint;
  /** Seconds in the upper half. */
  readonly $timestamp: bigint;
  readonly $binary: { readonly bytes: Uint8Array; readonly type: number };
  readonly $regularExpression: { readonly pattern: string; readonly options: string };
  readonly $code: string;
  readonly $scope: { readonly code: string; readonly scope: StoredObject };
  readonly $dbPointer: { readonly ref: string; readonly oid: string };
  readonly $symbol: string;
  readonly $undefined: true;
  readonly $minKey: 1;
  readonly $maxKey: 1;
}

const specialKinds: Readonly<Record<keyof SpecialInner, Kind>> = {
  $oid: 'objectId',
  $date: 'date',
  $timestamp: 'timestamp',
  $binary: 'binData',
  $regularExpression: 'regex',
  $code: 'javascript',
  $scope: 'javascriptWithScope',
  $dbPointer: 'dbPointer',
  $symbol: 'string',
  $undefined: 'null',
  $minKey: 'minKey',
  $maxKey: 'maxKey',
};

/** A value that plain JSON can't express; numbers have types of their own. */
export class Special<N extends keyof SpecialInner = keyof SpecialInner> {
  readonly name: N;
  readonly inner: SpecialInner[N];

  constructor(name: N, inner: SpecialInner[N]) {
    this.name = name;
    this.inner = inner;
  }

  is<M extends keyof SpecialInner>(name: M): this is Special<M> {
    return (this.name as string) === name;
  }
}

export function asSpecial<N extends keyof SpecialInner>(value: Stored | undefined, name: N): SpecialInner[N] | null {
  return value instanceof Special && value.is(name) ? value.inner : null;
}

/** Filters, documents and updates alike. */
export const depthMax = 64;

export function kindOf(value: Stored | undefined): Kind {
  if (value === null || value === undefined) return 'null';
  if (typeof value === 'string') return 'string';
  if (typeof value === 'boolean') return 'bool';
  if (value instanceof Map) return 'object';
  if (isList(value)) return 'array';
  return value instanceof Special ? specialKinds[value.name] : 'number';
}

export function isList(value: unknown): value is readonly Stored[] {
  return Array.isArray(value);
}

export function isObject(value: unknown): value is StoredObject {
  return value instanceof Map;
}

/** A document of a few members whose names are known. */
export function documentOf(members: Readonly<Record<string, Stored>>): StoredObject {
  return new Map(Object.entries(members));
}

/** Whether it is an object of operators, or of a mixture, which is none. */
export function hasOperators(value: StoredObject): boolean {
  for (const fieldName of value.keys()) if (fieldName.startsWith('$')) return true;
  return false;
}

const signOfOrder = (a: number | bigint, b: number | bigint): number => (a < b ? -1 : a > b ? 1 : 0);
/** Nanoseconds of a step along a path, and of a value that is compared or named. */
const pathStepCost = 120;
const documentValueCost = 50;

function compareTexts(leftText: string, rightText: string): number {
  work.done += leftText.length + rightText.length;
  return leftText === rightText ? 0 : Buffer.compare(Buffer.from(leftText), Buffer.from(rightText));
}
const stringOrSymbol = (value: Stored): string => (typeof value === 'string' ? value : asSpecial(value, '$symbol')!);

/** Compares any two values in BSON order: negative, 0 or positive. */
export function compare(leftStored: Stored | undefined, rightStored: Stored | undefined): number {
  work.done += documentValueCost;
  if (typeof leftStored === 'number' && typeof rightStored === 'number') return compareNumbers(leftStored, rightStored);
  const leftKind = kindOf(leftStored);
  const rightKind = kindOf(rightStored);
  if (leftKind !== rightKind) return bsonKindRank.get(leftKind)! - bsonKindRank.get(rightKind)!;
  switch (leftKind) {
    case 'null':
    case 'minKey':
    case 'maxKey':
      return 0;
    case 'number':
      return compareNumbers(leftStored as Numeric, rightStored as Numeric);
    case 'string':
      return compareTexts(stringOrSymbol(leftStored!), stringOrSymbol(rightStored!));
    case 'bool':
      return Number(leftStored) - Number(rightStored);
    case 'array':
      return compareStoredLists(leftStored as readonly Stored[], rightStored as readonly Stored[]);
    case 'object':
      return compareStoredObjects(leftStored as StoredObject, rightStored as StoredObject);
    default:
      return compareSpecials(leftStored as Special, rightStored as Special);
  }
}

function compareSpecials(leftSpecial: Special, rightSpecial: Special): number {
  if (leftSpecial.is('$binary') && rightSpecial.is('$binary')) {
    const [leftInner, rightInner] = [leftSpecial.inner, rightSpecial.inner];
    return (
      leftInner.bytes.length - rightInner.bytes.length ||
      leftInner.type - rightInner.type ||
      Buffer.compare(leftInner.bytes, rightInner.bytes)
    );
  }
  if (leftSpecial.is('$regularExpression') && rightSpecial.is('$regularExpression'))
    return (
      compareTexts(leftSpecial.inner.pattern, rightSpecial.inner.pattern) ||
      compareTexts(leftSpecial.inner.options, rightSpecial.inner.options)
    );
  if (leftSpecial.is('$scope') && rightSpecial.is('$scope'))
    return (
      compareTexts(leftSpecial.inner.code, rightSpecial.inner.code) ||
      compareStoredObjects(leftSpecial.inner.scope, rightSpecial.inner.scope)
    );
  if (leftSpecial.is('$dbPointer') && rightSpecial.is('$dbPointer'))
    return (
      leftSpecial.inner.ref.length - rightSpecial.inner.ref.length ||
      compareTexts(leftSpecial.inner.ref, rightSpecial.inner.ref) ||
      compareTexts(leftSpecial.inner.oid, rightSpecial.inner.oid)
    );
  const [one, two] = [leftSpecial.inner as string | bigint, rightSpecial.inner as string | bigint];
  return typeof one === 'string' ? compareTexts(one, two as string) : signOfOrder(one, two as bigint);
}

function compareStoredLists(leftList: readonly Stored[], rightList: readonly Stored[]): number {
  for (let i = 0; i < Math.min(leftList.length, rightList.length); i++) {
    const elementOrder = compare(leftList[i], rightList[i]);
    if (elementOrder !== 0) return elementOrder;
  }
  return leftList.length - rightList.length;
}

function compareStoredObjects(leftObject: StoredObject, rightObject: StoredObject): number {
  const rightMembers = rightObject.entries();
  for (const [leftField, leftMember] of leftObject) {
    const { done, value: rightMember } = rightMembers.next();
    if (done === true) return 1;
    const kindOrder = bsonKindRank.get(kindOf(leftMember))! - bsonKindRank.get(kindOf(rightMember[1]))!;
    const memberOrder = kindOrder || compareTexts(leftField, rightMember[0]) || compare(leftMember, rightMember[1]);
    if (memberOrder !== 0) return memberOrder;
  }
  return leftObject.size - rightObject.size;
}

/** Equal values have one text; numbers are equal by value, across types. */
export function identityOf(value: Stored | undefined): string {
  work.done += documentValueCost + (typeof value === 'string' ? value.length : 0);
  switch (kindOf(value)) {
    case 'number':
      return `n${numberIdentity(value as Numeric)}`;
    case 'string':
      return JSON.stringify(stringOrSymbol(value!));
    case 'bool':
    case 'null':
      return String(value === true || (value !== false && null));
    case 'array':
      return `[${(value as readonly Stored[]).map(identityOf).join()}]`;
    case 'object':
      return `{${[...(value as StoredObject)].map(([name, memberValue]) => `${JSON.stringify(name)}:${identityOf(memberValue)}`).join()}}`;
    default: {
      const { name, inner: specialInner } = value as Special;
      if (name === '$binary') {
        const { bytes, type } = specialInner as SpecialInner['$binary'];
        return `${name}${type}:${Buffer.from(bytes).toString('base64')}`;
      }
      if (name === '$scope') {
        const { code, scope } = specialInner as SpecialInner['$scope'];
        return `${name}${JSON.stringify(code)}${identityOf(scope)}`;
      }
      return `${name}${typeof specialInner === 'object' ? JSON.stringify(Object.values(specialInner)) : String(specialInner)}`;
    }
  }
}

const listIndexPattern = /^(?:0|[1-9]\d{0,8})$/;
export const isIndex = (name: string): boolean => listIndexPattern.test(name);

/** Every value that a path leads to: into the members of each element, too, where lists lie on the way. */
export function valuesAt(document: Stored | undefined, path: readonly string[]): readonly (Stored | undefined)[] {
  const pathValues: (Stored | undefined)[] = [];
  collectPathValues(document, path, 0, pathValues);
  return pathValues;
}

/** A name like `0` leads into a list and into its elements: lists within lists have as many ways as there are choices. */
function collectPathValues(
  storedValue: Stored | undefined,
  fieldPath: readonly string[],
  pathDepth: number,
  pathValues: (Stored | undefined)[],
): void {
  spend(pathStepCost);
  if (pathDepth === fieldPath.length) {
    pathValues.push(storedValue);
    return;
  }
  const fieldName = fieldPath[pathDepth]!;
  if (isList(storedValue)) {
    if (isIndex(fieldName) && Number(fieldName) < storedValue.length)
      collectPathValues(storedValue[Number(fieldName)], fieldPath, pathDepth + 1, pathValues);
    for (const element of storedValue) if (isObject(element)) collectPathValues(element, fieldPath, pathDepth, pathValues);
    return;
  }
  if (isObject(storedValue) && storedValue.has(fieldName))
    collectPathValues(storedValue.get(fieldName), fieldPath, pathDepth + 1, pathValues);
  else pathValues.push(undefined);
}

export { Decimal, Double };
