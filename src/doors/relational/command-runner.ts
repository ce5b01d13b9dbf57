/** Runs one command of a Postgres session, for the simple query protocol and the extended one. */
import { ServiceError } from '../../errors.ts';
import { refundOf } from '../../governance/admission/rate-limit.ts';
import type { Caller } from '../../governance/caller.ts';
import type { Action, Invocation, Transaction } from '../../governance/gate-contract.ts';
import { smallAnswer } from '../../planner/execution/small-answer.ts';
import type { Answer, Description, Executed, OutputColumn } from '../../planner/planner-contract.ts';
import { type Literal, type ParameterType, TypedValue } from '../../planner/syntax/statement.ts';
import { tenantOf } from '../../log/values/value.ts';
import type { Connection } from '../shared/socket-connection.ts';
import { type AdvisoryLockCall, lockKey } from './advisory-lock-call.ts';
import type { HeldLocks } from './advisory-locks.ts';
import { admitAddress, type DoorDependencies, recordRefusal } from '../shared/door-dependencies.ts';
import { checkCaller, checkErased } from '../shared/stream-lease.ts';
import { spreadBound, spreadOnce } from './any-lists.ts';
import { type SqlCommand, isControl } from './parse-command.ts';
import { CopyIn, columnsOf } from './copy-in.ts';
import { CopyOut } from './copy-out.ts';
import type { Copy } from './copy-statement.ts';
import { fieldOrigin } from '../../planner/system-catalogue/catalogue-contents.ts';
import { Draws } from '../../planner/system-catalogue/random-draws.ts';
import type { InstantStyle, ClientSession } from '../../planner/system-catalogue/client-session.ts';
import { type BoundParameter, parameterOf, statedType } from './parameters.ts';
import type { Field, FieldOrigin, PostgresReplies, TransactionStatus } from './replies.ts';
import { DataRows } from './data-rows.ts';
import { SchemaStatements, type StatementOptions } from './schema-statements.ts';
import { errorFields, ProtocolRefusal } from './errors.ts';
import type { SessionVariables } from './session-variables.ts';
import { wireTypeOf } from '../../planner/system-catalogue/postgres-column-types.ts';

export type Ask = Extract<SqlCommand, { readonly kind: 'ask' }>;

export interface RunnerDependencies extends DoorDependencies {
  readonly caller: Caller;
  readonly user: string;
  readonly database: string;
  readonly process: number;
  readonly connection: Connection;
  readonly replies: PostgresReplies;
  readonly variables: SessionVariables;
  readonly locks: HeldLocks;
  /** A statement begins: it is not cancelled yet. */
  readonly begin: () => void;
  /** The signal of the statement that runs. */
  readonly signal: () => AbortSignal;
  /** Cancels the running statement. */
  readonly cancel: () => void;
}

const replySliceMs = 2;

export class CommandRunner {
  readonly #parts: RunnerDependencies;
  /** Lets go of a prepared statement; null: of all. */
  onDeallocate: (name: string | null) => void = () => undefined;
  #status: TransactionStatus = 'I';
  /** Between BEGIN and COMMIT. */
  #explicit: Transaction | null = null;
  /** Several statements of one query, or up to one Sync. */
  #implicit: Transaction | null = null;
  /** The newest one, open or not. */
  #last: Transaction | null = null;
  #copying: CopyIn | null = null;
  /** Whether the gate has the command at hand on record. */
  #recorded = false;
  readonly #origins = new WeakMap<readonly OutputColumn[], readonly (FieldOrigin | undefined)[]>();
  readonly #fields = new WeakMap<
    readonly OutputColumn[],
    { readonly instants: InstantStyle; readonly fields: readonly Field[] }
  >();

  readonly #draws: Draws;
  readonly #schema: SchemaStatements;

