/** SPARQL over the whole stack: what the specification has, what it refuses, both forms of the answer, and a real client. */
import { SparqlEndpointFetcher } from 'fetch-sparql-endpoint';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Reply } from './door-world.ts';
import { StoreWorld } from './store-world.ts';

let world: StoreWorld;

const facts = [
  ['acme', 'employs', 'ada'],
  ['acme', 'employs', 'bob'],
  ['ada', 'knows', 'bob'],
  ['bob', 'knows', 'ada'],
  ['bob', 'knows', 'bob'],
  ['ada', 'livesIn', 'Lyon'],
  ['bob', 'livesIn', "L'Aquila"],
  ['http://ex.org/eve', 'http://ex.org/age', '41'],
  ['http://ex.org/eve', 'http://ex.org/homepage', 'http://eve.example/'],
  ['http://ex.org/eve', 'http://ex.org/note', 'two words: here'],
  ['http://ex.org/This_(journal)', 'http://ex.org/a.b-c%20', '_:x1'],
];
const rows = facts.map(([subject, predicate, object], i) => ({ id: `k${i}`, subject, predicate, object }));

beforeAll(async () => {
  world = await StoreWorld.open();
  const written = await world.call('POST', '/ingest?object_type=KnowledgeTriple&source=church&method=typed', rows);
  expect(written.status, written.text).toBe(200);
  const later = [{ id: 'k5', subject: 'ada', predicate: 'livesIn', object: 'Oslo' }];
  await world.call('POST', '/ingest?object_type=KnowledgeTriple&source=letter', later);
});
afterAll(() => world.close());

const get = (query: string, more: Record<string, string> = {}, headers: Record<string, string> = {}): Promise<Reply> =>
  world.call('GET', `/sparql?${new URLSearchParams({ query, ...more }).toString()}`, undefined, headers);
const post = (body: string, headers: Record<string, string> = {}, url = '/sparql'): Promise<Reply> =>
  world.call('POST', url, body, { 'content-type': 'application/sparql-query', ...headers });

async function found(query: string): Promise<Record<string, unknown>[]> {
  const { status, json, text } = await get(query);
  expect(status, text).toBe(200);
  return json['data'] as Record<string, unknown>[];
}

