/** A plan as text: one operator a line, its inputs below it, two spaces deeper. The words are those of `logical-plan.ts`. */
import type { PolicyExplanation } from '../../governance/gate-contract.ts';
import { formatInstant } from '../../log/values/timestamp.ts';
import type { Cell } from '../../log/values/value.ts';
import { shownColumn, shownOf } from '../../projections/access-paths.ts';
import { Analysis } from './analyze-figures.ts';
import type { FindSketch } from '../passes/column-sketch.ts';
import type { Bound } from '../expressions/bound-expression.ts';
import { Values } from '../calls/arguments.ts';
import { aggregatesByKernel, filtersByKernel } from '../kernels/kernel-chain.ts';
import {
  type AggregateCall,
  type FunctionNode,
  inputsOf,
  type JoinNode,
  type LogicalPlan,
  type PlanColumn,
  type PlanNode,
  type RowCount,
  type ScanNode,
  type SearchNode,
} from '../logical-plan.ts';
import type { Measurements } from '../operators/measurements.ts';
import { type Execution, firstRows } from '../operators/operator.ts';
import { checkFetched } from '../operators/ranked-rows.ts';
import { scanRequest } from '../operators/scan.ts';
import { isClosedType } from '../graph/node-and-edge-types.ts';
import { rowsOf, shareOf, type Statistics } from '../passes/estimate-rows.ts';
import type { OperatorFigures } from '../planner-contract.ts';
import type { TextsReady } from '../search/index-readiness.ts';
import { wayToMeaning } from '../table-functions/hybrid-operator.ts';
import { type Way, wayOf, wayToNearest } from '../vectors/nearest-rows.ts';

/** Marks nodes that kernels run over the columns in place. */
const kernel = '; kernel';

/** By search: whether its columns are indexed. */
export type IndexReadiness = ReadonlyMap<PlanNode, TextsReady>;

export interface Explained {
  readonly lines: readonly string[];
  /** Empty for a run that was not measured. */
  readonly operators: readonly OperatorFigures[];
}

export function explain(
  plan: LogicalPlan,
  execution: Execution,
  sketch: FindSketch,
  texts: IndexReadiness = new Map(),
  measurements: Measurements | null = null,
): Explained {
  const statistics = statisticsOf(execution, sketch);
  const analysis = measurements && new Analysis(plan, execution, measurements);
  const lines: string[] = [];
  const operators: OperatorFigures[] = [];
  const add = (node: PlanNode, part: string, depth: number, indent: string): void => {
    const line = describe(node, execution, { plan, texts, isAnalyzed: analysis !== null });
    const indented = indent + '  '.repeat(depth) + line;
    if (analysis) {
      const rowsExpected = Math.round(rowsOf(node, statistics));
      const figures = { part, depth, operator: node.kind, line, rowsExpected, ...analysis.figuresOf(node) };
      operators.push(figures);
      lines.push(`${indented} [${figuresText(figures)}]`);
    } else lines.push(indented + estimateText(node, statistics));
    for (const input of shownInputs(node, execution)) add(input, part, depth + 1, indent);
  };
  add(plan.root, 'answer', 0, '');
  plan.subqueries.forEach(({ root, as }, i) => {
    lines.push(`${as} ${i + 1}`);
    add(root, `${as} ${i + 1}`, 0, '  ');
  });
  if (plan.facets) {
    lines.push('facets');
    add(plan.facets.root, 'facets', 0, '  ');
  }
  return { lines, operators };
}

/** The lines of a plan as Postgres' clients read one: nodes with the plans of their inputs. */
export function planAsJson(lines: readonly string[]): string {
  interface Node {
    'Node Type': string;
    Plans?: Node[];
  }
  const roots: { Plan: Node }[] = [];
  const open: Node[] = [];
  for (const line of lines) {
    const depth = /^ */.exec(line)![0].length / 2;
    const node: Node = { 'Node Type': line.trim() };
    open.length = Math.min(depth, open.length);
    const above = open.at(-1);
    if (above === undefined) roots.push({ Plan: node });
    else (above.Plans ??= []).push(node);
    open.push(node);
  }
  return JSON.stringify(roots, null, 2);
}

