/** How many rows of the catalogue the recorded questions of clients touch: those about one table as many, however many types there are. */
import type pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { StoreWorld } from '../http/store-world.ts';
import { recordedSessions } from './recorded-sessions.ts';
import { connected, relationalSecret } from './relational-client.ts';

let world: StoreWorld;
let client: pg.Client;
let types = 0;
const few = 40;
const many = 100;

beforeAll(async () => {
  world = await StoreWorld.open({ SERVICE_BEARER_TOKEN: relationalSecret });
  await world.call('POST', '/types', { name: 'Item', properties: { sku: 'string', n: 'integer' }, primary_key: 'sku' });
  await world.call('POST', '/query', { sql: 'CREATE MATERIALIZED VIEW cheap AS SELECT sku, n FROM Item' });
  client = await connected(world);
});

afterAll(async () => {
  await client.end();
  await world.close();
});

/** Rows that relations of the catalogue gave, by question. */
async function touched(count: number): Promise<ReadonlyMap<string, number>> {
  for (; types < count; types++) {
    const properties = { sku: 'string', n: 'integer', item: { type: 'string', references: 'Item' } };
    await world.call('POST', '/types', { name: `Type${types}`, properties, primary_key: 'sku' });
  }
  const found = new Map<string, number>();
  for (const { client: of, what, sql, parameters = [] } of recordedSessions) {
    if (/^show /i.test(sql)) continue;
    const { rows } = await client.query({ text: `EXPLAIN ANALYZE ${sql}`, values: [...parameters], rowMode: 'array' });
    const out = (rows as string[][]).map(([line]) => Number(/^ *virtual \S+ \[.*?out (\d+)/.exec(line!)?.[1] ?? 0));
    found.set(
      `${of}: ${what}`,
      out.reduce((sum, each) => sum + each, 0),
    );
  }
  return found;
}

test('a type more is so many rows more, for questions about all tables, and none for the others', async () => {
  const [before, after] = [await touched(few), await touched(many)];
  const grown = [...after].map(([question, rows]) => [question, (rows - before.get(question)!) / (many - few)] as const);
  // A type is a table, a class and its index, and 2 constraints; its 12 columns and that of its index are attributes.
  expect(Object.fromEntries(grown.filter(([, rows]) => rows !== 0))).toEqual({
    'DBeaver: tables': 2,
    'Metabase: foreign keys': 25,
    'Metabase: privileges': 1,
    'Metabase: tables': 3,
    'SQLAlchemy: indexes': 5,
    'SQLAlchemy: table names': 2,
    // A constraint is not found by its name, nor by the index behind it: another table may refer to that.
    'drizzle-kit: constraints': 2,
    'drizzle-kit: indexes of constraints': 1,
    'drizzle-kit: tables': 2,
  });
});
