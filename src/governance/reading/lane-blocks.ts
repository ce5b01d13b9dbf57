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
const learntAtOnce = 16;
/** Blocks of which nothing is visible that go by in one turn. */
const hiddenInTurn = 16;

const endColumn: readonly string[] = ['system_to'];

/** Whether rows of a block pass something: by place, or by a bit of the row's number. */
type Passed = { readonly flags: Uint8Array } | { readonly bits: Int32Array };

export class LaneBlocks implements Iterator<GovernedBlock, void> {
  readonly #blocks: Iterator<StoredBlock, void>;
  readonly #scan: LaneScan;

  constructor(blocks: Iterator<StoredBlock, void>, scan: LaneScan) {
    this.#blocks = blocks;
    this.#scan = scan;
  }

  next(): IteratorResult<GovernedBlock, void> {
    const { plan, scope } = this.#scan;
    for (let hidden = 0; hidden < hiddenInTurn; hidden++) {
      const step = this.#blocks.next();
      if (step.done === true) return step;
      const block = step.value;
      assert(block.columns.length === plan.columns.length, 'a block carries the path column');
      // Without conditions and masks a block leaves as it is.
      if (plan.open && block.path >= 0 && !block.indexes) {
        if (scope.groups[block.path] !== 1) continue;
        return { done: false, value: { ...block, columns: block.columns.slice(0, plan.own.length) } };
      }
      const judged = block.count === 0 ? null : new JudgedBlock(block, this.#scan);
      const visible = judged ? judged.visible() : this.#nothing();
      if (visible === null) continue;
      const { placed, indexes } = block;
      if (!placed) return { done: false, value: visible };
      if (!indexes) return { done: false, value: { ...visible, placed } };
      const isWhole = indexes.base === 0 && block.count === indexes.rows;
      const bits = isWhole ? (judged?.bits ?? null) : null;
      const texts = new VisibleTexts(visible, placed, indexes, {
        bits,
        maskedCells: (column) => this.#maskedColumn(visible, column),
      });
      return { done: false, value: { ...visible, placed, texts } };
    }
    return { done: false, value: this.#nothing() };
  }

  return(): IteratorResult<GovernedBlock, void> {
    this.#blocks.return?.();
    return { done: true, value: undefined };
  }

  /** A column of which some lane masks cells, as it leaves: without one, all of them are taken for masked. */
  #maskedColumn({ columns }: RowBlock, column: string): Vector | undefined {
    const { plan, lanes } = this.#scan;
    if (lanes.every(({ masks }) => !masks.has(column))) return undefined;
    const number = plan.own.findIndex(({ name, shown }) => name === column && !shown);
    return columns[number] ?? { kind: 'null' };
  }

  /** Gives other work a turn, without revealing that rows were passed over. */
  #nothing(): RowBlock {
    const { plan } = this.#scan;
    return { columns: plan.own.map(() => ({ kind: 'null' })), selection: null, first: 0, count: 0, scanned: 0, path: 0 };
  }
}

/** One block, and its results so far. */
class JudgedBlock {
  readonly #block: RowBlock;
  readonly #scan: LaneScan;
  /** Bits that say which rows of the block are visible, where there is no other test. */
  bits: Int32Array | null = null;
  /** By condition; most blocks ask one, once. */
  #known: Map<RowCondition, Passed> | null = null;

  constructor(block: RowBlock, scan: LaneScan) {
    this.#block = block;
    this.#scan = scan;
  }

  /** The rows that may be seen, and their cells; null when there are none. */
  visible(): RowBlock | null {
    const { path } = this.#block;
    const { scope } = this.#scan;
    if (path >= 0) {
      const lanes = this.#lanesOf(path);
      if (lanes.length === 0) return null;
      return lanes.length === 1 ? this.#throughOne(lanes[0]!) : this.#throughMany();
    }
    const [only, ...others] = scope.lanes;
    const single = others.length === 0 && only?.length === 1 ? only[0]! : -1;
    return single >= 0 && this.#isAllOf(1) ? this.#throughOne(single) : this.#throughMany();
  }

