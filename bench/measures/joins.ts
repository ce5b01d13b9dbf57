/**
 * Joins and group-bys in the manner of TPC-H: Annals through gate and planner in this process, DuckDB with one thread in
 * this process, SQLite by its own program and clock. All hold the same rows; a figure counts only after the answers agreed.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Answer } from '../../src/planner/planner-contract.ts';
import { cellAt } from '../../src/log/values/vector-builder.ts';
import { AnnalsServer } from '../annals-server.ts';
import { AnnalsStore } from '../annals-store.ts';
import type { BenchContext } from '../context.ts';
import { DuckDb } from '../peers/duckdb.ts';
import { geometricMean, quotient, type Spread, worst } from '../report.ts';
import { tableLines, type MadeSizes, joinsSizes, type MadeTable, joinsTables } from '../joins-data.ts';
import { type JoinsQuery, joinsQueries } from '../joins-queries.ts';

type Cells = readonly (string | number | null)[];

interface Run {
  readonly rows: readonly Cells[];
  readonly samples: readonly number[];
}

const bases = { 'every version': '', 'as of current': 'AS OF CURRENT' } as const;

export async function joins(context: BenchContext): Promise<void> {
  const { report, directory, sqlite, rows: lines, repeats } = context;
  const sizes = joinsSizes(lines);
  const runs = repeats * 3;
  console.log(
    `  ${Object.entries(sizes)
      .map(([name, count]) => `${count.toLocaleString('en')} ${name}`)
      .join(', ')}`,
  );
  for (const table of joinsTables) writeCsv(table, sizes, directory);

  const duckdb = await DuckDb.open(directory);
  const theirs = new Map<string, Run>();
  for (const table of joinsTables) await duckdb.import(duckdbTable(table, directory));
  for (const query of joinsQueries) theirs.set(query.name, await timed(runs, () => duckdb.rows(query.sql(''))));
  duckdb.close();

  const lite = new Map<string, Run>();
  if (sqlite !== null) {
    const database = await sqlite.import(joinsTables.map((table) => sqliteTable(table, directory)).join(''));
    for (const query of joinsQueries)
      lite.set(query.name, await database.ask(query.sql(''), Math.max(1, Math.ceil(repeats / 2))));
  }

  const store = await AnnalsStore.open();
  try {
    for (const table of joinsTables) {
      await store.register(table.name, table.columns, table.key);
      const accepted = await store.ingest(table.name, tableLines(table, sizes, 'ndjson'));
      if (accepted !== table.rows(sizes)) throw new Error(`${table.name}: ${accepted} rows accepted`);
    }
    const ratios: Record<'DuckDB' | 'SQLite', Spread[]> = { DuckDB: [], SQLite: [] };
    for (const query of joinsQueries) {
      for (const [basis, asOf] of Object.entries(bases)) {
        const ours = await timed(runs, async () => cellsOf(await store.query(query.sql(asOf))));
        const shape = { measure: `${query.name}, ${basis}`, unit: 'ms', better: 'smaller' } as const;
        report.add({ ...shape, product: 'annals', samples: ours.samples, note: 'planner in process' });
        for (const [product, peer] of [
          ['DuckDB', theirs.get(query.name)],
          ['SQLite', lite.get(query.name)],
        ] as const) {
          if (peer === undefined) continue;
          agree(query, ours.rows, peer.rows, product);
          const ratio = quotient(ours.samples, peer.samples);
          ratios[product].push(ratio);
          report.add({ ...shape, product, samples: peer.samples, note: `annals takes ${ratio.median.toFixed(2)} of its time` });
        }
      }
    }
    if (ratios.DuckDB.length > 0) {
      report.figure('joins.duckdb', geometricMean(ratios.DuckDB));
      report.figure('joins.duckdb-worst', worst(ratios.DuckDB));
    }
    if (ratios.SQLite.length > 0) report.figure('joins.sqlite', geometricMean(ratios.SQLite));
  } finally {
    await store.close();
  }
  await overHttp(context, sizes, runs);
}

/** What a door adds: one question to the built server, with its own time beside. */
async function overHttp({ report, directory, port }: BenchContext, sizes: MadeSizes, runs: number): Promise<void> {
  const server = await AnnalsServer.start(directory, 'joins', port());
  try {
    const table = joinsTables.find(({ name }) => name === 'Lineitem')!;
    const properties = Object.fromEntries(Object.entries(table.columns).map(([name, type]) => [name, { type }]));
    await server.request('/types', JSON.stringify({ name: table.name, properties }));
    await server.ingest(table.name, tableLines(table, sizes, 'ndjson'), sizes.lines);
    const inside: number[] = [];
    const body = JSON.stringify({ sql: joinsQueries[0]!.sql('') });
    const { samples } = await timed(runs, async () => {
      const reply = JSON.parse(await server.request('/query', body)) as { processing_time_ms: number };
      inside.push(reply.processing_time_ms);
      return [];
    });
    const shape = { measure: `${joinsQueries[0]!.name}, over HTTP`, unit: 'ms', better: 'smaller' } as const;
    report.add({ ...shape, product: 'annals', samples, note: 'HTTP' });
    report.add({ ...shape, product: 'annals, inside', samples: inside.slice(2), note: 'its processing_time_ms' });
  } finally {
    await server.stop();
  }
}

