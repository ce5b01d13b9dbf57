/** The context of a pass besides the plan. */
import type { FindSketch } from './column-sketch.ts';
import type { LogicalPlan, ScanNode } from '../logical-plan.ts';

export interface PassContext {
  /** Rows that a scan would yield before its filter, counting visible rows only. */
  readonly estimate: (scan: ScanNode) => number;
  /** Sketches of the same rows. */
  readonly sketch: FindSketch;
}

/**
 * A plan with the same answer. Pure. A pass that uses its context is listed in `plans.ts` among those that arrange joins: its
 * result holds for one caller and one run.
 */
export type Pass = (plan: LogicalPlan, context: PassContext) => LogicalPlan;
