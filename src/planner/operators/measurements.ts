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
  readonly #clock: Clock;
  readonly #held: ReadonlySet<PlanNode>;
  readonly #byNode = new Map<PlanNode, Measured>();
  readonly #texts = new Map<Dictionary, Int32Array>();
  /** Time spent inside the operator that is running now. */
  #withinMs = 0;

  constructor(plan: LogicalPlan, clock: Clock) {
    this.#clock = clock;
    this.#held = new Set([
      ...nodesOf(plan).flatMap(heldBy),
      ...plan.subqueries.flatMap(({ root, as }) => (as === 'set' ? [root] : [])),
    ]);
  }

  /** Undefined where it was never asked for a row. */
  figuresOf(node: PlanNode): Measured | undefined {
    return this.#byNode.get(node);
  }

  around(node: PlanNode, operator: Operator): Operator {
    const types = node.columns.map(({ type }) => type);
    const isHeld = this.#held.has(node);
    return {
      next: () => {
        const outside = this.#withinMs;
        this.#withinMs = 0;
        const startedMs = this.#clock.monotonicMs();
        const batch = operator.next();
        const spentMs = this.#clock.monotonicMs() - startedMs;
        let own = this.#byNode.get(node);
        if (!own) this.#byNode.set(node, (own = { rows: 0, ms: 0, bytes: 0 }));
        own.ms += spentMs - this.#withinMs;
        this.#withinMs = outside + spentMs;
        if (batch !== null && batch.count > 0) {
          own.rows += batch.count;
          if (isHeld) own.bytes += this.#bytes(batch, types);
        }
        return batch;
      },
      close: () => operator.close(),
    };
  }

  #bytes(batch: Batch, types: readonly ColumnType[]): number {
    let bytes = 0;
    for (const [column, type] of types.entries()) bytes += this.#columnBytes(batch.columns[column]!, type, batch);
    return bytes;
  }

  #columnBytes(vector: Vector, type: ColumnType, { selection, first, count }: Batch): number {
    if (vector.kind === 'null') return 0;
    const { nulls } = vector;
    const fixed = vector.kind === 'vec' ? vector.dims * 4 : type === 'boolean' ? 1 : 8;
    let bytes = 0;
    for (let k = 0; k < count; k++) {
      const row = selection === null ? first + k : selection[k]!;
      if (nulls !== null && nulls[row] === 1) continue;
      if (vector.kind === 'text') bytes += vector.offsets[row + 1]! - vector.offsets[row]!;
      else if (vector.kind === 'dict') bytes += this.#textBytes(vector.dictionary, vector.values[row]!);
      else bytes += fixed;
    }
    return bytes;
  }

  /** A code never changes its meaning, so each is measured once. */
  #textBytes(dictionary: Dictionary, code: number): number {
    let known = this.#texts.get(dictionary);
    if (known === undefined || code >= known.length) {
      const more = new Int32Array(Math.max(dictionary.size, code + 1)).fill(-1);
      if (known) more.set(known);
      this.#texts.set(dictionary, (known = more));
    }
    if (known[code]! < 0) known[code] = Buffer.byteLength(dictionary.text(code));
    return known[code]!;
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

const keeping: ReadonlySet<string> = new Set(['median', 'string_agg', 'array_agg', 'array', 'collect']);

function keepsValues({ function: name, distinct }: AggregateNode['calls'][number]): boolean {
  return distinct || keeping.has(name);
}
