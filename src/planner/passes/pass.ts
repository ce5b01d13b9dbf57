/** The context of a pass besides the plan. */
import type { SketchOf } from './column-sketch.ts';
import type { LogicalPlan, ScanNode } from '../logical-plan.ts';

export interface PassContext {
  /** Rows that a scan would yield before its filter, of those that the caller may see. */
  readonly estimate: (scan: ScanNode) => number;
  /** Sketches of the same rows. */
  readonly sketch: SketchOf;
}

/**
 * A plan of the same answer. Pure. One that asks its context is named in `plans.ts` among those that arrange joins: what it makes
 * is of one caller, and of one run.
 */
export type Pass = (plan: LogicalPlan, context: PassContext) => LogicalPlan;