function figuresText({ state, rowsIn, rowsOut, rowsExpected, timeMs, memoryBytes, index }: OperatorFigures): string {
  const rows = [...(rowsIn === null ? [] : [`in ${rowsIn}`]), ...(rowsOut === null ? [] : [`out ${rowsOut}`])];
  return [
    ...(state === 'read' ? [] : [state]),
    [...rows, `expected ${rowsExpected}`].join(', '),
    ...(timeMs === null ? [] : [`${timeMs.toFixed(3)} ms`]),
    ...(memoryBytes === null ? [] : [`holds ${memoryBytes} bytes`]),
    ...(index === null ? [] : [`index ${index}`]),
  ].join('; ');
}

/** A decision and what determines it. Where it stands in the log is for audit surfaces. */
export function policyLines(explanation: PolicyExplanation): string[] {
  const { decision, because, scope, determining, residual, masks, policyDigest, satisfiedPath } = explanation;
  // Without policies the rules say all of it.
  const policies = policyDigest === '' ? [] : determining;
  return [
    `decision ${decision}`,
    ...because.map((rule) => `because ${rule}`),
    `scope ${scope}`,
    ...policies.map(({ id, effect, left }) => `determining ${effect} ${id} when ${left}`),
    ...(residual === null ? [] : [`residual ${residual}`]),
    ...masks.map(
      ({ column, kind, when, because: why }) => `mask ${column} (${kind})${when === null ? '' : ` when ${when}`} by ${why}`,
    ),
    ...(satisfiedPath.length === 0 ? [] : [`satisfied ${satisfiedPath.join(', ')}`]),
    ...(policyDigest === '' ? [] : [`policies ${policyDigest}`]),
  ];
}

/** Leaves out types of a graph that the statement did not name and the caller may not read. */
function shownInputs(node: PlanNode, { snapshot }: Execution): readonly PlanNode[] {
  if (node.kind !== 'function' || !node.graph) return inputsOf(node);
  const { types, edges } = node.graph;
  const read = node.carries === 'edges' ? types.nodes : types.links;
  const shown = edges.filter((_, i) => read[i] === undefined || read[i].named || !isClosedType(snapshot, read[i]!.name));
  return node.input === null ? shown : [node.input, ...shown];
}

/** With the values of this statement, while the plan serves others too. */
function statisticsOf(execution: Execution, sketch: FindSketch): Statistics {
  const known = new Map<ScanNode, number>();
  return {
    estimate: (scan) => {
      let rows = known.get(scan);
      if (rows !== undefined) return rows;
      const request = isClosedType(execution.snapshot, scan.type) ? null : scanRequest(scan, execution);
      known.set(scan, (rows = request ? execution.snapshot.rows.estimate(request).rows : 0));
      return rows;
    },
    sketch,
    cell: (parameter) => execution.kernels.parameters[parameter]!.cell,
  };
}

/** The estimated rows of a filter over sketched columns. */
function estimateText(node: PlanNode, statistics: Statistics): string {
  if (node.kind !== 'filter' || !shareOf(node, statistics).isSketched) return '';
  return `; about ${Math.round(rowsOf(node, statistics))} rows`;
}

interface Context {
  readonly plan: LogicalPlan;
  readonly texts: IndexReadiness;
  readonly isAnalyzed: boolean;
}