describe('triple patterns', () => {
  test.each([
    ['SELECT ?who WHERE { <acme> <employs> ?who }', [{ who: 'ada' }, { who: 'bob' }]],
    ['SELECT * { ?s <livesIn> "Oslo" }', [{ s: 'ada' }]],
    ['SELECT ?o { <bob> <livesIn> ?o }', [{ o: "L'Aquila" }]],
    [`SELECT ?s { ?s <livesIn> "L'Aquila" }`, [{ s: 'bob' }]],
    ['SELECT ?s { ?s ?p "nothing" }', []],
    // What is superseded is not true now.
    ['SELECT ?s { ?s <livesIn> "Lyon" }', []],
    ['SELECT ?x { ?x <knows> ?x }', [{ x: 'bob' }]],
    ['SELECT ?a ?b { ?a <knows> ?b . ?b <livesIn> "Oslo" }', [{ a: 'bob', b: 'ada' }]],
    [
      'SELECT ?c ?where WHERE { <acme> <employs> ?c ; <employs> <bob> . ?c <livesIn> ?where . }',
      [
        { c: 'bob', where: "L'Aquila" },
        { c: 'ada', where: 'Oslo' },
      ],
    ],
    ['SELECT ?w { <acme> <employs> [ <livesIn> ?w ; <knows> <ada> ] }', [{ w: "L'Aquila" }]],
    ['SELECT ?w { <acme> <employs> _:x . _:x <livesIn> ?w . _:x <knows> <ada> }', [{ w: "L'Aquila" }]],
    ['PREFIX e: <http://ex.org/> SELECT ?age { e:eve e:age ?age }', [{ age: '41' }]],
    ['PREFIX e: <http://ex.org/> SELECT ?s { ?s e:age 41 }', [{ s: 'http://ex.org/eve' }]],
    [
      'PREFIX e: <http://ex.org/> SELECT ?s { ?s e:age "41"^^<http://www.w3.org/2001/XMLSchema#integer> }',
      [{ s: 'http://ex.org/eve' }],
    ],
    ['BASE <http://ex.org/> SELECT ?age { <eve> <age> ?age }', [{ age: '41' }]],
    // Signs that would end a local name stand behind a backslash; percent signs stay.
    ['PREFIX e: <http://ex.org/> SELECT ?o { e:This_\\(journal\\) ?p ?o }', [{ o: '_:x1' }]],
    ['PREFIX e: <http://ex.org/> SELECT ?o { e:This\\_\\(journal\\) e:a\\.b\\-c%20 ?o }', [{ o: '_:x1' }]],
    ['SELECT ?o { <http://ex.org/This_\\u0028journal\\u0029> ?p ?o }', [{ o: '_:x1' }]],
    [`SELECT ?s { ?s <livesIn> 'L\\'Aquila' }`, [{ s: 'bob' }]],
    ['SELECT ?s { ?s <livesIn> "\\u004Fslo" }', [{ s: 'ada' }]],
    // A solution may bind nothing, and no pattern at all has one.
    ['SELECT * WHERE { <acme> <employs> <ada> }', [{}]],
    ['SELECT * WHERE { <acme> <employs> <nobody> }', []],
    ['SELECT * WHERE { <acme> <employs> _:x }', [{}, {}]],
    ['SELECT * WHERE { }', [{}]],
    ['SELECT * { } LIMIT 0', []],
    ['SELECT ?s {}', [{ s: null }]],
    ['SELECT ?x ?s { ?s <livesIn> "Oslo" }', [{ x: null, s: 'ada' }]],
  ])('%s', async (query, expected) => {
    const sorted = (all: unknown[]): string[] => all.map((each) => JSON.stringify(each)).sort();
    expect(sorted(await found(query))).toEqual(sorted(expected));
  });

  test('joined by nothing: each beside each; LIMIT', async () => {
    expect(await found('SELECT ?a ?b { ?a <knows> ?x . ?b <employs> ?y }')).toHaveLength(6);
    expect(await found('SELECT ?s ?p ?o { ?s ?p ?o }')).toHaveLength(11);
    expect(await found('SELECT ?s ?p ?o { ?s ?p ?o } LIMIT 4')).toHaveLength(4);
    expect(await found('SELECT ?s { ?s ?p ?o } LIMIT 0')).toEqual([]);
    expect(await found('SELECT ?s { ?s ?p ?o } LIMIT 99999999999999999999')).toHaveLength(11);
  });
});

describe('the provenance view', () => {
  const place = 'prov:wasAttributedTo';

  test('method, source and instant of every row, and what it was derived from', async () => {
    const methods = await found('SELECT ?row ?how { ?row prov:wasGeneratedBy ?how }');
    expect(methods.map(({ how }) => String(how)).sort()).toEqual(['ingest', ...Array<string>(10).fill('typed')]);
    const [{ row }] = (await found(`SELECT ?row { ?row ${place} "letter" }`)) as [{ row: string }];
    expect(row).toMatch(/^[0-9a-f]{16}$/);
    const [{ at }] = (await found(`SELECT ?at { ?row ${place} "letter" . ?row prov:generatedAtTime ?at }`)) as [{ at: string }];
    expect(BigInt(at)).toBe(BigInt(`0x${row}`));
    expect(await found(`SELECT ?p { <${row}> ${place} ?p }`)).toEqual([{ p: 'letter' }]);
    expect(await found(`PREFIX w3: <http://www.w3.org/ns/prov#> SELECT ?p { <${row}> w3:wasAttributedTo ?p }`)).toEqual([
      { p: 'letter' },
    ]);
    expect(await found(`SELECT ?p { <nonsense> ${place} ?p }`)).toEqual([]);
    // The version that it superseded is not true now; SQL asks of all of them.
    const [{ before }] = (await found('SELECT ?before { ?row prov:wasDerivedFrom ?before }')) as [{ before: string }];
    const of = (subject: string): Promise<Record<string, unknown>[]> =>
      world.rows(`SELECT object FROM ProvenanceTriple WHERE subject = '${subject}' AND predicate LIKE '%AttributedTo'`);
    expect(await of(before)).toEqual([{ object: 'church' }]);
    expect(await found(`SELECT ?p { <${before}> ${place} ?p }`)).toEqual([]);
  });

  test('and what rows themselves say of provenance', async () => {
    const said = { id: 'said', subject: 'letter', predicate: 'http://www.w3.org/ns/prov#wasAttributedTo', object: 'bishop' };
    await world.call('POST', '/ingest?object_type=KnowledgeTriple', [said]);
    expect(await found(`SELECT ?who { ?row ${place} ?source . ?source ${place} ?who }`)).toEqual([{ who: 'bishop' }]);
    await world.call('DELETE', '/types/KnowledgeTriple/said?hard=true');
  });

  test('names no row that its reader does not see', async () => {
    const other = { 'x-organization-id': 'elsewhere' };
    await world.call('POST', '/ingest?object_type=KnowledgeTriple&source=hidden', rows.slice(0, 2), other);
    expect(await found(`SELECT ?row { ?row ${place} "hidden" }`)).toEqual([]);
    const seen = await get(`SELECT ?row { ?row ${place} "hidden" }`, {}, other);
    expect(seen.json).toMatchObject({ rows: 2 });
  });
});

