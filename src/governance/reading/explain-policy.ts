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
  invocationJudged: Judged,
  objectType: string | null,
  asOf: number | bigint | undefined,
): PolicyExplanation {
  const { projections, log, clock } = parts;
  const { caller } = invocationJudged;
  const judged: Judged = { ...invocationJudged, action: 'query' };
  const basis = log.basis();
  const explainedPosition = typeof asOf === 'bigint' ? pastPositionAt(projections.timeline, asOf, basis) : asOf;
  if (explainedPosition !== undefined && (explainedPosition < 1 || explainedPosition > basis.position)) {
    throw new ServiceError('REL_INVALID', `decisions are explained as of positions 1 to ${basis.position}`);
  }
  const now = explainedPosition === undefined ? clock.now() : projections.timeline.timeOf(explainedPosition - 1);
  const tenant = tenantOf(caller.path);
  const accessPaths =
    explainedPosition === undefined
      ? projections.snapshot(basis, caller.branch, tenant)
      : projections.snapshotOf(now, caller.branch, tenant);
  const policySet = explainedPosition === undefined ? judge.policies.current : judge.policies.setAt(explainedPosition);
  const policies =
    policySet === null
      ? null
      : explainedPosition === undefined
        ? judge.policies.policiesFor(caller, judged)
        : policySet.callerPolicies(askerOf(caller, judged));
  const grantRequest = { caller, action: 'query', stated: judged, now } as const;
  const grant = explainedPosition === undefined ? grants.grantFor(grantRequest) : grants.grantOfThen(grantRequest, policySet);
  const guardsOf = ({ protection }: TenantPaths): Guards => judge.guards(judged, protection);
  const visibleTypes = new VisibleTypes({ paths: accessPaths, grant, visiting: caller.sharedFrom !== null, guardsOf });
  const visibleType = objectType === null || isClassified(objectType) ? undefined : visibleTypes.find(objectType);
  const type = visibleType?.definition ?? null;
  return explainRead({
    caller,
    decision: judge.decideUnder({ ...judged, objectType }, policies, now, () => type ?? undefined),
    guards: visibleType?.sources[0]!.guards ?? guardsOf(accessPaths),
    type,
    grant: visibleType?.grant ?? null,
    policies,
    policyDigest: policySet?.digest ?? '',
    position: explainedPosition ?? basis.position,
    now,
  });
}

/** The position below which everything had happened by that instant; undefined where that is now. */
function pastPositionAt(timeline: Core['parts']['projections']['timeline'], instant: bigint, basis: Basis): number | undefined {
  if (instant >= basis.instant || basis.position === 0) return undefined;
  return Math.max(1, Math.min(timeline.positionAfter(instant), basis.position));
}
