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
const rowsMin = 512;
/** Beyond this many new groups in a batch, the bulk path finds them faster. */
const newMax = 256;
const rowsMax = 65_536;
const groupsMax = 32_768;
const tableMax = 65_536;
const slotsMax = 65_536;
/** Offsets in the workspace. Arrays by group have one element in front, for kernels that number groups from 1. */
const before = 64;
const selectionAt = 0;
const groupsAt = selectionAt + rowsMax * 4;
const nullsAt = groupsAt + rowsMax * 4;
const rowsAt = nullsAt + rowsMax + before;
const absentAt = rowsAt + groupsMax * 4 + before;
const resultsAt = absentAt + groupsMax * 4 + before;
const tablesAt = [resultsAt + groupsMax * 8, resultsAt + groupsMax * 8 + tableMax * 4] as const;
const pairsAt = tablesAt[1] + tableMax * 4;
const sumsAt = pairsAt + slotsMax * 4;
const workspaceBytes = sumsAt + groupsMax * 8;

class Room {
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
  readonly #put = new Map<number, Int32Array>();

  constructor(workspace: Workspace) {
    this.workspace = workspace;
    this.kernels = kernelsIn(workspace.memory);
    const { buffer, byteOffset: at } = workspace.bytes;
    this.at = at;
    this.selection = new Int32Array(buffer, at + selectionAt, rowsMax);
    this.rows = new Uint32Array(buffer, at + rowsAt, groupsMax);
    this.absent = new Uint32Array(buffer, at + absentAt, groupsMax);
    this.doubles = new Float64Array(buffer, at + resultsAt, groupsMax);
    this.words = new Int32Array(buffer, at + resultsAt, groupsMax * 2);
    this.sums = new Float64Array(buffer, at + sumsAt, groupsMax);
  }

  /** Writes a table; for one written before, only the changed entry. */
  put(values: Int32Array, offset: number, changed: number | null): number {
    const words = new Int32Array(this.workspace.bytes.buffer, this.at + offset, values.length);
    if (changed === null || this.#put.get(offset) !== values) words.set(values);
    else words[changed] = values[changed]!;
    this.#put.set(offset, values);
    return this.at + offset;
  }
}

/** Number of the function whose sums are made while groups are found, or -1; whether others need the groups by place. */
interface Joined {
  readonly sum: number;
  readonly addends: number;
  readonly noted: boolean;
}

/** The rows of a batch for one run of kernels. */
interface Run {
  readonly room: Room;
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
  readonly #groups: GroupTable;
  readonly #accumulators: readonly Accumulator[];
  /** How many columns say the group. */
  readonly #keys: number;
  readonly #rooms = new Map<WebAssembly.Memory, Room | null>();
  /** Keys have proved to be none that a table leads to. */
  #given = false;

  constructor(groups: GroupTable, accumulators: readonly Accumulator[], keys: number) {
    this.#groups = groups;
    this.#accumulators = accumulators;
    this.#keys = keys;
  }

