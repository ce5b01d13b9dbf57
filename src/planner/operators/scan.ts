/** Rows of a type from the snapshot: the only operator that touches storage, and it can name governed rows only. */
import { assert, ServiceError } from '../../errors.ts';
import type { Vector } from '../../log/columns.ts';
import { FOREVER } from '../../log/timestamp.ts';
import type { Cell } from '../../log/value.ts';
import type { RowBlock, ScanRequest, ZonePredicate } from '../../projections/access-paths.ts';
import type { ScanNode, Zone } from '../logical-plan.ts';
import type { Batch, Execution, Operator } from './operator.ts';

export class ScanOperator implements Operator {
  readonly #execution: Execution;
  readonly #blocks: Iterator<RowBlock, void>;
  /** Number of the column whose later closings a pinned page must not see, or -1. */
  readonly #systemTo: number;
  readonly #systemFrom: number;
  readonly #width: number;
  #ended = false;

  constructor(node: ScanNode, execution: Execution) {
    this.#execution = execution;
    this.#systemTo = execution.pinned === null ? -1 : node.columns.findIndex(({ name }) => name === 'system_to');
    const systemFrom = node.columns.findIndex(({ name }) => name === 'system_from');
    this.#width = node.columns.length;
    this.#systemFrom = systemFrom >= 0 ? systemFrom : this.#width;
    const request = scanRequest(node, execution);
    this.#blocks = request ? execution.snapshot.rows.scan(request) : [].values();
  }

  next(): Batch | null {
    const next = this.#ended ? null : this.#blocks.next();
    if (!next || next.done) return null;
    const block = next.value;
    const { counters, scannedRowsMax } = this.#execution;
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

/** What storage is asked; null when the keys leave nothing to read. */
export function scanRequest(node: ScanNode, execution: Execution): ScanRequest | null {
  const keys = node.keys && [
    ...new Set(node.keys.map((key) => keyText(execution.kernels.constant(key))).filter((key) => key !== null)),
  ];
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
    blockRows: execution.blockRows,
    ...(keys ? { keys } : {}),
    ...(zones.length > 0 ? { zones } : {}),
    ...(execution.after !== null ? { after: execution.after } : {}),
  };
}

/** Pages of an earlier basis tell by system_from what was written after it: it comes last where nothing else reads it. */
function columnNames(node: ScanNode, execution: Execution): string[] {
  const names = node.columns.map(({ name }) => name);
  return execution.pinned === null || names.includes('system_from') ? names : [...names, 'system_from'];
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
