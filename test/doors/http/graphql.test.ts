/** GraphQL over the whole stack: every row of the specification's table, the reply, what is refused, and real clients. */
import { buildClientSchema, getIntrospectionQuery, printSchema, validate, parse } from 'graphql';
import { ClientError, GraphQLClient } from 'graphql-request';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Reply } from './door-world.ts';
import { StoreWorld } from './store-world.ts';

let world: StoreWorld;
let client: GraphQLClient;

beforeAll(async () => {
  world = await StoreWorld.open({ SERVICE_MAX_RESULT_ROWS: '150' });
  const properties = { id: 'string', name: 'string', city: 'string', age: 'integer', rate: 'number', ok: 'boolean' };
  const more = { at: 'timestamp', doc: 'json', emb: { type: 'vector', dims: 2 } };
  const made = await world.call('POST', '/types', { name: 'Person', properties: { ...properties, ...more }, primary_key: 'id' });
  expect(made.status, made.text).toBe(201);
  const people = Array.from({ length: 160 }, (_, i) => ({
    id: `p${i}`,
    name: i === 1 ? `O'Hara "x"` : `name ${i}`,
    city: ['Lyon', 'Oslo'][i % 2],
    age: i,
    rate: i / 4,
    ok: i % 3 === 0,
    at: '2024-01-01T00:00:00Z',
    doc: { i },
    emb: [1, i],
  }));
  expect((await world.call('POST', '/ingest?object_type=Person', people)).status).toBe(200);
  const corrected = [{ id: 'p2', name: 'corrected', city: 'Lyon', age: 2 }];
  expect((await world.call('POST', '/ingest?object_type=Person', corrected)).status).toBe(200);
  const url = `${world.door.dataUrl}/graphql`;
  client = new GraphQLClient(url, { headers: { authorization: `Bearer ${world.token}` } });
});
afterAll(() => world.close());

const ask = (query: string, more: object = {}, headers: Record<string, string> = {}): Promise<Reply> =>
  world.call('POST', '/graphql', { query, ...more }, headers);

async function rows(query: string, variables: object = {}): Promise<Record<string, unknown>[]> {
  const { status, json, text } = await ask(query, { variables });
  expect(status, text).toBe(200);
  expect(json['errors']).toEqual([]);
  return json['data'] as Record<string, unknown>[];
}

async function refused(query: string, more: object = {}): Promise<string> {
  const { status, json, text } = await ask(query, more);
  expect(json['data'], text).toBeNull();
  const [error] = json['errors'] as { message: string; extensions: { code: string } }[];
  return `${status} ${error!.extensions.code} ${error!.message}`;
}

describe('a type and its fields', () => {
  test.each(['{ Person { id age } }', 'query { Person { id age } }', 'query Named { Person { id age age } }'])(
    '%s: the first hundred rows, as they are now',
    async (query) => {
      const found = await rows(query);
      expect(found).toHaveLength(100);
      expect(found.filter(({ id }) => id === 'p2')).toEqual([]);
      expect(Object.keys(found[0]!)).toEqual(['id', 'age']);
    },
  );

  test('of every kind, system columns and __typename among them', async () => {
    const found = await rows('{ Person(where: { id: "p3" }) { id rate ok at doc emb _pk valid_to __typename } }');
    expect(found).toMatchObject([
      {
        id: 'p3',
        rate: 0.75,
        ok: true,
        at: 1_704_067_200_000_000_000,
        doc: { i: 3 },
        emb: [1, 3],
        _pk: 'p3',
        __typename: 'Person',
      },
    ]);
    expect((await ask('{ Person(where: { id: "p3" }) { valid_to } }')).text).toContain('{"valid_to":9223372036854775807}');
  });

  test('with the basis and figures beside them', async () => {
    const { json } = await ask('{ Person(limit: 2) { id } }');
    expect(json).toMatchObject({ extensions: { row_count: 2, cost_units: 1, columns: ['id'], estimatedTotalHits: 160 } });
    expect(Number((json['extensions'] as { as_of_system: number }).as_of_system)).toBeGreaterThan(1.7e18);
  });
});