  /** True when the batch was taken; false when nothing was but, perhaps, the numbers of groups. */
  take(batch: Batch, counts: RowCounts): boolean {
    if (this.#given || batch.count < rowsMin || batch.count > rowsMax) return false;
    const memory = memoryIn(batch.columns);
    if (!memory) return false;
    const steps: KernelStep[] = [];
    for (const each of this.#accumulators) {
      const step = each.step(batch);
      if (!step) return false;
      steps.push(step);
    }
    const room = this.#roomIn(memory);
    const joined = this.#joinSum(steps);
    const run = room && this.#begin(room, batch, joined);
    if (!run) return false;
    counts.reserve(run.size);
    if (this.#keys > 0) for (let group = 0; group < run.size; group++) counts.counts[group]! += room.rows[group]!;
    else counts.counts[0]! += batch.count;
    for (const [at, each] of this.#accumulators.entries()) {
      const share = each.share(batch, run.size);
      if (at === joined.sum) share.doubles.set(room.sums.subarray(0, run.size));
      else runStep(run, steps[at]!, share);
    }
    return true;
  }

  /** One sum of doubles can be made while groups are found by an only key; what else is there says whether they are noted. */
  #joinSum(steps: readonly KernelStep[]): Joined {
    const sum = this.#keys === 1 ? steps.findIndex(({ kernel, vector }) => kernel === 'addF64' && vector.nulls === null) : -1;
    const noted = steps.some(({ kernel, vector }, at) => at !== sum && (kernel !== 'count' || vector?.kind === 'null'));
    const values = steps[sum]?.vector;
    return { sum, addends: values && isFixed(values) ? values.values.byteOffset : 0, noted };
  }

  release(): void {
    for (const room of this.#rooms.values()) room?.workspace.release();
    this.#rooms.clear();
  }

  #roomIn(memory: WebAssembly.Memory): Room | null {
    let room = this.#rooms.get(memory);
    if (room === undefined) {
      const workspace = workspaceIn(memory, workspaceBytes);
      this.#rooms.set(memory, (room = workspace && new Room(workspace)));
    }
    return room;
  }

  /** Groups by place, and how many rows each has; null where keys are not for kernels. */
  #begin(room: Room, batch: Batch, { sum, addends, noted }: Joined): Run | null {
    let selection = 0;
    if (batch.selection) {
      const own = batch.selection.buffer === room.selection.buffer;
      selection = own ? batch.selection.byteOffset : room.at + selectionAt;
      if (!own) room.selection.set(batch.selection.subarray(0, batch.count));
    }
    if (this.#keys === 0) return { room, selection, groups: 0, batch, size: 1, shift: 0 };
    const known = this.#groups.size;
    if (known >= groupsMax) return this.#giveUp();
    room.rows.fill(0, 0, Math.min(groupsMax, known + newMax + 1));
    if (sum >= 0) {
      room.sums.set(this.#accumulators[sum]!.share(batch, known).doubles.subarray(0, known));
      room.sums.fill(0, known, Math.min(groupsMax, known + newMax + 1));
    }
    let shift: 0 | 1 = 0;
    let added: number | null = null;
    for (let from = 0, left = newMax; ; left--) {
      const tables = this.#groups.keyTables(batch);
      if (!tables || !fits(tables)) return this.#giveUp();
      shift = tables.groupOfPair ? 1 : 0;
      const end = assign({ room, tables, batch, selection, from, added, addends, noted });
      if (end === batch.count) break;
      if (left === 0) return null;
      // A value that has not come yet; where its number is in no table, it is not for kernels.
      const row = batch.selection ? batch.selection[end]! : batch.first + end;
      this.#groups.assign({ columns: batch.columns, selection: Int32Array.of(row), first: 0, count: 1 });
      const now = this.#groups.keyTables(batch);
      if (!now || !leads(now, row) || this.#groups.size >= groupsMax) return this.#giveUp();
      from = end;
      added = row;
    }
    return { room, selection, groups: room.at + groupsAt, batch, size: this.#groups.size, shift };
  }

  #giveUp(): null {
    this.#given = true;
    return null;
  }
}

function fits({ keys, groupOfPair }: KeyTables): boolean {
  return keys.every(({ table }) => table.length <= tableMax) && (groupOfPair === null || groupOfPair.length <= slotsMax);
}

interface Assignment {
  readonly room: Room;
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
function assign({ room, tables, batch, selection, from, added, addends, noted }: Assignment): number {
  const { keys, groupOfPair, bits } = tables;
  const [left, right] = keys;
  const { kernels, at } = room;
  const { first, count } = batch;
  const valueAt = (key: KeyTable): number | null => (added === null ? null : key.values[added]!);
  const leftTable = room.put(left!.table, tablesAt[0], valueAt(left!));
  const leftSize = left!.table.length;
  const into = at + groupsAt;
  const rows = at + rowsAt;
  if (!right || !groupOfPair) {
    const groups = addends === 0 || noted ? into : 0;
    const sums = at + sumsAt;
    return kernels.groupValues(
      left!.values.byteOffset,
      leftTable,
      leftSize,
      selection,
      first,
      from,
      count,
      groups,
      rows,
      addends,
      sums,
    );
  }
  const rightTable = room.put(right.table, tablesAt[1], valueAt(right));
  const pairs = room.put(groupOfPair, pairsAt, added === null ? null : slotOf(tables, added));
  const rest = [pairs, bits, selection, first, from, count, into, rows - 4] as const;
  return kernels.groupPairs(
    left!.values.byteOffset,
    leftTable,
    leftSize,
    right.values.byteOffset,
    rightTable,
    right.table.length,
    ...rest,
  );
}

/** Whether the tables lead from a row to its group. */
function leads(tables: KeyTables, row: number): boolean {
  const pairIndex = slotOf(tables, row);
  return pairIndex > 0 && (tables.groupOfPair === null || tables.groupOfPair[pairIndex] !== 0);
}

/** The number of an only key, or where the group of two stands; 0 where a key has none. */
function slotOf({ keys, groupOfPair, bits }: KeyTables, row: number): number {
  const [left, right] = keys.map(({ values, table }) => table[values[row]!] ?? 0);
  if (groupOfPair === null) return left!;
  return left === 0 || right === 0 ? 0 : (left! << bits) | right!;
}

function runStep(run: Run, step: KernelStep, { doubles, absent, take }: KernelShare): void {
  const { room, batch, selection, groups, size, shift } = run;
  if (step.vector?.kind === 'null') {
    // All rows of a group are NULL.
    if (groups === 0) absent[0]! += batch.count;
    else for (let group = 0; group < size; group++) absent[group]! += room.rows[group]!;
  }
  if (step.kernel === 'count') return;
  const { at, kernels, words } = room;
  const nulls = step.vector.nulls === null ? 0 : nullsIn(room, step.vector.nulls);
  if (nulls !== 0) room.absent.fill(0, 0, size);
  const absentPlace = at + absentAt - 4 * shift;
  const { first, count } = batch;
  if (step.kernel === 'countAbsent') kernels.countAbsent(selection, first, count, groups, nulls, absentPlace);
  else {
    if (!take) room.doubles.set(doubles.subarray(0, size));
    else if (!('sign' in step)) words.fill(0, 0, size * 2);
    else for (let group = 0; group < size; group++) startExtreme(words, group, step.sign);
    const into = at + resultsAt - 8 * shift;
    const rest = [step.vector.values.byteOffset, selection, first, count, groups, nulls, absentPlace, into] as const;
    if ('sign' in step) kernels[step.kernel](...rest, step.sign);
    else kernels[step.kernel](...rest);
    if (!take) doubles.set(room.doubles.subarray(0, size));
    else for (let group = 0; group < size; group++) take(group, words[2 * group]! >>> 0, words[2 * group + 1]!);
  }
  if (nulls !== 0) for (let group = 0; group < size; group++) absent[group]! += room.absent[group]!;
}

/** Beyond every value, as no value is further. */
function startExtreme(words: Int32Array, group: number, sign: 1 | -1): void {
  words[2 * group] = sign > 0 ? -1 : 0;
  words[2 * group + 1] = sign > 0 ? 0x7fff_ffff : -0x8000_0000;
}

function nullsIn({ workspace }: Room, nulls: Uint8Array): number {
  const { bytes } = workspace;
  if (nulls.buffer === bytes.buffer) return nulls.byteOffset;
  bytes.set(nulls.subarray(0, rowsMax), nullsAt);
  return bytes.byteOffset + nullsAt;
}
