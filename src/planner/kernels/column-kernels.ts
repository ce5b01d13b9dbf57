/**
 * The kernels of `kernels/column-kernels.ts`, run in the memories that hold columns: one instance per memory, made on first use.
 * Their work and arguments are described there; offsets are bytes in the memory.
 */
import { compiledKernels } from './compiled-kernels.ts';

type MemoryOffset = number;

/** Adds or compares the values of the chosen rows into accumulators by group; `absent` counts NULLs by group. */
type AccumulateColumn = (
  values: MemoryOffset,
  selection: MemoryOffset,
  first: number,
  count: number,
  groups: MemoryOffset,
  nulls: MemoryOffset,
  absent: MemoryOffset,
  into: MemoryOffset,
) => void;

type ColumnExtreme = (...args: [...Parameters<AccumulateColumn>, sign: 1 | -1]) => void;

export interface ColumnKernels {
  keepRangeI32(values: MemoryOffset, least: number, most: number, flip: 0 | -1, mask: MemoryOffset, words: number): void;
  keepRangeF64(values: MemoryOffset, least: number, most: number, flip: 0 | -1, mask: MemoryOffset, words: number): void;
  keepRangeI64(values: MemoryOffset, least: bigint, most: bigint, flip: 0 | -1, mask: MemoryOffset, words: number): void;
  keepSetI32(values: MemoryOffset, items: MemoryOffset, count: number, flip: 0 | -1, mask: MemoryOffset, words: number): void;
  keepCodes(codes: MemoryOffset, table: MemoryOffset, mask: MemoryOffset, words: number): void;
  keepUnmarked(bytes: MemoryOffset, flip: 0 | -1, mask: MemoryOffset, words: number): void;
  prepareSelection(table: MemoryOffset): void;
  selectRows(mask: MemoryOffset, words: number, row: number, table: MemoryOffset, selection: MemoryOffset): number;
  groupValues(
    values: MemoryOffset,
    table: MemoryOffset,
    size: number,
    selection: MemoryOffset,
    first: number,
    from: number,
    count: number,
    groups: MemoryOffset,
    rows: MemoryOffset,
    addends: MemoryOffset,
    sums: MemoryOffset,
  ): number;
  groupPairs(
    left: MemoryOffset,
    leftTable: MemoryOffset,
    leftSize: number,
    right: MemoryOffset,
    rightTable: MemoryOffset,
    rightSize: number,
    offsets: MemoryOffset,
    bits: number,
    selection: MemoryOffset,
    first: number,
    from: number,
    count: number,
    groups: MemoryOffset,
    rows: MemoryOffset,
  ): number;
  countAbsent(
    selection: MemoryOffset,
    first: number,
    count: number,
    groups: MemoryOffset,
    nulls: MemoryOffset,
    absent: MemoryOffset,
  ): void;
  readonly addF64: AccumulateColumn;
  readonly addF64OfI32: AccumulateColumn;
  readonly addI32: AccumulateColumn;
  readonly extremeF64: ColumnExtreme;
  readonly extremeI32: ColumnExtreme;
  readonly extremeI64: ColumnExtreme;
}

let kernelModule: WebAssembly.Module | null = null;
const kernelsByMemory = new WeakMap<WebAssembly.Memory, ColumnKernels>();

export function kernelsIn(memory: WebAssembly.Memory): ColumnKernels {
  let columnKernels = kernelsByMemory.get(memory);
  if (!columnKernels) {
    kernelModule ??= new WebAssembly.Module(Buffer.from(compiledKernels, 'base64'));
    // The names and arguments of exports match the source: a test compares the compiled module with it.
    columnKernels = new WebAssembly.Instance(kernelModule, { env: { memory } }).exports as unknown as ColumnKernels;
    kernelsByMemory.set(memory, columnKernels);
  }
  return columnKernels;
}
