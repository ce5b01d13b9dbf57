/** Transactions as their clients see them: each reads what it wrote, nobody else does, and its COMMIT stands or is refused as a whole. */
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { StoreWorld } from '../http/store-world.ts';
import { as, connected, relationalSecret, stateOf } from './relational-client.ts';

let world: StoreWorld;
let one: pg.Client;
let other: pg.Client;

beforeAll(async () => {
  world = await StoreWorld.open({ SERVICE_BEARER_TOKEN: relationalSecret });
  [one, other] = [await connected(world), await connected(world)];
  await one.query('CREATE TABLE account (id int PRIMARY KEY, owner text, balance int)');
  await one.query('CREATE TABLE owner (name text PRIMARY KEY, city text)');
  await one.query("INSERT INTO owner VALUES ('ann', 'Ghent'), ('bob', 'Bruges')");
});

beforeEach(async () => {
  for (const client of [one, other]) await client.query('ROLLBACK');
  await one.query('DELETE FROM account');
  await one.query("INSERT INTO account VALUES (1, 'ann', 100), (2, 'bob', 50)");
});

afterAll(async () => {
  await one.end();
  await other.end();
  await world.close();
});

async function rowsOf(client: pg.Client, sql: string): Promise<unknown[][]> {
  return (await client.query<unknown[]>({ text: sql, rowMode: 'array' })).rows;
}

const numbers = (count: number): string => Array.from({ length: count }, (_, n) => `(${n})`).join();

const balances = 'SELECT id, balance FROM account ORDER BY id';

describe('reading', () => {
  test('what was written is read, by every way of asking, and by nobody else before the commit', async () => {
    await one.query('BEGIN');
    await one.query('UPDATE account SET balance = balance - 30 WHERE id = 1');
    await one.query("INSERT INTO account VALUES (3, 'ann', 7)");
    await one.query('DELETE FROM account WHERE id = 2');
    expect(await rowsOf(one, balances)).toEqual([
      ['1', '70'],
      ['3', '7'],
    ]);
    expect(await rowsOf(one, 'SELECT owner, SUM(balance) FROM account GROUP BY owner')).toEqual([['ann', '77']]);
    expect(await rowsOf(one, 'SELECT a.id, o.city FROM account a JOIN owner o ON o.name = a.owner WHERE a.id = 3')).toEqual([
      ['3', 'Ghent'],
    ]);
    expect((await one.query({ text: 'SELECT balance FROM account WHERE id = $1', values: [3] })).rows).toEqual([
      { balance: '7' },
    ]);
    expect(await rowsOf(one, 'SELECT id FROM account WHERE id = 2')).toEqual([]);
    expect(await rowsOf(other, balances)).toEqual([
      ['1', '100'],
      ['2', '50'],
    ]);
    await one.query('COMMIT');
    expect(await rowsOf(other, balances)).toEqual([
      ['1', '70'],
      ['3', '7'],
    ]);
  });

  test('what others commit meanwhile is not read', async () => {
    await one.query('BEGIN');
    expect(await rowsOf(one, balances)).toHaveLength(2);
    await other.query("INSERT INTO account VALUES (9, 'eve', 1)");
    await other.query('UPDATE account SET balance = 0 WHERE id = 1');
    expect(await rowsOf(one, balances)).toEqual([
      ['1', '100'],
      ['2', '50'],
    ]);
    await one.query('COMMIT');
    expect(await rowsOf(one, balances)).toHaveLength(3);
  });

  test('RETURNING and what ON CONFLICT left are told at once, and a key that was made stays', async () => {
    await one.query('CREATE TABLE IF NOT EXISTS made (word text)');
    await one.query('BEGIN');
    expect(await rowsOf(one, "INSERT INTO account VALUES (4, 'cat', 1) RETURNING id, balance")).toEqual([['4', '1']]);
    expect((await one.query("INSERT INTO account VALUES (4, 'cat', 2) ON CONFLICT DO NOTHING")).rowCount).toBe(0);
    expect(
      await rowsOf(
        one,
        "INSERT INTO account VALUES (4, 'cat', 3) ON CONFLICT (id) DO UPDATE SET balance = account.balance + 10 RETURNING balance",
      ),
    ).toEqual([['11']]);
    const [[key]] = (await rowsOf(one, "INSERT INTO made VALUES ('x') RETURNING _pk")) as [[string]];
    await one.query('COMMIT');
    expect(await rowsOf(one, 'SELECT _pk FROM made')).toEqual([[key]]);
  });
});

