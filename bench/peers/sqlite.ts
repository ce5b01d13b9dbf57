/** SQLite as a peer, by its command line program: WAL, synchronous=FULL. Null where it is not installed. */
import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mustRun, pinned, run, serverCore } from '../processes.ts';
import { orderCells, orderColumns } from '../workload.ts';

export class Sqlite {
  readonly version: string;
  readonly #directory: string;

  private constructor(directory: string, version: string) {
    this.#directory = directory;
    this.version = version;
  }

  static find(directory: string): Sqlite | null {
    const { status, stdout } = spawnSync('sqlite3', ['--version']);
    return status === 0 ? new Sqlite(directory, stdout.toString().split(' ')[0]!) : null;
  }

  /** Rows a second of `.import` in one transaction, into a table with a text primary key. */
  async bulk(csv: Buffer, rows: number): Promise<number> {
    const input = join(this.#directory, 'orders.csv');
    writeFileSync(input, csv);
    const seconds = await this.#run(`BEGIN;\n.mode csv\n.import ${input} orders\nCOMMIT;\n`);
    return rows / seconds;
  }

  /** Commits a second, one row each, by one writer in the same process. */
  async commits(count: number): Promise<number> {
    let script = '';
    for (let i = 0; i < count; i++) script += `INSERT INTO orders VALUES (${orderCells(i).map(literal).join(',')});\n`;
    return count / (await this.#run(script));
  }

  /** A database made by a script, and how to ask it: rows, and milliseconds by its own clock after one unmeasured run. */
  async import(script: string): Promise<SqliteDatabase> {
    const file = join(this.#directory, 'tables.sqlite');
    rmSync(file, { force: true });
    const { seconds } = await mustRun(['sqlite3', file], { input: Buffer.from(`PRAGMA synchronous=OFF;\n${script}ANALYZE;\n`) });
    const command = pinned(serverCore, ['sqlite3', '-json', file]);
    // Its page cache holds the whole database, as its competitors do.
    const asked = (text: string): { input: Buffer } => ({
      input: Buffer.from(`PRAGMA cache_size=-1000000;\n.output stdout\n${text}`),
    });
    const found = (stdout: string): SqliteRun => {
      const samples = [...stdout.matchAll(/Run Time: real ([\d.]+)/g)].map(([, seconds]) => Number(seconds) * 1000);
      const json = stdout.slice(stdout.indexOf('[{'));
      const rows = stdout.includes('[{') ? (JSON.parse(json) as Record<string, string | number | null>[]) : [];
      return { samples, rows: rows.map((row) => Object.values(row)) };
    };
    const question = (sql: string): string => `${sql.replaceAll('\n', ' ')};\n`;
    const ask = async (sql: string, runs: number): Promise<SqliteRun> => {
      const repeated =
        `.output /dev/null\n${question(sql)}.timer on\n${question(sql).repeat(runs)}` +
        `.timer off\n.output stdout\n${question(sql)}`;
      return found((await mustRun(command, asked(repeated))).stdout);
    };
    const askWithin = async (sql: string, runs: number, ms: number): Promise<SqliteRun | null> => {
      const began = performance.now();
      const first = await run(command, { ...asked(`.timer on\n.output /dev/null\n${question(sql)}`), timeout: ms });
      if (first.status !== 0) {
        if (performance.now() - began < ms) throw new Error(`sqlite3: exit ${first.status}\n${first.stderr.slice(0, 2_000)}`);
        return null;
      }
      const took = performance.now() - began;
      return ask(sql, Math.max(1, Math.min(runs, Math.floor(ms / took) - 2)));
    };
    return { ask, askWithin, seconds };
  }

  /** Seconds of a script, the time of an empty one taken off. */
  async #run(script: string): Promise<number> {
    const timed = async (text: string): Promise<number> => {
      const file = join(this.#directory, 'bench.sqlite');
      for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true });
      const prologue = `PRAGMA journal_mode=WAL;\nPRAGMA synchronous=FULL;\nCREATE TABLE orders (${columnsSql}) WITHOUT ROWID;\n`;
      return (await mustRun(pinned(serverCore, ['sqlite3', file]), { input: Buffer.from(prologue + text) })).seconds;
    };
    const empty = await timed('');
    return (await timed(script)) - empty;
  }
}

export interface SqliteDatabase {
  /** What making it took. */
  readonly seconds: number;
  ask(sql: string, runs: number): Promise<SqliteRun>;
  /** null where one run takes longer. */
  askWithin(sql: string, runs: number, ms: number): Promise<SqliteRun | null>;
}

export interface SqliteRun {
  readonly samples: readonly number[];
  readonly rows: readonly (string | number | null)[][];
}

const columnsSql = orderColumns.map((name) => (name === 'id' ? 'id TEXT PRIMARY KEY' : name)).join(', ');

function literal(value: string | number | boolean): string {
  return typeof value === 'string' ? `'${value}'` : String(Number(value));
}
