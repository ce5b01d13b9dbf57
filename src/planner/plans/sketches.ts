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

const sketchesMax = 256;
const sliceMs = 1.5;

interface SketchAtInstant {
  readonly sketch: ColumnSketch;
  /** The snapshot that it was made of: every row up to then, and none later. */
  readonly instant: bigint;
}

export class Sketches {
  readonly #columns: ReadonlySet<string>;
  readonly #clock: Clock;
  readonly #scheduler: Scheduler;
  readonly #sketches = new LRUCache<string, SketchAtInstant>({ max: sketchesMax });
  /** Sketches in the making: a second caller waits for it, and extends it from there. */
  readonly #making = new Map<string, Promise<SketchAtInstant>>();

  constructor(columns: readonly string[], clock: Clock, scheduler: Scheduler) {
    this.#columns = new Set(columns);
    this.#clock = clock;
    this.#scheduler = scheduler;
  }

  clear(): void {
    this.#sketches.clear();
  }

  /** Nothing is sketched. */
  get areOff(): boolean {
    return this.#columns.size === 0;
  }

  /** Sketches of all columns that the scans of a plan read. */
  async sketchesOf(plan: LogicalPlan, snapshot: GovernedSnapshot): Promise<FindSketch> {
    if (this.#columns.size === 0 || snapshot.isPrivate) return withoutSketches;
    const sketches = new Map<string, ColumnSketch>();
    for (const { type, column } of this.#read(plan, snapshot)) {
      sketches.set(`${type}\0${column}`, await this.#sketch(type, column, snapshot));
    }
    return (type, column) => sketches.get(`${type}\0${column}`) ?? null;
  }

  #read(plan: LogicalPlan, { catalog }: GovernedSnapshot): readonly { readonly type: string; readonly column: string }[] {
    const read = new Map<string, { type: string; column: string }>();
    for (const node of nodesOf(plan)) {
      if (node.kind !== 'scan') continue;
      const { type } = node;
      // A cached view is no type.
      if (catalog.type(type) === undefined) continue;
      for (const { name: column, type: cells } of node.columns) {
        // Cells that the gate makes of a version for its reader may differ at another basis.
        if (!this.#columns.has(column) || Object.hasOwn(systemColumns, column) || !isSketched(cells)) continue;
        if (node.masked.has(column)) continue;
        read.set(`${type}\0${column}`, { type, column });
      }
    }
    return [...read.values()];
  }

  async #sketch(type: string, column: string, snapshot: GovernedSnapshot): Promise<ColumnSketch> {
    const { grantKey, catalog, removals, instant } = snapshot;
    const key = `${grantKey}\0${catalog.ontologyVersion}\0${type}\0${column}`;
    for (let others = this.#making.get(key); others; others = this.#making.get(key)) await others.catch(() => undefined);
    let before = this.#sketches.get(key) ?? null;
    if (before?.instant === instant) return before.sketch;
    const isLater = before !== null && before.instant > instant;
    if (before && (isLater || removals.removedAfter(type, before.instant).length > 0)) before = null;
    const making = this.#extend(before, type, column, snapshot);
    this.#making.set(key, making);
    try {
      const sketch = await making;
      if (!isLater) this.#sketches.set(key, sketch);
      return sketch.sketch;
    } finally {
      this.#making.delete(key);
    }
  }

  async #extend(
    before: SketchAtInstant | null,
    type: string,
    column: string,
    { stored, instant }: GovernedSnapshot,
  ): Promise<SketchAtInstant> {
    const sketch = new ColumnSketch(before?.sketch);
    const every = { type, columns: [column], time: { system: 'all', valid: 'all' } } as const;
    const blocks = stored.scan(before ? { ...every, after: before.instant } : every);
    try {
      let sliceStart = this.#clock.monotonicMs();
      for (let step = blocks.next(); step.done !== true; step = blocks.next()) {
        sketch.add(step.value.columns[0]!, step.value);
        if (this.#clock.monotonicMs() - sliceStart < sliceMs) continue;
        await this.#scheduler.yield();
        sliceStart = this.#clock.monotonicMs();
      }
    } finally {
      blocks.return?.();
    }
    return { sketch: sketch.finish(), instant };
  }
}
