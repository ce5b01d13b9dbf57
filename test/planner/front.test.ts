/** How questions come in: as text with values beside it, as a parsed statement, described, several on one snapshot. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Caller } from '../../src/governance/caller.ts';
import type { AccessRecord } from '../../src/log/entries/entry.ts';
import type { ColumnType } from '../../src/log/values/value.ts';
import { parseStatement } from '../../src/planner/languages/sql-parser.ts';
import type { Answer, QuerySeries, QueryOptions } from '../../src/planner/planner-contract.ts';
import type { Literal, ParsedQuery } from '../../src/planner/syntax/statement.ts';
import { analyst, rowsOf, type TestStore } from '../harness.ts';
import { openPeople } from './people.ts';

let store: TestStore;
beforeAll(async () => {
  store = await openPeople();
});
afterAll(() => store.close());

const purpose = 'test';

function invoke<T>(
  run: (invocation: Parameters<Parameters<TestStore['invoke']>[2]>[0]) => Promise<T>,
  who: Caller = analyst,
): Promise<T> {
  return store.invoke(who, 'query', run);
}

const ask = (request: Parameters<QuerySeries['query']>[0]): Promise<Answer> =>
  invoke((invocation) => store.service.planner.query(invocation, request));

const askText = (sql: string, parameters: readonly Literal[], more: QueryOptions = {}): Promise<Answer> =>
  ask({ sql, parameters, ...more });

async function records(count: number): Promise<readonly AccessRecord[]> {
  const entries: AccessRecord[] = [];
  const all = { since: 0n, until: 2n ** 62n };
  await store.invoke(analyst, 'audit', async (invocation) => {
    for await (const record of invocation.audit().all(all)) if (record.action === 'query') entries.push(record);
  });
  return entries.slice(-count);
}

describe('values beside a text', () => {
  test('stand where $1 does, and are never part of the text', async () => {
    const sql = 'SELECT name FROM Person AS OF CURRENT WHERE city = $2 AND age >= $1 AND city = $2 ORDER BY name LIMIT $3';
    expect(rowsOf(await askText(sql, [20n, 'Lyon', 5n]))).toEqual([{ name: 'Bob' }]);
    expect(rowsOf(await askText(sql, [20n, "x' OR 1 = 1", 5n]))).toEqual([]);
    const [record] = await records(1);
    expect(record!.template).toBe(
      'SELECT name FROM Person AS OF CURRENT WHERE city = ?s AND age >= ?i AND city = ?s ORDER BY name LIMIT ?i',
    );
  });

  test('are of the type that they have: the plan is that of the literal', async () => {
    const found = async (value: Literal): Promise<number> =>
      (await askText('SELECT name FROM Person AS OF CURRENT WHERE age > $1', [value])).rowCount;
    expect(await found(25n)).toBe(await found(25.5));
    expect(await found(null)).toBe(0);
    await expect(found('25')).rejects.toMatchObject({ code: 'REL_TYPE_MISMATCH' });
  });

  test('are all there, and all used; errors point into the text', async () => {
    const one = 'SELECT name FROM Person\n WHERE age > $1';
    await expect(askText(one, [])).rejects.toMatchObject({ code: 'REL_PARSE', message: expect.stringContaining('2:14') });
    await expect(askText(one, [1n, 2n])).rejects.toMatchObject({ code: 'REL_INVALID' });
    await expect(askText(one, ['\ud800'])).rejects.toMatchObject({ code: 'REL_PARSE' });
    await expect(askText(one, [2n ** 63n])).rejects.toMatchObject({ code: 'REL_PARSE' });
    await expect(ask({ sql: one })).rejects.toMatchObject({ code: 'REL_PARSE' });
    const limit = askText('SELECT name FROM Person\nLIMIT $1', [-1n]);
    await expect(limit).rejects.toMatchObject({ code: 'REL_INVALID', message: expect.stringContaining('2:7') });
  });

  test('are in nothing that is kept as it was written', async () => {
    const view = askText('CREATE MATERIALIZED VIEW Grown AS SELECT name FROM Person WHERE age > $1', [17n]);
    await expect(view).rejects.toMatchObject({ code: 'REL_INVALID', message: expect.stringContaining('$1') });
  });
});

describe('a parsed statement', () => {
  const parsed = (sql: string, language = 'other', more: Partial<ParsedQuery> = {}): ParsedQuery => ({
    ...parseStatement(sql),
    language,
    locationOf: () => ({ line: 7, column: 3 }),
    ...more,
  });

  test('is answered as the text is, and recorded in its own words', async () => {
    const sql = "SELECT name FROM Person AS OF CURRENT WHERE city = 'Lyon'";
    const asked = await ask({ parsed: parsed(sql, 'other', { template: 'people of ?' }) });
    expect(rowsOf(asked)).toEqual(rowsOf(await ask({ sql })));
    const [record] = await records(2);
    expect(record).toMatchObject({ template: 'people of ?', objectType: 'Person' });
    expect(record!.literalDigest).not.toBeNull();
  });

  test('of another language shares no tree and no plan with it, whatever its template', async () => {
    const template = 'the same';
    const of = (sql: string, language: string) => ask({ parsed: parsed(sql, language, { template }) });
    expect((await of('SELECT name FROM Person', 'a')).columns).toMatchObject([{ name: 'name' }]);
    expect((await of('SELECT age FROM Person', 'b')).columns).toMatchObject([{ name: 'age' }]);
    // Types of parameters are part of what a plan is of, also where a template does not tell them.
    const older = (value: Literal) => parsed('SELECT name FROM Person WHERE age > 1', 'c', { template, parameters: [value] });
    expect((await ask({ parsed: older(30n) })).rowCount).toBeGreaterThan(0);
    await expect(ask({ parsed: older('30') })).rejects.toMatchObject({ code: 'REL_TYPE_MISMATCH' });
  });

  test('has places of its own for what is wrong with a value', async () => {
    const wrong = ask({ parsed: parsed("SELECT name FROM Person AS OF 'yesterday'") });
    await expect(wrong).rejects.toMatchObject({ message: expect.stringContaining('7:3') });
  });
});

describe('the default time', () => {
  const names = async (more: QueryOptions, sql = 'SELECT name, age FROM Person'): Promise<number> =>
    (await ask({ sql, ...more })).rowCount;
  const ns = (day: string): bigint => BigInt(Date.parse(day)) * 1_000_000n;

  test('holds for a question without AS OF, which stands for itself', async () => {
    const every = await names({});
    expect(await names({ time: 'all' })).toBe(every);
    const current = await names({}, 'SELECT name, age FROM Person AS OF CURRENT');
    expect(current).toBeLessThan(every);
    expect(await names({ time: 'current' })).toBe(current);
    const [valid, system] = [ns('2024-01-15'), ns('2024-03-15')];
    const of = (clause: string): Promise<number> => names({}, `SELECT name, age FROM Person AS OF ${clause}`);
    expect(await names({ time: { valid } })).toBe(await of("'2024-01-15T00:00:00Z'"));
    expect(await names({ time: { system } })).toBe(await of("SYSTEM TIME '2024-03-15T00:00:00Z'"));
    expect(await names({ time: { valid, system } })).toBeLessThanOrEqual(await names({ time: { system } }));
    expect(await names({ time: 'current' }, "SELECT name, age FROM Person AS OF '2024-01-15T00:00:00Z'")).toBe(
      await of("'2024-01-15T00:00:00Z'"),
    );
  });

  test('is no part of the plan, and EXPLAIN tells of it', async () => {
    const plan = async (more: QueryOptions) => (await ask({ sql: 'EXPLAIN SELECT name FROM Person', ...more })).plan;
    expect(await plan({})).not.toContain('valid at');
    expect(await plan({ time: 'current' })).toContain('known at 2024-06-01');
    expect(await plan({ time: { valid: ns('2024-02-02') } })).toContain('valid at 2024-02-02');
    expect(await plan({})).not.toContain('valid at');
  });
});

describe('a description', () => {
  const described = (sql: string, parameterTypes: readonly (ColumnType | null)[] = []) =>
    invoke((invocation) => store.service.planner.describe(invocation, { sql, parameterTypes }));

  test('tells columns and types of values, and reads no row', async () => {
    const told = await described(
      'SELECT name, COUNT(*) AS n FROM Person WHERE age > $1 AND score BETWEEN $2 AND 7 AND city IN ($3) AND joined < $4 ' +
        'AND active = $5 AND name LIKE $6 GROUP BY name LIMIT $7',
    );
    expect(told.columns).toEqual([
      { name: 'name', type: 'string' },
      { name: 'n', type: 'integer' },
    ]);
    expect(told.parameters).toEqual(['integer', 'number', 'string', 'timestamp', 'boolean', 'string', 'integer']);
    const [record] = await records(1);
    expect(record).toMatchObject({ rowCount: 0, objectType: 'Person', decision: 'allow' });
  });

  test('keeps to the types that are stated, and takes text for what nothing tells', async () => {
    const told = await described('SELECT name FROM Person WHERE age > $2 AND name = $1 OR $3 = $4', [null, 'number']);
    expect(told.parameters).toEqual(['string', 'number', 'string', 'string']);
  });

  test('is of questions: nothing else has columns before it runs', async () => {
    expect((await described('EXPLAIN SELECT name FROM Person WHERE age = $1')).columns).toEqual([
      { name: 'plan', type: 'string' },
    ]);
    await expect(described('BRANCH b FROM main')).rejects.toMatchObject({ code: 'REL_INVALID' });
    await expect(described('SELECT nope FROM Person')).rejects.toMatchObject({ code: 'REL_UNKNOWN_COLUMN' });
  });
});

describe('a session', () => {
  const count = 'SELECT COUNT(*) AS n FROM Person';

  test('asks on one snapshot, whatever is written meanwhile', async () => {
    const [before, after, later] = await invoke(async (invocation) => {
      const session = store.service.planner.querySeries(invocation);
      const first = await session.query({ sql: count });
      await store.put('Person', [{ id: 'new', name: 'Nora', age: 50 }]);
      const second = await session.query({ sql: count });
      const own = await ask({ sql: count });
      expect(session.overtaken()).toBe(false);
      return [first, second, own];
    });
    expect(rowsOf(after!)).toEqual(rowsOf(before!));
    expect(after!.asOfSystem).toBe(before!.asOfSystem);
    expect(rowsOf(later!)).not.toEqual(rowsOf(before!));
  });

  test('leaves one record, which lists its questions', async () => {
    await invoke(async (invocation) => {
      const session = store.service.planner.querySeries(invocation);
      await session.query({ sql: "SELECT name FROM Person AS OF CURRENT WHERE city = 'Lyon'" });
      await session.query({ sql: 'SELECT age FROM Person AS OF CURRENT' });
      await session.query({ sql: 'SELECT nope FROM Person' }).catch(() => undefined);
    });
    const [record] = await records(1);
    expect(record).toMatchObject({ template: null, literalDigest: null, objectType: 'Person', costUnits: 2, decision: 'allow' });
    expect(record!.rowCount).toBe(record!.statements!.reduce((sum, { rowCount }) => sum + rowCount, 0));
    expect(record!.statements).toMatchObject([
      { template: 'SELECT name FROM Person AS OF CURRENT WHERE city = ?s', objectType: 'Person', rowCount: 1 },
      { template: 'SELECT age FROM Person AS OF CURRENT', literalDigest: null, objectType: 'Person' },
      { template: 'SELECT nope FROM Person', rowCount: 0 },
    ]);
    expect(record!.statements![0]!.literalDigest).toMatch(/^[0-9a-f]{64}$/);
  });

  test('of one question is recorded as that question; of a verb, by the verb with its questions below', async () => {
    await ask({ sql: count });
    await invoke((invocation) =>
      store.service.planner.querySeries(invocation, { template: 'recall ?', literals: ['x'] }).query({ sql: count }),
    );
    const [plain, verb] = await records(2);
    expect(plain).toMatchObject({ template: count, rowCount: 1 });
    expect(plain!.statements).toBeUndefined();
    expect(verb).toMatchObject({ template: 'recall ?', rowCount: 1, statements: [{ template: count, rowCount: 1 }] });
    expect(verb!.literalDigest).not.toBeNull();
  });

  test('has one purpose, and takes statements that are no questions alone', async () => {
    const refusal = (first: string, second: string) =>
      invoke(async (invocation) => {
        const session = store.service.planner.querySeries(invocation);
        await session.query({ sql: first });
        await session.query({ sql: second });
      }).then(
        () => null,
        (error: { code: string }) => error.code,
      );
    expect(await refusal(`PURPOSE '${purpose}' ${count}`, `PURPOSE '${purpose}' ${count}`)).toBeNull();
    expect(await refusal(count, `PURPOSE 'analytics' ${count}`)).toBe('REL_INVALID');
    expect(await refusal(count, 'BRANCH beside FROM main')).toBe('REL_INVALID');
    expect(await refusal('BRANCH alone FROM main', count)).toBe('REL_INVALID');
  });

  test('explains, pages and traces as a question does by itself', async () => {
    const page = 'SELECT name FROM Person LIMIT 2';
    const [alone, inside] = await invoke(async (invocation) => {
      const session = store.service.planner.querySeries(invocation);
      const of = async (sql: string) => {
        const { processingTimeMs: _, overtaken: __, ...answer } = await session.query({ sql });
        return { ...answer, rows: rowsOf({ ...answer } as Answer) };
      };
      const first = await of(page);
      const next = await of(`SELECT name FROM Person LIMIT 2 AFTER '${first.nextCursor}'`);
      expect(next.rows).toHaveLength(2);
      expect(next.rows).not.toEqual(first.rows);
      const traced = await of('SELECT name FROM Person LIMIT 1 WITH PROVENANCE');
      expect(traced.provenance).toHaveLength(1);
      const explained = await of(`EXPLAIN ANALYZE ${page}`);
      const other = await ask({ sql: `EXPLAIN ANALYZE ${page}` });
      return [other.plan, explained.plan];
    });
    expect(inside).toBe(alone);
  });
});
