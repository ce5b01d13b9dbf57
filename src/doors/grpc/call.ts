/**
 * One call of a gRPC door: its caller, the terms of its metadata, and the way into the gate. Invariants: each call leaves one
 * access record, a client that goes away or a deadline that passes ends the query, and no messages are made for a client that
 * does not read.
 */
import type { Metadata, ServerWritableStream } from '@grpc/grpc-js';
import { assert, ServiceError } from '../../errors.ts';
import type { Caller } from '../../governance/caller.ts';
import type { Action } from '../../governance/gate-contract.ts';
import { Asker, type AskerRequest, type Asking } from '../shared/connection-caller.ts';
import { basicCredential } from '../shared/credentials.ts';
import { recordRefusal, type DoorDependencies } from '../shared/door-dependencies.ts';
import { shuttingDown } from '../shared/drain.ts';
import { checkCaller, checkErased, type Overtaken, stalledMs, watchStream } from '../shared/stream-lease.ts';
import type { BeginTurns } from '../shared/unauthenticated-connections.ts';
import type { Outboxes } from './unsent-messages.ts';
import type { SentMessage } from './values.ts';
import { noTerms, type Terms, timeOfTerms, withTerm } from '../shared/session-terms.ts';

export interface RpcDependencies extends DoorDependencies {
  readonly isDraining: () => boolean;
  readonly outboxes: Outboxes;
  readonly endings: BeginTurns;
  readonly sending: BeginTurns;
}

/** Members that calls of every kind have. */
interface AnyCall {
  readonly metadata: Metadata;
  getPeer(): string;
  on(event: 'cancelled', listener: () => void): unknown;
}

/** One for all: an error made for each of a thousand calls that end at once would take longer than their ends. */
const gone = new ServiceError('REL_CANCELLED', 'the client has gone, or its deadline has passed');

const sliceMs = 2;

/** Bytes that a call may leave to its stream when it ends: a small answer goes out together with its status. */
const lastUnsentMax = 64 << 10;

/** Its columns, a message of rows, its totals, and that nothing is behind them. */
const togetherMax = 4;
const togetherMs = 1;

export class RpcCall {
  readonly parts: RpcDependencies;
  /** The correlation id: its client is told it, and its access records have it. */
  readonly id: string;
  readonly #door: string;
  readonly #call: AnyCall;
  readonly #gone = new AbortController();
  #asker: Asker | null = null;
  #terms: Terms = noTerms;
  #isOver = false;

