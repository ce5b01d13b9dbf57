/**
 * Cells as text into bytes that have room for them: each function writes at `at` and gives the place after it. JSON and
 * CSV spell numbers alike. Room that must be there: 24 bytes for a number, twice the text and two more for a field.
 */

/** A safe integer, in decimal. */
export function putInteger(bytes: Uint8Array, at: number, value: number): number {
  if (value >= 0) return putDigits(bytes, at, value, 1);
  bytes[at] = 0x2d;
  return putDigits(bytes, at + 1, -value, 1);
}

/** Two's complement i64 as its two halves: a double does not hold it and a bigint would be an object. */
export function putI64(bytes: Uint8Array, at: number, highHalf: number, lowHalf: number): number {
  let upper = highHalf >>> 0;
  let lower = lowHalf;
  let target = at;
  if (highHalf < 0) {
    bytes[target++] = 0x2d;
    lower = (~lower + 1) >>> 0;
    upper = (~upper + (lower === 0 ? 1 : 0)) >>> 0;
  }
  if (upper < 0x20_0000) return putDigits(bytes, target, upper * 0x1_0000_0000 + lower, 1);
  // Long division by 10^9 in limbs of 16 bits: every step is exact in a double.
  const high = Math.floor(upper / 1e9);
  const part = (upper - high * 1e9) * 0x1_0000 + (lower >>> 16);
  const middle = Math.floor(part / 1e9);
  const last = (part - middle * 1e9) * 0x1_0000 + (lower & 0xffff);
  const digit = Math.floor(last / 1e9);
  target = putDigits(bytes, target, (high * 0x1_0000 + middle) * 0x1_0000 + digit, 1);
  return putDigits(bytes, target, last - digit * 1e9, 9);
}

/** The shortest text that reads back as this finite double. */
export function putNumber(bytes: Uint8Array, at: number, value: number): number {
  if (Number.isInteger(value) && value < 1e15 && value > -1e15) {
    if (value !== 0 || !Object.is(value, -0)) return putInteger(bytes, at, value);
    bytes[at] = 0x2d;
    bytes[at + 1] = 0x30;
    return at + 2;
  }
  // Prices and the like: a decimal of at most 15 digits that gives the double back is its shortest text.
  const hundredths = Math.round(value * 100);
  if (hundredths / 100 === value && hundredths < 1e15 && hundredths > -1e15) return putHundredths(bytes, at, hundredths);
  // Beyond 2^53 the shortest digits need not be those of the double: bare, a reader would take them for an integer's.
  const text = Math.abs(value) > Number.MAX_SAFE_INTEGER ? value.toExponential() : String(value);
  for (let i = 0; i < text.length; i++) bytes[at + i] = text.charCodeAt(i);
  return at + text.length;
}

function putHundredths(bytes: Uint8Array, at: number, value: number): number {
  let target = at;
  let rest = value;
  if (rest < 0) {
    bytes[target++] = 0x2d;
    rest = -rest;
  }
  const units = Math.floor(rest / 100);
  target = putDigits(bytes, target, units, 1);
  const fraction = (rest - units * 100) << 1;
  bytes[target++] = 0x2e;
  bytes[target++] = digitPairs[fraction]!;
  if (digitPairs[fraction + 1] !== 0x30) bytes[target++] = digitPairs[fraction + 1]!;
  return target;
}

/** A safe integer that is not negative, two digits at a time, zeros in front up to `atLeast` digits. */
function putDigits(bytes: Uint8Array, start: number, value: number, atLeast: number): number {
  let count = atLeast;
  while (count < 16 && value >= powersOfTen[count]!) count++;
  let at = start + count;
  let rest = value;
  if (rest >= 1e8) {
    const high = Math.floor(rest / 1e8);
    let low = (rest - high * 1e8) | 0;
    rest = high;
    for (let pair = 0; pair < 4; pair++) {
      const next = (low / 100) | 0;
      const digits = (low - next * 100) << 1;
      bytes[--at] = digitPairs[digits + 1]!;
      bytes[--at] = digitPairs[digits]!;
      low = next;
    }
  }
  let small = rest | 0;
  while (at - start > 1) {
    const next = (small / 100) | 0;
    const digits = (small - next * 100) << 1;
    bytes[--at] = digitPairs[digits + 1]!;
    bytes[--at] = digitPairs[digits]!;
    small = next;
  }
  if (at > start) bytes[--at] = 0x30 + small;
  return start + count;
}

/** UTF-8 bytes as a CSV field in quotes, quotes within doubled. */
export function putField(bytes: Uint8Array, start: number, source: Uint8Array, from: number, to: number): number {
  let at = start;
  bytes[at++] = 0x22;
  for (let i = from; i < to; i++) {
    const byte = source[i]!;
    bytes[at++] = byte;
    if (byte === 0x22) bytes[at++] = byte;
  }
  bytes[at++] = 0x22;
  return at;
}

const powersOfTen = Float64Array.from({ length: 17 }, (_, i) => 10 ** i);
/** 00, 01 … 99. */
const digitPairs = Uint8Array.from({ length: 200 }, (_, i) => 0x30 + ((i & 1) === 0 ? Math.floor(i / 20) : (i >> 1) % 10));
