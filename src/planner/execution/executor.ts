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
const outputRows = 8_192;
/** How often a query that waits for an index looks whether anybody still waits for it. */
const lookMs = 100;
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
  const driver = new Driver(options, request);
  const keyed = request.taker === null ? runKeyed(plan, execution) : null;
  if (keyed !== null && keyed.rowCount <= options.resultRowsMax) return keyed;
  const { searches, waits } = aheadOf(plan);
  for (const node of searches) await driver.prepare(node);
  // A page begins behind its cursor; sets and facets are of everything.
  const whole = plan.subqueries.length > 0 || plan.facets ? { ...execution, after: null } : execution;
  for (const { root, as } of plan.subqueries) {
    if (as !== 'set') {
      const only = new OnlyCell(root.columns[0]?.type ?? 'boolean', as);
      await driver.drain(buildOperator(root, kernels, whole), (batch) => only.take(batch));
      execution.kernels.addSubqueryResult(only.cell);
      continue;
    }
    const set = new SubquerySet();
    let heldBytes = 0;
    await driver.drain(buildOperator(root, kernels, whole), (batch) => {
      set.add(batch);
      heldBytes = execution.memory.change(heldBytes, set.bytes);
    });
    execution.kernels.addSubquerySet(set);
  }
  const output = new Output(options.resultRowsMax, request);
  const ready = waits ? await prepare(plan.root, request) : execution;
  const root = buildOperator(plan.root, kernels, ready);
  if (request.isLong) await options.scheduler.yield();
  const turns = driver.drain(root, (batch) => output.append(batch));
  if (turns) await turns;
  const facets = plan.facets && (await countFacets(driver, plan.facets.root, { kernels, execution: whole }));
  const { batches, rowCount } = output.finish();
  return { batches, rowCount, facets };
}

/** Things that a plan has to await before it runs, cached by plan: a plan may run ten thousand times a second. */
interface Ahead {
  readonly searches: readonly SearchNode[];
  readonly waits: boolean;
}

const known = new WeakMap<LogicalPlan, Ahead>();

function aheadOf(plan: LogicalPlan): Ahead {
  let ahead = known.get(plan);
  if (ahead === undefined) {
    const searches = nodesOf(plan).filter((node) => node.kind === 'search');
    ahead = { searches, waits: functionIn(plan.root) !== null || nearestIn(plan.root) !== null };
    known.set(plan, ahead);
  }
  return ahead;
}

/** Runs a plan over a few given rows within one turn. */
export function runAtOnce(plan: LogicalPlan, execution: Execution): readonly OutputBatch[] {
  const output = new Output(Infinity, { plan, execution, taker: null });
  const root = buildOperator(plan.root, new Map(), execution);
  try {
    for (let batch = root.next(); batch !== null; batch = root.next()) if (batch.count > 0) output.append(batch);
  } finally {
    root.close();
  }
  return output.finish().batches;
}

/** Awaits what a table function needs before its operator is built. */
async function prepare(root: PlanNode, { execution, signal }: RunRequest): Promise<Execution> {
  const node = functionIn(root);
  if (node === null) {
    const ranked = nearestIn(root);
    return ranked === null ? execution : { ...execution, prepared: await prepareNearest(ranked, execution) };
  }
  const tableFunction = functionOf(node);
  if (!tableFunction.prepare) return execution;
  return { ...execution, prepared: await tableFunction.prepare({ node, values: new Values(node.values), execution }, signal) };
}

/** A table function stands alone: it is all that a statement reads. */
function functionIn(node: PlanNode): FunctionNode | null {
  if (node.kind === 'function') return node;
  const [only, ...others] = inputsOf(node);
  return only && others.length === 0 ? functionIn(only) : null;
}

/** The projection that ranks the rows of one type by a distance, where the statement reads nothing else. */
function nearestIn(node: PlanNode): ProjectNode | null {
  if (node.kind === 'project' && node.nearest && node.input.kind === 'scan') return node;
  const [only, ...others] = inputsOf(node);
  return only && others.length === 0 ? nearestIn(only) : null;
}

function nearInput({ input }: ProjectNode, execution: Execution): Operator | null {
  const near = execution.prepared as Near | null | undefined;
  if (!near || input.kind !== 'scan') return null;
  return new ScanOperator(input, execution, 0, { placed: true, candidates: near.candidates });
}

function functionOf({ name }: FunctionNode): TableFunction {
  const known = tableFunction(name);
  assert(known, 'a plan calls functions that there are');
  return known;
}

/** The value of a subquery of at most one row, or whether it has any row. */
class OnlyCell {
  readonly #type: ColumnType;
  readonly #as: 'scalar' | 'exists';
  #rows = 0;
  #cell: Cell = null;

  constructor(type: ColumnType, as: 'scalar' | 'exists') {
    this.#type = type;
    this.#as = as;
  }

