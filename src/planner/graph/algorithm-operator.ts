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

const outputRows = 1_024;

export class GraphOperator implements Operator {
  readonly #algorithm: GraphAlgorithm;
  readonly #opening: Opening;
  readonly #reader: GraphReader;
  readonly #pieces: Generator<Batch, void>;
  readonly #work: Work = { looks: 0, heldBytes: 0 };
  /** Aborted once the result of a worker is no longer wanted. */
  readonly #cancelled = new AbortController();

  constructor(algorithm: GraphAlgorithm, opening: Opening) {
    this.#algorithm = algorithm;
    this.#opening = opening;
    this.#reader = new GraphReader(opening);
    this.#pieces = this.#run();
  }

  next(): Batch | null {
    const piece = this.#pieces.next();
    return piece.done ? null : piece.value;
  }

  close(): void {
    this.#cancelled.abort();
    this.#reader.close();
  }

  *#run(): Generator<Batch, void> {
    const { execution, node } = this.#opening;
    const erased = execution.snapshot.erasing(this.#reader.of?.types ?? []);
    const graph = yield* inTurns(this.#reader.graph(), () => this.#tick());
    const callArguments = this.#parts();
    const start = yield* inTurns(this.#start(graph, callArguments), () => this.#tick());
    const { rows, order } = yield* this.#answer(graph, { ...callArguments, start });
    this.#keep(graph, callArguments, rows, erased);
    if (node.limit !== null) execution.counters.hits += rows.count;
    yield* this.#output(graph, rows, order);
    this.#work.heldBytes = execution.memory.change(this.#work.heldBytes, 0);
  }

  *#start(graph: Graph, callArguments: CallArguments): Steps<State | null> {
    const { consistency, counters, notices } = this.#opening.execution;
    const { graphs } = this.#opening.execution.services;
    const { of } = this.#reader;
    if (consistency !== 'eventual' || of === null || this.#algorithm.warm === undefined) return null;
    const warm = graphs.warm(of, this.#nameOf(callArguments));
    const start = warm && (yield* startingState(this.#algorithm, warm, graph));
    if (start === null || this.#algorithm.warm === 'components') return start;
    counters.warm++;
    notices.push(
      `${callArguments.algorithm} went on from what an earlier answer came to: ask for strong consistency to have it begin anew`,
    );
    return start;
  }

  #keep(graph: Graph, callArguments: CallArguments, { state }: GraphRows, erased: () => boolean): void {
    const { of } = this.#reader;
    if (of === null || this.#algorithm.warm === undefined || state === undefined) return;
    this.#opening.execution.services.graphs.keepWarm(of, this.#nameOf(callArguments), state, graph, erased);
  }

  /** Calls with equal names have equal results. */
  #nameOf({ choices, values }: CallArguments): string {
    return JSON.stringify([this.#algorithm.warm, [...choices], [...values]]);
  }

  /** Runs here while it is little work; longer work starts again in a worker. */
  *#answer(graph: Graph, callArguments: CallArguments): Generator<Batch, Answered> {
    const { counters, memory } = this.#opening.execution;
    const { beside } = this.#opening.execution.services;
    const work = this.#work;
    const looks = counters.looks;
    // An algorithm over a whole graph with this many edges goes to a worker.
    if (beside !== null && this.#algorithm.about === 'typed' && graph.edges > beside.looksMin)
      return yield* this.#runInWorker(beside.workers, graph, callArguments, looks);
    const steps = answerCall(this.#algorithm, graph, countedCall(callArguments, work, memory), work);
    for (let step = steps.next(); ; step = steps.next()) {
      counters.looks = looks + work.looks;
      if (step.done) return step.value;
      this.#tick();
      yield emptyBatch;
      if (beside === null || work.looks <= beside.looksMin) continue;
      work.heldBytes = memory.change(work.heldBytes, 0);
      return yield* this.#runInWorker(beside.workers, graph, callArguments, looks);
    }
  }

  *#runInWorker(workers: WorkerKeeper, graph: Graph, call: CallArguments, looks: number): Generator<Batch, Answered> {
    const { counters, memory, wait } = this.#opening.execution;
    const { out, in: into, systemFrom, linkOf, links, weights } = graph;
    const named = new Map(
      [...call.values.values()].flatMap((value) => (typeof value === 'string' ? [[value, graph.texts.numberOf(value)]] : [])),
    );
    const request: GraphRequest = {
      arrays: { out, in: into, systemFrom, linkOf, links, weights },
      nodes: graph.nodes,
      named,
      call,
      memory: { bytesMax: memory.bytesMax, bytes: memory.bytes },
    };
    const onProgress = (done: number): void => {
      counters.looks = looks + done;
      this.#tick();
    };
    const waiting = { workers, wait, signal: this.#cancelled.signal, onProgress };
    const { work, ...answer } = yield* inTurns(besideLoop(graphJob, request, waiting), () => undefined);
    counters.looks = looks + work.looks;
    this.#work.heldBytes = memory.change(0, work.heldBytes);
    return answer;
  }

  #tick(): void {
    const { longWork, counters } = this.#opening.execution;
    longWork?.tick(counters.looks);
  }

  *#output(graph: Graph, rows: GraphRows, order: Int32Array | null): Generator<Batch, void> {
    const instants = rows.edges === undefined ? null : new EdgeInstants(graph, this.#opening.execution, rows.edges);
    for (let first = 0; first < rows.count; first += outputRows) {
      const count = Math.min(outputRows, rows.count - first);
      const resultRows = Int32Array.from({ length: count }, (_, i) => (order === null ? first + i : order[first + i]!));
      const columns = this.#algorithm.columns.map(({ name, holds }): Vector => {
        const cells = rows.columns.get(name)!;
        if (holds === 'number') return numbersOf(cells as Float64Array, resultRows);
        if (holds === 'integer')
          return { kind: 'i32', values: Int32Array.from(resultRows, (row) => cells[row] as number), nulls: null };
        if (holds === 'boolean')
          return { kind: 'bool', values: Uint8Array.from(resultRows, (row) => cells[row] as number), nulls: null };
        if (holds === 'node')
          return textsOf(
            graph.texts,
            resultRows.map((row) => cells[row] as number),
          );
        const builder = new VectorBuilder('string', count);
        for (const row of resultRows) builder.append(cells[row] as string);
        return builder.build();
      });
      if (instants !== null) {
        const edges = resultRows.map((row) => rows.edges![row]!);
        columns.push(...(yield* inTurns(instants.columns(edges), () => this.#tick())));
      }
      yield { columns, selection: null, first: 0, count };
    }
  }

  #parts(): CallArguments {
    const { node, values, execution } = this.#opening;
    const { kernels } = execution;
    const { name, direction, arguments: specs } = this.#algorithm;
    const { choices: chosen, location } = node.graph!;
    const choices = new Map([
      ...specs.flatMap((spec) => (spec.choices ? [[spec.name, spec.choices[0]!] as const] : [])),
      ...chosen,
    ]);
    const given = new Map<string, string | number>();
    const locations = new Map<string, Location>();
    for (const spec of specs) {
      if (!values.has(spec.name)) continue;
      locations.set(spec.name, values.locationOf(spec.name));
      if (spec.kind === 'number') given.set(spec.name, values.number(spec.name, kernels) ?? Number.NaN);
      else if (spec.kind === 'integer') given.set(spec.name, Number(values.integer(spec.name, kernels)));
      else if (spec.kind === 'text' || spec.kind === 'key') given.set(spec.name, values.text(spec.name, kernels)!);
    }
    if (values.has('WEIGHT')) locations.set('WEIGHT', values.locationOf('WEIGHT'));
    return {
      algorithm: name,
      direction: (choices.get('DIRECTION') as GraphCall['direction'] | undefined) ?? direction ?? 'both',
      choices,
      values: given,
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
function* inTurns<T>(steps: Steps<T>, between: () => void): Generator<Batch, T> {
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done) return step.value;
    between();
    yield emptyBatch;
  }
}

/** -1: NULL. */
function textsOf(texts: NodeTexts, nodes: Int32Array): Vector {
  const offsets = new Uint32Array(nodes.length + 1);
  const bytes: (Uint8Array | null)[] = [];
  for (let i = 0; i < nodes.length; i++) {
    const text = nodes[i]! < 0 ? null : texts.bytesOf(nodes[i]!);
    bytes.push(text);
    offsets[i + 1] = offsets[i]! + (text?.length ?? 0);
  }
  const heap = new Uint8Array(offsets[nodes.length]!);
  for (const [i, text] of bytes.entries()) if (text !== null) heap.set(text, offsets[i]!);
  const nulls = nodes.some((node) => node < 0) ? Uint8Array.from(nodes, (node) => (node < 0 ? 1 : 0)) : null;
  return { kind: 'text', offsets, heap, nulls };
}

/** NaN is no number: NULL. */
function numbersOf(cells: Float64Array, resultRows: Int32Array): Vector {
  const values = Float64Array.from(resultRows, (row) => cells[row]!);
  const nulls = values.some(Number.isNaN) ? Uint8Array.from(values, (value) => (Number.isNaN(value) ? 1 : 0)) : null;
  return { kind: 'f64', values, nulls };
}
