/** A call with its arguments as plain values, so that it goes to a worker as it is; and its work, counted as it is done. */
import { ServiceError } from '../../errors.ts';
import { MemoryMeter } from '../operators/operator.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Location } from '../syntax/statement.ts';
import type { Direction, Graph } from './graph.ts';
import type { GraphAlgorithm, GraphCall, GraphRows, State } from './graph-algorithm.ts';
import { sortInSteps, type Steps, stepsAtOnce } from './stepped-sort.ts';

export interface CallArguments {
  readonly algorithm: string;
  readonly direction: Direction;
  /** Words, those included that are so by default. */
  readonly choices: ReadonlyMap<string, string>;
  readonly values: ReadonlyMap<string, string | number>;
  readonly locations: ReadonlyMap<string, Location>;
  readonly location: Location;
  readonly limit: number;
  readonly rowsMax: number;
  readonly looksMax: number;
  readonly start: State | null;
}

/** The work done so far: looks at edges, and bytes held. */
export interface Work {
  looks: number;
  heldBytes: number;
}

export function countedCall(callArguments: CallArguments, graphWork: Work, graphMemory: MemoryMeter): GraphCall {
  const { algorithm, choices, values, locations, looksMax } = callArguments;
  const invalidArgument = (name: string, argumentProblem: string): Error =>
    errorAt('REL_INVALID', argumentProblem, locations.get(name) ?? callArguments.location);
  const numberArgument: GraphCall['number'] = (name, defaultNumber, leastNumber, greatestNumber) => {
    if (!values.has(name)) return defaultNumber;
    const argumentNumber = Number(values.get(name));
    if (argumentNumber >= leastNumber && argumentNumber <= greatestNumber) return argumentNumber;
    const argumentRange = Number.isFinite(greatestNumber)
      ? `from ${leastNumber} to ${greatestNumber}`
      : `at least ${leastNumber}`;
    throw invalidArgument(name, `${name} of ${algorithm} is ${argumentRange}`);
  };
  return {
    direction: callArguments.direction,
    choice: (name) => choices.get(name)!,
    text: (name) => values.get(name) as string | undefined,
    integer: numberArgument,
    number: numberArgument,
    limit: callArguments.limit,
    rowsMax: callArguments.rowsMax,
    start: callArguments.start,
    spend: (edges) => {
      graphWork.looks += edges;
      if (graphWork.looks <= looksMax) return;
      const looksProblem = `${algorithm} looks at edges more than ${looksMax} times: ask for less of the graph`;
      throw new ServiceError('REL_SCAN_CAP', looksProblem);
    },
    hold: (bytes) => {
      graphWork.heldBytes = graphMemory.change(graphWork.heldBytes, graphWork.heldBytes + bytes);
    },
    invalid: invalidArgument,
  };
}

/** Rows, and the order in which they leave; null: as they stand. */
export interface Answered {
  readonly rows: GraphRows;
  readonly order: Int32Array | null;
}

export function* answerCall(algorithm: GraphAlgorithm, graph: Graph, call: GraphCall, graphWork: Work): Steps<Answered> {
  const algorithmSteps = algorithm.run(graph, call);
  let lastLooks = graphWork.looks;
  let algorithmStep = algorithmSteps.next();
  for (; !algorithmStep.done; algorithmStep = algorithmSteps.next()) {
    // An algorithm that does not count its looks is charged about as many as one step may do.
    if (graphWork.looks === lastLooks) call.spend(stepsAtOnce);
    lastLooks = graphWork.looks;
    yield;
  }
  const answeredRows = algorithmStep.value;
  return { rows: answeredRows, order: answeredRows.ordered ? null : yield* bestScoresFirst(algorithm, answeredRows) };
}

/** Alike ones by their nodes, which are numbered in byte order. */
function bestScoresFirst(
  { columns: algorithmColumns, nearestFirst }: GraphAlgorithm,
  { count, columns }: GraphRows,
): Steps<Int32Array> {
  const hopColumn = nearestFirst ? (columns.get('hop') as Int32Array) : null;
  const scoreColumn = columns.get('score') as Float64Array;
  const nodeColumns = algorithmColumns.flatMap(({ name, holds }) => (holds === 'node' ? [columns.get(name) as Int32Array] : []));
  const order = new Int32Array(count);
  for (let i = 0; i < count; i++) order[i] = i;
  return sortInSteps(order, (a, b) => {
    const rowDifference =
      hopColumn === null ? scoreColumn[b]! - scoreColumn[a]! : scoreColumn[a]! - scoreColumn[b]! || hopColumn[a]! - hopColumn[b]!;
    if (rowDifference !== 0) return rowDifference;
    for (const nodeColumn of nodeColumns) if (nodeColumn[a] !== nodeColumn[b]) return nodeColumn[a]! - nodeColumn[b]!;
    return a - b;
  });
}
