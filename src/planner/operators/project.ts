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
  const kernels = expressions.map((projectedBound) =>
    projectedBound.kind === 'column' ? null : new KernelCache(projectedBound, compileProject),
  );
  const computed = kernels.filter((kernel) => kernel !== null).length;
  const plain =
    computed > 0 ? null : expressions.map((projectedBound) => (projectedBound.kind === 'column' ? projectedBound.index : -1));
  return { kernels, computed, plain };
}

export class ProjectOperator implements Operator {
  readonly #projectInput: Operator;
  readonly #projectedColumns: readonly (number | ComputedColumn)[];
  /** Columns whose kernels for the first batch are compiled. */
  #preparedColumns = 0;
  #waitingBatch: Batch | null = null;
  /** Rows whose columns are being computed, and the columns that are. */
  #projectedPiece: Batch | null = null;
  #computed: Vector[] = [];
  /** The next column is computed for some of the rows. */
  #isColumnBegun = false;
  /** Rows of a batch that are computed at once: many columns are work for several turns. */
  readonly #projectStepRows: number;

  constructor(input: Operator, node: ProjectNode, { kernels, computed, plain }: ProjectKernels, execution: Execution) {
    this.#projectInput = input;
    this.#projectedColumns =
      plain ??
      node.expressions.map((projectedBound, i) =>
        projectedBound.kind === 'column' ? projectedBound.index : new ComputedColumn(projectedBound, kernels[i]!, execution),
      );
    // Nothing has to be compiled for plain columns.
    if (plain) this.#preparedColumns = plain.length;
    this.#projectStepRows = Math.max(projectedRowsMin, Math.floor(projectCellsPerCall / Math.max(1, computed)));
  }

  next(): Batch | null {
    if (this.#projectedPiece) return this.#projectPiece(this.#projectedPiece);
    const batch = this.#waitingBatch ?? this.#projectInput.next();
    if (batch === null) return null;
    if (batch.count === 0) return emptyBatch;
    // The first batch waits until its kernels are there: compiling many takes longer than others should wait.
    if (this.#preparedColumns < this.#projectedColumns.length) {
      this.#prepareColumns(batch);
      this.#waitingBatch = this.#preparedColumns < this.#projectedColumns.length ? batch : null;
      if (this.#waitingBatch) return emptyBatch;
    }
    return this.#projectPiece((this.#projectedPiece = this.#nextPiece(batch)));
  }

  /** Computes the missing columns of a piece; null from a column that needs another turn. */
  #projectPiece(projectedPiece: Batch): Batch {
    const computed = this.#computed;
    let turnWork = 0;
    while (computed.length < this.#projectedColumns.length) {
      const projectedColumn = this.#projectedColumns[computed.length]!;
      if (typeof projectedColumn === 'number') {
        computed.push(projectedPiece.columns[projectedColumn]!);
        continue;
      }
      const projectedVector = this.#isColumnBegun ? projectedColumn.goOn() : projectedColumn.compute(projectedPiece);
      turnWork += work.done;
      this.#isColumnBegun = projectedVector === null;
      if (projectedVector !== null) computed.push(projectedVector);
      if (projectedVector === null || (turnWork > turnMost && computed.length < this.#projectedColumns.length)) return emptyBatch;
    }
    this.#computed = [];
    this.#projectedPiece = null;
    return { ...projectedPiece, columns: computed };
  }

  /** The next rows of a batch; the others wait. */
  #nextPiece(batch: Batch): Batch {
    const stepRows = this.#projectStepRows;
    this.#waitingBatch = null;
    if (batch.count <= stepRows) return batch;
    this.#waitingBatch = lastRows(batch, batch.count - stepRows);
    return { ...batch, count: stepRows };
  }

  close(): void {
    this.#projectInput.close();
  }

  #prepareColumns(batch: Batch): void {
    for (
      let compiledColumns = 0;
      this.#preparedColumns < this.#projectedColumns.length && compiledColumns < projectKernelsPerCall;
      this.#preparedColumns++
    ) {
      const projectedColumn = this.#projectedColumns[this.#preparedColumns]!;
      if (typeof projectedColumn === 'number') continue;
      projectedColumn.prepare(batch);
      compiledColumns++;
    }
  }
}

const projectKernelsPerCall = 8;
const projectCellsPerCall = 65_536;
const projectedRowsMin = 64;

class ComputedColumn {
  readonly #computedBound: Bound;
  readonly #projectKernels: KernelCache<CompiledProject>;
  readonly #execution: Execution;
  #projectTarget: ProjectTarget = new Float64Array(0);
  #computedNulls = new Uint8Array(0);
  #isWide = false;
  #wholePiece = emptyBatch;
  /** Rows that are still to be computed. */
  #uncomputedRows = emptyBatch;

