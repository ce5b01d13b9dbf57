import { expect, test } from 'vitest';
import type { Bound } from '../../../src/planner/expressions/bound-expression.ts';
import { compileFilter, KernelCache } from '../../../src/planner/expressions/kernel-compiler.ts';
import { KernelContext } from '../../../src/planner/expressions/kernel-context.ts';
import { turnMost, work } from '../../../src/planner/expressions/work.ts';

test('a kernel of many parts has done the work of a turn once it is compiled, and none the next time', () => {
  const place = { line: 1, column: 1 };
  const literals = Array.from({ length: 1_000 }, (_, i) => BigInt(i));
  const parameters = literals.map((_, slot): Bound => ({ kind: 'literal', slot, as: 'value', type: 'integer', place }));
  const context = new KernelContext({ literals, placeOf: () => place, instant: 0n, parameters });
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
