/**
 * Where a page ended. The decimal cursor is the system_from of its last row; the opaque one also names the instant that
 * the page was true of, so that the pages after it are of the same snapshot. Neither holds a log position.
 */
import { errorAt } from '../syntax/error-location.ts';
import type { Literal, Location } from '../syntax/statement.ts';

export interface Cursor {
  /** system_from of the last row seen. */
  readonly after: bigint;
  /** Basis to stay at; null for a decimal cursor. */
  readonly pinned: bigint | null;
}

const version = 1;
const size = 17;

export function opaqueCursor(instant: bigint, after: bigint): string {
  const bytes = Buffer.alloc(size);
  bytes[0] = version;
  bytes.writeBigInt64BE(instant, 1);
  bytes.writeBigInt64BE(after, 9);
  return bytes.toString('base64url');
}

/** Reads either form. Throws REL_INVALID for anything else. */
export function readCursor(literal: Literal, location: Location): Cursor {
  if (typeof literal === 'bigint') return { after: literal, pinned: null };
  if (typeof literal === 'string') {
    if (/^\d{1,19}$/.test(literal)) return { after: BigInt(literal), pinned: null };
    const bytes = Buffer.from(literal, 'base64url');
    if (bytes.length === size && bytes[0] === version && bytes.toString('base64url') === literal) {
      return { after: bytes.readBigInt64BE(9), pinned: bytes.readBigInt64BE(1) };
    }
  }
  throw errorAt('REL_INVALID', 'AFTER takes the cursor or next_cursor of an earlier answer', location);
}
