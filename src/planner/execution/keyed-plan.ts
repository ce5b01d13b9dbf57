/**
 * Plans that only look one key up: the columns of its rows. They run within their turn, without operators, but with the same
 * requests to the snapshot: rows, masks and instants.
 */
import { ServiceError } from '../../errors.ts';
import { fewRows } from './row-copies.ts';
import type { Bound } from '../expressions/bound-expression.ts';
import { type FilterNode, type LogicalPlan, nodesOf, type PlanNode, type ScanNode } from '../logical-plan.ts';
import type { Execution } from '../operators/operator.ts';
import { scanRequest } from '../operators/scan.ts';
import type { OutputBatch } from '../planner-contract.ts';

interface KeyedScan {
  readonly scan: ScanNode;
  /** Columns of the scan, one for each of the root's; null: its own, in their order. */
  readonly numbers: readonly number[] | null;
}

export interface KeyedRows {
  readonly batches: readonly OutputBatch[];
  readonly rowCount: number;
  readonly facets: null;
}

/** A key has as many rows as it has versions: more than a few are work for operators. */
const keyedRowsMax = 64;
const keyedBlocksMax = 16;
/** Bytes of texts: more are left to operators, which measure them. */
const keyedBytesMax = 1 << 20;

const keyedByPlan = new WeakMap<LogicalPlan, KeyedScan | null>();

/** Null where the plan asks more, or finds more than a few rows: then operators run it from the beginning. */
export function runKeyed(plan: LogicalPlan, execution: Execution): KeyedRows | null {
  let keyedScan = keyedByPlan.get(plan);
  if (keyedScan === undefined) keyedByPlan.set(plan, (keyedScan = keyedScanOf(plan)));
  if (keyedScan === null || execution.watch !== null || execution.pinned !== null || execution.after !== null) return null;
  const { scan, numbers } = keyedScan;
  const keyedRequest = scanRequest(scan, execution);
  if (keyedRequest === null) return { batches: [], rowCount: 0, facets: null };
  const keyedBlocks = execution.snapshot.rows.scan(keyedRequest);
  const keyedBatches: OutputBatch[] = [];
  let rowCount = 0;
  let scannedRows = 0;
  let keyedTextBytes = 0;
  for (let blocksSeen = 0; ; blocksSeen++) {
    const keyedStep = keyedBlocks.next();
    if (keyedStep.done === true) break;
    const keyedBlock = keyedStep.value;
    rowCount += keyedBlock.count;
    scannedRows += keyedBlock.scanned;
    if (rowCount > keyedRowsMax || blocksSeen === keyedBlocksMax) {
      keyedBlocks.return?.();
      return null;
    }
    if (keyedBlock.count === 0) continue;
    const keyedBatch = fewRows(keyedBlock, numbers, plan.root.columns);
    for (const vector of keyedBatch.columns) if (vector.kind === 'text') keyedTextBytes += vector.heap.length;
    if (keyedTextBytes > keyedBytesMax) {
      keyedBlocks.return?.();
      return null;
    }
    keyedBatches.push(keyedBatch);
  }
  const { counters } = execution;
  const { scannedRowsMax } = execution.limits;
  counters.scanned += scannedRows;
  if (counters.scanned > scannedRowsMax)
    throw new ServiceError('REL_SCAN_CAP', `the query scans more than ${scannedRowsMax} rows`);
  return { batches: keyedBatches, rowCount, facets: null };
}

const keyCountByPlan = new WeakMap<LogicalPlan, number | null>();
const keyedNodeKinds: ReadonlySet<PlanNode['kind']> = new Set(['scan', 'filter', 'project', 'sort', 'limit', 'skip']);

/** The number of keys by which the plan reads rows; null where it reads rows in another way. */
export function keysLookedUp(plan: LogicalPlan): number | null {
  let keyCount = keyCountByPlan.get(plan);
  if (keyCount !== undefined) return keyCount;
  const planNodes = nodesOf(plan);
  const scanNodes = planNodes.filter((node) => node.kind === 'scan');
  const isKeyed =
    scanNodes.length > 0 &&
    planNodes.every(({ kind }) => keyedNodeKinds.has(kind)) &&
    scanNodes.every(({ keys }) => keys !== null);
  keyCount = isKeyed ? scanNodes.reduce((sum, { keys }) => sum + keys!.length, 0) : null;
  keyCountByPlan.set(plan, keyCount);
  return keyCount;
}

function keyedScanOf({ root, subqueries, facets, paged, withProvenance }: LogicalPlan): KeyedScan | null {
  if (subqueries.length > 0 || facets !== null || paged || withProvenance) return null;
  let keyedNode: PlanNode = root;
  let columnNumbers: number[] | null = null;
  if (keyedNode.kind === 'project') {
    if (keyedNode.nearest !== undefined) return null;
    columnNumbers = [];
    for (const bound of keyedNode.expressions) {
      if (bound.kind !== 'column') return null;
      columnNumbers.push(bound.index);
    }
    keyedNode = keyedNode.input;
  }
  if (keyedNode.kind !== 'filter' || keyedNode.input.kind !== 'scan') return null;
  const keyedScan = keyedNode.input;
  return namesTheKey(keyedNode, keyedScan) ? { scan: keyedScan, numbers: columnNumbers } : null;
}

/** Whether the filter states only the scan's one key. */
function namesTheKey({ predicate }: FilterNode, { keys, primaryKey, masked }: ScanNode): boolean {
  if (keys?.length !== 1 || predicate.kind !== 'compare' || predicate.op !== '=') return false;
  const [keyParameter] = keys;
  const isKey = (bound: Bound): boolean =>
    bound.kind === 'column' && (bound.name === '_pk' || bound.name === primaryKey) && !masked.has(bound.name);
  const isValue = (bound: Bound): boolean =>
    bound.kind === 'parameter' && keyParameter!.kind === 'parameter' && bound.index === keyParameter!.index;
  const { left, right } = predicate;
  return (isKey(left) && isValue(right)) || (isKey(right) && isValue(left));
}
