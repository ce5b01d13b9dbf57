/**
 * Connections that have not authenticated, over all doors. A bound holds for them: where one more comes, the one that was silent
 * for longest is cut off, so that whoever fills the bound keeps nobody out who logs in.
 */

/** A socket, or what stands for one. */
export interface Stranger {
  destroy(): unknown;
}

/** Each may hold 16 KiB of a message, what one read of a socket brings (64 KiB), and the state of a TLS handshake. */
const strangersMax = 1_000;

export class Strangers {
  readonly #max: number;
  /** Those that were silent for longest first. */
  readonly #all = new Set<Stranger>();

  constructor(max = strangersMax) {
    this.#max = max;
  }

  get count(): number {
    return this.#all.size;
  }

  admit(stranger: Stranger): void {
    this.#all.add(stranger);
    if (this.#all.size <= this.#max) return;
    const [silent] = this.#all;
    this.#all.delete(silent!);
    silent!.destroy();
  }

  /** It sent a whole message. */
  heard(stranger: Stranger): void {
    if (this.#all.delete(stranger)) this.#all.add(stranger);
  }

  /** It has authenticated, or is gone. */
  leave(stranger: Stranger): void {
    this.#all.delete(stranger);
  }
}
