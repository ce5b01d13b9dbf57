/**
 * How much one principal may ask for in a period, and how many queries one tenant may have running. Refusals name the
 * second at which trying again can help.
 */
import { ServiceError } from '../../errors.ts';

export interface QuotaLimits {
  /** Cost units per principal and period. */
  readonly unitsMax: number;
  readonly periodMs: number;
  /** Queries that one tenant may have running. */
  readonly inFlightMax: number;
}

/** Time is an argument (`nowMs`, never falling): the same calls give the same verdicts. */
export class Quota {
  readonly #limits: QuotaLimits;
  #spent = new Map<string, number>();
  #periodEndMs = Number.NEGATIVE_INFINITY;
  readonly #running = new Map<string, number>();

  constructor(limits: QuotaLimits) {
    this.#limits = limits;
  }

  /** Charges `units`. Throws REL_QUOTA when the principal had none left; a last query may overdraw. */
  spend(principal: string, units: number, nowMs: number): void {
    this.#turn(nowMs);
    const spent = this.#spent.get(principal) ?? 0;
    if (spent >= this.#limits.unitsMax) {
      const retryAfterSecs = Math.max(1, Math.ceil((this.#periodEndMs - nowMs) / 1000));
      throw new ServiceError('REL_QUOTA', `all ${this.#limits.unitsMax} cost units of this period are used up`, {
        retryAfterSecs,
      });
    }
    this.#spent.set(principal, spent + units);
  }

  /** What a query turned out to cost beyond what was charged at its start. Never refuses: the work is done. */
  settle(principal: string, units: number, nowMs: number): void {
    if (units <= 0) return;
    this.#turn(nowMs);
    this.#spent.set(principal, (this.#spent.get(principal) ?? 0) + units);
  }

  /** Takes a running slot of the tenant, or throws REL_QUOTA. Every `enter` needs one `leave`. */
  enter(tenant: string): void {
    const running = this.#running.get(tenant) ?? 0;
    if (running >= this.#limits.inFlightMax) {
      throw new ServiceError('REL_QUOTA', `${this.#limits.inFlightMax} queries of this tenant are running`, {
        retryAfterSecs: 1,
      });
    }
    this.#running.set(tenant, running + 1);
  }

  leave(tenant: string): void {
    const running = this.#running.get(tenant) ?? 0;
    if (running <= 1) this.#running.delete(tenant);
    else this.#running.set(tenant, running - 1);
  }

  #turn(nowMs: number): void {
    if (nowMs < this.#periodEndMs) return;
    this.#spent = new Map();
    this.#periodEndMs = nowMs + this.#limits.periodMs;
  }
}
