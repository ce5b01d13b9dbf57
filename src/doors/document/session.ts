/**
 * One connection of the document door: commands in, replies out, in their order. Invariants: a client that has not authenticated
 * can do nothing but log in; an access record of a command is appended before its reply leaves.
 */
import { ServiceError } from '../../errors.ts';
import type { Caller } from '../../governance/caller.ts';
import { type ScramExchange, scramMechanism } from '../../governance/authentication/scram.ts';
import { inTurns, type Steps } from '../../planner/expressions/resumable-steps.ts';
import {
  asSpecial,
  isObject,
  kindOf,
  Special,
  type Stored,
  type StoredObject,
} from '../../planner/expressions/documents/document-values.ts';
import { ConnectionCaller } from '../shared/connection-caller.ts';
import type { Connection, Session } from '../shared/socket-connection.ts';
import { checkOrganization, organizationOf } from '../shared/credentials.ts';
import { shuttingDown } from '../shared/drain.ts';
import { admitAddress, type DoorDependencies, recordRefusal } from '../shared/door-dependencies.ts';
import { fixedAnswers, collectionCommands, helloReply } from './admin-commands.ts';
import type { WritableObject } from './bson.ts';
import { commandSteps, encodeReply, type MongoMessage } from './codec.ts';
import { DocumentCommandContext, type DocumentCommandRow, doorName, ignored } from './command.ts';
import type { OpenCursors } from './cursors.ts';
import { DocumentRefusal, errorDocument, mongoRefusals } from './errors.ts';
import { readCommands } from './read-commands.ts';
import { writeCommands } from './write-commands.ts';

export interface DocumentDependencies extends DoorDependencies {
  readonly cursors: OpenCursors;
  /** Numbers connections. */
  readonly number: () => number;
}

/** Commands that ask the gate. */
export const documentCommandRows: Readonly<Record<string, DocumentCommandRow>> = {
  ...readCommands,
  ...writeCommands,
  ...collectionCommands,
};

const hellos: ReadonlySet<string> = new Set(['hello', 'isMaster']);
/** Drivers send a heartbeat every ten seconds by default. */
const silenceMs = 60_000;

interface Proving {
  readonly exchange: ScramExchange;
  readonly user: string;
  /** The exchange ends with the proof, and with no empty message after it. */
  readonly short: boolean;
  caller: Caller | null;
}

export class DocumentSession implements Session<MongoMessage> {
  readonly #parts: DocumentDependencies;
  readonly #connection: Connection;
  readonly #id: number;
  #connectionCaller: ConnectionCaller | null = null;
  #proving: Proving | null = null;
  #atRest = true;
  #sent = 0;
  /** Whether it said hello since the last check, and whether it is checked. */
  #greeted = false;
  #watched = false;

  constructor(parts: DocumentDependencies, connection: Connection) {
    this.#parts = parts;
    this.#connection = connection;
    this.#id = parts.number();
  }

  get atRest(): boolean {
    return this.#atRest;
  }

  async handle(message: MongoMessage): Promise<void> {
    this.#atRest = false;
    let name = '';
    let reply: WritableObject;
    try {
      this.#connectionCaller?.beginCommand();
      const command = await this.#inTurns(commandSteps(message));
      const [sentName = ''] = command.keys();
      name = canonicalName(sentName);
      reply = await this.#run(name, sentName, command, message.form);
    } catch (error) {
      reply = errorDocument(await this.#refusalOf(name, error));
    }
    // Sent in this turn: the reply was checked for rows erased meanwhile.
    if (!message.silent) this.#connection.write(encodeReply(++this.#sent, message, reply));
    this.#atRest = true;
  }

  /** A client only waits for replies to its messages: it sees that the connection ends. */
  farewell(): Uint8Array {
    return new Uint8Array(0);
  }

  close(): void {
    this.#proving = null;
  }

  /** Short work runs at once, long work in turns. */
  #inTurns<T>(steps: Steps<T>): Promise<T> | T {
    const { done, value } = steps.next();
    return done === true ? value : inTurns(steps, this.#parts.yieldTurn);
  }

  async #refusalOf(name: string, error: unknown): Promise<ServiceError> {
    const isOfConnection =
      this.#connectionCaller === null || hellos.has(name) || name.startsWith('sasl') || Object.hasOwn(fixedAnswers, name);
    if (!isOfConnection) return this.#connectionCaller!.refusalOf(error);
    if (error instanceof ServiceError) return error;
    this.#parts.reportFailure(error);
    return new ServiceError('REL_INTERNAL', 'internal error');
  }

