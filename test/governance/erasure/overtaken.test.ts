/** Questions that are being answered while a subject is erased: what they end with was made without it, as a whole. */
import { beforeEach, describe, expect, test } from 'vitest';
import { rowsOf } from '../../harness.ts';
import { ByteWriter } from '../../../src/planner/formats/byte-writer.ts';
import { RowsText } from '../../../src/planner/formats/json-rows.ts';
import type { Answer, QueryOptions } from '../../../src/planner/planner-contract.ts';
import { acme, ErasureWorld, globex, person } from './erasure-world.ts';

const rowsOfEach = 300;

let world: ErasureWorld;
let turns = 0;
/** Runs once, in the turn that is given at that number. */
let meanwhile: { readonly turn: number; run(): Promise<unknown> } | null = null;

async function yieldTurn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
  turns++;
  if (meanwhile === null || turns < meanwhile.turn) return;
  const { run } = meanwhile;
  meanwhile = null;
  await run();
}

beforeEach(async () => {
  meanwhile = null;
  world = await (await new ErasureWorld().open({ yieldTurn })).fill();
  const rows = Array.from({ length: 2 * rowsOfEach }, (_, i) => ({
    id: `r${i}`,
    who: i % 2 === 0 ? 'alice' : 'bob',
    name: `${i % 2 === 0 ? 'Alice' : 'Bob'} ${i}`,
    age: i,
  }));
  await world.store.put('Person', rows, acme);
});

function ask(sql: string, caller = acme, more: Partial<QueryOptions> = {}): Promise<Answer> {
  const { service } = world.store;
  return world.store.invoke(caller, 'query', (invocation) => service.planner.query(invocation, { sql, ...more }));
}

/** The answer to a question that is overtaken in the turn of that number, and takes more of them. */
async function overtaken(sql: string, caller = acme, more: Partial<QueryOptions> = {}, turn = 3): Promise<Answer> {
  turns = 0;
  await ask(sql, caller);
  expect(turns).toBeGreaterThan(turn);
  let erased = false;
  turns = 0;
  meanwhile = {
    turn,
    run: async () => {
      await world.erase();
      erased = true;
    },
  };
  const answer = await ask(sql, caller, more);
  expect(erased).toBe(true);
  return answer;
}

describe('an erasure overtakes', () => {
  test('a count: it is that of those who are left', async () => {
    const [row] = rowsOf(await overtaken("SELECT COUNT(*) AS n, SUM(age) AS years FROM Person WHERE name LIKE '% %'"));
    // Bob’s odd numbers.
    expect(row).toEqual({ n: BigInt(rowsOfEach), years: BigInt(rowsOfEach * rowsOfEach) });
  });

  test('rows, and where each came from', async () => {
    const answer = await overtaken('SELECT name FROM Person WITH PROVENANCE');
    expect(rowsOf(answer).filter(({ name }) => String(name).startsWith('Alice'))).toEqual([]);
    expect([answer.rowCount, answer.provenance!.length]).toEqual([rowsOfEach + 2, rowsOfEach + 2]);
    expect(new Set(answer.provenance!.map(({ source }) => source))).toEqual(new Set(['harness']));
  });

  test('rows that are written while they are read', async () => {
    const writer = new ByteWriter(64);
    writer.byte(0x20);
    const rows = new RowsText(writer, { rowsMax: 10_000, bytesMax: 1 << 20 });
    const answer = await overtaken('SELECT name FROM Person', acme, { rows });
    rows.close();
    const names = JSON.parse(Buffer.from(writer.take()).toString()) as unknown[];
    expect([rows.rows, names.length, answer.rowCount, answer.batches.length]).toEqual([302, 302, 302, 0]);
    expect(JSON.stringify(names)).not.toContain('Alice');
  });

  test('a question that a cached answer of a view is read for', async () => {
    // One whose credential is good for longer: the answer is made in the background.
    const asker = { ...acme, credential: 'operator' } as const;
    await world.store.rows('CREATE MATERIALIZED VIEW names AS SELECT id, name FROM Person REFRESH INCREMENTAL EVERY 3600', asker);
    const access = async (): Promise<string> => String((await ask('EXPLAIN SELECT COUNT(*) AS n FROM names', asker)).plan);
    await expect.poll(access).toContain('cached view');
    const [row] = rowsOf(await overtaken("SELECT COUNT(*) AS n FROM names WHERE name LIKE '% %'", asker, {}, 1));
    expect(row).toEqual({ n: BigInt(rowsOfEach) });
  });

  test('a question about the past, and one on a branch', async () => {
    await world.store.rows('BRANCH before FROM main', acme);
    for (const [sql, branch] of [
      ["SELECT COUNT(*) AS n FROM Person AS OF SYSTEM TIME '2030-01-01' WHERE name LIKE '% %'", 'main'],
      ["SELECT COUNT(*) AS n FROM Person WHERE name LIKE '% %'", 'before'],
    ] as const) {
      const rows = Array.from({ length: rowsOfEach }, (_, i) => ({ id: `r${2 * i}`, who: 'alice', name: `Alice ${i}`, age: i }));
      const [row] = rowsOf(await overtaken(sql, { ...acme, branch }));
      expect([branch, row!['n']]).toEqual([branch, BigInt(rowsOfEach)]);
      await world.store.put('Person', rows, { ...acme, branch: 'before' });
    }
  });
});

