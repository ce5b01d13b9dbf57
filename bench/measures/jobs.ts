/**
 * Jobs beside others: how long the loop of jobs holds the event loop while 10,000 wait, and point reads while two jobs run, in turn with
 * point reads while none does.
 */
import { fileURLToPath } from 'node:url';
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import { load, post } from '../http-load.ts';
import { mustRun, pinned, program, serverCore } from '../processes.ts';
import { quotient, summary } from '../report.ts';
import { orderJson, orderKey, orders, scramble } from '../workload.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const waiting = 10_000;
const connections = 16;
/** Reads of which a p99 is told, at least. */
const readsMin = 5_000;
const rounds = 5;

export interface Ticks {
  /** Milliseconds that the loop was held, not by the collector: at the start, after a change of one job, where nothing changed, and where all are due. */
  readonly first: number;
  readonly changed: readonly number[];
  readonly idle: readonly number[];
  readonly due: number;
}

export async function jobs({ report, directory, rows, seconds, port }: BenchContext): Promise<void> {
  const command = [process.execPath, ...program('gate-jobs.ts', `${directory}/jobs-waiting`, String(waiting))];
  const { stdout } = await mustRun(pinned(serverCore, command), { cwd: root });
  const ticks = JSON.parse(stdout.trim().split('\n').at(-1)!) as Ticks;
  const times = { unit: 'ms', better: 'smaller', product: 'annals' } as const;
  for (const [when, samples] of [
    ['the first', [ticks.first]],
    ['after a change', ticks.changed],
    ['without a change', ticks.idle],
    ['all are due', [ticks.due]],
  ] as const)
    report.add({ ...times, measure: `longest turn of a tick, ${waiting.toLocaleString('en')} jobs wait, ${when}`, samples });
  report.figure('jobs.tick', summary(ticks.changed));
  report.figure('jobs.first-tick', summary([ticks.first]));

  const count = Math.min(rows, 200_000);
  const server = await AnnalsServer.start(directory, 'jobs', port());
  try {
    await server.registerOrders();
    await server.ingest('Purchase', orders(0, count, orderJson), count);
    const headers = { ...server.headers, 'content-type': 'application/json' };
    const ids = await Promise.all(['customer', 'note'].map((column) => makeJob(server, column)));
    const request = (n: number): Buffer =>
      post('/query', headers, `{"sql":"SELECT * FROM Purchase WHERE _pk = '${orderKey(scramble(n) % count)}'"}`);
    const read = () => load({ port: server.port, connections, seconds, request, requestsMin: readsMin, pauseMs: 1 });
    let runs = 0;
    const readBeside = async () => {
      let isOver = false;
      const running = ids.map(async (id) => {
        for (; !isOver; runs++) await server.request(`/jobs/${id}/run`, '{}');
      });
      const found = await read();
      isOver = true;
      await Promise.all(running);
      return found;
    };
    // Both warm up.
    await readBeside();
    await read();
    const p99s: { readonly alone: number[]; readonly beside: number[] } = { alone: [], beside: [] };
    for (let round = 0; round < rounds; round++) {
      // A machine that gets slower favours neither.
      const isFirst = round % 2 === 0;
      if (isFirst) p99s.alone.push((await read()).p99);
      p99s.beside.push((await readBeside()).p99);
      if (!isFirst) p99s.alone.push((await read()).p99);
    }
    const measure = `point read by key of ${count.toLocaleString('en')}, ${connections} clients, p99`;
    report.add({ ...times, measure, samples: p99s.alone });
    report.add({ ...times, measure, product: 'annals, two jobs run', samples: p99s.beside, note: `${runs} runs` });
    report.figure('jobs.read-p99', quotient(p99s.beside, p99s.alone));
  } finally {
    await server.stop();
  }
}

/** A job that reads all rows, by hand. */
async function makeJob(server: AnnalsServer, column: string): Promise<string> {
  const sql = `SELECT ${column}, COUNT(*) AS n, SUM(amount * quantity) AS worth FROM Purchase GROUP BY ${column} ORDER BY worth DESC`;
  const made = await server.request('/jobs', JSON.stringify({ name: `worth by ${column}`, run: { sql }, run_now: false }));
  return (JSON.parse(made) as { job_id: string }).job_id;
}
