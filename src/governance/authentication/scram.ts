/**
 * SCRAM-SHA-256 as the server speaks it (RFC 5802, RFC 7677), without channel binding: a client proves that it knows a secret, and
 * learns that the server does, and neither sends it. Pure but for the nonce; whatever the protocol, these are the four messages.
 */
import { createHash, createHmac, pbkdf2Sync, timingSafeEqual } from 'node:crypto';
import type { Random } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import { unauthenticatedError } from './bearer-tokens.ts';

export const scramMechanism = 'SCRAM-SHA-256';
const iterations = 4_096;
const nonceBytes = 18;

/** The form in which a server stores the secret. */
export interface ScramSecret {
  readonly salt: Uint8Array;
  readonly iterations: number;
  readonly storedKey: Uint8Array;
  readonly serverKey: Uint8Array;
}

/** Takes some milliseconds: made once for a secret. */
export function scramSecret(secret: string, salt: Uint8Array): ScramSecret {
  const salted = pbkdf2Sync(secret.normalize('NFKC'), salt, iterations, 32, 'sha256');
  return { salt, iterations, storedKey: sha256(hmac(salted, 'Client Key')), serverKey: hmac(salted, 'Server Key') };
}

export class ScramExchange {
  readonly #secret: ScramSecret;
  readonly #random: Random;
  #state:
    | { readonly at: 'start' }
    | { readonly at: 'challenged'; readonly header: string; readonly nonce: string; readonly said: string }
    | { readonly at: 'proven' | 'failed' } = { at: 'start' };

  constructor(secret: ScramSecret, random: Random) {
    this.#secret = secret;
    this.#random = random;
  }

  get proven(): boolean {
    return this.#state.at === 'proven';
  }

  /** Client-first-message in, server-first-message out. Throws REL_INVALID for what is none. */
  challenge(clientFirst: string): string {
    if (this.#state.at !== 'start') throw malformedError();
    this.#state = { at: 'failed' };
    const match = /^(([nyp])(?:=[^,]*)?,(?:a=[^,]*)?,)(n=[^,]*,r=([\x21-\x2b\x2d-\x7e]+)(?:,.*)?)$/s.exec(clientFirst);
    if (!match) throw malformedError();
    const [, header, flag, bare, clientNonce] = match;
    if (flag === 'p')
      throw new ServiceError('REL_INVALID', `channel binding was not offered: the mechanism is ${scramMechanism}`);
    const nonce = clientNonce! + Buffer.from(this.#random.fill(new Uint8Array(nonceBytes))).toString('base64');
    const serverFirst = `r=${nonce},s=${Buffer.from(this.#secret.salt).toString('base64')},i=${this.#secret.iterations}`;
    this.#state = { at: 'challenged', header: header!, nonce, said: `${bare!},${serverFirst}` };
    return serverFirst;
  }

  /** Client-final-message in, server-final-message out. Throws REL_INVALID for what is none, REL_UNAUTHENTICATED for a wrong proof. */
  verify(clientFinal: string): string {
    const state = this.#state;
    this.#state = { at: 'failed' };
    if (state.at !== 'challenged') throw malformedError();
    const match = /^(c=([A-Za-z0-9+/=]+),r=([^,]+)(?:,.*)?),p=([A-Za-z0-9+/=]+)$/s.exec(clientFinal);
    if (!match) throw malformedError();
    const [, withoutProof, binding, nonce, given] = match;
    if (Buffer.from(binding!, 'base64').toString() !== state.header || nonce !== state.nonce) throw malformedError();
    const { storedKey, serverKey } = this.#secret;
    const said = `${state.said},${withoutProof!}`;
    const proof = Buffer.from(given!, 'base64');
    if (proof.length !== 32) throw malformedError();
    const signature = hmac(storedKey, said);
    for (let i = 0; i < proof.length; i++) proof[i]! ^= signature[i]!;
    if (!timingSafeEqual(sha256(proof), storedKey)) throw unauthenticatedError();
    this.#state = { at: 'proven' };
    return `v=${hmac(serverKey, said).toString('base64')}`;
  }
}

const hmac = (key: Uint8Array, text: string): Buffer => createHmac('sha256', key).update(text).digest();
const sha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest();
const malformedError = (): ServiceError => new ServiceError('REL_INVALID', `malformed ${scramMechanism} message`);
