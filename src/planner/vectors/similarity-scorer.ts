/** A scorer rates the rows of a batch by similarity, and offers the best of them. */
import { assert } from '../../errors.ts';
import type { Vector } from '../../log/values/columns.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import type { BestRows } from '../operators/best-rows.ts';
import type { Batch, Execution } from '../operators/operator.ts';

export interface Ranking {
  readonly best: BestRows;
  readonly threshold: number;
  /** system_from of rows that are left out. */
  readonly seeds: ReadonlySet<bigint>;
  readonly execution: Execution;
}

export interface Scorer {
  /** Columns of the batch are system_from, `_pk`, then the ranking columns. Yields between bounded pieces. */
  score(batch: Batch, ranking: Ranking): Generator<undefined, void>;
  close(): void;
}

/** A row that scores as much as was asked for, whether or not it is among the best. */
export function hitRow(
  { columns }: Batch,
  hitRowId: number,
  similarityScore: number,
  { best, execution: { counters } }: Ranking,
): void {
  counters.hits++;
  if (similarityScore < best.floor) return;
  const hitKey = String(cellAt(columns[1]!, 'string', hitRowId) ?? '');
  best.offer({ score: similarityScore, key: hitKey, systemFrom: timeAt(columns[0]!, hitRowId) });
}

export function rowAt({ selection, first }: Batch, k: number): number {
  return selection === null ? first + k : selection[k]!;
}

export function timeAt(systemTimes: Vector, row: number): bigint {
  assert(systemTimes.kind === 'i64', 'system times are i64');
  return systemTimes.values[row]!;
}
