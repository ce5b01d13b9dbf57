/**
 * Runs a function over the graph: reads the caller's graph through the usual scans or takes a cached one, runs the algorithm in
 * steps, and yields its rows in order.
 */
import type { Vector } from '../../log/values/columns.ts';
import type { WorkerKeeper } from '../../log/threads/worker-keeper.ts';
import { VectorBuilder } from '../../log/values/vector-builder.ts';
import type { Opening } from '../calls/table-function.ts';
import { type Batch, emptyBatch, type Operator } from '../operators/operator.ts';
import type { Location } from '../syntax/statement.ts';
import { besideLoop } from './worker-task.ts';
import { type Answered, answerCall, type CallArguments, countedCall, type Work } from './counted-call.ts';
import { EdgeInstants } from './edge-instants.ts';
import type { Graph, NodeTexts } from './graph.ts';
import type { GraphAlgorithm, GraphCall, GraphRows, State } from './graph-algorithm.ts';
import { graphJob, type GraphRequest } from './algorithm-worker.ts';
import { GraphReader } from './graph-reader.ts';
import { looksOfScan } from './graph-limits.ts';
import type { Steps } from './stepped-sort.ts';
import { startingState } from './warm-start.ts';

const graphOutputRows = 1_024;

export class GraphOperator implements Operator {
  readonly #graphAlgorithm: GraphAlgorithm;
  readonly #graphOpening: Opening;
  readonly #graphReader: GraphReader;
  readonly #graphBatches: Generator<Batch, void>;
  readonly #graphWork: Work = { looks: 0, heldBytes: 0 };
  /** Aborted once the result of a worker is no longer wanted. */
  readonly #cancelled = new AbortController();

  constructor(graphAlgorithm: GraphAlgorithm, graphOpening: Opening) {
    this.#graphAlgorithm = graphAlgorithm;
    this.#graphOpening = graphOpening;
    this.#graphReader = new GraphReader(graphOpening);
    this.#graphBatches = this.#runGraph();
  }

  next(): Batch | null {
    const graphBatch = this.#graphBatches.next();
    return graphBatch.done ? null : graphBatch.value;
  }

  close(): void {
    this.#cancelled.abort();
    this.#graphReader.close();
  }