describe('what there is no place for', () => {
  test.each([
    ['SELECT ?s { ?s ?p ?o OPTIONAL { ?o ?q ?r } }', 'OPTIONAL'],
    ['SELECT ?s { ?s ?p ?o FILTER(?o > 5) }', 'FILTER'],
    ['SELECT ?s { ?s ?p ?o FILTER EXISTS { ?o ?q ?r } }', 'FILTER'],
    ['SELECT ?s { GRAPH <g> { ?s ?p ?o } }', 'GRAPH'],
    ['CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }', 'CONSTRUCT'],
    ['ASK { ?s ?p ?o }', 'ASK'],
    ['DESCRIBE <acme>', 'DESCRIBE'],
    ['SELECT ?s { ?s ?p ?o } ORDER BY ?s', 'ORDER BY'],
    ['SELECT ?s { ?s ?p ?o } LIMIT 5 OFFSET 2', 'OFFSET'],
    ['SELECT DISTINCT ?s { ?s ?p ?o }', 'DISTINCT'],
    ['SELECT REDUCED ?s { ?s ?p ?o }', 'REDUCED'],
    ['SELECT ?s { { ?s ?p ?o } UNION { ?o ?p ?s } }', 'UNION'],
    ['SELECT ?s { SERVICE <http://other/> { ?s ?p ?o } }', 'SERVICE'],
    ['SELECT ?s { ?s ?p ?o MINUS { ?s <knows> ?o } }', 'MINUS'],
    ['SELECT ?s { ?s ?p ?o BIND(1 AS ?x) }', 'BIND'],
    ['SELECT ?s { ?s ?p ?o VALUES ?o { 1 } }', 'VALUES'],
    ['SELECT ?s { ?s ?p ?o } VALUES ?o { 1 }', 'VALUES'],
    ['SELECT ?s { { ?s ?p ?o } }', 'a group in a group'],
    ['SELECT ?s { { SELECT ?s { ?s ?p ?o } } }', 'supported'],
    ['SELECT ?s { ?s <knows>/<livesIn> ?o }', 'property path'],
    ['SELECT ?s { ?s <knows>+ ?o }', 'property path'],
    ['SELECT ?s { ?s ^<knows> ?o }', 'property path'],
    ['SELECT (COUNT(*) AS ?n) { ?s ?p ?o }', 'AS'],
    ['SELECT ?p (COUNT(?s) AS ?n) { ?s ?p ?o } GROUP BY ?p', 'GROUP BY'],
    ['SELECT ?s FROM <g> { ?s ?p ?o }', 'FROM'],
    ['SELECT ?s { ?s <livesIn> "Oslo"@no }', 'language tags'],
    ['SELECT ?s { ?s foo:bar ?o }', '1:16: the prefix foo: is not declared'],
    ['SELECT ?s {\n ?s ?p }', '2:8: "}"'],
    ['SELECT ?s {', 'ends too early'],
    ['SELECT ?s {\n ?s ?p x }', '2:8: '],
    ['SELECT * FROM KnowledgeTriple', '1:'],
    ['INSERT DATA { <a> <b> <c> }', 'updates are not supported'],
    [`SELECT * { ${'?s ?p ?o . '.repeat(65)} }`, '64 tables'],
    [`SELECT * { ${'?s ?p ?o . '.repeat(200)} }`, '512 words'],
    [`SELECT * { ${'{'.repeat(100)} }`, '32 levels'],
    [`SELECT * { ?s ?p "${'x'.repeat(70_000)}" }`, '65536 characters'],
    [' ', 'missing'],
  ])('refusal %#: %.50s', async (query, said) => {
    for (const reply of [await post(query), ...(query.length > 2_000 ? [] : [await get(query)])]) {
      expect([reply.status, reply.headers['content-type']]).toEqual([400, expect.stringContaining('problem+json')]);
      expect(reply.json['detail']).toMatch(new RegExp(said));
    }
  });

  test('of the protocol', async () => {
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    const one = encodeURIComponent('SELECT ?s { ?s ?p ?o }');
    for (const [body, headers, url] of [
      ['update=INSERT', form],
      [`query=${one}&query=${one}`, form],
      [`query=${one}&default-graph-uri=x`, form],
      ['', form],
      ['SELECT ?s { ?s ?p ?o }', { 'content-type': 'text/plain' }],
      ['SELECT ?s { ?s ?p ?o }', { 'content-type': 'application/sparql-update' }],
      ['SELECT ?s { ?s ?p ?o }', {}, '/sparql?query=SELECT'],
      ['SELECT ?s { ?s ?p ?o }', {}, '/sparql?named-graph-uri=x'],
    ] as const) {
      expect([body, (await post(body, headers, url)).status]).toEqual([body, 400]);
    }
    expect((await world.call('GET', '/sparql')).status).toBe(400);
    expect((await world.call('PUT', '/sparql')).status).toBe(405);
    expect((await get('SELECT ?s { ?s ?p ?o }', {}, { authorization: 'Bearer none' })).status).toBe(401);
    expect((await post('SELECT ?s { ?s ?p ?o }', { authorization: 'Bearer none' })).status).toBe(401);
  });
});

