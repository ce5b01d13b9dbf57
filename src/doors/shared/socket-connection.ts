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
import { Inbox, pause } from './received-bytes.ts';
import type { Strangers } from './unauthenticated-connections.ts';
import type { Holding, WireMemory } from './wire-memory.ts';

/** Time limits for a client to authenticate, and to take any of the bytes sent. */
export const waits = { authenticateMs: 10_000, stalledMs: 30_000 } as const;
/** A message of a client that has not authenticated is at most so long. */
const strangerBytesMax = 16 * 1024;
/** Most messages of a client before it has authenticated. */
const strangerMessagesMax = 64;
/** How long it waits after its first refused login; twice as long after each more, and after the last the connection ends. */
const refusalMs = 100;
const refusalsMax = 5;
/** How long, and for how many bytes, a client may go on sending once the connection ends, so that it finds why. */
const lingering = { known: { ms: 30_000, bytes: 256 << 20 }, stranger: { ms: 2_000, bytes: 1 << 20 } } as const;
/** Most bytes that wait for the client while more are made. */
const aheadBytes = 256 * 1024;
/** A client that takes one of these is not stalled. */
const pieceBytes = 64 * 1024;
/**
 * How TLS begins: a handshake record of version 3.1 to 3.4. No protocol's first message does: commands are texts, and a message
 * that begins with its length would be longer than any greeting is.
 */
const mayBeTls = (bytes: Uint8Array): boolean =>
  (bytes.length < 1 || bytes[0] === 0x16) &&
  (bytes.length < 2 || bytes[1] === 3) &&
  (bytes.length < 3 || (bytes[2]! >= 1 && bytes[2]! <= 4));

/** One error for all: creating one takes longer than everything else for a client that leaves. */
const isOver = new Error('over');

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
  readonly strangers: Strangers;
  readonly memory: WireMemory;
  /** Lets others have their turn. */
  readonly yieldTurn: () => Promise<void>;
  /** Reports an internal failure to the operator. */
  readonly reportFailure: (error: unknown) => void;
}

