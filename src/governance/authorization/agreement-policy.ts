/** The condition of a sharing agreement as a policy: one permit, whatever its text tries to be. */
import { ServiceError } from '../../errors.ts';
import type { AgreementTerms } from '../../log/entries/entry.ts';
import { type Policy, readPolicies, type TypeLookup } from './cedar/policies.ts';

/** Throws REL_INVALID, or REL_NOT_IMPLEMENTED, with the place of what is refused; null is every row. */
export function readAgreementCondition(agreementWhere: string | null, types?: TypeLookup): Policy {
  const agreementCedar = `permit(principal, action, resource)${agreementWhere === null ? '' : ` when {\n${agreementWhere}\n}`};`;
  const policies = readPolicies('of the agreement', agreementCedar, types);
  const [policy] = policies;
  if (policies.length > 1 || policy?.effect !== 'permit' || policy.actions !== null || policy.mask !== null) {
    throw new ServiceError('REL_INVALID', 'the condition of an agreement is one Cedar expression');
  }
  return policy;
}

const agreementPolicies = new WeakMap<AgreementTerms, Policy | null>();

/** null where it can't be read: such an agreement shares nothing. */
export function agreementPolicy(agreement: AgreementTerms): Policy | null {
  let policy = agreementPolicies.get(agreement);
  if (policy === undefined) {
    try {
      policy = readAgreementCondition(agreement.where);
    } catch {
      policy = null;
    }
    agreementPolicies.set(agreement, policy);
  }
  return policy;
}
