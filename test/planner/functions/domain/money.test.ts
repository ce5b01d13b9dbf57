/** CRYPTO_TRACE, WIRE_RECONSTRUCTION, HAWALA_TRACE. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { finishSteps } from '../../../finish-steps.ts';
import { subsetOf } from '../../../../src/planner/functions/domain/money/subsets.ts';
import { taintFrom, type TaintMethod } from '../../../../src/planner/functions/domain/money/taint.ts';
import { type TransferRow, Transfers } from '../../../../src/planner/functions/domain/money/transfers.ts';
import { TestRandom, TestStore } from '../../../harness.ts';

function randomRows(bytes: Uint8Array, count: number): TransferRow[] {
  return Array.from({ length: count }, (_, i) => {
    const [from, to, amount, at, currency] = bytes.subarray(5 * i, 5 * i + 5);
    const row = {
      from: `w${from! % 8}`,
      to: `w${to! % 8}`,
      amount: 1 + (amount! % 20),
      currency: currency! % 4 === 0 ? 'B' : 'A',
    };
    return { ...row, at: BigInt(at! % 60), txid: `x${String(i).padStart(3, '0')}`, nodeId: `t${i}`, type: 'Transfer' };
  });
}

/** One transfer after the other, every account with its lots of money: [amount, tainted]. */
function traced(
  rows: readonly TransferRow[],
  seed: string,
  method: TaintMethod,
  hopsMax: number,
  amountMin: number,
): Map<string, [number, number]> {
  const lots = new Map<string, [number, number][]>();
  const hops = new Map<string, number>();
  const found = new Map<string, [number, number]>();
  const inOrder = rows.toSorted((a, b) => (a.at === b.at ? (a.txid < b.txid ? -1 : 1) : Number(a.at - b.at)));
  for (const { from, to, amount, currency, txid } of inOrder) {
    const [source, target] = [`${currency}${from}`, `${currency}${to}`];
    const held = lots.get(source) ?? [];
    const balance = held.reduce((sum, [each]) => sum + each, 0);
    const tainted = held.reduce((sum, [, each]) => sum + each, 0);
    let taint = 0;
    if (from === seed) taint = amount;
    else if (method === 'poison') taint = tainted > 0 ? amount : 0;
    else if (method === 'haircut') {
      taint = tainted * Math.min(1, amount / Math.max(balance, amount));
      lots.set(source, [[Math.max(0, balance - amount), tainted - taint]]);
    } else {
      for (let left = amount; left > 0 && held.length > 0; ) {
        const [size, dirty] = held[0]!;
        const part = Math.min(left, size);
        if (dirty > 0) taint += part;
        left -= part;
        if (part === size) held.shift();
        else held[0] = [size - part, dirty > 0 ? size - part : 0];
      }
    }
    const hop = from === seed ? 1 : (hops.get(source) ?? Infinity) + 1;
    const isFollowed = taint > 1e-9 && amount >= amountMin && hop <= hopsMax;
    if (isFollowed) {
      found.set(txid, [hop, taint]);
      if (to !== seed) hops.set(target, Math.min(hop, hops.get(target) ?? Infinity));
    }
    const given = isFollowed ? taint : 0;
    const into = lots.get(target) ?? [];
    if (method === 'fifo')
      into.push(
        ...(
          [
            [given, given],
            [amount - given, 0],
          ] as [number, number][]
        ).filter(([size]) => size > 0),
      );
    else into.push([amount, given]);
    lots.set(target, into);
  }
  return found;
}

test.each(['haircut', 'poison', 'fifo'] as const)('%s: random worlds as one transfer after the other has it', (method) => {
  for (let seed = 1; seed <= 25; seed++) {
    const rows = randomRows(new TestRandom(seed).fill(new Uint8Array(400)), 80);
    const transfers = finishSteps(Transfers.of(rows));
    const options = { method, hopsMax: 1 + (seed % 5), amountMin: seed % 3 === 0 ? 5 : 0, isBackward: false };
    const found = finishSteps(taintFrom(transfers, 'w0', options, () => undefined));
    const expected = traced(rows, 'w0', method, options.hopsMax, options.amountMin);
    const got = new Map([...found.values()].map(({ transfer, hop, tainted }) => [transfers.row(transfer).txid, [hop, tainted]]));
    expect([...got.keys()].sort()).toEqual([...expected.keys()].sort());
    for (const [txid, [hop, tainted]] of expected) {
      expect(got.get(txid)![0]).toBe(hop);
      expect(got.get(txid)![1]).toBeCloseTo(tainted, 6);
    }
    for (const { transfer, before } of found.values()) if (before >= 0) expect(before).toBeLessThan(transfer);
  }
});

test('a subset is the nearest there is; beyond twenty amounts the largest that fit', () => {
  expect(subsetOf([40, 60, 35, 64], 100, 2)).toEqual({ chosen: [0, 1], sum: 100, isExact: true });
  expect(subsetOf([50, 47], 100, 2)).toBeNull();
  expect(subsetOf([50, 50, 100], 100, 0)!.chosen).toEqual([2]);
  expect(subsetOf([5, 5, 5], 10, 0)!.chosen).toEqual([0, 1]);
  const many = Array.from({ length: 25 }, (_, i) => i + 1);
  expect(subsetOf(many, 49, 0)).toEqual({ chosen: [23, 24], sum: 49, isExact: false });
});

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
