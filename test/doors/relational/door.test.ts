/** The relational door by the client that most people use: one server, everything asked through `pg`. */
import { connect } from 'node:net';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { StoreWorld } from '../http/store-world.ts';
import { cellsOf, framed } from './frames.ts';
import { bind, describe as describeMessage, execute, flush, parse, RawClient, simple, sync } from './raw-client.ts';
import { as, connected, relationalSecret, stateOf } from './relational-client.ts';

let world: StoreWorld;
let client: pg.Client;

beforeAll(async () => {
  world = await StoreWorld.open({ SERVICE_BEARER_TOKEN: relationalSecret });
  await world.call('POST', '/types', {
    name: 'Item',
    properties: { sku: 'string', n: 'integer', price: 'number', good: 'boolean', at: 'timestamp', more: 'json' },
    primary_key: 'sku',
  });
  client = await connected(world);
});

afterAll(async () => {
  await client.end();
  await world.close();
});

describe('simple and extended', () => {
  test('rows that were written are read, whoever asks', async () => {
    const inserted = await client.query(
      "INSERT INTO Item (sku, n, price, good, at, more) VALUES ('a', 1, 1.5, true, '2024-05-01T10:00:00.123456789Z', '{\"x\": [1]}')",
    );
    expect([inserted.command, inserted.rowCount]).toEqual(['INSERT', 1]);
    const simple = await client.query('SELECT sku, n, price, good, at, more FROM Item');
    const extended = await client.query('SELECT sku, n, price, good, at, more FROM Item WHERE sku = $1 AND n = $2', ['a', 1]);
    const row = { sku: 'a', n: '1', price: 1.5, good: true, at: new Date('2024-05-01T10:00:00.123Z'), more: { x: [1] } };
    expect(simple.rows).toEqual([row]);
    expect(extended.rows).toEqual([row]);
    expect(simple.fields.map(({ dataTypeID }) => dataTypeID)).toEqual([25, 20, 701, 16, 1184, 3802]);
    expect(await world.rows("SELECT n FROM Item WHERE sku = 'a' AND price > 1")).toEqual([{ n: 1 }]);
  });
});

describe('the extended protocol', () => {
  test('prepared by name, values in text or NULL, of types that are found out', async () => {
    for (const n of [2, 3]) {
      const { rowCount } = await client.query({
        name: 'put',
        text: 'INSERT INTO Item (sku, n, price, at) VALUES ($1, $2, $3, $4)',
        values: [`p${n}`, n, null, new Date('2024-05-01T00:00:00Z')],
      });
      expect(rowCount).toBe(1);
    }
    const found = await client.query('SELECT sku, price, at FROM Item WHERE n >= $1 AND at = $2 ORDER BY sku', [
      '2',
      '2024-05-01',
    ]);
    expect(found.rows).toEqual(['p2', 'p3'].map((sku) => ({ sku, price: null, at: new Date('2024-05-01T00:00:00Z') })));
    const returned = await client.query("UPDATE Item SET n = n + $1 WHERE sku = 'p2' RETURNING sku, n", [10]);
    expect([returned.rows, returned.rowCount]).toEqual([[{ sku: 'p2', n: '12' }], 1]);
    expect((await client.query('DELETE FROM Item WHERE sku = $1', ['p3'])).rowCount).toBe(1);
  });

  test('an error is followed by nothing until Sync, and the connection goes on', async () => {
    expect(await stateOf(client.query('SELECT nope FROM Item WHERE n = $1', [1]))).toBe('42703');
    expect(await stateOf(client.query('SELECT n FROM Item WHERE n = $1', ['seven']))).toBe('22P02');
    expect((await client.query('SELECT 1 AS one WHERE 1 = $1', [1])).rows).toEqual([{ one: '1' }]);
  });
});

