/**
 * Sketches of the columns that SERVICE_SKETCH_COLUMNS names, for estimates only: the side of a join to hold, and the rows of a
 * filter in EXPLAIN. No answer depends on one. Invariants:
 *
 * - each is read through the caller's own grant, over every version that its snapshot may show, so that what others wrote
 *   can't show in a guess; it is kept under that grant and goes on from where it ended;
 * - at one basis it is the same whoever asked before: one that knows later rows is not used, and one that was made before rows
 *   were removed for good, or types changed, is made anew;
 * - it is made when a plan or EXPLAIN asks for it first, in turns; there are at most 256 of them, 18 KiB each.
 */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../clock.ts';
import type { GovernedSnapshot } from '../../governance/gate-contract.ts';
import { systemColumns } from '../../log/values/value.ts';
import { ColumnSketch, isSketched, type FindSketch } from '../passes/column-sketch.ts';
import type { Scheduler } from '../execution/executor.ts';
import { type LogicalPlan, nodesOf } from '../logical-plan.ts';

export const withoutSketches: FindSketch = () => null;

const cachedSketchesMax = 256;
const sketchSliceMsMax = 1.5;

interface SketchAtInstant {
  readonly sketch: ColumnSketch;
  /** The snapshot that it was made of: every row up to then, and none later. */
  readonly instant: bigint;
}

export class Sketches {
  readonly #sketchedColumns: ReadonlySet<string>;
  readonly #sketchClock: Clock;
  readonly #sketchScheduler: Scheduler;
  readonly #sketches = new LRUCache<string, SketchAtInstant>({ max: cachedSketchesMax });
  /** Sketches in the making: a second caller waits for it, and extends it from there. */
  readonly #sketchesInMaking = new Map<string, Promise<SketchAtInstant>>();

  constructor(columns: readonly string[], clock: Clock, scheduler: Scheduler) {
    this.#sketchedColumns = new Set(columns);
    this.#sketchClock = clock;
    this.#sketchScheduler = scheduler;
  }

  clear(): void {
    this.#sketches.clear();
  }

  /** Nothing is sketched. */
  get areOff(): boolean {
    return this.#sketchedColumns.size === 0;
  }

  /** Sketches of all columns that the scans of a plan read. */
  async sketchesOf(plan: LogicalPlan, snapshot: GovernedSnapshot): Promise<FindSketch> {
    if (this.#sketchedColumns.size === 0 || snapshot.isPrivate) return withoutSketches;
    const sketches = new Map<string, ColumnSketch>();
    for (const { type, column } of this.#columnsRead(plan, snapshot)) {
      sketches.set(`${type}\0${column}`, await this.#sketchColumn(type, column, snapshot));
    }
    return (type, column) => sketches.get(`${type}\0${column}`) ?? null;
  }

  #columnsRead(plan: LogicalPlan, { catalog }: GovernedSnapshot): readonly { readonly type: string; readonly column: string }[] {
    const columnsByKey = new Map<string, { type: string; column: string }>();
    for (const node of nodesOf(plan)) {
      if (node.kind !== 'scan') continue;
      const { type } = node;
      // A cached view is no type.
      if (catalog.type(type) === undefined) continue;
      for (const { name: column, type: cellType } of node.columns) {
        // Cells that the gate makes of a version for its reader may differ at another basis.
        if (!this.#sketchedColumns.has(column) || Object.hasOwn(systemColumns, column) || !isSketched(cellType)) continue;
        if (node.masked.has(column)) continue;
        columnsByKey.set(`${type}\0${column}`, { type, column });
      }
    }
    return [...columnsByKey.values()];
  }

  async #sketchColumn(type: string, column: string, snapshot: GovernedSnapshot): Promise<ColumnSketch> {
    const { grantKey, catalog, removals, instant } = snapshot;
    const sketchKey = `${grantKey}\0${catalog.ontologyVersion}\0${type}\0${column}`;
    for (
      let othersMaking = this.#sketchesInMaking.get(sketchKey);
      othersMaking;
      othersMaking = this.#sketchesInMaking.get(sketchKey)
    )
      await othersMaking.catch(() => undefined);
    let previousSketch = this.#sketches.get(sketchKey) ?? null;
    if (previousSketch?.instant === instant) return previousSketch.sketch;
    const isLater = previousSketch !== null && previousSketch.instant > instant;
    if (previousSketch && (isLater || removals.removedAfter(type, previousSketch.instant).length > 0)) previousSketch = null;
    const sketchMaking = this.#extendSketch(previousSketch, type, column, snapshot);
    this.#sketchesInMaking.set(sketchKey, sketchMaking);
    try {
      const sketch = await sketchMaking;
      if (!isLater) this.#sketches.set(sketchKey, sketch);
      return sketch.sketch;
    } finally {
      this.#sketchesInMaking.delete(sketchKey);
    }
  }

  async #extendSketch(
    previousSketch: SketchAtInstant | null,
    type: string,
    column: string,
    { stored, instant }: GovernedSnapshot,
  ): Promise<SketchAtInstant> {
    const extendedSketch = new ColumnSketch(previousSketch?.sketch);
    const sketchScan = { type, columns: [column], time: { system: 'all', valid: 'all' } } as const;
    const sketchBlocks = stored.scan(previousSketch ? { ...sketchScan, after: previousSketch.instant } : sketchScan);
    try {
      let sketchSliceMs = this.#sketchClock.monotonicMs();
      for (let sketchStep = sketchBlocks.next(); sketchStep.done !== true; sketchStep = sketchBlocks.next()) {
        extendedSketch.add(sketchStep.value.columns[0]!, sketchStep.value);
        if (this.#sketchClock.monotonicMs() - sketchSliceMs < sketchSliceMsMax) continue;
        await this.#sketchScheduler.yield();
        sketchSliceMs = this.#sketchClock.monotonicMs();
      }
    } finally {
      sketchBlocks.return?.();
    }
    return { sketch: extendedSketch.finish(), instant };
  }
}
