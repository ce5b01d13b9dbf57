/**
 * Connections of an HTTP server, which Node reads by itself: those that have not authenticated are bounded in number, and the
 * requests of all begin in portions.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server, Socket } from 'node:net';
import type { Clock } from '../../clock.ts';
import { RequestTurns, type PendingWork } from './request-turns.ts';
import { UnauthenticatedConnections } from './unauthenticated-connections.ts';

/** Clients that have not authenticated have the first at a time, all of them the second in a turn of the event loop: some two hundred of the smallest requests. */
const strangerPortionBytes = 2_048;
const strangerTurnBytes = 16_384;
/** A known client has no more than so many requests begun at a time, and bytes of a body as one read of a socket brings them. */
const requestsAtOnce = 16;
const knownPortionBytes = 65_536;
/** Unanswered requests of one connection: further ones wait in its socket. */
const aheadMax = 64;

/** An input of no more bytes is short. */
const shortBytes = 256;

/** Every request line tells a version behind a slash; those of another major version end their connection. */
const versionBytes = Buffer.from('/1.');

/** The end of the bytes in which no more than `requestsAtOnce` requests begin. */
function portionEnd(bytes: Buffer): number {
  if (bytes.length <= shortBytes) return bytes.length;
  const most = bytes.subarray(0, knownPortionBytes);
  let at = 0;
  for (let i = 0; i < requestsAtOnce; i++) {
    at = most.indexOf(versionBytes, at) + versionBytes.length;
    if (at < versionBytes.length) return most.length;
  }
  return at;
}

/** Stands between a socket and the parser of an HTTP server, which would begin all requests of its input at once. */
class PendingInput implements PendingWork {
  readonly #socket: Socket;
  readonly #unauthenticated: RequestTurns;
  readonly #known: RequestTurns;
  readonly #parse: (bytes: Buffer) => void;
  readonly #parseEnd: () => void;
  #held: Buffer | null = null;
  #state: 'open' | 'in line' | 'far ahead' | 'paused by Node' | 'parsing' = 'open';
  #isKnown: boolean;
  #hasEnded = false;
  #unanswered = 0;

