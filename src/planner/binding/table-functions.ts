/** A call behind FROM to its node. Both forms of a call arrive as one source, so both give the same answer. */
import { arrangeCall, type FunctionSource } from '../table-functions/statement-call.ts';
import { refuseTableFunction } from '../table-functions/all.ts';
import { valuesOf, wordsOf } from '../calls/arguments.ts';
import type { BoundScope, RankedType, TableFunction } from '../calls/table-function.ts';
import { type Bound, columnsIn } from '../expressions/bound-expression.ts';
import type { FunctionNode, Match, PlanColumn, PlanNode } from '../logical-plan.ts';
import { conjunction } from '../passes/simplify-expressions.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Select } from '../syntax/statement.ts';
import type { ExpressionContext } from '../expressions/bind-expression.ts';
import type { BoundSource, Environment } from './environment.ts';
import { edgeScans } from './graph-edges.ts';
import type { OutputType } from './output-columns.ts';
import type { Scope } from './scope.ts';

/** These columns identify a version, and break ties between equally ranked rows. */
const rankedByColumns: readonly string[] = ['system_from', '_pk'];

export interface FunctionRequest {
  readonly environment: Environment;
  readonly scan: (type: string) => BoundSource;
  readonly contextOf: (scope: Scope) => ExpressionContext;
}

export function bindFunction(source: FunctionSource, { environment, scan, contextOf }: FunctionRequest): BoundSource {
  const arrangedCall = arrangeCall(source, null);
  if (arrangedCall === undefined) throw refuseTableFunction(source.name, source.location);
  const { function: tableFunction, given: givenArguments } = arrangedCall;
  const functionWords = wordsOf(tableFunction, givenArguments, environment.literals, source.location);
  const scope: BoundScope = { words: functionWords, catalog: environment.catalog };
  const functionFacts = {
    kind: 'function',
    name: tableFunction.name,
    words: tableFunction.arguments.flatMap(({ name }) => functionWords.word(name) ?? []),
    values: valuesOf(tableFunction, givenArguments, environment),
    limit: null,
  } as const;
  for (const type of tableFunction.types(scope)) environment.objectTypes.add(type);
  const columns = tableFunction.columns(scope);
  const name = source.alias ?? source.name;
  const rankedType = tableFunction.ranks?.(scope);
  if (rankedType === undefined) {
    const graphInput = tableFunction.graph?.(scope);
    const isWhole = source.edges === undefined;
    const graph = graphInput && {
      ...graphInput,
      edges: edgeScans(graphInput, source, scan, contextOf),
      isWhole,
      location: source.location,
    };
    const ownColumns = [...columns.keys()];
    const node: FunctionNode = {
      ...functionFacts,
      type: null,
      input: null,
      reads: [],
      columns,
      own: ownColumns,
      ...(graph && { graph }),
      ...(tableFunction.bind && { bound: tableFunction.bind(scope) }),
      ...seekOfFunction(tableFunction, givenArguments),
    };
    return { node, tables: [{ name, type: null, columns, first: 0 }] };
  }
  const { node: scannedNode, tables } = scan(rankedType.type);
  const input = addSearchToScan(scannedNode, rankedType, functionFacts.values, (column) =>
    environment.hides(rankedType.type, column),
  );
  const { columns: typedColumns } = tables[0]!;
  const maskedColumns = environment.masksOf(rankedType.type);
  for (const column of rankedType.named) {
    if (environment.hides(rankedType.type, column)) {
      throw errorAt(
        'REL_MASKED_COLUMN',
        `column ${JSON.stringify(column)} is masked: ${tableFunction.name} can't rank by it`,
        source.location,
      );
    }
  }
  if (maskedColumns.has('system_from')) {
    throw errorAt(
      'REL_MASKED_COLUMN',
      `column "system_from" is masked: ${tableFunction.name} tells rows apart by it`,
      source.location,
    );
  }
  // Columns of the type, then the function's own, then those that show masked ones, which names can't reach.
  const shownColumns = scannedNode.columns.slice(typedColumns.length);
  const functionOutputs: OutputType[] = [
    ...typedColumns.map(
      (column): OutputType => (column.shown === undefined ? column : { ...column, shown: column.shown + columns.length }),
    ),
    ...columns,
  ];
  const allColumns: PlanColumn[] = [...scannedNode.columns.slice(0, typedColumns.length), ...columns, ...shownColumns];
  const scoreColumns = input === scannedNode ? [] : [input.columns.length - 1];
  const node: FunctionNode = {
    ...functionFacts,
    type: rankedType.type,
    input,
    reads: [
      ...[...rankedByColumns, ...rankedType.reads].map((column) => typedColumns.findIndex((each) => each.name === column)),
      ...scoreColumns,
    ],
    columns: allColumns,
    own: allColumns.map((_, i) =>
      i >= typedColumns.length && i < typedColumns.length + columns.length ? i - typedColumns.length : -1,
    ),
  };
  return { node, tables: [{ name, type: null, columns: functionOutputs, first: 0 }] };
}