  async #run(name: string, sentName: string, command: StoredObject, form: MongoMessage['form']): Promise<WritableObject> {
    if (this.#connection.isDraining && this.#connectionCaller === null) throw shuttingDown();
    if (hellos.has(name)) return this.#hello(name, command);
    if (form === 'query') throw mongoRefusals.notSupported('OP_QUERY but for the first message of a connection');
    if (name === 'saslStart') return this.#saslStart(command);
    if (name === 'saslContinue') return this.#saslContinue(command);
    const answered = Object.hasOwn(fixedAnswers, name) ? fixedAnswers[name]! : undefined;
    if (this.#connectionCaller === null) {
      if (name === 'ping' || name === 'buildInfo' || name === 'endSessions') return answered!(this.#id);
      throw new DocumentRefusal(13, `Command ${name} requires authentication`, 'REL_UNAUTHENTICATED');
    }
    if (answered !== undefined) return answered(this.#id);
    if (name === 'connectionStatus') return this.#status();
    for (const transactional of ['txnNumber', 'startTransaction', 'autocommit'])
      if (command.has(transactional))
        throw new DocumentRefusal(
          20,
          'Transaction numbers are only allowed on a replica set member or mongos',
          'REL_NOT_IMPLEMENTED',
        );
    const row = Object.hasOwn(documentCommandRows, name) ? documentCommandRows[name]! : undefined;
    if (row === undefined) throw mongoRefusals.notFound(sentName.slice(0, 128));
    for (const member of command.keys())
      if (member !== sentName && !ignored.has(member) && !row.takes.includes(member))
        throw mongoRefusals.unknownField(name, member);
    return row.run(new DocumentCommandContext(name, command, this.#connectionCaller, this.#parts.cursors));
  }

  /**
   * Drivers watch a server by connections that never log in, and take a cut-off one for a server that is gone: such a connection
   * stays as long as it keeps asking.
   */
  async #limitSilence(): Promise<void> {
    this.#connection.watches();
    const { gone } = this.#connection;
    while (this.#connectionCaller === null && !gone.aborted) {
      if (!this.#greeted) return this.#connection.end();
      this.#greeted = false;
      await this.#parts.clock.sleep(silenceMs, gone);
    }
  }

  async #hello(name: string, command: StoredObject): Promise<WritableObject> {
    const { clock } = this.#parts;
    this.#greeted = true;
    if (this.#connectionCaller === null && !this.#watched) {
      this.#watched = true;
      void this.#limitSilence();
    }
    const { messageBytesMax } = this.#parts.wire;
    const reply = helloReply({ connection: this.#id, now: clock.now(), legacy: name !== 'hello', messageBytesMax });
    const speculative = command.get('speculativeAuthenticate');
    let started: WritableObject | null = null;
    if (isObject(speculative)) {
      try {
        started = await this.#saslStart(speculative);
      } catch (error) {
        // An attempt only: the client continues with one of the named mechanisms.
        if (!(error instanceof ServiceError)) throw error;
      }
    }
    return {
      ...reply,
      ...(command.has('saslSupportedMechs') && { saslSupportedMechs: [scramMechanism] }),
      ...(started !== null && { speculativeAuthenticate: started }),
      ok: 1,
    };
  }

  async #saslStart(command: StoredObject): Promise<WritableObject> {
    const mechanism = command.get('mechanism');
    if (mechanism === plainMechanism) return this.#plain(payloadOf(command));
    if (mechanism !== scramMechanism)
      throw new DocumentRefusal(
        334,
        `Received authentication for mechanism ${typeof mechanism === 'string' ? mechanism.slice(0, 64) : kindOf(mechanism)} which is not enabled`,
        'REL_UNAUTHENTICATED',
      );
    return this.#step(async () => {
      const { authenticator, random, readLimit } = this.#parts;
      admitAddress(this.#parts, readLimit, this.#connection.clientIp);
      const first = payloadOf(command);
      const exchange = authenticator.scram(random);
      const challenge = exchange.challenge(first);
      const options = command.get('options');
      const short = isObject(options) && options.get('skipEmptyExchange') === true;
      this.#proving = { exchange, user: userIn(first), short, caller: null };
      return { conversationId: 1, done: false, payload: binary(challenge), ok: 1 };
    });
  }

  async #saslContinue(command: StoredObject): Promise<WritableObject> {
    const proving = this.#proving;
    if (proving === null) throw new DocumentRefusal(18, 'Authentication failed.', 'REL_UNAUTHENTICATED');
    if (proving.caller !== null) {
      this.#login(proving.caller);
      return { conversationId: 1, done: true, payload: binary(''), ok: 1 };
    }
    return this.#step(async () => {
      const final = proving.exchange.verify(payloadOf(command));
      const caller = this.#parts.authenticator.provenCaller(proving.exchange, this.#factsOf(proving.user));
      this.#checkCaller(caller);
      proving.caller = caller;
      if (proving.short) this.#login(caller);
      return { conversationId: 1, done: proving.short, payload: binary(final), ok: 1 };
    });
  }

