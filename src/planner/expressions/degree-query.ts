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

type Call = Extract<Expression, { kind: 'call' }>;

export function degreeQuery(call: Call, literals: readonly Literal[]): Query {
  const { arguments: given, location } = call;
  const [of, way] = given.map(({ value }) => value);
  if (of?.kind !== 'column' || given.length > 2 || given.some(({ name }) => name !== null)) {
    throw errorAt('REL_INVALID', 'DEGREE takes a column, and a direction: DEGREE(id), DEGREE(id, out)', location);
  }
  const word = way === undefined ? 'both' : way.kind === 'column' ? way.name : way.kind === 'literal' ? literals[way.slot] : null;
  const direction = degreeDirections.find((each) => typeof word === 'string' && word.toLowerCase() === each);
  if (direction === undefined) throw errorAt('REL_INVALID', 'the direction of DEGREE is out, in or both', way!.location);
  const inner = (name: string): ColumnRef => ({ kind: 'column', table: null, name, location });
  const text: Expression = {
    kind: 'call',
    name: 'CAST',
    arguments: [
      { name: null, value: of },
      { name: 'TYPE', value: inner('TEXT') },
    ],
    location,
  };
  return {
    with: [],
    body: {
      kind: 'select',
      distinct: false,
      projection: [{ kind: 'expression', expression: inner(degreeNames.degree), alias: null, location }],
      from: { kind: 'function', name: degreeNames.function(direction), arguments: [], alias: null, location },
      where: { kind: 'binary', op: '=', left: inner(degreeNames.node), right: text, location },
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