describe('limit', () => {
  test.each([
    ['{ Person(limit: 3) { id } }', {}, 3],
    ['{ Person(limit: 0) { id } }', {}, 0],
    ['query ($n: Int) { Person(limit: $n) { id } }', { n: 7 }, 7],
    ['query ($n: Int!) { Person(where: { city: "Lyon" }, limit: $n) { id } }', { n: 3 }, 3],
    // Capped by SERVICE_MAX_RESULT_ROWS.
    ['{ Person(limit: 1000000) { id } }', {}, 150],
    ['query ($n: Int) { Person(limit: $n) { id } }', { n: 99_999_999_999 }, 150],
  ])('%s %o', async (query, variables, count) => {
    expect(await rows(query, variables)).toHaveLength(count);
  });

  test.each(['-1', '2.5', '"3"', 'true', 'null', '[1]', '{ n: 1 }', 'SOME', '99999999999999999999'])(
    'refuses %s',
    async (limit) => {
      expect(await refused(`{ Person(limit: ${limit}) { id } }`)).toMatch(/^400 REL_INVALID 1:17: /);
    },
  );
});

describe('where', () => {
  test.each([
    ['{ name: "name 5" }', 'p5'],
    ['{ age: 5 }', 'p5'],
    ['{ age: 5.0 }', 'p5'],
    ['{ rate: 1.25 }', 'p5'],
    ['{ _pk: "p5" }', 'p5'],
    ['{ name: "O\'Hara \\"x\\"" }', 'p1'],
    ['{ name: """name 7""" }', 'p7'],
    [`{ name: "x' OR 1 = 1 --" }`, ''],
  ])('%s', async (where, ids) => {
    const found = await rows(`{ Person(where: ${where}) { id } }`);
    expect(found.map(({ id }) => id).join(' ')).toBe(ids);
  });

  test('a boolean', async () => {
    expect(await rows('{ Person(where: { ok: true }, limit: 150) { id } }')).toHaveLength(54);
  });

  test.each([
    ['{ age: 1, city: "Oslo" }', /one equality/],
    ['{ }', /names a field/],
    ['"age = 1"', /takes an object/],
    ['[{ age: 1 }]', /takes an object/],
    ['{ age: null }', /null equals nothing/],
    ['{ age: { gt: 5 } }', /a text, a number or a boolean/],
    ['{ city: Lyon }', /"Lyon"/],
    ['{ age: "five" }', /REL_TYPE_MISMATCH/],
    ['{ height: 5 }', /REL_UNKNOWN_COLUMN/],
    ['{ age: 99999999999999999999 }', /64 bits/],
  ])('refuses %s', async (where, said) => {
    const message = await refused(`{ Person(where: ${where}) { id } }`);
    expect(message).toMatch(said);
    expect(message).toMatch(/^400 /);
  });
});

