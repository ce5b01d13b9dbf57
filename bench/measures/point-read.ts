/** One row by primary key over HTTP, its access record included, beside pgbench SELECTs of the same rows. */
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import { load, post } from '../http-load.ts';
import { orderCsv, orderJson, orderKey, orders, scramble } from '../workload.ts';

const connections = 16;

export async function pointRead({ report, directory, postgres, rows, repeats, seconds, port }: BenchContext): Promise<void> {
  const count = Math.min(rows, 200_000);
  const shape = {
    measure: `point read by key of ${count.toLocaleString('en')}, ${connections} clients`,
    unit: 'reads/s',
    better: 'larger',
  } as const;
  const server = await AnnalsServer.start(directory, 'point-read', port());
  try {
    await server.registerOrders();
    await server.ingest('Purchase', orders(0, count, orderJson), count);
    const headers = { ...server.headers, 'content-type': 'application/json' };
    const request = (n: number): Buffer =>
      post('/query', headers, `{"sql":"SELECT * FROM Purchase WHERE _pk = '${orderKey(scramble(n) % count)}'"}`);
    const first = await load({ port: server.port, connections, seconds: 1, request });
    if (!first.firstReply.includes('"row_count":1')) throw new Error(`not one row: ${first.firstReply}`);
    const samples: number[] = [];
    let note = '';
    for (let repeat = 0; repeat < repeats; repeat++) {
      const result = await load({ port: server.port, connections, seconds, request });
      samples.push(result.perSecond);
      note = `HTTP, with access record, p50 ${result.p50.toFixed(2)} ms, p99 ${result.p99.toFixed(2)} ms`;
    }
    report.add({ ...shape, product: 'annals', samples, note });
  } finally {
    await server.stop();
  }
  if (!postgres) return;
  await postgres.copy(orders(0, count, orderCsv), count);
  for (const mode of ['simple', 'prepared'] as const) {
    const samples: number[] = [];
    for (let repeat = 0; repeat < repeats; repeat++) samples.push(await postgres.pointReads(count, connections, seconds, mode));
    report.add({ ...shape, product: `PostgreSQL, ${mode}`, samples, note: 'pgbench' });
  }
}
