/**
 * `npm run bench`: Annals beside PostgreSQL, SQLite and DuckDB in the same run on the same disk, each product started,
 * loaded and stopped here. Prints a table of samples and one of goals, and writes every sample as JSON lines; `--check` holds the
 * run's ratios against `ratios.json`.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { raisedLimits } from './annals-server.ts';
import type { BenchContext, Measure } from './context.ts';
import { DataSets } from './datasets.ts';
import { agentMemory } from './measures/agent-memory.ts';
import { aggregates } from './measures/aggregates.ts';
import { asOfAggregate } from './measures/as-of-aggregate.ts';
import { asOfHead } from './measures/as-of-head.ts';
import { backup } from './measures/backup.ts';
import { branchFork } from './measures/branch-fork.ts';
import { bulkIngest } from './measures/bulk-ingest.ts';
import { catalogue } from './measures/catalogue.ts';
import { commits } from './measures/commits.ts';
import { geofence, resolve, screening, trace } from './measures/domain.ts';
import { columnarDoor } from './measures/doors-columnar.ts';
import { narrowDoors } from './measures/doors-narrow.ts';
import { nativeDoor } from './measures/doors-native.ts';
import { objectDoor } from './measures/doors-object.ts';
import { relationalDoor } from './measures/doors-relational.ts';
import { rpcDoors } from './measures/doors-rpc.ts';
import { erasure } from './measures/erasure.ts';
import { facets } from './measures/facets.ts';
import { exportRows } from './measures/export.ts';
import { governance } from './measures/governance.ts';
import { governedText } from './measures/governed-text.ts';
import { graph } from './measures/graph.ts';
import { healthUnderLoad } from './measures/health-under-load.ts';
import { history } from './measures/history.ts';
import { jobs } from './measures/jobs.ts';
import { joins } from './measures/joins.ts';
import { memory } from './measures/memory.ts';
import { pointRead } from './measures/point-read.ts';
import { proof } from './measures/proof.ts';
import { replayVerify } from './measures/replay-verify.ts';
import { rotation } from './measures/rotation.ts';
import { rules } from './measures/rules.ts';
import { sigma } from './measures/sigma.ts';
import { startUp } from './measures/start.ts';
import { subjects } from './measures/subjects.ts';
import { tenants } from './measures/tenants.ts';
import { tpch } from './measures/tpch.ts';
import { text } from './measures/text.ts';
import { textArrival } from './measures/text-arrival.ts';
import { transactions } from './measures/transactions.ts';
import { vectors } from './measures/vectors.ts';
import { watch } from './measures/watch.ts';
import { Postgres } from './peers/postgres.ts';
import { Sqlite } from './peers/sqlite.ts';
import { clientCore, confine, serverCore } from './processes.ts';
import { accept, fallen, ratiosFile, readAccepted, type Size } from './regression.ts';
import { Report } from './report.ts';

const measures: Readonly<Record<string, Measure>> = {
  'bulk-ingest': bulkIngest,
  commits,
  'point-read': pointRead,
  'as-of-aggregate': asOfAggregate,
  aggregates,
  'as-of-head': asOfHead,
  history,
  start: startUp,
  memory,
  'health-under-load': healthUnderLoad,
  'replay-verify': replayVerify,
  proof,
  export: exportRows,
  'branch-fork': branchFork,
  rotation,
  backup,
  subjects,
  erasure,
  joins,
  tpch,
  tenants,
  catalogue,
  governance,
  watch,
  text,
  'text-arrival': textArrival,
  'governed-text': governedText,
  vectors,
  facets,
  'doors-relational': relationalDoor,
  'doors-object': objectDoor,
  'doors-narrow': narrowDoors,
  'doors-columnar': columnarDoor,
  'doors-native': nativeDoor,
  'doors-rpc': rpcDoors,
  transactions,
  'agent-memory': agentMemory,
  graph,
  sigma,
  rules,
  jobs,
  screening,
  resolve,
  trace,
  geofence,
};

/** What is chosen by one name. */
const together: Readonly<Record<string, readonly string[]>> = {
  text: ['text', 'text-arrival', 'governed-text'],
  doors: Object.keys(measures).filter((name) => name.startsWith('doors-')),
};

const usage = `npm run bench -- [--quick] [--only ${[...Object.keys(measures), 'doors'].join(',')}] [--rows n] [--directory path] [--output file] [--markdown] [--check | --accept] [--ratios file]`;

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    rows: { type: 'string' },
    repeats: { type: 'string' },
    directory: { type: 'string', default: tmpdir() },
    output: { type: 'string' },
    markdown: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
    accept: { type: 'boolean', default: false },
    ratios: { type: 'string', default: ratiosFile },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(usage);
  process.exit(0);
}
const chosen = values.only
  ? [...new Set(values.only.split(',').flatMap((name) => together[name] ?? name))]
  : Object.keys(measures);
/** Those by one name that are chosen together. */
const wholes = Object.keys(together).filter((name) => together[name]!.every((each) => chosen.includes(each)));
const unknown = chosen.filter((name) => !Object.hasOwn(measures, name));
if (unknown.length > 0) {
  console.error(`no measure ${unknown.join(', ')}\n${usage}`);
  process.exit(2);
}
const size: Size = values.quick ? 'quick' : 'full';
if ((values.check || values.accept) && values.rows !== undefined) {
  console.error('ratios are accepted for the sizes of a quick and of a full run, not for --rows');
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

// Loads and peers in this process run where clients do.
confine(process.pid, clientCore);
const postgres = await Postgres.start(directory, port()).catch((error: unknown) => {
  console.error(String(error));
  return null;
});
if (postgres === null) report.skip('PostgreSQL', 'not installed here, or it does not start (Debian: apt-get install postgresql)');
else console.log(`PostgreSQL ${postgres.version}, synchronous_commit=on`);
const sqlite = Sqlite.find(directory);
if (sqlite === null) report.skip('SQLite', 'no sqlite3 program here (Debian: apt-get install sqlite3)');
else console.log(`SQLite ${sqlite.version}, WAL, synchronous=FULL`);

const rows = Number(values.rows ?? (values.quick ? 100_000 : 1_000_000));
const context: BenchContext = {
  report,
  directory,
  postgres,
  sqlite,
  datasets: new DataSets(directory, port),
  rows,
  largeRows: rows * 10,
  repeats: Number(values.repeats ?? (values.quick ? 1 : 3)),
  seconds: values.quick ? 1 : 5,
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
console.log(`\n${report.table()}\n\n${report.goals()}`);
if (size === 'quick') console.log('goals are meant for the sizes of a full run; this one was quick');
if (values.markdown) console.log(`\n${report.markdown()}`);
console.log(`\nsamples in ${output}`);
const ratios = report.ratios();
if (values.accept) accept(ratios, size, values.ratios);
if (values.check) {
  const lines = fallen(ratios, readAccepted(values.ratios)[size], [...chosen, ...wholes]);
  for (const line of lines) console.error(`fell: ${line}`);
  if (lines.length > 0) failed = true;
  else console.log(`${ratios.size} ratios hold`);
}
process.exit(failed ? 1 : 0);