  constructor(dependencies: RunnerDependencies) {
    this.#parts = dependencies;
    this.#draws = new Draws(dependencies.random);
    this.#schema = new SchemaStatements({
      planner: dependencies.planner,
      replies: dependencies.replies,
      enter: (schemaAction, schemaWrites, runSchema) => this.#enter(schemaAction, schemaWrites, runSchema),
      withTimeout: (runStatement) => this.#withTimeout(runStatement),
    });
  }

  get status(): TransactionStatus {
    return this.#status;
  }

  /** Writes wait for a commit. */
  get isOpen(): boolean {
    return this.#explicit !== null || this.#implicit !== null;
  }

  get hasImplicit(): boolean {
    return this.#implicit !== null;
  }

  /** Rows of a COPY are expected. */
  get copying(): boolean {
    return this.#copying !== null;
  }

  /** Opens an implicit transaction for the following statements, unless one is open already. */
  beginImplicit(): void {
    if (this.#explicit === null) this.#implicit ??= this.#begin();
  }

  /** Throws the error that refuses the commit. */
  async endImplicit(): Promise<void> {
    const implicitBlock = this.#implicit;
    this.#implicit = null;
    if (implicitBlock !== null) await this.#commit(implicitBlock);
  }

  #begin(): Transaction {
    return (this.#last = this.#parts.gate.begin(this.#parts.caller, this.#last));
  }

  get #transaction(): Transaction | null {
    return this.#explicit ?? this.#implicit;
  }

  async #commit(committedBlock: Transaction): Promise<void> {
    const { sync } = this.options();
    const { locks: heldLocks } = this.#parts;
    const commitBlock = (invocation: Invocation): Promise<unknown> => invocation.commit({ sync });
    try {
      await this.#withTimeout(() => this.#enter('ingest', !committedBlock.isEmpty, commitBlock, committedBlock));
    } finally {
      committedBlock.end();
      heldLocks.transactionEnds();
    }
  }

  /** Ends the connection's transactions and locks. */
  end(): void {
    this.#parts.locks.end();
    this.#transaction?.end();
    this.#explicit = this.#implicit = null;
  }

  /** A command of the simple protocol, with all that it is answered with. */
  async run(command: SqlCommand): Promise<void> {
    const { replies, begin } = this.#parts;
    begin();
    if (command.kind === 'copy') return this.#copy(command.copy);
    if (command.kind !== 'ask' && command.kind !== 'show') return this.#settle(command);
    const executedStatement = command.kind === 'ask' ? await this.ask(command) : this.show(command.name);
    const { columns: outputColumns } = executedStatement.answer;
    if (command.kind === 'ask' && command.tag !== null) return this.complete(command, executedStatement);
    const dataRows = this.rowsOf(executedStatement.answer, []);
    if (outputColumns.length > 0) replies.fields(dataRows.fields);
    await this.send(dataRows, Number.POSITIVE_INFINITY);
    this.complete(command, executedStatement);
  }

  /** Answers commands that need no rows. */
  async #settle(command: Exclude<SqlCommand, { readonly kind: 'ask' | 'show' | 'copy' }>): Promise<void> {
    const { replies, variables: sessionVariables } = this.#parts;
    this.#recorded = false;
    if (!endingFailure.has(command.kind)) this.#refuseFailed();
    switch (command.kind) {
      case 'begin':
        if (this.#status === 'T') replies.notice('there is already a transaction in progress', '25001', 'WARNING');
        else {
          sessionVariables.transactionBegins();
          if (command.readOnly !== null) sessionVariables.set('transaction_read_only', command.readOnly ? 'on' : 'off', true);
          this.#explicit = this.#implicit ?? this.#begin();
          this.#implicit = null;
        }
        this.#status = 'T';
        return replies.complete(command.tag);
      case 'commit':
      case 'rollback': {
        if (this.#status === 'I') replies.notice('there is no transaction in progress', '25P01', 'WARNING');
        const hasFailed = this.#status === 'E';
        const endedTransaction = this.#explicit ?? this.#implicit;
        this.#explicit = this.#implicit = null;
        sessionVariables.transactionEnds();
        this.#status = 'I';
        const isCommitting = command.kind === 'commit' && !hasFailed;
        if (isCommitting && endedTransaction !== null) await this.#commit(endedTransaction);
        endedTransaction?.end();
        this.#parts.locks.transactionEnds();
        return replies.complete(isCommitting ? 'COMMIT' : 'ROLLBACK');
      }
      case 'savepoint':
        this.#inBlock('SAVEPOINT').savepoint(command.name);
        return replies.complete('SAVEPOINT');
      case 'release':
        if (!this.#inBlock('RELEASE SAVEPOINT').release(command.name)) throw savepointNotFound(command.name);
        return replies.complete('RELEASE');
      case 'rollback-to':
        if (!this.#inBlock('ROLLBACK TO SAVEPOINT').rollbackTo(command.name)) throw savepointNotFound(command.name);
        this.#status = 'T';
        return replies.complete('ROLLBACK');
      case 'set':
        sessionVariables.set(command.name, command.value, command.local);
        return replies.complete('SET');
      case 'reset':
        sessionVariables.reset(command.name);
        return replies.complete('RESET');
      case 'discard':
        if (!['ALL', 'PLANS', 'SEQUENCES', 'TEMP', 'TEMPORARY'].includes(command.name))
          throw new ServiceError('REL_PARSE', 'DISCARD takes ALL, PLANS, SEQUENCES or TEMP');
        if (command.name === 'ALL' && this.#status !== 'I')
          throw new ProtocolRefusal('25001', 'REL_INVALID', 'DISCARD ALL cannot run in a transaction');
        if (command.name === 'ALL') {
          sessionVariables.reset('all');
          this.#parts.locks.freeAll();
        }
        if (command.name === 'ALL' || command.name === 'PLANS') this.onDeallocate(null);
        return replies.complete(`DISCARD ${command.name}`);
      case 'deallocate':
        this.onDeallocate(command.name.toUpperCase() === 'ALL' ? null : command.name);
        return replies.complete(command.name.toUpperCase() === 'ALL' ? 'DEALLOCATE ALL' : 'DEALLOCATE');
      case 'create-table':
        return this.#schema.createTable(command, this.#status === 'T');
      case 'create-index':
        return this.#schema.createIndex(command);
      case 'create-schema': {
        const schemaDetail = `the schema ${JSON.stringify(command.name)} is there already`;
        if (!command.ifNotExists) throw new ProtocolRefusal('42P06', 'REL_CONFLICT', schemaDetail);
        replies.notice(`${schemaDetail}, skipping`);
        return replies.complete('CREATE SCHEMA');
      }
      case 'truncate':
        return this.#truncate(command.tables);
      case 'drop':
        return this.#schema.drop(command);
      case 'nothing':
        if (command.notice !== null) replies.notice(command.notice);
        return replies.complete(command.tag);
    }
  }

  show(variableName: string): Executed {
    this.#recorded = false;
    this.#refuseFailed();
    const { variables: sessionVariables } = this.#parts;
    const facts = { asOfSystem: 0n, costUnits: 0, processingTimeMs: 0 };
    if (variableName !== 'all') {
      const variableValue = sessionVariables.show(variableName);
      return { answer: smallAnswer([{ name: variableName, type: 'string' }], [[variableValue]], facts), written: null };
    }
    const variableColumns = ['name', 'setting', 'description'].map(
      (sessionVariable): OutputColumn => ({ name: sessionVariable, type: 'string' }),
    );
    const variableRows = sessionVariables
      .all()
      .map((sessionVariable) => [sessionVariable.name, sessionVariable.value, sessionVariable.about]);
    return { answer: smallAnswer(variableColumns, variableRows, facts), written: null };
  }

  /** Asks the planner: one invocation, one access record. */
  async ask(askCommand: Ask, boundParameters: BoundParameter | null = null): Promise<Executed> {
    try {
      return await this.#withTimeout(() => this.#ask(askCommand, boundParameters));
    } catch (askError) {
      if (boundParameters === null || !(askError instanceof ServiceError) || askError.facts.reason !== 'no-such-parameter')
        throw askError;
      const parameterDetail = `${boundParameters.values.length} values are bound, and the statement takes more`;
      throw new ProtocolRefusal('08P01', 'REL_INVALID', parameterDetail);
    }
  }

  /** Cancels what runs longer than `statement_timeout`. */
  async #withTimeout<T>(runStatement: () => Promise<T>): Promise<T> {
    const { variables, clock, cancel } = this.#parts;
    const statementTimeoutMs = variables.statementTimeoutMs;
    if (statementTimeoutMs === 0) return runStatement();
    const statementEnded = new AbortController();
    let isTimedOut = false;
    void clock.sleep(statementTimeoutMs, statementEnded.signal).then(() => {
      if (statementEnded.signal.aborted) return;
      isTimedOut = true;
      cancel();
    });
    try {
      return await runStatement();
    } catch (statementError) {
      if (!isTimedOut || !(statementError instanceof ServiceError) || statementError.code !== 'REL_CANCELLED')
        throw statementError;
      throw new ServiceError(
        'REL_TIMEOUT',
        `the statement ran longer than statement_timeout, which is ${variables.show('statement_timeout')}`,
      );
    } finally {
      statementEnded.abort();
    }
  }

  #ask(askCommand: Ask, boundParameters: BoundParameter | null): Promise<Executed> {
    if (askCommand.advisory) return this.#advise(askCommand.advisory, boundParameters);
    const { text: sql, bound: spreadParameters } =
      boundParameters === null || askCommand.spreads.length === 0
        ? { text: askCommand.text, bound: boundParameters }
        : spreadBound(askCommand.text, askCommand.spreads, boundParameters);
    return this.#invoke(askCommand, async (invocation, statementOptions) => {
      const parameterValues =
        spreadParameters && spreadParameters.values.length > 0 ? await this.#values(invocation, sql, spreadParameters) : null;
      const { dialect, time, purpose, sync } = statementOptions;
      const executedStatement = await this.#parts.planner.execute(invocation, {
        sql,
        parameters: parameterValues ?? undefined,
        session: this.#session,
        graph: askCommand.verb === 'CALL' && askCommand.mayWrite ? 'scores' : undefined,
        dialect,
        time,
        purpose,
        sync,
        signal: statementOptions.signal,
      });
      this.#findOrigins(invocation, executedStatement.answer.columns);
      return executedStatement;
    });
  }

  /** Numbers that the columns have in the catalogue. Answers of one plan have one list of columns, and a plan is of one definition. */
  #findOrigins(invocation: Invocation, outputColumns: readonly OutputColumn[]): void {
    if (this.#origins.has(outputColumns) || !outputColumns.some(({ origin }) => origin !== undefined)) return;
    const { catalog } = invocation.snapshot();
    const origins = outputColumns.map(({ origin }) => {
      const typeDefinition = origin === undefined ? undefined : catalog.type(origin.type);
      return typeDefinition && fieldOrigin(typeDefinition, origin!.column);
    });
    this.#origins.set(outputColumns, origins);
  }

  /** All of the tables or none. */
  async #truncate(truncatedTables: readonly string[]): Promise<void> {
    const isOutsideBlock = !this.isOpen;
    this.beginImplicit();
    await this.#schema.truncate(truncatedTables);
    if (isOutsideBlock) await this.endImplicit();
    this.#parts.replies.complete('TRUNCATE TABLE');
  }

  /** Begins to take rows, or sends them all. */
  async #copy(copyStatement: Copy): Promise<void> {
    const { replies, caller, authenticator, gate, clock, yieldTurn } = this.#parts;
    if (copyStatement.direction === 'out') return this.#withTimeout(() => this.#copyOut(copyStatement));
    const copyIn = new CopyIn({
      authenticator,
      gate,
      clock,
      yieldTurn,
      caller,
      copy: copyStatement,
      sync: this.options().sync,
      signal: this.#parts.signal(),
      isWithin: this.isOpen,
      invoke: (runCopy) => this.#withTimeout(() => this.#enter('ingest', true, runCopy)),
    });
    const copyColumns = await copyIn.begin();
    this.#copying = copyIn;
    replies.copyBegins('G', copyStatement.format === 'binary', copyColumns.length);
  }

  async copyData(copyBytes: Buffer): Promise<void> {
    try {
      await this.#copying!.push(copyBytes);
    } catch (copyError) {
      this.#copying = null;
      throw copyError;
    }
  }

  async copyDone(): Promise<void> {
    const copyIn = this.#copying!;
    this.#copying = null;
    this.#parts.replies.complete(`COPY ${await copyIn.finish()}`);
  }

  /** The client gives up, is gone, or says what does not belong here. */
  async copyFailed(copyError: ServiceError): Promise<void> {
    const copyIn = this.#copying;
    this.#copying = null;
    await copyIn?.fail(copyError);
  }

  async #copyOut(copyStatement: Copy): Promise<void> {
    const { planner, replies } = this.#parts;
    const { answer: copyAnswer } = await this.#enter('query', false, (invocation) => {
      if (copyStatement.table !== null) invocation.describe({ template: 'COPY ? TO STDOUT', objectType: copyStatement.table });
      const copyQuery = copyStatement.query ?? this.#tableQuery(invocation, copyStatement);
      return planner.execute(invocation, { sql: copyQuery, ...this.options() });
    });
    const copyOut = new CopyOut(
      copyAnswer,
      copyStatement,
      this.fieldsOf(copyAnswer.columns, []),
      this.#parts.variables.timestampDigits,
    );
    const copySignal = this.#parts.signal();
    await this.#stream(copyAnswer, () => {
      if (copySignal.aborted) throw new ServiceError('REL_CANCELLED', 'the COPY was cancelled');
      copyOut.put(replies);
      return copyOut.ended;
    });
    replies.complete(`COPY ${copyAnswer.rowCount}`);
  }

  #tableQuery(invocation: Invocation, { table: copiedTable, columns: namedColumns }: Copy): string {
    const quoteName = (name: string): string => `"${name.replaceAll('"', '""')}"`;
    const copiedType = invocation.snapshot().catalog.type(copiedTable!);
    const copiedColumns =
      copiedType === undefined ? (namedColumns ?? ['*']) : columnsOf(copiedType, namedColumns).map(({ name }) => name);
    return `SELECT ${copiedColumns.map((name) => (name === '*' ? name : quoteName(name))).join(', ')} FROM ${quoteName(copiedTable!)}`;
  }

  async #advise(advisoryCall: AdvisoryLockCall, boundParameters: BoundParameter | null): Promise<Executed> {
    const { locks, caller, signal } = this.#parts;
    const { name: advisoryName, act: advisoryAct, mode: lockMode, ofTransaction } = advisoryCall;
    const boundArguments =
      boundParameters === null
        ? []
        : boundValues(
            boundParameters,
            boundParameters.values.map(() => 'integer' as const),
          ).map((value) => TypedValue.rawOf(value));
    const lockNumbers = advisoryCall.arguments.map((lockArgument) => {
      const lockNumber = typeof lockArgument === 'bigint' ? lockArgument : boundArguments[lockArgument.parameter - 1];
      if (typeof lockNumber !== 'bigint') throw new ServiceError('REL_INVALID', `${advisoryName} takes whole numbers`);
      return lockNumber;
    });
    await this.#enter('inspect', false, async (invocation) => {
      invocation.describe({ template: `SELECT ${advisoryName}`, literals: lockNumbers.map(String) });
      invocation.checkInspects();
    });
    const advisoryKey = lockKey(tenantOf(caller.path), lockNumbers);
    let lockReply: boolean | null = null;
    if (advisoryAct === 'take') await locks.take(advisoryKey, lockMode, ofTransaction, signal());
    else if (advisoryAct === 'try') lockReply = locks.tryTake(advisoryKey, lockMode, ofTransaction);
    else if (advisoryAct === 'free') lockReply = locks.free(advisoryKey, lockMode);
    else locks.freeAll();
    if (lockReply === false && advisoryAct === 'free')
      this.#parts.replies.notice(
        `you don't own a lock of type ${lockMode === 'shared' ? 'ShareLock' : 'ExclusiveLock'}`,
        '01000',
        'WARNING',
      );
    if (!this.isOpen) locks.transactionEnds();
    const facts = { asOfSystem: 0n, costUnits: 0, processingTimeMs: 0 };
    return { answer: smallAnswer(advisoryColumns(advisoryCall), [[lockReply ?? '']], facts), written: null };
  }

  describe(askCommand: Ask, oids: readonly number[]): Promise<Description> {
    const { advisory: advisoryCall } = askCommand;
    if (advisoryCall)
      return Promise.resolve({
        columns: advisoryColumns(advisoryCall),
        parameters: advisoryCall.arguments.flatMap((lockArgument) => (typeof lockArgument === 'bigint' ? [] : 'integer')),
      });
    const spreadStatement =
      askCommand.spreads.length === 0 ? { text: askCommand.text, oids } : spreadOnce(askCommand.text, askCommand.spreads, oids);
    return this.#invoke(askCommand, async (invocation) => {
      const description = await this.#describe(invocation, spreadStatement.text, spreadStatement.oids);
      this.#findOrigins(invocation, description.columns);
      return description;
    });
  }

  get #session(): ClientSession {
    const { user, database, process, variables } = this.#parts;
    return { user, database, process, variables, draws: this.#draws };
  }

  rowsOf(answer: Answer, resultFormats: readonly number[]): DataRows {
    return new DataRows(answer, this.fieldsOf(answer.columns, resultFormats), this.#parts.variables.timestampDigits);
  }

  fieldsOf(outputColumns: readonly OutputColumn[], resultFormats: readonly number[]): readonly Field[] {
    if (resultFormats.length > 1 && resultFormats.length !== outputColumns.length)
      throw new ProtocolRefusal(
        '08P01',
        'REL_INVALID',
        `${resultFormats.length} result formats are given for ${outputColumns.length} columns`,
      );
    const { instants } = this.#parts.variables;
    // Answers of one plan have one list of columns, and most clients read text.
    const isTextOnly = resultFormats.every((resultFormat) => resultFormat === 0);
    const knownFields = isTextOnly ? this.#fields.get(outputColumns) : undefined;
    if (knownFields?.instants === instants) return knownFields.fields;
    const origins = this.#origins.get(outputColumns);
    const rowFields = outputColumns.map((outputColumn, i) => ({
      name: outputColumn.label ?? outputColumn.name,
      origin: origins?.[i],
      type: wireTypeOf(outputColumn, instants),
      format: resultFormats.length > 1 ? resultFormats[i]! : (resultFormats[0] ?? 0),
    }));
    if (isTextOnly) this.#fields.set(outputColumns, { instants, fields: rowFields });
    return rowFields;
  }

  /** Rows as fast as the client takes them; false: more are left than were to be sent. */
  async send(dataRows: DataRows, rowsMax: number): Promise<boolean> {
    let rowsLeft = rowsMax;
    await this.#stream(dataRows.answer, () => {
      rowsLeft -= dataRows.put(this.#parts.replies, rowsLeft);
      return dataRows.ended || rowsLeft <= 0;
    });
    return dataRows.ended;
  }

  /** Calls `putReplies` until it is done; sends its bytes between the calls. */
  async #stream(streamedAnswer: Answer, putReplies: () => boolean): Promise<void> {
    const { replies, connection, clock, yieldTurn, caller } = this.#parts;
    checkErased(streamedAnswer);
    let replySliceStart = clock.monotonicMs();
    for (;;) {
      if (putReplies()) return;
      connection.write(replies.take());
      await connection.caughtUp();
      if (connection.gone.aborted) throw new ServiceError('REL_CANCELLED', 'the client went away');
      if (clock.monotonicMs() - replySliceStart > replySliceMs) {
        await yieldTurn();
        replySliceStart = clock.monotonicMs();
      }
      checkCaller(this.#parts, caller);
      checkErased(streamedAnswer);
    }
  }

  complete(completedCommand: Ask | { readonly kind: 'show' }, { answer, written: writtenCounts }: Executed): void {
    const { replies } = this.#parts;
    for (const notice of answer.notices ?? []) replies.notice(notice);
    if (completedCommand.kind === 'show') return replies.complete('SHOW');
    if (completedCommand.verb === 'CALL') return replies.complete('CALL');
    switch (writtenCounts?.verb) {
      case 'insert':
        return replies.complete(`INSERT 0 ${writtenCounts.inserted + writtenCounts.updated}`);
      case 'update':
        return replies.complete(`UPDATE ${writtenCounts.updated}`);
      case 'delete':
        return replies.complete(`DELETE ${writtenCounts.deleted}`);
      case 'merge':
        return replies.complete(`MERGE ${writtenCounts.inserted + writtenCounts.updated + writtenCounts.deleted}`);
    }
    const { verb: commandVerb, tag: commandTag } = completedCommand;
    if (commandTag !== null) return replies.complete(commandTag);
    replies.complete(
      commandVerb === 'SELECT' || commandVerb === 'VALUES' || commandVerb === 'TABLE' ? `SELECT ${answer.rowCount}` : commandVerb,
    );
  }

  /** Reports an error to the client, and ends the work that it interrupts. */
  async fail(failureCause: unknown, failedSql?: string): Promise<void> {
    const knownError =
      failureCause instanceof ServiceError
        ? failureCause
        : new ServiceError('REL_INTERNAL', 'internal error', { cause: failureCause });
    let recordedError = this.#recorded ? knownError : await recordRefusal(this.#parts, this.#parts.caller, 'query', knownError);
    this.#recorded = true;
    if (recordedError.code === 'REL_INTERNAL') {
      this.#parts.reportFailure(recordedError.facts.cause ?? recordedError);
      recordedError = new ServiceError('REL_INTERNAL', 'internal error');
    }
    this.#parts.replies.error(errorFields(recordedError, failedSql));
    if (this.#implicit !== null) this.#parts.locks.transactionEnds();
    this.#implicit?.end();
    this.#implicit = null;
    if (this.#status === 'T') this.#status = 'E';
  }

  /** An error before the command runs, such as a malformed message, has no access record yet. */
  begins(): void {
    this.#recorded = false;
    this.#parts.begin();
  }

  #inBlock(blockStatement: string): Transaction {
    if (this.#explicit !== null) return this.#explicit;
    throw new ProtocolRefusal('25P01', 'REL_INVALID', `${blockStatement} needs a transaction: BEGIN one first`);
  }

  #refuseFailed(): void {
    if (this.#status === 'E') throw new ProtocolRefusal('25P02', 'REL_INVALID', 'the transaction has failed: ROLLBACK ends it');
  }

  async #invoke<T>(
    askCommand: Ask,
    runCopy: (invocation: Invocation, options: StatementOptions) => Promise<T>,
    action: 'query' | 'inspect' = 'query',
  ): Promise<T> {
    if (this.isOpen && isControl(askCommand))
      throw new ServiceError('REL_NOT_IMPLEMENTED', `${askCommand.verb} cannot run in a transaction: send it by itself`);
    return this.#enter(action, askCommand.mayWrite, runCopy);
  }

  /** Runs one invocation of the gate. */
  async #enter<T>(
    schemaAction: Action,
    schemaWrites: boolean,
    runSchema: (invocation: Invocation, statementOptions: StatementOptions) => Promise<T>,
    enteredBlock = this.#transaction,
  ): Promise<T> {
    const { variables, readLimit, writeLimit, authenticator, gate, ids, connection } = this.#parts;
    this.#recorded = false;
    this.#refuseFailed();
    if (schemaWrites && schemaAction !== 'schema' && variables.show('transaction_read_only') === 'on')
      throw new ServiceError('REL_READ_ONLY', 'the transaction is READ ONLY');
    const addressLimiter = schemaWrites ? writeLimit : readLimit;
    admitAddress(this.#parts, addressLimiter, connection.clientIp);
    const caller = authenticator.renew(this.#parts.caller);
    const statementOptions = this.options();
    const gateRequest = {
      action: schemaAction,
      purpose: statementOptions.purpose,
      correlationId: ids.next(),
      breakGlass: variables.statedTerm('annals.break_glass'),
      accessScopeRef: variables.statedTerm('annals.access_scope_ref'),
      gone: statementOptions.signal,
      onCost: refundOf(addressLimiter, connection.clientIp),
      transaction: enteredBlock ?? undefined,
    } as const;
    this.#recorded = true;
    return gate.invoke(caller, gateRequest, (invocation) => runSchema(invocation, statementOptions));
  }

  options(): StatementOptions {
    const { variables, signal } = this.#parts;
    return {
      dialect: 'wide',
      time: variables.time,
      purpose: variables.statedTerm('annals.purpose'),
      sync: variables.statedTerm('annals.durability') === 'sync',
      signal: signal(),
    };
  }

  #describe(invocation: Invocation, describedSql: string, oids: readonly number[]): Promise<Description> {
    const { planner, variables } = this.#parts;
    const purpose = variables.statedTerm('annals.purpose');
    const parameterTypes = oids.map(statedType);
    const describeRequest = { sql: describedSql, parameterTypes, writes: true, dialect: 'wide', time: variables.time } as const;
    return planner.describe(invocation, { ...describeRequest, ...(purpose !== null && { purpose }) });
  }

  /** Runs within the invocation of the statement: it infers the types that the client did not state. */
  async #values(invocation: Invocation, boundSql: string, boundParameters: BoundParameter): Promise<(Literal | TypedValue)[]> {
    const { values, oids, types } = boundParameters;
    const statedTypes = values.map((_, i) => statedType(oids[i] ?? 0));
    const hasUntyped = statedTypes.includes(null);
    const describedTypes = types === null && hasUntyped ? (await this.#describe(invocation, boundSql, oids)).parameters : null;
    if (describedTypes !== null) boundParameters.onTypes?.(describedTypes);
    const parameterTypes = types ?? describedTypes ?? [];
    return boundValues(
      boundParameters,
      statedTypes.map((statedParameterType, i) => statedParameterType ?? parameterTypes[i] ?? null),
    );
  }
}

