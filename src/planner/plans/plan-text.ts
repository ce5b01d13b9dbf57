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
const kernelMark = '; kernel';

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
  const planLines: string[] = [];
  const operatorsOfPlan: OperatorFigures[] = [];
  const addNode = (node: PlanNode, planPart: string, depth: number, indent: string): void => {
    const nodeLine = describeNode(node, execution, { plan, texts, isAnalyzed: analysis !== null });
    const indentedLine = indent + '  '.repeat(depth) + nodeLine;
    if (analysis) {
      const rowsExpected = Math.round(rowsOf(node, statistics));
      const operatorFigures = {
        part: planPart,
        depth,
        operator: node.kind,
        line: nodeLine,
        rowsExpected,
        ...analysis.figuresOf(node),
      };
      operatorsOfPlan.push(operatorFigures);
      planLines.push(`${indentedLine} [${figuresText(operatorFigures)}]`);
    } else planLines.push(indentedLine + estimateText(node, statistics));
    for (const shownInput of shownInputs(node, execution)) addNode(shownInput, planPart, depth + 1, indent);
  };
  addNode(plan.root, 'answer', 0, '');
  plan.subqueries.forEach(({ root, as }, i) => {
    planLines.push(`${as} ${i + 1}`);
    addNode(root, `${as} ${i + 1}`, 0, '  ');
  });
  if (plan.facets) {
    planLines.push('facets');
    addNode(plan.facets.root, 'facets', 0, '  ');
  }
  return { lines: planLines, operators: operatorsOfPlan };
}

/** The lines of a plan as Postgres' clients read one: nodes with the plans of their inputs. */
export function planAsJson(lines: readonly string[]): string {
  interface Node {
    'Node Type': string;
    Plans?: Node[];
  }
  const planRoots: { Plan: Node }[] = [];
  const openPlanNodes: Node[] = [];
  for (const line of lines) {
    const depth = /^ */.exec(line)![0].length / 2;
    const jsonNode: Node = { 'Node Type': line.trim() };
    openPlanNodes.length = Math.min(depth, openPlanNodes.length);
    const parentNode = openPlanNodes.at(-1);
    if (parentNode === undefined) planRoots.push({ Plan: jsonNode });
    else (parentNode.Plans ??= []).push(jsonNode);
    openPlanNodes.push(jsonNode);
  }
  return JSON.stringify(planRoots, null, 2);
}

function figuresText({ state, rowsIn, rowsOut, rowsExpected, timeMs, memoryBytes, index }: OperatorFigures): string {
  const rowTexts = [...(rowsIn === null ? [] : [`in ${rowsIn}`]), ...(rowsOut === null ? [] : [`out ${rowsOut}`])];
  return [
    ...(state === 'read' ? [] : [state]),
    [...rowTexts, `expected ${rowsExpected}`].join(', '),
    ...(timeMs === null ? [] : [`${timeMs.toFixed(3)} ms`]),
    ...(memoryBytes === null ? [] : [`holds ${memoryBytes} bytes`]),
    ...(index === null ? [] : [`index ${index}`]),
  ].join('; ');
}

/** A decision and what determines it. Where it stands in the log is for audit surfaces. */
export function policyLines(explanation: PolicyExplanation): string[] {
  const { decision, because, scope, determining, residual, masks, policyDigest, satisfiedPath } = explanation;
  // Without policies the rules say all of it.
  const determiningPolicies = policyDigest === '' ? [] : determining;
  return [
    `decision ${decision}`,
    ...because.map((becauseRule) => `because ${becauseRule}`),
    `scope ${scope}`,
    ...determiningPolicies.map(({ id, effect, left }) => `determining ${effect} ${id} when ${left}`),
    ...(residual === null ? [] : [`residual ${residual}`]),
    ...masks.map(
      ({ column, kind, when, because: maskPolicy }) =>
        `mask ${column} (${kind})${when === null ? '' : ` when ${when}`} by ${maskPolicy}`,
    ),
    ...(satisfiedPath.length === 0 ? [] : [`satisfied ${satisfiedPath.join(', ')}`]),
    ...(policyDigest === '' ? [] : [`policies ${policyDigest}`]),
  ];
}

/** Leaves out types of a graph that the statement did not name and the caller may not read. */
function shownInputs(node: PlanNode, { snapshot }: Execution): readonly PlanNode[] {
  if (node.kind !== 'function' || !node.graph) return inputsOf(node);
  const { types, edges } = node.graph;
  const graphTypesRead = node.carries === 'edges' ? types.nodes : types.links;
  const shownEdges = edges.filter(
    (_, i) => graphTypesRead[i] === undefined || graphTypesRead[i].named || !isClosedType(snapshot, graphTypesRead[i]!.name),
  );
  return node.input === null ? shownEdges : [node.input, ...shownEdges];
}

