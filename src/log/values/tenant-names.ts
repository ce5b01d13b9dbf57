/**
 * Things that have a name within a tenant, or within the whole store. To a tenant a name means its own thing, else the store's;
 * to a caller without a tenant it means the store's. Two tenants never meet each other's names. Pure.
 */
export class TenantNames<T> {
  readonly #named = new Map<string, T>();

  /** The thing that the name means to a tenant; null: to a caller without one. */
  get(name: string, tenant: string | null): T | undefined {
    const own = tenant === null ? undefined : this.#named.get(keyOf(name, tenant));
    return own ?? this.#named.get(keyOf(name, null));
  }

  /** The thing that this tenant, or for null the store, has under the name. */
  own(name: string, tenant: string | null): T | undefined {
    return this.#named.get(keyOf(name, tenant));
  }

  set(name: string, tenant: string | null, thing: T): void {
    this.#named.set(keyOf(name, tenant), thing);
  }

  delete(name: string, tenant: string | null): boolean {
    return this.#named.delete(keyOf(name, tenant));
  }

  /** Values of every tenant and of the store. */
  values(): IterableIterator<T> {
    return this.#named.values();
  }

  clear(): void {
    this.#named.clear();
  }
}

/** Neither a path nor a name has a control character. */
const keyOf = (name: string, tenant: string | null): string => `${tenant ?? ''}\u0000${name}`;
