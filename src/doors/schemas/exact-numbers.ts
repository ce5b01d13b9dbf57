/** Numbers in requests: `read-exact-json.ts` brings integers that a JavaScript number would change as bigint. */
import { z } from 'zod';

/** Any number, exactly as it was sent. */
export const exactNumber = z
  .custom<number | bigint>((given) => typeof given === 'bigint' || Number.isFinite(given), 'a number is expected')
  .meta({ type: 'number' });

/** The value of a cell that a filter compares with. */
export const scalar = z.union([z.string(), exactNumber, z.boolean(), z.null()]);

/** A float, even where an integer was sent. */
export function float<T extends z.ZodType<unknown, number>>(checks: T) {
  return z.preprocess((given) => (typeof given === 'bigint' ? Number(given) : given), checks);
}
