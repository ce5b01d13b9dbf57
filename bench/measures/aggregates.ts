/** Aggregates other than the one that the layout was made for, beside DuckDB with one thread over the same versions. */
import { AnnalsServer } from '../annals-server.ts';
import { type Cells, replyRows, sameRows } from '../answers.ts';
import type { BenchContext } from '../context.ts';
import { DuckDb } from '../peers/duckdb.ts';
import { geometricMean, quotient, type Spread, worst } from '../report.ts';

const runs = 7;
const warmUp = 3;

/** `current` stands for AS OF CURRENT here and for open system bounds there. */
const questions: readonly { readonly name: string; readonly select: string; readonly current?: string; readonly end?: string }[] =
  [
    { name: 'sum', select: 'SUM(amount) AS a' },
    { name: 'count', select: 'COUNT(*) AS a', end: 'WHERE quantity < 25' },
    { name: 'min and max', select: 'MIN(amount) AS a, MAX(amount) AS b, MIN(day) AS c, MAX(day) AS d' },
    { name: 'avg', select: 'AVG(amount) AS a, AVG(quantity) AS b' },
    { name: 'sum, group by one', select: 'category, SUM(amount) AS a', end: 'GROUP BY category' },
    {
      name: 'sum, group by two',
      select: 'category, quantity, SUM(amount) AS a, COUNT(*) AS b',
      end: 'GROUP BY category, quantity',
    },
    { name: 'count of an equality, as of current', select: 'COUNT(*) AS a', current: 'quantity = 7' },
    {
      name: 'sum, group by one, as of current',
      select: 'category, SUM(amount) AS a',
      current: 'day < 200',
      end: 'GROUP BY category',
    },
    { name: 'count distinct, few', select: 'COUNT(DISTINCT category) AS a' },
    { name: 'count distinct, many', select: 'COUNT(DISTINCT amount) AS a' },
  ];

export async function aggregates({ report, datasets, directory, largeRows, port }: BenchContext): Promise<void> {
  const set = await datasets.versions(largeRows);
  const own = new Map<string, { samples: number[]; rows: Cells[] }>();
  const server = await AnnalsServer.start(set.parent, set.name, port());
  try {
    for (const { name, select, current, end = '' } of questions) {
      const sql = `SELECT ${select} FROM Version ${current === undefined ? '' : `AS OF CURRENT WHERE ${current}`} ${end}`;
      const samples: number[] = [];
      let rows: Cells[] = [];
      for (let run = 0; run < runs + warmUp; run++) {
        const { text, insideMs } = await server.query(sql);
        rows = replyRows(text);
        if (run >= warmUp) samples.push(insideMs);
      }
      own.set(name, { samples, rows });
    }
  } finally {
    await server.stop();
  }

  const ratios: Spread[] = [];
  const duckdb = await DuckDb.open(directory);
  try {
    await duckdb.load(largeRows);
    for (const { name, select, current, end = '' } of questions) {
      const open = current === undefined ? '' : `WHERE system_to = 9223372036854775807 AND ${current}`;
      const theirs = await duckdb.timed(`SELECT ${select} FROM versions ${open} ${end}`, runs, warmUp);
      const { samples, rows } = own.get(name)!;
      sameRows(name, rows, theirs.rows);
      const shape = { measure: `${name}, ${largeRows.toLocaleString('en')} versions`, unit: 'ms', better: 'smaller' } as const;
      report.add({ ...shape, product: 'annals', samples, note: 'its processing_time_ms' });
      const ratio = quotient(samples, theirs.samples);
      report.add({
        ...shape,
        product: 'DuckDB',
        samples: theirs.samples,
        note: `annals takes ${ratio.median.toFixed(2)} of its time`,
      });
      ratios.push(ratio);
    }
  } finally {
    duckdb.close();
  }
  report.figure('aggregates.duckdb', geometricMean(ratios));
  report.figure('aggregates.worst', worst(ratios));
}