export class SocketConnection<S, M> implements Connection {
  readonly clientIp: string | null;
  readonly #parts: ConnectionDependencies<S, M>;
  readonly #inbox: Inbox<S, M>;
  readonly #session: Session<M>;
  readonly #gone = new AbortController();
  /** Aborts when the client need not hurry any more to authenticate. */
  readonly #mayStay = new AbortController();
  readonly #stranger = { destroy: () => this.cutOff() };
  readonly #holding: Holding;
  #isKnown = false;
  #refusals = 0;
  /** Messages of a stranger since then. */
  #messages = 0;
  #messagesFromMs = 0;
  /** Length of the long message that is handled. */
  #inHand = 0;
  #onClosed = (): void => undefined;
  /** Resolves when the socket is closed. */
  readonly closed = new Promise<void>((resolve) => (this.#onClosed = resolve));
  #socket: Socket;
  /** First bytes, while they don't tell whether the client speaks TLS from the start; null once they did. */
  #opening: Buffer | null;
  /** TLS was agreed upon, and has not begun. */
  #mustSecure = false;
  #draining = false;
  #ending = false;
  #ahead = 0;
  #takenMs = 0;
  #readable = (): void => undefined;
  /** Resolvers of writers that wait until the client has taken most bytes: a request, and messages out of turn. */
  #waiting: (() => void)[] = [];

  constructor(socket: Socket, parts: ConnectionDependencies<S, M>) {
    this.#socket = socket;
    this.#parts = parts;
    this.#opening = parts.secureContext && Buffer.alloc(0);
    this.clientIp = socket.remoteAddress ?? null;
    this.#inbox = new Inbox(parts.protocol.codec);
    this.#holding = parts.memory.hold(() => this.cutOff());
    parts.strangers.admit(this.#stranger);
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

  /** Resolves when nothing more is done on the connection. */
  async run(): Promise<void> {
    void this.#limitSilence();
    const { memory } = this.#parts;
    try {
      while (!this.gone.aborted && !this.#ending) {
        if (this.#draining && this.#session.atRest) {
          this.#sayFarewell(shuttingDown());
          break;
        }
        const message = this.#inbox.next(this.#isKnown ? this.#parts.messageBytesMax : strangerBytesMax);
        if (message === pause) await this.#parts.yieldTurn();
        else if (message !== null) {
          if (!this.#isKnown) this.#countMessage();
          if (memory.isFull) await memory.room(this.gone);
          if (this.#inbox.taken > longBytes) await this.#beginLong(this.#inbox.taken);
          const handled = this.#session.handle(message);
          if (handled !== undefined) await handled;
          this.#inHand = 0;
          if (this.#ahead > aheadBytes) await this.caughtUp();
          if (this.#refusals >= refusalsMax) this.#endSoon();
        } else {
          if (this.#session.rest !== undefined) await this.#session.rest();
          await this.#more();
        }
      }
    } catch (error) {
      if (!(error instanceof ServiceError)) this.#parts.reportFailure(error);
      const told = error instanceof ServiceError ? error : new ServiceError('REL_INTERNAL', 'internal error');
      if (!this.gone.aborted) this.#sayFarewell(told);
    } finally {
      this.#mayStay.abort(isOver);
      this.#session.close();
    }
  }

  /** The first turn may still be in the round that read it: the sockets of others are looked at before the second. */
  async #beginLong(bytes: number): Promise<void> {
    this.#inHand = bytes;
    await this.#parts.yieldTurn();
    await this.#parts.yieldTurn();
  }

  #countMessage(): void {
    const { strangers, clock } = this.#parts;
    strangers.noteMessage(this.#stranger);
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#messagesFromMs > waits.authenticateMs) {
      this.#messages = 0;
      this.#messagesFromMs = nowMs;
    }
    if (++this.#messages > strangerMessagesMax) throw new ServiceError('REL_UNAUTHENTICATED', 'log in first');
  }

  /** Ends it before anything was asked. */
  refuse(error: ServiceError): void {
    this.#sayFarewell(error);
    this.#session.close();
  }

  /** Ends it once no request is in hand. */
  drain(): void {
    this.#draining = true;
    this.#readable();
  }

  cutOff(): void {
    this.#socket.destroy();
  }

  secure(): void {
    if (this.#inbox.waiting > 0 || this.#socket.readableLength > 0) {
      this.cutOff();
      return;
    }
    this.#mustSecure = true;
    this.#opening = Buffer.alloc(0);
  }

  #wrap(): void {
    const plain = this.#socket;
    plain.removeAllListeners('readable');
    plain.removeAllListeners('end');
    const secured = new TLSSocket(plain, { isServer: true, secureContext: this.#parts.secureContext! });
    this.#socket = secured;
    this.#listen(secured);
  }

  write(bytes: Uint8Array): void {
    if (this.gone.aborted || this.#ending) return;
    if (this.#ahead === 0) this.#takenMs = this.#parts.clock.monotonicMs();
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      const piece = bytes.subarray(at, at + pieceBytes);
      this.#ahead += piece.length;
      this.#hold();
      this.#socket.write(piece, () => {
        this.#ahead -= piece.length;
        this.#hold();
        this.#takenMs = this.#parts.clock.monotonicMs();
        if (this.#ahead <= aheadBytes) this.#wakeWriters();
      });
    }
  }

  async caughtUp(): Promise<void> {
    if (this.#ahead <= aheadBytes || this.gone.aborted) return;
    const over = new AbortController();
    void this.#limitStall(over.signal);
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
    over.abort(isOver);
  }

  #wakeWriters(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  markAuthenticated(): void {
    this.#isKnown = true;
    this.#refusals = 0;
    this.#parts.strangers.leave(this.#stranger);
    this.#mayStay.abort(isOver);
  }

  watches(): void {
    this.#mayStay.abort(isOver);
  }

  async loginRefused(): Promise<void> {
    const waitMs = refusalMs * 2 ** this.#refusals++;
    if (this.#refusals < refusalsMax) await this.#parts.clock.sleep(waitMs, this.gone);
  }

  #hold(): void {
    this.#holding.set(this.#inbox.size + this.#ahead + this.#inHand);
  }

  end(): void {
    this.#ending = true;
    this.#socket.end();
    // A client that takes nothing does not keep the socket.
    void this.#limitStall(this.gone);
  }

  #sayFarewell(error: ServiceError): void {
    const said = this.#session.farewell(error);
    this.write(said);
    if (said.length > 0) return this.#endSoon();
    this.end();
    // A client that gets no farewell may not be reading: it would not see the end of the connection, and not end it either.
    this.#socket.destroySoon();
  }

  /** Ends the connection, and reads the client's remaining bytes: a reset would hide the farewell from it. */
  #endSoon(): void {
    this.end();
    const socket = this.#socket;
    const { ms, bytes } = lingering[this.#isKnown ? 'known' : 'stranger'];
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
    const over = (): void => {
      this.#gone.abort(isOver);
      this.#readable();
      this.#wakeWriters();
    };
    socket.setNoDelay(true);
    socket.on('readable', () => {
      // The end is seen once all was read: it has to be, while something else is worked on, too.
      if (socket.readableLength === 0) socket.read();
      this.#readable();
    });
    socket.on('end', over);
    socket.on('close', over);
    socket.on('close', () => {
      this.#parts.strangers.leave(this.#stranger);
      this.#holding.set(0);
      this.#onClosed();
    });
    socket.on('error', () => socket.destroy());
  }

  async #more(): Promise<void> {
    const { memory } = this.#parts;
    this.#hold();
    if (memory.isFull && this.#inbox.size > 0) await memory.room(this.gone);
    const piece = this.#socket.read() as Buffer | null;
    if (piece !== null) {
      if (this.#opening === null) this.#inbox.push(piece);
      else await this.#tell(Buffer.concat([this.#opening, piece]));
      this.#hold();
      return;
    }
    if (this.gone.aborted) return;
    await new Promise<void>((resolve) => (this.#readable = resolve));
  }

  async #tell(opening: Buffer): Promise<void> {
    const isTls = mayBeTls(opening);
    this.#opening = isTls && opening.length < 3 ? opening : null;
    if (this.#opening !== null) return;
    if (!isTls) {
      // Something else than TLS after it was agreed upon is an attempt.
      if (this.#mustSecure) return this.cutOff();
      return this.#inbox.push(opening);
    }
    // A handshake takes a millisecond or two: of many clients, one has it in a turn.
    await this.#parts.yieldTurn();
    if (this.gone.aborted) return;
    this.#socket.unshift(opening);
    this.#wrap();
  }

  async #limitSilence(): Promise<void> {
    await this.#parts.clock.sleep(waits.authenticateMs, this.#mayStay.signal);
    if (!this.#mayStay.signal.aborted) this.cutOff();
  }

  async #limitStall(over: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    for (let rest: number = waits.stalledMs; !over.aborted; ) {
      await clock.sleep(rest, over);
      if (over.aborted) return;
      rest = waits.stalledMs - (clock.monotonicMs() - this.#takenMs);
      if (rest <= 0) return this.cutOff();
    }
  }
}
