/**
 * The loop that all aggregate functions of a question share, generated once per layout from fixed words so that each is a
 * plain loop over typed arrays, and the same work as steps for kernels, where columns rest in their reach.
 */
import { AssertionError } from '../../errors.ts';
import type { Vector } from '../../log/values/columns.ts';
import { generateFunction } from '../expressions/generate-function.ts';
import type { CodePairs } from './group-table.ts';
import type { Batch } from './operator.ts';

/** The work of a kernel on a column, row by row; `count` needs the number of rows only. `vector` null: no column. */
export type KernelStep =
  | { readonly kernel: 'count'; readonly vector: Vector | null }
  | { readonly kernel: 'countAbsent' | 'addF64' | 'addF64OfI32' | 'addI32'; readonly vector: FixedVector }
  | { readonly kernel: 'extremeF64' | 'extremeI32' | 'extremeI64'; readonly vector: FixedVector; readonly sign: 1 | -1 };

/** Layouts whose cells lie side by side at one width. */
export type FixedVector = Extract<Vector, { kind: 'i32' | 'f64' | 'i64' | 'dict' }>;

/** The accumulators of steps, by group. */
export interface KernelShare {
  /** Results so far, for kernels over doubles. */
  readonly doubles: Float64Array;
  /** How many NULLs so far. */
  readonly absent: Float64Array;
  /** Adds the sum of a batch's rows to a group, as the words of an integer; null for kernels over doubles. */
  readonly take: ((group: number, low: number, high: number) => void) | null;
}

export interface Accumulator {
  readonly bytes: number;
  /** Goes over the rows by itself. */
  readonly byPlace: boolean;
  /** Makes room for groups below `groupsMax` and returns the part of the common loop for a row; null: `update` does the work. */
  prepare(batch: Batch, groupsMax: number): Fragment | null;
  /** Takes the rows of a batch by itself; `groups` numbers them by place in it. */
  update(batch: Batch, groups: Int32Array, groupsMax: number): void;
  /** The kernel step for the rows of a batch; null where kernels can't take it. */
  step(batch: Batch): KernelStep | null;
  /** Makes room for groups below `groupsMax`, and returns the accumulators that a step adds to. */
  share(batch: Batch, groupsMax: number): KernelShare;
  /** Results of these groups as a column; `rows` is how many rows each group has. */
  result(groups: Int32Array, rows: Float64Array): Vector;
}

/** A function that takes every row of a batch by itself: neither the common loop nor kernels have a share in it. */
export abstract class RowByRow implements Accumulator {
  readonly byPlace = true;
  abstract readonly bytes: number;
  abstract update(batch: Batch, groups: Int32Array, groupsMax: number): void;
  abstract result(groups: Int32Array, rows: Float64Array): Vector;

  step(): null {
    return null;
  }

  share(): never {
    throw new AssertionError('no step, no share');
  }

  prepare(): null {
    return null;
  }
}

/**
 * A share of the loop that all functions have in common: `body` reads row `i` of `values` and updates A and C of its group.
 * B counts the NULLs, which a body never sees.
 */
export interface Fragment {
  readonly body: string;
  readonly values: ArrayLike<number>;
  readonly nulls: Uint8Array | null;
  readonly a: Float64Array;
  readonly b: Float64Array;
  readonly c: Float64Array;
}

/** The source of each row's group: its place in the batch, or the code of its only key. */
export type GroupSource =
  | { readonly kind: 'single' }
  | { readonly kind: 'groups'; readonly groups: Int32Array }
  | { readonly kind: 'codes'; readonly table: Int32Array; readonly codes: Int32Array }
  | ({ readonly kind: 'pairs' } & CodePairs);

type AggregateLoop = (batch: Batch, source: GroupSource, fragments: readonly Fragment[], rows: Float64Array) => void;

const aggregateLoops = new Map<string, AggregateLoop>();

