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
const parsedAtOnce = 16;
const knownPortionBytes = 65_536;
/** Unanswered requests of one connection: further ones wait in its socket. */
const requestsAheadMax = 64;

/** An input of no more bytes is short. */
const shortInputBytes = 256;

/** Every request line tells a version behind a slash; those of another major version end their connection. */
const httpVersionBytes = Buffer.from('/1.');

/** The end of the bytes in which no more than `parsedAtOnce` requests begin. */
function parsedPortionEnd(inputBytes: Buffer): number {
  if (inputBytes.length <= shortInputBytes) return inputBytes.length;
  const knownPortion = inputBytes.subarray(0, knownPortionBytes);
  let versionOffset = 0;
  for (let i = 0; i < parsedAtOnce; i++) {
    versionOffset = knownPortion.indexOf(httpVersionBytes, versionOffset) + httpVersionBytes.length;
    if (versionOffset < httpVersionBytes.length) return knownPortion.length;
  }
  return versionOffset;
}

/** Stands between a socket and the parser of an HTTP server, which would begin all requests of its input at once. */
class PendingInput implements PendingWork {
  readonly #inputSocket: Socket;
  readonly #strangerTurns: RequestTurns;
  readonly #knownTurns: RequestTurns;
  readonly #parseInput: (bytes: Buffer) => void;
  readonly #parseInputEnd: () => void;
  #heldInput: Buffer | null = null;
  #inputState: 'open' | 'in line' | 'far ahead' | 'paused by Node' | 'parsing' = 'open';
  #isKnownCaller: boolean;
  #hasInputEnded = false;
  #unansweredCount = 0;

