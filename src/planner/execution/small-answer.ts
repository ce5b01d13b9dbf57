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
  answerFigures: SmallAnswerFigures,
): Answer {
  const answerVectors = columns.map(({ type }, i) => {
    const cellBuilder = new VectorBuilder(type, Math.max(1, rows.length));
    for (const answerRow of rows) cellBuilder.append(answerRow[i] ?? null);
    return cellBuilder.build();
  });
  return {
    columns,
    batches: rows.length === 0 ? [] : [{ columns: answerVectors, selection: null, first: 0, count: rows.length }],
    rowCount: rows.length,
    costUnits: answerFigures.costUnits,
    estimatedTotalHits: rows.length,
    asOfSystem: answerFigures.asOfSystem,
    cursor: null,
    nextCursor: null,
    provenance: null,
    facets: null,
    plan: answerFigures.plan ?? null,
    actualRows: null,
    processingTimeMs: answerFigures.processingTimeMs,
    overtaken: () => false,
  };
}
