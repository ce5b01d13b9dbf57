/** What AS OF costs where it changes nothing: the same aggregate as of the head's system time and as of current, in turn. */
import { AnnalsServer } from '../annals-server.ts';
import { type Cells, replyRows, sameRows } from '../answers.ts';
import type { BenchContext } from '../context.ts';
import { instantText } from '../datasets.ts';
import { quotient } from '../report.ts';

const runs = 15;
const warmUp = 4;

export async function asOfHead({ report, datasets, largeRows, port }: BenchContext): Promise<void> {
  const set = await datasets.versions(largeRows);
  const server = await AnnalsServer.start(set.parent, set.name, port());
  const found = { current: [] as number[], head: [] as number[] };
  try {
    const { text } = await server.query('SELECT COUNT(*) AS n FROM Version AS OF CURRENT');
    const head = instantText(/"as_of_system":(\d+)/.exec(text)![1]!);
    const bases = { current: 'AS OF CURRENT', head: `AS OF SYSTEM TIME '${head}'` };
    const rows: Record<keyof typeof bases, Cells[]> = { current: [], head: [] };
    for (let run = 0; run < runs + warmUp; run++) {
      for (const basis of ['current', 'head'] as const) {
        const sql = `SELECT category, SUM(amount) AS total, COUNT(*) AS n FROM Version ${bases[basis]} WHERE quantity < 25 GROUP BY category`;
        const reply = await server.query(sql);
        rows[basis] = replyRows(reply.text);
        if (run >= warmUp) found[basis].push(reply.insideMs);
      }
    }
    sameRows('as of the head and as of current', rows.head, rows.current);
  } finally {
    await server.stop();
  }
  const shape = {
    measure: `aggregate at the head, ${largeRows.toLocaleString('en')} versions`,
    unit: 'ms',
    better: 'smaller',
  } as const;
  report.add({ ...shape, product: 'annals, as of current', samples: found.current, note: 'its processing_time_ms' });
  report.add({ ...shape, product: 'annals, as of system time', samples: found.head, note: 'its processing_time_ms' });
  report.figure('as-of-head.share', quotient(found.head, found.current));
}
