/**
 * PostgreSQL as a peer: a cluster of its own in a temporary directory, synchronous_commit=on, run as an unprivileged
 * user (it refuses root). Null where it is not installed.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  childrenCpuSeconds,
  clientCore,
  confine,
  cpuSeconds,
  everyCore,
  mustRun,
  pinned,
  serverCore,
  start,
  stop,
} from '../processes.ts';
import { orderColumns, versions } from '../workload.ts';

const settings = [
  'synchronous_commit=on',
  'fsync=on',
  'shared_buffers=1GB',
  'max_wal_size=8GB',
  'checkpoint_timeout=30min',
  'max_connections=200',
];

/** A server of the Postgres protocol, as its own clients reach it. */
export interface PostgresTarget {
  readonly port: number;
  readonly user: string;
  readonly database: string;
  readonly password?: string;
}

/** Transactions a second of a script, or of one that pgbench brings. Throws where one failed. */
export async function pgbenchOn(
  target: PostgresTarget,
  script: { readonly file: string; readonly text: string } | 'tpcb-like',
  asked: {
    readonly clients: number;
    readonly seconds: number;
    readonly mode: 'simple' | 'prepared';
    readonly cores?: string | null;
    readonly triesMax?: number;
  },
): Promise<number> {
  const { clients, seconds, mode, triesMax = 1 } = asked;
  const own = script === 'tpcb-like' ? ['-b', script] : ['-f', script.file];
  if (script !== 'tpcb-like') writeFileSync(script.file, `${script.text}\n`);
  const options = [
    '-n',
    ...own,
    '--max-tries',
    String(triesMax),
    '-c',
    String(clients),
    '-j',
    '1',
    '-T',
    String(seconds),
    '-M',
    mode,
  ];
  const { stdout } = await mustRun(clientOn(target, asked.cores ?? clientCore, 'pgbench', ...options));
  const tps = /tps = ([\d.]+)/.exec(stdout);
  if (!tps || !/failed transactions: 0 /.test(stdout)) throw new Error(`pgbench said: ${stdout.slice(0, 1000)}`);
  return Number(tps[1]);
}

/** Fills the tables of its own scripts, at scale 1. */
export async function pgbenchFill(target: PostgresTarget): Promise<void> {
  await mustRun(clientOn(target, clientCore, 'pgbench', '-i', '-I', 'g', '-s', '1'));
}

/** Seconds that psql took for a statement. */
export async function psqlOn(target: PostgresTarget, sql: string, cores: string | null = clientCore): Promise<number> {
  return (await mustRun(clientOn(target, cores, 'psql', '-qc', sql))).seconds;
}

function clientOn(
  { port, user, database, password }: PostgresTarget,
  cores: string | null,
  program: string,
  ...options: string[]
): string[] {
  const at = ['-h', '127.0.0.1', '-p', String(port), '-U', user];
  const secret = password === undefined ? [] : ['env', `PGPASSWORD=${password}`];
  return pinned(cores, [...secret, join(installed()!, program), ...at, ...options, database]);
}

export class Postgres {
  readonly version: string;
  readonly #directory: string;
  readonly #port: number;
  readonly #server: ReturnType<typeof start>;
  #cores = clientCore;

  private constructor(directory: string, port: number, server: ReturnType<typeof start>, version: string) {
    this.#directory = directory;
    this.#port = port;
    this.#server = server;
    this.version = version;
  }

