/**
 * Rules of access. Any forbid that matches denies; else any permit that matches allows; else deny. The decision carries
 * the rules that determined it, so explaining is not a second implementation.
 */
import { ServiceError } from '../../errors.ts';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { ofTenant } from './action-names.ts';
import { covers, type Caller } from '../caller.ts';
import type { Action } from '../gate-contract.ts';
import type { CallerPolicies } from './cedar/decision.ts';
import { isClassified } from './egress.ts';
import { cedarActionOf } from './policy-set.ts';

/** One request to be decided. */
export interface PolicyRequest {
  readonly caller: Caller;
  readonly action: Action;
  readonly purpose: string | null;
  readonly objectType: string | null;
  /** Token that the action is about (rotating, revoking), with its owner. */
  readonly token?: { readonly id: string; readonly principal: string; readonly tenant: string | null };
  /** Branch that is to be deleted, and the organisation path of its maker. */
  readonly branch?: { readonly name: string; readonly owner: string | null };
  /** Part of the registry of tenants that the action is about. */
  readonly registry?: RegistryPart;
}

/** A part of the registry: its tenant, and whether that tenant's own administrator may manage it; null: every tenant's. */
export interface RegistryPart {
  readonly tenant: string | null;
  readonly own: boolean;
}

export interface Rule {
  readonly id: string;
  readonly effect: 'permit' | 'forbid';
  /** Read aloud by EXPLAIN POLICY. */
  readonly says: string;
  readonly matches: (request: PolicyRequest) => boolean;
}

export interface Decision {
  readonly allowed: boolean;
  /** Rules that determined it; empty when nothing matched and the default denied. */
  readonly because: readonly Rule[];
  /** Installed policies decided, not the rules alone. */
  readonly installed?: true;
}

export function decide(rules: readonly Rule[], request: PolicyRequest): Decision {
  const forbidRules = rulesThatMatch(rules, 'forbid', request);
  if (forbidRules.length > 0) return { allowed: false, because: forbidRules };
  const permitRules = rulesThatMatch(rules, 'permit', request);
  return { allowed: permitRules.length > 0, because: permitRules };
}

function rulesThatMatch(rules: readonly Rule[], effect: Rule['effect'], request: PolicyRequest): readonly Rule[] {
  const matchingRules: Rule[] = [];
  for (const rule of rules) if (rule.effect === effect && ruleMatches(rule, request)) matchingRules.push(rule);
  return matchingRules;
}

/** Installed policies, and the input that they need besides the request. */
export interface Installed {
  /** The set's decision for the caller; null while none is installed. Called only where the set decides. */
  readonly policies: () => CallerPolicies | null;
  /** Nanoseconds. */
  readonly now: bigint;
  typeOf(name: string): TypeDefinition | undefined;
}

/**
 * The decision once policies are installed: forbids of the rules hold as before, and their permits give way to those of the set.
 * The rules alone decide who administers the store, tenants or tokens: no policy locks the administrator out, and none that
 * permits everything makes every caller an administrator. An action about rows is allowed when any row may be concerned; the
 * grant decides which ones, type by type.
 */
export function decideInstalled(rules: readonly Rule[], request: PolicyRequest, installed: Installed): Decision {
  const ruleDecision = decide(rules, request);
  const isForbidden = !ruleDecision.allowed && ruleDecision.because.length > 0;
  if (isForbidden || request.action === 'administer' || isStoreOperator(request.caller, ruleDecision)) return ruleDecision;
  const { action, about } = cedarActionOf[request.action];
  const { objectType, branch } = request;
  // Each type is judged where it is named, and rows that are put as they would be stored, one by one.
  if (request.action === 'ingest' || (objectType === null && (about === 'rows' || about === 'type'))) return ruleDecision;
  const callerPolicies = installed.policies();
  if (callerPolicies === null) return ruleDecision;
  const { now: policyInstant } = installed;
  if (about === 'rows' && objectType !== null) {
    const { rows, because } = callerPolicies.rows(
      action,
      installed.typeOf(objectType) ?? unregisteredType(objectType),
      policyInstant,
    );
    const allowed = rows !== 'none';
    return { allowed, because: because.map(ruleOfPolicy(allowed ? 'permit' : 'forbid')), installed: true };
  }
  const { allowed, because } =
    about === 'type' && objectType !== null
      ? callerPolicies.decide(action, { type: 'Type', id: objectType }, policyInstant)
      : about === 'branch'
        ? callerPolicies.decide(
            action,
            { type: 'Branch', id: branch?.name ?? request.caller.branch, owner: branch?.owner ?? null },
            policyInstant,
          )
        : callerPolicies.decide(action, { type: 'Store', id: about }, policyInstant);
  return { allowed, because: because.map(ruleOfPolicy(allowed ? 'permit' : 'forbid')), installed: true };
}

function ruleOfPolicy(effect: Rule['effect']): (id: string) => Rule {
  return (id) => ({ id, effect, says: `the policy ${id} ${effect}s it`, matches: () => true });
}

