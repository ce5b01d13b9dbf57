/** The catalogue of the relational door as clients ask it, against what Postgres answered to the same words. */
import { readFileSync } from 'node:fs';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { StoreWorld } from '../http/store-world.ts';
import { cellsOf } from './frames.ts';
import { bind, describe as describeMessage, execute, parse, RawClient, sync } from './raw-client.ts';
import { recordedSessions } from './recorded-sessions.ts';
import { as, connected, relationalSecret, stateOf } from './relational-client.ts';

interface Answered {
  readonly sql: string;
  /** Names and numbers of types. */
  readonly columns: readonly string[];
}

const recorded = JSON.parse(
  readFileSync(new URL('../../../fixtures/wire/relational/catalogue.json', import.meta.url), 'utf8'),
) as {
  readonly psql: readonly (Answered & { readonly command: string })[];
  readonly jdbc: readonly Answered[];
  readonly sessions: readonly (Omit<Answered, 'sql'> & { readonly client: string; readonly what: string })[];
  readonly answers: readonly (Answered & { readonly rows: readonly (readonly (string | null)[])[] })[];
};

let world: StoreWorld;
let client: pg.Client;
/** Numbers of `Item` and `cheap` here, where the recordings have those of the server that they were made of. */
let here: (sql: string) => string;

beforeAll(async () => {
  world = await StoreWorld.open({ SERVICE_BEARER_TOKEN: relationalSecret });
  await world.call('POST', '/types', {
    name: 'Item',
    properties: {
      sku: 'string',
      n: 'integer',
      price: 'number',
      good: { type: 'boolean', required: true },
      at: 'timestamp',
      more: 'json',
      v: { type: 'vector', dims: 3 },
    },
    primary_key: 'sku',
  });
  await world.call('POST', '/query', { sql: 'CREATE MATERIALIZED VIEW cheap AS SELECT sku, n FROM Item' });
  const types = { getTypeParser: () => (text: string) => text } as unknown as pg.CustomTypesConfig;
  client = await connected(world, { types });
  const [[item, cheap]] = await rowsOf(`SELECT '"Item"'::regclass::oid, 'cheap'::regclass::oid`);
  here = (sql) => sql.replaceAll("'16384'", `'${item}'`).replaceAll("'16391'", `'${cheap}'`);
});

afterAll(async () => {
  await client.end();
  await world.close();
});

const asked = (text: string, values: readonly unknown[] = []): Promise<pg.QueryArrayResult<(string | null)[]>> =>
  client.query({ text, rowMode: 'array', ...(values.length > 0 && { values: [...values] }) });
const rowsOf = async (sql: string, values?: readonly unknown[]): Promise<(string | null)[][]> => (await asked(sql, values)).rows;
/** Integers of expressions have 64 bits here, and decimals are doubles. */
const widened = (columns: readonly string[]): string[] =>
  columns.map((each) =>
    each
      .replace(/:23$/, ':20')
      .replace(/:1007$/, ':1016')
      .replace(/:1700$/, ':701'),
  );
const columnsOf = ({ fields }: pg.QueryArrayResult): string[] => fields.map(({ name, dataTypeID }) => `${name}:${dataTypeID}`);

/** What this store says otherwise on purpose: NULLs come last in either order, integers have 64 bits and their own division. */
const otherwise = [
  /^SELECT 7 \/ 2/,
  /ORDER BY s DESC, n DESC$/,
  /array_agg\(n ORDER BY n DESC\), string_agg/,
  /^SELECT pg_typeof\(1\)/,
  // A name beside a literal is a text.
  /UNION SELECT 'z', 'q'/,
];

test.each(
  recorded.answers
    .filter(({ sql }) => !otherwise.some((each) => each.test(sql)))
    .map((each) => [each.sql.slice(0, 110), each] as const),
)('as Postgres: %s', async (_, { sql, columns, rows }) => {
  const answer = await asked(sql);
  expect([widened(columnsOf(answer)), answer.rows]).toEqual([widened(columns), rows]);
});

