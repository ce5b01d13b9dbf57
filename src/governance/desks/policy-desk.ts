/**
 * The installed policies as the administrator sees them, and what is asked of a text before it is installed: that it means
 * something for the types as they are, and can be decided row by row as the engine would.
 */
import { ServiceError } from '../../errors.ts';
import type { InstalledPolicy, Policies } from '../../projections/policies/projection.ts';
import type { PolicyDeskContract } from '../desk-contract.ts';
import { readPolicies, type TypeLookup } from '../authorization/cedar/policies.ts';
import { warningsOf } from '../authorization/cedar/policy-warnings.ts';

export class PolicyDesk implements PolicyDeskContract {
  readonly #installedPolicies: Pick<Policies, 'current'>;
  readonly #typeLookup: TypeLookup;

  constructor(policies: Pick<Policies, 'current'>, typesOf: TypeLookup) {
    this.#installedPolicies = policies;
    this.#typeLookup = typesOf;
  }

  get epoch(): number {
    return this.#installedPolicies.current.epoch;
  }

  get digest(): string {
    return this.#installedPolicies.current.digest;
  }

  policies(): readonly InstalledPolicy[] {
    return this.#installedPolicies.current.policies;
  }

  policy(id: string): InstalledPolicy {
    const installedPolicy = this.policies().find((installed) => installed.id === id);
    if (installedPolicy === undefined) throw new ServiceError('REL_NOT_FOUND', 'no such policy');
    return installedPolicy;
  }

  checkText(id: string, text: string): readonly string[] {
    // Policies of a text are named <text>/<policy>: with a slash of its own, two could have one name.
    if (id.includes('/')) throw new ServiceError('REL_INVALID', 'the id of a policy must not contain a slash');
    return warningsOf(readPolicies(id, text, this.#typeLookup), this.#typeLookup);
  }

  checkUnchanged(digests: readonly string[]): void {
    if (digests.includes(this.digest)) return;
    throw new ServiceError('REL_CONFLICT', 'the policies changed since they were read');
  }
}
