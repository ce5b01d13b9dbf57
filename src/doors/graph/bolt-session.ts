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
const agent = `Neo4j/${graphVersion}`;
const sliceMs = 2;
const routeSeconds = 300n;
/** Tools say by these who they are. */
const ofTools: ReadonlySet<string> = new Set(['app', 'type', 'version', 'query']);
const noMap: PackStreamMap = new Map();

interface OpenTransaction {
  readonly transaction: Transaction;
  readonly terms: Terms;
  readonly readOnly: boolean;
}

export class BoltSession implements Session<BoltFrame> {
  readonly #parts: DoorDependencies;
  readonly #connection: Connection;
  readonly #replies = new BoltReplies();
  #version: Version | null = null;
  #greeted = false;
  #utc = false;
  /** Null until somebody has logged on. Asks until the client goes, or the next RESET. */
  #connectionCaller: ConnectionCaller | null = null;
  #open: OpenTransaction | null = null;
  #last: Transaction | null = null;
  readonly #answers = new OpenAnswers();
  #failed = false;
  #ended = false;
  readonly #queue = new RequestQueue();
  #running: Promise<void> | null = null;
  #cancel = new AbortController();

  constructor(parts: DoorDependencies, connection: Connection) {
    this.#parts = parts;
    this.#connection = connection;
  }

  get isLoggedIn(): boolean {
    return this.#connectionCaller !== null;
  }

  /** Resolves once all that was asked is answered. */
  get done(): Promise<void> {
    return this.#running ?? Promise.resolve();
  }

  get atRest(): boolean {
    return this.#running === null && this.#open === null && this.#answers.count === 0;
  }