function describe(node: PlanNode, execution: Execution, { plan, texts, isAnalyzed }: Context): string {
  switch (node.kind) {
    case 'scan':
      return scan(node, execution, isAnalyzed);
    case 'search':
      return search(node, execution, texts);
    case 'filter':
      return `filter ${text(node.predicate, node.input.columns, execution)}${filtersByKernel(node) ? kernel : ''}`;
    case 'project': {
      const shown = node === plan.root ? node.expressions.slice(0, plan.visible) : node.expressions;
      const items = shown.map((bound, i) => {
        const name = columnName(node.columns[i]!);
        const expressionText = text(bound, node.input.columns, execution);
        return expressionText === name || name.startsWith('#') ? expressionText : `${expressionText} AS ${name}`;
      });
      const { nearest } = node;
      const near = nearest
        ? `; nearest first ${firstRows(nearest.limit, nearest.offset, execution)} by index of vectors of ${columnName(node.input.columns[nearest.column]!)}${wayText(wayToNearest(node, execution))}`
        : '';
      return `project ${items.join(', ') || 'nothing'}${near}`;
    }
    case 'aggregate': {
      const columns = node.input.columns;
      const keys = columns.slice(0, node.groups).map((_, i) => node.columns[i]!.name);
      const calls = node.calls.map((call) => callText(call, node.input, execution));
      const aggregateText = [...calls, ...(keys.length > 0 ? [`by ${keys.join(', ')}`] : [])].join(' ') || 'all';
      return `aggregate ${aggregateText}${aggregatesByKernel(node) ? kernel : ''}`;
    }
    case 'values':
      return `values ${node.rows.length} rows`;
    case 'skip':
      return `skip ${rowsText(node.offset, undefined, execution)}`;
    case 'number':
      return 'number rows';
    case 'spread':
      return 'spread arrays';
    case 'over': {
      const names = (columns: readonly number[]): string =>
        columns.map((each) => columnText(each, node.input, execution)).join(', ');
      const partitionText = node.partition.length > 0 ? ` by ${names(node.partition)}` : '';
      const order = node.keys.length > 0 ? ` in order of ${names(node.keys.map(({ column }) => column))}` : '';
      return `over ${node.calls.map((call) => `${call.function}(${call.column === null ? '' : names([call.column])})`).join(', ')}${partitionText}${order}`;
    }
    case 'apply':
      return `apply ${node.type}`;
    case 'distinct':
      return 'distinct';
    case 'join':
      return join(node, execution);
    case 'set-operation':
      return node.op;
    case 'recursive':
      return `recursive ${node.table} ${node.op}`;
    case 'virtual':
      return `virtual ${node.relation}`;
    case 'working':
      return `working ${node.table}`;
    case 'function': {
      checkFetched(node, execution);
      const { words, limit } = node;
      const values = new Values(node.values);
      const given = [...words, ...values.names.map((name) => `${name} => ${values.describe(name, execution.kernels)}`)];
      const how = node.type === null ? '' : nearest(node, values, execution);
      return `function ${node.name}(${given.join(', ')})${limit ? ` first ${execution.rowLimit(limit)}` : ''}${how}`;
    }
    case 'window': {
      const over = columnText(node.column, node.input, execution);
      const sizes = node.intervals.map(({ slot }) => cellText(execution.literals[slot] ?? null)).join(', ');
      const partition = node.partition.map((column) => columnText(column, node.input, execution));
      return `window ${node.type} ${over} ${sizes}${partition.length > 0 ? ` by ${partition.join(', ')}` : ''}`;
    }
    case 'sort': {
      const keys = node.keys.map(({ column, descending, collate }) => {
        const name = columnText(column, node.input, execution);
        return `${name}${collate === 'unicode' ? ' collate unicode' : ''}${descending ? ' desc' : ''}`;
      });
      return `sort ${keys.join(', ')}${node.limit ? ` first ${rowsText(node.limit, node.offset, execution)}` : ''}`;
    }
    case 'limit':
      return `limit ${rowsText(node.limit, node.offset, execution)}`;
  }
}

function join(node: JoinNode, execution: Execution): string {
  const { left, right } = node;
  const keys = node.leftKeys.map((key, i) => {
    return `${columnText(key, left, execution)} = ${columnText(node.rightKeys[i]!, right, execution)}`;
  });
  const parts = [
    ...(keys.length > 0 ? [`on ${keys.join(' and ')}`] : []),
    ...(node.residual ? [`where ${text(node.residual, [...left.columns, ...right.columns], execution)}`] : []),
    `holding ${node.build}${node.leads === true ? ', of keys of left' : ''}`,
  ];
  return `join ${node.type} ${parts.join('; ')}`;
}

