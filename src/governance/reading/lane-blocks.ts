/**
 * Blocks of storage as a grant lets them through: each row by the first lane that covers its path and lets it pass, and its cells
 * as that lane shows them. Every row is checked before it leaves: rows that no lane covers stay hidden.
 */
import { assert } from '../../errors.ts';
import type { Vector } from '../../log/values/columns.ts';
import { FOREVER } from '../../log/values/timestamp.ts';
import type { PathCodes, RowBlock } from '../../projections/access-paths.ts';
import type { StoredBlock } from '../../projections/stored-block.ts';
import type { CellMask, Lane, RowCondition } from '../authorization/grant.ts';
import { type MaskHash, maskedBy, renderColumn, withoutCells } from '../authorization/mask-renderings.ts';
import { bitsOf, countBits, hasBit, type RowConditionBits } from '../authorization/row-condition-bits.ts';
import type { LaneColumn, LaneHistory, LanePlan } from './lane-plan.ts';
import type { Scope, ScopeCache } from './path-scopes.ts';
import { type GovernedBlock, VisibleTexts } from '../text-search/visible-texts.ts';

/** Caches that reads keep between snapshots. */
export interface Reading {
  readonly scopes: ScopeCache;
  readonly bits: RowConditionBits;
  readonly hash: MaskHash;
}

export interface LaneScan {
  readonly plan: LanePlan;
  readonly lanes: readonly Lane[];
  readonly scope: Scope;
  /** By lane; null: all of it. */
  readonly history: readonly LaneHistory[] | null;
  /** Rows are asked for by key: one whose key is masked has none. */
  readonly byKey: boolean;
  readonly reading: Reading;
  readonly pathCodes: PathCodes;
}

/** Fewer than one in so many rows of a segment are not worth looking at all of them. */
const learntShare = 16;
/** Blocks of which nothing is visible that go by in one turn. */
const hiddenBlocksPerTurn = 16;

const endColumn: readonly string[] = ['system_to'];

/** Whether rows of a block pass something: by place, or by a bit of the row's number. */
type PassedRows = { readonly flags: Uint8Array } | { readonly bits: Int32Array };

export class LaneBlocks implements Iterator<GovernedBlock, void> {
  readonly #storedBlocks: Iterator<StoredBlock, void>;
  readonly #laneScan: LaneScan;

  constructor(blocks: Iterator<StoredBlock, void>, scan: LaneScan) {
    this.#storedBlocks = blocks;
    this.#laneScan = scan;
  }

  next(): IteratorResult<GovernedBlock, void> {
    const { plan, scope } = this.#laneScan;
    for (let hiddenBlocks = 0; hiddenBlocks < hiddenBlocksPerTurn; hiddenBlocks++) {
      const storedStep = this.#storedBlocks.next();
      if (storedStep.done === true) return storedStep;
      const storedBlock = storedStep.value;
      assert(storedBlock.columns.length === plan.columns.length, 'a block carries the path column');
      // Without conditions and masks a block leaves as it is.
      if (plan.open && storedBlock.path >= 0 && !storedBlock.indexes) {
        if (scope.groups[storedBlock.path] !== 1) continue;
        return { done: false, value: { ...storedBlock, columns: storedBlock.columns.slice(0, plan.own.length) } };
      }
      const judgedBlock = storedBlock.count === 0 ? null : new JudgedBlock(storedBlock, this.#laneScan);
      const visibleBlock = judgedBlock ? judgedBlock.visible() : this.#emptyBlock();
      if (visibleBlock === null) continue;
      const { placed, indexes } = storedBlock;
      if (!placed) return { done: false, value: visibleBlock };
      if (!indexes) return { done: false, value: { ...visibleBlock, placed } };
      const isWhole = indexes.base === 0 && storedBlock.count === indexes.rows;
      const visibleBits = isWhole ? (judgedBlock?.bits ?? null) : null;
      const visibleTexts = new VisibleTexts(visibleBlock, placed, indexes, {
        bits: visibleBits,
        maskedCells: (column) => this.#maskedTextColumn(visibleBlock, column),
      });
      return { done: false, value: { ...visibleBlock, placed, texts: visibleTexts } };
    }
    return { done: false, value: this.#emptyBlock() };
  }

  return(): IteratorResult<GovernedBlock, void> {
    this.#storedBlocks.return?.();
    return { done: true, value: undefined };
  }

  /** A column of which some lane masks cells, as it leaves: without one, all of them are taken for masked. */
  #maskedTextColumn({ columns }: RowBlock, column: string): Vector | undefined {
    const { plan, lanes } = this.#laneScan;
    if (lanes.every(({ masks }) => !masks.has(column))) return undefined;
    const columnOrdinal = plan.own.findIndex(({ name, shown }) => name === column && !shown);
    return columns[columnOrdinal] ?? { kind: 'null' };
  }

  /** Gives other work a turn, without revealing that rows were passed over. */
  #emptyBlock(): RowBlock {
    const { plan } = this.#laneScan;
    return { columns: plan.own.map(() => ({ kind: 'null' })), selection: null, first: 0, count: 0, scanned: 0, path: 0 };
  }
}