function advisoryColumns({ act: advisoryAct, column: advisoryColumn }: AdvisoryLockCall): readonly OutputColumn[] {
  return advisoryAct === 'try' || advisoryAct === 'free'
    ? [{ name: advisoryColumn, type: 'boolean' }]
    : [{ name: advisoryColumn, type: 'string', shownAs: 'void' }];
}

/** Commands that a failed transaction still takes. */
const endingFailure: ReadonlySet<SqlCommand['kind']> = new Set<SqlCommand['kind']>(['commit', 'rollback', 'rollback-to']);

const savepointNotFound = (savepointName: string): ServiceError =>
  new ProtocolRefusal('3B001', 'REL_NOT_FOUND', `there is no savepoint ${JSON.stringify(savepointName)}`);

/** Values without a stated type are text. */
function boundValues(
  { values: parameterValues, formats: parameterFormats, oids }: BoundParameter,
  types: readonly (ParameterType | null)[],
): (Literal | TypedValue)[] {
  return parameterValues.map((parameterBytes, i) => {
    const parameterFormat = parameterFormats.length > 1 ? parameterFormats[i]! : (parameterFormats[0] ?? 0);
    return parameterOf(parameterBytes, parameterFormat, oids[i] ?? 0, types[i] ?? 'string', i + 1);
  });
}
