/** Keys by which a client may cancel, on another connection, what runs on this one. */
import { timingSafeEqual } from 'node:crypto';
import type { Random } from '../../clock.ts';

export interface CancelKey {
  readonly process: number;
  readonly secret: number;
  /** For the statement that begins now: aborts when it is cancelled, or `gone` does. Only the newest can be cancelled. */
  signal(gone: AbortSignal): AbortSignal;
}

export class CancelDesk {
  readonly #random: Random;
  readonly #open = new Map<number, { readonly secret: Buffer; running: AbortController | null }>();
  #next = 1;

  constructor(random: Random) {
    this.#random = random;
  }

  open(): CancelKey {
    while (this.#open.has(this.#next)) this.#next = (this.#next % 0x7fff_ffff) + 1;
    const process = this.#next;
    this.#next = (this.#next % 0x7fff_ffff) + 1;
    const entry = { secret: this.#random.fill(Buffer.alloc(4)), running: null as AbortController | null };
    this.#open.set(process, entry);
    return {
      process,
      secret: entry.secret.readInt32BE(),
      signal: (gone) => {
        entry.running = new AbortController();
        return AbortSignal.any([gone, entry.running.signal]);
      },
    };
  }

  cancel({ process, secret }: { readonly process: number; readonly secret: number }): void {
    const entry = this.#open.get(process);
    if (entry === undefined) return;
    const given = Buffer.alloc(4);
    given.writeInt32BE(secret);
    if (timingSafeEqual(given, entry.secret)) entry.running?.abort();
  }

  close({ process }: CancelKey): void {
    this.#open.delete(process);
  }
}
