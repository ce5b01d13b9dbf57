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

const helloCommands: ReadonlySet<string> = new Set(['hello', 'isMaster']);
/** Drivers send a heartbeat every ten seconds by default. */
const loginSilenceMs = 60_000;

interface SaslConversation {
  readonly exchange: ScramExchange;
  readonly user: string;
  /** The exchange ends with the proof, and with no empty message after it. */
  readonly short: boolean;
  caller: Caller | null;
}

export class DocumentSession implements Session<MongoMessage> {
  readonly #documentParts: DocumentDependencies;
  readonly #wireConnection: Connection;
  readonly #connectionId: number;
  #connectionCaller: ConnectionCaller | null = null;
  #saslConversation: SaslConversation | null = null;
  #isAtRest = true;
  #sentReplyCount = 0;
  /** Whether it said hello since the last check, and whether it is checked. */
  #hasGreeted = false;
  #isSilenceWatched = false;

  constructor(documentParts: DocumentDependencies, wireConnection: Connection) {
    this.#documentParts = documentParts;
    this.#wireConnection = wireConnection;
    this.#connectionId = documentParts.number();
  }

  get atRest(): boolean {
    return this.#isAtRest;
  }

  async handle(wireMessage: MongoMessage): Promise<void> {
    this.#isAtRest = false;
    let commandName = '';
    let wireReply: WritableObject;
    try {
      this.#connectionCaller?.beginCommand();
      const commandDocument = await this.#parseInTurns(commandSteps(wireMessage));
      const [sentName = ''] = commandDocument.keys();
      commandName = canonicalName(sentName);
      wireReply = await this.#runCommand(commandName, sentName, commandDocument, wireMessage.form);
    } catch (commandError) {
      wireReply = errorDocument(await this.#commandRefusalOf(commandName, commandError));
    }
    // Sent in this turn: the reply was checked for rows erased meanwhile.
    if (!wireMessage.silent) this.#wireConnection.write(encodeReply(++this.#sentReplyCount, wireMessage, wireReply));
    this.#isAtRest = true;
  }

  /** A client only waits for replies to its messages: it sees that the connection ends. */
  farewell(): Uint8Array {
    return new Uint8Array(0);
  }

  close(): void {
    this.#saslConversation = null;
  }

  /** Short work runs at once, long work in turns. */
  #parseInTurns<T>(parseSteps: Steps<T>): Promise<T> | T {
    const { done: isParsed, value: parsedValue } = parseSteps.next();
    return isParsed === true ? parsedValue : inTurns(parseSteps, this.#documentParts.yieldTurn);
  }

  async #commandRefusalOf(commandName: string, commandError: unknown): Promise<ServiceError> {
    const isConnectionCommand =
      this.#connectionCaller === null ||
      helloCommands.has(commandName) ||
      commandName.startsWith('sasl') ||
      Object.hasOwn(fixedAnswers, commandName);
    if (!isConnectionCommand) return this.#connectionCaller!.refusalOf(commandError);
    if (commandError instanceof ServiceError) return commandError;
    this.#documentParts.reportFailure(commandError);
    return new ServiceError('REL_INTERNAL', 'internal error');
  }

