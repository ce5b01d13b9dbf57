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

const algorithm = 'aes-256-gcm';
const [nonceBytes, tagBytes] = [12, 16];

interface Sealed<T> {
  readonly caller: readonly (string | null)[];
  /** On the monotonic clock; null: as long as the process runs. */
  readonly untilMs: number | null;
  readonly content: T;
}

export class FlightTickets {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #random: Random;
  readonly #key = new Uint8Array(32);

  constructor({ clock, random }: { readonly clock: Pick<Clock, 'monotonicMs'>; readonly random: Random }) {
    this.#clock = clock;
    this.#random = random;
    random.fill(this.#key);
  }

  /** `kind` keeps a ticket from being a handle. `content` is of JSON. */
  seal(kind: 'ticket' | 'handle', caller: Caller, content: object): Buffer {
    const nonce = new Uint8Array(nonceBytes);
    this.#random.fill(nonce);
    const untilMs = kind === 'ticket' ? this.#clock.monotonicMs() + ticketMs : null;
    const cipher = createCipheriv(algorithm, this.#key, nonce).setAAD(Buffer.from(kind));
    const sealed: Sealed<object> = { caller: markOf(caller), untilMs, content };
    return Buffer.concat([nonce, cipher.update(JSON.stringify(sealed), 'utf8'), cipher.final(), cipher.getAuthTag()]);
  }

  /** REL_NOT_FOUND for one that is invalid, another caller's or expired; the error does not say which. */
  open<T>(kind: 'ticket' | 'handle', caller: Caller, bytes: Uint8Array): T {
    const sealed = this.#unseal<T>(kind, bytes);
    const isOwn = sealed !== null && JSON.stringify(sealed.caller) === JSON.stringify(markOf(caller));
    if (!isOwn || (sealed.untilMs !== null && this.#clock.monotonicMs() > sealed.untilMs))
      throw new ServiceError('REL_NOT_FOUND', `no such ${kind} of this caller; a ticket is good for ${ticketMs / 1_000} seconds`);
    return sealed.content;
  }

  #unseal<T>(kind: string, bytes: Uint8Array): Sealed<T> | null {
    if (bytes.length < nonceBytes + tagBytes) return null;
    const end = bytes.length - tagBytes;
    const decipher = createDecipheriv(algorithm, this.#key, bytes.subarray(0, nonceBytes))
      .setAAD(Buffer.from(kind))
      .setAuthTag(bytes.subarray(end));
    try {
      const text = Buffer.concat([decipher.update(bytes.subarray(nonceBytes, end)), decipher.final()]).toString('utf8');
      return JSON.parse(text) as Sealed<T>;
    } catch {
      return null;
    }
  }
}

/** The identity of a caller: another credential of the same principal is another caller. */
function markOf({ principal, credential, tokenId, tenant, path, sharedFrom }: Caller): readonly (string | null)[] {
  return [principal, credential, tokenId, tenant, path, sharedFrom];
}
