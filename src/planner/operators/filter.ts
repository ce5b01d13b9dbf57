/**
 * Keeps the rows for which a condition is true: neither false nor NULL. A condition of very many parts is tested in pieces,
 * each with a kernel of its own, so that no compilation keeps others waiting for long.
 */
import { type Bound, groupsOf, isLong, mayRaise } from '../expressions/bound-expression.ts';
import { compileFilter, type FilterKernel, KernelCache } from '../expressions/kernel-compiler.ts';
import { turnMost, work } from '../expressions/expression-cost.ts';
import type { FilterNode } from '../logical-plan.ts';
import { type Batch, emptyBatch, type Execution, type Operator } from './operator.ts';
import { Predicate } from './predicate.ts';

/** Kernels of a condition or of a part of it, kept with the plan. A row must pass each of the pieces, or any. */
export interface FilterKernels {
  readonly pieces: readonly KernelCache<FilterKernel>[];
  readonly any: boolean;
}

/** Parts of a piece. */
const pieceParts = 256;

/** Kernels of one filter node: a row must pass each of them. Alternatives of very many parts are tested in pieces, too, behind the rest. */
export function filterKernels({ predicate }: FilterNode): readonly FilterKernels[] {
  if (!isLong(predicate)) return [kernelsOf([predicate], false)];
  if (predicate.kind === 'or') return [kernelsOf(piecesOf(predicate.operands, 'or'), true)];
  if (predicate.kind !== 'and') return [kernelsOf([predicate], false)];
  const hasPieces = (bound: Bound): bound is Extract<Bound, { readonly kind: 'and' | 'or' }> =>
    bound.kind === 'or' && isLong(bound);
  // Conditions that can fail come last: they are tested only on the rows that the others leave.
  return [false, true].flatMap((raises) => {
    const operands = predicate.operands.filter((each) => mayRaise(each) === raises);
    const few = operands.filter((each) => !hasPieces(each));
    const long = operands.filter(hasPieces).map((each) => kernelsOf(piecesOf(each.operands, 'or'), true));
    return few.length === 0 ? long : [kernelsOf(piecesOf(few, 'and'), false), ...long];
  });
}

function kernelsOf(pieces: readonly Bound[], any: boolean): FilterKernels {
  return { pieces: pieces.map((piece) => new KernelCache(piece, compileFilter)), any };
}

function piecesOf(operands: readonly Bound[], kind: 'and' | 'or'): Bound[] {
  const ordered = [...operands.filter((each) => !mayRaise(each)), ...operands.filter(mayRaise)];
  return groupsOf(ordered, pieceParts).map((group): Bound => ({ kind, operands: group, type: 'boolean' }));
}

export class FilterOperator implements Operator {
  readonly #input: Operator;
  readonly #predicates: readonly Predicate[];
  readonly #any: boolean;
  /** Pieces whose kernels for the first batch are there; that batch waits for the others. */
  #ready = 0;
  #waiting: Batch | null = null;
  /** The batch that the only piece has tested a part of. */
  #held: Batch | null = null;
  /** The work in progress on a batch that many pieces test. */
  #work: Generator<Batch, Batch> | null = null;
  #rest = new Int32Array(0);
  #passing = new Int32Array(0);

  constructor(input: Operator, kernels: FilterKernels, execution: Execution) {
    this.#input = input;
    this.#predicates = kernels.pieces.map((piece) => new Predicate(piece, execution));
    this.#any = kernels.any;
  }

  next(): Batch | null {
    if (this.#held) return this.#passingOnly(this.#held, this.#predicates[0]!.goOn());
    if (this.#work) return this.#step(this.#work);
    const batch = this.#waiting ?? this.#input.next();
    if (batch === null) return null;
    if (batch.count === 0) return emptyBatch;
    if (this.#ready < this.#predicates.length) {
      // A selection is what all pieces but the first are given.
      const selection = this.#ready === 0 ? batch.selection : noRows;
      this.#predicates[this.#ready++]!.prepare({ ...batch, selection });
      this.#waiting = batch;
      return emptyBatch;
    }
    this.#waiting = null;
    const [only] = this.#predicates;
    if (only && this.#predicates.length === 1) return this.#passingOnly(batch, only.select(batch));
    return this.#step((this.#work = this.#any ? this.#passingAny(batch) : this.#passingAll(batch)));
  }

  #step(work: Generator<Batch, Batch>): Batch {
    const step = work.next();
    if (step.done === true) this.#work = null;
    return step.value;
  }

  #passingOnly(batch: Batch, count: number): Batch {
    this.#held = count < 0 ? batch : null;
    if (count < 0) return emptyBatch;
    // If all rows pass, the batch stays as it is: consecutive rows are copied at once.
    return count === batch.count ? batch : { columns: batch.columns, selection: this.#predicates[0]!.passing, first: 0, count };
  }

  close(): void {
    this.#input.close();
  }

  *#passingAll(batch: Batch): Generator<Batch, Batch> {
    let left = batch;
    let done = 0;
    for (const predicate of this.#predicates) {
      if (left.count === 0) break;
      const count = yield* predicate.inTurns(left);
      if ((done += work.done) > turnMost) {
        yield emptyBatch;
        done = 0;
      }
      left = { columns: batch.columns, selection: predicate.passing, first: 0, count };
    }
    return left;
  }

  /** Each piece tests the rows that none before it passed; rows that no piece passed are dropped. */
  *#passingAny(batch: Batch): Generator<Batch, Batch> {
    if (this.#rest.length < batch.count) {
      this.#rest = new Int32Array(batch.count);
      this.#passing = new Int32Array(batch.count);
    }
    let left = batch;
    let done = 0;
    for (const predicate of this.#predicates) {
      if (left.count === 0) break;
      const count = yield* predicate.inTurns(left);
      if ((done += work.done) > turnMost) {
        yield emptyBatch;
        done = 0;
      }
      left = without(left, predicate.passing, count, this.#rest);
    }
    return without(batch, left.selection ?? noRows, left.count, this.#passing);
  }
}

const noRows = new Int32Array(0);

/** Rows of a batch but for those in `taken`, which are some of them in the same order. `out` may be the batch's own selection. */
function without({ columns, selection, first, count }: Batch, taken: Int32Array, takenCount: number, out: Int32Array): Batch {
  let at = 0;
  let passingCount = 0;
  for (let j = 0; j < count; j++) {
    const row = selection ? selection[j]! : first + j;
    if (at < takenCount && taken[at] === row) at++;
    else out[passingCount++] = row;
  }
  return { columns, selection: out, first: 0, count: passingCount };
}
