/**
 * Expressions to loops. A kernel is generated per expression and layout of its input (which typed array each column
 * rests in, which have NULLs), so the loop reads arrays and nothing else: no object or closure per row.
 *
 * - Code is made of column numbers, parameter numbers and fixed words only. Literals and names never enter it: they are
 *   arguments, so one kernel serves every literal and no text of a caller can become code.
 * - Conditions are two rails: "is true" and "is false". NULL is neither, so three-valued logic is `&` and `|` of 0 and 1.
 * - Integers are doubles while results stay within 2^53; a result beyond throws `widen`, and the block runs again on a
 *   kernel of bigints, exact to 64 bits.
 * - A predicate over one dictionary column is a table lookup: the text is judged once per code.
 */
import type { Vector } from '../../log/values/columns.ts';
import { type Bound, childrenOf, codeParts, columnsIn, isConstantSet } from './bound-expression.ts';
import { KernelCode } from './kernel-code.ts';
import type { Shape } from './kernel-writer.ts';
import type { KernelContext } from './kernel-context.ts';
import { work } from './expression-cost.ts';

/** Writes numbers of the rows kept to `out`, returns how many. */
export type FilterKernel = (
  columns: readonly Vector[],
  context: KernelContext,
  selection: Int32Array | null,
  first: number,
  count: number,
  out: Int32Array,
) => number;

export type ProjectTarget = Float64Array | BigInt64Array | Uint8Array | Int32Array;

/** Writes results at the rows' own numbers. */
export type ProjectKernel = (
  columns: readonly Vector[],
  context: KernelContext,
  selection: Int32Array | null,
  first: number,
  count: number,
  out: ProjectTarget,
  nulls: Uint8Array | null,
) => void;

/** Layout of a computed column: `code` is a code of the interner that belongs to the expression. */
export type ComputedLayout = 'f64' | 'i64' | 'bool' | 'code' | 'null';

export interface CompiledProject {
  readonly kernel: ProjectKernel;
  readonly layout: ComputedLayout;
  readonly nullable: boolean;
}

const layoutLetters: Record<Vector['kind'], string> = {
  i32: 'i',
  f64: 'f',
  i64: 'l',
  bool: 'b',
  dict: 'd',
  text: 't',
  vec: 'v',
  null: '0',
};

/** Nanoseconds of a part. */
const kernelCompileCost = 1_000;

/** Kernels of one expression by signature; lives as long as its plan. */
export class KernelCache<K> {
  readonly #kernelExpression: Bound;
  readonly #compileKernel: (bound: Bound, shape: Shape) => K;
  readonly #columnIndexes: readonly number[];
  readonly #parameterIndexes: readonly number[];
  readonly #kernelsByLayout = new Map<string, K>();

  constructor(bound: Bound, compile: (bound: Bound, shape: Shape) => K) {
    this.#kernelExpression = bound;
    this.#compileKernel = compile;
    this.#columnIndexes = [...columnsIn(bound)];
    this.#parameterIndexes = [...parameterIndexes(bound)];
  }

  get(shape: Shape): K {
    let layoutSignature = shape.dense ? (shape.wide ? 'DW' : 'D') : shape.wide ? 'W' : '';
    for (const index of this.#columnIndexes) {
      const columnVector = shape.columns[index]!;
      layoutSignature += layoutLetters[columnVector.kind];
      if (columnVector.kind !== 'null' && columnVector.nulls) layoutSignature += '?';
    }
    for (const index of this.#parameterIndexes) layoutSignature += shape.context.parameters[index]!.letter;
    let compiledKernel = this.#kernelsByLayout.get(layoutSignature);
    if (!compiledKernel) {
      this.#kernelsByLayout.set(layoutSignature, (compiledKernel = this.#compileKernel(this.#kernelExpression, shape)));
      // A kernel of many parts runs in the next turn.
      work.done += kernelCompileCost * codeParts(this.#kernelExpression);
    }
    return compiledKernel;
  }
}

export function compileFilter(predicate: Bound, shape: Shape): FilterKernel {
  const filterCode = new KernelCode(shape);
  const filterConjuncts = predicate.kind === 'and' ? [...predicate.operands] : [predicate];
  // Cheap tests are one branchless mask; each dear one runs only on rows that are still in.
  const rankedConjuncts = filterConjuncts
    .map((bound) => ({ bound, cost: filterCode.cost(bound) }))
    .sort((cheaperConjunct, dearerConjunct) => cheaperConjunct.cost - dearerConjunct.cost);
  let filterMask = '';
  for (const { bound, cost } of rankedConjuncts) {
    if (cost > 0 && filterMask !== '') filterCode.emit(`if (!(${filterMask})) continue;`);
    const conjunctTest = filterCode.truth(bound);
    filterMask = cost > 0 || filterMask === '' ? conjunctTest : `${filterMask} & ${conjunctTest}`;
  }
  return filterCode.finish<FilterKernel>(
    'columns, context, selection, first, count, out',
    `out[kept] = i; kept = (kept + ((${filterMask}) & 1)) | 0;`,
  );
}

export function compileProject(bound: Bound, shape: Shape): CompiledProject {
  const projectCode = new KernelCode(shape);
  if (bound.type === 'null') return { kernel: () => undefined, layout: 'null', nullable: true };
  const projectedValue = projectCode.result(bound);
  if (projectedValue.ok === '0') return { kernel: () => undefined, layout: 'null', nullable: true };
  const nullsCode = projectedValue.ok === null ? '' : `nulls[i] = ${projectedValue.ok} ? 0 : 1;`;
  const projectKernel = projectCode.finish<ProjectKernel>(
    'columns, context, selection, first, count, out, nulls',
    `out[i] = ${projectedValue.code}; ${nullsCode}`,
  );
  const layout =
    projectedValue.rep === 'code'
      ? 'code'
      : projectedValue.rep === 'bool'
        ? 'bool'
        : projectedValue.rep === 'big'
          ? 'i64'
          : 'f64';
  return { kernel: projectKernel, layout, nullable: projectedValue.ok !== null };
}

function parameterIndexes(bound: Bound, parameterIndexSet = new Set<number>()): Set<number> {
  if (bound.kind === 'parameter') parameterIndexSet.add(bound.index);
  // A kernel takes such a list as a set: it is the same for any.
  if (bound.kind === 'in' && isConstantSet(bound)) return parameterIndexes(bound.operand, parameterIndexSet);
  for (const childBound of childrenOf(bound)) parameterIndexes(childBound, parameterIndexSet);
  return parameterIndexSet;
}
