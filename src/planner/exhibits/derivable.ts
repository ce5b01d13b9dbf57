/** Which statements can be put on an exhibit: those whose answer follows from the log alone. */
import { ServiceError } from '../../errors.ts';
import type { AccessPaths, ViewRecord } from '../../projections/access-paths.ts';
import { drawingFunctions } from '../expressions/functions/catalogue.ts';
import { functionCalled, typesCalled } from '../table-functions/statement-call.ts';
import { lexStatement } from '../languages/sql-lexer.ts';
import { parseLexed } from '../languages/sql-parser.ts';
import type { Literal, Query } from '../syntax/statement.ts';

const statementBytesMax = 256 * 1024;

/**
 * Throws for a statement that can't be derived again: REL_UNPROCESSABLE for one that is no query or reads lookup tables, which
 * live outside the log; REL_READ_ONLY and REL_PARSE as anywhere.
 */
export function checkDerivable(sql: string): void {
  if (Buffer.byteLength(sql) > statementBytesMax) {
    throw new ServiceError('REL_TOO_LARGE', `a statement on an exhibit has at most ${statementBytesMax} bytes`);
  }
  const { statement, parameters } = parseLexed(lexStatement(sql));
  if (statement.kind === 'control' || statement.kind === 'explain') {
    throw new ServiceError('REL_UNPROCESSABLE', 'only the answer of a query can be derived again from the log');
  }
  if (statement.kind === 'query') checkFunctionCall(statement.query, parameters);
  refuseBesideLog(readStatement(sql));
}

/** Replay is authorised by type: a call has to name the type that it reads. */
function checkFunctionCall(query: Query, literals: readonly Literal[]): void {
  const calledFunction = functionCalled(query);
  if (calledFunction === undefined) return;
  if (!calledFunction.deterministic) {
    throw new ServiceError(
      'REL_UNPROCESSABLE',
      `${calledFunction.name} depends on more than the log: its answer cannot be derived again`,
    );
  }
  if (typesCalled(query, literals).length === 0) {
    throw new ServiceError('REL_UNPROCESSABLE', `on an exhibit, ${calledFunction.name} names the type that it reads`);
  }
}

/** Applies the same check to the views that it reads, which the snapshot knows. */
export function checkViewsDerivable(sql: string, views: readonly ViewRecord[]): void {
  for (const viewReading of expandViews(sql, views)) refuseBesideLog(viewReading);
}

/** Names of the types, views and functions that a statement reads, those behind views included. */
export function sourcesOf(sql: string, views: readonly ViewRecord[]): ReadonlySet<string> {
  return new Set(expandViews(sql, views).flatMap(({ sources }) => [...sources]));
}

/** The types among them. */
export function typesOf(sql: string, { views, catalog }: Pick<AccessPaths, 'views' | 'catalog'>): readonly string[] {
  return [...sourcesOf(sql, views)].filter((name) => catalog.type(name) !== undefined);
}

interface StatementReading {
  readonly sources: ReadonlySet<string>;
  /** Why its answer does not follow from the log; null where it does. */
  readonly beside: string | null;
}

function refuseBesideLog({ beside }: StatementReading): void {
  if (beside !== null) throw new ServiceError('REL_UNPROCESSABLE', `${beside}: its answer cannot be derived again`);
}

/** The statement and every view that it or another of them names. */
function expandViews(sql: string, views: readonly ViewRecord[]): StatementReading[] {
  const viewReadings = [readStatement(sql)];
  const unexpandedViews = new Set(views);
  for (let i = 0; i < viewReadings.length; i++) {
    for (const view of unexpandedViews) {
      if (!viewReadings[i]!.sources.has(view.name)) continue;
      unexpandedViews.delete(view);
      viewReadings.push(readStatement(view.sql));
    }
  }
  return viewReadings;
}

function readStatement(sql: string): StatementReading {
  const { statement, parameters } = parseLexed(lexStatement(sql));
  const sourceNames = new Set(statement.kind === 'query' ? typesCalled(statement.query, parameters) : []);
  let besideReason: string | null = null;
  for (const { kind, name } of treeNodesOf(statement.kind === 'query' ? statement.query : null)) {
    if ((kind === 'table' || kind === 'function') && typeof name === 'string') sourceNames.add(name);
    if (kind !== 'call' || typeof name !== 'string') continue;
    if (name === 'LOOKUP') besideReason = 'LOOKUP reads a table that is not in the log';
    else if (drawingFunctions.has(name)) besideReason = `${name} yields another value each time`;
  }
  return { sources: sourceNames, beside: besideReason };
}

/** Every node of a tree. */
function* treeNodesOf(treeNode: unknown): Generator<Readonly<Record<string, unknown>>, void> {
  if (typeof treeNode !== 'object' || treeNode === null) return;
  if (!Array.isArray(treeNode)) yield treeNode as Readonly<Record<string, unknown>>;
  for (const treeMember of Object.values(treeNode)) yield* treeNodesOf(treeMember);
}
