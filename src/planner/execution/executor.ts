/**
 * Runs a plan: builds its operators, pulls them one block at a time and looks at the clock after each, so that a query
 * never holds the event loop for long, ends when its time is over and stops when its caller has gone.
 */
import type { Clock } from '../../clock.ts';
import { assert, AssertionError, ServiceError } from '../../errors.ts';
import type { Vector } from '../../log/values/columns.ts';
import type { Cell, ColumnType } from '../../log/values/value.ts';
import type { Near } from '../../projections/access-paths.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import type { FilterKernel, KernelCache } from '../expressions/kernel-compiler.ts';
import { vectorText } from '../expressions/functions/vectors.ts';
import { tableFunction } from '../table-functions/all.ts';
import { Values } from '../calls/arguments.ts';
import type { TableFunction } from '../calls/table-function.ts';
import { aggregatesByKernel, filtersByKernel } from '../kernels/kernel-chain.ts';
import { SubquerySet } from '../operators/subquery-set.ts';
import {
  type FilterNode,
  type FunctionNode,
  type LimitNode,
  type RecursiveNode,
  inputsOf,
  type JoinNode,
  type LogicalPlan,
  nodesOf,
  type PlanNode,
  type ProjectNode,
  type SearchNode,
} from '../logical-plan.ts';
import { AggregateOperator } from '../operators/aggregate.ts';
import { RowSink } from '../operators/column-sink.ts';
import { DistinctOperator } from '../operators/distinct.ts';
import { FacetCounter } from '../operators/facets.ts';
import { type FilterKernels, FilterOperator, filterKernels } from '../operators/filter.ts';
import { joinKernels, JoinOperator } from '../operators/join.ts';
import { type JoinNarrowing, KeyFilter, NarrowedOperator, type Narrowing } from '../operators/key-filter.ts';
import { type KernelFilterKernels, kernelFilterKernels, KernelFilterOperator, noConditions } from '../operators/kernel-filter.ts';
import { RecursionCache } from '../operators/recursion-cache.ts';
import { LimitOperator } from '../operators/limit.ts';
import type { Batch, Execution, Operator } from '../operators/operator.ts';
import { NumberOperator } from '../operators/row-number.ts';
import { OverOperator } from '../operators/window-functions.ts';
import { type ProjectKernels, ProjectOperator, projectKernels } from '../operators/project.ts';
import { RecursiveOperator } from '../operators/recursive-union.ts';
import { ScanOperator } from '../operators/scan.ts';
import { SearchOperator } from '../operators/match-search.ts';
import { SetOperationOperator } from '../operators/set-operation.ts';
import { secondRow } from '../operators/several-rows-error.ts';
import { SkipOperator } from '../operators/skip.ts';
import { SortOperator } from '../operators/sort.ts';
import { ValuesOperator } from '../operators/values.ts';
import { SpreadOperator } from '../operators/unnest.ts';
import { VirtualOperator } from '../operators/virtual-scan.ts';
import { windowOperator } from '../operators/time-windows.ts';
import { WorkingOperator } from '../operators/working-table.ts';
import { prepareNearest } from '../vectors/nearest-rows.ts';
import { NearestOperator } from '../vectors/nearest-operator.ts';
import type { Facets, OutputBatch, OutputColumn, RowTaker } from '../planner-contract.ts';
import { runKeyed } from './keyed-plan.ts';
import { narrowedBelow, narrows, takesKeys } from '../passes/key-narrowing.ts';

export interface Scheduler {
  /** Resolves once other work had its turn (`turn-queue.ts` in production). */
  yield(): Promise<void>;
}

export interface ExecutorOptions {
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly timeoutMs: number;
  readonly resultRowsMax: number;
  /** Longest time without a turn for others. */
  readonly sliceMs: number;
}

export interface Result {
  readonly batches: readonly OutputBatch[];
  readonly rowCount: number;
  readonly facets: Facets | null;
}

/** The longest time before it first waits for its turn: several may begin in one round of the event loop. */
const firstSliceMs = 0.5;
const answerBatchRows = 8_192;
/** How often a query that waits for an index looks whether anybody still waits for it. */
const awaitLookMs = 100;
const countingBlockRows = 8_192;

