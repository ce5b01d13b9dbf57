/**
 * Registry tokens: `ann_<id>_<secret>`. The id finds the record, the 256-bit secret proves possession; the registry
 * holds the SHA-256 of the whole token and nothing else ever leaves this file. A secret of full entropy needs no slow hash.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import type { Ids, Random } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import type { TokenRecord } from '../../log/entries/entry.ts';
import { FOREVER } from '../../log/values/timestamp.ts';
import { checkIdentifier } from '../../log/values/value.ts';
import { covers } from '../caller.ts';
import { checkOrganization } from '../tenancy/organization-path.ts';

/** Registered tokens by id: revoked and rotated ones are absent. */
export interface TokenDirectory {
  token(id: string): TokenRecord | undefined;
}

export interface TokenRequest {
  readonly principal?: string | undefined;
  readonly tenant?: string | undefined;
  readonly organization?: string | undefined;
  readonly roles?: readonly string[] | undefined;
  readonly attributes?: Readonly<Record<string, string | number | boolean>> | undefined;
  readonly purposes?: readonly string[] | undefined;
  readonly expiresInSecs?: number | undefined;
}

/** A record for the log, and the token to show once. */
export interface DraftedToken {
  readonly record: TokenRecord;
  readonly token: string;
}

const tokenSecretBytes = 32;
const bearerTokenShape = /^ann_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})_[A-Za-z0-9_-]{43}$/;
const expiresInSecsMax = 100 * 366 * 86_400;

/** The id in a token, which is no secret; null for what has not the shape of one. */
export const tokenId = (token: string): string | null => bearerTokenShape.exec(token)?.[1] ?? null;

/** Makes a token; it is valid once a `mint-token` or `rotate-token` command with its record was submitted. */
export function draftToken(request: TokenRequest, ids: Ids, random: Random, nowNs: bigint): DraftedToken {
  const tenant = request.tenant ?? null;
  const organization = request.organization ?? null;
  if (tenant !== null) checkOrganization(tenant);
  if (organization !== null) checkOrganization(organization);
  if (tenant !== null && organization !== null && !covers(tenant, organization)) {
    throw new ServiceError('REL_INVALID', 'organization must be the tenant or lie below it');
  }
  const newTokenId = ids.next();
  const principal = request.principal ?? `principal-${newTokenId}`;
  checkIdentifier(principal, 'principal');
  for (const role of request.roles ?? []) checkIdentifier(role, 'a role');
  for (const purpose of request.purposes ?? []) checkIdentifier(purpose, 'a purpose');
  const tokenText = `ann_${newTokenId}_${Buffer.from(random.fill(new Uint8Array(tokenSecretBytes))).toString('base64url')}`;
  return {
    token: tokenText,
    record: {
      id: newTokenId,
      secretHash: hash('sha256', tokenText, 'hex'),
      principal,
      tenant,
      organization,
      roles: request.roles ?? [],
      attributes: { ...request.attributes },
      purposes: request.purposes ?? [],
      expiresAt: tokenExpiry(request.expiresInSecs, nowNs),
    },
  };
}

/** A new secret for an existing token: everything else stays, and its expiry is not prolonged. */
export function draftRotation(rotatedToken: TokenRecord, ids: Ids, random: Random): DraftedToken {
  const draftedToken = draftToken({ principal: rotatedToken.principal }, ids, random, 0n);
  return {
    token: draftedToken.token,
    record: { ...rotatedToken, id: draftedToken.record.id, secretHash: draftedToken.record.secretHash },
  };
}

/** The record of a valid token. Throws REL_UNAUTHENTICATED, in the same words whatever is wrong. */
export function verifyToken(token: string, directory: TokenDirectory, nowNs: bigint): TokenRecord {
  const presentedTokenId = tokenId(token);
  if (presentedTokenId === null) throw unauthenticatedError();
  const tokenRecord = directory.token(presentedTokenId);
  // Hashed and compared even when there is no such token: how long a refusal takes must not tell which ids exist.
  const presentedHash = hash('sha256', token, 'buffer');
  const expectedHash = tokenRecord === undefined ? absentTokenHash : Buffer.from(tokenRecord.secretHash, 'hex');
  const isSameSecret = expectedHash.length === presentedHash.length && timingSafeEqual(presentedHash, expectedHash);
  if (!isSameSecret || tokenRecord === undefined || nowNs >= tokenRecord.expiresAt) throw unauthenticatedError();
  return tokenRecord;
}

export const unauthenticatedError = (): ServiceError => new ServiceError('REL_UNAUTHENTICATED', 'missing or invalid credential');

const absentTokenHash = Buffer.alloc(32);

function tokenExpiry(expiresInSecs: number | undefined, nowNs: bigint): bigint {
  if (expiresInSecs === undefined) return FOREVER;
  if (!Number.isSafeInteger(expiresInSecs) || expiresInSecs < 1 || expiresInSecs > expiresInSecsMax) {
    throw new ServiceError('REL_INVALID', `expires_in_secs must be an integer from 1 to ${expiresInSecsMax}`);
  }
  return nowNs + BigInt(expiresInSecs) * 1_000_000_000n;
}
