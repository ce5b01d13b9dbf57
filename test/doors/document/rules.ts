/**
 * MongoDB's documented rules for filters, updates, sorts and projections, read anew and in the plainest way: numbers as fractions,
 * documents as maps of the driver's own values. Nothing here knows of what it is compared with.
 */
import { Decimal128, Double, Int32, Long } from 'bson';

export type Value = null | boolean | string | Int32 | Long | Double | Decimal128 | readonly Value[] | Doc;
export type Doc = ReadonlyMap<string, Value>;

const isDoc = (value: unknown): value is Doc => value instanceof Map;
const isArray = (value: unknown): value is readonly Value[] => Array.isArray(value);

interface Fraction {
  readonly above: bigint;
  readonly below: bigint;
}

/** null: it is no number. */
function fractionOf(value: unknown): Fraction | null {
  if (value instanceof Int32) return { above: BigInt(value.value), below: 1n };
  if (value instanceof Long) return { above: BigInt(value.toString()), below: 1n };
  if (value instanceof Double) {
    let [above, below] = [value.value, 1n];
    while (!Number.isInteger(above)) [above, below] = [above * 2, below * 2n];
    return { above: BigInt(above), below };
  }
  if (!(value instanceof Decimal128)) return null;
  const [digits, power = '0'] = value.toString().split('E') as [string, string?];
  const [whole, fraction = ''] = digits.split('.') as [string, string?];
  const by = Number(power) - fraction.length;
  const above = BigInt(`${whole}${fraction}`);
  return by >= 0 ? { above: above * 10n ** BigInt(by), below: 1n } : { above, below: 10n ** BigInt(-by) };
}

const ranks = ['null', 'number', 'string', 'object', 'array', 'bool'] as const;

function kindOf(value: Value | undefined): (typeof ranks)[number] {
  if (value === null || value === undefined) return 'null';
  if (typeof value === 'string') return 'string';
  if (typeof value === 'boolean') return 'bool';
  if (isDoc(value)) return 'object';
  return isArray(value) ? 'array' : 'number';
}

/** "Comparison/Sort Order" of the manual. */
export function compare(a: Value | undefined, b: Value | undefined): number {
  const kind = kindOf(a);
  if (kind !== kindOf(b)) return ranks.indexOf(kind) - ranks.indexOf(kindOf(b));
  if (kind === 'null') return 0;
  if (kind === 'number') {
    const [one, two] = [fractionOf(a)!, fractionOf(b)!];
    const difference = one.above * two.below - two.above * one.below;
    return difference < 0n ? -1 : difference > 0n ? 1 : 0;
  }
  if (kind === 'string') return a === b ? 0 : (a as string) < (b as string) ? -1 : 1;
  if (kind === 'bool') return Number(a) - Number(b);
  const [one, two] =
    kind === 'array' ? [[...(a as Value[]).entries()], [...(b as Value[]).entries()]] : [[...(a as Doc)], [...(b as Doc)]];
  for (let i = 0; i < Math.min(one.length, two.length); i++) {
    const [[name, value], [otherName, otherValue]] = [one[i]!, two[i]!];
    // Types first, then names, then values.
    const byKind = ranks.indexOf(kindOf(value)) - ranks.indexOf(kindOf(otherValue));
    const order = byKind || (name === otherName ? 0 : name < otherName ? -1 : 1) || compare(value, otherValue);
    if (order !== 0) return order;
  }
  return one.length - two.length;
}

/** What a path leads to; of each document in an array, too. */
function reached(value: Value | undefined, path: readonly string[]): (Value | undefined)[] {
  const [name, ...rest] = path;
  if (name === undefined) return [value];
  if (isArray(value)) {
    const byNumber = /^\d+$/.test(name) && Number(name) < value.length ? reached(value[Number(name)], rest) : [];
    return [...byNumber, ...value.filter(isDoc).flatMap((each) => reached(each, path))];
  }
  return isDoc(value) && value.has(name) ? reached(value.get(name), rest) : [undefined];
}

const orElements = (values: readonly (Value | undefined)[]): (Value | undefined)[] =>
  values.flatMap((value) => (isArray(value) ? [value, ...value] : [value]));

const typeOf = (value: Value | undefined): string =>
  value instanceof Int32
    ? 'int'
    : value instanceof Long
      ? 'long'
      : value instanceof Double
        ? 'double'
        : value instanceof Decimal128
          ? 'decimal'
          : kindOf(value);

const textIn = (value: Value): string => (value as Int32 | Long | Double | Decimal128).toString();
const numberIn = (value: Value): number => Number(textIn(value));

