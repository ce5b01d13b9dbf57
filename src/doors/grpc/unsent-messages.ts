/**
 * Replies of one connection that its client has not taken. They are bounded over all calls, as the window of the protocol bounds
 * each: at the bound, no more messages are made for any call.
 */

const unsentMax = 1 << 20;

interface UnsentOfPeer {
  bytes: number;
  readonly waiting: (() => void)[];
}

export class UnsentMessages {
  /** By the call's name of its peer. */
  readonly #all = new Map<string, UnsentOfPeer>();

  /** Resolves once there is room; null: there is. */
  room(peer: string): Promise<void> | null {
    const outbox = this.#all.get(peer);
    if (outbox === undefined || outbox.bytes <= unsentMax) return null;
    return new Promise((resolve) => outbox.waiting.push(resolve));
  }

  add(peer: string, bytes: number): void {
    // An empty message is no part of a connection's sum, which ends with its last byte.
    if (bytes === 0) return;
    let outbox = this.#all.get(peer);
    if (outbox === undefined) this.#all.set(peer, (outbox = { bytes: 0, waiting: [] }));
    outbox.bytes += bytes;
  }

  /** Removes bytes that were taken, or whose call is over. */
  remove(peer: string, bytes: number): void {
    if (bytes === 0) return;
    const outbox = this.#all.get(peer)!;
    outbox.bytes -= bytes;
    if (outbox.bytes <= unsentMax) for (const wake of outbox.waiting.splice(0)) wake();
    if (outbox.bytes === 0) this.#all.delete(peer);
  }
}