  handle(frame: BoltFrame): Promise<void> | void {
    if (frame.kind === 'handshake') return this.#shakeHands(frame.version);
    if (frame.kind === 'noop' || this.#ended) return;
    const { body } = frame;
    this.#queue.push(body);
    if (isReset(body) && this.#running !== null) this.#cancel.abort();
    this.#running ??= this.#runAll();
    // Nothing is read ahead of a login, and no more than a little of what waits.
    if (this.#connectionCaller === null || this.#queue.isFull) return this.#running;
  }

  farewell(error: ServiceError): Uint8Array {
    // A client at rest would take it for the answer to its next request, and one without a handshake reads no messages.
    if (this.#version === null || (error.code === 'REL_UNAVAILABLE' && this.atRest)) return new Uint8Array(0);
    this.#replies.putFailure(error);
    return this.#replies.take();
  }

  close(): void {
    this.#ended = true;
    this.#cancel.abort();
    this.#forget();
  }

  #shakeHands(version: Version | null): void {
    this.#version = version;
    this.#connection.write(Buffer.from([0, 0, version?.minor ?? 0, version?.major ?? 0]));
    if (version === null) return this.#connection.end();
    this.#utc = version.major >= 5;
  }

  /** Never throws. */
  async #runAll(): Promise<void> {
    for (let body = this.#queue.shift(); body !== undefined && !this.#ended; body = this.#queue.shift()) {
      await this.#one(body);
      // The answer of a RUN leaves with the rows that its PULL, which is there already, asks for.
      if (!this.#queue.pullIsNext) this.#flush();
    }
    this.#running = null;
    if (this.#connection.isDraining && this.atRest) this.#connection.end();
  }

  async #one(body: Buffer): Promise<void> {
    if (isReset(body)) return this.#reset();
    if (this.#queue.hasReset || (this.#failed && !isGoodbye(body))) return this.#replies.putIgnored();
    const connectionCaller = this.#connectionCaller;
    connectionCaller?.beginCommand();
    try {
      const message = await inTurns(unpackSteps(body), this.#parts.yieldTurn);
      if (!(message instanceof PackStreamStructure)) throw malformedError();
      await this.#obey(connectionCaller, message);
    } catch (error) {
      await this.#fail(connectionCaller, error);
    }
  }

  async #fail(connectionCaller: ConnectionCaller | null, error: unknown): Promise<void> {
    this.#forget();
    this.#failed = true;
    if (connectionCaller !== null) return this.#replies.putFailure(await connectionCaller.refusalOf(error));
    if (!(error instanceof ServiceError)) this.#parts.reportFailure(error);
    this.#replies.putFailure(error instanceof ServiceError ? error : new ServiceError('REL_INTERNAL', 'internal error'));
    // Drivers of a login that is refused go away; from 5.1 on they may try another.
    if (this.#connectionCaller === null && !this.#logsOn) this.#end();
  }

  get #logsOn(): boolean {
    return this.#version!.major === 5 && this.#version!.minor >= 1;
  }

  #obey(connectionCaller: ConnectionCaller | null, { tag, fields }: PackStreamStructure): Promise<void> | void {
    if (tag === requests.goodbye) return this.#end();
    if (tag === requests.hello && !this.#greeted) return this.#hello(mapAt(fields, 0));
    if (tag === requests.logon && this.#logsOn && this.#greeted && this.#connectionCaller === null)
      return this.#logon(mapAt(fields, 0));
    if (connectionCaller === null) throw new ServiceError('REL_UNAUTHENTICATED', 'log on first');
    switch (tag) {
      case requests.logoff:
        if (!this.#logsOn) break;
        this.#checkIdle();
        this.#connectionCaller = null;
        return this.#success();
      case requests.run:
        return this.#run(connectionCaller, textAt(fields, 0), mapAt(fields, 1), mapAt(fields, 2));
      case requests.pull:
      case requests.discard:
        return this.#pull(connectionCaller, mapAt(fields, 0), tag === requests.pull);
      case requests.begin:
        return this.#begin(connectionCaller, mapAt(fields, 0));
      case requests.commit:
        return this.#commit(connectionCaller);
      case requests.rollback:
        this.#inTransaction();
        this.#forget();
        return this.#success();
      case requests.route:
        return this.#route(mapAt(fields, 0), fields[2]);
      case requests.telemetry:
        if (this.#version!.major === 5 && this.#version!.minor >= 4) return this.#success();
    }
    throw new ServiceError('REL_INVALID', `the request 0x${tag.toString(16)} is not allowed here`);
  }

  async #hello(boltMetadata: PackStreamMap): Promise<void> {
    const patches = boltMetadata.get('patch_bolt');
    const patched = this.#version!.major === 4 && Array.isArray(patches) && patches.includes('utc');
    if (!this.#logsOn) await this.#login(boltMetadata);
    this.#greeted = true;
    if (patched) this.#utc = true;
    this.#success([
      ['server', agent],
      ['connection_id', `bolt-${this.#parts.ids.next()}`],
      ['hints', noMap],
      ...(patched ? ([['patch_bolt', ['utc']]] as const) : []),
    ]);
  }

  async #logon(boltMetadata: PackStreamMap): Promise<void> {
    await this.#login(boltMetadata);
    this.#success();
  }

  async #login(boltMetadata: PackStreamMap): Promise<void> {
    const { authenticator, gate, readLimit } = this.#parts;
    const { clientIp } = this.#connection;
    if (this.#connection.isDraining) throw shuttingDown();
    let caller: Caller | null = null;
    try {
      admitAddress(this.#parts, readLimit, clientIp);
      if (boltMetadata.get('scheme') !== 'basic')
        throw new ServiceError('REL_UNAUTHENTICATED', 'clients authenticate by the scheme basic');
      const user = boltMetadata.get('principal');
      const password = boltMetadata.get('credentials');
      if (typeof user !== 'string' || typeof password !== 'string') throw malformedError();
      caller = authenticator.passwordCaller(password, { door: doorName, clientIp, organization: organizationOf(user) });
      checkOrganization(this.#parts, caller);
      gate.checkStanding(caller);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      const recordedError = await recordRefusal(this.#parts, caller ?? { door: doorName, clientIp }, 'inspect', error);
      await this.#connection.loginRefused();
      throw recordedError;
    }
    this.#connectionCaller = this.#askerOf(caller);
    this.#connection.markAuthenticated();
  }

  #askerOf(caller: Caller): ConnectionCaller {
    return new ConnectionCaller(this.#parts, caller, AbortSignal.any([this.#connection.gone, this.#cancel.signal]));
  }

  async #run(
    connectionCaller: ConnectionCaller,
    text: string,
    packedParameters: PackStreamMap,
    extra: PackStreamMap,
  ): Promise<void> {
    const open = this.#open;
    if (open === null) this.#checkIdle();
    this.#answers.checkRoom();
    const terms = open?.terms ?? termsOf(extra);
    const readOnly = open?.readOnly ?? extra.get('mode') === 'r';
    const commandRequest = { terms, writes: !readOnly, transaction: open?.transaction ?? null };
    const executed = await this.#ask(connectionCaller, commandRequest, extra, (asking, signal) =>
      this.#execute(asking, { text, given: packedParameters, terms, readOnly, signal }),
    );
    const id = this.#answers.add(executed, terms);
    this.#success([
      ['fields', executed.answer.columns.map(({ name }) => name)],
      ['t_first', BigInt(Math.round(executed.answer.processingTimeMs))],
      ...(open === null ? [] : ([['qid', id]] as const)),
    ]);
  }

  async #execute(
    { invocation, keep }: CommandInvocation,
    { text, given: packedParameters, terms, readOnly, signal }: Statement & { readonly signal: AbortSignal },
  ): Promise<Executed> {
    const { planner } = this.#parts;
    const { purpose, durability } = terms;
    const question = {
      sql: text,
      dialect: 'graph',
      parameters: parametersOf(packedParameters),
      time: timeOfTerms(terms),
      purpose,
      signal,
    } as const;
    // Past states are read, never written.
    const executed =
      readOnly || question.time !== 'current'
        ? { answer: await planner.query(invocation, { ...question, queriesOnly: true }), written: null }
        : await planner.execute(invocation, { ...question, sync: durability === 'sync', graph: true });
    keep(executed.answer);
    return executed;
  }

  /** Within the time that the client gives it. */
  async #ask<T>(
    connectionCaller: ConnectionCaller,
    commandRequest: CommandRequest,
    extra: PackStreamMap,
    run: (asking: CommandInvocation, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const limit = extra.get('tx_timeout');
    const isGiven = typeof limit === 'bigint' && limit > 0n;
    const milliseconds = isGiven ? Number(limit < 2n ** 31n ? limit : 2n ** 31n - 1n) : null;
    const errorText = 'the query ran longer than the timeout that the client set';
    return withTimeLimit(
      { clock: this.#parts.clock, gone: connectionCaller.gone, milliseconds, errorText: errorText },
      (signal) => connectionCaller.ask(commandRequest, (asking) => run(asking, signal)),
    );
  }

  async #pull(connectionCaller: ConnectionCaller, boltMetadata: PackStreamMap, sends: boolean): Promise<void> {
    const [id, open] = this.#answers.findNamed(boltMetadata);
    const wanted = boltMetadata.get('n');
    if (typeof wanted !== 'bigint' || wanted === 0n || wanted < -1n)
      throw new ServiceError('REL_INVALID', 'n is a number of rows, or -1');
    const { answer, written } = open.executed;
    const most = wanted === -1n ? Infinity : Number(wanted);
    if (sends) await this.#send(connectionCaller, open, most);
    else skipRows(open, most);
    if (open.batch < answer.batches.length) return this.#success([['has_more', true]]);
    this.#answers.delete(id);
    const notices = answer.notices ?? [];
    this.#success([
      ['type', typeOf(answer, written)],
      ['t_last', 0n],
      ['db', open.terms.branch ?? 'neo4j'],
      ...(changes(written) ? ([['stats', statsOf(written!)]] as const) : []),
      ...(notices.length > 0 ? ([['notifications', notices.map(notification)]] as const) : []),
    ]);
  }

