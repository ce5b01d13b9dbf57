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
  readonly #parts: HttpCallDependencies;
  readonly #door: string;
  readonly #gone = new AbortController();
  #caller: Caller | null = null;
  /** The action under which a refusal before the gate is recorded. */
  #action: Action = 'query';
  #recorded = false;

  constructor(parts: HttpCallDependencies, door: string, raw: IncomingMessage, response: ServerResponse) {
    this.#parts = parts;
    this.#door = door;
    this.id = parts.ids.next();
    this.raw = raw;
    this.response = response;
    response.once('close', () => this.#gone.abort());
  }

  get caller(): Caller {
    return this.#caller!;
  }

  get clientIp(): string | null {
    return this.raw.socket.remoteAddress ?? null;
  }

  /** Aborts when the client is gone. */
  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  /** Throws where the door is closing, or the address has asked for too much. */
  admit(action: Action): void {
    this.#action = action;
    if (this.#parts.draining.hasBegun) throw shuttingDown();
    admitAddress(this.#parts, this.#limitOf(action), this.clientIp);
  }

  know(caller: Caller): void {
    this.#caller = caller;
    this.#parts.connections.know(this.raw.socket);
  }

  /** The only way into the gate. `action` is recorded and judged; `act` is the write that it is, even if it reads first. */
  invoke<T>(
    action: Action,
    terms: Pick<Terms, 'purpose' | 'break_glass' | 'access_scope_ref'>,
    run: (invocation: Invocation) => Promise<T>,
    { act, gone = this.signal, transaction }: InvokeOptions = {},
  ): Promise<T> {
    this.#recorded = true;
    const asked = {
      action,
      purpose: terms.purpose,
      correlationId: this.id,
      breakGlass: terms.break_glass,
      accessScopeRef: terms.access_scope_ref,
      gone,
      ...(act && { act }),
      ...(transaction && { transaction }),
      ...(action === 'query' && !act && { onCost: refundOf(this.#parts.readLimit, this.clientIp) }),
    };
    return this.#parts.gate.invoke(this.#parts.authenticator.renew(this.caller), asked, run);
  }

  /** The error for the client, once it is recorded; null: the client is gone. */
  async refusal(error: unknown): Promise<ServiceError | null> {
    if (this.signal.aborted && !(error instanceof ServiceError)) return null;
    const known = error instanceof ServiceError ? error : new ServiceError('REL_INTERNAL', 'internal error', { cause: error });
    if (this.#caller === null && (known.kind === 'unauthenticated' || known.kind === 'forbidden'))
      this.#parts.connections.refuse(this.raw.socket, this.response);
    const who = this.#caller ?? { door: this.#door, clientIp: this.clientIp };
    const refusal = this.#recorded ? known : await recordRefusal(this.#parts, who, this.#action, known);
    if (refusal.code !== 'REL_INTERNAL') return refusal;
    this.#parts.reportFailure(refusal.facts.cause ?? refusal);
    return new ServiceError('REL_INTERNAL', 'internal error');
  }

  /** Reads the rest of the body, so that the client finds the answer. */
  end(): void {
    this.#parts.bodies.discard(this.raw, this.#caller === null ? 'stranger' : 'known');
  }

  #limitOf(action: Action): RateLimiter {
    return action === 'query' ? this.#parts.readLimit : this.#parts.writeLimit;
  }
}