describe('psql', () => {
  test('every question of its commands has the columns that Postgres gives it', async () => {
    for (const { sql, columns } of recorded.psql) expect(columnsOf(await asked(here(sql)))).toEqual(columns);
  });

  /** The rows of the last question of a command that has the text in it. */
  const shown = async (command: string, having: string): Promise<(string | null)[][]> =>
    rowsOf(here(recorded.psql.findLast((each) => each.command === command && each.sql.includes(having))!.sql));

  test('tables, views, indexes, schemas, databases and functions are listed', async () => {
    expect(await shown('\\dt', 'relkind')).toContainEqual(['public', 'Item', 'table', 'annals']);
    expect(await shown('\\dm', 'relkind')).toEqual([['public', 'cheap', 'materialized view', 'annals']]);
    expect(await shown('\\dv', 'relkind')).toEqual([]);
    expect(await shown('\\d', 'relkind')).toEqual([...(await shown('\\dt', 'relkind')), ...(await shown('\\dm', 'relkind'))]);
    expect(await shown('\\di', 'relkind')).toContainEqual(['public', 'Item_pkey', 'index', 'annals', 'Item']);
    expect(await shown('\\dn', 'nspname')).toEqual([['public', 'annals']]);
    expect(await shown('\\l', 'datname')).toEqual([['annals', 'annals', 'UTF8', 'C', 'C.UTF-8', null, 'libc', null]]);
    expect(await shown('\\df lower', 'proname')).toEqual([['pg_catalog', 'lower', 'text', 'text', 'func']]);
    expect((await shown('\\df', 'proname')).map(([, name]) => name)).toContain('hybrid_search');
    expect(await shown('\\dx', 'extname')).toEqual([['vector', '0.8.0', 'public', null]]);
    expect(await shown('\\du', 'rolname')).toHaveLength(2);
    expect(await shown('\\dT', 'typname')).toEqual([['public', 'vector', null]]);
  });

  test('a table is described by its columns and its key', async () => {
    const columns = await shown('\\d "Item"', 'atttypid');
    expect(columns.map(([name, type, , notNull]) => `${name} ${type} ${notNull}`)).toEqual([
      '_pk text t',
      'id text f',
      'tenant_id text f',
      'namespace_path text f',
      'valid_from bigint t',
      'valid_to bigint t',
      'system_from bigint t',
      'system_to bigint t',
      'sku text t',
      'n bigint f',
      'price double precision f',
      'good boolean t',
      'at timestamp with time zone f',
      'more jsonb f',
      'v vector(3) f',
    ]);
    const [index] = await shown('\\d "Item"', 'indisprimary');
    const [name, ...facts] = index!;
    expect(name).toBe('Item_pkey');
    expect(facts.slice(0, 4)).toEqual(['t', 't', 'f', 't']);
    expect(facts[4]).toBe('CREATE UNIQUE INDEX "Item_pkey" ON public."Item" USING btree (sku)');
    expect(facts.slice(5)).toEqual(['PRIMARY KEY (sku)', 'p', 'f', 'f', 'f', '0']);
    expect((await shown('\\d cheap', 'atttypid')).map(([name, type]) => `${name} ${type}`)).toEqual(['sku text', 'n bigint']);
  });
});

