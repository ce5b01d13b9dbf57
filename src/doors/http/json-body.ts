/** A buffered JSON body, whatever its Content-Type says: valid UTF-8, at most 64 levels deep, no `__proto__` in it. */
import { isUtf8 } from 'node:buffer';
import { ServiceError } from '../../errors.ts';
import { limits } from '../../log/values/value.ts';
import { parseExactJson } from './read-exact-json.ts';

/** A body is parsed in one turn of the event loop, which this many bytes hold up for some 10 ms. Questions have a cap of their own. */
export const jsonBytesMax = 4 << 20;

/** One JSON value, its integers exact; undefined when there are no bytes. Throws REL_INVALID for anything else. */
export function parseJsonBody(body: Buffer): unknown {
  if (body.length === 0) return undefined;
  if (!isUtf8(body)) throw new ServiceError('REL_INVALID', 'the body is not UTF-8');
  checkDepth(body);
  const text = body.toString('utf8');
  let value: unknown;
  try {
    value = parseExactJson(text);
  } catch (error) {
    throw new ServiceError('REL_INVALID', error instanceof RangeError ? `the body: ${error.message}` : 'the body is not JSON');
  }
  // Any way to spell the name; what it was meant to be is decided on the parsed value.
  if (text.includes('__proto__') || text.includes('\\u')) refuseProto(value);
  return value;
}

function refuseProto(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  if (Object.hasOwn(value, '__proto__')) throw new ServiceError('REL_INVALID', 'the body names a field __proto__');
  for (const item of Object.values(value)) refuseProto(item);
}

const quote = 0x22;
const backslash = 0x5c;

function checkDepth(body: Buffer): void {
  // Megabytes with few brackets in them need no second look.
  if (occurrences(body, 0x5b) + occurrences(body, 0x7b) <= limits.jsonDepth) return;
  let depth = 0;
  let inString = false;
  for (let i = 0; i < body.length; i++) {
    const byte = body[i]!;
    if (inString) {
      if (byte === backslash) i++;
      else if (byte === quote) inString = false;
    } else if (byte === quote) inString = true;
    // 0x5b [ and 0x7b {, 0x5d ] and 0x7d }
    else if (byte === 0x5b || byte === 0x7b) {
      if (++depth > limits.jsonDepth)
        throw new ServiceError('REL_INVALID', `the body nests deeper than ${limits.jsonDepth} levels`);
    } else if (byte === 0x5d || byte === 0x7d) depth--;
  }
}

/** How often a byte occurs, counted no further than matters. */
function occurrences(body: Buffer, byte: number): number {
  let found = 0;
  for (let at = body.indexOf(byte); at >= 0 && found <= limits.jsonDepth; at = body.indexOf(byte, at + 1)) found++;
  return found;
}
