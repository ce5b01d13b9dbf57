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
interface GrpcJsCall {
  readonly metadata: Metadata;
  getPeer(): string;
  on(event: 'cancelled', listener: () => void): unknown;
}

export class RpcCall {
  readonly parts: RpcDependencies;
  /** The correlation id, sent to the client and kept in the call's access records. */
  readonly id: string;
  readonly #doorName: string;
  readonly #grpcCall: GrpcJsCall;
  readonly #callGone = new AbortController();
  #connectionCaller: ConnectionCaller | null = null;
  #callTerms: Terms = noTerms;
  #isCallOver = false;

  constructor(rpcParts: RpcDependencies, doorName: string, grpcCall: GrpcJsCall) {
    this.parts = rpcParts;
    this.id = rpcParts.ids.next();
    this.#doorName = doorName;
    this.#grpcCall = grpcCall;
    // The library says so of every call that ends, of those that were answered too.
    grpcCall.on('cancelled', () => this.#isCallOver || rpcParts.endings.next(this));
  }

  /** Ends what still runs for a client that has gone. */
  work(): number {
    this.#callGone.abort(clientGone);
    return 0;
  }

  /** Everything is asked: what becomes of the answer changes nothing. */
  end(): void {
    this.#isCallOver = true;
  }

  get signal(): AbortSignal {
    return this.#callGone.signal;
  }

  get caller(): Caller {
    return this.#connectionCaller!.caller;
  }

  get terms(): Terms {
    return this.#callTerms;
  }

  get clientIp(): string | null {
    return addressOf(this.#grpcCall.getPeer());
  }

  /** Throws where the door closes, for a credential that is none, and for metadata that says what there is not. */
  enter(): void {
    if (this.parts.isDraining()) throw shuttingDown();
    const { metadata: callMetadata } = this.#grpcCall;
    this.#connectionCaller = new ConnectionCaller(this.parts, admittedCaller(callMetadata), this.signal, this.id);
    for (const metadataName of Object.keys(callMetadata.getMap())) {
      if (!metadataName.startsWith(termHeaderPrefix)) continue;
      const termName = metadataName.slice(termHeaderPrefix.length).replaceAll('-', '_');
      const termValue = textOf(callMetadata, metadataName);
      if (termValue !== null) this.#callTerms = withTerm(this.#callTerms, termName, termValue);
    }
  }

  /** Goes on under the terms of an earlier call. */
  resume(ticketTerms: Terms): void {
    this.#callTerms = ticketTerms;
  }

  get time(): ReturnType<typeof timeOfTerms> | 'all' {
    return this.#callTerms.as_of === null && this.#callTerms.as_of_system === null ? 'all' : timeOfTerms(this.#callTerms);
  }

  ask<T>(callRequest: Omit<CommandRequest, 'terms'>, runCall: (callAsking: CommandInvocation) => Promise<T> | T): Promise<T> {
    return this.#connectionCaller!.ask({ ...callRequest, terms: this.#callTerms }, runCall);
  }

  /** For writes: refuses an instant, since past states are read-only. */
  get sync(): boolean {
    if (timeOfTerms(this.#callTerms) !== 'current') throw new ServiceError('REL_INVALID', 'x-service-as-of is for reads');
    return this.#callTerms.durability === 'sync';
  }

  async refusal(callError: unknown, callAction: Action): Promise<ServiceError> {
    if (this.#connectionCaller !== null) return this.#connectionCaller.refusalOf(callError, callAction);
    const knownError =
      callError instanceof ServiceError ? callError : new ServiceError('REL_INTERNAL', 'internal error', { cause: callError });
    if (knownError.code === 'REL_INTERNAL') this.parts.reportFailure(knownError.facts.cause ?? knownError);
    return recordRefusal(this.parts, { door: this.#doorName, clientIp: this.clientIp }, callAction, knownError, this.id);
  }

  /**
   * Sends messages at the pace of the client. Throws the error with which a new call would be refused, or that rows were erased
   * meanwhile.
   */
  sendAll(sentMessages: Iterable<SentMessage>, sentAnswer: Overtaken): Promise<void> {
    const callStream = this.#grpcCall as unknown as ServerWritableStream<unknown, unknown>;
    return new MessageSender(this.parts, this, { stream: callStream, answer: sentAnswer }).sendAll(sentMessages);
  }
}

const termHeaderPrefix = 'x-service-';

export function addressOf(callPeer: string): string | null {
  return /^\[?(.*?)\]?:\d+$/.exec(callPeer)?.[1] ?? null;
}

/** The token, or a password for any user name; null where there is neither. */
export function secretOf(authorization: string | null): string | null {
  return /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1] ?? basicCredential(authorization)?.password ?? null;
}

const callerKey = 'caller';

/** Notes in its metadata whose call it is: it was let in by them. */
export function admitCaller(callMetadata: Metadata, caller: Caller): void {
  callMetadata.setOpaque(callerKey, caller);
}

function admittedCaller(callMetadata: Metadata): Caller {
  const admitted = callMetadata.getOpaque(callerKey) as Caller | undefined;
  assert(admitted, 'a call is let in before it is answered');
  return admitted;
}

/** The one value of this name; null where there is none. */
export function textOf(callMetadata: Metadata, metadataName: string): string | null {
  const metadataValues = callMetadata.get(metadataName);
  if (metadataValues.length > 1) throw new ServiceError('REL_INVALID', `${metadataName} is given more than once`);
  const [metadataValue] = metadataValues;
  return metadataValue === undefined || metadataValue === '' ? null : String(metadataValue);
}