test('a materialized view is answered by its tag, by either protocol', async () => {
  const told = async (sql: string | pg.QueryConfig): Promise<unknown> => {
    const { rows, fields, command } = await client.query(sql);
    return [command, rows, fields];
  };
  expect(await told('CREATE MATERIALIZED VIEW skus AS SELECT sku FROM Item')).toEqual(['CREATE', [], []]);
  expect(await told('DROP MATERIALIZED VIEW skus')).toEqual(['DROP', [], []]);
  expect(await told({ name: 'v', text: 'CREATE MATERIALIZED VIEW skus AS SELECT sku FROM Item' })).toEqual(['CREATE', [], []]);
  expect((await client.query('SELECT sku FROM skus')).fields).toHaveLength(1);
  await client.query('DROP MATERIALIZED VIEW skus');
});

test('CALL … .write writes scores into one column, /query refuses it and names this door', async () => {
  const id = { id: 'string' };
  await world.call('POST', '/types', { name: 'Town', properties: { ...id, rank: 'number', name: 'string' }, primary_key: 'id' });
  await world.call('POST', '/types', {
    name: 'Road',
    properties: { ...id, from_id: 'string', to_id: 'string' },
    primary_key: 'id',
  });
  await client.query("INSERT INTO Town (id, name) VALUES ('a', 'A'), ('b', 'B'), ('c', 'C')");
  await client.query("INSERT INTO Road (id, from_id, to_id) VALUES ('ab', 'a', 'b'), ('cb', 'c', 'b')");
  const write = "CALL gds.pageRank.write('Town', 'Road', {writeProperty: 'rank'})";
  const { command, rows } = await client.query(write);
  expect([command, rows]).toEqual(['CALL', [{ rowsWritten: '3' }]]);
  const streamed = await client.query({ name: 'ranks', text: "CALL gds.pageRank.stream('Town', 'Road')" });
  const ranks = await client.query('SELECT id, name, rank FROM Town ORDER BY rank DESC, id');
  expect(ranks.rows).toEqual(
    streamed.rows.map(({ nodeId, score }: { nodeId: string; score: number }) => ({
      id: nodeId,
      name: nodeId.toUpperCase(),
      rank: score,
    })),
  );
  expect(ranks.rows[0]).toMatchObject({ id: 'b' });
  const refused = await world.query(write);
  expect([refused.status, refused.json['detail']]).toEqual([400, expect.stringContaining('the relational door runs it')]);
  const unknown = "CALL gds.pageRank.write('Town', 'Road', {writeProperty: 'colour'})";
  expect(await stateOf(client.query(unknown))).toBe('42703');
  await client.query('BEGIN READ ONLY');
  expect(await stateOf(client.query(write))).not.toBe('00000');
  await client.query('ROLLBACK');
  const { json } = await world.call('GET', '/audit/entries?limit=1000&object_type=Town');
  const written = (json['entries'] as { door: string; action: string; statement_template?: string }[]).filter(
    ({ door, action }) => door === 'relational' && action === 'ingest',
  );
  expect(JSON.stringify(written)).toContain('CALL gds');
});

