/** A table of several segments, its texts kept in more than one way, leaves whole in every format and is read by others. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBConnection } from '@duckdb/node-api';
import { tableFromIPC } from 'apache-arrow';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { send } from './door-world.ts';
import { StoreWorld } from './store-world.ts';

const count = 200_000;

/** Few texts at first, so that the column has codes; later ones are all different. */
const textOf = (i: number): string | null => (i % 11 === 0 ? null : i < 70_000 ? `few ${i % 5}` : `text, "${i}" é`);
const integerOf = (i: number): bigint => (i % 2 === 0 ? 9_223_372_036_854_775_807n - BigInt(i) : -BigInt(i));

let world: StoreWorld;
let duckdb: DuckDBConnection;
let directory: string;
beforeAll(async () => {
  world = await StoreWorld.open();
  duckdb = await DuckDBConnection.create();
  directory = mkdtempSync(join(tmpdir(), 'annals-outputs-'));
  const properties = { i: 'integer', n: 'integer', text: 'string' };
  await world.call('POST', '/types', { name: 'Long', properties });
  const lines: string[] = [];
  for (let i = 0; i < count; i++) lines.push(`{"i":${i},"n":${integerOf(i)},"text":${JSON.stringify(textOf(i))}}\n`);
  const headers = { authorization: `Bearer ${world.token}`, 'content-type': 'application/x-ndjson' };
  const reply = await send(world.door.port, 'POST', '/ingest/bulk?object_type=Long', lines.join(''), headers);
  if (reply.json['accepted'] !== count) throw new Error(reply.text);
});
afterAll(async () => {
  duckdb.closeSync();
  rmSync(directory, { recursive: true, force: true });
  await world.close();
});

async function exported(format: string): Promise<Buffer> {
  const parameters = new URLSearchParams({ sql: 'SELECT i, n, text, valid_to FROM Long', format });
  const reply = await fetch(`${world.door.dataUrl}/export?${parameters.toString()}`, {
    headers: { authorization: `Bearer ${world.token}` },
  });
  expect([reply.status, reply.headers.get('x-service-row-count')]).toEqual([200, String(count)]);
  return Buffer.from(await reply.arrayBuffer());
}

/** Rows of a DuckDB relation that are as they were sent: the formulas are said again in its language. */
async function goodRows(relation: string): Promise<bigint> {
  const text = `CASE WHEN i % 11 = 0 THEN NULL WHEN i < 70000 THEN 'few ' || (i % 5) ELSE 'text, "' || i || '" é' END`;
  const integer = 'CASE WHEN i % 2 = 0 THEN 9223372036854775807 - i ELSE -i END';
  const reader = await duckdb.runAndReadAll(
    `SELECT count(*) FROM ${relation}
     WHERE text IS NOT DISTINCT FROM (${text}) AND n = (${integer}) AND valid_to = 9223372036854775807`,
  );
  const distinct = await duckdb.runAndReadAll(`SELECT count(DISTINCT i) FROM ${relation}`);
  expect(distinct.getRows()[0]![0]).toBe(BigInt(count));
  return reader.getRows()[0]![0] as bigint;
}

test('Arrow', async () => {
  const table = tableFromIPC(await exported('arrow'));
  expect(table.batches.length).toBeGreaterThan(5);
  const [i, n, text] = ['i', 'n', 'text'].map((name) => table.getChild(name)!);
  let wrong = 0;
  for (let row = 0; row < count; row++) {
    const at = Number(i!.get(row));
    if (at !== row || n!.get(row) !== integerOf(at) || text!.get(row) !== textOf(at)) wrong++;
  }
  expect([table.numRows, wrong]).toEqual([count, 0]);
});

test('Parquet', async () => {
  const path = join(directory, 'long.parquet');
  writeFileSync(path, await exported('parquet'));
  expect(await goodRows(`read_parquet('${path}')`)).toBe(BigInt(count));
});

test('CSV', async () => {
  const path = join(directory, 'long.csv');
  writeFileSync(path, await exported('csv'));
  expect(await goodRows(`read_csv('${path}')`)).toBe(BigInt(count));
});

test('NDJSON', async () => {
  const lines = (await exported('ndjson')).toString().split('\n');
  expect(lines.length).toBe(count + 1);
  let wrong = 0;
  for (let row = 0; row < count; row++) {
    const text = JSON.stringify(textOf(row));
    if (lines[row] !== `{"i":${row},"n":${integerOf(row)},"text":${text},"valid_to":9223372036854775807}`) wrong++;
  }
  expect(wrong).toBe(0);
});
