/**
 * One connection of ClickHouse's native protocol: questions in, blocks out. Invariants: a client that has not authenticated can
 * do nothing but log in; an access record is appended before a row leaves; a Cancel ends the running query, so queries run while
 * further messages are read, and any other message waits until the query is over; nothing is sent between the pieces of a block.
 */
import { ServiceError } from '../../errors.ts';
import type { Caller } from '../../governance/caller.ts';
import { smallAnswer } from '../../planner/execution/small-answer.ts';
import { inTurns } from '../../planner/expressions/resumable-steps.ts';
import type { Answer } from '../../planner/planner-contract.ts';
import { ConnectionCaller } from '../shared/connection-caller.ts';
import type { Connection, Session } from '../shared/socket-connection.ts';
import { checkOrganization, organizationOf } from '../shared/credentials.ts';
import { shuttingDown } from '../shared/drain.ts';
import { admitAddress, type DoorDependencies, recordRefusal } from '../shared/door-dependencies.ts';
import { withTimeLimit } from '../shared/time-limit.ts';
import { checkCaller, checkErased } from '../shared/stream-lease.ts';
import { noTerms } from '../shared/session-terms.ts';
import { answerColumnarQuery, branchOf, type Question, timeLimitOf } from './columnar-query.ts';
import { BlockWriter, blocksOf } from './native-blocks.ts';
import { columnarError, refusedAs } from './errors.ts';
import { toCompressedBlocks } from './compressed-blocks.ts';
import type { NativeMessage, NativeQuery, TableName } from './native-codec.ts';
import {
  blockInfo,
  dataHead,
  emptyBlock,
  endOfStream,
  exception,
  hello,
  pong,
  profile,
  progress,
  tablesStatus,
} from './packets.ts';
import type { RunningQueries } from './running-queries.ts';
import { ColumnarSettings } from './settings.ts';
import { statementSteps } from './statement.ts';
import { type KnownTypes, typesKnownTo } from './column-types.ts';

export const doorName = 'columnar-native';

/** Smaller pieces leave in company. */
const companyBytes = 64 * 1024;
const sliceMs = 2;

export interface NativeDependencies extends DoorDependencies {
  readonly running: RunningQueries;
}

interface LoggedIn {
  readonly revision: number;
  readonly client: KnownTypes;
  /** The settings of SET. */
  readonly settings: ColumnarSettings;
  /** On the branch of the database. */
  caller: Caller;
  database: string;
}

interface Running {
  readonly cancel: AbortController;
  readonly done: Promise<void>;
}

export class NativeSession implements Session<NativeMessage> {
  readonly #parts: NativeDependencies;
  readonly #connection: Connection;
  #login: LoggedIn | null = null;
  /** Its block of no rows is to come. */
  #query: NativeQuery | null = null;
  #running: Running | null = null;

  constructor(parts: NativeDependencies, connection: Connection) {
    this.#parts = parts;
    this.#connection = connection;
  }

  get atRest(): boolean {
    return this.#query === null && this.#running === null;
  }

  get isLoggedIn(): boolean {
    return this.#login !== null;
  }

  /** Resolves once the question that runs is answered. */
  get done(): Promise<void> {
    return this.#running?.done ?? Promise.resolve();
  }

  handle(message: NativeMessage): Promise<void> | void {
    if (message.kind === 'cancel') return this.#running?.cancel.abort();
    if (this.#running !== null) return this.done.then(() => this.#handle(message));
    return this.#handle(message);
  }

  #handle(message: NativeMessage): Promise<void> | void {
    switch (message.kind) {
      case 'hello':
        return this.#hello(message);
      case 'http':
        this.#connection.write(Buffer.from(wrongPort));
        return this.#connection.end();
      case 'query':
        this.#query = message;
        return;
      case 'empty-block': {
        const query = this.#query;
        this.#query = null;
        // Clients that were refused an INSERT may end its rows all the same.
        if (query !== null) this.#start(query);
        return;
      }
      case 'ping':
        return this.#connection.write(pong);
      case 'tables-status':
        return this.#tables(message.tables);
      case 'cancel':
      case 'keep-alive':
        return;
    }
  }

