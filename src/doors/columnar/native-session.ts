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
const packetJoinBytes = 64 * 1024;
const blockSliceMs = 2;

export interface NativeDependencies extends DoorDependencies {
  readonly running: RunningQueries;
}

interface NativeLogin {
  readonly revision: number;
  readonly client: KnownTypes;
  /** The settings of SET. */
  readonly settings: ColumnarSettings;
  /** On the branch of the database. */
  caller: Caller;
  database: string;
}

interface RunningNativeQuery {
  readonly cancel: AbortController;
  readonly done: Promise<void>;
}

export class NativeSession implements Session<NativeMessage> {
  readonly #nativeParts: NativeDependencies;
  readonly #nativeConnection: Connection;
  #nativeLogin: NativeLogin | null = null;
  /** Its block of no rows is to come. */
  #query: NativeQuery | null = null;
  #runningQuery: RunningNativeQuery | null = null;

  constructor(nativeParts: NativeDependencies, nativeConnection: Connection) {
    this.#nativeParts = nativeParts;
    this.#nativeConnection = nativeConnection;
  }

  get atRest(): boolean {
    return this.#query === null && this.#runningQuery === null;
  }

  get isLoggedIn(): boolean {
    return this.#nativeLogin !== null;
  }

  /** Resolves once the question that runs is answered. */
  get done(): Promise<void> {
    return this.#runningQuery?.done ?? Promise.resolve();
  }

  handle(nativeMessage: NativeMessage): Promise<void> | void {
    if (nativeMessage.kind === 'cancel') return this.#runningQuery?.cancel.abort();
    if (this.#runningQuery !== null) return this.done.then(() => this.#handlePacket(nativeMessage));
    return this.#handlePacket(nativeMessage);
  }

  #handlePacket(nativeMessage: NativeMessage): Promise<void> | void {
    switch (nativeMessage.kind) {
      case 'hello':
        return this.#helloPacket(nativeMessage);
      case 'http':
        this.#nativeConnection.write(Buffer.from(wrongPortReply));
        return this.#nativeConnection.end();
      case 'query':
        this.#query = nativeMessage;
        return;
      case 'empty-block': {
        const nativeQuery = this.#query;
        this.#query = null;
        // Clients that were refused an INSERT may end its rows all the same.
        if (nativeQuery !== null) this.#startQuery(nativeQuery);
        return;
      }
      case 'ping':
        return this.#nativeConnection.write(pong);
      case 'tables-status':
        return this.#replyTablesStatus(nativeMessage.tables);
      case 'cancel':
      case 'keep-alive':
        return;
    }
  }