function callText(call: AggregateCall, input: PlanNode, execution: Execution): string {
  if (call.column === null) return `${call.function}(*)`;
  const second = call.second === undefined ? '' : `, ${columnText(call.second, input, execution)}`;
  return `${call.function}(${call.distinct ? 'distinct ' : ''}${columnText(call.column, input, execution)}${second})`;
}

/** The column's name, or its expression where it has no name of its own. */
function columnText(column: number, node: PlanNode, execution: Execution): string {
  const name = node.columns[column]!.name;
  return node.kind === 'project' && name.startsWith('#') ? text(node.expressions[column]!, node.input.columns, execution) : name;
}

function wayText({ graphs, why }: Way): string {
  return graphs ? `, approximate by graphs, as ${why}` : `, exact, as ${why}`;
}

/** Graphs that are not there yet are begun by the question; until then their rows are looked at. */
function nearest(node: FunctionNode, values: Values, execution: Execution): string {
  const all = 'every row that may be seen is compared';
  const opening = { node, values, execution };
  const way = node.name === 'HYBRID_SEARCH' ? wayToMeaning(opening) : wayOf(opening);
  if (way === null) return '; by words alone, as there is no model or its vector has no direction: no vector is compared';
  const { graphs, why } = way;
  if (!graphs) return `; exact, without an index of vectors, as ${why}: ${all}`;
  return `; approximate, by graphs of full stretches, as ${why}: stretches of which time or branch leave less than a tenth are compared whole`;
}

function search(node: SearchNode, execution: Execution, texts: IndexReadiness): string {
  const { input, matches, required, scored, best } = node;
  const each = matches.map(({ columns, slot, mode }, i) => {
    const names = columns.map((column) => input.columns[column]!.name).join(', ');
    const readMode = required.includes(i) ? 'reads what it finds' : 'reads all rows, as others are asked for too';
    return `match(${names}, ${cellText(execution.literals[slot] ?? null)}${mode === 'ANY' ? '' : `, ${mode.toLowerCase()}`}) by text index, ${readMode}`;
  });
  const ready = texts.get(node);
  if (ready === 'some') each.push('some rows are not indexed yet: a strong search waits for them');
  if (ready === 'all') each.push('all rows are indexed');
  if (scored) each.push('scored by BM25');
  if (best) each.push(`best ${firstRows(best.limit, best.offset, execution)}`);
  return `search ${input.type} (${each.join('; ')})`;
}

/** With ANALYZE only the rows that it gave are shown, not those that it read. */
function scan(node: ScanNode, execution: Execution, isAnalyzed: boolean): string {
  const request = scanRequest(node, execution);
  if (!request) return `scan ${node.type} (nothing: every key is NULL)`;
  const { access, rows, segments } = execution.snapshot.rows.estimate(request);
  const parts = [
    `by ${access}`,
    ...(isAnalyzed ? [] : [`about ${rows} rows in ${segments} segments`]),
    `columns ${node.columns.map(columnName).join(', ') || 'none'}`,
  ];
  const masked = maskedIn(node);
  if (masked.length > 0) parts.push(`masked ${masked.join(', ')}`);
  const { system, valid } = request.time;
  if (valid !== 'all') parts.push(`valid at ${formatInstant(valid)}`);
  if (system !== 'all') parts.push(`known at ${formatInstant(system)}`);
  if (request.keys) parts.push(`keys ${request.keys.length}`);
  if (request.after !== undefined) parts.push(`after ${request.after}`);
  const zones = isAnalyzed ? [] : (request.zones ?? []);
  for (const { column, op, value } of zones) parts.push(`zone ${column} ${op} ${cellText(value)}`);
  return `scan ${node.type} (${parts.join('; ')})`;
}