  constructor(
    inputSocket: Socket,
    { strangers: strangerTurns, known: knownTurns, isKnown }: { strangers: RequestTurns; known: RequestTurns; isKnown: boolean },
  ) {
    this.#inputSocket = inputSocket;
    this.#strangerTurns = strangerTurns;
    this.#knownTurns = knownTurns;
    this.#isKnownCaller = isKnown;
    this.#parseInput = inputSocket.listeners('data').at(-1) as (parsedBytes: Buffer) => void;
    this.#parseInputEnd = inputSocket.listeners('end').at(-1) as () => void;
    // Node lets its parser read the socket directly until it has a listener that is not Node's own.
    inputSocket.on('data', this.#onInputData).on('end', this.#onInputEnd).on('resume', this.#onSocketResume);
    inputSocket.off('data', this.#parseInput).off('end', this.#parseInputEnd);
  }

  get isShort(): boolean {
    return this.#heldInput === null || this.#heldInput.length <= shortInputBytes;
  }

  /** From now on it uses the turns of known clients. */
  know(): void {
    this.#isKnownCaller = true;
  }

  begin(httpResponse: ServerResponse): void {
    this.#unansweredCount++;
    httpResponse.once('close', this.#onRequestAnswered);
  }

  readonly #onRequestAnswered = (): void => {
    this.#unansweredCount--;
    if (this.#inputState === 'far ahead' && this.#unansweredCount < requestsAheadMax) this.#waitInLine();
  };

  readonly #onInputData = (inputBytes: Buffer): void => {
    this.#heldInput = this.#heldInput === null ? inputBytes : Buffer.concat([this.#heldInput, inputBytes]);
    if (this.#inputState === 'open') this.#waitInLine();
  };

  /** A socket that was resumed and paused at once tells its end nevertheless. */
  readonly #onInputEnd = (): void => {
    if (this.#heldInput === null) this.#parseInputEnd();
    else this.#hasInputEnded = true;
  };

  readonly #onSocketResume = (): void => {
    // A reader of a body resumes its socket: new bytes would pile up behind those that wait already.
    if (this.#inputState === 'in line' || this.#inputState === 'far ahead') this.#inputSocket.pause();
    else if (this.#inputState === 'paused by Node' && !this.#inputSocket.isPaused()) this.#takeNextInput();
  };

  #waitInLine(): void {
    this.#inputState = 'in line';
    (this.#isKnownCaller ? this.#knownTurns : this.#strangerTurns).next(this);
    // Its turn may have come at once.
    if (this.#isInLine) this.#inputSocket.pause();
  }

  get #isInLine(): boolean {
    return this.#inputState === 'in line';
  }

  /** Gives the parser its next bytes, and says how many these were. */
  work(): number {
    if (this.#inputState !== 'in line') return 0;
    const inputSocket = this.#inputSocket;
    const heldInput = this.#heldInput!;
    const inputPortion = heldInput.subarray(0, this.#isKnownCaller ? parsedPortionEnd(heldInput) : strangerPortionBytes);
    this.#heldInput = inputPortion.length < heldInput.length ? heldInput.subarray(inputPortion.length) : null;
    // From here on a pause comes from Node.
    if (inputSocket.isPaused()) inputSocket.resume();
    if (inputSocket.destroyed || inputSocket.writableEnded) {
      this.#heldInput = null;
      this.#inputState = 'open';
      return 0;
    }
    this.#inputState = 'parsing';
    this.#parseInput(inputPortion);
    this.#takeNextInput();
    return inputPortion.length;
  }

  #takeNextInput(): void {
    this.#inputState = 'open';
    const inputSocket = this.#inputSocket;
    if (this.#heldInput === null) {
      if (this.#hasInputEnded) this.#parseInputEnd();
    } else if (inputSocket.isPaused()) {
      this.#inputState = 'paused by Node';
    } else if (this.#unansweredCount >= requestsAheadMax) {
      this.#inputState = 'far ahead';
      inputSocket.pause();
    } else this.#waitInLine();
  }
}

/** Credentials that one connection may have refused before it ends. */
const httpRefusalsMax = 5;

/** Bounds the unauthenticated connections of one server, and begins the requests of all in turns. */
export class HttpConnections {
  /** Turns for work of known clients, in which their requests begin. */
  readonly known: RequestTurns;
  readonly #strangerTurns: RequestTurns;
  readonly #unauthenticatedSockets = new UnauthenticatedConnections();
  /** Admitted sockets by the sockets of their requests, which differ under TLS. Known clients are not among them. */
  readonly #admittedSockets = new WeakMap<Socket, Socket>();
  readonly #refusalCounts = new WeakMap<Socket, number>();
  readonly #inputBySocket = new WeakMap<Socket, PendingInput>();

  /** Work that goes on has its turns one a round of the event loop; what begins does not stand in that line. */
  constructor(turnsClock: Clock, nextRound = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))) {
    this.known = new RequestTurns(turnsClock, nextRound);
    this.#strangerTurns = new RequestTurns(turnsClock, nextRound, strangerTurnBytes);
  }

  /** After all that takes connections of this server listens. */
  watch(httpServer: Server): void {
    const handshakingSockets = new Map<string, Socket>();
    const socketNameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
    const isTlsServer = httpServer.listenerCount('secureConnection') > 0;
    httpServer.on('connection', (httpSocket: Socket) => {
      this.#unauthenticatedSockets.admit(httpSocket);
      const socketName = socketNameOf(httpSocket);
      if (isTlsServer) handshakingSockets.set(socketName, httpSocket);
      else this.#admittedSockets.set(httpSocket, httpSocket);
      this.ration(httpSocket);
      httpSocket.once('close', () => {
        this.#unauthenticatedSockets.leave(httpSocket);
        if (handshakingSockets.get(socketName) === httpSocket) handshakingSockets.delete(socketName);
      });
    });
    httpServer.on('secureConnection', (securedSocket: Socket) => {
      const httpSocket = handshakingSockets.get(socketNameOf(securedSocket));
      if (httpSocket === undefined) return;
      handshakingSockets.delete(socketNameOf(securedSocket));
      this.#admittedSockets.set(securedSocket, httpSocket);
      this.ration(securedSocket);
    });
    const beginRequest = ({ socket: requestSocket }: IncomingMessage, httpResponse: ServerResponse): void =>
      this.#inputBySocket.get(requestSocket)?.begin(httpResponse);
    httpServer.prependListener('request', beginRequest);
    // Without such a listener Node answers it and emits a request.
    if (httpServer.listenerCount('checkContinue') > 0) httpServer.prependListener('checkContinue', beginRequest);
  }

  /** The server reads from it, from now on in portions: where it does not do so yet, nothing changes. */
  ration(rationedSocket: Socket): void {
    if (!('parser' in rationedSocket)) return;
    const isKnown = !this.#admittedSockets.has(rationedSocket);
    this.#inputBySocket.set(
      rationedSocket,
      new PendingInput(rationedSocket, { strangers: this.#strangerTurns, known: this.known, isKnown }),
    );
  }

  /** A request came that needs no credential. */
  noteRequest(requestSocket: Socket): void {
    this.#unauthenticatedSockets.noteMessage(this.#admittedSockets.get(requestSocket) ?? requestSocket);
  }

  /** A request came with a good credential. */
  know(knownSocket: Socket): void {
    const admittedSocket = this.#admittedSockets.get(knownSocket);
    if (admittedSocket === undefined) return;
    this.#admittedSockets.delete(knownSocket);
    this.#unauthenticatedSockets.leave(admittedSocket);
    this.#inputBySocket.get(knownSocket)?.know();
  }

  /** A credential was refused: where that was often, the connection ends with the answer. */
  refuse(refusedSocket: Socket, httpResponse: ServerResponse): void {
    const refusalCount = (this.#refusalCounts.get(refusedSocket) ?? 0) + 1;
    this.#refusalCounts.set(refusedSocket, refusalCount);
    // The header makes the client send its next request by another connection.
    if (refusalCount >= httpRefusalsMax) httpResponse.shouldKeepAlive = false;
  }
}