  farewell(error: ServiceError): Uint8Array {
    // A client that asks nothing reads nothing: the next thing that it reads would be taken for an answer.
    if (error.code === 'REL_UNAVAILABLE' && this.#login !== null && this.atRest) return new Uint8Array(0);
    return exceptionOf(error);
  }

  close(): void {
    this.#running?.cancel.abort();
  }

  async #hello({ user, password, revision, ...stated }: Extract<NativeMessage, { kind: 'hello' }>): Promise<void> {
    const { authenticator, gate, readLimit } = this.#parts;
    const { clientIp } = this.#connection;
    if (this.#connection.isDraining) throw shuttingDown();
    const database = stated.database || 'default';
    let caller: Caller | null = null;
    try {
      admitAddress(this.#parts, readLimit, clientIp);
      const proven = authenticator.passwordCaller(password, { door: doorName, clientIp, organization: organizationOf(user) });
      caller = { ...proven, branch: branchOf(database) };
      checkOrganization(this.#parts, caller);
      gate.checkStanding(caller);
      if (caller.branch !== 'main') await this.#checkBranch(caller);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      const recordedError = await recordRefusal(this.#parts, caller ?? { door: doorName, clientIp }, 'inspect', error);
      await this.#connection.loginRefused();
      throw recordedError;
    }
    this.#login = { caller, database, revision, client: typesKnownTo(revision), settings: new ColumnarSettings() };
    this.#connection.markAuthenticated();
    this.#connection.write(hello());
  }

  async #checkBranch(caller: Caller): Promise<void> {
    const asked = { action: 'inspect', purpose: null, correlationId: this.#parts.ids.next() } as const;
    await this.#parts.gate.invoke({ ...caller, branch: 'main' }, asked, async (invocation) => {
      if (invocation.branches().some(({ name }) => name === caller.branch)) return;
      const detail = `Database ${caller.branch} doesn't exist: it names a branch, and default is main`;
      throw refusedAs('database', new ServiceError('REL_NOT_FOUND', detail));
    });
  }

  #start(query: NativeQuery): void {
    const cancel = new AbortController();
    const { gone } = this.#connection;
    const leave = (): void => cancel.abort();
    gone.addEventListener('abort', leave, { once: true });
    const done = this.#run(query, cancel.signal).finally(() => {
      gone.removeEventListener('abort', leave);
      this.#running = null;
      // No other event ends a draining connection before the client sends something.
      if (this.#connection.isDraining) this.#connection.end();
    });
    this.#running = { cancel, done };
  }

  /** Never throws: every error is sent to the client, or ends the connection. */
  async #run(query: NativeQuery, signal: AbortSignal): Promise<void> {
    const connectionCaller = new ConnectionCaller(this.#parts, this.#login!.caller, signal);
    const out = new Outgoing(this.#connection);
    try {
      await this.#obey(connectionCaller, query, out);
    } catch (error) {
      const recordedError = await connectionCaller.refusalOf(error);
      if (!out.dropBlock()) return this.#connection.end();
      // The client knows that it has cancelled: it waits for the end, and for no error.
      out.put(signal.aborted && recordedError.code === 'REL_CANCELLED' ? endOfStream : exceptionOf(recordedError));
    }
    out.flush();
  }

  async #obey(connectionCaller: ConnectionCaller, query: NativeQuery, out: Outgoing): Promise<void> {
    const login = this.#login!;
    const { running, ids, yieldTurn } = this.#parts;
    const settings = new ColumnarSettings(login.settings);
    settings.setAll(new Map(query.settings));
    const facts = { database: login.database, user: login.caller.principal, parameters: noParameters };
    const statement = await inTurns(statementSteps(query.text, facts), yieldTurn);
    switch (statement.kind) {
      case 'question': {
        settings.setAll(statement.settings);
        const { ended, end } = running.begin(login.caller, query.id || ids.next());
        try {
          const answer = await this.#answer(connectionCaller, statement, settings, ended);
          return await this.#send(out, query, answer, AbortSignal.any([connectionCaller.gone, ended]));
        } finally {
          end();
        }
      }
      case 'insert':
        throw new ServiceError('REL_READ_ONLY', 'Cannot insert here: this door reads. Insert over HTTP');
      case 'set':
        // Applies all settings or none.
        new ColumnarSettings().setAll(statement.settings);
        login.settings.setAll(statement.settings);
        return out.put(endOfStream);
      case 'use':
        await this.#use(statement.database);
        return out.put(endOfStream);
      case 'kill': {
        const killed = running.kill(login.caller, statement.queryId);
        const rows = killed ? [['finished', statement.queryId, login.caller.principal]] : [];
        return this.#send(out, query, smallAnswer(killedColumns, rows, noFacts), connectionCaller.gone);
      }
    }
  }

  async #use(database: string): Promise<void> {
    const login = this.#login!;
    const caller = { ...login.caller, branch: branchOf(database) };
    if (caller.branch !== 'main') await this.#checkBranch(caller);
    Object.assign(login, { caller, database });
  }

  #answer(
    connectionCaller: ConnectionCaller,
    question: Question,
    settings: ColumnarSettings,
    ended: AbortSignal,
  ): Promise<Answer> {
    const { planner, clock } = this.#parts;
    const { database, client } = this.#login!;
    const gone = AbortSignal.any([connectionCaller.gone, ended]);
    return withTimeLimit(timeLimitOf(settings, clock, gone), (signal) =>
      connectionCaller.ask({ terms: settings.terms(null) }, async ({ invocation, keep }) => {
        const answer = await answerColumnarQuery(planner, invocation, { question, settings, database, client, signal });
        keep(answer);
        return answer;
      }),
    );
  }

  /** Sends a block with the columns, the blocks of rows, and the totals. */
  async #send(out: Outgoing, { compressed }: NativeQuery, answer: Answer, signal: AbortSignal): Promise<void> {
    const { revision, client, caller } = this.#login!;
    const writer = new BlockWriter(answer.columns, client);
    const pace = new Pace(this.#parts, this.#connection, caller, answer);
    let blocks = 0;
    const { columns, batches, rowCount } = answer;
    for (const rows of columns.length === 0 ? [] : withHeader(blocksOf(batches))) {
      if (signal.aborted) throw new ServiceError('REL_CANCELLED', 'the question was cancelled');
      out.beginBlock();
      const pieces = withInfo(writer.pieces(rows), out);
      for (const piece of compressed ? toCompressedBlocks(pieces) : pieces) {
        out.put(piece);
        if (out.isFull || pace.isOver) {
          out.flush();
          await pace.next();
        }
      }
      out.endBlock();
      if (rows.length > 0) blocks++;
    }
    const figures = { rows: rowCount, bytes: out.bytes };
    out.put(profile({ ...figures, blocks, beforeLimit: answer.cursor === null ? null : answer.estimatedTotalHits }));
    out.put(progress(figures, revision));
    if (columns.length > 0) {
      out.put(dataHead);
      for (const piece of compressed ? toCompressedBlocks([emptyBlock]) : [emptyBlock]) out.put(piece);
    }
    out.put(endOfStream);
  }

  /** Which of these tables are there for the caller. */
  async #tables(tables: readonly TableName[]): Promise<void> {
    const connectionCaller = new ConnectionCaller(this.#parts, this.#login!.caller, this.#connection.gone);
    try {
      const there = await connectionCaller.ask({ terms: noTerms, action: 'inspect' }, ({ invocation }) => {
        const { catalog } = invocation.snapshot();
        return tables.filter(({ table }) => catalog.type(table) !== undefined);
      });
      this.#connection.write(tablesStatus(there));
    } catch (error) {
      this.#connection.write(exceptionOf(await connectionCaller.refusalOf(error)));
    }
  }
}