function seekOfFunction({ seeks }: TableFunction, given: ReadonlyMap<string, unknown>): Pick<FunctionNode, 'seeks'> {
  return seeks === undefined || given.has(seeks.argument) ? {} : { seeks };
}

/** Adds the match score of each row, where the function asks for it. Texts that the caller can't see are not searched. */
function addSearchToScan(
  scan: PlanNode,
  { matches }: RankedType,
  values: FunctionNode['values'],
  hides: (column: string) => boolean,
): PlanNode {
  if (matches === undefined || scan.kind !== 'scan') return scan;
  const searchedColumns = matches.columns.flatMap((name) =>
    hides(name) ? [] : [scan.columns.findIndex((each) => each.name === name)],
  );
  if (searchedColumns.length === 0) return scan;
  const matchArgument = values.get(matches.argument)!;
  if (!('bound' in matchArgument) || matchArgument.bound.kind !== 'literal') {
    throw errorAt('REL_INVALID', `${matches.argument} is a text in quotes`, matchArgument.location);
  }
  const noWeights = searchedColumns.map(() => null);
  const functionMatch: Match = {
    columns: searchedColumns,
    slot: matchArgument.bound.slot,
    mode: 'ANY',
    weights: noWeights,
    boosts: noWeights,
  };
  const ownColumns: readonly PlanColumn[] = [
    { name: '#match 1', type: 'boolean' },
    { name: '_score', type: 'number' },
  ];
  const searchFacts = { matches: [functionMatch], scored: true, required: [], best: null, unread: [], ranks: true } as const;
  return { kind: 'search', input: scan, ...searchFacts, columns: [...scan.columns, ...ownColumns] };
}

/** Takes the condition on the ranking out of WHERE; the rest selects the rows to rank. */
export function withoutSeed(select: Select): Select {
  if (select.from.kind !== 'function') return select;
  const arrangedCall = arrangeCall(select.from, select.where);
  if (arrangedCall === undefined) return select;
  const seedlessArguments = [...arrangedCall.given].map(([name, value]) => ({ name, value }));
  return {
    ...select,
    from: { ...select.from, arguments: seedlessArguments, ...(arrangedCall.edges && { edges: arrangedCall.edges }) },
    where: arrangedCall.where,
  };
}

/**
 * Puts WHERE around a table function: conditions on the type's own columns filter the rows before they are ranked, all others
 * filter the result.
 */
export function filterSource(source: PlanNode, predicate: Bound): PlanNode {
  const filterBy = (input: PlanNode, conditions: readonly Bound[]): PlanNode =>
    conditions.length === 0 ? input : { kind: 'filter', input, predicate: conjunction(conditions), columns: input.columns };
  if (source.kind !== 'function' || source.input === null) return filterBy(source, [predicate]);
  const { own, input } = source;
  const predicatesBelow: Bound[] = [];
  const predicatesAbove: Bound[] = [];
  for (const conjunct of conjunctsOf(predicate))
    ([...columnsIn(conjunct)].every((index) => own[index]! < 0) ? predicatesBelow : predicatesAbove).push(conjunct);
  return filterBy({ ...source, input: filterBy(input, predicatesBelow) }, predicatesAbove);
}

function conjunctsOf(predicate: Bound): readonly Bound[] {
  return predicate.kind === 'and' ? predicate.operands.flatMap(conjunctsOf) : [predicate];
}
