/** SQLite as a peer, by its command line program: WAL, synchronous=FULL. Null where it is not installed. */
import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mustRun, pinned, serverCore } from '../processes.ts';
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

const columnsSql = orderColumns.map((name) => (name === 'id' ? 'id TEXT PRIMARY KEY' : name)).join(', ');

function literal(value: string | number | boolean): string {
  return typeof value === 'string' ? `'${value}'` : String(Number(value));
}
