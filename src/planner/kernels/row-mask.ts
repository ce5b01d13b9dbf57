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
const maskedRowsMax = 65_536;
const selectionSlackRows = 8;
/** Offsets in the workspace. */
const selectionOffset = 0;
const maskOffset = selectionOffset + (maskedRowsMax + selectionSlackRows) * 4;
const offsetsAt = maskOffset + maskedRowsMax / 8;
const nullsCopyOffset = offsetsAt + 256 * 8;
const closingsCopyOffset = nullsCopyOffset + maskedRowsMax;
const setItemsOffset = closingsCopyOffset + maskedRowsMax * 8;
const codeTableOffset = setItemsOffset + 16 * 16;
const maskWorkspaceBytes = codeTableOffset + 4_096;

/** A workspace as kernels and this file see it. */
interface MaskWorkspace {
  readonly workspace: Workspace;
  readonly kernels: ColumnKernels;
  readonly at: number;
  readonly selection: Int32Array;
  readonly mask: Int32Array;
}

export class RowMask {
  readonly #columnTests: readonly ColumnTest[];
  readonly #kernelContext: KernelContext;
  readonly #maskWorkspaces = new Map<WebAssembly.Memory, MaskWorkspace>();
  /** By number of the test: its demands by layout, translated once. */
  readonly #demandsByLayout: Map<unknown, Demand | null>[];
  /** Row numbers that `select` found; valid until its next call. */
  selection: Int32Array = new Int32Array(0);

  constructor(tests: readonly ColumnTest[], context: KernelContext) {
    this.#columnTests = tests;
    this.#kernelContext = context;
    this.#demandsByLayout = tests.map(() => new Map());
  }

  /** How many rows are left of a block; -1 where that is not for kernels to say. The tests are left out unless `appliesTests`. */
  select(maskedBlock: MaskedBlock, appliesTests: boolean): number {
    const columnMemory = memoryIn(maskedBlock.columns);
    const columnDemands = appliesTests ? this.#demandsOfColumns(maskedBlock.columns) : [];
    const maskWorkspace = columnMemory && columnDemands && this.#maskWorkspaceIn(columnMemory);
    if (!maskWorkspace || !columnDemands) return -1;
    const { first, count } = maskedBlock;
    const firstMaskWord = first >>> 5;
    const maskWordCount = ((first + count + 31) >>> 5) - firstMaskWord;
    this.#beginMask(maskWorkspace, maskedBlock, firstMaskWord, maskWordCount);
    for (const { column, demand } of columnDemands)
      this.#keepDemanded(maskWorkspace, maskedBlock.columns[column]!, demand, firstMaskWord, maskWordCount);
    this.selection = maskWorkspace.selection;
    return maskWorkspace.kernels.selectRows(
      maskWorkspace.at + maskOffset,
      maskWordCount,
      firstMaskWord << 5,
      maskWorkspace.at + offsetsAt,
      maskWorkspace.at + selectionOffset,
    );
  }

  release(): void {
    for (const { workspace } of this.#maskWorkspaces.values()) workspace.release();
    this.#maskWorkspaces.clear();
  }

  #maskWorkspaceIn(columnMemory: WebAssembly.Memory): MaskWorkspace | null {
    const knownWorkspace = this.#maskWorkspaces.get(columnMemory);
    if (knownWorkspace) return knownWorkspace;
    const workspace = workspaceIn(columnMemory, maskWorkspaceBytes);
    if (!workspace) return null;
    const { buffer, byteOffset: workspaceOffset } = workspace.bytes;
    const columnKernels = kernelsIn(columnMemory);
    columnKernels.prepareSelection(workspaceOffset + offsetsAt);
    const selection = new Int32Array(buffer, workspaceOffset + selectionOffset, maskedRowsMax);
    const newWorkspace = {
      workspace,
      kernels: columnKernels,
      at: workspaceOffset,
      selection,
      mask: new Int32Array(buffer, workspaceOffset + maskOffset, maskedRowsMax / 32),
    };
    this.#maskWorkspaces.set(columnMemory, newWorkspace);
    return newWorkspace;
  }

