/**
 * Recorded questions of the catalogue that the planner does not answer yet as Postgres would, in columns and number of rows: what
 * the catalogue's own engine is still there for. Whoever teaches the planner one more takes its name off the list.
 */
import { readFileSync } from 'node:fs';
import type pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import { wireTypeOf } from '../../../src/planner/virtual/wire-types.ts';
import { StoreWorld } from '../http/store-world.ts';
import { recordedSessions } from './recorded-sessions.ts';
import { connected, relationalSecret } from './relational-client.ts';

interface Question {
  readonly name: string;
  readonly sql: string;
  readonly columns: readonly string[];
}

const fixture = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(`../../../fixtures/wire/relational/${name}.json`, import.meta.url), 'utf8'));
const recorded = fixture('catalogue') as Readonly<
  Record<'psql' | 'jdbc' | 'sessions' | 'answers', readonly { sql: string; columns: string[]; command?: string }[]>
>;

const questions: readonly Question[] = [
  ...recorded.answers.map(({ sql, columns }) => ({ name: sql.slice(0, 120), sql, columns })),
  ...recorded.psql.map(({ sql, columns, command }, i) => ({ name: `psql ${command!}, question ${i + 1}`, sql, columns })),
  ...recorded.jdbc.map(({ sql, columns }, i) => ({ name: `JDBC, question ${i + 1}`, sql, columns })),
  ...recordedSessions.flatMap(({ client: of, what, sql, parameters }, i) =>
    parameters === undefined ? [{ name: `${of}: ${what}`, sql, columns: recorded.sessions[i]!.columns }] : [],
  ),
];

let world: StoreWorld;
let client: pg.Client;

beforeAll(async () => {
  world = await StoreWorld.open({ SERVICE_BEARER_TOKEN: relationalSecret });
  await world.call('POST', '/types', { name: 'Item', properties: { sku: 'string', n: 'integer' }, primary_key: 'sku' });
  client = await connected(world);
});

afterAll(async () => {
  await client.end();
  await world.close();
});

async function answersAlike({ sql, columns }: Question): Promise<boolean> {
  const { authenticator, gate, ids, planner } = world.service;
  const caller = authenticator.dataCaller({
    authorization: `Bearer ${world.token}`,
    door: 'relational',
    clientIp: '127.0.0.1',
  } as Parameters<typeof authenticator.dataCaller>[0]);
  const asked = { action: 'query', purpose: null, correlationId: ids.next() } as const;
  try {
    const { answer } = await gate.invoke(caller, asked, (invocation) => planner.execute(invocation, { sql }));
    const shown = answer.columns.map((column) => `${column.name}:${wireTypeOf(column, 'timestamptz').oid}`);
    return String(shown) === String(columns) && answer.rowCount === (await client.query(sql)).rowCount;
  } catch (error) {
    if (error instanceof ServiceError && error.code !== 'REL_INTERNAL') return false;
    throw error;
  }
}

test('the planner answers all recorded questions of the catalogue but these', async () => {
  const left: string[] = [];
  for (const question of questions) if (!(await answersAlike(question))) left.push(question.name);
  expect(left).toEqual(fixture('own-engine'));
});
