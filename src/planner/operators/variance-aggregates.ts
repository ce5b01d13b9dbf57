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

function finiteMoment(momentResult: number | null): number | null {
  if (momentResult !== null && !Number.isFinite(momentResult)) throw numberOverflow();
  return momentResult;
}

function momentsFolding(finishMoments: (squares: number, count: number) => number | null): Folding<Moments> {
  return {
    yields: 'number',
    start: () => ({ count: 0, sum: 0, squares: 0 }),
    take: (momentState, cell) => {
      const momentValue = Number(cell);
      const earlierCount = momentState.count++;
      momentState.sum += momentValue;
      if (earlierCount > 0) {
        const meanDistance = momentValue * momentState.count - momentState.sum;
        momentState.squares += (meanDistance * meanDistance) / (momentState.count * earlierCount);
      }
      return 0;
    },
    finish: ({ squares, count }) => finiteMoment(finishMoments(squares, count)),
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
function pairMomentsFolding(finishPairMoments: (state: PairMoments) => number | null): Folding<PairMoments> {
  return {
    yields: 'number',
    start: () => ({ count: 0, sumX: 0, sumY: 0, xx: 0, yy: 0, xy: 0 }),
    take: (momentState, cell, secondCell) => {
      if (secondCell === null) return 0;
      const [pairY, pairX] = [Number(cell), Number(secondCell)];
      const earlierCount = momentState.count++;
      momentState.sumX += pairX;
      momentState.sumY += pairY;
      if (earlierCount > 0) {
        const meanDistanceX = pairX * momentState.count - momentState.sumX;
        const meanDistanceY = pairY * momentState.count - momentState.sumY;
        const pairScale = 1 / (momentState.count * earlierCount);
        momentState.xx += meanDistanceX * meanDistanceX * pairScale;
        momentState.yy += meanDistanceY * meanDistanceY * pairScale;
        momentState.xy += meanDistanceX * meanDistanceY * pairScale;
      }
      return 0;
    },
    finish: (state) => (state.count === 0 ? null : finiteMoment(finishPairMoments(state))),
  };
}

const pairCountFolding: Folding<PairMoments> = {
  ...pairMomentsFolding(() => null),
  yields: 'integer',
  ofNothing: 0n,
  finish: ({ count }) => BigInt(count),
};

/** By the names of their functions. */
export const momentFoldings: Partial<Record<AggregateName, Folding<Moments> | Folding<PairMoments>>> = {
  stddev: momentsFolding((squares, n) => (n < 2 ? null : Math.sqrt(squares / (n - 1)))),
  stddev_pop: momentsFolding((squares, n) => Math.sqrt(squares / n)),
  variance: momentsFolding((squares, n) => (n < 2 ? null : squares / (n - 1))),
  var_pop: momentsFolding((squares, n) => squares / n),
  corr: pairMomentsFolding(({ xx, yy, xy }) => (xx === 0 || yy === 0 ? null : xy / Math.sqrt(xx * yy))),
  covar_pop: pairMomentsFolding(({ xy, count }) => xy / count),
  covar_samp: pairMomentsFolding(({ xy, count }) => (count < 2 ? null : xy / (count - 1))),
  regr_avgx: pairMomentsFolding(({ sumX, count }) => sumX / count),
  regr_avgy: pairMomentsFolding(({ sumY, count }) => sumY / count),
  regr_count: pairCountFolding,
  regr_intercept: pairMomentsFolding(({ sumX, sumY, xx, xy, count }) => (xx === 0 ? null : (sumY - (sumX * xy) / xx) / count)),
  regr_r2: pairMomentsFolding(({ xx, yy, xy }) => (xx === 0 ? null : yy === 0 ? 1 : (xy * xy) / (xx * yy))),
  regr_slope: pairMomentsFolding(({ xx, xy }) => (xx === 0 ? null : xy / xx)),
  regr_sxx: pairMomentsFolding(({ xx }) => xx),
  regr_sxy: pairMomentsFolding(({ xy }) => xy),
  regr_syy: pairMomentsFolding(({ yy }) => yy),
};
