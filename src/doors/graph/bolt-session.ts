/**
 * One connection of Bolt: requests in, answers out, in their order. Invariants: a client that has not authenticated can do
 * nothing but log in; an access record is appended before a row leaves; after a failure nothing is done until RESET. RESET also
 * ends the running request, so requests run while further messages are read. Source: neo4j.com/docs/bolt/current/bolt/message and
 * /server-state.
 */
import { ServiceError } from '../../errors.ts';
import type { Caller } from '../../governance/caller.ts';
import type { Transaction } from '../../governance/gate-contract.ts';
import { inTurns } from '../../planner/expressions/resumable-steps.ts';
import { graphVersion } from '../../planner/system-catalogue/graph-relations.ts';
import type { Answer, Executed, Written } from '../../planner/planner-contract.ts';
import { type CommandRequest, ConnectionCaller, type CommandInvocation } from '../shared/connection-caller.ts';
import type { Connection, Session } from '../shared/socket-connection.ts';
import { checkOrganization, organizationOf } from '../shared/credentials.ts';
import { shuttingDown } from '../shared/drain.ts';
import { admitAddress, type DoorDependencies, recordRefusal } from '../shared/door-dependencies.ts';
import { withTimeLimit } from '../shared/time-limit.ts';
import { checkCaller, checkErased } from '../shared/stream-lease.ts';
import { noTerms, type Terms, timeOfTerms, withTerm } from '../shared/session-terms.ts';
import type { BoltFrame, Version } from './bolt-codec.ts';
import { BoltReplies } from './bolt-replies.ts';
import { isGoodbye, isReset, RequestQueue, requests } from './bolt-requests.ts';
import { type OpenAnswer, OpenAnswers, skipRows } from './open-answers.ts';
import { isMap, type PackStreamValue, type PackStreamMap, PackStreamStructure, unpackSteps } from './packstream.ts';
import { cellOf, parametersOf } from './values.ts';

export const doorName = 'graph-binary';

/** Drivers check that it begins so. 5.13 came with Bolt 5.4. */
const serverAgent = `Neo4j/${graphVersion}`;
const recordSliceMs = 2;
const routeTableSeconds = 300n;
/** Tools say by these who they are. */
const toolMetadata: ReadonlySet<string> = new Set(['app', 'type', 'version', 'query']);
const noPackedMap: PackStreamMap = new Map();

interface OpenBoltTransaction {
  readonly transaction: Transaction;
  readonly terms: Terms;
  readonly readOnly: boolean;
}

export class BoltSession implements Session<BoltFrame> {
  readonly #boltParts: DoorDependencies;
  readonly #boltConnection: Connection;
  readonly #boltReplies = new BoltReplies();
  #boltVersion: Version | null = null;
  #hasGreeted = false;
  #isUtcPatched = false;
  /** Null until somebody has logged on. Asks until the client goes, or the next RESET. */
  #connectionCaller: ConnectionCaller | null = null;
  #openTransaction: OpenBoltTransaction | null = null;
  #lastTransaction: Transaction | null = null;
  readonly #openAnswers = new OpenAnswers();
  #hasFailed = false;
  #hasEnded = false;
  readonly #requestQueue = new RequestQueue();
  #runningRequests: Promise<void> | null = null;
  #requestCancel = new AbortController();

  constructor(boltParts: DoorDependencies, boltConnection: Connection) {
    this.#boltParts = boltParts;
    this.#boltConnection = boltConnection;
  }

  get isLoggedIn(): boolean {
    return this.#connectionCaller !== null;
  }

  /** Resolves once all that was asked is answered. */
  get done(): Promise<void> {
    return this.#runningRequests ?? Promise.resolve();
  }

  get atRest(): boolean {
    return this.#runningRequests === null && this.#openTransaction === null && this.#openAnswers.count === 0;
  }

