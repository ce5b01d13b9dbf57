/** Bytes that a connection has written and its client has not taken: writers wait for it, but not for ever. */
import type { Socket } from 'node:net';
import type { Clock } from '../../clock.ts';

/** One error for all: creating one takes longer than everything else for a client that leaves. */
export const isOver = new Error('over');

/** A client that takes nothing for so long is cut off. */
const unsentStalledMs = 30_000;
/** Most bytes that wait for the client while more are made. */
const unsentBytesMax = 256 * 1024;
/** A client that takes one of these is not stalled. */
const unsentPieceBytes = 64 * 1024;

export class UnsentBytes {
  readonly #unsentClock: Clock;
  readonly #onUnsentChange: () => void;
  readonly #cutOffStalled: () => void;
  #unsentCount = 0;
  /** When the client took a piece last, in monotonic milliseconds. */
  #lastTakenMs = 0;
  /** Resolvers of writers that wait until the client has taken most bytes: a request, and messages out of turn. */
  #waitingWriters: (() => void)[] = [];

  constructor(unsentClock: Clock, { onChange, cutOff }: { readonly onChange: () => void; readonly cutOff: () => void }) {
    this.#unsentClock = unsentClock;
    this.#onUnsentChange = onChange;
    this.#cutOffStalled = cutOff;
  }

  get count(): number {
    return this.#unsentCount;
  }

  get isMuch(): boolean {
    return this.#unsentCount > unsentBytesMax;
  }

  write(wireSocket: Socket, sentBytes: Uint8Array): void {
    if (this.#unsentCount === 0) this.#lastTakenMs = this.#unsentClock.monotonicMs();
    for (let pieceOffset = 0; pieceOffset < sentBytes.length; pieceOffset += unsentPieceBytes) {
      const unsentPiece = sentBytes.subarray(pieceOffset, pieceOffset + unsentPieceBytes);
      this.#unsentCount += unsentPiece.length;
      this.#onUnsentChange();
      wireSocket.write(unsentPiece, () => {
        this.#unsentCount -= unsentPiece.length;
        this.#onUnsentChange();
        this.#lastTakenMs = this.#unsentClock.monotonicMs();
        if (!this.isMuch) this.wakeWriters();
      });
    }
  }

  /** Resolves once the client has taken enough, or `wakeWriters` was called. */
  async caughtUp(): Promise<void> {
    const caughtUpOver = new AbortController();
    void this.limitStall(caughtUpOver.signal);
    await new Promise<void>((wakeWriter) => this.#waitingWriters.push(wakeWriter));
    caughtUpOver.abort(isOver);
  }

  wakeWriters(): void {
    for (const wakeWriter of this.#waitingWriters.splice(0)) wakeWriter();
  }

  /** Cuts the client off once it has taken nothing for too long. */
  async limitStall(stallOver: AbortSignal): Promise<void> {
    for (let stallRestMs: number = unsentStalledMs; !stallOver.aborted; ) {
      await this.#unsentClock.sleep(stallRestMs, stallOver);
      if (stallOver.aborted) return;
      stallRestMs = unsentStalledMs - (this.#unsentClock.monotonicMs() - this.#lastTakenMs);
      if (stallRestMs <= 0) return this.#cutOffStalled();
    }
  }
}
