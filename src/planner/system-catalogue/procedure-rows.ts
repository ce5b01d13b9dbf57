/** Functions as rows of `pg_proc`: the planner's own, and those for queries of the catalogue. */
import type { ColumnType } from '../../log/values/value.ts';
import { aggregateFunctions } from '../aggregate-functions.ts';
import { scalarFunctions } from '../expressions/functions/all.ts';
import type { ArgumentType } from '../expressions/functions/scalar-function.ts';
import { tableFunctions } from '../table-functions/all.ts';
import { parameterType } from './postgres-column-types.ts';
import { typesByOid, wireOf } from './catalogue-types.ts';

export interface Procedure {
  readonly oid: number;
  readonly schema: 'pg_catalog' | 'public';
  readonly name: string;
  readonly kind: 'f' | 'a';
  readonly isSet: boolean;
  /** Numbers of types. */
  readonly takes: readonly number[];
  readonly names: readonly string[] | null;
  readonly optional: number;
  readonly yields: number;
  readonly summary: string;
}

const firstOid = 600_000;

const any = wireOf('any').oid;
const record = wireOf('record').oid;

function typeOid(type: ArgumentType | 'interval'): number {
  if (type === 'same' || type === 'any') return any;
  return type === 'interval' ? wireOf('interval').oid : parameterType(type satisfies ColumnType).oid;
}

/** The kinds of arguments that are no text. */
const argumentTypes: Readonly<Record<string, string>> = { number: 'float8', integer: 'int8', boolean: 'bool', vector: 'vector' };

const scalars = scalarFunctions.flatMap(({ name, also = [], signatures, summary }) =>
  [name, ...also]
    .filter((each) => /^[A-Z_0-9]+$/.test(each))
    .flatMap((each) =>
      signatures.map(({ takes, optional = 0, yields }) => ({
        schema: 'pg_catalog' as const,
        name: each.toLowerCase(),
        kind: 'f' as const,
        isSet: false,
        takes: takes.map(typeOid),
        names: null,
        optional,
        yields: typeOid(yields),
        summary,
      })),
    ),
);

const aggregates = Object.values(aggregateFunctions).map(({ name, summary }) => ({
  schema: 'pg_catalog' as const,
  name: name.toLowerCase(),
  kind: 'a' as const,
  isSet: false,
  takes: [any],
  names: null,
  optional: 0,
  yields: any,
  summary,
}));

const tables = tableFunctions.map(({ name, arguments: given, summary }) => ({
  schema: 'public' as const,
  name: name.toLowerCase(),
  kind: 'f' as const,
  isSet: true,
  takes: given.map(({ kind }) => wireOf(argumentTypes[kind] ?? 'text').oid),
  names: given.map((each) => each.name.toLowerCase()),
  optional: given.filter(({ required }) => required !== true).length,
  yields: record,
  summary,
}));

/** The input and output functions of a type: drivers choose their own codec by them. */
export interface ValueProcedures {
  readonly input: number;
  readonly output: number;
  /** The binary input function; 0: there is none. */
  readonly receive: number;
  readonly send: number;
}

/** Types whose functions are named with one: `date_in`, but `boolin`. */
const underscored: ReadonlySet<string> = new Set(
  'any anyarray array date interval json jsonb numeric pg_node_tree record time timestamp timestamptz uuid vector void'.split(
    ' ',
  ),
);

const numbers = new Map<string, number>();
const numberOf = (name: string): number => {
  const known = numbers.get(name) ?? firstOid - 1 - numbers.size;
  numbers.set(name, known);
  return known;
};

export const valueProcedures: ReadonlyMap<string, ValueProcedures> = new Map(
  [...typesByOid.values()].map((type) => {
    const family = type.startsWith('_') ? 'array' : type;
    const stem = underscored.has(family) ? `${family}_` : family;
    const isTextOnly = family === 'any' || family === 'aclitem';
    return [
      type,
      {
        input: numberOf(`${stem}in`),
        output: numberOf(`${stem}out`),
        receive: isTextOnly ? 0 : numberOf(`${stem}recv`),
        send: isTextOnly ? 0 : numberOf(`${stem}send`),
      },
    ];
  }),
);

const conversions = [...numbers].map(
  ([name, oid]): Procedure => ({
    oid,
    schema: name.startsWith('vector_') ? 'public' : 'pg_catalog',
    name,
    kind: 'f',
    isSet: false,
    takes: [any],
    names: null,
    optional: 0,
    yields: name === 'array_in' || name === 'array_recv' ? wireOf('anyarray').oid : any,
    summary: 'A value as it is sent, in text or in binary.',
  }),
);

const numberedProcedures = [...scalars, ...aggregates, ...tables].map((each, i): Procedure => ({ oid: firstOid + i, ...each }));

export const procedures: readonly Procedure[] = [...conversions, ...numberedProcedures];
