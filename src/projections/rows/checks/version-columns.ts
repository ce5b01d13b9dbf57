/** Turns a batch of rows into the columns of an entry: keys and bounds, the versions that each row closes, and cells. Pure. */
import type { NamedColumn, RowBatch, Vector } from '../../../log/values/columns.ts';
import type { RowsBody } from '../../../log/entries/entry.ts';
import { VectorBuilder } from '../../../log/values/vector-builder.ts';
import type { VersionPlan } from './version-plan.ts';

export type Written = Omit<RowsBody, 'kind' | 'type' | 'provenance'>;

/** The versions of a plan, under these keys. */
export function bodyOfPlan(versionPlan: VersionPlan, keys: Vector, columns: readonly NamedColumn[]): Written {
  const { length } = versionPlan;
  const closeOffsets = new Uint32Array(length + 1);
  closeOffsets.set(versionPlan.closeEnds, 1);
  return {
    ops: Uint8Array.from(versionPlan.ops),
    keys: keyColumns(length, keys, boundVector(versionPlan.from), boundVector(versionPlan.to)),
    closeOffsets,
    closes: Float64Array.from(versionPlan.closes),
    cells: { length, columns },
  };
}

export function keyColumns(length: number, keys: Vector, validFrom: Vector, validTo: Vector): RowBatch {
  return {
    length,
    columns: [
      { name: '_pk', type: 'string', vector: keys },
      { name: 'valid_from', type: 'timestamp', vector: validFrom },
      { name: 'valid_to', type: 'timestamp', vector: validTo },
    ],
  };
}

export function boundVector(validBounds: readonly (bigint | null)[]): Vector {
  const boundBuilder = new VectorBuilder('timestamp', Math.max(1, validBounds.length));
  for (const validBound of validBounds) boundBuilder.append(validBound);
  return boundBuilder.build();
}

export function textVector(texts: readonly string[]): Vector {
  const textBuilder = new VectorBuilder('string', Math.max(1, texts.length));
  for (const text of texts) textBuilder.appendString(text);
  return textBuilder.build();
}

/** The bound that a row brought, or null. */
export function boundAt(validBounds: Vector, row: number): bigint | null {
  return validBounds.kind !== 'i64' || validBounds.nulls?.[row] === 1 ? null : validBounds.values[row]!;
}
