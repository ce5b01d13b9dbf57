/** DEGREE(column[, direction]) as the query that it stands for: a look-up among the degrees of all nodes. Pure. */
import { errorAt } from '../syntax/error-location.ts';
import type { ColumnRef, Expression, Literal, Query } from '../syntax/statement.ts';

export const degreeDirections = ['out', 'in', 'both'] as const;

/** Names that no statement can write. */
export const degreeNames = {
  node: '#node',
  degree: '#degree',
  function: (direction: (typeof degreeDirections)[number]): string => `#DEGREE ${direction}`,
};

type DegreeCall = Extract<Expression, { kind: 'call' }>;

export function degreeQuery(call: DegreeCall, literals: readonly Literal[]): Query {
  const { arguments: degreeArguments, location } = call;
  const [degreeColumn, directionArgument] = degreeArguments.map(({ value }) => value);
  if (degreeColumn?.kind !== 'column' || degreeArguments.length > 2 || degreeArguments.some(({ name }) => name !== null)) {
    throw errorAt('REL_INVALID', 'DEGREE takes a column, and a direction: DEGREE(id), DEGREE(id, out)', location);
  }
  const directionWord =
    directionArgument === undefined
      ? 'both'
      : directionArgument.kind === 'column'
        ? directionArgument.name
        : directionArgument.kind === 'literal'
          ? literals[directionArgument.slot]
          : null;
  const direction = degreeDirections.find(
    (degreeDirection) => typeof directionWord === 'string' && directionWord.toLowerCase() === degreeDirection,
  );
  if (direction === undefined)
    throw errorAt('REL_INVALID', 'the direction of DEGREE is out, in or both', directionArgument!.location);
  const degreeColumnRef = (name: string): ColumnRef => ({ kind: 'column', table: null, name, location });
  const nodeIdText: Expression = {
    kind: 'call',
    name: 'CAST',
    arguments: [
      { name: null, value: degreeColumn },
      { name: 'TYPE', value: degreeColumnRef('TEXT') },
    ],
    location,
  };
  return {
    with: [],
    body: {
      kind: 'select',
      distinct: false,
      projection: [{ kind: 'expression', expression: degreeColumnRef(degreeNames.degree), alias: null, location }],
      from: { kind: 'function', name: degreeNames.function(direction), arguments: [], alias: null, location },
      where: { kind: 'binary', op: '=', left: degreeColumnRef(degreeNames.node), right: nodeIdText, location },
      groupBy: [],
      window: null,
      having: null,
      rankBy: [],
      compute: [],
      location,
    },
    asOf: null,
    orderBy: [],
    limit: null,
    offset: null,
    after: null,
    facets: [],
    location,
  };
}
