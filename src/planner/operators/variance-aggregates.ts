/**
 * Variances, and the figures of a regression, added up as PostgreSQL 15 does (Youngs and Cramer), so that the last bits are the
 * same: large values that differ little lose nothing.
 */
import { numberOverflow } from '../expressions/evaluate.ts';
import type { AggregateName } from '../aggregate-functions.ts';
import type { Folding } from './aggregate-fold.ts';

interface Moments {
  count: number;
  sum: number;
  /** Sum of squared distances from the mean. */
  squares: number;
}

function finiteOrNull(result: number | null): number | null {
  if (result !== null && !Number.isFinite(result)) throw numberOverflow();
  return result;
}

function moments(finish: (squares: number, count: number) => number | null): Folding<Moments> {
  return {
    yields: 'number',
    start: () => ({ count: 0, sum: 0, squares: 0 }),
    take: (state, cell) => {
      const value = Number(cell);
      const before = state.count++;
      state.sum += value;
      if (before > 0) {
        const distance = value * state.count - state.sum;
        state.squares += (distance * distance) / (state.count * before);
      }
      return 0;
    },
    finish: ({ squares, count }) => finiteOrNull(finish(squares, count)),
  };
}

interface PairMoments {
  count: number;
  sumX: number;
  sumY: number;
  xx: number;
  yy: number;
  xy: number;
}

/** The first argument is y, the second x; a pair with a NULL in it is none. */
function pairs(finish: (state: PairMoments) => number | null): Folding<PairMoments> {
  return {
    yields: 'number',
    start: () => ({ count: 0, sumX: 0, sumY: 0, xx: 0, yy: 0, xy: 0 }),
    take: (state, cell, second) => {
      if (second === null) return 0;
      const [y, x] = [Number(cell), Number(second)];
      const before = state.count++;
      state.sumX += x;
      state.sumY += y;
      if (before > 0) {
        const toX = x * state.count - state.sumX;
        const toY = y * state.count - state.sumY;
        const scale = 1 / (state.count * before);
        state.xx += toX * toX * scale;
        state.yy += toY * toY * scale;
        state.xy += toX * toY * scale;
      }
      return 0;
    },
    finish: (state) => (state.count === 0 ? null : finiteOrNull(finish(state))),
  };
}

const counted: Folding<PairMoments> = {
  ...pairs(() => null),
  yields: 'integer',
  ofNothing: 0n,
  finish: ({ count }) => BigInt(count),
};

/** By the names of their functions. */
export const momentFoldings: Partial<Record<AggregateName, Folding<Moments> | Folding<PairMoments>>> = {
  stddev: moments((squares, n) => (n < 2 ? null : Math.sqrt(squares / (n - 1)))),
  stddev_pop: moments((squares, n) => Math.sqrt(squares / n)),
  variance: moments((squares, n) => (n < 2 ? null : squares / (n - 1))),
  var_pop: moments((squares, n) => squares / n),
  corr: pairs(({ xx, yy, xy }) => (xx === 0 || yy === 0 ? null : xy / Math.sqrt(xx * yy))),
  covar_pop: pairs(({ xy, count }) => xy / count),
  covar_samp: pairs(({ xy, count }) => (count < 2 ? null : xy / (count - 1))),
  regr_avgx: pairs(({ sumX, count }) => sumX / count),
  regr_avgy: pairs(({ sumY, count }) => sumY / count),
  regr_count: counted,
  regr_intercept: pairs(({ sumX, sumY, xx, xy, count }) => (xx === 0 ? null : (sumY - (sumX * xy) / xx) / count)),
  regr_r2: pairs(({ xx, yy, xy }) => (xx === 0 ? null : yy === 0 ? 1 : (xy * xy) / (xx * yy))),
  regr_slope: pairs(({ xx, xy }) => (xx === 0 ? null : xy / xx)),
  regr_sxx: pairs(({ xx }) => xx),
  regr_sxy: pairs(({ xy }) => xy),
  regr_syy: pairs(({ yy }) => yy),
};
