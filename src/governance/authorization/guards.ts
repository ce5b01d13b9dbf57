/**
 * Opens types that declare a guard, for reads and writes alike:
 *
 *   protected type           a reason, and the role `break-glass` or a permit that names the reason
 *   access scope             a reference that the credential is cleared for
 *   column that names rows   as the protected type that it names
 *   of a protected type
 *
 * Checked wherever rows or cells of a type pass the gate, and decided by the type alone: never by stored rows.
 */
import { ServiceError } from '../../errors.ts';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import type { Protection } from '../../projections/catalog/type-guards.ts';
import type { Caller } from '../caller.ts';
import type { CallerPolicies } from './cedar/decision.ts';
import type { CedarAction, Policy } from './cedar/policies.ts';
import { mentions } from './cedar/syntax.ts';
import type { Stated } from './policies-in-force.ts';

/** The caller, and its statements. */
export interface Opening extends Pick<Stated, 'breakGlass' | 'accessScopeRef'> {
  readonly caller: Pick<Caller, 'roles' | 'attributes'>;
}

/** Answers from the policies in force. */
export interface Permits {
  /** Whether an installed permit that names the reason opens a type; see `opensByPolicy`. */
  permitsOpening(opening: Opening, type: string): boolean;
}

export class Guards {
  readonly #guardedOpening: Opening;
  readonly #protectionOf: (type: string) => Protection;
  readonly #openingPermits: Permits;

  constructor(opening: Opening, protection: (type: string) => Protection, permits: Permits) {
    this.#guardedOpening = opening;
    this.#protectionOf = protection;
    this.#openingPermits = permits;
  }

  /** Equal keys, equal answers, as far as no policy opens a type; the grant's key covers types that policies open. */
  get key(): string {
    const { caller, breakGlass, accessScopeRef } = this.#guardedOpening;
    if (breakGlass === null && accessScopeRef === null) return '';
    return JSON.stringify([breakGlass, caller.roles.includes('break-glass'), this.#clearedFor(accessScopeRef)]);
  }

  /** Throws REL_HUMINT, REL_ACL, REL_ACCESS_SCOPE or REL_PROTECTED_COLUMN; nothing where all of it is open. */
  check(type: string, columns: readonly string[]): void {
    const typeProtection = this.#protectionOf(type);
    if (typeProtection.protected) this.#checkBreakGlass(type);
    if (typeProtection.accessScope) this.#checkAccessScope(type);
    if (typeProtection.references.size === 0) return;
    for (const column of columns) {
      for (const referredType of typeProtection.references.get(column) ?? []) {
        if (!this.#protectionOf(referredType).protected || this.#breakGlassRefusal(referredType) === null) continue;
        throw new ServiceError('REL_PROTECTED_COLUMN', `${type}.${column} refers to a protected type`);
      }
    }
  }

  #checkBreakGlass(type: string): void {
    const glassRefusal = this.#breakGlassRefusal(type);
    if (glassRefusal === 'no reason')
      throw new ServiceError('REL_HUMINT', `${type} is a protected type: state the reason in break_glass`);
    if (glassRefusal === 'no right') {
      throw new ServiceError('REL_ACL', `${type} is a protected type: neither the role break-glass nor a policy opens it`);
    }
  }

  /** null: open. */
  #breakGlassRefusal(type: string): 'no reason' | 'no right' | null {
    const { caller, breakGlass } = this.#guardedOpening;
    if (breakGlass === null) return 'no reason';
    return caller.roles.includes('break-glass') || this.#openingPermits.permitsOpening(this.#guardedOpening, type)
      ? null
      : 'no right';
  }

  #checkAccessScope(type: string): void {
    const { accessScopeRef } = this.#guardedOpening;
    if (this.#clearedFor(accessScopeRef)) return;
    const scopeRefusal =
      accessScopeRef === null ? 'access_scope_ref states it' : 'the credential is not cleared for the one stated';
    throw new ServiceError('REL_ACCESS_SCOPE', `${type} is read and written under an access scope: ${scopeRefusal}`);
  }

  #clearedFor(accessScopeRef: string | null): boolean {
    const accessScopes = this.#guardedOpening.caller.attributes['access_scopes'];
    return (
      accessScopeRef !== null &&
      typeof accessScopes === 'string' &&
      accessScopes.split(',').some((scope) => scope.trim() === accessScopeRef)
    );
  }
}

/**
 * True when every row that the policies allow is allowed by a permit that names the reason: such a permit holds for all rows,
 * or no other permit matters. One that was written for other rows never opens these.
 */
export function opensByPolicy(policies: CallerPolicies, action: CedarAction, type: TypeDefinition, now: bigint): boolean {
  const { rows, residuals } = policies.rows(action, type, now);
  if (rows === 'none') return false;
  const permitResiduals = residuals.filter(({ policy }) => policy.effect === 'permit');
  const reasonedPermits = permitResiduals.filter(({ policy }) => namesReason(policy));
  return (
    reasonedPermits.length > 0 &&
    (reasonedPermits.length === permitResiduals.length || reasonedPermits.some(({ left }) => left.op === 'value'))
  );
}

const policiesNamingReason = new WeakMap<Policy, boolean>();

function namesReason(policy: Policy): boolean {
  let isNamingReason = policiesNamingReason.get(policy);
  if (isNamingReason === undefined) {
    isNamingReason = mentions(
      policy.condition,
      (part) =>
        (part.op === 'attribute' || part.op === 'has') &&
        part.name === 'break_glass' &&
        part.left.op === 'variable' &&
        part.left.name === 'context',
    );
    policiesNamingReason.set(policy, isNamingReason);
  }
  return isNamingReason;
}
