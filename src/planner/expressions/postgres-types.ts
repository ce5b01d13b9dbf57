/** Postgres types of expression values, where the cell type alone does not determine them. */
import type { CatalogueFunctions } from './functions/catalogue.ts';
import { isDate } from './date-arithmetic.ts';
import { vectorCast } from './functions/vectors.ts';
import type { Bound } from './bound-expression.ts';
import type { ValueType } from './value-type.ts';

const postgresTypes: Readonly<Record<ValueType, string>> = {
  string: 'text',
  integer: 'int8',
  number: 'float8',
  boolean: 'bool',
  timestamp: 'timestamptz',
  json: 'json',
  vector: 'vector',
  interval: 'interval',
  null: 'unknown',
};

/** `unknown` is a text that is a value of the type that it stands beside. */
export function wireTypeOf(bound: Bound): string {
  if ('wire' in bound && bound.wire !== undefined) return bound.wire;
  if (bound.kind === 'literal' && bound.type === 'string' && bound.as === 'value' && bound.zoned === true) return 'unknown';
  if (bound.kind === 'call' && bound.name === vectorCast.name) return 'vector';
  if (isDate(bound)) return 'date';
  return postgresTypes[bound.type];
}

/** The type that all of them have together, where they are no plain ones. */
export function commonWire(branchResults: readonly Bound[], catalogue: CatalogueFunctions | undefined): string | undefined {
  if (catalogue === undefined || !branchResults.some((branchResult) => 'wire' in branchResult && branchResult.wire !== undefined))
    return undefined;
  let commonType: string | null = 'unknown';
  for (const each of branchResults) commonType = commonType === null ? null : catalogue.common(commonType, wireTypeOf(each));
  return commonType === null || commonType === 'unknown' ? undefined : commonType;
}

export function withCommonWire(
  bound: Extract<Bound, { kind: 'case' | 'coalesce' | 'call' }>,
  branchResults: readonly Bound[],
  catalogue: CatalogueFunctions | undefined,
): Bound {
  const commonWireType = commonWire(branchResults, catalogue);
  return commonWireType === undefined ? bound : { ...bound, wire: commonWireType };
}
