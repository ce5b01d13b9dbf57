/**
 * Access keys of the object door, and the secret that signs requests under each. A registry token has two public words of its
 * own: its access key is the token without its secret part, its secret key is derived from the whole token. Invariants: an access
 * key proves nothing, and the secret key of one token signs for no other.
 *
 * A signature is checked with the secret that made it, so the server must be able to derive the secret key from what it stores
 * of a token. That is the token's hash, which rests sealed like every entry.
 */
import { createHmac, hash } from 'node:crypto';
import type { TokenRecord } from '../../log/entries/entry.ts';
import { tokenId } from './bearer-tokens.ts';

export interface KeyPair {
  readonly accessKey: string;
  readonly secretKey: string;
}

/** The pair of a registry token; null for what is no such token. */
export function keyPairOf(token: string): KeyPair | null {
  const id = tokenId(token);
  return id === null ? null : { accessKey: `ann_${id}`, secretKey: secretKeyOf({ secretHash: hash('sha256', token, 'hex') }) };
}

export const secretKeyOf = ({ secretHash }: Pick<TokenRecord, 'secretHash'>): string =>
  createHmac('sha256', Buffer.from(secretHash, 'hex')).update('annals object secret key').digest('base64url');

/** The id of the token that a public access key belongs to; null for another word. */
export const accessKeyId = (accessKey: string): string | null =>
  /^ann_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/.exec(accessKey)?.[1] ?? null;