/** With the values of this statement, while the plan serves others too. */
function statisticsOf(execution: Execution, sketch: FindSketch): Statistics {
  const rowsByScan = new Map<ScanNode, number>();
  return {
    estimate: (scan) => {
      let rows = rowsByScan.get(scan);
      if (rows !== undefined) return rows;
      const request = isClosedType(execution.snapshot, scan.type) ? null : scanRequest(scan, execution);
      rowsByScan.set(scan, (rows = request ? execution.snapshot.rows.estimate(request).rows : 0));
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

interface DescribeContext {
  readonly plan: LogicalPlan;
  readonly texts: IndexReadiness;
  readonly isAnalyzed: boolean;
}

function describeNode(node: PlanNode, execution: Execution, { plan, texts, isAnalyzed }: DescribeContext): string {
  switch (node.kind) {
    case 'scan':
      return scanText(node, execution, isAnalyzed);
    case 'search':
      return searchText(node, execution, texts);
    case 'filter':
      return `filter ${boundText(node.predicate, node.input.columns, execution)}${filtersByKernel(node) ? kernelMark : ''}`;
    case 'project': {
      const shownExpressions = node === plan.root ? node.expressions.slice(0, plan.visible) : node.expressions;
      const projectItems = shownExpressions.map((bound, i) => {
        const itemName = columnName(node.columns[i]!);
        const expressionText = boundText(bound, node.input.columns, execution);
        return expressionText === itemName || itemName.startsWith('#') ? expressionText : `${expressionText} AS ${itemName}`;
      });
      const { nearest } = node;
      const nearestText = nearest
        ? `; nearest first ${firstRows(nearest.limit, nearest.offset, execution)} by index of vectors of ${columnName(node.input.columns[nearest.column]!)}${nearestWayText(wayToNearest(node, execution))}`
        : '';
      return `project ${projectItems.join(', ') || 'nothing'}${nearestText}`;
    }
    case 'aggregate': {
      const columns = node.input.columns;
      const keyTexts = columns.slice(0, node.groups).map((_, i) => node.columns[i]!.name);
      const callTexts = node.calls.map((call) => callText(call, node.input, execution));
      const aggregateText = [...callTexts, ...(keyTexts.length > 0 ? [`by ${keyTexts.join(', ')}`] : [])].join(' ') || 'all';
      return `aggregate ${aggregateText}${aggregatesByKernel(node) ? kernelMark : ''}`;
    }
    case 'values':
      return `values ${node.rows.length} rows`;
    case 'skip':
      return `skip ${rowCountText(node.offset, undefined, execution)}`;
    case 'number':
      return 'number rows';
    case 'spread':
      return 'spread arrays';
    case 'over': {
      const columnNames = (columns: readonly number[]): string =>
        columns.map((each) => columnText(each, node.input, execution)).join(', ');
      const partitionText = node.partition.length > 0 ? ` by ${columnNames(node.partition)}` : '';
      const orderText = node.keys.length > 0 ? ` in order of ${columnNames(node.keys.map(({ column }) => column))}` : '';
      return `over ${node.calls.map((call) => `${call.function}(${call.column === null ? '' : columnNames([call.column])})`).join(', ')}${partitionText}${orderText}`;
    }
    case 'apply':
      return `apply ${node.type}`;
    case 'distinct':
      return 'distinct';
    case 'join':
      return joinText(node, execution);
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
      const functionValues = new Values(node.values);
      const argumentTexts = [
        ...words,
        ...functionValues.names.map((itemName) => `${itemName} => ${functionValues.describe(itemName, execution.kernels)}`),
      ];
      const nearestWay = node.type === null ? '' : nearestFunctionText(node, functionValues, execution);
      return `function ${node.name}(${argumentTexts.join(', ')})${limit ? ` first ${execution.rowLimit(limit)}` : ''}${nearestWay}`;
    }
    case 'window': {
      const windowColumnText = columnText(node.column, node.input, execution);
      const intervalTexts = node.intervals.map(({ slot }) => planCellText(execution.literals[slot] ?? null)).join(', ');
      const windowPartition = node.partition.map((column) => columnText(column, node.input, execution));
      return `window ${node.type} ${windowColumnText} ${intervalTexts}${windowPartition.length > 0 ? ` by ${windowPartition.join(', ')}` : ''}`;
    }
    case 'sort': {
      const keyTexts = node.keys.map(({ column, descending, collate }) => {
        const itemName = columnText(column, node.input, execution);
        return `${itemName}${collate === 'unicode' ? ' collate unicode' : ''}${descending ? ' desc' : ''}`;
      });
      return `sort ${keyTexts.join(', ')}${node.limit ? ` first ${rowCountText(node.limit, node.offset, execution)}` : ''}`;
    }
    case 'limit':
      return `limit ${rowCountText(node.limit, node.offset, execution)}`;
  }
}

function joinText(node: JoinNode, execution: Execution): string {
  const { left, right } = node;
  const keyTexts = node.leftKeys.map((key, i) => {
    return `${columnText(key, left, execution)} = ${columnText(node.rightKeys[i]!, right, execution)}`;
  });
  const joinTexts = [
    ...(keyTexts.length > 0 ? [`on ${keyTexts.join(' and ')}`] : []),
    ...(node.residual ? [`where ${boundText(node.residual, [...left.columns, ...right.columns], execution)}`] : []),
    `holding ${node.build}${node.leads === true ? ', of keys of left' : ''}`,
  ];
  return `join ${node.type} ${joinTexts.join('; ')}`;
}

function callText(call: AggregateCall, input: PlanNode, execution: Execution): string {
  if (call.column === null) return `${call.function}(*)`;
  const secondText = call.second === undefined ? '' : `, ${columnText(call.second, input, execution)}`;
  return `${call.function}(${call.distinct ? 'distinct ' : ''}${columnText(call.column, input, execution)}${secondText})`;
}

/** The column's name, or its expression where it has no name of its own. */
function columnText(column: number, node: PlanNode, execution: Execution): string {
  const name = node.columns[column]!.name;
  return node.kind === 'project' && name.startsWith('#')
    ? boundText(node.expressions[column]!, node.input.columns, execution)
    : name;
}

function nearestWayText({ graphs, why }: Way): string {
  return graphs ? `, approximate by graphs, as ${why}` : `, exact, as ${why}`;
}

/** Graphs that are not there yet are begun by the question; until then their rows are looked at. */
function nearestFunctionText(node: FunctionNode, values: Values, execution: Execution): string {
  const everyRowText = 'every row that may be seen is compared';
  const opening = { node, values, execution };
  const way = node.name === 'HYBRID_SEARCH' ? wayToMeaning(opening) : wayOf(opening);
  if (way === null) return '; by words alone, as there is no model or its vector has no direction: no vector is compared';
  const { graphs, why } = way;
  if (!graphs) return `; exact, without an index of vectors, as ${why}: ${everyRowText}`;
  return `; approximate, by graphs of full stretches, as ${why}: stretches of which time or branch leave less than a tenth are compared whole`;
}

function searchText(node: SearchNode, execution: Execution, texts: IndexReadiness): string {
  const { input, matches, required, scored, best } = node;
  const matchTexts = matches.map(({ columns, slot, mode }, i) => {
    const matchColumns = columns.map((column) => input.columns[column]!.name).join(', ');
    const readMode = required.includes(i) ? 'reads what it finds' : 'reads all rows, as others are asked for too';
    return `match(${matchColumns}, ${planCellText(execution.literals[slot] ?? null)}${mode === 'ANY' ? '' : `, ${mode.toLowerCase()}`}) by text index, ${readMode}`;
  });
  const ready = texts.get(node);
  if (ready === 'some') matchTexts.push('some rows are not indexed yet: a strong search waits for them');
  if (ready === 'all') matchTexts.push('all rows are indexed');
  if (scored) matchTexts.push('scored by BM25');
  if (best) matchTexts.push(`best ${firstRows(best.limit, best.offset, execution)}`);
  return `search ${input.type} (${matchTexts.join('; ')})`;
}

/** With ANALYZE only the rows that it gave are shown, not those that it read. */
function scanText(node: ScanNode, execution: Execution, isAnalyzed: boolean): string {
  const requestOfScan = scanRequest(node, execution);
  if (!requestOfScan) return `scan ${node.type} (nothing: every key is NULL)`;
  const { access, rows, segments } = execution.snapshot.rows.estimate(requestOfScan);
  const scanTexts = [
    `by ${access}`,
    ...(isAnalyzed ? [] : [`about ${rows} rows in ${segments} segments`]),
    `columns ${node.columns.map(columnName).join(', ') || 'none'}`,
  ];
  const maskedTexts = maskedColumnTexts(node);
  if (maskedTexts.length > 0) scanTexts.push(`masked ${maskedTexts.join(', ')}`);
  const { system, valid } = requestOfScan.time;
  if (valid !== 'all') scanTexts.push(`valid at ${formatInstant(valid)}`);
  if (system !== 'all') scanTexts.push(`known at ${formatInstant(system)}`);
  if (requestOfScan.keys) scanTexts.push(`keys ${requestOfScan.keys.length}`);
  if (requestOfScan.after !== undefined) scanTexts.push(`after ${requestOfScan.after}`);
  const zonesShown = isAnalyzed ? [] : (requestOfScan.zones ?? []);
  for (const { column, op, value } of zonesShown) scanTexts.push(`zone ${column} ${op} ${planCellText(value)}`);
  return `scan ${node.type} (${scanTexts.join('; ')})`;
}

/** Masked columns that a scan reads, with the kind of their mask, never a value. */
function maskedColumnTexts({ masked, columns }: ScanNode): readonly string[] {
  if (masked.size === 0) return [];
  const columnsRead = new Set(columns.map(({ name }) => name));
  return [...masked].flatMap(([name, kind]) =>
    columnsRead.has(name) || columnsRead.has(shownColumn(name)) ? `${name} (${kind})` : [],
  );
}

function columnName({ name }: PlanColumn): string {
  const shownColumnName = shownOf(name);
  return shownColumnName === null ? name : `masked(${shownColumnName})`;
}

function boundText(bound: Bound, columns: readonly PlanColumn[], execution: Execution): string {
  const childText = (each: Bound): string => boundText(each, columns, execution);
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
      return planCellText(execution.kernels.parameters[bound.index]!.cell);
    case 'literal':
    case 'constant':
    case 'now':
      return planCellText(execution.kernels.constant(bound));
    case 'compare':
    case 'arithmetic':
      return `(${childText(bound.left)} ${bound.op} ${childText(bound.right)})`;
    case 'and':
    case 'or':
      return `(${bound.operands.map(childText).join(` ${bound.kind} `)})`;
    case 'not':
      return `not ${childText(bound.operand)}`;
    case 'negate':
      return `-${childText(bound.operand)}`;
    case 'is-null':
      return `(${childText(bound.operand)} is null)`;
    case 'between':
      return `(${childText(bound.operand)} between ${childText(bound.low)} and ${childText(bound.high)})`;
    case 'literals':
      return `${bound.count} values`;
    case 'in':
      return `(${childText(bound.operand)} in (${bound.items.map(childText).join(', ')}))`;
    case 'in-set':
      return `(${childText(bound.operand)} in set ${bound.set + 1})`;
    case 'lookup':
      return `lookup(${childText(bound.operand)}) -> ${bound.field}`;
    case 'same-folded':
      return `(${childText(bound.operand)} = ${childText(bound.text)} whatever the case)`;
    case 'function':
      return `${bound.name}(${bound.operands.map(childText).join(', ')})`;
    case 'call':
      return /^\W/.test(bound.name) && bound.operands.length === 2
        ? `(${childText(bound.operands[0]!)} ${bound.name} ${childText(bound.operands[1]!)})`
        : `${bound.name.toLowerCase()}(${bound.operands.map(childText).join(', ')})`;
    case 'coalesce':
      return `coalesce(${bound.operands.map(childText).join(', ')})`;
    case 'to-number':
      return childText(bound.operand);
    case 'phonetic':
      return `${bound.function}(${childText(bound.operand)})`;
    case 'match':
      return `match(${childText(bound.operand)}, ${childText(bound.query)}${bound.mode === 'ANY' ? '' : `, ${bound.mode.toLowerCase()}`}; no index: not over rows of one type)`;
    case 'like':
      return `(${childText(bound.operand)} like ${childText(bound.pattern)})`;
    case 'case': {
      const branchTexts = bound.branches.map(({ when, result }) => `when ${childText(when)} then ${childText(result)}`);
      return `case ${bound.operand ? `${childText(bound.operand)} ` : ''}${branchTexts.join(' ')}${bound.otherwise ? ` else ${childText(bound.otherwise)}` : ''} end`;
    }
  }
}

function planCellText(cell: Cell): string {
  return typeof cell === 'string' ? `'${cell.replaceAll("'", "''")}'` : cell === null ? 'null' : String(cell);
}

/** A number that the statement computes is not known before it runs. */
function rowCountText(limit: RowCount, offset: RowCount | undefined, execution: Execution): string {
  const isComputed = 'value' in limit || (offset !== undefined && 'value' in offset);
  return isComputed ? 'as computed' : String(firstRows(limit, offset, execution));
}
