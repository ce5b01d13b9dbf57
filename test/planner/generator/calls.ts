/**
 * Functions, casts, patterns, dates and JSON as the generator calls them: what we write, and what SQLite writes.
 */
import type { Choices } from './random.ts';
import type { Expr, Facts, Type } from './tree.ts';

const unknown = Number.POSITIVE_INFINITY;

export interface Call {
  readonly takes: readonly Type[];
  readonly yields: Type;
  readonly ours: (operands: readonly string[]) => string;
  readonly theirs: (operands: readonly string[]) => string;
  /** It is asked where an argument is NULL too. */
  readonly takesNull?: true;
  /** Size and grain of what it yields; unknown where this is absent. */
  readonly facts?: (operands: readonly Expr[]) => Pick<Facts, 'size' | 'grain'>;
}

const named =
  (name: string) =>
  (operands: readonly string[]): string =>
    `${name}(${operands.join(', ')})`;
const nsPerSecond = 1_000_000_000n;
const nsPerDay = 86_400n * nsPerSecond;
const flooredText = (ns: string, by: bigint): string => `(${ns} - ((${ns} % ${by}) + ${by}) % ${by})`;
const field = (name: string, format: string): Call => ({
  takes: ['timestamp'],
  yields: 'integer',
  ours: ([t]) => `EXTRACT(${name} FROM ${t!})`,
  theirs: ([t]) => `CAST(strftime('${format}', ${flooredText(t!, nsPerSecond)} / ${nsPerSecond}, 'unixepoch') AS INTEGER)`,
  facts: () => ({ size: 2_300, grain: 0 }),
});
const pattern = (regexp: string): Call => ({
  takes: ['string'],
  yields: 'boolean',
  ours: ([s]) => `(${s!} ~ '${regexp}')`,
  theirs: ([s]) => `regexp('${regexp}', ${s!})`,
});
const widest = (operands: readonly Expr[]): Pick<Facts, 'size' | 'grain'> => ({
  size: Math.max(...operands.map(({ size }) => size)),
  grain: Math.max(...operands.map(({ grain }) => grain)),
});
const documents = ['{"a":1,"b":{"c":[1,2]}}', '{"a":"x","b":[true,null]}', '{"b":"y"}'] as const;
const json = (path: string): Call => ({
  takes: ['boolean'],
  yields: 'string',
  ours: ([b]) => `(CAST(CASE WHEN ${b!} THEN '${documents[0]}' ELSE '${documents[1]}' END AS JSON) ->> '${path}')`,
  theirs: ([b]) => `CAST((CASE WHEN ${b!} THEN '${documents[0]}' ELSE '${documents[1]}' END) ->> '${path}' AS TEXT)`,
  takesNull: true,
});

