import { expect, test } from 'vitest';
import type { Bound } from '../../../src/planner/expressions/bound-expression.ts';
import { compileFilter, KernelCache } from '../../../src/planner/expressions/kernel-compiler.ts';
import { KernelContext } from '../../../src/planner/expressions/kernel-context.ts';
import { turnMost, work } from '../../../src/planner/expressions/expression-cost.ts';

test('a kernel of many parts has done the work of a turn once it is compiled, and none the next time', () => {
  const location = { line: 1, column: 1 };
  const literals = Array.from({ length: 1_000 }, (_, i) => BigInt(i));
  const parameters = literals.map((_, slot): Bound => ({ kind: 'literal', slot, as: 'value', type: 'integer', location }));
  const context = new KernelContext({ literals, locationOf: () => location, instant: 0n, parameters });
  const operands = literals.map((_, index): Bound => {
    const right: Bound = { kind: 'parameter', index, type: 'integer' };
    return { kind: 'compare', op: '=', left: { kind: 'column', index: 0, name: 'n', type: 'integer' }, right, type: 'boolean' };
  });
  const shape = {
    columns: [{ kind: 'i32', values: new Int32Array(1), nulls: null }],
    context,
    dense: true,
    wide: false,
  } as const;
  const cache = new KernelCache({ kind: 'or', operands, type: 'boolean' }, compileFilter);
  work.done = 0;
  cache.get(shape);
  expect(work.done).toBeGreaterThan(turnMost);
  work.done = 0;
  cache.get(shape);
  expect(work.done).toBe(0);
});

test('no function of a condition of thousands of parts is long', () => {
  const columns = [0, 1].map((index): Bound => ({ kind: 'column', index, name: 'n', type: 'integer' }));
  const literals = Array.from({ length: 4_000 }, (_, i) => BigInt(i));
  const location = { line: 1, column: 1 };
  const parameters = literals.map((_, slot): Bound => ({ kind: 'literal', slot, as: 'value', type: 'integer', location }));
  const context = new KernelContext({ literals, locationOf: () => location, instant: 0n, parameters });
  const equal = (left: Bound, index: number): Bound => {
    const right: Bound = { kind: 'parameter', index, type: 'integer' };
    return { kind: 'compare', op: '=', left, right, type: 'boolean' };
  };
  const pairs = Array.from({ length: 2_000 }, (_, i): Bound => {
    const operands = [equal(columns[0]!, 2 * i), equal(columns[1]!, 2 * i + 1)];
    return { kind: 'and', operands, type: 'boolean' };
  });
  const vectors = [0, 1].map(
    (odd) => ({ kind: 'i32', values: Int32Array.of(odd, 6 + odd, 6, 3_998 + odd), nulls: null }) as const,
  );
  const shape = { columns: vectors, context, dense: true, wide: false };
  const kernel = compileFilter({ kind: 'or', operands: pairs, type: 'boolean' }, shape);
  const out = new Int32Array(4);
  expect([kernel(vectors, context, null, 0, 4, out), ...out]).toEqual([3, 0, 1, 3, 0]);
  const inner = [...kernel.toString().matchAll(/const \w+ = \(i\) => \{[^]*?\n\};/g)].map(([text]) => text.length);
  const loop = kernel.toString().split('\nfor (').at(-1)!.length;
  expect([inner.length > 10, Math.max(loop, ...inner) < 30_000]).toEqual([true, true]);
});
