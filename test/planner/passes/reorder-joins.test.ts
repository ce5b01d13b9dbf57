/**
 * Joins made in another order than the written one: rows without ORDER BY come in the same order, and sums of doubles, which
 * depend on the order of addition, have the same bits. Texts, keys and figures are drawn; the tables are large enough for the
 * order to change.
 */
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import type { Cell } from '../../../src/log/values/value.ts';
import { reorderJoins } from '../../../src/planner/passes/reorder-joins.ts';
import { passes, Planner } from '../../../src/planner/planner.ts';
import { seedBase } from '../../runner/seed.ts';
import { FakeStore, type Row, tuplesOf } from '../fake-snapshot.ts';
import { Choices } from '../generator/random.ts';

const chosen = new Planner({ clock: systemClock });
const written = new Planner({ clock: systemClock, passes: passes.filter((pass) => pass !== reorderJoins) });

const statements = [
  'SELECT f.v, b.w, c.name FROM A a, B b, Fact f, C c WHERE f.a = a.id AND f.b = b.id AND f.c = c.id',
  "SELECT f.v, a.name, c.w FROM C c JOIN A a ON c.w > a.w JOIN Fact f ON f.a = a.id AND f.c = c.id WHERE a.name = 'n1'",
  "SELECT SUM(f.v * b.w), COUNT(*) FROM B b, C c, Fact f, A a WHERE f.a = a.id AND f.b = b.id AND f.c = c.id AND a.name <> 'n2'",
  "SELECT c.name, SUM(f.v), AVG(f.v + a.w) FROM A a, C c, Fact f, B b WHERE f.a = a.id AND b.id = f.b AND c.id = f.c AND b.name = 'n0' GROUP BY c.name",
  'SELECT b.name, SUM(x.v) FROM B b, A a, Fact f, Fact x WHERE f.a = a.id AND f.b = b.id AND x.b = b.id AND x.c = f.c AND a.id < 2 GROUP BY b.name',
  'SELECT f.v, a.w FROM A a, C c, Fact f WHERE f.a = a.id AND f.c = c.id AND EXISTS (SELECT 1 FROM B b WHERE b.id = f.b AND b.w > a.w) LIMIT 9',
  "SELECT t.n, COUNT(*) FROM (SELECT c.name AS n, f.v FROM B b, C c, Fact f WHERE f.b = b.id AND f.c = c.id AND c.name = 'n1') t GROUP BY t.n",
];

test('other orders of joins give the same rows and the same bits', async () => {
  const moved = new Set<string>();
  let rows = 0;
  for (let round = 0; round < 12; round++) {
    const choices = new Choices(seedBase, 0x0a_de, round);
    // Sums of these depend on the order of addition.
    const double = (): number => choices.of([0.1, 0.2, 0.3, 1e15, -1e15, 1e-9, 1 / 3]) * choices.between(1, 9);
    const key = (below: number): Cell => (choices.chance(5) ? null : BigInt(choices.below(below)));
    const side = (count: number): Row[] =>
      choices.shuffled(
        Array.from({ length: count }, (_, i) => ({
          id: BigInt(choices.chance(90) ? i : 0),
          name: `n${choices.below(3)}`,
          w: double(),
        })),
      );
    const sizes = { A: choices.between(3, 8), B: choices.between(10, 40), C: choices.between(20, 60) };
    const fact = Array.from(
      { length: 600 },
      (): Row => ({ a: key(sizes.A), b: key(sizes.B), c: key(sizes.C), v: choices.chance(5) ? null : double() }),
    );
    const columns = { id: 'integer', name: 'string', w: 'number' } as const;
    const segmentRows = choices.of([50, 128, 1_000]);
    const store = new FakeStore([
      ...Object.entries(sizes).map(([name, count]) => ({ name, properties: columns, rows: side(count) })),
      { name: 'Fact', properties: { a: 'integer', b: 'integer', c: 'integer', v: 'number' }, rows: fact, segmentRows },
    ]);
    const asked = async (planner: Planner, sql: string) => planner.query(store.invocation(), { sql });
    for (const sql of statements) {
      const [one, other] = [await asked(chosen, sql), await asked(written, sql)];
      // Object.is tells doubles apart by their bits.
      expect(tuplesOf(one), `${sql}, round ${round}`).toStrictEqual(tuplesOf(other));
      rows += one.rowCount;
      if (/number rows/.test((await asked(chosen, `EXPLAIN ${sql}`)).plan!)) moved.add(sql);
    }
  }
  expect(rows).toBeGreaterThan(1_000);
  expect(moved.size).toBeGreaterThan(3);
});
