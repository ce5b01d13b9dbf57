/** Keys by which a client may cancel, on another connection, the statement that runs on this one. */
import { timingSafeEqual } from 'node:crypto';
import type { Random } from '../../clock.ts';

export interface CancelKey {
  readonly process: number;
  readonly secret: number;
  /**
   * A signal for the statement that begins now: aborts when it is cancelled, or the client is gone. A signal that was not aborted
   * is reused for the next.
   */
  signal(): AbortSignal;
  /** Cancels the statement that runs now. */
  cancel(): void;
}

export class CancelDesk {
  readonly #random: Random;
  readonly #open = new Map<number, { readonly secret: Buffer; running: AbortController }>();
  #next = 1;

  constructor(random: Random) {
    this.#random = random;
  }

  open(gone: AbortSignal): CancelKey {
    while (this.#open.has(this.#next)) this.#next = (this.#next % 0x7fff_ffff) + 1;
    const process = this.#next;
    this.#next = (this.#next % 0x7fff_ffff) + 1;
    const entry = { secret: this.#random.fill(Buffer.alloc(4)), running: new AbortController() };
    this.#open.set(process, entry);
    gone.addEventListener('abort', () => entry.running.abort(), { once: true });
    return {
      process,
      secret: entry.secret.readInt32BE(),
      signal: () => {
        // A cancellation that came too late for the statement before must not end this one.
        if (entry.running.signal.aborted && !gone.aborted) entry.running = new AbortController();
        return entry.running.signal;
      },
      cancel: () => entry.running.abort(),
    };
  }

  cancel({ process, secret }: { readonly process: number; readonly secret: number }): void {
    const entry = this.#open.get(process);
    if (entry === undefined) return;
    const given = Buffer.alloc(4);
    given.writeInt32BE(secret);
    if (timingSafeEqual(given, entry.secret)) entry.running.abort();
  }

  close({ process }: CancelKey): void {
    this.#open.delete(process);
  }
}
