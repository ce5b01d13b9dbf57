/** The inputs of an explained decision: policies, types, grants and guards of now, or as they stood below a position. */
import { tenantOf } from '../../log/values/value.ts';
import { ServiceError } from '../../errors.ts';
import type { Basis } from '../../log/log-store.ts';
import type { TenantPaths } from '../../projections/access-paths.ts';
import { isClassified } from '../authorization/egress.ts';
import { explainRead } from '../authorization/explanation.ts';
import type { Guards } from '../authorization/guards.ts';
import type { Judged } from '../authorization/judge.ts';
import { askerOf } from '../authorization/policies-in-force.ts';
import type { PolicyExplanation } from '../gate-contract.ts';
import type { Core } from '../gate-core.ts';
import { VisibleTypes } from './visible-types.ts';

/**
 * Explains the decision about reading a type. `asOf`: a position, or an instant; absent: now. Throws REL_INVALID for a
 * position that lies ahead.
 */
export function explainPolicy(
  { judge, grants, parts }: Pick<Core, 'judge' | 'grants' | 'parts'>,
  asked: Judged,
  objectType: string | null,
  asOf: number | bigint | undefined,
): PolicyExplanation {
  const { projections, log, clock } = parts;
  const { caller } = asked;
  const judged: Judged = { ...asked, action: 'query' };
  const basis = log.basis();
  const at = typeof asOf === 'bigint' ? positionAt(projections.timeline, asOf, basis) : asOf;
  if (at !== undefined && (at < 1 || at > basis.position)) {
    throw new ServiceError('REL_INVALID', `decisions are explained as of positions 1 to ${basis.position}`);
  }
  const now = at === undefined ? clock.now() : projections.timeline.timeOf(at - 1);
  const tenant = tenantOf(caller.path);
  const paths =
    at === undefined ? projections.snapshot(basis, caller.branch, tenant) : projections.snapshotOf(now, caller.branch, tenant);
  const set = at === undefined ? judge.policies.current : judge.policies.setAt(at);
  const policies =
    set === null
      ? null
      : at === undefined
        ? judge.policies.policiesFor(caller, judged)
        : set.callerPolicies(askerOf(caller, judged));
  const granted = { caller, action: 'query', stated: judged, now } as const;
  const grant = at === undefined ? grants.grantFor(granted) : grants.grantOfThen(granted, set);
  const guardsOf = ({ protection }: TenantPaths): Guards => judge.guards(judged, protection);
  const types = new VisibleTypes({ paths, grant, visiting: caller.sharedFrom !== null, guardsOf });
  const visibleType = objectType === null || isClassified(objectType) ? undefined : types.find(objectType);
  const type = visibleType?.definition ?? null;
  return explainRead({
    caller,
    decision: judge.decideUnder({ ...judged, objectType }, policies, now, () => type ?? undefined),
    guards: visibleType?.sources[0]!.guards ?? guardsOf(paths),
    type,
    grant: visibleType?.grant ?? null,
    policies,
    policyDigest: set?.digest ?? '',
    position: at ?? basis.position,
    now,
  });
}

/** The position below which everything had happened by that instant; undefined where that is now. */
function positionAt(timeline: Core['parts']['projections']['timeline'], instant: bigint, basis: Basis): number | undefined {
  if (instant >= basis.instant || basis.position === 0) return undefined;
  return Math.max(1, Math.min(timeline.positionAfter(instant), basis.position));
}
