/**
 * One row by primary key, and a hundred whose keys follow each other, over HTTP with the access record included; beside
 * pgbench SELECTs of the same rows over its btree. The server has one core, so a rate is a rate a core; what the machine
 * does of the same requests and answers without a product is measured beside it, by servers that only send bytes.
 */
import { connect } from 'node:net';
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import { load, type LoadOptions, post } from '../http-load.ts';
import { cpuSeconds, pinned, program, serverCore, start, stop } from '../processes.ts';
import { quotient, summary } from '../report.ts';
import { orderCsv, orderJson, orderKey, orders, scramble } from '../workload.ts';

const connections = 16;
const width = 100;

export async function pointRead({ report, directory, postgres, rows, repeats, seconds, port }: BenchContext): Promise<void> {
  const count = Math.min(rows, 200_000);
  const reads = {
    point: {
      measure: `point read by key of ${count.toLocaleString('en')}, ${connections} clients`,
      sql: (n: number) => `SELECT * FROM Purchase WHERE _pk = '${orderKey(scramble(n) % count)}'`,
      rows: 1,
      rate: 'point-read.rate',
      ratio: 'point-read.postgres',
      bare: { net: 'point-read.net', http: 'point-read.node-http' },
    },
    range: {
      measure: `${width} rows by a range of keys of ${count.toLocaleString('en')}, ${connections} clients`,
      sql: (n: number) => {
        const from = scramble(n) % (count - width);
        return `SELECT * FROM Purchase WHERE id >= '${orderKey(from)}' AND id < '${orderKey(from + width)}'`;
      },
      rows: width,
      rate: 'point-read.range-rate',
      ratio: 'point-read.range-postgres',
      bare: { net: 'point-read.range-net', http: 'point-read.range-node-http' },
    },
  } as const;
  const shape = { unit: 'reads/s', better: 'larger' } as const;
  const own: Record<keyof typeof reads, number[]> = { point: [], range: [] };

  const server = await AnnalsServer.start(directory, 'point-read', port());
  try {
    await server.registerOrders();
    // Rising with arrival, as keys of orders do.
    await server.ingest('Purchase', orders(0, count, orderJson), count);
    const headers = { ...server.headers, 'content-type': 'application/json' };
    for (const [name, read] of Object.entries(reads) as [keyof typeof reads, (typeof reads)[keyof typeof reads]][]) {
      const request = (n: number): Buffer => post('/query', headers, `{"sql":"${read.sql(n)}"}`);
      const first = await load({ port: server.port, connections, seconds: 1, request });
      if (!first.firstReply.includes(`"row_count":${read.rows},`)) throw new Error(`not ${read.rows} rows: ${first.firstReply}`);
      const yardsticks = { net: [] as number[], http: [] as number[] };
      let note = '';
      for (let repeat = 0; repeat < repeats; repeat++) {
        const cpuBefore = cpuSeconds(server.pid);
        const result = await load({ port: server.port, connections, seconds, request });
        const busy = (cpuSeconds(server.pid) - cpuBefore) / seconds;
        own[name].push(result.perSecond);
        for (const kind of ['net', 'http'] as const) {
          const asked = { connections, seconds, request };
          yardsticks[kind].push(await bareRate(kind, port(), Buffer.byteLength(first.firstReply), asked));
        }
        note = `HTTP, with access record, p50 ${result.p50.toFixed(2)} ms, p99 ${result.p99.toFixed(2)} ms, server busy ${(busy * 100).toFixed(0)} %`;
      }
      report.add({ ...shape, measure: read.measure, product: 'annals', samples: own[name], note });
      report.figure(read.rate, summary(own[name]));
      for (const kind of ['net', 'http'] as const) {
        report.add({
          ...shape,
          measure: read.measure,
          product: `bare node:${kind}`,
          samples: yardsticks[kind],
          note: 'same bytes',
        });
        report.figure(read.bare[kind], quotient(own[name], yardsticks[kind]));
      }
    }
  } finally {
    await server.stop();
  }
  if (!postgres) return;
  await postgres.copy(orders(0, count, orderCsv), count);
  await postgres.settle();
  for (const [name, { measure, ratio }] of Object.entries(reads) as [keyof typeof reads, (typeof reads)[keyof typeof reads]][]) {
    for (const mode of ['simple', 'prepared'] as const) {
      const samples: number[] = [];
      for (let repeat = 0; repeat < repeats; repeat++) {
        samples.push(
          name === 'point'
            ? await postgres.pointReads(count, connections, seconds, mode)
            : await postgres.rangeReads(count, width, connections, seconds, mode),
        );
      }
      report.add({ ...shape, measure, product: `PostgreSQL, ${mode}`, samples, note: 'pgbench' });
      if (mode === 'simple') report.figure(ratio, quotient(own[name], samples));
    }
  }
}

/** Of a server on the product's core that answers all requests with so many bytes. */
async function bareRate(kind: 'net' | 'http', port: number, bytes: number, asked: Omit<LoadOptions, 'port'>): Promise<number> {
  const child = start(pinned(serverCore, [process.execPath, ...program('bare-server.ts', kind, String(port), String(bytes))]));
  try {
    while (!(await listens(port))) await new Promise((resolve) => setTimeout(resolve, 10));
    await load({ ...asked, port, seconds: 0.5 });
    return (await load({ ...asked, port })).perSecond;
  } finally {
    await stop(child, 'SIGKILL');
  }
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true));
    socket.once('error', () => resolve(false)).once('connect', () => socket.destroy());
  });
}
