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
const strangerWordsMax = 10;
/** Pipelined reads that are under way at once, for as long as values are short. */
const readsMax = 64;

/** Commands that ask the gate. */
export const kvCommandRows: Readonly<Record<string, KvCommandRow>> = { ...stringCommands, ...keyCommands, ...annalsCommands };

export class KvSession implements Session<Words> {
  readonly #parts: KvDependencies;
  readonly #connection: Connection;
  readonly #replies = new RespReplies();
  readonly #id: number;
  #connectionCaller: ConnectionCaller | null = null;
  #subscriptions: Subscriptions | null = null;
  #terms: Terms = noTerms;
  #name = '';
  #atRest = true;
  /** Commands that may begin before the first is done. */
  #readsAhead = 1;
  #reads: Promise<Buffer | string | null | ServiceError>[] = [];

  constructor(parts: KvDependencies, connection: Connection) {
    this.#parts = parts;
    this.#connection = connection;
    this.#id = parts.number();
  }

  get atRest(): boolean {
    return this.#atRest;
  }

  async handle(words: Words): Promise<void> {
    if (words.length === 0) return;
    if (this.#connectionCaller === null && words.length > strangerWordsMax)
      throw new ServiceError('REL_UNAUTHENTICATED', 'Protocol error: unauthenticated multibulk length');
    this.#atRest = false;
    const name = words[0]!.toString('latin1').toLowerCase();
    if (name === 'get' && words.length === 2 && this.#connectionCaller !== null && this.#subscriptions === null) {
      this.#reads.push(this.#get(words));
      if (this.#reads.length < this.#readsAhead) return;
      return this.rest();
    }
    await this.#readsDone();
    try {
      this.#connectionCaller?.beginCommand();
      const done = this.#run(name, words);
      if (done !== undefined) await done;
    } catch (error) {
      this.#replies.error(errorText(await this.#refusalOf(name, error)));
    }
    this.#flush();
    this.#atRest = true;
  }

  async rest(): Promise<void> {
    if (this.#reads.length === 0) return;
    await this.#readsDone();
    this.#flush();
    this.#atRest = true;
  }

  /** Values that were asked for one after the other are looked up at once, and leave in their order. */
  async #readsDone(): Promise<void> {
    const reads = this.#reads;
    if (reads.length === 0) return;
    this.#reads = [];
    let ahead = Math.min(readsMax, this.#readsAhead * 2);
    for (const reply of await Promise.all(reads)) {
      if (Buffer.isBuffer(reply)) ahead = 1;
      if (reply instanceof ServiceError) this.#replies.error(errorText(reply));
      else if (reply === null) this.#replies.nothing();
      else this.#replies.bulk(reply);
    }
    this.#readsAhead = ahead;
  }

  async #get(words: Words): Promise<Buffer | string | null | ServiceError> {
    const connectionCaller = this.#connectionCaller!;
    try {
      connectionCaller.beginCommand();
      const redisKey = keyOf(words[1]!);
      return (await this.#context('get', this.#terms).read([redisKey])).get(redisKey)?.value ?? null;
    } catch (error) {
      return connectionCaller.refusalOf(error);
    }
  }

  farewell(error: ServiceError): Uint8Array {
    // Clients of Redis expect no unrequested message: a server that shuts down just closes.
    if (error.code !== 'REL_UNAVAILABLE') this.#replies.error(errorText(error));
    return this.#replies.take();
  }

  close(): void {
    this.#subscriptions?.close();
  }

  #flush(): void {
    for (const piece of this.#replies.takePieces()) this.#connection.write(piece);
  }

  /** Errors of commands that reveal nothing of rows leave no access record. */
  async #refusalOf(name: string, error: unknown): Promise<ServiceError> {
    if (error instanceof ServiceError && (this.#connectionCaller === null || ofConnection.has(name))) return error;
    if (this.#connectionCaller === null) {
      this.#parts.reportFailure(error);
      return new ServiceError('REL_INTERNAL', 'internal error');
    }
    return this.#connectionCaller.refusalOf(error);
  }

  #run(name: string, words: Words): Promise<void> | void {
    // Commands of many keys count them, and have turns; nothing else is that long.
    if (words.length > rowsInTurn) {
      const [, last, step] = Object.hasOwn(kvCommandRows, name) ? kvCommandRows[name]!.keys : [0, 0, 0];
      if (last >= 0) throw respRefusals.arity(name);
      checkKeys(Math.ceil((words.length - 1) / step));
    }
    switch (name) {
      case 'quit':
        this.#replies.simple('OK');
        this.#flush();
        return this.#connection.end();
      case 'auth':
        return this.#auth(words);
      case 'hello':
        return this.#hello(words);
      case 'reset':
        return this.#reset();
    }
    if (this.#connectionCaller === null) {
      throw respRefusals.noAuth();
    }
    const subscribed = this.#subscriptions !== null && this.#subscriptions.count > 0;
    if (subscribed && this.#replies.protocol === 2 && !whileSubscribed.has(name)) throw respRefusals.onlySubscribing(name);
    const commandRow = Object.hasOwn(kvCommandRows, name) ? kvCommandRows[name]! : undefined;
    if (commandRow !== undefined) {
      checkArity(name, commandRow.arity, words);
      return commandRow.run(this.#context(name, this.#terms), words);
    }
    return this.#other(name, words);
  }

  #other(name: string, words: Words): Promise<void> | void {
    const { length } = words;
    switch (name) {
      case 'ping':
        return this.#ping(words);
      case 'echo':
        checkArity(name, 2, words);
        return this.#replies.bulk(words[1]!);
      case 'select':
        checkArity(name, 2, words);
        if (words[1]!.toString() !== '0') throw respRefusals.dbIndex();
        return this.#replies.simple('OK');
      case 'client':
        checkArity(name, -2, words);
        this.#name =
          client(this.#replies, words, { id: this.#id, name: this.#name, ip: this.#connection.clientIp }) ?? this.#name;
        return;
      case 'info':
        return info(this.#replies);
      case 'config':
        checkArity(name, -2, words);
        return config(this.#replies, words);
      case 'command':
        return command(this.#replies, words, kvCommandRows);
      case 'annals.set':
        checkArity(name, 3, words);
        return this.#state(words[1]!.toString(), words[2]!.toString());
      case 'annals.at':
        return this.#runAsOf(words);
      case 'publish':
        checkArity(name, 3, words);
        return publish(this.#context(name, this.#terms), this.#parts.channels, words);
      case 'subscribe':
      case 'psubscribe':
        checkArity(name, -2, words);
        return this.#openSubscriptions().open(name === 'psubscribe', words.slice(1), this.#terms);
      case 'unsubscribe':
      case 'punsubscribe':
        return this.#openSubscriptions().leave(name === 'punsubscribe', words.slice(1));
    }
    const shown = words.slice(1, Math.min(length, 20)).map((respWord) => respWord.toString('latin1', 0, 128));
    throw respRefusals.unknown(words[0]!.toString('latin1'), shown);
  }

  #context(name: string, terms: Terms): KvCommandContext {
    const { cursors } = this.#parts;
    return new KvCommandContext(name, {
      connectionCaller: this.#connectionCaller!,
      replies: this.#replies,
      terms,
      time: timeOfTerms(terms),
      cursors,
    });
  }

  #openSubscriptions(): Subscriptions {
    this.#subscriptions ??= new Subscriptions({
      asker: this.#connectionCaller!,
      connection: this.#connection,
      replies: this.#replies,
      channels: this.#parts.channels,
      flush: () => this.#flush(),
    });
    return this.#subscriptions;
  }

  #ping(words: Words): void {
    if (words.length > 2) throw respRefusals.arity('ping');
    const subscribed = this.#subscriptions !== null && this.#subscriptions.count > 0;
    if (subscribed && this.#replies.protocol === 2) {
      this.#replies.array(2);
      this.#replies.bulk('pong');
      this.#replies.bulk(words[1] ?? '');
    } else if (words.length === 2) this.#replies.bulk(words[1]!);
    else this.#replies.simple('PONG');
  }

  async #auth(words: Words): Promise<void> {
    if (words.length < 2 || words.length > 3) throw respRefusals.arity('auth');
    await this.#login(words.length === 3 ? words[1]!.toString() : '', words[words.length - 1]!.toString());
    this.#replies.simple('OK');
  }

  async #login(user: string, password: string): Promise<void> {
    const { authenticator, gate, readLimit } = this.#parts;
    const { clientIp } = this.#connection;
    let caller: Caller | null = null;
    if (this.#connection.isDraining) throw shuttingDown();
    try {
      admitAddress(this.#parts, readLimit, clientIp);
      caller = authenticator.passwordCaller(password, { door: doorName, clientIp, organization: organizationOf(user) });
      checkOrganization(this.#parts, caller);
      gate.checkStanding(caller);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      const recordedError = await recordRefusal(this.#parts, caller ?? { door: doorName, clientIp }, 'inspect', error);
      await this.#connection.loginRefused();
      throw recordedError.code === 'REL_UNAUTHENTICATED' ? respRefusals.wrongPass() : recordedError;
    }
    this.#subscriptions?.close();
    this.#subscriptions = null;
    this.#terms = noTerms;
    this.#connectionCaller = new ConnectionCaller(this.#parts, caller, this.#connection.gone);
    this.#connection.markAuthenticated();
  }

  async #hello(words: Words): Promise<void> {
    let protocol = this.#replies.protocol;
    if (words.length > 1) {
      const version = words[1]!.toString();
      if (version !== '2' && version !== '3') throw respRefusals.noProtocol();
      protocol = Number(version);
    }
    let name: string | null = null;
    for (let i = 2; i < words.length; ) {
      const option = upper(words[i]!);
      if (option === 'AUTH' && i + 2 < words.length) {
        await this.#login(words[i + 1]!.toString(), words[i + 2]!.toString());
        i += 3;
      } else if (option === 'SETNAME' && i + 1 < words.length) {
        name = words[i + 1]!.toString();
        i += 2;
      } else throw respRefusals.syntax();
    }
    if (this.#connectionCaller === null) throw respRefusals.noAuth();
    this.#name = name ?? this.#name;
    this.#replies.protocol = protocol;
    const facts: readonly (readonly [string, string | number])[] = [
      ['server', 'redis'],
      ['version', '7.2.0'],
      ['proto', protocol],
      ['id', this.#id],
      ['mode', 'standalone'],
      ['role', 'master'],
    ];
    this.#replies.map(facts.length + 1);
    for (const [fact, value] of facts) {
      this.#replies.bulk(fact);
      if (typeof value === 'number') this.#replies.integer(value);
      else this.#replies.bulk(value);
    }
    this.#replies.bulk('modules');
    this.#replies.array(0);
  }

  #reset(): void {
    this.#subscriptions?.close();
    this.#subscriptions = null;
    this.#terms = noTerms;
    this.#name = '';
    this.#replies.protocol = 2;
    this.#connectionCaller = null;
    this.#replies.simple('RESET');
  }

  async #state(name: string, value: string): Promise<void> {
    this.#terms = await readAsOf.setTerm(this.#connectionCaller!, this.#terms, name, value);
    this.#replies.simple('OK');
  }

  async #runAsOf(words: Words): Promise<void> {
    const { terms, inner } = readAsOf.command(this.#terms, words);
    const name = inner[0]!.toString('latin1').toLowerCase();
    const commandRow = Object.hasOwn(kvCommandRows, name) ? kvCommandRows[name]! : undefined;
    if (commandRow === undefined || !commandRow.reads) throw respRefusals.notRead(name);
    checkArity(name, commandRow.arity, inner);
    await commandRow.run(this.#context(name, terms), inner);
  }
}

function checkArity(name: string, arity: number, words: Words): void {
  if (arity >= 0 ? words.length !== arity : words.length < -arity) throw respRefusals.arity(name);
}

/** Say nothing of rows. */
const ofConnection: ReadonlySet<string> = new Set(
  'auth hello reset quit ping echo select client info config command annals.set unsubscribe punsubscribe'.split(' '),
);
const whileSubscribed: ReadonlySet<string> = new Set('subscribe psubscribe unsubscribe punsubscribe ping quit reset'.split(' '));
