/**
 * One client of a door over plain sockets. Invariants: no more is read than is worked on, no more is written than the client
 * takes, messages are handled one after the other, and a client that is slow to authenticate or to read is cut off.
 */
import type { Socket } from 'node:net';
import { type SecureContext, TLSSocket } from 'node:tls';
import type { Clock } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import { type Codec, longBytes } from './codec.ts';
import { type Drain, shuttingDown } from './drain.ts';
import { LoginLimits } from './login-limits.ts';
import { pause, ReceivedBytes } from './received-bytes.ts';
import { TlsDetection } from './tls-detection.ts';
import type { UnauthenticatedConnections } from './unauthenticated-connections.ts';
import { isOver, UnsentBytes } from './unsent-bytes.ts';
import type { Holding, WireMemory } from './wire-memory.ts';

/** A message of a client that has not authenticated is at most so long. */
const strangerMessageBytes = 16 * 1024;
/** How long, and for how many bytes, a client may go on sending once the connection ends, so that it finds why. */
const lingeringLimits = { known: { ms: 30_000, bytes: 256 << 20 }, stranger: { ms: 2_000, bytes: 1 << 20 } } as const;
/** The connection as a session uses it. */
export interface Connection {
  readonly clientIp: string | null;
  /** Aborts when the client is gone. */
  readonly gone: AbortSignal;
  /** The server is shutting down: logins are refused. */
  readonly isDraining: boolean;
  /** Whether TLS can be begun: it is offered, and not in force. */
  readonly canSecure: boolean;
  /** Continues under TLS. Cleartext sent ahead of it ends the connection: an attacker may have injected it. */
  secure(): void;
  write(bytes: Uint8Array): void;
  /** Resolves once little enough waits for the client, or it is gone. */
  caughtUp(): Promise<void>;
  /** Lifts the limits on time and message length for clients that have not authenticated. */
  markAuthenticated(): void;
  /** Lifts the time limit of the login as long as the client keeps asking, as clients do that watch a server. */
  watches(): void;
  /** The client could not authenticate: resolves when its next message is looked at. Ends the connection where that was often. */
  loginRefused(): Promise<void>;
  /** Sends what waits, and closes. */
  end(): void;
}

export interface Session<M> {
  /** True between two requests: a drain ends the connection there. */
  readonly atRest: boolean;
  /** Undefined where it is handled at once. */
  handle(message: M): Promise<void> | void;
  /** All messages so far are handled: does the postponed work. */
  rest?(): Promise<void>;
  /** The client's last message before this error ends the connection. */
  farewell(error: ServiceError): Uint8Array;
  close(): void;
}

export interface Protocol<S, M> {
  readonly codec: Codec<S, M>;
  open(connection: Connection): Session<M>;
}

export interface ConnectionDependencies<S, M> {
  readonly protocol: Protocol<S, M>;
  readonly clock: Clock;
  readonly secureContext: SecureContext | null;
  /** A message is at most so long. */
  readonly messageBytesMax: number;
  readonly draining: Drain;
  readonly unauthenticated: UnauthenticatedConnections;
  readonly memory: WireMemory;
  /** Lets others have their turn. */
  readonly yieldTurn: () => Promise<void>;
  /** Reports an internal failure to the operator. */
  readonly reportFailure: (error: unknown) => void;
}