  async #send(connectionCaller: ConnectionCaller, open: OpenAnswer, most: number): Promise<void> {
    const { clock, yieldTurn } = this.#parts;
    const { answer } = open.executed;
    const { columns, batches } = answer;
    const forms = { utc: this.#utc, elementIds: this.#version!.major >= 5 };
    checkCaller(this.#parts, connectionCaller.caller);
    checkErased(answer);
    let sliceStart = clock.monotonicMs();
    for (let left = most; left > 0 && open.batch < batches.length; ) {
      const { columns: vectors, selection, first, count } = batches[open.batch]!;
      if (open.row === count) {
        open.batch++;
        open.row = 0;
        continue;
      }
      const i = open.row++;
      const row = selection === null ? first + i : selection[i]!;
      const packer = this.#replies.beginRecord(columns.length);
      for (let i = 0; i < columns.length; i++) packer.value(cellOf(vectors[i]!, columns[i]!, row, forms));
      this.#replies.endRecord();
      left--;
      if (!this.#replies.isMuch && clock.monotonicMs() - sliceStart <= sliceMs) continue;
      this.#flush();
      await this.#connection.caughtUp();
      await yieldTurn();
      if (connectionCaller.gone.aborted) throw new ServiceError('REL_CANCELLED', 'the answer was cancelled');
      checkCaller(this.#parts, connectionCaller.caller);
      checkErased(answer);
      sliceStart = clock.monotonicMs();
    }
    skipRows(open, 0);
  }

  async #begin(connectionCaller: ConnectionCaller, extra: PackStreamMap): Promise<void> {
    this.#checkIdle();
    const terms = termsOf(extra);
    const { authenticator, gate } = this.#parts;
    const renewed = authenticator.renew(connectionCaller.caller);
    const transaction = gate.begin(terms.branch === null ? renewed : { ...renewed, branch: terms.branch }, this.#last);
    this.#open = { transaction, terms, readOnly: extra.get('mode') === 'r' };
    this.#last = transaction;
    this.#success();
  }

  async #commit(connectionCaller: ConnectionCaller): Promise<void> {
    const { transaction, terms } = this.#inTransaction();
    if (this.#answers.count > 0) throw new ServiceError('REL_INVALID', 'answers are open: take or discard them first');
    const commandRequest = { terms, action: 'ingest', writes: !transaction.isEmpty, transaction } as const;
    await connectionCaller.ask(commandRequest, ({ invocation }) => invocation.commit({ sync: terms.durability === 'sync' }));
    this.#forget();
    this.#success();
  }

  #inTransaction(): OpenTransaction {
    if (this.#open === null) throw new ServiceError('REL_INVALID', 'no transaction is open: BEGIN one first');
    return this.#open;
  }

  #checkIdle(): void {
    if (this.#open !== null) throw new ServiceError('REL_INVALID', 'a transaction is open');
    if (this.#answers.count > 0) throw new ServiceError('REL_INVALID', 'an answer is open: take or discard it first');
  }

  /** A single server has all roles, under the address by which the client reached it. */
  #route(context: PackStreamMap, third: PackStreamValue | undefined): void {
    const address = context.get('address');
    if (typeof address !== 'string') throw new ServiceError('REL_INVALID', 'the routing context names no address');
    const named = isMap(third) ? third.get('db') : third;
    const servers = ['ROUTE', 'READ', 'WRITE'].map((role) =>
      mapOf([
        ['addresses', [address]],
        ['role', role],
      ]),
    );
    const db = typeof named === 'string' ? named : 'neo4j';
    this.#success([
      [
        'rt',
        mapOf([
          ['ttl', routeSeconds],
          ['db', db],
          ['servers', servers],
        ]),
      ],
    ]);
  }

  #reset(): void {
    this.#queue.countReset();
    if (!this.#queue.hasReset && this.#cancel.signal.aborted) {
      this.#cancel = new AbortController();
      this.#connectionCaller &&= this.#askerOf(this.#connectionCaller.caller);
    }
    this.#forget();
    if (this.#connectionCaller === null && !this.#greeted) return this.#end();
    this.#failed = false;
    this.#success();
  }

  /** Drops everything that is open. */
  #forget(): void {
    this.#open?.transaction.end();
    this.#open = null;
    this.#answers.clear();
  }