  async #runCommand(
    commandName: string,
    sentName: string,
    commandDocument: StoredObject,
    messageForm: MongoMessage['form'],
  ): Promise<WritableObject> {
    if (this.#wireConnection.isDraining && this.#connectionCaller === null) throw shuttingDown();
    if (helloCommands.has(commandName)) return this.#replyHello(commandName, commandDocument);
    if (messageForm === 'query') throw mongoRefusals.notSupported('OP_QUERY but for the first message of a connection');
    if (commandName === 'saslStart') return this.#saslStart(commandDocument);
    if (commandName === 'saslContinue') return this.#saslContinue(commandDocument);
    const connectionAnswer = Object.hasOwn(fixedAnswers, commandName) ? fixedAnswers[commandName]! : undefined;
    if (this.#connectionCaller === null) {
      if (commandName === 'ping' || commandName === 'buildInfo' || commandName === 'endSessions')
        return connectionAnswer!(this.#connectionId);
      throw new DocumentRefusal(13, `Command ${commandName} requires authentication`, 'REL_UNAUTHENTICATED');
    }
    if (connectionAnswer !== undefined) return connectionAnswer(this.#connectionId);
    if (commandName === 'connectionStatus') return this.#connectionStatus();
    for (const transactionMember of ['txnNumber', 'startTransaction', 'autocommit'])
      if (commandDocument.has(transactionMember))
        throw new DocumentRefusal(
          20,
          'Transaction numbers are only allowed on a replica set member or mongos',
          'REL_NOT_IMPLEMENTED',
        );
    const commandRow = Object.hasOwn(documentCommandRows, commandName) ? documentCommandRows[commandName]! : undefined;
    if (commandRow === undefined) throw mongoRefusals.notFound(sentName.slice(0, 128));
    for (const commandMember of commandDocument.keys())
      if (commandMember !== sentName && !ignored.has(commandMember) && !commandRow.takes.includes(commandMember))
        throw mongoRefusals.unknownField(commandName, commandMember);
    return commandRow.run(
      new DocumentCommandContext(commandName, commandDocument, this.#connectionCaller, this.#documentParts.cursors),
    );
  }

  /**
   * Drivers watch a server by connections that never log in, and take a cut-off one for a server that is gone: such a connection
   * stays as long as it keeps asking.
   */
  async #limitSilence(): Promise<void> {
    this.#wireConnection.watches();
    const { gone: connectionGone } = this.#wireConnection;
    while (this.#connectionCaller === null && !connectionGone.aborted) {
      if (!this.#hasGreeted) return this.#wireConnection.end();
      this.#hasGreeted = false;
      await this.#documentParts.clock.sleep(loginSilenceMs, connectionGone);
    }
  }

  async #replyHello(helloName: string, helloDocument: StoredObject): Promise<WritableObject> {
    const { clock } = this.#documentParts;
    this.#hasGreeted = true;
    if (this.#connectionCaller === null && !this.#isSilenceWatched) {
      this.#isSilenceWatched = true;
      void this.#limitSilence();
    }
    const { messageBytesMax } = this.#documentParts.wire;
    const helloMembers = helloReply({
      connection: this.#connectionId,
      now: clock.now(),
      legacy: helloName !== 'hello',
      messageBytesMax,
    });
    const speculativeSasl = helloDocument.get('speculativeAuthenticate');
    let saslStarted: WritableObject | null = null;
    if (isObject(speculativeSasl)) {
      try {
        saslStarted = await this.#saslStart(speculativeSasl);
      } catch (saslError) {
        // An attempt only: the client continues with one of the named mechanisms.
        if (!(saslError instanceof ServiceError)) throw saslError;
      }
    }
    return {
      ...helloMembers,
      ...(helloDocument.has('saslSupportedMechs') && { saslSupportedMechs: [scramMechanism] }),
      ...(saslStarted !== null && { speculativeAuthenticate: saslStarted }),
      ok: 1,
    };
  }

  async #saslStart(saslDocument: StoredObject): Promise<WritableObject> {
    const saslMechanism = saslDocument.get('mechanism');
    if (saslMechanism === plainMechanism) return this.#loginByPlain(saslPayloadOf(saslDocument));
    if (saslMechanism !== scramMechanism)
      throw new DocumentRefusal(
        334,
        `Received authentication for mechanism ${typeof saslMechanism === 'string' ? saslMechanism.slice(0, 64) : kindOf(saslMechanism)} which is not enabled`,
        'REL_UNAUTHENTICATED',
      );
    return this.#runSaslStep(async () => {
      const { authenticator, random, readLimit } = this.#documentParts;
      admitAddress(this.#documentParts, readLimit, this.#wireConnection.clientIp);
      const clientFirst = saslPayloadOf(saslDocument);
      const scramExchange = authenticator.scram(random);
      const scramChallenge = scramExchange.challenge(clientFirst);
      const saslOptions = saslDocument.get('options');
      const skipsEmptyExchange = isObject(saslOptions) && saslOptions.get('skipEmptyExchange') === true;
      this.#saslConversation = {
        exchange: scramExchange,
        user: scramUserIn(clientFirst),
        short: skipsEmptyExchange,
        caller: null,
      };
      return { conversationId: 1, done: false, payload: saslBinary(scramChallenge), ok: 1 };
    });
  }

  async #saslContinue(saslDocument: StoredObject): Promise<WritableObject> {
    const saslConversation = this.#saslConversation;
    if (saslConversation === null) throw new DocumentRefusal(18, 'Authentication failed.', 'REL_UNAUTHENTICATED');
    if (saslConversation.caller !== null) {
      this.#loginCaller(saslConversation.caller);
      return { conversationId: 1, done: true, payload: saslBinary(''), ok: 1 };
    }
    return this.#runSaslStep(async () => {
      const serverFinal = saslConversation.exchange.verify(saslPayloadOf(saslDocument));
      const provenCaller = this.#documentParts.authenticator.provenCaller(
        saslConversation.exchange,
        this.#callerFactsOf(saslConversation.user),
      );
      this.#checkCaller(provenCaller);
      saslConversation.caller = provenCaller;
      if (saslConversation.short) this.#loginCaller(provenCaller);
      return { conversationId: 1, done: saslConversation.short, payload: saslBinary(serverFinal), ok: 1 };
    });
  }

  /** A password in the clear, as the key-value door takes it: registry tokens are no shared secret that an exchange could prove. */
  #loginByPlain(plainMessage: string): Promise<WritableObject> {
    return this.#runSaslStep(async () => {
      const { authenticator, readLimit } = this.#documentParts;
      admitAddress(this.#documentParts, readLimit, this.#wireConnection.clientIp);
      const [, plainUser, plainPassword, ...extraParts] = plainMessage.split('\0');
      if (plainPassword === undefined || extraParts.length > 0)
        throw new ServiceError('REL_INVALID', `malformed ${plainMechanism} message`);
      const plainCaller = authenticator.passwordCaller(plainPassword, this.#callerFactsOf(plainUser!));
      this.#checkCaller(plainCaller);
      this.#loginCaller(plainCaller);
      return { conversationId: 1, done: true, payload: saslBinary(''), ok: 1 };
    });
  }

  #callerFactsOf(saslUser: string) {
    return { door: doorName, clientIp: this.#wireConnection.clientIp, organization: organizationOf(saslUser) };
  }

  #checkCaller(saslCaller: Caller): void {
    checkOrganization(this.#documentParts, saslCaller);
    this.#documentParts.gate.checkStanding(saslCaller);
  }

  #loginCaller(saslCaller: Caller): void {
    this.#saslConversation = null;
    this.#connectionCaller = new ConnectionCaller(this.#documentParts, saslCaller, this.#wireConnection.gone);
    this.#wireConnection.markAuthenticated();
  }

  /** A step of the login. A refusal is recorded, and all refusals look alike to the client. */
  async #runSaslStep(saslStep: () => Promise<WritableObject>): Promise<WritableObject> {
    try {
      return await saslStep();
    } catch (saslError) {
      this.#saslConversation = null;
      if (!(saslError instanceof ServiceError)) throw saslError;
      const recordedError = await recordRefusal(
        this.#documentParts,
        { door: doorName, clientIp: this.#wireConnection.clientIp },
        'inspect',
        saslError,
      );
      await this.#wireConnection.loginRefused();
      if (recordedError.kind !== 'unauthenticated' && recordedError.kind !== 'invalid') throw recordedError;
      throw new DocumentRefusal(18, 'Authentication failed.', 'REL_UNAUTHENTICATED');
    }
  }

  #connectionStatus(): WritableObject {
    const { caller } = this.#connectionCaller!;
    const authenticatedUsers = [{ user: caller.principal, db: 'admin' }];
    return { authInfo: { authenticatedUsers: authenticatedUsers, authenticatedUserRoles: [] }, ok: 1 };
  }
}

