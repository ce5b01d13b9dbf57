/** What an invocation is of: what was asked for, and what has been described since. It is judged and recorded by the same words. */
import type { Judged } from './authorization/judge.ts';
import { touchesRows } from './actions.ts';
import type { Caller } from './caller.ts';
import type { Action, InvocationFacts, InvocationRequest } from './gate-contract.ts';

export class Described {
  readonly caller: Caller;
  readonly request: InvocationRequest;
  /** When it began. */
  readonly time: bigint;
  /** The instant of what was read last; 0 where nothing was. */
  basis = 0n;
  readonly #facts: { -readonly [K in keyof InvocationFacts]: InvocationFacts[K] } = {};
  /** Until something else is described. */
  #judgedAs: Judged | null = null;

  constructor(caller: Caller, request: InvocationRequest, time: bigint) {
    this.caller = caller;
    this.request = request;
    this.time = time;
  }

  describe(facts: InvocationFacts): void {
    Object.assign(this.#facts, facts);
    this.#judgedAs = null;
  }

  /** Notes the type of a command that names one. */
  ofType(objectType: string): void {
    this.#facts.objectType = objectType;
  }

  get facts(): InvocationFacts {
    return this.#facts;
  }

  get action(): Action {
    return this.#facts.action ?? this.request.action;
  }

  get purpose(): string | null {
    return (this.#facts.purpose ?? this.request.purpose) || null;
  }

  /** A credential limited to purposes says for which of them it touches rows; its own upkeep needs none. */
  get purposeRequired(): boolean {
    const { purposeRequired } = this.request;
    return purposeRequired === true || (this.caller.purposes.length > 0 && touchesRows.has(this.action));
  }

  /** Who asks for what, and what they state. */
  get judged(): Judged {
    if (this.#judgedAs !== null) return this.#judgedAs;
    const { breakGlass = this.request.breakGlass, accessScopeRef = this.request.accessScopeRef } = this.#facts;
    this.#judgedAs = {
      caller: this.caller,
      action: this.action,
      purpose: this.purpose,
      breakGlass: breakGlass || null,
      accessScopeRef: accessScopeRef || null,
    };
    return this.#judgedAs;
  }
}
