/** Plans by key, least recently used out first. Pinned branches have a part of it to themselves, which no other can use up. */
import { LRUCache } from 'lru-cache';
import { byText } from '../statements/statement-source.ts';

export interface PlanCacheOptions {
  readonly plansMax: number;
  /** Branches by their exact names. */
  readonly pinned: ReadonlySet<string>;
}

/** Share of the cache for all pinned branches together. */
const pinnedShare = 1 / 4;

export class PlanCache<Plan extends object> {
  readonly #pinned: ReadonlySet<string>;
  readonly #shared: LRUCache<string, Plan>;
  readonly #reserved: LRUCache<string, Plan>;

  constructor({ plansMax, pinned }: PlanCacheOptions) {
    const reserved = pinned.size === 0 ? 0 : Math.ceil(plansMax * pinnedShare);
    this.#pinned = pinned;
    this.#shared = new LRUCache<string, Plan>({ max: plansMax - reserved, ...byText });
    this.#reserved = new LRUCache<string, Plan>({ max: Math.max(1, reserved), ...byText });
  }

  get(branch: string, key: string): Plan | undefined {
    return this.#cacheOf(branch).get(key);
  }

  set(branch: string, key: string, plan: Plan): void {
    this.#cacheOf(branch).set(key, plan);
  }

  clear(): void {
    this.#shared.clear();
    this.#reserved.clear();
  }

  #cacheOf(branch: string): LRUCache<string, Plan> {
    return this.#pinned.has(branch) ? this.#reserved : this.#shared;
  }
}
