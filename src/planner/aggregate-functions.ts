/** Aggregate functions: their arguments, results and names. Their accumulators are in `operators/accumulators.ts`. */
import type { ColumnType } from '../log/values/value.ts';
import type { Cost } from './expressions/expression-cost.ts';
import type { ValueType } from './expressions/value-type.ts';

export interface AggregateFunction {
  readonly name: string;
  readonly also?: readonly string[];
  readonly usage: string;
  readonly summary: string;
  /** Type of the result, by type of the argument; null where it can't take it. */
  readonly yields: (type: ValueType) => ColumnType | null;
  /** The function has a second argument: a text, a number, or a value of any type. */
  readonly second?: 'string' | 'number' | 'any';
  /** Its values stand in WITHIN GROUP (ORDER BY …); its second argument in its brackets. */
  readonly isOrdered?: boolean;
  /** NULLs are values to it. */
  readonly takesNull?: boolean;
  /** Nanoseconds of a row, and of a character where it is of texts; DISTINCT adds `distinctCost`. */
  readonly cost: Cost;
}

/** The cost of checking a value for DISTINCT, whether new or repeated. */
export const distinctCost: Cost = { call: 200, character: 3 };
const numberAggregateCost: Cost = { call: 30, character: 0 };
/** Values that stay. */
const storedValue: Cost = { call: 100, character: 0 };
/** Texts that are compared, or copied. */
const textAggregateCost: Cost = { call: 60, character: 2 };
/** Vectors are read from their texts, values of json are written. */
const exactNumberCost: Cost = { call: 60, character: 40 };
const jsonAggregateCost: Cost = { call: 150, character: 10 };

const isNumericType = (type: ValueType): boolean => type === 'integer' || type === 'number';
const numberOfNumeric = (type: ValueType): ColumnType | null => (isNumericType(type) ? 'number' : null);
const integerOfInteger = (type: ValueType): ColumnType | null => (type === 'integer' ? 'integer' : null);
const booleanOfBoolean = (type: ValueType): ColumnType | null => (type === 'boolean' ? 'boolean' : null);

function plainAggregateType(type: ValueType): ColumnType | null {
  return type === 'interval' || type === 'vector' || type === 'null' ? null : type;
}

function jsonAggregateType(type: ValueType): ColumnType | null {
  return type === 'interval' || type === 'vector' ? null : 'json';
}

/** A function of pairs y, x: of numbers, neither of which is NULL. */
function pairAggregate<Name extends string>(name: Name, summary: string, yields: 'number' | 'integer' = 'number') {
  return {
    name,
    usage: `${name}(y, x)`,
    summary,
    yields: (type: ValueType) => (isNumericType(type) || type === 'null' ? yields : null),
    second: 'number',
    cost: numberAggregateCost,
  } as const satisfies AggregateFunction;
}

/** Vectors of expressions are held as texts. */
const vectorAsString = (type: ValueType): ColumnType | null => (type === 'vector' ? 'string' : null);

function orderedAggregateType(type: ValueType): ColumnType | null {
  return type === 'integer' || type === 'number' || type === 'timestamp' || type === 'string' ? type : null;
}

