/** Computes columns. A plain column is passed on as it is; a computed one is written at the rows' own numbers. */
import type { Vector } from '../../log/values/columns.ts';
import type { Bound } from '../expressions/bound-expression.ts';
import {
  type CompiledProject,
  compileProject,
  type ComputedLayout,
  KernelCache,
  type ProjectTarget,
} from '../expressions/kernel-compiler.ts';
import { widen } from '../expressions/kernel-runtime.ts';
import type { ProjectNode } from '../logical-plan.ts';
import { turnMost, work } from '../expressions/expression-cost.ts';
import { type Batch, emptyBatch, type Execution, lastRows, type Operator } from './operator.ts';

/** The kernels of one projection; kept with the plan. */
export interface ProjectKernels {
  /** Null for a plain column. */
  readonly kernels: readonly (KernelCache<CompiledProject> | null)[];
  /** Number of columns. */
  readonly computed: number;
  /** The input columns, where all are plain. */
  readonly plain: readonly number[] | null;
}

export function projectKernels({ expressions }: ProjectNode): ProjectKernels {
  const kernels = expressions.map((bound) => (bound.kind === 'column' ? null : new KernelCache(bound, compileProject)));
  const computed = kernels.filter((kernel) => kernel !== null).length;
  const plain = computed > 0 ? null : expressions.map((bound) => (bound.kind === 'column' ? bound.index : -1));
  return { kernels, computed, plain };
}

export class ProjectOperator implements Operator {
  readonly #input: Operator;
  readonly #columns: readonly (number | ComputedColumn)[];
  /** Columns whose kernels for the first batch are compiled. */
  #ready = 0;
  #waiting: Batch | null = null;
  /** Rows whose columns are being computed, and the columns that are. */
  #piece: Batch | null = null;
  #computed: Vector[] = [];
  /** The next column is computed for some of the rows. */
  #isBegun = false;
  /** Rows of a batch that are computed at once: many columns are work for several turns. */
  readonly #step: number;

  constructor(input: Operator, node: ProjectNode, { kernels, computed, plain }: ProjectKernels, execution: Execution) {
    this.#input = input;
    this.#columns =
      plain ??
      node.expressions.map((bound, i) =>
        bound.kind === 'column' ? bound.index : new ComputedColumn(bound, kernels[i]!, execution),
      );
    // Nothing has to be compiled for plain columns.
    if (plain) this.#ready = plain.length;
    this.#step = Math.max(rowsAtLeast, Math.floor(cellsPerCall / Math.max(1, computed)));
  }

  next(): Batch | null {
    if (this.#piece) return this.#goOn(this.#piece);
    const batch = this.#waiting ?? this.#input.next();
    if (batch === null) return null;
    if (batch.count === 0) return emptyBatch;
    // The first batch waits until its kernels are there: compiling many takes longer than others should wait.
    if (this.#ready < this.#columns.length) {
      this.#prepare(batch);
      this.#waiting = this.#ready < this.#columns.length ? batch : null;
      if (this.#waiting) return emptyBatch;
    }
    return this.#goOn((this.#piece = this.#nextPiece(batch)));
  }

  /** Computes the missing columns of a piece; null from a column that needs another turn. */
  #goOn(piece: Batch): Batch {
    const computed = this.#computed;
    let done = 0;
    while (computed.length < this.#columns.length) {
      const column = this.#columns[computed.length]!;
      if (typeof column === 'number') {
        computed.push(piece.columns[column]!);
        continue;
      }
      const vector = this.#isBegun ? column.goOn() : column.compute(piece);
      done += work.done;
      this.#isBegun = vector === null;
      if (vector !== null) computed.push(vector);
      if (vector === null || (done > turnMost && computed.length < this.#columns.length)) return emptyBatch;
    }
    this.#computed = [];
    this.#piece = null;
    return { ...piece, columns: computed };
  }

  /** The next rows of a batch; the others wait. */
  #nextPiece(batch: Batch): Batch {
    const step = this.#step;
    this.#waiting = null;
    if (batch.count <= step) return batch;
    this.#waiting = lastRows(batch, batch.count - step);
    return { ...batch, count: step };
  }

  close(): void {
    this.#input.close();
  }

  #prepare(batch: Batch): void {
    for (let compiled = 0; this.#ready < this.#columns.length && compiled < kernelsPerCall; this.#ready++) {
      const column = this.#columns[this.#ready]!;
      if (typeof column === 'number') continue;
      column.prepare(batch);
      compiled++;
    }
  }
}

const kernelsPerCall = 8;
const cellsPerCall = 65_536;
const rowsAtLeast = 64;

class ComputedColumn {
  readonly #bound: Bound;
  readonly #kernels: KernelCache<CompiledProject>;
  readonly #execution: Execution;
  #target: ProjectTarget = new Float64Array(0);
  #nulls = new Uint8Array(0);
  #wide = false;
  #whole = emptyBatch;
  /** Rows that are still to be computed. */
  #rest = emptyBatch;

  constructor(bound: Bound, kernels: KernelCache<CompiledProject>, execution: Execution) {
    this.#bound = bound;
    this.#kernels = kernels;
    this.#execution = execution;
  }

  prepare({ columns, selection }: Batch): CompiledProject {
    return this.#kernels.get({ columns, context: this.#execution.kernels, dense: selection === null, wide: this.#wide });
  }

  /** null where `goOn` computes the rest, after others had a turn. */
  compute(batch: Batch): Vector | null {
    this.#whole = this.#rest = batch;
    return this.goOn();
  }

  goOn(): Vector | null {
    const { columns, selection, first, count } = this.#rest;
    const context = this.#execution.kernels;
    const compiled = this.prepare(this.#whole);
    work.done = work.left = 0;
    if (compiled.layout === 'null') return { kind: 'null' };
    if (this.#rest === this.#whole)
      this.#reserve(compiled.layout, selection === null ? first + count : highest(selection, count) + 1);
    const target = this.#target;
    const nulls = compiled.nullable ? this.#nulls : null;
    try {
      compiled.kernel(columns, context, selection, first, count, target, nulls);
    } catch (error) {
      if (error !== widen || this.#wide) throw error;
      this.#wide = true;
      return this.compute(this.#whole);
    }
    if (work.left > 0) {
      this.#rest = lastRows(this.#rest, work.left);
      return null;
    }
    if (target instanceof Float64Array) return { kind: 'f64', values: target, nulls };
    if (target instanceof BigInt64Array) return { kind: 'i64', values: target, nulls };
    if (target instanceof Uint8Array) return { kind: 'bool', values: target, nulls };
    return { kind: 'dict', values: target, dictionary: context.interner(this.#bound), nulls };
  }

  #reserve(layout: Exclude<ComputedLayout, 'null'>, length: number): void {
    if (this.#nulls.length < length) this.#nulls = new Uint8Array(grownLength(length));
    const type = targetTypes[layout];
    if (!(this.#target instanceof type) || this.#target.length < length) this.#target = new type(grownLength(length));
  }
}

const targetTypes = { f64: Float64Array, i64: BigInt64Array, bool: Uint8Array, code: Int32Array } as const;

/** Below a sort row numbers ascend, above it they don't. */
function highest(selection: Int32Array, count: number): number {
  let most = 0;
  for (let j = 0; j < count; j++) if (selection[j]! > most) most = selection[j]!;
  return most;
}

function grownLength(length: number): number {
  return Math.max(1024, length + (length >> 1));
}
