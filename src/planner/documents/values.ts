/**
 * Values of documents as they are stored: JSON, and canonical Extended JSON where JSON alone loses the type. Whole numbers of 32 bits
 * and fractions stand bare; all else that is no text, list or object of JSON is an object of one `$` member. Pure.
 */

/** What `JSON.parse` gives. */
export type Stored = null | boolean | number | string | readonly Stored[] | StoredObject;
export interface StoredObject {
  readonly [name: string]: Stored;
}

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
  | 'javascript'
  | 'maxKey';

/** In BSON order. */
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
  'javascript',
  'maxKey',
];
const rank = new Map(order.map((kind, i) => [kind, i]));

interface Wrapper {
  readonly kind: Kind;
  /** Whether this is what stands in one. Objects that only look alike are objects. */
  readonly holds: (inner: Stored) => boolean;
}

const isText = (inner: Stored): inner is string => typeof inner === 'string';
const isWhole = (inner: Stored): boolean => isText(inner) && /^-?\d{1,19}$/.test(inner);
const isTexts = (inner: Stored, ...names: readonly string[]): boolean =>
  typeof inner === 'object' && inner !== null && !isList(inner) && names.every((name) => isText(inner[name] ?? null));
const isOne = (inner: Stored): boolean => inner === 1;
const isCount = (inner: Stored | undefined): boolean => typeof inner === 'number' && Number.isInteger(inner) && inner >= 0;

const wrappers: Readonly<Record<string, Wrapper>> = {
  $numberInt: { kind: 'number', holds: isWhole },
  $numberLong: { kind: 'number', holds: isWhole },
  $numberDouble: { kind: 'number', holds: (inner) => isText(inner) && (inner === 'NaN' || !Number.isNaN(Number(inner))) },
  $numberDecimal: { kind: 'number', holds: isText },
  $oid: { kind: 'objectId', holds: (inner) => isText(inner) && /^[0-9a-f]{24}$/.test(inner) },
  $date: {
    kind: 'date',
    holds: (inner) =>
      isText(inner)
        ? !Number.isNaN(Date.parse(inner))
        : isTexts(inner, '$numberLong') && isWhole((inner as StoredObject)['$numberLong']!),
  },
  $timestamp: {
    kind: 'timestamp',
    holds: (inner) => typeof inner === 'object' && inner !== null && !isList(inner) && isCount(inner['t']) && isCount(inner['i']),
  },
  $binary: { kind: 'binData', holds: (inner) => isTexts(inner, 'base64', 'subType') },
  $regularExpression: { kind: 'regex', holds: (inner) => isTexts(inner, 'pattern', 'options') },
  $code: { kind: 'javascript', holds: isText },
  $symbol: { kind: 'string', holds: isText },
  $undefined: { kind: 'null', holds: (inner) => inner === true },
  $minKey: { kind: 'minKey', holds: isOne },
  $maxKey: { kind: 'maxKey', holds: isOne },
};

export const wrapperNames: ReadonlySet<string> = new Set(Object.keys(wrappers));

/** The `$` member that makes an object a value of another kind; null: it is an object. */
export function wrapperOf(value: StoredObject): string | null {
  let found: string | null = null;
  for (const name in value) {
    if (found !== null || !name.startsWith('$')) return null;
    found = name;
  }
  return found !== null && Object.hasOwn(wrappers, found) && wrappers[found]!.holds(value[found]!) ? found : null;
}

export function kindOf(value: Stored | undefined): Kind {
  if (value === null || value === undefined) return 'null';
  if (typeof value === 'number') return 'number';
  if (typeof value === 'string') return 'string';
  if (typeof value === 'boolean') return 'bool';
  if (isList(value)) return 'array';
  const wrapper = wrapperOf(value);
  return wrapper === null ? 'object' : wrappers[wrapper]!.kind;
}

export function isList(value: Stored | undefined): value is readonly Stored[] {
  return Array.isArray(value);
}

/** An object of members, not a value in disguise. */
export function isObject(value: Stored | undefined): value is StoredObject {
  return typeof value === 'object' && value !== null && !isList(value) && wrapperOf(value) === null;
}

/** A number as it is worth: exact where it is whole. */
export function numberOf(value: Stored): number | bigint {
  if (typeof value === 'number') return value;
  const [wrapper, text] = Object.entries(value as StoredObject)[0]!;
  if (wrapper === '$numberLong') return BigInt(text as string);
  return Number(text as string);
}

/** Text by which two of a kind compare, where neither is a number, a list or an object. */
function textOf(value: Stored): string {
  if (typeof value !== 'object' || value === null) return String(value);
  const [wrapper, inner] = Object.entries(value as StoredObject)[0]!;
  if (wrapper === '$regularExpression') {
    const { pattern, options } = inner as { pattern: string; options: string };
    return `${pattern}\0${options}`;
  }
  return typeof inner === 'string' ? inner : JSON.stringify(inner);
}

