/**
 * From the credentials of a request to a `Caller`: the one place where a door authenticates. Data routes take registry tokens
 * only; the bootstrap secret and the admin credential never pass here.
 */
import type { Clock, Random } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import type { Settings } from '../../config.ts';
import type { TokenRecord } from '../../log/entries/entry.ts';
import { tenantOf } from '../../log/values/value.ts';
import type { Tokens } from '../../projections/tokens/projection.ts';
import { isInForce } from '../../projections/tenants/agreements.ts';
import type { Tenants } from '../../projections/tenants/projection.ts';
import { absentDoor, type Caller, covers, tenantlessCaller } from '../caller.ts';
import { checkTenantStatus } from '../tenancy/tenant-status.ts';
import { foreignOrganization, parseOrganization, pathInForce } from '../tenancy/organization-path.ts';
import { accessKeyId, keyPairOf, secretKeyOf } from './access-keys.ts';
import { unauthenticatedError, verifyToken } from './bearer-tokens.ts';
import { openDevelopment } from './open-development.ts';
import { keyIdOf } from './sigv4.ts';
import { ScramExchange, type ScramSecret, scramSecret } from './scram.ts';
import { isSharedSecret, verifyAdmin } from './shared-secret.ts';
import { TokenRegistry } from './token-registry.ts';

export interface Credentials {
  /** `Authorization` header as sent. */
  readonly authorization: string | undefined;
  /** `X-Organization-Id` header as sent. */
  readonly organization?: string | readonly string[] | undefined;
  readonly door: string;
  /** Address of the sender, where there is one. */
  readonly clientIp?: string | undefined;
}

/** Facts that a compatibility door has about a connection, beside its credential. */
export type DoorConnection = Pick<Caller, 'door' | 'clientIp'> & { readonly organization: string | null };

export interface AccessKey {
  /** Anybody may read it: URLs can name it. One that is not public is a credential itself. */
  readonly isPublic: boolean;
  readonly signs: 'requests' | 'urls';
  /** null: the access key is the credential, and nothing is signed. */
  readonly secretKey: string | null;
  /** Once the signature was verified. Throws REL_UNAUTHENTICATED, REL_XORG or REL_INVALID. */
  readonly caller: (facts: DoorConnection) => Caller;
}

export interface AuthenticatorDependencies {
  readonly directory: Pick<Tokens, 'token' | 'tokens' | 'size'>;
  readonly tenants: Pick<Tenants, 'sharedWith' | 'tenant'>;
  readonly clock: Clock;
  readonly settings: Pick<
    Settings,
    'SERVICE_PROFILE' | 'SERVICE_ADMIN_TOKEN' | 'SERVICE_BEARER_TOKEN' | 'SERVICE_OPEN_DEV_ALLOWED' | 'SERVICE_TENANCY_MODE'
  >;
  /** Whether the data listener is reachable from this machine only. */
  readonly boundToLoopback: boolean;
}

export class Authenticator {
  readonly #authenticationParts: AuthenticatorDependencies;
  readonly #tokenRegistry: TokenRegistry;
  #scramSecret: ScramSecret | null = null;

  constructor(parts: AuthenticatorDependencies) {
    this.#authenticationParts = parts;
    this.#tokenRegistry = new TokenRegistry(parts.directory);
  }

  /** A caller of the data listener. Throws REL_UNAUTHENTICATED, REL_XORG, or REL_INVALID for a malformed header. */
  dataCaller(credentials: Credentials): Caller {
    if (credentials.authorization === undefined && this.#isOpenDevelopment()) {
      return {
        ...tenantlessCaller('development', 'none', credentials.door),
        path: parseOrganization(credentials.organization),
        clientIp: credentials.clientIp || null,
      };
    }
    return this.#tokenCaller(
      verifyToken(requiredBearer(credentials.authorization), this.#tokenRegistry, this.#authenticationParts.clock.now()),
      credentials,
    );
  }

