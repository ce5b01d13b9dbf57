/** The cursor of a search: the number of rows before the next page, in an order that is pinned by instants of both axes. */
import { ServiceError } from '../../errors.ts';
import { I64_MAX } from '../../log/values/value.ts';

export interface SearchCursor {
  /** Nanoseconds. */
  readonly system: bigint;
  readonly valid: bigint;
  readonly offset: number;
}

const searchCursorMax = 128;

export function searchCursor({ system, valid, offset }: SearchCursor): string {
  return Buffer.from(`${system}.${valid}.${offset}`).toString('base64url');
}

/** Throws REL_INVALID for a text that no search gave out. */
export function readSearchCursor(text: string): SearchCursor {
  const cursorText = text.length > searchCursorMax ? '' : Buffer.from(text, 'base64url').toString('latin1');
  const [, system, valid, offset] = /^(-?\d{1,19})\.(-?\d{1,19})\.(\d{1,12})$/.exec(cursorText) ?? [];
  if (system === undefined || BigInt(system) > I64_MAX || BigInt(valid!) > I64_MAX) {
    throw new ServiceError('REL_INVALID', 'the cursor is not one that a search gave out');
  }
  return { system: BigInt(system), valid: BigInt(valid!), offset: Number(offset) };
}