  farewell(farewellError: ServiceError): Uint8Array {
    // A client that asks nothing reads nothing: the next thing that it reads would be taken for an answer.
    if (farewellError.code === 'REL_UNAVAILABLE' && this.#nativeLogin !== null && this.atRest) return new Uint8Array(0);
    return exceptionPacketOf(farewellError);
  }

  close(): void {
    this.#runningQuery?.cancel.abort();
  }

  async #helloPacket({
    user: nativeUser,
    password: nativePassword,
    revision: clientRevision,
    ...statedHello
  }: Extract<NativeMessage, { kind: 'hello' }>): Promise<void> {
    const { authenticator, gate, readLimit } = this.#nativeParts;
    const { clientIp } = this.#nativeConnection;
    if (this.#nativeConnection.isDraining) throw shuttingDown();
    const statedDatabase = statedHello.database || 'default';
    let nativeCaller: Caller | null = null;
    try {
      admitAddress(this.#nativeParts, readLimit, clientIp);
      const provenCaller = authenticator.passwordCaller(nativePassword, {
        door: doorName,
        clientIp,
        organization: organizationOf(nativeUser),
      });
      nativeCaller = { ...provenCaller, branch: branchOf(statedDatabase) };
      checkOrganization(this.#nativeParts, nativeCaller);
      gate.checkStanding(nativeCaller);
      if (nativeCaller.branch !== 'main') await this.#checkDatabaseBranch(nativeCaller);
    } catch (loginError) {
      if (!(loginError instanceof ServiceError)) throw loginError;
      const recordedError = await recordRefusal(
        this.#nativeParts,
        nativeCaller ?? { door: doorName, clientIp },
        'inspect',
        loginError,
      );
      await this.#nativeConnection.loginRefused();
      throw recordedError;
    }
    this.#nativeLogin = {
      caller: nativeCaller,
      database: statedDatabase,
      revision: clientRevision,
      client: typesKnownTo(clientRevision),
      settings: new ColumnarSettings(),
    };
    this.#nativeConnection.markAuthenticated();
    this.#nativeConnection.write(hello());
  }

  async #checkDatabaseBranch(branchCaller: Caller): Promise<void> {
    const inspectRequest = { action: 'inspect', purpose: null, correlationId: this.#nativeParts.ids.next() } as const;
    await this.#nativeParts.gate.invoke({ ...branchCaller, branch: 'main' }, inspectRequest, async (invocation) => {
      if (invocation.branches().some(({ name: branchName }) => branchName === branchCaller.branch)) return;
      const databaseDetail = `Database ${branchCaller.branch} doesn't exist: it names a branch, and default is main`;
      throw refusedAs('database', new ServiceError('REL_NOT_FOUND', databaseDetail));
    });
  }

  #startQuery(nativeQuery: NativeQuery): void {
    const queryCancel = new AbortController();
    const { gone: connectionGone } = this.#nativeConnection;
    const cancelQuery = (): void => queryCancel.abort();
    connectionGone.addEventListener('abort', cancelQuery, { once: true });
    const queryDone = this.#runQuery(nativeQuery, queryCancel.signal).finally(() => {
      connectionGone.removeEventListener('abort', cancelQuery);
      this.#runningQuery = null;
      // No other event ends a draining connection before the client sends something.
      if (this.#nativeConnection.isDraining) this.#nativeConnection.end();
    });
    this.#runningQuery = { cancel: queryCancel, done: queryDone };
  }

  /** Never throws: every error is sent to the client, or ends the connection. */
  async #runQuery(nativeQuery: NativeQuery, querySignal: AbortSignal): Promise<void> {
    const connectionCaller = new ConnectionCaller(this.#nativeParts, this.#nativeLogin!.caller, querySignal);
    const outgoingPackets = new OutgoingPackets(this.#nativeConnection);
    try {
      await this.#executeQuery(connectionCaller, nativeQuery, outgoingPackets);
    } catch (queryError) {
      const recordedError = await connectionCaller.refusalOf(queryError);
      if (!outgoingPackets.dropBlock()) return this.#nativeConnection.end();
      // The client knows that it has cancelled: it waits for the end, and for no error.
      outgoingPackets.put(
        querySignal.aborted && recordedError.code === 'REL_CANCELLED' ? endOfStream : exceptionPacketOf(recordedError),
      );
    }
    outgoingPackets.flush();
  }

  async #executeQuery(
    connectionCaller: ConnectionCaller,
    nativeQuery: NativeQuery,
    outgoingPackets: OutgoingPackets,
  ): Promise<void> {
    const nativeLogin = this.#nativeLogin!;
    const { running: runningQueries, ids, yieldTurn } = this.#nativeParts;
    const querySettings = new ColumnarSettings(nativeLogin.settings);
    querySettings.setAll(new Map(nativeQuery.settings));
    const statementFacts = { database: nativeLogin.database, user: nativeLogin.caller.principal, parameters: noQueryParameters };
    const columnarStatement = await inTurns(statementSteps(nativeQuery.text, statementFacts), yieldTurn);
    switch (columnarStatement.kind) {
      case 'question': {
        querySettings.setAll(columnarStatement.settings);
        const { ended: queryEnded, end: endQuery } = runningQueries.begin(nativeLogin.caller, nativeQuery.id || ids.next());
        try {
          const questionAnswer = await this.#answerQuestion(connectionCaller, columnarStatement, querySettings, queryEnded);
          return await this.#sendBlocks(
            outgoingPackets,
            nativeQuery,
            questionAnswer,
            AbortSignal.any([connectionCaller.gone, queryEnded]),
          );
        } finally {
          endQuery();
        }
      }
      case 'insert':
        throw new ServiceError('REL_READ_ONLY', 'Cannot insert here: this door reads. Insert over HTTP');
      case 'set':
        // Applies all settings or none.
        new ColumnarSettings().setAll(columnarStatement.settings);
        nativeLogin.settings.setAll(columnarStatement.settings);
        return outgoingPackets.put(endOfStream);
      case 'use':
        await this.#useDatabase(columnarStatement.database);
        return outgoingPackets.put(endOfStream);
      case 'kill': {
        const isKilled = runningQueries.kill(nativeLogin.caller, columnarStatement.queryId);
        const killedRows = isKilled ? [['finished', columnarStatement.queryId, nativeLogin.caller.principal]] : [];
        return this.#sendBlocks(
          outgoingPackets,
          nativeQuery,
          smallAnswer(killQueryColumns, killedRows, noQueryFacts),
          connectionCaller.gone,
        );
      }
    }
  }

  async #useDatabase(usedDatabase: string): Promise<void> {
    const nativeLogin = this.#nativeLogin!;
    const branchCaller = { ...nativeLogin.caller, branch: branchOf(usedDatabase) };
    if (branchCaller.branch !== 'main') await this.#checkDatabaseBranch(branchCaller);
    Object.assign(nativeLogin, { caller: branchCaller, database: usedDatabase });
  }

  #answerQuestion(
    connectionCaller: ConnectionCaller,
    question: Question,
    querySettings: ColumnarSettings,
    queryEnded: AbortSignal,
  ): Promise<Answer> {
    const { planner, clock } = this.#nativeParts;
    const { database, client } = this.#nativeLogin!;
    const questionGone = AbortSignal.any([connectionCaller.gone, queryEnded]);
    return withTimeLimit(timeLimitOf(querySettings, clock, questionGone), (questionSignal) =>
      connectionCaller.ask({ terms: querySettings.terms(null) }, async ({ invocation, keep: keepAnswer }) => {
        const questionAnswer = await answerColumnarQuery(planner, invocation, {
          question,
          settings: querySettings,
          database,
          client,
          signal: questionSignal,
        });
        keepAnswer(questionAnswer);
        return questionAnswer;
      }),
    );
  }

  /** Sends a block with the columns, the blocks of rows, and the totals. */
  async #sendBlocks(
    outgoingPackets: OutgoingPackets,
    { compressed: isCompressed }: NativeQuery,
    sentAnswer: Answer,
    sendSignal: AbortSignal,
  ): Promise<void> {
    const { revision, client, caller } = this.#nativeLogin!;
    const blockWriter = new BlockWriter(sentAnswer.columns, client);
    const nativePace = new NativePace(this.#nativeParts, this.#nativeConnection, caller, sentAnswer);
    let blockCount = 0;
    const { columns: answerColumns, batches: answerBatches, rowCount } = sentAnswer;
    for (const blockRows of answerColumns.length === 0 ? [] : withHeaderBlock(blocksOf(answerBatches))) {
      if (sendSignal.aborted) throw new ServiceError('REL_CANCELLED', 'the question was cancelled');
      outgoingPackets.beginBlock();
      const blockPieces = withBlockInfo(blockWriter.pieces(blockRows), outgoingPackets);
      for (const blockPiece of isCompressed ? toCompressedBlocks(blockPieces) : blockPieces) {
        outgoingPackets.put(blockPiece);
        if (outgoingPackets.isFull || nativePace.isOver) {
          outgoingPackets.flush();
          await nativePace.next();
        }
      }
      outgoingPackets.endBlock();
      if (blockRows.length > 0) blockCount++;
    }
    const progressFigures = { rows: rowCount, bytes: outgoingPackets.bytes };
    outgoingPackets.put(
      profile({
        ...progressFigures,
        blocks: blockCount,
        beforeLimit: sentAnswer.cursor === null ? null : sentAnswer.estimatedTotalHits,
      }),
    );
    outgoingPackets.put(progress(progressFigures, revision));
    if (answerColumns.length > 0) {
      outgoingPackets.put(dataHead);
      for (const blockPiece of isCompressed ? toCompressedBlocks([emptyBlock]) : [emptyBlock]) outgoingPackets.put(blockPiece);
    }
    outgoingPackets.put(endOfStream);
  }

  /** Which of these tables are there for the caller. */
  async #replyTablesStatus(statusTables: readonly TableName[]): Promise<void> {
    const connectionCaller = new ConnectionCaller(this.#nativeParts, this.#nativeLogin!.caller, this.#nativeConnection.gone);
    try {
      const existingTables = await connectionCaller.ask({ terms: noTerms, action: 'inspect' }, ({ invocation }) => {
        const { catalog } = invocation.snapshot();
        return statusTables.filter(({ table: tableName }) => catalog.type(tableName) !== undefined);
      });
      this.#nativeConnection.write(tablesStatus(existingTables));
    } catch (statusError) {
      this.#nativeConnection.write(exceptionPacketOf(await connectionCaller.refusalOf(statusError)));
    }
  }
}

