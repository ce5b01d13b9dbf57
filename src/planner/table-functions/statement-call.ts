/** Reads from a statement's calls, before binding, which types they read and on which literals their plan rests. */
import type { CatalogReader } from '../../projections/access-paths.ts';
import type { Expression, Literal, Query, Source } from '../syntax/statement.ts';
import { tableFunction } from './all.ts';
import { argumentsByName, isWord, wordsOf } from '../calls/arguments.ts';
import type { Call, TableFunction } from '../calls/table-function.ts';

export type FunctionSource = Extract<Source, { kind: 'function' }>;

export interface ArrangedCall {
  readonly function: TableFunction;
  readonly given: ReadonlyMap<string, Expression>;
  /** The part of the statement's condition that remains. */
  readonly where: Expression | null;
  readonly edges: Expression | null;
}

/** Undefined for a function that is not built. */
export function arrangeCall(source: FunctionSource, where: Expression | null): ArrangedCall | undefined {
  const definition = tableFunction(source.name);
  if (definition === undefined) return undefined;
  const written: Call = { arguments: source.arguments, where, location: source.location };
  const call = definition.arrange?.(written) ?? written;
  return {
    function: definition,
    given: argumentsByName(definition, call.arguments, source.location),
    where: call.where,
    edges: call.edges ?? null,
  };
}

/** The one call that a statement may be about. */
function callIn({ body }: Query): ArrangedCall | undefined {
  return body.kind === 'select' && body.from.kind === 'function' ? arrangeCall(body.from, body.where) : undefined;
}

/** Values of the literals that a plan rests on: it serves no others. */
export function wordLiterals(query: Query, literals: readonly Literal[]): readonly Literal[] {
  const call = callIn(query);
  if (call === undefined) return none;
  return call.function.arguments.flatMap(({ name, kind }) => {
    const value = isWord(kind) ? call.given.get(name) : undefined;
    return value?.kind === 'literal' ? [literals[value.slot]!] : [];
  });
}

const none: readonly Literal[] = [];

/** Types that the statement's call names; with a catalog, also one that it implies. */
export function typesCalled(query: Query, literals: readonly Literal[], catalog: CatalogReader | null = null): readonly string[] {
  const call = callIn(query);
  if (call === undefined) return [];
  const words = wordsOf(call.function, call.given, literals, query.location);
  return call.function.types({ words, catalog });
}

/** Source: specification, "Tool protocol": a query costs 1. */
export function unitsOf(query: Query): number {
  return callIn(query)?.function.units ?? 1;
}

/** The function that a statement is about, where there is one and it is built. */
export function functionCalled(query: Query): TableFunction | undefined {
  return callIn(query)?.function;
}
