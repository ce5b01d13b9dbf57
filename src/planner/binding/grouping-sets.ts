/**
 * GROUPING SETS: the rows of one aggregate for each set, one after the other. Each has all keys, NULL where its set lacks one, then
 * its aggregates, then the number of its set, by which GROUPING tells a missing key from a NULL.
 */
import type { Bound } from '../expressions/bound-expression.ts';
import { type AggregateNode, inputsOf, mapInputs, type PlanColumn, type PlanNode } from '../logical-plan.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Location, Select } from '../syntax/statement.ts';
import { project, throughColumns } from './output-columns.ts';

/** Nodes of a plan that come of one grouping: sets within sets multiply. */
const nodesMax = 4_096;
/** Bits of a positive int4. */
const groupingMax = 31;
const setColumn: PlanColumn = { name: '#set', type: 'integer' };

export class GroupingSets {
  readonly #sets: readonly ReadonlySet<number>[];
  readonly #isPlain: boolean;

  /** `first` has the place of the first key that equals each of them. */
  constructor(given: Select['groupingSets'], first: readonly number[]) {
    const sets = given?.sets ?? [first];
    const named = sets.map((set) => [...new Set(set.map((key) => first[key]!))].sort((a, b) => a - b));
    const once = new Map(named.map((set) => [set.join(), set]));
    this.#sets = [...(given?.distinct === true ? once.values() : named)].map((set) => new Set(set));
    this.#isPlain = given === undefined;
  }

  /** GROUPING of these keys: a bit for each, from the last one on, that is set where the key is missing. `column` has the set. */
  grouping(keys: readonly number[], column: number, location: Location): Bound {
    if (keys.length === 0 || keys.length > groupingMax)
      throw errorAt('REL_INVALID', `GROUPING takes 1 to ${groupingMax} expressions of GROUP BY`, location, 'not-of-this-call');
    const masks = this.#sets.map((set) => keys.reduce((mask, key) => mask * 2 + (set.has(key) ? 0 : 1), 0));
    const value = (cell: number): Bound => ({ kind: 'constant', cell: BigInt(cell), type: 'integer' });
    if (this.#isPlain) return value(masks[0]!);
    const operand: Bound = { kind: 'column', index: column, ...setColumn };
    const branches = masks.map((mask, i) => ({ when: value(i), result: value(mask) }));
    return { kind: 'case', operand, branches, otherwise: null, type: 'integer' };
  }

  /** The rows of the aggregate by all keys become those of each set. */
  nodeOf(all: AggregateNode, location: Location): PlanNode {
    if (this.#isPlain) return all;
    if (sizeOf(all) * this.#sets.length > nodesMax)
      throw errorAt('REL_PARSE', `the groupings of this statement unfold to more than ${nodesMax} steps`, location);
    const columns = [...all.columns, setColumn];
    const arms = this.#sets.map((set, i) => oneOf(copyTree(all) as AggregateNode, set, i));
    // Halves of halves, so that many do not nest deep.
    const union = (from: number, to: number): PlanNode => {
      if (to - from === 1) return arms[from]!;
      const middle = (from + to) >>> 1;
      return { kind: 'set-operation', op: 'union all', left: union(from, middle), right: union(middle, to), columns };
    };
    return union(0, arms.length);
  }
}

function oneOf(all: AggregateNode, set: ReadonlySet<number>, number: number): PlanNode {
  const given = throughColumns(all.input);
  const keys = [...set];
  const movedColumn = (column: number): number => column - all.groups + keys.length;
  const input = project(all.input, [...keys.map((key) => given[key]!), ...given.slice(all.groups)]);
  const calls = all.calls.map((call) => ({
    ...call,
    column: call.column === null ? null : movedColumn(call.column),
    ...(call.second !== undefined && { second: movedColumn(call.second) }),
  }));
  const columns = [...keys.map((key) => all.columns[key]!), ...all.columns.slice(all.groups)];
  const node: AggregateNode = { kind: 'aggregate', input, groups: keys.length, calls, columns };
  const outputs = throughColumns(node);
  const none: Bound = { kind: 'constant', cell: null, type: 'null' };
  const shown = all.columns.map((_, i) => {
    const at = i < all.groups ? keys.indexOf(i) : movedColumn(i);
    return at < 0 ? none : outputs[at]!.bound;
  });
  const own: Bound = { kind: 'constant', cell: BigInt(number), type: 'integer' };
  return { kind: 'project', input: node, expressions: [...shown, own], columns: [...all.columns, setColumn] };
}

function sizeOf(node: PlanNode): number {
  return inputsOf(node).reduce((sum, input) => sum + sizeOf(input), 1);
}

/** Passes, kernels and measurements tell nodes apart by their identity. */
function copyTree(node: PlanNode): PlanNode {
  return mapInputs({ ...node }, copyTree);
}
