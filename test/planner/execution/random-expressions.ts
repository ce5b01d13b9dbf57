/**
 * Random expressions twice: as SQL text, and as a function that says what the text must yield on one row. The function is
 * written from the rules of the dialect alone and shares nothing with the planner.
 */
import fc from 'fast-check';
import type { Row } from '../fake-snapshot.ts';

export type Value = null | string | bigint | number | boolean;

/** Thrown by the function where the dialect has an error: a result beyond 64 bits or beyond doubles. */
export class Overflow extends Error {}

export interface Random {
  readonly sql: string;
  readonly of: (row: Row) => Value;
}

export const columns = {
  small: 'integer',
  large: 'integer',
  mixed: 'integer',
  ratio: 'number',
  label: 'string',
  color: 'string',
  shade: 'string',
  flag: 'boolean',
  seen: 'timestamp',
  never: 'integer',
} as const;

const integers = ['small', 'large', 'mixed', 'never'] as const;
const texts = ['label', 'color', 'shade'] as const;

const words = ['', 'a', 'ab', 'abc', 'b', 'ä', 'Z', 'zebra', '😀', '\uffff', "o'clock", '%', '_', 'a%b'];
const edges = [
  0n,
  1n,
  -1n,
  7n,
  100n,
  2n ** 31n - 1n,
  -(2n ** 31n),
  2n ** 53n,
  2n ** 53n + 1n,
  -(2n ** 53n) - 1n,
  2n ** 63n - 1n,
  -(2n ** 63n),
];

const smallInteger = fc.integer({ min: -20, max: 20 }).map(BigInt);
const anyInteger = fc.oneof({ weight: 4, arbitrary: smallInteger }, fc.constantFrom(...edges));
const anyNumber = fc.oneof(
  fc.constantFrom(0, 1, -1, 0.5, 1.5, 7, 100, 1e300, -1e300, 2 ** 53, 5e-324),
  fc.integer({ min: -40, max: 40 }).map((n) => n / 4),
);
const anyWord = fc.constantFrom(...words);

/** A segment's worth of rows: narrow ones keep to small values, so that layouts differ between segments. */
export const randomRows: fc.Arbitrary<Row[]> = fc
  .array(
    fc
      .record({ narrow: fc.boolean(), nulls: fc.boolean(), size: fc.integer({ min: 1, max: 12 }) })
      .chain(({ narrow, nulls, size }) => {
        const cell = <T extends Value>(value: fc.Arbitrary<T>): fc.Arbitrary<T | null> =>
          nulls ? fc.option(value, { freq: 3 }) : value;
        return fc.array(
          fc.record({
            small: cell(smallInteger),
            large: cell(narrow ? smallInteger : anyInteger),
            mixed: cell(narrow ? fc.constantFrom(2n ** 40n, 3n) : anyInteger),
            ratio: cell(anyNumber),
            label: cell(anyWord),
            color: cell(anyWord),
            shade: cell(anyWord),
            flag: cell(fc.boolean()),
            seen: cell(fc.constantFrom(0n, 5n, 1_704_067_200_000_000_000n, 1_704_067_200_000_000_001n)),
            never: fc.constant(null),
          }),
          { minLength: size, maxLength: size },
        );
      }),
    { minLength: 1, maxLength: 4 },
  )
  .map((segments) => segments.flat());