const exceptionPacketOf = (serviceError: ServiceError): Buffer =>
  exception(columnarError(serviceError).number, serviceError.message);

const noQueryParameters: ReadonlyMap<string, string> = new Map();
const noQueryFacts = { asOfSystem: 0n, costUnits: 0, processingTimeMs: 0 } as const;
const killQueryColumns = ['kill_status', 'query_id', 'user'].map((name) => ({ name, type: 'string' as const }));

function* withHeaderBlock<T>(answerBlocks: Iterable<readonly T[]>): Generator<readonly T[], void> {
  yield [];
  yield* answerBlocks;
}

/** `outgoingPackets` counts the bytes of the rows before compression. */
function* withBlockInfo(blockPieces: Iterable<Uint8Array>, outgoingPackets: OutgoingPackets): Generator<Uint8Array, void> {
  yield blockInfo;
  for (const blockPiece of blockPieces) {
    outgoingPackets.bytes += blockPiece.length;
    yield blockPiece;
  }
}

/** Bytes on their way to the client. */
class OutgoingPackets {
  /** Bytes of the rows so far, before compression. */
  bytes = 0;
  readonly #nativeConnection: Connection;
  #packetPieces: Uint8Array[] = [];
  #packetLength = 0;
  /** The number of pieces when the current block began; null: there is none. */
  #blockStart: number | null = null;

