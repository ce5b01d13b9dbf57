/** Rows of a type from the snapshot: the only operator that touches storage, and it can name governed rows only. */
import { assert, ServiceError } from '../../errors.ts';
import type { Vector } from '../../log/values/columns.ts';
import { FOREVER } from '../../log/values/timestamp.ts';
import type { Cell } from '../../log/values/value.ts';
import type { SegmentRows, RowBlock, ScanRequest, Sift, ZonePredicate } from '../../projections/access-paths.ts';
import type { ScanNode, Zone } from '../logical-plan.ts';
import type { KeyFilter, Narrowing } from './key-filter.ts';
import type { Batch, Execution, Operator } from './operator.ts';

/** A batch is work for one turn: the most cells and the most bytes of text in it, however many rows that is. */
const cellsPerBatch = 65_536;
const textBytesPerBatch = 1 << 17;
const rowsSampled = 8;
/** Rows that are read by the time in which one is looked up. */
const rowsPerLookUp = 4;

/** Rows of a block; not all of them are visible where `sift` says which are. */
export interface ScanBatch extends Batch {
  readonly sift?: Sift;
  /** The rows' places, where the reader asked for them. */
  readonly placed?: SegmentRows;
}

export class ScanOperator implements Operator {
  readonly #execution: Execution;
  readonly #request: ScanRequest | null;
  /** Keys that the rows must have; null: there are none, or they were asked. */
  #toldKeys: readonly KeyFilter[] | null;
  #blocks: Iterator<RowBlock, void>;
  /** Number of the column whose later closings a pinned page must not see, or -1. */
  readonly #systemTo: number;
  readonly #systemFrom: number;
  readonly #width: number;
  #ended = false;
  /** Rows that may still be delivered. */
  #left: number;
  /** The remaining rows of a block of long texts, and how many of them are delivered at once. */
  #rest: ScanBatch | null = null;
  #step = 0;

  /**
   * `unsiftedRows` is for a reader that finds the visible versions itself: the most rows of a block that it can take.
   * `narrowings` are keys that rows must have: where they are few when the first row is read, rows are looked up by them.
   */
  constructor(
    node: ScanNode,
    execution: Execution,
    unsiftedRows = 0,
    more: Pick<ScanRequest, 'placed' | 'candidates' | 'identifiers'> = {},
    narrowings: readonly Narrowing[] = [],
  ) {
    this.#execution = execution;
    const keyFilters = narrowings.filter(({ column }) => isKeyColumn(node, column)).map(({ filter }) => filter);
    this.#toldKeys = keyFilters.length === 0 ? null : keyFilters;
    this.#left = execution.rowsMax ?? Number.POSITIVE_INFINITY;
    this.#systemTo = execution.pinned === null ? -1 : node.columns.findIndex(({ name }) => name === 'system_to');
    const systemFrom = node.columns.findIndex(({ name }) => name === 'system_from');
    this.#width = node.columns.length;
    this.#systemFrom = systemFrom >= 0 ? systemFrom : this.#width;
    const found = scanRequest(node, execution);
    const request = found && { ...found, ...more };
    // A page of an earlier basis looks at each row again.
    const sifted = unsiftedRows === 0 || execution.pinned !== null;
    this.#request = request && (sifted ? request : { ...request, unsiftedRows });
    this.#blocks = this.#request ? execution.snapshot.rows.scan(this.#request) : [].values();
  }

