/**
 * Tickets and handles of prepared statements: queries sealed by this process for one caller. The server stores none of them; no
 * other caller can read, forge or use one.
 */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import type { Clock, Random } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import type { Caller } from '../../governance/caller.ts';

/** How long a ticket opens. */
export const ticketMs = 60_000;

const ticketCipher = 'aes-256-gcm';
const [nonceBytes, tagBytes] = [12, 16];

interface SealedTicket<T> {
  readonly caller: readonly (string | null)[];
  /** On the monotonic clock; null: as long as the process runs. */
  readonly untilMs: number | null;
  readonly content: T;
}

export class FlightTickets {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #random: Random;
  readonly #key = new Uint8Array(32);

  constructor({
    clock: ticketClock,
    random: nonceRandom,
  }: { readonly clock: Pick<Clock, 'monotonicMs'>; readonly random: Random }) {
    this.#clock = ticketClock;
    this.#random = nonceRandom;
    nonceRandom.fill(this.#key);
  }

  /** `ticketKind` keeps a ticket from being a handle. `ticketContent` is of JSON. */
  seal(ticketKind: 'ticket' | 'handle', ticketCaller: Caller, ticketContent: object): Buffer {
    const ticketNonce = new Uint8Array(nonceBytes);
    this.#random.fill(ticketNonce);
    const untilMs = ticketKind === 'ticket' ? this.#clock.monotonicMs() + ticketMs : null;
    const sealCipher = createCipheriv(ticketCipher, this.#key, ticketNonce).setAAD(Buffer.from(ticketKind));
    const sealedTicket: SealedTicket<object> = { caller: callerMarkOf(ticketCaller), untilMs, content: ticketContent };
    return Buffer.concat([
      ticketNonce,
      sealCipher.update(JSON.stringify(sealedTicket), 'utf8'),
      sealCipher.final(),
      sealCipher.getAuthTag(),
    ]);
  }

  /** REL_NOT_FOUND for one that is invalid, another caller's or expired; the error does not say which. */
  open<T>(ticketKind: 'ticket' | 'handle', ticketCaller: Caller, ticketBytes: Uint8Array): T {
    const sealedTicket = this.#unseal<T>(ticketKind, ticketBytes);
    const isOwn = sealedTicket !== null && JSON.stringify(sealedTicket.caller) === JSON.stringify(callerMarkOf(ticketCaller));
    if (!isOwn || (sealedTicket.untilMs !== null && this.#clock.monotonicMs() > sealedTicket.untilMs))
      throw new ServiceError(
        'REL_NOT_FOUND',
        `no such ${ticketKind} of this caller; a ticket is good for ${ticketMs / 1_000} seconds`,
      );
    return sealedTicket.content;
  }

  #unseal<T>(ticketKind: string, ticketBytes: Uint8Array): SealedTicket<T> | null {
    if (ticketBytes.length < nonceBytes + tagBytes) return null;
    const tagOffset = ticketBytes.length - tagBytes;
    const ticketDecipher = createDecipheriv(ticketCipher, this.#key, ticketBytes.subarray(0, nonceBytes))
      .setAAD(Buffer.from(ticketKind))
      .setAuthTag(ticketBytes.subarray(tagOffset));
    try {
      const ticketText = Buffer.concat([
        ticketDecipher.update(ticketBytes.subarray(nonceBytes, tagOffset)),
        ticketDecipher.final(),
      ]).toString('utf8');
      return JSON.parse(ticketText) as SealedTicket<T>;
    } catch {
      return null;
    }
  }
}

/** The identity of a caller: another credential of the same principal is another caller. */
function callerMarkOf({
  principal,
  credential,
  tokenId,
  tenant,
  path: callerPath,
  sharedFrom,
}: Caller): readonly (string | null)[] {
  return [principal, credential, tokenId, tenant, callerPath, sharedFrom];
}
