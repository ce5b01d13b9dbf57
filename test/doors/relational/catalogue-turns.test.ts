/** Questions of the catalogue are worked on in turns, however much of them stands in questions within them. */
import { expect, test } from 'vitest';
import type { Facts } from '../../../src/planner/virtual/facts.ts';
import { parseSelect } from '../../../src/doors/relational/catalogue/parser.ts';
import { Parameters } from '../../../src/doors/relational/catalogue/scope.ts';
import { planQuestion } from '../../../src/doors/relational/catalogue/select.ts';
import { ServiceError } from '../../../src/errors.ts';

const facts: Facts = {
  session: { user: 'me', database: 'annals', process: 1, variables: { all: () => [], instants: 'timestamptz' } },
  tables: [],
  tableOf: () => undefined,
  tableNamed: () => undefined,
  databases: [],
};

/** Steps of the longest turn, and how many turns there were. */
function turnsOf(text: string): { readonly longest: number; readonly turns: number; readonly code: string | null } {
  const { plan, env } = planQuestion(facts, { text, select: parseSelect(text) }, new Parameters([], []));
  const run = plan.rows(null);
  let [longest, turns, began] = [0, 0, 0];
  for (;;) {
    let code: string | null = null;
    let done: boolean | undefined = false;
    try {
      ({ done } = run.next());
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      code = error.code;
    }
    turns++;
    longest = Math.max(longest, env.work.steps - began);
    began = env.work.steps;
    if (done || code !== null) return { longest, turns, code };
  }
}

const inner = 'SELECT count(*) FROM pg_type t, pg_type u WHERE t.oid > k.oid';

test.each([
  ['in what is shown', `SELECT (${inner}) FROM pg_type k`],
  ['in WHERE', `SELECT 1 FROM pg_type k WHERE (${inner}) > 0`],
  ['in WHERE over two sources', `SELECT 1 FROM pg_type k, pg_type l WHERE (${inner}) > l.oid`],
  ['in ON of an outer join', `SELECT 1 FROM pg_type k LEFT JOIN pg_type l ON (${inner}) > l.oid`],
  ['in HAVING', `SELECT k.oid FROM pg_type k GROUP BY k.oid HAVING (${inner}) > 0`],
])('a question for each row, %s', (_, sql) => {
  const { longest, turns } = turnsOf(sql);
  expect(turns).toBeGreaterThan(20);
  expect(longest).toBeLessThan(40_000);
});

/** More than a question that is answered in one go may look at. */
const wide = 'SELECT t.oid FROM pg_proc t, pg_proc u, pg_namespace n';

test.each([
  ['in WHERE', `SELECT count(*) FROM pg_type WHERE oid IN (${wide})`],
  ['in what is shown, within another', `SELECT (SELECT max(k.oid) FROM pg_type k WHERE k.oid NOT IN (${wide}))`],
  [
    'within one that reads the row',
    `SELECT (SELECT count(*) FROM pg_type u WHERE u.oid = k.oid AND u.oid IN (${wide})) FROM pg_type k`,
  ],
  [
    'that WITH names',
    `WITH w AS (SELECT DISTINCT x.oid FROM (${wide}) x) SELECT (SELECT max(w.oid) FROM w WHERE w.oid > k.oid) FROM pg_type k`,
  ],
  ['in VALUES', `VALUES ((SELECT count(*) FROM (${wide}) x))`],
])('a question that reads no row is answered in turns, %s', (_, sql) => {
  const { longest, turns, code } = turnsOf(sql);
  expect(code).toBeNull();
  expect(turns).toBeGreaterThan(30);
  expect(longest).toBeLessThan(2_048);
});

test('ORDER BY the number of no column is refused', () => {
  for (const by of ['1.2', '0', '2'])
    expect(() => turnsOf(`SELECT oid FROM pg_type ORDER BY ${by}`)).toThrow(`ORDER BY ${by}: there are 1 columns`);
});

test('one that looks at too much in one go is refused', () => {
  expect(turnsOf('SELECT (SELECT count(*) FROM pg_proc a, pg_proc b, pg_proc c)').code).toBe('REL_TOO_LARGE');
});
