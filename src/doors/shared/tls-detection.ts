/** Tells a TLS handshake from a protocol's first message by the first bytes of a connection. */

/**
 * How TLS begins: a handshake record of version 3.1 to 3.4. No protocol's first message does: commands are texts, and a message
 * that begins with its length would be longer than any greeting is.
 */
const mayBeTlsRecord = (openingBytes: Uint8Array): boolean =>
  (openingBytes.length < 1 || openingBytes[0] === 0x16) &&
  (openingBytes.length < 2 || openingBytes[1] === 3) &&
  (openingBytes.length < 3 || (openingBytes[2]! >= 1 && openingBytes[2]! <= 4));

export class TlsDetection {
  /** First bytes, while they don't tell whether the client speaks TLS; null once they did. */
  #openingBytes: Buffer | null;
  /** TLS was agreed upon, and has not begun. */
  #isTlsRequired = false;

  constructor(isTlsOffered: boolean) {
    this.#openingBytes = isTlsOffered ? Buffer.alloc(0) : null;
  }

  get isDecided(): boolean {
    return this.#openingBytes === null;
  }

  /** From the next byte on the client has to speak TLS: something else after it was agreed upon is an attempt. */
  require(): void {
    this.#isTlsRequired = true;
    this.#openingBytes = Buffer.alloc(0);
  }

  /** The bytes so far and what they begin; null while they are too few to tell. */
  decide(openingPiece: Buffer): { readonly opening: Buffer; readonly kind: 'tls' | 'cleartext' | 'attempt' } | null {
    const opening = Buffer.concat([this.#openingBytes!, openingPiece]);
    const isTlsRecord = mayBeTlsRecord(opening);
    this.#openingBytes = isTlsRecord && opening.length < 3 ? opening : null;
    if (this.#openingBytes !== null) return null;
    return { opening, kind: isTlsRecord ? 'tls' : this.#isTlsRequired ? 'attempt' : 'cleartext' };
  }
}
