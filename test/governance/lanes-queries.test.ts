/**
 * Statements under row conditions and masks, over segments that kernels read: what comes out is what the same statement says
 * of the visible rows alone when somebody who sees all of them spells the condition out.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Caller } from '../../src/governance/caller.ts';
import type { Command } from '../../src/projections/command.ts';
import { analyst, TestStore } from '../harness.ts';

const rows = 140_000;
const ruled: Caller = { ...analyst, tenant: 'acme', path: 'acme', roles: ['ruled'] };
const auditor: Caller = { ...ruled, principal: 'auditor', roles: ['auditor'] };
const admin: Caller = { ...analyst, principal: 'root', credential: 'admin' };
const visible = "(n < 70 AND category <> 'c3')";

let store: TestStore;
let early: string;

beforeAll(async () => {
  store = await TestStore.open();
  await store.register(
    'T',
    { id: 'string', category: 'string', k: 'integer', n: 'integer', amount: 'number', flag: 'boolean', note: 'string' },
    'id',
  );
  const put = async (from: number, to: number, turn: number): Promise<void> => {
    store.clock.wallNs += 1_000_000_000n;
    const made = Array.from({ length: to - from }, (_, i) => {
      const k = from + i;
      return {
        id: `k${k}`,
        category: `c${k % 7}`,
        k,
        n: (k * 31 + turn) % 100,
        amount: (k % 1000) / 4,
        flag: k % 3 === 0,
        note: `note ${k} ${turn}`,
      };
    });
    await store.put('T', made, ruled);
  };
  for (let from = 0; from < rows; from += 20_000) await put(from, from + 20_000, 0);
  early = new Date(Number(store.clock.wallNs / 1_000_000n) + 500).toISOString();
  await put(0, 3_000, 1);
  await put(1_000, 9_000, 2);
  await store.delete('T', ['k20', 'k70000'], ruled);
  const installed: Command = {
    kind: 'put-policy',
    id: 'p',
    text: `permit(principal in Role::"auditor", action, resource);
      permit(principal in Role::"ruled", action, resource is T) when { resource.n < 70 && resource.category != "c3" };
      @mask("last4") forbid(principal in Role::"ruled", action == Action::"readCell", resource == Column::"T.note") when { resource.flag };
      @mask("null") forbid(principal in Role::"ruled", action == Action::"readCell", resource == Column::"T.amount") when { resource.n > 60 };`,
  };
  await store.service.gate.invoke(admin, { action: 'administer', purpose: 'test', correlationId: 'c' }, (i) =>
    i.submit(installed),
  );
}, 120_000);
afterAll(() => store.close());

/** `WHERE` stands for what the ruled caller's policy says, and nothing else. */
const statements: readonly string[] = [
  // Few rows of a segment of which nothing is known yet, then many.
  'SELECT COUNT(*) AS a, SUM(n) AS b FROM T AS OF CURRENT WHERE AND k >= 41000 AND k < 42000',
  'SELECT COUNT(*) AS a FROM T AS OF CURRENT WHERE',
  'SELECT COUNT(*) AS a, MIN(n) AS b, MAX(n) AS c, SUM(n) AS d FROM T WHERE',
  'SELECT category, COUNT(*) AS a, SUM(n) AS b FROM T AS OF CURRENT WHERE GROUP BY category ORDER BY category',
  'SELECT category, n, COUNT(*) AS a FROM T WHERE AND n >= 20 AND n < 65 GROUP BY category, n ORDER BY category, n',
  "SELECT id, n FROM T AS OF CURRENT WHERE AND category = 'c5' AND n BETWEEN 3 AND 4 ORDER BY id LIMIT 50",
  "SELECT COUNT(*) AS a, SUM(n) AS b FROM T AS OF SYSTEM TIME '@early' WHERE AND n > 10",
  "SELECT id, category, n, flag FROM T WHERE AND _pk = 'k1500' ORDER BY system_from",
  "SELECT id, n FROM T AS OF CURRENT WHERE AND _pk IN ('k0', 'k1', 'k2', 'k3', 'k4', 'k70000', 'k139999') ORDER BY id",
  'SELECT COUNT(DISTINCT n) AS a, COUNT(DISTINCT category) AS b FROM T AS OF CURRENT WHERE',
  'SELECT flag, COUNT(*) AS a FROM T AS OF CURRENT WHERE AND NOT flag GROUP BY flag',
  "SELECT COUNT(*) AS a FROM T AS OF CURRENT WHERE AND note LIKE 'note 1%' AND NOT flag",
  'SELECT id FROM T AS OF CURRENT WHERE ORDER BY n, id LIMIT 20',
];

const spelled = (sql: string, condition: string): string => {
  const at = sql.replace('@early', early);
  if (condition !== '') return at.replace('WHERE AND', `WHERE ${condition} AND`).replace(/WHERE(?! \()/, `WHERE ${condition}`);
  return at.replace('WHERE AND', 'WHERE').replace(/WHERE(?= *$| GROUP| ORDER)/, '');
};

test.each(statements.map((sql) => [sql]))('%s', async (sql) => {
  const expected = await store.rows(spelled(sql, visible), auditor);
  for (const _ of ['bits are made', 'bits are there']) expect(await store.rows(spelled(sql, ''), ruled)).toEqual(expected);
  expect(expected.length).toBeGreaterThan(0);
});

test('masked cells are no rows to a condition, NULL in an expression, and shown where they leave', async () => {
  const count = (sql: string, who: Caller): Promise<unknown> => store.column(sql, who);
  const unmasked = `${visible} AND n <= 60`;
  expect(await count('SELECT COUNT(*) AS a FROM T AS OF CURRENT WHERE amount >= 100', ruled)).toEqual(
    await count(`SELECT COUNT(*) AS a FROM T AS OF CURRENT WHERE ${unmasked} AND amount >= 100`, auditor),
  );
  expect(await count('SELECT COUNT(*) AS a FROM T AS OF CURRENT WHERE amount IS NULL', ruled)).toEqual(
    await count(`SELECT COUNT(*) AS a FROM T AS OF CURRENT WHERE ${visible} AND n > 60`, auditor),
  );
  const [shown] = await store.rows("SELECT note FROM T AS OF CURRENT WHERE _pk = 'k9000'", ruled);
  expect(shown).toEqual({ note: '*******00 0' });
  const hidden = "SELECT COUNT(*) AS a FROM T AS OF CURRENT WHERE _pk IN ('k9000', 'k9001') AND note IS NULL";
  expect(await count(hidden, ruled)).toEqual([1n]);
  const [plain] = await store.rows("SELECT note FROM T AS OF CURRENT WHERE _pk = 'k9001'", ruled);
  expect(plain).toEqual({ note: 'note 9001 0' });
});

test('what was learnt of a segment that still grows is learnt anew once it has grown', async () => {
  const counts = 'SELECT COUNT(*) AS a, SUM(n) AS b FROM T AS OF CURRENT WHERE';
  for (const [from, count] of [
    [200_000, 3],
    [200_003, 40],
    [200_043, 30_000],
    [230_043, 1],
  ] as const) {
    const more = Array.from({ length: count }, (_, i) => ({ id: `k${from + i}`, category: 'c1', k: from + i, n: i % 100 }));
    await store.put('T', more, auditor);
    const expected = await store.rows(spelled(counts, visible), auditor);
    for (const _ of ['bits are made', 'bits are there']) {
      expect(await store.rows(spelled(counts, ''), ruled)).toEqual(expected);
    }
  }
});