  #end(): void {
    this.#flush();
    this.#ended = true;
    this.#forget();
    this.#connection.end();
  }

  #success(entries?: readonly (readonly [string, PackStreamValue])[]): void {
    this.#replies.putSuccess(entries);
  }

  #flush(): void {
    this.#replies.flush(this.#connection);
  }
}

interface Statement {
  readonly text: string;
  readonly given: PackStreamMap;
  readonly terms: Terms;
  readonly readOnly: boolean;
}

const malformedError = (): ServiceError => new ServiceError('REL_INVALID', 'malformed request');
const mapOf = (entries: readonly (readonly [string, PackStreamValue])[]): PackStreamMap => new Map(entries);

function mapAt(fields: readonly PackStreamValue[], at: number): PackStreamMap {
  const field = fields[at] ?? noMap;
  if (!isMap(field)) throw malformedError();
  return field;
}

function textAt(fields: readonly PackStreamValue[], at: number): string {
  const field = fields[at];
  if (typeof field !== 'string') throw malformedError();
  return field;
}

/** Terms from the metadata of a transaction, and from the database: a branch. */
function termsOf(extra: PackStreamMap): Terms {
  const impersonated = extra.get('imp_user');
  if (impersonated !== undefined && impersonated !== null)
    throw new ServiceError('REL_NOT_IMPLEMENTED', 'impersonation is not supported');
  const db = extra.get('db') ?? '';
  if (typeof db !== 'string') throw malformedError();
  let terms = withTerm(noTerms, 'branch', db === 'neo4j' ? '' : db);
  for (const [name, value] of mapAt([extra.get('tx_metadata') ?? noMap], 0)) {
    if (ofTools.has(name)) continue;
    if (typeof value !== 'string' && typeof value !== 'bigint') throw new ServiceError('REL_INVALID', `${name} must be a text`);
    terms = withTerm(terms, name, String(value));
  }
  return terms;
}

const changes = (written: Written | null): boolean =>
  written !== null && written.inserted + written.updated + written.deleted > 0;

/** Counts of written graph elements; of rows that SQL wrote, only that there were some. */
function statsOf({ graph }: Written): PackStreamMap {
  const counts = [
    ['nodes-created', graph?.nodes ?? 0],
    ['labels-added', graph?.nodes ?? 0],
    ['relationships-created', graph?.relationships ?? 0],
    ['properties-set', graph?.properties ?? 0],
  ] as const;
  return mapOf([
    ['contains-updates', true],
    ...counts.flatMap(([name, count]) => (count > 0 ? [[name, BigInt(count)] as const] : [])),
  ]);
}

function typeOf({ columns }: Answer, written: Written | null): string {
  if (written === null) return 'r';
  return columns.length > 0 ? 'rw' : 'w';
}

const notification = (notice: string): PackStreamMap =>
  mapOf([
    ['code', 'Neo.ClientNotification.Statement.Notice'],
    ['title', 'About the rows of this answer'],
    ['description', notice],
    ['severity', 'INFORMATION'],
    ['category', 'GENERIC'],
  ]);
