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
  readonly #opening: Opening;
  readonly #protection: (type: string) => Protection;
  readonly #permits: Permits;

  constructor(opening: Opening, protection: (type: string) => Protection, permits: Permits) {
    this.#opening = opening;
    this.#protection = protection;
    this.#permits = permits;
  }

  /** Equal keys, equal answers, as far as no policy opens a type; the grant's key covers types that policies open. */
  get key(): string {
    const { caller, breakGlass, accessScopeRef } = this.#opening;
    if (breakGlass === null && accessScopeRef === null) return '';
    return JSON.stringify([breakGlass, caller.roles.includes('break-glass'), this.#clearedFor(accessScopeRef)]);
  }

  /** Throws REL_HUMINT, REL_ACL, REL_ACCESS_SCOPE or REL_PROTECTED_COLUMN; nothing where all of it is open. */
  check(type: string, columns: readonly string[]): void {
    const guard = this.#protection(type);
    if (guard.protected) this.#checkGlass(type);
    if (guard.accessScope) this.#checkScope(type);
    if (guard.references.size === 0) return;
    for (const column of columns) {
      for (const named of guard.references.get(column) ?? []) {
        if (!this.#protection(named).protected || this.#glass(named) === null) continue;
        throw new ServiceError('REL_PROTECTED_COLUMN', `${type}.${column} refers to a protected type`);
      }
    }
  }

  #checkGlass(type: string): void {
    const refusal = this.#glass(type);
    if (refusal === 'no reason')
      throw new ServiceError('REL_HUMINT', `${type} is a protected type: state the reason in break_glass`);
    if (refusal === 'no right') {
      throw new ServiceError('REL_ACL', `${type} is a protected type: neither the role break-glass nor a policy opens it`);
    }
  }

  /** null: open. */
  #glass(type: string): 'no reason' | 'no right' | null {
    const { caller, breakGlass } = this.#opening;
    if (breakGlass === null) return 'no reason';
    return caller.roles.includes('break-glass') || this.#permits.permitsOpening(this.#opening, type) ? null : 'no right';
  }

  #checkScope(type: string): void {
    const { accessScopeRef } = this.#opening;
    if (this.#clearedFor(accessScopeRef)) return;
    const why = accessScopeRef === null ? 'access_scope_ref states it' : 'the credential is not cleared for the one stated';
    throw new ServiceError('REL_ACCESS_SCOPE', `${type} is read and written under an access scope: ${why}`);
  }

  #clearedFor(ref: string | null): boolean {
    const scopes = this.#opening.caller.attributes['access_scopes'];
    return ref !== null && typeof scopes === 'string' && scopes.split(',').some((scope) => scope.trim() === ref);
  }
}

/**
 * True when every row that the policies allow is allowed by a permit that names the reason: such a permit holds for all rows,
 * or no other permit matters. One that was written for other rows never opens these.
 */
export function opensByPolicy(policies: CallerPolicies, action: CedarAction, type: TypeDefinition, now: bigint): boolean {
  const { rows, residuals } = policies.rows(action, type, now);
  if (rows === 'none') return false;
  const permits = residuals.filter(({ policy }) => policy.effect === 'permit');
  const naming = permits.filter(({ policy }) => namesReason(policy));
  return naming.length > 0 && (naming.length === permits.length || naming.some(({ left }) => left.op === 'value'));
}

const naming = new WeakMap<Policy, boolean>();

function namesReason(policy: Policy): boolean {
  let known = naming.get(policy);
  if (known === undefined) {
    known = mentions(
      policy.condition,
      (part) =>
        (part.op === 'attribute' || part.op === 'has') &&
        part.name === 'break_glass' &&
        part.left.op === 'variable' &&
        part.left.name === 'context',
    );
    naming.set(policy, known);
  }
  return known;
}