function holds(operator: string, operand: Value, values: readonly (Value | undefined)[]): boolean {
  const candidates = orElements(values);
  const ofKind = (test: (order: number) => boolean): boolean =>
    candidates.some((each) => kindOf(each) === kindOf(operand) && test(compare(each, operand)));
  switch (operator) {
    case '$eq':
      return candidates.some((each) => compare(each, operand) === 0);
    case '$gt':
      return ofKind((order) => order > 0);
    case '$gte':
      return ofKind((order) => order >= 0);
    case '$lt':
      return ofKind((order) => order < 0);
    case '$lte':
      return ofKind((order) => order <= 0);
    case '$in':
      return (operand as Value[]).some((each) => holds('$eq', each, values));
    case '$ne':
      return !holds('$eq', operand, values);
    case '$nin':
      return !holds('$in', operand, values);
    case '$not':
      return !operators(operand as Doc, values);
    case '$exists':
      return values.some((each) => each !== undefined) === operand;
    case '$size':
      return values.some((each) => isArray(each) && each.length === numberIn(operand));
    case '$all':
      return (operand as Value[]).length > 0 && (operand as Value[]).every((each) => holds('$eq', each, values));
    case '$elemMatch':
      return values.some(
        (each) =>
          isArray(each) &&
          each.some((element) => {
            const asked = operand as Doc;
            if ([...asked.keys()][0]!.startsWith('$')) return operators(asked, [element]);
            // An array is a document of numbered members.
            const members = isArray(element) ? new Map(element.map((each, i) => [String(i), each])) : element;
            return isDoc(members) && matches(asked, members);
          }),
      );
    case '$mod': {
      const [divisor, rest] = (operand as Value[]).map((each) => BigInt(numberIn(each)));
      return candidates.some((each) => {
        const number = fractionOf(each);
        return number !== null && (number.above / number.below) % divisor! === rest;
      });
    }
    case '$type':
      return candidates.some((each) => each !== undefined && (typeOf(each) === operand || kindOf(each) === operand));
  }
  throw new Error(`no rule for ${operator}`);
}

const operators = (asked: Doc, values: readonly (Value | undefined)[]): boolean =>
  [...asked].every(([operator, operand]) => holds(operator, operand, values));

export function matches(filter: Doc, document: Doc): boolean {
  return [...filter].every(([name, condition]) => {
    if (name === '$and') return (condition as Doc[]).every((each) => matches(each, document));
    if (name === '$or') return (condition as Doc[]).some((each) => matches(each, document));
    if (name === '$nor') return !(condition as Doc[]).some((each) => matches(each, document));
    const values = reached(document, name.split('.'));
    const isAsked = isDoc(condition) && [...condition.keys()].some((each) => each.startsWith('$'));
    return isAsked ? operators(condition, values) : holds('$eq', condition, values);
  });
}

/** An error's number, where the update is one. */
export type Updated = Doc | number;

/** "In 5.0 and later, update operators process fields in the order of their names." */
export function updated(update: Doc, document: Doc): Updated {
  const steps = [...update]
    .flatMap(([operator, fields]) => [...(fields as Doc)].map(([name, value]) => ({ operator, path: name.split('.'), value })))
    .sort((a, b) => (a.path.join('\0') < b.path.join('\0') ? -1 : 1));
  let made: Doc = document;
  for (const { operator, path, value } of steps) {
    const next = written(made, path, (old) => computed(operator, old, value));
    if (typeof next === 'number') return next;
    made = next as Doc;
  }
  return made;
}

function written(
  value: Value | undefined,
  path: readonly string[],
  write: (old: Value | undefined) => Value | number,
): Value | number {
  const [name, ...rest] = path;
  if (name === undefined) return write(value);
  if (isArray(value)) {
    if (!/^\d+$/.test(name)) return 28;
    const inner = written(value[Number(name)], rest, write);
    if (typeof inner === 'number') return inner;
    const made = [...value];
    while (made.length < Number(name)) made.push(null);
    made[Number(name)] = inner;
    return made;
  }
  if (value !== undefined && !isDoc(value)) return 28;
  const inner = written(value?.get(name), rest, write);
  return typeof inner === 'number' ? inner : new Map([...(value ?? []), [name, inner]]);
}

const widths = ['int', 'long', 'double', 'decimal'];