test('nobody waits for the erasure of what he may not see, nor of another type', async () => {
  await world.store.register('Note', { id: person['id']!, who: person['who']! }, 'id');
  await world.store.put(
    'Note',
    Array.from({ length: 600 }, (_, i) => ({ id: `n${i}`, who: `w${i}` })),
    acme,
  );
  const { service } = world.store;
  const scans = async (sql: string, caller = acme, subject = 'alice'): Promise<number> => {
    let read = 0;
    await world.store.invoke(caller, 'query', async (invocation) => {
      const snapshot = invocation.snapshot();
      const scan = snapshot.rows.scan.bind(snapshot.rows);
      snapshot.rows.scan = (request) => (read++, scan(request));
      invocation.snapshot = () => snapshot;
      turns = 0;
      meanwhile = { turn: 3, run: () => world.erase(subject) };
      await service.planner.query(invocation, { sql });
      expect(meanwhile).toBe(null);
    });
    return read;
  };
  const rows = Array.from({ length: 600 }, (_, i) => ({ id: `g${i}`, who: 'carol', name: `Carol ${i}`, age: i }));
  await world.store.put('Person', rows, globex);
  const sql = "SELECT COUNT(*) AS n FROM Person WHERE name LIKE '% %'";
  expect(await scans("SELECT COUNT(*) AS n FROM Note WHERE who LIKE '%1%'")).toBe(1);
  await world.store.put('Person', [{ id: 'late', who: 'alice', name: 'Alice', age: 1 }], acme);
  expect(await scans(sql, globex)).toBe(1);
  await world.store.put('Person', [{ id: 'later', who: 'alice', name: 'Alice', age: 1 }], acme);
  expect(await scans(sql)).toBe(2);
  expect(await scans(sql, acme, 'w7')).toBe(1);
});

test('one that is overtaken again and again ends with its time', async () => {
  const again = async (): Promise<void> => {
    await world.store.put('Person', [{ id: `again${turns}`, who: 'alice', name: 'Alice', age: 1 }], acme);
    await world.erase();
    world.clock.steadyMs += 2_000;
    meanwhile = { turn: turns + 3, run: again };
  };
  turns = 0;
  meanwhile = { turn: 3, run: again };
  await expect(ask("SELECT COUNT(*) AS n FROM Person WHERE name LIKE '% %'")).rejects.toMatchObject({ code: 'REL_TIMEOUT' });
});