type NodeKernels = readonly FilterKernels[] | KernelFilterKernels | KernelCache<FilterKernel> | ProjectKernels | null;

/** Kernels by node: compiled once, kept with the plan. */
export type PlanKernels = Map<PlanNode, NodeKernels>;

export interface RunRequest {
  readonly plan: LogicalPlan;
  readonly kernels: PlanKernels;
  readonly execution: Execution;
  readonly signal: AbortSignal | undefined;
  /** A long text: others get a turn between building its operators and running them. */
  readonly isLong: boolean;
  /** Monotonic milliseconds at which the query began: parsing counts. */
  readonly startedMs: number;
  /** Receives the rows while it can take them. */
  readonly taker: { readonly columns: readonly OutputColumn[]; readonly rows: RowTaker } | null;
}

/** Sets behind IN first, then the rows, then the facets: all under one clock and one account of memory. */
export async function run(options: ExecutorOptions, request: RunRequest): Promise<Result> {
  const { plan, kernels, execution } = request;
  const planDriver = new PlanDriver(options, request);
  const keyedAnswer = request.taker === null ? runKeyed(plan, execution) : null;
  if (keyedAnswer !== null && keyedAnswer.rowCount <= options.resultRowsMax) return keyedAnswer;
  const { searches, waits } = aheadOf(plan);
  for (const node of searches) await planDriver.prepare(node);
  // A page begins behind its cursor; sets and facets are of everything.
  const wholeExecution = plan.subqueries.length > 0 || plan.facets ? { ...execution, after: null } : execution;
  for (const { root: rootOperator, as } of plan.subqueries) {
    if (as !== 'set') {
      const onlyCell = new SubqueryCell(rootOperator.columns[0]?.type ?? 'boolean', as);
      await planDriver.drain(buildOperator(rootOperator, kernels, wholeExecution), (operatorBatch) =>
        onlyCell.take(operatorBatch),
      );
      execution.kernels.addSubqueryResult(onlyCell.cell);
      continue;
    }
    const subquerySet = new SubquerySet();
    let heldBytes = 0;
    await planDriver.drain(buildOperator(rootOperator, kernels, wholeExecution), (operatorBatch) => {
      subquerySet.add(operatorBatch);
      heldBytes = execution.memory.change(heldBytes, subquerySet.bytes);
    });
    execution.kernels.addSubquerySet(subquerySet);
  }
  const answerOutput = new AnswerOutput(options.resultRowsMax, request);
  const preparedExecution = waits ? await prepareRoot(plan.root, request) : execution;
  const root = buildOperator(plan.root, kernels, preparedExecution);
  if (request.isLong) await options.scheduler.yield();
  const drainTurns = planDriver.drain(root, (operatorBatch) => answerOutput.append(operatorBatch));
  if (drainTurns) await drainTurns;
  const answerFacets = plan.facets && (await countFacets(planDriver, plan.facets.root, { kernels, execution: wholeExecution }));
  const { batches, rowCount } = answerOutput.finish();
  return { batches, rowCount, facets: answerFacets };
}

/** Things that a plan has to await before it runs, cached by plan: a plan may run ten thousand times a second. */
interface PlanAhead {
  readonly searches: readonly SearchNode[];
  readonly waits: boolean;
}

const aheadByPlan = new WeakMap<LogicalPlan, PlanAhead>();

function aheadOf(plan: LogicalPlan): PlanAhead {
  let planAhead = aheadByPlan.get(plan);
  if (planAhead === undefined) {
    const searchNodes = nodesOf(plan).filter((node) => node.kind === 'search');
    planAhead = { searches: searchNodes, waits: functionIn(plan.root) !== null || nearestIn(plan.root) !== null };
    aheadByPlan.set(plan, planAhead);
  }
  return planAhead;
}

/** Runs a plan over a few given rows within one turn. */
export function runAtOnce(plan: LogicalPlan, execution: Execution): readonly OutputBatch[] {
  const answerOutput = new AnswerOutput(Infinity, { plan, execution, taker: null });
  const rootOperator = buildOperator(plan.root, new Map(), execution);
  try {
    for (let operatorBatch = rootOperator.next(); operatorBatch !== null; operatorBatch = rootOperator.next())
      if (operatorBatch.count > 0) answerOutput.append(operatorBatch);
  } finally {
    rootOperator.close();
  }
  return answerOutput.finish().batches;
}