/** One block, and its results so far. */
class JudgedBlock {
  readonly #judgedRows: RowBlock;
  readonly #laneScan: LaneScan;
  /** Bits that say which rows of the block are visible, where there is no other test. */
  bits: Int32Array | null = null;
  /** By condition; most blocks ask one, once. */
  #passedByCondition: Map<RowCondition, PassedRows> | null = null;

  constructor(block: RowBlock, scan: LaneScan) {
    this.#judgedRows = block;
    this.#laneScan = scan;
  }

  /** The rows that may be seen, and their cells; null when there are none. */
  visible(): RowBlock | null {
    const { path } = this.#judgedRows;
    const { scope } = this.#laneScan;
    if (path >= 0) {
      const pathLanes = this.#lanesOf(path);
      if (pathLanes.length === 0) return null;
      return pathLanes.length === 1 ? this.#rowsThroughOneLane(pathLanes[0]!) : this.#rowsThroughLanes();
    }
    const [firstGroup, ...otherGroups] = scope.lanes;
    const singleLane = otherGroups.length === 0 && firstGroup?.length === 1 ? firstGroup[0]! : -1;
    return singleLane >= 0 && this.#isAllOfGroup(1) ? this.#rowsThroughOneLane(singleLane) : this.#rowsThroughLanes();
  }

