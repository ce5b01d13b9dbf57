/**
 * From what a request carries to a `Caller`: the one place where a door learns who asks. Data routes take registry
 * tokens only; the bootstrap secret and the admin credential never pass here.
 */
import type { Clock, Random } from '../../clock.ts';
import type { Settings } from '../../config.ts';
import type { TokenRecord } from '../../log/entry.ts';
import { tenantOf } from '../../log/value.ts';
import type { Directory } from '../../projections/directory/projection.ts';
import { isInForce } from '../../projections/tenants/agreements.ts';
import type { Tenants } from '../../projections/tenants/projection.ts';
import { type Caller, covers, untenanted } from '../caller.ts';
import { foreignOrganization, parseOrganization, pathInForce } from '../tenancy/organization.ts';
import { unauthenticated, verifyToken } from './bearer-tokens.ts';
import { openDevelopment } from './open-development.ts';
import { keyIdOf } from './sigv4.ts';
import { ScramExchange, type ScramSecret, scramSecret } from './scram.ts';
import { isSharedSecret, verifyAdmin, verifySharedSecret } from './shared-secret.ts';
import { TokenRegistry } from './token-registry.ts';

export interface Credentials {
  /** `Authorization` header as sent. */
  readonly authorization: string | undefined;
  /** `X-Organization-Id` header as sent. */
  readonly organization?: string | readonly string[] | undefined;
  readonly door: string;
  /** Address of whoever sent it, where there is one. */
  readonly clientIp?: string | undefined;
}

export interface AuthenticatorParts {
  readonly directory: Pick<Directory, 'token' | 'tokens' | 'size'>;
  readonly tenants: Pick<Tenants, 'sharedWith'>;
  readonly clock: Clock;
  readonly settings: Pick<
    Settings,
    'SERVICE_PROFILE' | 'SERVICE_ADMIN_TOKEN' | 'SERVICE_BEARER_TOKEN' | 'SERVICE_OPEN_DEV_ALLOWED'
  >;
  /** Whether the data listener is reachable from this machine only. */
  readonly boundToLoopback: boolean;
}

export class Authenticator {
  readonly #parts: AuthenticatorParts;
  readonly #registry: TokenRegistry;
  #scramSecret: ScramSecret | null = null;

  constructor(parts: AuthenticatorParts) {
    this.#parts = parts;
    this.#registry = new TokenRegistry(parts.directory);
  }

