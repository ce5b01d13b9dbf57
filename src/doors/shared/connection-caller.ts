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
const rateTokensPerKey = 0.01;

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
  constructor(
    doorParts: DoorDependencies,
    connectionCaller: Caller,
    connectionGone: AbortSignal,
    correlationId: string | null = null,
  ) {
    this.#parts = doorParts;
    this.#caller = connectionCaller;
    this.#gone = connectionGone;
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

  async ask<T>(gateRequest: CommandRequest, runAsked: (asking: CommandInvocation) => Promise<T> | T): Promise<T> {
    const { readLimit, writeLimit, authenticator, gate, ids } = this.#parts;
    const {
      terms: askedTerms,
      writes: isWrite = false,
      keysRead,
      action: askedAction = 'query',
      continues = false,
      act: statedAct,
      transaction = null,
    } = gateRequest;
    this.#action = statedAct?.action ?? askedAction;
    if (!continues) {
      const rateTokens = keysRead === undefined ? 1 : Math.min(1, keysRead * rateTokensPerKey);
      admitAddress(this.#parts, isWrite ? writeLimit : readLimit, this.#caller.clientIp, rateTokens);
    }
    const renewedCaller = authenticator.renew(this.#caller);
    const branchCaller = askedTerms.branch === null ? renewedCaller : { ...renewedCaller, branch: askedTerms.branch };
    this.#recorded = true;
    let sentAnswer: Pick<Answer, 'overtaken'> | null = null;
    const invocationRequest = {
      action: askedAction,
      purpose: askedTerms.purpose,
      correlationId: this.#correlationId ?? ids.next(),
      breakGlass: askedTerms.break_glass,
      accessScopeRef: askedTerms.access_scope_ref,
      gone: this.#gone,
      ...(statedAct && { act: statedAct }),
      ...(keysRead !== undefined && { keysRead }),
      ...(continues && { continues }),
      ...(transaction && { transaction }),
    };
    const askedResult = await gate.invoke(branchCaller, invocationRequest, async (invocation) =>
      runAsked({ invocation, keep: (answer) => (sentAnswer = answer) }),
    );
    if (sentAnswer !== null) checkErased(sentAnswer);
    return askedResult;
  }

  /** The error for the client, once it is recorded: refusals before the gate are recorded here. */
  async refusalOf(askedError: unknown, refusedAction: Action = this.#action): Promise<ServiceError> {
    const serviceError =
      askedError instanceof ServiceError ? askedError : new ServiceError('REL_INTERNAL', 'internal error', { cause: askedError });
    const recorded = this.#recorded
      ? serviceError
      : await recordRefusal(this.#parts, this.#caller, refusedAction, serviceError, this.#correlationId);
    this.#recorded = true;
    if (recorded.code !== 'REL_INTERNAL') return recorded;
    this.#parts.reportFailure(recorded.facts.cause ?? recorded);
    return new ServiceError('REL_INTERNAL', 'internal error');
  }
}
