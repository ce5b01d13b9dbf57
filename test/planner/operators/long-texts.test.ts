/** A batch is work for one turn: long texts and wide rows come in smaller ones, and none is lost. */
import { describe, expect, test } from 'vitest';
import { Planner } from '../../../src/planner/planner.ts';
import { analyst, rowsOf, TestStore } from '../../harness.ts';

describe('blocks of long texts', () => {
  test.each(['', ' WHERE n % 3 = 0', ' AS OF CURRENT'])('come in pieces: SELECT … %s', async (tail) => {
    const store = await TestStore.open();
    const rows = Array.from({ length: 120 }, (_, n) => ({
      id: `r${n}`,
      n,
      few: `${'f'.repeat(20_000)}${n % 3}`,
      many: `${'m'.repeat(10_000)}${n}`,
      none: n % 5 === 0 ? null : 'short',
    }));
    await store.put('Long', rows);
    // Some are superseded: what is current is a selection of what is stored.
    const current = tail.includes('CURRENT');
    if (current) for (const row of rows.filter(({ n }) => n % 4 === 0)) await store.put('Long', [row]);
    let turns = 0;
    let ms = 0;
    // A clock on which every look is a turn apart: yields are counted, one a batch.
    const clock = { now: store.clock.now, sleep: store.clock.sleep, monotonicMs: () => (ms += 2) };
    const planner = new Planner({
      clock,
      limits: { timeoutMs: 1e9 },
      yieldTurn: () => Promise.resolve(turns++).then(() => undefined),
    });
    const sql = `SELECT n, few, many, none FROM Long${tail}`;
    const answer = await store.invoke(analyst, 'query', (invocation) => planner.query(invocation, { sql }));
    const wanted = rows.filter(({ n }) => !tail.includes('WHERE') || n % 3 === 0);
    expect(rowsOf(answer).toSorted((a, b) => Number(a['n']! as bigint) - Number(b['n']! as bigint))).toEqual(
      wanted.map(({ n, few, many, none }) => ({ n: BigInt(n), few, many, none })),
    );
    expect(turns).toBeGreaterThan(15);
    await store.close();
  });
});