describe('transactions', () => {
  test('writes between BEGIN and COMMIT are one append', async () => {
    await client.query('BEGIN');
    await client.query("INSERT INTO Item (sku, n) VALUES ('x1', 1)");
    await client.query('INSERT INTO Item (sku, n) VALUES ($1, $2)', ['x2', 2]);
    expect((await world.rows("SELECT sku FROM Item WHERE sku LIKE 'x%'")).length).toBe(0);
    expect((await client.query('COMMIT')).command).toBe('COMMIT');
    const rows = await world.rows("SELECT sku, system_from FROM Item WHERE sku LIKE 'x%' ORDER BY sku");
    expect(rows.map(({ sku }) => sku)).toEqual(['x1', 'x2']);
    expect(Number(rows[1]!['system_from']) - Number(rows[0]!['system_from'])).toBeLessThan(10);
    await client.query('BEGIN');
    await client.query("DELETE FROM Item WHERE sku = 'x1'");
    expect((await client.query('ROLLBACK')).command).toBe('ROLLBACK');
    expect((await client.query("SELECT sku FROM Item WHERE sku = 'x1'")).rowCount).toBe(1);
  });

  test('one refused statement refuses the transaction, and nothing is written', async () => {
    await client.query('BEGIN');
    await client.query("INSERT INTO Item (sku) VALUES ('never')");
    expect(await stateOf(client.query("INSERT INTO Item (sku) VALUES ('x1')"))).toBe('23505');
    expect((await client.query('COMMIT')).command).toBe('ROLLBACK');
    expect((await client.query("SELECT sku FROM Item WHERE sku = 'never'")).rows).toEqual([]);
    // A row that was written since it was read.
    await client.query('BEGIN');
    await client.query("UPDATE Item SET n = n + 1 WHERE sku = 'x2'");
    await as(world, null, (other) => other.query("UPDATE Item SET n = 50 WHERE sku = 'x2'"));
    expect(await stateOf(client.query('COMMIT'))).toBe('40001');
    expect((await client.query("SELECT n FROM Item WHERE sku = 'x2'")).rows).toEqual([{ n: '50' }]);
  });

  test.each([
    ['reads what is not there', 'SELECT nope FROM Item', '42703'],
    ['forks a branch', "BRANCH b1 FROM 'main'", '0A000'],
  ])('a transaction that %s is refused, and over', async (_, sql, state) => {
    await client.query('BEGIN');
    await client.query("INSERT INTO Item (sku) VALUES ('w1')");
    expect(await stateOf(client.query(sql))).toBe(state);
    expect(await stateOf(client.query('SELECT 1'))).toBe('25P02');
    expect((await client.query('COMMIT')).command).toBe('ROLLBACK');
    expect((await client.query("SELECT sku FROM Item WHERE sku = 'w1'")).rows).toEqual([]);
  });

  test('READ ONLY takes no write', async () => {
    await client.query('BEGIN READ ONLY');
    expect(await stateOf(client.query("INSERT INTO Item (sku) VALUES ('ro')"))).toBe('25006');
    await client.query('ROLLBACK');
    expect((await client.query("INSERT INTO Item (sku) VALUES ('rw')")).rowCount).toBe(1);
  });

  test('statements sent together are one transaction', async () => {
    expect(await stateOf(client.query("INSERT INTO Item (sku) VALUES ('t1'); SELECT nope FROM Item"))).toBe('42703');
    await client.query("INSERT INTO Item (sku) VALUES ('t2'); INSERT INTO Item (sku) VALUES ('t3')");
    expect(await stateOf(client.query("INSERT INTO Item (sku) VALUES ('t4'); INSERT INTO Item (sku) VALUES ('t2')"))).toBe(
      '23505',
    );
    const found = await client.query('SELECT sku FROM Item WHERE sku = ANY($1) ORDER BY sku', [['t1', 't2', 't3', 't4']]);
    expect(found.rows.map(({ sku }: { sku: string }) => sku)).toEqual(['t2', 't3']);
  });
});

describe('time and settings', () => {
  test('current unless the session or the statement says otherwise', async () => {
    await client.query("INSERT INTO Item (sku, n) VALUES ('timed', 1)");
    const [{ system_from: first }] = (await client.query("SELECT system_from FROM Item WHERE sku = 'timed'")).rows;
    await client.query("UPDATE Item SET n = 2 WHERE sku = 'timed'");
    const counts = async (): Promise<string[]> =>
      (await client.query("SELECT n FROM Item WHERE sku = 'timed' ORDER BY n")).rows.map(({ n }: { n: string }) => n);
    expect(await counts()).toEqual(['2']);
    await client.query("SET annals.as_of = 'all'");
    expect(await counts()).toEqual(['1', '1', '2']);
    await client.query('RESET annals.as_of');
    await client.query(`SET annals.as_of_system = '${first}'`);
    expect(await counts()).toEqual(['1']);
    await client.query('RESET ALL');
    await client.query("SET annals.as_of = '2020-01-01'");
    expect(await counts()).toEqual([]);
    await client.query("SET annals.as_of = '2200-01-01'");
    expect(await counts()).toEqual(['2']);
    await client.query('RESET ALL');
    const past = await connected(world, { options: `-c annals.as_of_system=${first}` });
    expect((await past.query("SELECT n FROM Item WHERE sku = 'timed'")).rows).toEqual([{ n: '1' }]);
    await past.end();
  });

  test('what is in force is shown, what would change nothing is taken, all else is refused', async () => {
    const instants = await client.query('SELECT system_from AS a, MAX(system_from), MIN(at) FROM Item GROUP BY 1 LIMIT 1');
    expect(instants.fields.map(({ dataTypeID }) => dataTypeID)).toEqual([20, 20, 1184]);
    expect((await client.query('SHOW annals.as_of')).rows).toEqual([{ 'annals.as_of': 'current' }]);
    await client.query("SET client_encoding = 'UTF8'");
    expect(await stateOf(client.query("SET client_encoding = 'LATIN1'"))).toBe('0A000');
    expect(await stateOf(client.query('SET no_such_thing = 1'))).toBe('42704');
    expect(await stateOf(client.query("SET annals.timestamps = 'x'"))).toBe('22023');
    await client.query('SET annals.timestamps = int8');
    expect((await client.query("SELECT at FROM Item WHERE sku = 'a'")).rows).toEqual([{ at: '1714557600123456789' }]);
    await client.query('RESET ALL');
  });
});

