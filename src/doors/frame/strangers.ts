/**
 * Connections that have not authenticated, over all doors. A bound holds for them: where one more comes, the one that was silent
 * for longest is cut off, so that whoever fills the bound keeps nobody out who logs in.
 */

import type { ServerResponse } from 'node:http';
import type { Server, Socket } from 'node:net';

/** A socket, or what stands for one. */
export interface Stranger {
  destroy(): unknown;
}

/** Each may hold 16 KiB of a message, what one read of a socket brings (64 KiB), and the state of a TLS handshake. */
const strangersMax = 1_000;

export class Strangers {
  readonly #max: number;
  /** Those that were silent for longest first. */
  readonly #all = new Set<Stranger>();

  constructor(max = strangersMax) {
    this.#max = max;
  }

  get count(): number {
    return this.#all.size;
  }

  admit(stranger: Stranger): void {
    this.#all.add(stranger);
    if (this.#all.size <= this.#max) return;
    const [silent] = this.#all;
    this.#all.delete(silent!);
    silent!.destroy();
  }

  /** It sent a whole message. */
  heard(stranger: Stranger): void {
    if (this.#all.delete(stranger)) this.#all.add(stranger);
  }

  /** It has authenticated, or is gone. */
  leave(stranger: Stranger): void {
    this.#all.delete(stranger);
  }
}

/** One stranger has the first at a time, all of them the second in a turn of the event loop: some two hundred of the smallest requests. */
const portionBytes = 2_048;
const turnBytes = 16_384;

/**
 * The HTTP parser makes requests of all that it is given, a thousand of what one read of a socket brings. Strangers take turns
 * with portions of what they sent.
 */
class ParseTurns {
  readonly #yieldTurn: () => Promise<void>;
  readonly #waiting: PendingInput[] = [];
  #left = turnBytes;
  #isRunning = false;

  constructor(yieldTurn: () => Promise<void>) {
    this.#yieldTurn = yieldTurn;
  }

  /** At once, where something is left of this turn. */
  next(input: PendingInput): void {
    this.#waiting.push(input);
    if (this.#left === turnBytes) void this.#yieldTurn().then(this.#renew);
    if (!this.#isRunning) this.#run();
  }

  readonly #renew = (): void => {
    this.#left = turnBytes;
    if (this.#waiting.length === 0) return;
    void this.#yieldTurn().then(this.#renew);
    this.#run();
  };

  #run(): void {
    this.#isRunning = true;
    while (this.#left > 0 && this.#waiting.length > 0) this.#left -= this.#waiting.shift()!.parse(portionBytes);
    this.#isRunning = false;
  }
}

/** Stands between a socket and the parser of an HTTP server until it is known whose it is. */
class PendingInput {
  readonly #socket: Socket;
  readonly #turns: ParseTurns;
  readonly #parse: (bytes: Buffer) => void;
  #held: Buffer | null = null;
  #state: 'open' | 'in line' | 'paused by Node' | 'parsing' | 'left' = 'open';
  #isKnown = false;

  constructor(socket: Socket, turns: ParseTurns) {
    this.#socket = socket;
    this.#turns = turns;
    this.#parse = socket.listeners('data').at(-1) as (bytes: Buffer) => void;
    // Node lets its parser read the socket beneath its listeners until there is one that is not its own.
    socket.on('data', this.#onData).on('resume', this.#onResume).off('data', this.#parse);
  }

  readonly #onData = (bytes: Buffer): void => {
    this.#held = this.#held === null ? bytes : Buffer.concat([this.#held, bytes]);
    if (this.#state === 'open') this.#wait();
  };

  readonly #onResume = (): void => {
    // Whoever reads a body resumes its socket: what came then would pile up behind what waits already.
    if (this.#state === 'in line') this.#socket.pause();
    else if (this.#state === 'paused by Node' && !this.#socket.isPaused()) this.#wait();
  };

  #wait(): void {
    this.#state = 'in line';
    this.#socket.pause();
    this.#turns.next(this);
  }

  /** Gives the parser its next bytes, and says how many these were. */
  parse(bytesMax: number): number {
    if (this.#state !== 'in line') return 0;
    const socket = this.#socket;
    const piece = this.#held!.subarray(0, bytesMax);
    this.#held = piece.length < this.#held!.length ? this.#held!.subarray(piece.length) : null;
    // From here on it is Node that pauses it.
    socket.resume();
    if (socket.destroyed || socket.writableEnded) {
      this.#held = null;
      this.#state = 'open';
      return 0;
    }
    this.#state = 'parsing';
    this.#parse(piece);
    this.#state = 'open';
    if (this.#isKnown) this.#leave();
    else if (this.#held !== null) {
      if (socket.isPaused()) this.#state = 'paused by Node';
      else this.#wait();
    }
    return piece.length;
  }

  /** The client is known: the parser is given all that waits, and what comes. */
  know(): void {
    this.#isKnown = true;
    if (this.#state !== 'parsing') queueMicrotask(() => this.#leave());
  }

  #leave(): void {
    if (this.#state === 'left') return;
    const socket = this.#socket;
    if (this.#state === 'in line') socket.resume();
    this.#state = 'left';
    socket.on('data', this.#parse).off('data', this.#onData).off('resume', this.#onResume);
    if (this.#held !== null) this.#parse(this.#held);
    this.#held = null;
  }
}

/** Credentials that one connection may have refused before it ends. */
const refusalsMax = 5;

/** The same of connections of an HTTP server, which the server itself reads. */
export class HttpStrangers {
  readonly #turns: ParseTurns;
  readonly #strangers = new Strangers();
  /** Sockets that requests come by, by what was admitted: under TLS that is another one. */
  readonly #admitted = new WeakMap<Socket, Socket>();
  readonly #refusals = new WeakMap<Socket, number>();
  readonly #pendingInputs = new WeakMap<Socket, PendingInput>();

  constructor(yieldTurn: () => Promise<void>) {
    this.#turns = new ParseTurns(yieldTurn);
  }

  /** After all that takes connections of this server listens. */
  watch(server: Server): void {
    const handshaking = new Map<string, Socket>();
    const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
    const isSecure = server.listenerCount('secureConnection') > 0;
    server.on('connection', (socket: Socket) => {
      this.#strangers.admit(socket);
      const name = nameOf(socket);
      if (isSecure) handshaking.set(name, socket);
      else this.#admitted.set(socket, socket);
      this.ration(socket);
      socket.once('close', () => {
        this.#strangers.leave(socket);
        if (handshaking.get(name) === socket) handshaking.delete(name);
      });
    });
    server.on('secureConnection', (secured: Socket) => {
      const socket = handshaking.get(nameOf(secured));
      if (socket === undefined) return;
      handshaking.delete(nameOf(secured));
      this.#admitted.set(secured, socket);
      this.ration(secured);
    });
  }

  /** The server reads from it, from now on in portions: where it does not do so yet, or knows the client, nothing changes. */
  ration(socket: Socket): void {
    if ('parser' in socket && this.#admitted.has(socket)) this.#pendingInputs.set(socket, new PendingInput(socket, this.#turns));
  }

  /** A request came that needs no credential. */
  heard(socket: Socket): void {
    this.#strangers.heard(this.#admitted.get(socket) ?? socket);
  }

  /** A request came with a good credential. */
  know(socket: Socket): void {
    const admitted = this.#admitted.get(socket);
    if (admitted === undefined) return;
    this.#admitted.delete(socket);
    this.#strangers.leave(admitted);
    this.#pendingInputs.get(socket)?.know();
    this.#pendingInputs.delete(socket);
  }

  /** A credential was refused: where that was often, the connection ends with the answer. */
  refuse(socket: Socket, answer: ServerResponse): void {
    const count = (this.#refusals.get(socket) ?? 0) + 1;
    this.#refusals.set(socket, count);
    // Told by a header, so that the client sends its next request by another one.
    if (count >= refusalsMax) answer.shouldKeepAlive = false;
  }
}
