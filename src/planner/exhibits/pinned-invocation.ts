/** An invocation for reads of a query only; it refuses everything else. */
import { ServiceError } from '../../errors.ts';
import type { GovernedSnapshot, Invocation } from '../../governance/gate-contract.ts';

/** `snapshot` gives the rows that the query reads; `describe` receives the facts for its access record. */
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
    retentionOf: refuse,
    heldRows: refuse,
    deletable: refuse,
    checkInspects: refuse,
    explainPolicy: refuse,
  };
  return { ...refused, caller, correlationId, describe, snapshot };
}
