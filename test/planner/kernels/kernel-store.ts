/**
 * Rows whose columns rest in column memory, as sealed segments have them, beside the same rows in plain arrays: kernels read
 * the first, generated code the second. Blocks leave unsifted where they may, as storage gives them.
 */
import type { Invocation } from '../../../src/governance/gate-contract.ts';
import { ColumnMemory } from '../../../src/log/values/column-memory.ts';
import type { Dictionary, Vector } from '../../../src/log/values/columns.ts';
import type { ColumnType } from '../../../src/log/values/value.ts';
import type { RowBlock, ScanRequest, Sift } from '../../../src/projections/access-paths.ts';
import { FakeStore } from '../fake-snapshot.ts';

export interface KernelSegment {
  readonly length: number;
  readonly columns: Readonly<Record<string, Vector>>;
  /** Which rows are visible, and from which row to which the basis sees any. */
  readonly sift?: Sift;
  readonly first?: number;
  readonly end?: number;
}

/** Counts the workspaces that kernels ask for, and has room for none where a test says so. */
export class WatchedMemory extends ColumnMemory {
  workspaces = 0;
  hasRoom = true;
  #columns = true;

  /** What is put from here on is no column. */
  columnsEnd(): void {
    this.#columns = false;
  }

  override allocateIn(arena: Parameters<ColumnMemory['allocateIn']>[0], bytes: number): Uint8Array | null {
    if (this.#columns) return super.allocateIn(arena, bytes);
    this.workspaces++;
    return this.hasRoom ? super.allocateIn(arena, bytes) : null;
  }
}

export class KernelStore {
  readonly memory: WatchedMemory | null;
  readonly #fake: FakeStore;
  readonly #segments: readonly KernelSegment[];

  /** Without a memory the arrays stay as they are. */
  constructor(types: Readonly<Record<string, ColumnType>>, segments: readonly KernelSegment[], memory: WatchedMemory | null) {
    this.memory = memory;
    this.#fake = new FakeStore([{ name: 'T', properties: types, rows: [] }]);
    this.#segments = memory ? segments.map((segment) => moved(segment, memory)) : segments;
    memory?.columnsEnd();
  }

  invocation(): Invocation {
    const invocation = this.#fake.invocation();
    const snapshot = invocation.snapshot();
    const rows = { ...snapshot.rows, scan: (request: ScanRequest) => this.#blocks(request) };
    return { ...invocation, snapshot: () => ({ ...snapshot, rows }) };
  }

  *#blocks(request: ScanRequest): Generator<RowBlock, void> {
    for (const { length, columns, sift, first: begin = 0, end: last = length } of this.#segments) {
      const vectors = request.columns.map((name): Vector => columns[name] ?? { kind: 'null' });
      const unsifted = this.memory && request.unsiftedRows ? (sift ?? { live: null, closings: null, closing: 0 }) : null;
      const step = unsifted ? request.unsiftedRows! : (request.blockRows ?? length);
      for (let first = begin; first < last; first += step) {
        const count = Math.min(step, last - first);
        const block = { columns: vectors, selection: null, first, count, scanned: count, path: 0 };
        if (unsifted) yield { ...block, sift: unsifted };
        else {
          const rows = sift ? visibleRows(sift, first, first + count) : null;
          yield rows ? { ...block, selection: rows, first: 0, count: rows.length } : block;
        }
      }
    }
  }
}

function visibleRows({ live, closings, closing }: Sift, first: number, end: number): Int32Array {
  const rows: number[] = [];
  for (let row = first; row < end; row++) {
    if (live && ((live[row >>> 5]! >>> (row & 31)) & 1) === 0) continue;
    if (!closings || closings[row]! >= closing) rows.push(row);
  }
  return Int32Array.from(rows);
}

function moved({ columns, sift, ...rest }: KernelSegment, memory: ColumnMemory): KernelSegment {
  const inMemory = Object.fromEntries(Object.entries(columns).map(([name, vector]) => [name, vectorIn(vector, memory)]));
  const closings = sift?.closings && arrayIn(sift.closings, memory);
  return { ...rest, columns: inMemory, ...(sift ? { sift: { ...sift, closings: closings ?? null } } : {}) };
}

function vectorIn(vector: Vector, memory: ColumnMemory): Vector {
  switch (vector.kind) {
    case 'i32':
      return { ...vector, values: arrayIn(vector.values, memory) };
    case 'f64':
      return { ...vector, values: arrayIn(vector.values, memory) };
    case 'i64':
      return { ...vector, values: arrayIn(vector.values, memory) };
    case 'dict':
      return { ...vector, values: arrayIn(vector.values, memory) };
    default:
      return vector;
  }
}

function arrayIn<T extends Int32Array | Float64Array | BigInt64Array>(array: T, memory: ColumnMemory): T {
  const extent = memory.allocate(array.byteLength)!;
  const kind = array.constructor as new (buffer: ArrayBufferLike, offset: number, length: number) => T;
  const copy = new kind(extent.buffer, extent.byteOffset, array.length);
  copy.set(array as never);
  return copy;
}

/** Texts by code. */
export function dictionaryOf(texts: readonly string[]): Dictionary {
  return { size: texts.length, text: (code) => texts[code]!, codeOf: (text) => texts.indexOf(text) };
}