  static async start(parent: string, port: number): Promise<Postgres | null> {
    const bin = installed();
    if (bin === null) return null;
    const directory = join(parent, 'postgres');
    mkdirSync(directory, { recursive: true });
    chmodSync(parent, 0o755);
    const root = process.getuid?.() === 0;
    if (root) await mustRun(['chown', 'postgres', directory]);
    const data = join(directory, 'data');
    await mustRun(asUser([join(bin, 'initdb'), '-D', data, '-A', 'trust', '-U', 'postgres', '--no-locale', '-E', 'UTF8']));
    const options = settings.flatMap((setting) => ['-c', setting]);
    const command = [
      join(bin, 'postgres'),
      '-D',
      data,
      '-p',
      String(port),
      '-k',
      directory,
      '-c',
      'listen_addresses=127.0.0.1',
      ...options,
    ];
    const server = start(pinned(serverCore, asUser(command)), { stdio: 'ignore' });
    const version = spawnSync(join(bin, 'postgres'), ['--version']).stdout.toString().trim().split(' ')[2]!;
    const postgres = new Postgres(directory, port, server, version);
    for (let attempt = 0; spawnSync(join(bin, 'pg_isready'), ['-h', '127.0.0.1', '-p', String(port)]).status !== 0; attempt++) {
      if (attempt > 100 || server.exitCode !== null) throw new Error('PostgreSQL did not start');
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return postgres;
  }

  /** COPY FROM STDIN into a table with a text primary key, on one connection: rows a second, seconds of CPU. */
  async copy(csv: Buffer, rows: number): Promise<{ rate: number; serverCpu: number; clientCpu: number }> {
    await this.#psql(`DROP TABLE IF EXISTS orders; CREATE TABLE orders (${columnsSql}); CHECKPOINT`);
    const before = { server: cpuSeconds(this.#server.pid!), client: childrenCpuSeconds() };
    const file = join(this.#directory, 'orders.csv');
    writeFileSync(file, csv);
    // psql reads the file itself: fed through a pipe it would wait for whoever feeds it.
    const { seconds } = await mustRun(this.#client('psql', '-qc', `\\copy orders FROM '${file}' (FORMAT csv)`));
    // What a backend took is known once its parent has seen it end.
    await new Promise((resolve) => setTimeout(resolve, 200));
    return {
      rate: rows / seconds,
      serverCpu: cpuSeconds(this.#server.pid!) - before.server,
      clientCpu: childrenCpuSeconds() - before.client,
    };
  }

  /** Transactions a second of single-row INSERTs, prepared, each its own commit. */
  async inserts(clients: number, seconds: number): Promise<number> {
    await this.#psql(
      `DROP TABLE IF EXISTS commits; DROP SEQUENCE IF EXISTS numbers; CREATE SEQUENCE numbers CACHE 100; CREATE TABLE commits (${columnsSql})`,
    );
    const insert = `INSERT INTO commits VALUES ('order-' || nextval('numbers'), 'customer-17', 'north', 'category-42', 1234.56, 7, 1700000000000, true, 'fragile gift parcel');`;
    return this.#pgbench(insert, clients, seconds, 'prepared');
  }

  /** Milliseconds of each run of a statement but the first, by psql's own clock. */
  async timed(sql: string, runs: number): Promise<number[]> {
    const script = `\\timing on\n\\o /dev/null\n${`${sql};\n`.repeat(runs + 1)}`;
    const { stdout } = await mustRun(this.#client('psql', '-q'), { input: Buffer.from(script) });
    const found = [...stdout.matchAll(/^Time: ([\d.]+) ms/gm)].map(([, ms]) => Number(ms));
    if (found.length !== runs + 1) throw new Error(`psql said: ${stdout.slice(0, 500)}`);
    return found.slice(1);
  }

  /** Makes what a measure asks for; `csv` is copied into the table that is named. */
  async prepare(before: string, table: string, csv: Buffer, after: string): Promise<void> {
    await this.#psql(before);
    const file = join(this.#directory, `${table}.csv`);
    writeFileSync(file, csv);
    await mustRun(this.#client('psql', '-qc', `\\copy ${table} FROM '${file}' (FORMAT csv)`));
    await this.#psql(after);
    await this.#psql(`VACUUM ANALYZE ${table}`);
  }

  async loadVersions(count: number): Promise<void> {
    await this.#psql('DROP TABLE IF EXISTS versions');
    await this.#psql(`CREATE UNLOGGED TABLE versions AS ${versions.postgres(count)}`);
    await this.#psql('VACUUM ANALYZE versions');
  }

  /** While `work` runs, server and clients may use every core. */
  async withEveryCore<T>(work: () => Promise<T>): Promise<T> {
    this.#cores = everyCore;
    confine(this.#server.pid!, everyCore);
    try {
      return await work();
    } finally {
      this.#cores = clientCore;
      confine(this.#server.pid!, serverCore);
    }
  }

  /** Vacuumed and analysed, as it would be soon after a load. */
  async settle(): Promise<void> {
    await this.#psql('VACUUM ANALYZE orders');
  }

  /** Reads a second by primary key out of what `copy` loaded. */
  async pointReads(rows: number, clients: number, seconds: number, mode: 'simple' | 'prepared'): Promise<number> {
    const select = `\\set n random(0, ${rows - 1})\nSELECT * FROM orders WHERE id = 'order-' || lpad(:n::text, 10, '0');`;
    return this.#pgbench(select, clients, seconds, mode);
  }

  /** Reads a second of `width` rows whose keys follow each other. */
  async rangeReads(rows: number, width: number, clients: number, seconds: number, mode: 'simple' | 'prepared'): Promise<number> {
    const key = (number: string): string => `'order-' || lpad((${number})::text, 10, '0')`;
    const select = `\\set n random(0, ${rows - width})\nSELECT * FROM orders WHERE id >= ${key(':n')} AND id < ${key(`:n + ${width}`)};`;
    return this.#pgbench(select, clients, seconds, mode);
  }

  async stop(): Promise<void> {
    await stop(this.#server, 'SIGINT');
  }

  get target(): PostgresTarget {
    return { port: this.#port, user: 'postgres', database: 'postgres' };
  }

  #pgbench(text: string, clients: number, seconds: number, mode: 'simple' | 'prepared'): Promise<number> {
    const file = join(this.#directory, 'script.sql');
    return pgbenchOn(this.target, { file, text }, { clients, seconds, mode, cores: this.#cores });
  }

  #psql(sql: string): Promise<unknown> {
    return mustRun(this.#client('psql', '-qc', sql));
  }

  #client(program: string, ...options: string[]): string[] {
    return clientOn(this.target, this.#cores, program, ...options);
  }
}

const columnsSql = orderColumns
  .map((name) => {
    if (name === 'id') return 'id text PRIMARY KEY';
    if (name === 'amount') return 'amount double precision';
    if (name === 'quantity' || name === 'placed') return `${name} bigint`;
    return name === 'paid' ? 'paid boolean' : `${name} text`;
  })
  .join(', ');

function installed(): string | null {
  const lib = '/usr/lib/postgresql';
  const versions = existsSync(lib) ? readdirSync(lib).toSorted((a, b) => Number(b) - Number(a)) : [];
  const candidates = [...versions.map((version) => join(lib, version, 'bin')), '/usr/local/bin'];
  return (
    candidates.find((bin) =>
      ['postgres', 'initdb', 'psql', 'pgbench', 'pg_isready'].every((name) => existsSync(join(bin, name))),
    ) ?? null
  );
}

function asUser(command: string[]): string[] {
  return process.getuid?.() === 0 ? ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups', ...command] : command;
}
