/**
 * The kernels of `kernels/column-kernels.ts`, run in the memories that hold columns: one instance per memory, made on first use.
 * Their work and arguments are described there; offsets are bytes in the memory.
 */
import { compiledKernels } from './compiled-kernels.ts';

type Place = number;

/** Adds or compares the values of the chosen rows into accumulators by group; `absent` counts NULLs by group. */
type Accumulate = (
  values: Place,
  selection: Place,
  first: number,
  count: number,
  groups: Place,
  nulls: Place,
  absent: Place,
  into: Place,
) => void;

type Extreme = (...args: [...Parameters<Accumulate>, sign: 1 | -1]) => void;

export interface ColumnKernels {
  keepRangeI32(values: Place, least: number, most: number, flip: 0 | -1, mask: Place, words: number): void;
  keepRangeF64(values: Place, least: number, most: number, flip: 0 | -1, mask: Place, words: number): void;
  keepRangeI64(values: Place, least: bigint, most: bigint, flip: 0 | -1, mask: Place, words: number): void;
  keepSetI32(values: Place, items: Place, count: number, flip: 0 | -1, mask: Place, words: number): void;
  keepCodes(codes: Place, table: Place, mask: Place, words: number): void;
  keepUnmarked(bytes: Place, flip: 0 | -1, mask: Place, words: number): void;
  prepareSelection(table: Place): void;
  selectRows(mask: Place, words: number, row: number, table: Place, selection: Place): number;
  groupValues(
    values: Place,
    table: Place,
    size: number,
    selection: Place,
    first: number,
    from: number,
    count: number,
    groups: Place,
    rows: Place,
    addends: Place,
    sums: Place,
  ): number;
  groupPairs(
    left: Place,
    leftTable: Place,
    leftSize: number,
    right: Place,
    rightTable: Place,
    rightSize: number,
    places: Place,
    bits: number,
    selection: Place,
    first: number,
    from: number,
    count: number,
    groups: Place,
    rows: Place,
  ): number;
  countAbsent(selection: Place, first: number, count: number, groups: Place, nulls: Place, absent: Place): void;
  readonly addF64: Accumulate;
  readonly addF64OfI32: Accumulate;
  readonly addI32: Accumulate;
  readonly extremeF64: Extreme;
  readonly extremeI32: Extreme;
  readonly extremeI64: Extreme;
}

let module: WebAssembly.Module | null = null;
const instances = new WeakMap<WebAssembly.Memory, ColumnKernels>();

export function kernelsIn(memory: WebAssembly.Memory): ColumnKernels {
  let kernels = instances.get(memory);
  if (!kernels) {
    module ??= new WebAssembly.Module(Buffer.from(compiledKernels, 'base64'));
    // The names and arguments of exports match the source: a test compares the compiled module with it.
    kernels = new WebAssembly.Instance(module, { env: { memory } }).exports as unknown as ColumnKernels;
    instances.set(memory, kernels);
  }
  return kernels;
}