  next(): ScanBatch | null {
    if (this.#rest) return this.#slice(this.#rest);
    const block = this.#block();
    if (block === null || block.sift || block.count < rowsSampled || this.#execution.distinct) return block;
    this.#step = rowsPerBatch(block);
    return this.#step < block.count ? this.#slice(block) : block;
  }

  /** Takes the next rows off a block. */
  #slice(block: ScanBatch): ScanBatch {
    const { columns, selection, first, count, placed } = block;
    const step = Math.min(this.#step, count);
    const after = count - step;
    this.#rest =
      after === 0
        ? null
        : selection
          ? { columns, selection: selection.subarray(step), first, count: after, ...(placed && { placed }) }
          : { columns, selection, first: first + step, count: after, ...(placed && { placed }) };
    return { columns, selection, first, count: step, ...(placed && { placed }) };
  }

  #block(): ScanBatch | null {
    const block = this.#left > 0 ? this.#read() : null;
    if (block === null || this.#left === Number.POSITIVE_INFINITY) return block;
    assert(block.sift === undefined, 'only rows that are all visible are counted one by one');
    const count = Math.min(block.count, this.#left);
    this.#left -= count;
    return count === block.count ? block : { ...block, count };
  }

  #read(): ScanBatch | null {
    if (this.#toldKeys !== null) this.#lookUp(this.#toldKeys);
    const next = this.#ended ? null : this.#blocks.next();
    if (!next || next.done) return null;
    const block = next.value;
    const { counters } = this.#execution;
    const { scannedRowsMax } = this.#execution.limits;
    counters.scanned += block.scanned;
    if (counters.scanned > scannedRowsMax) {
      throw new ServiceError('REL_SCAN_CAP', `the query scans more than ${scannedRowsMax} rows`);
    }
    if (this.#execution.pinned === null || block.count === 0) return block;
    const count = this.#writtenBefore(block, this.#execution.pinned);
    this.#ended = count < block.count;
    const columns = this.#systemTo < 0 ? block.columns : block.columns.with(this.#systemTo, this.#closedBefore(block));
    return { ...block, count, columns: columns.slice(0, this.#width) };
  }

  /** Before the first row: the keys are known by now, and where they are few, their rows are looked up. */
  #lookUp(keyFilters: readonly KeyFilter[]): void {
    this.#toldKeys = null;
    const request = this.#request;
    if (request === null || request.keys) return;
    const { rows } = this.#execution.snapshot;
    const keys = keyFilters.map((filter) => filter.lookUps()).find((each) => each !== null);
    if (!keys) return;
    if (keys.length * rowsPerLookUp >= rows.estimate(request).rows) return;
    this.#blocks.return?.();
    this.#blocks = keys.length === 0 ? [].values() : rows.scan({ ...request, keys });
  }

  close(): void {
    this.#blocks.return?.();
  }

  /** Rows come in the order of system_from: how many of the block's were there at the pinned basis. */
  #writtenBefore(block: RowBlock, pinned: bigint): number {
    const vector = block.columns[this.#systemFrom];
    assert(vector?.kind === 'i64', 'pages carry system_from');
    let count = block.count;
    while (count > 0 && vector.values[block.selection ? block.selection[count - 1]! : block.first + count - 1]! > pinned) count--;
    return count;
  }

  /** system_to as it was known at the pinned basis: a version closed later was still live then. */
  #closedBefore(block: RowBlock): Vector {
    const vector = block.columns[this.#systemTo]!;
    if (vector.kind !== 'i64') return vector;
    const pinned = this.#execution.pinned!;
    const values = new BigInt64Array(vector.values.length);
    for (let j = 0; j < block.count; j++) {
      const i = block.selection ? block.selection[j]! : block.first + j;
      const value = vector.values[i]!;
      values[i] = value > pinned ? FOREVER : value;
    }
    return { kind: 'i64', values, nulls: null };
  }
}

/** Whether a column holds the keys of a type's rows, as text or whole number. */
function isKeyColumn({ columns, keys, primaryKey, masked }: ScanNode, column: number): boolean {
  const { name, type } = columns[column]!;
  if (keys !== null || masked.has('_pk') || masked.has(name)) return false;
  return name === '_pk' || (name === primaryKey && (type === 'string' || type === 'integer'));
}

/** Rows of a block that make up one batch, by how much text they hold. */
function rowsPerBatch(block: Batch): number {
  let bytes = 0;
  for (const vector of block.columns) bytes += textBytes(vector, block);
  return bytes <= textBytesPerBatch ? block.count : Math.max(1, Math.floor((block.count * textBytesPerBatch) / bytes));
}

function textBytes(vector: Vector, { selection, first, count }: Batch): number {
  const rowAt = (k: number): number => (selection ? selection[k]! : first + k);
  if (vector.kind === 'text') {
    const { offsets } = vector;
    const most = offsets[rowAt(count - 1) + 1]! - offsets[rowAt(0)]!;
    if (selection === null || most <= textBytesPerBatch) return most;
    let bytes = 0;
    for (let k = 0; k < count; k++) bytes += offsets[rowAt(k) + 1]! - offsets[rowAt(k)]!;
    return bytes;
  }
  if (vector.kind !== 'dict') return 0;
  // A dictionary does not tell how long its texts are: a few of the block's are looked at.
  const { values, nulls, dictionary } = vector;
  let sampled = 0;
  for (let n = 0; n < rowsSampled; n++) {
    const row = rowAt(Math.floor((n * count) / rowsSampled));
    if (nulls?.[row] !== 1) sampled += dictionary.text(values[row]!).length;
  }
  return (sampled * count) / rowsSampled;
}

/** The request to storage; null when the keys leave nothing to read. */
export function scanRequest(node: ScanNode, execution: Execution): ScanRequest | null {
  const keys = node.keys && keysOf(node.keys, execution);
  if (keys?.length === 0) return null;
  const zones: ZonePredicate[] = [];
  for (const zone of node.zones) {
    // Closings after a pinned basis don't count, but storage would judge system_to as it is now.
    if (execution.pinned !== null && zone.column === 'system_to') continue;
    const predicate = zonePredicate(zone, execution.kernels.constant(zone.value));
    if (predicate) zones.push(predicate);
  }
  if (execution.pinned !== null) zones.push({ column: 'system_from', op: '<=', value: execution.pinned });
  return {
    type: node.type,
    columns: columnNames(node, execution),
    time: execution.time,
    // Larger blocks where results per distinct text serve all rows of a block.
    blockRows: execution.distinct
      ? cellsPerBatch
      : Math.min(execution.limits.blockRows, Math.ceil(cellsPerBatch / Math.max(1, node.columns.length))),
    ...(keys ? { keys } : {}),
    ...(execution.distinct && { distinct: true }),
    ...(zones.length > 0 ? { zones } : {}),
    ...(execution.after !== null && !node.whole ? { after: execution.after } : {}),
  };
}

/** Pages of an earlier basis recognise newer rows by system_from, so it is read last where no operator reads it. */
function columnNames(node: ScanNode, execution: Execution): readonly string[] {
  let names = knownNames.get(node);
  if (names === undefined) knownNames.set(node, (names = node.columns.map(({ name }) => name)));
  return execution.pinned === null || names.includes('system_from') ? names : [...names, 'system_from'];
}

const knownNames = new WeakMap<ScanNode, readonly string[]>();

/** Texts of the keys, each once. */
function keysOf(bound: NonNullable<ScanNode['keys']>, execution: Execution): string[] {
  const keys: string[] = [];
  for (const cell of execution.kernels.constants(bound)) {
    const text = keyText(cell);
    if (text !== null) keys.push(text);
  }
  return keys.length > 1 ? [...new Set(keys)] : keys;
}

function keyText(cell: Cell): string | null {
  return cell === null || typeof cell === 'object' ? null : String(cell);
}

/** Zones compare cells of the column's own type; a literal of another one is left to the filter. */
function zonePredicate(zone: Zone, value: Cell): ZonePredicate | null {
  if (value === null || value instanceof Float32Array) return null;
  const { column, op, type } = zone;
  if (type === 'number') {
    if (typeof value !== 'bigint') return { column, op, value };
    const double = Number(value);
    return BigInt(double) === value ? { column, op, value: double } : null;
  }
  if (type === 'integer' && typeof value === 'number') return null;
  return { column, op, value };
}
