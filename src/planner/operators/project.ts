/** Computes columns. A plain column is passed on as it is; a computed one is written at the rows' own numbers. */
import type { Vector } from '../../log/columns.ts';
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
import { type Batch, emptyBatch, type Execution, type Operator } from './operator.ts';

/** What one node computes of; kept with the plan. */
export interface ProjectKernels {
  /** Null for a plain column. */
  readonly kernels: readonly (KernelCache<CompiledProject> | null)[];
  /** Number of columns. */
  readonly computed: number;
  /** Where all are plain: which columns of the input. */
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
    const batch = this.#waiting ?? this.#input.next();
    if (batch === null) return null;
    if (batch.count === 0) return emptyBatch;
    // The first batch waits until its kernels are there: compiling many takes longer than others should wait.
    if (this.#ready < this.#columns.length) {
      this.#prepare(batch);
      this.#waiting = this.#ready < this.#columns.length ? batch : null;
      if (this.#waiting) return emptyBatch;
    }
    const piece = this.#piece(batch);
    const columns = this.#columns.map((column) => (typeof column === 'number' ? piece.columns[column]! : column.compute(piece)));
    return { ...piece, columns };
  }

  /** The next rows of a batch; the others wait. */
  #piece(batch: Batch): Batch {
    const { columns, selection, first, count } = batch;
    const step = this.#step;
    this.#waiting = null;
    if (count <= step) return batch;
    const rest = { columns, count: count - step };
    this.#waiting = selection
      ? { ...rest, selection: selection.subarray(step), first }
      : { ...rest, selection, first: first + step };
    return { columns, selection, first, count: step };
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

  constructor(bound: Bound, kernels: KernelCache<CompiledProject>, execution: Execution) {
    this.#bound = bound;
    this.#kernels = kernels;
    this.#execution = execution;
  }

  prepare({ columns, selection }: Batch): CompiledProject {
    return this.#kernels.get({ columns, context: this.#execution.kernels, dense: selection === null, wide: this.#wide });
  }

  compute(batch: Batch): Vector {
    const { columns, selection, first, count } = batch;
    const context = this.#execution.kernels;
    const compiled = this.prepare(batch);
    if (compiled.layout === 'null') return { kind: 'null' };
    const length = selection === null ? first + count : highest(selection, count) + 1;
    const target = this.#reserve(compiled.layout, length);
    const nulls = compiled.nullable ? this.#nulls : null;
    try {
      compiled.kernel(columns, context, selection, first, count, target, nulls);
    } catch (error) {
      if (error !== widen || this.#wide) throw error;
      this.#wide = true;
      return this.compute(batch);
    }
    if (target instanceof Float64Array) return { kind: 'f64', values: target, nulls };
    if (target instanceof BigInt64Array) return { kind: 'i64', values: target, nulls };
    if (target instanceof Uint8Array) return { kind: 'bool', values: target, nulls };
    return { kind: 'dict', values: target, dictionary: context.interner(this.#bound), nulls };
  }

  #reserve(layout: Exclude<ComputedLayout, 'null'>, length: number): ProjectTarget {
    if (this.#nulls.length < length) this.#nulls = new Uint8Array(grown(length));
    const type = targetTypes[layout];
    if (!(this.#target instanceof type) || this.#target.length < length) this.#target = new type(grown(length));
    return this.#target;
  }
}

const targetTypes = { f64: Float64Array, i64: BigInt64Array, bool: Uint8Array, code: Int32Array } as const;

/** Below a sort row numbers ascend, above it they don't. */
function highest(selection: Int32Array, count: number): number {
  let most = 0;
  for (let j = 0; j < count; j++) if (selection[j]! > most) most = selection[j]!;
  return most;
}

function grown(length: number): number {
  return Math.max(1024, length + (length >> 1));
}
