/** Random statements, in transactions and one by one: what is believed afterwards is the same, of whatever time. */
import { expect, test } from 'vitest';
import { TestStore } from '../../harness.ts';
import { seedBase } from '../../runner/seed.ts';
import { Seeded } from '../../simulation/seeded.ts';
import { ann, refused, Teller } from './world.ts';

const rounds = 12;
const keys = ['a', 'b', 'c'];
const years = ['2020', '2021', '2022', '2030'];

function statement(random: Seeded, number: number): string {
  const key = random.pick(keys);
  const [from, to] = [random.below(3), 3];
  const portion = `FOR PORTION OF VALID_TIME FROM '${years[from]}-01-01' TO '${years[from + 1 + random.below(to - from)]}-01-01'`;
  switch (random.below(7)) {
    case 0:
      return `INSERT INTO T (id, n) VALUES ('${key}', ${number}) ON CONFLICT DO NOTHING`;
    case 1:
      return `INSERT INTO T (id, n) VALUES ('${key}', ${number}) ON CONFLICT (id) DO UPDATE SET n = T.n * 3 + ${number}`;
    case 2:
      return `DELETE FROM T WHERE id = '${key}'`;
    case 3:
      return `UPDATE T ${portion} SET n = ${number} WHERE id = '${key}'`;
    case 4:
      return `DELETE FROM T ${portion} WHERE id = '${key}'`;
    case 5:
      return `UPDATE T SET n = n + ${number}`;
    default:
      return `UPDATE T SET n = n * 2, m = n WHERE id = '${key}'`;
  }
}

const cameTo = (doing: Promise<unknown>): Promise<string> => refused(doing).catch(() => 'done');

test('a transaction leaves what its statements leave one by one', { timeout: 60_000 }, async () => {
  const [together, apart] = [await TestStore.open('2024-01-01'), await TestStore.open('2024-01-01')];
  try {
    for (const store of [together, apart]) {
      await store.register('T', { id: 'string', n: 'integer', m: 'integer' }, 'id');
      await store.execute(
        "INSERT INTO T (id, n, valid_from) VALUES ('a', 1, TIMESTAMP '2020-01-01'), ('b', 2, TIMESTAMP '2021-06-01')",
        [],
        ann,
      );
    }
    const random = new Seeded(seedBase);
    const instants = years.map((year) => `${year}-03-01T00:00:00Z`);
    for (let round = 1; round <= rounds; round++) {
      const now = `2024-02-01T00:${String(round).padStart(2, '0')}:00Z`;
      for (const store of [together, apart]) store.clock.set(now);
      const statements = Array.from({ length: 1 + random.below(6) }, (_, i) => statement(random, round * 10 + i));
      const teller = new Teller(together);
      for (const [i, sql] of statements.entries()) {
        if (i === 2) teller.transaction.savepoint('two');
        expect(await cameTo(teller.run(sql)), sql).toBe(await cameTo(apart.execute(sql, [], ann)));
      }
      const dropped = statement(random, 0);
      teller.transaction.savepoint('last');
      await cameTo(teller.run(dropped));
      teller.transaction.rollbackTo('last');
      await teller.commit();
      instants.push(now.replace(':00Z', ':30Z'));
      for (const store of [together, apart]) store.clock.set(instants.at(-1)!);
      for (const instant of instants) {
        const sql = `SELECT id, n, m FROM T AS OF SYSTEM TIME '${instants.at(-1)}' WHERE valid_from <= '${instant}' AND valid_to > '${instant}' ORDER BY id, n`;
        const told = `round ${round}, ${instant}: ${statements.join('; ')}`;
        expect(await together.rows(sql, ann), told).toEqual(await apart.rows(sql, ann));
      }
    }
  } finally {
    await together.close();
    await apart.close();
  }
});
