/**
 * Connections that have not authenticated, over all doors. Their number is bounded: where one more comes, the one that was silent
 * for longest is cut off, so that a client that fills the bound can't keep others from logging in.
 */

/** A socket, or an object that represents one. */
export interface UnauthenticatedConnection {
  destroy(): unknown;
}

/** Each may hold 16 KiB of a message, the bytes of one read (64 KiB), and the state of a TLS handshake. */
const unauthenticatedMax = 1_000;

export class UnauthenticatedConnections {
  readonly #unauthenticatedMax: number;
  /** In the order of their last message, the oldest first. */
  readonly #unauthenticated = new Set<UnauthenticatedConnection>();

  constructor(connectionsMax = unauthenticatedMax) {
    this.#unauthenticatedMax = connectionsMax;
  }

  get count(): number {
    return this.#unauthenticated.size;
  }

  admit(newConnection: UnauthenticatedConnection): void {
    this.#unauthenticated.add(newConnection);
    if (this.#unauthenticated.size <= this.#unauthenticatedMax) return;
    const [longestSilent] = this.#unauthenticated;
    this.#unauthenticated.delete(longestSilent!);
    longestSilent!.destroy();
  }

  /** Notes a whole message of the stranger. */
  noteMessage(speakingConnection: UnauthenticatedConnection): void {
    if (this.#unauthenticated.delete(speakingConnection)) this.#unauthenticated.add(speakingConnection);
  }

  /** Removes a stranger that has authenticated, or is gone. */
  leave(leavingConnection: UnauthenticatedConnection): void {
    this.#unauthenticated.delete(leavingConnection);
  }
}
