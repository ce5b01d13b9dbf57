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
  readonly #asked: InvocationDescription;
  /** The purpose that was let in; undefined before. */
  #admittedFor: string | null | undefined = undefined;
  /** Fork of the branch that was admitted: a name that is forked anew meanwhile is another branch. */
  #branch: number | undefined = undefined;
  /** Holds a slot of its tenant, and a place of the store: a query that waits for a place has the first already. */
  #running = false;
  #placed = false;
  /** Slots given back while it waits for others. */
  #paused = { running: false, placed: false };
  #payer: Account | null = null;
  #charged = 0;
  #closed = false;

  constructor(core: Core, asked: InvocationDescription) {
    this.#core = core;
    this.#asked = asked;
  }

  /**
   * Takes a slot among the running queries; null where that takes no waiting, as nearly always. A caller that is not let in takes
   * none, and gets the refusal even on routes that need nothing else of the invocation.
   */
  enter(): Promise<void> | null {
    const { action, recordOnly, keysRead } = this.#asked.request;
    if (recordOnly === true) return null;
    this.#checkStanding();
    if (unitsAtStart(action) === 0 || keysRead !== undefined) return null;
    if (!this.#core.slots.take()) return this.#waitForPlace();
    this.#placed = true;
    return null;
  }

  async #waitForPlace(): Promise<void> {
    const { action, continues = false, gone } = this.#asked.request;
    // A waiting query counts as running for its tenant: one tenant alone cannot fill the lines.
    if (!continues) this.#takeSlot();
    await this.#core.slots.wait(priorityOf(action, continues, this.#asked.caller), gone);
    this.#placed = true;
  }

  /** Before anything is read or written. `slot`: what is done ends within its turn, and takes none of the tenant's ('none'). */
  admit(slot: 'one' | 'none' = 'one'): void {
    assert(!this.#closed, 'an invocation is not used after it has ended');
    const { caller, purpose } = this.#asked;
    this.checkThere();
    this.#checkStanding();
    if (caller.sharedFrom !== null && !readsOnly.has(this.#asked.action)) throw foreign();
    const isAdmitted = this.#admittedFor === purpose;
    if (isAdmitted && this.#running) return;
    if (!isAdmitted) checkPurpose(this.#core.purposes, purpose, caller.purposes, this.#asked.purposeRequired);
    const { continues, keysRead } = this.#asked.request;
    const units = continues === true ? 0 : unitsOf(this.#asked);
    // A read by keys ends within its turn, too.
    if (slot === 'one' && units > 0 && keysRead === undefined) this.#takeSlot();
    if (!isAdmitted) this.#spend(units);
    this.#admittedFor = purpose;
  }

  /** The store runs, and the branch is the one that it was. */
  checkThere(): void {
    this.#core.committer.checkRunning();
    const { branch, path } = this.#asked.caller;
    const id = this.#core.parts.projections.branches.idOf(branch, tenantOf(path));
    if (id === undefined || id !== (this.#branch ?? id)) throw unknownBranch(branch);
    this.#branch = id;
  }

  /** Fork of the branch that was admitted. */
  get fork(): number | undefined {
    return this.#branch;
  }

  #checkStanding(): void {
    const { request, caller } = this.#asked;
    if (request.whileSuspended !== true) checkTenantStatus(this.#core.parts.projections.tenants, caller);
  }

  #spend(units: number): void {
    if (units === 0 || this.#charged > 0) return;
    const { quota, parts } = this.#core;
    quota.spend(this.#account, units, parts.clock.monotonicMs());
    this.#charged = units;
  }

  #takeSlot(): void {
    if (this.#running) return;
    this.#core.quota.enter(this.#account.tenant);
    this.#running = true;
  }

  /** The cost: the measured units, else those charged at the start. */
  settle(nowMs: number): number {
    const { costUnits = this.#charged } = this.#asked.facts;
    if (this.#charged > 0) this.#core.quota.settle(this.#account, costUnits - this.#charged, nowMs);
    this.#asked.request.onCost?.(costUnits);
    return costUnits;
  }

  /** Nothing is let in any more. */
  close(): void {
    this.#closed = true;
  }

  leave(): void {
    // The slot is for running queries; waiting for the record's bytes is the log's time, not the query's.
    const { quota, slots } = this.#core;
    if (this.#running) quota.leave(this.#account.tenant);
    if (this.#placed) slots.leave();
    this.#running = this.#placed = false;
  }

  /** Gives up its turn until `resume`: it waits for others, who need its slots. */
  pause(): void {
    this.#paused = { running: this.#running, placed: this.#placed };
    this.leave();
  }

  /** Throws where the slots of the tenant are taken: it may try again. */
  async resume(): Promise<void> {
    const { slots } = this.#core;
    const { request, caller, action } = this.#asked;
    if (this.#paused.placed && !this.#placed) {
      if (!slots.take()) await slots.wait(priorityOf(action, request.continues === true, caller), request.gone);
      this.#placed = true;
    }
    if (this.#paused.running) this.#takeSlot();
  }

  /** The account that pays: the credential's tenant, else the tenant that it acts for. */
  get #account(): Account {
    const { tenant, path, principal } = this.#asked.caller;
    return (this.#payer ??= { tenant: tenant ?? tenantOf(path) ?? '', principal });
  }
}

function unitsOf({ action, request }: InvocationDescription): number {
  const units = unitsAtStart(action);
  return request.keysRead === undefined ? units : Math.min(units, request.keysRead * unitsOfKey);
}

/** A wire client asks for one key at a time. */
const unitsOfKey = 0.01;

export const foreign = (): ServiceError => new ServiceError('REL_XORG', 'rows that another organisation shares are read-only');
