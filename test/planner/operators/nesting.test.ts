/** Nesting an operand must not multiply it: what is written forty levels deep compiles and runs at once. */
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { ServiceError } from '../../../src/errors.ts';
import { Planner } from '../../../src/planner/planner.ts';
import { FakeStore, tuplesOf } from '../fake-snapshot.ts';

const planner = new Planner({ clock: systemClock });
const store = new FakeStore([{ name: 'T', properties: { n: 'integer', t: 'string' }, rows: [{ n: 3n, t: 'a' }] }]);

function nested(depth: number, start: string, wrap: (inner: string) => string): string {
  let text = start;
  for (let i = 0; i < depth; i++) text = wrap(text);
  return text;
}

const shapes: [string, string, (inner: string) => string][] = [
  ['IS NULL', 'n > 1', (inner) => `((${inner}) IS NULL)`],
  ['BETWEEN', 'n', (inner) => `CASE WHEN ${inner} BETWEEN 1 AND 5 THEN 3 ELSE 4 END`],
  ['IN', 'n', (inner) => `CASE WHEN ${inner} IN (1, 2, 3, 4, 5) THEN 3 ELSE 4 END`],
  ['CASE with an operand', 'n', (inner) => `CASE ${inner} WHEN 1 THEN 2 WHEN 2 THEN 3 WHEN 3 THEN 4 ELSE 1 END`],
  ['CASE of text', 't', (inner) => `CASE WHEN ${inner} < 'b' THEN 'a' ELSE t END`],
  ['CASE of conditions', 'n > 1', (inner) => `CASE WHEN n > 2 THEN ${inner} ELSE n < 2 END`],
  ['NOT and OR', 'n > 1', (inner) => `NOT (${inner} OR n IS NULL)`],
];

test.each(shapes)('%s', async (_, start, wrap) => {
  const answer = await planner.query(store.invocation(), { sql: `SELECT ${nested(12, start, wrap)} AS x FROM T` });
  expect(tuplesOf(answer)).toHaveLength(1);
});

test('a condition of thousands of terms is answered or refused, never a crash', async () => {
  const sql = `SELECT n FROM T WHERE ${Array.from({ length: 5_000 }, (_, i) => `n = ${i}`).join(' OR ')}`;
  try {
    expect(tuplesOf(await planner.query(store.invocation(), { sql }))).toEqual([[3n]]);
  } catch (error) {
    expect(error).toBeInstanceOf(ServiceError);
  }
});
