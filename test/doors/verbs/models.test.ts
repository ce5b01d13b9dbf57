/** Verbs beside a model: an endpoint as OpenAI's, for vectors and for statements, that does as it is told. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Reply } from '../http/door-world.ts';
import { StoreWorld } from '../http/store-world.ts';

/** Whatever a reply holds. */
type Json = ReturnType<typeof JSON.parse>;

let model: Server;
let world: StoreWorld;
let says: () => string | null = () => null;
const asked: Json[] = [];

/** Directions of three meanings. */
function meaning(text: string): number[] {
  const of = (words: RegExp): number => (words.test(text) ? 1 : 0.01);
  return [of(/dog|puppy|hound/i), of(/boat|ship|vessel/i), of(/bread|loaf/i)];
}

beforeAll(async () => {
  model = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString()) as Json;
      asked.push(body);
      const said = says();
      if (said === 'down') return void response.writeHead(503).end();
      const answer =
        body.input === undefined ? { choices: [{ message: { content: said } }] } : { data: [{ embedding: meaning(body.input) }] };
      response.end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve) => model.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(model.address() as AddressInfo).port}`;
  world = await StoreWorld.open({ SERVICE_EMBED_URL: `${url}/embeddings`, SERVICE_LLM_URL: `${url}/chat` });
  await world.call('POST', '/ingest/auto?object_type=Ship', [{ id: 's1', name: 'Aurelia' }]);
});
afterAll(async () => {
  await world.close();
  model.close();
});

const said = ({ status, json, text }: Reply): Json => {
  if (status !== 200) throw new Error(`${status} ${text}`);
  return JSON.parse((json['content'] as Json)[0].text);
};
const post = async (path: string, body: object): Promise<Json> =>
  said(await world.call('POST', `/memory/${path}`, { purpose: 'test', ...body }));

describe('vectors', () => {
  test('memories are kept with theirs, a query finds them by meaning, and a replay asks no model', async () => {
    await post('remember', { content: 'a puppy sleeps' });
    await post('remember', { content: 'the loaf is warm' });
    const { memories, call_id: call } = await post('recall', { query: 'hound' });
    expect(memories[0].content).toBe('a puppy sleeps');
    asked.length = 0;
    says = () => 'down';
    expect(await post(`replay/${call}`, {})).toMatchObject({ match: true });
    expect(asked).toEqual([]);
  });

  test('while the model is down memories are stored and found by words, and the answers say so', async () => {
    says = () => 'down';
    const { notices } = await post('remember', { content: 'a vessel sails' });
    expect(notices[0]).toMatch(/does not answer/);
    const found = await post('recall', { query: 'vessel' });
    expect([found.memories[0].content, found.notices.length]).toEqual(['a vessel sails', 1]);
    says = () => null;
    expect(await post(`replay/${found.call_id}`, {})).toMatchObject({ match: true });
  });
});

describe('statements', () => {
  const ask = (question: string): Promise<Reply> => world.call('POST', '/nl_query', { question, purpose: 'test' });

  test('what the model writes is run as the asker, and shown', async () => {
    says = () => '```sql\nSELECT name FROM Ship AS OF CURRENT;\n```';
    const { status, json } = await ask('which ships are there');
    expect([status, json]).toMatchObject([
      200,
      { intent: 'model', sql: 'SELECT name FROM Ship AS OF CURRENT', rows: [{ name: 'Aurelia' }] },
    ]);
    expect(asked.at(-1).messages[0].content).toContain('Ship(');
  });

  test('what it may not do, it may not do here', async () => {
    for (const [statement, status] of [
      ["ERASE SUBJECT 'x' REASON 'y' CERTIFY", 422],
      ["DELETE FROM Ship WHERE id = 's1'", 422],
      ['SELECT * FROM SigintIntercept', 403],
      ['SELECT * FROM Nothing', 404],
      ['I am sorry, I can not do that', 422],
    ] as const) {
      says = () => statement;
      expect([statement, (await ask('anything')).status]).toEqual([statement, status]);
    }
    expect(await world.rows('SELECT id FROM Ship')).toEqual([{ id: 's1' }]);
    says = () => 'down';
    expect((await ask('anything')).status).toBe(503);
  });
});
