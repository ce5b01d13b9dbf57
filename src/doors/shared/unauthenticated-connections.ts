/**
 * Connections that have not authenticated, over all doors. Their number is bounded: where one more comes, the one that was silent
 * for longest is cut off, so that a client that fills the bound can't keep others from logging in.
 */

/** A socket, or an object that represents one. */
export interface UnauthenticatedConnection {
  destroy(): unknown;
}

/** Each may hold 16 KiB of a message, the bytes of one read (64 KiB), and the state of a TLS handshake. */
const strangersMax = 1_000;

export class UnauthenticatedConnections {
  readonly #max: number;
  /** In the order of their last message, the oldest first. */
  readonly #all = new Set<UnauthenticatedConnection>();

  constructor(max = strangersMax) {
    this.#max = max;
  }

  get count(): number {
    return this.#all.size;
  }

  admit(stranger: UnauthenticatedConnection): void {
    this.#all.add(stranger);
    if (this.#all.size <= this.#max) return;
    const [longestSilent] = this.#all;
    this.#all.delete(longestSilent!);
    longestSilent!.destroy();
  }

  /** Notes a whole message of the stranger. */
  noteMessage(stranger: UnauthenticatedConnection): void {
    if (this.#all.delete(stranger)) this.#all.add(stranger);
  }

  /** Removes a stranger that has authenticated, or is gone. */
  leave(stranger: UnauthenticatedConnection): void {
    this.#all.delete(stranger);
  }
}
