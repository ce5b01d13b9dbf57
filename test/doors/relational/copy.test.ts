/** COPY, CREATE TABLE, lists and vectors, through the bytes and the clients that people use. */
import { drizzle } from 'drizzle-orm/node-postgres';
import { doublePrecision, integer, pgTable, text } from 'drizzle-orm/pg-core';
import { cosineDistance, eq, inArray, sql } from 'drizzle-orm';
import type pg from 'pg';
import pgvector from 'pgvector/pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CopyColumn } from '../../../src/doors/relational/copy-batch.ts';
import { CopyReader } from '../../../src/doors/relational/copy-reader.ts';
import { allAtOnce } from '../../../src/planner/expressions/resumable-steps.ts';
import { copyOf } from '../../../src/doors/relational/copy-statement.ts';
import { cellAt } from '../../../src/log/values/vector-builder.ts';
import { Choices } from '../../planner/generator/random.ts';
import { StoreWorld } from '../http/store-world.ts';
import { framed } from './frames.ts';
import { bind, execute, parse, RawClient, simple, sync } from './raw-client.ts';
import { connected, relationalSecret, stateOf } from './relational-client.ts';

let world: StoreWorld;
let client: pg.Client;
let raw: RawClient;

beforeAll(async () => {
  world = await StoreWorld.open({ SERVICE_BEARER_TOKEN: relationalSecret });
  client = await connected(world);
  raw = await RawClient.ready(world.others.find(({ name }) => name === 'relational')!.port, relationalSecret);
  await client.query(`CREATE TABLE IF NOT EXISTS "Stock" (
    sku varchar(20) PRIMARY KEY, n int NOT NULL, price numeric(10, 2), ok boolean, at timestamptz, more jsonb, v vector(3))`);
});

afterAll(async () => {
  raw.close();
  await client.end();
  await world.close();
});

const kinds = (replies: readonly { readonly type: string }[]): string => replies.map(({ type }) => type).join('');
const data = (bytes: Buffer | string): Buffer => framed('d', Buffer.from(bytes));
const done = framed('c');
const state = (replies: readonly { readonly type: string; readonly body: Buffer }[]): string | undefined =>
  /\0C([0-9A-Z]{5})\0/.exec(replies.find(({ type }) => type === 'E')?.body.toString('latin1') ?? '')?.[1];
const told = (replies: readonly { readonly type: string; readonly body: Buffer }[]): string =>
  replies.find(({ type }) => type === 'E')?.body.toString() ?? '';

async function copyIn(statement: string, ...pieces: readonly (Buffer | string)[]): ReturnType<RawClient['until']> {
  raw.socket.write(simple(statement));
  const [first] = await raw.until('G');
  expect(first!.type).toBe('G');
  return raw.ask(...pieces.map(data), done);
}

async function copyOut(statement: string): Promise<Buffer> {
  const replies = await raw.ask(simple(statement));
  expect(kinds(replies)).toMatch(/^Hd*cCZ$/);
  return Buffer.concat(replies.filter(({ type }) => type === 'd').map(({ body }) => body));
}