function computed(operator: string, old: Value | undefined, by: Value): Value | number {
  if (operator === '$set') return by;
  const before = old === undefined && operator === '$mul' ? new Int32(0) : old;
  if (before === undefined) return by;
  const [one, two] = [fractionOf(before), fractionOf(by)];
  if (one === null || two === null) return 14;
  const type = widths[Math.max(widths.indexOf(typeOf(before)), widths.indexOf(typeOf(by)))]!;
  const isSum = operator === '$inc';
  if (type === 'double') return new Double(isSum ? numberIn(before) + numberIn(by) : numberIn(before) * numberIn(by));
  if (type === 'decimal') return decimalOf(before, by, isSum);
  const whole = isSum ? one.above + two.above : one.above * two.above;
  if (whole !== BigInt.asIntN(64, whole)) return 2;
  return type === 'int' && whole === BigInt.asIntN(32, whole) ? new Int32(Number(whole)) : Long.fromBigInt(whole);
}

/** To 34 digits, half to even. */
function rounded(coefficient: bigint, exponent: number): Decimal128 {
  const digits = String(coefficient).replace('-', '');
  const cut = digits.length - 34;
  if (cut <= 0) return Decimal128.fromString(`${coefficient}E${exponent}`);
  const [kept, rest] = [BigInt(digits.slice(0, 34)), `0.${digits.slice(34)}`];
  const half = /^0\.50*$/.test(rest);
  const up = half ? kept % 2n === 1n : Number(rest) > 0.5 || /^0\.50*[1-9]/.test(rest);
  return Decimal128.fromString(`${coefficient < 0n ? '-' : ''}${kept + (up ? 1n : 0n)}E${exponent + cut}`);
}

/** Exact as long as 34 digits hold it, with as many digits behind the point as its parts had. */
function decimalOf(a: Value, b: Value, isSum: boolean): Decimal128 {
  const [one, two] = [a, b].map((each) => {
    const [digits, power = '0'] = textIn(each).split('E') as [string, string?];
    const [whole, fraction = ''] = digits.split('.') as [string, string?];
    return { coefficient: BigInt(`${whole}${fraction}`), exponent: Number(power) - fraction.length };
  }) as [{ coefficient: bigint; exponent: number }, { coefficient: bigint; exponent: number }];
  if (!isSum) return rounded(one.coefficient * two.coefficient, one.exponent + two.exponent);
  const exponent = Math.min(one.exponent, two.exponent);
  const scaled = ({ coefficient, exponent: own }: typeof one): bigint => coefficient * 10n ** BigInt(own - exponent);
  return rounded(scaled(one) + scaled(two), exponent);
}

/** Least element of an array where the order rises, greatest where it falls; an empty one before all. */
interface Key {
  readonly isEmpty: boolean;
  readonly value: Value | undefined;
}

export function sorted(keys: readonly (readonly [string, 1 | -1])[], documents: readonly Doc[]): Doc[] {
  const keyOf = (document: Doc, name: string, way: 1 | -1): Key => {
    const all = reached(document, name.split('.')).flatMap((value): Key[] =>
      isArray(value)
        ? value.length === 0
          ? [{ isEmpty: true, value: null }]
          : value.map((each) => ({ isEmpty: false, value: each }))
        : [{ isEmpty: false, value }],
    );
    return all.reduce<Key>(
      (best, each) => (order(each, best) * way < 0 ? each : best),
      all[0] ?? { isEmpty: false, value: undefined },
    );
  };
  const order = (a: Key, b: Key): number =>
    a.isEmpty || b.isEmpty ? Number(b.isEmpty) - Number(a.isEmpty) : compare(a.value, b.value);
  return [...documents].sort((a, b) => {
    for (const [name, way] of keys) {
      const by = order(keyOf(a, name, way), keyOf(b, name, way)) * way;
      if (by !== 0) return by;
    }
    return 0;
  });
}

/** Paths that are kept, or left out; `_id` is kept unless it is left out. */
export function projected(paths: readonly string[], keeps: boolean, document: Doc): Doc {
  const all = keeps ? ['_id', ...paths] : paths;
  const cut = (value: Value, at: readonly string[]): Value | undefined => {
    if (isArray(value)) return value.flatMap((each) => (cut(each, at) === undefined ? [] : [cut(each, at)!]));
    if (!isDoc(value)) return keeps && at.length > 0 ? undefined : value;
    return new Map(
      [...value].flatMap(([name, inner]): [string, Value][] => {
        const path = [...at, name].join('.');
        if (all.includes(path)) return keeps ? [[name, inner]] : [];
        if (!all.some((each) => each.startsWith(`${path}.`))) return keeps ? [] : [[name, inner]];
        const within = cut(inner, [...at, name]);
        return within === undefined ? [] : [[name, within]];
      }),
    );
  };
  return cut(document, []) as Doc;
}
