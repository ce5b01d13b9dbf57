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

const firstProcedureOid = 600_000;

const anyOid = wireOf('any').oid;
const recordOid = wireOf('record').oid;

function procedureTypeOid(argumentType: ArgumentType | 'interval'): number {
  if (argumentType === 'same' || argumentType === 'any') return anyOid;
  return argumentType === 'interval' ? wireOf('interval').oid : parameterType(argumentType satisfies ColumnType).oid;
}

/** The kinds of arguments that are no text. */
const argumentWireTypes: Readonly<Record<string, string>> = {
  number: 'float8',
  integer: 'int8',
  boolean: 'bool',
  vector: 'vector',
};

const scalarProcedures = scalarFunctions.flatMap(({ name, also = [], signatures, summary }) =>
  [name, ...also]
    .filter((each) => /^[A-Z_0-9]+$/.test(each))
    .flatMap((each) =>
      signatures.map(({ takes, optional = 0, yields }) => ({
        schema: 'pg_catalog' as const,
        name: each.toLowerCase(),
        kind: 'f' as const,
        isSet: false,
        takes: takes.map(procedureTypeOid),
        names: null,
        optional,
        yields: procedureTypeOid(yields),
        summary,
      })),
    ),
);

const aggregateProcedures = Object.values(aggregateFunctions).map(({ name, summary }) => ({
  schema: 'pg_catalog' as const,
  name: name.toLowerCase(),
  kind: 'a' as const,
  isSet: false,
  takes: [anyOid],
  names: null,
  optional: 0,
  yields: anyOid,
  summary,
}));

const tableProcedures = tableFunctions.map(({ name, arguments: functionArguments, summary }) => ({
  schema: 'public' as const,
  name: name.toLowerCase(),
  kind: 'f' as const,
  isSet: true,
  takes: functionArguments.map(({ kind }) => wireOf(argumentWireTypes[kind] ?? 'text').oid),
  names: functionArguments.map((each) => each.name.toLowerCase()),
  optional: functionArguments.filter(({ required }) => required !== true).length,
  yields: recordOid,
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
const underscoredTypes: ReadonlySet<string> = new Set(
  'any anyarray array date interval json jsonb numeric pg_node_tree record time timestamp timestamptz uuid vector void'.split(
    ' ',
  ),
);

const conversionOids = new Map<string, number>();
const conversionOid = (conversionName: string): number => {
  const knownOid = conversionOids.get(conversionName) ?? firstProcedureOid - 1 - conversionOids.size;
  conversionOids.set(conversionName, knownOid);
  return knownOid;
};

export const valueProcedures: ReadonlyMap<string, ValueProcedures> = new Map(
  [...typesByOid.values()].map((type) => {
    const typeFamily = type.startsWith('_') ? 'array' : type;
    const conversionStem = underscoredTypes.has(typeFamily) ? `${typeFamily}_` : typeFamily;
    const isTextOnlyType = typeFamily === 'any' || typeFamily === 'aclitem';
    return [
      type,
      {
        input: conversionOid(`${conversionStem}in`),
        output: conversionOid(`${conversionStem}out`),
        receive: isTextOnlyType ? 0 : conversionOid(`${conversionStem}recv`),
        send: isTextOnlyType ? 0 : conversionOid(`${conversionStem}send`),
      },
    ];
  }),
);

const conversionProcedures = [...conversionOids].map(
  ([name, oid]): Procedure => ({
    oid,
    schema: name.startsWith('vector_') ? 'public' : 'pg_catalog',
    name,
    kind: 'f',
    isSet: false,
    takes: [anyOid],
    names: null,
    optional: 0,
    yields: name === 'array_in' || name === 'array_recv' ? wireOf('anyarray').oid : anyOid,
    summary: 'A value as it is sent, in text or in binary.',
  }),
);

const numberedProcedures = [...scalarProcedures, ...aggregateProcedures, ...tableProcedures].map(
  (each, i): Procedure => ({ oid: firstProcedureOid + i, ...each }),
);

export const procedures: readonly Procedure[] = [...conversionProcedures, ...numberedProcedures];
