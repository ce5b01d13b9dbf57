/**
 * One connection of the key-value door: commands in, replies out, in their order. Invariants: a client that has not authenticated
 * can do nothing but log in; an access record of a command is appended before its reply leaves.
 */
import { ServiceError } from '../../errors.ts';
import type { Caller } from '../../governance/caller.ts';
import { ConnectionCaller } from '../shared/connection-caller.ts';
import type { Connection, Session } from '../shared/socket-connection.ts';
import { checkOrganization, organizationOf } from '../shared/credentials.ts';
import { shuttingDown } from '../shared/drain.ts';
import { admitAddress, type DoorDependencies, recordRefusal } from '../shared/door-dependencies.ts';
import { noTerms, type Terms, timeOfTerms } from '../shared/session-terms.ts';
import { annalsCommands, readAsOf } from './annals-commands.ts';
import { client, command, config, info } from './server-commands.ts';
import type { Words } from './codec.ts';
import { checkKeys, KvCommandContext, type KvCommandRow, doorName, upper } from './command.ts';
import type { ScanCursors } from './scan-cursors.ts';
import { keyOf, rowsInTurn } from './key-value-rows.ts';
import { errorText, respRefusals } from './errors.ts';
import { keyCommands } from './key-commands.ts';
import { RespReplies } from './replies.ts';
import { stringCommands } from './string-commands.ts';
import { type Channels, publish, Subscriptions } from './pub-sub.ts';

export interface KvDependencies extends DoorDependencies {
  readonly cursors: ScanCursors;
  readonly channels: Channels;
  /** Numbers connections. */
  readonly number: () => number;
}

/** Words of a command of a client that has not logged in: HELLO with AUTH and SETNAME has seven. */
const unauthenticatedWords = 10;
/** Pipelined reads that are under way at once, for as long as values are short. */
const readsAheadMax = 64;

/** Commands that ask the gate. */
export const kvCommandRows: Readonly<Record<string, KvCommandRow>> = { ...stringCommands, ...keyCommands, ...annalsCommands };

export class KvSession implements Session<Words> {
  readonly #kvParts: KvDependencies;
  readonly #kvConnection: Connection;
  readonly #respReplies = new RespReplies();
  readonly #clientId: number;
  #connectionCaller: ConnectionCaller | null = null;
  #subscriptions: Subscriptions | null = null;
  #sessionTerms: Terms = noTerms;
  #clientName = '';
  #isAtRest = true;
  /** Commands that may begin before the first is done. */
  #readsAhead = 1;
  #readsInFlight: Promise<Buffer | string | null | ServiceError>[] = [];

  constructor(kvParts: KvDependencies, kvConnection: Connection) {
    this.#kvParts = kvParts;
    this.#kvConnection = kvConnection;
    this.#clientId = kvParts.number();
  }

  get atRest(): boolean {
    return this.#isAtRest;
  }