export function milliseconds(value: Stored): bigint {
  const inner = (value as StoredObject)['$date']!;
  if (isText(inner)) return BigInt(Date.parse(inner));
  return BigInt((inner as StoredObject)['$numberLong'] as string);
}

export function timestampOf(value: Stored): bigint {
  const { t, i } = (value as StoredObject)['$timestamp'] as { t: number; i: number };
  return (BigInt(t) << 32n) | BigInt(i);
}

export function bytesOf(value: Stored): { readonly bytes: Uint8Array; readonly type: number } {
  const { base64, subType } = (value as StoredObject)['$binary'] as { base64: string; subType: string };
  return { bytes: Buffer.from(base64, 'base64'), type: Number.parseInt(subType, 16) & 0xff };
}

const sign = (a: number | bigint | string, b: number | bigint | string): number => (a < b ? -1 : a > b ? 1 : 0);

/** NaN comes before every other number. */
function compareNumbers(a: number | bigint, b: number | bigint): number {
  if (Number.isNaN(a)) return Number.isNaN(b) ? 0 : -1;
  if (Number.isNaN(b)) return 1;
  return sign(a, b);
}

/** Negative, 0 or positive, in BSON order; whatever the kinds. */
export function compare(a: Stored | undefined, b: Stored | undefined): number {
  const kind = kindOf(a);
  const other = kindOf(b);
  if (kind !== other) return rank.get(kind)! - rank.get(other)!;
  switch (kind) {
    case 'null':
    case 'minKey':
    case 'maxKey':
      return 0;
    case 'number':
      return compareNumbers(numberOf(a!), numberOf(b!));
    case 'bool':
      return Number(a) - Number(b);
    case 'date':
      return sign(milliseconds(a!), milliseconds(b!));
    case 'timestamp':
      return sign(timestampOf(a!), timestampOf(b!));
    case 'binData': {
      const [one, two] = [bytesOf(a!), bytesOf(b!)];
      return one.bytes.length - two.bytes.length || one.type - two.type || Buffer.compare(one.bytes, two.bytes);
    }
    case 'array':
      return compareLists(a as readonly Stored[], b as readonly Stored[]);
    case 'object':
      return compareObjects(a as StoredObject, b as StoredObject);
    default: {
      const [one, two] = [Buffer.from(textOf(a!)), Buffer.from(textOf(b!))];
      return Buffer.compare(one, two);
    }
  }
}

function compareLists(a: readonly Stored[], b: readonly Stored[]): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const order = compare(a[i], b[i]);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

function compareObjects(a: StoredObject, b: StoredObject): number {
  const [one, two] = [Object.entries(a), Object.entries(b)];
  for (let i = 0; i < Math.min(one.length, two.length); i++) {
    const [name, value] = one[i]!;
    const [otherName, otherValue] = two[i]!;
    const kinds = rank.get(kindOf(value))! - rank.get(kindOf(otherValue))!;
    if (kinds !== 0) return kinds;
    const names = Buffer.compare(Buffer.from(name), Buffer.from(otherName));
    if (names !== 0) return names;
    const values = compare(value, otherValue);
    if (values !== 0) return values;
  }
  return one.length - two.length;
}

/** Equal values have one text: numbers by what they are worth, whatever their type. */
export function identityOf(value: Stored | undefined): string {
  const kind = kindOf(value);
  switch (kind) {
    case 'number': {
      const number = numberOf(value!);
      return `n${typeof number === 'bigint' || Number.isSafeInteger(number) ? BigInt(number) : number}`;
    }
    case 'array':
      return `[${(value as readonly Stored[]).map(identityOf).join()}]`;
    case 'object':
      return `{${Object.entries(value as StoredObject)
        .map(([name, member]) => `${JSON.stringify(name)}:${identityOf(member)}`)
        .join()}}`;
    case 'date':
      return `d${milliseconds(value!)}`;
    case 'null':
      return 'null';
    default:
      return `${kind} ${JSON.stringify(textOf(value!))}`;
  }
}

/** Every value that a path leads to: into the members of each element, too, where lists lie on the way. */
export function valuesAt(document: Stored | undefined, path: readonly string[]): readonly (Stored | undefined)[] {
  const found: (Stored | undefined)[] = [];
  walk(document, path, 0, found);
  return found;
}

function walk(value: Stored | undefined, path: readonly string[], at: number, found: (Stored | undefined)[]): void {
  if (at === path.length) {
    found.push(value);
    return;
  }
  const name = path[at]!;
  if (isList(value)) {
    if (/^\d{1,9}$/.test(name) && Number(name) < value.length) walk(value[Number(name)], path, at + 1, found);
    for (const element of value) if (isObject(element)) walk(element, path, at, found);
    return;
  }
  if (isObject(value) && Object.hasOwn(value, name)) walk(value[name], path, at + 1, found);
  else found.push(undefined);
}