describe('committing', () => {
  test.each([
    ['a row that both write', 'UPDATE account SET balance = 1 WHERE id = 1', 'UPDATE account SET balance = 2 WHERE id = 1'],
    ['a key that both add', "INSERT INTO account VALUES (5, 'x', 1)", "INSERT INTO account VALUES (5, 'y', 2)"],
    ['a row that one ends', 'UPDATE account SET balance = 1 WHERE id = 2', 'DELETE FROM account WHERE id = 2'],
  ])('%s is 40001 for the second, and nothing of it is written', async (_, sql, theirs) => {
    await one.query('BEGIN');
    await one.query(sql);
    await one.query("INSERT INTO account VALUES (6, 'never', 0)");
    await other.query(theirs);
    const stood = await rowsOf(other, balances);
    expect(await stateOf(one.query('COMMIT'))).toBe('40001');
    expect(await rowsOf(one, balances)).toEqual(stood);
  });

  test('a row is written as often as the transaction likes, and it may come and go', async () => {
    await one.query('BEGIN');
    for (let i = 0; i < 3; i++) await one.query('UPDATE account SET balance = balance * 2 WHERE id = 1');
    await one.query("INSERT INTO account VALUES (7, 'gone', 0)");
    await one.query('DELETE FROM account WHERE id = 7');
    await one.query('DELETE FROM account WHERE id = 2');
    await one.query("INSERT INTO account VALUES (2, 'back', 5)");
    await one.query('COMMIT');
    expect(await rowsOf(one, 'SELECT id, owner, balance FROM account ORDER BY id')).toEqual([
      ['1', 'ann', '800'],
      ['2', 'back', '5'],
    ]);
  });

  test('a connection that ends drops what it did not commit', async () => {
    const third = await connected(world);
    await third.query('BEGIN');
    await third.query('UPDATE account SET balance = 0');
    await third.end();
    expect(await rowsOf(one, balances)).toEqual([
      ['1', '100'],
      ['2', '50'],
    ]);
  });

  test('statements that are sent together are one transaction, and each reads those before it', async () => {
    await one.query('UPDATE account SET balance = balance + 1; UPDATE account SET balance = balance + 1 WHERE balance = 101');
    expect(await rowsOf(one, balances)).toEqual([
      ['1', '102'],
      ['2', '51'],
    ]);
  });
});

describe('WITH', () => {
  test('stands before INSERT, UPDATE and DELETE, and reads what the transaction wrote', async () => {
    await one.query('BEGIN');
    await one.query("INSERT INTO account VALUES (3, 'cat', 5)");
    const rich = 'WITH rich AS (SELECT id, balance FROM account WHERE balance >= 50)';
    expect(
      await rowsOf(one, `${rich} INSERT INTO account SELECT id + 10, 'heir', balance FROM rich RETURNING id, balance`),
    ).toEqual([
      ['11', '100'],
      ['12', '50'],
    ]);
    expect((await one.query(`${rich} UPDATE account SET balance = 0 FROM rich WHERE rich.id = account.id`)).rowCount).toBe(4);
    expect(
      (
        await one.query(
          'WITH poor AS (SELECT id FROM account WHERE balance = 0) DELETE FROM account USING poor WHERE poor.id = account.id',
        )
      ).rowCount,
    ).toBe(4);
    await one.query('COMMIT');
    expect(await rowsOf(other, balances)).toEqual([['3', '5']]);
  });

  test.each(['INSERT INTO account VALUES (7)', 'UPDATE account SET balance = 0', 'DELETE FROM account'])(
    'holds no write: %s is 0A000',
    async (write) => {
      for (const rest of ['SELECT * FROM done', 'INSERT INTO account SELECT * FROM done'])
        expect(await stateOf(one.query(`WITH done AS (${write} RETURNING *) ${rest}`))).toBe('0A000');
    },
  );
});

