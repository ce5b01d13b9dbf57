/** Transactions over the relational door beside PostgreSQL's: by pgbench's clients, and what a read of its own rows costs one of them. */
import { join } from 'node:path';
import pg from 'pg';
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import type { AimName } from '../goals.ts';
import { type PostgresTarget, pgbenchFill, pgbenchOn, psqlOn } from '../peers/postgres.ts';
import { quotient } from '../report.ts';

const secret = 'bench';
const accounts = 100_000;
const ownRows = 1_000;
const reads = 1_000;
const readRounds = 4;

const tables = [
  'branches (bid int PRIMARY KEY, bbalance int, filler text)',
  'tellers (tid int PRIMARY KEY, bid int, tbalance int, filler text)',
  'accounts (aid int PRIMARY KEY, bid int, abalance int, filler text)',
  'history (tid int, bid int, aid int, delta int, mtime timestamp, filler text)',
].map((table) => `CREATE TABLE pgbench_${table}`);

const byKey = `\\set aid random(1, ${accounts})
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
COMMIT;`;

const loads = {
  'by-key': { measure: 'BEGIN, UPDATE by key, SELECT it, COMMIT, 16 clients', clients: 16 },
  tpcb: { measure: 'pgbench TPC-B, scale 1, 8 clients', clients: 8 },
} as const;

export async function transactions(context: BenchContext): Promise<void> {
  const { report, directory, postgres, repeats, seconds, port } = context;
  if (!postgres) {
    console.log('transactions: PostgreSQL is not installed, so its clients are not');
    return;
  }
  const found = Object.fromEntries(Object.keys(loads).map((name) => [name, { ours: [] as number[], theirs: [] as number[] }]));
  const run = async (target: PostgresTarget, whose: 'ours' | 'theirs'): Promise<void> => {
    for (const table of tables) await psqlOn(target, table);
    await pgbenchFill(target);
    for (const [name, { clients }] of Object.entries(loads)) {
      const script = name === 'tpcb' ? 'tpcb-like' : { file: join(directory, 'by-key.sql'), text: byKey };
      const asked = { clients, mode: 'simple', triesMax: 50 } as const;
      // As servers stand that have served for a while: what is just in time has been compiled, and caches are full.
      await pgbenchOn(target, script, { ...asked, seconds: 2 * seconds });
      found[name]![whose].push(await pgbenchOn(target, script, { ...asked, seconds }));
    }
    await checkSums(target);
  };
  const inside: number[] = [];
  const outside: number[] = [];
  for (let repeat = 0; repeat < repeats; repeat++) {
    const doorPort = port();
    const settings = { SERVICE_BEARER_TOKEN: secret, SERVICE_RELATIONAL_PORT: String(doorPort) };
    const server = await AnnalsServer.start(directory, `transactions-${repeat}`, port(), { settings });
    const own: PostgresTarget = { port: doorPort, user: 'bench', database: 'annals', password: secret };
    try {
      await run(own, 'ours');
      for (const [within, without] of await ownReads(own)) {
        inside.push(within);
        outside.push(without);
      }
    } finally {
      await server.stop();
    }
    await psqlOn(postgres.target, 'DROP TABLE IF EXISTS pgbench_branches, pgbench_tellers, pgbench_accounts, pgbench_history');
    await run(postgres.target, 'theirs');
  }
  for (const [name, { measure }] of Object.entries(loads)) {
    const { ours, theirs } = found[name]!;
    const shape = { measure, unit: 'transactions/s', better: 'larger' } as const;
    report.add({ ...shape, product: 'annals', samples: ours });
    report.add({ ...shape, product: 'PostgreSQL', samples: theirs });
    report.figure(`transactions.${name}` as AimName, quotient(ours, theirs));
  }
  const shape = { unit: 'µs', better: 'smaller', product: 'annals' } as const;
  report.add({ ...shape, measure: `read by key in a transaction of ${ownRows} own rows`, samples: inside });
  report.add({ ...shape, measure: 'the same read outside', samples: outside });
  report.figure('transactions.own-reads', quotient(inside, outside));
}

/** What was added to accounts, tellers and branches is what history says, but for accounts that another load has written. */
async function checkSums(target: PostgresTarget): Promise<void> {
  const client = await connected(target);
  const { rows } = await client.query<Record<string, string>>(
    'SELECT (SELECT SUM(bbalance) FROM pgbench_branches) AS b, (SELECT SUM(tbalance) FROM pgbench_tellers) AS t, (SELECT SUM(delta) FROM pgbench_history) AS h',
  );
  await client.end();
  const { b, t, h } = rows[0]!;
  if (b !== h || t !== h) throw new Error(`sums differ: branches ${b}, tellers ${t}, history ${h}`);
}

/**
 * Microseconds of a read by key, of rows that its transaction wrote and of as many committed ones on another connection, in turn: one
 * of each a round.
 */
async function ownReads(target: PostgresTarget): Promise<readonly (readonly [number, number])[]> {
  const [writer, reader] = [await connected(target), await connected(target)];
  const read = async (client: pg.Client, first: number): Promise<number> => {
    const begun = performance.now();
    for (let i = 0; i < reads; i++) {
      const values = [first + (i % ownRows)];
      const { rows } = await client.query({ name: 'one', text: 'SELECT abalance FROM pgbench_accounts WHERE aid = $1', values });
      if (rows.length !== 1) throw new Error('a row that was written is not read');
    }
    return ((performance.now() - begun) * 1000) / reads;
  };
  const [committed, own] = [10_000_000, 20_000_000];
  const write = async (client: pg.Client, first: number): Promise<void> => {
    const values = Array.from({ length: ownRows }, (_, i) => `(${first + i}, 1, 0, '')`).join();
    await client.query(`INSERT INTO pgbench_accounts VALUES ${values}`);
  };
  await write(reader, committed);
  await writer.query('BEGIN');
  await write(writer, own);
  const found: [number, number][] = [];
  for (let round = 0; round <= readRounds; round++) {
    const pair: [number, number] = [await read(writer, own), await read(reader, committed)];
    // The first one compiles and fills caches.
    if (round > 0) found.push(pair);
  }
  await writer.query('COMMIT');
  for (const client of [writer, reader]) await client.end();
  return found;
}

async function connected({ port, user, database, password }: PostgresTarget): Promise<pg.Client> {
  const client = new pg.Client({ host: '127.0.0.1', port, user, database, password });
  await client.connect();
  return client;
}
