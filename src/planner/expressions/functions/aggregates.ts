/** Aggregate functions: their arguments, results and names. Their accumulators are in `operators/accumulators.ts`. */
import type { ColumnType } from '../../../log/values/value.ts';
import type { Cost } from '../work.ts';
import type { ValueType } from '../value-type.ts';

export interface AggregateFunction {
  readonly name: string;
  readonly also?: readonly string[];
  readonly usage: string;
  readonly summary: string;
  /** Type of the result, by type of the argument; null where it can't take it. */
  readonly yields: (type: ValueType) => ColumnType | null;
  /** The function has a second argument, a text. */
  readonly takesText?: boolean;
  /** Nanoseconds of a row, and of a character where it is of texts; DISTINCT adds `distinctCost`. */
  readonly cost: Cost;
}

/** The cost of checking a value for DISTINCT, whether new or repeated. */
export const distinctCost: Cost = { call: 200, character: 3 };
const quick: Cost = { call: 30, character: 0 };
/** Values that stay. */
const kept: Cost = { call: 100, character: 0 };
/** Texts that are compared, or copied. */
const perText: Cost = { call: 60, character: 2 };
/** Vectors are read from their texts, values of json are written. */
const perNumber: Cost = { call: 60, character: 40 };
const perJson: Cost = { call: 150, character: 10 };

const numeric = (type: ValueType): boolean => type === 'integer' || type === 'number';
const number = (type: ValueType): ColumnType | null => (numeric(type) ? 'number' : null);
const boolean = (type: ValueType): ColumnType | null => (type === 'boolean' ? 'boolean' : null);

/** Vectors of expressions are held as texts. */
const vector = (type: ValueType): ColumnType | null => (type === 'vector' ? 'string' : null);

function orderedType(type: ValueType): ColumnType | null {
  return type === 'integer' || type === 'number' || type === 'timestamp' || type === 'string' ? type : null;
}

const functions = {
  count: {
    name: 'COUNT',
    usage: 'COUNT(*), COUNT([DISTINCT] x)',
    summary: 'How many rows there are, or values that are not NULL.',
    yields: (type) => (type === 'interval' ? null : 'integer'),
    cost: quick,
  },
  sum: {
    name: 'SUM',
    usage: 'SUM([DISTINCT] x)',
    summary: 'The sum; of integers exact, of numbers added in the order of rows, of vectors one as a text.',
    yields: (type) => (type === 'integer' || type === 'number' ? type : vector(type)),
    cost: perNumber,
  },
  avg: {
    name: 'AVG',
    usage: 'AVG([DISTINCT] x)',
    summary: 'The mean, a number; of vectors one as a text.',
    yields: (type) => number(type) ?? vector(type),
    cost: perNumber,
  },
  min: { name: 'MIN', usage: 'MIN(x)', summary: 'The least value.', yields: orderedType, cost: perText },
  max: { name: 'MAX', usage: 'MAX(x)', summary: 'The greatest value.', yields: orderedType, cost: perText },
  stddev: {
    name: 'STDDEV',
    also: ['STDDEV_SAMP'],
    usage: 'STDDEV(x)',
    summary: 'Standard deviation of a sample; NULL of a single value.',
    yields: number,
    cost: quick,
  },
  stddev_pop: {
    name: 'STDDEV_POP',
    usage: 'STDDEV_POP(x)',
    summary: 'Standard deviation of a population.',
    yields: number,
    cost: quick,
  },
  variance: {
    name: 'VARIANCE',
    also: ['VAR_SAMP'],
    usage: 'VARIANCE(x)',
    summary: 'Variance of a sample; NULL of a single value.',
    yields: number,
    cost: quick,
  },
  var_pop: { name: 'VAR_POP', usage: 'VAR_POP(x)', summary: 'Variance of a population.', yields: number, cost: quick },
  median: {
    name: 'MEDIAN',
    usage: 'MEDIAN(x)',
    summary: 'The value in the middle, or the mean of the two in the middle: a number.',
    yields: number,
    cost: kept,
  },
  bool_and: {
    name: 'BOOL_AND',
    also: ['EVERY'],
    usage: 'BOOL_AND(x)',
    summary: 'Whether all values are true.',
    yields: boolean,
    cost: quick,
  },
  bool_or: { name: 'BOOL_OR', usage: 'BOOL_OR(x)', summary: 'Whether any value is true.', yields: boolean, cost: quick },
  string_agg: {
    name: 'STRING_AGG',
    usage: "STRING_AGG([DISTINCT] x, 'between')",
    summary: 'The texts one after the other, in the order of rows.',
    yields: (type) => (type === 'string' ? 'string' : null),
    takesText: true,
    cost: perText,
  },
  array_agg: {
    name: 'ARRAY_AGG',
    usage: 'ARRAY_AGG([DISTINCT] x)',
    summary: 'The values as an array of json, in the order of rows, NULLs among them; instants as ISO-8601 texts.',
    yields: (type) => (type === 'interval' || type === 'vector' || type === 'null' ? null : 'json'),
    cost: perJson,
  },
  /** ARRAY_AGG of the wide dialect, and what ARRAY(SELECT …) is made by. */
  array: {
    name: 'ARRAY_AGG',
    usage: 'ARRAY_AGG([DISTINCT] x [ORDER BY y])',
    summary: 'Over the protocol of Postgres: an array as Postgres has it, of elements of one type.',
    yields: (type) => (type === 'interval' || type === 'vector' || type === 'json' ? null : 'string'),
    cost: perJson,
  },
  collect: {
    name: 'COLLECT',
    usage: 'COLLECT([DISTINCT] x)',
    summary: 'The values as an array of json, in the order of rows, NULLs left out; empty where there are none.',
    yields: (type) => (type === 'interval' || type === 'vector' || type === 'null' ? null : 'json'),
    cost: perJson,
  },
} as const satisfies Record<string, AggregateFunction>;

export type AggregateName = keyof typeof functions;

export const aggregateFunctions: Readonly<Record<AggregateName, AggregateFunction>> = functions;

const byName: ReadonlyMap<string, AggregateName> = new Map(
  (Object.keys(functions) as AggregateName[]).flatMap((key): [string, AggregateName][] => {
    const each: AggregateFunction = functions[key];
    return key === 'array' ? [] : [each.name, ...(each.also ?? [])].map((name): [string, AggregateName] => [name, key]);
  }),
);

/** Finds an aggregate by its name in upper case. */
export function aggregateNamed(name: string): AggregateName | undefined {
  return byName.get(name);
}