describe('statement_timeout', () => {
  test('cancels the statement that waits longer, in a transaction, which ROLLBACK TO goes on with', async () => {
    await other.query('SELECT pg_advisory_lock(20)');
    await one.query('BEGIN');
    await one.query('SAVEPOINT a');
    await one.query("SET LOCAL statement_timeout = '20ms'");
    expect(await stateOf(one.query('SELECT pg_advisory_lock(20)'))).toBe('57014');
    expect(await stateOf(one.query('SELECT 1'))).toBe('25P02');
    await one.query('ROLLBACK TO a');
    await one.query('SET LOCAL statement_timeout = 0');
    expect(await rowsOf(one, 'SELECT COUNT(*) FROM owner')).toEqual([['2']]);
    await one.query('COMMIT');
    expect((await one.query('SHOW statement_timeout')).rows).toEqual([{ statement_timeout: '0' }]);
    await other.query('SELECT pg_advisory_unlock_all()');
  });

  test('cancels a statement that it ends before that has come to wait', async () => {
    await other.query('SELECT pg_advisory_lock(20)');
    const { sleep } = world.service.clock;
    const early = vi.spyOn(world.service.clock, 'sleep');
    early.mockImplementation((ms, signal) => (ms === 4_321 ? Promise.resolve() : sleep(ms, signal)));
    try {
      await one.query("SET statement_timeout = '4321ms'");
      expect(await stateOf(one.query('SELECT pg_advisory_lock(20)'))).toBe('57014');
      expect(await stateOf(one.query('COPY (SELECT 1) TO STDOUT'))).toBe('57014');
    } finally {
      early.mockRestore();
    }
    await one.query('RESET statement_timeout');
    await other.query('SELECT pg_advisory_unlock_all()');
    expect(await rowsOf(one, 'SELECT 1')).toEqual([['1']]);
  });

  test('cancels a COMMIT of many rows before any of them is written', async () => {
    await one.query('BEGIN');
    await one.query('INSERT INTO account (id, balance) SELECT 1000 + n, 0 FROM (VALUES ' + numbers(5_000) + ') AS numbers (n)');
    await one.query("SET statement_timeout = '1ms'");
    expect(await stateOf(one.query('COMMIT'))).toBe('57014');
    await one.query('RESET statement_timeout');
    expect(await rowsOf(one, 'SELECT COUNT(*) FROM account')).toEqual([['2']]);
  });

  test.each([
    ['1000', '1s'],
    ["'90s'", '90s'],
    ["'2 min'", '2min'],
    ["'0.5s'", '500ms'],
    ["'60000'", '1min'],
    ['0', '0'],
  ])('%s is shown as %s', async (given, shown) => {
    await one.query(`SET statement_timeout = ${given}`);
    expect((await one.query('SHOW statement_timeout')).rows).toEqual([{ statement_timeout: shown }]);
    await one.query('RESET statement_timeout');
  });
});

describe('FOR UPDATE', () => {
  test.each([
    ['SELECT balance FROM account WHERE id = 1 FOR UPDATE', '40001'],
    ['SELECT balance AS b FROM account ORDER BY b DESC LIMIT 1 FOR NO KEY UPDATE NOWAIT', '40001'],
    ['SELECT * FROM account a JOIN owner o ON o.name = a.owner WHERE o.city = $$Ghent$$ FOR SHARE OF a', '40001'],
    ['SELECT * FROM account a JOIN owner o ON o.name = a.owner WHERE o.city = $$Ghent$$ FOR KEY SHARE OF o', 'answered'],
    ['SELECT balance FROM account WHERE id = 2 FOR UPDATE', 'answered'],
    ['SELECT balance FROM account WHERE id = 1', 'answered'],
  ])('%s: when account 1 is written meanwhile, COMMIT is %s', async (sql, state) => {
    await one.query('BEGIN');
    expect((await one.query(sql)).rowCount).toBe(1);
    await one.query("INSERT INTO owner VALUES ('new', 'Lier') ON CONFLICT DO NOTHING");
    await other.query('UPDATE account SET balance = balance + 1 WHERE id = 1');
    expect(await stateOf(one.query('COMMIT'))).toBe(state);
  });

  test('what reads no rows of tables is refused, and so is SKIP LOCKED; outside of a transaction it is a question', async () => {
    for (const sql of ['SELECT DISTINCT owner FROM account FOR UPDATE', 'SELECT id FROM account FOR UPDATE SKIP LOCKED'])
      expect(await stateOf(one.query(sql))).toBe('0A000');
    expect(await rowsOf(one, 'SELECT id FROM account WHERE id = $$1$$::int FOR UPDATE')).toEqual([['1']]);
    await one.query('BEGIN');
    expect(await stateOf(one.query('SELECT id FROM account FOR UPDATE OF nowhere'))).toBe('42P01');
  });
});