describe('drivers and tools', () => {
  test('every question of DatabaseMetaData has the columns that Postgres gives it', async () => {
    for (const { sql, columns } of recorded.jdbc) expect(columnsOf(await asked(sql))).toEqual(columns);
  });

  test.each(recordedSessions.map((each, i) => [`${each.client}: ${each.what}`, each, recorded.sessions[i]!] as const))(
    '%s',
    async (_, { client: of, what, sql, parameters }, expected) => {
      expect([of, what]).toEqual([expected.client, expected.what]);
      expect(widened(columnsOf(await asked(sql, parameters)))).toEqual(widened(expected.columns));
    },
  );

  const session = async (of: string, what: string): Promise<(string | null)[][]> => {
    const { sql, parameters } = recordedSessions.find((each) => each.client === of && each.what === what)!;
    return rowsOf(sql, parameters);
  };

  test('drizzle-kit finds tables, columns, keys and views', async () => {
    expect(await session('drizzle-kit', 'tables')).toContainEqual(['public', 'cheap', 'materialized_view', 'f']);
    const columns = await session('drizzle-kit', 'columns');
    expect(columns.map(([, name, nullable, , type]) => `${name} ${nullable} ${type}`).slice(8)).toEqual([
      'sku NO text',
      'n YES bigint',
      'price YES double precision',
      'good NO boolean',
      'at YES timestamp with time zone',
      'more YES jsonb',
      'v YES vector(3)',
    ]);
    expect(await session('drizzle-kit', 'constraints')).toEqual([['sku', 'text', 'PRIMARY KEY', 'Item_pkey', 'public']]);
    expect(await session('drizzle-kit', 'primary key')).toEqual([['Item_pkey']]);
    expect((await session('drizzle-kit', 'views'))[0]!.slice(0, 3)).toEqual(['cheap', 'public', 'SELECT sku, n FROM Item']);
  });

  test('SQLAlchemy and Metabase find the same', async () => {
    expect(await session('SQLAlchemy', 'has table')).toEqual([['Item']]);
    expect((await session('SQLAlchemy', 'columns')).map(([name]) => name)).toContain('price');
    expect((await session('SQLAlchemy', 'primary key')).map(([, columns, name]) => [columns, name])).toEqual([
      ['{sku}', 'Item_pkey'],
    ]);
    const fields = await session('Metabase', 'fields');
    expect(fields.map(([name, type, , , table, isKey]) => [name, type, table, isKey])).toContainEqual([
      'sku',
      'text',
      'Item',
      't',
    ]);
    expect(fields.filter(([, , , , table]) => table === 'cheap')).toHaveLength(2);
    expect(await session('Metabase', 'privileges')).toContainEqual([null, 'public', 'Item', 't', 't']);
  });

  test('asyncpg finds what a vector is, and an array with its elements', async () => {
    const found = (await session('asyncpg', 'types of columns')).map(([, ns, name, kind, , element, , , , , depth, , of]) =>
      [ns, name, kind, element, depth, of].join(' '),
    );
    expect(found.sort()).toEqual([
      'pg_catalog _int4 b 23 0 integer',
      'pg_catalog int4 b 0 1 -',
      'pg_catalog text b 0 0 -',
      'public vector b 0 0 -',
    ]);
  });

  test.each([
    [
      'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4) SELECT i FROM n, pg_namespace s WHERE s.oid = 11',
      '1 2 3 4',
    ],
    ['WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT 3 - i FROM n) SELECT i FROM n, pg_namespace s WHERE s.oid = 11', '1 2'],
    [
      `SELECT (WITH RECURSIVE n(i) AS (SELECT s.oid::int4 UNION ALL SELECT i + 1 FROM n WHERE i < 13) SELECT max(i) - min(i) FROM n)
      FROM pg_namespace s WHERE s.oid IN (11, 2200) ORDER BY s.oid`,
      '2 0',
    ],
  ])('a recursion goes on until a round adds nothing: %s', async (sql, values) => {
    expect((await rowsOf(sql)).flat().join(' ')).toBe(values);
  });

  test('objects and arrays of JSON are built of any number of values', async () => {
    const sql = `SELECT json_build_object('a', 1, 'b', true, 'c', 'x"y'::text, 'd', NULL, 'e', ARRAY[1,NULL], 'f', 1.5::float8, 2, 'v'),
      json_build_object(), json_build_object('k', json_build_object('i', 'r'::"char", 'o', 'pg_class'::regclass)),
      json_build_array(1, 'a', NULL), json_build_array() FROM pg_am LIMIT 1`;
    expect(await rowsOf(sql)).toEqual([
      [
        '{"a" : 1, "b" : true, "c" : "x\\"y", "d" : null, "e" : [1,null], "f" : 1.5, "2" : "v"}',
        '{}',
        '{"k" : {"i" : "r", "o" : "pg_class"}}',
        '[1, "a", null]',
        '[]',
      ],
    ]);
    await expect(client.query('SELECT json_build_object(1) FROM pg_am')).rejects.toThrow('in turn');
  });

  test('cells in binary are those of their types', async () => {
    const raw = await RawClient.ready(world.others.find(({ name }) => name === 'relational')!.port, relationalSecret);
    const sql = `SELECT oid, relname, relkind, relnatts, reltuples, relhasindex, ARRAY[1,NULL], ARRAY['a'], relchecks::int4, current_schemas(true)
      FROM pg_class WHERE relname = 'Item'`;
    const replies = await raw.ask(parse(sql), describeMessage('S'), bind(1), execute(), sync);
    const row = replies.find(({ type }) => type === 'D')!;
    const [oid, name, kind, attributes, tuples, indexed, numbers, texts, checks, schemas] = cellsOf(row.body) as Buffer[];
    expect(oid!.readUInt32BE()).toBe(Number((await rowsOf(`SELECT '"Item"'::regclass::oid`))[0]![0]));
    expect([name, kind].map(String)).toEqual(['Item', 'r']);
    expect([attributes!.readInt16BE(), tuples!.readFloatBE(), indexed![0], checks!.readInt32BE()]).toEqual([15, -1, 1, 0]);
    expect(numbers!.toString('hex')).toBe('0000000100000001000000140000000200000001' + '000000080000000000000001' + 'ffffffff');
    expect(texts!.toString('hex')).toBe('0000000100000000000000190000000100000001' + '0000000161');
    expect(schemas!.readInt32BE(8)).toBe(19);
    raw.close();
  });

  test('types of parameters are told from what they stand beside', async () => {
    const raw = await RawClient.ready(world.others.find(({ name }) => name === 'relational')!.port, relationalSecret);
    const sql =
      'SELECT relname FROM pg_class WHERE oid = $1 AND relname = $2 AND relhasindex = $3 AND relnamespace = $4::regnamespace';
    const replies = await raw.ask(parse(sql, 's'), describeMessage('S', 's'), sync);
    const types = replies.find(({ type }) => type === 't')!.body;
    expect(Array.from({ length: 4 }, (_, i) => types.readInt32BE(2 + i * 4))).toEqual([20, 25, 16, 25]);
    raw.close();
  });
});

