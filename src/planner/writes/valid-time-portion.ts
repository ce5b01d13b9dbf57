/** FOR PORTION OF VALID_TIME: which versions are written, and which part of each. */
import type { NamedColumn } from '../../log/values/columns.ts';
import { FOREVER, parseZonedInstant } from '../../log/values/timestamp.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { DefaultTime, Literal, Slot } from '../syntax/statement.ts';
import type { Portion } from '../syntax/write-statement.ts';
import { type RowsRead, vectorOf } from './rows-read.ts';

export interface BoundPortion {
  readonly within: { readonly from: bigint; readonly to: bigint | null };
  /** Reads the current versions, of any valid time. */
  readonly read: { readonly time: DefaultTime };
  /** The part of each row that is written. Its own bounds stand behind its key. */
  boundsOf(rowsRead: RowsRead): readonly NamedColumn[];
}

export function portionOf({ from, to, location }: Portion, literalOf: (slot: number) => Literal, now: bigint): BoundPortion {
  const portionInstant = (slot: Slot): bigint => {
    const value = literalOf(slot.slot);
    if (typeof value === 'bigint') return value;
    if (typeof value === 'string') return parseZonedInstant(value);
    throw errorAt('REL_INVALID', 'FOR PORTION OF VALID_TIME takes timestamps in quotes, or nanoseconds', slot.location);
  };
  const portionBegins = portionInstant(from);
  const portionEnds = to === null ? null : portionInstant(to);
  if (portionEnds !== null && portionBegins >= portionEnds)
    throw errorAt('REL_INVALID', 'the portion has to end after it begins', location);
  return {
    within: { from: portionBegins, to: portionEnds },
    read: { time: { system: now } },
    boundsOf: (rowsRead) => {
      const rows = rowsRead.numbers();
      const own = (row: number, column: number): bigint => rowsRead.cell(row, column) as bigint;
      const starts = rows.map((row) => (own(row, 1) > portionBegins ? own(row, 1) : portionBegins));
      const stops = rows.map((row) => {
        const stop = portionEnds === null || own(row, 2) < portionEnds ? own(row, 2) : portionEnds;
        return stop === FOREVER ? null : stop;
      });
      return [
        { name: 'valid_from', type: 'timestamp', vector: vectorOf(starts, 'timestamp') },
        { name: 'valid_to', type: 'timestamp', vector: vectorOf(stops, 'timestamp') },
      ];
    },
  };
}
