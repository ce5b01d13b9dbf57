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
  readonly #setsByTexts = new WeakMap<PolicyTexts, PolicySet>();
  readonly #setsByDigest = new Map<string, PolicySet>();
  /** Each caller's latest policy set: the next question asks for the same one nearly always. */
  readonly #lastByCaller = new WeakMap<
    Caller,
    { readonly set: PolicySet; readonly stated: Stated; readonly policies: CallerPolicies }
  >();

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
    return this.#readPolicySet(this.#policies.current);
  }

  /** The set that entries below this position left. */
  setAt(position: number): PolicySet | null {
    const policyTexts = this.#policies.setAt(position);
    if (policyTexts === this.#policies.current) return this.current;
    if (policyTexts.policies.length === 0) return null;
    let policySet = this.#setsByDigest.get(policyTexts.digest);
    if (policySet === undefined) {
      if (this.#setsByDigest.size >= pastPolicySetsMax) this.#setsByDigest.clear();
      this.#setsByDigest.set(policyTexts.digest, (policySet = policySetOf(policyTexts)));
    }
    return policySet;
  }

  /** The decision of the set in force for this caller; null while no policy is installed. */
  policiesFor(caller: Caller, stated: Stated): CallerPolicies | null {
    const policySet = this.current;
    if (policySet === null) return null;
    const lastPolicies = this.#lastByCaller.get(caller);
    if (lastPolicies !== undefined && lastPolicies.set === policySet && isSameStated(lastPolicies.stated, stated))
      return lastPolicies.policies;
    const policies = policySet.callerPolicies(askerOf(caller, stated));
    const { purpose, breakGlass, accessScopeRef } = stated;
    this.#lastByCaller.set(caller, { set: policySet, stated: { purpose, breakGlass, accessScopeRef }, policies });
    return policies;
  }

  #readPolicySet(policyTexts: PolicyTexts): PolicySet | null {
    if (policyTexts.policies.length === 0) return null;
    let policySet = this.#setsByTexts.get(policyTexts);
    if (policySet === undefined) this.#setsByTexts.set(policyTexts, (policySet = policySetOf(policyTexts)));
    return policySet;
  }
}

export function askerOf(caller: Caller, stated: Stated): Asker {
  const { principal, roles, path, attributes, door, branch, clientIp } = caller;
  const { purpose, breakGlass, accessScopeRef } = stated;
  return { principal, roles, path, attributes, purpose, door, branch, breakGlass, accessScopeRef, clientIp };
}

const pastPolicySetsMax = 8;

/** Texts were parsed before they were installed: a text that this version can't parse was installed by another one. */
function policySetOf({ policies }: PolicyTexts): PolicySet {
  try {
    return new PolicySet(new Map(policies.map(({ id, text }) => [id, text])));
  } catch (cause) {
    throw new ServiceError('REL_UNAVAILABLE', 'the installed policies can’t be read by this version', { cause });
  }
}

function isSameStated(a: Stated, b: Stated): boolean {
  return a.purpose === b.purpose && a.breakGlass === b.breakGlass && a.accessScopeRef === b.accessScopeRef;
}
