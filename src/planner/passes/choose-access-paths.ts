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
  if (node.kind === 'filter' && node.input.kind === 'virtual') return withInput(node, addValues(node.input, node));
  if (node.kind === 'filter' && node.input.kind === 'search') {
    return withInput(node, { ...node.input, input: narrowScan(node.input.input, node) });
  }
  if (node.kind === 'filter' && node.input.kind === 'function') return withInput(node, addArgument(node.input, node));
  return mapInputs(node, chooseAccess);
}

/** Passes an equality on a function's column as the matching argument, so that the function need not make other rows. */
function addArgument(call: FunctionNode, filter: FilterNode): FunctionNode {
  const { seeks, columns, values } = call;
  if (seeks === undefined) return call;
  for (const conjunct of conjunctsOf(filter.predicate)) {
    if (conjunct.kind !== 'compare' || conjunct.op !== '=') continue;
    const [column, bound] = conjunct.left.kind === 'column' ? [conjunct.left, conjunct.right] : [conjunct.right, conjunct.left];
    const isSought = column.kind === 'column' && columns[column.index]?.name === seeks.column;
    if (!isSought || bound.kind !== 'parameter' || bound.type !== 'string') continue;
    const value = { location: nowhere, isVector: false, bound };
    return { ...call, values: new Map([...values, [seeks.argument, value]]) };
  }
  return call;
}

/** Passes the values that the filter names to a virtual relation, so that it makes only their rows. */
function addValues(node: VirtualNode, filter: FilterNode): VirtualNode {
  const among = conjunctsOf(filter.predicate).flatMap((conjunct) => {
    const [column, values] =
      conjunct.kind === 'in'
        ? [conjunct.operand, conjunct.items]
        : conjunct.kind !== 'compare' || conjunct.op !== '='
          ? [null, []]
          : conjunct.left.kind === 'column'
            ? [conjunct.left, [conjunct.right]]
            : [conjunct.right, [conjunct.left]];
    const isKnown = column?.kind === 'column' && values.every(({ kind, type }) => kind === 'parameter' && type === column.type);
    return isKnown ? [{ column: node.columns[column.index]!.name, values }] : [];
  });
  return among.length === 0 ? node : { ...node, among };
}

function narrowScan(scan: ScanNode, filter: FilterNode): ScanNode {
  let keys: readonly Bound[] | null = null;
  const zones: Zone[] = [];
  for (const conjunct of conjunctsOf(filter.predicate)) {
    if ([...columnsIn(conjunct)].some((index) => index >= scan.columns.length)) continue;
    // A masked column is NULL here, whatever storage holds: a condition on it must not influence which rows are read.
    if ([...columnsIn(conjunct)].some((index) => scan.masked.has(scan.columns[index]!.name))) continue;
    // The shortest list of keys wins; the others are still tested by the filter.
    const keyBounds = scan.masked.has('_pk') ? null : keysOf(conjunct, scan);
    if (keyBounds && (keys === null || countValues(keyBounds) < countValues(keys))) keys = keyBounds;
    zones.push(...zonesOf(conjunct).map((zone) => onKey(zone, scan)));
  }
  return { ...scan, keys, zones };
}

/** `_pk` is the declared key as text, so both columns lead to the key index; nothing else is known to equal `_pk`. */
function keysOf(conjunct: Bound, scan: ScanNode): readonly Bound[] | null {
  const isKey = (bound: Bound): boolean =>
    bound.kind === 'column' &&
    (bound.name === '_pk' || (bound.name === scan.primaryKey && (bound.type === 'string' || bound.type === 'integer')));
  const fits = (key: Bound, value: Bound): boolean =>
    (value.kind === 'parameter' || value.kind === 'literals') && key.type === value.type;
  if (conjunct.kind === 'compare' && conjunct.op === '=') {
    const { left, right } = conjunct;
    if (isKey(left) && fits(left, right)) return [right];
    if (isKey(right) && fits(right, left)) return [left];
  }
  if (conjunct.kind === 'in' && isKey(conjunct.operand) && conjunct.items.every((item) => fits(conjunct.operand, item))) {
    return conjunct.items;
  }
  return null;
}

/** Storage has the extremes of a declared text key under `_pk`, even where rows have another column named `id`. */
function onKey(zone: Zone, scan: ScanNode): Zone {
  const isKey = zone.column === scan.primaryKey && zone.type === 'string' && !scan.masked.has('_pk');
  return isKey ? { ...zone, column: '_pk' } : zone;
}

const mirrored = { '=': '=', '<': '>', '<=': '>=', '>': '<', '>=': '<=' } as const;

function zonesOf(conjunct: Bound): Zone[] {
  if (conjunct.kind === 'between') {
    const { operand, low, high } = conjunct;
    if (operand.kind !== 'column') return [];
    return [
      ...(low.kind === 'parameter' ? zone(operand, '>=', low) : []),
      ...(high.kind === 'parameter' ? zone(operand, '<=', high) : []),
    ];
  }
  if (conjunct.kind !== 'compare' || conjunct.op === '!=') return [];
  const { left, right, op } = conjunct;
  if (left.kind === 'column' && right.kind === 'parameter') return zone(left, op, right);
  return right.kind === 'column' && left.kind === 'parameter' ? zone(right, mirrored[op], left) : [];
}

function zone(column: Extract<Bound, { kind: 'column' }>, op: Zone['op'], value: Bound): Zone[] {
  if (value.type === 'null' || column.type === 'json' || column.type === 'vector') return [];
  return [{ column: column.name, type: column.type, op, value }];
}
