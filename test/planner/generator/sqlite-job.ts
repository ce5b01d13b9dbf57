/** What the thread of `sqlite.ts` runs. It imports nothing of the file that starts threads: that one waits for this. */
import initSqlJs from 'sql.js';
import type { Job } from '../../../src/log/threads/workers.ts';
import type { Cell } from '../../../src/log/values/value.ts';

type SqlJs = Awaited<ReturnType<typeof initSqlJs>>;
/** Integers come out exact; the types of the package leave the option out. */
type Exec = (sql: string, parameters: undefined, config: { useBigInt: boolean }) => { values: Cell[][] }[];

/** Either a new database with what these statements make, or the rows of one statement. */
export type Request = { readonly tables: readonly string[] } | { readonly sql: string };

export const sqliteJob: Job<null, Request, Cell[][]> = {
  module: import.meta.url,
  name: 'sqliteJob',
  begin: () => {
    const engine = initSqlJs();
    let database: InstanceType<SqlJs['Database']> | undefined;
    return async (request) => {
      if ('sql' in request)
        return (database!.exec as unknown as Exec)(request.sql, undefined, { useBigInt: true })[0]?.values ?? [];
      database?.close();
      database = new (await engine).Database();
      database.exec('PRAGMA case_sensitive_like = ON');
      database.create_function('regexp', (pattern: string, text: string | null) =>
        text === null ? null : new RegExp(pattern, 'u').test(text) ? 1 : 0,
      );
      for (const statement of request.tables) database.exec(statement);
      return [];
    };
  },
};