describe('variables', () => {
  test('bound in where, their definitions read over', async () => {
    const query = 'query Q($c: String! = "Rome", $unused: Person) { Person(where: { city: $c }, limit: 2) { id city } }';
    expect(await rows(query, { c: 'Oslo' })).toEqual([
      { id: 'p1', city: 'Oslo' },
      { id: 'p3', city: 'Oslo' },
    ]);
    expect(await refused(query)).toMatch(/^400 REL_INVALID .*\$c/);
  });

  test('a whole filter, of which all must hold', async () => {
    const query = 'query ($f: PersonWhere) { Person(where: $f, limit: 150) { id } }';
    expect(await rows(query, { f: { city: 'Lyon', age: 4 } })).toEqual([{ id: 'p4' }]);
    expect(await rows(query, { f: { city: 'Oslo', age: 4 } })).toEqual([]);
    expect(await rows(query, { f: { ok: true, city: 'Lyon' } })).toHaveLength(27);
    expect(await rows(query, { f: {} })).toHaveLength(150);
  });

  test('exact, whatever their size', async () => {
    const [row] = (await ask('{ Person(where: { id: "p9" }) { system_from } }')).text.match(/(?<="system_from":)\d+/)!;
    const body = (n: bigint): string =>
      `{"query":"query ($n: Long) { Person(where: { system_from: $n }) { id } }","variables":{"n":${n}}}`;
    const found = async (n: bigint): Promise<unknown> => (await world.call('POST', '/graphql', body(n))).json['data'];
    expect(await found(BigInt(row))).toEqual([{ id: 'p9' }]);
    expect(await found(BigInt(row) + 1n)).toEqual([{ id: 'p10' }]);
  });

  test.each([
    ['where: { city: $v }', {}, /\$v/],
    ['where: { city: $v }', { v: null }, /\$v/],
    ['where: { city: $v }', { v: ['Oslo'] }, /\$v/],
    ['where: { city: $v }', { v: { city: 'Oslo' } }, /\$v/],
    ['where: { city: $v }', { v: 5 }, /REL_TYPE_MISMATCH/],
    ['where: { city: $toString }', {}, /\$toString/],
    ['where: $v', {}, /\$v/],
    ['where: $v', { v: null }, /\$v/],
    ['where: $v', { v: 'city' }, /filter/],
    ['where: $v', { v: [{ city: 'Oslo' }] }, /filter/],
    ['where: $v', { v: { city: null } }, /\$v\.city/],
    ['where: $v', { v: { city: { eq: 'Oslo' } } }, /\$v\.city/],
    ['where: $v', { v: { 'city = city OR "x"': 'Oslo' } }, /letters, digits and underscores/],
    ['where: $v', { v: { städte: 'Oslo' } }, /letters, digits and underscores/],
    ['limit: $v', { v: '5' }, /limit/],
    ['limit: $v', { v: 1.5 }, /limit/],
    ['limit: $v', { v: true }, /limit/],
    ['limit: $v', { v: -1 }, /limit/],
    ['limit: $v', {}, /\$v/],
  ])('%s %o is refused', async (argument, variables, said) => {
    const message = await refused(`query ($v: X) { Person(${argument}) { id } }`, { variables });
    expect(message).toMatch(/^400 /);
    expect(message).toMatch(said);
  });
});

