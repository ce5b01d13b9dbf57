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
const rankedBy: readonly string[] = ['system_from', '_pk'];

export interface FunctionRequest {
  readonly environment: Environment;
  readonly scan: (type: string) => BoundSource;
  readonly contextOf: (scope: Scope) => ExpressionContext;
}

export function bindFunction(source: FunctionSource, { environment, scan, contextOf }: FunctionRequest): BoundSource {
  const call = arrangeCall(source, null);
  if (call === undefined) throw refuseTableFunction(source.name, source.location);
  const { function: tableFunction, given } = call;
  const words = wordsOf(tableFunction, given, environment.literals, source.location);
  const scope: BoundScope = { words, catalog: environment.catalog };
  const common = {
    kind: 'function',
    name: tableFunction.name,
    words: tableFunction.arguments.flatMap(({ name }) => words.word(name) ?? []),
    values: valuesOf(tableFunction, given, environment),
    limit: null,
  } as const;
  for (const type of tableFunction.types(scope)) environment.objectTypes.add(type);
  const columns = tableFunction.columns(scope);
  const name = source.alias ?? source.name;
  const ranked = tableFunction.ranks?.(scope);
  if (ranked === undefined) {
    const graphInput = tableFunction.graph?.(scope);
    const isWhole = source.edges === undefined;
    const graph = graphInput && {
      ...graphInput,
      edges: edgeScans(graphInput, source, scan, contextOf),
      isWhole,
      location: source.location,
    };
    const own = [...columns.keys()];
    const node: FunctionNode = {
      ...common,
      type: null,
      input: null,
      reads: [],
      columns,
      own,
      ...(graph && { graph }),
      ...(tableFunction.bind && { bound: tableFunction.bind(scope) }),
      ...seekOf(tableFunction, given),
    };
    return { node, tables: [{ name, type: null, columns, first: 0 }] };
  }
  const { node: scanned, tables } = scan(ranked.type);
  const input = addSearch(scanned, ranked, common.values, (column) => environment.hides(ranked.type, column));
  const { columns: typed } = tables[0]!;
  const masked = environment.masksOf(ranked.type);
  for (const column of ranked.named) {
    if (environment.hides(ranked.type, column)) {
      throw errorAt(
        'REL_MASKED_COLUMN',
        `column ${JSON.stringify(column)} is masked: ${tableFunction.name} can't rank by it`,
        source.location,
      );
    }
  }
  if (masked.has('system_from')) {
    throw errorAt(
      'REL_MASKED_COLUMN',
      `column "system_from" is masked: ${tableFunction.name} tells rows apart by it`,
      source.location,
    );
  }
  // Columns of the type, then the function's own, then those that show masked ones, which names can't reach.
  const shown = scanned.columns.slice(typed.length);
  const named: OutputType[] = [
    ...typed.map(
      (column): OutputType => (column.shown === undefined ? column : { ...column, shown: column.shown + columns.length }),
    ),
    ...columns,
  ];
  const all: PlanColumn[] = [...scanned.columns.slice(0, typed.length), ...columns, ...shown];
  const score = input === scanned ? [] : [input.columns.length - 1];
  const node: FunctionNode = {
    ...common,
    type: ranked.type,
    input,
    reads: [...[...rankedBy, ...ranked.reads].map((column) => typed.findIndex((each) => each.name === column)), ...score],
    columns: all,
    own: all.map((_, i) => (i >= typed.length && i < typed.length + columns.length ? i - typed.length : -1)),
  };
  return { node, tables: [{ name, type: null, columns: named, first: 0 }] };
}

function seekOf({ seeks }: TableFunction, given: ReadonlyMap<string, unknown>): Pick<FunctionNode, 'seeks'> {
  return seeks === undefined || given.has(seeks.argument) ? {} : { seeks };
}

/** Adds the match score of each row, where the function asks for it. Texts that the caller can't see are not searched. */
function addSearch(
  scan: PlanNode,
  { matches }: RankedType,
  values: FunctionNode['values'],
  hides: (column: string) => boolean,
): PlanNode {
  if (matches === undefined || scan.kind !== 'scan') return scan;
  const columns = matches.columns.flatMap((name) => (hides(name) ? [] : [scan.columns.findIndex((each) => each.name === name)]));
  if (columns.length === 0) return scan;
  const value = values.get(matches.argument)!;
  if (!('bound' in value) || value.bound.kind !== 'literal') {
    throw errorAt('REL_INVALID', `${matches.argument} is a text in quotes`, value.location);
  }
  const none = columns.map(() => null);
  const match: Match = { columns, slot: value.bound.slot, mode: 'ANY', weights: none, boosts: none };
  const ownColumns: readonly PlanColumn[] = [
    { name: '#match 1', type: 'boolean' },
    { name: '_score', type: 'number' },
  ];
  const rest = { matches: [match], scored: true, required: [], best: null, unread: [], ranks: true } as const;
  return { kind: 'search', input: scan, ...rest, columns: [...scan.columns, ...ownColumns] };
}

/** Takes the condition on the ranking out of WHERE; the rest selects the rows to rank. */
export function withoutSeed(select: Select): Select {
  if (select.from.kind !== 'function') return select;
  const call = arrangeCall(select.from, select.where);
  if (call === undefined) return select;
  const given = [...call.given].map(([name, value]) => ({ name, value }));
  return { ...select, from: { ...select.from, arguments: given, ...(call.edges && { edges: call.edges }) }, where: call.where };
}

/**
 * Puts WHERE around a table function: conditions on the type's own columns filter the rows before they are ranked, all others
 * filter the result.
 */
export function filterSource(source: PlanNode, predicate: Bound): PlanNode {
  const filter = (input: PlanNode, conditions: readonly Bound[]): PlanNode =>
    conditions.length === 0 ? input : { kind: 'filter', input, predicate: conjunction(conditions), columns: input.columns };
  if (source.kind !== 'function' || source.input === null) return filter(source, [predicate]);
  const { own, input } = source;
  const below: Bound[] = [];
  const above: Bound[] = [];
  for (const each of flat(predicate)) ([...columnsIn(each)].every((index) => own[index]! < 0) ? below : above).push(each);
  return filter({ ...source, input: filter(input, below) }, above);
}

function flat(predicate: Bound): readonly Bound[] {
  return predicate.kind === 'and' ? predicate.operands.flatMap(flat) : [predicate];
}