function saslPayloadOf(saslDocument: StoredObject): string {
  const saslPayload = saslDocument.get('payload');
  const binaryPayload = asSpecial(saslPayload, '$binary');
  if (binaryPayload !== null) return Buffer.from(binaryPayload.bytes).toString();
  if (typeof saslPayload === 'string') return Buffer.from(saslPayload, 'base64').toString();
  throw new ServiceError('REL_INVALID', 'a step of the login has a payload');
}

const plainMechanism = 'PLAIN';

const saslBinary = (payloadText: string): Stored => new Special('$binary', { bytes: Buffer.from(payloadText), type: 0 });

const commandsByLowerCase = new Map(
  [
    ...helloCommands,
    ...Object.keys(fixedAnswers),
    ...Object.keys(documentCommandRows),
    'saslStart',
    'saslContinue',
    'connectionStatus',
  ].map((name) => [name.toLowerCase(), name]),
);

/** Drivers and shells send some names in small letters. */
const canonicalName = (commandName: string): string => commandsByLowerCase.get(commandName) ?? commandName;

/** The name as the client's first message has it: `=2C` and `=3D` stand for what would end it. */
function scramUserIn(clientFirst: string): string {
  const scramName = /(?:^|,)n=([^,]*)/.exec(clientFirst)?.[1] ?? '';
  return scramName.replaceAll('=2C', ',').replaceAll('=3D', '=');
}