/** Awaits what a table function needs before its operator is built. */
async function prepareRoot(root: PlanNode, { execution, signal }: RunRequest): Promise<Execution> {
  const functionNode = functionIn(root);
  if (functionNode === null) {
    const nearestNode = nearestIn(root);
    return nearestNode === null ? execution : { ...execution, prepared: await prepareNearest(nearestNode, execution) };
  }
  const tableFunction = calledFunctionOf(functionNode);
  if (!tableFunction.prepare) return execution;
  return {
    ...execution,
    prepared: await tableFunction.prepare({ node: functionNode, values: new Values(functionNode.values), execution }, signal),
  };
}

/** A table function stands alone: it is all that a statement reads. */
function functionIn(node: PlanNode): FunctionNode | null {
  if (node.kind === 'function') return node;
  const [onlyInput, ...otherInputs] = inputsOf(node);
  return onlyInput && otherInputs.length === 0 ? functionIn(onlyInput) : null;
}

/** The projection that ranks the rows of one type by a distance, where the statement reads nothing else. */
function nearestIn(node: PlanNode): ProjectNode | null {
  if (node.kind === 'project' && node.nearest && node.input.kind === 'scan') return node;
  const [onlyInput, ...otherInputs] = inputsOf(node);
  return onlyInput && otherInputs.length === 0 ? nearestIn(onlyInput) : null;
}

function nearInput({ input }: ProjectNode, execution: Execution): Operator | null {
  const preparedNear = execution.prepared as Near | null | undefined;
  if (!preparedNear || input.kind !== 'scan') return null;
  return new ScanOperator(input, execution, 0, { placed: true, candidates: preparedNear.candidates });
}

function calledFunctionOf({ name }: FunctionNode): TableFunction {
  const known = tableFunction(name);
  assert(known, 'a plan calls functions that there are');
  return known;
}

/** The value of a subquery of at most one row, or whether it has any row. */
class SubqueryCell {
  readonly #subqueryType: ColumnType;
  readonly #subqueryUse: 'scalar' | 'exists';
  #subqueryRows = 0;
  #subqueryCell: Cell = null;

  constructor(type: ColumnType, as: 'scalar' | 'exists') {
    this.#subqueryType = type;
    this.#subqueryUse = as;
  }

  get cell(): Cell {
    return this.#subqueryUse === 'exists' ? this.#subqueryRows > 0 : this.#subqueryCell;
  }

