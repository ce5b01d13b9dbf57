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
const compileCost = 1_000;

/** Kernels of one expression by signature; lives as long as its plan. */
export class KernelCache<K> {
  readonly #bound: Bound;
  readonly #compile: (bound: Bound, shape: Shape) => K;
  readonly #columns: readonly number[];
  readonly #parameters: readonly number[];
  readonly #kernels = new Map<string, K>();

  constructor(bound: Bound, compile: (bound: Bound, shape: Shape) => K) {
    this.#bound = bound;
    this.#compile = compile;
    this.#columns = [...columnsIn(bound)];
    this.#parameters = [...parametersIn(bound)];
  }

  get(shape: Shape): K {
    let signature = shape.dense ? (shape.wide ? 'DW' : 'D') : shape.wide ? 'W' : '';
    for (const index of this.#columns) {
      const vector = shape.columns[index]!;
      signature += layoutLetters[vector.kind];
      if (vector.kind !== 'null' && vector.nulls) signature += '?';
    }
    for (const index of this.#parameters) signature += shape.context.parameters[index]!.letter;
    let kernel = this.#kernels.get(signature);
    if (!kernel) {
      this.#kernels.set(signature, (kernel = this.#compile(this.#bound, shape)));
      // A kernel of many parts runs in the next turn.
      work.done += compileCost * codeParts(this.#bound);
    }
    return kernel;
  }
}

export function compileFilter(predicate: Bound, shape: Shape): FilterKernel {
  const code = new KernelCode(shape);
  const conjuncts = predicate.kind === 'and' ? [...predicate.operands] : [predicate];
  // Cheap tests are one branchless mask; each dear one runs only on rows that are still in.
  const ranked = conjuncts.map((bound) => ({ bound, cost: code.cost(bound) })).sort((a, b) => a.cost - b.cost);
  let mask = '';
  for (const { bound, cost } of ranked) {
    if (cost > 0 && mask !== '') code.emit(`if (!(${mask})) continue;`);
    const test = code.truth(bound);
    mask = cost > 0 || mask === '' ? test : `${mask} & ${test}`;
  }
  return code.finish<FilterKernel>(
    'columns, context, selection, first, count, out',
    `out[kept] = i; kept = (kept + ((${mask}) & 1)) | 0;`,
  );
}

export function compileProject(bound: Bound, shape: Shape): CompiledProject {
  const code = new KernelCode(shape);
  if (bound.type === 'null') return { kernel: () => undefined, layout: 'null', nullable: true };
  const value = code.result(bound);
  if (value.ok === '0') return { kernel: () => undefined, layout: 'null', nullable: true };
  const nulls = value.ok === null ? '' : `nulls[i] = ${value.ok} ? 0 : 1;`;
  const kernel = code.finish<ProjectKernel>(
    'columns, context, selection, first, count, out, nulls',
    `out[i] = ${value.code}; ${nulls}`,
  );
  const layout = value.rep === 'code' ? 'code' : value.rep === 'bool' ? 'bool' : value.rep === 'big' ? 'i64' : 'f64';
  return { kernel, layout, nullable: value.ok !== null };
}

function parametersIn(bound: Bound, into = new Set<number>()): Set<number> {
  if (bound.kind === 'parameter') into.add(bound.index);
  // A kernel takes such a list as a set: it is the same for any.
  if (bound.kind === 'in' && isConstantSet(bound)) return parametersIn(bound.operand, into);
  for (const child of childrenOf(bound)) parametersIn(child, into);
  return into;
}
