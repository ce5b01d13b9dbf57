/** Asks the planner over the rows of an invocation that the caller already has. */
import type { Caller } from '../../../governance/caller.ts';
import type { GovernedSnapshot, Invocation } from '../../../governance/gate-contract.ts';

/**
 * The part of an invocation that a query needs: its snapshot. It can't write, and the caller records the access. Other statements
 * can't use it.
 */
export function snapshotInvocation(caller: Caller, snapshot: GovernedSnapshot): Invocation {
  const reading: Pick<Invocation, 'caller' | 'correlationId' | 'describe' | 'snapshot'> = {
    caller,
    correlationId: '',
    describe: () => undefined,
    snapshot: () => snapshot,
  };
  return reading as Invocation;
}
