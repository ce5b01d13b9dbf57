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
export const parseJsonBody = (body: Buffer): unknown => allAtOnce(parseJsonSteps(body));

/** The same in steps: new memory of megabytes costs milliseconds by itself, and the bytes, their text and its values are three. */
export function* parseJsonSteps(body: Buffer): Steps<unknown> {
  if (body.length === 0) return undefined;
  yield;
  if (!isUtf8(body)) throw new ServiceError('REL_INVALID', 'the body is not UTF-8');
  const numbers = checkSize(body);
  const text = body.toString('utf8');
  yield;
  let value: unknown;
  try {
    value = parseExactJson(text, numbers);
  } catch (error) {
    throw new ServiceError('REL_INVALID', error instanceof RangeError ? `the body: ${error.message}` : 'the body is not JSON');
  }
  // Any spelling of the name; the check of the parsed value decides.
  if (text.includes('__proto__') || text.includes('\\u')) refuseProto(value);
  return value;
}

function refuseProto(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  if (Object.hasOwn(value, '__proto__')) throw new ServiceError('REL_INVALID', 'the body names a field __proto__');
  for (const item of Object.values(value)) refuseProto(item);
}

const [quote, backslash, comma, colon, point] = [0x22, 0x5c, 0x2c, 0x3a, 0x2e];
const [openList, openObject, closeList, closeObject] = [0x5b, 0x7b, 0x5d, 0x7d];
const [zero, nine, exponent, lowerExponent] = [0x30, 0x39, 0x45, 0x65];

/** Counts text that is no JSON as if it were; the parser refuses it later. */
function checkSize(body: Buffer): NumbersIn {
  const colons = new Uint32Array(limits.jsonDepth + 1);
  let depth = 0;
  let members = 0;
  let values = 0;
  let long = 0;
  let isHuge = false;
  for (let i = 0; i < body.length; i++) {
    const byte = body[i]!;
    if (byte >= zero && byte <= nine) {
      const from = i;
      while (i + 1 < body.length && body[i + 1]! >= zero && body[i + 1]! <= nine) i++;
      const digits = i + 1 - from;
      if (digits > jsonMax.digits) throw tooMany('digits in one number', jsonMax.digits);
      const next = body[i + 1];
      if (digits > hugeDigits || next === exponent || next === lowerExponent) isHuge = true;
      if (digits >= longDigits && body[from - 1] !== point && ++long > jsonMax.longIntegers)
        throw tooMany(`integers of ${longDigits} digits and more`, jsonMax.longIntegers);
    } else if (byte === quote) {
      i = endOfText(body, i + 1);
    } else if (byte === comma) {
      if (++values > jsonMax.values) throw tooMany('values', jsonMax.values);
    } else if (byte === colon) {
      if (++members > jsonMax.members) throw tooMany('objects, lists and members', jsonMax.members);
      if (++colons[depth]! > jsonMax.ofOneObject) throw tooMany('members in one object', jsonMax.ofOneObject);
    } else if (byte === openList || byte === openObject) {
      if (++members > jsonMax.members) throw tooMany('objects, lists and members', jsonMax.members);
      if (++depth > limits.jsonDepth)
        throw new ServiceError('REL_INVALID', `the body nests deeper than ${limits.jsonDepth} levels`);
      colons[depth] = 0;
    } else if ((byte === closeList || byte === closeObject) && depth > 0) depth--;
  }
  return { areLong: long > 0, areHuge: isHuge };
}

/** Bytes of a text that are looked at one by one before its end is searched for: most end sooner. */
const nearBytes = 64;

/** Place of the quote that ends a text; behind the body where none does. */
function endOfText(body: Buffer, from: number): number {
  for (let i = from; ; ) {
    for (const near = Math.min(body.length, i + nearBytes); i < near; i++) {
      if (body[i] === quote) return i;
      if (body[i] === backslash) i++;
    }
    const end = i < body.length ? body.indexOf(quote, i) : -1;
    if (end < 0) return body.length;
    let slashes = 0;
    while (end - slashes > i && body[end - slashes - 1] === backslash) slashes++;
    if (slashes % 2 === 0) return end;
    i = end + 1;
  }
}

const tooMany = (what: string, most: number): ServiceError =>
  new ServiceError('REL_TOO_LARGE', `the body has more than ${most} ${what}`);
