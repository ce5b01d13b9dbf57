/**
 * The states of one connection of the Postgres protocol: messages in, replies out. Invariants: an access record is appended
 * before a row leaves; after an error in the extended protocol all messages are skipped until Sync; a write is acknowledged only
 * where nothing of the same transaction can fail after it.
 */
import { ServiceError } from '../../errors.ts';
import type { Caller } from '../../governance/caller.ts';
import type { Connection, Session } from '../shared/socket-connection.ts';
import { shuttingDown } from '../shared/drain.ts';
import { admitAddress, type DoorDependencies, recordRefusal } from '../shared/door-dependencies.ts';
import { type AdvisoryLocks, HeldLocks } from './advisory-locks.ts';
import type { CancelKeys, CancelKey } from './cancel-keys.ts';
import type { Frontend } from './codec.ts';
import { Login, doorName } from './login.ts';
import { PostgresReplies } from './replies.ts';
import { ExtendedQuery } from './extended-query.ts';
import { CommandRunner } from './command-runner.ts';
import { errorFields, ProtocolRefusal } from './errors.ts';
import { inTurns } from '../../planner/expressions/resumable-steps.ts';
import { commandOf, splitStatements } from './parse-command.ts';
import { SessionVariables } from './session-variables.ts';

export interface RelationalDependencies extends DoorDependencies {
  readonly cancels: CancelKeys;
  readonly locks: AdvisoryLocks;
}

const gathered: ReadonlySet<Frontend['kind']> = new Set(['parse', 'bind', 'describe', 'execute', 'close']);
const gatheredBytes = 16_384;

type State =
  | { readonly at: 'starting' }
  | { readonly at: 'proving'; readonly login: Login }
  | { readonly at: 'open'; readonly runner: CommandRunner };

export class RelationalSession implements Session<Frontend> {
  readonly #parts: RelationalDependencies;
  readonly #connection: Connection;
  readonly #replies = new PostgresReplies();
  readonly #variables = new SessionVariables((name, value) => this.#replies.parameter(name, value));
  #state: State = { at: 'starting' };
  #extended: ExtendedQuery | null = null;
  #key: CancelKey | null = null;
  #atRest = true;
  /** A COPY was begun by a Query, which its end completes. */
  #copyEndsQuery = false;

  constructor(parts: RelationalDependencies, connection: Connection) {
    this.#parts = parts;
    this.#connection = connection;
  }

  get atRest(): boolean {
    return this.#atRest;
  }

  /** Handles most messages of the extended protocol synchronously. */
  handle(message: Frontend): Promise<void> | void {
    if (this.#state.at !== 'open' || !gathered.has(message.kind)) return this.#handle(message);
    const handled = this.#serve(this.#state.runner, message);
    if (handled !== undefined) return handled.then(() => this.#flushLarge());
    this.#flushLarge();
  }

  async #handle(message: Frontend): Promise<void> {
    switch (this.#state.at) {
      case 'starting':
        await this.#start(message);
        break;
      case 'proving':
        await this.#prove(this.#state.login, message);
        break;
      case 'open':
        await this.#serve(this.#state.runner, message);
        break;
    }
    if (!gathered.has(message.kind) || this.#replies.length > gatheredBytes) this.#flush();
  }

  /** Replies of the extended protocol wait for Sync or Flush, and leave together. */
  #flushLarge(): void {
    if (this.#replies.length > gatheredBytes) this.#flush();
  }

  farewell(error: ServiceError): Uint8Array {
    const recordedError =
      error.code === 'REL_UNAVAILABLE' && this.#state.at === 'open'
        ? new ProtocolRefusal('57P01', error.code, error.message)
        : error;
    this.#replies.error(errorFields(recordedError), 'FATAL');
    return this.#replies.take();
  }

  close(): void {
    if (this.#key) this.#parts.cancels.close(this.#key);
    if (this.#state.at !== 'open') return;
    const { runner } = this.#state;
    void runner.copyFailed(new ServiceError('REL_CANCELLED', 'the client went away')).catch(() => undefined);
    runner.end();
  }

  #flush(): void {
    if (this.#replies.length > 0) this.#connection.write(this.#replies.take());
  }

  async #start(message: Frontend): Promise<void> {
    switch (message.kind) {
      case 'ssl-request': {
        const secures = this.#connection.canSecure;
        this.#connection.write(Buffer.from(secures ? 'S' : 'N'));
        if (secures) this.#connection.secure();
        return;
      }
      case 'gss-request':
        return this.#connection.write(Buffer.from('N'));
      case 'terminate':
        return this.#connection.end();
      case 'cancel':
        // The client must not learn whether there was anything to cancel.
        this.#parts.cancels.cancel(message);
        return this.#connection.end();
      case 'startup':
        break;
      default:
        throw new ServiceError('REL_INVALID', 'a startup message is expected');
    }
    if (this.#connection.isDraining) throw shuttingDown();
    await this.#orTurnedAway(null, () => {
      admitAddress(this.#parts, this.#parts.readLimit, this.#connection.clientIp);
      const login = new Login(this.#parts, message.parameters, this.#connection.clientIp);
      const unknown = [...message.parameters.keys()].filter((name) => name.startsWith('_pq_.'));
      if (message.minor > 0 || unknown.length > 0) this.#replies.negotiate(unknown);
      login.begin(this.#replies);
      this.#state = { at: 'proving', login };
    });
  }

  async #prove(login: Login, message: Frontend): Promise<void> {
    if (message.kind === 'terminate') return this.#connection.end();
    if (message.kind !== 'password') throw new ServiceError('REL_INVALID', 'a password message is expected');
    let proven: Caller | null = null;
    await this.#orTurnedAway(null, () => {
      proven = login.proceed(message.body, this.#replies);
    });
    if (proven === null) return;
    const caller: Caller = proven;
    await this.#orTurnedAway(caller, async () => {
      this.#parts.gate.checkStanding(caller);
      if (caller.branch !== 'main') await this.#checkBranch(caller);
      this.#variables.begin(login.settings, login.user);
    });
    this.#connection.markAuthenticated();
    this.#key = this.#parts.cancels.open(this.#connection.gone);
    this.#replies.backendKey(this.#key.process, this.#key.secret);
    this.#replies.ready('I');
    const runner = new CommandRunner({
      ...this.#parts,
      caller,
      user: login.user,
      database: login.database,
      process: this.#key.process,
      connection: this.#connection,
      replies: this.#replies,
      variables: this.#variables,
      locks: new HeldLocks(this.#parts.locks),
      begin: () => this.#key!.begin(),
      signal: () => this.#key!.signal(),
      cancel: () => this.#key!.cancel(),
    });
    this.#extended = new ExtendedQuery(runner, this.#replies, this.#parts.yieldTurn);
    this.#state = { at: 'open', runner };
  }

  async #checkBranch(caller: Caller): Promise<void> {
    const asked = { action: 'inspect', purpose: null, correlationId: this.#parts.ids.next() } as const;
    const onMain = { ...caller, branch: 'main' };
    await this.#parts.gate.invoke(onMain, asked, async (invocation) => {
      if (invocation.branches().some(({ name }) => name === caller.branch)) return;
      const detail = `there is no branch ${JSON.stringify(caller.branch)}: the database names a branch, annals is main`;
      throw new ProtocolRefusal('3D000', 'REL_NOT_FOUND', detail);
    });
  }

