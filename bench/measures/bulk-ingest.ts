/** Durable bulk ingest with a primary key: NDJSON over HTTP beside COPY and .import of the same rows as CSV. */
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import { orderCsv, orderJson, orders } from '../workload.ts';

export async function bulkIngest({ report, directory, postgres, sqlite, rows, repeats, port }: BenchContext): Promise<void> {
  const json = orders(0, rows, orderJson);
  const measure = `bulk ingest, ${rows.toLocaleString('en')} rows of ${Math.round(json.length / rows)} B, primary key`;
  const shape = { measure, unit: 'rows/s', better: 'larger' } as const;
  const samples: number[] = [];
  for (let repeat = 0; repeat < repeats; repeat++) {
    const server = await AnnalsServer.start(directory, `ingest-${repeat}`, port());
    try {
      await server.registerOrders();
      const began = performance.now();
      await server.ingest('Purchase', json, rows);
      samples.push((rows / (performance.now() - began)) * 1000);
    } finally {
      await server.stop();
    }
  }
  report.add({ ...shape, product: 'annals', samples, note: 'HTTP, NDJSON, fsynced' });
  const csv = orders(0, rows, orderCsv);
  if (postgres) {
    const copies: number[] = [];
    for (let repeat = 0; repeat < repeats; repeat++) copies.push(await postgres.copy(csv, rows));
    report.add({ ...shape, product: 'PostgreSQL', samples: copies, note: 'COPY' });
  }
  if (sqlite) {
    const imports: number[] = [];
    for (let repeat = 0; repeat < repeats; repeat++) imports.push(await sqlite.bulk(csv, rows));
    report.add({ ...shape, product: 'SQLite', samples: imports, note: '.import, one transaction, in process' });
  }
}