export const { condition, integer, number, text } = fc.letrec<{
  condition: Random;
  integer: Random;
  number: Random;
  text: Random;
}>((tie) => ({
  integer: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom(...integers).map((name) => ({ sql: name, of: (row: Row) => row[name] as Value })),
    anyInteger.filter((n) => n !== -(2n ** 63n)).map((n) => ({ sql: n < 0n ? `(${n})` : String(n), of: () => n })),
    fc.tuple(fc.constantFrom('+', '-', '*', '%'), tie('integer'), tie('integer')).map(([op, a, b]) => ({
      sql: `(${a.sql} ${op} ${b.sql})`,
      of: (row: Row) => exact(op, a.of(row), b.of(row)),
    })),
    tie('integer').map((a) => ({ sql: `(- ${a.sql})`, of: (row: Row) => exact('-', 0n, a.of(row)) })),
    fc.tuple(tie('condition'), tie('integer'), tie('integer')).map(([when, a, b]) => ({
      sql: `CASE WHEN ${when.sql} THEN ${a.sql} ELSE ${b.sql} END`,
      of: (row: Row) => (when.of(row) === true ? a.of(row) : b.of(row)),
    })),
  ),
  number: fc.oneof(
    { depthSize: 'small' },
    fc.constant({ sql: 'ratio', of: (row: Row) => row['ratio'] as Value }),
    anyNumber.filter((n) => n >= 0 && n < 1e21 && n > 1e-3).map((n) => ({ sql: n.toFixed(2), of: () => Number(n.toFixed(2)) })),
    fc
      .tuple(fc.constantFrom('+', '-', '*', '/', '%'), tie('number'), fc.oneof(tie('number'), tie('integer')))
      .map(([op, a, b]) => ({
        sql: `(${a.sql} ${op} ${b.sql})`,
        of: (row: Row) => double(op, a.of(row), b.of(row)),
      })),
    fc.tuple(tie('integer'), tie('integer')).map(([a, b]) => ({
      sql: `(${a.sql} / ${b.sql})`,
      of: (row: Row) => double('/', a.of(row), b.of(row)),
    })),
  ),
  text: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom(...texts).map((name) => ({ sql: name, of: (row: Row) => row[name] as Value })),
    anyWord.map((word) => ({ sql: quoted(word), of: () => word })),
    fc.tuple(tie('condition'), tie('text'), tie('text')).map(([when, a, b]) => ({
      sql: `CASE WHEN ${when.sql} THEN ${a.sql} ELSE ${b.sql} END`,
      of: (row: Row) => (when.of(row) === true ? a.of(row) : b.of(row)),
    })),
  ),
  condition: fc.oneof(
    { depthSize: 'small' },
    fc.constant({ sql: 'flag', of: (row: Row) => row['flag'] as Value }),
    comparison(fc.oneof(tie('integer'), tie('number'))),
    comparison(tie('text')),
    comparison(
      fc.constantFrom<Random>(
        { sql: 'seen', of: (row) => row['seen'] as Value },
        { sql: "'2024-01-01'", of: () => 1_704_067_200_000_000_000n },
        { sql: "'2024-01-01T00:00:00.000000001Z'", of: () => 1_704_067_200_000_000_001n },
      ),
      // Two literals beside each other are text, not timestamps.
    ).filter(({ sql }) => sql.includes('seen')),
    fc.tuple(tie('condition'), tie('condition')).map(([a, b]) => ({
      sql: `(${a.sql} AND ${b.sql})`,
      of: (row: Row) => {
        const [x, y] = [a.of(row), b.of(row)];
        return x === false || y === false ? false : x === null || y === null ? null : true;
      },
    })),
    fc.tuple(tie('condition'), tie('condition')).map(([a, b]) => ({
      sql: `(${a.sql} OR ${b.sql})`,
      of: (row: Row) => {
        const [x, y] = [a.of(row), b.of(row)];
        return x === true || y === true ? true : x === null || y === null ? null : false;
      },
    })),
    tie('condition').map((a) => ({ sql: `(NOT ${a.sql})`, of: (row: Row) => negated(a.of(row)) })),
    fc.tuple(fc.oneof(tie('integer'), tie('text'), tie('condition')), fc.boolean()).map(([a, not]) => ({
      sql: `(${a.sql} IS ${not ? 'NOT ' : ''}NULL)`,
      of: (row: Row) => (a.of(row) === null) !== not,
    })),
    fc
      .tuple(tie('text'), fc.constantFrom('%', '_', 'a%', '%b', '%a%b%', '_b%', "o'%", ''), fc.boolean())
      .map(([a, pattern, not]) => ({
        sql: `(${a.sql} ${not ? 'NOT ' : ''}LIKE ${quoted(pattern)})`,
        of: (row: Row) => {
          const value = a.of(row);
          return value === null ? null : like(String(value), pattern) !== not;
        },
      })),
    fc.tuple(tie('integer'), tie('integer'), tie('integer'), fc.boolean()).map(([a, low, high, not]) => ({
      sql: `(${a.sql} ${not ? 'NOT ' : ''}BETWEEN ${low.sql} AND ${high.sql})`,
      of: (row: Row) => {
        const [x, l, h] = [a.of(row), low.of(row), high.of(row)];
        const above = x === null || l === null ? null : x >= l;
        const below = x === null || h === null ? null : x <= h;
        const within = above === false || below === false ? false : above === null || below === null ? null : true;
        return not ? negated(within) : within;
      },
    })),
    inList(
      tie('integer'),
      fc.option(
        anyInteger.filter((n) => n >= 0n),
        { freq: 8 },
      ),
    ),
    inList(tie('text'), fc.option(anyWord, { freq: 8 })),
  ),
}));

