/**
 * Filter, group and sum over what was believed at 80 % of the history: over HTTP beside DuckDB with one thread in
 * process. Both answer from the same versions, and the answers must agree.
 */
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import { type AggregateRow, DuckDb } from '../peers/duckdb.ts';
import { versions } from '../workload.ts';

const quantityBelow = 25;
const runs = 9;

export async function asOfAggregate(context: BenchContext): Promise<void> {
  for (const count of [context.rows, context.rows * 10]) await aggregateOver(context, count);
}

async function aggregateOver({ report, directory, port }: BenchContext, count: number): Promise<void> {
  // A version that is the only one of its key, so that its instant can be asked for.
  const at = Math.floor((count * 0.8) / 20) * 20;
  const shape = {
    measure: `as-of aggregate over ${count.toLocaleString('en')} versions`,
    unit: 'ms',
    better: 'smaller',
  } as const;

  const server = await AnnalsServer.start(directory, `aggregate-${count}`, port());
  let ours: AggregateRow[] = [];
  try {
    const properties = {
      id: { type: 'string' },
      category: { type: 'string' },
      amount: { type: 'number' },
      quantity: { type: 'integer' },
    };
    await server.request('/types', JSON.stringify({ name: 'Version', properties, primary_key: 'id' }));
    await server.ingest('Version', versionStream(count), count);
    const placed = await query(server, `SELECT system_from FROM Version WHERE _pk = '${versions.key(at)}'`);
    const nanoseconds = /"system_from":(\d+)/.exec(placed.text)![1]!;
    const instant = `${new Date(Number(BigInt(nanoseconds) / 1_000_000_000n) * 1000).toISOString().slice(0, 19)}.${nanoseconds.slice(-9)}Z`;
    const sql = `SELECT category, SUM(amount) AS total, COUNT(*) AS n FROM Version AS OF SYSTEM TIME '${instant}' WHERE quantity < ${quantityBelow} GROUP BY category`;
    const samples: number[] = [];
    const inside: number[] = [];
    for (let run = 0; run < runs + 3; run++) {
      const { text, ms } = await query(server, sql);
      const reply = JSON.parse(text) as { rows: { category: string; total: number; n: number }[]; processing_time_ms: number };
      ours = reply.rows.map(({ category, total, n }) => [category, total, n] as const);
      if (run < 3) continue;
      samples.push(ms);
      inside.push(reply.processing_time_ms);
    }
    report.add({ ...shape, product: 'annals', samples, note: 'HTTP' });
    report.add({ ...shape, product: 'annals, inside', samples: inside, note: 'its processing_time_ms' });
  } finally {
    await server.stop();
  }

  const duckdb = await DuckDb.open(directory);
  try {
    await duckdb.load(count);
    const samples: number[] = [];
    let theirs: AggregateRow[] = [];
    for (let run = 0; run < runs + 3; run++) {
      const { seconds, groups } = await duckdb.asOfAggregate(at, quantityBelow);
      theirs = groups;
      if (run >= 3) samples.push(seconds * 1000);
    }
    report.add({ ...shape, product: 'DuckDB', samples, note: `${duckdb.version}, 1 thread, in process` });
    compare(ours, theirs);
  } finally {
    duckdb.close();
  }
}

async function query(server: AnnalsServer, sql: string): Promise<{ text: string; ms: number }> {
  const began = performance.now();
  const text = await server.request('/query', JSON.stringify({ sql }));
  return { text, ms: performance.now() - began };
}

function versionStream(count: number): ReadableStream<Uint8Array> {
  let i = 0;
  return new ReadableStream({
    pull(controller) {
      if (i >= count) return controller.close();
      let text = '';
      for (const end = Math.min(i + 2_000, count); i < end; i++) text += versions.json(i);
      controller.enqueue(Buffer.from(text));
    },
  });
}

/** Sums of doubles may differ in their last digits: their order is each product's own. */
function compare(ours: readonly AggregateRow[], theirs: readonly AggregateRow[]): void {
  const byCategory = new Map(theirs.map((row) => [row[0], row]));
  const same =
    ours.length === theirs.length &&
    ours.every(([category, total, n]) => {
      const row = byCategory.get(category);
      return row !== undefined && row[2] === n && Math.abs(row[1] - total) <= 1e-9 * Math.abs(total);
    });
  if (!same) throw new Error(`the answers differ:\n${JSON.stringify(ours.slice(0, 3))}\n${JSON.stringify(theirs.slice(0, 3))}`);
}
