/** DuckDB as a peer: a database file, one thread, versions with nanosecond bounds declared as a user would. */
import { join } from 'node:path';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { versions } from '../workload.ts';

export class DuckDb {
  readonly #connection: DuckDBConnection;
  readonly version: string;

  private constructor(connection: DuckDBConnection, version: string) {
    this.#connection = connection;
    this.version = version;
  }

  static async open(directory: string): Promise<DuckDb> {
    const instance = await DuckDBInstance.create(join(directory, 'bench.duckdb'), { threads: '1' });
    const connection = await instance.connect();
    const [row] = (await connection.runAndReadAll('SELECT version()')).getRows();
    return new DuckDb(connection, String(row![0]));
  }

  async load(count: number): Promise<void> {
    await this.#connection.run(`CREATE OR REPLACE TABLE versions AS ${versions.duckdb(count)}`);
    await this.#connection.run('CHECKPOINT');
  }

  /** Milliseconds of each run but the first ones, and the rows of the last. */
  async timed(sql: string, runs: number, warmUp: number): Promise<{ samples: number[]; rows: (string | number | null)[][] }> {
    const samples: number[] = [];
    let rows: (string | number | null)[][] = [];
    for (let run = 0; run < runs + warmUp; run++) {
      const began = performance.now();
      const found = (await this.#connection.runAndReadAll(sql)).getRows();
      if (run >= warmUp) samples.push(performance.now() - began);
      rows = found.map((row) => row.map(plainCell));
    }
    return { samples, rows };
  }

  /** Runs a statement that makes a table. */
  async import(sql: string): Promise<void> {
    await this.#connection.run(sql);
    await this.#connection.run('CHECKPOINT');
  }

  /** Rows of an answer; 64-bit and decimal values as numbers. */
  async rows(sql: string): Promise<(string | number | null)[][]> {
    const rows = (await this.#connection.runAndReadAll(sql)).getRows();
    return rows.map((row) => row.map(plainCell));
  }

  close(): void {
    this.#connection.closeSync();
  }
}

function plainCell(cell: unknown): string | number | null {
  return cell === null || typeof cell === 'string' ? cell : Number(cell);
}
