/** Durable commits of one row: over HTTP, and through the gate in process, beside pgbench and SQLite. */
import { fileURLToPath } from 'node:url';
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import { load, post } from '../http-load.ts';
import { mustRun, pinned, program, serverCore } from '../processes.ts';
import { quotient } from '../report.ts';
import { orderJson } from '../workload.ts';

export async function commits(context: BenchContext): Promise<void> {
  const { report, directory, postgres, sqlite, repeats, seconds, port } = context;
  const gate = await gateCommits(context);
  const server = await AnnalsServer.start(directory, 'commits', port());
  let next = 0;
  try {
    await server.registerOrders();
    for (const clients of [1, 16, 64] as const) {
      const shape = {
        measure: `durable commits of 1 row, ${clients} client${clients === 1 ? '' : 's'}`,
        unit: 'commits/s',
        better: 'larger',
      } as const;
      const samples: number[] = [];
      let p50 = 0;
      let p99 = 0;
      for (let repeat = 0; repeat < repeats; repeat++) {
        const request = (): Buffer =>
          post('/ingest?object_type=Purchase', { ...server.headers, 'content-type': 'application/x-ndjson' }, orderJson(next++));
        const result = await load({ port: server.port, connections: clients, seconds, request });
        if (!result.firstReply.includes('"accepted":1')) throw new Error(`not accepted: ${result.firstReply}`);
        samples.push(result.perSecond);
        ({ p50, p99 } = result);
      }
      report.add({ ...shape, product: 'annals', samples, note: `HTTP, p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms` });
      report.add({ ...shape, product: 'annals, in process', samples: gate.get(clients)!, note: 'gate.submit' });
      if (postgres) {
        const inserts: number[] = [];
        for (let repeat = 0; repeat < repeats; repeat++) inserts.push(await postgres.inserts(clients, seconds));
        report.add({ ...shape, product: 'PostgreSQL', samples: inserts, note: 'pgbench, prepared INSERT' });
        report.figure(`commits.gate-${clients}`, quotient(gate.get(clients)!, inserts));
        report.figure(`commits.http-${clients}`, quotient(samples, inserts));
      }
      if (sqlite && clients === 1) {
        const inserts: number[] = [];
        for (let repeat = 0; repeat < repeats; repeat++) inserts.push(await sqlite.commits(Math.round(seconds * 3000)));
        report.add({ ...shape, product: 'SQLite', samples: inserts, note: 'in process' });
      }
    }
  } finally {
    await server.stop();
  }
}

async function gateCommits({ directory, repeats, seconds }: BenchContext): Promise<Map<number, number[]>> {
  const found = new Map<number, number[]>();
  for (let repeat = 0; repeat < repeats; repeat++) {
    const command = [process.execPath, ...program('gate-commits.ts', `${directory}/gate-${repeat}`, String(seconds))];
    const { stdout } = await mustRun(pinned(serverCore, command), { cwd: fileURLToPath(new URL('../..', import.meta.url)) });
    for (const [clients, perSecond] of JSON.parse(stdout.trim().split('\n').at(-1)!) as [number, number][]) {
      found.set(clients, [...(found.get(clients) ?? []), perSecond]);
    }
  }
  return found;
}
