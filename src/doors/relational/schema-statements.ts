/** Statements of a session that are about types as tables: CREATE TABLE and INDEX, TRUNCATE, DROP. */
import type { Action, Invocation } from '../../governance/gate-contract.ts';
import type { Executed, OutputColumn, PlannerDoor, QueryOptions } from '../../planner/planner-contract.ts';
import type { SqlCommand } from './parse-command.ts';
import { checkIndexed } from './create-index.ts';
import { filledTable } from './create-table.ts';
import { droppedNotice, existingObjectsIn } from './drop-statement.ts';
import type { PostgresReplies } from './replies.ts';
import { ProtocolRefusal } from './errors.ts';

/** The settings of a session, as a statement goes by them. */
export interface StatementOptions {
  readonly dialect: 'wide';
  readonly time: NonNullable<QueryOptions['time']>;
  readonly purpose: string | null;
  readonly sync: boolean;
  readonly signal: AbortSignal;
}

export interface SchemaSession {
  readonly planner: PlannerDoor;
  readonly replies: PostgresReplies;
  /** Runs one invocation of the gate. */
  readonly enter: <T>(
    action: Action,
    writes: boolean,
    run: (invocation: Invocation, options: StatementOptions) => Promise<T>,
  ) => Promise<T>;
  readonly withTimeout: <T>(run: () => Promise<T>) => Promise<T>;
}

export class SchemaStatements {
  readonly #session: SchemaSession;

  constructor(session: SchemaSession) {
    this.#session = session;
  }

  async createTable(
    { ifNotExists, command, query, notices }: Extract<SqlCommand, { readonly kind: 'create-table' }>,
    isInTransaction: boolean,
  ): Promise<void> {
    const { replies, enter, withTimeout } = this.#session;
    if (isInTransaction) replies.notice('a table is created at once: ROLLBACK leaves it', '01000', 'WARNING');
    const { name } = command;
    // Errors of the query come before the table does.
    const filled = query === null ? command : filledTable(command, await this.#columnsOf(query));
    const isThere = await enter('schema', true, async (invocation, { sync }) => {
      invocation.describe({ template: 'CREATE TABLE', objectType: name });
      if (invocation.snapshot().catalog.type(name) !== undefined) return true;
      await invocation.submit(filled, { sync });
      return false;
    });
    if (isThere && !ifNotExists)
      throw new ProtocolRefusal('42P07', 'REL_CONFLICT', `the type ${JSON.stringify(name)} is there already`);
    for (const notice of isThere ? [`the type ${JSON.stringify(name)} is there already, skipping`] : notices)
      replies.notice(notice);
    if (query === null || isThere) return replies.complete('CREATE TABLE');
    const { written } = await withTimeout(() => this.#execute('query', `INSERT INTO ${quoteName(name)} ${query}`));
    replies.complete(`SELECT ${written?.inserted ?? 0}`);
  }

  async createIndex({ table, columns }: Extract<SqlCommand, { readonly kind: 'create-index' }>): Promise<void> {
    const { replies, enter } = this.#session;
    await enter('inspect', false, async (invocation) => {
      invocation.describe({ template: 'CREATE INDEX', objectType: table });
      checkIndexed(invocation.snapshot().catalog.type(table), table, columns);
    });
    replies.notice('indexes are made as questions need them: nothing was created');
    replies.complete('CREATE INDEX');
  }

  /** Ends all rows that the caller may end: earlier versions stay readable AS OF. */
  async truncate(tables: readonly string[]): Promise<void> {
    for (const table of tables) await this.#execute('query', `DELETE FROM ${quoteName(table)}`);
  }

  async drop(command: Extract<SqlCommand, { readonly kind: 'drop' }>): Promise<void> {
    const { replies, enter } = this.#session;
    const notices = await enter('inspect', false, async (invocation) => {
      invocation.describe({ template: command.tag, objectType: command.names[0]!.name });
      const existingObjects = existingObjectsIn(invocation.snapshot());
      return command.names.map((name) => droppedNotice(command, name, existingObjects));
    });
    for (const [i, notice] of notices.entries()) {
      if (notice !== null) replies.notice(notice);
      else await this.#execute('schema', `${command.tag} ${quoteName(command.names[i]!.name)}`);
    }
    replies.complete(command.tag);
  }

  async #columnsOf(sql: string): Promise<readonly OutputColumn[]> {
    const { planner, enter } = this.#session;
    const { columns } = await enter('query', false, (invocation, options) => planner.describe(invocation, { sql, ...options }));
    return columns;
  }

  #execute(action: 'query' | 'schema', sql: string): Promise<Executed> {
    const { planner, enter } = this.#session;
    return enter(action, true, (invocation, options) => planner.execute(invocation, { sql, ...options }));
  }
}

const quoteName = (name: string): string => `"${name.replaceAll('"', '""')}"`;
