/**
 * Finds the rows of a block that are visible and pass some tests, by kernels over the columns in place. A block or a test that
 * kernels can't handle is left to the caller.
 */
import { memoryOf, type Workspace, workspaceIn } from '../../log/values/column-memory.ts';
import type { Vector } from '../../log/values/columns.ts';
import type { Sift } from '../../projections/access-paths.ts';
import type { KernelContext } from '../expressions/kernel-context.ts';
import { both, type ColumnTest, type Demand, demandOf } from './column-tests.ts';
import { type ColumnKernels, kernelsIn } from './column-kernels.ts';

export interface MaskedBlock {
  readonly columns: readonly Vector[];
  readonly first: number;
  readonly count: number;
  readonly sift?: Sift;
}

/** Rows of a segment, and places behind them that a kernel may write. */
const rowsMax = 65_536;
const rowsBeyond = 8;
/** Offsets in the workspace. */
const selectionAt = 0;
const maskAt = selectionAt + (rowsMax + rowsBeyond) * 4;
const offsetsAt = maskAt + rowsMax / 8;
const nullsAt = offsetsAt + 256 * 8;
const closingsAt = nullsAt + rowsMax;
const itemsAt = closingsAt + rowsMax * 8;
const tableAt = itemsAt + 16 * 16;
const workspaceBytes = tableAt + 4_096;

/** A workspace as kernels and this file see it. */
interface Room {
  readonly workspace: Workspace;
  readonly kernels: ColumnKernels;
  readonly at: number;
  readonly selection: Int32Array;
  readonly mask: Int32Array;
}

export class RowMask {
  readonly #tests: readonly ColumnTest[];
  readonly #context: KernelContext;
  readonly #rooms = new Map<WebAssembly.Memory, Room>();
  /** By number of the test: its demands by layout, translated once. */
  readonly #demands: Map<unknown, Demand | null>[];
  /** Row numbers that `select` found; valid until its next call. */
  selection: Int32Array = new Int32Array(0);

  constructor(tests: readonly ColumnTest[], context: KernelContext) {
    this.#tests = tests;
    this.#context = context;
    this.#demands = tests.map(() => new Map());
  }

  /** How many rows are left of a block; -1 where that is not for kernels to say. The tests are left out unless `testing`. */
  select(block: MaskedBlock, testing: boolean): number {
    const memory = memoryIn(block.columns);
    const demands = testing ? this.#demandsOn(block.columns) : [];
    const room = memory && demands && this.#roomIn(memory);
    if (!room || !demands) return -1;
    const { first, count } = block;
    const word = first >>> 5;
    const words = ((first + count + 31) >>> 5) - word;
    this.#begin(room, block, word, words);
    for (const { column, demand } of demands) this.#keep(room, block.columns[column]!, demand, word, words);
    this.selection = room.selection;
    return room.kernels.selectRows(room.at + maskAt, words, word << 5, room.at + offsetsAt, room.at + selectionAt);
  }

  release(): void {
    for (const { workspace } of this.#rooms.values()) workspace.release();
    this.#rooms.clear();
  }

  #roomIn(memory: WebAssembly.Memory): Room | null {
    const known = this.#rooms.get(memory);
    if (known) return known;
    const workspace = workspaceIn(memory, workspaceBytes);
    if (!workspace) return null;
    const { buffer, byteOffset: at } = workspace.bytes;
    const kernels = kernelsIn(memory);
    kernels.prepareSelection(at + offsetsAt);
    const selection = new Int32Array(buffer, at + selectionAt, rowsMax);
    const room = { workspace, kernels, at, selection, mask: new Int32Array(buffer, at + maskAt, rowsMax / 32) };
    this.#rooms.set(memory, room);
    return room;
  }