  /** False once it needs no more rows. */
  take({ columns, selection, first, count }: Batch): boolean {
    this.#subqueryRows += count;
    if (this.#subqueryUse === 'exists') return false;
    if (this.#subqueryRows > 1) throw secondRow();
    const firstCell = cellAt(columns[0]!, this.#subqueryType, selection ? selection[0]! : first);
    this.#subqueryCell = firstCell instanceof Float32Array ? vectorText(firstCell) : firstCell;
    return true;
  }
}

/** Pulls operators, gives others a turn in between, and looks whether anybody still waits. */
class PlanDriver {
  readonly #executorOptions: ExecutorOptions;
  readonly #runRequest: RunRequest;
  #driverSliceStart: number;

  constructor(options: ExecutorOptions, request: RunRequest) {
    this.#executorOptions = options;
    this.#runRequest = request;
    checkSignal(request.signal);
    const now = options.clock.monotonicMs();
    checkTime(now, request, options);
    this.#driverSliceStart = now - (options.sliceMs - firstSliceMs);
  }

  /** Takes batches until there are none, or until one is enough; null where it finished without giving others a turn. */
  drain(rootOperator: Operator, takeBatch: (batch: Batch) => boolean | void): Promise<void> | null {
    let drainTurn: Promise<void> | null = null;
    try {
      drainTurn = this.#pullBatches(rootOperator, takeBatch);
    } finally {
      if (drainTurn === null) rootOperator.close();
    }
    return drainTurn && this.#drainAcrossTurns(rootOperator, takeBatch, drainTurn);
  }

  async #drainAcrossTurns(
    rootOperator: Operator,
    takeBatch: (batch: Batch) => boolean | void,
    firstTurn: Promise<void>,
  ): Promise<void> {
    try {
      for (
        let drainTurn: Promise<void> | null = firstTurn;
        drainTurn !== null;
        drainTurn = this.#pullBatches(rootOperator, takeBatch)
      )
        await drainTurn;
    } finally {
      rootOperator.close();
    }
  }

  /** Takes batches until others are due, or there is nothing more to take: null. */
  #pullBatches(rootOperator: Operator, takeBatch: (operatorBatch: Batch) => boolean | void): Promise<void> | null {
    for (let operatorBatch = rootOperator.next(); operatorBatch !== null; operatorBatch = rootOperator.next()) {
      if (operatorBatch.count > 0 && takeBatch(operatorBatch) === false) return null;
      const dueTurn = this.#turnWhenDue();
      if (dueTurn) return dueTurn;
    }
    return null;
  }

  /** Until what an operator waits for is there. */
  async #awaitKernel(until: Promise<void>): Promise<void> {
    const { clock } = this.#executorOptions;
    let isKernelReady = false;
    const awaitOver = new AbortController();
    const kernelReady = until.then(() => {
      isKernelReady = true;
      awaitOver.abort();
    });
    while (!isKernelReady) {
      await Promise.race([kernelReady, clock.sleep(awaitLookMs, awaitOver.signal)]);
      checkSignal(this.#runRequest.signal);
      checkTime(clock.monotonicMs(), this.#runRequest, this.#executorOptions);
    }
    this.#runRequest.execution.wait.until = null;
    this.#driverSliceStart = clock.monotonicMs();
  }

  /**
   * Waits for indexes that are being made beside the event loop, or uses those that are ready; the making continues in any case.
   */
  async prepare({ input, matches, required }: SearchNode): Promise<void> {
    const { execution } = this.#runRequest;
    const matchedColumns = [...new Set(matches.flatMap((match) => match.columns))].map((column) => input.columns[column]!.name);
    const indexPreparation = execution.snapshot.rows.prepare?.(input.type, matchedColumns);
    if (!indexPreparation) return;
    // Rows that may come without a match can't be left out.
    if (execution.consistency === 'eventual' && required.length > 0) {
      execution.unbuilt.add(input.type);
      return;
    }
    const { clock } = this.#executorOptions;
    let isReady = false;
    const preparationOver = new AbortController();
    const indexReady = indexPreparation.ready.then(() => {
      isReady = true;
      preparationOver.abort();
    });
    while (!isReady) {
      await Promise.race([indexReady, clock.sleep(awaitLookMs, preparationOver.signal)]);
      checkSignal(this.#runRequest.signal);
      if (isReady || clock.monotonicMs() - this.#runRequest.startedMs <= this.#executorOptions.timeoutMs) continue;
      const { done, of } = indexPreparation.progress();
      // In steps of ten percent: a number of blocks would reveal hidden rows.
      const indexProgress = `${Math.floor((done * 10) / of) * 10} % of ${input.type} are indexed`;
      throw new ServiceError(
        'REL_TIMEOUT',
        `the texts are being indexed for the first time: ${indexProgress} so far; ask again later`,
      );
    }
    this.#driverSliceStart = clock.monotonicMs();
  }

  /** Work in bounded steps, to its result. */
  async finish<T>(work: Generator<undefined, T, void>): Promise<T> {
    for (;;) {
      const workStep = work.next();
      if (workStep.done) return workStep.value;
      const dueTurn = this.#turnWhenDue();
      if (dueTurn) await dueTurn;
    }
  }

  /** A promise where others are due; most of the time there is none to wait for. */
  #turnWhenDue(): Promise<void> | null {
    const { until } = this.#runRequest.execution.wait;
    if (until !== null) return this.#awaitKernel(until);
    const now = this.#executorOptions.clock.monotonicMs();
    if (now - this.#driverSliceStart < this.#executorOptions.sliceMs) return null;
    checkTime(now, this.#runRequest, this.#executorOptions);
    return this.#yieldSlice();
  }

  async #yieldSlice(): Promise<void> {
    await this.#executorOptions.scheduler.yield();
    checkSignal(this.#runRequest.signal);
    this.#driverSliceStart = this.#executorOptions.clock.monotonicMs();
    checkTime(this.#driverSliceStart, this.#runRequest, this.#executorOptions);
  }
}

/** Counts the first rows of the matching set, of a page like of the whole. */
async function countFacets(
  driver: PlanDriver,
  root: PlanNode,
  { kernels, execution }: Pick<RunRequest, 'kernels' | 'execution'>,
): Promise<Facets> {
  const facetCounter = new FacetCounter(root.columns, execution.memory);
  await driver.drain(buildOperator(root, kernels, execution), (batch) => facetCounter.add(batch));
  return driver.finish(facetCounter.finish());
}

/** Compiles the kernels of a node once, for all executions and rounds of a recursion. */
function nodeKernelsOf<K extends NodeKernels>(kernels: PlanKernels, node: PlanNode, makeKernels: () => K): K {
  let nodeKernels = kernels.get(node);
  if (nodeKernels === undefined) kernels.set(node, (nodeKernels = makeKernels()));
  // A node has one kind, and each kind one sort of kernels.
  return nodeKernels as K;
}

/** Inside the step of a recursion: what stays the same from round to round, by node. */
interface RecursionRounds {
  readonly table: string;
  readonly cache: Map<PlanNode, RecursionCache>;
}

/**
 * `rowsAtOnce` is how many rows of a scan the node above takes in one block, where that is more than usual; `narrowings` are keys
 * that rows must have to be of use above.
 */
function buildOperator(
  node: PlanNode,
  kernels: PlanKernels,
  execution: Execution,
  recursionRounds: RecursionRounds | null = null,
  rowsAtOnce = 0,
  narrowings: readonly Narrowing[] = [],
): Operator {
  if (recursionRounds && !readsWorkingTable(node, recursionRounds.table)) {
    let keptRows = recursionRounds.cache.get(node);
    if (!keptRows) recursionRounds.cache.set(node, (keptRows = new RecursionCache(node.columns, execution)));
    return keptRows.reader(() => buildOperator(node, kernels, execution));
  }
  const nodeOperator = operatorOf(node, kernels, execution, recursionRounds, rowsAtOnce, narrowings);
  return execution.watch === null ? nodeOperator : execution.watch.around(node, nodeOperator);
}

function operatorOf(
  node: PlanNode,
  kernels: PlanKernels,
  execution: Execution,
  recursionRounds: RecursionRounds | null,
  rowsAtOnce: number,
  narrowings: readonly Narrowing[],
): Operator {
  const buildInput = (input: PlanNode, rows = 0, more: readonly Narrowing[] = []): Operator => {
    const narrowingsBelow = narrowings.length === 0 ? more : [...more, ...narrowedInput(node, input, narrowings)];
    return buildOperator(input, kernels, execution, recursionRounds, rows, narrowingsBelow);
  };
  const narrowOperator = (operator: Operator): Operator =>
    narrowings.length === 0 ? operator : new NarrowedOperator(operator, narrowings);
  switch (node.kind) {
    case 'scan':
      if (rowsAtOnce === 0) return narrowOperator(new ScanOperator(node, execution, 0, {}, narrowings));
      return narrowOperator(
        new KernelFilterOperator(new ScanOperator(node, execution, rowsAtOnce, {}, narrowings), noConditions, execution),
      );
    case 'search':
      return new SearchOperator(node, execution);
    case 'values':
      return new ValuesOperator(node, execution);
    case 'virtual':
      return narrowOperator(new VirtualOperator(node, execution, narrowings));
    case 'spread':
      return new SpreadOperator(buildInput(node.input), node, execution);
    case 'working':
      return new WorkingOperator(node, execution);
    case 'filter': {
      if (node.input.kind !== 'scan' || !filtersByKernel(node))
        return filterOperator(node, buildInput(node.input), kernels, execution);
      const nodeKernels = nodeKernelsOf(kernels, node, () => kernelFilterKernels(node));
      const scan = new ScanOperator(node.input, execution, rowsAtOnce, {}, narrowings);
      return narrowOperator(new KernelFilterOperator(scan, nodeKernels, execution));
    }
    case 'project': {
      const near = node.nearest ? (nearInput(node, execution) ?? buildInput(node.input)) : null;
      const input = near ? new NearestOperator(near, node.nearest!, execution) : buildInput(node.input, rowsAtOnce);
      return new ProjectOperator(
        input,
        node,
        nodeKernelsOf(kernels, node, () => projectKernels(node)),
        execution,
      );
    }
    case 'aggregate':
      return new AggregateOperator(
        buildInput(node.input, aggregatesByKernel(node) ? execution.limits.kernelRows : 0),
        node,
        execution,
      );
    case 'distinct':
      return new DistinctOperator(buildInput(node.input), node, execution);
    case 'sort':
      return new SortOperator(buildInput(node.input), node, execution);
    case 'limit':
      return limitOperator(node, buildInput(node.input), kernels, execution);
    case 'skip':
      return new SkipOperator(buildInput(node.input), node, execution);
    case 'number':
      return new NumberOperator(buildInput(node.input));
    case 'over':
      return new OverOperator(buildInput(node.input), node, execution);
    case 'apply':
      throw new AssertionError('queries that name others are joins by now');
    case 'window':
      return windowOperator(buildInput(node.input), node, execution);
    case 'join':
      return joinOperator(node, buildInput, kernels, execution);
    case 'set-operation':
      return new SetOperationOperator(buildInput(node.left), buildInput(node.right), node, execution);
    case 'function':
      return functionOperator(node, node.input && buildInput(node.input), kernels, execution, narrowings);
    case 'recursive':
      return recursiveOperator(node, buildInput(node.base), kernels, execution);
  }
}

/** One operator for each part of a condition of very many. */
function filterOperator(node: FilterNode, input: Operator, kernels: PlanKernels, execution: Execution): Operator {
  return nodeKernelsOf(kernels, node, () => filterKernels(node)).reduce<Operator>(
    (below, kernelsOfPart) => new FilterOperator(below, kernelsOfPart, execution),
    input,
  );
}

/** Counts matches behind the limit on the node's input, opened once more. */
function limitOperator(node: LimitNode, input: Operator, kernels: PlanKernels, execution: Execution): Operator {
  return new LimitOperator({
    input,
    node,
    execution,
    countAfter: (after, rowsMax) => {
      const limits = { ...execution.limits, blockRows: countingBlockRows };
      const counting = { after, rowsMax, limits, watch: null };
      return buildOperator(node.counting ?? node.input, kernels, { ...execution, ...counting });
    },
  });
}

function joinOperator(
  node: JoinNode,
  build: (input: PlanNode, rows: number, more: readonly Narrowing[]) => Operator,
  kernels: PlanKernels,
  execution: Execution,
): Operator {
  const residual = nodeKernelsOf(kernels, node, () => joinKernels(node));
  const leftKeys = joinKeyFilters(node, 'left');
  const rightKeys = joinKeyFilters(node, 'right');
  const [left, right] = [build(node.left, 0, leftKeys), build(node.right, 0, rightKeys)];
  return new JoinOperator({ left, right, node, residual, narrowings: [...leftKeys, ...rightKeys], execution });
}

function functionOperator(
  node: FunctionNode,
  input: Operator | null,
  kernels: PlanKernels,
  execution: Execution,
  narrowings: readonly Narrowing[],
): Operator {
  // A function is about one instant, wherever it stands.
  const then = node.graph ? { ...execution, time: timeOfOneInstant(execution) } : execution;
  const edges = (node.graph?.edges ?? []).map((scan) => (more: readonly Narrowing[] = []) => {
    const all = narrowings.length === 0 ? more : [...more, ...narrowedInput(node, scan, narrowings)];
    return buildOperator(scan, kernels, { ...then, distinct: true }, null, 0, all);
  });
  const { prepared } = execution;
  return calledFunctionOf(node).open({ node, values: new Values(node.values), input, edges, execution: then, prepared });
}

function recursiveOperator(node: RecursiveNode, base: Operator, kernels: PlanKernels, execution: Execution): Operator {
  const own: RecursionRounds = { table: node.table, cache: new Map() };
  return new RecursiveOperator({
    base,
    step: (rows) => {
      const working = new Map([...execution.working, [node.table, rows]]);
      return buildOperator(node.step, kernels, { ...execution, working }, own);
    },
    node,
    execution,
  });
}

/** As `binder.ts` has it for statements about a function: now, on each axis that is not named. */
function timeOfOneInstant({ time: { system, valid }, kernels: { instant } }: Execution): Execution['time'] {
  const systemInstant = system === 'all' ? instant : system;
  return { system: systemInstant, valid: valid === 'all' ? systemInstant : valid };
}

/** The narrowings of an input that follow from those of its node. */
function narrowedInput(node: PlanNode, input: PlanNode, narrowings: readonly Narrowing[]): Narrowing[] {
  const i = inputsOf(node).indexOf(input);
  return narrowings.flatMap(({ column, filter }) =>
    narrowedBelow(node, i, column).map((columnBelow) => ({ column: columnBelow, filter })),
  );
}

/** A filter for each key of the join that a scan on one side can use, once the other side is read. */
function joinKeyFilters(node: JoinNode, side: 'left' | 'right'): JoinNarrowing[] {
  const isReadFirst =
    side === 'left' ? node.build === 'left' || node.leads === true : node.build === 'right' && node.leads !== true;
  if (isReadFirst || !narrows(node, side)) return [];
  const sideKeys = side === 'left' ? node.leftKeys : node.rightKeys;
  return sideKeys.flatMap((column, key) => (takesKeys(node[side], column) ? [{ column, key, filter: new KeyFilter() }] : []));
}

function readsWorkingTable(node: PlanNode, table: string): boolean {
  return node.kind === 'working' ? node.table === table : inputsOf(node).some((input) => readsWorkingTable(input, table));
}

function checkSignal(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new ServiceError('REL_CANCELLED', 'the caller went away');
}

function checkTime(nowMs: number, request: RunRequest, options: ExecutorOptions): void {
  if (nowMs - request.startedMs <= options.timeoutMs) return;
  throw new ServiceError('REL_TIMEOUT', `the query ran longer than ${options.timeoutMs} ms`);
}

/** Copies what leaves: batches belong to operators and store, the answer outlives both. */
class AnswerOutput {
  readonly #answerRowsMax: number;
  readonly #outputRequest: Pick<RunRequest, 'plan' | 'execution' | 'taker'>;
  readonly #outputExecution: Execution;
  readonly #answerBatches: OutputBatch[] = [];
  /** Null once it takes no more rows. */
  #rowTaker: RunRequest['taker'];
  #takenBytes = 0;
  /** Takes the rows since the last batch; null before the first. */
  #rowSink: RowSink | null = null;
  #rowCount = 0;
  #heldBytesBefore = 0;
  #heldBytes = 0;

  constructor(rowsMax: number, request: Pick<RunRequest, 'plan' | 'execution' | 'taker'>) {
    this.#answerRowsMax = rowsMax;
    this.#outputRequest = request;
    this.#outputExecution = request.execution;
    this.#rowTaker = request.taker;
  }

  append(batch: Batch): void {
    this.#rowCount += batch.count;
    if (this.#rowCount > this.#answerRowsMax) {
      throw new ServiceError(
        'REL_RESULT_CAP',
        `the result has more than ${this.#answerRowsMax} rows; LIMIT and AFTER page through it`,
      );
    }
    if (this.#rowTaker !== null) {
      const { columns, rows } = this.#rowTaker;
      if (rows.take(columns, batch)) {
        this.#takenBytes = this.#outputExecution.memory.change(this.#takenBytes, rows.bytes);
        return;
      }
      this.#rowTaker = null;
    }
    const rowSink = (this.#rowSink ??= this.#newSink(null));
    rowSink.append(batch);
    this.#heldBytes = this.#outputExecution.memory.change(this.#heldBytes, this.#heldBytesBefore + rowSink.bytes);
    if (rowSink.length >= answerBatchRows) this.#flushSink(rowSink);
  }

  finish(): Omit<Result, 'facets'> {
    if (this.#rowSink !== null && this.#rowSink.length > 0) this.#flushSink(this.#rowSink);
    return { batches: this.#answerBatches, rowCount: this.#rowCount };
  }

  #flushSink(fullSink: RowSink): void {
    const columns: Vector[] = fullSink.vectors();
    this.#answerBatches.push({ columns, selection: null, first: 0, count: fullSink.length });
    this.#heldBytesBefore = this.#heldBytes;
    this.#rowSink = this.#newSink(fullSink);
  }

  #newSink(previousSink: RowSink | null): RowSink {
    const answerTypes = this.#outputRequest.plan.root.columns.map(({ type }) => type);
    return new RowSink(answerTypes, null, previousSink);
  }
}
