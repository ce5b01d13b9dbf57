/**
 * EXPLAIN ANALYZE: the figures of a run's operators. Every figure is of rows that the caller sees, and none depends on what lies
 * between them:
 *
 * - A scan and the condition on it are one step. The number of rows that it read depends on how hidden rows are laid out beside
 *   the others, so only the number of rows that came out of both is shown.
 * - The number of rows that an index of vectors leaves for the sort above it depends on the layout too: only the sort's is shown.
 * - An input that ends early, because a LIMIT is full or one row is enough for EXISTS, ends with a block, and blocks differ too.
 *   There only the number of rows taken is shown.
 */
import { filtersByKernel } from '../kernels/kernel-chain.ts';
import { isClosedType } from '../graph/node-and-edge-types.ts';
import { inputsOf, type LogicalPlan, type PlanNode } from '../logical-plan.ts';
import { facetRowsMax } from '../operators/facets.ts';
import { heldBy, type Measurements } from '../operators/measurements.ts';
import { type Execution, firstRows } from '../operators/operator.ts';
import { scanRequest } from '../operators/scan.ts';
import type { OperatorFigures } from '../planner-contract.ts';

export type NodeFigures = Pick<OperatorFigures, 'state' | 'rowsIn' | 'rowsOut' | 'timeMs' | 'memoryBytes' | 'index'>;

/** Rows that the node above took of a node: all of them, a number, or null where it can't be known. */
type TakenFigures = 'all' | number | null;

export class Analysis {
  readonly #analyzedExecution: Execution;
  readonly #operatorMeasurements: Measurements;
  readonly #figuresByNode = new Map<PlanNode, NodeFigures>();

  constructor({ root, subqueries, facets }: LogicalPlan, execution: Execution, measurements: Measurements) {
    this.#analyzedExecution = execution;
    this.#operatorMeasurements = measurements;
    for (const { root: subqueryRoot, as } of subqueries)
      this.#figureNode(subqueryRoot, as === 'exists' && this.#measuredRows(subqueryRoot) > 0 ? 1 : 'all');
    this.#figureNode(root, 'all');
    if (facets) this.#figureNode(facets.root, this.#measuredRows(facets.root) >= facetRowsMax ? facetRowsMax : 'all');
  }

  figuresOf(node: PlanNode): NodeFigures {
    return this.#figuresByNode.get(node)!;
  }