export class SocketConnection<S, M> implements Connection {
  readonly clientIp: string | null;
  readonly #connectionParts: ConnectionDependencies<S, M>;
  readonly #receivedMessages: ReceivedBytes<S, M>;
  readonly #unsentBytes: UnsentBytes;
  readonly #loginLimits: LoginLimits;
  readonly #tlsDetection: TlsDetection;
  readonly #protocolSession: Session<M>;
  readonly #connectionGone = new AbortController();
  readonly #memoryHolding: Holding;
  /** Bytes of the long message that is handled. */
  #handledMessageBytes = 0;
  #onSocketClosed = (): void => undefined;
  /** Resolves when the socket is closed. */
  readonly closed = new Promise<void>((onSocketClosed) => (this.#onSocketClosed = onSocketClosed));
  #wireSocket: Socket;
  /** Draining: it ends between two requests. Ending: nothing more is handled or written. */
  #connectionPhase: 'open' | 'draining' | 'ending' = 'open';
  #wakeReader = (): void => undefined;

  constructor(wireSocket: Socket, connectionParts: ConnectionDependencies<S, M>) {
    this.#wireSocket = wireSocket;
    this.#connectionParts = connectionParts;
    this.#tlsDetection = new TlsDetection(connectionParts.secureContext !== null);
    this.clientIp = wireSocket.remoteAddress ?? null;
    this.#receivedMessages = new ReceivedBytes(connectionParts.protocol.codec);
    const cutOffConnection = (): void => this.cutOff();
    this.#unsentBytes = new UnsentBytes(connectionParts.clock, { onChange: () => this.#holdMemory(), cutOff: cutOffConnection });
    this.#memoryHolding = connectionParts.memory.hold(cutOffConnection);
    this.#loginLimits = new LoginLimits(connectionParts.clock, connectionParts.unauthenticated, cutOffConnection);
    this.#listenToSocket(wireSocket);
    this.#protocolSession = connectionParts.protocol.open(this);
  }

  get gone(): AbortSignal {
    return this.#connectionGone.signal;
  }

  get isDraining(): boolean {
    return this.#connectionParts.draining.hasBegun;
  }

  get canSecure(): boolean {
    return this.#connectionParts.secureContext !== null && !(this.#wireSocket instanceof TLSSocket);
  }

  get #isEnding(): boolean {
    return this.#connectionPhase === 'ending';
  }

  /** Resolves when nothing more is done on the connection. */
  async run(): Promise<void> {
    void this.#loginLimits.limitSilence();
    const { memory: wireMemory } = this.#connectionParts;
    try {
      while (!this.gone.aborted && !this.#isEnding) {
        if (this.#connectionPhase === 'draining' && this.#protocolSession.atRest) {
          this.#sayFarewell(shuttingDown());
          break;
        }
        const wireMessage = this.#receivedMessages.next(
          this.#loginLimits.isKnown ? this.#connectionParts.messageBytesMax : strangerMessageBytes,
        );
        if (wireMessage === pause) await this.#connectionParts.yieldTurn();
        else if (wireMessage !== null) {
          if (!this.#loginLimits.isKnown) this.#loginLimits.countMessage();
          if (wireMemory.isFull) await wireMemory.room(this.gone);
          if (this.#receivedMessages.taken > longBytes) await this.#beginLongMessage(this.#receivedMessages.taken);
          const handledMessage = this.#protocolSession.handle(wireMessage);
          if (handledMessage !== undefined) await handledMessage;
          this.#handledMessageBytes = 0;
          if (this.#unsentBytes.isMuch) await this.caughtUp();
          if (this.#loginLimits.isRefusedTooOften) this.#endAfterFarewell();
        } else {
          if (this.#protocolSession.rest !== undefined) await this.#protocolSession.rest();
          await this.#readFromSocket();
        }
      }
    } catch (connectionError) {
      if (!(connectionError instanceof ServiceError)) this.#connectionParts.reportFailure(connectionError);
      const reportedError =
        connectionError instanceof ServiceError ? connectionError : new ServiceError('REL_INTERNAL', 'internal error');
      if (!this.gone.aborted) this.#sayFarewell(reportedError);
    } finally {
      this.#loginLimits.liftTimeLimit();
      this.#protocolSession.close();
    }
  }

  /** The first turn may still be in the round that read it: the sockets of others are looked at before the second. */
  async #beginLongMessage(messageBytes: number): Promise<void> {
    this.#handledMessageBytes = messageBytes;
    await this.#connectionParts.yieldTurn();
    await this.#connectionParts.yieldTurn();
  }

  /** Ends it before anything was asked. */
  refuse(connectionRefusal: ServiceError): void {
    this.#sayFarewell(connectionRefusal);
    this.#protocolSession.close();
  }

  /** Ends it once no request is in hand. */
  drain(): void {
    if (!this.#isEnding) this.#connectionPhase = 'draining';
    this.#wakeReader();
  }

  cutOff(): void {
    this.#wireSocket.destroy();
  }

  secure(): void {
    if (this.#receivedMessages.waiting > 0 || this.#wireSocket.readableLength > 0) {
      this.cutOff();
      return;
    }
    this.#tlsDetection.require();
  }

  #wrapInTls(): void {
    const plainSocket = this.#wireSocket;
    plainSocket.removeAllListeners('readable');
    plainSocket.removeAllListeners('end');
    const securedSocket = new TLSSocket(plainSocket, { isServer: true, secureContext: this.#connectionParts.secureContext! });
    this.#wireSocket = securedSocket;
    this.#listenToSocket(securedSocket);
  }

  write(wireBytes: Uint8Array): void {
    if (this.gone.aborted || this.#isEnding) return;
    this.#unsentBytes.write(this.#wireSocket, wireBytes);
  }

  async caughtUp(): Promise<void> {
    if (this.#unsentBytes.isMuch && !this.gone.aborted) await this.#unsentBytes.caughtUp();
  }

  markAuthenticated(): void {
    this.#loginLimits.markAuthenticated();
  }

  watches(): void {
    this.#loginLimits.liftTimeLimit();
  }

  loginRefused(): Promise<void> {
    return this.#loginLimits.delayNextLogin(this.gone);
  }

  #holdMemory(): void {
    this.#memoryHolding.set(this.#receivedMessages.size + this.#unsentBytes.count + this.#handledMessageBytes);
  }

  end(): void {
    this.#connectionPhase = 'ending';
    this.#wireSocket.end();
    // A client that takes nothing does not keep the socket.
    void this.#unsentBytes.limitStall(this.gone);
  }

  #sayFarewell(farewellError: ServiceError): void {
    const farewellBytes = this.#protocolSession.farewell(farewellError);
    this.write(farewellBytes);
    if (farewellBytes.length > 0) return this.#endAfterFarewell();
    this.end();
    // A client that gets no farewell may not be reading: it would not see the end of the connection, and not end it either.
    this.#wireSocket.destroySoon();
  }

  /** Ends the connection, and reads the client's remaining bytes: a reset would hide the farewell from it. */
  #endAfterFarewell(): void {
    this.end();
    const endingSocket = this.#wireSocket;
    const { ms, bytes } = lingeringLimits[this.#loginLimits.isKnown ? 'known' : 'stranger'];
    let lingeringBytesLeft = bytes;
    endingSocket.removeAllListeners('readable');
    endingSocket.on('data', (lateBytes: Buffer) => {
      lingeringBytesLeft -= lateBytes.length;
      if (lingeringBytesLeft < 0) this.cutOff();
    });
    endingSocket.resume();
    void this.#connectionParts.clock.sleep(ms, this.gone).then(() => this.gone.aborted || this.cutOff());
  }

  #listenToSocket(wireSocket: Socket): void {
    const onSocketEnd = (): void => {
      this.#connectionGone.abort(isOver);
      this.#wakeReader();
      this.#unsentBytes.wakeWriters();
    };
    wireSocket.setNoDelay(true);
    wireSocket.on('readable', () => {
      // The end is seen once all was read: it has to be, while something else is worked on, too.
      if (wireSocket.readableLength === 0) wireSocket.read();
      this.#wakeReader();
    });
    wireSocket.on('end', onSocketEnd);
    wireSocket.on('close', onSocketEnd);
    wireSocket.on('close', () => {
      this.#loginLimits.leave();
      this.#memoryHolding.set(0);
      this.#onSocketClosed();
    });
    wireSocket.on('error', () => wireSocket.destroy());
  }

  async #readFromSocket(): Promise<void> {
    const { memory: wireMemory } = this.#connectionParts;
    this.#holdMemory();
    if (wireMemory.isFull && this.#receivedMessages.size > 0) await wireMemory.room(this.gone);
    const wirePiece = this.#wireSocket.read() as Buffer | null;
    if (wirePiece !== null) {
      if (this.#tlsDetection.isDecided) this.#receivedMessages.push(wirePiece);
      else await this.#openConnection(wirePiece);
      this.#holdMemory();
      return;
    }
    if (this.gone.aborted) return;
    await new Promise<void>((wakeReader) => (this.#wakeReader = wakeReader));
  }

  /** Goes on under TLS or in the clear, once the first bytes tell. */
  async #openConnection(openingPiece: Buffer): Promise<void> {
    const tlsDecision = this.#tlsDetection.decide(openingPiece);
    if (tlsDecision === null) return;
    if (tlsDecision.kind === 'attempt') return this.cutOff();
    if (tlsDecision.kind === 'cleartext') return this.#receivedMessages.push(tlsDecision.opening);
    // A handshake takes a millisecond or two: of many clients, one has it in a turn.
    await this.#connectionParts.yieldTurn();
    if (this.gone.aborted) return;
    this.#wireSocket.unshift(tlsDecision.opening);
    this.#wrapInTls();
  }
}
