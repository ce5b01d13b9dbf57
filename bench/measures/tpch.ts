/**
 * TPC-H's 22 questions as they are written, as of current: Annals through gate and planner in this process, DuckDB with one
 * thread in this process, SQLite by its own program with its keys indexed, cut off at 60 seconds, which then count. Decimals
 * are doubles everywhere. A figure counts only after the answers agreed; each is the best of the runs, warm.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Answer } from '../../src/planner/planner-contract.ts';
import { cellAt } from '../../src/log/values/vector-builder.ts';
import { AnnalsStore } from '../annals-store.ts';
import type { BenchContext } from '../context.ts';
import { DuckDb } from '../peers/duckdb.ts';
import { sqliteQuery, sqliteScript } from '../peers/tpch-sqlite.ts';
import { geometricMean, quotient, type Spread, worst } from '../report.ts';
import { tableLines, type MadeTable } from '../joins-data.ts';
import { tpchQueries, tpchSizes, tpchTables } from '../tpch.ts';

type Cells = readonly (string | number | null)[];

const runs = 5;
const sqliteMsMax = 60_000;

export async function tpch({ report, directory, sqlite, rows: lines }: BenchContext): Promise<void> {
  const sizes = tpchSizes(lines);
  const store = await AnnalsStore.open();
  const duckdb = await DuckDb.open(directory);
  const ratios: Record<'DuckDB' | 'SQLite', Spread[]> = { DuckDB: [], SQLite: [] };
  try {
    for (const table of tpchTables) {
      writeFileSync(csvOf(table, directory), '');
      for (const piece of tableLines(table, sizes, 'csv')) writeFileSync(csvOf(table, directory), piece, { flag: 'a' });
      await duckdb.import(importOf(table, csvOf(table, directory)));
      await store.register(table.name, table.columns, table.key);
      await store.ingest(table.name, tableLines(table, sizes, 'ndjson'));
    }
    const lite = sqlite && (await sqlite.import(sqliteScript((table) => csvOf(table, directory))));
    for (const [i, sql] of tpchQueries.entries()) {
      const ours = await best(async () => cellsOf(await store.query(sql, 'current')));
      const shape = { measure: `Q${i + 1} as written`, unit: 'ms', better: 'smaller' } as const;
      report.add({ ...shape, product: 'annals', samples: [ours.ms], note: 'planner in process' });
      const beside = (product: 'DuckDB' | 'SQLite', ms: number, more = ''): void => {
        const ratio = quotient([ours.ms], [ms]);
        ratios[product].push(ratio);
        report.add({ ...shape, product, samples: [ms], note: `annals takes ${ratio.median.toPrecision(3)} of its time${more}` });
      };
      const theirs = await best(() => duckdb.rows(asDoubles(sql)));
      agree(i + 1, ours.rows, theirs.rows, 'DuckDB');
      beside('DuckDB', theirs.ms);
      if (lite === null) continue;
      const found = await lite.askWithin(sqliteQuery(sql), runs, sqliteMsMax);
      if (found === null) beside('SQLite', sqliteMsMax, ', or less: cut off');
      else {
        agree(i + 1, ours.rows, found.rows, 'SQLite');
        beside('SQLite', Math.min(...found.samples));
      }
    }
  } finally {
    duckdb.close();
    await store.close();
  }
  report.figure('tpch.duckdb', geometricMean(ratios.DuckDB));
  report.figure('tpch.duckdb-worst', worst(ratios.DuckDB));
  if (ratios.SQLite.length > 0) report.figure('tpch.sqlite', geometricMean(ratios.SQLite));
}

const csvOf = ({ name }: MadeTable, directory: string): string => join(directory, `tpch-${name}.csv`);

/** DuckDB takes decimals for doubles where they have an exponent. */
function asDoubles(sql: string): string {
  return sql.replaceAll(/\b\d+\.\d+\b/g, '$&e0');
}

async function best(query: () => Promise<readonly Cells[]>): Promise<{ rows: readonly Cells[]; ms: number }> {
  let ms = Number.POSITIVE_INFINITY;
  let rows: readonly Cells[] = [];
  for (let run = 0; run < runs + 1; run++) {
    const began = performance.now();
    rows = await query();
    if (run > 0) ms = Math.min(ms, performance.now() - began);
  }
  return { rows, ms };
}

function importOf(table: MadeTable, file: string): string {
  const types = { integer: 'BIGINT', number: 'DOUBLE', string: 'VARCHAR', timestamp: 'DATE' } as const;
  const columns = Object.entries(table.columns).map(([name, type]) => `'${name}': '${types[type]}'`);
  return `CREATE OR REPLACE TABLE ${table.name} AS SELECT * FROM read_csv('${file}', header = false, columns = {${columns.join(', ')}})`;
}

function cellsOf({ columns, batches }: Answer): Cells[] {
  const rows: Cells[] = [];
  for (const { columns: vectors, selection, first, count } of batches) {
    for (let j = 0; j < count; j++) {
      const i = selection === null ? first + j : selection[j]!;
      rows.push(columns.map(({ type }, c) => plain(cellAt(vectors[c]!, type, i), type)));
    }
  }
  return rows;
}

function plain(cell: unknown, type: string): string | number | null {
  if (cell === null) return null;
  if (type === 'timestamp') return Number((cell as bigint) / 86_400_000_000_000n);
  return typeof cell === 'bigint' ? Number(cell) : (cell as string | number);
}

/** Sums of doubles depend on the order of addition in their last digits. DuckDB's dates are no numbers, SQLite's texts: they count as equal. */
function agree(query: number, ours: readonly Cells[], theirs: readonly Cells[], product: string): void {
  const near = (a: string | number | null, b: string | number | null): boolean => {
    if (typeof a !== 'number') return a === b;
    if (typeof b === 'string') return Date.parse(b) / 86_400_000 === a;
    return b !== null && (Number.isNaN(b) || Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a)));
  };
  const same = ours.length === theirs.length && ours.every((row, r) => row.every((cell, c) => near(cell, theirs[r]![c]!)));
  if (same) return;
  throw new Error(
    `Q${query}: answers differ\nannals ${JSON.stringify(ours.slice(0, 5))}\n${product} ${JSON.stringify(theirs.slice(0, 5))}`,
  );
}
