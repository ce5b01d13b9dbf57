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

export function countedCall(callArguments: CallArguments, work: Work, memory: MemoryMeter): GraphCall {
  const { algorithm, choices, values, locations, looksMax } = callArguments;
  const invalid = (name: string, text: string): Error =>
    errorAt('REL_INVALID', text, locations.get(name) ?? callArguments.location);
  const number: GraphCall['number'] = (name, otherwise, least, most) => {
    if (!values.has(name)) return otherwise;
    const value = Number(values.get(name));
    if (value >= least && value <= most) return value;
    const range = Number.isFinite(most) ? `from ${least} to ${most}` : `at least ${least}`;
    throw invalid(name, `${name} of ${algorithm} is ${range}`);
  };
  return {
    direction: callArguments.direction,
    choice: (name) => choices.get(name)!,
    text: (name) => values.get(name) as string | undefined,
    integer: number,
    number,
    limit: callArguments.limit,
    rowsMax: callArguments.rowsMax,
    start: callArguments.start,
    spend: (edges) => {
      work.looks += edges;
      if (work.looks <= looksMax) return;
      const text = `${algorithm} looks at edges more than ${looksMax} times: ask for less of the graph`;
      throw new ServiceError('REL_SCAN_CAP', text);
    },
    hold: (bytes) => {
      work.heldBytes = memory.change(work.heldBytes, work.heldBytes + bytes);
    },
    invalid,
  };
}

/** Rows, and the order in which they leave; null: as they stand. */
export interface Answered {
  readonly rows: GraphRows;
  readonly order: Int32Array | null;
}

export function* answerCall(algorithm: GraphAlgorithm, graph: Graph, call: GraphCall, work: Work): Steps<Answered> {
  const steps = algorithm.run(graph, call);
  let looks = work.looks;
  let step = steps.next();
  for (; !step.done; step = steps.next()) {
    // An algorithm that does not count its looks is charged about as many as one step may do.
    if (work.looks === looks) call.spend(stepsAtOnce);
    looks = work.looks;
    yield;
  }
  const rows = step.value;
  return { rows, order: rows.ordered ? null : yield* bestFirst(algorithm, rows) };
}

/** Alike ones by their nodes, which are numbered in byte order. */
function bestFirst({ columns: own, nearestFirst }: GraphAlgorithm, { count, columns }: GraphRows): Steps<Int32Array> {
  const hop = nearestFirst ? (columns.get('hop') as Int32Array) : null;
  const score = columns.get('score') as Float64Array;
  const nodes = own.flatMap(({ name, holds }) => (holds === 'node' ? [columns.get(name) as Int32Array] : []));
  const order = new Int32Array(count);
  for (let i = 0; i < count; i++) order[i] = i;
  return sortInSteps(order, (a, b) => {
    const difference = hop === null ? score[b]! - score[a]! : score[a]! - score[b]! || hop[a]! - hop[b]!;
    if (difference !== 0) return difference;
    for (const column of nodes) if (column[a] !== column[b]) return column[a]! - column[b]!;
    return a - b;
  });
}