describe('refusals', () => {
  test('a broken constraint is named as Postgres names it, in a transaction too', async () => {
    const refusal = async (...statements: string[]): Promise<unknown> => {
      try {
        for (const each of statements) await client.query(each);
      } catch (error) {
        await client.query('ROLLBACK');
        const { code, schema, table, column, constraint, detail } = error as pg.DatabaseError;
        return { code, schema, table, column, constraint, detail };
      }
      return null;
    };
    await client.query('CREATE TABLE Held (id text PRIMARY KEY, name text NOT NULL)');
    await client.query("INSERT INTO Held VALUES ('a', 'x')");
    const unique = {
      code: '23505',
      schema: 'public',
      table: 'Held',
      constraint: 'Held_pkey',
      detail: 'Key (id)=(a) already exists.',
    };
    const missing = { code: '23502', schema: 'public', table: 'Held', column: 'name' };
    const [twice, without] = ["INSERT INTO Held VALUES ('b', 'y'), ('a', 'y')", "INSERT INTO Held (id) VALUES ('c')"];
    expect(await refusal(twice)).toEqual(unique);
    expect(await refusal(without)).toEqual(missing);
    expect(await refusal('BEGIN', twice, 'COMMIT')).toEqual(unique);
    expect(await refusal('BEGIN', without, 'COMMIT')).toEqual(missing);
    expect(await refusal(`${twice}; SELECT 1`)).toEqual(unique);
    expect(await refusal("UPDATE Held SET name = NULL WHERE id = 'a'")).toEqual(missing);
  });

  test('statements that clients end a session by are answered', async () => {
    await client.query('SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;');
    expect((await client.query('SELECT pg_advisory_unlock_all()')).rows).toEqual([{ pg_advisory_unlock_all: '' }]);
    for (const [sql, told] of [
      ['CLOSE ALL', 'CLOSE'],
      ['UNLISTEN *', 'UNLISTEN'],
      ['DISCARD ALL', 'DISCARD'],
      ['DEALLOCATE ALL', 'DEALLOCATE'],
    ] as const)
      expect((await client.query(sql)).command).toBe(told);
    expect(await stateOf(client.query('CLOSE c'))).toBe('34000');
    for (const zone of [
      "TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE",
      "TIME ZONE 'Etc/UTC'",
      'TIMEZONE TO 0',
      "timezone = 'Zulu'",
    ])
      expect((await client.query(`SET ${zone}`)).command).toBe('SET');
    expect((await client.query('SHOW timezone')).rows).toEqual([{ timezone: 'UTC' }]);
    expect(await stateOf(client.query("SET TIME ZONE INTERVAL '+02:00' HOUR TO MINUTE"))).toBe('0A000');
    for (const encoding of ["'utf-8'", 'UTF8', "'Unicode'", "'utf_8'"]) await client.query(`SET client_encoding TO ${encoding}`);
    expect((await client.query('SHOW client_encoding')).rows).toEqual([{ client_encoding: 'UTF8' }]);
    // asyncpg sends the quotes, too.
    const quoted = await connected(world, { client_encoding: "'utf-8'" });
    await quoted.end();
  });

  test.each([
    ['SELEC 1', '42601'],
    ['SELECT * FROM Nowhere', '42P01'],
    ['SELECT nope FROM Item', '42703'],
    ["INSERT INTO Item (sku) VALUES ('a')", '23505'],
    ["INSERT INTO Item (sku, n) VALUES ('bad', 'x')", '22P02'],
    ['SAVEPOINT s', '25P01'],
    ['LISTEN c', '0A000'],
    ["COPY Item FROM '/etc/passwd'", '0A000'],
    ['COPY Nowhere FROM STDIN', '42P01'],
    ['COPY Item (nope) FROM STDIN', '42703'],
    ['CREATE TABLE bad (id serial)', '0A000'],
    ['CREATE TABLE bad (id int[])', '0A000'],
    ['CREATE TABLE bad (id int DEFAULT 1)', '0A000'],
    ['CREATE TABLE Item (sku text)', '42P07'],
    ['DROP TABLE Item', '0A000'],
    ['DROP TABLE Nowhere', '42P01'],
    ['DROP TABLE other.Item', '3F000'],
    ['DROP VIEW Nowhere', '42P01'],
    ['DROP VIEW Item', '42809'],
    ['DROP INDEX nowhere', '42704'],
    ['DROP INDEX "Item_pkey"', '2BP01'],
    ['DROP SCHEMA nowhere', '3F000'],
    ['DROP SCHEMA public', '0A000'],
    ['DROP FUNCTION nowhere(int)', '42883'],
    ['DROP NOTHING x', '42601'],
    ['CREATE SCHEMA public', '42P06'],
    ['CREATE INDEX ON Nowhere (sku)', '42P01'],
    ['CREATE INDEX ON Item (nope)', '42703'],
    ['CREATE INDEX ON Item (lower(sku)', '42601'],
    ['MERGE INTO Item USING Item ON TRUE WHEN MATCHED THEN DELETE', '42712'],
    ['DEALLOCATE nope', '26000'],
    ['EXECUTE nope', '26000'],
    ['FETCH nope', '34000'],
    ['BEGIN NOW', '42601'],
    ['SET TRANSACTION ISOLATION LEVEL NOPE', '42601'],
    ['SHOW', '42601'],
    ["SET statement_timeout = 'x'", '22023'],
    ["SET statement_timeout = '2147484s'", '22023'],
    ["SET client_encoding = 'nope'", '22023'],
    ["SET client_encoding = 'LATIN1'", '0A000'],
    ["SET TimeZone = 'Nope/Nope'", '22023'],
    ["SET TimeZone = 'Europe/Berlin'", '0A000'],
    ["SET server_version = '1'", '55P02'],
    ["COPY Item FROM PROGRAM 'sh'", '0A000'],
    ['DECLARE c CURSOR FOR SELECT 1', '0A000'],
    ['BEGIN ISOLATION LEVEL SERIALIZABLE', '0A000'],
    ['ALTER TABLE Item ADD x int', '0A000'],
    ['VACUUM', '0A000'],
  ])('%s is %s', async (sql, state) => {
    expect(await stateOf(client.query(sql))).toBe(state);
    expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: '1' }]);
  });

  test('a wrong password, a missing branch, a malformed organisation', async () => {
    expect(await stateOf(connected(world, { password: 'wrong' }))).toBe('28P01');
    expect(await stateOf(connected(world, { database: 'nowhere' }))).toBe('3D000');
    expect(await stateOf(connected(world, { user: 'me@a//b' }))).toBe('22023');
  });

  test('every command leaves one access record, the login that failed too', async () => {
    await as(world, 'audited', async (own) => {
      await own.query('SELECT sku FROM Item');
      await own.query('SELECT sku FROM Item WHERE n = $1', [1]);
      await stateOf(own.query('SAVEPOINT s'));
    });
    const { json } = await world.call('GET', '/audit/entries?limit=100', undefined, { 'x-organization-id': 'audited' });
    const entries = (json['entries'] as { door: string; principal: string }[]).filter(({ door }) => door === 'relational');
    expect(entries).toHaveLength(3);
    expect(entries[0]).toMatchObject({ principal: 'shared-secret' });
  });
});

