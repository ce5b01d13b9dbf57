/** Functions as rows of `pg_proc`: the planner's own, and those that questions of the catalogue may call. */
import type { ColumnType } from '../../../log/values/value.ts';
import { aggregateFunctions } from '../../../planner/expressions/functions/aggregates.ts';
import { scalarFunctions } from '../../../planner/expressions/functions/all.ts';
import type { ArgumentType } from '../../../planner/expressions/functions/scalar-function.ts';
import { tableFunctions } from '../../../planner/functions/all.ts';
import { parameterType } from '../wire-types.ts';
import { wireOf } from './types.ts';

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

const firstOid = 600_000;

/** What drivers know types of arrays by. */
const arrayInput: Procedure = {
  oid: 750,
  schema: 'pg_catalog',
  name: 'array_in',
  kind: 'f',
  isSet: false,
  takes: [any],
  names: null,
  optional: 0,
  yields: wireOf('anyarray').oid,
  summary: 'What is written between braces, as an array.',
};

const made = [...scalars, ...aggregates, ...tables].map((each, i): Procedure => ({ oid: firstOid + i, ...each }));

export const procedures: readonly Procedure[] = [arrayInput, ...made];
