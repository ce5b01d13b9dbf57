/** Asking the planner over rows that an invocation of one's own has governed. */
import type { Caller } from '../../governance/caller.ts';
import type { GovernedSnapshot, Invocation } from '../../governance/gate-contract.ts';

/**
 * As much of an invocation as a question asks for: its snapshot, and nothing to write or to record, which is the business
 * of whoever asks. Statements other than questions have no use for it.
 */
export function asking(caller: Caller, snapshot: GovernedSnapshot): Invocation {
  const asked: Pick<Invocation, 'caller' | 'correlationId' | 'describe' | 'snapshot'> = {
    caller,
    correlationId: '',
    describe: () => undefined,
    snapshot: () => snapshot,
  };
  return asked as Invocation;
}
