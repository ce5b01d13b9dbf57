/** Numbers in requests: `read-exact-json.ts` brings integers that a JavaScript number would change as bigint. */
import { z } from 'zod';

/** Any number, exactly as it was sent. */
export const exactNumber = z
  .custom<number | bigint>(
    (numberInput) => typeof numberInput === 'bigint' || Number.isFinite(numberInput),
    'a number is expected',
  )
  .meta({ type: 'number' });

/** The value of a cell that a filter compares with. */
export const scalar = z.union([z.string(), exactNumber, z.boolean(), z.null()]);

/** A float, even where an integer was sent. */
export function float<T extends z.ZodType<unknown, number>>(floatChecks: T) {
  return z.preprocess((floatInput) => (typeof floatInput === 'bigint' ? Number(floatInput) : floatInput), floatChecks);
}
