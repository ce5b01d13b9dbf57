/**
 * The caller of one connection of a wire protocol: runs each command as one invocation of the gate, under the current state of the
 * caller's credential.
 */
import { ServiceError } from '../../errors.ts';
import type { Caller } from '../../governance/caller.ts';
import type { Act, Action, Invocation, Transaction } from '../../governance/gate-contract.ts';
import type { Answer } from '../../planner/planner-contract.ts';
import { checkErased } from './stream-lease.ts';
import { admitAddress, type DoorDependencies, recordRefusal } from './door-dependencies.ts';
import type { Terms } from './session-terms.ts';

/** The share of an address's rate limit that one key lookup costs. */
const tokensOfKey = 0.01;

export interface CommandRequest {
  readonly terms: Terms;
  readonly writes?: boolean;
  /** The number of keys, if it only reads rows by key. */
  readonly keysRead?: number;
  readonly action?: Action;
  /** The write that it makes, even if it reads first. */
  readonly act?: Act;
  /** Continues a request that was admitted before. */
  readonly continues?: boolean;
  /** The transaction in which it reads and writes. */
  readonly transaction?: Transaction | null;
}

export interface CommandInvocation {
  readonly invocation: Invocation;
  /** Marks the answer whose rows this command sends, so that they are checked for erasure once more before they leave. */
  keep(answer: Pick<Answer, 'overtaken'>): void;
}

export class ConnectionCaller {
  readonly #parts: DoorDependencies;
  readonly #caller: Caller;
  readonly #gone: AbortSignal;
  readonly #correlationId: string | null;
  /** Whether the gate has the command at hand on record. */
  #recorded = false;
  /** The action under which the current command is recorded. */
  #action: Action = 'query';

  /** `correlationId` is that of all commands where the protocol shows it to the client; null: each command has its own. */
  constructor(parts: DoorDependencies, caller: Caller, gone: AbortSignal, correlationId: string | null = null) {
    this.#parts = parts;
    this.#caller = caller;
    this.#gone = gone;
    this.#correlationId = correlationId;
  }

  get caller(): Caller {
    return this.#caller;
  }

  get parts(): DoorDependencies {
    return this.#parts;
  }

  get gone(): AbortSignal {
    return this.#gone;
  }

  /** Begins a command: a failure before `ask` is not on record yet. */
  beginCommand(): void {
    this.#recorded = false;
    this.#action = 'query';
  }

  async ask<T>(request: CommandRequest, run: (asking: CommandInvocation) => Promise<T> | T): Promise<T> {
    const { readLimit, writeLimit, authenticator, gate, ids } = this.#parts;
    const { terms, writes = false, keysRead, action = 'query', continues = false, act, transaction = null } = request;
    this.#action = act?.action ?? action;
    if (!continues) {
      const tokens = keysRead === undefined ? 1 : Math.min(1, keysRead * tokensOfKey);
      admitAddress(this.#parts, writes ? writeLimit : readLimit, this.#caller.clientIp, tokens);
    }
    const renewed = authenticator.renew(this.#caller);
    const caller = terms.branch === null ? renewed : { ...renewed, branch: terms.branch };
    this.#recorded = true;
    let sentAnswer: Pick<Answer, 'overtaken'> | null = null;
    const invocationRequest = {
      action,
      purpose: terms.purpose,
      correlationId: this.#correlationId ?? ids.next(),
      breakGlass: terms.break_glass,
      accessScopeRef: terms.access_scope_ref,
      gone: this.#gone,
      ...(act && { act }),
      ...(keysRead !== undefined && { keysRead }),
      ...(continues && { continues }),
      ...(transaction && { transaction }),
    };
    const result = await gate.invoke(caller, invocationRequest, async (invocation) =>
      run({ invocation, keep: (answer) => (sentAnswer = answer) }),
    );
    if (sentAnswer !== null) checkErased(sentAnswer);
    return result;
  }

  /** The error for the client, once it is recorded: refusals before the gate are recorded here. */
  async refusalOf(error: unknown, action: Action = this.#action): Promise<ServiceError> {
    const serviceError =
      error instanceof ServiceError ? error : new ServiceError('REL_INTERNAL', 'internal error', { cause: error });
    const recorded = this.#recorded
      ? serviceError
      : await recordRefusal(this.#parts, this.#caller, action, serviceError, this.#correlationId);
    this.#recorded = true;
    if (recorded.code !== 'REL_INTERNAL') return recorded;
    this.#parts.reportFailure(recorded.facts.cause ?? recorded);
    return new ServiceError('REL_INTERNAL', 'internal error');
  }
}
