/** The caller: fixed once a door has authenticated, and carried to the gate with every invocation. Pure. */

export interface Caller {
  readonly principal: string;
  /**
   * How the principal was established. `none` is the unauthenticated development mode; `operator` opened the data
   * directory itself, which needs its keys.
   */
  readonly credential: 'token' | 'shared-secret' | 'admin' | 'operator' | 'none';
  readonly tokenId: string | null;
  /** Tenant that the credential is bound to; null for single-tenant credentials. */
  readonly tenant: string | null;
  /** Organisation path in force: writes go there, and reads see it with everything below it. null: rows without a tenant. */
  readonly path: string | null;
  readonly roles: readonly string[];
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  /** Purposes that the credential is restricted to; empty means any registered one. */
  readonly purposes: readonly string[];
  readonly door: string;
  readonly branch: string;
  /** Address that the request came from; null where none is known. */
  readonly clientIp: string | null;
  /**
   * A foreign organisation path that the request names under an agreement in force: of all that the caller may see, only what
   * that path's tenant shares, at the path and below it, is shown, and nothing is written. null: the caller's own path.
   */
  readonly sharedFrom: string | null;
}

/** Named in access records of what runs without a request. */
export const absentDoor = 'internal';

/** A caller that no tenant, role or purpose narrows: the start of credentials that are not registry tokens. */
export function tenantlessCaller(principal: string, credential: Exclude<Caller['credential'], 'token'>, door: string): Caller {
  return {
    principal,
    credential,
    tokenId: null,
    tenant: null,
    path: null,
    roles: [],
    attributes: {},
    purposes: [],
    door,
    branch: 'main',
    clientIp: null,
    sharedFrom: null,
  };
}

/** True when `path` is `coveringPath` or lies below it, segment by segment: `acme` covers `acme/eu`, never `acme-evil`. */
export function covers(coveringPath: string, path: string): boolean {
  return (
    path === coveringPath ||
    (path.length > coveringPath.length && path.startsWith(coveringPath) && path.charCodeAt(coveringPath.length) === 0x2f)
  );
}

/** A path sees itself and what lies below it; no path at all sees rows without one, never everything. */
export function sees(callerPath: string | null, rowPath: string | null): boolean {
  if (callerPath === null || rowPath === null) return callerPath === rowPath;
  return covers(callerPath, rowPath);
}
