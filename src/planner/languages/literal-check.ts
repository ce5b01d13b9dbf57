/** A literal's text read by its own reader, so that what is wrong with it is told with its place in the statement. */
import { ServiceError } from '../../errors.ts';
import type { Slot } from '../statement.ts';
import type { TokenCursor } from './token-cursor.ts';

export function readLiteral<T>(cursor: TokenCursor, slot: Slot, read: (text: string) => T): T {
  try {
    return read(cursor.textOf(slot));
  } catch (error) {
    if (error instanceof ServiceError) throw cursor.error(error.message, slot.place);
    throw error;
  }
}