describe('savepoints and failures', () => {
  test('ROLLBACK TO takes back what came after, also what failed', async () => {
    await one.query('BEGIN');
    await one.query('UPDATE account SET balance = 1 WHERE id = 1');
    await one.query('SAVEPOINT a');
    await one.query('UPDATE account SET balance = 2 WHERE id = 1');
    await one.query('SAVEPOINT b');
    expect(await stateOf(one.query("INSERT INTO account VALUES (1, 'twice', 0)"))).toBe('23505');
    expect(await stateOf(one.query('SELECT 1'))).toBe('25P02');
    expect(await stateOf(one.query('SAVEPOINT c'))).toBe('25P02');
    await one.query('ROLLBACK TO SAVEPOINT b');
    expect(await rowsOf(one, balances)).toEqual([
      ['1', '2'],
      ['2', '50'],
    ]);
    await one.query('ROLLBACK WORK TO a');
    await one.query('RELEASE a');
    expect(await stateOf(one.query('ROLLBACK TO a'))).toBe('3B001');
    expect((await one.query('COMMIT')).command).toBe('ROLLBACK');
    expect(await stateOf(one.query('SAVEPOINT nowhere'))).toBe('25P01');
  });

  test('what is released stays', async () => {
    await one.query('BEGIN');
    await one.query('SAVEPOINT "A b"');
    await one.query('UPDATE account SET balance = 3 WHERE id = 2');
    await one.query('RELEASE SAVEPOINT "A b"');
    await one.query('COMMIT');
    expect(await rowsOf(one, balances)).toEqual([
      ['1', '100'],
      ['2', '3'],
    ]);
  });
});