const aggregatesByName = {
  count: {
    name: 'COUNT',
    usage: 'COUNT(*), COUNT([DISTINCT] x)',
    summary: 'How many rows there are, or values that are not NULL.',
    yields: (type) => (type === 'interval' ? null : 'integer'),
    cost: numberAggregateCost,
  },
  sum: {
    name: 'SUM',
    usage: 'SUM([DISTINCT] x)',
    summary: 'The sum; of integers exact, of numbers added in the order of rows, of vectors one as a text.',
    yields: (type) => (type === 'integer' || type === 'number' ? type : vectorAsString(type)),
    cost: exactNumberCost,
  },
  avg: {
    name: 'AVG',
    usage: 'AVG([DISTINCT] x)',
    summary: 'The mean, a number; of vectors one as a text.',
    yields: (type) => numberOfNumeric(type) ?? vectorAsString(type),
    cost: exactNumberCost,
  },
  min: { name: 'MIN', usage: 'MIN(x)', summary: 'The least value.', yields: orderedAggregateType, cost: textAggregateCost },
  max: { name: 'MAX', usage: 'MAX(x)', summary: 'The greatest value.', yields: orderedAggregateType, cost: textAggregateCost },
  stddev: {
    name: 'STDDEV',
    also: ['STDDEV_SAMP'],
    usage: 'STDDEV(x)',
    summary: 'Standard deviation of a sample; NULL of a single value.',
    yields: numberOfNumeric,
    cost: numberAggregateCost,
  },
  stddev_pop: {
    name: 'STDDEV_POP',
    usage: 'STDDEV_POP(x)',
    summary: 'Standard deviation of a population.',
    yields: numberOfNumeric,
    cost: numberAggregateCost,
  },
  variance: {
    name: 'VARIANCE',
    also: ['VAR_SAMP'],
    usage: 'VARIANCE(x)',
    summary: 'Variance of a sample; NULL of a single value.',
    yields: numberOfNumeric,
    cost: numberAggregateCost,
  },
  var_pop: {
    name: 'VAR_POP',
    usage: 'VAR_POP(x)',
    summary: 'Variance of a population.',
    yields: numberOfNumeric,
    cost: numberAggregateCost,
  },
  median: {
    name: 'MEDIAN',
    usage: 'MEDIAN(x)',
    summary: 'The value in the middle, or the mean of the two in the middle: a number.',
    yields: numberOfNumeric,
    cost: storedValue,
  },
  bool_and: {
    name: 'BOOL_AND',
    also: ['EVERY'],
    usage: 'BOOL_AND(x)',
    summary: 'Whether all values are true.',
    yields: booleanOfBoolean,
    cost: numberAggregateCost,
  },
  bool_or: {
    name: 'BOOL_OR',
    usage: 'BOOL_OR(x)',
    summary: 'Whether any value is true.',
    yields: booleanOfBoolean,
    cost: numberAggregateCost,
  },
  bit_and: {
    name: 'BIT_AND',
    usage: 'BIT_AND(x)',
    summary: 'The bits that all integers have.',
    yields: integerOfInteger,
    cost: numberAggregateCost,
  },
  bit_or: {
    name: 'BIT_OR',
    usage: 'BIT_OR(x)',
    summary: 'The bits that any integer has.',
    yields: integerOfInteger,
    cost: numberAggregateCost,
  },
  bit_xor: {
    name: 'BIT_XOR',
    usage: 'BIT_XOR([DISTINCT] x)',
    summary: 'The bits that an odd number of integers have.',
    yields: integerOfInteger,
    cost: numberAggregateCost,
  },
  any_value: {
    name: 'ANY_VALUE',
    usage: 'ANY_VALUE(x)',
    summary: 'The first value that is not NULL, in the order of rows.',
    yields: plainAggregateType,
    cost: textAggregateCost,
  },
  corr: pairAggregate('CORR', 'The correlation.'),
  covar_pop: pairAggregate('COVAR_POP', 'Covariance of a population.'),
  covar_samp: pairAggregate('COVAR_SAMP', 'Covariance of a sample; NULL of a single pair.'),
  regr_avgx: pairAggregate('REGR_AVGX', 'The mean of x.'),
  regr_avgy: pairAggregate('REGR_AVGY', 'The mean of y.'),
  regr_count: pairAggregate('REGR_COUNT', 'How many pairs there are; 0 of none.', 'integer'),
  regr_intercept: pairAggregate('REGR_INTERCEPT', 'Where the line of least squares meets the y axis.'),
  regr_r2: pairAggregate('REGR_R2', 'The square of the correlation; 1 where all y are one.'),
  regr_slope: pairAggregate('REGR_SLOPE', 'The slope of the line of least squares.'),
  regr_sxx: pairAggregate('REGR_SXX', 'The squared distances of x from their mean, added up.'),
  regr_sxy: pairAggregate('REGR_SXY', 'The products of the distances of x and y from their means, added up.'),
  regr_syy: pairAggregate('REGR_SYY', 'The squared distances of y from their mean, added up.'),
  mode: {
    name: 'MODE',
    usage: 'MODE() WITHIN GROUP (ORDER BY x [DESC])',
    summary: 'The most frequent value; of several the first in the order (wide dialect).',
    yields: orderedAggregateType,
    isOrdered: true,
    cost: { call: 150, character: 3 },
  },
  percentile_cont: {
    name: 'PERCENTILE_CONT',
    usage: 'PERCENTILE_CONT(share) WITHIN GROUP (ORDER BY x [DESC])',
    summary:
      'The number at a share of the way from the first to the last, between two values where it falls there (wide dialect).',
    yields: numberOfNumeric,
    second: 'number',
    isOrdered: true,
    cost: { call: 300, character: 0 },
  },
  percentile_disc: {
    name: 'PERCENTILE_DISC',
    usage: 'PERCENTILE_DISC(share) WITHIN GROUP (ORDER BY x [DESC])',
    summary: 'The first value up to which at least a share of all lie (wide dialect).',
    yields: orderedAggregateType,
    second: 'number',
    isOrdered: true,
    cost: { call: 500, character: 12 },
  },
  json_agg: {
    name: 'JSON_AGG',
    also: ['JSONB_AGG'],
    usage: 'JSON_AGG([DISTINCT] x [ORDER BY y])',
    summary: 'The values as an array of json, NULLs among them, written as PostgreSQL does; instants as ISO-8601 texts.',
    yields: jsonAggregateType,
    takesNull: true,
    cost: jsonAggregateCost,
  },
  json_object_agg: {
    name: 'JSON_OBJECT_AGG',
    usage: 'JSON_OBJECT_AGG(name, x)',
    summary: 'An object of json with a member for each row; a name is a text that is not NULL.',
    yields: (type) => (type === 'string' ? 'json' : null),
    second: 'any',
    takesNull: true,
    cost: jsonAggregateCost,
  },
  jsonb_object_agg: {
    name: 'JSONB_OBJECT_AGG',
    usage: 'JSONB_OBJECT_AGG(name, x)',
    summary: 'The same as jsonb has it: of members by one name the last, in the order of the lengths of their names.',
    yields: (type) => (type === 'string' ? 'json' : null),
    second: 'any',
    takesNull: true,
    cost: jsonAggregateCost,
  },
  string_agg: {
    name: 'STRING_AGG',
    usage: "STRING_AGG([DISTINCT] x, 'between')",
    summary: 'The texts one after the other, in the order of rows.',
    yields: (type) => (type === 'string' ? 'string' : null),
    second: 'string',
    cost: textAggregateCost,
  },
  array_agg: {
    name: 'ARRAY_AGG',
    usage: 'ARRAY_AGG([DISTINCT] x)',
    summary: 'The values as an array of json, in the order of rows, NULLs among them; instants as ISO-8601 texts.',
    yields: (type) => (type === 'interval' || type === 'vector' || type === 'null' ? null : 'json'),
    takesNull: true,
    cost: jsonAggregateCost,
  },
  /** ARRAY_AGG of the wide dialect, and what ARRAY(SELECT …) is made by. */
  array: {
    name: 'ARRAY_AGG',
    usage: 'ARRAY_AGG([DISTINCT] x [ORDER BY y])',
    summary: 'Over the protocol of Postgres: an array as Postgres has it, of elements of one type.',
    yields: (type) => (type === 'interval' || type === 'vector' || type === 'json' ? null : 'string'),
    takesNull: true,
    cost: jsonAggregateCost,
  },
  collect: {
    name: 'COLLECT',
    usage: 'COLLECT([DISTINCT] x)',
    summary: 'The values as an array of json, in the order of rows, NULLs left out; empty where there are none.',
    yields: (type) => (type === 'interval' || type === 'vector' || type === 'null' ? null : 'json'),
    cost: jsonAggregateCost,
  },
} as const satisfies Record<string, AggregateFunction>;

export type AggregateName = keyof typeof aggregatesByName;

export const aggregateFunctions: Readonly<Record<AggregateName, AggregateFunction>> = aggregatesByName;

const aggregateNames: ReadonlyMap<string, AggregateName> = new Map(
  (Object.keys(aggregatesByName) as AggregateName[]).flatMap((key): [string, AggregateName][] => {
    const each: AggregateFunction = aggregatesByName[key];
    return key === 'array' ? [] : [each.name, ...(each.also ?? [])].map((name): [string, AggregateName] => [name, key]);
  }),
);

/** Finds an aggregate by its name in upper case. */
export function aggregateNamed(name: string): AggregateName | undefined {
  return aggregateNames.get(name);
}
