/**
 * Aggregate functions over a batch by kernels: groups of rows by place, then one step per function. The functions hold their
 * results so far in arrays of their own, so that generated code can take any batch instead; doubles go through a kernel as they
 * stand, integers come out as what the batch adds.
 */
import { type Workspace, workspaceIn } from '../../log/values/column-memory.ts';
import { type Accumulator, isFixed, type KernelShare, type KernelStep, type RowCounts } from './aggregate-loop.ts';
import type { GroupTable, KeyTable, KeyTables } from './group-table.ts';
import type { Batch } from './operator.ts';
import { type ColumnKernels, kernelsIn } from '../kernels/column-kernels.ts';
import { memoryIn } from '../kernels/row-mask.ts';

/** A batch below this is not worth the calls. */
const kernelRowsMin = 512;
/** Beyond this many new groups in a batch, the bulk path finds them faster. */
const newGroupsMax = 256;
const kernelRowsMax = 65_536;
const kernelGroupsMax = 32_768;
const keyTableMax = 65_536;
const slotsMax = 65_536;
/** Offsets in the workspace. Arrays by group have one element in front, for kernels that number groups from 1. */
const arrayGapBytes = 64;
const selectionOffset = 0;
const groupsOffset = selectionOffset + kernelRowsMax * 4;
const nullsOffset = groupsOffset + kernelRowsMax * 4;
const rowCountsOffset = nullsOffset + kernelRowsMax + arrayGapBytes;
const absentOffset = rowCountsOffset + kernelGroupsMax * 4 + arrayGapBytes;
const resultsOffset = absentOffset + kernelGroupsMax * 4 + arrayGapBytes;
const keyTableOffsets = [resultsOffset + kernelGroupsMax * 8, resultsOffset + kernelGroupsMax * 8 + keyTableMax * 4] as const;
const pairPlacesOffset = keyTableOffsets[1] + keyTableMax * 4;
const sumsOffset = pairPlacesOffset + slotsMax * 4;
const groupWorkspaceBytes = sumsOffset + kernelGroupsMax * 8;

class GroupWorkspace {
  readonly workspace: Workspace;
  readonly kernels: ColumnKernels;
  readonly at: number;
  readonly selection: Int32Array;
  readonly rows: Uint32Array;
  readonly absent: Uint32Array;
  readonly doubles: Float64Array;
  /** The same memory as words. */
  readonly words: Int32Array;
  /** Results that are added to while groups are found. */
  readonly sums: Float64Array;
  readonly #valuesByOffset = new Map<number, Int32Array>();

  constructor(workspace: Workspace) {
    this.workspace = workspace;
    this.kernels = kernelsIn(workspace.memory);
    const { buffer, byteOffset: at } = workspace.bytes;
    this.at = at;
    this.selection = new Int32Array(buffer, at + selectionOffset, kernelRowsMax);
    this.rows = new Uint32Array(buffer, at + rowCountsOffset, kernelGroupsMax);
    this.absent = new Uint32Array(buffer, at + absentOffset, kernelGroupsMax);
    this.doubles = new Float64Array(buffer, at + resultsOffset, kernelGroupsMax);
    this.words = new Int32Array(buffer, at + resultsOffset, kernelGroupsMax * 2);
    this.sums = new Float64Array(buffer, at + sumsOffset, kernelGroupsMax);
  }

  /** Writes a table; for one written before, only the changed entry. */
  put(copiedValues: Int32Array, offset: number, changedIndex: number | null): number {
    const workspaceWords = new Int32Array(this.workspace.bytes.buffer, this.at + offset, copiedValues.length);
    if (changedIndex === null || this.#valuesByOffset.get(offset) !== copiedValues) workspaceWords.set(copiedValues);
    else workspaceWords[changedIndex] = copiedValues[changedIndex]!;
    this.#valuesByOffset.set(offset, copiedValues);
    return this.at + offset;
  }
}

/** Number of the function whose sums are made while groups are found, or -1; whether others need the groups by place. */
interface JoinedSum {
  readonly sum: number;
  readonly addends: number;
  readonly noted: boolean;
}

/** The rows of a batch for one run of kernels. */
interface KernelRun {
  readonly room: GroupWorkspace;
  /** Places of row numbers and of groups; 0 where there are none. */
  readonly selection: number;
  readonly groups: number;
  readonly batch: Batch;
  /** Above every group. */
  readonly size: number;
  /** 1 where a kernel's group 1 is our group 0, because numbers of pairs count from 0. */
  readonly shift: 0 | 1;
}

export class GroupKernels {
  readonly #groupTable: GroupTable;
  readonly #columnAccumulators: readonly Accumulator[];
  /** How many columns say the group. */
  readonly #groupKeyCount: number;
  readonly #groupWorkspaces = new Map<WebAssembly.Memory, GroupWorkspace | null>();
  /** Keys have proved to be none that a table leads to. */
  #isGivenUp = false;

