/** A snapshot under the grant of an invocation: as policies and agreements stand, or as a recipe has pinned them. */
import { ServiceError } from '../../errors.ts';
import type { AccessPaths, TenantPaths } from '../../projections/access-paths.ts';
import type { CedarAction } from '../authorization/cedar/policies.ts';
import type { Grant } from '../authorization/grant.ts';
import type { Guards } from '../authorization/guards.ts';
import type { Judged } from '../authorization/judge.ts';
import type { Caller } from '../caller.ts';
import type { GovernedSnapshot, PinnedGrant } from '../gate-contract.ts';
import type { Core } from '../gate-core.ts';
import { governSnapshot } from './governed-snapshot.ts';
import { beginningOf } from '../tenancy/earlier-tenant.ts';
import { VisibleTypes } from './visible-types.ts';

type Granting = Pick<Core, 'judge' | 'grants' | 'reading' | 'parts'>;

export function grantedSnapshot(
  core: Granting,
  paths: AccessPaths,
  judged: Judged,
  now: bigint,
  right?: CedarAction,
): GovernedSnapshot {
  const { grant, guardsOf } = grantAndGuards(core, judged, now, right);
  const { caller, purpose, breakGlass, accessScopeRef } = judged;
  const beginning = beginningOf(core.parts.projections.tenants, caller);
  return governSnapshot(paths, { caller, purpose, breakGlass, accessScopeRef, guardsOf, grant, beginning }, core.reading);
}

/** The types of such a snapshot alone, for callers that read no row. */
export function grantedTypes(core: Granting, paths: AccessPaths, judged: Judged, now: bigint): VisibleTypes {
  const { grant, guardsOf } = grantAndGuards(core, judged, now);
  return new VisibleTypes({ paths, grant, visiting: judged.caller.sharedFrom !== null, guardsOf });
}

function grantAndGuards({ judge, grants }: Granting, judged: Judged, now: bigint, right?: CedarAction): Granted {
  const { caller, action } = judged;
  return {
    grant: grants.grantFor({ caller, action, stated: judged, now, ...(right && { right }) }),
    guardsOf: ({ protection }) => judge.guards(judged, protection),
  };
}

interface Granted {
  readonly grant: Grant;
  guardsOf(paths: TenantPaths): Guards;
}

/**
 * The snapshot of a recipe, under the scope and the policies of then, for any caller who derives it again; never cached with
 * plans of now.
 */
export function pinnedSnapshot(
  core: Granting,
  paths: AccessPaths,
  deriver: Caller,
  pinned: PinnedGrant,
  action: 'query' | 'search',
): GovernedSnapshot {
  const { judge, grants, reading } = core;
  const { principal, path, branch, roles, attributes, door, clientIp, instant, masked } = pinned;
  const { purpose, breakGlass, accessScopeRef } = pinned;
  const set = judge.policies.setAt(paths.position);
  if ((set?.digest ?? '') !== pinned.policyDigest) {
    throw new ServiceError('REL_UNPROCESSABLE', 'the policy set at the basis of the recipe is not the one that it names');
  }
  const caller = { ...deriver, principal, path, branch, roles, attributes, door, clientIp, sharedFrom: null };
  const judged: Judged = { caller, action, purpose, breakGlass, accessScopeRef };
  const grant = grants.grantOfThen({ caller, action, stated: judged, now: instant }, set);
  const guardsOf = () => judge.guards(judged, paths.protection);
  const protection = (type: string) => ({ ...paths.protection(type), masked: new Set(masked[type]) });
  const snapshot = governSnapshot({ ...paths, protection }, { ...judged, guardsOf, grant, beginning: null }, reading);
  return { ...snapshot, grantKey: `${snapshot.grantKey}\u0000@${instant}`, pinned: true };
}
