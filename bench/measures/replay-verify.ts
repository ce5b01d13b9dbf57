/** How fast a data directory is rebuilt from its log and checked, by the commands that users run. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import { mustRun, pinned, serverCore } from '../processes.ts';
import { orderJson, orders } from '../workload.ts';

const bin = fileURLToPath(new URL('../../bin/annals', import.meta.url));

export async function replayVerify({ report, directory, rows, repeats, port }: BenchContext): Promise<void> {
  const server = await AnnalsServer.start(directory, 'replay', port());
  try {
    await server.registerOrders();
    await server.ingest('Purchase', orders(0, rows, orderJson), rows);
  } finally {
    await server.stop();
  }
  const megabytes = logBytes(join(server.dataDirectory, 'log')) / 1e6;
  for (const verb of ['replay', 'verify'] as const) {
    const samples: number[] = [];
    for (let repeat = 0; repeat < repeats; repeat++) {
      const env = { ...process.env, SERVICE_DATA_DIR: server.dataDirectory };
      const { seconds } = await mustRun(pinned(serverCore, [process.execPath, bin, verb]), { env });
      samples.push(rows / seconds);
    }
    const best = Math.max(...samples);
    report.add({
      measure: `annals ${verb} of ${rows.toLocaleString('en')} rows`,
      product: 'annals',
      unit: 'rows/s',
      better: 'larger',
      samples,
      note: `process start included; log ${megabytes.toFixed(0)} MB, ${((megabytes * best) / rows).toFixed(0)} MB/s`,
    });
  }
}

function logBytes(directory: string): number {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
}
