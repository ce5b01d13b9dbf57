/**
 * What a server takes of memory that holds rows of five columns: after a start, after a scan of every column; of it the
 * primary-key index; and under a budget that is smaller than the columns, what scans and point reads take then.
 */
import { fileURLToPath } from 'node:url';
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import { mustRun, pinned, program, residentMb, serverCore } from '../processes.ts';
import { quotient, summary } from '../report.ts';
import { scramble, versions } from '../workload.ts';

const budgetMb = '256';
const runs = 5;
const pointReads = 200;
const everyColumn = 'SELECT MAX(id) AS a, MIN(category) AS b, SUM(amount) AS c, SUM(quantity) AS d, SUM(day) AS e FROM Version';

export async function memory({ report, datasets, largeRows, port }: BenchContext): Promise<void> {
  const set = await datasets.versions(largeRows);
  const of = `${largeRows.toLocaleString('en')} rows of 5 columns`;
  const found: Record<'free' | 'budget', { scans: number[]; points: number[]; started: number; scanned: number; peak: number }> =
    {
      free: { scans: [], points: [], started: 0, scanned: 0, peak: 0 },
      budget: { scans: [], points: [], started: 0, scanned: 0, peak: 0 },
    };
  let answer = '';
  for (const [name, entry] of Object.entries(found)) {
    const settings: Record<string, string> = name === 'budget' ? { SERVICE_MEMORY_BUDGET_MB: budgetMb } : {};
    const server = await AnnalsServer.start(set.parent, set.name, port(), { settings });
    try {
      entry.started = residentMb(server.pid).now;
      let first = 0;
      for (let run = 0; run < runs + 1; run++) {
        const { text, insideMs } = await server.query(everyColumn);
        const rows = JSON.stringify((JSON.parse(text) as { rows: unknown }).rows);
        answer ||= rows;
        if (rows !== answer) throw new Error(`another answer under the budget: ${rows} instead of ${answer}`);
        if (run === 0) first = insideMs;
        else entry.scans.push(insideMs);
      }
      for (let n = 0; n < pointReads; n++) {
        const { text, ms } = await server.query(`SELECT * FROM Version WHERE _pk = '${versions.key(scramble(n) % largeRows)}'`);
        if (!/"row_count":[12],/.test(text)) throw new Error(`not one row: ${text.slice(0, 300)}`);
        entry.points.push(ms);
      }
      const { now, peak } = residentMb(server.pid);
      entry.scanned = now;
      entry.peak = peak;
      const note = `started with ${entry.started.toFixed(0)}, at most ${peak.toFixed(0)}; first scan ${first.toFixed(0)} ms`;
      const product = name === 'free' ? 'annals' : `annals, budget ${budgetMb} MB`;
      report.add({ measure: `RSS after scans, ${of}`, unit: 'MB', better: 'smaller', product, samples: [now], note });
      report.add({ measure: `scan of every column, ${of}`, unit: 'ms', better: 'smaller', product, samples: entry.scans });
      report.add({
        measure: `point read one by one, ${of}`,
        unit: 'ms',
        better: 'smaller',
        product,
        samples: entry.points,
        note: 'HTTP',
      });
    } finally {
      await server.stop();
    }
  }
  const { free, budget } = found;
  report.figure('memory.resident', summary([free.scanned / 1000]));
  report.figure('memory.share', summary([(free.scanned * 1e6) / set.inputBytes]));
  report.figure('memory.budget-resident', summary([budget.scanned]));
  report.figure('memory.budget-scan', quotient(budget.scans, free.scans));

  const command = [process.execPath, ...program('index-bytes.ts', `${set.parent}/${set.name}`)];
  const { stdout } = await mustRun(pinned(serverCore, command), { cwd: fileURLToPath(new URL('../..', import.meta.url)) });
  const { keys, bytes } = JSON.parse(stdout.trim().split('\n').at(-1)!) as { keys: number; bytes: number };
  report.add({
    measure: `primary-key index, ${keys.toLocaleString('en')} keys`,
    unit: 'B',
    better: 'smaller',
    product: 'annals',
    samples: [bytes / keys],
    note: 'a key, beside the key’s own column',
  });
  report.figure('memory.index', summary([bytes / keys]));
}
