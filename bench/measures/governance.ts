/**
 * What governing costs: a hundred rules with conditions on rows, on an aggregate and on a point read; a change of them; single
 * decisions; and the access records of point reads, beside a server that makes none.
 */
import { fileURLToPath } from 'node:url';
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import type { Governance } from '../gate-governance.ts';
import { load, post } from '../http-load.ts';
import { mustRun, pinned, program, serverCore } from '../processes.ts';
import { quotient, summary } from '../report.ts';
import { orderJson, orderKey, orders, scramble } from '../workload.ts';

const runs = 10;
const connections = 16;

export async function governance(context: BenchContext): Promise<void> {
  await rules(context);
  await records(context);
}

async function rules({ report, directory, largeRows }: BenchContext): Promise<void> {
  const ruled = program('gate-governance.ts', `${directory}/governance`, String(largeRows), String(runs));
  const command = pinned(serverCore, [process.execPath, ...ruled]);
  const { stdout } = await mustRun(command, { cwd: fileURLToPath(new URL('../..', import.meta.url)) });
  const { aggregate, read, primed, decisions } = JSON.parse(stdout.trim().split('\n').at(-1)!) as Governance;
  const of = `${largeRows.toLocaleString('en')} rows`;
  const shape = { better: 'smaller', note: 'gate and planner in process' } as const;
  for (const [kind, product] of [
    ['open', 'annals, no policies'],
    ['ruled', 'annals, 100 rules'],
  ] as const) {
    report.add({ ...shape, unit: 'ms', measure: `aggregate as of current, ${of}`, product, samples: aggregate[kind] });
    report.add({ ...shape, unit: 'µs', measure: `point read by key of ${of}`, product, samples: read[kind] });
  }
  report.figure('governance.aggregate', quotient(aggregate.ruled, aggregate.open));
  report.figure('governance.read', summary(read.ruled.map((ruled, i) => ruled - read.open[i]!)));
  report.figure('governance.primed', summary(primed));
  report.figure('governance.decisions', summary(decisions));
}

async function records({ report, directory, rows, seconds, repeats, port }: BenchContext): Promise<void> {
  const count = Math.min(rows, 200_000);
  const started = (name: 'recording' | 'silent'): Promise<AnnalsServer> =>
    AnnalsServer.start(directory, name, port(), { program: program('recorder-server.ts', name) });
  const recording = await started('recording');
  const silent = await started('silent');
  const rates: Record<'recording' | 'silent', number[]> = { recording: [], silent: [] };
  const servers = { recording, silent };
  try {
    for (const server of Object.values(servers)) {
      await server.registerOrders();
      await server.ingest('Purchase', orders(0, count, orderJson), count);
    }
    for (let repeat = 0; repeat < repeats + 1; repeat++) {
      for (const kind of ['recording', 'silent'] as const) {
        const { port: to, headers: own } = servers[kind];
        const headers = { ...own, 'content-type': 'application/json' };
        const request = (n: number): Buffer =>
          post('/query', headers, `{"sql":"SELECT * FROM Purchase WHERE _pk = '${orderKey(scramble(n) % count)}'"}`);
        const result = await load({ port: to, connections, seconds, request });
        if (!result.firstReply.includes('"row_count":1,')) throw new Error(`not one row: ${result.firstReply}`);
        // The first round warms both up.
        if (repeat > 0) rates[kind].push(result.perSecond);
      }
    }
  } finally {
    await Promise.all([recording.stop(), silent.stop()]);
  }
  const shape = { measure: `point read by key, ${connections} clients`, unit: 'reads/s', better: 'larger' } as const;
  report.add({ ...shape, product: 'annals, with access records', samples: rates.recording });
  report.add({ ...shape, product: 'annals, with none', samples: rates.silent });
  report.figure('governance.record', quotient(rates.recording, rates.silent));
}
