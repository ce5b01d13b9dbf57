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
const order: readonly Kind[] = [
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
const rank = new Map(order.map((kind, i) => [kind, i]));

/** Values of other types, by their name in Extended JSON. */
interface Inner {
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

const kinds: Readonly<Record<keyof Inner, Kind>> = {
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
export class Special<N extends keyof Inner = keyof Inner> {
  readonly name: N;
  readonly inner: Inner[N];

  constructor(name: N, inner: Inner[N]) {
    this.name = name;
    this.inner = inner;
  }

  is<M extends keyof Inner>(name: M): this is Special<M> {
    return (this.name as string) === name;
  }
}

export function asSpecial<N extends keyof Inner>(value: Stored | undefined, name: N): Inner[N] | null {
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
  return value instanceof Special ? kinds[value.name] : 'number';
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
  for (const name of value.keys()) if (name.startsWith('$')) return true;
  return false;
}

const sign = (a: number | bigint, b: number | bigint): number => (a < b ? -1 : a > b ? 1 : 0);
/** Nanoseconds of a step along a path, and of a value that is compared or named. */
const stepCost = 120;
const valueCost = 50;

function compareTexts(a: string, b: string): number {
  work.done += a.length + b.length;
  return a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b));
}
const textIn = (value: Stored): string => (typeof value === 'string' ? value : asSpecial(value, '$symbol')!);

/** Compares any two values in BSON order: negative, 0 or positive. */
export function compare(a: Stored | undefined, b: Stored | undefined): number {
  work.done += valueCost;
  if (typeof a === 'number' && typeof b === 'number') return compareNumbers(a, b);
  const kind = kindOf(a);
  const other = kindOf(b);
  if (kind !== other) return rank.get(kind)! - rank.get(other)!;
  switch (kind) {
    case 'null':
    case 'minKey':
    case 'maxKey':
      return 0;
    case 'number':
      return compareNumbers(a as Numeric, b as Numeric);
    case 'string':
      return compareTexts(textIn(a!), textIn(b!));
    case 'bool':
      return Number(a) - Number(b);
    case 'array':
      return compareLists(a as readonly Stored[], b as readonly Stored[]);
    case 'object':
      return compareObjects(a as StoredObject, b as StoredObject);
    default:
      return compareSpecials(a as Special, b as Special);
  }
}

function compareSpecials(a: Special, b: Special): number {
  if (a.is('$binary') && b.is('$binary')) {
    const [one, two] = [a.inner, b.inner];
    return one.bytes.length - two.bytes.length || one.type - two.type || Buffer.compare(one.bytes, two.bytes);
  }
  if (a.is('$regularExpression') && b.is('$regularExpression'))
    return compareTexts(a.inner.pattern, b.inner.pattern) || compareTexts(a.inner.options, b.inner.options);
  if (a.is('$scope') && b.is('$scope'))
    return compareTexts(a.inner.code, b.inner.code) || compareObjects(a.inner.scope, b.inner.scope);
  if (a.is('$dbPointer') && b.is('$dbPointer'))
    return (
      a.inner.ref.length - b.inner.ref.length || compareTexts(a.inner.ref, b.inner.ref) || compareTexts(a.inner.oid, b.inner.oid)
    );
  const [one, two] = [a.inner as string | bigint, b.inner as string | bigint];
  return typeof one === 'string' ? compareTexts(one, two as string) : sign(one, two as bigint);
}

function compareLists(a: readonly Stored[], b: readonly Stored[]): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const order = compare(a[i], b[i]);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

function compareObjects(a: StoredObject, b: StoredObject): number {
  const others = b.entries();
  for (const [name, value] of a) {
    const { done, value: other } = others.next();
    if (done === true) return 1;
    const kinds = rank.get(kindOf(value))! - rank.get(kindOf(other[1]))!;
    const order = kinds || compareTexts(name, other[0]) || compare(value, other[1]);
    if (order !== 0) return order;
  }
  return a.size - b.size;
}

/** Equal values have one text; numbers are equal by value, across types. */
export function identityOf(value: Stored | undefined): string {
  work.done += valueCost + (typeof value === 'string' ? value.length : 0);
  switch (kindOf(value)) {
    case 'number':
      return `n${numberIdentity(value as Numeric)}`;
    case 'string':
      return JSON.stringify(textIn(value!));
    case 'bool':
    case 'null':
      return String(value === true || (value !== false && null));
    case 'array':
      return `[${(value as readonly Stored[]).map(identityOf).join()}]`;
    case 'object':
      return `{${[...(value as StoredObject)].map(([name, member]) => `${JSON.stringify(name)}:${identityOf(member)}`).join()}}`;
    default: {
      const { name, inner } = value as Special;
      if (name === '$binary') {
        const { bytes, type } = inner as Inner['$binary'];
        return `${name}${type}:${Buffer.from(bytes).toString('base64')}`;
      }
      if (name === '$scope') {
        const { code, scope } = inner as Inner['$scope'];
        return `${name}${JSON.stringify(code)}${identityOf(scope)}`;
      }
      return `${name}${typeof inner === 'object' ? JSON.stringify(Object.values(inner)) : String(inner)}`;
    }
  }
}

const index = /^(?:0|[1-9]\d{0,8})$/;
export const isIndex = (name: string): boolean => index.test(name);

/** Every value that a path leads to: into the members of each element, too, where lists lie on the way. */
export function valuesAt(document: Stored | undefined, path: readonly string[]): readonly (Stored | undefined)[] {
  const pathValues: (Stored | undefined)[] = [];
  walk(document, path, 0, pathValues);
  return pathValues;
}

/** A name like `0` leads into a list and into its elements: lists within lists have as many ways as there are choices. */
function walk(value: Stored | undefined, path: readonly string[], at: number, pathValues: (Stored | undefined)[]): void {
  spend(stepCost);
  if (at === path.length) {
    pathValues.push(value);
    return;
  }
  const name = path[at]!;
  if (isList(value)) {
    if (isIndex(name) && Number(name) < value.length) walk(value[Number(name)], path, at + 1, pathValues);
    for (const element of value) if (isObject(element)) walk(element, path, at, pathValues);
    return;
  }
  if (isObject(value) && value.has(name)) walk(value.get(name), path, at + 1, pathValues);
  else pathValues.push(undefined);
}

export { Decimal, Double };
