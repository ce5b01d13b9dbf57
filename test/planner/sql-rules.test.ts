/**
 * The dialect's rules where a single answer does not show them: what is recorded, paging, plans, provenance, the limits
 * of numbers. Single answers are in `queries/`, named after the same rules.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { formatInstant, parseInstant } from '../../src/log/values/timestamp.ts';
import { analyst, rowsOf, TestStore } from '../harness.ts';
import { openPeople } from './people.ts';

let store: TestStore;

beforeAll(async () => {
  store = await openPeople();
});
afterAll(async () => {
  await store.close();
});

async function auditOf(principal: string) {
  const page = await store.invoke({ ...analyst, principal }, 'audit', (invocation) => invocation.audit().entries({ limit: 100 }));
  return page.entries.filter((entry) => entry.principal === principal && entry.action === 'query');
}

describe('rule 1: PURPOSE', () => {
  test('is optional, recorded when given, and the clause counts where the door gave none', async () => {
    const caller = { ...analyst, principal: 'rule-1' };
    await store.answer('SELECT COUNT(*) FROM Person', caller);
    await store.answer("PURPOSE 'test' SELECT COUNT(*) FROM Person", caller);
    await store.answer('SELECT COUNT(*) FROM Person', caller, 'analytics');
    expect(new Set((await auditOf('rule-1')).map((entry) => entry.purpose))).toEqual(new Set(['analytics', 'test', null]));
  });

  test('an unregistered one is refused', async () => {
    expect(await store.refusal("PURPOSE 'mischief' SELECT * FROM Person")).toMatchObject({
      code: 'REL_PURPOSE_UNKNOWN',
      status: 403,
    });
  });

  test('clause and door must agree', async () => {
    const disagreeing = "PURPOSE 'test' SELECT * FROM Person LIMIT 1";
    expect((await store.refusal(disagreeing, analyst, 'analytics')).status).toBeGreaterThanOrEqual(400);
    expect((await store.answer(disagreeing, analyst, 'test')).rowCount).toBe(1);
  });

  test('the record holds the template and no literal', async () => {
    const caller = { ...analyst, principal: 'rule-1-template' };
    await store.answer("SELECT name FROM Person WHERE city = 'Secretville' AND age > 4711", caller);
    await store.refusal("SELECT nme FROM Person WHERE city = 'Secretville'", caller);
    const entries = await auditOf('rule-1-template');
    expect(entries.map((entry) => entry.template)).toContain('SELECT name FROM Person WHERE city = ?s AND age > ?i');
    expect(JSON.stringify(entries, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))).not.toMatch(
      /Secretville|4711/,
    );
  });
});

describe('rule 1: what the record keeps of quoted names', () => {
  test('nothing, unless they name something', async () => {
    const caller = { ...analyst, principal: 'rule-1-quotes' };
    expect((await store.refusal('SELECT name FROM Person WHERE city = "Secretville"', caller)).code).toBe('REL_UNKNOWN_COLUMN');
    await store.answer('SELECT "name" FROM Person', caller);
    const templates = (await auditOf('rule-1-quotes')).map((entry) => entry.template);
    expect(new Set(templates)).toEqual(new Set(['SELECT name FROM Person WHERE city = "?"', 'SELECT "name" FROM Person']));
  });
});

describe('rule 2: the edges of an interval', () => {
  test('AS OF SYSTEM TIME is inclusive at system_from and exclusive at system_to, to the nanosecond', async () => {
    const [first, second] = await store.column("SELECT system_from FROM Person WHERE id = 'b' ORDER BY system_from");
    const age = (ns: bigint) => store.column(`SELECT age FROM Person AS OF SYSTEM TIME '${formatInstant(ns)}' WHERE id = 'b'`);
    expect(await age((first as bigint) - 1n)).toEqual([]);
    expect(await age(first as bigint)).toEqual([25n]);
    expect(await age((second as bigint) - 1n)).toEqual([25n]);
    expect(await age(second as bigint)).toEqual([26n]);
  });

  test('a key read and a full read agree at every instant, those inside one write included', async () => {
    const instants = (await store.column('SELECT system_from FROM Person')) as bigint[];
    for (const ns of instants.flatMap((each) => [each - 1n, each, each + 1n])) {
      for (const id of ['a', 'b', 'c', 'e']) {
        const from = `SELECT system_from, score FROM Person AS OF SYSTEM TIME '${formatInstant(ns)}'`;
        expect(await store.rows(`${from} WHERE id = '${id}' ORDER BY system_from`)).toEqual(
          await store.rows(
            `SELECT system_from, score FROM Person WHERE id LIKE '${id}' AND system_from <= ${ns} AND system_to > ${ns} ORDER BY system_from`,
          ),
        );
      }
    }
  });

  test('a system_to is the system_from of what replaced it', async () => {
    const [old, current] = await store.rows("SELECT system_from, system_to FROM Person WHERE id = 'b' ORDER BY system_from");
    expect(old!['system_to']).toBe(current!['system_from']);
    expect(current!['system_to']).toBe(9223372036854775807n);
  });

  test('AS OF CURRENT in the future and in the past of the clock means the same as both axes at now()', async () => {
    const current = await store.rows('SELECT * FROM Person AS OF CURRENT ORDER BY system_from');
    const spelled = await store.rows(
      'SELECT * FROM Person WHERE valid_from <= now() AND valid_to > now() AND system_from <= now() AND system_to > now() ORDER BY system_from',
    );
    expect(current).toEqual(spelled);
    expect(current.length).toBe(4);
  });
});

describe('rule 4: paging', () => {
  test('LIMIT n AFTER the last system_from reaches every row once, in order', async () => {
    const all = await store.column('SELECT system_from FROM Person');
    expect(all).toEqual([...all].toSorted((a, b) => ((a as bigint) < (b as bigint) ? -1 : 1)));
    for (const size of [1, 3, 11, 100]) {
      const seen: unknown[] = [];
      let after = '';
      for (;;) {
        const answer = await store.answer(`SELECT * FROM Person LIMIT ${size}${after}`);
        seen.push(...rowsOf(answer).map((row) => row['system_from']));
        if (answer.cursor === null) break;
        expect(answer.cursor).toBe(String(seen.at(-1)));
        after = ` AFTER '${answer.cursor}'`;
      }
      expect(seen).toEqual(all);
    }
  });

  test('a cursor works although the projection leaves system_from out', async () => {
    const first = await store.answer("SELECT name FROM Person WHERE id = 'a' LIMIT 2");
    const second = await store.answer(`SELECT name FROM Person WHERE id = 'a' LIMIT 5 AFTER '${first.cursor}'`);
    expect([first.rowCount, second.rowCount]).toEqual([2, 2]);
    expect(second.columns.map(({ name }) => name)).toEqual(['name']);
  });

  test.each([
    ["SELECT * FROM Person ORDER BY age LIMIT 1 AFTER '1'", 'REL_PARSE'],
    ["SELECT DISTINCT age FROM Person LIMIT 1 AFTER '1'", 'REL_INVALID'],
    ["SELECT COUNT(*) FROM Person LIMIT 1 AFTER '1'", 'REL_INVALID'],
    ['SELECT * FROM Person LIMIT -1', 'REL_INVALID'],
    ["SELECT * FROM Person LIMIT 1 AFTER 'x'", 'REL_INVALID'],
  ])('refused: %s', async (sql, code) => expect(await store.refusal(sql)).toMatchObject({ code, status: 400 }));

  test('literals of a cached plan are checked as those of a new one', async () => {
    await store.answer('SELECT age FROM Person LIMIT 1');
    expect((await store.refusal('SELECT age FROM Person LIMIT -1')).status).toBe(400);
    await store.answer("SELECT age FROM Person LIMIT 1 AFTER '1'");
    expect((await store.refusal("SELECT age FROM Person LIMIT 1 AFTER 'one'")).status).toBe(400);
    expect((await store.refusal("SELECT age FROM Person LIMIT 1 AFTER '-1'")).status).toBe(400);
    await store.answer("SELECT age FROM Person AS OF '2024-01-01' LIMIT 1");
    expect((await store.refusal("SELECT age FROM Person AS OF '2024-01-32' LIMIT 1")).status).toBe(400);
    await store.answer("SELECT age FROM Person WHERE joined > now() - INTERVAL '1 days'");
    expect((await store.refusal("SELECT age FROM Person WHERE joined > now() - INTERVAL '1 moons'")).status).toBe(400);
  });
});

describe('rule 6: numbers keep every digit', () => {
  test('integers beyond 2^53, at the edges of 64 bits and as aggregates', async () => {
    const numbers = await TestStore.open();
    await numbers.register('N', { k: 'string', n: 'integer' }, 'k');
    const values = { low: -9223372036854775808n, high: 9223372036854775807n, odd: 9007199254740993n, even: 9007199254740992n };
    await numbers.put(
      'N',
      Object.entries(values).map(([k, n]) => ({ k, n })),
    );
    expect(await numbers.rows('SELECT k, n FROM N ORDER BY n')).toEqual(
      ['low', 'even', 'odd', 'high'].map((k) => ({ k, n: values[k as keyof typeof values] })),
    );
    for (const [k, n] of Object.entries(values)) expect(await numbers.column(`SELECT k FROM N WHERE n = ${n}`)).toEqual([k]);
    expect(await numbers.column('SELECT k FROM N WHERE n > 9007199254740992 AND n < 9223372036854775807')).toEqual(['odd']);
    expect(await numbers.column('SELECT k FROM N WHERE n BETWEEN 9007199254740993 AND 9007199254740993')).toEqual(['odd']);
    expect(await numbers.column('SELECT n - 1 AS m FROM N WHERE n = 9007199254740993')).toEqual([9007199254740992n]);
    expect(await numbers.column('SELECT MAX(n) AS m FROM N')).toEqual([values.high]);
    expect(await numbers.column("SELECT SUM(n) AS s FROM N WHERE k IN ('odd', 'even')")).toEqual([18014398509481985n]);
    await numbers.close();
  });

  test('an integer that leaves 64 bits is refused, not wrapped', async () => {
    const numbers = await TestStore.open();
    await numbers.register('N', { n: 'integer' });
    await numbers.put('N', [{ n: 9223372036854775807n }, { n: 1 }]);
    for (const sql of ['SELECT n + 1 AS x FROM N', 'SELECT SUM(n) AS x FROM N', 'SELECT n * 3 AS x FROM N']) {
      expect((await numbers.refusal(sql)).status).toBe(400);
    }
    await numbers.close();
  });
});

describe('rule 10: ALTER TABLE', () => {
  test('parses, then answers 501', async () => {
    expect(await store.refusal('ALTER TABLE Person ADD COLUMN x integer')).toMatchObject({
      code: 'REL_NOT_IMPLEMENTED',
      status: 501,
    });
  });
});

describe('rule 12: EXPLAIN', () => {
  test('returns the plan without executing', async () => {
    const answer = await store.answer("EXPLAIN SELECT name FROM Person AS OF CURRENT WHERE id = 'a' ORDER BY name");
    expect(answer.actualRows).toBe(null);
    expect(rowsOf(answer).map((row) => row['plan'])).toEqual(answer.plan!.split('\n'));
    expect(answer.plan).toMatch(/sort/);
    expect(answer.plan).toMatch(/Person/);
  });

  test('ANALYZE runs it and tells how many rows came out', async () => {
    const answer = await store.answer('EXPLAIN ANALYZE SELECT name FROM Person WHERE age > 30');
    expect(answer.actualRows).toBe(5);
    expect(answer.plan).toMatch(/scan/);
    expect(answer.processingTimeMs).toBeGreaterThanOrEqual(0);
  });

  test('POLICY tells the live decision', async () => {
    const answer = await store.answer('EXPLAIN POLICY SELECT name FROM Person');
    expect(`${answer.plan ?? ''}${JSON.stringify(rowsOf(answer))}`).toMatch(/allow/);
  });

  test('errors are those of the statement itself', async () => {
    expect((await store.refusal('EXPLAIN SELECT nme FROM Person')).code).toBe('REL_UNKNOWN_COLUMN');
    expect((await store.refusal('EXPLAIN ANALYZE DELETE FROM Person')).code).toBe('REL_READ_ONLY');
  });
});

describe('WITH PROVENANCE', () => {
  test('one entry a row, recorded when the version was', async () => {
    const answer = await store.answer("SELECT name, system_from FROM Person WHERE id = 'b' WITH PROVENANCE");
    const rows = rowsOf(answer);
    expect(answer.provenance).toHaveLength(2);
    expect(answer.provenance).toMatchObject(
      rows.map((row) => ({ source: 'harness', method: 'put', confidence: 1, recordedAt: row['system_from'] })),
    );
    expect(answer.columns.map(({ name }) => name)).toEqual(['name', 'system_from']);
  });

  test('an answer without it has none', async () =>
    expect((await store.answer('SELECT name FROM Person')).provenance).toBe(null));

  test('rows that are no versions have none to show', async () => {
    expect((await store.refusal('SELECT COUNT(*) FROM Person WITH PROVENANCE')).status).toBe(400);
  });
});

describe('answers', () => {
  test('carry their basis: the instant of the snapshot', async () => {
    const answer = await store.answer('SELECT COUNT(*) FROM Person');
    expect(answer.asOfSystem >= parseInstant('2024-06-01')).toBe(true);
  });

  test('tell how many rows match before LIMIT', async () => {
    const answer = await store.answer('SELECT name FROM Person LIMIT 2');
    expect([answer.rowCount, answer.estimatedTotalHits]).toEqual([2, 11]);
  });

  test('have unique column names', async () => {
    const names = (await store.answer('SELECT name, name, age AS name, * FROM Person LIMIT 1')).columns.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });

  test('are cut by the result cap', async () => {
    const capped = await TestStore.open('2024-01-01', { SERVICE_MAX_RESULT_ROWS: '10' });
    await capped.put(
      'T',
      Array.from({ length: 11 }, (_, n) => ({ n })),
    );
    expect(await capped.refusal('SELECT n FROM T')).toMatchObject({ code: 'REL_RESULT_CAP', status: 406 });
    expect((await capped.answer('SELECT n FROM T LIMIT 10')).rowCount).toBe(10);
    expect(await capped.column('SELECT COUNT(*) AS n FROM T')).toEqual([11n]);
    await capped.close();
  });
});

describe('a cached plan', () => {
  test('serves other literals, and their errors have their own places', async () => {
    expect(await store.column("SELECT age FROM Person AS OF CURRENT WHERE id = 'a'")).toEqual([36n]);
    expect(await store.column("SELECT age FROM Person AS OF CURRENT WHERE id = 'b'")).toEqual([26n]);
    expect(await store.column("SELECT age FROM Person AS OF CURRENT WHERE id = 'nobody'")).toEqual([]);
    const late = await store.refusal("SELECT age FROM Person WHERE joined >\n   'someday'");
    expect(late.facts).toMatchObject({ line: 2, column: 4 });
    await store.answer("SELECT age FROM Person WHERE joined > '2024-01-01'");
    expect((await store.refusal("SELECT age FROM\nPerson WHERE joined > 'someday'")).facts).toMatchObject({
      line: 2,
      column: 23,
    });
  });

  test('takes literals apart that were equal when it was made', async () => {
    const ids = (age: number, other: number) =>
      store.column(
        `SELECT id FROM Person AS OF CURRENT WHERE age = ${age} OR score > ${other} - 100 AND age = ${other} ORDER BY id`,
      );
    expect(await ids(36, 36)).toEqual(['a']);
    expect(await ids(36, 41)).toEqual(['a', 'd']);
    expect(await ids(41, 36)).toEqual(['a', 'd']);
    const grouped = (key: number, shown: number) =>
      store.refusal(`SELECT age + ${shown} AS x FROM Person GROUP BY age + ${key}`).then(
        ({ code }) => code,
        () => 'answered',
      );
    expect([await grouped(1, 1), await grouped(1, 2), await grouped(2, 2)]).toEqual(['answered', 'REL_INVALID', 'answered']);
  });

  test('sees a column that was added later', async () => {
    const growing = await TestStore.open();
    await growing.put('T', [{ a: 1 }]);
    expect((await growing.answer('SELECT * FROM T')).columns.map(({ name }) => name)).not.toContain('b');
    expect((await growing.refusal('SELECT b FROM T')).code).toBe('REL_UNKNOWN_COLUMN');
    await growing.put('T', [{ a: 2, b: 'x' }]);
    expect((await growing.answer('SELECT * FROM T')).columns.map(({ name }) => name)).toContain('b');
    expect(await growing.column('SELECT b FROM T ORDER BY a')).toEqual([null, 'x']);
    await growing.close();
  });

  test('belongs to a scope: the same text shows each organisation its own rows', async () => {
    const shared = await TestStore.open();
    const acme = { ...analyst, principal: 'acme', path: 'acme' };
    const evil = { ...analyst, principal: 'evil', path: 'acme-evil' };
    const unit = { ...analyst, principal: 'unit', path: 'acme/eu' };
    for (const caller of [acme, evil, unit, analyst]) await shared.put('T', [{ id: 'same', who: caller.principal }], caller);
    const seen = (caller: typeof analyst) => shared.column('SELECT who FROM T AS OF CURRENT ORDER BY who', caller);
    expect(await seen(acme)).toEqual(['acme', 'unit']);
    expect(await seen(unit)).toEqual(['unit']);
    expect(await seen(evil)).toEqual(['evil']);
    expect(await seen(analyst)).toEqual(['analyst']);
    await shared.close();
  });
});

test('a text beside a number is refused with the CAST that compares them', async () => {
  const refusal = await store.refusal('SELECT p.name FROM Person p JOIN Person q ON p.name = q.age');
  expect([refusal.code, refusal.message]).toEqual(['REL_TYPE_MISMATCH', expect.stringContaining('CAST(<the number> AS TEXT)')]);
  expect(await store.rows('SELECT p.name FROM Person p JOIN Person q ON p.name = CAST(q.age AS TEXT)')).toEqual([]);
});
