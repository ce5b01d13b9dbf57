/**
 * Measures the operators of one run for EXPLAIN ANALYZE, from outside each of them: operators don't know of it, and a run without
 * ANALYZE pays nothing. Time is an operator's own, without that of its inputs. Bytes are those of the cells that it holds on to,
 * counted cell by cell: how storage lays rows out depends on rows that the caller may not see.
 */
import type { Clock } from '../../clock.ts';
import type { Dictionary, Vector } from '../../log/values/columns.ts';
import type { ColumnType } from '../../log/values/value.ts';
import { type AggregateNode, inputsOf, type LogicalPlan, nodesOf, type PlanNode } from '../logical-plan.ts';
import type { Batch, Operator, Watch } from './operator.ts';

export interface Measured {
  /** Rows that came out, over all rounds of a recursion. */
  rows: number;
  ms: number;
  /** Size of the rows that came out; 0 where they are not held. */
  bytes: number;
}

export class Measurements implements Watch {
  readonly #measuringClock: Clock;
  readonly #holdingNodes: ReadonlySet<PlanNode>;
  readonly #measuredByNode = new Map<PlanNode, Measured>();
  readonly #textBytesByCode = new Map<Dictionary, Int32Array>();
  /** Time spent inside the operator that is running now. */
  #nestedMs = 0;

  constructor(plan: LogicalPlan, clock: Clock) {
    this.#measuringClock = clock;
    this.#holdingNodes = new Set([
      ...nodesOf(plan).flatMap(heldBy),
      ...plan.subqueries.flatMap(({ root, as }) => (as === 'set' ? [root] : [])),
    ]);
  }

  /** Undefined where it was never asked for a row. */
  figuresOf(node: PlanNode): Measured | undefined {
    return this.#measuredByNode.get(node);
  }

  around(node: PlanNode, operator: Operator): Operator {
    const nodeTypes = node.columns.map(({ type }) => type);
    const isHeld = this.#holdingNodes.has(node);
    return {
      next: () => {
        const outerNestedMs = this.#nestedMs;
        this.#nestedMs = 0;
        const startedMs = this.#measuringClock.monotonicMs();
        const batch = operator.next();
        const spentMs = this.#measuringClock.monotonicMs() - startedMs;
        let nodeFigures = this.#measuredByNode.get(node);
        if (!nodeFigures) this.#measuredByNode.set(node, (nodeFigures = { rows: 0, ms: 0, bytes: 0 }));
        nodeFigures.ms += spentMs - this.#nestedMs;
        this.#nestedMs = outerNestedMs + spentMs;
        if (batch !== null && batch.count > 0) {
          nodeFigures.rows += batch.count;
          if (isHeld) nodeFigures.bytes += this.#batchBytes(batch, nodeTypes);
        }
        return batch;
      },
      close: () => operator.close(),
    };
  }

  #batchBytes(batch: Batch, nodeTypes: readonly ColumnType[]): number {
    let batchBytes = 0;
    for (const [column, type] of nodeTypes.entries()) batchBytes += this.#columnBytes(batch.columns[column]!, type, batch);
    return batchBytes;
  }

  #columnBytes(vector: Vector, type: ColumnType, { selection, first, count }: Batch): number {
    if (vector.kind === 'null') return 0;
    const { nulls } = vector;
    const fixedCellBytes = vector.kind === 'vec' ? vector.dims * 4 : type === 'boolean' ? 1 : 8;
    let columnBytes = 0;
    for (let k = 0; k < count; k++) {
      const measuredRow = selection === null ? first + k : selection[k]!;
      if (nulls !== null && nulls[measuredRow] === 1) continue;
      if (vector.kind === 'text') columnBytes += vector.offsets[measuredRow + 1]! - vector.offsets[measuredRow]!;
      else if (vector.kind === 'dict') columnBytes += this.#textBytes(vector.dictionary, vector.values[measuredRow]!);
      else columnBytes += fixedCellBytes;
    }
    return columnBytes;
  }

  /** A code never changes its meaning, so each is measured once. */
  #textBytes(dictionary: Dictionary, code: number): number {
    let bytesByCode = this.#textBytesByCode.get(dictionary);
    if (bytesByCode === undefined || code >= bytesByCode.length) {
      const largerBytesByCode = new Int32Array(Math.max(dictionary.size, code + 1)).fill(-1);
      if (bytesByCode) largerBytesByCode.set(bytesByCode);
      this.#textBytesByCode.set(dictionary, (bytesByCode = largerBytesByCode));
    }
    if (bytesByCode[code]! < 0) bytesByCode[code] = Buffer.byteLength(dictionary.text(code));
    return bytesByCode[code]!;
  }
}

/** The nodes whose rows a node holds on to, at most. */
export function heldBy(node: PlanNode): readonly PlanNode[] {
  switch (node.kind) {
    case 'aggregate':
      return node.calls.some(keepsValues) ? [node, node.input] : [node];
    case 'sort':
      return [node.limit ? node : node.input];
    case 'join':
      return node.build === 'right' && node.leads !== true ? [node.right] : [node.left, node.right];
    case 'set-operation':
      return node.op === 'union all' ? [] : node.op === 'union' ? [node] : inputsOf(node);
    case 'window':
      return node.type === 'session' ? [node.input] : [];
    case 'distinct':
    case 'over':
    case 'recursive':
    case 'function':
      return [node];
    default:
      return [];
  }
}

const valueKeepingCalls: ReadonlySet<string> = new Set(['median', 'string_agg', 'array_agg', 'array', 'collect']);

function keepsValues({ function: aggregateName, distinct }: AggregateNode['calls'][number]): boolean {
  return distinct || valueKeepingCalls.has(aggregateName);
}
