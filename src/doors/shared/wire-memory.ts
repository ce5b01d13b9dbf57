/**
 * One bound for the bytes that all connections of the doors over plain sockets hold: incomplete requests, and replies that
 * clients have not taken. Where it is reached, nothing more is read or begun for a moment; then the connections that hold most
 * are cut off.
 */
import type { Clock } from '../../clock.ts';

/** Bytes of each connection that are not counted: there is room for them at all times. */
const freeBytes = 16 * 1024;
/** Time for the largest connections to release memory before they are cut off. */
const reliefMs = 250;
/** The share of the bound that remains after a relief. */
const reliefShare = 0.75;

export interface Holding {
  /** Sets the bytes that the connection holds now. */
  set(bytes: number): void;
}

export class WireMemory {
  readonly #bytesMax: number;
  readonly #clock: Pick<Clock, 'sleep'>;
  readonly #holdings = new Map<object, { bytes: number; readonly cutOff: () => void }>();
  #bytes = 0;
  #waiting: (() => void)[] = [];

  constructor(bytesMax: number, clock: Pick<Clock, 'sleep'>) {
    this.#bytesMax = bytesMax;
    this.#clock = clock;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get isFull(): boolean {
    return this.#bytes > this.#bytesMax;
  }

  hold(cutOff: () => void): Holding {
    const holding = { bytes: 0, cutOff };
    return {
      set: (bytes) => {
        const counted = Math.max(0, bytes - freeBytes);
        if (counted === holding.bytes) return;
        this.#bytes += counted - holding.bytes;
        holding.bytes = counted;
        if (counted === 0) this.#holdings.delete(holding);
        else this.#holdings.set(holding, holding);
        if (!this.isFull) for (const wake of this.#waiting.splice(0)) wake();
      },
    };
  }

  /** Resolves once there is room. */
  async room(gone: AbortSignal): Promise<void> {
    while (this.isFull && !gone.aborted) {
      const isFirst = this.#waiting.length === 0;
      const woken = new Promise<void>((resolve) => this.#waiting.push(resolve));
      if (isFirst) void this.#relieve();
      await woken;
    }
  }

  async #relieve(): Promise<void> {
    await this.#clock.sleep(reliefMs);
    const largest = this.isFull ? [...this.#holdings.values()].sort((a, b) => b.bytes - a.bytes) : [];
    let left = this.#bytes;
    for (const { bytes, cutOff } of largest) {
      if (left <= this.#bytesMax * reliefShare) break;
      left -= bytes;
      cutOff();
    }
    for (const wake of this.#waiting.splice(0)) wake();
  }
}
