/** BENEFICIAL_OWNERSHIP_CHAIN: examples of OFAC's question 401, cycles, paths. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { effectiveShares, reachedAbove, type Share } from '../../../../src/planner/table-functions/domain/ownership-graph.ts';
import { TestStore } from '../../../harness.ts';

function world(edges: readonly (readonly [string, string, number])[]): ReadonlyMap<string, readonly Share[]> {
  const shares = edges.map(([owner, owned, pct]): Share => ({ owner, owned, pct, validFrom: null, validTo: null }));
  return new Map(shares.map(({ owned }) => [owned, shares.filter((each) => each.owned === owned)]));
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
