/**
 * MATCH and `_score` of one SELECT. Over rows of one type they are columns of a search that takes the place of the scan, so that
 * conditions, order and projection use them like any other; elsewhere a MATCH is a condition on the text that it is given.
 */
import { holdsTexts } from '../../log/values/value.ts';
import { notText, readMatch } from '../expressions/bind-match.ts';
import type { Bound } from '../expressions/bound-expression.ts';
import type { Match, PlanColumn, PlanNode, SearchNode } from '../logical-plan.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Expression, OrderItem, Select } from '../syntax/statement.ts';
import { operandsOf } from './aggregate-calls.ts';
import type { Scope } from './scope.ts';

type MatchCall = Extract<Expression, { kind: 'call' }>;

export const scoreName = '_score';
/** How well a row matches, beside a rank. */
const matchName = '_bm25';

/** The search node of a SELECT, and the columns that it adds to the rows. */
export interface BoundSearch {
  readonly node: SearchNode;
  /** The search column that computes an expression; undefined where none does. */
  column(expression: Expression): Bound | undefined;
  readonly score: Bound | null;
}

export interface SearchRequest {
  readonly select: Select;
  readonly orderBy: readonly OrderItem[];
  readonly scope: Scope;
  readonly source: PlanNode;
  /** The search computes scores, even where the statement has no RANK BY. */
  readonly scored: boolean;
}

/** Undefined where nothing of it is searched, or its rows are not those of one type. */
export function bindSearch({ select, orderBy, scope, source, scored: ranked }: SearchRequest): BoundSearch | undefined {
  const [table, ...otherTables] = scope.tables;
  if (source.kind !== 'scan' || otherTables.length > 0 || !table || table.type === null) return undefined;
  /** By number: there may be thousands, and every expression asks whether it is one. */
  const matchCalls = new Map<MatchCall, number>();
  let isScored = ranked;
  const hasRanking = select.rankBy.length > 0 || scope.has(scoreName);
  const isMatch = (expression: Expression): boolean =>
    expression.kind === 'column' && expression.table === null && expression.name === matchName && !scope.has(matchName);
  const readMatchCalls = (expression: Expression): void => {
    if (isMatchCall(expression) && !matchCalls.has(expression)) matchCalls.set(expression, matchCalls.size);
    if (isBm25(expression) || isMatch(expression)) isScored = true;
    if (expression.kind === 'column' && expression.table === null && expression.name === scoreName && !hasRanking)
      isScored = true;
    for (const part of operandsOf(expression)) if (part.kind !== 'literal') readMatchCalls(part);
  };
  if (select.where) readMatchCalls(select.where);
  if (matchCalls.size === 0) return undefined;
  for (const item of select.projection) if (item.kind === 'expression') readMatchCalls(item.expression);
  for (const { expression } of select.compute) readMatchCalls(expression);
  for (const expression of select.rankBy) readMatchCalls(expression);
  for (const { expression } of orderBy) readMatchCalls(expression);
  const sourceWidth = source.columns.length;
  const boundMatches = [...matchCalls.keys()].map((call) => boundMatchOf(call, scope));
  const searchColumns: PlanColumn[] = [
    ...source.columns,
    ...boundMatches.map((_, i): PlanColumn => ({ name: `#match ${i + 1}`, type: 'boolean' })),
    ...(isScored ? [{ name: scoreName, type: 'number' } as const] : []),
  ];
  const searchNode: SearchNode = {
    kind: 'search',
    input: source,
    matches: boundMatches,
    scored: isScored,
    required: [],
    best: null,
    unread: [],
    columns: searchColumns,
  };
  const searchColumnAt = (index: number): Bound => {
    const { name, type } = searchColumns[index]!;
    return { kind: 'column', index, name, type };
  };
  const scoreColumn = isScored ? searchColumnAt(sourceWidth + boundMatches.length) : null;
  const isScore = (expression: Expression): boolean =>
    scoreColumn !== null && expression.kind === 'column' && expression.table === null && expression.name === scoreName;
  return {
    node: searchNode,
    score: scoreColumn,
    column: (expression) => {
      if (isScore(expression)) return scoreColumn!;
      if (isBm25(expression) || isMatch(expression)) return scoreColumn ?? undefined;
      const number = isMatchCall(expression) ? matchCalls.get(expression) : undefined;
      return number === undefined ? undefined : searchColumnAt(sourceWidth + number);
    },
  };
}

function isMatchCall(expression: Expression): expression is MatchCall {
  return expression.kind === 'call' && expression.name === 'MATCH';
}

function isBm25(expression: Expression): boolean {
  return expression.kind === 'call' && expression.name === 'BM25' && expression.arguments.length === 0;
}

function boundMatchOf(call: MatchCall, scope: Scope): Match {
  const { fields, slot, mode } = readMatch(call);
  const matchedColumns = fields.map(({ text }) => {
    if (text.kind !== 'column') throw errorAt('REL_INVALID', 'MATCH takes a column', text.location);
    const boundField = scope.column(text);
    if (boundField.kind !== 'column' || !holdsTexts(boundField.type)) throw notText(boundField.type, text);
    return boundField.index;
  });
  return {
    columns: matchedColumns,
    slot,
    mode,
    weights: fields.map(({ weight }) => weight),
    boosts: fields.map(({ boost }) => boost),
  };
}