  /** Lanes that cover the path and have a past to show, by number. */
  #lanesOf(code: number): readonly number[] {
    const { scope, history } = this.#scan;
    const group = scope.groups[code] ?? 0;
    if (group === 0) return [];
    const lanes = scope.lanes[group - 1]!;
    if (history === null) return lanes;
    return lanes.some((lane) => history[lane] === 'nothing') ? lanes.filter((lane) => history[lane] !== 'nothing') : lanes;
  }

  /** Storage was given the paths to leave out; the rest is checked all the same. */
  #isAllOf(group: number): boolean {
    const codes = this.#pathsOfRows();
    const { groups } = this.#scan.scope;
    const { selection, first, count } = this.#block;
    let seen = 0;
    if (selection === null) for (let row = first; row < first + count; row++) seen += groups[codes[row]!] === group ? 1 : 0;
    else for (let k = 0; k < count; k++) seen += groups[codes[selection[k]!]!] === group ? 1 : 0;
    return seen === count;
  }

  #pathsOfRows(): Int32Array {
    const vector = this.#block.columns.at(-1)!;
    assert(vector.kind === 'i32' && vector.nulls === null, 'the path column is i32 without nulls');
    return vector.values;
  }

  #throughOne(lane: number): RowBlock | null {
    if (this.#scan.history?.[lane] === 'nothing') return null;
    const passing = this.#passingOf(lane);
    const passingRows = passing === null ? this.#whole(lane) : this.#keep(passing);
    return passingRows && { ...passingRows, columns: this.#columns(() => lane, lane) };
  }

  /** Without what only the gate may ask of it. */
  #whole(lane: number): Omit<RowBlock, 'columns'> {
    const { selection, first, count, scanned: looked, path, sift } = this.#block;
    // Versions that ended before the lane began are hidden, even from the count.
    const scanned = this.#scan.lanes[lane]!.history === 'full' ? looked : Math.min(looked, count);
    return sift === undefined ? { selection, first, count, scanned, path } : { selection, first, count, scanned, path, sift };
  }

  /** The rows of the block that pass in a lane; null: none. */
  #passingOf(lane: number): Passed | null {
    const { lanes, history, byKey, plan } = this.#scan;
    const { rows } = lanes[lane]!;
    assert(rows !== 'none', 'a lane without rows is none');
    const tests: Passed[] = rows === null ? [] : [this.#evaluate(rows)];
    const past = history === null ? 'all' : history[lane]!;
    assert(past !== 'nothing', 'a lane with nothing to show is not asked');
    if (past !== 'all') tests.push(this.#past(past));
    const key = byKey ? plan.keys[lane]! : null;
    if (key !== null) tests.push(this.#without(key));
    if (tests.length <= 1) return tests[0] ?? null;
    const flags = new Uint8Array(this.#block.count).fill(1);
    for (const test of tests) {
      const passed = this.#flagsOf(test);
      for (let k = 0; k < flags.length; k++) flags[k]! &= passed[k]!;
    }
    return { flags };
  }

  #passes(passed: Passed, k: number): number {
    if ('flags' in passed) return passed.flags[k]!;
    const { selection, first } = this.#block;
    return hasBit(passed.bits, selection === null ? first + k : selection[k]!);
  }

  /** By place. */
  #flagsOf(passed: Passed): Uint8Array {
    return 'flags' in passed ? passed.flags : flagsAt(passed.bits, this.#block, this.#block.count);
  }

  #evaluate(condition: RowCondition): Passed {
    this.#known ??= new Map();
    let passed = this.#known.get(condition);
    if (passed === undefined) this.#known.set(condition, (passed = this.#ask(condition)));
    return passed;
  }

  #ask(condition: RowCondition): Passed {
    const { bits } = this.#scan.reading;
    const { further, count } = this.#block;
    assert(further !== undefined, 'a block of a scan under lanes has further columns');
    const { cells } = further;
    if (cells !== undefined) {
      let known = bits.find(cells, condition);
      if (known === undefined && count * learntAtOnce >= cells.length) known = bits.learn(cells, condition);
      if (known !== undefined) return cells.rows === null ? { bits: known } : { flags: flagsAt(known, cells.rows, count) };
    }
    const { columns, selection, first } = further.rows(condition.columns);
    const flags = new Uint8Array(count);
    condition.test(columns, selection, first, count, flags);
    return { flags };
  }

  /** Rows whose end in system time lets the lane show them. */
  #past(past: Exclude<LaneHistory, 'all' | 'nothing'>): Passed {
    const { count, further } = this.#block;
    const window = further!.rows(endColumn);
    const [ends] = window.columns;
    assert(ends?.kind === 'i64', 'system times are i64');
    const flags = new Uint8Array(count);
    for (let k = 0; k < count; k++) {
      const end = ends.values[window.selection === null ? window.first + k : window.selection[k]!]!;
      flags[k] = (past === 'open' ? end === FOREVER : end > past.after) ? 1 : 0;
    }
    return { flags };
  }

  /** Rows whose cell is not masked. */
  #without({ when }: CellMask): Passed {
    const flags = new Uint8Array(this.#block.count);
    if (when === null) return { flags };
    const masked = this.#flagsOf(this.#evaluate(when));
    for (let k = 0; k < flags.length; k++) flags[k] = 1 - masked[k]!;
    return { flags };
  }

  /** The block with those of its rows that passed; null when none did. Only then is the number of examined rows reported. */
  #keep(passed: Passed): Omit<RowBlock, 'columns'> | null {
    const { selection, first, count, sift, scanned, path } = this.#block;
    if (sift !== undefined || (selection === null && 'bits' in passed)) {
      const bits = 'bits' in passed ? passed.bits : bitsOf(passed.flags, first, count);
      const seen = countBits(bits, sift?.live ?? null, first, count);
      if (seen === 0) return null;
      const scannedVisible = Math.min(scanned, seen);
      if (sift !== undefined) return { selection, first, count, scanned: scannedVisible, path, sift: { ...sift, visible: bits } };
      if (seen === count) return { selection, first, count, scanned: scannedVisible, path };
      if ('bits' in passed) this.bits = passed.bits;
      return { selection: rowsOf(bits, first, count, seen), first: 0, count: seen, scanned: scannedVisible, path };
    }
    const passingRows = new Int32Array(count);
    const flags = this.#flagsOf(passed);
    let seen = 0;
    for (let k = 0; k < count; k++) {
      passingRows[seen] = selection === null ? first + k : selection[k]!;
      seen += flags[k]!;
    }
    if (seen === 0) return null;
    if (seen === count) return { selection, first, count, scanned: Math.min(scanned, seen), path };
    return { selection: passingRows.subarray(0, seen), first: 0, count: seen, scanned: Math.min(scanned, seen), path };
  }

  /** Where rows of a block are of several lanes, or of a path that several cover. */
  #throughMany(): RowBlock | null {
    const { selection, first, count, sift, scanned, path } = this.#block;
    assert(sift === undefined, 'rows of several lanes leave sifted');
    const codes = path >= 0 ? null : this.#pathsOfRows();
    const passing = new Map<number, Passed | null>();
    const passingOf = (lane: number): Passed | null => {
      let passed = passing.get(lane);
      if (passed === undefined) passing.set(lane, (passed = this.#passingOf(lane)));
      return passed;
    };
    const lanesOfCode = new Map<number, readonly number[]>();
    /** By place, -1 where no lane lets the row through. */
    const laneOf = new Int32Array(count);
    const passingRows = new Int32Array(count);
    let seen = 0;
    for (let k = 0; k < count; k++) {
      const row = selection === null ? first + k : selection[k]!;
      const code = codes === null ? path : codes[row]!;
      let lanes = lanesOfCode.get(code);
      if (lanes === undefined) lanesOfCode.set(code, (lanes = this.#lanesOf(code)));
      laneOf[k] = -1;
      for (const lane of lanes) {
        const passed = passingOf(lane);
        if (passed !== null && this.#passes(passed, k) === 0) continue;
        laneOf[k] = lane;
        passingRows[seen++] = row;
        break;
      }
    }
    if (seen === 0) return null;
    const columns = this.#columns((k) => laneOf[k]!, -1);
    const scannedVisible = Math.min(scanned, seen);
    if (seen === count) return { columns, selection, first, count, scanned: scannedVisible, path };
    return { columns, selection: passingRows.subarray(0, seen), first: 0, count: seen, scanned: scannedVisible, path };
  }

  /** `only` is the lane of all rows of the block, or -1. Rows that no lane lets through read as NULL too. */
  #columns(laneOf: (rowIndex: number) => number, only: number): readonly Vector[] {
    const { plan } = this.#scan;
    return plan.own.map((column) => {
      const vector = this.#block.columns[column.source]!;
      const masks = only >= 0 ? [column.masks[only]!] : column.masks;
      if (masks.every((mask) => mask === null)) return vector;
      const [one] = masks;
      if (!column.shown && only >= 0 && one !== null && one!.when === null) return { kind: 'null' };
      return this.#maskColumn(column, vector, laneOf, only);
    });
  }

  #maskColumn(column: LaneColumn, vector: Vector, laneOf: (rowIndex: number) => number, only: number): Vector {
    const conditions = column.masks.map((mask, lane) =>
      mask === null || mask.when === null || (only >= 0 && lane !== only) ? null : this.#evaluate(mask.when),
    );
    const maskAt = (k: number): CellMask | null => {
      const lane = laneOf(k);
      if (lane < 0) return hiddenRow;
      const mask = column.masks[lane]!;
      const when = conditions[lane]!;
      return mask === null || when === null || this.#passes(when, k) === 1 ? mask : null;
    };
    const rows = this.#block;
    if (!column.shown) {
      const when = only < 0 ? null : conditions[only]!;
      return withoutCells(vector, rows, when === null ? maskedBy(rows, maskAt) : this.#flagsOf(when));
    }
    const { pathCodes, reading } = this.#scan;
    const codes = rows.path >= 0 ? null : this.#pathsOfRows();
    const pathAt = (k: number): string | null =>
      pathCodes.path(codes === null ? rows.path : codes[rows.selection === null ? rows.first + k : rows.selection[k]!]!);
    return renderColumn({ vector, type: column.type, rows, maskAt, pathAt, hash: reading.hash });
  }
}

/** Masks every cell of a row that does not leave. */
const hiddenRow: CellMask = { kind: 'null', when: null, because: '' };

/** By place. */
function flagsAt(bits: Int32Array, { selection, first }: Pick<RowBlock, 'selection' | 'first'>, count: number): Uint8Array {
  const flags = new Uint8Array(count);
  for (let k = 0; k < count; k++) flags[k] = hasBit(bits, selection === null ? first + k : selection[k]!);
  return flags;
}

function rowsOf(bits: Int32Array, first: number, count: number, seen: number): Int32Array {
  const rows = new Int32Array(seen);
  let bitsSet = 0;
  for (let word = first >>> 5; word << 5 < first + count; word++) {
    const base = word << 5;
    let left = bits[word]!;
    if (base < first) left &= -1 << (first - base);
    if (first + count - base < 32) left &= (1 << (first + count - base)) - 1;
    for (; left !== 0; left &= left - 1) rows[bitsSet++] = base + 31 - Math.clz32(left & -left);
  }
  return rows;
}
