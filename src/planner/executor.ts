/**
 * Runs a plan: builds its operators, pulls them one block at a time and looks at the clock after each, so that a query
 * never holds the event loop for long, ends when its time is over and stops when its caller has gone.
 */
import type { Clock } from '../clock.ts';
import { assert, ServiceError } from '../errors.ts';
import type { Vector } from '../log/columns.ts';
import type { ColumnType } from '../log/value.ts';
import type { CompiledProject, FilterKernel, KernelCache } from './expressions/kernel-compiler.ts';
import type { LogicalPlan, PlanNode } from './logical-plan.ts';
import { AggregateOperator } from './operators/aggregate.ts';
import { RowSink } from './operators/column-sink.ts';
import { DistinctOperator } from './operators/distinct.ts';
import { FilterOperator, filterKernels } from './operators/filter.ts';
import { LimitOperator } from './operators/limit.ts';
import type { Batch, Execution, Operator } from './operators/operator.ts';
import { ProjectOperator, projectKernels } from './operators/project.ts';
import { ScanOperator } from './operators/scan.ts';
import { SortOperator } from './operators/sort.ts';
import type { OutputBatch } from './planner-contract.ts';

export interface Scheduler {
  /** Resolves once other work had its turn (setImmediate in production). */
  yield(): Promise<void>;
}

export interface ExecutorOptions {
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly timeoutMs: number;
  readonly resultRowsMax: number;
}

export interface Result {
  readonly batches: readonly OutputBatch[];
  readonly rowCount: number;
}

/** Longest stretch without a turn for others. */
const sliceMs = 1.5;
const outputRows = 8_192;
const countingBlockRows = 8_192;

/** Kernels by node: compiled once, kept with the plan. */
export type PlanKernels = Map<PlanNode, KernelCache<FilterKernel> | readonly (KernelCache<CompiledProject> | null)[]>;

export interface RunRequest {
  readonly plan: LogicalPlan;
  readonly kernels: PlanKernels;
  readonly execution: Execution;
  readonly signal: AbortSignal | undefined;
  /** Monotonic milliseconds at which the query began: parsing counts. */
  readonly startedMs: number;
}

export async function run(options: ExecutorOptions, request: RunRequest): Promise<Result> {
  const { clock, scheduler } = options;
  const { plan, signal, execution } = request;
  const types = plan.root.columns.map(({ type }) => type);
  const output = new Output(types, options.resultRowsMax, execution);
  const root = buildOperator(plan.root, request.kernels, execution);
  try {
    checkSignal(signal);
    let sliceStart = clock.monotonicMs();
    checkTime(sliceStart, request, options);
    for (let batch = root.next(); batch !== null; batch = root.next()) {
      if (batch.count > 0) output.append(batch);
      const now = clock.monotonicMs();
      if (now - sliceStart < sliceMs) continue;
      checkTime(now, request, options);
      await scheduler.yield();
      checkSignal(signal);
      sliceStart = clock.monotonicMs();
      checkTime(sliceStart, request, options);
    }
    return output.finish();
  } finally {
    root.close();
  }
}

function buildOperator(node: PlanNode, kernels: PlanKernels, execution: Execution): Operator {
  switch (node.kind) {
    case 'scan':
      return new ScanOperator(node, execution);
    case 'filter': {
      let own = kernels.get(node);
      if (!own) kernels.set(node, (own = filterKernels(node)));
      assert('get' in own, 'kernels of a filter');
      return new FilterOperator(buildOperator(node.input, kernels, execution), own, execution);
    }
    case 'project': {
      let own = kernels.get(node);
      if (!own) kernels.set(node, (own = projectKernels(node)));
      assert(!('get' in own), 'kernels of a projection');
      return new ProjectOperator(buildOperator(node.input, kernels, execution), node, own, execution);
    }
    case 'aggregate':
      return new AggregateOperator(buildOperator(node.input, kernels, execution), node, execution);
    case 'distinct':
      return new DistinctOperator(buildOperator(node.input, kernels, execution), node, execution);
    case 'sort':
      return new SortOperator(buildOperator(node.input, kernels, execution), node, execution);
    case 'limit':
      return new LimitOperator({
        input: buildOperator(node.input, kernels, execution),
        node,
        execution,
        countAfter: (after) =>
          buildOperator(node.counting ?? node.input, kernels, { ...execution, after, blockRows: countingBlockRows }),
      });
  }
}

function checkSignal(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new ServiceError('REL_CANCELLED', 'the caller went away');
}

function checkTime(nowMs: number, request: RunRequest, options: ExecutorOptions): void {
  if (nowMs - request.startedMs <= options.timeoutMs) return;
  throw new ServiceError('REL_TIMEOUT', `the query ran longer than ${options.timeoutMs} ms`);
}

/** Copies what leaves: batches belong to operators and store, the answer outlives both. */
class Output {
  readonly #types: readonly ColumnType[];
  readonly #rowsMax: number;
  readonly #execution: Execution;
  readonly #batches: OutputBatch[] = [];
  #sink: RowSink;
  #rowCount = 0;
  #heldBefore = 0;
  #held = 0;

  constructor(types: readonly ColumnType[], rowsMax: number, execution: Execution) {
    this.#types = types;
    this.#rowsMax = rowsMax;
    this.#execution = execution;
    this.#sink = new RowSink(types);
  }

  append(batch: Batch): void {
    this.#rowCount += batch.count;
    if (this.#rowCount > this.#rowsMax) {
      throw new ServiceError('REL_RESULT_CAP', `the result has more than ${this.#rowsMax} rows; LIMIT and AFTER page through it`);
    }
    this.#sink.append(batch);
    this.#held = this.#execution.memory.change(this.#held, this.#heldBefore + this.#sink.bytes);
    if (this.#sink.length >= outputRows) this.#flush();
  }

  finish(): Result {
    if (this.#sink.length > 0) this.#flush();
    return { batches: this.#batches, rowCount: this.#rowCount };
  }

  #flush(): void {
    const columns: Vector[] = this.#sink.vectors();
    this.#batches.push({ columns, selection: null, first: 0, count: this.#sink.length });
    this.#heldBefore = this.#held;
    this.#sink = new RowSink(this.#types);
  }
}