  /** Runs a step of the login; a refusal is recorded and ends the connection. */
  async #orTurnedAway(caller: Caller | null, step: () => void | Promise<void>): Promise<void> {
    try {
      await step();
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      const who = caller ?? { door: doorName, clientIp: this.#connection.clientIp };
      await recordRefusal(this.#parts, who, 'inspect', error);
      this.#replies.take();
      await this.#connection.loginRefused();
      throw error;
    }
  }

  #serve(runner: CommandRunner, message: Frontend): Promise<void> | void {
    this.#atRest = false;
    if (runner.copying) return this.#copyStep(runner, message);
    switch (message.kind) {
      case 'flush':
        return this.#extended!.release();
      case 'parse':
      case 'bind':
      case 'describe':
      case 'execute':
      case 'close':
        return this.#extended!.handle(message);
      case 'copy-data':
      case 'copy-done':
      case 'copy-fail':
        // Rows that a client sent before it learned that its COPY was refused.
        return;
      case 'query':
      case 'terminate':
      case 'sync':
        return this.#conclude(runner, message);
      default:
        throw new ServiceError('REL_INVALID', `a message of kind ${message.kind} is not expected here`);
    }
  }

  /** Handles messages that end a series of statements. */
  async #conclude(runner: CommandRunner, message: Frontend): Promise<void> {
    await this.#extended!.finish();
    switch (message.kind) {
      case 'query':
        if (this.#extended!.skipping) return;
        await this.#query(runner, message.text);
        break;
      case 'terminate':
        return this.#connection.end();
      case 'sync':
        this.#extended!.sync();
        this.#replies.ready(runner.status);
        break;
    }
    this.#atRest = runner.status === 'I';
  }

  /** Between the beginning of a COPY and its end nothing else is said. */
  async #copyStep(runner: CommandRunner, message: Frontend): Promise<void> {
    try {
      switch (message.kind) {
        case 'copy-data':
          return await runner.copyData(message.body);
        case 'flush':
        case 'sync':
          return;
        case 'copy-done':
          await runner.copyDone();
          break;
        case 'copy-fail':
          await runner.copyFailed(new ServiceError('REL_CANCELLED', `the client ended the COPY: ${message.reason}`));
          break;
        default:
          await runner.copyFailed(
            new ServiceError('REL_INVALID', `a message of kind ${message.kind} does not belong into a COPY`),
          );
      }
      if (!this.#copyEndsQuery) return;
      await runner.endImplicit();
    } catch (error) {
      if (!this.#copyEndsQuery) return this.#extended!.refuse(error);
      await runner.fail(error);
    }
    this.#endQuery(runner);
  }

  #endQuery(runner: CommandRunner): void {
    this.#copyEndsQuery = false;
    this.#extended!.sync();
    this.#replies.ready(runner.status);
    this.#atRest = runner.status === 'I';
  }

  /** All statements of one Query are one transaction: where more than the last one write, they are committed at its end. */
  async #query(runner: CommandRunner, text: string): Promise<void> {
    // Locations count in the statement that was sent; of several statements, each counts its own.
    let placed: string | undefined = text;
    try {
      runner.begins();
      const statements = await inTurns(splitStatements(text), this.#parts.yieldTurn);
      if (statements.length > 1) placed = undefined;
      if (statements.length === 0) this.#replies.bare('I');
      for (const [i, statement] of statements.entries()) {
        const command = await inTurns(commandOf(statement), this.#parts.yieldTurn);
        const isLast = i === statements.length - 1;
        if (!isLast && ((command.kind === 'ask' && command.mayWrite) || command.kind === 'copy')) runner.beginImplicit();
        await runner.run(command);
        if (!runner.copying) continue;
        this.#copyEndsQuery = isLast;
        if (isLast) return;
        await runner.copyFailed(
          new ServiceError('REL_NOT_IMPLEMENTED', 'COPY FROM STDIN is the last statement of its query: send the others after it'),
        );
      }
      await runner.endImplicit();
    } catch (error) {
      await runner.fail(error, placed);
    }
    this.#endQuery(runner);
  }
}
