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

const walkOutputRows = 1_024;

export const walk = patternFunction(walkName, 'walks along edges', (opening) => new WalkOperator(opening));

class WalkOperator extends PiecesOperator {
  readonly #walkOpening: Opening;
  readonly #walkStarts: Operator;
  readonly #walkGraphReader: GraphReader;

  constructor(opening: Opening) {
    super();
    assert(opening.input !== null, 'a walk begins at rows');
    this.#walkOpening = opening;
    this.#walkStarts = opening.input;
    this.#walkGraphReader = new GraphReader(opening);
  }

  close(): void {
    this.#walkStarts.close();
    this.#walkGraphReader.close();
  }

  protected *pieces(): Pieces {
    const { node, execution } = this.#walkOpening;
    const { columns: startColumns } = node.input!;
    const { choices: walkChoices } = node.graph!;
    const walkBounds = this.#walkBounds();
    const graphReading = this.#walkGraphReader.graph();
    let readingStep = graphReading.next();
    for (; !readingStep.done; readingStep = graphReading.next()) yield emptyBatch;
    const graph = readingStep.value;
    const startColumn = startColumns.length - Number(walkChoices.get('BEGINS'));
    const startTypes = startColumns.map(({ type }) => type);
    const direction = walkChoices.get('DIRECTION') as Direction;
    const walkTrails = new WalkTrails(graph, direction, walkBounds, execution.limits.scannedRowsMax * looksOfScan);
    for (let startBatch = this.#walkStarts.next(); startBatch !== null; startBatch = this.#walkStarts.next()) {
      let walks = new WalkRows(startTypes, startBatch);
      for (let k = 0; k < startBatch.count; k++) {
        const startRow = startBatch.selection === null ? startBatch.first + k : startBatch.selection[k]!;
        const startKey = cellAt(startBatch.columns[startColumn]!, 'string', startRow);
        const startNode = startKey === null ? -1 : graph.texts.numberOf(String(startKey));
        // A node without edges is where a walk of none ends.
        if (startNode < 0 && walkBounds.least === 0 && typeof startKey === 'string') walks.add(startRow, startKey, []);
        if (startNode < 0) continue;
        for (const trailEnd of walkTrails.from(startNode, avoidedEdges(startBatch.columns.slice(startColumn + 1), startRow))) {
          if (trailEnd === null) {
            execution.counters.looks += stepsAtOnce;
            execution.longWork?.tick(execution.counters.looks);
            yield emptyBatch;
            continue;
          }
          const trailEdges = trailEnd.edges.map((edge) => graph.systemFrom[edge]!);
          walks.add(startRow, graph.texts.text(trailEnd.node), trailEdges);
          if (walks.count < walkOutputRows) continue;
          yield walks.rows();
          walks = new WalkRows(startTypes, startBatch);
        }
      }
      yield walks.rows();
    }
  }

  #walkBounds(): WalkBounds {
    const { values, execution } = this.#walkOpening;
    const walkBoundOf = (name: string): number => (values.has(name) ? Number(values.integer(name, execution.kernels)) : 1);
    const [leastEdges, mostEdges] = [walkBoundOf('LEAST'), walkBoundOf('MOST')];
    if (leastEdges >= 0 && leastEdges <= mostEdges && mostEdges <= hopsMax) return { least: leastEdges, most: mostEdges };
    throw errorAt('REL_INVALID', `a path has 0 to ${hopsMax} edges, the lower bound first`, values.locationOf('MOST'));
  }
}

/** Edges of the trails in these columns. */
function avoidedEdges(columns: readonly Vector[], row: number): ReadonlySet<string> {
  const avoidedEdgeNames = new Set<string>();
  for (const trailColumn of columns) {
    const earlierTrail = cellAt(trailColumn, 'string', row);
    if (typeof earlierTrail === 'string') for (const avoidedEdge of earlierTrail.split(',')) avoidedEdgeNames.add(avoidedEdge);
  }
  return avoidedEdgeNames;
}

interface WalkBounds {
  readonly least: number;
  readonly most: number;
}

class WalkTrails {
  readonly #walkedGraph: Graph;
  readonly #walkDirection: Direction;
  readonly #trailBounds: WalkBounds;
  readonly #walkLooksMax: number;
  #walkLooks = 0;

  constructor(graph: Graph, direction: Direction, trailBounds: WalkBounds, looksMax: number) {
    this.#walkedGraph = graph;
    this.#walkDirection = direction;
    this.#trailBounds = trailBounds;
    this.#walkLooksMax = looksMax;
  }

  /** Yields null to give others a turn. The edges are valid until the next yield. */
  *from(
    trailStart: number,
    avoidedEdgeNames: ReadonlySet<string>,
  ): Generator<{ readonly node: number; readonly edges: readonly number[] } | null, void> {
    const { least: leastEdges, most: mostEdges } = this.#trailBounds;
    const trailEdges: number[] = [];
    if (leastEdges === 0) yield { node: trailStart, edges: trailEdges };
    const openSteps = mostEdges === 0 ? [] : [this.#edgeSteps(trailStart)];
    while (openSteps.length > 0) {
      const trailStep = openSteps.at(-1)!.next();
      if (++this.#walkLooks % stepsAtOnce === 0) yield null;
      if (this.#walkLooks > this.#walkLooksMax) {
        const looksProblem = `the pattern looks at edges more than ${this.#walkLooksMax} times: ask for less of the graph`;
        throw new ServiceError('REL_SCAN_CAP', looksProblem);
      }
      if (trailStep.done) {
        openSteps.pop();
        trailEdges.pop();
        continue;
      }
      const { node, edge } = trailStep.value;
      if (
        trailEdges.includes(edge) ||
        (avoidedEdgeNames.size > 0 && avoidedEdgeNames.has(String(this.#walkedGraph.systemFrom[edge]!)))
      )
        continue;
      trailEdges.push(edge);
      if (trailEdges.length >= leastEdges) yield { node, edges: trailEdges };
      if (trailEdges.length < mostEdges) openSteps.push(this.#edgeSteps(node));
      else trailEdges.pop();
    }
  }

  *#edgeSteps(steppedFrom: number): Generator<{ readonly node: number; readonly edge: number }, void> {
    for (const [walkWay, { offsets, neighbours, edges }] of ways(this.#walkedGraph, this.#walkDirection).entries()) {
      for (let edgeSlot = offsets[steppedFrom]!; edgeSlot < offsets[steppedFrom + 1]!; edgeSlot++) {
        const node = neighbours[edgeSlot]!;
        // A loop is one edge, whichever way it is gone.
        if (walkWay === 0 || node !== steppedFrom) yield { node, edge: edges === null ? edgeSlot : edges[edgeSlot]! };
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

  add(row: number, endKey: string, trailEdges: readonly bigint[]): void {
    this.#rows.push(row);
    this.#ends.append(endKey);
    this.#edges.append(trailEdges.at(-1) ?? null);
    this.#trails.append(trailEdges.length === 0 ? null : trailEdges.join(','));
  }

  rows(): Batch {
    const count = this.#rows.length;
    if (count === 0) return emptyBatch;
    this.#sink.append({ columns: this.#batch.columns, selection: Int32Array.from(this.#rows), first: 0, count });
    const walkedColumns: Vector[] = [...this.#sink.vectors(), this.#ends.build(), this.#edges.build(), this.#trails.build()];
    return { columns: walkedColumns, selection: null, first: 0, count };
  }
}
