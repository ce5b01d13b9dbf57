/** An invocation that a query reads through, and through which nothing else can be done. */
import { ServiceError } from '../../errors.ts';
import type { GovernedSnapshot, Invocation } from '../../governance/gate-contract.ts';

/** `snapshot` gives what the query reads; `describe` is told what the query says of itself. */
export function readingThrough(
  { caller, correlationId }: Pick<Invocation, 'caller' | 'correlationId'>,
  { snapshot, describe }: { readonly snapshot: () => GovernedSnapshot; readonly describe: Invocation['describe'] },
): Invocation {
  const refuse = (): never => {
    throw new ServiceError('REL_UNPROCESSABLE', 'on an exhibit a statement reads the log and does nothing else');
  };
  const refused = {
    submit: refuse,
    commit: refuse,
    transaction: null,
    rehearse: refuse,
    audit: refuse,
    proofs: refuse,
    branches: refuse,
    bodies: refuse,
    exhibits: refuse,
    retryConflicts: refuse,
    tokens: refuse,
    tenants: refuse,
    policies: refuse,
    erasing: refuse,
    kept: refuse,
    deletable: refuse,
    checkInspects: refuse,
    explainPolicy: refuse,
  };
  return { ...refused, caller, correlationId, describe, snapshot };
}