  constructor(bound: Bound, kernels: KernelCache<CompiledProject>, execution: Execution) {
    this.#computedBound = bound;
    this.#projectKernels = kernels;
    this.#execution = execution;
  }

  prepare({ columns, selection }: Batch): CompiledProject {
    return this.#projectKernels.get({ columns, context: this.#execution.kernels, dense: selection === null, wide: this.#isWide });
  }

  /** null where `goOn` computes the rest, after others had a turn. */
  compute(batch: Batch): Vector | null {
    this.#wholePiece = this.#uncomputedRows = batch;
    return this.goOn();
  }

  goOn(): Vector | null {
    const { columns, selection, first, count } = this.#uncomputedRows;
    const kernelContext = this.#execution.kernels;
    const compiledProject = this.prepare(this.#wholePiece);
    work.done = work.left = 0;
    if (compiledProject.layout === 'null') return { kind: 'null' };
    if (this.#uncomputedRows === this.#wholePiece)
      this.#reserveTarget(compiledProject.layout, selection === null ? first + count : highestRow(selection, count) + 1);
    const projectTarget = this.#projectTarget;
    const computedNulls = compiledProject.nullable ? this.#computedNulls : null;
    try {
      compiledProject.kernel(columns, kernelContext, selection, first, count, projectTarget, computedNulls);
    } catch (error) {
      if (error !== widen || this.#isWide) throw error;
      this.#isWide = true;
      return this.compute(this.#wholePiece);
    }
    if (work.left > 0) {
      this.#uncomputedRows = lastRows(this.#uncomputedRows, work.left);
      return null;
    }
    if (projectTarget instanceof Float64Array) return { kind: 'f64', values: projectTarget, nulls: computedNulls };
    if (projectTarget instanceof BigInt64Array) return { kind: 'i64', values: projectTarget, nulls: computedNulls };
    if (projectTarget instanceof Uint8Array) return { kind: 'bool', values: projectTarget, nulls: computedNulls };
    return { kind: 'dict', values: projectTarget, dictionary: kernelContext.interner(this.#computedBound), nulls: computedNulls };
  }

  #reserveTarget(computedLayout: Exclude<ComputedLayout, 'null'>, length: number): void {
    if (this.#computedNulls.length < length) this.#computedNulls = new Uint8Array(grownTargetLength(length));
    const targetType = projectTargetTypes[computedLayout];
    if (!(this.#projectTarget instanceof targetType) || this.#projectTarget.length < length)
      this.#projectTarget = new targetType(grownTargetLength(length));
  }
}

const projectTargetTypes = { f64: Float64Array, i64: BigInt64Array, bool: Uint8Array, code: Int32Array } as const;

/** Below a sort row numbers ascend, above it they don't. */
function highestRow(selection: Int32Array, count: number): number {
  let highestSelected = 0;
  for (let j = 0; j < count; j++) if (selection[j]! > highestSelected) highestSelected = selection[j]!;
  return highestSelected;
}

function grownTargetLength(length: number): number {
  return Math.max(1024, length + (length >> 1));
}