describe('what there is no place for', () => {
  test.each([
    ['mutation { addPerson(id: "x") { id } }', /^400 REL_READ_ONLY .*mutations are not supported/],
    ['subscription { Person { id } }', /^400 REL_PARSE/],
    ['{ Person { ...F } } fragment F on Person { id }', /^400 REL_PARSE .*fragments/],
    ['{ Person { ... on Person { id } } }', /^400 REL_PARSE .*fragments/],
    ['{ ...F } fragment F on Query { Person { id } }', /^400 REL_PARSE .*fragments/],
    ['{ ... on Query { Person { id } } }', /^400 REL_PARSE .*fragments/],
    ['{ Person { id } } fragment F on Query { __typename }', /^400 REL_PARSE .*fragments/],
    ['union U = A | B', /^400 REL_PARSE/],
    ['interface I { id: ID }', /^400 REL_PARSE/],
    ['{ Person { id } } type T { id: ID }', /^400 REL_PARSE/],
    ['{ Person { id } ', /^400 REL_PARSE 1:17: /],
    ['SELECT * FROM Person', /^400 REL_PARSE 1:1: /],
    [' ', /^400 REL_PARSE/],
    ['{ }', /^400 REL_PARSE/],
    ['{ Person }', /^400 REL_INVALID .*select its fields/],
    ['{ Person { id } City { id } }', /^400 REL_INVALID .*one root field/],
    ['{ Person { id } __typename }', /^400 REL_INVALID .*one root field/],
    ['{ p: Person { id } }', /^400 REL_INVALID .*aliases/],
    ['{ Person { key: id } }', /^400 REL_INVALID .*aliases/],
    ['{ Person { id { of } } }', /^400 REL_INVALID .*fields of its own/],
    ['{ Person { id(x: 1) } }', /^400 REL_INVALID .*arguments/],
    ['{ Person(first: 5) { id } }', /^400 REL_INVALID .*where and limit/],
    ['{ Person(limit: 5, limit: 6) { id } }', /^400 REL_INVALID .*twice/],
    ['{ Person @include(if: true) { id } }', /^400 REL_PARSE .*directives/],
    ['query A { Person { id } } query B { Person { id } }', /^400 REL_INVALID .*operationName .*A, B/],
    ['query A { Person { id } } { Person { id } }', /^400 REL_INVALID 1:27: .*needs a name/],
    ['query A { Person { id } } query A { Person { id } }', /^400 REL_INVALID .*two operations are called A/],
    ['{ Persn { id } }', /^400 REL_UNKNOWN_TYPE .*Person/],
    ['{ Person { nmae } }', /^400 REL_UNKNOWN_COLUMN .*name/],
    ['{ SigintIntercept { id } }', /^403 REL_HUMINT/],
    [`{ Person { ${'a '.repeat(20_000)} } }`, /^400 REL_PARSE .*10000 tokens/],
    [`{a${'{a'.repeat(4_900)}`, /^400 REL_PARSE/],
  ])('%#', async (query, said) => {
    expect(await refused(query)).toMatch(said);
  });

  test('operationName says which of several operations runs, and nothing of the others is asked', async () => {
    const query =
      'query One { Person(limit: 1) { id } } query Two($n: Int) { Person(limit: $n) { age } } query Schema { ...S } ' +
      'query Broken { Nobody { ...R } } mutation Change { add { id } } ' +
      'fragment S on Query { __schema { ...T } } fragment T on __Schema { queryType { name } } fragment R on Person { id }';
    const data = async (operationName: string, variables = {}): Promise<unknown> => {
      const { status, json, text } = await ask(query, { operationName, variables });
      expect(status, text).toBe(200);
      return json['data'];
    };
    expect(await data('One')).toEqual([{ id: 'p0' }]);
    expect(await data('Two', { n: 1 })).toEqual([{ age: 0 }]);
    expect(await data('Schema')).toEqual({ __schema: { queryType: { name: 'Query' } } });
    expect(await refused(query, { operationName: 'Broken' })).toMatch(/^400 REL_PARSE .*fragments/);
    expect(await refused(query, { operationName: 'Change' })).toMatch(/^400 REL_READ_ONLY/);
    expect(await refused(query, { operationName: 'Thre' })).toMatch(/^400 REL_INVALID .*operationName/);
    expect(await refused(query, { operationName: 'Tow' })).toMatch(/did you mean Two/);
    expect(await refused(query)).toMatch(/^400 REL_INVALID .*operationName .*One, Two, Schema, Broken, Change/);
    expect(await refused('{ Person { id } }', { operationName: 'One' })).toMatch(/^400 REL_INVALID/);
  });

  test('operationName names the one there is', async () => {
    const query = 'query A { Person(limit: 1) { id } }';
    expect((await ask(query, { operationName: 'A' })).status).toBe(200);
    expect((await ask(query, { operationName: null })).status).toBe(200);
    expect(await refused(query, { operationName: 'B' })).toMatch(/^400 REL_INVALID/);
  });

  test.each([
    ['{"query": ', 400],
    ['{}', 400],
    ['{"query": ""}', 400],
    ['{"query": 5}', 400],
    ['{"query": "{ Person { id } }", "variables": []}', 400],
    ['{"query": "{ Person { id } }", "asof": "2024-01-01"}', 400],
  ])('the body %s is answered with a problem record', async (body, status) => {
    const reply = await world.call('POST', '/graphql', body);
    expect(reply.status).toBe(status);
    expect(reply.headers['content-type']).toContain('application/problem+json');
  });

  test('other methods, and who has no token', async () => {
    const got = await world.call('GET', '/graphql?query={Person{id}}');
    expect([got.status, got.headers['allow']]).toEqual([405, 'POST']);
    expect((await ask('{ Person { id } }', {}, { authorization: 'Bearer none' })).status).toBe(401);
  });
});