  #demandsOfColumns(columns: readonly Vector[]): { column: number; demand: Demand }[] | null {
    const columnDemands: { column: number; demand: Demand }[] = [];
    for (const [testIndex, columnTest] of this.#columnTests.entries()) {
      const { column } = columnTest;
      const columnVector = columns[column]!;
      const vectorLayout = columnVector.kind === 'dict' ? columnVector.dictionary : columnVector.kind;
      let demand = this.#demandsByLayout[testIndex]!.get(vectorLayout);
      if (demand === undefined)
        this.#demandsByLayout[testIndex]!.set(vectorLayout, (demand = demandOf(columnTest, columnVector, this.#kernelContext)));
      if (demand === null) return null;
      const sameColumnIndex = columnDemands.findIndex((columnDemand) => columnDemand.column === column);
      const mergedDemand = sameColumnIndex < 0 ? null : both(columnDemands[sameColumnIndex]!.demand, demand);
      if (mergedDemand) columnDemands[sameColumnIndex] = { column, demand: mergedDemand };
      else columnDemands.push({ column, demand });
    }
    return columnDemands;
  }

  /** Bits of the rows of the block, as far as they are visible. */
  #beginMask(
    maskWorkspace: MaskWorkspace,
    { first, count, sift }: MaskedBlock,
    firstMaskWord: number,
    maskWordCount: number,
  ): void {
    const { mask, kernels, at: workspaceOffset } = maskWorkspace;
    if (sift?.live) mask.set(sift.live.subarray(firstMaskWord, firstMaskWord + maskWordCount));
    else mask.fill(-1, 0, maskWordCount);
    mask[0]! &= -1 << (first & 31);
    const lastWordBits = (first + count) & 31;
    if (lastWordBits !== 0) mask[maskWordCount - 1]! &= (1 << lastWordBits) - 1;
    if (sift?.visible) for (let at = 0; at < maskWordCount; at++) mask[at]! &= sift.visible[firstMaskWord + at]!;
    if (!sift?.closings) return;
    const { closings, closing } = sift;
    const address =
      this.#addressOf(maskWorkspace, closings, closingsCopyOffset) + firstMaskWord * 32 * closings.BYTES_PER_ELEMENT;
    if (closings instanceof Int32Array)
      kernels.keepRangeI32(address, closing, 2_147_483_647, 0, workspaceOffset + maskOffset, maskWordCount);
    else kernels.keepRangeF64(address, closing, Number.POSITIVE_INFINITY, 0, workspaceOffset + maskOffset, maskWordCount);
  }

  #keepDemanded(
    maskWorkspace: MaskWorkspace,
    vector: Vector,
    demand: Demand,
    firstMaskWord: number,
    maskWordCount: number,
  ): void {
    const { kernels, at: workspaceOffset, mask } = maskWorkspace;
    const maskAddress = workspaceOffset + maskOffset;
    if (vector.kind === 'null') {
      if (demand.kind !== 'isNull') mask.fill(0, 0, maskWordCount);
      return;
    }
    const nullsAddress = vector.nulls && this.#addressOf(maskWorkspace, vector.nulls, nullsCopyOffset) + firstMaskWord * 32;
    if (demand.kind === 'isNull') {
      if (nullsAddress === null) mask.fill(0, 0, maskWordCount);
      else kernels.keepUnmarked(nullsAddress, -1, maskAddress, maskWordCount);
      return;
    }
    if (nullsAddress !== null) kernels.keepUnmarked(nullsAddress, 0, maskAddress, maskWordCount);
    if (demand.kind === 'isNotNull') return;
    const { values } = vector as Extract<Vector, { kind: 'i32' | 'f64' | 'i64' | 'dict' }>;
    const valuesAddress = values.byteOffset + firstMaskWord * 32 * values.BYTES_PER_ELEMENT;
    if (demand.kind === 'codes') {
      maskWorkspace.workspace.bytes.set(demand.table, codeTableOffset);
      kernels.keepCodes(valuesAddress, workspaceOffset + codeTableOffset, maskAddress, maskWordCount);
      return;
    }
    const flipMask = demand.outside ? -1 : 0;
    if (demand.kind === 'set') {
      const setItems = new Int32Array(
        maskWorkspace.workspace.bytes.buffer,
        workspaceOffset + setItemsOffset,
        demand.items.length * 4,
      );
      demand.items.forEach((setItem, n) => setItems.fill(setItem, n * 4, n * 4 + 4));
      kernels.keepSetI32(
        valuesAddress,
        workspaceOffset + setItemsOffset,
        demand.items.length,
        flipMask,
        maskAddress,
        maskWordCount,
      );
      return;
    }
    if (demand.least > demand.most) {
      if (flipMask === 0) mask.fill(0, 0, maskWordCount);
    } else if (demand.kind === 'i32')
      kernels.keepRangeI32(valuesAddress, demand.least, demand.most, flipMask, maskAddress, maskWordCount);
    else if (demand.kind === 'f64')
      kernels.keepRangeF64(valuesAddress, demand.least, demand.most, flipMask, maskAddress, maskWordCount);
    else kernels.keepRangeI64(valuesAddress, demand.least, demand.most, flipMask, maskAddress, maskWordCount);
  }

  /** The offset of an array in the memory; it is copied there if it lies elsewhere. */
  #addressOf({ workspace }: MaskWorkspace, array: Uint8Array | Int32Array | Float64Array, copyAt: number): number {
    const { bytes } = workspace;
    if (array.buffer === bytes.buffer) return array.byteOffset;
    bytes.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), copyAt);
    return bytes.byteOffset + copyAt;
  }
}

/** The memory in which all columns of a block rest; undefined where there is no such. */
export function memoryIn(columns: readonly Vector[]): WebAssembly.Memory | undefined {
  let sharedMemory: WebAssembly.Memory | undefined;
  for (const vector of columns) {
    if (vector.kind === 'null') continue;
    if (vector.kind !== 'i32' && vector.kind !== 'f64' && vector.kind !== 'i64' && vector.kind !== 'dict') return undefined;
    const vectorMemory = memoryOf(vector.values);
    if (vectorMemory === undefined || (sharedMemory !== undefined && vectorMemory !== sharedMemory)) return undefined;
    sharedMemory = vectorMemory;
  }
  return sharedMemory;
}
