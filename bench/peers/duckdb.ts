/** DuckDB as a peer: a database file, one thread, versions with nanosecond bounds declared as a user would. */
import { join } from 'node:path';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { systemFromBase, versions } from '../workload.ts';

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

  /** Seconds of the as-of aggregate at version `at`, and its answer. */
  async asOfAggregate(at: number, quantityBelow: number): Promise<{ seconds: number; groups: AggregateRow[] }> {
    const instant = systemFromBase + BigInt(at);
    const began = performance.now();
    const reader = await this.#connection.runAndReadAll(
      `SELECT category, SUM(amount), COUNT(*) FROM versions
       WHERE system_from <= ${instant} AND system_to > ${instant} AND quantity < ${quantityBelow} GROUP BY category`,
    );
    const rows = reader.getRows();
    const seconds = (performance.now() - began) / 1000;
    return { seconds, groups: rows.map(([category, sum, count]) => [String(category), Number(sum), Number(count)] as const) };
  }

  /** Runs a statement that makes a table. */
  async import(sql: string): Promise<void> {
    await this.#connection.run(sql);
    await this.#connection.run('CHECKPOINT');
  }

  /** Rows of an answer; 64-bit and decimal values as numbers. */
  async rows(sql: string): Promise<(string | number | null)[][]> {
    const rows = (await this.#connection.runAndReadAll(sql)).getRows();
    return rows.map((row) => row.map((cell) => (cell === null || typeof cell === 'string' ? cell : Number(cell))));
  }

  close(): void {
    this.#connection.closeSync();
  }
}

export type AggregateRow = readonly [category: string, sum: number, count: number];
