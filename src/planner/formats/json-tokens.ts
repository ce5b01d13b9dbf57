/** Bytes of checked JSON tokens to values: exact integers, texts without their escapes. */

/** Exact value of the integer token bytes[start..end): at most 19 digits. */
export function integerAt(bytes: Uint8Array, start: number, end: number): bigint {
  const negative = bytes[start] === 0x2d;
  let i = negative ? start + 1 : start;
  const split = Math.max(i, end - 9);
  let high = 0;
  for (; i < split; i++) high = high * 10 + bytes[i]! - 0x30;
  let low = 0;
  for (; i < end; i++) low = low * 10 + bytes[i]! - 0x30;
  const value = BigInt(high) * 1_000_000_000n + BigInt(low);
  return negative ? -value : value;
}

/** Writes the text of a checked JSON string (without quotes) as UTF-8 into `target`; returns its length, never above the source's. */
export function unescapeInto(target: Uint8Array, bytes: Uint8Array, start: number, end: number): number {
  let at = 0;
  for (let i = start; i < end; i++) {
    const byte = bytes[i]!;
    if (byte !== 0x5c) {
      target[at++] = byte;
      continue;
    }
    const letter = bytes[++i]!;
    if (letter !== 0x75) {
      target[at++] = simpleEscapes[letter]!;
      continue;
    }
    let code = hex4(bytes, i + 1);
    i += 4;
    if (code >= 0xd800 && code <= 0xdbff) {
      code = 0x10000 + ((code - 0xd800) << 10) + (hex4(bytes, i + 3) - 0xdc00);
      i += 6;
    }
    if (code < 0x80) target[at++] = code;
    else {
      if (code < 0x800) target[at++] = 0xc0 | (code >> 6);
      else {
        if (code < 0x10000) target[at++] = 0xe0 | (code >> 12);
        else {
          target[at++] = 0xf0 | (code >> 18);
          target[at++] = 0x80 | ((code >> 12) & 63);
        }
        target[at++] = 0x80 | ((code >> 6) & 63);
      }
      target[at++] = 0x80 | (code & 63);
    }
  }
  return at;
}

/** Text of ASCII bytes. */
export function latin1(bytes: Uint8Array, start: number, end: number): string {
  if (end - start > 32) return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('latin1');
  let text = '';
  for (let i = start; i < end; i++) text += String.fromCharCode(bytes[i]!);
  return text;
}

function hex4(bytes: Uint8Array, at: number): number {
  return (
    hexDigits[bytes[at]!]! * 4096 +
    hexDigits[bytes[at + 1]!]! * 256 +
    hexDigits[bytes[at + 2]!]! * 16 +
    hexDigits[bytes[at + 3]!]!
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