  handle(boltFrame: BoltFrame): Promise<void> | void {
    if (boltFrame.kind === 'handshake') return this.#agreeOnVersion(boltFrame.version);
    if (boltFrame.kind === 'noop' || this.#hasEnded) return;
    const { body: requestBody } = boltFrame;
    this.#requestQueue.push(requestBody);
    if (isReset(requestBody) && this.#runningRequests !== null) this.#requestCancel.abort();
    this.#runningRequests ??= this.#runQueue();
    // Nothing is read ahead of a login, and no more than a little of what waits.
    if (this.#connectionCaller === null || this.#requestQueue.isFull) return this.#runningRequests;
  }

  farewell(farewellError: ServiceError): Uint8Array {
    // A client at rest would take it for the answer to its next request, and one without a handshake reads no messages.
    if (this.#boltVersion === null || (farewellError.code === 'REL_UNAVAILABLE' && this.atRest)) return new Uint8Array(0);
    this.#boltReplies.putFailure(farewellError);
    return this.#boltReplies.take();
  }

  close(): void {
    this.#hasEnded = true;
    this.#requestCancel.abort();
    this.#forgetAnswers();
  }

  #agreeOnVersion(agreedVersion: Version | null): void {
    this.#boltVersion = agreedVersion;
    this.#boltConnection.write(Buffer.from([0, 0, agreedVersion?.minor ?? 0, agreedVersion?.major ?? 0]));
    if (agreedVersion === null) return this.#boltConnection.end();
    this.#isUtcPatched = agreedVersion.major >= 5;
  }

  /** Never throws. */
  async #runQueue(): Promise<void> {
    for (
      let requestBody = this.#requestQueue.shift();
      requestBody !== undefined && !this.#hasEnded;
      requestBody = this.#requestQueue.shift()
    ) {
      await this.#runRequest(requestBody);
      // The answer of a RUN leaves with the rows that its PULL, which is there already, asks for.
      if (!this.#requestQueue.pullIsNext) this.#flushReplies();
    }
    this.#runningRequests = null;
    if (this.#boltConnection.isDraining && this.atRest) this.#boltConnection.end();
  }

  async #runRequest(requestBody: Buffer): Promise<void> {
    if (isReset(requestBody)) return this.#resetSession();
    if (this.#requestQueue.hasReset || (this.#hasFailed && !isGoodbye(requestBody))) return this.#boltReplies.putIgnored();
    const connectionCaller = this.#connectionCaller;
    connectionCaller?.beginCommand();
    try {
      const boltRequest = await inTurns(unpackSteps(requestBody), this.#boltParts.yieldTurn);
      if (!(boltRequest instanceof PackStreamStructure)) throw malformedRequest();
      await this.#dispatchRequest(connectionCaller, boltRequest);
    } catch (requestError) {
      await this.#replyFailure(connectionCaller, requestError);
    }
  }

  async #replyFailure(connectionCaller: ConnectionCaller | null, requestError: unknown): Promise<void> {
    this.#forgetAnswers();
    this.#hasFailed = true;
    if (connectionCaller !== null) return this.#boltReplies.putFailure(await connectionCaller.refusalOf(requestError));
    if (!(requestError instanceof ServiceError)) this.#boltParts.reportFailure(requestError);
    this.#boltReplies.putFailure(
      requestError instanceof ServiceError ? requestError : new ServiceError('REL_INTERNAL', 'internal error'),
    );
    // Drivers of a login that is refused go away; from 5.1 on they may try another.
    if (this.#connectionCaller === null && !this.#hasLogon) this.#endSession();
  }

  get #hasLogon(): boolean {
    return this.#boltVersion!.major === 5 && this.#boltVersion!.minor >= 1;
  }

  #dispatchRequest(
    connectionCaller: ConnectionCaller | null,
    { tag: requestTag, fields: requestFields }: PackStreamStructure,
  ): Promise<void> | void {
    if (requestTag === requests.goodbye) return this.#endSession();
    if (requestTag === requests.hello && !this.#hasGreeted) return this.#helloRequest(mapFieldAt(requestFields, 0));
    if (requestTag === requests.logon && this.#hasLogon && this.#hasGreeted && this.#connectionCaller === null)
      return this.#logonRequest(mapFieldAt(requestFields, 0));
    if (connectionCaller === null) throw new ServiceError('REL_UNAUTHENTICATED', 'log on first');
    switch (requestTag) {
      case requests.logoff:
        if (!this.#hasLogon) break;
        this.#checkIdle();
        this.#connectionCaller = null;
        return this.#replySuccess();
      case requests.run:
        return this.#runStatement(
          connectionCaller,
          textFieldAt(requestFields, 0),
          mapFieldAt(requestFields, 1),
          mapFieldAt(requestFields, 2),
        );
      case requests.pull:
      case requests.discard:
        return this.#pullRecords(connectionCaller, mapFieldAt(requestFields, 0), requestTag === requests.pull);
      case requests.begin:
        return this.#beginTransaction(connectionCaller, mapFieldAt(requestFields, 0));
      case requests.commit:
        return this.#commitTransaction(connectionCaller);
      case requests.rollback:
        this.#requireTransaction();
        this.#forgetAnswers();
        return this.#replySuccess();
      case requests.route:
        return this.#replyRoutes(mapFieldAt(requestFields, 0), requestFields[2]);
      case requests.telemetry:
        if (this.#boltVersion!.major === 5 && this.#boltVersion!.minor >= 4) return this.#replySuccess();
    }
    throw new ServiceError('REL_INVALID', `the request 0x${requestTag.toString(16)} is not allowed here`);
  }

  async #helloRequest(boltMetadata: PackStreamMap): Promise<void> {
    const helloPatches = boltMetadata.get('patch_bolt');
    const isPatchedToUtc = this.#boltVersion!.major === 4 && Array.isArray(helloPatches) && helloPatches.includes('utc');
    if (!this.#hasLogon) await this.#loginCaller(boltMetadata);
    this.#hasGreeted = true;
    if (isPatchedToUtc) this.#isUtcPatched = true;
    this.#replySuccess([
      ['server', serverAgent],
      ['connection_id', `bolt-${this.#boltParts.ids.next()}`],
      ['hints', noPackedMap],
      ...(isPatchedToUtc ? ([['patch_bolt', ['utc']]] as const) : []),
    ]);
  }

  async #logonRequest(boltMetadata: PackStreamMap): Promise<void> {
    await this.#loginCaller(boltMetadata);
    this.#replySuccess();
  }

  async #loginCaller(boltMetadata: PackStreamMap): Promise<void> {
    const { authenticator, gate, readLimit } = this.#boltParts;
    const { clientIp } = this.#boltConnection;
    if (this.#boltConnection.isDraining) throw shuttingDown();
    let boltCaller: Caller | null = null;
    try {
      admitAddress(this.#boltParts, readLimit, clientIp);
      if (boltMetadata.get('scheme') !== 'basic')
        throw new ServiceError('REL_UNAUTHENTICATED', 'clients authenticate by the scheme basic');
      const boltUser = boltMetadata.get('principal');
      const boltPassword = boltMetadata.get('credentials');
      if (typeof boltUser !== 'string' || typeof boltPassword !== 'string') throw malformedRequest();
      boltCaller = authenticator.passwordCaller(boltPassword, {
        door: doorName,
        clientIp,
        organization: organizationOf(boltUser),
      });
      checkOrganization(this.#boltParts, boltCaller);
      gate.checkStanding(boltCaller);
    } catch (loginError) {
      if (!(loginError instanceof ServiceError)) throw loginError;
      const recordedError = await recordRefusal(
        this.#boltParts,
        boltCaller ?? { door: doorName, clientIp },
        'inspect',
        loginError,
      );
      await this.#boltConnection.loginRefused();
      throw recordedError;
    }
    this.#connectionCaller = this.#askerOf(boltCaller);
    this.#boltConnection.markAuthenticated();
  }

  #askerOf(boltCaller: Caller): ConnectionCaller {
    return new ConnectionCaller(
      this.#boltParts,
      boltCaller,
      AbortSignal.any([this.#boltConnection.gone, this.#requestCancel.signal]),
    );
  }

  async #runStatement(
    connectionCaller: ConnectionCaller,
    cypherText: string,
    packedParameters: PackStreamMap,
    runExtra: PackStreamMap,
  ): Promise<void> {
    const openTransaction = this.#openTransaction;
    if (openTransaction === null) this.#checkIdle();
    this.#openAnswers.checkRoom();
    const boltTerms = openTransaction?.terms ?? boltTermsOf(runExtra);
    const isReadOnly = openTransaction?.readOnly ?? runExtra.get('mode') === 'r';
    const commandRequest = { terms: boltTerms, writes: !isReadOnly, transaction: openTransaction?.transaction ?? null };
    const executedStatement = await this.#askInTime(connectionCaller, commandRequest, runExtra, (boltAsking, statementSignal) =>
      this.#executeStatement(boltAsking, {
        text: cypherText,
        given: packedParameters,
        terms: boltTerms,
        readOnly: isReadOnly,
        signal: statementSignal,
      }),
    );
    const answerId = this.#openAnswers.add(executedStatement, boltTerms);
    this.#replySuccess([
      ['fields', executedStatement.answer.columns.map(({ name: fieldName }) => fieldName)],
      ['t_first', BigInt(Math.round(executedStatement.answer.processingTimeMs))],
      ...(openTransaction === null ? [] : ([['qid', answerId]] as const)),
    ]);
  }

  async #executeStatement(
    { invocation, keep: keepAnswer }: CommandInvocation,
    {
      text: cypherText,
      given: packedParameters,
      terms: boltTerms,
      readOnly: isReadOnly,
      signal: statementSignal,
    }: BoltStatement & { readonly signal: AbortSignal },
  ): Promise<Executed> {
    const { planner } = this.#boltParts;
    const { purpose, durability } = boltTerms;
    const cypherQuestion = {
      sql: cypherText,
      dialect: 'graph',
      parameters: parametersOf(packedParameters),
      time: timeOfTerms(boltTerms),
      purpose,
      signal: statementSignal,
    } as const;
    // Past states are read, never written.
    const executedStatement =
      isReadOnly || cypherQuestion.time !== 'current'
        ? { answer: await planner.query(invocation, { ...cypherQuestion, queriesOnly: true }), written: null }
        : await planner.execute(invocation, { ...cypherQuestion, sync: durability === 'sync', graph: true });
    keepAnswer(executedStatement.answer);
    return executedStatement;
  }

  /** Within the time that the client gives it. */
  async #askInTime<T>(
    connectionCaller: ConnectionCaller,
    commandRequest: CommandRequest,
    runExtra: PackStreamMap,
    runAsked: (boltAsking: CommandInvocation, statementSignal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const txTimeout = runExtra.get('tx_timeout');
    const isTimeoutGiven = typeof txTimeout === 'bigint' && txTimeout > 0n;
    const timeoutMs = isTimeoutGiven ? Number(txTimeout < 2n ** 31n ? txTimeout : 2n ** 31n - 1n) : null;
    const timeoutText = 'the query ran longer than the timeout that the client set';
    return withTimeLimit(
      { clock: this.#boltParts.clock, gone: connectionCaller.gone, milliseconds: timeoutMs, errorText: timeoutText },
      (statementSignal) => connectionCaller.ask(commandRequest, (boltAsking) => runAsked(boltAsking, statementSignal)),
    );
  }

  async #pullRecords(connectionCaller: ConnectionCaller, boltMetadata: PackStreamMap, isPull: boolean): Promise<void> {
    const [answerId, openAnswer] = this.#openAnswers.findNamed(boltMetadata);
    const wantedRecords = boltMetadata.get('n');
    if (typeof wantedRecords !== 'bigint' || wantedRecords === 0n || wantedRecords < -1n)
      throw new ServiceError('REL_INVALID', 'n is a number of rows, or -1');
    const { answer: pulledAnswer, written } = openAnswer.executed;
    const recordsMax = wantedRecords === -1n ? Infinity : Number(wantedRecords);
    if (isPull) await this.#sendRecords(connectionCaller, openAnswer, recordsMax);
    else skipRows(openAnswer, recordsMax);
    if (openAnswer.batch < pulledAnswer.batches.length) return this.#replySuccess([['has_more', true]]);
    this.#openAnswers.delete(answerId);
    const answerNotices = pulledAnswer.notices ?? [];
    this.#replySuccess([
      ['type', statementType(pulledAnswer, written)],
      ['t_last', 0n],
      ['db', openAnswer.terms.branch ?? 'neo4j'],
      ...(hasChanges(written) ? ([['stats', statementStats(written!)]] as const) : []),
      ...(answerNotices.length > 0 ? ([['notifications', answerNotices.map(noticeNotification)]] as const) : []),
    ]);
  }

  async #sendRecords(connectionCaller: ConnectionCaller, openAnswer: OpenAnswer, recordsMax: number): Promise<void> {
    const { clock, yieldTurn } = this.#boltParts;
    const { answer: sentAnswer } = openAnswer.executed;
    const { columns: answerColumns, batches: answerBatches } = sentAnswer;
    const boltForms = { utc: this.#isUtcPatched, elementIds: this.#boltVersion!.major >= 5 };
    checkCaller(this.#boltParts, connectionCaller.caller);
    checkErased(sentAnswer);
    let recordSliceStart = clock.monotonicMs();
    for (let recordsLeft = recordsMax; recordsLeft > 0 && openAnswer.batch < answerBatches.length; ) {
      const { columns: recordVectors, selection, first, count: batchRowCount } = answerBatches[openAnswer.batch]!;
      if (openAnswer.row === batchRowCount) {
        openAnswer.batch++;
        openAnswer.row = 0;
        continue;
      }
      const i = openAnswer.row++;
      const recordRow = selection === null ? first + i : selection[i]!;
      const recordPacker = this.#boltReplies.beginRecord(answerColumns.length);
      for (let i = 0; i < answerColumns.length; i++)
        recordPacker.value(cellOf(recordVectors[i]!, answerColumns[i]!, recordRow, boltForms));
      this.#boltReplies.endRecord();
      recordsLeft--;
      if (!this.#boltReplies.isMuch && clock.monotonicMs() - recordSliceStart <= recordSliceMs) continue;
      this.#flushReplies();
      await this.#boltConnection.caughtUp();
      await yieldTurn();
      if (connectionCaller.gone.aborted) throw new ServiceError('REL_CANCELLED', 'the answer was cancelled');
      checkCaller(this.#boltParts, connectionCaller.caller);
      checkErased(sentAnswer);
      recordSliceStart = clock.monotonicMs();
    }
    skipRows(openAnswer, 0);
  }

  async #beginTransaction(connectionCaller: ConnectionCaller, beginExtra: PackStreamMap): Promise<void> {
    this.#checkIdle();
    const boltTerms = boltTermsOf(beginExtra);
    const { authenticator, gate } = this.#boltParts;
    const renewedCaller = authenticator.renew(connectionCaller.caller);
    const begunTransaction = gate.begin(
      boltTerms.branch === null ? renewedCaller : { ...renewedCaller, branch: boltTerms.branch },
      this.#lastTransaction,
    );
    this.#openTransaction = { transaction: begunTransaction, terms: boltTerms, readOnly: beginExtra.get('mode') === 'r' };
    this.#lastTransaction = begunTransaction;
    this.#replySuccess();
  }

  async #commitTransaction(connectionCaller: ConnectionCaller): Promise<void> {
    const { transaction: committedTransaction, terms: boltTerms } = this.#requireTransaction();
    if (this.#openAnswers.count > 0) throw new ServiceError('REL_INVALID', 'answers are open: take or discard them first');
    const commandRequest = {
      terms: boltTerms,
      action: 'ingest',
      writes: !committedTransaction.isEmpty,
      transaction: committedTransaction,
    } as const;
    await connectionCaller.ask(commandRequest, ({ invocation }) => invocation.commit({ sync: boltTerms.durability === 'sync' }));
    this.#forgetAnswers();
    this.#replySuccess();
  }

  #requireTransaction(): OpenBoltTransaction {
    if (this.#openTransaction === null) throw new ServiceError('REL_INVALID', 'no transaction is open: BEGIN one first');
    return this.#openTransaction;
  }

  #checkIdle(): void {
    if (this.#openTransaction !== null) throw new ServiceError('REL_INVALID', 'a transaction is open');
    if (this.#openAnswers.count > 0) throw new ServiceError('REL_INVALID', 'an answer is open: take or discard it first');
  }

  /** A single server has all roles, under the address by which the client reached it. */
  #replyRoutes(routingContext: PackStreamMap, routeDatabase: PackStreamValue | undefined): void {
    const routeAddress = routingContext.get('address');
    if (typeof routeAddress !== 'string') throw new ServiceError('REL_INVALID', 'the routing context names no address');
    const namedDatabase = isMap(routeDatabase) ? routeDatabase.get('db') : routeDatabase;
    const routeServers = ['ROUTE', 'READ', 'WRITE'].map((routeRole) =>
      packedMapOf([
        ['addresses', [routeAddress]],
        ['role', routeRole],
      ]),
    );
    const routedDatabase = typeof namedDatabase === 'string' ? namedDatabase : 'neo4j';
    this.#replySuccess([
      [
        'rt',
        packedMapOf([
          ['ttl', routeTableSeconds],
          ['db', routedDatabase],
          ['servers', routeServers],
        ]),
      ],
    ]);
  }

  #resetSession(): void {
    this.#requestQueue.countReset();
    if (!this.#requestQueue.hasReset && this.#requestCancel.signal.aborted) {
      this.#requestCancel = new AbortController();
      this.#connectionCaller &&= this.#askerOf(this.#connectionCaller.caller);
    }
    this.#forgetAnswers();
    if (this.#connectionCaller === null && !this.#hasGreeted) return this.#endSession();
    this.#hasFailed = false;
    this.#replySuccess();
  }

  /** Drops everything that is open. */
  #forgetAnswers(): void {
    this.#openTransaction?.transaction.end();
    this.#openTransaction = null;
    this.#openAnswers.clear();
  }

  #endSession(): void {
    this.#flushReplies();
    this.#hasEnded = true;
    this.#forgetAnswers();
    this.#boltConnection.end();
  }

  #replySuccess(successEntries?: readonly (readonly [string, PackStreamValue])[]): void {
    this.#boltReplies.putSuccess(successEntries);
  }

  #flushReplies(): void {
    this.#boltReplies.flush(this.#boltConnection);
  }
}