  /** Lanes that cover the path and have a past to show, by number. */
  #lanesOf(code: number): readonly number[] {
    const { scope, history } = this.#laneScan;
    const laneGroup = scope.groups[code] ?? 0;
    if (laneGroup === 0) return [];
    const groupLanes = scope.lanes[laneGroup - 1]!;
    if (history === null) return groupLanes;
    return groupLanes.some((lane) => history[lane] === 'nothing')
      ? groupLanes.filter((lane) => history[lane] !== 'nothing')
      : groupLanes;
  }

  /** Storage was given the paths to leave out; the rest is checked all the same. */
  #isAllOfGroup(group: number): boolean {
    const pathCodesOfRows = this.#pathsOfRows();
    const { groups } = this.#laneScan.scope;
    const { selection, first, count } = this.#judgedRows;
    let seenRowCount = 0;
    if (selection === null)
      for (let row = first; row < first + count; row++) seenRowCount += groups[pathCodesOfRows[row]!] === group ? 1 : 0;
    else for (let k = 0; k < count; k++) seenRowCount += groups[pathCodesOfRows[selection[k]!]!] === group ? 1 : 0;
    return seenRowCount === count;
  }

  #pathsOfRows(): Int32Array {
    const vector = this.#judgedRows.columns.at(-1)!;
    assert(vector.kind === 'i32' && vector.nulls === null, 'the path column is i32 without nulls');
    return vector.values;
  }

  #rowsThroughOneLane(lane: number): RowBlock | null {
    if (this.#laneScan.history?.[lane] === 'nothing') return null;
    const passedRows = this.#rowsPassingLane(lane);
    const passingRows = passedRows === null ? this.#wholeBlock(lane) : this.#keepPassedRows(passedRows);
    return passingRows && { ...passingRows, columns: this.#maskedColumns(() => lane, lane) };
  }

  /** Without what only the gate may ask of it. */
  #wholeBlock(lane: number): Omit<RowBlock, 'columns'> {
    const { selection, first, count, scanned: rowsLookedAt, path, sift } = this.#judgedRows;
    // Versions that ended before the lane began are hidden, even from the count.
    const scanned = this.#laneScan.lanes[lane]!.history === 'full' ? rowsLookedAt : Math.min(rowsLookedAt, count);
    return sift === undefined ? { selection, first, count, scanned, path } : { selection, first, count, scanned, path, sift };
  }

  /** The rows of the block that pass in a lane; null: none. */
  #rowsPassingLane(lane: number): PassedRows | null {
    const { lanes, history, byKey, plan } = this.#laneScan;
    const { rows } = lanes[lane]!;
    assert(rows !== 'none', 'a lane without rows is none');
    const laneTests: PassedRows[] = rows === null ? [] : [this.#evaluateCondition(rows)];
    const laneHistory = history === null ? 'all' : history[lane]!;
    assert(laneHistory !== 'nothing', 'a lane with nothing to show is not asked');
    if (laneHistory !== 'all') laneTests.push(this.#rowsOfHistory(laneHistory));
    const keyMask = byKey ? plan.keys[lane]! : null;
    if (keyMask !== null) laneTests.push(this.#rowsWithoutMask(keyMask));
    if (laneTests.length <= 1) return laneTests[0] ?? null;
    const passFlags = new Uint8Array(this.#judgedRows.count).fill(1);
    for (const laneTest of laneTests) {
      const testFlags = this.#flagsOf(laneTest);
      for (let k = 0; k < passFlags.length; k++) passFlags[k]! &= testFlags[k]!;
    }
    return { flags: passFlags };
  }

  #hasPassed(passed: PassedRows, k: number): number {
    if ('flags' in passed) return passed.flags[k]!;
    const { selection, first } = this.#judgedRows;
    return hasBit(passed.bits, selection === null ? first + k : selection[k]!);
  }

  /** By place. */
  #flagsOf(passed: PassedRows): Uint8Array {
    return 'flags' in passed ? passed.flags : flagsOfBits(passed.bits, this.#judgedRows, this.#judgedRows.count);
  }

  #evaluateCondition(condition: RowCondition): PassedRows {
    this.#passedByCondition ??= new Map();
    let conditionPassed = this.#passedByCondition.get(condition);
    if (conditionPassed === undefined) this.#passedByCondition.set(condition, (conditionPassed = this.#testCondition(condition)));
    return conditionPassed;
  }

  #testCondition(condition: RowCondition): PassedRows {
    const { bits } = this.#laneScan.reading;
    const { further, count } = this.#judgedRows;
    assert(further !== undefined, 'a block of a scan under lanes has further columns');
    const { cells } = further;
    if (cells !== undefined) {
      let knownBits = bits.find(cells, condition);
      if (knownBits === undefined && count * learntShare >= cells.length) knownBits = bits.learn(cells, condition);
      if (knownBits !== undefined)
        return cells.rows === null ? { bits: knownBits } : { flags: flagsOfBits(knownBits, cells.rows, count) };
    }
    const { columns, selection, first } = further.rows(condition.columns);
    const passFlags = new Uint8Array(count);
    condition.test(columns, selection, first, count, passFlags);
    return { flags: passFlags };
  }

  /** Rows whose end in system time lets the lane show them. */
  #rowsOfHistory(past: Exclude<LaneHistory, 'all' | 'nothing'>): PassedRows {
    const { count, further } = this.#judgedRows;
    const endWindow = further!.rows(endColumn);
    const [systemEnds] = endWindow.columns;
    assert(systemEnds?.kind === 'i64', 'system times are i64');
    const historyFlags = new Uint8Array(count);
    for (let k = 0; k < count; k++) {
      const systemEnd = systemEnds.values[endWindow.selection === null ? endWindow.first + k : endWindow.selection[k]!]!;
      historyFlags[k] = (past === 'open' ? systemEnd === FOREVER : systemEnd > past.after) ? 1 : 0;
    }
    return { flags: historyFlags };
  }

  /** Rows whose cell is not masked. */
  #rowsWithoutMask({ when }: CellMask): PassedRows {
    const unmaskedFlags = new Uint8Array(this.#judgedRows.count);
    if (when === null) return { flags: unmaskedFlags };
    const maskedFlags = this.#flagsOf(this.#evaluateCondition(when));
    for (let k = 0; k < unmaskedFlags.length; k++) unmaskedFlags[k] = 1 - maskedFlags[k]!;
    return { flags: unmaskedFlags };
  }

  /** The block with those of its rows that passed; null when none did. Only then is the number of examined rows reported. */
  #keepPassedRows(passed: PassedRows): Omit<RowBlock, 'columns'> | null {
    const { selection, first, count, sift, scanned, path } = this.#judgedRows;
    if (sift !== undefined || (selection === null && 'bits' in passed)) {
      const passedBits = 'bits' in passed ? passed.bits : bitsOf(passed.flags, first, count);
      const visibleRowCount = countBits(passedBits, sift?.live ?? null, first, count);
      if (visibleRowCount === 0) return null;
      const scannedVisible = Math.min(scanned, visibleRowCount);
      if (sift !== undefined)
        return { selection, first, count, scanned: scannedVisible, path, sift: { ...sift, visible: passedBits } };
      if (visibleRowCount === count) return { selection, first, count, scanned: scannedVisible, path };
      if ('bits' in passed) this.bits = passed.bits;
      return {
        selection: rowIdsOfBits(passedBits, first, count, visibleRowCount),
        first: 0,
        count: visibleRowCount,
        scanned: scannedVisible,
        path,
      };
    }
    const passingRows = new Int32Array(count);
    const passFlags = this.#flagsOf(passed);
    let seen = 0;
    for (let k = 0; k < count; k++) {
      passingRows[seen] = selection === null ? first + k : selection[k]!;
      seen += passFlags[k]!;
    }
    if (seen === 0) return null;
    if (seen === count) return { selection, first, count, scanned: Math.min(scanned, seen), path };
    return { selection: passingRows.subarray(0, seen), first: 0, count: seen, scanned: Math.min(scanned, seen), path };
  }

  /** Where rows of a block are of several lanes, or of a path that several cover. */
  #rowsThroughLanes(): RowBlock | null {
    const { selection, first, count, sift, scanned, path } = this.#judgedRows;
    assert(sift === undefined, 'rows of several lanes leave sifted');
    const pathCodesOfRows = path >= 0 ? null : this.#pathsOfRows();
    const passedByLane = new Map<number, PassedRows | null>();
    const passedOfLane = (lane: number): PassedRows | null => {
      let lanePassed = passedByLane.get(lane);
      if (lanePassed === undefined) passedByLane.set(lane, (lanePassed = this.#rowsPassingLane(lane)));
      return lanePassed;
    };
    const lanesOfCode = new Map<number, readonly number[]>();
    /** By place, -1 where no lane lets the row through. */
    const laneOf = new Int32Array(count);
    const passingRows = new Int32Array(count);
    let visibleRowCount = 0;
    for (let k = 0; k < count; k++) {
      const row = selection === null ? first + k : selection[k]!;
      const code = pathCodesOfRows === null ? path : pathCodesOfRows[row]!;
      let codeLanes = lanesOfCode.get(code);
      if (codeLanes === undefined) lanesOfCode.set(code, (codeLanes = this.#lanesOf(code)));
      laneOf[k] = -1;
      for (const lane of codeLanes) {
        const passed = passedOfLane(lane);
        if (passed !== null && this.#hasPassed(passed, k) === 0) continue;
        laneOf[k] = lane;
        passingRows[visibleRowCount++] = row;
        break;
      }
    }
    if (visibleRowCount === 0) return null;
    const columns = this.#maskedColumns((k) => laneOf[k]!, -1);
    const scannedVisible = Math.min(scanned, visibleRowCount);
    if (visibleRowCount === count) return { columns, selection, first, count, scanned: scannedVisible, path };
    return {
      columns,
      selection: passingRows.subarray(0, visibleRowCount),
      first: 0,
      count: visibleRowCount,
      scanned: scannedVisible,
      path,
    };
  }

  /** `onlyLane` is the lane of all rows of the block, or -1. Rows that no lane lets through read as NULL too. */
  #maskedColumns(laneOf: (rowIndex: number) => number, onlyLane: number): readonly Vector[] {
    const { plan } = this.#laneScan;
    return plan.own.map((column) => {
      const vector = this.#judgedRows.columns[column.source]!;
      const laneMasks = onlyLane >= 0 ? [column.masks[onlyLane]!] : column.masks;
      if (laneMasks.every((mask) => mask === null)) return vector;
      const [onlyMask] = laneMasks;
      if (!column.shown && onlyLane >= 0 && onlyMask !== null && onlyMask!.when === null) return { kind: 'null' };
      return this.#maskColumn(column, vector, laneOf, onlyLane);
    });
  }

  #maskColumn(column: LaneColumn, vector: Vector, laneOf: (rowIndex: number) => number, onlyLane: number): Vector {
    const maskConditions = column.masks.map((mask, lane) =>
      mask === null || mask.when === null || (onlyLane >= 0 && lane !== onlyLane) ? null : this.#evaluateCondition(mask.when),
    );
    const maskAt = (k: number): CellMask | null => {
      const lane = laneOf(k);
      if (lane < 0) return hiddenRowMask;
      const laneMask = column.masks[lane]!;
      const maskCondition = maskConditions[lane]!;
      return laneMask === null || maskCondition === null || this.#hasPassed(maskCondition, k) === 1 ? laneMask : null;
    };
    const rows = this.#judgedRows;
    if (!column.shown) {
      const maskCondition = onlyLane < 0 ? null : maskConditions[onlyLane]!;
      return withoutCells(vector, rows, maskCondition === null ? maskedBy(rows, maskAt) : this.#flagsOf(maskCondition));
    }
    const { pathCodes, reading } = this.#laneScan;
    const pathCodesOfRows = rows.path >= 0 ? null : this.#pathsOfRows();
    const pathAt = (k: number): string | null =>
      pathCodes.path(
        pathCodesOfRows === null ? rows.path : pathCodesOfRows[rows.selection === null ? rows.first + k : rows.selection[k]!]!,
      );
    return renderColumn({ vector, type: column.type, rows, maskAt, pathAt, hash: reading.hash });
  }
}

/** Masks every cell of a row that does not leave. */
const hiddenRowMask: CellMask = { kind: 'null', when: null, because: '' };

/** By place. */
function flagsOfBits(bits: Int32Array, { selection, first }: Pick<RowBlock, 'selection' | 'first'>, count: number): Uint8Array {
  const bitFlags = new Uint8Array(count);
  for (let k = 0; k < count; k++) bitFlags[k] = hasBit(bits, selection === null ? first + k : selection[k]!);
  return bitFlags;
}

function rowIdsOfBits(bits: Int32Array, first: number, count: number, seen: number): Int32Array {
  const passedRowIds = new Int32Array(seen);
  let bitsSet = 0;
  for (let word = first >>> 5; word << 5 < first + count; word++) {
    const wordBase = word << 5;
    let wordBits = bits[word]!;
    if (wordBase < first) wordBits &= -1 << (first - wordBase);
    if (first + count - wordBase < 32) wordBits &= (1 << (first + count - wordBase)) - 1;
    for (; wordBits !== 0; wordBits &= wordBits - 1) passedRowIds[bitsSet++] = wordBase + 31 - Math.clz32(wordBits & -wordBits);
  }
  return passedRowIds;
}
