/**
 * How long `/health` takes while four scans of the large store and an ingest keep the server's core busy. Servers run for
 * long: what is compared is one that has compiled what it runs, and the first round of a process stands beside it.
 */
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import { type Polled, startPoller } from '../health.ts';
import { summary } from '../report.ts';
import { orderJson, orders } from '../workload.ts';

const scans = 4;

export async function healthUnderLoad({ report, datasets, largeRows, rows, repeats, port }: BenchContext): Promise<void> {
  const set = datasets.copy(await datasets.versions(largeRows), 'health', { derived: true });
  const json = orders(0, rows, orderJson);
  const sql = `SELECT category, SUM(amount) AS total, COUNT(*) AS n FROM Version AS OF SYSTEM TIME '${set.instant}' WHERE quantity < 25 GROUP BY category`;
  const server = await AnnalsServer.start(set.parent, set.name, port());
  const found: Polled[] = [];
  const first: Polled[] = [];
  let scanned = 0;
  let ingestSeconds = 0;
  try {
    await server.registerOrders();
    await server.query(sql);
    for (let round = 0; round <= repeats; round++) {
      let ingesting = true;
      const polling = await startPoller(server.port);
      const scanning = Array.from({ length: scans }, async () => {
        while (ingesting) {
          await server.query(sql);
          scanned++;
        }
      });
      const began = performance.now();
      // The same keys each time: later loads supersede earlier ones.
      await server.ingest('Purchase', json, rows).finally(() => (ingesting = false));
      ingestSeconds += (performance.now() - began) / 1000;
      await Promise.all(scanning);
      (round === 0 ? first : found).push(await polling.stop());
    }
  } finally {
    await server.stop();
  }
  const all = [...first, ...found];
  const failed = all.reduce((sum, each) => sum + each.failed, 0);
  if (failed > 0) throw new Error(`${failed} times /health was not 200`);
  const polls = all.reduce((sum, each) => sum + each.polls, 0);
  const measure = `/health under ${scans} scans of ${largeRows.toLocaleString('en')} rows and an ingest of ${rows.toLocaleString('en')}`;
  const late = Math.max(...all.map(({ lateMs }) => lateMs)).toFixed(1);
  const note = `${polls} questions in ${ingestSeconds.toFixed(0)} s, ${scanned} scans done; the client itself was late by ${late} ms (p99)`;
  for (const quantity of ['p50', 'p99', 'max'] as const) {
    const samples = found.map((each) => each[quantity]);
    report.add({
      measure,
      unit: 'ms',
      better: 'smaller',
      product: `annals, ${quantity}`,
      samples,
      note: quantity === 'p50' ? note : '',
    });
    report.add({
      measure,
      unit: 'ms',
      better: 'smaller',
      product: `annals, just started, ${quantity}`,
      samples: first.map((each) => each[quantity]),
      note: quantity === 'p50' ? 'the first round of the process' : '',
    });
  }
  report.figure('health-under-load.p99', summary(found.map(({ p99 }) => p99)));
}
