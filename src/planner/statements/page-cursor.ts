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

const cursorVersion = 1;
const cursorSize = 17;

export function opaqueCursor(instant: bigint, after: bigint): string {
  const cursorBytes = Buffer.alloc(cursorSize);
  cursorBytes[0] = cursorVersion;
  cursorBytes.writeBigInt64BE(instant, 1);
  cursorBytes.writeBigInt64BE(after, 9);
  return cursorBytes.toString('base64url');
}

/** Reads either form. Throws REL_INVALID for anything else. */
export function readCursor(cursorLiteral: Literal, location: Location): Cursor {
  if (typeof cursorLiteral === 'bigint') return { after: cursorLiteral, pinned: null };
  if (typeof cursorLiteral === 'string') {
    if (/^\d{1,19}$/.test(cursorLiteral)) return { after: BigInt(cursorLiteral), pinned: null };
    const cursorBytes = Buffer.from(cursorLiteral, 'base64url');
    if (
      cursorBytes.length === cursorSize &&
      cursorBytes[0] === cursorVersion &&
      cursorBytes.toString('base64url') === cursorLiteral
    ) {
      return { after: cursorBytes.readBigInt64BE(9), pinned: cursorBytes.readBigInt64BE(1) };
    }
  }
  throw errorAt('REL_INVALID', 'AFTER takes the cursor or next_cursor of an earlier answer', location);
}
