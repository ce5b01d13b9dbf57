/**
 * A function over the graph at work: the graph of what the caller may see, read through the same scans as any question or kept
 * from an earlier one, the algorithm in steps, its rows in order.
 */
import { ServiceError } from '../../errors.ts';
import type { Vector } from '../../log/columns.ts';
import { VectorBuilder } from '../../log/vector-builder.ts';
import type { Opening } from '../functions/table-function.ts';
import { type Batch, emptyBatch, type Execution, type Operator } from '../operators/operator.ts';
import { at } from '../places.ts';
import { EdgeInstants } from './edge-instants.ts';
import type { Graph } from './graph.ts';
import type { GraphAlgorithm, GraphCall, GraphRows } from './graph-algorithm.ts';
import { GraphReader } from './graph-reader.ts';
import { looksOfScan } from './limits.ts';
import { sorted, type Steps, stepsAtOnce } from './steps.ts';

const outputRows = 1_024;

export class GraphOperator implements Operator {
  readonly #algorithm: GraphAlgorithm;
  readonly #opening: Opening;
  readonly #reader: GraphReader;
  readonly #pieces: Generator<Batch, void>;
  #held = 0;

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
    this.#reader.close();
  }

  *#run(): Generator<Batch, void> {
    const { execution } = this.#opening;
    const graph = yield* inTurns(this.#reader.graph(), () => this.#tick());
    const call = this.#call(execution);
    let looks = 0;
    const rows = yield* inTurns(this.#algorithm.run(graph, call), () => {
      // What does not count its looks has looked at about so many.
      if (execution.counters.looks === looks) call.spend(stepsAtOnce);
      looks = execution.counters.looks;
      this.#tick();
    });
    if (this.#opening.node.limit !== null) execution.counters.hits += rows.count;
    const order = rows.ordered ? null : yield* inTurns(this.#order(rows), () => this.#tick());
    yield* this.#output(graph, rows, order);
    this.#held = execution.memory.change(this.#held, 0);
  }

  #tick(): void {
    const { longWork, counters } = this.#opening.execution;
    longWork?.tick(counters.looks);
  }

  /** Best first; alike ones by their nodes, which are numbered in byte order. */
  #order({ count, columns }: GraphRows): Steps<Int32Array> {
    const score = columns.get('score') as Float64Array;
    const nodes = this.#algorithm.columns.flatMap(({ name, holds }) =>
      holds === 'node' ? [columns.get(name) as Int32Array] : [],
    );
    const places = new Int32Array(count);
    for (let place = 0; place < count; place++) places[place] = place;
    return sorted(places, (a, b) => {
      const difference = score[b]! - score[a]!;
      if (difference !== 0) return difference;
      for (const column of nodes) if (column[a] !== column[b]) return column[a]! - column[b]!;
      return a - b;
    });
  }

  *#output(graph: Graph, rows: GraphRows, order: Int32Array | null): Generator<Batch, void> {
    const instants = rows.edges === undefined ? null : new EdgeInstants(graph, this.#opening.execution);
    for (let first = 0; first < rows.count; first += outputRows) {
      const count = Math.min(outputRows, rows.count - first);
      const places = Int32Array.from({ length: count }, (_, i) => (order === null ? first + i : order[first + i]!));
      const columns = this.#algorithm.columns.map(({ name, holds }): Vector => {
        const cells = rows.columns.get(name)!;
        if (holds === 'number') return numbersOf(cells as Float64Array, places);
        if (holds === 'integer')
          return { kind: 'i32', values: Int32Array.from(places, (place) => cells[place] as number), nulls: null };
        if (holds === 'boolean')
          return { kind: 'bool', values: Uint8Array.from(places, (place) => cells[place] as number), nulls: null };
        const builder = new VectorBuilder('string', count);
        for (const place of places) {
          const cell = cells[place]!;
          builder.append(typeof cell === 'string' ? cell : cell < 0 ? null : graph.texts.text(cell));
        }
        return builder.build();
      });
      if (instants !== null) {
        const edges = places.map((place) => rows.edges![place]!);
        columns.push(...(yield* inTurns(instants.columns(edges), () => this.#tick())));
      }
      yield { columns, selection: null, first: 0, count };
    }
  }

  #call(execution: Execution): GraphCall {
    const { node, values } = this.#opening;
    const { kernels, scannedRowsMax, memory } = execution;
    const looksMax = looksOfScan * scannedRowsMax;
    let looks = 0;
    const { name: called, direction, arguments: specs } = this.#algorithm;
    const { choices } = node.graph!;
    const invalid = (name: string, text: string): Error =>
      at('REL_INVALID', text, values.has(name) ? values.placeOf(name) : node.graph!.place);
    const checked = (name: string, value: number, least: number, most: number): number => {
      if (value >= least && value <= most) return value;
      const range = Number.isFinite(most) ? `from ${least} to ${most}` : `at least ${least}`;
      throw invalid(name, `${name} of ${called} is ${range}`);
    };
    const limit = node.limit === null ? Number.POSITIVE_INFINITY : execution.rowLimit(node.limit);
    return {
      direction: (choices.get('DIRECTION') as GraphCall['direction'] | undefined) ?? direction ?? 'both',
      choice: (name) => choices.get(name) ?? specs.find((spec) => spec.name === name)!.choices![0]!,
      text: (name) => values.text(name, kernels),
      integer: (name, otherwise, least, most) =>
        values.has(name) ? checked(name, Number(values.integer(name, kernels)!), least, most) : otherwise,
      number: (name, otherwise, least, most) =>
        values.has(name) ? checked(name, values.number(name, kernels)!, least, most) : otherwise,
      limit,
      rowsMax: execution.graphRowsMax,
      spend: (edges) => {
        looks += edges;
        execution.counters.looks += edges;
        if (looks <= looksMax) return;
        throw new ServiceError('REL_SCAN_CAP', `${called} looks at edges more than ${looksMax} times: ask for less of the graph`);
      },
      hold: (bytes) => {
        this.#held = memory.change(this.#held, this.#held + bytes);
      },
      invalid,
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

/** NaN is no number: NULL. */
function numbersOf(cells: Float64Array, places: Int32Array): Vector {
  const values = Float64Array.from(places, (place) => cells[place]!);
  const nulls = values.some(Number.isNaN) ? Uint8Array.from(values, (value) => (Number.isNaN(value) ? 1 : 0)) : null;
  return { kind: 'f64', values, nulls };
}
