/**
 * Filter, group and sum over what was believed at 80 % of the history: over HTTP, beside DuckDB with one thread in process
 * and PostgreSQL. All hold the same versions, and the answers must agree. What is compared with a peer in process, or by its
 * own clock, is the time that the server says it took.
 */
import { AnnalsServer } from '../annals-server.ts';
import { type Cells, replyRows, sameRows } from '../answers.ts';
import type { BenchContext } from '../context.ts';
import { DuckDb } from '../peers/duckdb.ts';
import { quotient } from '../report.ts';
import { systemFromBase } from '../workload.ts';

const quantityBelow = 25;
const runs = 9;
const warmUp = 3;

export async function asOfAggregate(context: BenchContext): Promise<void> {
  await aggregateOver(context, context.rows, false);
  await aggregateOver(context, context.largeRows, true);
}

async function aggregateOver(
  { report, datasets, directory, postgres, port }: BenchContext,
  count: number,
  large: boolean,
): Promise<void> {
  const measure = `as-of aggregate over ${count.toLocaleString('en')} versions`;
  const shape = { measure, unit: 'ms', better: 'smaller' } as const;
  const set = await datasets.versions(count);
  const samples: number[] = [];
  const inside: number[] = [];
  let ours: Cells[] = [];
  const server = await AnnalsServer.start(set.parent, set.name, port());
  try {
    const sql = `SELECT category, SUM(amount) AS total, COUNT(*) AS n FROM Version AS OF SYSTEM TIME '${set.instant}' WHERE quantity < ${quantityBelow} GROUP BY category`;
    for (let run = 0; run < runs + warmUp; run++) {
      const { text, ms, insideMs } = await server.query(sql);
      ours = replyRows(text);
      if (run < warmUp) continue;
      samples.push(ms);
      inside.push(insideMs);
    }
  } finally {
    await server.stop();
  }
  report.add({ ...shape, product: 'annals', samples, note: 'HTTP' });
  report.add({ ...shape, product: 'annals, inside', samples: inside, note: 'its processing_time_ms' });

  const instant = systemFromBase + BigInt(set.at);
  const sql = `SELECT category, SUM(amount), COUNT(*) FROM versions
    WHERE system_from <= ${instant} AND system_to > ${instant} AND quantity < ${quantityBelow} GROUP BY category`;
  const duckdb = await DuckDb.open(directory);
  try {
    await duckdb.load(count);
    const theirs = await duckdb.timed(sql, runs, warmUp);
    sameRows(measure, ours, theirs.rows);
    report.add({ ...shape, product: 'DuckDB', samples: theirs.samples, note: `${duckdb.version}, 1 thread, in process` });
    report.figure(large ? 'as-of-aggregate.duckdb' : 'as-of-aggregate.duckdb-small', quotient(theirs.samples, inside));
  } finally {
    duckdb.close();
  }
  if (!large || !postgres) return;
  await postgres.loadVersions(count);
  const theirs = await postgres.timed(sql, 3);
  report.add({ ...shape, product: 'PostgreSQL', samples: theirs, note: 'unlogged table, analysed, by psql’s clock' });
  report.figure('as-of-aggregate.postgres', quotient(theirs, inside));
}
