/**
 * The policy set of the log, read once for each change of it, and its part that concerns one caller, computed once for each way
 * in which that caller asks. Gate, guards and grants decide by the same object, so they can't differ.
 */
import { ServiceError } from '../../errors.ts';
import type { Policies, PolicySet as PolicyTexts } from '../../projections/policies/projection.ts';
import type { Caller } from '../caller.ts';
import type { CallerPolicies } from './cedar/decision.ts';
import type { Asker } from './cedar/entities.ts';
import { PolicySet } from './policy-set.ts';

/** Statements of an invocation, beside its caller. */
export interface Stated {
  readonly purpose: string | null;
  /** Why what a guard protects is to be opened. */
  readonly breakGlass: string | null;
  /** The scope that the caller was cleared for. */
  readonly accessScopeRef: string | null;
}

export class PoliciesInForce {
  readonly #policies: Pick<Policies, 'current' | 'setAt'>;
  /** By identity of what the log holds; sets of earlier positions are asked for rarely, and go with it. */
  readonly #sets = new WeakMap<PolicyTexts, PolicySet>();
  readonly #byDigest = new Map<string, PolicySet>();
  /** Each caller's latest policy set: the next question asks for the same one nearly always. */
  readonly #last = new WeakMap<Caller, { readonly set: PolicySet; readonly stated: Stated; readonly policies: CallerPolicies }>();

  constructor(policies: Pick<Policies, 'current' | 'setAt'>) {
    this.#policies = policies;
  }

  /** Rises with each change of the set. */
  get epoch(): number {
    return this.#policies.current.epoch;
  }

  /** Stands in every entry's context; empty while no policy is installed. */
  get digest(): string {
    return this.#policies.current.digest;
  }

  /** null while no policy is installed: then the rules decide alone. */
  get current(): PolicySet | null {
    return this.#read(this.#policies.current);
  }

  /** The set that entries below this position left. */
  setAt(position: number): PolicySet | null {
    const texts = this.#policies.setAt(position);
    if (texts === this.#policies.current) return this.current;
    if (texts.policies.length === 0) return null;
    let set = this.#byDigest.get(texts.digest);
    if (set === undefined) {
      if (this.#byDigest.size >= setsOfThenMax) this.#byDigest.clear();
      this.#byDigest.set(texts.digest, (set = setOf(texts)));
    }
    return set;
  }

  /** The decision of the set in force for this caller; null while no policy is installed. */
  policiesFor(caller: Caller, stated: Stated): CallerPolicies | null {
    const set = this.current;
    if (set === null) return null;
    const last = this.#last.get(caller);
    if (last !== undefined && last.set === set && isSame(last.stated, stated)) return last.policies;
    const policies = set.callerPolicies(askerOf(caller, stated));
    const { purpose, breakGlass, accessScopeRef } = stated;
    this.#last.set(caller, { set, stated: { purpose, breakGlass, accessScopeRef }, policies });
    return policies;
  }

  #read(texts: PolicyTexts): PolicySet | null {
    if (texts.policies.length === 0) return null;
    let set = this.#sets.get(texts);
    if (set === undefined) this.#sets.set(texts, (set = setOf(texts)));
    return set;
  }
}

export function askerOf(caller: Caller, stated: Stated): Asker {
  const { principal, roles, path, attributes, door, branch, clientIp } = caller;
  const { purpose, breakGlass, accessScopeRef } = stated;
  return { principal, roles, path, attributes, purpose, door, branch, breakGlass, accessScopeRef, clientIp };
}

const setsOfThenMax = 8;

/** Texts were parsed before they were installed: a text that this version can't parse was installed by another one. */
function setOf({ policies }: PolicyTexts): PolicySet {
  try {
    return new PolicySet(new Map(policies.map(({ id, text }) => [id, text])));
  } catch (cause) {
    throw new ServiceError('REL_UNAVAILABLE', 'the installed policies can’t be read by this version', { cause });
  }
}

function isSame(a: Stated, b: Stated): boolean {
  return a.purpose === b.purpose && a.breakGlass === b.breakGlass && a.accessScopeRef === b.accessScopeRef;
}