  #tokenCaller(token: TokenRecord, credentials: Omit<Credentials, 'authorization'>): Caller {
    return {
      principal: token.principal,
      credential: 'token',
      tokenId: token.id,
      tenant: token.tenant,
      ...this.#organizationFor(token, parseOrganization(credentials.organization)),
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
  renew(caller: Caller): Caller {
    if (caller.credential === 'none' && !this.#isOpenDevelopment()) throw unauthenticatedError();
    if (caller.credential !== 'token') return caller;
    const token = caller.tokenId === null ? undefined : this.#tokenRegistry.token(caller.tokenId);
    if (token === undefined || this.#authenticationParts.clock.now() >= token.expiresAt) throw unauthenticatedError();
    if (caller.sharedFrom !== null && !this.#isPathShared(caller.path, caller.sharedFrom)) throw foreignOrganization();
    const { roles, attributes, purposes } = token;
    // Nearly always it is as it was: a connection's requests then share one caller.
    if (caller.roles === roles && caller.attributes === attributes && caller.purposes === purposes) return caller;
    return { ...caller, roles, attributes, purposes };
  }

  /**
   * A principal who is not there: rules and jobs run without a request, by the grants that their owner has now. Throws REL_ACL once
   * the token was revoked, has expired or no longer reaches the path, and while its tenant is suspended. A rotated token goes on
   * as the one that took its place.
   */
  absentCaller(owner: AbsentOwner): Caller {
    const { principal, credential, token: tokenRecordId, path, branch } = owner;
    try {
      checkTenantStatus(this.#authenticationParts.tenants, { path, credential });
    } catch (error) {
      throw lostRightsError((error as ServiceError).message);
    }
    if (credential === 'token') {
      const token = this.#tokenInForce(tokenRecordId);
      if (token === undefined || this.#authenticationParts.clock.now() >= token.expiresAt)
        throw lostRightsError('its token is not in force any more');
      if (token.tenant !== null && (path === null || !covers(token.tenant, path)))
        throw lostRightsError('its token does not reach the organisation path any more');
      const { tenant, roles, attributes, purposes } = token;
      const ownerCaller = tenantlessCaller(token.principal, 'operator', absentDoor);
      return { ...ownerCaller, credential: 'token', tokenId: token.id, tenant, path, roles, attributes, purposes, branch };
    }
    const { SERVICE_ADMIN_TOKEN: adminToken, SERVICE_BEARER_TOKEN: sharedSecret } = this.#authenticationParts.settings;
    const isCredentialGone =
      (credential === 'none' && !this.#isOpenDevelopment()) ||
      (credential === 'admin' && (adminToken ?? '') === '' && !this.#isOpenDevelopment()) ||
      (credential === 'shared-secret' && (sharedSecret ?? '') === '');
    if (isCredentialGone) throw lostRightsError('its credential is not in force any more');
    return { ...tenantlessCaller(principal, credential, absentDoor), path, branch };
  }

  #tokenInForce(id: string | null): TokenRecord | undefined {
    let token = id === null ? undefined : this.#authenticationParts.directory.token(id);
    while (token !== undefined && token.replacedBy !== null) token = this.#authenticationParts.directory.token(token.replacedBy);
    return token === undefined || token.endedAt !== null ? undefined : token.record;
  }

  /** The administrator, on the admin listener. */
  adminCaller(credentials: Credentials): Caller {
    const isOpenDevelopment = credentials.authorization === undefined && this.#isOpenDevelopment();
    // Where no credential could be right, the answer is the same whatever was sent.
    if (!isOpenDevelopment) verifyAdmin(this.#authenticationParts.settings, bearerTokenOf(credentials.authorization));
    return { ...tenantlessCaller('admin', 'admin', credentials.door), clientIp: credentials.clientIp || null };
  }

  /**
   * Whom an access key of the object door stands for, and the secret that signs for it. `sharedSecretKey`: the one that goes with
   * the bootstrap secret; null: none is set, and a credential that is itself the access key need not be signed with anything.
   */
  accessKey(accessKeyText: string, sharedSecretKey: string | null): AccessKey {
    const accessTokenId = accessKeyId(accessKeyText);
    if (accessTokenId !== null) {
      const token = this.#authenticationParts.directory.token(accessTokenId);
      return {
        isPublic: true,
        signs: 'requests',
        secretKey: token === undefined ? noSecretKey : secretKeyOf(token.record),
        caller: (facts) => this.#tokenIdCaller(accessTokenId, facts),
      };
    }
    const { SERVICE_BEARER_TOKEN: sharedSecret } = this.#authenticationParts.settings;
    if (sharedSecretKey !== null && sharedSecret !== null && sharedSecret !== '' && accessKeyText === keyIdOf(sharedSecret))
      return {
        isPublic: true,
        signs: 'urls',
        secretKey: sharedSecretKey,
        caller: (facts) => this.passwordCaller(sharedSecret, facts),
      };
    const tokenKeyPair = sharedSecretKey === null ? null : keyPairOf(accessKeyText);
    const caller = (facts: DoorConnection): Caller => this.passwordCaller(accessKeyText, facts);
    return {
      isPublic: false,
      signs: 'requests',
      secretKey: tokenKeyPair === null ? sharedSecretKey : tokenKeyPair.secretKey,
      caller,
    };
  }

  /** A caller whose request was signed with the secret key of this token. */
  #tokenIdCaller(id: string, { door, clientIp, organization }: DoorConnection): Caller {
    const token = this.#tokenRegistry.token(id);
    if (token === undefined || this.#authenticationParts.clock.now() >= token.expiresAt) throw unauthenticatedError();
    return this.#tokenCaller(token, { organization: organization ?? undefined, door, clientIp: clientIp ?? undefined });
  }

  /**
   * A caller of a compatibility door that sends its password in the clear: the bootstrap secret, which makes everybody one principal,
   * or a registry token. Throws REL_UNAUTHENTICATED, REL_XORG, or REL_INVALID for a malformed path.
   */
  passwordCaller(password: string, { door, clientIp, organization }: DoorConnection): Caller {
    if (isSharedSecret(this.#authenticationParts.settings, password)) return this.#sharedCaller({ door, clientIp, organization });
    const organizationHeader = organization ?? undefined;
    const authorization = `Bearer ${password}`;
    return this.dataCaller({ authorization, organization: organizationHeader, door, clientIp: clientIp ?? undefined });
  }

  /**
   * The exchange by which a client of a compatibility door shows that it has the bootstrap secret without sending it. Throws
   * REL_UNAUTHENTICATED where none is set.
   */
  scram(random: Random): ScramExchange {
    const { SERVICE_BEARER_TOKEN: sharedSecret } = this.#authenticationParts.settings;
    if (sharedSecret === null || sharedSecret === '') throw unauthenticatedError();
    this.#scramSecret ??= scramSecret(sharedSecret, random.fill(new Uint8Array(16)));
    return new ScramExchange(this.#scramSecret, random);
  }

  /** A caller that came to the end of such an exchange. Throws REL_UNAUTHENTICATED for one that did not, REL_INVALID for a malformed path. */
  provenCaller(exchange: ScramExchange, facts: DoorConnection): Caller {
    if (!exchange.proven) throw unauthenticatedError();
    return this.#sharedCaller(facts);
  }

  /** Where there are many tenants the bootstrap secret speaks for none of them but at the relational door: registry tokens name theirs. */
  #sharedCaller({ door, clientIp, organization }: DoorConnection): Caller {
    if (this.#authenticationParts.settings.SERVICE_TENANCY_MODE === 'multi' && door !== 'relational')
      throw unauthenticatedError();
    return {
      ...tenantlessCaller('shared-secret', 'shared-secret', door),
      path: parseOrganization(organization ?? undefined),
      clientIp,
    };
  }

  /** A bound token that names a path outside its tenant stays where it is, and is shown what is shared with it from there. */
  #organizationFor(token: TokenRecord, header: string | null): Pick<Caller, 'path' | 'sharedFrom'> {
    if (token.tenant !== null && header !== null && !covers(token.tenant, header)) {
      const path = pathInForce(token, null);
      if (this.#isPathShared(path, header)) return { path, sharedFrom: header };
    }
    return { path: pathInForce(token, header), sharedFrom: null };
  }

  #isPathShared(callerPath: string | null, sharedFromPath: string): boolean {
    if (callerPath === null) return false;
    const now = this.#authenticationParts.clock.now();
    return this.#authenticationParts.tenants
      .sharedWith(tenantOf(callerPath)!)
      .some(
        (agreement) =>
          covers(agreement.assignee, callerPath) &&
          (covers(agreement.assigner, sharedFromPath) || covers(sharedFromPath, agreement.assigner)) &&
          isInForce(agreement, now),
      );
  }

  #isOpenDevelopment(): boolean {
    const { settings, boundToLoopback } = this.#authenticationParts;
    return openDevelopment({ settings, registeredTokens: this.#tokenRegistry.tokenCount, boundToLoopback });
  }
}

/** The maker of a rule or a job, as its entry names them. */
export interface AbsentOwner extends Pick<Caller, 'principal' | 'credential' | 'path' | 'branch'> {
  readonly token: string | null;
}

const lostRightsError = (why: string): ServiceError => new ServiceError('REL_ACL', `the owner has lost its rights: ${why}`);

/** Signs for unknown access keys: their refusal takes as long as one of a key that exists. */
const noSecretKey = secretKeyOf({ secretHash: '' });

function requiredBearer(authorization: string | undefined): string {
  const bearerToken = bearerTokenOf(authorization);
  if (bearerToken === null) throw unauthenticatedError();
  return bearerToken;
}

/** The scheme is case-insensitive, the token is one word (RFC 6750). null for anything else. */
function bearerTokenOf(authorization: string | undefined): string | null {
  return /^bearer +([^\s,]+) *$/i.exec(authorization ?? '')?.[1] ?? null;
}