describe('the way of a question', () => {
  test('purpose, instants, branch and the record', async () => {
    const before = (await ask('{ Person(where: { id: "p2" }) { name valid_from } }')).json;
    expect(before['data']).toMatchObject([{ name: 'corrected' }]);
    const first = await world.rows("SELECT system_from, name FROM Person WHERE id = 'p2' AND name = 'name 2'");
    expect(first).toHaveLength(1);
    const texts = (await world.query("SELECT system_from FROM Person WHERE id = 'p2' AND name = 'name 2'")).text;
    const [instant] = /(?<="system_from":)\d+/.exec(texts)!;
    const then = await ask('{ Person(where: { id: "p2" }) { name } }', { as_of_system: instant });
    expect(then.json['data']).toEqual([{ name: 'name 2' }]);
    const early = await ask('{ Person { name } }', { asOf: '2020-01-01' });
    expect(early.json['data']).toEqual([]);

    expect((await world.call('POST', '/v1/namespaces/side/branch', { branch_from: 'main' })).status).toBe(201);
    const branch = { 'x-service-branch': 'side' };
    await world.call('POST', '/ingest?object_type=Person', [{ id: 'q1', name: 'of the side' }], branch);
    expect((await ask('{ Person(where: { id: "q1" }) { name } }', {}, branch)).json['data']).toHaveLength(1);
    expect(await rows('{ Person(where: { id: "q1" }) { name } }')).toEqual([]);

    const curious = await ask('{ Person { id } }', {}, { 'x-service-purpose': 'curiosity' });
    expect([curious.status, curious.text]).toEqual([403, expect.stringContaining('"code":"REL_PURPOSE_UNKNOWN"')]);
    await ask(
      'query ($v: X) { Person(where: { city: $v }) { id } }',
      { variables: { v: 'a secret' } },
      { 'x-service-purpose': 'test' },
    );
    const { json, text } = await world.call('GET', '/audit/entries?limit=1000&action=query');
    const entries = json['entries'] as { template?: string; purpose: string; row_count: number; object_type: string }[];
    expect(text).not.toContain('a secret');
    expect(entries.at(-1)).toMatchObject({ purpose: 'test', object_type: 'Person', row_count: 0 });
    expect(entries.some(({ purpose }) => purpose === 'analytics')).toBe(true);
  });
});

describe('the schema', () => {
  test('is one that clients and generators accept', async () => {
    const { data, errors } = await client.rawRequest<never>(getIntrospectionQuery({ inputValueDeprecation: true, oneOf: true }));
    expect(errors ?? []).toEqual([]);
    const schema = buildClientSchema(data);
    const text = printSchema(schema);
    expect(text).toContain('Person(where: PersonWhere, limit: Int = 100): [Person!]!');
    expect(text).toContain('emb: [Float!]');
    expect(text).toContain('type MemoryItem {');
    const asked = 'query ($f: PersonWhere) { Person(where: $f, limit: 5) { id valid_from doc } }';
    expect(validate(schema, parse(asked))).toEqual([]);
    expect(validate(schema, parse('{ Person { nothing } }'))).toHaveLength(1);
  });

  test('by parts: data is an object', async () => {
    const typed = await ask(
      'query ($n: String!) { t: __type(name: $n) { ...T } none: __type(name: "None") { name } __typename } fragment T on __Type { name kind fields { name } }',
      { variables: { n: 'Person' } },
    );
    expect(typed.json).toMatchObject({
      data: { t: { name: 'Person', kind: 'OBJECT' }, none: null, __typename: 'Query' },
      errors: [],
    });
    const names = (typed.json['data'] as { t: { fields: { name: string }[] } }).t.fields.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['id', 'age', 'doc', 'valid_from']));
    const { json } = await ask('{ __schema { queryType { name __typename } types { name } mutationType { name } } }');
    expect(json).toMatchObject({
      data: { __schema: { queryType: { name: 'Query', __typename: '__Type' }, mutationType: null } },
    });
    const skipped = await ask('query ($no: Boolean!) { __typename __schema @include(if: $no) { description } }', {
      variables: { no: false },
    });
    expect(skipped.json['data']).toEqual({ __typename: 'Query' });
  });

  test.each([
    ['{ __schema { nothing } }', /^400 REL_PARSE .*nothing/],
    ['{ __type { name } }', /^400 REL_PARSE .*name/],
    ['{ ...F }', /^400 REL_PARSE .*F/],
    ['query ($n: String!) { __type(name: $n) { name } }', /^400 REL_INVALID .*\$n/],
    ['{ __schema { ...F } } fragment F on __Schema { ...F }', /^400 REL_INVALID .*levels/],
    [`{ ${Array.from({ length: 17 }, (_, i) => `a${i}: __typename`).join(' ')} }`, /^400 REL_INVALID .*16 aliases/],
    [
      `{ __schema { types { ...F0 } } } ${Array.from({ length: 12 }, (_, i) => `fragment F${i} on __Type { name ofType { ...F${i + 1} } interfaces { ...F${i + 1} } }`).join(' ')} fragment F12 on __Type { name }`,
      /^400 REL_INVALID .*1000 fields/,
    ],
    ['{ __schema { types { fields { type { fields { type { fields { type { fields { name } } } } } } } } } }', /^400 REL_PARSE/],
  ])('refusal %#', async (query, said) => {
    expect(await refused(query)).toMatch(said);
  });

  test('types may be called like anything', async () => {
    const names = ['Query', 'Long', 'String', 'PersonWhere', 'constructor'];
    for (const name of names) await world.call('POST', '/types', { name, properties: { id: 'string' } });
    const { data } = await client.rawRequest<never>(getIntrospectionQuery());
    const text = printSchema(buildClientSchema(data));
    for (const name of names) expect(text).toMatch(new RegExp(`  ${name}\\(where: \\w+, limit: Int = 100\\): \\[${name}_*!\\]!`));
    expect(await rows('{ Query { id } }')).toEqual([]);
  });
});

