/**
 * Tells the scan what the filter above it implies: keys to look up instead of reading the type, and bounds by which
 * storage may skip blocks of rows. Both are necessary conditions only, so the filter stays as it is.
 */
import { type Bound, columnsIn, countValues } from '../expressions/bound-expression.ts';
import { nowhere } from '../syntax/error-location.ts';
import {
  type FilterNode,
  type FunctionNode,
  type LogicalPlan,
  mapInputs,
  mapRoots,
  type PlanNode,
  type ScanNode,
  type VirtualNode,
  withInput,
  type Zone,
} from '../logical-plan.ts';
import { conjunctsOf } from './simplify-expressions.ts';

export function chooseAccessPaths(plan: LogicalPlan): LogicalPlan {
  return mapRoots(plan, chooseAccess);
}

function chooseAccess(node: PlanNode): PlanNode {
  if (node.kind === 'filter' && node.input.kind === 'scan') return withInput(node, narrowScan(node.input, node));
  if (node.kind === 'filter' && node.input.kind === 'virtual') return withInput(node, addAmongValues(node.input, node));
  if (node.kind === 'filter' && node.input.kind === 'search') {
    return withInput(node, { ...node.input, input: narrowScan(node.input.input, node) });
  }
  if (node.kind === 'filter' && node.input.kind === 'function') return withInput(node, addSoughtArgument(node.input, node));
  return mapInputs(node, chooseAccess);
}

/** Passes an equality on a function's column as the matching argument, so that the function need not make other rows. */
function addSoughtArgument(seekingCall: FunctionNode, filter: FilterNode): FunctionNode {
  const { seeks, columns, values } = seekingCall;
  if (seeks === undefined) return seekingCall;
  for (const conjunct of conjunctsOf(filter.predicate)) {
    if (conjunct.kind !== 'compare' || conjunct.op !== '=') continue;
    const [soughtColumn, soughtValue] =
      conjunct.left.kind === 'column' ? [conjunct.left, conjunct.right] : [conjunct.right, conjunct.left];
    const isSought = soughtColumn.kind === 'column' && columns[soughtColumn.index]?.name === seeks.column;
    if (!isSought || soughtValue.kind !== 'parameter' || soughtValue.type !== 'string') continue;
    const argumentValue = { location: nowhere, isVector: false, bound: soughtValue };
    return { ...seekingCall, values: new Map([...values, [seeks.argument, argumentValue]]) };
  }
  return seekingCall;
}

/** Passes the values that the filter names to a virtual relation, so that it makes only their rows. */
function addAmongValues(node: VirtualNode, filter: FilterNode): VirtualNode {
  const columnsAmongValues = conjunctsOf(filter.predicate).flatMap((conjunct) => {
    const [amongColumn, amongValues] =
      conjunct.kind === 'in'
        ? [conjunct.operand, conjunct.items]
        : conjunct.kind !== 'compare' || conjunct.op !== '='
          ? [null, []]
          : conjunct.left.kind === 'column'
            ? [conjunct.left, [conjunct.right]]
            : [conjunct.right, [conjunct.left]];
    const isKnown =
      amongColumn?.kind === 'column' && amongValues.every(({ kind, type }) => kind === 'parameter' && type === amongColumn.type);
    return isKnown ? [{ column: node.columns[amongColumn.index]!.name, values: amongValues }] : [];
  });
  return columnsAmongValues.length === 0 ? node : { ...node, among: columnsAmongValues };
}

function narrowScan(scan: ScanNode, filter: FilterNode): ScanNode {
  let scanKeys: readonly Bound[] | null = null;
  const scanZones: Zone[] = [];
  for (const conjunct of conjunctsOf(filter.predicate)) {
    if ([...columnsIn(conjunct)].some((index) => index >= scan.columns.length)) continue;
    // A masked column is NULL here, whatever storage holds: a condition on it must not influence which rows are read.
    if ([...columnsIn(conjunct)].some((index) => scan.masked.has(scan.columns[index]!.name))) continue;
    // The shortest list of keys wins; the others are still tested by the filter.
    const keyBounds = scan.masked.has('_pk') ? null : scanKeysOf(conjunct, scan);
    if (keyBounds && (scanKeys === null || countValues(keyBounds) < countValues(scanKeys))) scanKeys = keyBounds;
    scanZones.push(...zonesOf(conjunct).map((zone) => zoneOnKey(zone, scan)));
  }
  return { ...scan, keys: scanKeys, zones: scanZones };
}

/** `_pk` is the declared key as text, so both columns lead to the key index; nothing else is known to equal `_pk`. */
function scanKeysOf(conjunct: Bound, scan: ScanNode): readonly Bound[] | null {
  const isKeyColumn = (bound: Bound): boolean =>
    bound.kind === 'column' &&
    (bound.name === '_pk' || (bound.name === scan.primaryKey && (bound.type === 'string' || bound.type === 'integer')));
  const fitsKey = (key: Bound, value: Bound): boolean =>
    (value.kind === 'parameter' || value.kind === 'literals') && key.type === value.type;
  if (conjunct.kind === 'compare' && conjunct.op === '=') {
    const { left, right } = conjunct;
    if (isKeyColumn(left) && fitsKey(left, right)) return [right];
    if (isKeyColumn(right) && fitsKey(right, left)) return [left];
  }
  if (
    conjunct.kind === 'in' &&
    isKeyColumn(conjunct.operand) &&
    conjunct.items.every((item) => fitsKey(conjunct.operand, item))
  ) {
    return conjunct.items;
  }
  return null;
}

/** Storage has the extremes of a declared text key under `_pk`, even where rows have another column named `id`. */
function zoneOnKey(zone: Zone, scan: ScanNode): Zone {
  const isPrimaryKey = zone.column === scan.primaryKey && zone.type === 'string' && !scan.masked.has('_pk');
  return isPrimaryKey ? { ...zone, column: '_pk' } : zone;
}

const mirroredOps = { '=': '=', '<': '>', '<=': '>=', '>': '<', '>=': '<=' } as const;

function zonesOf(conjunct: Bound): Zone[] {
  if (conjunct.kind === 'between') {
    const { operand, low, high } = conjunct;
    if (operand.kind !== 'column') return [];
    return [
      ...(low.kind === 'parameter' ? zonePredicates(operand, '>=', low) : []),
      ...(high.kind === 'parameter' ? zonePredicates(operand, '<=', high) : []),
    ];
  }
  if (conjunct.kind !== 'compare' || conjunct.op === '!=') return [];
  const { left, right, op } = conjunct;
  if (left.kind === 'column' && right.kind === 'parameter') return zonePredicates(left, op, right);
  return right.kind === 'column' && left.kind === 'parameter' ? zonePredicates(right, mirroredOps[op], left) : [];
}

function zonePredicates(column: Extract<Bound, { kind: 'column' }>, op: Zone['op'], value: Bound): Zone[] {
  if (value.type === 'null' || column.type === 'json' || column.type === 'vector') return [];
  return [{ column: column.name, type: column.type, op, value }];
}
