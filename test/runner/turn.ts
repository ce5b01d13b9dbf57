/**
 * Tests that take their turn: a run tries one in so many, and which ones moves on with the seed, so that as many commits try all
 * of them. `npm run test:whole -- <files>` tries all at once, and so do mutants. Only what is one of many of a kind takes turns.
 */
import { seedBase } from './seed.ts';

export const whole = process.env['TEST_WHOLE'] === '1';

/** Whether what is `index`th among its kind has its turn. */
export const hasTurn = (index: number, oneIn: number): boolean => whole || (index + seedBase) % oneIn === 0;

/** Those of a list that have their turn. */
export const inTurn = <T>(list: readonly T[], oneIn: number): T[] => list.filter((_, index) => hasTurn(index, oneIn));
