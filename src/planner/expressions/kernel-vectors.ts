/** Code of a kernel over a column of vectors. */
import { AssertionError } from '../../errors.ts';
import type { Bound } from './bound-expression.ts';
import { both, type Value } from './kernel-text.ts';
import type { KernelWriter } from './kernel-writer.ts';

/** The direction is of the statement: it is made once for all rows. */
export function cosine(kernelWriter: KernelWriter, vectorColumn: Bound, queryComponents: readonly Bound[]): Value {
  if (vectorColumn.kind !== 'column') throw new AssertionError('a cosine is of a column');
  if (kernelWriter.shape.columns[vectorColumn.index]!.kind !== 'vec') return noVectors;
  const parameterIndexes = queryComponents.map((bound) => {
    if (bound.kind !== 'parameter') throw new AssertionError('components of a vector are constants');
    return bound.index;
  });
  const vectorName = kernelWriter.vector(vectorColumn.index);
  const componentsCode = `[${parameterIndexes.map((index) => `Number(context.parameters[${index}].narrow)`).join(', ')}]`;
  const directionCode = kernelWriter.once(`${vectorName}d${parameterIndexes[0]}`, `help.direction(${componentsCode})`);
  const dims = kernelWriter.once(`${vectorName}k`, `columns[${vectorColumn.index}].dims`);
  const ok = kernelWriter.ok(vectorColumn.index);
  return kernelWriter.valueOf(
    kernelWriter.guard(ok, `help.cosine(${vectorName}v, i * ${dims}, ${dims}, ${directionCode})`, '0'),
    ok,
    'num',
  );
}

export function distance(kernelWriter: KernelWriter, vectorColumn: Bound, pointValues: readonly Value[]): Value {
  if (vectorColumn.kind !== 'column') throw new AssertionError('a distance is from a column');
  if (kernelWriter.shape.columns[vectorColumn.index]!.kind !== 'vec') return noVectors;
  const vectorName = kernelWriter.vector(vectorColumn.index);
  const ok = pointValues.reduce<string | null>(
    (allKnown, value) => both(allKnown, value.ok),
    kernelWriter.ok(vectorColumn.index),
  );
  const dims = kernelWriter.once(`${vectorName}k`, `columns[${vectorColumn.index}].dims`);
  const distanceCode = `help.distance(${vectorName}v, i * ${dims}, ${dims}, [${pointValues.map((value) => value.code).join(', ')}])`;
  return kernelWriter.valueOf(kernelWriter.guard(ok, distanceCode, '0'), ok, 'num');
}

/** A cell of a column of vectors, for a function; null of anything else. */
export function vectorCell(kernelWriter: KernelWriter, bound: Bound): string | null {
  if (bound.kind !== 'column' || kernelWriter.shape.columns[bound.index]!.kind !== 'vec') return null;
  const vectorName = kernelWriter.vector(bound.index);
  const dims = kernelWriter.once(`${vectorName}k`, `columns[${bound.index}].dims`);
  return `${vectorName}v.subarray(i * ${dims}, (i + 1) * ${dims})`;
}

/** Every cell of the column is NULL. */
const noVectors: Value = { code: '0', ok: '0', rep: 'num' };
