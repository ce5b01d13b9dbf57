/**
 * One bound for the bytes that all connections of the doors over plain sockets hold: incomplete requests, and replies that
 * clients have not taken. Where it is reached, nothing more is read or begun for a moment; then the connections that hold most
 * are cut off.
 */
import type { Clock } from '../../clock.ts';

/** Bytes of each connection that are not counted: there is room for them at all times. */
const freeBytesPerHolder = 16 * 1024;
/** Time for the largest connections to release memory before they are cut off. */
const memoryReliefMs = 250;
/** The share of the bound that remains after a relief. */
const memoryReliefShare = 0.75;

export interface Holding {
  /** Sets the bytes that the connection holds now. */
  set(bytes: number): void;
}

export class WireMemory {
  readonly #memoryBytesMax: number;
  readonly #memoryClock: Pick<Clock, 'sleep'>;
  readonly #memoryHoldings = new Map<object, { bytes: number; readonly cutOff: () => void }>();
  #heldBytes = 0;
  #waitingForMemory: (() => void)[] = [];

  constructor(memoryBytesMax: number, memoryClock: Pick<Clock, 'sleep'>) {
    this.#memoryBytesMax = memoryBytesMax;
    this.#memoryClock = memoryClock;
  }

  get bytes(): number {
    return this.#heldBytes;
  }

  get isFull(): boolean {
    return this.#heldBytes > this.#memoryBytesMax;
  }

  hold(cutOff: () => void): Holding {
    const memoryHolding = { bytes: 0, cutOff };
    return {
      set: (holderBytes) => {
        const countedBytes = Math.max(0, holderBytes - freeBytesPerHolder);
        if (countedBytes === memoryHolding.bytes) return;
        this.#heldBytes += countedBytes - memoryHolding.bytes;
        memoryHolding.bytes = countedBytes;
        if (countedBytes === 0) this.#memoryHoldings.delete(memoryHolding);
        else this.#memoryHoldings.set(memoryHolding, memoryHolding);
        if (!this.isFull) for (const wakeWaiting of this.#waitingForMemory.splice(0)) wakeWaiting();
      },
    };
  }

  /** Resolves once there is room. */
  async room(connectionGone: AbortSignal): Promise<void> {
    while (this.isFull && !connectionGone.aborted) {
      const isFirstWaiting = this.#waitingForMemory.length === 0;
      const memoryFreed = new Promise<void>((wakeWaiting) => this.#waitingForMemory.push(wakeWaiting));
      if (isFirstWaiting) void this.#relieveMemory();
      await memoryFreed;
    }
  }

  async #relieveMemory(): Promise<void> {
    await this.#memoryClock.sleep(memoryReliefMs);
    const largestHoldings = this.isFull ? [...this.#memoryHoldings.values()].sort((a, b) => b.bytes - a.bytes) : [];
    let bytesLeft = this.#heldBytes;
    for (const { bytes: holdingBytes, cutOff: cutOffHolder } of largestHoldings) {
      if (bytesLeft <= this.#memoryBytesMax * memoryReliefShare) break;
      bytesLeft -= holdingBytes;
      cutOffHolder();
    }
    for (const wakeWaiting of this.#waitingForMemory.splice(0)) wakeWaiting();
  }
}
