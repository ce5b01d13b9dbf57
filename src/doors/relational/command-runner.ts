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

const sliceMs = 2;

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

  constructor(parts: RunnerDependencies) {
    this.#parts = parts;
    this.#draws = new Draws(parts.random);
    this.#schema = new SchemaStatements({
      planner: parts.planner,
      replies: parts.replies,
      enter: (action, writes, run) => this.#enter(action, writes, run),
      withTimeout: (run) => this.#withTimeout(run),
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
    const transaction = this.#implicit;
    this.#implicit = null;
    if (transaction !== null) await this.#commit(transaction);
  }

  #begin(): Transaction {
    return (this.#last = this.#parts.gate.begin(this.#parts.caller, this.#last));
  }

  get #transaction(): Transaction | null {
    return this.#explicit ?? this.#implicit;
  }

  async #commit(transaction: Transaction): Promise<void> {
    const { sync } = this.options();
    const { locks } = this.#parts;
    const commit = (invocation: Invocation): Promise<unknown> => invocation.commit({ sync });
    try {
      await this.#withTimeout(() => this.#enter('ingest', !transaction.isEmpty, commit, transaction));
    } finally {
      transaction.end();
      locks.transactionEnds();
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
    const executed = command.kind === 'ask' ? await this.ask(command) : this.show(command.name);
    const { columns } = executed.answer;
    if (command.kind === 'ask' && command.tag !== null) return this.complete(command, executed);
    const rows = this.rowsOf(executed.answer, []);
    if (columns.length > 0) replies.fields(rows.fields);
    await this.send(rows, Number.POSITIVE_INFINITY);
    this.complete(command, executed);
  }

  /** Answers commands that need no rows. */
  async #settle(command: Exclude<SqlCommand, { readonly kind: 'ask' | 'show' | 'copy' }>): Promise<void> {
    const { replies, variables } = this.#parts;
    this.#recorded = false;
    if (!endsFailure.has(command.kind)) this.#refuseFailed();
    switch (command.kind) {
      case 'begin':
        if (this.#status === 'T') replies.notice('there is already a transaction in progress', '25001', 'WARNING');
        else {
          variables.transactionBegins();
          if (command.readOnly !== null) variables.set('transaction_read_only', command.readOnly ? 'on' : 'off', true);
          this.#explicit = this.#implicit ?? this.#begin();
          this.#implicit = null;
        }
        this.#status = 'T';
        return replies.complete(command.tag);
      case 'commit':
      case 'rollback': {
        if (this.#status === 'I') replies.notice('there is no transaction in progress', '25P01', 'WARNING');
        const failed = this.#status === 'E';
        const transaction = this.#explicit ?? this.#implicit;
        this.#explicit = this.#implicit = null;
        variables.transactionEnds();
        this.#status = 'I';
        const commits = command.kind === 'commit' && !failed;
        if (commits && transaction !== null) await this.#commit(transaction);
        transaction?.end();
        this.#parts.locks.transactionEnds();
        return replies.complete(commits ? 'COMMIT' : 'ROLLBACK');
      }
      case 'savepoint':
        this.#inBlock('SAVEPOINT').savepoint(command.name);
        return replies.complete('SAVEPOINT');
      case 'release':
        if (!this.#inBlock('RELEASE SAVEPOINT').release(command.name)) throw noSavepoint(command.name);
        return replies.complete('RELEASE');
      case 'rollback-to':
        if (!this.#inBlock('ROLLBACK TO SAVEPOINT').rollbackTo(command.name)) throw noSavepoint(command.name);
        this.#status = 'T';
        return replies.complete('ROLLBACK');
      case 'set':
        variables.set(command.name, command.value, command.local);
        return replies.complete('SET');
      case 'reset':
        variables.reset(command.name);
        return replies.complete('RESET');
      case 'discard':
        if (!['ALL', 'PLANS', 'SEQUENCES', 'TEMP', 'TEMPORARY'].includes(command.name))
          throw new ServiceError('REL_PARSE', 'DISCARD takes ALL, PLANS, SEQUENCES or TEMP');
        if (command.name === 'ALL' && this.#status !== 'I')
          throw new ProtocolRefusal('25001', 'REL_INVALID', 'DISCARD ALL cannot run in a transaction');
        if (command.name === 'ALL') {
          variables.reset('all');
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
        const detail = `the schema ${JSON.stringify(command.name)} is there already`;
        if (!command.ifNotExists) throw new ProtocolRefusal('42P06', 'REL_CONFLICT', detail);
        replies.notice(`${detail}, skipping`);
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

  show(name: string): Executed {
    this.#recorded = false;
    this.#refuseFailed();
    const { variables } = this.#parts;
    const facts = { asOfSystem: 0n, costUnits: 0, processingTimeMs: 0 };
    if (name !== 'all') {
      const value = variables.show(name);
      return { answer: smallAnswer([{ name, type: 'string' }], [[value]], facts), written: null };
    }
    const columns = ['name', 'setting', 'description'].map((each): OutputColumn => ({ name: each, type: 'string' }));
    const rows = variables.all().map((each) => [each.name, each.value, each.about]);
    return { answer: smallAnswer(columns, rows, facts), written: null };
  }

  /** Asks the planner: one invocation, one access record. */
  async ask(command: Ask, bound: BoundParameter | null = null): Promise<Executed> {
    try {
      return await this.#withTimeout(() => this.#ask(command, bound));
    } catch (error) {
      if (bound === null || !(error instanceof ServiceError) || error.facts.reason !== 'no-such-parameter') throw error;
      const detail = `${bound.values.length} values are bound, and the statement takes more`;
      throw new ProtocolRefusal('08P01', 'REL_INVALID', detail);
    }
  }

  /** Cancels what runs longer than `statement_timeout`. */
  async #withTimeout<T>(run: () => Promise<T>): Promise<T> {
    const { variables, clock, cancel } = this.#parts;
    const ms = variables.statementTimeoutMs;
    if (ms === 0) return run();
    const ended = new AbortController();
    let isLate = false;
    void clock.sleep(ms, ended.signal).then(() => {
      if (ended.signal.aborted) return;
      isLate = true;
      cancel();
    });
    try {
      return await run();
    } catch (error) {
      if (!isLate || !(error instanceof ServiceError) || error.code !== 'REL_CANCELLED') throw error;
      throw new ServiceError(
        'REL_TIMEOUT',
        `the statement ran longer than statement_timeout, which is ${variables.show('statement_timeout')}`,
      );
    } finally {
      ended.abort();
    }
  }

  #ask(command: Ask, bound: BoundParameter | null): Promise<Executed> {
    if (command.advisory) return this.#advise(command.advisory, bound);
    const { text: sql, bound: values } =
      bound === null || command.spreads.length === 0
        ? { text: command.text, bound }
        : spreadBound(command.text, command.spreads, bound);
    return this.#invoke(command, async (invocation, options) => {
      const parameters = values && values.values.length > 0 ? await this.#values(invocation, sql, values) : null;
      const { dialect, time, purpose, sync } = options;
      const executed = await this.#parts.planner.execute(invocation, {
        sql,
        parameters: parameters ?? undefined,
        session: this.#session,
        graph: command.verb === 'CALL' && command.mayWrite ? 'scores' : undefined,
        dialect,
        time,
        purpose,
        sync,
        signal: options.signal,
      });
      this.#findOrigins(invocation, executed.answer.columns);
      return executed;
    });
  }

  /** Numbers that the columns have in the catalogue. Answers of one plan have one list of columns, and a plan is of one definition. */
  #findOrigins(invocation: Invocation, columns: readonly OutputColumn[]): void {
    if (this.#origins.has(columns) || !columns.some(({ origin }) => origin !== undefined)) return;
    const { catalog } = invocation.snapshot();
    const origins = columns.map(({ origin }) => {
      const definition = origin === undefined ? undefined : catalog.type(origin.type);
      return definition && fieldOrigin(definition, origin!.column);
    });
    this.#origins.set(columns, origins);
  }

  /** All of the tables or none. */
  async #truncate(tables: readonly string[]): Promise<void> {
    const isAlone = !this.isOpen;
    this.beginImplicit();
    await this.#schema.truncate(tables);
    if (isAlone) await this.endImplicit();
    this.#parts.replies.complete('TRUNCATE TABLE');
  }

  /** Begins to take rows, or sends them all. */
  async #copy(copy: Copy): Promise<void> {
    const { replies, caller, authenticator, gate, clock, yieldTurn } = this.#parts;
    if (copy.direction === 'out') return this.#withTimeout(() => this.#copyOut(copy));
    const copying = new CopyIn({
      authenticator,
      gate,
      clock,
      yieldTurn,
      caller,
      copy,
      sync: this.options().sync,
      signal: this.#parts.signal(),
      isWithin: this.isOpen,
      invoke: (run) => this.#withTimeout(() => this.#enter('ingest', true, run)),
    });
    const columns = await copying.begin();
    this.#copying = copying;
    replies.copyBegins('G', copy.format === 'binary', columns.length);
  }

  async copyData(bytes: Buffer): Promise<void> {
    try {
      await this.#copying!.push(bytes);
    } catch (error) {
      this.#copying = null;
      throw error;
    }
  }

  async copyDone(): Promise<void> {
    const copying = this.#copying!;
    this.#copying = null;
    this.#parts.replies.complete(`COPY ${await copying.finish()}`);
  }

  /** The client gives up, is gone, or says what does not belong here. */
  async copyFailed(error: ServiceError): Promise<void> {
    const copying = this.#copying;
    this.#copying = null;
    await copying?.fail(error);
  }

  async #copyOut(copy: Copy): Promise<void> {
    const { planner, replies } = this.#parts;
    const { answer } = await this.#enter('query', false, (invocation) => {
      if (copy.table !== null) invocation.describe({ template: 'COPY ? TO STDOUT', objectType: copy.table });
      const sql = copy.query ?? this.#tableQuery(invocation, copy);
      return planner.execute(invocation, { sql, ...this.options() });
    });
    const rows = new CopyOut(answer, copy, this.fieldsOf(answer.columns, []), this.#parts.variables.timestampDigits);
    const signal = this.#parts.signal();
    await this.#stream(answer, () => {
      if (signal.aborted) throw new ServiceError('REL_CANCELLED', 'the COPY was cancelled');
      rows.put(replies);
      return rows.ended;
    });
    replies.complete(`COPY ${answer.rowCount}`);
  }

  #tableQuery(invocation: Invocation, { table, columns }: Copy): string {
    const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`;
    const definition = invocation.snapshot().catalog.type(table!);
    const names = definition === undefined ? (columns ?? ['*']) : columnsOf(definition, columns).map(({ name }) => name);
    return `SELECT ${names.map((name) => (name === '*' ? name : quote(name))).join(', ')} FROM ${quote(table!)}`;
  }

  async #advise(advisory: AdvisoryLockCall, bound: BoundParameter | null): Promise<Executed> {
    const { locks, caller, signal } = this.#parts;
    const { name, act, mode, ofTransaction } = advisory;
    const given =
      bound === null
        ? []
        : valuesOf(
            bound,
            bound.values.map(() => 'integer' as const),
          ).map((value) => TypedValue.rawOf(value));
    const numbers = advisory.arguments.map((each) => {
      const number = typeof each === 'bigint' ? each : given[each.parameter - 1];
      if (typeof number !== 'bigint') throw new ServiceError('REL_INVALID', `${name} takes whole numbers`);
      return number;
    });
    await this.#enter('inspect', false, async (invocation) => {
      invocation.describe({ template: `SELECT ${name}`, literals: numbers.map(String) });
      invocation.checkInspects();
    });
    const key = lockKey(tenantOf(caller.path), numbers);
    let lockReply: boolean | null = null;
    if (act === 'take') await locks.take(key, mode, ofTransaction, signal());
    else if (act === 'try') lockReply = locks.tryTake(key, mode, ofTransaction);
    else if (act === 'free') lockReply = locks.free(key, mode);
    else locks.freeAll();
    if (lockReply === false && act === 'free')
      this.#parts.replies.notice(
        `you don't own a lock of type ${mode === 'shared' ? 'ShareLock' : 'ExclusiveLock'}`,
        '01000',
        'WARNING',
      );
    if (!this.isOpen) locks.transactionEnds();
    const facts = { asOfSystem: 0n, costUnits: 0, processingTimeMs: 0 };
    return { answer: smallAnswer(advisoryColumns(advisory), [[lockReply ?? '']], facts), written: null };
  }

  describe(command: Ask, oids: readonly number[]): Promise<Description> {
    const { advisory } = command;
    if (advisory)
      return Promise.resolve({
        columns: advisoryColumns(advisory),
        parameters: advisory.arguments.flatMap((each) => (typeof each === 'bigint' ? [] : 'integer')),
      });
    const once = command.spreads.length === 0 ? { text: command.text, oids } : spreadOnce(command.text, command.spreads, oids);
    return this.#invoke(command, async (invocation) => {
      const description = await this.#describe(invocation, once.text, once.oids);
      this.#findOrigins(invocation, description.columns);
      return description;
    });
  }

  get #session(): ClientSession {
    const { user, database, process, variables } = this.#parts;
    return { user, database, process, variables, draws: this.#draws };
  }

  rowsOf(answer: Answer, formats: readonly number[]): DataRows {
    return new DataRows(answer, this.fieldsOf(answer.columns, formats), this.#parts.variables.timestampDigits);
  }

  fieldsOf(columns: readonly OutputColumn[], formats: readonly number[]): readonly Field[] {
    if (formats.length > 1 && formats.length !== columns.length)
      throw new ProtocolRefusal(
        '08P01',
        'REL_INVALID',
        `${formats.length} result formats are given for ${columns.length} columns`,
      );
    const { instants } = this.#parts.variables;
    // Answers of one plan have one list of columns, and most clients read text.
    const isPlain = formats.every((format) => format === 0);
    const known = isPlain ? this.#fields.get(columns) : undefined;
    if (known?.instants === instants) return known.fields;
    const origins = this.#origins.get(columns);
    const fields = columns.map((column, i) => ({
      name: column.label ?? column.name,
      origin: origins?.[i],
      type: wireTypeOf(column, instants),
      format: formats.length > 1 ? formats[i]! : (formats[0] ?? 0),
    }));
    if (isPlain) this.#fields.set(columns, { instants, fields });
    return fields;
  }

  /** Rows as fast as the client takes them; false: more are left than were to be sent. */
  async send(rows: DataRows, most: number): Promise<boolean> {
    let left = most;
    await this.#stream(rows.answer, () => {
      left -= rows.put(this.#parts.replies, left);
      return rows.ended || left <= 0;
    });
    return rows.ended;
  }

  /** Calls `put` until it is done; sends its bytes between the calls. */
  async #stream(answer: Answer, put: () => boolean): Promise<void> {
    const { replies, connection, clock, yieldTurn, caller } = this.#parts;
    checkErased(answer);
    let sliceStart = clock.monotonicMs();
    for (;;) {
      if (put()) return;
      connection.write(replies.take());
      await connection.caughtUp();
      if (connection.gone.aborted) throw new ServiceError('REL_CANCELLED', 'the client went away');
      if (clock.monotonicMs() - sliceStart > sliceMs) {
        await yieldTurn();
        sliceStart = clock.monotonicMs();
      }
      checkCaller(this.#parts, caller);
      checkErased(answer);
    }
  }

  complete(command: Ask | { readonly kind: 'show' }, { answer, written }: Executed): void {
    const { replies } = this.#parts;
    for (const notice of answer.notices ?? []) replies.notice(notice);
    if (command.kind === 'show') return replies.complete('SHOW');
    if (command.verb === 'CALL') return replies.complete('CALL');
    switch (written?.verb) {
      case 'insert':
        return replies.complete(`INSERT 0 ${written.inserted + written.updated}`);
      case 'update':
        return replies.complete(`UPDATE ${written.updated}`);
      case 'delete':
        return replies.complete(`DELETE ${written.deleted}`);
      case 'merge':
        return replies.complete(`MERGE ${written.inserted + written.updated + written.deleted}`);
    }
    const { verb, tag } = command;
    if (tag !== null) return replies.complete(tag);
    replies.complete(verb === 'SELECT' || verb === 'VALUES' || verb === 'TABLE' ? `SELECT ${answer.rowCount}` : verb);
  }

  /** Reports an error to the client, and ends the work that it interrupts. */
  async fail(cause: unknown, text?: string): Promise<void> {
    const known = cause instanceof ServiceError ? cause : new ServiceError('REL_INTERNAL', 'internal error', { cause });
    let recordedError = this.#recorded ? known : await recordRefusal(this.#parts, this.#parts.caller, 'query', known);
    this.#recorded = true;
    if (recordedError.code === 'REL_INTERNAL') {
      this.#parts.reportFailure(recordedError.facts.cause ?? recordedError);
      recordedError = new ServiceError('REL_INTERNAL', 'internal error');
    }
    this.#parts.replies.error(errorFields(recordedError, text));
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

  #inBlock(words: string): Transaction {
    if (this.#explicit !== null) return this.#explicit;
    throw new ProtocolRefusal('25P01', 'REL_INVALID', `${words} needs a transaction: BEGIN one first`);
  }

  #refuseFailed(): void {
    if (this.#status === 'E') throw new ProtocolRefusal('25P02', 'REL_INVALID', 'the transaction has failed: ROLLBACK ends it');
  }

  async #invoke<T>(
    command: Ask,
    run: (invocation: Invocation, options: StatementOptions) => Promise<T>,
    action: 'query' | 'inspect' = 'query',
  ): Promise<T> {
    if (this.isOpen && isControl(command))
      throw new ServiceError('REL_NOT_IMPLEMENTED', `${command.verb} cannot run in a transaction: send it by itself`);
    return this.#enter(action, command.mayWrite, run);
  }

  /** Runs one invocation of the gate. */
  async #enter<T>(
    action: Action,
    writes: boolean,
    run: (invocation: Invocation, options: StatementOptions) => Promise<T>,
    transaction = this.#transaction,
  ): Promise<T> {
    const { variables, readLimit, writeLimit, authenticator, gate, ids, connection } = this.#parts;
    this.#recorded = false;
    this.#refuseFailed();
    if (writes && action !== 'schema' && variables.show('transaction_read_only') === 'on')
      throw new ServiceError('REL_READ_ONLY', 'the transaction is READ ONLY');
    const limiter = writes ? writeLimit : readLimit;
    admitAddress(this.#parts, limiter, connection.clientIp);
    const caller = authenticator.renew(this.#parts.caller);
    const options = this.options();
    const asked = {
      action,
      purpose: options.purpose,
      correlationId: ids.next(),
      breakGlass: variables.statedTerm('annals.break_glass'),
      accessScopeRef: variables.statedTerm('annals.access_scope_ref'),
      gone: options.signal,
      onCost: refundOf(limiter, connection.clientIp),
      transaction: transaction ?? undefined,
    } as const;
    this.#recorded = true;
    return gate.invoke(caller, asked, (invocation) => run(invocation, options));
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

  #describe(invocation: Invocation, text: string, oids: readonly number[]): Promise<Description> {
    const { planner, variables } = this.#parts;
    const purpose = variables.statedTerm('annals.purpose');
    const parameterTypes = oids.map(statedType);
    const asked = { sql: text, parameterTypes, writes: true, dialect: 'wide', time: variables.time } as const;
    return planner.describe(invocation, { ...asked, ...(purpose !== null && { purpose }) });
  }

  /** Runs within the invocation of the statement: it infers the types that the client did not state. */
  async #values(invocation: Invocation, text: string, bound: BoundParameter): Promise<(Literal | TypedValue)[]> {
    const { values, oids, types } = bound;
    const stated = values.map((_, i) => statedType(oids[i] ?? 0));
    const isOpen = stated.includes(null);
    const described = types === null && isOpen ? (await this.#describe(invocation, text, oids)).parameters : null;
    if (described !== null) bound.onTypes?.(described);
    const parameterTypes = types ?? described ?? [];
    return valuesOf(
      bound,
      stated.map((type, i) => type ?? parameterTypes[i] ?? null),
    );
  }
}

function advisoryColumns({ act, column }: AdvisoryLockCall): readonly OutputColumn[] {
  return act === 'try' || act === 'free'
    ? [{ name: column, type: 'boolean' }]
    : [{ name: column, type: 'string', shownAs: 'void' }];
}

/** Commands that a failed transaction still takes. */
const endsFailure: ReadonlySet<SqlCommand['kind']> = new Set<SqlCommand['kind']>(['commit', 'rollback', 'rollback-to']);

const noSavepoint = (name: string): ServiceError =>
  new ProtocolRefusal('3B001', 'REL_NOT_FOUND', `there is no savepoint ${JSON.stringify(name)}`);

/** Values without a stated type are text. */
function valuesOf({ values, formats, oids }: BoundParameter, types: readonly (ParameterType | null)[]): (Literal | TypedValue)[] {
  return values.map((bytes, i) => {
    const format = formats.length > 1 ? formats[i]! : (formats[0] ?? 0);
    return parameterOf(bytes, format, oids[i] ?? 0, types[i] ?? 'string', i + 1);
  });
}
