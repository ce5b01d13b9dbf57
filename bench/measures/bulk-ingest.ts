/**
 * Durable bulk ingest with a primary key: NDJSON over HTTP beside COPY and .import of the same rows as CSV; each product on
 * one core with its client on the other, then with every core open to all of them. Servers run for long: what is compared
 * is one that has compiled what it runs, and the first rows of a process stand beside it.
 */
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import type { Postgres } from '../peers/postgres.ts';
import { clientCore, confine, cpuSeconds, everyCore } from '../processes.ts';
import { quotient } from '../report.ts';
import { orderCsv, orderJson, orders } from '../workload.ts';

interface Load {
  readonly rate: number;
  readonly serverCpu: number;
  readonly clientCpu: number;
}

export async function bulkIngest(context: BenchContext): Promise<void> {
  const { report, postgres, sqlite, rows, repeats } = context;
  const json = orders(0, rows, orderJson);
  const csv = orders(0, rows, orderCsv);
  const size = `${rows.toLocaleString('en')} rows of ${Math.round(json.length / rows)} B, primary key`;
  for (const cores of ['one', 'all'] as const) {
    const measure = `bulk ingest, ${size}, ${cores === 'one' ? 'one core' : 'every core'}`;
    const shape = { measure, unit: 'rows/s', better: 'larger' } as const;
    const own: Load[] = [];
    const copies: Load[] = [];
    const first: Load[] = [];
    for (let repeat = 0; repeat < repeats; repeat++) {
      const loads = await ingest(context, json, cores, repeat);
      first.push(loads.first);
      own.push(loads.next);
      if (postgres) copies.push(await copy(postgres, csv, rows, cores));
    }
    const rates = own.map(({ rate }) => rate);
    report.add({ ...shape, product: 'annals', samples: rates, note: `HTTP, NDJSON, fsynced; ${cost(own)}` });
    const cold = first.map(({ rate }) => rate);
    report.add({ ...shape, product: 'annals, just started', samples: cold, note: `its first rows; ${cost(first)}` });
    if (copies.length > 0) {
      const samples = copies.map(({ rate }) => rate);
      report.add({ ...shape, product: 'PostgreSQL', samples, note: `COPY; ${cost(copies)}` });
      report.figure(cores === 'one' ? 'bulk-ingest.copy' : 'bulk-ingest.copy-both-cores', quotient(rates, samples));
    }
    if (sqlite && cores === 'one') {
      const samples: number[] = [];
      for (let repeat = 0; repeat < repeats; repeat++) samples.push(await sqlite.bulk(csv, rows));
      report.add({ ...shape, product: 'SQLite', samples, note: '.import, one transaction, in process' });
    }
  }
}

/** The same rows into one type of a fresh server, then into another. */
async function ingest(
  context: BenchContext,
  json: Buffer,
  cores: 'one' | 'all',
  repeat: number,
): Promise<{ readonly first: Load; readonly next: Load }> {
  const { directory, rows, port } = context;
  const server = await AnnalsServer.start(directory, `ingest-${cores}-${repeat}`, port(), { cores });
  if (cores === 'all') confine(process.pid, everyCore);
  try {
    const load = async (type: string): Promise<Load> => {
      await server.registerOrders(type);
      const serverBefore = cpuSeconds(server.pid);
      const clientBefore = process.cpuUsage();
      const began = performance.now();
      await server.ingest(type, json, rows);
      const rate = (rows / (performance.now() - began)) * 1000;
      const client = process.cpuUsage(clientBefore);
      return { rate, serverCpu: cpuSeconds(server.pid) - serverBefore, clientCpu: (client.user + client.system) / 1e6 };
    };
    return { first: await load('Cancelled'), next: await load('Purchase') };
  } finally {
    confine(process.pid, clientCore);
    await server.stop();
  }
}

function copy(postgres: Postgres, csv: Buffer, rows: number, cores: 'one' | 'all'): Promise<Load> {
  return cores === 'one' ? postgres.copy(csv, rows) : postgres.withEveryCore(() => postgres.copy(csv, rows));
}

function cost(loads: readonly Load[]): string {
  const mean = (of: (load: Load) => number): string => (loads.reduce((sum, load) => sum + of(load), 0) / loads.length).toFixed(2);
  return `CPU: server ${mean(({ serverCpu }) => serverCpu)} s, client ${mean(({ clientCpu }) => clientCpu)} s`;
}