describe('what is not there is refused by its name', () => {
  test.each([
    ['SELECT * FROM pg_catalog.pg_authid', '42P01', /pg_catalog.*pg_authid/],
    ['SELECT pg_nothing() FROM pg_class', '42883', /PG_NOTHING\(\)/],
    ['SELECT nope FROM pg_class', '42703', /nope/],
    ['SELECT oid FROM pg_class, pg_type', '42702', /ambiguous/],
    ["SELECT oid = 'x' FROM pg_class", '22P02', /not an integer/],
    ["SELECT 'nope'::regclass", '42P01', /nope/],
    ['SELECT relname FROM pg_catalog.pg_class WHERE', '42601', /the end/],
    ['SELECT sum(relname) FROM pg_class', '42883', /SUM/],
    ["SELECT relname ~ '(a)\\1' FROM pg_class", '2201B', /back references/],
    ['INSERT INTO pg_class (oid) VALUES (1)', '42P01', /pg_class/],
    [`SELECT ${"'a' || ".repeat(2_000)}relname FROM pg_class`, '42601', /more than/],
    ['WITH RECURSIVE n AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT * FROM n, pg_am', '54000', /recursion/],
    ['WITH RECURSIVE n AS (SELECT 1 UNION ALL SELECT relname FROM n, pg_class) SELECT * FROM n', '42804', /integer/],
  ])('%s is %s', async (sql, state, says) => {
    expect(await stateOf(client.query(sql))).toBe(state);
    await expect(client.query(sql)).rejects.toThrow(says);
  });

  test('what is no question of the catalogue goes to the planner', async () => {
    expect(await rowsOf('SELECT 1 + 1 AS two')).toEqual([['2']]);
    expect(await stateOf(client.query('SELECT sku FROM pg_notes'))).toBe('42P01');
    await world.call('POST', '/types', { name: 'pg_notes', properties: { text: 'string' } });
    expect(await rowsOf('SELECT text FROM pg_notes')).toEqual([]);
  });
});