  constructor(socket: Socket, { strangers, known, isKnown }: { strangers: RequestTurns; known: RequestTurns; isKnown: boolean }) {
    this.#socket = socket;
    this.#unauthenticated = strangers;
    this.#known = known;
    this.#isKnown = isKnown;
    this.#parse = socket.listeners('data').at(-1) as (bytes: Buffer) => void;
    this.#parseEnd = socket.listeners('end').at(-1) as () => void;
    // Node lets its parser read the socket directly until it has a listener that is not Node's own.
    socket.on('data', this.#onData).on('end', this.#onEnd).on('resume', this.#onResume);
    socket.off('data', this.#parse).off('end', this.#parseEnd);
  }

  get isShort(): boolean {
    return this.#held === null || this.#held.length <= shortBytes;
  }

  /** From now on it uses the turns of known clients. */
  know(): void {
    this.#isKnown = true;
  }

  begin(answer: ServerResponse): void {
    this.#unanswered++;
    answer.once('close', this.#onAnswered);
  }

  readonly #onAnswered = (): void => {
    this.#unanswered--;
    if (this.#state === 'far ahead' && this.#unanswered < aheadMax) this.#wait();
  };

  readonly #onData = (bytes: Buffer): void => {
    this.#held = this.#held === null ? bytes : Buffer.concat([this.#held, bytes]);
    if (this.#state === 'open') this.#wait();
  };

  /** A socket that was resumed and paused at once tells its end nevertheless. */
  readonly #onEnd = (): void => {
    if (this.#held === null) this.#parseEnd();
    else this.#hasEnded = true;
  };

  readonly #onResume = (): void => {
    // A reader of a body resumes its socket: new bytes would pile up behind those that wait already.
    if (this.#state === 'in line' || this.#state === 'far ahead') this.#socket.pause();
    else if (this.#state === 'paused by Node' && !this.#socket.isPaused()) this.#goOn();
  };

  #wait(): void {
    this.#state = 'in line';
    (this.#isKnown ? this.#known : this.#unauthenticated).next(this);
    // Its turn may have come at once.
    if (this.#isInLine) this.#socket.pause();
  }

  get #isInLine(): boolean {
    return this.#state === 'in line';
  }

  /** Gives the parser its next bytes, and says how many these were. */
  work(): number {
    if (this.#state !== 'in line') return 0;
    const socket = this.#socket;
    const held = this.#held!;
    const piece = held.subarray(0, this.#isKnown ? portionEnd(held) : strangerPortionBytes);
    this.#held = piece.length < held.length ? held.subarray(piece.length) : null;
    // From here on a pause comes from Node.
    if (socket.isPaused()) socket.resume();
    if (socket.destroyed || socket.writableEnded) {
      this.#held = null;
      this.#state = 'open';
      return 0;
    }
    this.#state = 'parsing';
    this.#parse(piece);
    this.#goOn();
    return piece.length;
  }

  #goOn(): void {
    this.#state = 'open';
    const socket = this.#socket;
    if (this.#held === null) {
      if (this.#hasEnded) this.#parseEnd();
    } else if (socket.isPaused()) {
      this.#state = 'paused by Node';
    } else if (this.#unanswered >= aheadMax) {
      this.#state = 'far ahead';
      socket.pause();
    } else this.#wait();
  }
}

/** Credentials that one connection may have refused before it ends. */
const refusalsMax = 5;

/** Bounds the unauthenticated connections of one server, and begins the requests of all in turns. */
export class HttpConnections {
  /** Turns for work of known clients, in which their requests begin. */
  readonly known: RequestTurns;
  readonly #turns: RequestTurns;
  readonly #unauthenticated = new UnauthenticatedConnections();
  /** Admitted sockets by the sockets of their requests, which differ under TLS. Known clients are not among them. */
  readonly #admitted = new WeakMap<Socket, Socket>();
  readonly #refusals = new WeakMap<Socket, number>();
  readonly #pendingInputs = new WeakMap<Socket, PendingInput>();

  /** Work that goes on has its turns one a round of the event loop; what begins does not stand in that line. */
  constructor(clock: Clock, nextRound = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))) {
    this.known = new RequestTurns(clock, nextRound);
    this.#turns = new RequestTurns(clock, nextRound, strangerTurnBytes);
  }

  /** After all that takes connections of this server listens. */
  watch(server: Server): void {
    const handshaking = new Map<string, Socket>();
    const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
    const isSecure = server.listenerCount('secureConnection') > 0;
    server.on('connection', (socket: Socket) => {
      this.#unauthenticated.admit(socket);
      const name = nameOf(socket);
      if (isSecure) handshaking.set(name, socket);
      else this.#admitted.set(socket, socket);
      this.ration(socket);
      socket.once('close', () => {
        this.#unauthenticated.leave(socket);
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
    const begin = ({ socket }: IncomingMessage, answer: ServerResponse): void => this.#pendingInputs.get(socket)?.begin(answer);
    server.prependListener('request', begin);
    // Without such a listener Node answers it and emits a request.
    if (server.listenerCount('checkContinue') > 0) server.prependListener('checkContinue', begin);
  }

  /** The server reads from it, from now on in portions: where it does not do so yet, nothing changes. */
  ration(socket: Socket): void {
    if (!('parser' in socket)) return;
    const isKnown = !this.#admitted.has(socket);
    this.#pendingInputs.set(socket, new PendingInput(socket, { strangers: this.#turns, known: this.known, isKnown }));
  }

  /** A request came that needs no credential. */
  noteRequest(socket: Socket): void {
    this.#unauthenticated.noteMessage(this.#admitted.get(socket) ?? socket);
  }

  /** A request came with a good credential. */
  know(socket: Socket): void {
    const admitted = this.#admitted.get(socket);
    if (admitted === undefined) return;
    this.#admitted.delete(socket);
    this.#unauthenticated.leave(admitted);
    this.#pendingInputs.get(socket)?.know();
  }

  /** A credential was refused: where that was often, the connection ends with the answer. */
  refuse(socket: Socket, answer: ServerResponse): void {
    const count = (this.#refusals.get(socket) ?? 0) + 1;
    this.#refusals.set(socket, count);
    // The header makes the client send its next request by another connection.
    if (count >= refusalsMax) answer.shouldKeepAlive = false;
  }
}