  #measuredRows(node: PlanNode): number {
    return this.#operatorMeasurements.figuresOf(node)?.rows ?? 0;
  }

  #figureNode(node: PlanNode, rowsTaken: TakenFigures): NodeFigures {
    const inputFigures = inputsOf(node).map((input, i) =>
      isMeasuredWithin(input, node) ? this.#figureWithin(input) : this.#figureNode(input, this.#rowsTakenOf(node, i, rowsTaken)),
    );
    const measuredFigures = this.#operatorMeasurements.figuresOf(node);
    const heldNodes = rowsTaken === 'all' ? heldBy(node) : [];
    const nodeFigures: NodeFigures = {
      state: rowsTaken !== 'all' ? 'stopped early' : measuredFigures ? 'read' : 'not read',
      rowsIn: inputFigures.length === 0 ? null : sumOfRows(inputFigures.map(({ rowsOut }) => rowsOut)),
      rowsOut: !isDisclosed(node) ? null : rowsTaken === 'all' ? this.#measuredRows(node) : rowsTaken,
      timeMs: measuredFigures ? this.#measuredMsOf(node) : null,
      memoryBytes:
        heldNodes.length === 0
          ? null
          : heldNodes.reduce((sum, heldNode) => sum + (this.#operatorMeasurements.figuresOf(heldNode)?.bytes ?? 0), 0),
      index: this.#usedIndexOf(node),
    };
    this.#figuresByNode.set(node, nodeFigures);
    return nodeFigures;
  }

  #figureWithin(node: PlanNode): NodeFigures {
    for (const input of inputsOf(node)) this.#figureWithin(input);
    const withinFigures = { ...figuresWithinAbove, index: this.#usedIndexOf(node) };
    this.#figuresByNode.set(node, withinFigures);
    return withinFigures;
  }

  /** The time of a node and of the nodes that are one step with it. */
  #measuredMsOf(node: PlanNode): number {
    const inputsWithin = inputsOf(node).filter((input) => isMeasuredWithin(input, node));
    return inputsWithin.reduce(
      (sum, input) => sum + this.#measuredMsOf(input),
      this.#operatorMeasurements.figuresOf(node)?.ms ?? 0,
    );
  }

  /** Rows that a node took of its input number `i`. */
  #rowsTakenOf(node: PlanNode, i: number, rowsTaken: TakenFigures): TakenFigures {
    if (node.kind === 'limit' && rowsTaken === 'all') {
      // A sort that gets the limit delivers no more rows anyway.
      if (node.input.kind === 'sort' && node.input.limit) return 'all';
      const limitRows = firstRows(node.limit, node.offset, this.#analyzedExecution);
      return this.#measuredRows(node) < limitRows ? 'all' : limitRows;
    }
    if (rowsTaken === 'all' || rowsTaken === null) return rowsTaken;
    // A node that delivered a row has read its held inputs to the end.
    const allOrNone = rowsTaken > 0 ? 'all' : null;
    switch (node.kind) {
      case 'project':
      case 'limit':
        return rowsTaken;
      case 'skip':
        return rowsTaken + this.#analyzedExecution.rowLimit(node.offset);
      case 'spread':
        return null;
      case 'sort':
      case 'aggregate':
      case 'over':
      case 'function':
        return allOrNone;
      case 'window':
        return node.type === 'session' ? allOrNone : null;
      case 'join':
        return node.build === 'left' || node.leads === true || i === 1 ? allOrNone : null;
      case 'set-operation':
        return i === 1 && /^(intersect|except)/.test(node.op) ? allOrNone : null;
      default:
        return null;
    }
  }

  /** The index that rows are found by. */
  #usedIndexOf(node: PlanNode): string | null {
    if (node.kind === 'search') {
      const searchedColumns = new Set(
        node.matches.flatMap(({ columns }) => columns.map((column) => node.input.columns[column]!.name)),
      );
      return `text of ${[...searchedColumns].join(', ')}`;
    }
    if (node.kind === 'project' && node.nearest) return `vectors of ${node.input.columns[node.nearest.column]!.name}`;
    if (node.kind !== 'scan' || isClosedType(this.#analyzedExecution.snapshot, node.type)) return null;
    const scanRequestOfNode = scanRequest(node, this.#analyzedExecution);
    const scanAccess = scanRequestOfNode && this.#analyzedExecution.snapshot.rows.estimate(scanRequestOfNode).access;
    return scanAccess === 'primary key' || scanAccess === 'cached view' ? scanAccess : null;
  }
}

const figuresWithinAbove = {
  state: 'within the line above',
  rowsIn: null,
  rowsOut: null,
  timeMs: null,
  memoryBytes: null,
} as const satisfies Partial<NodeFigures>;

/** Whether the number of rows that a node reads depends on the rows alone, not on their layout. */
function isDisclosed(node: PlanNode): boolean {
  if (node.kind === 'search') return isDisclosed(node.input);
  if (node.kind === 'project') return node.nearest === undefined;
  return node.kind !== 'scan' || node.zones.length === 0;
}

/** Whether an input is one step with the node above it. */
function isMeasuredWithin(input: PlanNode, node: PlanNode): boolean {
  if (node.kind === 'search') return true;
  if (node.kind === 'project' && node.nearest) return input.kind === 'scan';
  return node.kind === 'filter' && (!isDisclosed(input) || filtersByKernel(node));
}

function sumOfRows(rows: readonly (number | null)[]): number | null {
  return rows.includes(null) ? null : rows.reduce<number>((sum, each) => sum + each!, 0);
}