describe('who asks', () => {
  test('types of another tenant are not there, by name, number or count', async () => {
    const admin = { authorization: `Bearer ${world.token}` };
    for (const [tenant, name] of [
      ['acme', 'Ours'],
      ['initech', 'Theirs'],
    ] as const)
      await world.call('POST', '/types', { name, properties: { x: 'string' } }, { ...admin, 'x-organization-id': tenant });
    const names = "SELECT relname FROM pg_class WHERE relname IN ('Ours', 'Theirs', 'Theirs_pkey')";
    const probes = [
      "SELECT 'Theirs'::regclass",
      "SELECT to_regclass('Theirs')",
      "SELECT count(*) FROM information_schema.columns WHERE table_name = 'Theirs'",
      'SELECT count(*) FROM pg_attribute',
    ];
    const told = async (path: string): Promise<unknown[]> =>
      as(world, path, async (own) => {
        expect((await own.query(names)).rows.map(({ relname }: { relname: string }) => relname)).toEqual(
          path === 'acme' ? ['Ours'] : ['Theirs', 'Theirs_pkey'],
        );
        const answers: unknown[] = [];
        for (const sql of probes)
          answers.push(
            await own.query(sql).then(
              ({ rows }) => rows as unknown,
              (error: Error) => error.message,
            ),
          );
        return answers;
      });
    const [error, none, columns] = await told('acme');
    expect([error, none, columns]).toEqual(['"Theirs" is no regclass', [{ to_regclass: null }], [{ count: '0' }]]);
    expect((await told('initech'))[2]).toEqual([{ count: '9' }]);
  });

  test('REFERENCES is shown wherever clients look for it, and columns of answers name their table', async () => {
    const notices: string[] = [];
    client.on('notice', ({ message }) => notices.push(message ?? ''));
    await client.query('CREATE TABLE Maker (id text PRIMARY KEY)');
    await client.query('CREATE TABLE Made (id text PRIMARY KEY, maker text REFERENCES Maker (id))');
    expect(notices.join()).toContain('not enforced');
    const defined =
      'SELECT conname, contype, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = \'"Made"\'::regclass ORDER BY 1';
    expect(await rowsOf(defined)).toEqual([
      ['Made_maker_fkey', 'f', 'FOREIGN KEY (maker) REFERENCES "Maker"(id) NOT VALID'],
      ['Made_pkey', 'p', 'PRIMARY KEY (id)'],
    ]);
    expect(
      await rowsOf(`SELECT k.column_name, c.table_name, c.column_name FROM information_schema.key_column_usage k
        JOIN information_schema.referential_constraints r ON r.constraint_name = k.constraint_name
        JOIN information_schema.constraint_column_usage c ON c.constraint_name = r.constraint_name`),
    ).toEqual([['maker', 'Maker', 'id']]);
    const { fields } = await client.query("SELECT maker, m.id AS own, maker || 'x' FROM Made m ORDER BY maker");
    const numbers = (await client.query(`SELECT attrelid, attname, attnum FROM pg_attribute WHERE attrelid = '"Made"'::regclass`))
      .rows;
    const numberOf = (name: string): number[] => {
      const { attrelid, attnum } = numbers.find(({ attname }: { attname: string }) => attname === name) as Record<string, number>;
      return [Number(attrelid), Number(attnum)];
    };
    expect(fields.map(({ tableID, columnID }) => [tableID, columnID])).toEqual([numberOf('maker'), numberOf('id'), [0, 0]]);
  });

  test('what a policy closes is told as closed from the next question on, and as open again', async () => {
    await world.call('POST', '/types', { name: 'Sealed', properties: { x: 'string' } });
    const told = (): Promise<(string | null)[][]> =>
      rowsOf(`SELECT has_table_privilege('"Sealed"', 'select'), relacl::text, (SELECT count(*) FROM information_schema.table_privileges
        WHERE table_name = 'Sealed') FROM pg_class WHERE relname = 'Sealed'`);
    const open = await told();
    expect(open).toEqual([['t', expect.stringContaining('arwd'), '4']]);
    const all = await world.admin('PUT', '/admin/policies/all', { policy: 'permit(principal, action, resource);' });
    expect(all.status).toBeLessThan(300);
    const sealed = 'forbid(principal, action == Action::"read", resource is Sealed);';
    const put = await world.admin('PUT', '/admin/policies/sealed', { policy: sealed });
    expect([put.status, put.text]).toEqual([expect.any(Number), expect.not.stringContaining('REL_')]);
    const closed = await told();
    await world.admin('DELETE', '/admin/policies/sealed');
    await world.admin('DELETE', '/admin/policies/all');
    expect(closed).toEqual([['f', '{}', '0']]);
    expect(await told()).toEqual(open);
  });

  test('branches are databases, and what a branch knows is what its session is told', async () => {
    await world.call('POST', '/query', { sql: "BRANCH draft FROM 'main'" });
    expect(await rowsOf('SELECT datname FROM pg_database ORDER BY 1')).toEqual([['annals'], ['draft']]);
    const draft = await connected(world, { database: 'draft' });
    expect((await draft.query('SELECT current_database()')).rows).toEqual([{ current_database: 'draft' }]);
    await draft.end();
  });

  test('each question leaves one access record, that names no text of it', async () => {
    await as(world, 'catalogued', async (own) => {
      await own.query("SELECT relname FROM pg_class WHERE relname = 'secret-name'");
      await own.query('SELECT relname FROM pg_class WHERE relname = $1', ['secret-name']);
      await own.query('SELECT version()');
    });
    const { json } = await world.call('GET', '/audit/entries?limit=100', undefined, { 'x-organization-id': 'catalogued' });
    const entries = (json['entries'] as { door: string; action: string; template: string }[]).filter(
      ({ door }) => door === 'relational',
    );
    expect(entries.map(({ action }) => action)).toEqual(['query', 'query', 'query']);
    expect(JSON.stringify(entries)).not.toContain('secret-name');
    expect(entries.map(({ template }) => template)).toEqual([
      'SELECT relname FROM pg_class WHERE relname = ?s',
      'SELECT relname FROM pg_class WHERE relname = ?s',
      'SELECT version()',
    ]);
  });
});

