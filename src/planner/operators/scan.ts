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
const scanCellsPerBatch = 65_536;
const scanTextBytes = 1 << 17;
const sampledTextRows = 8;
/** Rows that are read by the time in which one is looked up. */
const rowsPerKeyLookUp = 4;

/** Rows of a block; not all of them are visible where `sift` says which are. */
export interface ScanBatch extends Batch {
  readonly sift?: Sift;
  /** The rows' places, where the reader asked for them. */
  readonly placed?: SegmentRows;
}

export class ScanOperator implements Operator {
  readonly #execution: Execution;
  readonly #scanRequest: ScanRequest | null;
  /** Keys that the rows must have; null: there are none, or they were asked. */
  #narrowingKeys: readonly KeyFilter[] | null;
  #scannedBlocks: Iterator<RowBlock, void>;
  /** Number of the column whose later closings a pinned page must not see, or -1. */
  readonly #systemToColumn: number;
  readonly #systemFromColumn: number;
  readonly #nodeColumnCount: number;
  #isScanEnded = false;
  /** Rows that may still be delivered. */
  #rowsLeft: number;
  /** The remaining rows of a block of long texts, and how many of them are delivered at once. */
  #unslicedRows: ScanBatch | null = null;
  #sliceRows = 0;

  /**
   * `unsiftedRows` is for a reader that finds the visible versions itself: the most rows of a block that it can take.
   * `narrowings` are keys that rows must have: where they are few when the first row is read, rows are looked up by them.
   */
  constructor(
    node: ScanNode,
    execution: Execution,
    unsiftedRows = 0,
    requestExtras: Pick<ScanRequest, 'placed' | 'candidates' | 'identifiers'> = {},
    narrowings: readonly Narrowing[] = [],
  ) {
    this.#execution = execution;
    const keyFilters = narrowings.filter(({ column }) => isKeyColumn(node, column)).map(({ filter }) => filter);
    this.#narrowingKeys = keyFilters.length === 0 ? null : keyFilters;
    this.#rowsLeft = execution.rowsMax ?? Number.POSITIVE_INFINITY;
    this.#systemToColumn = execution.pinned === null ? -1 : node.columns.findIndex(({ name }) => name === 'system_to');
    const systemFromIndex = node.columns.findIndex(({ name }) => name === 'system_from');
    this.#nodeColumnCount = node.columns.length;
    this.#systemFromColumn = systemFromIndex >= 0 ? systemFromIndex : this.#nodeColumnCount;
    const plannedRequest = scanRequest(node, execution);
    const fullRequest = plannedRequest && { ...plannedRequest, ...requestExtras };
    // A page of an earlier basis looks at each row again.
    const isSifted = unsiftedRows === 0 || execution.pinned !== null;
    this.#scanRequest = fullRequest && (isSifted ? fullRequest : { ...fullRequest, unsiftedRows });
    this.#scannedBlocks = this.#scanRequest ? execution.snapshot.rows.scan(this.#scanRequest) : [].values();
  }

