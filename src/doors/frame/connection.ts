/**
 * One client of a door over plain sockets. What must hold: no more is read than is worked on, no more is written than the client
 * takes, messages are handled one after the other, and whoever is slow to authenticate or to read is cut off.
 */
import type { Socket } from 'node:net';
import { type SecureContext, TLSSocket } from 'node:tls';
import type { Clock } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import { type Codec, longBytes } from './codec.ts';
import { Inbox } from './inbox.ts';

/** How long a client may take to say who it is, and to take any of what was sent. */
export const waits = { authenticateMs: 10_000, stalledMs: 30_000 } as const;
/** What may wait for the client while more is made. */
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

/** What a session does with its connection. */
export interface Connection {
  readonly clientIp: string | null;
  /** Aborts when the client is gone. */
  readonly gone: AbortSignal;
  /** Whether TLS can be begun: it is offered, and not in force. */
  readonly canSecure: boolean;
  /** Goes on under TLS. What was sent ahead of it in the clear ends the connection: somebody else may have put it there. */
  secure(): void;
  write(bytes: Uint8Array): void;
  /** Resolves once little enough waits for the client, or it is gone. */
  caughtUp(): Promise<void>;
  /** From here on the client may take its time. */
  authenticated(): void;
  /** Sends what waits, and closes. */
  end(): void;
}

export interface Session<M> {
  /** True between two requests: a drain ends the connection there. */
  readonly atRest: boolean;
  /** Undefined where it is handled at once. */
  handle(message: M): Promise<void> | void;
  /** All that was sent so far is handled: what was put off until now is done. */
  rest?(): Promise<void>;
  /** What a client is told before the connection ends by this error. */
  farewell(error: ServiceError): Uint8Array;
  close(): void;
}

export interface Protocol<S, M> {
  readonly codec: Codec<S, M>;
  open(connection: Connection): Session<M>;
}

export interface ConnectionParts<S, M> {
  readonly protocol: Protocol<S, M>;
  readonly clock: Clock;
  readonly secureContext: SecureContext | null;
  /** Lets others have their turn. */
  readonly yieldTurn: () => Promise<void>;
  /** What must not happen, for the operator. */
  readonly failed: (error: unknown) => void;
}

export class SocketConnection<S, M> implements Connection {
  readonly clientIp: string | null;
  readonly #parts: ConnectionParts<S, M>;
  readonly #inbox: Inbox<S, M>;
  readonly #session: Session<M>;
  readonly #gone = new AbortController();
  readonly #authenticated = new AbortController();
  #onClosed = (): void => undefined;
  /** Resolves when the socket is closed. */
  readonly closed = new Promise<void>((resolve) => (this.#onClosed = resolve));
  #socket: Socket;
  /** First bytes, while they don't tell whether the client speaks TLS from the start; null once they did. */
  #opening: Buffer | null;
  #draining = false;
  #ending = false;
  #ahead = 0;
  #takenMs = 0;
  #readable = (): void => undefined;
  /** Who waits for the client to have taken most of it: a request, and what is sent out of turn. */
  #waiting: (() => void)[] = [];

  constructor(socket: Socket, parts: ConnectionParts<S, M>) {
    this.#socket = socket;
    this.#parts = parts;
    this.#opening = parts.secureContext && Buffer.alloc(0);
    this.clientIp = socket.remoteAddress ?? null;
    this.#inbox = new Inbox(parts.protocol.codec);
    this.#listen(socket);
    this.#session = parts.protocol.open(this);
  }

  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  get canSecure(): boolean {
    return this.#parts.secureContext !== null && !(this.#socket instanceof TLSSocket);
  }

  /** Resolves when nothing more is done on the connection. */
  async run(): Promise<void> {
    void this.#limitSilence();
    try {
      while (!this.gone.aborted && !this.#ending) {
        if (this.#draining && this.#session.atRest) {
          this.#sayFarewell(new ServiceError('REL_UNAVAILABLE', 'the server is shutting down: connect again later'));
          break;
        }
        const message = this.#inbox.next();
        if (message !== null) {
          if (this.#inbox.taken > longBytes) {
            // The first turn may still be in the round that read it: the sockets of others are looked at before the second.
            await this.#parts.yieldTurn();
            await this.#parts.yieldTurn();
          }
          const handled = this.#session.handle(message);
          if (handled !== undefined) await handled;
          if (this.#ahead > aheadBytes) await this.caughtUp();
        } else {
          if (this.#session.rest !== undefined) await this.#session.rest();
          await this.#more();
        }
      }
    } catch (error) {
      if (!(error instanceof ServiceError)) this.#parts.failed(error);
      const told = error instanceof ServiceError ? error : new ServiceError('REL_INTERNAL', 'internal error');
      if (!this.gone.aborted) this.#sayFarewell(told);
    } finally {
      this.#authenticated.abort();
      this.#session.close();
    }
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
    this.#wrap();
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
      this.#socket.write(piece, () => {
        this.#ahead -= piece.length;
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
    over.abort();
  }

  #wakeWriters(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  authenticated(): void {
    this.#authenticated.abort();
  }

  end(): void {
    this.#ending = true;
    this.#socket.end();
    // Whoever takes nothing of what waits for it does not keep the socket.
    void this.#limitStall(this.gone);
  }

  #sayFarewell(error: ServiceError): void {
    const said = this.#session.farewell(error);
    this.write(said);
    this.end();
    // Who is told nothing may not be listening: it would not see that the connection ends, and not end it either.
    if (said.length === 0) this.#socket.destroySoon();
  }

  #listen(socket: Socket): void {
    const over = (): void => {
      this.#gone.abort();
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
    socket.on('close', () => this.#onClosed());
    socket.on('error', () => socket.destroy());
  }

  async #more(): Promise<void> {
    const piece = this.#socket.read() as Buffer | null;
    if (piece !== null) {
      if (this.#opening === null) this.#inbox.push(piece);
      else this.#tell(Buffer.concat([this.#opening, piece]));
      return;
    }
    if (this.gone.aborted) return;
    await new Promise<void>((resolve) => (this.#readable = resolve));
  }

  #tell(opening: Buffer): void {
    const isTls = mayBeTls(opening);
    this.#opening = isTls && opening.length < 3 ? opening : null;
    if (this.#opening !== null) return;
    if (!isTls) return this.#inbox.push(opening);
    this.#socket.unshift(opening);
    this.#wrap();
  }

  async #limitSilence(): Promise<void> {
    await this.#parts.clock.sleep(waits.authenticateMs, this.#authenticated.signal);
    if (!this.#authenticated.signal.aborted) this.cutOff();
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