test('JDBC finds imported keys: nine relations are joined before the places in the keys are spread', async () => {
  await client.query('CREATE TABLE town (id int PRIMARY KEY)');
  await client.query('CREATE TABLE borough (id int PRIMARY KEY, town int REFERENCES town (id))');
  const sql = `SELECT NULL::text AS PKTABLE_CAT, pkn.nspname AS PKTABLE_SCHEM, pkc.relname AS PKTABLE_NAME, pka.attname AS PKCOLUMN_NAME, NULL::text AS FKTABLE_CAT, fkn.nspname AS FKTABLE_SCHEM, fkc.relname AS FKTABLE_NAME, fka.attname AS FKCOLUMN_NAME, pos.n AS KEY_SEQ, CASE con.confupdtype WHEN 'c' THEN 0 WHEN 'n' THEN 2 WHEN 'd' THEN 4 WHEN 'r' THEN 1 WHEN 'p' THEN 1 WHEN 'a' THEN 3 ELSE NULL END AS UPDATE_RULE, CASE con.confdeltype WHEN 'c' THEN 0 WHEN 'n' THEN 2 WHEN 'd' THEN 4 WHEN 'r' THEN 1 WHEN 'p' THEN 1 WHEN 'a' THEN 3 ELSE NULL END AS DELETE_RULE, con.conname AS FK_NAME, pkic.relname AS PK_NAME, CASE WHEN con.condeferrable AND con.condeferred THEN 5 WHEN con.condeferrable THEN 6 ELSE 7 END AS DEFERRABILITY
    FROM pg_catalog.pg_namespace pkn, pg_catalog.pg_class pkc, pg_catalog.pg_attribute pka, pg_catalog.pg_namespace fkn, pg_catalog.pg_class fkc, pg_catalog.pg_attribute fka, pg_catalog.pg_constraint con, pg_catalog.generate_series(1, 32) pos(n), pg_catalog.pg_class pkic
    WHERE pkn.oid = pkc.relnamespace AND pkc.oid = pka.attrelid AND pka.attnum = con.confkey[pos.n] AND con.confrelid = pkc.oid AND fkn.oid = fkc.relnamespace AND fkc.oid = fka.attrelid AND fka.attnum = con.conkey[pos.n] AND con.conrelid = fkc.oid AND con.contype = 'f' AND (pkic.relkind = 'i' OR pkic.relkind = 'I') AND pkic.oid = con.conindid AND fkc.relname = 'borough'
    ORDER BY pkn.nspname,pkc.relname, con.conname,pos.n`;
  expect((await rowsOf(sql)).map((row) => row.filter((cell) => cell !== null).join(' '))).toEqual([
    'public town id public borough town 1 3 3 borough_town_fkey town_pkey 7',
  ]);
});
