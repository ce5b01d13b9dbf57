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
  readonly #schemaSession: SchemaSession;

  constructor(schemaSession: SchemaSession) {
    this.#schemaSession = schemaSession;
  }

  async createTable(
    {
      ifNotExists,
      command: registerCommand,
      query: filledFromQuery,
      notices: tableNotices,
    }: Extract<SqlCommand, { readonly kind: 'create-table' }>,
    isInTransaction: boolean,
  ): Promise<void> {
    const { replies, enter, withTimeout } = this.#schemaSession;
    if (isInTransaction) replies.notice('a table is created at once: ROLLBACK leaves it', '01000', 'WARNING');
    const { name: createdTable } = registerCommand;
    // Errors of the query come before the table does.
    const filledType =
      filledFromQuery === null ? registerCommand : filledTable(registerCommand, await this.#queryColumns(filledFromQuery));
    const isTableThere = await enter('schema', true, async (invocation, { sync }) => {
      invocation.describe({ template: 'CREATE TABLE', objectType: createdTable });
      if (invocation.snapshot().catalog.type(createdTable) !== undefined) return true;
      await invocation.submit(filledType, { sync });
      return false;
    });
    if (isTableThere && !ifNotExists)
      throw new ProtocolRefusal('42P07', 'REL_CONFLICT', `the type ${JSON.stringify(createdTable)} is there already`);
    for (const tableNotice of isTableThere
      ? [`the type ${JSON.stringify(createdTable)} is there already, skipping`]
      : tableNotices)
      replies.notice(tableNotice);
    if (filledFromQuery === null || isTableThere) return replies.complete('CREATE TABLE');
    const { written: writtenCounts } = await withTimeout(() =>
      this.#executeSql('query', `INSERT INTO ${quoteTableName(createdTable)} ${filledFromQuery}`),
    );
    replies.complete(`SELECT ${writtenCounts?.inserted ?? 0}`);
  }

  async createIndex({
    table: indexedTable,
    columns: indexedColumns,
  }: Extract<SqlCommand, { readonly kind: 'create-index' }>): Promise<void> {
    const { replies, enter } = this.#schemaSession;
    await enter('inspect', false, async (invocation) => {
      invocation.describe({ template: 'CREATE INDEX', objectType: indexedTable });
      checkIndexed(invocation.snapshot().catalog.type(indexedTable), indexedTable, indexedColumns);
    });
    replies.notice('indexes are made as questions need them: nothing was created');
    replies.complete('CREATE INDEX');
  }

  /** Ends all rows that the caller may end: earlier versions stay readable AS OF. */
  async truncate(truncatedTables: readonly string[]): Promise<void> {
    for (const truncatedTable of truncatedTables)
      await this.#executeSql('query', `DELETE FROM ${quoteTableName(truncatedTable)}`);
  }

  async drop(dropCommand: Extract<SqlCommand, { readonly kind: 'drop' }>): Promise<void> {
    const { replies, enter } = this.#schemaSession;
    const dropNotices = await enter('inspect', false, async (invocation) => {
      invocation.describe({ template: dropCommand.tag, objectType: dropCommand.names[0]!.name });
      const existingObjects = existingObjectsIn(invocation.snapshot());
      return dropCommand.names.map((droppedName) => droppedNotice(dropCommand, droppedName, existingObjects));
    });
    for (const [i, dropNotice] of dropNotices.entries()) {
      if (dropNotice !== null) replies.notice(dropNotice);
      else await this.#executeSql('schema', `${dropCommand.tag} ${quoteTableName(dropCommand.names[i]!.name)}`);
    }
    replies.complete(dropCommand.tag);
  }

  async #queryColumns(sql: string): Promise<readonly OutputColumn[]> {
    const { planner, enter } = this.#schemaSession;
    const { columns: queryColumns } = await enter('query', false, (invocation, queryOptions) =>
      planner.describe(invocation, { sql, ...queryOptions }),
    );
    return queryColumns;
  }

  #executeSql(statementAction: 'query' | 'schema', sql: string): Promise<Executed> {
    const { planner, enter } = this.#schemaSession;
    return enter(statementAction, true, (invocation, statementOptions) =>
      planner.execute(invocation, { sql, ...statementOptions }),
    );
  }
}

const quoteTableName = (tableName: string): string => `"${tableName.replaceAll('"', '""')}"`;
