/**
 * A backup of a store that serves, and its restore beside it: megabytes of log a second, from the request to the reply, of rows of
 * 200 bytes that differ as much as such rows do: a log of what packs well is few bytes, and its replay as long.
 * A backup is copied, fsynced and read back; a restore is copied, opened and hashed body by body, and replayed once or twice, so
 * `annals replay` of the same log stands beside it.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import { everyCore, mustRun, pinned } from '../processes.ts';
import { quotient, summary } from '../report.ts';
import { orderJson, orders } from '../workload.ts';

const bin = fileURLToPath(new URL('../../bin/annals', import.meta.url));

export async function backup({ report, directory, rows, repeats, port }: BenchContext): Promise<void> {
  const settings = { SERVICE_BACKUP_DIR: join(directory, 'backups') };
  const target = join(directory, 'restored');
  const found = { backup: [] as number[], restore: [] as number[], copy: [] as number[], replay: [] as number[] };
  let megabytes = 0;
  let compared = '';
  const server = await AnnalsServer.start(directory, 'backup', port(), { cores: 'all', settings });
  try {
    await server.registerOrders();
    await server.ingest('Purchase', orders(0, rows, orderJson), rows);
    for (let repeat = 0; repeat < repeats; repeat++) {
      const taken = await timed(() => server.admin<{ backup: string; size_bytes: number }>('/admin/backup', {}));
      found.backup.push(taken.seconds);
      megabytes = taken.reply.size_bytes / 1e6;
      const body = { backup: taken.reply.backup, target_dir: target };
      const restored = await timed(() =>
        server.admin<{ root_match: boolean; compared_with: string; copy_ms: number }>('/admin/restore', body),
      );
      if (!restored.reply.root_match) throw new Error('another root was restored');
      compared = restored.reply.compared_with;
      found.restore.push(restored.seconds);
      found.copy.push(restored.reply.copy_ms / 1000);
      rmSync(target, { recursive: true });
      rmSync(join(settings.SERVICE_BACKUP_DIR, taken.reply.backup), { recursive: true });
    }
  } finally {
    await server.stop();
  }
  const env = { ...process.env, SERVICE_DATA_DIR: server.dataDirectory };
  for (let repeat = 0; repeat < repeats; repeat++)
    found.replay.push((await mustRun(pinned(everyCore, [process.execPath, bin, 'replay']), { env })).seconds);

  const rates = (samples: readonly number[]): number[] => samples.map((each) => megabytes / each);
  const of = `of ${rows.toLocaleString('en')} rows, ${megabytes.toFixed(0)} MB of log`;
  const shape = { product: 'annals', unit: 'MB/s', better: 'larger' } as const;
  report.add({ ...shape, measure: `backup ${of}`, samples: rates(found.backup), note: 'POST /admin/backup' });
  report.add({ ...shape, measure: `restore ${of}`, samples: rates(found.restore), note: `compared with ${compared}` });
  report.add({
    ...shape,
    measure: `copying and comparing in a restore ${of}`,
    samples: rates(found.copy),
    note: 'the rest is replay',
  });
  report.add({ ...shape, measure: `annals replay ${of}`, samples: rates(found.replay), note: 'process start included' });
  report.figure('backup.backup-rate', summary(rates(found.backup)));
  report.figure('backup.restore-copy', summary(rates(found.copy)));
  report.figure('backup.restore-replay', quotient(found.restore, found.replay));
}

async function timed<T>(work: () => Promise<T>): Promise<{ readonly reply: T; readonly seconds: number }> {
  const began = performance.now();
  const reply = await work();
  return { reply, seconds: (performance.now() - began) / 1000 };
}