  async handle(respWords: Words): Promise<void> {
    if (respWords.length === 0) return;
    if (this.#connectionCaller === null && respWords.length > unauthenticatedWords)
      throw new ServiceError('REL_UNAUTHENTICATED', 'Protocol error: unauthenticated multibulk length');
    this.#isAtRest = false;
    const commandName = respWords[0]!.toString('latin1').toLowerCase();
    if (commandName === 'get' && respWords.length === 2 && this.#connectionCaller !== null && this.#subscriptions === null) {
      this.#readsInFlight.push(this.#getAhead(respWords));
      if (this.#readsInFlight.length < this.#readsAhead) return;
      return this.rest();
    }
    await this.#replyToReads();
    try {
      this.#connectionCaller?.beginCommand();
      const runDone = this.#runWords(commandName, respWords);
      if (runDone !== undefined) await runDone;
    } catch (commandError) {
      this.#respReplies.error(errorText(await this.#respRefusalOf(commandName, commandError)));
    }
    this.#flushReplies();
    this.#isAtRest = true;
  }

  async rest(): Promise<void> {
    if (this.#readsInFlight.length === 0) return;
    await this.#replyToReads();
    this.#flushReplies();
    this.#isAtRest = true;
  }

  /** Values that were asked for one after the other are looked up at once, and leave in their order. */
  async #replyToReads(): Promise<void> {
    const readsInFlight = this.#readsInFlight;
    if (readsInFlight.length === 0) return;
    this.#readsInFlight = [];
    let readsAhead = Math.min(readsAheadMax, this.#readsAhead * 2);
    for (const readReply of await Promise.all(readsInFlight)) {
      if (Buffer.isBuffer(readReply)) readsAhead = 1;
      if (readReply instanceof ServiceError) this.#respReplies.error(errorText(readReply));
      else if (readReply === null) this.#respReplies.nothing();
      else this.#respReplies.bulk(readReply);
    }
    this.#readsAhead = readsAhead;
  }

  async #getAhead(getWords: Words): Promise<Buffer | string | null | ServiceError> {
    const connectionCaller = this.#connectionCaller!;
    try {
      connectionCaller.beginCommand();
      const redisKey = keyOf(getWords[1]!);
      return (await this.#commandContext('get', this.#sessionTerms).read([redisKey])).get(redisKey)?.value ?? null;
    } catch (getError) {
      return connectionCaller.refusalOf(getError);
    }
  }

  farewell(farewellError: ServiceError): Uint8Array {
    // Clients of Redis expect no unrequested message: a server that shuts down just closes.
    if (farewellError.code !== 'REL_UNAVAILABLE') this.#respReplies.error(errorText(farewellError));
    return this.#respReplies.take();
  }

  close(): void {
    this.#subscriptions?.close();
  }

  #flushReplies(): void {
    for (const replyPiece of this.#respReplies.takePieces()) this.#kvConnection.write(replyPiece);
  }

  /** Errors of commands that reveal nothing of rows leave no access record. */
  async #respRefusalOf(commandName: string, commandError: unknown): Promise<ServiceError> {
    if (commandError instanceof ServiceError && (this.#connectionCaller === null || connectionCommands.has(commandName)))
      return commandError;
    if (this.#connectionCaller === null) {
      this.#kvParts.reportFailure(commandError);
      return new ServiceError('REL_INTERNAL', 'internal error');
    }
    return this.#connectionCaller.refusalOf(commandError);
  }

  #runWords(commandName: string, respWords: Words): Promise<void> | void {
    // Commands of many keys count them, and have turns; nothing else is that long.
    if (respWords.length > rowsInTurn) {
      const [, lastKeyWord, keyWordStep] = Object.hasOwn(kvCommandRows, commandName)
        ? kvCommandRows[commandName]!.keys
        : [0, 0, 0];
      if (lastKeyWord >= 0) throw respRefusals.arity(commandName);
      checkKeys(Math.ceil((respWords.length - 1) / keyWordStep));
    }
    switch (commandName) {
      case 'quit':
        this.#respReplies.simple('OK');
        this.#flushReplies();
        return this.#kvConnection.end();
      case 'auth':
        return this.#authCommand(respWords);
      case 'hello':
        return this.#helloCommand(respWords);
      case 'reset':
        return this.#resetSession();
    }
    if (this.#connectionCaller === null) {
      throw respRefusals.noAuth();
    }
    const isSubscribed = this.#subscriptions !== null && this.#subscriptions.count > 0;
    if (isSubscribed && this.#respReplies.protocol === 2 && !subscribedCommands.has(commandName))
      throw respRefusals.onlySubscribing(commandName);
    const commandRow = Object.hasOwn(kvCommandRows, commandName) ? kvCommandRows[commandName]! : undefined;
    if (commandRow !== undefined) {
      checkCommandArity(commandName, commandRow.arity, respWords);
      return commandRow.run(this.#commandContext(commandName, this.#sessionTerms), respWords);
    }
    return this.#runOtherCommand(commandName, respWords);
  }

  #runOtherCommand(commandName: string, respWords: Words): Promise<void> | void {
    const { length: wordCount } = respWords;
    switch (commandName) {
      case 'ping':
        return this.#replyPing(respWords);
      case 'echo':
        checkCommandArity(commandName, 2, respWords);
        return this.#respReplies.bulk(respWords[1]!);
      case 'select':
        checkCommandArity(commandName, 2, respWords);
        if (respWords[1]!.toString() !== '0') throw respRefusals.dbIndex();
        return this.#respReplies.simple('OK');
      case 'client':
        checkCommandArity(commandName, -2, respWords);
        this.#clientName =
          client(this.#respReplies, respWords, { id: this.#clientId, name: this.#clientName, ip: this.#kvConnection.clientIp }) ??
          this.#clientName;
        return;
      case 'info':
        return info(this.#respReplies);
      case 'config':
        checkCommandArity(commandName, -2, respWords);
        return config(this.#respReplies, respWords);
      case 'command':
        return command(this.#respReplies, respWords, kvCommandRows);
      case 'annals.set':
        checkCommandArity(commandName, 3, respWords);
        return this.#setSessionTerm(respWords[1]!.toString(), respWords[2]!.toString());
      case 'annals.at':
        return this.#runAsOf(respWords);
      case 'publish':
        checkCommandArity(commandName, 3, respWords);
        return publish(this.#commandContext(commandName, this.#sessionTerms), this.#kvParts.channels, respWords);
      case 'subscribe':
      case 'psubscribe':
        checkCommandArity(commandName, -2, respWords);
        return this.#openSubscriptions().open(commandName === 'psubscribe', respWords.slice(1), this.#sessionTerms);
      case 'unsubscribe':
      case 'punsubscribe':
        return this.#openSubscriptions().leave(commandName === 'punsubscribe', respWords.slice(1));
    }
    const shownWords = respWords.slice(1, Math.min(wordCount, 20)).map((respWord) => respWord.toString('latin1', 0, 128));
    throw respRefusals.unknown(respWords[0]!.toString('latin1'), shownWords);
  }

  #commandContext(commandName: string, terms: Terms): KvCommandContext {
    const { cursors } = this.#kvParts;
    return new KvCommandContext(commandName, {
      connectionCaller: this.#connectionCaller!,
      replies: this.#respReplies,
      terms,
      time: timeOfTerms(terms),
      cursors,
    });
  }

  #openSubscriptions(): Subscriptions {
    this.#subscriptions ??= new Subscriptions({
      asker: this.#connectionCaller!,
      connection: this.#kvConnection,
      replies: this.#respReplies,
      channels: this.#kvParts.channels,
      flush: () => this.#flushReplies(),
    });
    return this.#subscriptions;
  }

  #replyPing(pingWords: Words): void {
    if (pingWords.length > 2) throw respRefusals.arity('ping');
    const isSubscribed = this.#subscriptions !== null && this.#subscriptions.count > 0;
    if (isSubscribed && this.#respReplies.protocol === 2) {
      this.#respReplies.array(2);
      this.#respReplies.bulk('pong');
      this.#respReplies.bulk(pingWords[1] ?? '');
    } else if (pingWords.length === 2) this.#respReplies.bulk(pingWords[1]!);
    else this.#respReplies.simple('PONG');
  }

  async #authCommand(authWords: Words): Promise<void> {
    if (authWords.length < 2 || authWords.length > 3) throw respRefusals.arity('auth');
    await this.#loginCaller(authWords.length === 3 ? authWords[1]!.toString() : '', authWords[authWords.length - 1]!.toString());
    this.#respReplies.simple('OK');
  }

  async #loginCaller(loginUser: string, loginPassword: string): Promise<void> {
    const { authenticator, gate, readLimit } = this.#kvParts;
    const { clientIp } = this.#kvConnection;
    let loginCaller: Caller | null = null;
    if (this.#kvConnection.isDraining) throw shuttingDown();
    try {
      admitAddress(this.#kvParts, readLimit, clientIp);
      loginCaller = authenticator.passwordCaller(loginPassword, {
        door: doorName,
        clientIp,
        organization: organizationOf(loginUser),
      });
      checkOrganization(this.#kvParts, loginCaller);
      gate.checkStanding(loginCaller);
    } catch (loginError) {
      if (!(loginError instanceof ServiceError)) throw loginError;
      const recordedError = await recordRefusal(
        this.#kvParts,
        loginCaller ?? { door: doorName, clientIp },
        'inspect',
        loginError,
      );
      await this.#kvConnection.loginRefused();
      throw recordedError.code === 'REL_UNAUTHENTICATED' ? respRefusals.wrongPass() : recordedError;
    }
    this.#subscriptions?.close();
    this.#subscriptions = null;
    this.#sessionTerms = noTerms;
    this.#connectionCaller = new ConnectionCaller(this.#kvParts, loginCaller, this.#kvConnection.gone);
    this.#kvConnection.markAuthenticated();
  }

  async #helloCommand(helloWords: Words): Promise<void> {
    let respProtocol = this.#respReplies.protocol;
    if (helloWords.length > 1) {
      const versionWord = helloWords[1]!.toString();
      if (versionWord !== '2' && versionWord !== '3') throw respRefusals.noProtocol();
      respProtocol = Number(versionWord);
    }
    let statedClientName: string | null = null;
    for (let i = 2; i < helloWords.length; ) {
      const helloOption = upper(helloWords[i]!);
      if (helloOption === 'AUTH' && i + 2 < helloWords.length) {
        await this.#loginCaller(helloWords[i + 1]!.toString(), helloWords[i + 2]!.toString());
        i += 3;
      } else if (helloOption === 'SETNAME' && i + 1 < helloWords.length) {
        statedClientName = helloWords[i + 1]!.toString();
        i += 2;
      } else throw respRefusals.syntax();
    }
    if (this.#connectionCaller === null) throw respRefusals.noAuth();
    this.#clientName = statedClientName ?? this.#clientName;
    this.#respReplies.protocol = respProtocol;
    const helloFacts: readonly (readonly [string, string | number])[] = [
      ['server', 'redis'],
      ['version', '7.2.0'],
      ['proto', respProtocol],
      ['id', this.#clientId],
      ['mode', 'standalone'],
      ['role', 'master'],
    ];
    this.#respReplies.map(helloFacts.length + 1);
    for (const [helloFact, helloValue] of helloFacts) {
      this.#respReplies.bulk(helloFact);
      if (typeof helloValue === 'number') this.#respReplies.integer(helloValue);
      else this.#respReplies.bulk(helloValue);
    }
    this.#respReplies.bulk('modules');
    this.#respReplies.array(0);
  }

  #resetSession(): void {
    this.#subscriptions?.close();
    this.#subscriptions = null;
    this.#sessionTerms = noTerms;
    this.#clientName = '';
    this.#respReplies.protocol = 2;
    this.#connectionCaller = null;
    this.#respReplies.simple('RESET');
  }

  async #setSessionTerm(termName: string, termValue: string): Promise<void> {
    this.#sessionTerms = await readAsOf.setTerm(this.#connectionCaller!, this.#sessionTerms, termName, termValue);
    this.#respReplies.simple('OK');
  }

  async #runAsOf(asOfWords: Words): Promise<void> {
    const { terms: asOfTerms, inner: innerWords } = readAsOf.command(this.#sessionTerms, asOfWords);
    const innerCommand = innerWords[0]!.toString('latin1').toLowerCase();
    const commandRow = Object.hasOwn(kvCommandRows, innerCommand) ? kvCommandRows[innerCommand]! : undefined;
    if (commandRow === undefined || !commandRow.reads) throw respRefusals.notRead(innerCommand);
    checkCommandArity(innerCommand, commandRow.arity, innerWords);
    await commandRow.run(this.#commandContext(innerCommand, asOfTerms), innerWords);
  }
}

function checkCommandArity(commandName: string, commandArity: number, respWords: Words): void {
  if (commandArity >= 0 ? respWords.length !== commandArity : respWords.length < -commandArity)
    throw respRefusals.arity(commandName);
}

/** Say nothing of rows. */
const connectionCommands: ReadonlySet<string> = new Set(
  'auth hello reset quit ping echo select client info config command annals.set unsubscribe punsubscribe'.split(' '),
);
const subscribedCommands: ReadonlySet<string> = new Set(
  'subscribe psubscribe unsubscribe punsubscribe ping quit reset'.split(' '),
);