test('a table that was created is a type, and the same again is refused or passed over', async () => {
  expect((await world.call('GET', '/types/Stock')).json).toMatchObject({
    primary_key: 'sku',
    properties: {
      sku: { type: 'string' },
      n: { type: 'integer', required: true },
      price: { type: 'number' },
      v: { type: 'vector', dims: 3 },
    },
  });
  expect(await stateOf(client.query('CREATE TABLE "Stock" (sku text)'))).toBe('42P07');
  expect((await client.query('CREATE TABLE IF NOT EXISTS "Stock" (sku text)')).command).toBe('CREATE');
  const notices: (string | undefined)[] = [];
  const heard = ({ message }: { message?: string | undefined }): void => void notices.push(message);
  client.on('notice', heard);
  for (const what of ['TABLE', 'VIEW', 'INDEX', 'SCHEMA', 'SEQUENCE', 'TYPE'])
    expect((await client.query(`DROP ${what} IF EXISTS nowhere CASCADE`)).command).toBe('DROP');
  expect((await client.query('DROP TABLE IF EXISTS elsewhere.nowhere, neither')).command).toBe('DROP');
  expect((await client.query('CREATE SCHEMA IF NOT EXISTS public')).command).toBe('CREATE');
  client.off('notice', heard);
  expect(notices).toEqual([
    ...['table', 'view', 'index', 'schema', 'sequence', 'type'].map((what) => `${what} "nowhere" does not exist, skipping`),
    'schema "elsewhere" does not exist, skipping',
    'table "neither" does not exist, skipping',
    'the schema "public" is there already, skipping',
  ]);
  expect((await client.query('CREATE INDEX ON "Stock" USING hnsw (v vector_cosine_ops)')).command).toBe('CREATE');
});

