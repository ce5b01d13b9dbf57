/** Tells a TLS handshake from a protocol's first message by the first bytes of a connection. */

/**
 * How TLS begins: a handshake record of version 3.1 to 3.4. No protocol's first message does: commands are texts, and a message
 * that begins with its length would be longer than any greeting is.
 */
const mayBeTls = (bytes: Uint8Array): boolean =>
  (bytes.length < 1 || bytes[0] === 0x16) &&
  (bytes.length < 2 || bytes[1] === 3) &&
  (bytes.length < 3 || (bytes[2]! >= 1 && bytes[2]! <= 4));

export class TlsDetection {
  /** First bytes, while they don't tell whether the client speaks TLS; null once they did. */
  #opening: Buffer | null;
  /** TLS was agreed upon, and has not begun. */
  #isRequired = false;

  constructor(isOffered: boolean) {
    this.#opening = isOffered ? Buffer.alloc(0) : null;
  }

  get isDecided(): boolean {
    return this.#opening === null;
  }

  /** From the next byte on the client has to speak TLS: something else after it was agreed upon is an attempt. */
  require(): void {
    this.#isRequired = true;
    this.#opening = Buffer.alloc(0);
  }

  /** The bytes so far and what they begin; null while they are too few to tell. */
  decide(piece: Buffer): { readonly opening: Buffer; readonly kind: 'tls' | 'cleartext' | 'attempt' } | null {
    const opening = Buffer.concat([this.#opening!, piece]);
    const isTls = mayBeTls(opening);
    this.#opening = isTls && opening.length < 3 ? opening : null;
    if (this.#opening !== null) return null;
    return { opening, kind: isTls ? 'tls' : this.#isRequired ? 'attempt' : 'cleartext' };
  }
}
