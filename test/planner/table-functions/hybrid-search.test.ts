/** HYBRID_SEARCH in its forms, by hashing, by a model that answers, and by one that does not. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rowsOf, TestStore } from '../../harness.ts';

const vector = { type: 'vector', dims: 2, required: false, masked: false, indexed: false, subject: false } as const;
const columns = { id: 'string', title: 'string', body: 'string', n: 'integer', _emb_text: vector } as const;
const docs = [
  { id: 'a', title: 'Solar panels', body: 'panels on the roof turn light into current', n: 1, _emb_text: [1, 0] },
  { id: 'b', title: 'Wind', body: 'a turbine turns wind into current', n: 2, _emb_text: [0.6, 0.8] },
  { id: 'c', title: 'Solarium', body: 'light without a roof', n: 3, _emb_text: [0, 1] },
  { id: 'd', title: 'Bread', body: 'flour, water, salt', n: 4, _emb_text: [-1, 0] },
];

async function storeWith(settings: Record<string, string> = {}): Promise<TestStore> {
  const store = await TestStore.open('2024-01-01', settings);
  await store.register('Doc', columns, 'id');
  await store.put('Doc', docs);
  store.clock.set('2024-02-01');
  return store;
}

async function asked(store: TestStore, sql: string): Promise<{ ids: string; scores: number[]; notices: readonly string[] }> {
  const answer = await store.answer(sql);
  const rows = rowsOf(answer);
  const scores = rows.map((row) => Number(row['_rrf_score'] ?? row['_score']));
  return { ids: rows.map((row) => String(row['id'])).join(' '), scores, notices: answer.notices ?? [] };
}

describe('without a model', () => {
  let store: TestStore;
  beforeAll(async () => {
    store = await storeWith();
  });
  afterAll(() => store.close());

  test('ranks as words alone do, and gives no row that has none of them', async () => {
    const { ids, scores } = await asked(store, "HYBRID_SEARCH FROM Doc QUERY 'solar panels' LIMIT 2");
    expect([ids, scores]).toEqual(['a', [1 / 61]]);
    for (const query of ['light roof current', 'current', 'nobody wrote this', 'a']) {
      const byWords = `SELECT * FROM Doc WHERE MATCH(title, body, '${query}') ORDER BY _score DESC, _pk`;
      for (const fusion of ['rrf', 'linear'])
        expect((await asked(store, `HYBRID_SEARCH FROM Doc QUERY '${query}' FUSION '${fusion}' LIMIT 9`)).ids).toBe(
          (await asked(store, byWords.replace('FROM Doc', 'FROM Doc AS OF CURRENT'))).ids,
        );
    }
  });

  test.each([
    "SELECT * FROM HYBRID_SEARCH('Doc', 'solar panels') LIMIT 2",
    "SELECT * FROM HYBRID_SEARCH(Doc, QUERY => 'solar panels', FUSION => 'rrf') LIMIT 2",
    "HYBRID_SEARCH FROM Doc QUERY 'solar panels' FUSION 'rrf' LIMIT 2",
  ])('%s', async (sql) => {
    expect((await asked(store, sql)).ids).toBe('a');
  });

  test('by score', async () => {
    const { ids, scores } = await asked(store, "HYBRID_SEARCH FROM Doc QUERY 'current' FUSION 'linear' LIMIT 2");
    expect(ids.split(' ').sort().join(' ')).toBe('a b');
    for (const score of scores) expect(score).toBeGreaterThan(0.2);
    expect(scores[0]).toBeLessThanOrEqual(1);
  });

  test('of some rows, and as it was known', async () => {
    expect((await asked(store, "HYBRID_SEARCH FROM Doc QUERY 'current' WHERE n > 1 LIMIT 1")).ids).toBe('b');
    const before = "HYBRID_SEARCH FROM Doc QUERY 'bread' AS OF SYSTEM TIME '2024-01-15' LIMIT 1";
    await store.put('Doc', [{ id: 'd', title: 'Stone', body: 'granite', n: 4, _emb_text: null }]);
    store.clock.set('2024-03-01');
    expect((await asked(store, before)).ids).toBe('d');
    expect((await asked(store, "HYBRID_SEARCH FROM Doc QUERY 'granite' LIMIT 1")).ids).toBe('d');
  });

  test.each([
    ["HYBRID_SEARCH FROM Doc QUERY 'x' FUSION 'both' LIMIT 1", 'REL_INVALID'],
    ["HYBRID_SEARCH FROM Doc QUERY 'x' RERANK LIMIT 1", 'REL_INVALID'],
    ["SELECT * FROM HYBRID_SEARCH('Doc') LIMIT 1", 'REL_INVALID'],
    ["SELECT * FROM HYBRID_SEARCH('Doc', 7) LIMIT 1", 'REL_TYPE_MISMATCH'],
    ["HYBRID_SEARCH FROM Nope QUERY 'x' LIMIT 1", 'REL_UNKNOWN_TYPE'],
    ["HYBRID_SEARCH FROM Doc QUERY 'x' LIMIT 1001", 'REL_VECTOR_BUDGET'],
  ])('%s', async (sql, code) => {
    await expect(store.answer(sql)).rejects.toMatchObject({ code });
  });
});

describe('with a model', () => {
  let server: Server;
  let reply: { status: number; body: string };
  const heard: { authorization: string | undefined; body: unknown }[] = [];
  let url: string;
  beforeAll(async () => {
    server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        heard.push({ authorization: request.headers.authorization, body: JSON.parse(Buffer.concat(chunks).toString()) });
        response.writeHead(reply.status, { 'content-type': 'application/json' }).end(reply.body);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/embeddings`;
  });
  afterAll(() => server.close());

  const settings = () => ({ SERVICE_EMBED_URL: url, SERVICE_EMBED_MODEL: 'small', SERVICE_EMBED_KEY: 'k' });

  test('the vectors that rows came with are compared with the text’s', async () => {
    const store = await storeWith(settings());
    reply = { status: 200, body: JSON.stringify({ data: [{ embedding: [0, 2] }] }) };
    const { ids, notices } = await asked(store, "HYBRID_SEARCH FROM Doc QUERY 'nothing of it' LIMIT 5");
    expect([ids, notices]).toEqual(['c b', []]);
    expect(heard.at(-1)).toEqual({ authorization: 'Bearer k', body: { model: 'small', input: 'nothing of it' } });
    await store.close();
  });

  test.each([
    ["'solar'", 'exact, without an index of vectors, as both rankings come of one look at the rows: every row that may be seen'],
    [
      "'solar', FUSION => 'likeness'",
      'exact, without an index of vectors, as the text is compared with all vectors of a row: every',
    ],
    [
      "'solar', VECTOR => ARRAY[0, 0]",
      'by words alone, as there is no model or its vector has no direction: no vector is compared',
    ],
  ])('a plan says how vectors are compared, and why: %s', async (words, said) => {
    const store = await storeWith(settings());
    const asked = heard.length;
    expect((await store.answer(`EXPLAIN SELECT * FROM HYBRID_SEARCH('Doc', ${words}) LIMIT 2`)).plan).toContain(said);
    expect(heard).toHaveLength(asked);
    await store.close();
  });

  describe('that reranks', () => {
    const reranking = () => ({ SERVICE_RERANK_URL: url, SERVICE_RERANK_MODEL: 'judge', SERVICE_RERANK_KEY: 'k' });
    const sql = "HYBRID_SEARCH FROM Doc QUERY 'solar panels' RERANK LIMIT 2";

    test('by its scores, of the texts that are shown', async () => {
      const store = await storeWith(reranking());
      const plain = await asked(store, "HYBRID_SEARCH FROM Doc QUERY 'solar panels' LIMIT 5");
      const ids = plain.ids.split(' ');
      const results = ids.map((_, index) => ({ index, relevance_score: index / 10 }));
      reply = { status: 200, body: JSON.stringify({ results }) };
      const found = await asked(store, sql);
      expect([found.ids, found.notices]).toEqual([ids.toReversed().slice(0, 2).join(' '), []]);
      expect(heard.at(-1)?.body).toMatchObject({ model: 'judge', query: 'solar panels', top_n: ids.length });
      expect(rowsOf(await store.answer(sql)).map((row) => row['_rerank_score'])).toEqual(
        results
          .toReversed()
          .slice(0, 2)
          .map(({ relevance_score: score }) => score),
      );
      await store.close();
    });

    test('and does not answer: as both rankings say', async () => {
      const store = await storeWith(reranking());
      const plain = await asked(store, "HYBRID_SEARCH FROM Doc QUERY 'solar panels' LIMIT 2");
      reply = { status: 200, body: '{"results":[]}' };
      const { ids, notices } = await asked(store, sql);
      const reason = 'an answer without a score for each text';
      const said = `the reranker judge does not answer: ${reason}: rows stand in the order of both rankings`;
      expect([ids, notices]).toEqual([plain.ids, [said]]);
      await store.close();
    });
  });

  test.each(['SERVICE_EMBED_DIR', 'SERVICE_RERANK_DIR'])('in a directory: %s is refused at the start', async (name) => {
    await expect(storeWith({ [name]: '/models' })).rejects.toThrow(`${name} needs an ONNX runtime`);
  });

  test.each([
    ['fails', { status: 500, body: 'solar panels' }, 'status 500'],
    ['answers with no vector', { status: 200, body: '{"data":[]}' }, 'an answer without a vector'],
    ['answers with another number of dimensions', { status: 200, body: '{"data":[{"embedding":[1,2,3]}]}' }, null],
  ])('that %s: words alone', async (_, given, reason) => {
    const store = await storeWith(settings());
    reply = given;
    const { ids, notices } = await asked(store, "HYBRID_SEARCH FROM Doc QUERY 'solar panels' LIMIT 5");
    expect(ids).toBe('a');
    const unlike = '4 rows are ranked by words alone: for them there is no vector of the model small at this instant';
    const said = `the embedding model small does not answer: ${reason}: rows are ranked by words alone`;
    expect(notices).toEqual(reason === null ? [unlike] : [said]);
    await store.close();
  });
});