/** Masked columns that a scan reads, with the kind of their mask, never a value. */
function maskedIn({ masked, columns }: ScanNode): readonly string[] {
  if (masked.size === 0) return [];
  const read = new Set(columns.map(({ name }) => name));
  return [...masked].flatMap(([name, kind]) => (read.has(name) || read.has(shownColumn(name)) ? `${name} (${kind})` : []));
}

function columnName({ name }: PlanColumn): string {
  const of = shownOf(name);
  return of === null ? name : `masked(${of})`;
}

function text(bound: Bound, columns: readonly PlanColumn[], execution: Execution): string {
  const textOf = (each: Bound): string => text(each, columns, execution);
  switch (bound.kind) {
    case 'column':
      return columns[bound.index]!.name.startsWith('#') && shownOf(columns[bound.index]!.name) === null
        ? bound.name
        : columnName(columns[bound.index]!);
    case 'subquery':
      return `subquery ${bound.index + 1}`;
    case 'outer':
      return bound.name;
    case 'parameter':
      if (!execution.kernels.isKnown(bound)) return 'subquery';
      return cellText(execution.kernels.parameters[bound.index]!.cell);
    case 'literal':
    case 'constant':
    case 'now':
      return cellText(execution.kernels.constant(bound));
    case 'compare':
    case 'arithmetic':
      return `(${textOf(bound.left)} ${bound.op} ${textOf(bound.right)})`;
    case 'and':
    case 'or':
      return `(${bound.operands.map(textOf).join(` ${bound.kind} `)})`;
    case 'not':
      return `not ${textOf(bound.operand)}`;
    case 'negate':
      return `-${textOf(bound.operand)}`;
    case 'is-null':
      return `(${textOf(bound.operand)} is null)`;
    case 'between':
      return `(${textOf(bound.operand)} between ${textOf(bound.low)} and ${textOf(bound.high)})`;
    case 'literals':
      return `${bound.count} values`;
    case 'in':
      return `(${textOf(bound.operand)} in (${bound.items.map(textOf).join(', ')}))`;
    case 'in-set':
      return `(${textOf(bound.operand)} in set ${bound.set + 1})`;
    case 'lookup':
      return `lookup(${textOf(bound.operand)}) -> ${bound.field}`;
    case 'same-folded':
      return `(${textOf(bound.operand)} = ${textOf(bound.text)} whatever the case)`;
    case 'function':
      return `${bound.name}(${bound.operands.map(textOf).join(', ')})`;
    case 'call':
      return /^\W/.test(bound.name) && bound.operands.length === 2
        ? `(${textOf(bound.operands[0]!)} ${bound.name} ${textOf(bound.operands[1]!)})`
        : `${bound.name.toLowerCase()}(${bound.operands.map(textOf).join(', ')})`;
    case 'coalesce':
      return `coalesce(${bound.operands.map(textOf).join(', ')})`;
    case 'to-number':
      return textOf(bound.operand);
    case 'phonetic':
      return `${bound.function}(${textOf(bound.operand)})`;
    case 'match':
      return `match(${textOf(bound.operand)}, ${textOf(bound.query)}${bound.mode === 'ANY' ? '' : `, ${bound.mode.toLowerCase()}`}; no index: not over rows of one type)`;
    case 'like':
      return `(${textOf(bound.operand)} like ${textOf(bound.pattern)})`;
    case 'case': {
      const branches = bound.branches.map(({ when, result }) => `when ${textOf(when)} then ${textOf(result)}`);
      return `case ${bound.operand ? `${textOf(bound.operand)} ` : ''}${branches.join(' ')}${bound.otherwise ? ` else ${textOf(bound.otherwise)}` : ''} end`;
    }
  }
}

function cellText(cell: Cell): string {
  return typeof cell === 'string' ? `'${cell.replaceAll("'", "''")}'` : cell === null ? 'null' : String(cell);
}

/** A number that the statement computes is not known before it runs. */
function rowsText(limit: RowCount, offset: RowCount | undefined, execution: Execution): string {
  const isComputed = 'value' in limit || (offset !== undefined && 'value' in offset);
  return isComputed ? 'as computed' : String(firstRows(limit, offset, execution));
}
