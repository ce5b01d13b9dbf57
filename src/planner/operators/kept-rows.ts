/** Rows that every round of a recursion asks for and that no round changes: read from the store once, then from memory. */
import type { Vector } from '../../log/values/columns.ts';
import type { PlanColumn } from '../logical-plan.ts';
import { RowSink } from './column-sink.ts';
import { type Batch, emptyBatch, type Execution, type Operator } from './operator.ts';

interface Whole {
  readonly columns: readonly Vector[];
  readonly count: number;
}

export class KeptRows {
  readonly #columns: readonly PlanColumn[];
  readonly #execution: Execution;
  #whole: Whole | null = null;

  constructor(columns: readonly PlanColumn[], execution: Execution) {
    this.#columns = columns;
    this.#execution = execution;
  }

  /** `input` is what yields the rows; a reader that stops early keeps nothing, and the next one begins again. */
  reader(input: () => Operator): Operator {
    return this.#whole ? this.#again(this.#whole) : this.#first(input());
  }

  #first(input: Operator): Operator {
    const { memory } = this.#execution;
    const sink = new RowSink(this.#columns.map(({ type }) => type));
    let held = 0;
    return {
      next: () => {
        const batch = input.next();
        if (batch === null) {
          this.#whole ??= { columns: sink.vectors(), count: sink.length };
          return null;
        }
        if (batch.count === 0) return emptyBatch;
        sink.append(batch);
        held = memory.change(held, sink.bytes);
        return batch;
      },
      close: () => {
        if (!this.#whole) memory.change(held, 0);
        input.close();
      },
    };
  }

  #again({ columns, count: rows }: Whole): Operator {
    let first = 0;
    return {
      next: (): Batch | null => {
        const count = Math.min(this.#execution.limits.blockRows, rows - first);
        if (count === 0) return null;
        first += count;
        return { columns, selection: null, first: first - count, count };
      },
      close: () => undefined,
    };
  }
}
