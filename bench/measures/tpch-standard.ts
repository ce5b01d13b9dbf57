/**
 * TPC-H's 22 questions as they are written, as of current: Annals through gate and planner in this process, DuckDB with one
 * thread in this process. Decimals are doubles on both sides. A figure counts only after the answers agreed; each is the best
 * of the runs, warm.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Answer } from '../../src/planner/planner-contract.ts';
import { cellAt } from '../../src/log/vector-builder.ts';
import { AnnalsStore } from '../annals-store.ts';
import type { BenchContext } from '../context.ts';
import { DuckDb } from '../peers/duckdb.ts';
import { geometricMean, quotient, type Spread, worst } from '../report.ts';
import { tpchLines, type TpchTable } from '../tpch-data.ts';
import { standardQueries, standardSizes, standardTables } from '../tpch-standard.ts';

type Cells = readonly (string | number | null)[];

const runs = 5;

export async function tpchStandard({ report, directory, rows: lines }: BenchContext): Promise<void> {
  const sizes = standardSizes(lines);
  const store = await AnnalsStore.open();
  const duckdb = await DuckDb.open(directory);
  const ratios: Spread[] = [];
  try {
    for (const table of standardTables) {
      const file = join(directory, `standard-${table.name}.csv`);
      writeFileSync(file, '');
      for (const piece of tpchLines(table, sizes, 'csv')) writeFileSync(file, piece, { flag: 'a' });
      await duckdb.import(importOf(table, file));
      await store.register(table.name, table.columns, table.key);
      await store.ingest(table.name, tpchLines(table, sizes, 'ndjson'));
    }
    for (const [i, sql] of standardQueries.entries()) {
      const ours = await best(async () => cellsOf(await store.query(sql, 'current')));
      const theirs = await best(() => duckdb.rows(asDoubles(sql)));
      agree(i + 1, ours.rows, theirs.rows);
      const ratio = quotient([ours.ms], [theirs.ms]);
      ratios.push(ratio);
      const shape = { measure: `Q${i + 1} as written`, unit: 'ms', better: 'smaller' } as const;
      report.add({ ...shape, product: 'annals', samples: [ours.ms], note: 'planner in process' });
      report.add({
        ...shape,
        product: 'DuckDB',
        samples: [theirs.ms],
        note: `annals takes ${ratio.median.toFixed(2)} of its time`,
      });
    }
  } finally {
    duckdb.close();
    await store.close();
  }
  report.figure('tpch-standard.duckdb', geometricMean(ratios));
  report.figure('tpch-standard.duckdb-worst', worst(ratios));
}

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

function importOf(table: TpchTable, file: string): string {
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

/** Sums of doubles depend on the order of addition in their last digits. DuckDB's dates are no numbers, and count as equal. */
function agree(query: number, ours: readonly Cells[], theirs: readonly Cells[]): void {
  const near = (a: string | number | null, b: string | number | null): boolean =>
    typeof a === 'number' && typeof b === 'number'
      ? Number.isNaN(b) || Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a))
      : a === b;
  const same = ours.length === theirs.length && ours.every((row, r) => row.every((cell, c) => near(cell, theirs[r]![c]!)));
  if (same) return;
  throw new Error(
    `Q${query}: answers differ\nannals ${JSON.stringify(ours.slice(0, 5))}\nDuckDB ${JSON.stringify(theirs.slice(0, 5))}`,
  );
}