describe('the answer', () => {
  const query = 'SELECT ?a ?b { ?a <knows> ?b . ?b <livesIn> "Oslo" } LIMIT 3';

  test('in the envelope of the specification, by every way of asking', async () => {
    const form = { 'content-type': 'application/x-www-form-urlencoded;charset=UTF-8' };
    const replies = [
      await get(query),
      await post(query),
      await post(`query=${encodeURIComponent(query)}`, form),
      await get(query, {}, { accept: 'application/json' }),
    ];
    for (const { json, headers } of replies) {
      expect(headers['content-type']).toBe('application/json; charset=utf-8');
      expect(json).toMatchObject({
        sparql: query,
        sql:
          'SELECT t1.subject AS "a", t1.object AS "b" FROM KnowledgeTriple t1 JOIN KnowledgeTriple t2 ON t1.object = t2.subject ' +
          "AS OF CURRENT WHERE t1.predicate = 'knows' AND t2.predicate = 'livesIn' AND t2.object = 'Oslo' LIMIT 3",
        rows: 1,
        columns: ['a', 'b'],
        data: [{ a: 'bob', b: 'ada' }],
        processing_time_ms: expect.any(Number),
        as_of_system: expect.any(Number),
      });
    }
  });

  test('as the results format of SPARQL', async () => {
    const accept = { accept: 'application/sparql-results+json;q=1.0, application/json;q=0.9, */*;q=0.1' };
    const { json, headers } = await get('SELECT ?s ?p ?o { ?s ?p ?o . ?s <http://ex.org/age> "41" }', {}, accept);
    expect(headers['content-type']).toBe('application/sparql-results+json; charset=utf-8');
    expect(headers['x-service-as-of-system']).toMatch(/^\d{19}$/);
    const uri = (value: string) => ({ type: 'uri', value });
    const [s, e] = [uri('http://ex.org/eve'), 'http://ex.org/'];
    expect(json).toEqual({
      head: { vars: ['s', 'p', 'o'] },
      results: {
        bindings: [
          { s, p: uri(`${e}age`), o: { type: 'literal', value: '41' } },
          { s, p: uri(`${e}homepage`), o: uri('http://eve.example/') },
          { s, p: uri(`${e}note`), o: { type: 'literal', value: 'two words: here' } },
        ],
      },
    });
    const accepted = async (text: string): Promise<unknown> => (await get(text, {}, accept)).json;
    expect(await accepted('SELECT * { <acme> <employs> <ada> }')).toEqual({ head: { vars: [] }, results: { bindings: [{}] } });
    expect(await accepted('SELECT ?x { }')).toEqual({ head: { vars: ['x'] }, results: { bindings: [{}] } });
    const blank = { head: { vars: ['o'] }, results: { bindings: [{ o: { type: 'bnode', value: 'x1' } }] } };
    expect(await accepted('SELECT ?o { <http://ex.org/This_(journal)> ?p ?o }')).toEqual(blank);
    const none = await post('SELECT ?s { ?s <never> ?o }', { accept: 'application/sparql-results+json' });
    expect(none.json).toEqual({ head: { vars: ['s'] }, results: { bindings: [] } });
  });

  test('of then, on a branch, for a purpose; its record holds no value', async () => {
    const text = (await world.query("SELECT system_from FROM KnowledgeTriple WHERE id = 'k5' AND object = 'Lyon'")).text;
    const [then] = /(?<="system_from":)\d+/.exec(text)!;
    const where = 'SELECT ?w { <ada> <livesIn> ?w }';
    expect((await get(where, { as_of_system: then! })).json['data']).toEqual([{ w: 'Lyon' }]);
    expect((await post(where, {}, `/sparql?as_of_system=${then}`)).json['data']).toEqual([{ w: 'Lyon' }]);
    expect((await get(where, { as_of: '2020-01-01' })).json['data']).toEqual([]);
    await world.call('POST', '/v1/namespaces/side/branch', { branch_from: 'main' });
    const moved = [{ id: 'k5', subject: 'ada', predicate: 'livesIn', object: 'Rome' }];
    await world.call('POST', '/ingest?object_type=KnowledgeTriple', moved, { 'x-service-branch': 'side' });
    expect((await get(where, { branch: 'side' })).json['data']).toEqual([{ w: 'Rome' }]);
    expect((await get(where)).json['data']).toEqual([{ w: 'Oslo' }]);
    expect((await get(where, { purpose: 'curiosity' })).status).toBe(403);
    await get('SELECT ?s { ?s <employs> "a secret" }', { purpose: 'test' });
    const audit = await world.call('GET', '/audit/entries?limit=1000&action=query');
    const entries = audit.json['entries'] as { purpose: string; object_type: string; row_count: number }[];
    expect(entries.at(-1)).toMatchObject({ purpose: 'test', object_type: 'KnowledgeTriple', row_count: 0 });
    expect(audit.text).not.toContain('a secret');
  });
});

