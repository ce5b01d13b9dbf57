/** Keys of BackendKeyData: with one, a CancelRequest on another connection cancels the statement that runs on this one. */
import { timingSafeEqual } from 'node:crypto';
import type { Random } from '../../clock.ts';

export interface CancelKey {
  readonly process: number;
  readonly secret: number;
  /** A statement begins: a cancellation that came too late for the one before must not end it. */
  begin(): void;
  /** Aborts when the statement that has begun is cancelled, or the client is gone. One that was not aborted is that of the next, too. */
  signal(): AbortSignal;
  /** Cancels the statement that runs now. */
  cancel(): void;
}

export class CancelKeys {
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
      begin: () => {
        if (entry.running.signal.aborted && !gone.aborted) entry.running = new AbortController();
      },
      signal: () => entry.running.signal,
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
