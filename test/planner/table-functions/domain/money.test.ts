/** CRYPTO_TRACE, WIRE_RECONSTRUCTION, HAWALA_TRACE. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Subset, subsetOf } from '../../../../src/planner/table-functions/domain/money/subset-sums.ts';
import { finishSteps } from '../../../finish-steps.ts';
import { TestStore } from '../../../harness.ts';

test('a subset is the nearest there is; beyond twenty amounts the largest that fit', () => {
  expect(subset([40, 60, 35, 64], 100, 2)).toEqual({ chosen: [0, 1], sum: 100, isExact: true });
  expect(subset([50, 47], 100, 2)).toBeNull();
  expect(subset([50, 50, 100], 100, 0)!.chosen).toEqual([2]);
  expect(subset([5, 5, 5], 10, 0)!.chosen).toEqual([0, 1]);
  const many = Array.from({ length: 25 }, (_, i) => i + 1);
  expect(subset(many, 49, 0)).toEqual({ chosen: [23, 24], sum: 49, isExact: false });
});

function subset(amounts: readonly number[], total: number, tolerance: number): Subset | null {
  return finishSteps(subsetOf(amounts, total, tolerance));
}

let store: TestStore;

beforeAll(async () => {
  store = await TestStore.open('2024-04-01');
  const columns = {
    from: 'string',
    to: 'string',
    amount: 'number',
    currency: 'string',
    at: 'timestamp',
    txid: 'string',
  } as const;
  await store.register('Transfer', { id: 'string', ...columns }, 'id');
  const rows = [
    ['a', 'm', 60, '2024-03-01T00:00'],
    ['c', 'm', 40, '2024-03-01T01:00'],
    ['m', 'b', 50, '2024-03-01T02:00'],
    ['b', 'd', 10, '2024-02-01T00:00'],
    ['big', 'acc', 1000, '2024-03-05T00:00'],
    ['acc', 'p', 600, '2024-03-05T05:00'],
    ['acc', 'q', 390, '2024-03-06T00:00'],
    ['acc', 'q', 395, '2024-03-20T00:00'],
    ['payer', 'broker1', 500, '2024-03-10T00:00'],
    ['broker2', 'payee', 490, '2024-03-10T06:00'],
    ['broker3', 'other', 400, '2024-03-10T06:00'],
    ['broker1', 'broker2', 495, '2024-03-25T00:00'],
  ] as const;
  await store.put(
    'Transfer',
    rows.map(([from, to, amount, at], i) => ({ id: `t${i}`, from, to, amount, currency: 'EUR', at: `${at}:00Z`, txid: `x${i}` })),
  );
});
afterAll(() => store.close());

const cells = async (sql: string, ...columns: readonly string[]): Promise<readonly unknown[]> =>
  (await store.rows(`SELECT * FROM ${sql}`)).map((row) => columns.map((column) => row[column]));

test('a wallet is traced by each method, both ways, and never back in time', async () => {
  const columns = ['hop', 'nodeId', 'txid', 'tainted', 'path'];
  expect(await cells("CRYPTO_TRACE('a')", ...columns)).toEqual([
    [1n, 'm', 'x0', 60, '["a","m"]'],
    [2n, 'b', 'x2', 30, '["a","m","b"]'],
  ]);
  expect(await cells("CRYPTO_TRACE('a', METHOD => 'poison')", 'txid', 'tainted')).toContainEqual(['x2', 50]);
  expect(await cells("CRYPTO_TRACE('c', METHOD => 'fifo')", 'txid', 'tainted')).toEqual([['x1', 40]]);
  expect(await cells("CRYPTO_TRACE('a', MAX_HOPS => 1)", 'txid')).toEqual([['x0']]);
  expect(await cells("CRYPTO_TRACE('a', MIN_AMOUNT => 55)", 'txid')).toEqual([['x0']]);
  expect(await cells("CRYPTO_TRACE('b', DIRECTION => 'in')", ...columns)).toEqual([
    [1n, 'm', 'x2', 50, '["b","m"]'],
    [2n, 'a', 'x0', expect.any(Number), '["b","m","a"]'],
    [2n, 'c', 'x1', expect.any(Number), '["b","m","c"]'],
  ]);
  expect((await store.refusal("CRYPTO_TRACE('a', METHOD => 'guess')")).status).toBe(400);
});

test('a sum is found in the transfers by which it left, within the window', async () => {
  expect(await cells("WIRE_RECONSTRUCTION('acc')", 'chain', 'step', 'from', 'to', 'residual_pct', 'method')).toEqual([
    [0n, 0n, 'big', 'acc', 1, 'subsets/1'],
    [0n, 1n, 'acc', 'p', 1, 'subsets/1'],
    [0n, 2n, 'acc', 'q', 1, 'subsets/1'],
  ]);
  expect(await cells("WIRE_RECONSTRUCTION('acc', TOLERANCE_PCT => 0.5)", 'step')).toEqual([]);
  expect(await cells("WIRE_RECONSTRUCTION('acc', TOLERANCE_PCT => 0.6, WINDOW_HOURS => 500)", 'residual_pct')).toHaveLength(3);
});

test('what one broker took another paid out; a settlement behind it makes it likelier', async () => {
  const [paidIn, leg, ...others] = await store.rows("SELECT * FROM HAWALA_TRACE('payer')");
  expect(paidIn).toMatchObject({ hop: 1n, kind: 'transfer', from: 'payer', to: 'broker1', score: 1 });
  expect(leg).toMatchObject({ hop: 2n, kind: 'hawala', from: 'broker2', to: 'payee', broker: 'broker1', settled_by: 'x11' });
  expect(leg!['residual_pct']).toBeCloseTo(2, 9);
  expect(leg!['score']).toBeCloseTo(0.3 + 0.2 * 0.6 + 0.4, 9);
  expect(others).toEqual([]);
  expect(await cells("HAWALA_TRACE('payer', FEE_PCT => 1)", 'hop')).toEqual([[1n]]);
});
