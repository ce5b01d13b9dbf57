/**
 * The bounded path operator of graph patterns: for each row, every walk along edges from the node that it names, no edge twice.
 * Rows stay in their order; walks of one row come in the order of their edges.
 */
import { assert, ServiceError } from '../../errors.ts';
import type { Vector } from '../../log/values/columns.ts';
import type { ColumnType } from '../../log/values/value.ts';
import { cellAt, VectorBuilder } from '../../log/values/vector-builder.ts';
import type { Opening } from '../calls/table-function.ts';
import { RowSink } from '../operators/column-sink.ts';
import { type Batch, emptyBatch, type Operator, type Pieces, PiecesOperator } from '../operators/operator.ts';
import { errorAt } from '../syntax/error-location.ts';
import { hopsMax } from './algorithms/paths-between.ts';
import { type Direction, type Graph, ways } from './graph.ts';
import { GraphReader } from './graph-reader.ts';
import { looksOfScan } from './graph-limits.ts';
import { stepsAtOnce } from './stepped-sort.ts';
import { walkName } from './pattern-columns.ts';
import { patternFunction } from './inner-pattern-function.ts';

const outputRows = 1_024;

export const walk = patternFunction(walkName, 'walks along edges', (opening) => new WalkOperator(opening));

class WalkOperator extends PiecesOperator {
  readonly #opening: Opening;
  readonly #input: Operator;
  readonly #reader: GraphReader;

  constructor(opening: Opening) {
    super();
    assert(opening.input !== null, 'a walk begins at rows');
    this.#opening = opening;
    this.#input = opening.input;
    this.#reader = new GraphReader(opening);
  }

  close(): void {
    this.#input.close();
    this.#reader.close();
  }

  protected *pieces(): Pieces {
    const { node, execution } = this.#opening;
    const { columns } = node.input!;
    const { choices } = node.graph!;
    const bounds = this.#bounds();
    const reading = this.#reader.graph();
    let step = reading.next();
    for (; !step.done; step = reading.next()) yield emptyBatch;
    const graph = step.value;
    const begins = columns.length - Number(choices.get('BEGINS'));
    const types = columns.map(({ type }) => type);
    const direction = choices.get('DIRECTION') as Direction;
    const trails = new Trails(graph, direction, bounds, execution.limits.scannedRowsMax * looksOfScan);
    for (let batch = this.#input.next(); batch !== null; batch = this.#input.next()) {
      let walks = new WalkRows(types, batch);
      for (let k = 0; k < batch.count; k++) {
        const row = batch.selection === null ? batch.first + k : batch.selection[k]!;
        const text = cellAt(batch.columns[begins]!, 'string', row);
        const start = text === null ? -1 : graph.texts.numberOf(String(text));
        // A node without edges is where a walk of none ends.
        if (start < 0 && bounds.least === 0 && typeof text === 'string') walks.add(row, text, []);
        if (start < 0) continue;
        for (const end of trails.from(start, avoidedBy(batch.columns.slice(begins + 1), row))) {
          if (end === null) {
            execution.counters.looks += stepsAtOnce;
            execution.longWork?.tick(execution.counters.looks);
            yield emptyBatch;
            continue;
          }
          const edges = end.edges.map((edge) => graph.systemFrom[edge]!);
          walks.add(row, graph.texts.text(end.node), edges);
          if (walks.count < outputRows) continue;
          yield walks.rows();
          walks = new WalkRows(types, batch);
        }
      }
      yield walks.rows();
    }
  }

  #bounds(): Bounds {
    const { values, execution } = this.#opening;
    const boundOf = (name: string): number => (values.has(name) ? Number(values.integer(name, execution.kernels)) : 1);
    const [least, most] = [boundOf('LEAST'), boundOf('MOST')];
    if (least >= 0 && least <= most && most <= hopsMax) return { least, most };
    throw errorAt('REL_INVALID', `a path has 0 to ${hopsMax} edges, the lower bound first`, values.locationOf('MOST'));
  }
}