  /** A password in the clear, as the key-value door takes it: registry tokens are no shared secret that an exchange could prove. */
  #plain(message: string): Promise<WritableObject> {
    return this.#step(async () => {
      const { authenticator, readLimit } = this.#parts;
      admitAddress(this.#parts, readLimit, this.#connection.clientIp);
      const [, user, password, ...more] = message.split('\0');
      if (password === undefined || more.length > 0) throw new ServiceError('REL_INVALID', `malformed ${plainMechanism} message`);
      const caller = authenticator.passwordCaller(password, this.#factsOf(user!));
      this.#checkCaller(caller);
      this.#login(caller);
      return { conversationId: 1, done: true, payload: binary(''), ok: 1 };
    });
  }

  #factsOf(user: string) {
    return { door: doorName, clientIp: this.#connection.clientIp, organization: organizationOf(user) };
  }

  #checkCaller(caller: Caller): void {
    checkOrganization(this.#parts, caller);
    this.#parts.gate.checkStanding(caller);
  }

  #login(caller: Caller): void {
    this.#proving = null;
    this.#connectionCaller = new ConnectionCaller(this.#parts, caller, this.#connection.gone);
    this.#connection.markAuthenticated();
  }

  /** A step of the login. A refusal is recorded, and all refusals look alike to the client. */
  async #step(step: () => Promise<WritableObject>): Promise<WritableObject> {
    try {
      return await step();
    } catch (error) {
      this.#proving = null;
      if (!(error instanceof ServiceError)) throw error;
      const recordedError = await recordRefusal(
        this.#parts,
        { door: doorName, clientIp: this.#connection.clientIp },
        'inspect',
        error,
      );
      await this.#connection.loginRefused();
      if (recordedError.kind !== 'unauthenticated' && recordedError.kind !== 'invalid') throw recordedError;
      throw new DocumentRefusal(18, 'Authentication failed.', 'REL_UNAUTHENTICATED');
    }
  }

  #status(): WritableObject {
    const { caller } = this.#connectionCaller!;
    const users = [{ user: caller.principal, db: 'admin' }];
    return { authInfo: { authenticatedUsers: users, authenticatedUserRoles: [] }, ok: 1 };
  }
}

function payloadOf(command: StoredObject): string {
  const payload = command.get('payload');
  const binary = asSpecial(payload, '$binary');
  if (binary !== null) return Buffer.from(binary.bytes).toString();
  if (typeof payload === 'string') return Buffer.from(payload, 'base64').toString();
  throw new ServiceError('REL_INVALID', 'a step of the login has a payload');
}

const plainMechanism = 'PLAIN';

const binary = (text: string): Stored => new Special('$binary', { bytes: Buffer.from(text), type: 0 });

const namesInSmall = new Map(
  [
    ...hellos,
    ...Object.keys(fixedAnswers),
    ...Object.keys(documentCommandRows),
    'saslStart',
    'saslContinue',
    'connectionStatus',
  ].map((name) => [name.toLowerCase(), name]),
);

/** Drivers and shells send some names in small letters. */
const canonicalName = (name: string): string => namesInSmall.get(name) ?? name;

/** The name as the client's first message has it: `=2C` and `=3D` stand for what would end it. */
function userIn(clientFirst: string): string {
  const name = /(?:^|,)n=([^,]*)/.exec(clientFirst)?.[1] ?? '';
  return name.replaceAll('=2C', ',').replaceAll('=3D', '=');
}