/** The administrator in all actions; the operator, who opened the data directory, where no tenant's rows are read or written. */
function isStoreOperator({ credential }: Caller, { because }: Decision): boolean {
  return credential === 'admin' || (credential === 'operator' && because.some(({ id }) => id === 'permit-administrator'));
}

/** A type that a first write will register. */
export function unregisteredType(name: string): TypeDefinition {
  return { name, properties: {}, open: true, primaryKey: null, graphTriggers: [], ontologyVersion: 0 };
}

/**
 * Throws REL_HUMINT for classified types and REL_ACL for everything else that is denied. Ids of policies are named: EXPLAIN
 * POLICY shows the same caller the same ones.
 */
export function authorise(decision: Decision, request: PolicyRequest): void {
  if (decision.allowed) return;
  if (decision.because.includes(forbidClassified)) {
    throw new ServiceError('REL_HUMINT', `${request.objectType} is a classified type`);
  }
  const denialReason =
    decision.because.map((rule) => rule.says).join('; ') || `no ${decision.installed ? 'policy' : 'rule'} permits it`;
  throw new ServiceError('REL_ACL', `${request.action} is denied: ${denialReason}`);
}

const forbidClassified: Rule = {
  id: 'forbid-classified',
  effect: 'forbid',
  says: 'classified types never pass a door',
  matches: ({ objectType }) => objectType !== null && isClassified(objectType),
};

const adminCredentials: ReadonlySet<Caller['credential']> = new Set(['admin', 'operator', 'none']);
const adminActions: ReadonlySet<Action> = new Set(['administer', 'audit', 'inspect']);

/** Roles of tokens that look after tenants: all of them, or one's own. */
export const platformAdmin = 'platform-admin';
const tenantAdmin = 'tenant-admin';

/** Whether a caller looks after the types of the scope that they act in: may take back guards and masks, beside defining. */
export function administers({ credential, tenant, roles }: Caller): boolean {
  if (credential !== 'token') return adminCredentials.has(credential);
  return roles.includes(tenant === null ? platformAdmin : tenantAdmin) && tenant?.includes('/') !== true;
}

/** The rules until a policy set is installed. */
export const defaultRules: readonly Rule[] = [
  forbidClassified,
  {
    id: 'forbid-foreign-tenant',
    effect: 'forbid',
    says: 'a credential acts inside its own tenant only',
    matches: ({ caller }) => caller.tenant !== null && (caller.path === null || !covers(caller.tenant, caller.path)),
  },
  {
    id: 'forbid-foreign-branch',
    effect: 'forbid',
    says: 'a branch is deleted by its maker’s organisation, or from above it',
    matches: ({ caller, branch }) =>
      branch !== undefined &&
      !adminCredentials.has(caller.credential) &&
      !(branch.owner === null ? caller.path === null : caller.path !== null && covers(caller.path, branch.owner)),
  },
  {
    id: 'permit-own-tenant',
    effect: 'permit',
    says: 'whoever is known may work inside their own tenant',
    matches: ({ caller, action }) => caller.credential !== 'admin' && ofTenant.has(action),
  },
  {
    id: 'permit-administrator',
    effect: 'permit',
    says: 'the administrator runs the store',
    matches: ({ caller, action, branch }) =>
      adminCredentials.has(caller.credential) && (adminActions.has(action) || branch !== undefined),
  },
  {
    id: 'permit-platform-admin',
    effect: 'permit',
    says: `a token of no tenant with the role ${platformAdmin} looks after every tenant`,
    matches: ({ caller, action, registry }) =>
      action === 'administer' &&
      registry !== undefined &&
      caller.credential === 'token' &&
      caller.tenant === null &&
      caller.roles.includes(platformAdmin),
  },
  {
    id: 'permit-tenant-admin',
    effect: 'permit',
    says: `a token of a tenant with the role ${tenantAdmin} looks after that tenant`,
    matches: ({ caller, action, registry }) =>
      action === 'administer' &&
      registry?.own === true &&
      caller.credential === 'token' &&
      caller.tenant !== null &&
      caller.tenant === registry.tenant &&
      !caller.tenant.includes('/') &&
      caller.roles.includes(tenantAdmin),
  },
  {
    id: 'permit-own-tokens',
    effect: 'permit',
    says: 'a token may rotate and revoke tokens of its own tenant, or its principal’s own',
    matches: ({ caller, action, token }) =>
      action === 'administer' &&
      caller.credential === 'token' &&
      token !== undefined &&
      (token.id === caller.tokenId ||
        (caller.tenant === null
          ? token.tenant === null && token.principal === caller.principal
          : token.tenant !== null && covers(caller.tenant, token.tenant))),
  },
];

/** A rule that fails to evaluate must never widen what is allowed: an erring forbid denies, an erring permit is ignored. */
function ruleMatches(rule: Rule, request: PolicyRequest): boolean {
  try {
    return rule.matches(request);
  } catch {
    return rule.effect === 'forbid';
  }
}