describe('COPY', () => {
  const text =
    'a\t1\t1.5\tt\t2024-05-01 10:00:00+02\t{"x": "\\\\n"}\t[1,2,3]\nb\t2\t\\N\tf\t\\N\t\\N\t\\N\nc\\td\t3\t\\N\t\\N\t\\N\t\\N\t\\N\n';

  test('text in, however it is cut; text, CSV and binary out are what came in', async () => {
    const bytes = Buffer.from(text);
    const replies = await copyIn('COPY "Stock" FROM STDIN', bytes.subarray(0, 7), bytes.subarray(7, 60), bytes.subarray(60));
    expect([kinds(replies), replies[0]!.body.toString()]).toEqual(['CZ', 'COPY 3\0']);
    const { rows } = await client.query('SELECT sku, n, price, ok, at, more, v FROM "Stock" ORDER BY n');
    expect(rows[0]).toEqual({
      sku: 'a',
      n: '1',
      price: 1.5,
      ok: true,
      at: new Date('2024-05-01T08:00:00Z'),
      more: { x: '\n' },
      v: '[1,2,3]',
    });
    expect(rows.map(({ sku }: { sku: string }) => sku)).toEqual(['a', 'b', 'c\td']);
    const out = await copyOut('COPY "Stock" TO STDOUT');
    expect(out.toString()).toBe(text.replace('2024-05-01 10:00:00+02', '2024-05-01 08:00:00+00'));
    expect((await copyOut('COPY "Stock" (sku, more) TO STDOUT WITH CSV HEADER')).toString()).toBe(
      'sku,more\na,"{""x"": ""\\n""}"\nb,\nc\td,\n',
    );
    const binary = await copyOut('COPY "Stock" TO STDOUT (FORMAT binary)');
    await client.query(
      'CREATE TABLE "Again" (sku text PRIMARY KEY, n int, price float8, ok bool, at timestamptz, more json, v vector(3))',
    );
    expect(kinds(await copyIn('COPY "Again" FROM STDIN BINARY', binary.subarray(0, 30), binary.subarray(30)))).toBe('CZ');
    expect(await copyOut('COPY "Again" TO STDOUT')).toEqual(out);
  });

  test('CSV with marks of its own, and what quotes keep', async () => {
    await client.query('CREATE TABLE "Csv" (k text PRIMARY KEY, a text, b text)');
    const rows = "k;a;b\r\n1;'it''s; here';\r\n2;'';'two\nlines'\r\n3;plain;NULL\r\n";
    const replies = await copyIn(`COPY "Csv" FROM STDIN (FORMAT csv, DELIMITER ';', QUOTE '''', NULL 'NULL', HEADER)`, rows);
    expect(kinds(replies)).toBe('CZ');
    expect((await client.query('SELECT k, a, b FROM "Csv" ORDER BY k')).rows).toEqual([
      { k: '1', a: "it's; here", b: '' },
      { k: '2', a: '', b: 'two\nlines' },
      { k: '3', a: 'plain', b: null },
    ]);
  });

  test('a refused row ends it: nothing of its batch is written, and the error says where', async () => {
    const misfit = await copyIn('COPY "Stock" (sku, n) FROM STDIN', 'm1\t1\nm2\ttwo\n');
    expect([kinds(misfit), state(misfit)]).toEqual(['EZ', '22P02']);
    expect(told(misfit)).toContain('COPY, row 2, column "n"');
    const there = await copyIn('COPY "Stock" (sku, n) FROM STDIN', 'm3\t1\na\t1\n');
    expect([kinds(there), state(there)]).toEqual(['EZ', '23505']);
    const short = await copyIn('COPY "Stock" (sku, n) FROM STDIN', 'm4\n');
    expect(state(short)).toBe('22P04');
    expect((await client.query(`SELECT sku FROM "Stock" WHERE sku LIKE 'm%'`)).rows).toEqual([]);
    // What comes after the error of data that was on its way is passed over.
    expect(kinds(await raw.ask(data('x\n'), done, simple('SELECT 1')))).toBe('TDCZ');
  });

  test('a client that gives up, or says something else, writes nothing', async () => {
    raw.socket.write(simple('COPY "Stock" (sku, n) FROM STDIN'));
    await raw.until('G');
    const ended = await raw.ask(data('g1\t1\n'), framed('f', Buffer.from('enough\0')));
    expect([kinds(ended), state(ended)]).toEqual(['EZ', '57014']);
    raw.socket.write(simple('COPY "Stock" (sku, n) FROM STDIN'));
    await raw.until('G');
    const other = await raw.ask(data('g1\t1\n'), simple('SELECT 1'));
    expect([kinds(other), state(other)]).toEqual(['EZ', '22023']);
    expect((await client.query(`SELECT sku FROM "Stock" WHERE sku = 'g1'`)).rows).toEqual([]);
  });

  test('a client that takes longer than statement_timeout writes nothing', async () => {
    await raw.ask(simple("SET statement_timeout = '20ms'"));
    raw.socket.write(simple('COPY "Stock" (sku, n) FROM STDIN'));
    await raw.until('G');
    await new Promise((resolve) => setTimeout(resolve, 60));
    const ended = await raw.ask(data('t1\t1\n'), done);
    expect([kinds(ended), state(ended)]).toEqual(['EZ', '57014']);
    await raw.ask(simple('RESET statement_timeout'));
    expect((await client.query(`SELECT sku FROM "Stock" WHERE sku = 't1'`)).rows).toEqual([]);
  });

  test('by the extended protocol, and within a transaction', async () => {
    raw.socket.write(Buffer.concat([parse('COPY "Stock" (sku, n) FROM STDIN'), bind(), execute(), sync]));
    await raw.until('G');
    expect(kinds(await raw.ask(data('e1\t1\n'), done, sync))).toBe('CZ');
    expect(kinds(await raw.ask(simple('BEGIN')))).toBe('CZ');
    expect(kinds(await copyIn('COPY "Stock" (sku, n) FROM STDIN', 'e2\t2\n'))).toBe('CZ');
    expect(await world.rows(`SELECT sku FROM "Stock" WHERE sku = 'e2'`)).toEqual([]);
    expect(kinds(await raw.ask(simple('COMMIT')))).toBe('CZ');
    const found = await client.query(`SELECT sku FROM "Stock" WHERE sku = ANY($1) ORDER BY sku`, [['e1', 'e2', 'e3']]);
    expect(found.rows.map(({ sku }: { sku: string }) => sku)).toEqual(['e1', 'e2']);
  });

  test('more than one batch is written in batches, of which an error tells', async () => {
    const lines = (from: number, count: number): string =>
      Array.from({ length: count }, (_, i) => `r${from + i}\t${i}\n`).join('');
    const many = await copyIn('COPY "Stock" (sku, n) FROM STDIN', lines(0, 10_000));
    expect(many[0]!.body.toString()).toBe('COPY 10000\0');
    const refused = await copyIn('COPY "Stock" (sku, n) FROM STDIN', lines(20_000, 4_000), 'broken\n');
    expect(told(refused)).toMatch(/3072 rows before are written, in batches/);
    expect((await client.query(`SELECT COUNT(*) AS n FROM "Stock" WHERE sku LIKE 'r2____'`)).rows).toEqual([{ n: '3072' }]);
  });

  test('bytes are read alike wherever they are cut', () => {
    const columns: readonly CopyColumn[] = [
      { name: 'a', type: 'string', dims: 0 },
      { name: 'b', type: 'string', dims: 0 },
    ];
    const forms = [
      { statement: 'COPY t FROM STDIN', bytes: 'a\\tb\tc\\\\\n\\N\tx\\x41\\101\r\nlast\t' },
      { statement: 'COPY t FROM STDIN CSV', bytes: 'a,"b ""c"", d"\r\n,"x\ny"\n"",last' },
      { statement: "COPY t FROM STDIN CSV ESCAPE '\\'", bytes: 'a"b\\"c"d,"\\\\"\n"x"y,"x\\y"\r\n"é\\"",\n\\.\nno row' },
      { statement: 'COPY t FROM STDIN', bytes: '\\x4\\0\t\\1018\n\\b\\q\t\\\t\\\\\r\né\t\\\r\n\\.\n' },
    ];
    const read = (statement: string, pieces: readonly Buffer[]): unknown => {
      const reader = new CopyReader(allAtOnce(copyOf(statement)), columns);
      const rows: unknown[] = [];
      const take = (isLast: boolean): void => {
        for (let batch = reader.batch(isLast); batch !== null; batch = reader.batch(isLast))
          for (let row = 0; row < batch.length; row++)
            rows.push(batch.columns.map(({ vector, type }) => cellAt(vector, type, row)));
      };
      for (const piece of pieces) {
        reader.push(Buffer.from(piece));
        take(false);
      }
      take(true);
      return rows;
    };
    const choices = new Choices(7);
    for (const { statement, bytes } of forms) {
      const whole = Buffer.from(bytes);
      const expected = read(statement, [whole]);
      expect(expected).toHaveLength(3);
      for (let cut = 1; cut < whole.length; cut++) {
        const second = choices.below(whole.length - cut + 1);
        const pieces = [whole.subarray(0, cut), whole.subarray(cut, cut + second), whole.subarray(cut + second)];
        expect(read(statement, pieces)).toEqual(expected);
      }
      expect(
        read(
          statement,
          Array.from(whole, (byte) => Buffer.of(byte)),
        ),
      ).toEqual(expected);
    }
  });

  test('a row that is longer than one of an ingest is refused as soon as it is, in any format', () => {
    const columns: readonly CopyColumn[] = [{ name: 'a', type: 'string', dims: 0 }];
    const piece = 1 << 18;
    for (const [statement, first, more] of [
      ['COPY t FROM STDIN CSV', '"', ','],
      ['COPY t FROM STDIN CSV', '"', '"'],
      ['COPY t FROM STDIN CSV', 'x', ','],
      ['COPY t FROM STDIN', 'x', '\\'],
      ['COPY t FROM STDIN', 'x', '\t'],
    ] as const) {
      const reader = new CopyReader(allAtOnce(copyOf(statement)), columns);
      reader.push(Buffer.from(first));
      let taken = 1;
      const refused = (): unknown => {
        for (; taken <= 32 << 20; taken += piece) {
          if (reader.batch(false) !== null) return 'a row';
          reader.push(Buffer.alloc(piece, more));
        }
        return 'taken';
      };
      expect(refused, statement).toThrow(/row 1: a row is over 16777216 bytes/);
      expect(taken).toBe((16 << 20) + 1);
    }
  });
});

