/** Operators of PostgreSQL's jsonb: every door of the wide dialect takes them, the others refuse them by their names. */
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { ServiceError } from '../../../src/errors.ts';
import { Planner } from '../../../src/planner/planner.ts';
import { rowsOf } from '../../harness.ts';
import { FakeStore } from '../fake-snapshot.ts';

const store = new FakeStore([{ name: 'Note', properties: { id: 'string', more: 'json' }, primaryKey: 'id', rows: [] }]);
const planner = new Planner({ clock: systemClock });
const json = `CAST('{"a": [1, 2], "b": null}' AS JSON)`;

const answered = async (expression: string, dialect: 'spec' | 'wide'): Promise<unknown> =>
  rowsOf(await planner.query(store.invocation(), { sql: `SELECT ${expression} AS x`, dialect }))[0]!['x'];

const refusalOf = async (expression: string, dialect: 'spec' | 'wide'): Promise<unknown> =>
  answered(expression, dialect).then(
    () => 'answered',
    (error: unknown) => (error instanceof ServiceError ? [error.code, error.message] : error),
  );

test.each([
  [`${json} ? 'a'`, '?', true],
  [`${json} ? 'c'`, '?', false],
  [`${json} ?| ARRAY['c', 'b']`, '?|', true],
  [`${json} ?& ARRAY['a', 'c']`, '?&', false],
  [`${json} @> CAST('{"a": [2]}' AS JSON)`, '@>', true],
  [`CAST('[1]' AS JSON) <@ CAST('[2, 1]' AS JSON)`, '<@', true],
] as const)('%s', async (expression, name, expected) => {
  expect(await answered(expression, 'wide')).toBe(expected);
  // The dialect of the specification has no ARRAY[…].
  const own = expression.replace(/ARRAY.*/, "'{a}'");
  const [code, message] = (await refusalOf(own, 'spec')) as [string, string];
  expect(code).toBe('REL_NOT_IMPLEMENTED');
  expect(message).toContain(`the operator ${name} is of the wide dialect`);
});

test('on the wide dialect, operands that no such operator takes are named by their types', async () => {
  const [code, message] = (await refusalOf("1 ? 'a'", 'wide')) as [string, string];
  expect([code, message]).toEqual(['REL_NOT_IMPLEMENTED', expect.stringMatching(/there is no operator \? for int\d and /)]);
});
