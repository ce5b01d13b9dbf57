/** SQLite in this process, with the tables of a world as our store shows them: every stored version, every column. */
import initSqlJs from 'sql.js';
import type { Cell } from '../../../src/log/value.ts';
import type { TestStore } from '../../harness.ts';
import type { World } from './world.ts';

type SqlJs = Awaited<ReturnType<typeof initSqlJs>>;
type Database = InstanceType<SqlJs['Database']>;
/** Integers come out exact; the types of the package leave the option out. */
type Exec = (sql: string, parameters: undefined, config: { useBigInt: boolean }) => { values: Cell[][] }[];

const affinities: Readonly<Record<string, string>> = {
  string: 'TEXT',
  integer: 'INTEGER',
  timestamp: 'INTEGER',
  boolean: 'INTEGER',
  number: 'REAL',
};

let engine: Promise<SqlJs> | undefined;

export class Sqlite {
  readonly #database: Database;

  private constructor(database: Database) {
    this.#database = database;
  }

  static async of(world: World, store: TestStore): Promise<Sqlite> {
    engine ??= initSqlJs();
    const database = new (await engine).Database();
    database.exec('PRAGMA case_sensitive_like = ON');
    database.create_function('regexp', (pattern: string, text: string | null) =>
      text === null ? null : new RegExp(pattern, 'u').test(text) ? 1 : 0,
    );
    for (const { name } of world.tables) {
      const answer = await store.answer(`SELECT * FROM ${name}`);
      const columns = answer.columns.map((column) => `${column.name} ${affinities[column.type] ?? 'TEXT'}`);
      database.exec(`CREATE TABLE ${name} (${columns.join(', ')})`);
      const rows = await store.rows(`SELECT * FROM ${name}`);
      for (let from = 0; from < rows.length; from += 200) {
        const values = rows.slice(from, from + 200).map((row) => `(${Object.values(row).map(literal).join(', ')})`);
        database.exec(`INSERT INTO ${name} VALUES ${values.join(', ')}`);
      }
    }
    return new Sqlite(database);
  }

  /** Throws what SQLite refuses. */
  ask(sql: string): Cell[][] {
    const run = this.#database.exec.bind(this.#database) as unknown as Exec;
    return run(sql, undefined, { useBigInt: true })[0]?.values ?? [];
  }

  close(): void {
    this.#database.close();
  }
}

function literal(cell: Cell): string {
  if (cell === null) return 'NULL';
  if (typeof cell === 'string') return `'${cell.replaceAll("'", "''")}'`;
  return String(cell);
}
