/**
 * SQLite in a thread of its own, with the tables of a world as our store shows them: every stored version, every column. It can't
 * be interrupted, and some statements keep it for hours: a thread can be ended.
 */
import { setTimeout } from 'node:timers/promises';
import { threadWorker, type Worker } from '../../../src/log/threads/workers.ts';
import type { Cell } from '../../../src/log/values/value.ts';
import type { TestStore } from '../../harness.ts';
import { type Request, sqliteJob } from './sqlite-job.ts';
import type { World } from './world.ts';

const affinities: Readonly<Record<string, string>> = {
  string: 'TEXT',
  integer: 'INTEGER',
  timestamp: 'INTEGER',
  boolean: 'INTEGER',
  number: 'REAL',
};

/** How long a statement may take. The slowest that ends takes a second. */
const LIMIT_MS = 5_000;

export class Sqlite {
  #worker: Worker<Request, Cell[][]> | null = null;
  #tables: readonly string[] = [];

  /** Its tables are those of this world from here on. */
  async open(world: World, store: TestStore): Promise<void> {
    const tables: string[] = [];
    for (const { name } of world.tables) {
      const answer = await store.answer(`SELECT * FROM ${name}`);
      const columns = answer.columns.map((column) => `${column.name} ${affinities[column.type] ?? 'TEXT'}`);
      tables.push(`CREATE TABLE ${name} (${columns.join(', ')})`);
      const rows = await store.rows(`SELECT * FROM ${name}`);
      for (let from = 0; from < rows.length; from += 200) {
        const values = rows.slice(from, from + 200).map((row) => `(${Object.values(row).map(literal).join(', ')})`);
        tables.push(`INSERT INTO ${name} VALUES ${values.join(', ')}`);
      }
    }
    this.#tables = tables;
    await this.#started();
  }

  /** Null where it does not answer in time. Throws what SQLite refuses. */
  async ask(sql: string): Promise<Cell[][] | null> {
    const worker = this.#worker ?? (await this.#started());
    const cut = new AbortController();
    const late = setTimeout(LIMIT_MS, null, { signal: cut.signal }).catch(() => null);
    try {
      const rows = await Promise.race([worker.ask({ sql }), late]);
      if (rows === null) await this.end();
      return rows;
    } finally {
      cut.abort();
    }
  }

  async end(): Promise<void> {
    const worker = this.#worker;
    this.#worker = null;
    await worker?.end();
  }

  async #started(): Promise<Worker<Request, Cell[][]>> {
    this.#worker ??= threadWorker(sqliteJob, null);
    await this.#worker.ask({ tables: this.#tables });
    return this.#worker;
  }
}

function literal(cell: Cell): string {
  if (cell === null) return 'NULL';
  if (typeof cell === 'string') return `'${cell.replaceAll("'", "''")}'`;
  return String(cell);
}
