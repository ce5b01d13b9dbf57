/** Random transactions of many clients over the relational door have no anomaly; `npm run txn` runs more of them, under kill -9. */
import { expect, test } from 'vitest';
import { StoreWorld } from '../doors/http/store-world.ts';
import { connected, relationalSecret } from '../doors/relational/relational-client.ts';
import { seedBase } from '../runner/seed.ts';
import { tell } from '../runner/tell.ts';
import { whole } from '../runner/turn.ts';
import { Seeded } from '../simulation/seeded.ts';
import { checkBalances } from './balances.ts';
import { anomalies } from './checker.ts';
import { fill, noCounts, Numbers, standing, tables, work } from './clients.ts';
import type { Transacted } from './history.ts';

const wanted = whole ? 2_000 : 800;

test(`${wanted} transactions of 8 and 16 clients`, { timeout: 300_000 }, async () => {
  const world = await StoreWorld.open({ SERVICE_BEARER_TOKEN: relationalSecret });
  try {
    const own = await connected(world);
    for (const table of tables) await own.query(table);
    await fill(own, wanted);
    const random = new Seeded(seedBase);
    const transactions: Transacted[] = [];
    const counts = noCounts();
    const numbers = new Numbers();
    let begun = 0;
    for (const [clients, until] of [
      [8, wanted / 2],
      [16, wanted],
    ] as const) {
      const parts = {
        numbers,
        counts,
        connect: () => connected(world),
        isolation: 'REPEATABLE READ',
        more: () => begun < until && ++begun > 0,
        now: () => performance.now(),
        put: (one: Transacted) => void transactions.push(one),
      };
      const each = Array.from({ length: clients }, (_, number) => ({
        ...parts,
        number,
        random: new Seeded(random.below(2 ** 31)),
      }));
      await Promise.all(each.map(work));
    }
    const problems = anomalies({ transactions, ...(await standing(own)) }).map(
      ({ phenomenon, what }) => `${phenomenon}: ${what}`,
    );
    const instants = await checkBalances(own, problems, 100);
    await own.end();
    tell(`${wanted} transactions, seed ${seedBase} (npm run txn)`);
    expect(problems).toEqual([]);
    expect(instants).toBeGreaterThan(100);
    expect(counts.committed).toBeGreaterThan(wanted / 5);
    expect(counts.conflicts).toBeGreaterThan(0);
    expect(counts.savepoints).toBeGreaterThan(0);
    expect(counts.unknown).toBe(0);
    expect(Object.fromEntries(counts.refused)).toEqual({});
  } finally {
    await world.close();
  }
});
