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

const gatheredKinds: ReadonlySet<Frontend['kind']> = new Set(['parse', 'bind', 'describe', 'execute', 'close']);
const gatheredReplyBytes = 16_384;

type PostgresState =
  | { readonly at: 'starting' }
  | { readonly at: 'proving'; readonly login: Login }
  | { readonly at: 'open'; readonly runner: CommandRunner };

export class RelationalSession implements Session<Frontend> {
  readonly #relationalParts: RelationalDependencies;
  readonly #postgresConnection: Connection;
  readonly #postgresReplies = new PostgresReplies();
  readonly #sessionVariables = new SessionVariables((reportedName, reportedValue) =>
    this.#postgresReplies.parameter(reportedName, reportedValue),
  );
  #sessionState: PostgresState = { at: 'starting' };
  #extendedQuery: ExtendedQuery | null = null;
  #cancelKey: CancelKey | null = null;
  #isAtRest = true;
  /** A COPY was begun by a Query, which its end completes. */
  #isCopyLastOfQuery = false;

  constructor(relationalParts: RelationalDependencies, postgresConnection: Connection) {
    this.#relationalParts = relationalParts;
    this.#postgresConnection = postgresConnection;
  }

  get atRest(): boolean {
    return this.#isAtRest;
  }

  /** Handles most messages of the extended protocol synchronously. */
  handle(frontendMessage: Frontend): Promise<void> | void {
    if (this.#sessionState.at !== 'open' || !gatheredKinds.has(frontendMessage.kind)) return this.#handleMessage(frontendMessage);
    const handledMessage = this.#serveMessage(this.#sessionState.runner, frontendMessage);
    if (handledMessage !== undefined) return handledMessage.then(() => this.#flushLargeReplies());
    this.#flushLargeReplies();
  }

  async #handleMessage(frontendMessage: Frontend): Promise<void> {
    switch (this.#sessionState.at) {
      case 'starting':
        await this.#startSession(frontendMessage);
        break;
      case 'proving':
        await this.#provePassword(this.#sessionState.login, frontendMessage);
        break;
      case 'open':
        await this.#serveMessage(this.#sessionState.runner, frontendMessage);
        break;
    }
    if (!gatheredKinds.has(frontendMessage.kind) || this.#postgresReplies.length > gatheredReplyBytes) this.#flushReplies();
  }

  /** Replies of the extended protocol wait for Sync or Flush, and leave together. */
  #flushLargeReplies(): void {
    if (this.#postgresReplies.length > gatheredReplyBytes) this.#flushReplies();
  }

  farewell(farewellError: ServiceError): Uint8Array {
    const recordedError =
      farewellError.code === 'REL_UNAVAILABLE' && this.#sessionState.at === 'open'
        ? new ProtocolRefusal('57P01', farewellError.code, farewellError.message)
        : farewellError;
    this.#postgresReplies.error(errorFields(recordedError), 'FATAL');
    return this.#postgresReplies.take();
  }

  close(): void {
    if (this.#cancelKey) this.#relationalParts.cancels.close(this.#cancelKey);
    if (this.#sessionState.at !== 'open') return;
    const { runner: openRunner } = this.#sessionState;
    void openRunner.copyFailed(new ServiceError('REL_CANCELLED', 'the client went away')).catch(() => undefined);
    openRunner.end();
  }

  #flushReplies(): void {
    if (this.#postgresReplies.length > 0) this.#postgresConnection.write(this.#postgresReplies.take());
  }

  async #startSession(startupMessage: Frontend): Promise<void> {
    switch (startupMessage.kind) {
      case 'ssl-request': {
        const canUseTls = this.#postgresConnection.canSecure;
        this.#postgresConnection.write(Buffer.from(canUseTls ? 'S' : 'N'));
        if (canUseTls) this.#postgresConnection.secure();
        return;
      }
      case 'gss-request':
        return this.#postgresConnection.write(Buffer.from('N'));
      case 'terminate':
        return this.#postgresConnection.end();
      case 'cancel':
        // The client must not learn whether there was anything to cancel.
        this.#relationalParts.cancels.cancel(startupMessage);
        return this.#postgresConnection.end();
      case 'startup':
        break;
      default:
        throw new ServiceError('REL_INVALID', 'a startup message is expected');
    }
    if (this.#postgresConnection.isDraining) throw shuttingDown();
    await this.#recordLoginRefusal(null, () => {
      admitAddress(this.#relationalParts, this.#relationalParts.readLimit, this.#postgresConnection.clientIp);
      const postgresLogin = new Login(this.#relationalParts, startupMessage.parameters, this.#postgresConnection.clientIp);
      const unknownParameters = [...startupMessage.parameters.keys()].filter((parameterName) =>
        parameterName.startsWith('_pq_.'),
      );
      if (startupMessage.minor > 0 || unknownParameters.length > 0) this.#postgresReplies.negotiate(unknownParameters);
      postgresLogin.begin(this.#postgresReplies);
      this.#sessionState = { at: 'proving', login: postgresLogin };
    });
  }

  async #provePassword(postgresLogin: Login, passwordMessage: Frontend): Promise<void> {
    if (passwordMessage.kind === 'terminate') return this.#postgresConnection.end();
    if (passwordMessage.kind !== 'password') throw new ServiceError('REL_INVALID', 'a password message is expected');
    let provenCaller: Caller | null = null;
    await this.#recordLoginRefusal(null, () => {
      provenCaller = postgresLogin.proceed(passwordMessage.body, this.#postgresReplies);
    });
    if (provenCaller === null) return;
    const loginCaller: Caller = provenCaller;
    await this.#recordLoginRefusal(loginCaller, async () => {
      this.#relationalParts.gate.checkStanding(loginCaller);
      if (loginCaller.branch !== 'main') await this.#checkDatabaseBranch(loginCaller);
      this.#sessionVariables.begin(postgresLogin.settings, postgresLogin.user);
    });
    this.#postgresConnection.markAuthenticated();
    this.#cancelKey = this.#relationalParts.cancels.open(this.#postgresConnection.gone);
    this.#postgresReplies.backendKey(this.#cancelKey.process, this.#cancelKey.secret);
    this.#postgresReplies.ready('I');
    const openRunner = new CommandRunner({
      ...this.#relationalParts,
      caller: loginCaller,
      user: postgresLogin.user,
      database: postgresLogin.database,
      process: this.#cancelKey.process,
      connection: this.#postgresConnection,
      replies: this.#postgresReplies,
      variables: this.#sessionVariables,
      locks: new HeldLocks(this.#relationalParts.locks),
      begin: () => this.#cancelKey!.begin(),
      signal: () => this.#cancelKey!.signal(),
      cancel: () => this.#cancelKey!.cancel(),
    });
    this.#extendedQuery = new ExtendedQuery(openRunner, this.#postgresReplies, this.#relationalParts.yieldTurn);
    this.#sessionState = { at: 'open', runner: openRunner };
  }

  async #checkDatabaseBranch(branchCaller: Caller): Promise<void> {
    const inspectRequest = { action: 'inspect', purpose: null, correlationId: this.#relationalParts.ids.next() } as const;
    const mainBranchCaller = { ...branchCaller, branch: 'main' };
    await this.#relationalParts.gate.invoke(mainBranchCaller, inspectRequest, async (invocation) => {
      if (invocation.branches().some(({ name: branchName }) => branchName === branchCaller.branch)) return;
      const branchDetail = `there is no branch ${JSON.stringify(branchCaller.branch)}: the database names a branch, annals is main`;
      throw new ProtocolRefusal('3D000', 'REL_NOT_FOUND', branchDetail);
    });
  }

  /** Runs a step of the login; a refusal is recorded and ends the connection. */
  async #recordLoginRefusal(loginCaller: Caller | null, loginStep: () => void | Promise<void>): Promise<void> {
    try {
      await loginStep();
    } catch (loginError) {
      if (!(loginError instanceof ServiceError)) throw loginError;
      const refusedLogin = loginCaller ?? { door: doorName, clientIp: this.#postgresConnection.clientIp };
      await recordRefusal(this.#relationalParts, refusedLogin, 'inspect', loginError);
      this.#postgresReplies.take();
      await this.#postgresConnection.loginRefused();
      throw loginError;
    }
  }

  #serveMessage(openRunner: CommandRunner, frontendMessage: Frontend): Promise<void> | void {
    this.#isAtRest = false;
    if (openRunner.copying) return this.#takeCopyMessage(openRunner, frontendMessage);
    switch (frontendMessage.kind) {
      case 'flush':
        return this.#extendedQuery!.release();
      case 'parse':
      case 'bind':
      case 'describe':
      case 'execute':
      case 'close':
        return this.#extendedQuery!.handle(frontendMessage);
      case 'copy-data':
      case 'copy-done':
      case 'copy-fail':
        // Rows that a client sent before it learned that its COPY was refused.
        return;
      case 'query':
      case 'terminate':
      case 'sync':
        return this.#concludeStatement(openRunner, frontendMessage);
      default:
        throw new ServiceError('REL_INVALID', `a message of kind ${frontendMessage.kind} is not expected here`);
    }
  }

  /** Handles messages that end a series of statements. */
  async #concludeStatement(openRunner: CommandRunner, concludingMessage: Frontend): Promise<void> {
    await this.#extendedQuery!.finish();
    switch (concludingMessage.kind) {
      case 'query':
        if (this.#extendedQuery!.skipping) return;
        await this.#runSimpleQuery(openRunner, concludingMessage.text);
        break;
      case 'terminate':
        return this.#postgresConnection.end();
      case 'sync':
        this.#extendedQuery!.sync();
        this.#postgresReplies.ready(openRunner.status);
        break;
    }
    this.#isAtRest = openRunner.status === 'I';
  }

  /** Between the beginning of a COPY and its end nothing else is said. */
  async #takeCopyMessage(copyRunner: CommandRunner, copyMessage: Frontend): Promise<void> {
    try {
      switch (copyMessage.kind) {
        case 'copy-data':
          return await copyRunner.copyData(copyMessage.body);
        case 'flush':
        case 'sync':
          return;
        case 'copy-done':
          await copyRunner.copyDone();
          break;
        case 'copy-fail':
          await copyRunner.copyFailed(new ServiceError('REL_CANCELLED', `the client ended the COPY: ${copyMessage.reason}`));
          break;
        default:
          await copyRunner.copyFailed(
            new ServiceError('REL_INVALID', `a message of kind ${copyMessage.kind} does not belong into a COPY`),
          );
      }
      if (!this.#isCopyLastOfQuery) return;
      await copyRunner.endImplicit();
    } catch (copyError) {
      if (!this.#isCopyLastOfQuery) return this.#extendedQuery!.refuse(copyError);
      await copyRunner.fail(copyError);
    }
    this.#endSimpleQuery(copyRunner);
  }

  #endSimpleQuery(queryRunner: CommandRunner): void {
    this.#isCopyLastOfQuery = false;
    this.#extendedQuery!.sync();
    this.#postgresReplies.ready(queryRunner.status);
    this.#isAtRest = queryRunner.status === 'I';
  }

  /** All statements of one Query are one transaction: where more than the last one write, they are committed at its end. */
  async #runSimpleQuery(queryRunner: CommandRunner, queryText: string): Promise<void> {
    // Locations count in the statement that was sent; of several statements, each counts its own.
    let placedSql: string | undefined = queryText;
    try {
      queryRunner.begins();
      const queryStatements = await inTurns(splitStatements(queryText), this.#relationalParts.yieldTurn);
      if (queryStatements.length > 1) placedSql = undefined;
      if (queryStatements.length === 0) this.#postgresReplies.bare('I');
      for (const [i, queryStatement] of queryStatements.entries()) {
        const queryCommand = await inTurns(commandOf(queryStatement), this.#relationalParts.yieldTurn);
        const isLastStatement = i === queryStatements.length - 1;
        if (!isLastStatement && ((queryCommand.kind === 'ask' && queryCommand.mayWrite) || queryCommand.kind === 'copy'))
          queryRunner.beginImplicit();
        await queryRunner.run(queryCommand);
        if (!queryRunner.copying) continue;
        this.#isCopyLastOfQuery = isLastStatement;
        if (isLastStatement) return;
        await queryRunner.copyFailed(
          new ServiceError('REL_NOT_IMPLEMENTED', 'COPY FROM STDIN is the last statement of its query: send the others after it'),
        );
      }
      await queryRunner.endImplicit();
    } catch (queryError) {
      await queryRunner.fail(queryError, placedSql);
    }
    this.#endSimpleQuery(queryRunner);
  }
}
