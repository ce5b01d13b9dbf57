/** Operators over arrays: rows in any layout and cut into blocks at will, and what an operator puts out as rows of cells. */
import type { Dictionary, Vector } from '../../../src/log/values/columns.ts';
import { type Cell, type ColumnType, I64_MAX } from '../../../src/log/values/value.ts';
import { cellAt, VectorBuilder } from '../../../src/log/values/vector-builder.ts';
import { KernelContext } from '../../../src/planner/expressions/kernel-context.ts';
import { type Batch, type Execution, MemoryMeter, type Operator } from '../../../src/planner/operators/operator.ts';
import type { Bound } from '../../../src/planner/expressions/bound-expression.ts';

export type CellRow = readonly Cell[];

/** How rows rest; the same rows in any of them must give the same answer. */
export interface Layout {
  /** Rows a block. */
  readonly blockRows: number;
  /** Rows of others lie between these, so that blocks are selections. */
  readonly sparse: boolean;
  /** Text as codes: one dictionary for all blocks, one per block, or as it is. */
  readonly text: 'shared' | 'per block' | 'plain';
  /** Integers in 64 bits whether they need them or not, in every second block. */
  readonly wide: boolean;
}

export const plainLayout: Layout = { blockRows: 1_000, sparse: false, text: 'plain', wide: false };

export class ArraySource implements Operator {
  readonly #blocks: Iterator<Batch>;
  closed = 0;

  constructor(types: readonly ColumnType[], rows: readonly CellRow[], layout: Layout = plainLayout) {
    this.#blocks = blocksOf(types, rows, layout);
  }

  next(): Batch | null {
    const next = this.#blocks.next();
    return next.done ? null : next.value;
  }

  close(): void {
    this.closed++;
  }
}

function* blocksOf(types: readonly ColumnType[], rows: readonly CellRow[], layout: Layout): Generator<Batch, void> {
  const dictionaries = types.map(() => new TestDictionary());
  for (let at = 0, block = 0; at < rows.length; at += layout.blockRows, block++) {
    const own = rows.slice(at, at + layout.blockRows);
    const laid = layout.sparse ? own.flatMap((row) => [rows[0]!, row]) : own;
    const columns = types.map((type, c) => {
      const cells = laid.map((row) => row[c]!);
      if (type === 'string' && layout.text !== 'plain')
        return coded(cells, layout.text === 'shared' ? dictionaries[c]! : new TestDictionary());
      return vectorOf(type, cells, layout.wide && block % 2 === 0);
    });
    const selection = layout.sparse ? Int32Array.from(own, (_, i) => 2 * i + 1) : null;
    yield { columns, selection, first: 0, count: own.length };
    yield { columns: [], selection: null, first: 0, count: 0 };
  }
}

function vectorOf(type: ColumnType, cells: readonly Cell[], wide: boolean): Vector {
  const builder = new VectorBuilder(type);
  for (const cell of cells) builder.append(cell);
  if (wide && type === 'integer') builder.append(I64_MAX);
  return builder.build();
}

function coded(cells: readonly Cell[], dictionary: TestDictionary): Vector {
  // Under a NULL there may be a code that no dictionary has.
  const values = Int32Array.from(cells, (cell) => (cell === null ? 99_999 : dictionary.encode(String(cell))));
  const nulls = cells.includes(null) ? Uint8Array.from(cells, (cell) => (cell === null ? 1 : 0)) : null;
  return { kind: 'dict', values, dictionary, nulls };
}

class TestDictionary implements Dictionary {
  readonly #texts: string[] = [];

  get size(): number {
    return this.#texts.length;
  }

  text(code: number): string {
    return this.#texts[code]!;
  }

  codeOf(text: string): number {
    return this.#texts.indexOf(text);
  }

  encode(text: string): number {
    const known = this.codeOf(text);
    return known >= 0 ? known : this.#texts.push(text) - 1;
  }
}

export interface Drained {
  readonly rows: CellRow[];
  readonly calls: number;
  readonly largest: number;
}

/** Every row that comes out, copied before the next call. */
export function drain(operator: Operator, types: readonly ColumnType[]): Drained {
  const rows: CellRow[] = [];
  let calls = 0;
  let largest = 0;
  for (let batch = operator.next(); batch !== null; batch = operator.next(), calls++) {
    largest = Math.max(largest, batch.count);
    for (let j = 0; j < batch.count; j++) {
      const i = batch.selection ? batch.selection[j]! : batch.first + j;
      rows.push(types.map((type, c) => cellAt(batch.columns[c]!, type, i)));
    }
  }
  operator.close();
  return { rows, calls, largest };
}

/** What operators over arrays need of an execution; there is no snapshot below them. */
export function arrayExecution({
  bytesMax = 1e9,
  parameters = [] as readonly Bound[],
  literals = [] as readonly Cell[],
} = {}): Execution {
  return {
    snapshot: undefined as never,
    kernels: new KernelContext({
      literals: literals as readonly (string | bigint | number | boolean | null)[],
      placeOf: () => ({ line: 1, column: 1 }),
      instant: 0n,
      parameters,
    } as never),
    time: { system: 'all', valid: 'all' },
    after: null,
    pinned: null,
    limit: Number.MAX_SAFE_INTEGER,
    blockRows: 1_000,
    scannedRowsMax: 1e9,
    memory: new MemoryMeter(bytesMax),
    counters: { scanned: 0, looks: 0, hits: 0 },
  } as unknown as Execution;
}