describe('advisory locks', () => {
  const held = (client: pg.Client, sql: string): Promise<unknown[][]> => rowsOf(client, sql);

  test('are of one session at a time, as often as it takes them, until it frees them', async () => {
    for (const _ of [1, 2]) expect(await held(one, 'SELECT pg_advisory_lock(7)')).toEqual([['']]);
    expect(await held(other, 'SELECT pg_try_advisory_lock(7) AS got')).toEqual([[false]]);
    expect(await held(other, 'SELECT pg_try_advisory_lock(0, 7)')).toEqual([[true]]);
    const waiting = other.query({ text: 'SELECT pg_advisory_lock($1)', values: [7] });
    expect(await held(one, 'SELECT pg_advisory_unlock(7)')).toEqual([[true]]);
    expect(await held(one, 'SELECT pg_advisory_unlock(7)')).toEqual([[true]]);
    await waiting;
    expect(await held(one, 'SELECT pg_advisory_unlock(7)')).toEqual([[false]]);
    expect(await held(one, 'SELECT pg_try_advisory_lock_shared(7)')).toEqual([[false]]);
    await other.query('SELECT pg_advisory_unlock_all()');
    expect(await held(one, 'SELECT pg_try_advisory_lock_shared(7)')).toEqual([[true]]);
    expect(await held(other, 'SELECT pg_try_advisory_lock_shared(7)')).toEqual([[true]]);
    await one.query('DISCARD ALL');
    await other.query('SELECT pg_advisory_unlock_shared(7)');
    expect(await held(one, 'SELECT pg_try_advisory_lock(7)')).toEqual([[true]]);
    await one.query('SELECT pg_advisory_unlock_all()');
  });

  test('of a transaction end with it, and those of a connection with that', async () => {
    await one.query('BEGIN');
    await one.query('SELECT pg_advisory_xact_lock(8)');
    const third = await connected(world);
    await third.query('SELECT pg_advisory_lock(9)');
    expect(await held(other, 'SELECT pg_try_advisory_xact_lock(8)')).toEqual([[false]]);
    const waiting = [other.query('SELECT pg_advisory_lock(8)'), other.query('SELECT pg_advisory_lock(9)')];
    await one.query('COMMIT');
    await waiting[0];
    await third.end();
    await waiting[1];
    await other.query('SELECT pg_advisory_unlock_all()');
  });

  test('that two sessions wait for, each for one of the other, are refused to one of the two', async () => {
    await one.query('SELECT pg_advisory_lock(11)');
    await other.query('SELECT pg_advisory_lock(12)');
    const asks = [one.query('SELECT pg_advisory_lock(12)'), other.query('SELECT pg_advisory_lock(11)')];
    const [refused, state] = await Promise.race(asks.map(async (ask, i) => [i, await stateOf(ask)] as const));
    expect(state).toBe('40P01');
    await [one, other][refused]!.query('SELECT pg_advisory_unlock_all()');
    await asks[1 - refused];
    for (const client of [one, other]) await client.query('SELECT pg_advisory_unlock_all()');
  });

  test('of one tenant are none of another', async () => {
    await one.query('SELECT pg_advisory_lock(10)');
    await as(world, 'acme', async (theirs) => {
      expect(await held(theirs, 'SELECT pg_try_advisory_lock(10)')).toEqual([[true]]);
    });
    await one.query('SELECT pg_advisory_unlock_all()');
    expect(await stateOf(one.query('SELECT pg_advisory_lock(1, 4294967296)'))).toBe('22003');
  });
});

test('TRUNCATE ends all rows of its tables or of none, in a transaction too', async () => {
  await one.query('BEGIN');
  await one.query('TRUNCATE TABLE account, ONLY owner RESTART IDENTITY CASCADE');
  expect(await rowsOf(one, 'SELECT * FROM account')).toEqual([]);
  await one.query('ROLLBACK');
  expect(await stateOf(one.query('TRUNCATE account, nowhere'))).toBe('42P01');
  expect(await rowsOf(one, balances)).toHaveLength(2);
  expect((await one.query('TRUNCATE account')).command).toBe('TRUNCATE');
  expect(await rowsOf(one, balances)).toEqual([]);
});

test('a statement of a transaction writes more rows than a batch has, all or none of them', async () => {
  await one.query('CREATE TABLE many (id int PRIMARY KEY, n int)');
  await one.query('BEGIN');
  const values = Array.from({ length: 3000 }, (_, i) => `(${i + 1}, ${i + 1})`).join();
  await one.query(`INSERT INTO many VALUES ${values}`);
  for (const _ of [1, 2])
    await one.query('INSERT INTO many SELECT id + (SELECT MAX(id) FROM many), n FROM many WHERE id <= 3000');
  expect((await one.query('UPDATE many SET n = n + 1')).rowCount).toBe(9000);
  await one.query('SAVEPOINT s');
  // The last of them meets a key that is there.
  expect(
    await stateOf(one.query('INSERT INTO many SELECT 9001 - id * 2 + CASE WHEN id > 4500 THEN 20000 ELSE 0 END, 0 FROM many')),
  ).toBe('23505');
  await one.query('ROLLBACK TO s');
  expect(await rowsOf(one, 'SELECT COUNT(*), SUM(n) FROM many')).toEqual([['9000', '13513500']]);
  await one.query('COMMIT');
  expect(await rowsOf(other, 'SELECT COUNT(*), SUM(n) FROM many')).toEqual([['9000', '13513500']]);
});

test.each(['READ UNCOMMITTED', 'READ COMMITTED', 'REPEATABLE READ'])('%s is told as repeatable read', async (level) => {
  await one.query(`BEGIN ISOLATION LEVEL ${level}`);
  expect((await one.query('SHOW transaction_isolation')).rows).toEqual([{ transaction_isolation: 'repeatable read' }]);
  await one.query('COMMIT');
});
