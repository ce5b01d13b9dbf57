/**
 * Connections that have not authenticated, over all doors. Their number is bounded: where one more comes, the one that was silent
 * for longest is cut off, so that a client that fills the bound can't keep others from logging in.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server, Socket } from 'node:net';
import type { Clock } from '../../clock.ts';

/** A socket, or an object that represents one. */
export interface Stranger {
  destroy(): unknown;
}

/** Each may hold 16 KiB of a message, the bytes of one read (64 KiB), and the state of a TLS handshake. */
const strangersMax = 1_000;

export class Strangers {
  readonly #max: number;
  /** In the order of their last message, the oldest first. */
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

  /** Notes a whole message of the stranger. */
  noteMessage(stranger: Stranger): void {
    if (this.#all.delete(stranger)) this.#all.add(stranger);
  }

  /** Removes a stranger that has authenticated, or is gone. */
  leave(stranger: Stranger): void {
    this.#all.delete(stranger);
  }
}

/** Strangers have the first at a time, all of them the second in a turn of the event loop: some two hundred of the smallest requests. */
const strangerPortionBytes = 2_048;
const strangerTurnBytes = 16_384;
/** A known client has no more than so many requests begun at a time, and bytes of a body as one read of a socket brings them. */
const requestsAtOnce = 16;
const knownPortionBytes = 65_536;
/** Milliseconds of one turn of the event loop in which requests may begin; the last one begun may exceed it. */
const turnMs = 4;
/** Requests begun in one go: their next step runs after all of them, so only then does their time show. */
const inOneGo = 4;
/** Unanswered requests of one connection: further ones wait in its socket. */
const aheadMax = 64;

/** Pending work. `work` does the next piece and returns its bytes. */
export interface InLine {
  /** Little waits: one request at most. */
  readonly isShort?: boolean;
  work(): number;
}

/**
 * Begins the work of many connections in portions, one per turn of the event loop, so that other work runs in between. Work that
 * arrives while a turn has room begins at once. Short work does not wait behind all that is long: each has every second place.
 */
export class BeginTurns {
  readonly #clock: Clock;
  readonly #nextRound: () => Promise<void>;
  readonly #bytesMax: number;
  readonly #short: InLine[] = [];
  readonly #long: InLine[] = [];
  #shortIsNext = true;
  #left = 0;
  #untilMs = 0;
  #isOpen = false;
  #isRunning = false;

  constructor(clock: Clock, nextRound: () => Promise<void>, bytesMax = Number.POSITIVE_INFINITY) {
    this.#clock = clock;
    this.#nextRound = nextRound;
    this.#bytesMax = bytesMax;
  }

  next(one: InLine): void {
    (one.isShort === true ? this.#short : this.#long).push(one);
    if (!this.#isOpen) this.#open();
    if (!this.#isRunning) this.#run();
  }

  /** Resolves with what `work` gives once its turn has come. `bytes`: what it counts, for work that goes on behind the promise. */
  run<T>(work: () => T, bytes = 0): Promise<T> {
    return new Promise((resolve, reject) => {
      const one = (): number => {
        try {
          resolve(work());
        } catch (error) {
          reject(error as Error);
        }
        return bytes;
      };
      this.next({ work: one });
    });
  }

  #open(): void {
    this.#isOpen = true;
    this.#left = this.#bytesMax;
    this.#untilMs = this.#clock.monotonicMs() + turnMs;
    void this.#nextRound().then(this.#end);
  }

  readonly #end = (): void => {
    this.#isOpen = false;
    if (this.#short.length + this.#long.length === 0) return;
    this.#open();
    this.#run();
  };

  #next(): InLine | undefined {
    const isShort = this.#short.length > 0 && (this.#shortIsNext || this.#long.length === 0);
    this.#shortIsNext = !isShort;
    return (isShort ? this.#short : this.#long).shift();
  }

  #run(): void {
    this.#isRunning = true;
    try {
      for (let i = 0; i < inOneGo && this.#left > 0 && this.#clock.monotonicMs() <= this.#untilMs; i++)
        this.#left -= this.#next()?.work() ?? 0;
    } finally {
      this.#isRunning = false;
    }
  }
}

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
class PendingInput implements InLine {
  readonly #socket: Socket;
  readonly #strangers: BeginTurns;
  readonly #known: BeginTurns;
  readonly #parse: (bytes: Buffer) => void;
  readonly #parseEnd: () => void;
  #held: Buffer | null = null;
  #state: 'open' | 'in line' | 'far ahead' | 'paused by Node' | 'parsing' = 'open';
  #isKnown: boolean;
  #hasEnded = false;
  #unanswered = 0;

  constructor(socket: Socket, { strangers, known, isKnown }: { strangers: BeginTurns; known: BeginTurns; isKnown: boolean }) {
    this.#socket = socket;
    this.#strangers = strangers;
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
    (this.#isKnown ? this.#known : this.#strangers).next(this);
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

/** Strangers on an HTTP server, which reads its connections itself. */
export class HttpStrangers {
  /** Turns for work of known clients, in which their requests begin. */
  readonly known: BeginTurns;
  readonly #turns: BeginTurns;
  readonly #strangers = new Strangers();
  /** Admitted sockets by the sockets of their requests, which differ under TLS. Known clients are not among them. */
  readonly #admitted = new WeakMap<Socket, Socket>();
  readonly #refusals = new WeakMap<Socket, number>();
  readonly #pendingInputs = new WeakMap<Socket, PendingInput>();

  /** Work that goes on has its turns one a round of the event loop; what begins does not stand in that line. */
  constructor(clock: Clock, nextRound = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))) {
    this.known = new BeginTurns(clock, nextRound);
    this.#turns = new BeginTurns(clock, nextRound, strangerTurnBytes);
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
    this.#strangers.noteMessage(this.#admitted.get(socket) ?? socket);
  }

  /** A request came with a good credential. */
  know(socket: Socket): void {
    const admitted = this.#admitted.get(socket);
    if (admitted === undefined) return;
    this.#admitted.delete(socket);
    this.#strangers.leave(admitted);
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
