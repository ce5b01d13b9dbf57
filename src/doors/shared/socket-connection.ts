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
const strangerBytesMax = 16 * 1024;
/** How long, and for how many bytes, a client may go on sending once the connection ends, so that it finds why. */
const lingering = { known: { ms: 30_000, bytes: 256 << 20 }, stranger: { ms: 2_000, bytes: 1 << 20 } } as const;
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
  readonly #parts: ConnectionDependencies<S, M>;
  readonly #received: ReceivedBytes<S, M>;
  readonly #unsent: UnsentBytes;
  readonly #login: LoginLimits;
  readonly #tls: TlsDetection;
  readonly #session: Session<M>;
  readonly #gone = new AbortController();
  readonly #holding: Holding;
  /** Bytes of the long message that is handled. */
  #handledBytes = 0;
  #onClosed = (): void => undefined;
  /** Resolves when the socket is closed. */
  readonly closed = new Promise<void>((resolve) => (this.#onClosed = resolve));
  #socket: Socket;
  /** Draining: it ends between two requests. Ending: nothing more is handled or written. */
  #phase: 'open' | 'draining' | 'ending' = 'open';
  #readable = (): void => undefined;

  constructor(socket: Socket, parts: ConnectionDependencies<S, M>) {
    this.#socket = socket;
    this.#parts = parts;
    this.#tls = new TlsDetection(parts.secureContext !== null);
    this.clientIp = socket.remoteAddress ?? null;
    this.#received = new ReceivedBytes(parts.protocol.codec);
    const cutOff = (): void => this.cutOff();
    this.#unsent = new UnsentBytes(parts.clock, { onChange: () => this.#hold(), cutOff });
    this.#holding = parts.memory.hold(cutOff);
    this.#login = new LoginLimits(parts.clock, parts.unauthenticated, cutOff);
    this.#listen(socket);
    this.#session = parts.protocol.open(this);
  }

  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  get isDraining(): boolean {
    return this.#parts.draining.hasBegun;
  }

  get canSecure(): boolean {
    return this.#parts.secureContext !== null && !(this.#socket instanceof TLSSocket);
  }

  get #isEnding(): boolean {
    return this.#phase === 'ending';
  }

  /** Resolves when nothing more is done on the connection. */
  async run(): Promise<void> {
    void this.#login.limitSilence();
    const { memory } = this.#parts;
    try {
      while (!this.gone.aborted && !this.#isEnding) {
        if (this.#phase === 'draining' && this.#session.atRest) {
          this.#sayFarewell(shuttingDown());
          break;
        }
        const message = this.#received.next(this.#login.isKnown ? this.#parts.messageBytesMax : strangerBytesMax);
        if (message === pause) await this.#parts.yieldTurn();
        else if (message !== null) {
          if (!this.#login.isKnown) this.#login.countMessage();
          if (memory.isFull) await memory.room(this.gone);
          if (this.#received.taken > longBytes) await this.#beginLong(this.#received.taken);
          const handled = this.#session.handle(message);
          if (handled !== undefined) await handled;
          this.#handledBytes = 0;
          if (this.#unsent.isMuch) await this.caughtUp();
          if (this.#login.isRefusedTooOften) this.#endSoon();
        } else {
          if (this.#session.rest !== undefined) await this.#session.rest();
          await this.#readMore();
        }
      }
    } catch (error) {
      if (!(error instanceof ServiceError)) this.#parts.reportFailure(error);
      const reported = error instanceof ServiceError ? error : new ServiceError('REL_INTERNAL', 'internal error');
      if (!this.gone.aborted) this.#sayFarewell(reported);
    } finally {
      this.#login.liftTimeLimit();
      this.#session.close();
    }
  }

  /** The first turn may still be in the round that read it: the sockets of others are looked at before the second. */
  async #beginLong(bytes: number): Promise<void> {
    this.#handledBytes = bytes;
    await this.#parts.yieldTurn();
    await this.#parts.yieldTurn();
  }

  /** Ends it before anything was asked. */
  refuse(error: ServiceError): void {
    this.#sayFarewell(error);
    this.#session.close();
  }

  /** Ends it once no request is in hand. */
  drain(): void {
    if (!this.#isEnding) this.#phase = 'draining';
    this.#readable();
  }

  cutOff(): void {
    this.#socket.destroy();
  }

  secure(): void {
    if (this.#received.waiting > 0 || this.#socket.readableLength > 0) {
      this.cutOff();
      return;
    }
    this.#tls.require();
  }

  #wrapInTls(): void {
    const plain = this.#socket;
    plain.removeAllListeners('readable');
    plain.removeAllListeners('end');
    const secured = new TLSSocket(plain, { isServer: true, secureContext: this.#parts.secureContext! });
    this.#socket = secured;
    this.#listen(secured);
  }

  write(bytes: Uint8Array): void {
    if (this.gone.aborted || this.#isEnding) return;
    this.#unsent.write(this.#socket, bytes);
  }

  async caughtUp(): Promise<void> {
    if (this.#unsent.isMuch && !this.gone.aborted) await this.#unsent.caughtUp();
  }

  markAuthenticated(): void {
    this.#login.markAuthenticated();
  }

  watches(): void {
    this.#login.liftTimeLimit();
  }

  loginRefused(): Promise<void> {
    return this.#login.delayNextLogin(this.gone);
  }

  #hold(): void {
    this.#holding.set(this.#received.size + this.#unsent.count + this.#handledBytes);
  }

  end(): void {
    this.#phase = 'ending';
    this.#socket.end();
    // A client that takes nothing does not keep the socket.
    void this.#unsent.limitStall(this.gone);
  }

  #sayFarewell(error: ServiceError): void {
    const farewell = this.#session.farewell(error);
    this.write(farewell);
    if (farewell.length > 0) return this.#endSoon();
    this.end();
    // A client that gets no farewell may not be reading: it would not see the end of the connection, and not end it either.
    this.#socket.destroySoon();
  }

  /** Ends the connection, and reads the client's remaining bytes: a reset would hide the farewell from it. */
  #endSoon(): void {
    this.end();
    const socket = this.#socket;
    const { ms, bytes } = lingering[this.#login.isKnown ? 'known' : 'stranger'];
    let left = bytes;
    socket.removeAllListeners('readable');
    socket.on('data', (piece: Buffer) => {
      left -= piece.length;
      if (left < 0) this.cutOff();
    });
    socket.resume();
    void this.#parts.clock.sleep(ms, this.gone).then(() => this.gone.aborted || this.cutOff());
  }

  #listen(socket: Socket): void {
    const onEnd = (): void => {
      this.#gone.abort(isOver);
      this.#readable();
      this.#unsent.wakeWriters();
    };
    socket.setNoDelay(true);
    socket.on('readable', () => {
      // The end is seen once all was read: it has to be, while something else is worked on, too.
      if (socket.readableLength === 0) socket.read();
      this.#readable();
    });
    socket.on('end', onEnd);
    socket.on('close', onEnd);
    socket.on('close', () => {
      this.#login.leave();
      this.#holding.set(0);
      this.#onClosed();
    });
    socket.on('error', () => socket.destroy());
  }

  async #readMore(): Promise<void> {
    const { memory } = this.#parts;
    this.#hold();
    if (memory.isFull && this.#received.size > 0) await memory.room(this.gone);
    const piece = this.#socket.read() as Buffer | null;
    if (piece !== null) {
      if (this.#tls.isDecided) this.#received.push(piece);
      else await this.#open(piece);
      this.#hold();
      return;
    }
    if (this.gone.aborted) return;
    await new Promise<void>((resolve) => (this.#readable = resolve));
  }

  /** Goes on under TLS or in the clear, once the first bytes tell. */
  async #open(piece: Buffer): Promise<void> {
    const decision = this.#tls.decide(piece);
    if (decision === null) return;
    if (decision.kind === 'attempt') return this.cutOff();
    if (decision.kind === 'cleartext') return this.#received.push(decision.opening);
    // A handshake takes a millisecond or two: of many clients, one has it in a turn.
    await this.#parts.yieldTurn();
    if (this.gone.aborted) return;
    this.#socket.unshift(decision.opening);
    this.#wrapInTls();
  }
}
