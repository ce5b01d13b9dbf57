/** An invocation for reads of a query only; it refuses everything else. */
import { ServiceError } from '../../errors.ts';
import type { GovernedSnapshot, Invocation } from '../../governance/gate-contract.ts';

/** `snapshot` gives the rows that the query reads; `describe` receives the facts for its access record. */
export function readingThrough(
  { caller, correlationId }: Pick<Invocation, 'caller' | 'correlationId'>,
  { snapshot, describe }: { readonly snapshot: () => GovernedSnapshot; readonly describe: Invocation['describe'] },
): Invocation {
  const refuseOnExhibit = (): never => {
    throw new ServiceError('REL_UNPROCESSABLE', 'on an exhibit a statement reads the log and does nothing else');
  };
  const refusedCalls = {
    submit: refuseOnExhibit,
    commit: refuseOnExhibit,
    transaction: null,
    rehearse: refuseOnExhibit,
    audit: refuseOnExhibit,
    proofs: refuseOnExhibit,
    branches: refuseOnExhibit,
    bodies: refuseOnExhibit,
    exhibits: refuseOnExhibit,
    retryConflicts: refuseOnExhibit,
    tokens: refuseOnExhibit,
    tenants: refuseOnExhibit,
    policies: refuseOnExhibit,
    erasing: refuseOnExhibit,
    retentionOf: refuseOnExhibit,
    heldRows: refuseOnExhibit,
    deletable: refuseOnExhibit,
    checkInspects: refuseOnExhibit,
    explainPolicy: refuseOnExhibit,
  };
  return { ...refusedCalls, caller, correlationId, describe, snapshot };
}
