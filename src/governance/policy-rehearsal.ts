/**
 * The gate as it would be with one policy text more, another, or one fewer: reads are judged by the set that would be in force.
 * Invariant: nothing is written through it. Its grants have the digest of that set in their keys, so that no plan, answer or row of
 * a rehearsal is taken for one of the policies in force, nor the other way round.
 */
import { ServiceError } from '../errors.ts';
import { withPolicy } from '../projections/policies/projection.ts';
import { Grants } from './authorization/grants.ts';
import { RowConditionBits } from './authorization/row-condition-bits.ts';
import type { PolicyDraft } from './gate-contract.ts';
import type { Core } from './gate-core.ts';
import { ScopeCache } from './reading/path-scopes.ts';
import { Committer } from './writing/committer.ts';

export function rehearsalCore(core: Core, { id, text }: PolicyDraft): Core {
  const { policies, tenants } = core.parts.projections;
  const rehearsedPolicies = withPolicy(policies.current, id, text);
  const rehearsalJudge = core.judge.withPolicies({ current: rehearsedPolicies, setAt: () => rehearsedPolicies });
  return {
    ...core,
    committer: new RehearsalCommitter(core),
    judge: rehearsalJudge,
    grants: new Grants(rehearsalJudge.policies, tenants),
    reading: { scopes: new ScopeCache(), bits: new RowConditionBits(), hash: core.reading.hash },
  };
}

class RehearsalCommitter extends Committer {
  readonly #rehearsedCore: Core;

  constructor(core: Core) {
    super(core.parts.log, () => undefined);
    this.#rehearsedCore = core;
  }

  override checkRunning(): void {
    this.#rehearsedCore.committer.checkRunning();
  }

  override commit(): never {
    throw new ServiceError('REL_READ_ONLY', 'a rehearsal writes nothing');
  }
}