  constructor(nativeConnection: Connection) {
    this.#nativeConnection = nativeConnection;
  }

  get isFull(): boolean {
    return this.#packetLength >= packetJoinBytes;
  }

  beginBlock(): void {
    this.#blockStart = this.#packetPieces.length;
    this.put(dataHead);
  }

  endBlock(): void {
    this.#blockStart = null;
  }

  /** False where part of the block has left: nothing can follow but its rest. */
  dropBlock(): boolean {
    if (this.#blockStart === null) return true;
    if (this.#blockStart < 0) return false;
    this.#packetPieces.length = this.#blockStart;
    this.#blockStart = null;
    return true;
  }

  put(packetPiece: Uint8Array): void {
    if (packetPiece.length === 0) return;
    this.#packetPieces.push(packetPiece);
    this.#packetLength += packetPiece.length;
  }

  flush(): void {
    const packetPieces = this.#packetPieces;
    this.#packetPieces = [];
    this.#packetLength = 0;
    if (this.#blockStart !== null && packetPieces.length > this.#blockStart) this.#blockStart = -1;
    let smallPieces: Uint8Array[] = [];
    for (const packetPiece of packetPieces) {
      if (packetPiece.length < packetJoinBytes) {
        smallPieces.push(packetPiece);
        continue;
      }
      this.#writeJoined(smallPieces);
      smallPieces = [];
      this.#nativeConnection.write(packetPiece);
    }
    this.#writeJoined(smallPieces);
  }

  #writeJoined(joinedPieces: readonly Uint8Array[]): void {
    if (joinedPieces.length > 0)
      this.#nativeConnection.write(joinedPieces.length === 1 ? joinedPieces[0]! : Buffer.concat(joinedPieces));
  }
}

/** Continues when the client has taken most of the bytes, others had a turn, and the caller is still admitted. */
class NativePace {
  readonly #doorParts: DoorDependencies;
  readonly #nativeConnection: Connection;
  readonly #nativeCaller: Caller;
  readonly #pacedAnswer: Answer;
  #blockSliceStart: number;

  constructor(doorParts: DoorDependencies, nativeConnection: Connection, nativeCaller: Caller, pacedAnswer: Answer) {
    this.#doorParts = doorParts;
    this.#nativeConnection = nativeConnection;
    this.#nativeCaller = nativeCaller;
    this.#pacedAnswer = pacedAnswer;
    this.#blockSliceStart = doorParts.clock.monotonicMs();
    checkErased(pacedAnswer);
  }

  get isOver(): boolean {
    return this.#doorParts.clock.monotonicMs() - this.#blockSliceStart > blockSliceMs;
  }

  async next(): Promise<void> {
    const { clock, yieldTurn } = this.#doorParts;
    await this.#nativeConnection.caughtUp();
    if (this.#nativeConnection.gone.aborted) throw new ServiceError('REL_CANCELLED', 'the client went away');
    if (this.isOver) {
      await yieldTurn();
      this.#blockSliceStart = clock.monotonicMs();
    }
    checkCaller(this.#doorParts, this.#nativeCaller);
    checkErased(this.#pacedAnswer);
  }
}

const wrongPortReply =
  'HTTP/1.0 400 Bad Request\r\n\r\nThis port speaks the native protocol of ClickHouse: use that of columnar HTTP.\r\n';
