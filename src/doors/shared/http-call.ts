/**
 * One request of any door over HTTP: from its client's address to its one answer and its one access record.
 *
 *   rate limit -> credential -> gate -> answer
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ServiceError } from '../../errors.ts';
import { refundOf, type RateLimiter } from '../../governance/admission/rate-limit.ts';
import type { Caller } from '../../governance/caller.ts';
import type { Act, Action, Invocation, Transaction } from '../../governance/gate-contract.ts';
import { admitAddress, type DoorDependencies, recordRefusal } from './door-dependencies.ts';
import { shuttingDown } from './drain.ts';
import type { Terms } from './session-terms.ts';
import type { HttpRoom } from './http-listener.ts';

export type HttpCallDependencies = HttpRoom &
  Pick<DoorDependencies, 'gate' | 'ids' | 'clock' | 'readLimit' | 'writeLimit' | 'refusalRecordLimit' | 'reportFailure'> & {
    readonly authenticator: Pick<DoorDependencies['authenticator'], 'renew'>;
  };

export interface InvokeOptions {
  readonly act?: Act;
  readonly gone?: AbortSignal;
  /** The transaction that it is part of. */
  readonly transaction?: Transaction;
}

export class HttpCall {
  readonly id: string;
  readonly raw: IncomingMessage;
  readonly response: ServerResponse;
  readonly #httpParts: HttpCallDependencies;
  readonly #doorName: string;
  readonly #callGone = new AbortController();
  #httpCaller: Caller | null = null;
  /** The action under which a refusal before the gate is recorded. */
  #httpAction: Action = 'query';
  #isRefusalRecorded = false;

  constructor(httpParts: HttpCallDependencies, doorName: string, httpRequest: IncomingMessage, httpResponse: ServerResponse) {
    this.#httpParts = httpParts;
    this.#doorName = doorName;
    this.id = httpParts.ids.next();
    this.raw = httpRequest;
    this.response = httpResponse;
    httpResponse.once('close', () => this.#callGone.abort());
  }

  get caller(): Caller {
    return this.#httpCaller!;
  }

  get clientIp(): string | null {
    return this.raw.socket.remoteAddress ?? null;
  }

  /** Aborts when the client is gone. */
  get signal(): AbortSignal {
    return this.#callGone.signal;
  }

  /** Throws where the door is closing, or the address has asked for too much. */
  admit(httpAction: Action): void {
    this.#httpAction = httpAction;
    if (this.#httpParts.draining.hasBegun) throw shuttingDown();
    admitAddress(this.#httpParts, this.#rateLimitOf(httpAction), this.clientIp);
  }

  know(httpCaller: Caller): void {
    this.#httpCaller = httpCaller;
    this.#httpParts.connections.know(this.raw.socket);
  }

  /** The only way into the gate. `action` is recorded and judged; `statedAct` is the write that it is, even if it reads first. */
  invoke<T>(
    action: Action,
    callTerms: Pick<Terms, 'purpose' | 'break_glass' | 'access_scope_ref'>,
    runInvocation: (invocation: Invocation) => Promise<T>,
    { act: statedAct, gone: callGone = this.signal, transaction }: InvokeOptions = {},
  ): Promise<T> {
    this.#isRefusalRecorded = true;
    const gateRequest = {
      action,
      purpose: callTerms.purpose,
      correlationId: this.id,
      breakGlass: callTerms.break_glass,
      accessScopeRef: callTerms.access_scope_ref,
      gone: callGone,
      ...(statedAct && { act: statedAct }),
      ...(transaction && { transaction }),
      ...(action === 'query' && !statedAct && { onCost: refundOf(this.#httpParts.readLimit, this.clientIp) }),
    };
    return this.#httpParts.gate.invoke(this.#httpParts.authenticator.renew(this.caller), gateRequest, runInvocation);
  }

  /** The error for the client, once it is recorded; null: the client is gone. */
  async refusal(callError: unknown): Promise<ServiceError | null> {
    if (this.signal.aborted && !(callError instanceof ServiceError)) return null;
    const knownError =
      callError instanceof ServiceError ? callError : new ServiceError('REL_INTERNAL', 'internal error', { cause: callError });
    if (this.#httpCaller === null && (knownError.kind === 'unauthenticated' || knownError.kind === 'forbidden'))
      this.#httpParts.connections.refuse(this.raw.socket, this.response);
    const refusedCaller = this.#httpCaller ?? { door: this.#doorName, clientIp: this.clientIp };
    const toldRefusal = this.#isRefusalRecorded
      ? knownError
      : await recordRefusal(this.#httpParts, refusedCaller, this.#httpAction, knownError);
    if (toldRefusal.code !== 'REL_INTERNAL') return toldRefusal;
    this.#httpParts.reportFailure(toldRefusal.facts.cause ?? toldRefusal);
    return new ServiceError('REL_INTERNAL', 'internal error');
  }

  /** Reads the rest of the body, so that the client finds the answer. */
  end(): void {
    this.#httpParts.bodies.discard(this.raw, this.#httpCaller === null ? 'stranger' : 'known');
  }

  #rateLimitOf(limitedAction: Action): RateLimiter {
    return limitedAction === 'query' ? this.#httpParts.readLimit : this.#httpParts.writeLimit;
  }
}
