/** Plans by key, least recently used out first. Pinned branches have a part of it to themselves, which no other can use up. */
import { LRUCache } from 'lru-cache';
import { byText } from '../statements/statement-source.ts';

export interface PlanCacheOptions {
  readonly plansMax: number;
  /** Branches by their exact names. */
  readonly pinned: ReadonlySet<string>;
}

/** Share of the cache for all pinned branches together. */
const pinnedBranchShare = 1 / 4;

export class PlanCache<Plan extends object> {
  readonly #pinnedBranches: ReadonlySet<string>;
  readonly #sharedPlans: LRUCache<string, Plan>;
  readonly #reservedPlans: LRUCache<string, Plan>;

  constructor({ plansMax, pinned }: PlanCacheOptions) {
    const reservedPlans = pinned.size === 0 ? 0 : Math.ceil(plansMax * pinnedBranchShare);
    this.#pinnedBranches = pinned;
    this.#sharedPlans = new LRUCache<string, Plan>({ max: plansMax - reservedPlans, ...byText });
    this.#reservedPlans = new LRUCache<string, Plan>({ max: Math.max(1, reservedPlans), ...byText });
  }

  get(branch: string, planKey: string): Plan | undefined {
    return this.#planCacheOf(branch).get(planKey);
  }

  set(branch: string, planKey: string, plan: Plan): void {
    this.#planCacheOf(branch).set(planKey, plan);
  }

  clear(): void {
    this.#sharedPlans.clear();
    this.#reservedPlans.clear();
  }

  #planCacheOf(branch: string): LRUCache<string, Plan> {
    return this.#pinnedBranches.has(branch) ? this.#reservedPlans : this.#sharedPlans;
  }
}
