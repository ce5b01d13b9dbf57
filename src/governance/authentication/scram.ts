/**
 * SCRAM-SHA-256 as the server speaks it (RFC 5802, RFC 7677), without channel binding: a client proves that it knows a secret, and
 * learns that the server does, and neither sends it. Pure but for the nonce; whatever the protocol, these are the four messages.
 */
import { createHash, createHmac, pbkdf2Sync, timingSafeEqual } from 'node:crypto';
import type { Random } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import { unauthenticatedError } from './bearer-tokens.ts';

export const scramMechanism = 'SCRAM-SHA-256';
const scramIterations = 4_096;
const scramNonceBytes = 18;

/** The form in which a server stores the secret. */
export interface ScramSecret {
  readonly salt: Uint8Array;
  readonly iterations: number;
  readonly storedKey: Uint8Array;
  readonly serverKey: Uint8Array;
}

/** Takes some milliseconds: made once for a secret. */
export function scramSecret(secret: string, salt: Uint8Array): ScramSecret {
  const saltedPassword = pbkdf2Sync(secret.normalize('NFKC'), salt, scramIterations, 32, 'sha256');
  return {
    salt,
    iterations: scramIterations,
    storedKey: scramSha256(scramHmac(saltedPassword, 'Client Key')),
    serverKey: scramHmac(saltedPassword, 'Server Key'),
  };
}

export class ScramExchange {
  readonly #scramSecret: ScramSecret;
  readonly #nonceRandom: Random;
  #scramState:
    | { readonly at: 'start' }
    | { readonly at: 'challenged'; readonly header: string; readonly nonce: string; readonly said: string }
    | { readonly at: 'proven' | 'failed' } = { at: 'start' };

  constructor(secret: ScramSecret, random: Random) {
    this.#scramSecret = secret;
    this.#nonceRandom = random;
  }

  get proven(): boolean {
    return this.#scramState.at === 'proven';
  }

  /** Client-first-message in, server-first-message out. Throws REL_INVALID for what is none. */
  challenge(clientFirst: string): string {
    if (this.#scramState.at !== 'start') throw malformedScramError();
    this.#scramState = { at: 'failed' };
    const clientFirstMatch = /^(([nyp])(?:=[^,]*)?,(?:a=[^,]*)?,)(n=[^,]*,r=([\x21-\x2b\x2d-\x7e]+)(?:,.*)?)$/s.exec(clientFirst);
    if (!clientFirstMatch) throw malformedScramError();
    const [, gs2Header, bindingFlag, clientFirstBare, clientNonce] = clientFirstMatch;
    if (bindingFlag === 'p')
      throw new ServiceError('REL_INVALID', `channel binding was not offered: the mechanism is ${scramMechanism}`);
    const scramNonce = clientNonce! + Buffer.from(this.#nonceRandom.fill(new Uint8Array(scramNonceBytes))).toString('base64');
    const serverFirst = `r=${scramNonce},s=${Buffer.from(this.#scramSecret.salt).toString('base64')},i=${this.#scramSecret.iterations}`;
    this.#scramState = { at: 'challenged', header: gs2Header!, nonce: scramNonce, said: `${clientFirstBare!},${serverFirst}` };
    return serverFirst;
  }

  /** Client-final-message in, server-final-message out. Throws REL_INVALID for what is none, REL_UNAUTHENTICATED for a wrong proof. */
  verify(clientFinal: string): string {
    const scramState = this.#scramState;
    this.#scramState = { at: 'failed' };
    if (scramState.at !== 'challenged') throw malformedScramError();
    const clientFinalMatch = /^(c=([A-Za-z0-9+/=]+),r=([^,]+)(?:,.*)?),p=([A-Za-z0-9+/=]+)$/s.exec(clientFinal);
    if (!clientFinalMatch) throw malformedScramError();
    const [, withoutProof, channelBinding, presentedNonce, presentedProof] = clientFinalMatch;
    if (Buffer.from(channelBinding!, 'base64').toString() !== scramState.header || presentedNonce !== scramState.nonce)
      throw malformedScramError();
    const { storedKey, serverKey } = this.#scramSecret;
    const authMessage = `${scramState.said},${withoutProof!}`;
    const clientProof = Buffer.from(presentedProof!, 'base64');
    if (clientProof.length !== 32) throw malformedScramError();
    const clientSignature = scramHmac(storedKey, authMessage);
    for (let i = 0; i < clientProof.length; i++) clientProof[i]! ^= clientSignature[i]!;
    if (!timingSafeEqual(scramSha256(clientProof), storedKey)) throw unauthenticatedError();
    this.#scramState = { at: 'proven' };
    return `v=${scramHmac(serverKey, authMessage).toString('base64')}`;
  }
}

const scramHmac = (key: Uint8Array, text: string): Buffer => createHmac('sha256', key).update(text).digest();
const scramSha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest();
const malformedScramError = (): ServiceError => new ServiceError('REL_INVALID', `malformed ${scramMechanism} message`);