describe('clients', () => {
  test('pgvector: vectors in and out, nearest first by each distance', async () => {
    await client.query('CREATE EXTENSION IF NOT EXISTS vector');
    await client.query('CREATE TABLE items (id text PRIMARY KEY, embedding vector(3))');
    for (const [id, embedding] of [
      ['1', [1, 1, 1]],
      ['2', [2, 2, 2]],
      ['3', [1, 1, 2]],
    ] as const)
      await client.query('INSERT INTO items (id, embedding) VALUES ($1, $2)', [id, pgvector.toSql([...embedding])]);
    const nearest = async (operator: string): Promise<string[]> => {
      const found = await client.query(`SELECT id FROM items ORDER BY embedding ${operator} $1, id LIMIT 3`, [
        pgvector.toSql([1, 1, 1]),
      ]);
      return found.rows.map(({ id }: { id: string }) => id);
    };
    expect(await nearest('<->')).toEqual(['1', '3', '2']);
    expect(await nearest('<#>')).toEqual(['2', '3', '1']);
    expect(await nearest('<=>')).toEqual(['1', '2', '3']);
    const plan = await client.query("EXPLAIN SELECT id FROM items ORDER BY embedding <=> '[1,1,1]' LIMIT 3");
    expect(JSON.stringify(plan.rows)).toContain('nearest first 3 by index of vectors of embedding');
    const near = await client.query("SELECT id FROM items WHERE embedding <-> '[1,1,1]' < 1.5 ORDER BY id");
    expect(near.rows.map(({ id }: { id: string }) => id)).toEqual(['1', '3']);
    expect(await stateOf(client.query("SELECT id FROM items ORDER BY embedding <-> '[1,1]'"))).toBe('22000');
    for (const vector of ["'[1,1,1]'::vector", "CAST('[1,1,1]' AS vector(3))", "vector '[1,1,1]'", '$1::vector', '$1']) {
      const sql = `SELECT id FROM items ORDER BY embedding <=> ${vector} LIMIT 3`;
      const asked = { text: sql, values: sql.includes('$1') ? ['[1,1,1]'] : [] };
      expect([vector, (await client.query(asked)).rows.map(({ id }: { id: string }) => id)]).toEqual([vector, ['1', '2', '3']]);
      expect(JSON.stringify((await client.query({ ...asked, text: `EXPLAIN ${sql}` })).rows)).toContain('by index of vectors');
    }
    await client.query('SET hnsw.ef_search = 100');
    expect((await client.query('SHOW hnsw.ef_search')).rows).toEqual([{ 'hnsw.ef_search': '100' }]);
    expect(await stateOf(client.query('SET hnsw.ef_search = 0'))).toBe('22023');
    const measures = `cosine_distance(embedding, '[2,2,2]') = 0 AS c, l2_distance(embedding, '[1,1,4]'::vector) AS l,
      inner_product(embedding, $1) AS i, embedding = '[1.0, 1, 1]' AS same, embedding != $1::vector AS other, '[1.50]'::vector AS v`;
    const measured = await client.query(`SELECT ${measures} FROM items WHERE id = '1'`, ['[1,2,3]']);
    expect(measured.rows).toEqual([{ c: true, l: 3, i: 6, same: true, other: true, v: '[1.5]' }]);
    expect(measured.fields.at(-1)!.dataTypeID).toBe(16_385);
    const sums = await client.query('SELECT AVG(embedding) AS a, SUM(embedding) FILTER (WHERE id = $1) AS s FROM items', ['1']);
    expect([sums.rows, ...sums.fields.map(({ dataTypeID }) => dataTypeID)]).toEqual([
      [{ a: '[1.3333334,1.3333334,1.6666666]', s: '[1,1,1]' }],
      16_385,
      16_385,
    ]);
    expect(await stateOf(client.query("SELECT SUM(s::vector) FROM (VALUES ('[1]'), ('[1,2]')) t(s)"))).toBe('22000');
    expect(await stateOf(client.query("SELECT '[1,2]'::vector(3)"))).toBe('22000');
    expect(await stateOf(client.query("SELECT 'x'::vector"))).toBe('22P02');
    await client.query("INSERT INTO items (id) VALUES ('none')");
    const last = await client.query("SELECT id FROM items ORDER BY embedding <=> '[1,1,1]'");
    expect(last.rows.at(-1)).toEqual({ id: 'none' });
    await client.query("DELETE FROM items WHERE id = 'none'");
    const ofOne = '(SELECT embedding FROM items WHERE id = $1)';
    const others = await client.query(`SELECT id FROM items WHERE id <> $1 ORDER BY embedding <-> ${ofOne} LIMIT 5`, ['3']);
    expect(others.rows.map(({ id }: { id: string }) => id)).toEqual(['1', '2']);
    const explained = await client.query(`EXPLAIN SELECT id FROM items ORDER BY embedding <=> ${ofOne} LIMIT 3`, ['3']);
    expect(JSON.stringify(explained.rows)).toContain('nearest first 3 by index of vectors of embedding');
    expect((await client.query(`SELECT ${ofOne} AS v`, ['3'])).rows).toEqual([{ v: '[1,1,2]' }]);
    const each = 'SELECT id FROM items i ORDER BY embedding <=> (SELECT embedding FROM items WHERE id = i.id) LIMIT 2';
    expect(await stateOf(client.query(each))).toBe('22P02');
  });

  test('tools that qualify every name by the one schema', async () => {
    const found = await client.query('SELECT "items"."id" FROM "public"."items" AS "items" WHERE id = $1', ['1']);
    expect(found.rows).toEqual([{ id: '1' }]);
    expect((await client.query('UPDATE public.items SET embedding = NULL WHERE id = $1', ['2'])).rowCount).toBe(1);
    const text = "SELECT 'public.x' AS a, nope FROM public.items";
    expect(await client.query(text).catch((error: { position: string }) => error.position)).toBe(
      String(text.indexOf('nope') + 1),
    );
  });

  test('drizzle: inserts, questions, an upsert and a transaction', async () => {
    await client.query('CREATE TABLE "Ship" (id text PRIMARY KEY, name text, tons int, speed float8)');
    const ships = pgTable('Ship', { id: text().primaryKey(), name: text(), tons: integer(), speed: doublePrecision() });
    const db = drizzle(client);
    const added = await db
      .insert(ships)
      .values([
        { id: 's1', name: 'Aurelia', tons: 100, speed: 12.5 },
        { id: 's2', name: 'Brisa', tons: 50, speed: null },
      ])
      .returning({ id: ships.id });
    expect(added).toEqual([{ id: 's1' }, { id: 's2' }]);
    await db
      .insert(ships)
      .values({ id: 's1', tons: 120 })
      .onConflictDoUpdate({ target: ships.id, set: { tons: 120 } });
    expect(
      await db
        .select({ name: ships.name, tons: ships.tons })
        .from(ships)
        .where(inArray(ships.id, ['s1', 's9'])),
    ).toEqual([{ name: 'Aurelia', tons: 120 }]);
    await db.transaction(async (tx) => {
      await tx.insert(ships).values({ id: 's3', name: 'Cormoran', tons: 10 });
    });
    await expect(
      db.transaction(async (tx) => {
        await tx.insert(ships).values({ id: 's4', tons: 1 });
        throw new Error('never mind');
      }),
    ).rejects.toThrow('never mind');
    await db.update(ships).set({ speed: 9 }).where(eq(ships.id, 's2'));
    await db.delete(ships).where(eq(ships.id, 's1'));
    const left = await db.select({ id: ships.id, speed: ships.speed }).from(ships).orderBy(ships.id);
    expect(left).toEqual([
      { id: 's2', speed: 9 },
      { id: 's3', speed: null },
    ]);
    const distance = cosineDistance(sql`embedding`, [1, 1, 2]);
    expect((await db.execute(sql`SELECT id FROM items ORDER BY ${distance} LIMIT 1`)).rows).toEqual([{ id: '3' }]);
  });
});
