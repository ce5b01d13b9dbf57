/**
 * A buffered JSON body, under any Content-Type: valid UTF-8, at most 64 levels deep, no `__proto__` in it. It is parsed in one
 * turn of the event loop, so its members and values are counted first: of two bodies of one size, one full of members takes a
 * hundred times as long as a single text.
 */
import { isUtf8 } from 'node:buffer';
import { ServiceError } from '../../errors.ts';
import { limits } from '../../log/values/value.ts';
import { allAtOnce, type Steps } from '../../planner/expressions/resumable-steps.ts';
import { hugeDigits, longDigits, type NumbersIn, parseExactJson } from '../shared/read-exact-json.ts';

/** Questions have a cap of their own. */
export const jsonBytesMax = 4 << 20;
/** Members of objects, objects and lists take about a microsecond each to make; the other items of lists a tenth of that. */
export const jsonMax = { members: 32_768, values: 131_072, ofOneObject: 4_096, longIntegers: 8_192, digits: 2_048 } as const;

/** One JSON value, its integers exact; undefined when there are no bytes. Throws REL_INVALID for anything else. */
export const parseJsonBody = (jsonBytes: Buffer): unknown => allAtOnce(parseJsonSteps(jsonBytes));

/** The same in steps: new memory of megabytes costs milliseconds by itself, and the bytes, their text and its values are three. */
export function* parseJsonSteps(jsonBytes: Buffer): Steps<unknown> {
  if (jsonBytes.length === 0) return undefined;
  yield;
  if (!isUtf8(jsonBytes)) throw new ServiceError('REL_INVALID', 'the body is not UTF-8');
  const jsonNumbers = checkJsonSize(jsonBytes);
  const jsonText = jsonBytes.toString('utf8');
  yield;
  let jsonValue: unknown;
  try {
    jsonValue = parseExactJson(jsonText, jsonNumbers);
  } catch (jsonError) {
    throw new ServiceError(
      'REL_INVALID',
      jsonError instanceof RangeError ? `the body: ${jsonError.message}` : 'the body is not JSON',
    );
  }
  // Any spelling of the name; the check of the parsed value decides.
  if (jsonText.includes('__proto__') || jsonText.includes('\\u')) refuseProtoFields(jsonValue);
  return jsonValue;
}

function refuseProtoFields(jsonValue: unknown): void {
  if (typeof jsonValue !== 'object' || jsonValue === null) return;
  if (Object.hasOwn(jsonValue, '__proto__')) throw new ServiceError('REL_INVALID', 'the body names a field __proto__');
  for (const jsonMember of Object.values(jsonValue)) refuseProtoFields(jsonMember);
}

const [quoteByte, backslashByte, commaByte, colonByte, pointByte] = [0x22, 0x5c, 0x2c, 0x3a, 0x2e];
const [openListByte, openObjectByte, closeListByte, closeObjectByte] = [0x5b, 0x7b, 0x5d, 0x7d];
const [zeroByte, nineByte, exponentByte, lowerExponentByte] = [0x30, 0x39, 0x45, 0x65];

/** Counts text that is no JSON as if it were; the parser refuses it later. */
function checkJsonSize(jsonBytes: Buffer): NumbersIn {
  const colonsAtDepth = new Uint32Array(limits.jsonDepth + 1);
  let jsonDepth = 0;
  let jsonMembers = 0;
  let jsonValues = 0;
  let longIntegerCount = 0;
  let hasHugeNumber = false;
  for (let i = 0; i < jsonBytes.length; i++) {
    const jsonByte = jsonBytes[i]!;
    if (jsonByte >= zeroByte && jsonByte <= nineByte) {
      const numberStart = i;
      while (i + 1 < jsonBytes.length && jsonBytes[i + 1]! >= zeroByte && jsonBytes[i + 1]! <= nineByte) i++;
      const digitCount = i + 1 - numberStart;
      if (digitCount > jsonMax.digits) throw tooManyInBody('digits in one number', jsonMax.digits);
      const byteAfterNumber = jsonBytes[i + 1];
      if (digitCount > hugeDigits || byteAfterNumber === exponentByte || byteAfterNumber === lowerExponentByte)
        hasHugeNumber = true;
      if (digitCount >= longDigits && jsonBytes[numberStart - 1] !== pointByte && ++longIntegerCount > jsonMax.longIntegers)
        throw tooManyInBody(`integers of ${longDigits} digits and more`, jsonMax.longIntegers);
    } else if (jsonByte === quoteByte) {
      i = endOfJsonText(jsonBytes, i + 1);
    } else if (jsonByte === commaByte) {
      if (++jsonValues > jsonMax.values) throw tooManyInBody('values', jsonMax.values);
    } else if (jsonByte === colonByte) {
      if (++jsonMembers > jsonMax.members) throw tooManyInBody('objects, lists and members', jsonMax.members);
      if (++colonsAtDepth[jsonDepth]! > jsonMax.ofOneObject) throw tooManyInBody('members in one object', jsonMax.ofOneObject);
    } else if (jsonByte === openListByte || jsonByte === openObjectByte) {
      if (++jsonMembers > jsonMax.members) throw tooManyInBody('objects, lists and members', jsonMax.members);
      if (++jsonDepth > limits.jsonDepth)
        throw new ServiceError('REL_INVALID', `the body nests deeper than ${limits.jsonDepth} levels`);
      colonsAtDepth[jsonDepth] = 0;
    } else if ((jsonByte === closeListByte || jsonByte === closeObjectByte) && jsonDepth > 0) jsonDepth--;
  }
  return { areLong: longIntegerCount > 0, areHuge: hasHugeNumber };
}

/** Bytes of a text that are looked at one by one before its end is searched for: most end sooner. */
const nearQuoteBytes = 64;

/** Place of the quote that ends a text; behind the body where none does. */
function endOfJsonText(jsonBytes: Buffer, textStart: number): number {
  for (let i = textStart; ; ) {
    for (const nearEnd = Math.min(jsonBytes.length, i + nearQuoteBytes); i < nearEnd; i++) {
      if (jsonBytes[i] === quoteByte) return i;
      if (jsonBytes[i] === backslashByte) i++;
    }
    const quoteOffset = i < jsonBytes.length ? jsonBytes.indexOf(quoteByte, i) : -1;
    if (quoteOffset < 0) return jsonBytes.length;
    let backslashCount = 0;
    while (quoteOffset - backslashCount > i && jsonBytes[quoteOffset - backslashCount - 1] === backslashByte) backslashCount++;
    if (backslashCount % 2 === 0) return quoteOffset;
    i = quoteOffset + 1;
  }
}

const tooManyInBody = (countedThings: string, bodyMaximum: number): ServiceError =>
  new ServiceError('REL_TOO_LARGE', `the body has more than ${bodyMaximum} ${countedThings}`);
