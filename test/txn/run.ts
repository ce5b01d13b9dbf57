/**
 * Random transactions of many clients against the built server under `kill -9`, and what snapshot isolation promises of them:
 *
 *   npm run txn -- [--transactions 200000] [--clients 8,16,32] [--rounds 20] [--seed 1] [--keep]
 *   npm run txn -- --postgres postgres://… [--isolation 'READ COMMITTED']    the same clients against a PostgreSQL, which nobody
 *       kills: tries the checker, which must find anomalies where the isolation is weaker
 *
 * Each round runs its share by as many clients as its turn says and ends by a kill, but for the last. Afterwards: what stands is
 * what was acknowledged, the history has no anomaly (`checker.ts`), and the balances add up AS OF the instant of every commit that
 * touched one. One line of JSON; exit code 1 where anything is wrong.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { beginStore } from '../harness.ts';
import { freePort } from '../clients/free-port.ts';
import { sleep, stop } from '../kill9/processes.ts';
import { Seeded } from '../simulation/seeded.ts';
import { anomalies } from './checker.ts';
import { fill, noCounts, Numbers, standing, tables, work } from './clients.ts';
import { checkBalances } from './balances.ts';
import type { Transacted } from './history.ts';

const { values: options } = parseArgs({
  options: {
    transactions: { type: 'string', default: '200000' },
    clients: { type: 'string', default: '8,16,32' },
    rounds: { type: 'string', default: '20' },
    seed: { type: 'string', default: String(process.pid) },
    postgres: { type: 'string' },
    isolation: { type: 'string', default: 'REPEATABLE READ' },
    keep: { type: 'boolean', default: false },
  },
});

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const annals = join(root, 'bin/annals');
const home = mkdtempSync(join(tmpdir(), 'annals-txn-'));
const data = join(home, 'data');
const random = new Seeded(Number(options.seed));
const [port, adminPort, relationalPort] = [await freePort(), await freePort(), await freePort()];
const secret = 'txn-secret';
const env = {
  ...process.env,
  SERVICE_PORT: String(port),
  SERVICE_ADMIN_BIND: `127.0.0.1:${adminPort}`,
  SERVICE_BEARER_TOKEN: secret,
  SERVICE_RELATIONAL_ENABLE: 'true',
  SERVICE_RELATIONAL_PORT: String(relationalPort),
  SERVICE_OBJECT_ENABLE: 'false',
  SERVICE_KV_ENABLE: 'false',
  SERVICE_DOCUMENT_ENABLE: 'false',
  SERVICE_GRPC_ENABLE: 'false',
  SERVICE_COLUMNAR_HTTP_ENABLE: 'false',
  SERVICE_COLUMNAR_NATIVE_ENABLE: 'false',
  SERVICE_RATE_LIMIT_RPS: '1000000',
  SERVICE_READ_RATE_LIMIT_RPS: '1000000',
  SERVICE_CHECKPOINT_LOG_MB: '4',
};

const started = performance.now();
const wanted = Number(options.transactions);
const rounds = options.postgres === undefined ? Number(options.rounds) : 1;
const sizes = options.clients.split(',').map(Number);
const transactions: Transacted[] = [];
const counts = noCounts();
const numbers = new Numbers();
const problems: string[] = [];
let kills = 0;

async function connect(): Promise<pg.Client> {
  const client = new pg.Client(
    options.postgres === undefined
      ? { host: '127.0.0.1', port: relationalPort, user: 'tester', password: secret, database: 'annals' }
      : { connectionString: options.postgres },
  );
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

let server = options.postgres === undefined ? await begin() : null;
try {
  await once(async (client) => {
    for (const table of tables) await client.query(table);
    await fill(client, wanted);
  });
  for (let round = 0; round < rounds; round++) {
    await runRound(
      Math.ceil((wanted * (round + 1)) / rounds),
      sizes[round % sizes.length]!,
      round === rounds - 1 || options.postgres !== undefined,
    );
    console.error(`round ${round + 1} of ${rounds}: ${JSON.stringify(shown())}`);
  }
  const stands = await once(standing);
  for (const { phenomenon, what } of anomalies({ transactions, ...stands })) problems.push(`${phenomenon}: ${what}`);
  const instants = options.postgres === undefined ? await once((client) => checkBalances(client, problems)) : 0;
  if (server !== null) {
    await stop(server, 'SIGTERM');
    const { status, stdout, stderr } = spawnSync(process.execPath, [annals, 'verify', '--data-dir', data], {
      env,
      encoding: 'utf8',
    });
    if (status !== 0) problems.push(`verify: ${stdout}${stderr}`);
  }
  const seconds = Math.round((performance.now() - started) / 100) / 10;
  console.log(
    JSON.stringify({
      ...shown(),
      rounds,
      kills,
      instants,
      seed: Number(options.seed),
      anomalies: problems.slice(0, 10),
      seconds,
    }),
  );
} finally {
  server?.kill('SIGKILL');
  if (!options.keep && problems.length === 0) rmSync(home, { recursive: true, force: true });
}
process.exit(problems.length > 0 ? 1 : 0);

function shown(): Record<string, unknown> {
  const { refused, ...others } = counts;
  return { transactions: transactions.length, ...others, refused: Object.fromEntries(refused) };
}

async function once<T>(run: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await connect();
  try {
    return await run(client);
  } finally {
    await client.end();
  }
}

/** Runs until so many transactions have begun in all; but for the last round, the server is killed in the midst of them, and started again. */
async function runRound(until: number, clients: number, last: boolean): Promise<void> {
  let begun = transactions.length;
  const killAt = last ? Infinity : until - 1 - random.below(Math.max(1, Math.floor((until - begun) / 4)));
  const killing: Promise<void>[] = [];
  const more = (): boolean => {
    if (begun >= until) return false;
    begun++;
    if (begun >= killAt && killing.length === 0) killing.push(kill());
    return true;
  };
  const parts = {
    numbers,
    counts,
    connect,
    isolation: options.isolation,
    more,
    now: () => performance.now(),
    put: (one: Transacted) => void transactions.push(one),
  };
  await Promise.all(
    Array.from({ length: clients }, (_, number) => work({ ...parts, number, random: new Seeded(random.below(2 ** 31)) })),
  );
  await Promise.all(killing);
  if (killing.length > 0) server = await start();
}

async function kill(): Promise<void> {
  await sleep(random.below(20));
  kills++;
  await stop(server!, 'SIGKILL');
}

async function begin(): Promise<ChildProcess> {
  await beginStore(data);
  return start();
}

async function start(): Promise<ChildProcess> {
  const child = spawn(process.execPath, [annals, 'serve', '--data-dir', data], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr!.on('data', (chunk) => (said += chunk));
  const isRunning = (): boolean => child.exitCode === null && child.signalCode === null;
  for (let tries = 0; tries < 1_200 && isRunning(); tries++) {
    const ready = await fetch(`http://127.0.0.1:${port}/health/ready`).then(
      ({ status }) => status === 200,
      () => false,
    );
    // Another process may have taken the port while the server was down, and be ready.
    if (ready && isRunning()) return child;
    await sleep(100);
  }
  child.kill('SIGKILL');
  throw new Error(`the server did not start; ${data}\n${said}`);
}