export const calls: Readonly<Record<string, Call>> = {
  abs: {
    takes: ['integer'],
    yields: 'integer',
    ours: named('ABS'),
    theirs: named('ABS'),
    facts: widest,
  },
  sign: {
    takes: ['integer'],
    yields: 'integer',
    ours: named('SIGN'),
    theirs: ([x]) => `(CASE WHEN ${x!} > 0 THEN 1 WHEN ${x!} < 0 THEN -1 WHEN ${x!} = 0 THEN 0 END)`,
    facts: () => ({ size: 1, grain: 0 }),
  },
  nullif: {
    takes: ['integer', 'integer'],
    yields: 'integer',
    ours: named('NULLIF'),
    theirs: named('NULLIF'),
    takesNull: true,
    facts: widest,
  },
  coalesce: {
    takes: ['string', 'string'],
    yields: 'string',
    ours: named('COALESCE'),
    theirs: named('COALESCE'),
    takesNull: true,
  },
  greatest: {
    takes: ['integer', 'integer'],
    yields: 'integer',
    ours: named('GREATEST'),
    theirs: ([x, y]) => `COALESCE(MAX(${x!}, ${y!}), ${x!}, ${y!})`,
    takesNull: true,
    facts: widest,
  },
  least: {
    takes: ['integer', 'integer'],
    yields: 'integer',
    ours: named('LEAST'),
    theirs: ([x, y]) => `COALESCE(MIN(${x!}, ${y!}), ${x!}, ${y!})`,
    takesNull: true,
    facts: widest,
  },
  length: {
    takes: ['string'],
    yields: 'integer',
    ours: named('LENGTH'),
    theirs: named('LENGTH'),
    facts: () => ({ size: 64, grain: 0 }),
  },
  concat: {
    takes: ['string', 'string'],
    yields: 'string',
    ours: ([a, b]) => `(${a!} || ${b!})`,
    theirs: ([a, b]) => `(${a!} || ${b!})`,
  },
  substring: {
    takes: ['string'],
    yields: 'string',
    ours: ([s]) => `SUBSTRING(${s!} FROM 2 FOR 1)`,
    theirs: ([s]) => `SUBSTR(${s!}, 2, 1)`,
  },
  left: {
    takes: ['string'],
    yields: 'string',
    ours: ([s]) => `LEFT(${s!}, 1)`,
    theirs: ([s]) => `SUBSTR(${s!}, 1, 1)`,
  },
  replace: {
    takes: ['string'],
    yields: 'string',
    ours: ([s]) => `REPLACE(${s!}, 'a', 'xy')`,
    theirs: ([s]) => `REPLACE(${s!}, 'a', 'xy')`,
  },
  trim: {
    takes: ['string'],
    yields: 'string',
    ours: ([s]) => `TRIM(' ' || ${s!})`,
    theirs: ([s]) => `TRIM(' ' || ${s!})`,
  },
  position: {
    takes: ['string'],
    yields: 'integer',
    ours: ([s]) => `POSITION('b' IN ${s!})`,
    theirs: ([s]) => `INSTR(${s!}, 'b')`,
    facts: () => ({ size: 64, grain: 0 }),
  },
  right: {
    takes: ['string'],
    yields: 'string',
    ours: ([s]) => `RIGHT(${s!}, 1)`,
    theirs: ([s]) => `SUBSTR(${s!}, -1, 1)`,
  },
  mod: {
    takes: ['integer'],
    yields: 'integer',
    ours: ([x]) => `MOD(${x!}, 7)`,
    theirs: ([x]) => `(${x!} % 7)`,
    facts: () => ({ size: 6, grain: 0 }),
  },
  'distinct from': {
    takes: ['integer', 'integer'],
    yields: 'boolean',
    ours: ([x, y]) => `(${x!} IS DISTINCT FROM ${y!})`,
    theirs: ([x, y]) => `(${x!} IS NOT ${y!})`,
    takesNull: true,
  },
  'not distinct from': {
    takes: ['string', 'string'],
    yields: 'boolean',
    ours: ([x, y]) => `(${x!} IS NOT DISTINCT FROM ${y!})`,
    theirs: ([x, y]) => `(${x!} IS ${y!})`,
    takesNull: true,
  },
  'ends with': {
    takes: ['string'],
    yields: 'boolean',
    ours: ([s]) => `ENDS_WITH(${s!}, 'b')`,
    theirs: ([s]) => `(SUBSTR(${s!}, -1, 1) = 'b')`,
  },
  'starts with': {
    takes: ['string'],
    yields: 'boolean',
    ours: ([s]) => `STARTS_WITH(${s!}, 'a')`,
    theirs: ([s]) => `(SUBSTR(${s!}, 1, 1) = 'a')`,
  },
  'cast to text': {
    takes: ['integer'],
    yields: 'string',
    ours: ([x]) => `(${x!})::TEXT`,
    theirs: ([x]) => `CAST(${x!} AS TEXT)`,
  },
  'cast to number': {
    takes: ['integer'],
    yields: 'number',
    ours: ([x]) => `CAST(${x!} % 1000 AS DOUBLE)`,
    theirs: ([x]) => `CAST(${x!} % 1000 AS REAL)`,
    facts: () => ({ size: 1000, grain: 0 }),
  },
  'date_trunc day': {
    takes: ['timestamp'],
    yields: 'timestamp',
    ours: ([t]) => `DATE_TRUNC('day', ${t!})`,
    theirs: ([t]) => flooredText(t!, nsPerDay),
  },
  'extract year': field('YEAR', '%Y'),
  'extract month': field('MONTH', '%m'),
  'extract day': field('DAY', '%d'),
  'extract dow': field('DOW', '%w'),
  'extract hour': field('HOUR', '%H'),
  'extract doy': field('DOY', '%j'),
  'pattern at the start': pattern('^a'),
  'pattern of choices': pattern('b$|[xk]1?'),
  'json member': json('a'),
  'json piece': json('b'),
};

/** One that yields this type; null where none does. */
export function callNamed(choices: Choices, type: Type): string | null {
  const fitting = Object.keys(calls).filter((name) => calls[name]!.yields === type);
  return fitting.length === 0 ? null : choices.of(fitting);
}

export function callFacts(name: string, operands: readonly Expr[]): Facts {
  const { yields, facts } = calls[name]!;
  return { type: yields, ...(facts?.(operands) ?? { size: unknown, grain: unknown }) };
}
