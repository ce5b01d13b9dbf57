/** Operators of questions of the catalogue over values that are not NULL. */
import { patternFunctions } from '../../../planner/expressions/functions/patterns.ts';
import { type Expression, type Frame, refusal } from './scope.ts';
import { commonOf, compare, elementOf, familyOf, type Value } from '../../../planner/virtual/types.ts';

/** Brings an expression to a type. */
export type Coerce = (expression: Expression, type: string) => Expression;

interface Place {
  readonly at: number;
  readonly text: string;
}

type Judge = (a: Exclude<Value, null>, b: Exclude<Value, null>) => Value;

const orders: Readonly<Record<string, (order: number) => boolean>> = {
  '=': (order) => order === 0,
  '<>': (order) => order !== 0,
  '<': (order) => order < 0,
  '>': (order) => order > 0,
  '<=': (order) => order <= 0,
  '>=': (order) => order >= 0,
};

const sums: Readonly<Record<string, (a: number, b: number) => number>> = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '/': (a, b) => a / b,
  '%': (a, b) => a % b,
  '&': (a, b) => a & b,
  '|': (a, b) => a | b,
  '#': (a, b) => a ^ b,
};

const regexes = new Set(['~', '~*', '!~', '!~*']);
const likes = new Set(['~~', '~~*', '!~~', '!~~*']);

export function operated(op: string, left: Expression, right: Expression, coerce: Coerce, place: Place): Expression {
  if (op in orders) {
    const [a, b] = alike(op, left, right, coerce, place);
    const is = orders[op]!;
    return both('bool', a, b, (x, y) => is(compare(x, y)));
  }
  if (regexes.has(op)) {
    const matches = patternFunctions.find(({ name }) => name === op)!.signatures[0]!.evaluate;
    return both(
      'bool',
      coerce(left, 'text'),
      coerce(right, 'text'),
      remembered((a, b) => matches(a, b) as boolean),
    );
  }
  if (likes.has(op)) {
    const negated = op.startsWith('!');
    const flags = op.endsWith('*') ? 'si' : 's';
    const matches = patternFunctions.find(({ name }) => name === 'REGEXP_LIKE')!.signatures[0]!.evaluate;
    const judge = remembered((a, b) => (matches(a, patternOf(b), flags) as boolean) !== negated);
    return both('bool', coerce(left, 'text'), coerce(right, 'text'), judge);
  }
  if (op === '||') return joined(left, right, coerce, place);
  if (op in sums) {
    if ((left.type === 'unknown' ? 'number' : familyOf(left.type)) !== 'number') throw unfit(op, left, right, place);
    const [a, b, type] = alike(op, left, right, coerce, place);
    if (familyOf(type) !== 'number') throw unfit(op, left, right, place);
    const compute = sums[op]!;
    const isWhole = !['float4', 'float8', 'numeric'].includes(type);
    return both(type, a, b, (x, y) => {
      if ((op === '/' || op === '%') && y === 0) throw refusal('REL_TYPE_MISMATCH', 'division by zero', place.at, place.text);
      const value = compute(x as number, y as number);
      return isWhole ? Math.trunc(value) : value;
    });
  }
  if (op === '@>' || op === '<@' || op === '&&') {
    const [a, b, type] = alike(op, left, right, coerce, place);
    if (familyOf(type) !== 'array') throw unfit(op, left, right, place);
    const has = (all: Value, one: Value): boolean =>
      (all as Value[]).some((each) => each !== null && one !== null && compare(each, one) === 0);
    const covers = (all: Value, some: Value): boolean => (some as Value[]).every((each) => has(all, each));
    return both('bool', a, b, (x, y) =>
      op === '&&' ? (y as Value[]).some((each) => has(x, each)) : op === '@>' ? covers(x, y) : covers(y, x),
    );
  }
  throw unfit(op, left, right, place);
}

/** Both as their common type. */
export function alike(
  op: string,
  left: Expression,
  right: Expression,
  coerce: Coerce,
  place: Place,
): [Expression, Expression, string] {
  const common = commonOf(left.type, right.type);
  if (common === null || common === 'record') throw unfit(op, left, right, place);
  const type = common === 'unknown' ? 'text' : common;
  return [coerce(left, type), coerce(right, type), type];
}

function unfit(op: string, left: Expression, right: Expression, { at, text }: Place): Error {
  return refusal('REL_NOT_IMPLEMENTED', `${left.type} ${op} ${right.type} is not implemented`, at, text);
}

function both(type: string, left: Expression, right: Expression, judge: Judge): Expression {
  return {
    type,
    of: (frame: Frame) => {
      const a = left.of(frame);
      if (a === null) return null;
      const b = right.of(frame);
      return b === null ? null : judge(a, b);
    },
  };
}

const rememberedMax = 10_000;

/** A match of a regular expression is dear, and names of schemas come again and again. */
function remembered(matches: (of: string, pattern: string) => boolean): Judge {
  const known = new Map<string, boolean>();
  return (of, pattern) => {
    const key = `${pattern as string}\0${of as string}`;
    let found = known.get(key);
    if (found === undefined) {
      found = matches(of as string, pattern as string);
      if (known.size < rememberedMax) known.set(key, found);
    }
    return found;
  };
}

function joined(left: Expression, right: Expression, coerce: Coerce, place: Place): Expression {
  const [a, b] = [elementOf(left.type), elementOf(right.type)];
  if (a === null && b === null)
    return both('text', coerce(left, 'text'), coerce(right, 'text'), (x, y) => (x as string) + (y as string));
  const element = commonOf(a ?? left.type, b ?? right.type);
  if (element === null) throw unfit('||', left, right, place);
  const type = `_${element === 'unknown' ? 'text' : element}`;
  const listed = (of: Expression, isArray: boolean): Expression => {
    if (isArray || of.type === 'unknown') return coerce(of, type);
    const one = coerce(of, type.slice(1));
    return { type, of: (frame) => [one.of(frame)] };
  };
  const [x, y] = [listed(left, a !== null), listed(right, b !== null)];
  return {
    type,
    of: (frame) => {
      const [first, second] = [x.of(frame) as Value[] | null, y.of(frame) as Value[] | null];
      return first === null ? second : second === null ? first : [...first, ...second];
    },
  };
}

/** `%` any run of characters, `_` one, a backslash before either takes it as it is: as a regular expression. */
function patternOf(like: string): string {
  const plain = (letter: string): string => letter.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);
  const parts = like.replaceAll(/\\([^])|[^]/g, (letter, escaped: string | undefined) =>
    escaped !== undefined ? plain(escaped) : letter === '%' ? '.*' : letter === '_' ? '.' : plain(letter),
  );
  return `^${parts}$`;
}
