/**
 * Cells as text into bytes that have room for them: each function writes at `at` and gives the place after it. JSON and
 * CSV spell numbers alike. Room that must be there: 24 bytes for a number, twice the text and two more for a field.
 */

/** A safe integer, in decimal. */
export function putInteger(bytes: Uint8Array, at: number, value: number): number {
  if (value >= 0) return putDecimalDigits(bytes, at, value, 1);
  bytes[at] = 0x2d;
  return putDecimalDigits(bytes, at + 1, -value, 1);
}

/** Two's complement i64 as its two halves: a double does not hold it and a bigint would be an object. */
export function putI64(bytes: Uint8Array, at: number, highHalf: number, lowHalf: number): number {
  let upperHalf = highHalf >>> 0;
  let lowerHalf = lowHalf;
  let target = at;
  if (highHalf < 0) {
    bytes[target++] = 0x2d;
    lowerHalf = (~lowerHalf + 1) >>> 0;
    upperHalf = (~upperHalf + (lowerHalf === 0 ? 1 : 0)) >>> 0;
  }
  if (upperHalf < 0x20_0000) return putDecimalDigits(bytes, target, upperHalf * 0x1_0000_0000 + lowerHalf, 1);
  // Long division by 10^9 in limbs of 16 bits: every step is exact in a double.
  const highBillions = Math.floor(upperHalf / 1e9);
  const middlePart = (upperHalf - highBillions * 1e9) * 0x1_0000 + (lowerHalf >>> 16);
  const middleBillions = Math.floor(middlePart / 1e9);
  const lastPart = (middlePart - middleBillions * 1e9) * 0x1_0000 + (lowerHalf & 0xffff);
  const carriedDigit = Math.floor(lastPart / 1e9);
  target = putDecimalDigits(bytes, target, (highBillions * 0x1_0000 + middleBillions) * 0x1_0000 + carriedDigit, 1);
  return putDecimalDigits(bytes, target, lastPart - carriedDigit * 1e9, 9);
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
  const roundedHundredths = Math.round(value * 100);
  if (roundedHundredths / 100 === value && roundedHundredths < 1e15 && roundedHundredths > -1e15)
    return putHundredthsText(bytes, at, roundedHundredths);
  // Beyond 2^53 the shortest digits need not be those of the double: bare, a reader would take them for an integer's.
  const numberText = Math.abs(value) > Number.MAX_SAFE_INTEGER ? value.toExponential() : String(value);
  for (let i = 0; i < numberText.length; i++) bytes[at + i] = numberText.charCodeAt(i);
  return at + numberText.length;
}

function putHundredthsText(bytes: Uint8Array, at: number, value: number): number {
  let target = at;
  let hundredthsLeft = value;
  if (hundredthsLeft < 0) {
    bytes[target++] = 0x2d;
    hundredthsLeft = -hundredthsLeft;
  }
  const wholeUnits = Math.floor(hundredthsLeft / 100);
  target = putDecimalDigits(bytes, target, wholeUnits, 1);
  const fractionPair = (hundredthsLeft - wholeUnits * 100) << 1;
  bytes[target++] = 0x2e;
  bytes[target++] = twoDigitPairs[fractionPair]!;
  if (twoDigitPairs[fractionPair + 1] !== 0x30) bytes[target++] = twoDigitPairs[fractionPair + 1]!;
  return target;
}

/** A safe integer that is not negative, two digits at a time, zeros in front up to `atLeast` digits. */
function putDecimalDigits(bytes: Uint8Array, start: number, value: number, atLeast: number): number {
  let digitCount = atLeast;
  while (digitCount < 16 && value >= digitPowersOfTen[digitCount]!) digitCount++;
  let digitOffset = start + digitCount;
  let digitsLeft = value;
  if (digitsLeft >= 1e8) {
    const highDigits = Math.floor(digitsLeft / 1e8);
    let lowDigits = (digitsLeft - highDigits * 1e8) | 0;
    digitsLeft = highDigits;
    for (let pair = 0; pair < 4; pair++) {
      const nextPair = (lowDigits / 100) | 0;
      const pairOffset = (lowDigits - nextPair * 100) << 1;
      bytes[--digitOffset] = twoDigitPairs[pairOffset + 1]!;
      bytes[--digitOffset] = twoDigitPairs[pairOffset]!;
      lowDigits = nextPair;
    }
  }
  let smallDigits = digitsLeft | 0;
  while (digitOffset - start > 1) {
    const nextPair = (smallDigits / 100) | 0;
    const pairOffset = (smallDigits - nextPair * 100) << 1;
    bytes[--digitOffset] = twoDigitPairs[pairOffset + 1]!;
    bytes[--digitOffset] = twoDigitPairs[pairOffset]!;
    smallDigits = nextPair;
  }
  if (digitOffset > start) bytes[--digitOffset] = 0x30 + smallDigits;
  return start + digitCount;
}

/** UTF-8 bytes as a CSV field in quotes, quotes within doubled. */
export function putField(bytes: Uint8Array, start: number, source: Uint8Array, from: number, to: number): number {
  let fieldOffset = start;
  bytes[fieldOffset++] = 0x22;
  for (let i = from; i < to; i++) {
    const fieldByte = source[i]!;
    bytes[fieldOffset++] = fieldByte;
    if (fieldByte === 0x22) bytes[fieldOffset++] = fieldByte;
  }
  bytes[fieldOffset++] = 0x22;
  return fieldOffset;
}

const digitPowersOfTen = Float64Array.from({ length: 17 }, (_, i) => 10 ** i);
/** 00, 01 … 99. */
const twoDigitPairs = Uint8Array.from({ length: 200 }, (_, i) => 0x30 + ((i & 1) === 0 ? Math.floor(i / 20) : (i >> 1) % 10));