  get cell(): Cell {
    return this.#as === 'exists' ? this.#rows > 0 : this.#cell;
  }

  /** False once it needs no more rows. */
  take({ columns, selection, first, count }: Batch): boolean {
    this.#rows += count;
    if (this.#as === 'exists') return false;
    if (this.#rows > 1) throw secondRow();
    const cell = cellAt(columns[0]!, this.#type, selection ? selection[0]! : first);
    this.#cell = cell instanceof Float32Array ? vectorText(cell) : cell;
    return true;
  }
}

/** Pulls operators, gives others a turn in between, and looks whether anybody still waits. */
class Driver {
  readonly #options: ExecutorOptions;
  readonly #request: RunRequest;
  #sliceStart: number;

  constructor(options: ExecutorOptions, request: RunRequest) {
    this.#options = options;
    this.#request = request;
    checkSignal(request.signal);
    const now = options.clock.monotonicMs();
    checkTime(now, request, options);
    this.#sliceStart = now - (options.sliceMs - firstSliceMs);
  }

  /** Takes batches until there are none, or until one is enough; null where it finished without giving others a turn. */
  drain(root: Operator, take: (batch: Batch) => boolean | void): Promise<void> | null {
    let turn: Promise<void> | null = null;
    try {
      turn = this.#pull(root, take);
    } finally {
      if (turn === null) root.close();
    }
    return turn && this.#drainOn(root, take, turn);
  }

  async #drainOn(root: Operator, take: (batch: Batch) => boolean | void, due: Promise<void>): Promise<void> {
    try {
      for (let turn: Promise<void> | null = due; turn !== null; turn = this.#pull(root, take)) await turn;
    } finally {
      root.close();
    }
  }

  /** Takes batches until others are due, or there is nothing more to take: null. */
  #pull(root: Operator, take: (batch: Batch) => boolean | void): Promise<void> | null {
    for (let batch = root.next(); batch !== null; batch = root.next()) {
      if (batch.count > 0 && take(batch) === false) return null;
      const turn = this.#turn();
      if (turn) return turn;
    }
    return null;
  }

  /** Until what an operator waits for is there. */
  async #await(until: Promise<void>): Promise<void> {
    const { clock } = this.#options;
    let isOver = false;
    const over = new AbortController();
    const ready = until.then(() => {
      isOver = true;
      over.abort();
    });
    while (!isOver) {
      await Promise.race([ready, clock.sleep(lookMs, over.signal)]);
      checkSignal(this.#request.signal);
      checkTime(clock.monotonicMs(), this.#request, this.#options);
    }
    this.#request.execution.wait.until = null;
    this.#sliceStart = clock.monotonicMs();
  }

  /**
   * Waits for indexes that are being made beside the event loop, or uses those that are ready; the making continues in any case.
   */
  async prepare({ input, matches, required }: SearchNode): Promise<void> {
    const { execution } = this.#request;
    const columns = [...new Set(matches.flatMap((match) => match.columns))].map((column) => input.columns[column]!.name);
    const begun = execution.snapshot.rows.prepare?.(input.type, columns);
    if (!begun) return;
    // Rows that may come without a match can't be left out.
    if (execution.consistency === 'eventual' && required.length > 0) {
      execution.unbuilt.add(input.type);
      return;
    }
    const { clock } = this.#options;
    let isReady = false;
    const over = new AbortController();
    const ready = begun.ready.then(() => {
      isReady = true;
      over.abort();
    });
    while (!isReady) {
      await Promise.race([ready, clock.sleep(lookMs, over.signal)]);
      checkSignal(this.#request.signal);
      if (isReady || clock.monotonicMs() - this.#request.startedMs <= this.#options.timeoutMs) continue;
      const { done, of } = begun.progress();
      // In steps of ten percent: a number of blocks would reveal hidden rows.
      const texts = `${Math.floor((done * 10) / of) * 10} % of ${input.type} are indexed`;
      throw new ServiceError('REL_TIMEOUT', `the texts are being indexed for the first time: ${texts} so far; ask again later`);
    }
    this.#sliceStart = clock.monotonicMs();
  }

  /** Work in bounded steps, to its result. */
  async finish<T>(work: Generator<undefined, T, void>): Promise<T> {
    for (;;) {
      const step = work.next();
      if (step.done) return step.value;
      const turn = this.#turn();
      if (turn) await turn;
    }
  }

  /** A promise where others are due; most of the time there is none to wait for. */
  #turn(): Promise<void> | null {
    const { until } = this.#request.execution.wait;
    if (until !== null) return this.#await(until);
    const now = this.#options.clock.monotonicMs();
    if (now - this.#sliceStart < this.#options.sliceMs) return null;
    checkTime(now, this.#request, this.#options);
    return this.#yield();
  }

  async #yield(): Promise<void> {
    await this.#options.scheduler.yield();
    checkSignal(this.#request.signal);
    this.#sliceStart = this.#options.clock.monotonicMs();
    checkTime(this.#sliceStart, this.#request, this.#options);
  }
}

/** Counts the first rows of the matching set, of a page like of the whole. */
async function countFacets(
  driver: Driver,
  root: PlanNode,
  { kernels, execution }: Pick<RunRequest, 'kernels' | 'execution'>,
): Promise<Facets> {
  const counter = new FacetCounter(root.columns, execution.memory);
  await driver.drain(buildOperator(root, kernels, execution), (batch) => counter.add(batch));
  return driver.finish(counter.finish());
}

/** Compiles the kernels of a node once, for all executions and rounds of a recursion. */
function kernelsOf<K extends NodeKernels>(kernels: PlanKernels, node: PlanNode, make: () => K): K {
  let own = kernels.get(node);
  if (own === undefined) kernels.set(node, (own = make()));
  // A node has one kind, and each kind one sort of kernels.
  return own as K;
}

/** Inside the step of a recursion: what stays the same from round to round, by node. */
interface Rounds {
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
  rounds: Rounds | null = null,
  rowsAtOnce = 0,
  narrowings: readonly Narrowing[] = [],
): Operator {
  if (rounds && !readsWorking(node, rounds.table)) {
    let rows = rounds.cache.get(node);
    if (!rows) rounds.cache.set(node, (rows = new RecursionCache(node.columns, execution)));
    return rows.reader(() => buildOperator(node, kernels, execution));
  }
  const operator = operatorOf(node, kernels, execution, rounds, rowsAtOnce, narrowings);
  return execution.watch === null ? operator : execution.watch.around(node, operator);
}

function operatorOf(
  node: PlanNode,
  kernels: PlanKernels,
  execution: Execution,
  rounds: Rounds | null,
  rowsAtOnce: number,
  narrowings: readonly Narrowing[],
): Operator {
  const build = (input: PlanNode, rows = 0, more: readonly Narrowing[] = []): Operator => {
    const below = narrowings.length === 0 ? more : [...more, ...narrowedInput(node, input, narrowings)];
    return buildOperator(input, kernels, execution, rounds, rows, below);
  };
  const narrow = (operator: Operator): Operator =>
    narrowings.length === 0 ? operator : new NarrowedOperator(operator, narrowings);
  switch (node.kind) {
    case 'scan':
      if (rowsAtOnce === 0) return narrow(new ScanOperator(node, execution, 0, {}, narrowings));
      return narrow(
        new KernelFilterOperator(new ScanOperator(node, execution, rowsAtOnce, {}, narrowings), noConditions, execution),
      );
    case 'search':
      return new SearchOperator(node, execution);
    case 'values':
      return new ValuesOperator(node, execution);
    case 'virtual':
      return narrow(new VirtualOperator(node, execution, narrowings));
    case 'spread':
      return new SpreadOperator(build(node.input), node, execution);
    case 'working':
      return new WorkingOperator(node, execution);
    case 'filter': {
      if (node.input.kind !== 'scan' || !filtersByKernel(node))
        return filterOperator(node, build(node.input), kernels, execution);
      const own = kernelsOf(kernels, node, () => kernelFilterKernels(node));
      const scan = new ScanOperator(node.input, execution, rowsAtOnce, {}, narrowings);
      return narrow(new KernelFilterOperator(scan, own, execution));
    }
    case 'project': {
      const near = node.nearest ? (nearInput(node, execution) ?? build(node.input)) : null;
      const input = near ? new NearestOperator(near, node.nearest!, execution) : build(node.input, rowsAtOnce);
      return new ProjectOperator(
        input,
        node,
        kernelsOf(kernels, node, () => projectKernels(node)),
        execution,
      );
    }
    case 'aggregate':
      return new AggregateOperator(
        build(node.input, aggregatesByKernel(node) ? execution.limits.kernelRows : 0),
        node,
        execution,
      );
    case 'distinct':
      return new DistinctOperator(build(node.input), node, execution);
    case 'sort':
      return new SortOperator(build(node.input), node, execution);
    case 'limit':
      return limitOperator(node, build(node.input), kernels, execution);
    case 'skip':
      return new SkipOperator(build(node.input), node, execution);
    case 'number':
      return new NumberOperator(build(node.input));
    case 'over':
      return new OverOperator(build(node.input), node, execution);
    case 'apply':
      throw new AssertionError('queries that name others are joins by now');
    case 'window':
      return windowOperator(build(node.input), node, execution);
    case 'join':
      return joinOperator(node, build, kernels, execution);
    case 'set-operation':
      return new SetOperationOperator(build(node.left), build(node.right), node, execution);
    case 'function':
      return functionOperator(node, node.input && build(node.input), kernels, execution, narrowings);
    case 'recursive':
      return recursiveOperator(node, build(node.base), kernels, execution);
  }
}

/** One operator for each part of a condition of very many. */
function filterOperator(node: FilterNode, input: Operator, kernels: PlanKernels, execution: Execution): Operator {
  return kernelsOf(kernels, node, () => filterKernels(node)).reduce<Operator>(
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
  const residual = kernelsOf(kernels, node, () => joinKernels(node));
  const leftKeys = keyFilters(node, 'left');
  const rightKeys = keyFilters(node, 'right');
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
  const then = node.graph ? { ...execution, time: oneInstant(execution) } : execution;
  const edges = (node.graph?.edges ?? []).map((scan) => (more: readonly Narrowing[] = []) => {
    const all = narrowings.length === 0 ? more : [...more, ...narrowedInput(node, scan, narrowings)];
    return buildOperator(scan, kernels, { ...then, distinct: true }, null, 0, all);
  });
  const { prepared } = execution;
  return functionOf(node).open({ node, values: new Values(node.values), input, edges, execution: then, prepared });
}

function recursiveOperator(node: RecursiveNode, base: Operator, kernels: PlanKernels, execution: Execution): Operator {
  const own: Rounds = { table: node.table, cache: new Map() };
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
function oneInstant({ time: { system, valid }, kernels: { instant } }: Execution): Execution['time'] {
  const known = system === 'all' ? instant : system;
  return { system: known, valid: valid === 'all' ? known : valid };
}

/** The narrowings of an input that follow from those of its node. */
function narrowedInput(node: PlanNode, input: PlanNode, narrowings: readonly Narrowing[]): Narrowing[] {
  const i = inputsOf(node).indexOf(input);
  return narrowings.flatMap(({ column, filter }) => narrowedBelow(node, i, column).map((below) => ({ column: below, filter })));
}

/** A filter for each key of the join that a scan on one side can use, once the other side is read. */
function keyFilters(node: JoinNode, side: 'left' | 'right'): JoinNarrowing[] {
  const isFirst = side === 'left' ? node.build === 'left' || node.leads === true : node.build === 'right' && node.leads !== true;
  if (isFirst || !narrows(node, side)) return [];
  const keys = side === 'left' ? node.leftKeys : node.rightKeys;
  return keys.flatMap((column, key) => (takesKeys(node[side], column) ? [{ column, key, filter: new KeyFilter() }] : []));
}

function readsWorking(node: PlanNode, table: string): boolean {
  return node.kind === 'working' ? node.table === table : inputsOf(node).some((input) => readsWorking(input, table));
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
  readonly #rowsMax: number;
  readonly #request: Pick<RunRequest, 'plan' | 'execution' | 'taker'>;
  readonly #execution: Execution;
  readonly #batches: OutputBatch[] = [];
  /** Null once it takes no more rows. */
  #taker: RunRequest['taker'];
  #taken = 0;
  /** Takes the rows since the last batch; null before the first. */
  #sink: RowSink | null = null;
  #rowCount = 0;
  #heldBefore = 0;
  #heldBytes = 0;

  constructor(rowsMax: number, request: Pick<RunRequest, 'plan' | 'execution' | 'taker'>) {
    this.#rowsMax = rowsMax;
    this.#request = request;
    this.#execution = request.execution;
    this.#taker = request.taker;
  }

  append(batch: Batch): void {
    this.#rowCount += batch.count;
    if (this.#rowCount > this.#rowsMax) {
      throw new ServiceError('REL_RESULT_CAP', `the result has more than ${this.#rowsMax} rows; LIMIT and AFTER page through it`);
    }
    if (this.#taker !== null) {
      const { columns, rows } = this.#taker;
      if (rows.take(columns, batch)) {
        this.#taken = this.#execution.memory.change(this.#taken, rows.bytes);
        return;
      }
      this.#taker = null;
    }
    const sink = (this.#sink ??= this.#newSink(null));
    sink.append(batch);
    this.#heldBytes = this.#execution.memory.change(this.#heldBytes, this.#heldBefore + sink.bytes);
    if (sink.length >= outputRows) this.#flush(sink);
  }

  finish(): Omit<Result, 'facets'> {
    if (this.#sink !== null && this.#sink.length > 0) this.#flush(this.#sink);
    return { batches: this.#batches, rowCount: this.#rowCount };
  }

  #flush(sink: RowSink): void {
    const columns: Vector[] = sink.vectors();
    this.#batches.push({ columns, selection: null, first: 0, count: sink.length });
    this.#heldBefore = this.#heldBytes;
    this.#sink = this.#newSink(sink);
  }

  #newSink(like: RowSink | null): RowSink {
    const types = this.#request.plan.root.columns.map(({ type }) => type);
    return new RowSink(types, null, like);
  }
}
