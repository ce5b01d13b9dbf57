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

interface Keyed {
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
const rowsMax = 64;
const blocksMax = 16;
/** Bytes of texts: more are left to operators, which measure them. */
const bytesMax = 1 << 20;

const known = new WeakMap<LogicalPlan, Keyed | null>();

/** Null where the plan asks more, or finds more than a few rows: then operators run it from the beginning. */
export function runKeyed(plan: LogicalPlan, execution: Execution): KeyedRows | null {
  let keyed = known.get(plan);
  if (keyed === undefined) known.set(plan, (keyed = keyedOf(plan)));
  if (keyed === null || execution.watch !== null || execution.pinned !== null || execution.after !== null) return null;
  const { scan, numbers } = keyed;
  const request = scanRequest(scan, execution);
  if (request === null) return { batches: [], rowCount: 0, facets: null };
  const blocks = execution.snapshot.rows.scan(request);
  const batches: OutputBatch[] = [];
  let rowCount = 0;
  let scanned = 0;
  let bytes = 0;
  for (let seen = 0; ; seen++) {
    const step = blocks.next();
    if (step.done === true) break;
    const block = step.value;
    rowCount += block.count;
    scanned += block.scanned;
    if (rowCount > rowsMax || seen === blocksMax) {
      blocks.return?.();
      return null;
    }
    if (block.count === 0) continue;
    const batch = fewRows(block, numbers, plan.root.columns);
    for (const vector of batch.columns) if (vector.kind === 'text') bytes += vector.heap.length;
    if (bytes > bytesMax) {
      blocks.return?.();
      return null;
    }
    batches.push(batch);
  }
  const { counters } = execution;
  const { scannedRowsMax } = execution.limits;
  counters.scanned += scanned;
  if (counters.scanned > scannedRowsMax)
    throw new ServiceError('REL_SCAN_CAP', `the query scans more than ${scannedRowsMax} rows`);
  return { batches, rowCount, facets: null };
}

const looked = new WeakMap<LogicalPlan, number | null>();
const ofKeys: ReadonlySet<PlanNode['kind']> = new Set(['scan', 'filter', 'project', 'sort', 'limit', 'skip']);

/** The number of keys by which the plan reads rows; null where it reads rows in another way. */
export function keysLookedUp(plan: LogicalPlan): number | null {
  let count = looked.get(plan);
  if (count !== undefined) return count;
  const nodes = nodesOf(plan);
  const scans = nodes.filter((node) => node.kind === 'scan');
  const isKeyed = scans.length > 0 && nodes.every(({ kind }) => ofKeys.has(kind)) && scans.every(({ keys }) => keys !== null);
  count = isKeyed ? scans.reduce((sum, { keys }) => sum + keys!.length, 0) : null;
  looked.set(plan, count);
  return count;
}

function keyedOf({ root, subqueries, facets, paged, withProvenance }: LogicalPlan): Keyed | null {
  if (subqueries.length > 0 || facets !== null || paged || withProvenance) return null;
  let node: PlanNode = root;
  let numbers: number[] | null = null;
  if (node.kind === 'project') {
    if (node.nearest !== undefined) return null;
    numbers = [];
    for (const bound of node.expressions) {
      if (bound.kind !== 'column') return null;
      numbers.push(bound.index);
    }
    node = node.input;
  }
  if (node.kind !== 'filter' || node.input.kind !== 'scan') return null;
  const scan = node.input;
  return saysTheKey(node, scan) ? { scan, numbers } : null;
}

/** Whether the filter states only the scan's one key. */
function saysTheKey({ predicate }: FilterNode, { keys, primaryKey, masked }: ScanNode): boolean {
  if (keys?.length !== 1 || predicate.kind !== 'compare' || predicate.op !== '=') return false;
  const [key] = keys;
  const isKey = (bound: Bound): boolean =>
    bound.kind === 'column' && (bound.name === '_pk' || bound.name === primaryKey) && !masked.has(bound.name);
  const isValue = (bound: Bound): boolean =>
    bound.kind === 'parameter' && key!.kind === 'parameter' && bound.index === key!.index;
  const { left, right } = predicate;
  return (isKey(left) && isValue(right)) || (isKey(right) && isValue(left));
}
