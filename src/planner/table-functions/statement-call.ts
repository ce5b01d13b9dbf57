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
export function arrangeCall(functionSource: FunctionSource, where: Expression | null): ArrangedCall | undefined {
  const definition = tableFunction(functionSource.name);
  if (definition === undefined) return undefined;
  const writtenCall: Call = { arguments: functionSource.arguments, where, location: functionSource.location };
  const arrangedCall = definition.arrange?.(writtenCall) ?? writtenCall;
  return {
    function: definition,
    given: argumentsByName(definition, arrangedCall.arguments, functionSource.location),
    where: arrangedCall.where,
    edges: arrangedCall.edges ?? null,
  };
}

/** The one call that a statement may be about. */
function callInQuery({ body }: Query): ArrangedCall | undefined {
  return body.kind === 'select' && body.from.kind === 'function' ? arrangeCall(body.from, body.where) : undefined;
}

/** Values of the literals that a plan rests on: it serves no others. */
export function wordLiterals(query: Query, literals: readonly Literal[]): readonly Literal[] {
  const arrangedCall = callInQuery(query);
  if (arrangedCall === undefined) return noLiterals;
  return arrangedCall.function.arguments.flatMap(({ name, kind }) => {
    const wordValue = isWord(kind) ? arrangedCall.given.get(name) : undefined;
    return wordValue?.kind === 'literal' ? [literals[wordValue.slot]!] : [];
  });
}

const noLiterals: readonly Literal[] = [];

/** Types that the statement's call names; with a catalog, also one that it implies. */
export function typesCalled(query: Query, literals: readonly Literal[], catalog: CatalogReader | null = null): readonly string[] {
  const arrangedCall = callInQuery(query);
  if (arrangedCall === undefined) return [];
  const callWords = wordsOf(arrangedCall.function, arrangedCall.given, literals, query.location);
  return arrangedCall.function.types({ words: callWords, catalog });
}

/** Source: specification, "Tool protocol": a query costs 1. */
export function unitsOf(query: Query): number {
  return callInQuery(query)?.function.units ?? 1;
}

/** The function that a statement is about, where there is one and it is built. */
export function functionCalled(query: Query): TableFunction | undefined {
  return callInQuery(query)?.function;
}