/** Milliseconds of each run but the first two, which compile. */
async function timed(runs: number, query: () => Promise<readonly Cells[]>): Promise<Run> {
  const samples: number[] = [];
  let rows: readonly Cells[] = [];
  for (let run = 0; run < runs + 2; run++) {
    const began = performance.now();
    rows = await query();
    if (run >= 2) samples.push(performance.now() - began);
  }
  return { rows, samples };
}

function cellsOf({ columns, batches }: Answer): Cells[] {
  const rows: Cells[] = [];
  for (const { columns: vectors, selection, first, count } of batches) {
    for (let j = 0; j < count; j++) {
      const i = selection === null ? first + j : selection[j]!;
      rows.push(
        columns.map(({ type }, c) => {
          const cell = cellAt(vectors[c]!, type, i);
          return typeof cell === 'bigint' ? Number(cell) : (cell as string | number | null);
        }),
      );
    }
  }
  return rows;
}

/** Sums of doubles depend on the order of addition in their last digits. */
function agree({ name }: JoinsQuery, ours: readonly Cells[], theirs: readonly Cells[], product: string): void {
  const near = (a: string | number | null, b: string | number | null): boolean =>
    typeof a === 'number' && typeof b === 'number' ? Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a)) : a === b;
  const same = ours.length === theirs.length && ours.every((row, r) => row.every((cell, c) => near(cell, theirs[r]![c]!)));
  if (same) return;
  throw new Error(
    `${name}: answers differ\nannals ${JSON.stringify(ours.slice(0, 5))}\n${product} ${JSON.stringify(theirs.slice(0, 5))}`,
  );
}

const csvOf = (table: MadeTable, directory: string): string => join(directory, `joins-${table.name}.csv`);

function writeCsv(table: MadeTable, sizes: MadeSizes, directory: string): void {
  const file = csvOf(table, directory);
  writeFileSync(file, '');
  for (const lines of tableLines(table, sizes, 'csv')) writeFileSync(file, lines, { flag: 'a' });
}

function duckdbTable(table: MadeTable, directory: string): string {
  const types = { integer: 'BIGINT', number: 'DOUBLE', string: 'VARCHAR', timestamp: 'DATE' } as const;
  const columns = Object.entries(table.columns).map(([name, type]) => `'${name}': '${types[type]}'`);
  return `CREATE OR REPLACE TABLE ${table.name} AS SELECT * FROM read_csv('${csvOf(table, directory)}', header = false, columns = {${columns.join(', ')}})`;
}

/** Keys of customers, orders, suppliers and nations are declared, as anybody would. */
function sqliteTable(table: MadeTable, directory: string): string {
  const types = { integer: 'INTEGER', number: 'REAL', string: 'TEXT', timestamp: 'TEXT' } as const;
  const columns = Object.entries(table.columns).map(
    ([name, type], i) => `${name} ${types[type]}${i === 0 && table.name !== 'Lineitem' ? ' PRIMARY KEY' : ''}`,
  );
  return `CREATE TABLE ${table.name} (${columns.join(', ')});\n.mode csv\n.import ${csvOf(table, directory)} ${table.name}\n`;
}
