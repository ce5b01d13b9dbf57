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
const groupingNodesMax = 4_096;
/** Bits of a positive int4. */
const groupingMax = 31;
const setColumn: PlanColumn = { name: '#set', type: 'integer' };

export class GroupingSets {
  readonly #groupingSets: readonly ReadonlySet<number>[];
  readonly #isPlain: boolean;

  /** `first` has the place of the first key that equals each of them. */
  constructor(givenSets: Select['groupingSets'], first: readonly number[]) {
    const keySets = givenSets?.sets ?? [first];
    const groupedKeySets = keySets.map((set) => [...new Set(set.map((key) => first[key]!))].sort((a, b) => a - b));
    const distinctSets = new Map(groupedKeySets.map((set) => [set.join(), set]));
    this.#groupingSets = [...(givenSets?.distinct === true ? distinctSets.values() : groupedKeySets)].map((set) => new Set(set));
    this.#isPlain = givenSets === undefined;
  }

  /** GROUPING of these keys: a bit for each, from the last one on, that is set where the key is missing. `column` has the set. */
  grouping(keys: readonly number[], column: number, location: Location): Bound {
    if (keys.length === 0 || keys.length > groupingMax)
      throw errorAt('REL_INVALID', `GROUPING takes 1 to ${groupingMax} expressions of GROUP BY`, location, 'not-of-this-call');
    const groupingMasks = this.#groupingSets.map((set) => keys.reduce((mask, key) => mask * 2 + (set.has(key) ? 0 : 1), 0));
    const integerConstant = (cell: number): Bound => ({ kind: 'constant', cell: BigInt(cell), type: 'integer' });
    if (this.#isPlain) return integerConstant(groupingMasks[0]!);
    const setOperand: Bound = { kind: 'column', index: column, ...setColumn };
    const setBranches = groupingMasks.map((mask, i) => ({ when: integerConstant(i), result: integerConstant(mask) }));
    return { kind: 'case', operand: setOperand, branches: setBranches, otherwise: null, type: 'integer' };
  }

  /** The rows of the aggregate by all keys become those of each set. */
  nodeOf(wholeAggregate: AggregateNode, location: Location): PlanNode {
    if (this.#isPlain) return wholeAggregate;
    if (planSizeOf(wholeAggregate) * this.#groupingSets.length > groupingNodesMax)
      throw errorAt('REL_PARSE', `the groupings of this statement unfold to more than ${groupingNodesMax} steps`, location);
    const columns = [...wholeAggregate.columns, setColumn];
    const setArms = this.#groupingSets.map((set, i) => aggregateOfSet(copyPlanTree(wholeAggregate) as AggregateNode, set, i));
    // Halves of halves, so that many do not nest deep.
    const unionOfArms = (firstArm: number, endArm: number): PlanNode => {
      if (endArm - firstArm === 1) return setArms[firstArm]!;
      const middleArm = (firstArm + endArm) >>> 1;
      return {
        kind: 'set-operation',
        op: 'union all',
        left: unionOfArms(firstArm, middleArm),
        right: unionOfArms(middleArm, endArm),
        columns,
      };
    };
    return unionOfArms(0, setArms.length);
  }
}

function aggregateOfSet(wholeAggregate: AggregateNode, set: ReadonlySet<number>, number: number): PlanNode {
  const inputColumns = throughColumns(wholeAggregate.input);
  const setKeys = [...set];
  const movedColumn = (column: number): number => column - wholeAggregate.groups + setKeys.length;
  const setInput = project(wholeAggregate.input, [
    ...setKeys.map((key) => inputColumns[key]!),
    ...inputColumns.slice(wholeAggregate.groups),
  ]);
  const movedCalls = wholeAggregate.calls.map((call) => ({
    ...call,
    column: call.column === null ? null : movedColumn(call.column),
    ...(call.second !== undefined && { second: movedColumn(call.second) }),
  }));
  const columns = [...setKeys.map((key) => wholeAggregate.columns[key]!), ...wholeAggregate.columns.slice(wholeAggregate.groups)];
  const setAggregate: AggregateNode = { kind: 'aggregate', input: setInput, groups: setKeys.length, calls: movedCalls, columns };
  const setOutputs = throughColumns(setAggregate);
  const nullConstant: Bound = { kind: 'constant', cell: null, type: 'null' };
  const shownKeys = wholeAggregate.columns.map((_, i) => {
    const outputIndex = i < wholeAggregate.groups ? setKeys.indexOf(i) : movedColumn(i);
    return outputIndex < 0 ? nullConstant : setOutputs[outputIndex]!.bound;
  });
  const setNumber: Bound = { kind: 'constant', cell: BigInt(number), type: 'integer' };
  return {
    kind: 'project',
    input: setAggregate,
    expressions: [...shownKeys, setNumber],
    columns: [...wholeAggregate.columns, setColumn],
  };
}

function planSizeOf(node: PlanNode): number {
  return inputsOf(node).reduce((sum, input) => sum + planSizeOf(input), 1);
}

/** Passes, kernels and measurements tell nodes apart by their identity. */
function copyPlanTree(node: PlanNode): PlanNode {
  return mapInputs({ ...node }, copyPlanTree);
}
