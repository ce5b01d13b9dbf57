/** The answer of a query that ran: its rows, and the figures, cursors and notices beside them. */
import type { Answer, ProvenanceEntry, QueryRequest } from './planner-contract.ts';
import type { GovernedSnapshot } from '../governance/gate-contract.ts';
import type { Execution } from './operators/operator.ts';
import type { ReadyPlan } from './plans/plans.ts';
import type { QueryStatement } from './statements/statement-source.ts';
import { cursors } from './execution/answer-versions.ts';
import type { Result, RunRequest } from './execution/executor.ts';

export interface AnswerRequest {
  readonly ready: ReadyPlan;
  readonly statement: QueryStatement;
  readonly snapshot: GovernedSnapshot;
  readonly execution: Execution;
  readonly result: Result;
  readonly provenance: readonly ProvenanceEntry[] | null;
  readonly costUnits: number;
  readonly processingTimeMs: number;
  readonly overtaken: () => boolean;
}

export function queryAnswer(request: AnswerRequest): Answer {
  const { ready, statement, snapshot, execution, result, provenance, costUnits, processingTimeMs, overtaken } = request;
  const { plan } = ready;
  const { hits, byGraph, leftOut, warm } = execution.counters;
  const { cursor, nextCursor } = cursors(plan, statement.query, result, execution);
  return {
    columns: ready.columns,
    batches: result.batches.map(({ columns, selection, first, count }) => ({
      columns: columns.slice(0, plan.visible),
      selection,
      first,
      count,
    })),
    rowCount: result.rowCount,
    costUnits,
    estimatedTotalHits: Math.max(hits, result.rowCount),
    asOfSystem: execution.kernels.instant,
    cursor,
    nextCursor,
    provenance,
    facets: result.facets,
    notices: noticesOf(ready, snapshot, execution.notices),
    isApproximate: byGraph + leftOut + warm > 0 || undefined,
    plan: null,
    actualRows: null,
    processingTimeMs,
    overtaken,
  };
}

/** The taker of rows while they are read; null where cursors or lineage look at rows once more. */
export function rowTaker({ mode }: QueryStatement, { plan, columns }: ReadyPlan, { rows }: QueryRequest): RunRequest['taker'] {
  return rows === undefined || mode !== 'run' || plan.paged || plan.withProvenance ? null : { columns, rows };
}

/** Notices about the rows that were read, and those that came up during the run. */
function noticesOf({ reads }: ReadyPlan, snapshot: GovernedSnapshot, ofRun: readonly string[]): readonly string[] {
  const notices = [...reads.flatMap(({ type, columns }) => snapshot.notices(type, columns)), ...ofRun];
  return notices.length === 0 ? none : [...new Set(notices)];
}

const none: readonly string[] = [];
