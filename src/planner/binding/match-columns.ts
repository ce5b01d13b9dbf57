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

type Call = Extract<Expression, { kind: 'call' }>;

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
  const [table, ...others] = scope.tables;
  if (source.kind !== 'scan' || others.length > 0 || !table || table.type === null) return undefined;
  /** By number: there may be thousands, and every expression asks whether it is one. */
  const calls = new Map<Call, number>();
  let scored = ranked;
  const ranks = select.rankBy.length > 0 || scope.has(scoreName);
  const isMatch = (expression: Expression): boolean =>
    expression.kind === 'column' && expression.table === null && expression.name === matchName && !scope.has(matchName);
  const read = (expression: Expression): void => {
    if (isMatchCall(expression) && !calls.has(expression)) calls.set(expression, calls.size);
    if (isBm25(expression) || isMatch(expression)) scored = true;
    if (expression.kind === 'column' && expression.table === null && expression.name === scoreName && !ranks) scored = true;
    for (const part of operandsOf(expression)) if (part.kind !== 'literal') read(part);
  };
  if (select.where) read(select.where);
  if (calls.size === 0) return undefined;
  for (const item of select.projection) if (item.kind === 'expression') read(item.expression);
  for (const { expression } of select.compute) read(expression);
  for (const expression of select.rankBy) read(expression);
  for (const { expression } of orderBy) read(expression);
  const width = source.columns.length;
  const matches = [...calls.keys()].map((call) => matchOf(call, scope));
  const columns: PlanColumn[] = [
    ...source.columns,
    ...matches.map((_, i): PlanColumn => ({ name: `#match ${i + 1}`, type: 'boolean' })),
    ...(scored ? [{ name: scoreName, type: 'number' } as const] : []),
  ];
  const node: SearchNode = { kind: 'search', input: source, matches, scored, required: [], best: null, unread: [], columns };
  const columnAt = (index: number): Bound => {
    const { name, type } = columns[index]!;
    return { kind: 'column', index, name, type };
  };
  const score = scored ? columnAt(width + matches.length) : null;
  const isScore = (expression: Expression): boolean =>
    score !== null && expression.kind === 'column' && expression.table === null && expression.name === scoreName;
  return {
    node,
    score,
    column: (expression) => {
      if (isScore(expression)) return score!;
      if (isBm25(expression) || isMatch(expression)) return score ?? undefined;
      const number = isMatchCall(expression) ? calls.get(expression) : undefined;
      return number === undefined ? undefined : columnAt(width + number);
    },
  };
}

function isMatchCall(expression: Expression): expression is Call {
  return expression.kind === 'call' && expression.name === 'MATCH';
}

function isBm25(expression: Expression): boolean {
  return expression.kind === 'call' && expression.name === 'BM25' && expression.arguments.length === 0;
}

function matchOf(call: Call, scope: Scope): Match {
  const { fields, slot, mode } = readMatch(call);
  const columns = fields.map(({ text }) => {
    if (text.kind !== 'column') throw errorAt('REL_INVALID', 'MATCH takes a column', text.location);
    const bound = scope.column(text);
    if (bound.kind !== 'column' || !holdsTexts(bound.type)) throw notText(bound.type, text);
    return bound.index;
  });
  return { columns, slot, mode, weights: fields.map(({ weight }) => weight), boosts: fields.map(({ boost }) => boost) };
}
