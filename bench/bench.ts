/**
 * `npm run bench`: Annals beside PostgreSQL, SQLite and DuckDB in the same run on the same disk, each product started,
 * loaded and stopped here. Prints one table and writes every sample as JSON lines.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { raisedLimits } from './annals-server.ts';
import type { BenchContext, Measure } from './context.ts';
import { asOfAggregate } from './measures/as-of-aggregate.ts';
import { branchFork } from './measures/branch-fork.ts';
import { bulkIngest } from './measures/bulk-ingest.ts';
import { commits } from './measures/commits.ts';
import { exportRows } from './measures/export.ts';
import { pointRead } from './measures/point-read.ts';
import { proof } from './measures/proof.ts';
import { replayVerify } from './measures/replay-verify.ts';
import { tpch } from './measures/tpch.ts';
import { watch } from './measures/watch.ts';
import { Postgres } from './peers/postgres.ts';
import { Sqlite } from './peers/sqlite.ts';
import { clientCore, serverCore } from './processes.ts';
import { Report } from './report.ts';

const measures: Readonly<Record<string, Measure>> = {
  'bulk-ingest': bulkIngest,
  commits,
  'point-read': pointRead,
  'as-of-aggregate': asOfAggregate,
  'replay-verify': replayVerify,
  proof,
  export: exportRows,
  'branch-fork': branchFork,
  tpch,
  watch,
};

const usage = `npm run bench -- [--quick] [--only ${Object.keys(measures).join(',')}] [--rows n] [--directory path] [--output file]`;

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    rows: { type: 'string' },
    repeats: { type: 'string' },
    directory: { type: 'string', default: tmpdir() },
    output: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(usage);
  process.exit(0);
}
const chosen = values.only?.split(',') ?? Object.keys(measures);
const unknown = chosen.filter((name) => !Object.hasOwn(measures, name));
if (unknown.length > 0) {
  console.error(`no measure ${unknown.join(', ')}\n${usage}`);
  process.exit(2);
}

mkdirSync(values.directory, { recursive: true });
const directory = mkdtempSync(join(values.directory, 'annals-bench-'));
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
const output =
  values.output ?? fileURLToPath(new URL(`results/${new Date().toISOString().replaceAll(':', '-')}.jsonl`, import.meta.url));
mkdirSync(dirname(output), { recursive: true });
const report = new Report(output);
let nextPort = 21_000 + (process.pid % 1_000) * 4;
const port = (): number => (nextPort += 2);

console.log(`${cpus()[0]?.model ?? 'unknown CPU'}, ${cpus().length} cores, Node ${process.versions.node}; data in ${directory}`);
console.log(
  serverCore === null ? 'nothing is pinned to a core' : `measured products on core ${serverCore}, clients on core ${clientCore}`,
);
console.log(
  `limits raised for Annals: ${Object.entries(raisedLimits)
    .map((pair) => pair.join('='))
    .join(' ')}`,
);

const postgres = await Postgres.start(directory, port()).catch((error: unknown) => {
  console.error(String(error));
  return null;
});
if (postgres === null) report.skip('PostgreSQL', 'not installed here, or it does not start (Debian: apt-get install postgresql)');
else console.log(`PostgreSQL ${postgres.version}, synchronous_commit=on`);
const sqlite = Sqlite.find(directory);
if (sqlite === null) report.skip('SQLite', 'no sqlite3 program here (Debian: apt-get install sqlite3)');
else console.log(`SQLite ${sqlite.version}, WAL, synchronous=FULL`);

const context: BenchContext = {
  report,
  directory,
  postgres,
  sqlite,
  rows: Number(values.rows ?? (values.quick ? 100_000 : 1_000_000)),
  repeats: Number(values.repeats ?? (values.quick ? 1 : 3)),
  seconds: values.quick ? 2 : 5,
  port,
};
let failed = false;
try {
  for (const name of chosen) {
    console.log(`\n${name}`);
    // One broken measure must not hide the others' figures; the exit code says that one broke.
    await measures[name]!(context).catch((error: unknown) => {
      failed = true;
      report.skip(name, error instanceof Error ? error.message : String(error));
    });
  }
} finally {
  await postgres?.stop();
}
console.log(`\n${report.table()}\n\nsamples in ${output}`);
process.exit(failed ? 1 : 0);