  next(): ScanBatch | null {
    if (this.#unslicedRows) return this.#sliceBlock(this.#unslicedRows);
    const scannedBlock = this.#nextBlock();
    if (scannedBlock === null || scannedBlock.sift || scannedBlock.count < sampledTextRows || this.#execution.distinct)
      return scannedBlock;
    this.#sliceRows = rowsPerBatch(scannedBlock);
    return this.#sliceRows < scannedBlock.count ? this.#sliceBlock(scannedBlock) : scannedBlock;
  }

  /** Takes the next rows off a block. */
  #sliceBlock(scannedBlock: ScanBatch): ScanBatch {
    const { columns, selection, first, count, placed } = scannedBlock;
    const sliceRows = Math.min(this.#sliceRows, count);
    const rowsAfterSlice = count - sliceRows;
    this.#unslicedRows =
      rowsAfterSlice === 0
        ? null
        : selection
          ? { columns, selection: selection.subarray(sliceRows), first, count: rowsAfterSlice, ...(placed && { placed }) }
          : { columns, selection, first: first + sliceRows, count: rowsAfterSlice, ...(placed && { placed }) };
    return { columns, selection, first, count: sliceRows, ...(placed && { placed }) };
  }

  #nextBlock(): ScanBatch | null {
    const scannedBlock = this.#rowsLeft > 0 ? this.#readBlock() : null;
    if (scannedBlock === null || this.#rowsLeft === Number.POSITIVE_INFINITY) return scannedBlock;
    assert(scannedBlock.sift === undefined, 'only rows that are all visible are counted one by one');
    const allowedRows = Math.min(scannedBlock.count, this.#rowsLeft);
    this.#rowsLeft -= allowedRows;
    return allowedRows === scannedBlock.count ? scannedBlock : { ...scannedBlock, count: allowedRows };
  }

  #readBlock(): ScanBatch | null {
    if (this.#narrowingKeys !== null) this.#lookUpKeys(this.#narrowingKeys);
    const nextStep = this.#isScanEnded ? null : this.#scannedBlocks.next();
    if (!nextStep || nextStep.done) return null;
    const scannedBlock = nextStep.value;
    const { counters } = this.#execution;
    const { scannedRowsMax } = this.#execution.limits;
    counters.scanned += scannedBlock.scanned;
    if (counters.scanned > scannedRowsMax) {
      throw new ServiceError('REL_SCAN_CAP', `the query scans more than ${scannedRowsMax} rows`);
    }
    if (this.#execution.pinned === null || scannedBlock.count === 0) return scannedBlock;
    const pinnedCount = this.#writtenBefore(scannedBlock, this.#execution.pinned);
    this.#isScanEnded = pinnedCount < scannedBlock.count;
    const pinnedColumns =
      this.#systemToColumn < 0
        ? scannedBlock.columns
        : scannedBlock.columns.with(this.#systemToColumn, this.#pinnedSystemTo(scannedBlock));
    return { ...scannedBlock, count: pinnedCount, columns: pinnedColumns.slice(0, this.#nodeColumnCount) };
  }

  /** Before the first row: the keys are known by now, and where they are few, their rows are looked up. */
  #lookUpKeys(keyFilters: readonly KeyFilter[]): void {
    this.#narrowingKeys = null;
    const narrowedRequest = this.#scanRequest;
    if (narrowedRequest === null || narrowedRequest.keys) return;
    const { rows } = this.#execution.snapshot;
    const lookUpKeys = keyFilters.map((filter) => filter.lookUps()).find((filterKeys) => filterKeys !== null);
    if (!lookUpKeys) return;
    if (lookUpKeys.length * rowsPerKeyLookUp >= rows.estimate(narrowedRequest).rows) return;
    this.#scannedBlocks.return?.();
    this.#scannedBlocks = lookUpKeys.length === 0 ? [].values() : rows.scan({ ...narrowedRequest, keys: lookUpKeys });
  }

  close(): void {
    this.#scannedBlocks.return?.();
  }

  /** Rows come in the order of system_from: how many of the block's were there at the pinned basis. */
  #writtenBefore(scannedBlock: RowBlock, pinned: bigint): number {
    const systemFromVector = scannedBlock.columns[this.#systemFromColumn];
    assert(systemFromVector?.kind === 'i64', 'pages carry system_from');
    let writtenCount = scannedBlock.count;
    while (
      writtenCount > 0 &&
      systemFromVector.values[
        scannedBlock.selection ? scannedBlock.selection[writtenCount - 1]! : scannedBlock.first + writtenCount - 1
      ]! > pinned
    )
      writtenCount--;
    return writtenCount;
  }

  /** system_to as it was known at the pinned basis: a version closed later was still live then. */
  #pinnedSystemTo(scannedBlock: RowBlock): Vector {
    const systemToVector = scannedBlock.columns[this.#systemToColumn]!;
    if (systemToVector.kind !== 'i64') return systemToVector;
    const pinned = this.#execution.pinned!;
    const pinnedSystemTos = new BigInt64Array(systemToVector.values.length);
    for (let j = 0; j < scannedBlock.count; j++) {
      const i = scannedBlock.selection ? scannedBlock.selection[j]! : scannedBlock.first + j;
      const systemTo = systemToVector.values[i]!;
      pinnedSystemTos[i] = systemTo > pinned ? FOREVER : systemTo;
    }
    return { kind: 'i64', values: pinnedSystemTos, nulls: null };
  }
}

/** Whether a column holds the keys of a type's rows, as text or whole number. */
function isKeyColumn({ columns, keys, primaryKey, masked }: ScanNode, column: number): boolean {
  const { name, type } = columns[column]!;
  if (keys !== null || masked.has('_pk') || masked.has(name)) return false;
  return name === '_pk' || (name === primaryKey && (type === 'string' || type === 'integer'));
}

/** Rows of a block that make up one batch, by how much text they hold. */
function rowsPerBatch(scannedBlock: Batch): number {
  let blockTextBytes = 0;
  for (const vector of scannedBlock.columns) blockTextBytes += textBytes(vector, scannedBlock);
  return blockTextBytes <= scanTextBytes
    ? scannedBlock.count
    : Math.max(1, Math.floor((scannedBlock.count * scanTextBytes) / blockTextBytes));
}

function textBytes(vector: Vector, { selection, first, count }: Batch): number {
  const rowAt = (k: number): number => (selection ? selection[k]! : first + k);
  if (vector.kind === 'text') {
    const { offsets } = vector;
    const textBytesBound = offsets[rowAt(count - 1) + 1]! - offsets[rowAt(0)]!;
    if (selection === null || textBytesBound <= scanTextBytes) return textBytesBound;
    let selectedBytes = 0;
    for (let k = 0; k < count; k++) selectedBytes += offsets[rowAt(k) + 1]! - offsets[rowAt(k)]!;
    return selectedBytes;
  }
  if (vector.kind !== 'dict') return 0;
  // A dictionary does not tell how long its texts are: a few of the block's are looked at.
  const { values, nulls, dictionary } = vector;
  let sampledCharacters = 0;
  for (let n = 0; n < sampledTextRows; n++) {
    const sampledRow = rowAt(Math.floor((n * count) / sampledTextRows));
    if (nulls?.[sampledRow] !== 1) sampledCharacters += dictionary.text(values[sampledRow]!).length;
  }
  return (sampledCharacters * count) / sampledTextRows;
}

/** The request to storage; null when the keys leave nothing to read. */
export function scanRequest(node: ScanNode, execution: Execution): ScanRequest | null {
  const plannedKeys = node.keys && scanKeys(node.keys, execution);
  if (plannedKeys?.length === 0) return null;
  const scanZones: ZonePredicate[] = [];
  for (const plannedZone of node.zones) {
    // Closings after a pinned basis don't count, but storage would judge system_to as it is now.
    if (execution.pinned !== null && plannedZone.column === 'system_to') continue;
    const scanZone = zonePredicateOf(plannedZone, execution.kernels.constant(plannedZone.value));
    if (scanZone) scanZones.push(scanZone);
  }
  if (execution.pinned !== null) scanZones.push({ column: 'system_from', op: '<=', value: execution.pinned });
  return {
    type: node.type,
    columns: scanColumnNames(node, execution),
    time: execution.time,
    // Larger blocks where results per distinct text serve all rows of a block.
    blockRows: execution.distinct
      ? scanCellsPerBatch
      : Math.min(execution.limits.blockRows, Math.ceil(scanCellsPerBatch / Math.max(1, node.columns.length))),
    ...(plannedKeys ? { keys: plannedKeys } : {}),
    ...(execution.distinct && { distinct: true }),
    ...(scanZones.length > 0 ? { zones: scanZones } : {}),
    ...(execution.after !== null && !node.whole ? { after: execution.after } : {}),
  };
}

/** Pages of an earlier basis recognise newer rows by system_from, so it is read last where no operator reads it. */
function scanColumnNames(node: ScanNode, execution: Execution): readonly string[] {
  let plannedNames = scannedColumnNames.get(node);
  if (plannedNames === undefined) scannedColumnNames.set(node, (plannedNames = node.columns.map(({ name }) => name)));
  return execution.pinned === null || plannedNames.includes('system_from') ? plannedNames : [...plannedNames, 'system_from'];
}

const scannedColumnNames = new WeakMap<ScanNode, readonly string[]>();

/** Texts of the keys, each once. */
function scanKeys(keyExpressions: NonNullable<ScanNode['keys']>, execution: Execution): string[] {
  const scanKeyTexts: string[] = [];
  for (const keyCell of execution.kernels.constants(keyExpressions)) {
    const scanKey = scanKeyText(keyCell);
    if (scanKey !== null) scanKeyTexts.push(scanKey);
  }
  return scanKeyTexts.length > 1 ? [...new Set(scanKeyTexts)] : scanKeyTexts;
}

function scanKeyText(cell: Cell): string | null {
  return cell === null || typeof cell === 'object' ? null : String(cell);
}

/** Zones compare cells of the column's own type; a literal of another one is left to the filter. */
function zonePredicateOf(plannedZone: Zone, zoneValue: Cell): ZonePredicate | null {
  if (zoneValue === null || zoneValue instanceof Float32Array) return null;
  const { column, op, type } = plannedZone;
  if (type === 'number') {
    if (typeof zoneValue !== 'bigint') return { column, op, value: zoneValue };
    const zoneDouble = Number(zoneValue);
    return BigInt(zoneDouble) === zoneValue ? { column, op, value: zoneDouble } : null;
  }
  if (type === 'integer' && typeof zoneValue === 'number') return null;
  return { column, op, value: zoneValue };
}