  constructor(parts: RpcDependencies, door: string, call: AnyCall) {
    this.parts = parts;
    this.id = parts.ids.next();
    this.#door = door;
    this.#call = call;
    // The library says so of every call that ends, of those that were answered too.
    call.on('cancelled', () => this.#isOver || parts.endings.next(this));
  }

  /** Ends what still runs for a client that has gone. */
  work(): number {
    this.#gone.abort(gone);
    return 0;
  }

  /** Everything is asked: what becomes of the answer changes nothing. */
  end(): void {
    this.#isOver = true;
  }

  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  get caller(): Caller {
    return this.#asker!.caller;
  }

  get terms(): Terms {
    return this.#terms;
  }

  get clientIp(): string | null {
    return addressOf(this.#call.getPeer());
  }

  /** Throws where the door closes, for a credential that is none, and for metadata that says what there is not. */
  enter(): void {
    if (this.parts.isDraining()) throw shuttingDown();
    const { metadata } = this.#call;
    this.#asker = new Asker(this.parts, admittedCaller(metadata), this.signal, this.id);
    for (const name of Object.keys(metadata.getMap())) {
      if (!name.startsWith(termPrefix)) continue;
      const term = name.slice(termPrefix.length).replaceAll('-', '_');
      const value = textOf(metadata, name);
      if (value !== null) this.#terms = withTerm(this.#terms, term, value);
    }
  }

  /** Goes on under the terms of an earlier call. */
  resume(terms: Terms): void {
    this.#terms = terms;
  }

  get time(): ReturnType<typeof timeOfTerms> | 'all' {
    return this.#terms.as_of === null && this.#terms.as_of_system === null ? 'all' : timeOfTerms(this.#terms);
  }

  ask<T>(asked: Omit<AskerRequest, 'terms'>, run: (asking: Asking) => Promise<T> | T): Promise<T> {
    return this.#asker!.ask({ ...asked, terms: this.#terms }, run);
  }

  /** For writes: refuses an instant, since past states are read-only. */
  get sync(): boolean {
    if (timeOfTerms(this.#terms) !== 'current') throw new ServiceError('REL_INVALID', 'x-service-as-of is for reads');
    return this.#terms.durability === 'sync';
  }

  async refusal(error: unknown, action: Action): Promise<ServiceError> {
    if (this.#asker !== null) return this.#asker.refusalOf(error, action);
    const known = error instanceof ServiceError ? error : new ServiceError('REL_INTERNAL', 'internal error', { cause: error });
    if (known.code === 'REL_INTERNAL') this.parts.reportFailure(known.facts.cause ?? known);
    return recordRefusal(this.parts, { door: this.#door, clientIp: this.clientIp }, action, known, this.id);
  }

  /**
   * Sends messages at the pace of the client. Throws the error with which a new call would be refused, or that rows were erased
   * meanwhile.
   */
  async sendAll(messages: Iterable<SentMessage>, answer: Overtaken): Promise<void> {
    const call = this.#call as unknown as ServerWritableStream<unknown, unknown>;
    const { clock, yieldTurn, outboxes, sending } = this.parts;
    const peer = this.#call.getPeer();
    let refused: { readonly error: unknown } | null = null;
    let over: AbortController | null = null;
    /** Infinity while the answer does not wait for its client. */
    let waitingSinceMs = Infinity;
    let wake = (): void => undefined;
    const goOn = (): void => wake();
    // From the first pause on: what leaves at once is over before anything can change.
    const watch = (): void => {
      if (over !== null) return;
      over = new AbortController();
      this.signal.addEventListener('abort', goOn, { signal: over.signal });
      const check = (): void => {
        checkCaller(this.parts, this.caller);
        checkErased(answer);
        if (clock.monotonicMs() - waitingSinceMs >= stalledMs)
          throw new ServiceError('REL_TIMEOUT', 'the answer was not taken in time');
      };
      void watchStream(this.parts, check, over.signal, (error) => {
        refused = { error };
        wake();
      });
    };
    const source = messages[Symbol.iterator]();
    // The stream counts messages, whatever their size, and calls back for none of a call that was taken back.
    let unsent = 0;
    let isOver = false;
    const onTaken = (bytes: number): void => {
      if (isOver) return;
      unsent -= bytes;
      outboxes.remove(peer, bytes);
      wake();
    };
    try {
      let sliceStart = clock.monotonicMs();
      const patiently = async (ready: Promise<unknown> | null): Promise<void> => {
        watch();
        waitingSinceMs = clock.monotonicMs();
        await new Promise<void>((resolve) => {
          wake = resolve;
          void ready?.then(() => resolve());
        });
        waitingSinceMs = Infinity;
        wake = () => undefined;
        if (refused !== null) throw (refused as { readonly error: unknown }).error;
      };
      for (;;) {
        if (refused !== null) throw (refused as { readonly error: unknown }).error;
        for (let room = outboxes.room(peer); room !== null; room = outboxes.room(peer)) {
          await patiently(room);
          this.#checkGone();
        }
        this.#checkGone();
        // Made once there is room, since what waits would be held, and in turn: each of a thousand calls may make its first at once.
        const isDone = await sending.run(() => {
          checkErased(answer);
          const sinceMs = clock.monotonicMs();
          let left = lastUnsentMax;
          // The parts of a small answer leave in one turn.
          for (let i = 0; i < togetherMax && left > 0 && clock.monotonicMs() - sinceMs < togetherMs; i++) {
            const next = source.next();
            if (next.done === true) return true;
            const { message, bytes } = next.value;
            left -= bytes;
            unsent += bytes;
            outboxes.add(peer, bytes);
            call.write(message, () => onTaken(bytes));
          }
          return false;
        });
        if (isDone) break;
        if (clock.monotonicMs() - sliceStart <= sliceMs) continue;
        watch();
        await yieldTurn();
        sliceStart = clock.monotonicMs();
      }
      while (unsent > lastUnsentMax) {
        await patiently(null);
        this.#checkGone();
      }
      if (refused !== null) throw (refused as { readonly error: unknown }).error;
    } finally {
      source.return?.();
      (over as AbortController | null)?.abort(null);
      isOver = true;
      if (unsent > 0) outboxes.remove(peer, unsent);
    }
  }

  #checkGone(): void {
    if (this.signal.aborted) throw gone;
  }
}

const termPrefix = 'x-service-';

export function addressOf(peer: string): string | null {
  return /^\[?(.*?)\]?:\d+$/.exec(peer)?.[1] ?? null;
}

/** The token, or a password for any user name; null where there is neither. */
export function secretOf(header: string | null): string | null {
  return /^bearer +(\S+)$/i.exec(header ?? '')?.[1] ?? basicCredential(header)?.password ?? null;
}

const callerKey = 'caller';

/** Notes in its metadata whose call it is: it was let in by them. */
export function admitCaller(metadata: Metadata, caller: Caller): void {
  metadata.setOpaque(callerKey, caller);
}

function admittedCaller(metadata: Metadata): Caller {
  const caller = metadata.getOpaque(callerKey) as Caller | undefined;
  assert(caller, 'a call is let in before it is answered');
  return caller;
}

/** The one value of this name; null where there is none. */
export function textOf(metadata: Metadata, name: string): string | null {
  const values = metadata.get(name);
  if (values.length > 1) throw new ServiceError('REL_INVALID', `${name} is given more than once`);
  const [value] = values;
  return value === undefined || value === '' ? null : String(value);
}