const exceptionOf = (error: ServiceError): Buffer => exception(columnarError(error).number, error.message);

const noParameters: ReadonlyMap<string, string> = new Map();
const noFacts = { asOfSystem: 0n, costUnits: 0, processingTimeMs: 0 } as const;
const killedColumns = ['kill_status', 'query_id', 'user'].map((name) => ({ name, type: 'string' as const }));

function* withHeader<T>(blocks: Iterable<readonly T[]>): Generator<readonly T[], void> {
  yield [];
  yield* blocks;
}

/** `out` counts the bytes of the rows before compression. */
function* withInfo(pieces: Iterable<Uint8Array>, out: Outgoing): Generator<Uint8Array, void> {
  yield blockInfo;
  for (const piece of pieces) {
    out.bytes += piece.length;
    yield piece;
  }
}

/** Bytes on their way to the client. */
class Outgoing {
  /** Bytes of the rows so far, before compression. */
  bytes = 0;
  readonly #connection: Connection;
  #pieces: Uint8Array[] = [];
  #length = 0;
  /** The number of pieces when the current block began; null: there is none. */
  #blockFrom: number | null = null;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  get isFull(): boolean {
    return this.#length >= companyBytes;
  }

  beginBlock(): void {
    this.#blockFrom = this.#pieces.length;
    this.put(dataHead);
  }

  endBlock(): void {
    this.#blockFrom = null;
  }

  /** False where part of the block has left: nothing can follow but its rest. */
  dropBlock(): boolean {
    if (this.#blockFrom === null) return true;
    if (this.#blockFrom < 0) return false;
    this.#pieces.length = this.#blockFrom;
    this.#blockFrom = null;
    return true;
  }

  put(piece: Uint8Array): void {
    if (piece.length === 0) return;
    this.#pieces.push(piece);
    this.#length += piece.length;
  }

  flush(): void {
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#length = 0;
    if (this.#blockFrom !== null && pieces.length > this.#blockFrom) this.#blockFrom = -1;
    let small: Uint8Array[] = [];
    for (const piece of pieces) {
      if (piece.length < companyBytes) {
        small.push(piece);
        continue;
      }
      this.#join(small);
      small = [];
      this.#connection.write(piece);
    }
    this.#join(small);
  }

  #join(pieces: readonly Uint8Array[]): void {
    if (pieces.length > 0) this.#connection.write(pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces));
  }
}

/** Continues when the client has taken most of the bytes, others had a turn, and the caller is still admitted. */
class Pace {
  readonly #parts: DoorDependencies;
  readonly #connection: Connection;
  readonly #caller: Caller;
  readonly #answer: Answer;
  #sliceStart: number;

  constructor(parts: DoorDependencies, connection: Connection, caller: Caller, answer: Answer) {
    this.#parts = parts;
    this.#connection = connection;
    this.#caller = caller;
    this.#answer = answer;
    this.#sliceStart = parts.clock.monotonicMs();
    checkErased(answer);
  }

  get isOver(): boolean {
    return this.#parts.clock.monotonicMs() - this.#sliceStart > sliceMs;
  }

  async next(): Promise<void> {
    const { clock, yieldTurn } = this.#parts;
    await this.#connection.caughtUp();
    if (this.#connection.gone.aborted) throw new ServiceError('REL_CANCELLED', 'the client went away');
    if (this.isOver) {
      await yieldTurn();
      this.#sliceStart = clock.monotonicMs();
    }
    checkCaller(this.#parts, this.#caller);
    checkErased(this.#answer);
  }
}

const wrongPort =
  'HTTP/1.0 400 Bad Request\r\n\r\nThis port speaks the native protocol of ClickHouse: use that of columnar HTTP.\r\n';
