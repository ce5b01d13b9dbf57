/** From the start of the process to the first 200 of `/health`: from what a clean stop saved, and from the log alone. */
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import type { DataSet } from '../datasets.ts';
import { quotient, summary } from '../report.ts';

export async function startUp({ report, datasets, rows, largeRows, repeats, port }: BenchContext): Promise<void> {
  for (const count of [rows, largeRows]) {
    const set = await datasets.versions(count);
    const found = { saved: [] as number[], log: [] as number[], first: [] as number[] };
    const once = async (from: DataSet): Promise<number> => {
      const server = await AnnalsServer.start(from.parent, from.name, port());
      try {
        const { text, ms } = await server.query('SELECT COUNT(*) AS n FROM Version');
        if (!text.includes(`"n":${count}}`)) throw new Error(`not every version is there: ${text.slice(0, 300)}`);
        if (from === set) found.first.push(ms);
        return server.startSeconds;
      } finally {
        await server.stop();
      }
    };
    for (let repeat = 0; repeat < repeats; repeat++) {
      found.saved.push(await once(set));
      found.log.push(await once(datasets.copy(set, 'bare', { derived: false })));
    }
    const shape = {
      measure: `process start to /health ok, ${count.toLocaleString('en')} rows`,
      unit: 's',
      better: 'smaller',
    } as const;
    const first = summary(found.first).median.toFixed(0);
    report.add({
      ...shape,
      product: 'annals, from a checkpoint',
      samples: found.saved,
      note: `its first question then took ${first} ms`,
    });
    report.add({ ...shape, product: 'annals, from the log', samples: found.log });
    if (count !== largeRows) continue;
    report.figure('start.saved', summary(found.saved));
    report.figure('start.share', quotient(found.saved, found.log));
  }
}
