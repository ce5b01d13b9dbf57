/**
 * One invocation on its way in, up to policy: running? -> branch -> standing -> purpose -> quota; and the slot and the place
 * that it holds until it is over. A purpose stated later is checked when it is used.
 */
import { tenantOf } from '../../log/values/value.ts';
import { assert, ServiceError } from '../../errors.ts';
import { unknownBranch } from '../../projections/branches/commands.ts';
import { readsOnly, unitsAtStart } from '../authorization/action-names.ts';
import { checkPurpose } from '../authorization/purpose.ts';
import type { InvocationDescription } from '../access-records/invocation-description.ts';
import type { Core } from '../gate-core.ts';
import { checkTenantStatus } from '../tenancy/tenant-status.ts';
import { priorityOf } from './query-slots.ts';
import type { Account } from './quota.ts';

export class Admission {
  readonly #core: Core;
  readonly #description: InvocationDescription;
  /** The purpose that was let in; undefined before. */
  #admittedPurpose: string | null | undefined = undefined;
  /** Fork of the branch that was admitted: a name that is forked anew meanwhile is another branch. */
  #branch: number | undefined = undefined;
  /** Holds a slot of its tenant, and a place of the store: a query that waits for a place has the first already. */
  #hasTenantSlot = false;
  #holdsSlot = false;
  /** Slots given back while it waits for others. */
  #slotsAtPause = { running: false, holdsSlot: false };
  #payingAccount: Account | null = null;
  #chargedUnits = 0;
  #invocationEnded = false;

  constructor(core: Core, description: InvocationDescription) {
    this.#core = core;
    this.#description = description;
  }

  /**
   * Takes a slot among the running queries; null where that takes no waiting, as nearly always. A caller that is not let in takes
   * none, and gets the refusal even on routes that need nothing else of the invocation.
   */
  enter(): Promise<void> | null {
    const { action, recordOnly, keysRead } = this.#description.request;
    if (recordOnly === true) return null;
    this.#checkTenantStanding();
    if (unitsAtStart(action) === 0 || keysRead !== undefined) return null;
    if (!this.#core.slots.take()) return this.#waitForQuerySlot();
    this.#holdsSlot = true;
    return null;
  }

  async #waitForQuerySlot(): Promise<void> {
    const { action, continues = false, gone } = this.#description.request;
    // A waiting query counts as running for its tenant: one tenant alone cannot fill the lines.
    if (!continues) this.#takeTenantSlot();
    await this.#core.slots.wait(priorityOf(action, continues, this.#description.caller), gone);
    this.#holdsSlot = true;
  }

  /** Before anything is read or written. `slot`: what is done ends within its turn, and takes none of the tenant's ('none'). */
  admit(slot: 'one' | 'none' = 'one'): void {
    assert(!this.#invocationEnded, 'an invocation is not used after it has ended');
    const { caller, purpose } = this.#description;
    this.checkThere();
    this.#checkTenantStanding();
    if (caller.sharedFrom !== null && !readsOnly.has(this.#description.action)) throw foreign();
    const isAdmitted = this.#admittedPurpose === purpose;
    if (isAdmitted && this.#hasTenantSlot) return;
    if (!isAdmitted) checkPurpose(this.#core.purposes, purpose, caller.purposes, this.#description.purposeRequired);
    const { continues, keysRead } = this.#description.request;
    const admissionUnits = continues === true ? 0 : admissionUnitsOf(this.#description);
    // A read by keys ends within its turn, too.
    if (slot === 'one' && admissionUnits > 0 && keysRead === undefined) this.#takeTenantSlot();
    if (!isAdmitted) this.#spendQuota(admissionUnits);
    this.#admittedPurpose = purpose;
  }

  /** The store runs, and the branch is the one that it was. */
  checkThere(): void {
    this.#core.committer.checkRunning();
    const { branch, path } = this.#description.caller;
    const branchId = this.#core.parts.projections.branches.idOf(branch, tenantOf(path));
    if (branchId === undefined || branchId !== (this.#branch ?? branchId)) throw unknownBranch(branch);
    this.#branch = branchId;
  }

  /** Fork of the branch that was admitted. */
  get fork(): number | undefined {
    return this.#branch;
  }

  #checkTenantStanding(): void {
    const { request, caller } = this.#description;
    if (request.whileSuspended !== true) checkTenantStatus(this.#core.parts.projections.tenants, caller);
  }

  #spendQuota(units: number): void {
    if (units === 0 || this.#chargedUnits > 0) return;
    const { quota, parts } = this.#core;
    quota.spend(this.#account, units, parts.clock.monotonicMs());
    this.#chargedUnits = units;
  }

  #takeTenantSlot(): void {
    if (this.#hasTenantSlot) return;
    this.#core.quota.enter(this.#account.tenant);
    this.#hasTenantSlot = true;
  }

  /** The cost: the measured units, else those charged at the start. */
  settle(nowMs: number): number {
    const { costUnits = this.#chargedUnits } = this.#description.facts;
    if (this.#chargedUnits > 0) this.#core.quota.settle(this.#account, costUnits - this.#chargedUnits, nowMs);
    this.#description.request.onCost?.(costUnits);
    return costUnits;
  }

  /** Nothing is let in any more. */
  close(): void {
    this.#invocationEnded = true;
  }

  leave(): void {
    // The slot is for running queries; waiting for the record's bytes is the log's time, not the query's.
    const { quota, slots } = this.#core;
    if (this.#hasTenantSlot) quota.leave(this.#account.tenant);
    if (this.#holdsSlot) slots.leave();
    this.#hasTenantSlot = this.#holdsSlot = false;
  }

  /** Gives up its turn until `resume`: it waits for others, who need its slots. */
  pause(): void {
    this.#slotsAtPause = { running: this.#hasTenantSlot, holdsSlot: this.#holdsSlot };
    this.leave();
  }

  /** Throws where the slots of the tenant are taken: it may try again. */
  async resume(): Promise<void> {
    const { slots } = this.#core;
    const { request, caller, action } = this.#description;
    if (this.#slotsAtPause.holdsSlot && !this.#holdsSlot) {
      if (!slots.take()) await slots.wait(priorityOf(action, request.continues === true, caller), request.gone);
      this.#holdsSlot = true;
    }
    if (this.#slotsAtPause.running) this.#takeTenantSlot();
  }

  /** The account that pays: the credential's tenant, else the tenant that it acts for. */
  get #account(): Account {
    const { tenant, path, principal } = this.#description.caller;
    return (this.#payingAccount ??= { tenant: tenant ?? tenantOf(path) ?? '', principal });
  }
}

function admissionUnitsOf({ action, request }: InvocationDescription): number {
  const startUnits = unitsAtStart(action);
  return request.keysRead === undefined ? startUnits : Math.min(startUnits, request.keysRead * costUnitsPerKey);
}

/** A wire client asks for one key at a time. */
const costUnitsPerKey = 0.01;

export const foreign = (): ServiceError => new ServiceError('REL_XORG', 'rows that another organisation shares are read-only');