  #demandsOn(columns: readonly Vector[]): { column: number; demand: Demand }[] | null {
    const demands: { column: number; demand: Demand }[] = [];
    for (const [at, test] of this.#tests.entries()) {
      const { column } = test;
      const vector = columns[column]!;
      const layout = vector.kind === 'dict' ? vector.dictionary : vector.kind;
      let demand = this.#demands[at]!.get(layout);
      if (demand === undefined) this.#demands[at]!.set(layout, (demand = demandOf(test, vector, this.#context)));
      if (demand === null) return null;
      const same = demands.findIndex((each) => each.column === column);
      const merged = same < 0 ? null : both(demands[same]!.demand, demand);
      if (merged) demands[same] = { column, demand: merged };
      else demands.push({ column, demand });
    }
    return demands;
  }

  /** Bits of the rows of the block, as far as they are visible. */
  #begin(room: Room, { first, count, sift }: MaskedBlock, word: number, words: number): void {
    const { mask, kernels, at } = room;
    if (sift?.live) mask.set(sift.live.subarray(word, word + words));
    else mask.fill(-1, 0, words);
    mask[0]! &= -1 << (first & 31);
    const end = (first + count) & 31;
    if (end !== 0) mask[words - 1]! &= (1 << end) - 1;
    if (sift?.visible) for (let at = 0; at < words; at++) mask[at]! &= sift.visible[word + at]!;
    if (!sift?.closings) return;
    const { closings, closing } = sift;
    const address = this.#addressOf(room, closings, closingsAt) + word * 32 * closings.BYTES_PER_ELEMENT;
    if (closings instanceof Int32Array) kernels.keepRangeI32(address, closing, 2_147_483_647, 0, at + maskAt, words);
    else kernels.keepRangeF64(address, closing, Number.POSITIVE_INFINITY, 0, at + maskAt, words);
  }

  #keep(room: Room, vector: Vector, demand: Demand, word: number, words: number): void {
    const { kernels, at, mask } = room;
    const to = at + maskAt;
    if (vector.kind === 'null') {
      if (demand.kind !== 'isNull') mask.fill(0, 0, words);
      return;
    }
    const marked = vector.nulls && this.#addressOf(room, vector.nulls, nullsAt) + word * 32;
    if (demand.kind === 'isNull') {
      if (marked === null) mask.fill(0, 0, words);
      else kernels.keepUnmarked(marked, -1, to, words);
      return;
    }
    if (marked !== null) kernels.keepUnmarked(marked, 0, to, words);
    if (demand.kind === 'isNotNull') return;
    const { values } = vector as Extract<Vector, { kind: 'i32' | 'f64' | 'i64' | 'dict' }>;
    const from = values.byteOffset + word * 32 * values.BYTES_PER_ELEMENT;
    if (demand.kind === 'codes') {
      room.workspace.bytes.set(demand.table, tableAt);
      kernels.keepCodes(from, at + tableAt, to, words);
      return;
    }
    const flip = demand.outside ? -1 : 0;
    if (demand.kind === 'set') {
      const items = new Int32Array(room.workspace.bytes.buffer, at + itemsAt, demand.items.length * 4);
      demand.items.forEach((item, n) => items.fill(item, n * 4, n * 4 + 4));
      kernels.keepSetI32(from, at + itemsAt, demand.items.length, flip, to, words);
      return;
    }
    if (demand.least > demand.most) {
      if (flip === 0) mask.fill(0, 0, words);
    } else if (demand.kind === 'i32') kernels.keepRangeI32(from, demand.least, demand.most, flip, to, words);
    else if (demand.kind === 'f64') kernels.keepRangeF64(from, demand.least, demand.most, flip, to, words);
    else kernels.keepRangeI64(from, demand.least, demand.most, flip, to, words);
  }

  /** The offset of an array in the memory; it is copied there if it lies elsewhere. */
  #addressOf({ workspace }: Room, array: Uint8Array | Int32Array | Float64Array, copyAt: number): number {
    const { bytes } = workspace;
    if (array.buffer === bytes.buffer) return array.byteOffset;
    bytes.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), copyAt);
    return bytes.byteOffset + copyAt;
  }
}

/** The memory in which all columns of a block rest; undefined where there is no such. */
export function memoryIn(columns: readonly Vector[]): WebAssembly.Memory | undefined {
  let memory: WebAssembly.Memory | undefined;
  for (const vector of columns) {
    if (vector.kind === 'null') continue;
    if (vector.kind !== 'i32' && vector.kind !== 'f64' && vector.kind !== 'i64' && vector.kind !== 'dict') return undefined;
    const own = memoryOf(vector.values);
    if (own === undefined || (memory !== undefined && own !== memory)) return undefined;
    memory = own;
  }
  return memory;
}