interface BoltStatement {
  readonly text: string;
  readonly given: PackStreamMap;
  readonly terms: Terms;
  readonly readOnly: boolean;
}

const malformedRequest = (): ServiceError => new ServiceError('REL_INVALID', 'malformed request');
const packedMapOf = (packedEntries: readonly (readonly [string, PackStreamValue])[]): PackStreamMap => new Map(packedEntries);

function mapFieldAt(requestFields: readonly PackStreamValue[], fieldIndex: number): PackStreamMap {
  const mapField = requestFields[fieldIndex] ?? noPackedMap;
  if (!isMap(mapField)) throw malformedRequest();
  return mapField;
}

function textFieldAt(requestFields: readonly PackStreamValue[], fieldIndex: number): string {
  const textField = requestFields[fieldIndex];
  if (typeof textField !== 'string') throw malformedRequest();
  return textField;
}

/** Terms from the metadata of a transaction, and from the database: a branch. */
function boltTermsOf(statementExtra: PackStreamMap): Terms {
  const impersonatedUser = statementExtra.get('imp_user');
  if (impersonatedUser !== undefined && impersonatedUser !== null)
    throw new ServiceError('REL_NOT_IMPLEMENTED', 'impersonation is not supported');
  const boltDatabase = statementExtra.get('db') ?? '';
  if (typeof boltDatabase !== 'string') throw malformedRequest();
  let boltTerms = withTerm(noTerms, 'branch', boltDatabase === 'neo4j' ? '' : boltDatabase);
  for (const [metadataName, metadataValue] of mapFieldAt([statementExtra.get('tx_metadata') ?? noPackedMap], 0)) {
    if (toolMetadata.has(metadataName)) continue;
    if (typeof metadataValue !== 'string' && typeof metadataValue !== 'bigint')
      throw new ServiceError('REL_INVALID', `${metadataName} must be a text`);
    boltTerms = withTerm(boltTerms, metadataName, String(metadataValue));
  }
  return boltTerms;
}

