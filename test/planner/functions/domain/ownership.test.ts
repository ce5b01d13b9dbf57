/** BENEFICIAL_OWNERSHIP_CHAIN: examples of OFAC's question 401, cycles, and small worlds against the inverse of a matrix. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  effectiveShares,
  isHeldByHalf,
  reachedAbove,
  type Share,
} from '../../../../src/planner/functions/domain/ownership-graph.ts';
import { TestRandom, TestStore } from '../../../harness.ts';

function world(edges: readonly (readonly [string, string, number])[]): ReadonlyMap<string, readonly Share[]> {
  const shares = edges.map(([owner, owned, pct]): Share => ({ owner, owned, pct, validFrom: null, validTo: null }));
  return new Map(shares.map(({ owned }) => [owned, shares.filter((each) => each.owned === owned)]));
}

test('random worlds: walks add up as the inverse of I − W has it, and halves cascade to a fixpoint', () => {
  const bytes = new TestRandom(5).fill(new Uint8Array(2_000));
  let at = 0;
  for (let round = 0; round < 40; round++) {
    const count = 3 + (bytes[at++]! % 4);
    const matrix = Array.from({ length: count }, () => Array.from({ length: count }, () => 0));
    for (let owned = 0; owned < count; owned++) {
      for (let owner = 0, left = 100; owner < count; owner++) {
        const pct = bytes[at++]! % 2 === 0 ? 0 : Math.min(left, bytes[at]! % 70);
        if (owner === owned || pct === 0) continue;
        matrix[owner]![owned] = pct;
        left -= pct;
      }
    }
    const edges = matrix.flatMap((row, owner) =>
      row.flatMap((pct, owned) => (pct > 0 ? [[`n${owner}`, `n${owned}`, pct] as const] : [])),
    );
    const reached = reachedAbove('n0', world(edges), 10);
    const effective = effectiveShares('n0', reached)!;
    for (const [owner, pct] of effective) expect(pct).toBeCloseTo(walks(matrix, Number(owner.slice(1))), 6);
    for (const owner of reached.depths.keys()) {
      if (owner !== 'n0') expect(isHeldByHalf(owner, 'n0', reached)).toBe(cascades(matrix, Number(owner.slice(1))));
    }
  }
});

/** Percent of node 0 through walks of every length, one length after the other. */
function walks(matrix: readonly (readonly number[])[], owner: number): number {
  let sum = 0;
  let held = matrix[owner]!.map((pct) => pct / 100);
  for (let length = 0; length < 3_000; length++) {
    sum += held[0]! * 100;
    held = held.map((_, owned) => held.reduce((total, share, through) => total + (share * matrix[through]![owned]!) / 100, 0));
  }
  return sum;
}

function cascades(matrix: readonly (readonly number[])[], owner: number): boolean {
  const held = new Set([owner]);
  for (let round = 0; round < matrix.length; round++) {
    matrix.forEach((_, owned) => {
      if ([...held].reduce((sum, each) => sum + (each === owned ? 0 : matrix[each]![owned]!), 0) >= 50) held.add(owned);
    });
  }
  return held.has(0);
}

test('two that own all of each other have no share that walks come to', () => {
  const reached = reachedAbove(
    'a',
    world([
      ['a', 'b', 100],
      ['b', 'a', 100],
    ]),
    5,
  );
  expect(effectiveShares('a', reached)).toBeNull();
});

let store: TestStore;

beforeAll(async () => {
  store = await TestStore.open('2024-01-01');
  await store.register('Ownership', { id: 'string', owner: 'string', owned: 'string', pct: 'number' }, 'id');
  await store.register('Party', { id: 'string', name: 'string' }, 'id');
  const shares = [
    // Example 1: X has half of A, A has half of B.
    ['X', 'A', 50],
    ['A', 'B', 50],
    // Example 2: X has half of A and of D; A and D have a quarter of C each.
    ['X', 'D', 50],
    ['A', 'C', 25],
    ['D', 'C', 25],
    // 110 percent, one of unknown size.
    ['X', 'E', 60],
    ['Y', 'E', 50],
    ['Z', 'E', null],
  ];
  await store.put(
    'Ownership',
    shares.map(([owner, owned, pct], i) => ({ id: `o${i}`, owner, owned, pct })),
  );
  await store.put('Party', [{ id: 'X', name: 'X' }]);
});
afterAll(() => store.close());

const owners = async (call: string): Promise<readonly unknown[]> =>
  (await store.rows(`SELECT * FROM BENEFICIAL_OWNERSHIP_CHAIN(${call})`)).map((row) =>
    ['nodeId', 'type', 'depth', 'effective_pct', 'cascade_50'].map((column) => row[column]),
  );

test('what is held by half is blocked, whatever the product says', async () => {
  expect(await owners("'B'")).toEqual([
    ['A', null, 1n, 50, true],
    ['X', 'Party', 2n, 25, true],
  ]);
  expect(await owners("'C'")).toEqual([
    ['A', null, 1n, 25, false],
    ['D', null, 1n, 25, false],
    ['X', 'Party', 2n, 25, true],
  ]);
  expect(await owners("'C', MAX_DEPTH => 1")).toHaveLength(2);
  expect(await owners("'nobody'")).toEqual([]);
});

test('paths say each share and since when; more than all is reported, not scaled', async () => {
  const [x, y, z] = await store.rows("SELECT * FROM BENEFICIAL_OWNERSHIP_CHAIN('E')");
  expect(JSON.parse(String(x!['paths']))).toEqual([
    {
      pct: 60,
      edges: [{ owner: 'X', owned: 'E', pct: 60, valid_from: expect.stringContaining('2024-01-01'), valid_to: 'forever' }],
    },
  ]);
  expect(JSON.parse(String(y!['evidence']))).toEqual({ paths: 1, over_100: [{ owned: 'E', total_pct: 110 }] });
  expect([z!['nodeId'], z!['effective_pct'], z!['score']]).toEqual(['Z', null, null]);
});

test.each([
  ["'B', MAX_DEPTH => 0", 'MAX_DEPTH'],
  ["'B', MAX_DEPTH => 11", 'MAX_DEPTH'],
  ['MAX_DEPTH => 3', 'ENTITY'],
])('(%s) is refused', async (call, named) => {
  const refusal = await store.refusal(`BENEFICIAL_OWNERSHIP_CHAIN(${call})`);
  expect(refusal).toMatchObject({ code: 'REL_INVALID', message: expect.stringContaining(named) });
});
