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

  constructor(secretRandom: Random) {
    this.#random = secretRandom;
  }

  open(sessionGone: AbortSignal): CancelKey {
    while (this.#open.has(this.#next)) this.#next = (this.#next % 0x7fff_ffff) + 1;
    const backendProcess = this.#next;
    this.#next = (this.#next % 0x7fff_ffff) + 1;
    const cancellableSession = { secret: this.#random.fill(Buffer.alloc(4)), running: new AbortController() };
    this.#open.set(backendProcess, cancellableSession);
    sessionGone.addEventListener('abort', () => cancellableSession.running.abort(), { once: true });
    return {
      process: backendProcess,
      secret: cancellableSession.secret.readInt32BE(),
      begin: () => {
        if (cancellableSession.running.signal.aborted && !sessionGone.aborted) cancellableSession.running = new AbortController();
      },
      signal: () => cancellableSession.running.signal,
      cancel: () => cancellableSession.running.abort(),
    };
  }

  cancel({ process, secret }: { readonly process: number; readonly secret: number }): void {
    const cancelledSession = this.#open.get(process);
    if (cancelledSession === undefined) return;
    const givenSecret = Buffer.alloc(4);
    givenSecret.writeInt32BE(secret);
    if (timingSafeEqual(givenSecret, cancelledSession.secret)) cancelledSession.running.abort();
  }

  close({ process }: CancelKey): void {
    this.#open.delete(process);
  }
}
