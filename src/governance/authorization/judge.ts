/**
 * Decisions of one store: the rules that always hold, and the policies in force. Every request is judged here, by whatever way it
 * comes, so that an installed policy counts from the next decision on.
 */
import { tenantOf } from '../../log/values/value.ts';
import type { Clock } from '../../clock.ts';
import type { CatalogReader, TenantPaths } from '../../projections/access-paths.ts';
import { unknownBranch } from '../../projections/branches/commands.ts';
import type { Catalog } from '../../projections/catalog/projection.ts';
import type { Policies } from '../../projections/policies/projection.ts';
import type { Caller } from '../caller.ts';
import type { CallerPolicies } from './cedar/decision.ts';
import { Guards, opensByPolicy, type Permits } from './guards.ts';
import { PoliciesInForce, type Stated } from './policies-in-force.ts';
import { cedarActionOf } from './policy-set.ts';
import {
  authorise,
  type Decision,
  decide,
  decideInstalled,
  defaultRules,
  type Installed,
  type PolicyRequest,
  type Rule,
} from './access-rules.ts';

export interface JudgeDependencies {
  readonly policies: Pick<Policies, 'current' | 'setAt'>;
  readonly branches: { idOf(branch: string, tenant: string | null): number | undefined };
  readonly catalog: Pick<Catalog, 'catalogOn' | 'protection'>;
  readonly clock: Pick<Clock, 'now'>;
  /** Besides those that hold everywhere. */
  readonly rules: readonly Rule[];
}

/** An invocation that is judged, whatever it is about. */
export type Judged = Pick<PolicyRequest, 'caller' | 'action'> & Stated;

/** The judged part of an invocation and its action: a command keeps its own action under any invocation. */
export type About = Omit<PolicyRequest, 'caller' | 'purpose'>;

export class Judge implements Permits {
  readonly policies: PoliciesInForce;
  readonly rules: readonly Rule[];
  readonly #judgeParts: JudgeDependencies;

  constructor(parts: JudgeDependencies) {
    this.#judgeParts = parts;
    this.rules = [...defaultRules, ...parts.rules];
    this.policies = new PoliciesInForce(parts.policies);
  }

  /** One that decides by other policies, and else by the same rules. */
  withPolicies(policies: JudgeDependencies['policies']): Judge {
    return new Judge({ ...this.#judgeParts, policies });
  }

  decide(judged: Judged, about: About): Decision {
    return this.#decideRequest(judged, requestOf(judged, about));
  }

  #decideRequest(judged: Judged, request: PolicyRequest): Decision {
    const { policies } = this;
    if (policies.digest === '') return decide(this.rules, request);
    return decideInstalled(this.rules, request, {
      policies: () => policies.policiesFor(judged.caller, judged),
      now: this.#judgeParts.clock.now(),
      typeOf: (name) => this.#catalogOf(judged.caller)?.type(name),
    });
  }

  /** The same under the policies of then. */
  decideUnder(request: PolicyRequest, policies: CallerPolicies | null, now: bigint, typeOf: Installed['typeOf']): Decision {
    return decideInstalled(this.rules, request, { policies: () => policies, now, typeOf });
  }

  /** Throws what refuses the request. */
  authorise(judged: Judged, about: About): void {
    const request = requestOf(judged, about);
    authorise(this.#decideRequest(judged, request), request);
  }

  /** The guards of the branch's types, for this invocation. */
  guards(judged: Judged, protection: TenantPaths['protection']): Guards {
    return new Guards(judged, protection, this);
  }

  permitsOpening(judged: Judged, name: string): boolean {
    const { caller, action } = judged;
    const policies = this.policies.policiesFor(caller, judged);
    const type = this.#catalogOf(caller)?.type(name);
    if (policies === null || type === undefined) return false;
    return opensByPolicy(policies, cedarActionOf[action].action, type, this.#judgeParts.clock.now());
  }

  /** Guards for writes: those of the branch's types now. */
  writeGuards(judged: Judged): Guards {
    const { catalog } = this.#judgeParts;
    const branchId = this.#branchIdOf(judged.caller);
    if (branchId === undefined) throw unknownBranch(judged.caller.branch);
    const tenant = tenantOf(judged.caller.path);
    return this.guards(judged, (type) => catalog.protection(branchId, tenant, type));
  }

  #catalogOf(caller: Caller): CatalogReader | undefined {
    const branchId = this.#branchIdOf(caller);
    return branchId === undefined ? undefined : this.#judgeParts.catalog.catalogOn(branchId, tenantOf(caller.path));
  }

  #branchIdOf({ branch, path }: Caller): number | undefined {
    return this.#judgeParts.branches.idOf(branch, tenantOf(path));
  }
}

/** Written out: one is made for every step of every invocation. */
function requestOf({ caller, purpose }: Judged, about: About): PolicyRequest {
  const { action, objectType, token, branch, registry } = about;
  if (token === undefined && branch === undefined && registry === undefined) return { caller, action, purpose, objectType };
  return { ...about, caller, purpose };
}
