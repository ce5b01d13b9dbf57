/**
 * One call of a gRPC door: its caller, the terms of its metadata, and the way into the gate. Invariants: each call leaves one
 * access record, a client that goes away or a deadline that passes ends the query, and no messages are made for a client that
 * does not read.
 */
import type { Metadata, ServerWritableStream } from '@grpc/grpc-js';
import { assert, ServiceError } from '../../errors.ts';
import type { Caller } from '../../governance/caller.ts';
import type { Action } from '../../governance/gate-contract.ts';
import { ConnectionCaller, type CommandRequest, type CommandInvocation } from '../shared/connection-caller.ts';
import { basicCredential } from '../shared/credentials.ts';
import { recordRefusal } from '../shared/door-dependencies.ts';
import { shuttingDown } from '../shared/drain.ts';
import type { Overtaken } from '../shared/stream-lease.ts';
import type { RequestTurns } from '../shared/request-turns.ts';
import { clientGone, MessageSender, type SenderDependencies } from './message-sender.ts';
import type { SentMessage } from './values.ts';
import { noTerms, type Terms, timeOfTerms, withTerm } from '../shared/session-terms.ts';

export interface RpcDependencies extends SenderDependencies {
  readonly isDraining: () => boolean;
  readonly endings: RequestTurns;
}

/** Members that calls of every kind have. */
interface AnyCall {
  readonly metadata: Metadata;
  getPeer(): string;
  on(event: 'cancelled', listener: () => void): unknown;
}

export class RpcCall {
  readonly parts: RpcDependencies;
  /** The correlation id, sent to the client and kept in the call's access records. */
  readonly id: string;
  readonly #door: string;
  readonly #call: AnyCall;
  readonly #gone = new AbortController();
  #connectionCaller: ConnectionCaller | null = null;
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
    this.#gone.abort(clientGone);
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
    return this.#connectionCaller!.caller;
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
    this.#connectionCaller = new ConnectionCaller(this.parts, admittedCaller(metadata), this.signal, this.id);
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

  ask<T>(asked: Omit<CommandRequest, 'terms'>, run: (asking: CommandInvocation) => Promise<T> | T): Promise<T> {
    return this.#connectionCaller!.ask({ ...asked, terms: this.#terms }, run);
  }

  /** For writes: refuses an instant, since past states are read-only. */
  get sync(): boolean {
    if (timeOfTerms(this.#terms) !== 'current') throw new ServiceError('REL_INVALID', 'x-service-as-of is for reads');
    return this.#terms.durability === 'sync';
  }

  async refusal(error: unknown, action: Action): Promise<ServiceError> {
    if (this.#connectionCaller !== null) return this.#connectionCaller.refusalOf(error, action);
    const known = error instanceof ServiceError ? error : new ServiceError('REL_INTERNAL', 'internal error', { cause: error });
    if (known.code === 'REL_INTERNAL') this.parts.reportFailure(known.facts.cause ?? known);
    return recordRefusal(this.parts, { door: this.#door, clientIp: this.clientIp }, action, known, this.id);
  }

  /**
   * Sends messages at the pace of the client. Throws the error with which a new call would be refused, or that rows were erased
   * meanwhile.
   */
  sendAll(messages: Iterable<SentMessage>, answer: Overtaken): Promise<void> {
    const stream = this.#call as unknown as ServerWritableStream<unknown, unknown>;
    return new MessageSender(this.parts, this, { stream, answer }).sendAll(messages);
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