test('graphql-request, which asks for the media type of GraphQL, gets an object and meets errors as its own', async () => {
  const query = 'query ($c: String) { Person(where: { city: $c }, limit: 1) { id } }';
  expect(await client.request(query, { c: 'Oslo' })).toEqual({ Person: [{ id: 'p1' }] });
  const wrong = client.request('{ Nobody { id } }');
  await expect(wrong).rejects.toBeInstanceOf(ClientError);
  await expect(wrong).rejects.toThrow(/"Nobody" is not registered/);
  const accept = 'application/json, application/graphql-response+json;q=0.9';
  expect((await ask('{ Person(limit: 1) { id } }', {}, { accept })).json['data']).toEqual([{ id: 'p0' }]);
});

test('random questions answer as the SQL that means the same', async () => {
  let seed = 11;
  const pick = <T>(list: readonly T[]): T => list[(seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) % list.length]!;
  const fields = ['id', 'name', 'city', 'age', 'rate', 'ok', '_pk', 'doc'];
  const filters: readonly (readonly [string, unknown])[] = [
    ['city', 'Oslo'],
    ['city', 'nowhere'],
    ['age', 7],
    ['rate', 2.5],
    ['ok', true],
    ['ok', false],
    ['id', 'p12'],
    ['name', "it's"],
  ];
  const sqlOf = (value: unknown): string => (typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value));
  for (let i = 0; i < 40; i++) {
    const shown = [...new Set([pick(fields), pick(fields), pick(fields)])];
    const filter = Object.fromEntries([pick(filters), pick(filters)].slice(0, pick([0, 1, 2])));
    const limit = pick([null, 1, 10, 120]);
    const names = Object.keys(filter);
    const isVariable = names.length > 1 || pick([true, false]);
    const written = names.map((name) => `${name}: ${JSON.stringify(filter[name])}`).join();
    const given = [
      ...(names.length === 0 ? [] : [isVariable ? 'where: $f' : `where: { ${written} }`]),
      ...(limit === null ? [] : [`limit: ${limit}`]),
    ];
    const document = `query ($f: PersonWhere) { Person${given.length === 0 ? '' : `(${given.join()})`} { ${shown.join(' ')} } }`;
    const where = names.map((name) => `${name} = ${sqlOf(filter[name])}`).join(' AND ');
    const sql = `SELECT ${shown.join(', ')} FROM Person AS OF CURRENT${where === '' ? '' : ` WHERE ${where}`} LIMIT ${limit ?? 100}`;
    expect([document, await rows(document, { f: filter })]).toEqual([document, await world.rows(sql)]);
  }
});
