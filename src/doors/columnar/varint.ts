/** Numbers and texts as ClickHouse's protocol has them: seven bits a byte, low ones first, and a text behind its length. */

export function varintSize(varintValue: number): number {
  let varintLength = 1;
  for (let varintRest = varintValue; varintRest > 0x7f; varintRest = Math.floor(varintRest / 0x80)) varintLength++;
  return varintLength;
}

/** Encodes a number of up to 2^53. */
export function varintBytes(varintValue: number): Buffer {
  const encodedVarint = Buffer.allocUnsafe(varintSize(varintValue));
  let varintRest = varintValue;
  for (let varintOffset = 0; varintOffset < encodedVarint.length; varintOffset++) {
    encodedVarint[varintOffset] = (varintRest % 0x80) | (varintOffset === encodedVarint.length - 1 ? 0 : 0x80);
    varintRest = Math.floor(varintRest / 0x80);
  }
  return encodedVarint;
}

export function textBytes(clickHouseText: string): Buffer {
  const utf8Text = Buffer.from(clickHouseText);
  return Buffer.concat([varintBytes(utf8Text.length), utf8Text]);
}
