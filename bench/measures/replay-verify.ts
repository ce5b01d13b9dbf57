/**
 * How fast a data directory is rebuilt from its log and checked, by the commands that users run: a million rows of 200 bytes,
 * and the large store. `verify` is measured with its keys, every body opened and every row hashed again, and `--sealed`, as
 * whoever has the log and no keys runs it: chain, tree, signed heads, payload digests, manifest. SHA-256 over blocks is the
 * yardstick: no reader of a hash-chained log can be faster.
 */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import { everyCore, mustRun, pinned, serverCore } from '../processes.ts';
import { quotient, summary } from '../report.ts';
import { orderJson, orders } from '../workload.ts';

const bin = fileURLToPath(new URL('../../bin/annals', import.meta.url));

export async function replayVerify(context: BenchContext): Promise<void> {
  const { report, datasets, directory, rows, largeRows, port } = context;
  const sha = await shaRates(context);
  report.add({ measure: 'SHA-256 over blocks of 64 KiB', product: 'node:crypto', unit: 'MB/s', better: 'larger', samples: sha });
  const starts = await startSeconds(context);

  const server = await AnnalsServer.start(directory, 'replay', port(), { cores: 'all' });
  try {
    await server.registerOrders();
    await server.ingest('Purchase', orders(0, rows, orderJson), rows);
  } finally {
    await server.stop();
  }
  await measured(context, server.dataDirectory, 'rows of 200 B', rows, starts);
  const set = await datasets.versions(largeRows);
  const ofVersions = await measured(context, join(set.parent, set.name), 'versions', largeRows, starts);
  report.figure('replay-verify.replay-rate', summary(ofVersions.replay.map((seconds) => largeRows / seconds)));
  const verified = ofVersions['verify --sealed'].map((seconds) => ofVersions.megabytes / seconds);
  report.figure('replay-verify.verify-rate', summary(verified));
  const opened = ofVersions.verify;
  report.figure('replay-verify.opened-rate', summary(opened.map((seconds) => ofVersions.megabytes / seconds)));
  report.figure('replay-verify.opened-rows', summary(opened.map((seconds) => largeRows / seconds)));
  report.figure(
    'replay-verify.replay-sha',
    quotient(
      ofVersions.replay.map((seconds) => ofVersions.megabytes / seconds),
      sha,
    ),
  );
  report.figure('replay-verify.verify-sha', quotient(verified, sha));
}

/** Seconds of each run with every core open, without those that a process takes to start. */
type Runs = Readonly<Record<Verb, readonly number[]>> & { readonly megabytes: number };

async function measured(context: BenchContext, dataDirectory: string, what: string, rows: number, starts: Starts): Promise<Runs> {
  const { report, repeats } = context;
  const megabytes = logBytes(join(dataDirectory, 'log')) / 1e6;
  const found: Record<Verb, number[]> = { replay: [], verify: [], 'verify --sealed': [] };
  for (const verb of verbs) {
    for (const [cores, where] of [
      [serverCore, 'one core'],
      [everyCore, 'every core'],
    ] as const) {
      const whole: number[] = [];
      for (let repeat = 0; repeat < repeats; repeat++) whole.push(await seconds(verb, dataDirectory, cores));
      // A store that is empty takes a start and nothing else; what is left is never nothing.
      const work = whole.map((each) => Math.max(each - starts[verb], each / 100));
      if (cores === everyCore) found[verb] = work;
      report.add({
        measure: `annals ${verb} of ${rows.toLocaleString('en')} ${what}, ${where}`,
        product: 'annals',
        unit: 'rows/s',
        better: 'larger',
        samples: work.map((each) => rows / each),
        note: `log ${megabytes.toFixed(0)} MB, ${(megabytes / summary(work).median).toFixed(0)} MB/s; without process start (${starts[verb].toFixed(2)} s), with it ${(rows / summary(whole).median).toFixed(0)} rows/s`,
      });
    }
  }
  return { ...found, megabytes };
}

type Starts = Readonly<Record<Verb, number>>;
const verbs = ['replay', 'verify', 'verify --sealed'] as const;
type Verb = (typeof verbs)[number];

/** Of the commands over a store that holds nothing. */
async function startSeconds({ directory, repeats, port }: BenchContext): Promise<Starts> {
  const server = await AnnalsServer.start(directory, 'replay-nothing', port());
  await server.stop();
  const of = async (verb: Verb): Promise<number> => {
    const samples: number[] = [];
    for (let repeat = 0; repeat < repeats + 2; repeat++) samples.push(await seconds(verb, server.dataDirectory, everyCore));
    return summary(samples).median;
  };
  return { replay: await of('replay'), verify: await of('verify'), 'verify --sealed': await of('verify --sealed') };
}

async function seconds(verb: Verb, dataDirectory: string, cores: string | null): Promise<number> {
  const env = { ...process.env, SERVICE_DATA_DIR: dataDirectory };
  return (await mustRun(pinned(cores, [process.execPath, bin, ...verb.split(' ')]), { env })).seconds;
}

async function shaRates({ repeats }: BenchContext): Promise<number[]> {
  const program = `
    const { hash } = require('node:crypto');
    const block = Buffer.alloc(65536, 7);
    let bytes = 0;
    const began = performance.now();
    while (performance.now() - began < 500) { hash('sha256', block, 'latin1'); bytes += block.length; }
    console.log(bytes / 1000 / (performance.now() - began));`;
  const rates: number[] = [];
  for (let repeat = 0; repeat < repeats + 1; repeat++) {
    rates.push(Number((await mustRun(pinned(serverCore, [process.execPath, '-e', program]))).stdout));
  }
  return rates;
}

function logBytes(directory: string): number {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
}