/** Edges of the trails in these columns. */
function avoidedBy(columns: readonly Vector[], row: number): ReadonlySet<string> {
  const avoided = new Set<string>();
  for (const column of columns) {
    const trail = cellAt(column, 'string', row);
    if (typeof trail === 'string') for (const edge of trail.split(',')) avoided.add(edge);
  }
  return avoided;
}

interface Bounds {
  readonly least: number;
  readonly most: number;
}

class Trails {
  readonly #graph: Graph;
  readonly #direction: Direction;
  readonly #bounds: Bounds;
  readonly #looksMax: number;
  #looks = 0;

  constructor(graph: Graph, direction: Direction, bounds: Bounds, looksMax: number) {
    this.#graph = graph;
    this.#direction = direction;
    this.#bounds = bounds;
    this.#looksMax = looksMax;
  }

  /** Yields null to give others a turn. The edges are valid until the next yield. */
  *from(
    start: number,
    avoided: ReadonlySet<string>,
  ): Generator<{ readonly node: number; readonly edges: readonly number[] } | null, void> {
    const { least, most } = this.#bounds;
    const edges: number[] = [];
    if (least === 0) yield { node: start, edges };
    const open = most === 0 ? [] : [this.#steps(start)];
    while (open.length > 0) {
      const step = open.at(-1)!.next();
      if (++this.#looks % stepsAtOnce === 0) yield null;
      if (this.#looks > this.#looksMax) {
        const text = `the pattern looks at edges more than ${this.#looksMax} times: ask for less of the graph`;
        throw new ServiceError('REL_SCAN_CAP', text);
      }
      if (step.done) {
        open.pop();
        edges.pop();
        continue;
      }
      const { node, edge } = step.value;
      if (edges.includes(edge) || (avoided.size > 0 && avoided.has(String(this.#graph.systemFrom[edge]!)))) continue;
      edges.push(edge);
      if (edges.length >= least) yield { node, edges };
      if (edges.length < most) open.push(this.#steps(node));
      else edges.pop();
    }
  }

  *#steps(of: number): Generator<{ readonly node: number; readonly edge: number }, void> {
    for (const [way, { offsets, neighbours, edges }] of ways(this.#graph, this.#direction).entries()) {
      for (let edgeSlot = offsets[of]!; edgeSlot < offsets[of + 1]!; edgeSlot++) {
        const node = neighbours[edgeSlot]!;
        // A loop is one edge, whichever way it is gone.
        if (way === 0 || node !== of) yield { node, edge: edges === null ? edgeSlot : edges[edgeSlot]! };
      }
    }
  }
}

/** Rows of one batch of the input, each as often as walks begin at it. */
class WalkRows {
  readonly #batch: Batch;
  readonly #sink: RowSink;
  readonly #rows: number[] = [];
  readonly #ends = new VectorBuilder('string');
  readonly #edges = new VectorBuilder('timestamp');
  readonly #trails = new VectorBuilder('string');

  constructor(types: readonly ColumnType[], batch: Batch) {
    this.#batch = batch;
    this.#sink = new RowSink(types);
  }

  get count(): number {
    return this.#rows.length;
  }

  add(row: number, end: string, edges: readonly bigint[]): void {
    this.#rows.push(row);
    this.#ends.append(end);
    this.#edges.append(edges.at(-1) ?? null);
    this.#trails.append(edges.length === 0 ? null : edges.join(','));
  }

  rows(): Batch {
    const count = this.#rows.length;
    if (count === 0) return emptyBatch;
    this.#sink.append({ columns: this.#batch.columns, selection: Int32Array.from(this.#rows), first: 0, count });
    const columns: Vector[] = [...this.#sink.vectors(), this.#ends.build(), this.#edges.build(), this.#trails.build()];
    return { columns, selection: null, first: 0, count };
  }
}
