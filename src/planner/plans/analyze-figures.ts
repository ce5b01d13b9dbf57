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
  readonly #execution: Execution;
  readonly #measurements: Measurements;
  readonly #figures = new Map<PlanNode, NodeFigures>();

  constructor({ root, subqueries, facets }: LogicalPlan, execution: Execution, measurements: Measurements) {
    this.#execution = execution;
    this.#measurements = measurements;
    for (const { root: of, as } of subqueries) this.#count(of, as === 'exists' && this.#rows(of) > 0 ? 1 : 'all');
    this.#count(root, 'all');
    if (facets) this.#count(facets.root, this.#rows(facets.root) >= facetRowsMax ? facetRowsMax : 'all');
  }

  figuresOf(node: PlanNode): NodeFigures {
    return this.#figures.get(node)!;
  }

  #rows(node: PlanNode): number {
    return this.#measurements.figuresOf(node)?.rows ?? 0;
  }

  #count(node: PlanNode, taken: TakenFigures): NodeFigures {
    const inputs = inputsOf(node).map((input, i) =>
      isWithin(input, node) ? this.#leaveOut(input) : this.#count(input, this.#takenOf(node, i, taken)),
    );
    const own = this.#measurements.figuresOf(node);
    const held = taken === 'all' ? heldBy(node) : [];
    const figures: NodeFigures = {
      state: taken !== 'all' ? 'stopped early' : own ? 'read' : 'not read',
      rowsIn: inputs.length === 0 ? null : sumOf(inputs.map(({ rowsOut }) => rowsOut)),
      rowsOut: !isDisclosed(node) ? null : taken === 'all' ? this.#rows(node) : taken,
      timeMs: own ? this.#msOf(node) : null,
      memoryBytes:
        held.length === 0 ? null : held.reduce((sum, each) => sum + (this.#measurements.figuresOf(each)?.bytes ?? 0), 0),
      index: this.#indexOf(node),
    };
    this.#figures.set(node, figures);
    return figures;
  }

  #leaveOut(node: PlanNode): NodeFigures {
    for (const input of inputsOf(node)) this.#leaveOut(input);
    const figures = { ...withinAbove, index: this.#indexOf(node) };
    this.#figures.set(node, figures);
    return figures;
  }

  /** The time of a node and of the nodes that are one step with it. */
  #msOf(node: PlanNode): number {
    const within = inputsOf(node).filter((input) => isWithin(input, node));
    return within.reduce((sum, input) => sum + this.#msOf(input), this.#measurements.figuresOf(node)?.ms ?? 0);
  }

  /** Rows that a node took of its input number `i`. */
  #takenOf(node: PlanNode, i: number, taken: TakenFigures): TakenFigures {
    if (node.kind === 'limit' && taken === 'all') {
      // A sort that gets the limit delivers no more rows anyway.
      if (node.input.kind === 'sort' && node.input.limit) return 'all';
      const most = firstRows(node.limit, node.offset, this.#execution);
      return this.#rows(node) < most ? 'all' : most;
    }
    if (taken === 'all' || taken === null) return taken;
    // A node that delivered a row has read its held inputs to the end.
    const whole = taken > 0 ? 'all' : null;
    switch (node.kind) {
      case 'project':
      case 'limit':
        return taken;
      case 'skip':
        return taken + this.#execution.rowLimit(node.offset);
      case 'spread':
        return null;
      case 'sort':
      case 'aggregate':
      case 'over':
      case 'function':
        return whole;
      case 'window':
        return node.type === 'session' ? whole : null;
      case 'join':
        return node.build === 'left' || node.leads === true || i === 1 ? whole : null;
      case 'set-operation':
        return i === 1 && /^(intersect|except)/.test(node.op) ? whole : null;
      default:
        return null;
    }
  }

  /** The index that rows are found by. */
  #indexOf(node: PlanNode): string | null {
    if (node.kind === 'search') {
      const searched = new Set(node.matches.flatMap(({ columns }) => columns.map((column) => node.input.columns[column]!.name)));
      return `text of ${[...searched].join(', ')}`;
    }
    if (node.kind === 'project' && node.nearest) return `vectors of ${node.input.columns[node.nearest.column]!.name}`;
    if (node.kind !== 'scan' || isClosedType(this.#execution.snapshot, node.type)) return null;
    const request = scanRequest(node, this.#execution);
    const access = request && this.#execution.snapshot.rows.estimate(request).access;
    return access === 'primary key' || access === 'cached view' ? access : null;
  }
}

const withinAbove = {
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
function isWithin(input: PlanNode, node: PlanNode): boolean {
  if (node.kind === 'search') return true;
  if (node.kind === 'project' && node.nearest) return input.kind === 'scan';
  return node.kind === 'filter' && (!isDisclosed(input) || filtersByKernel(node));
}

function sumOf(rows: readonly (number | null)[]): number | null {
  return rows.includes(null) ? null : rows.reduce<number>((sum, each) => sum + each!, 0);
}