  constructor(groups: GroupTable, accumulators: readonly Accumulator[], keys: number) {
    this.#groupTable = groups;
    this.#columnAccumulators = accumulators;
    this.#groupKeyCount = keys;
  }

  /** True when the batch was taken; false when nothing was but, perhaps, the numbers of groups. */
  take(batch: Batch, counts: RowCounts): boolean {
    if (this.#isGivenUp || batch.count < kernelRowsMin || batch.count > kernelRowsMax) return false;
    const columnMemory = memoryIn(batch.columns);
    if (!columnMemory) return false;
    const kernelSteps: KernelStep[] = [];
    for (const columnAccumulator of this.#columnAccumulators) {
      const kernelStep = columnAccumulator.step(batch);
      if (!kernelStep) return false;
      kernelSteps.push(kernelStep);
    }
    const groupWorkspace = this.#groupWorkspaceIn(columnMemory);
    const joinedSum = this.#findJoinedSum(kernelSteps);
    const kernelRun = groupWorkspace && this.#beginRun(groupWorkspace, batch, joinedSum);
    if (!kernelRun) return false;
    counts.reserve(kernelRun.size);
    if (this.#groupKeyCount > 0)
      for (let group = 0; group < kernelRun.size; group++) counts.counts[group]! += groupWorkspace.rows[group]!;
    else counts.counts[0]! += batch.count;
    for (const [accumulatorIndex, each] of this.#columnAccumulators.entries()) {
      const kernelShare = each.share(batch, kernelRun.size);
      if (accumulatorIndex === joinedSum.sum) kernelShare.doubles.set(groupWorkspace.sums.subarray(0, kernelRun.size));
      else runKernelStep(kernelRun, kernelSteps[accumulatorIndex]!, kernelShare);
    }
    return true;
  }

  /** One sum of doubles can be made while groups are found by an only key; what else is there says whether they are noted. */
  #findJoinedSum(kernelSteps: readonly KernelStep[]): JoinedSum {
    const joinedSumIndex =
      this.#groupKeyCount === 1
        ? kernelSteps.findIndex(({ kernel, vector }) => kernel === 'addF64' && vector.nulls === null)
        : -1;
    const needsGroups = kernelSteps.some(
      ({ kernel, vector }, at) => at !== joinedSumIndex && (kernel !== 'count' || vector?.kind === 'null'),
    );
    const addendVector = kernelSteps[joinedSumIndex]?.vector;
    return {
      sum: joinedSumIndex,
      addends: addendVector && isFixed(addendVector) ? addendVector.values.byteOffset : 0,
      noted: needsGroups,
    };
  }

  release(): void {
    for (const room of this.#groupWorkspaces.values()) room?.workspace.release();
    this.#groupWorkspaces.clear();
  }

  #groupWorkspaceIn(memory: WebAssembly.Memory): GroupWorkspace | null {
    let groupWorkspace = this.#groupWorkspaces.get(memory);
    if (groupWorkspace === undefined) {
      const workspace = workspaceIn(memory, groupWorkspaceBytes);
      this.#groupWorkspaces.set(memory, (groupWorkspace = workspace && new GroupWorkspace(workspace)));
    }
    return groupWorkspace;
  }

  /** Groups by place, and how many rows each has; null where keys are not for kernels. */
  #beginRun(groupWorkspace: GroupWorkspace, batch: Batch, { sum, addends, noted }: JoinedSum): KernelRun | null {
    let selection = 0;
    if (batch.selection) {
      const isOwnSelection = batch.selection.buffer === groupWorkspace.selection.buffer;
      selection = isOwnSelection ? batch.selection.byteOffset : groupWorkspace.at + selectionOffset;
      if (!isOwnSelection) groupWorkspace.selection.set(batch.selection.subarray(0, batch.count));
    }
    if (this.#groupKeyCount === 0) return { room: groupWorkspace, selection, groups: 0, batch, size: 1, shift: 0 };
    const knownGroups = this.#groupTable.size;
    if (knownGroups >= kernelGroupsMax) return this.#giveUp();
    groupWorkspace.rows.fill(0, 0, Math.min(kernelGroupsMax, knownGroups + newGroupsMax + 1));
    if (sum >= 0) {
      groupWorkspace.sums.set(this.#columnAccumulators[sum]!.share(batch, knownGroups).doubles.subarray(0, knownGroups));
      groupWorkspace.sums.fill(0, knownGroups, Math.min(kernelGroupsMax, knownGroups + newGroupsMax + 1));
    }
    let shift: 0 | 1 = 0;
    let addedRow: number | null = null;
    for (let assignedFrom = 0, newGroupsLeft = newGroupsMax; ; newGroupsLeft--) {
      const keyTables = this.#groupTable.keyTables(batch);
      if (!keyTables || !fitsWorkspace(keyTables)) return this.#giveUp();
      shift = keyTables.groupOfPair ? 1 : 0;
      const assignedEnd = assignGroups({
        room: groupWorkspace,
        tables: keyTables,
        batch,
        selection,
        from: assignedFrom,
        added: addedRow,
        addends,
        noted,
      });
      if (assignedEnd === batch.count) break;
      if (newGroupsLeft === 0) return null;
      // A value that has not come yet; where its number is in no table, it is not for kernels.
      const unassignedRow = batch.selection ? batch.selection[assignedEnd]! : batch.first + assignedEnd;
      this.#groupTable.assign({ columns: batch.columns, selection: Int32Array.of(unassignedRow), first: 0, count: 1 });
      const changedTables = this.#groupTable.keyTables(batch);
      if (!changedTables || !leadsToGroup(changedTables, unassignedRow) || this.#groupTable.size >= kernelGroupsMax)
        return this.#giveUp();
      assignedFrom = assignedEnd;
      addedRow = unassignedRow;
    }
    return {
      room: groupWorkspace,
      selection,
      groups: groupWorkspace.at + groupsOffset,
      batch,
      size: this.#groupTable.size,
      shift,
    };
  }

  #giveUp(): null {
    this.#isGivenUp = true;
    return null;
  }
}

function fitsWorkspace({ keys, groupOfPair }: KeyTables): boolean {
  return keys.every(({ table }) => table.length <= keyTableMax) && (groupOfPair === null || groupOfPair.length <= slotsMax);
}

interface GroupAssignment {
  readonly room: GroupWorkspace;
  readonly tables: KeyTables;
  readonly batch: Batch;
  readonly selection: number;
  readonly from: number;
  /** The row whose group is new since the last call for this batch; null on the first one. */
  readonly added: number | null;
  readonly addends: number;
  readonly noted: boolean;
}

/** Assigns groups to the rows from a place on; returns the place of the first row without one. */
function assignGroups({ room: groupWorkspace, tables, batch, selection, from, added, addends, noted }: GroupAssignment): number {
  const { keys, groupOfPair, bits } = tables;
  const [leftKey, rightKey] = keys;
  const { kernels, at } = groupWorkspace;
  const { first, count } = batch;
  const addedKeyValue = (key: KeyTable): number | null => (added === null ? null : key.values[added]!);
  const leftTable = groupWorkspace.put(leftKey!.table, keyTableOffsets[0], addedKeyValue(leftKey!));
  const leftSize = leftKey!.table.length;
  const groupsAddress = at + groupsOffset;
  const rowCountsAddress = at + rowCountsOffset;
  if (!rightKey || !groupOfPair) {
    const notedGroups = addends === 0 || noted ? groupsAddress : 0;
    const sumsAddress = at + sumsOffset;
    return kernels.groupValues(
      leftKey!.values.byteOffset,
      leftTable,
      leftSize,
      selection,
      first,
      from,
      count,
      notedGroups,
      rowCountsAddress,
      addends,
      sumsAddress,
    );
  }
  const rightTable = groupWorkspace.put(rightKey.table, keyTableOffsets[1], addedKeyValue(rightKey));
  const pairsAddress = groupWorkspace.put(groupOfPair, pairPlacesOffset, added === null ? null : slotOf(tables, added));
  const pairArguments = [pairsAddress, bits, selection, first, from, count, groupsAddress, rowCountsAddress - 4] as const;
  return kernels.groupPairs(
    leftKey!.values.byteOffset,
    leftTable,
    leftSize,
    rightKey.values.byteOffset,
    rightTable,
    rightKey.table.length,
    ...pairArguments,
  );
}

/** Whether the tables lead from a row to its group. */
function leadsToGroup(keyTables: KeyTables, row: number): boolean {
  const pairIndex = slotOf(keyTables, row);
  return pairIndex > 0 && (keyTables.groupOfPair === null || keyTables.groupOfPair[pairIndex] !== 0);
}

/** The number of an only key, or where the group of two stands; 0 where a key has none. */
function slotOf({ keys, groupOfPair, bits }: KeyTables, row: number): number {
  const [left, right] = keys.map(({ values, table }) => table[values[row]!] ?? 0);
  if (groupOfPair === null) return left!;
  return left === 0 || right === 0 ? 0 : (left! << bits) | right!;
}

function runKernelStep(kernelRun: KernelRun, kernelStep: KernelStep, { doubles, absent, take }: KernelShare): void {
  const { room: groupWorkspace, batch, selection, groups, size, shift } = kernelRun;
  if (kernelStep.vector?.kind === 'null') {
    // All rows of a group are NULL.
    if (groups === 0) absent[0]! += batch.count;
    else for (let group = 0; group < size; group++) absent[group]! += groupWorkspace.rows[group]!;
  }
  if (kernelStep.kernel === 'count') return;
  const { at, kernels, words } = groupWorkspace;
  const nullsAddress = kernelStep.vector.nulls === null ? 0 : nullsAddressIn(groupWorkspace, kernelStep.vector.nulls);
  if (nullsAddress !== 0) groupWorkspace.absent.fill(0, 0, size);
  const absentAddress = at + absentOffset - 4 * shift;
  const { first, count } = batch;
  if (kernelStep.kernel === 'countAbsent') kernels.countAbsent(selection, first, count, groups, nullsAddress, absentAddress);
  else {
    if (!take) groupWorkspace.doubles.set(doubles.subarray(0, size));
    else if (!('sign' in kernelStep)) words.fill(0, 0, size * 2);
    else for (let group = 0; group < size; group++) startExtreme(words, group, kernelStep.sign);
    const resultsAddress = at + resultsOffset - 8 * shift;
    const kernelArguments = [
      kernelStep.vector.values.byteOffset,
      selection,
      first,
      count,
      groups,
      nullsAddress,
      absentAddress,
      resultsAddress,
    ] as const;
    if ('sign' in kernelStep) kernels[kernelStep.kernel](...kernelArguments, kernelStep.sign);
    else kernels[kernelStep.kernel](...kernelArguments);
    if (!take) doubles.set(groupWorkspace.doubles.subarray(0, size));
    else for (let group = 0; group < size; group++) take(group, words[2 * group]! >>> 0, words[2 * group + 1]!);
  }
  if (nullsAddress !== 0) for (let group = 0; group < size; group++) absent[group]! += groupWorkspace.absent[group]!;
}

/** Beyond every value, as no value is further. */
function startExtreme(extremeWords: Int32Array, group: number, extremeSign: 1 | -1): void {
  extremeWords[2 * group] = extremeSign > 0 ? -1 : 0;
  extremeWords[2 * group + 1] = extremeSign > 0 ? 0x7fff_ffff : -0x8000_0000;
}

function nullsAddressIn({ workspace }: GroupWorkspace, nulls: Uint8Array): number {
  const { bytes } = workspace;
  if (nulls.buffer === bytes.buffer) return nulls.byteOffset;
  bytes.set(nulls.subarray(0, kernelRowsMax), nullsOffset);
  return bytes.byteOffset + nullsOffset;
}
