/** What a condition on one column demands of the values in a layout: exactly the rows for which it is true, or nothing at all. */
import { SearchRules } from '../../../src/planner/expressions/search-rules.ts';
import { noSearchConfig } from '../../../src/projections/tenants/search-config.ts';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Vector } from '../../../src/log/values/columns.ts';
import type { Bound, CompareOp } from '../../../src/planner/expressions/bound-expression.ts';
import { evaluate } from '../../../src/planner/expressions/evaluate.ts';
import { KernelContext } from '../../../src/planner/expressions/kernel-context.ts';
import { demandOf, type Demand } from '../../../src/planner/kernels/column-tests.ts';

type Kind = 'i32' | 'f64' | 'i64';

const vectors: Readonly<Record<Kind, Vector>> = {
  i32: { kind: 'i32', values: new Int32Array(0), nulls: null },
  f64: { kind: 'f64', values: new Float64Array(0), nulls: null },
  i64: { kind: 'i64', values: new BigInt64Array(0), nulls: null },
};

function contextOf(cell: bigint | number | null): KernelContext {
  const literal: Bound = { kind: 'literal', slot: 0, as: 'value', type: 'integer', location: { line: 1, column: 1 } };
  return new KernelContext({ literals: [cell], locationOf: () => ({ line: 1, column: 1 }), instant: 0n, parameters: [literal] });
}

function holds(demand: Demand, value: number | bigint): boolean {
  if (demand.kind !== 'i32' && demand.kind !== 'f64' && demand.kind !== 'i64') throw new Error('a range');
  return (demand.least <= value && value <= demand.most) !== demand.outside;
}

const edges = [0, -0, 1, -1, 0.5, -0.5, 2_147_483_647, 2_147_483_648, -2_147_483_648, -2_147_483_649, 2 ** 53, 1e300, -1e300];
const bigEdges = [0n, 2n ** 31n, -(2n ** 31n) - 1n, 2n ** 53n + 1n, -(2n ** 53n) - 1n, 2n ** 63n - 1n, -(2n ** 63n)];
const constant = fc.oneof(
  fc.constantFrom<bigint | number | null>(...edges, ...bigEdges, null, Number.MIN_VALUE, -Number.MIN_VALUE, Number.MAX_VALUE),
  fc.bigInt({ min: -100n, max: 100n }),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);
const ops = fc.constantFrom<CompareOp>('=', '!=', '<', '<=', '>', '>=');

describe('a comparison in a layout', () => {
  test.each<[Kind, 'integer' | 'number' | 'timestamp', fc.Arbitrary<number | bigint>]>([
    ['i32', 'integer', fc.oneof(fc.integer(), fc.integer({ min: -100, max: 100 }))],
    ['i32', 'number', fc.integer({ min: -100, max: 100 })],
    ['f64', 'number', fc.oneof(fc.double({ noNaN: true }), fc.constantFrom(...edges))],
    ['f64', 'integer', fc.maxSafeInteger()],
    ['i64', 'timestamp', fc.oneof(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), fc.constantFrom(...bigEdges))],
    ['i64', 'integer', fc.bigInt({ min: -100n, max: 100n })],
  ])('%s under the type %s is what single cells compare', (kind, type, value) => {
    fc.assert(
      fc.property(value, constant, ops, fc.boolean(), (cell, other, op, turned) => {
        const column: Bound = { kind: 'column', index: 0, name: 'c', type };
        const parameter: Bound = { kind: 'parameter', index: 0, type: 'integer' };
        const [left, right] = turned ? [parameter, column] : [column, parameter];
        const bound: Bound = { kind: 'compare', op, left, right, type: 'boolean' };
        const demand = demandOf({ column: 0, bound }, vectors[kind], contextOf(other));
        if (demand === null) {
          expect(typeof other === 'bigint' && kind === 'f64').toBe(true);
          return;
        }
        const expected = evaluate(bound, {
          parameters: [other],
          cell,
          literals: [],
          sets: [],
          results: [],
          rules: () => new SearchRules(noSearchConfig, 'none', null),
          catalogue: () => ({ isCatalogue: true }),
          valuesOf: () => {
            throw new Error('no list is compared here');
          },
          patternOf: () => {
            throw new Error('no pattern is compared here');
          },
          instant: 0n,
          locationOf: () => ({ line: 1, column: 1 }),
        });
        expect([demand, holds(demand, cell)]).toEqual([demand, expected === true]);
      }),
      { numRuns: 3_000 },
    );
  });

  test('64-bit integers under the type number are compared as doubles, which no range says', () => {
    const bound: Bound = {
      kind: 'compare',
      op: '>',
      left: { kind: 'column', index: 0, name: 'c', type: 'number' },
      right: { kind: 'parameter', index: 0, type: 'integer' },
      type: 'boolean',
    };
    expect(demandOf({ column: 0, bound }, vectors.i64, contextOf(5n))).toBeNull();
  });
});