test('random patterns answer as the SQL that they come with', async () => {
  let seed = 7;
  const pick = <T>(list: readonly T[]): T => list[(seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) % list.length]!;
  const variables = ['?a', '?b', '?c'];
  const nodes = [...variables, ...variables, '<ada>', '<bob>', '<acme>', '_:n', '_:m'];
  const verbs = [...variables, '<knows>', '<knows>', '<livesIn>', '<employs>', 'prov:wasDerivedFrom', 'prov:wasAttributedTo'];
  let answered = 0;
  for (let i = 0; i < 60; i++) {
    const patterns = Array.from(
      { length: pick([1, 2, 2, 3]) },
      () => `${pick(nodes)} ${pick(verbs)} ${pick([...nodes, '"Oslo"'])} .`,
    );
    const query = `SELECT * { ${patterns.join(' ')} }`;
    const reply = await get(query);
    if (reply.status === 400 && String(reply.json['detail']).includes('no variable')) continue;
    expect(reply.status, `${query}: ${reply.text}`).toBe(200);
    expect([query, reply.json['data']]).toEqual([query, await world.rows(String(reply.json['sql']))]);
    if ((reply.json['data'] as unknown[]).length > 0) answered++;
  }
  expect(answered).toBeGreaterThan(10);
});

test.each(['GET', 'POST'] as const)('a client of the protocol, by %s', async (method) => {
  const fetcher = new SparqlEndpointFetcher({ method, defaultHeaders: new Headers({ authorization: `Bearer ${world.token}` }) });
  const url = `${world.door.dataUrl}/sparql`;
  const bindings = await fetcher.fetchBindings(url, 'SELECT ?who { <acme> <employs> ?who . ?who <livesIn> "Oslo" }');
  const seen: string[] = [];
  for await (const binding of bindings) {
    const { who } = binding as unknown as { who: { termType: string; value: string } };
    seen.push(`${who.termType} ${who.value}`);
  }
  expect(seen).toEqual(['NamedNode ada']);
  await expect(fetcher.fetchBindings(url, 'SELECT ?s { ?s ?p ?o } ORDER BY ?s')).rejects.toThrow(/./);
});
