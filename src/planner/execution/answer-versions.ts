/** The versions that rows of an answer are: their lineage, and the cursor behind the last of them. */
import { ServiceError } from '../../errors.ts';
import type { LogicalPlan } from '../logical-plan.ts';
import type { Execution } from '../operators/operator.ts';
import type { OutputBatch, ProvenanceEntry } from '../planner-contract.ts';
import { opaqueCursor } from '../statements/page-cursor.ts';
import type { Query } from '../syntax/statement.ts';
import type { ExecutorOptions, Result } from './executor.ts';

export async function provenanceOf(
  plan: LogicalPlan,
  batches: readonly OutputBatch[],
  { snapshot }: Execution,
  { clock, scheduler }: Pick<ExecutorOptions, 'clock' | 'scheduler'>,
): Promise<ProvenanceEntry[]> {
  const provenanceEntries: ProvenanceEntry[] = [];
  let provenanceSliceMs = clock.monotonicMs();
  for (const answerBatch of batches) {
    for (let row = 0; row < answerBatch.count; row++) {
      const versionProvenance = snapshot.rows.provenanceOf(plan.objectTypes[0]!, answerSystemFrom(plan, answerBatch, row));
      // A version removed for good between scan and lookup has no lineage left to tell.
      provenanceEntries.push(
        versionProvenance ?? {
          source: '',
          method: '',
          confidence: 0,
          recordedAt: answerSystemFrom(plan, answerBatch, row),
          derivedFrom: null,
        },
      );
      if (row % 256 === 255 && clock.monotonicMs() - provenanceSliceMs > 1.5) {
        await scheduler.yield();
        provenanceSliceMs = clock.monotonicMs();
      }
    }
  }
  return provenanceEntries;
}

/** Only a page that was cut has a cursor: a full page at the very end has nothing after it. */
export function cursors(
  plan: LogicalPlan,
  query: Query,
  { batches, rowCount }: Result,
  execution: Execution,
): { cursor: string | null; nextCursor: string | null } {
  const lastBatch = batches[batches.length - 1];
  const { limit } = query;
  const isFullPage = plan.paged && limit !== null && 'slot' in limit && rowCount === execution.rowLimit(limit);
  if (!isFullPage || lastBatch === undefined || execution.counters.hits === rowCount) return { cursor: null, nextCursor: null };
  const systemFrom = answerSystemFrom(plan, lastBatch, lastBatch.count - 1);
  return { cursor: systemFrom.toString(), nextCursor: opaqueCursor(execution.kernels.instant, systemFrom) };
}

function answerSystemFrom(plan: LogicalPlan, batch: OutputBatch, row: number): bigint {
  const vector = plan.systemFrom === null ? undefined : batch.columns[plan.systemFrom];
  if (vector?.kind !== 'i64') throw new ServiceError('REL_INTERNAL', 'rows of a type carry their system_from');
  return vector.values[batch.first + row]!;
}
