/** Bytes of checked JSON tokens to values: exact integers, texts without their escapes. */

/** Exact value of the integer token bytes[start..end): at most 19 digits. */
export function integerAt(bytes: Uint8Array, start: number, end: number): bigint {
  const isNegative = bytes[start] === 0x2d;
  let i = isNegative ? start + 1 : start;
  const halvesSplit = Math.max(i, end - 9);
  let highDigits = 0;
  for (; i < halvesSplit; i++) highDigits = highDigits * 10 + bytes[i]! - 0x30;
  let lowDigits = 0;
  for (; i < end; i++) lowDigits = lowDigits * 10 + bytes[i]! - 0x30;
  const integerValue = BigInt(highDigits) * 1_000_000_000n + BigInt(lowDigits);
  return isNegative ? -integerValue : integerValue;
}

/** Writes the text of a checked JSON string (without quotes) as UTF-8 into `unescapedBytes`; returns its length, never above the source's. */
export function unescapeInto(unescapedBytes: Uint8Array, bytes: Uint8Array, start: number, end: number): number {
  let unescapedAt = 0;
  for (let i = start; i < end; i++) {
    const escapedByte = bytes[i]!;
    if (escapedByte !== 0x5c) {
      unescapedBytes[unescapedAt++] = escapedByte;
      continue;
    }
    const escapeLetter = bytes[++i]!;
    if (escapeLetter !== 0x75) {
      unescapedBytes[unescapedAt++] = simpleEscapes[escapeLetter]!;
      continue;
    }
    let codePoint = hexUnitAt(bytes, i + 1);
    i += 4;
    if (codePoint >= 0xd800 && codePoint <= 0xdbff) {
      codePoint = 0x10000 + ((codePoint - 0xd800) << 10) + (hexUnitAt(bytes, i + 3) - 0xdc00);
      i += 6;
    }
    if (codePoint < 0x80) unescapedBytes[unescapedAt++] = codePoint;
    else {
      if (codePoint < 0x800) unescapedBytes[unescapedAt++] = 0xc0 | (codePoint >> 6);
      else {
        if (codePoint < 0x10000) unescapedBytes[unescapedAt++] = 0xe0 | (codePoint >> 12);
        else {
          unescapedBytes[unescapedAt++] = 0xf0 | (codePoint >> 18);
          unescapedBytes[unescapedAt++] = 0x80 | ((codePoint >> 12) & 63);
        }
        unescapedBytes[unescapedAt++] = 0x80 | ((codePoint >> 6) & 63);
      }
      unescapedBytes[unescapedAt++] = 0x80 | (codePoint & 63);
    }
  }
  return unescapedAt;
}

/** Text of ASCII bytes. */
export function latin1(bytes: Uint8Array, start: number, end: number): string {
  if (end - start > 32) return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('latin1');
  let latin1Text = '';
  for (let i = start; i < end; i++) latin1Text += String.fromCharCode(bytes[i]!);
  return latin1Text;
}

function hexUnitAt(bytes: Uint8Array, hexStart: number): number {
  return (
    hexDigits[bytes[hexStart]!]! * 4096 +
    hexDigits[bytes[hexStart + 1]!]! * 256 +
    hexDigits[bytes[hexStart + 2]!]! * 16 +
    hexDigits[bytes[hexStart + 3]!]!
  );
}

/** Value of a hexadecimal digit; 255 for any other byte. */
export const hexDigits = new Uint8Array(256).fill(255);
for (let i = 0; i < 16; i++) {
  hexDigits['0123456789abcdef'.charCodeAt(i)] = i;
  hexDigits['0123456789ABCDEF'.charCodeAt(i)] = i;
}

/** The byte that `\x` stands for; 0 where there is no such escape. */
export const simpleEscapes = new Uint8Array(256);
for (const [letter, meaning] of [
  ['"', '"'],
  ['\\', '\\'],
  ['/', '/'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
] as const) {
  simpleEscapes[letter.charCodeAt(0)] = meaning.charCodeAt(0);
}
