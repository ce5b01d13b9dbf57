/** Bytes that a connection has written and its client has not taken: writers wait for it, but not for ever. */
import type { Socket } from 'node:net';
import type { Clock } from '../../clock.ts';

/** One error for all: creating one takes longer than everything else for a client that leaves. */
export const isOver = new Error('over');

/** A client that takes nothing for so long is cut off. */
const stalledMs = 30_000;
/** Most bytes that wait for the client while more are made. */
const unsentBytesMax = 256 * 1024;
/** A client that takes one of these is not stalled. */
const pieceBytes = 64 * 1024;

export class UnsentBytes {
  readonly #clock: Clock;
  readonly #onChange: () => void;
  readonly #cutOff: () => void;
  #count = 0;
  /** When the client took a piece last, in monotonic milliseconds. */
  #takenMs = 0;
  /** Resolvers of writers that wait until the client has taken most bytes: a request, and messages out of turn. */
  #waiting: (() => void)[] = [];

  constructor(clock: Clock, { onChange, cutOff }: { readonly onChange: () => void; readonly cutOff: () => void }) {
    this.#clock = clock;
    this.#onChange = onChange;
    this.#cutOff = cutOff;
  }

  get count(): number {
    return this.#count;
  }

  get isMuch(): boolean {
    return this.#count > unsentBytesMax;
  }

  write(socket: Socket, bytes: Uint8Array): void {
    if (this.#count === 0) this.#takenMs = this.#clock.monotonicMs();
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      const piece = bytes.subarray(at, at + pieceBytes);
      this.#count += piece.length;
      this.#onChange();
      socket.write(piece, () => {
        this.#count -= piece.length;
        this.#onChange();
        this.#takenMs = this.#clock.monotonicMs();
        if (!this.isMuch) this.wakeWriters();
      });
    }
  }

  /** Resolves once the client has taken enough, or `wakeWriters` was called. */
  async caughtUp(): Promise<void> {
    const over = new AbortController();
    void this.limitStall(over.signal);
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
    over.abort(isOver);
  }

  wakeWriters(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Cuts the client off once it has taken nothing for too long. */
  async limitStall(over: AbortSignal): Promise<void> {
    for (let restMs: number = stalledMs; !over.aborted; ) {
      await this.#clock.sleep(restMs, over);
      if (over.aborted) return;
      restMs = stalledMs - (this.#clock.monotonicMs() - this.#takenMs);
      if (restMs <= 0) return this.#cutOff();
    }
  }
}