  /** A caller of the data listener. Throws REL_UNAUTHENTICATED, REL_XORG, or REL_INVALID for a malformed header. */
  dataCaller(credentials: Credentials): Caller {
    if (credentials.authorization === undefined && this.#isOpen()) {
      return {
        ...untenanted('development', 'none', credentials.door),
        path: parseOrganization(credentials.organization),
        clientIp: credentials.clientIp || null,
      };
    }
    const token = verifyToken(bearer(credentials.authorization), this.#registry, this.#parts.clock.now());
    return {
      principal: token.principal,
      credential: 'token',
      tokenId: token.id,
      tenant: token.tenant,
      ...this.#place(token, parseOrganization(credentials.organization)),
      roles: token.roles,
      attributes: token.attributes,
      purposes: token.purposes,
      door: credentials.door,
      branch: 'main',
      clientIp: credentials.clientIp || null,
    };
  }

  /**
   * A caller that authenticated before, as its credential is now: roles, attributes and purposes are those of today. Throws
   * REL_UNAUTHENTICATED once the token was revoked, was rotated or has expired, REL_XORG once nothing is shared any more.
   */
  renewed(caller: Caller): Caller {
    if (caller.credential === 'none' && !this.#isOpen()) throw unauthenticated();
    if (caller.credential !== 'token') return caller;
    const token = caller.tokenId === null ? undefined : this.#registry.token(caller.tokenId);
    if (token === undefined || this.#parts.clock.now() >= token.expiresAt) throw unauthenticated();
    if (caller.sharedFrom !== null && !this.#isShared(caller.path, caller.sharedFrom)) throw foreignOrganization();
    const { roles, attributes, purposes } = token;
    // Nearly always it is as it was: a connection's requests then share one caller.
    if (caller.roles === roles && caller.attributes === attributes && caller.purposes === purposes) return caller;
    return { ...caller, roles, attributes, purposes };
  }

  /** The administrator, on the admin listener. */
  adminCaller(credentials: Credentials): Caller {
    const open = credentials.authorization === undefined && this.#isOpen();
    // Where no credential could be right, the answer is the same whatever was sent.
    if (!open) verifyAdmin(this.#parts.settings, bearerWord(credentials.authorization));
    return { ...untenanted('admin', 'admin', credentials.door), clientIp: credentials.clientIp || null };
  }

  /** A caller of a compatibility door, which carries the bootstrap secret in a way of its own. */
  sharedSecretCaller(presented: string | null, organization: string | null, door: string): Caller {
    verifySharedSecret(this.#parts.settings, presented);
    return { ...untenanted('shared-secret', 'shared-secret', door), path: organization };
  }

  /**
   * A caller of the object door by the access key of its request: the shared secret or a registry token, in clear; or, of a request
   * whose signature was verified, the id that stands for the shared secret. Throws REL_UNAUTHENTICATED, REL_XORG or REL_INVALID.
   */
  keyCaller(
    key: string,
    signed: boolean,
    facts: Pick<Caller, 'door' | 'clientIp'> & { readonly organization: string | null },
  ): Caller {
    const { SERVICE_BEARER_TOKEN: secret } = this.#parts.settings;
    const isKeyId = signed && secret !== null && secret !== '' && key === keyIdOf(secret);
    return this.passwordCaller(isKeyId ? secret : key, facts);
  }

  /**
   * A caller of a compatibility door that sends its password in the clear: the bootstrap secret, which makes everybody one principal,
   * or a registry token. Throws REL_UNAUTHENTICATED, REL_XORG, or REL_INVALID for a malformed path.
   */
  passwordCaller(
    password: string,
    { door, clientIp, organization }: Pick<Caller, 'door' | 'clientIp'> & { readonly organization: string | null },
  ): Caller {
    const named = organization ?? undefined;
    if (isSharedSecret(this.#parts.settings, password))
      return { ...untenanted('shared-secret', 'shared-secret', door), path: parseOrganization(named), clientIp };
    const authorization = `Bearer ${password}`;
    return this.dataCaller({ authorization, organization: named, door, clientIp: clientIp ?? undefined });
  }

  /**
   * The exchange by which a client of a compatibility door shows that it has the bootstrap secret without sending it. Throws
   * REL_UNAUTHENTICATED where none is set.
   */
  scram(random: Random): ScramExchange {
    const { SERVICE_BEARER_TOKEN: secret } = this.#parts.settings;
    if (secret === null || secret === '') throw unauthenticated();
    this.#scramSecret ??= scramSecret(secret, random.fill(new Uint8Array(16)));
    return new ScramExchange(this.#scramSecret, random);
  }

  /** A caller that came to the end of such an exchange. Throws REL_UNAUTHENTICATED for one that did not, REL_INVALID for a malformed path. */
  provenCaller(
    exchange: ScramExchange,
    facts: Pick<Caller, 'door' | 'clientIp'> & { readonly organization: string | null },
  ): Caller {
    if (!exchange.proven) throw unauthenticated();
    const { door, clientIp, organization } = facts;
    return {
      ...untenanted('shared-secret', 'shared-secret', door),
      path: parseOrganization(organization ?? undefined),
      clientIp,
    };
  }

  /** A bound token that names a path outside its tenant stays where it is, and is shown what is shared with it from there. */
  #place(token: TokenRecord, header: string | null): Pick<Caller, 'path' | 'sharedFrom'> {
    if (token.tenant !== null && header !== null && !covers(token.tenant, header)) {
      const path = pathInForce(token, null);
      if (this.#isShared(path, header)) return { path, sharedFrom: header };
    }
    return { path: pathInForce(token, header), sharedFrom: null };
  }

  #isShared(path: string | null, from: string): boolean {
    if (path === null) return false;
    const now = this.#parts.clock.now();
    return this.#parts.tenants
      .sharedWith(tenantOf(path)!)
      .some(
        (agreement) =>
          covers(agreement.assignee, path) &&
          (covers(agreement.assigner, from) || covers(from, agreement.assigner)) &&
          isInForce(agreement, now),
      );
  }

  #isOpen(): boolean {
    const { settings, boundToLoopback } = this.#parts;
    return openDevelopment({ settings, registeredTokens: this.#registry.tokenCount, boundToLoopback });
  }
}

function bearer(authorization: string | undefined): string {
  const word = bearerWord(authorization);
  if (word === null) throw unauthenticated();
  return word;
}

/** The scheme is case-insensitive, the token is one word (RFC 6750). null for anything else. */
function bearerWord(authorization: string | undefined): string | null {
  return /^bearer +([^\s,]+) *$/i.exec(authorization ?? '')?.[1] ?? null;
}