const hasChanges = (writtenCounts: Written | null): boolean =>
  writtenCounts !== null && writtenCounts.inserted + writtenCounts.updated + writtenCounts.deleted > 0;

/** Counts of written graph elements; of rows that SQL wrote, only that there were some. */
function statementStats({ graph: graphCounts }: Written): PackStreamMap {
  const statementCounts = [
    ['nodes-created', graphCounts?.nodes ?? 0],
    ['labels-added', graphCounts?.nodes ?? 0],
    ['relationships-created', graphCounts?.relationships ?? 0],
    ['properties-set', graphCounts?.properties ?? 0],
  ] as const;
  return packedMapOf([
    ['contains-updates', true],
    ...statementCounts.flatMap(([countName, statementCount]) =>
      statementCount > 0 ? [[countName, BigInt(statementCount)] as const] : [],
    ),
  ]);
}

function statementType({ columns: answerColumns }: Answer, writtenCounts: Written | null): string {
  if (writtenCounts === null) return 'r';
  return answerColumns.length > 0 ? 'rw' : 'w';
}

const noticeNotification = (answerNotice: string): PackStreamMap =>
  packedMapOf([
    ['code', 'Neo.ClientNotification.Statement.Notice'],
    ['title', 'About the rows of this answer'],
    ['description', answerNotice],
    ['severity', 'INFORMATION'],
    ['category', 'GENERIC'],
  ]);