/** One pass over the rows for all fragments: the updates of a row overlap, and its group is looked up once. */
export function accumulate(batch: Batch, groupSource: GroupSource, loopFragments: readonly Fragment[], counts: RowCounts): void {
  let loopKey = batch.selection === null ? `D${groupSource.kind}` : groupSource.kind;
  for (const { body, nulls } of loopFragments) loopKey += `\n${body}${nulls ? '?' : ''}`;
  let aggregateLoop = aggregateLoops.get(loopKey);
  if (!aggregateLoop)
    aggregateLoops.set(loopKey, (aggregateLoop = generateLoop(batch.selection === null, groupSource.kind, loopFragments)));
  aggregateLoop(batch, groupSource, loopFragments, counts.counts);
}

const pairsPrologue = 'const { leftCodes, leftTable, rightCodes, rightTable, groupOfPair, bits } = source;';

const groupNumberCode: Readonly<Record<GroupSource['kind'], string>> = {
  single: '',
  groups: 'const g = groups[j];',
  codes: 'const g = table[codes[i]];',
  pairs: 'const g = groupOfPair[(leftTable[leftCodes[i]] << bits) | rightTable[rightCodes[i]]] - 1;',
};

function generateLoop(isDense: boolean, kind: GroupSource['kind'], fragments: readonly Fragment[]): AggregateLoop {
  const isSingleGroup = kind === 'single';
  const loopPrologue: string[] = [];
  const loopEpilogue: string[] = [];
  const updateLines: string[] = [];
  fragments.forEach(({ body, nulls }, k) => {
    loopPrologue.push(`const v${k} = fragments[${k}].values, n${k} = fragments[${k}].nulls;`);
    for (const name of ['a', 'b', 'c']) {
      loopPrologue.push(`const ${name}${k} = fragments[${k}].${name};`);
      if (!isSingleGroup) continue;
      loopPrologue.push(`let ${name}s${k} = ${name}${k}[0];`);
      loopEpilogue.push(`${name}${k}[0] = ${name}s${k};`);
    }
    const accumulatorName = (name: string): string => (isSingleGroup ? `${name}s${k}` : `${name}${k}[g]`);
    const updateLine = body.replace(/\bvalues\b/g, `v${k}`).replace(/\b[ABC]\b/g, (name) => accumulatorName(name.toLowerCase()));
    updateLines.push(nulls ? `if (n${k}[i] === 1) ${accumulatorName('b')}++; else { ${updateLine} }` : `{ ${updateLine} }`);
  });
  const loopSource = [
    '"use strict"; const first = batch.first, count = batch.count, selection = batch.selection;',
    kind === 'groups' ? 'const groups = source.groups;' : '',
    kind === 'codes' ? 'const table = source.table, codes = source.codes;' : '',
    kind === 'pairs' ? pairsPrologue : '',
    ...loopPrologue,
    'for (let j = 0; j < count; j++) {',
    isDense ? 'const i = first + j;' : 'const i = selection[j];',
    groupNumberCode[kind],
    isSingleGroup ? '' : 'rows[g]++;',
    ...updateLines,
    '}',
    isSingleGroup ? 'rows[0] += count;' : '',
    ...loopEpilogue,
  ].join('\n');
  return generateFunction<AggregateLoop>(['batch', 'source', 'fragments', 'rows'], loopSource);
}

/** How many rows each group has: what COUNT(*) yields, and what every other function reckons from. */
export class RowCounts {
  counts = new Float64Array(16);

  reserve(groupsMax: number): void {
    if (this.counts.length < groupsMax) this.counts = larger(this.counts, groupsMax, 0);
  }
}

export function larger(
  smallerDoubles: Float64Array<ArrayBuffer>,
  leastLength: number,
  initialDouble: number,
): Float64Array<ArrayBuffer> {
  const grownDoubles = new Float64Array(Math.max(smallerDoubles.length * 2, leastLength));
  grownDoubles.set(smallerDoubles);
  if (initialDouble !== 0) grownDoubles.fill(initialDouble, smallerDoubles.length);
  return grownDoubles;
}

export function isFixed(vector: Vector): vector is FixedVector {
  return vector.kind === 'i32' || vector.kind === 'f64' || vector.kind === 'i64' || vector.kind === 'dict';
}
