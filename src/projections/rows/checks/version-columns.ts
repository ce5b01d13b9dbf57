/** Turns a batch of rows into the columns of an entry: keys and bounds, the versions that each row closes, and cells. Pure. */
import type { NamedColumn, RowBatch, Vector } from '../../../log/values/columns.ts';
import type { RowsBody } from '../../../log/entries/entry.ts';
import { VectorBuilder } from '../../../log/values/vector-builder.ts';
import type { VersionPlan } from './version-plan.ts';

export type Written = Omit<RowsBody, 'kind' | 'type' | 'provenance'>;

/** The versions of a plan, under these keys. */
export function bodyOfPlan(plan: VersionPlan, keys: Vector, columns: readonly NamedColumn[]): Written {
  const { length } = plan;
  const closeOffsets = new Uint32Array(length + 1);
  closeOffsets.set(plan.closeEnds, 1);
  return {
    ops: Uint8Array.from(plan.ops),
    keys: keyColumns(length, keys, boundVector(plan.from), boundVector(plan.to)),
    closeOffsets,
    closes: Float64Array.from(plan.closes),
    cells: { length, columns },
  };
}

export function keyColumns(length: number, keys: Vector, from: Vector, to: Vector): RowBatch {
  return {
    length,
    columns: [
      { name: '_pk', type: 'string', vector: keys },
      { name: 'valid_from', type: 'timestamp', vector: from },
      { name: 'valid_to', type: 'timestamp', vector: to },
    ],
  };
}

export function boundVector(bounds: readonly (bigint | null)[]): Vector {
  const builder = new VectorBuilder('timestamp', Math.max(1, bounds.length));
  for (const bound of bounds) builder.append(bound);
  return builder.build();
}

export function textVector(texts: readonly string[]): Vector {
  const builder = new VectorBuilder('string', Math.max(1, texts.length));
  for (const text of texts) builder.appendString(text);
  return builder.build();
}

/** The bound that a row brought, or null. */
export function boundAt(bounds: Vector, row: number): bigint | null {
  return bounds.kind !== 'i64' || bounds.nulls?.[row] === 1 ? null : bounds.values[row]!;
}
