/** Answers without a plan's rows: the lines of a plan, or the result of a control statement. */
import { VectorBuilder } from '../../log/values/vector-builder.ts';
import type { Cell } from '../../log/values/value.ts';
import type { Answer, OutputColumn } from '../planner-contract.ts';

export interface SmallAnswerFigures {
  readonly asOfSystem: bigint;
  readonly costUnits: number;
  readonly processingTimeMs: number;
  readonly plan?: string;
}

export function smallAnswer(
  columns: readonly OutputColumn[],
  rows: readonly (readonly Cell[])[],
  facts: SmallAnswerFigures,
): Answer {
  const vectors = columns.map(({ type }, i) => {
    const builder = new VectorBuilder(type, Math.max(1, rows.length));
    for (const row of rows) builder.append(row[i] ?? null);
    return builder.build();
  });
  return {
    columns,
    batches: rows.length === 0 ? [] : [{ columns: vectors, selection: null, first: 0, count: rows.length }],
    rowCount: rows.length,
    costUnits: facts.costUnits,
    estimatedTotalHits: rows.length,
    asOfSystem: facts.asOfSystem,
    cursor: null,
    nextCursor: null,
    provenance: null,
    facets: null,
    plan: facts.plan ?? null,
    actualRows: null,
    processingTimeMs: facts.processingTimeMs,
    overtaken: () => false,
  };
}
