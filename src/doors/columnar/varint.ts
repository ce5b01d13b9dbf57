/** Numbers and texts as ClickHouse's protocol has them: seven bits a byte, low ones first, and a text behind its length. */

export function varintSize(value: number): number {
  let size = 1;
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 0x80)) size++;
  return size;
}

/** Encodes a number of up to 2^53. */
export function varintBytes(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(varintSize(value));
  let rest = value;
  for (let at = 0; at < bytes.length; at++) {
    bytes[at] = (rest % 0x80) | (at === bytes.length - 1 ? 0 : 0x80);
    rest = Math.floor(rest / 0x80);
  }
  return bytes;
}

export function textBytes(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([varintBytes(bytes.length), bytes]);
}
