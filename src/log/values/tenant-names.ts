/**
 * Things that have a name within a tenant, or within the whole store. To a tenant a name means its own thing, else the store's;
 * to a caller without a tenant it means the store's. Two tenants never meet each other's names. Pure.
 */
export class TenantNames<T> {
  readonly #thingsByTenantName = new Map<string, T>();

  /** The thing that the name means to a tenant; null: to a caller without one. */
  get(thingName: string, tenant: string | null): T | undefined {
    const tenantThing = tenant === null ? undefined : this.#thingsByTenantName.get(tenantNameKey(thingName, tenant));
    return tenantThing ?? this.#thingsByTenantName.get(tenantNameKey(thingName, null));
  }

  /** The thing that this tenant, or for null the store, has under the name. */
  own(thingName: string, tenant: string | null): T | undefined {
    return this.#thingsByTenantName.get(tenantNameKey(thingName, tenant));
  }

  set(thingName: string, tenant: string | null, namedThing: T): void {
    this.#thingsByTenantName.set(tenantNameKey(thingName, tenant), namedThing);
  }

  delete(thingName: string, tenant: string | null): boolean {
    return this.#thingsByTenantName.delete(tenantNameKey(thingName, tenant));
  }

  /** Values of every tenant and of the store. */
  values(): IterableIterator<T> {
    return this.#thingsByTenantName.values();
  }

  clear(): void {
    this.#thingsByTenantName.clear();
  }
}

/** Neither a path nor a name has a control character. */
const tenantNameKey = (name: string, tenant: string | null): string => `${tenant ?? ''}\u0000${name}`;