function comparison(operand: fc.Arbitrary<Random>): fc.Arbitrary<Random> {
  return fc.tuple(fc.constantFrom('=', '!=', '<', '<=', '>', '>='), operand, operand).map(([op, a, b]) => ({
    sql: `(${a.sql} ${op} ${b.sql})`,
    of: (row: Row) => {
      const [x, y] = [a.of(row), b.of(row)];
      if (x === null || y === null) return null;
      const order = typeof x === 'string' ? byCodepoints(x, String(y)) : x < y ? -1 : x > y ? 1 : 0;
      return op === '='
        ? order === 0
        : op === '!='
          ? order !== 0
          : op[0] === '<'
            ? order < 0 || (op === '<=' && order === 0)
            : order > 0 || (op === '>=' && order === 0);
    },
  }));
}

function inList(operand: fc.Arbitrary<Random>, item: fc.Arbitrary<Value>): fc.Arbitrary<Random> {
  return fc.tuple(operand, fc.array(item, { minLength: 1, maxLength: 12 }), fc.boolean()).map(([a, items, not]) => ({
    sql: `(${a.sql} ${not ? 'NOT ' : ''}IN (${items.map((each) => (typeof each === 'string' ? quoted(each) : String(each ?? 'NULL'))).join(', ')}))`,
    of: (row: Row) => {
      const value = a.of(row);
      if (value === null) return null;
      const found = items.includes(value) ? true : items.includes(null) ? null : false;
      return not ? negated(found) : found;
    },
  }));
}

function negated(value: Value): Value {
  return value === null ? null : !value;
}

function exact(op: string, a: Value, b: Value): Value {
  if (a === null || b === null) return null;
  const [x, y] = [a as bigint, b as bigint];
  if (op === '%' && y === 0n) return null;
  const result = op === '+' ? x + y : op === '-' ? x - y : op === '*' ? x * y : x % y;
  if (result !== BigInt.asIntN(64, result)) throw new Overflow();
  return result;
}

function double(op: string, a: Value, b: Value): Value {
  if (a === null || b === null) return null;
  const [x, y] = [Number(a), Number(b)];
  if ((op === '/' || op === '%') && y === 0) return null;
  const result = op === '+' ? x + y : op === '-' ? x - y : op === '*' ? x * y : op === '/' ? x / y : x % y;
  if (!Number.isFinite(result)) throw new Overflow();
  return result;
}

function byCodepoints(a: string, b: string): number {
  const [x, y] = [Array.from(a), Array.from(b)];
  for (let i = 0; i < Math.min(x.length, y.length); i++) {
    const difference = x[i]!.codePointAt(0)! - y[i]!.codePointAt(0)!;
    if (difference !== 0) return difference;
  }
  return x.length - y.length;
}

function like(text: string, pattern: string): boolean {
  if (pattern === '') return text === '';
  const [head = '', ...rest] = Array.from(pattern);
  const tail = rest.join('');
  const characters = Array.from(text);
  if (head === '%') return characters.some((_, i) => like(characters.slice(i).join(''), tail)) || like('', tail);
  return characters.length > 0 && (head === '_' || head === characters[0]) && like(characters.slice(1).join(''), tail);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