test('a statement is cancelled by its key, and nothing else is', async () => {
  const { processID, secretKey } = client as unknown as { processID: number; secretKey: number };
  const request = Buffer.alloc(16);
  [16, 80_877_102, processID, secretKey].forEach((word, i) => request.writeInt32BE(word, i * 4));
  const cancel = (): Promise<void> =>
    new Promise((resolve) => {
      const socket = connect(world.others.find(({ name }) => name === 'relational')!.port, '127.0.0.1', () =>
        socket.write(request),
      );
      socket.on('close', () => resolve()).on('error', () => resolve());
    });
  const numbers =
    'WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 3000000) SELECT COUNT(*) AS n FROM c';
  const running = stateOf(client.query(numbers));
  await new Promise((resolve) => setTimeout(resolve, 50));
  await cancel();
  expect(await running).toBe('57014');
  await cancel();
  expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: '1' }]);
});

describe('byte by byte', () => {
  let raw: RawClient;
  beforeAll(async () => {
    raw = await RawClient.ready(world.others.find(({ name }) => name === 'relational')!.port, relationalSecret);
  });
  afterAll(() => raw.close());

  const kinds = (replies: readonly { readonly type: string }[]): string => replies.map(({ type }) => type).join('');
  const state = (replies: readonly { readonly type: string; readonly body: Buffer }[]): string | undefined =>
    /\0C([0-9A-Z]{5})\0/.exec(replies.find(({ type }) => type === 'E')?.body.toString('latin1') ?? '')?.[1];

  test('binary cells are those of the types', async () => {
    const sql = "SELECT n, price, good, at, sku, valid_to FROM Item WHERE sku = 'a'";
    const replies = await raw.ask(parse(sql), bind(1), execute(), sync);
    expect(kinds(replies)).toBe('12DCZ');
    const [n, price, good, at, sku, to] = cellsOf(replies[2]!.body) as Buffer[];
    expect([n!.readBigInt64BE(), price!.readDoubleBE(), good![0], sku!.toString()]).toEqual([1n, 1.5, 1, 'a']);
    expect(at!.readBigInt64BE() + 946_684_800_000_000n).toBe(1_714_557_600_123_456n);
    expect(to!.readBigInt64BE()).toBe(9_223_372_036_854_775_807n);
  });

  test('a portal is fetched in parts, and ends with its transaction', async () => {
    await client.query(
      `INSERT INTO Item (sku, n) VALUES ${Array.from({ length: 30 }, (_, i) => `('many${i}', ${i})`).join(', ')}`,
    );
    const sql = "SELECT n FROM Item WHERE sku LIKE 'many%' ORDER BY n";
    expect(kinds(await raw.ask(simple('BEGIN')))).toBe('CZ');
    expect(kinds(await raw.ask(parse(sql), bind(0, 'p'), execute(10, 'p'), sync))).toBe(`12${'D'.repeat(10)}sZ`);
    const rest = await raw.ask(execute(0, 'p'), sync);
    expect(kinds(rest)).toBe(`${'D'.repeat(20)}CZ`);
    expect(cellsOf(rest[0]!.body)[0]!.toString()).toBe('10');
    await raw.ask(simple('COMMIT'));
    expect(state(await raw.ask(execute(0, 'p'), sync))).toBe('34000');
  });

  test('what follows an error is skipped until Sync', async () => {
    const replies = await raw.ask(parse('SELECT nope FROM Item'), bind(), execute(), parse('SELECT 1'), bind(), execute(), sync);
    expect(kinds(replies)).toBe('12EZ');
    expect(kinds(await raw.ask(parse('SELECT 1'), bind(), describeMessage('P'), execute(), sync))).toBe('12TDCZ');
    expect(kinds(await raw.ask(parse(''), bind(), execute(), sync))).toBe('12IZ');
  });

  test('all up to a Sync is one transaction, as batches of drivers are', async () => {
    const put = (sku: string): Buffer[] => [parse(`INSERT INTO Item (sku) VALUES ('${sku}')`), bind(), execute()];
    expect(kinds(await raw.ask(...put('b1'), ...put('b2'), sync))).toBe('12C12CZ');
    const refused = await raw.ask(...put('b3'), ...put('b1'), sync);
    expect([kinds(refused), state(refused)]).toEqual(['12C12EZ', '23505']);
    // The first statement that is refused is the one that is told, whatever fails after it, and nothing is written.
    const first = await raw.ask(...put('b1'), ...put('b3'), parse('SELECT nope FROM Item'), bind(), execute(), sync);
    expect([kinds(first), state(first)]).toEqual(['12EZ', '23505']);
    const twice = await raw.ask(...put('b3'), ...put('b3'), ...put('b7'), sync);
    expect([kinds(twice), state(twice)]).toEqual(['12C12EZ', '23505']);
    raw.socket.write(Buffer.concat([...put('b3'), ...put('b2'), flush, ...put('b8')]));
    expect([kinds(await raw.until('E')), kinds(await raw.ask(sync))]).toEqual(['12C12E', 'Z']);
    expect(kinds(await raw.ask(simple("INSERT INTO Item (sku) VALUES ('b3'); INSERT INTO Item (sku) VALUES ('b1')")))).toBe(
      'CEZ',
    );
    // Rows that are many are sent on their way: what was written before them is decided by then.
    const many = parse('WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 9000) SELECT i FROM c');
    const long = await raw.ask(...put('b1'), many, bind(), execute(), sync);
    expect([kinds(long), state(long)]).toEqual(['12EZ', '23505']);
    const failed = await raw.ask(...put('b4'), parse('SELECT nope FROM Item'), bind(), execute(), sync);
    expect([kinds(failed), state(failed)]).toEqual(['12C12EZ', '42703']);
    expect(kinds(await raw.ask(...put('b5'), flush, sync))).toBe('12CZ');
    expect(
      kinds(await raw.ask(...put('b6').slice(0, 2), describeMessage('P'), execute(), framed('C', Buffer.from('P\0')), sync)),
    ).toBe('12nC3Z');
    const found = await client.query("SELECT sku FROM Item WHERE sku LIKE 'b_' ORDER BY sku");
    expect(found.rows.map(({ sku }: { sku: string }) => sku)).toEqual(['b1', 'b2', 'b5', 'b6']);
  });

  test('a statement tells the types of its parameters and columns', async () => {
    const replies = await raw.ask(
      parse('SELECT sku, n FROM Item WHERE n > $1 AND sku = $2', 's'),
      describeMessage('S', 's'),
      sync,
    );
    expect(kinds(replies)).toBe('1tTZ');
    const types = replies[1]!.body;
    expect([types.readInt16BE(0), types.readInt32BE(2), types.readInt32BE(6)]).toEqual([2, 20, 25]);
  });

  test('bytes that are no message end the connection with an error', async () => {
    const stranger = await RawClient.open(world.others.find(({ name }) => name === 'relational')!.port);
    stranger.socket.write('GET / HTTP/1.1\r\n\r\n');
    expect(kinds(await stranger.until('Z'))).toBe('E');
    const broken = await RawClient.ready(world.others.find(({ name }) => name === 'relational')!.port, relationalSecret);
    broken.socket.write(Buffer.from([0x51, 0x7f, 0xff, 0xff, 0xff]));
    expect(state(await broken.until('Z'))).toBe('54000');
  });

  test('a message before the login is none', async () => {
    const stranger = await RawClient.open(world.others.find(({ name }) => name === 'relational')!.port);
    stranger.socket.write(Buffer.concat([Buffer.from([0, 0, 0, 14, 0, 3, 0, 0]), Buffer.from('user\0a\0\0').subarray(0, 6)]));
    stranger.socket.write(simple('SELECT 1'));
    expect(kinds(await stranger.until('Z'))).not.toContain('D');
  });
});
