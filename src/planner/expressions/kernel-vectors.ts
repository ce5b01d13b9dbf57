/** Code of a kernel over a column of vectors. */
import { AssertionError } from '../../errors.ts';
import type { Bound } from './bound-expression.ts';
import { both, type Value } from './kernel-text.ts';
import type { KernelWriter } from './kernel-writer.ts';

/** The direction is of the statement: it is made once for all rows. */
export function cosine(writer: KernelWriter, from: Bound, to: readonly Bound[]): Value {
  if (from.kind !== 'column') throw new AssertionError('a cosine is of a column');
  if (writer.shape.columns[from.index]!.kind !== 'vec') return noVectors;
  const numbers = to.map((bound) => {
    if (bound.kind !== 'parameter') throw new AssertionError('components of a vector are constants');
    return bound.index;
  });
  const name = writer.vector(from.index);
  const cells = `[${numbers.map((index) => `Number(context.parameters[${index}].narrow)`).join(', ')}]`;
  const point = writer.once(`${name}d${numbers[0]}`, `help.direction(${cells})`);
  const dims = writer.once(`${name}k`, `columns[${from.index}].dims`);
  const ok = writer.ok(from.index);
  return writer.valueOf(writer.guard(ok, `help.cosine(${name}v, i * ${dims}, ${dims}, ${point})`, '0'), ok, 'num');
}

export function distance(writer: KernelWriter, from: Bound, point: readonly Value[]): Value {
  if (from.kind !== 'column') throw new AssertionError('a distance is from a column');
  if (writer.shape.columns[from.index]!.kind !== 'vec') return noVectors;
  const name = writer.vector(from.index);
  const ok = point.reduce<string | null>((all, value) => both(all, value.ok), writer.ok(from.index));
  const dims = writer.once(`${name}k`, `columns[${from.index}].dims`);
  const code = `help.distance(${name}v, i * ${dims}, ${dims}, [${point.map((value) => value.code).join(', ')}])`;
  return writer.valueOf(writer.guard(ok, code, '0'), ok, 'num');
}

/** A cell of a column of vectors, for a function; null of anything else. */
export function vectorCell(writer: KernelWriter, bound: Bound): string | null {
  if (bound.kind !== 'column' || writer.shape.columns[bound.index]!.kind !== 'vec') return null;
  const name = writer.vector(bound.index);
  const dims = writer.once(`${name}k`, `columns[${bound.index}].dims`);
  return `${name}v.subarray(i * ${dims}, (i + 1) * ${dims})`;
}

/** Every cell of the column is NULL. */
const noVectors: Value = { code: '0', ok: '0', rep: 'num' };
