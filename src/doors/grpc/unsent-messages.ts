/**
 * Replies of one connection that its client has not taken. They are bounded over all calls, as the window of the protocol bounds
 * each: at the bound, no more messages are made for any call.
 */

const outboxBytesMax = 1 << 20;

interface UnsentOfPeer {
  bytes: number;
  readonly waiting: (() => void)[];
}

export class UnsentMessages {
  /** By the call's name of its peer. */
  readonly #all = new Map<string, UnsentOfPeer>();

  /** Resolves once there is room; null: there is. */
  room(callPeer: string): Promise<void> | null {
    const peerOutbox = this.#all.get(callPeer);
    if (peerOutbox === undefined || peerOutbox.bytes <= outboxBytesMax) return null;
    return new Promise((wakeSender) => peerOutbox.waiting.push(wakeSender));
  }

  add(callPeer: string, messageBytes: number): void {
    // An empty message is no part of a connection's sum, which ends with its last byte.
    if (messageBytes === 0) return;
    let peerOutbox = this.#all.get(callPeer);
    if (peerOutbox === undefined) this.#all.set(callPeer, (peerOutbox = { bytes: 0, waiting: [] }));
    peerOutbox.bytes += messageBytes;
  }

  /** Removes bytes that were taken, or whose call is over. */
  remove(callPeer: string, messageBytes: number): void {
    if (messageBytes === 0) return;
    const peerOutbox = this.#all.get(callPeer)!;
    peerOutbox.bytes -= messageBytes;
    if (peerOutbox.bytes <= outboxBytesMax) for (const wakeSender of peerOutbox.waiting.splice(0)) wakeSender();
    if (peerOutbox.bytes === 0) this.#all.delete(callPeer);
  }
}
