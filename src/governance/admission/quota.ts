/**
 * How much one principal may ask for in a period, how many queries one tenant may have running, and at what pace it may ask.
 * A registered tenant's own quota holds instead of the settings. Refusals name the second at which trying again can help.
 */
import { ServiceError } from '../../errors.ts';
import type { TenantQuota } from '../../log/entries/entry.ts';
import { RateLimiter } from './rate-limit.ts';

export interface QuotaLimits {
  /** Cost units per principal and period. */
  readonly unitsMax: number;
  readonly periodMs: number;
  /** Queries that one tenant may have running, or waiting for their turn to run. */
  readonly inFlightMax: number;
}

/** The quota agreed with a tenant; undefined for one that was never registered. */
export type QuotaOf = (tenant: string) => Pick<TenantQuota, 'queryUnits' | 'inFlight' | 'requestsPerSecond'> | undefined;

/** The account whose units are spent: principals of one name under different tenants are separate accounts. */
export interface Account {
  /** Tenant that pays; '' for callers of none. */
  readonly tenant: string;
  readonly principal: string;
}

/** Counted on when nothing of theirs runs. */
const quotaTenantsMax = 256;

/** As many queries of the tenant run as may: one that waits for others of them comes later. */
export class SlotsTaken extends ServiceError {
  constructor(inFlightMax: number, setting: string) {
    super('REL_QUOTA', `${inFlightMax} queries of this tenant are running (${setting})`, { retryAfterSecs: 1 });
  }
}

/** Time is an argument (`nowMs`, never falling): the same calls give the same verdicts. */
export class Quota {
  readonly #quotaLimits: QuotaLimits;
  readonly #quotaOf: QuotaOf;
  #spentUnits = new Map<string, number>();
  #periodEndMs = Number.NEGATIVE_INFINITY;
  readonly #runningByTenant = new Map<string, number>();
  /** By pace: tenants of one pace share a limiter, which holds a bucket for each. */
  readonly #paceLimiters = new Map<number, RateLimiter>();

  constructor(limits: QuotaLimits, quotaOf: QuotaOf = () => undefined) {
    this.#quotaLimits = limits;
    this.#quotaOf = quotaOf;
  }

  /** Charges `units`. Throws REL_QUOTA when the account had none left, or asks too fast; a last query may overdraw. */
  spend(account: Account, units: number, nowMs: number): void {
    this.#turnQuotaPeriod(nowMs);
    const tenantQuota = account.tenant === '' ? undefined : this.#quotaOf(account.tenant);
    const unitsMax = tenantQuota?.queryUnits ?? this.#quotaLimits.unitsMax;
    const accountKey = accountKeyOf(account);
    const spentUnits = this.#spentUnits.get(accountKey) ?? 0;
    if (spentUnits >= unitsMax) {
      const retryAfterSecs = Math.max(1, Math.ceil((this.#periodEndMs - nowMs) / 1000));
      const setting = (tenantQuota?.queryUnits ?? null) === null ? 'SERVICE_QUERY_QUOTA' : 'query_units of the tenant';
      throw new ServiceError('REL_QUOTA', `all ${unitsMax} cost units of this period (${setting}) are used up`, {
        retryAfterSecs,
      });
    }
    const tenantPace = tenantQuota?.requestsPerSecond ?? null;
    if (tenantPace !== null) this.#keepTenantPace(account.tenant, tenantPace, nowMs);
    this.#spentUnits.set(accountKey, spentUnits + units);
  }

  /**
   * Charges or refunds the difference between a query's actual cost and the charge at its start. Never refuses: the work is done.
   */
  settle(account: Account, units: number, nowMs: number): void {
    if (units === 0) return;
    this.#turnQuotaPeriod(nowMs);
    const accountKey = accountKeyOf(account);
    this.#spentUnits.set(accountKey, Math.max(0, (this.#spentUnits.get(accountKey) ?? 0) + units));
  }

  /** Takes a running slot of the tenant, or throws REL_QUOTA. Every `enter` needs one `leave`. */
  enter(tenant: string): void {
    const runningQueries = this.#runningByTenant.get(tenant) ?? 0;
    const agreedInFlight = tenant === '' ? undefined : this.#quotaOf(tenant)?.inFlight;
    const inFlightMax = agreedInFlight ?? this.#quotaLimits.inFlightMax;
    if (runningQueries >= inFlightMax) {
      throw new SlotsTaken(
        inFlightMax,
        (agreedInFlight ?? null) === null ? 'SERVICE_MAX_INFLIGHT_QUERIES' : 'in_flight of the tenant',
      );
    }
    this.#runningByTenant.set(tenant, runningQueries + 1);
  }

  leave(tenant: string): void {
    const runningQueries = this.#runningByTenant.get(tenant) ?? 0;
    // A map that is emptied by each query is made anew by each, and its remains hold on to what the collector would take.
    if (runningQueries <= 1 && this.#runningByTenant.size > quotaTenantsMax) this.#runningByTenant.delete(tenant);
    else this.#runningByTenant.set(tenant, Math.max(0, runningQueries - 1));
  }

  #keepTenantPace(tenant: string, pace: number, nowMs: number): void {
    let paceLimiter = this.#paceLimiters.get(pace);
    if (paceLimiter === undefined) this.#paceLimiters.set(pace, (paceLimiter = new RateLimiter(pace)));
    const { allowed, retryAfterSecs } = paceLimiter.take(tenant, nowMs);
    if (allowed) return;
    throw new ServiceError('REL_QUOTA', `this tenant may send ${pace} requests a second`, {
      retryAfterSecs: Number.isFinite(retryAfterSecs) ? retryAfterSecs : 1,
    });
  }

  #turnQuotaPeriod(nowMs: number): void {
    if (nowMs < this.#periodEndMs) return;
    this.#spentUnits = new Map();
    this.#periodEndMs = nowMs + this.#quotaLimits.periodMs;
    // Paces that were agreed once and are no more.
    if (this.#paceLimiters.size > paceLimitersMax) this.#paceLimiters.clear();
  }
}

const paceLimitersMax = 64;

/** Neither name can hold the character between them. */
const accountKeyOf = ({ tenant, principal }: Account): string => (tenant === '' ? principal : `${tenant}\u0000${principal}`);
