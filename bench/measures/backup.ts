/**
 * A backup of a store that serves, and its restore beside it: megabytes of log a second, from the request to the reply. Of rows of
 * 200 bytes that pack as such rows do: their log is few bytes, and its replay as long. And of rows with a kilobyte of text that
 * packs hardly at all, where bytes are what it takes.
 * A backup is copied, fsynced and read back; its projections are digested after the reply, and a restore is asked for when they
 * are. A restore is replayed behind its copying, hashed body by body, so `annals replay` of the same log stands beside it.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import { everyCore, mustRun, pinned } from '../processes.ts';
import { quotient, summary } from '../report.ts';
import { letterJson, orderJson, orders } from '../workload.ts';

const bin = fileURLToPath(new URL('../../bin/annals', import.meta.url));

export async function backup(context: BenchContext): Promise<void> {
  const { report, rows } = context;
  const packing = await measured(context, 'backup', rows, orderJson);
  report.figure('backup.backup-rate', summary(packing.rates(packing.backup)));
  report.figure('backup.restore-copy', summary(packing.rates(packing.copy)));
  report.figure('backup.restore-replay', quotient(packing.restore, packing.replay));
  const text = await measured(context, 'backup of text', Math.ceil(rows / 5), letterJson);
  report.figure('backup.text-backup-rate', summary(text.rates(text.backup)));
  report.figure('backup.text-restore-rate', summary(text.rates(text.restore)));
  report.figure('backup.text-restore-replay', quotient(text.restore, text.replay));
}

interface Found {
  /** Seconds. */
  readonly backup: number[];
  readonly digests: number[];
  readonly restore: number[];
  readonly copy: number[];
  readonly replay: number[];
  /** Megabytes of log a second. */
  rates(samples: readonly number[]): number[];
}

interface Backup {
  readonly backup: string;
  readonly size_bytes: number;
  readonly digest_tree_size: number | null;
}

async function measured(
  { report, directory, repeats, port }: BenchContext,
  name: string,
  rows: number,
  row: (i: number) => string,
): Promise<Found> {
  const settings = { SERVICE_BACKUP_DIR: join(directory, `${name}, backups`) };
  const target = join(directory, 'restored');
  let megabytes = 0;
  let compared = '';
  const rates = (samples: readonly number[]): number[] => samples.map((each) => megabytes / each);
  const found: Found = { backup: [], digests: [], restore: [], copy: [], replay: [], rates };
  const server = await AnnalsServer.start(directory, name, port(), { cores: 'all', settings });
  try {
    await server.registerOrders();
    for (let from = 0; from < rows; from += ROWS_AT_ONCE) {
      const count = Math.min(ROWS_AT_ONCE, rows - from);
      await server.ingest('Purchase', orders(from, count, row), count);
    }
    for (let repeat = 0; repeat < repeats; repeat++) {
      const taken = await timed(() => server.admin<Backup>('/admin/backup', {}));
      found.backup.push(taken.seconds);
      megabytes = taken.reply.size_bytes / 1e6;
      found.digests.push((await timed(() => digested(server, taken.reply.backup))).seconds);
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

  const of = `of ${rows.toLocaleString('en')} rows, ${megabytes.toFixed(0)} MB of log`;
  const shape = { product: 'annals', unit: 'MB/s', better: 'larger' } as const;
  const add = (measure: string, samples: readonly number[], note: string): void =>
    report.add({ ...shape, measure: `${measure} ${of}`, samples: rates(samples), note });
  add('backup', found.backup, 'POST /admin/backup');
  add('digests of a backup', found.digests, 'beside the store, after the reply');
  add('restore', found.restore, `compared with ${compared}`);
  add('copying in a restore', found.copy, 'its replay goes on beside it');
  add('annals replay', found.replay, 'process start included');
  return found;
}

/** A body is one buffer, made before the clock starts. */
const ROWS_AT_ONCE = 1_000_000;
const DIGEST_MS_MAX = 600_000;

/** Until the document of a backup has the digests of its projections. */
async function digested(server: AnnalsServer, id: string): Promise<void> {
  for (const began = performance.now(); performance.now() - began < DIGEST_MS_MAX; ) {
    const { backups } = await server.admin<{ backups: Backup[] }>('/admin/backups');
    if (backups.find(({ backup }) => backup === id)?.digest_tree_size !== null) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`backup ${id} has no digests`);
}

async function timed<T>(work: () => Promise<T>): Promise<{ readonly reply: T; readonly seconds: number }> {
  const began = performance.now();
  const reply = await work();
  return { reply, seconds: (performance.now() - began) / 1000 };
}