  *#runGraph(): Generator<Batch, void> {
    const { execution, node } = this.#graphOpening;
    const isGraphErased = execution.snapshot.erasing(this.#graphReader.graphSource?.types ?? []);
    const graph = yield* graphInTurns(this.#graphReader.graph(), () => this.#tickLongWork());
    const callArguments = this.#graphCallArguments();
    const warmStart = yield* graphInTurns(this.#warmStart(graph, callArguments), () => this.#tickLongWork());
    const { rows: graphRows, order: rowOrder } = yield* this.#answerGraph(graph, { ...callArguments, start: warmStart });
    this.#keepWarmState(graph, callArguments, graphRows, isGraphErased);
    if (node.limit !== null) execution.counters.hits += graphRows.count;
    yield* this.#outputGraphRows(graph, graphRows, rowOrder);
    this.#graphWork.heldBytes = execution.memory.change(this.#graphWork.heldBytes, 0);
  }

  *#warmStart(graph: Graph, callArguments: CallArguments): Steps<State | null> {
    const { consistency, counters, notices } = this.#graphOpening.execution;
    const { graphs } = this.#graphOpening.execution.services;
    const { graphSource } = this.#graphReader;
    if (consistency !== 'eventual' || graphSource === null || this.#graphAlgorithm.warm === undefined) return null;
    const warmGraph = graphs.warm(graphSource, this.#warmNameOf(callArguments));
    const warmStart = warmGraph && (yield* startingState(this.#graphAlgorithm, warmGraph, graph));
    if (warmStart === null || this.#graphAlgorithm.warm === 'components') return warmStart;
    counters.warm++;
    notices.push(
      `${callArguments.algorithm} went on from what an earlier answer came to: ask for strong consistency to have it begin anew`,
    );
    return warmStart;
  }

  #keepWarmState(graph: Graph, callArguments: CallArguments, { state }: GraphRows, isGraphErased: () => boolean): void {
    const { graphSource } = this.#graphReader;
    if (graphSource === null || this.#graphAlgorithm.warm === undefined || state === undefined) return;
    this.#graphOpening.execution.services.graphs.keepWarm(
      graphSource,
      this.#warmNameOf(callArguments),
      state,
      graph,
      isGraphErased,
    );
  }

  /** Calls with equal names have equal results. */
  #warmNameOf({ choices, values }: CallArguments): string {
    return JSON.stringify([this.#graphAlgorithm.warm, [...choices], [...values]]);
  }

  /** Runs here while it is little work; longer work starts again in a worker. */
  *#answerGraph(graph: Graph, callArguments: CallArguments): Generator<Batch, Answered> {
    const { counters, memory } = this.#graphOpening.execution;
    const { beside: graphBeside } = this.#graphOpening.execution.services;
    const graphWork = this.#graphWork;
    const earlierLooks = counters.looks;
    // An algorithm over a whole graph with this many edges goes to a worker.
    if (graphBeside !== null && this.#graphAlgorithm.about === 'typed' && graph.edges > graphBeside.looksMin)
      return yield* this.#runInWorker(graphBeside.workers, graph, callArguments, earlierLooks);
    const answerSteps = answerCall(this.#graphAlgorithm, graph, countedCall(callArguments, graphWork, memory), graphWork);
    for (let answerStep = answerSteps.next(); ; answerStep = answerSteps.next()) {
      counters.looks = earlierLooks + graphWork.looks;
      if (answerStep.done) return answerStep.value;
      this.#tickLongWork();
      yield emptyBatch;
      if (graphBeside === null || graphWork.looks <= graphBeside.looksMin) continue;
      graphWork.heldBytes = memory.change(graphWork.heldBytes, 0);
      return yield* this.#runInWorker(graphBeside.workers, graph, callArguments, earlierLooks);
    }
  }

  *#runInWorker(workers: WorkerKeeper, graph: Graph, call: CallArguments, earlierLooks: number): Generator<Batch, Answered> {
    const { counters, memory, wait } = this.#graphOpening.execution;
    const { out, in: into, systemFrom, linkOf, links, weights } = graph;
    const namedNodes = new Map(
      [...call.values.values()].flatMap((argumentText) =>
        typeof argumentText === 'string' ? [[argumentText, graph.texts.numberOf(argumentText)]] : [],
      ),
    );
    const graphRequest: GraphRequest = {
      arrays: { out, in: into, systemFrom, linkOf, links, weights },
      nodes: graph.nodes,
      named: namedNodes,
      call,
      memory: { bytesMax: memory.bytesMax, bytes: memory.bytes },
    };
    const onGraphProgress = (done: number): void => {
      counters.looks = earlierLooks + done;
      this.#tickLongWork();
    };
    const workerWaiting = { workers, wait, signal: this.#cancelled.signal, onProgress: onGraphProgress };
    const { work: workerWork, ...workerAnswer } = yield* graphInTurns(
      besideLoop(graphJob, graphRequest, workerWaiting),
      () => undefined,
    );
    counters.looks = earlierLooks + workerWork.looks;
    this.#graphWork.heldBytes = memory.change(0, workerWork.heldBytes);
    return workerAnswer;
  }

  #tickLongWork(): void {
    const { longWork, counters } = this.#graphOpening.execution;
    longWork?.tick(counters.looks);
  }

  *#outputGraphRows(graph: Graph, graphRows: GraphRows, rowOrder: Int32Array | null): Generator<Batch, void> {
    const edgeInstants =
      graphRows.edges === undefined ? null : new EdgeInstants(graph, this.#graphOpening.execution, graphRows.edges);
    for (let firstOutputRow = 0; firstOutputRow < graphRows.count; firstOutputRow += graphOutputRows) {
      const outputCount = Math.min(graphOutputRows, graphRows.count - firstOutputRow);
      const resultRows = Int32Array.from({ length: outputCount }, (_, i) =>
        rowOrder === null ? firstOutputRow + i : rowOrder[firstOutputRow + i]!,
      );
      const outputColumns = this.#graphAlgorithm.columns.map(({ name, holds }): Vector => {
        const graphCells = graphRows.columns.get(name)!;
        if (holds === 'number') return graphNumberVector(graphCells as Float64Array, resultRows);
        if (holds === 'integer')
          return { kind: 'i32', values: Int32Array.from(resultRows, (row) => graphCells[row] as number), nulls: null };
        if (holds === 'boolean')
          return { kind: 'bool', values: Uint8Array.from(resultRows, (row) => graphCells[row] as number), nulls: null };
        if (holds === 'node')
          return nodeTextVector(
            graph.texts,
            resultRows.map((row) => graphCells[row] as number),
          );
        const graphTextBuilder = new VectorBuilder('string', outputCount);
        for (const row of resultRows) graphTextBuilder.append(graphCells[row] as string);
        return graphTextBuilder.build();
      });
      if (edgeInstants !== null) {
        const outputEdges = resultRows.map((row) => graphRows.edges![row]!);
        outputColumns.push(...(yield* graphInTurns(edgeInstants.columns(outputEdges), () => this.#tickLongWork())));
      }
      yield { columns: outputColumns, selection: null, first: 0, count: outputCount };
    }
  }

  #graphCallArguments(): CallArguments {
    const { node, values, execution } = this.#graphOpening;
    const { kernels } = execution;
    const { name, direction, arguments: graphArguments } = this.#graphAlgorithm;
    const { choices: chosenChoices, location } = node.graph!;
    const graphChoices = new Map([
      ...graphArguments.flatMap((graphArgument) =>
        graphArgument.choices ? [[graphArgument.name, graphArgument.choices[0]!] as const] : [],
      ),
      ...chosenChoices,
    ]);
    const graphArgumentValues = new Map<string, string | number>();
    const locations = new Map<string, Location>();
    for (const spec of graphArguments) {
      if (!values.has(spec.name)) continue;
      locations.set(spec.name, values.locationOf(spec.name));
      if (spec.kind === 'number') graphArgumentValues.set(spec.name, values.number(spec.name, kernels) ?? Number.NaN);
      else if (spec.kind === 'integer') graphArgumentValues.set(spec.name, Number(values.integer(spec.name, kernels)));
      else if (spec.kind === 'text' || spec.kind === 'key') graphArgumentValues.set(spec.name, values.text(spec.name, kernels)!);
    }
    if (values.has('WEIGHT')) locations.set('WEIGHT', values.locationOf('WEIGHT'));
    return {
      algorithm: name,
      direction: (graphChoices.get('DIRECTION') as GraphCall['direction'] | undefined) ?? direction ?? 'both',
      choices: graphChoices,
      values: graphArgumentValues,
      locations,
      location,
      limit: node.limit === null ? Number.POSITIVE_INFINITY : execution.rowLimit(node.limit),
      rowsMax: execution.limits.graphRowsMax,
      looksMax: looksOfScan * execution.limits.scannedRowsMax,
      start: null,
    };
  }
}

/** A batch without rows says that there is more to do. */
function* graphInTurns<T>(graphSteps: Steps<T>, betweenSteps: () => void): Generator<Batch, T> {
  for (let graphStep = graphSteps.next(); ; graphStep = graphSteps.next()) {
    if (graphStep.done) return graphStep.value;
    betweenSteps();
    yield emptyBatch;
  }
}

/** -1: NULL. */
function nodeTextVector(nodeTexts: NodeTexts, nodes: Int32Array): Vector {
  const offsets = new Uint32Array(nodes.length + 1);
  const nodeTextBytes: (Uint8Array | null)[] = [];
  for (let i = 0; i < nodes.length; i++) {
    const nodeText = nodes[i]! < 0 ? null : nodeTexts.bytesOf(nodes[i]!);
    nodeTextBytes.push(nodeText);
    offsets[i + 1] = offsets[i]! + (nodeText?.length ?? 0);
  }
  const nodeTextHeap = new Uint8Array(offsets[nodes.length]!);
  for (const [i, text] of nodeTextBytes.entries()) if (text !== null) nodeTextHeap.set(text, offsets[i]!);
  const nulls = nodes.some((node) => node < 0) ? Uint8Array.from(nodes, (node) => (node < 0 ? 1 : 0)) : null;
  return { kind: 'text', offsets, heap: nodeTextHeap, nulls };
}

/** NaN is no number: NULL. */
function graphNumberVector(graphCells: Float64Array, resultRows: Int32Array): Vector {
  const graphNumbers = Float64Array.from(resultRows, (row) => graphCells[row]!);
  const nulls = graphNumbers.some(Number.isNaN) ? Uint8Array.from(graphNumbers, (value) => (Number.isNaN(value) ? 1 : 0)) : null;
  return { kind: 'f64', values: graphNumbers, nulls };
}
