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
const filterPieceParts = 256;

/** Kernels of one filter node: a row must pass each of them. Alternatives of very many parts are tested in pieces, too, behind the rest. */
export function filterKernels({ predicate }: FilterNode): readonly FilterKernels[] {
  if (!isLong(predicate)) return [pieceKernels([predicate], false)];
  if (predicate.kind === 'or') return [pieceKernels(filterPieces(predicate.operands, 'or'), true)];
  if (predicate.kind !== 'and') return [pieceKernels([predicate], false)];
  const hasPieces = (bound: Bound): bound is Extract<Bound, { readonly kind: 'and' | 'or' }> =>
    bound.kind === 'or' && isLong(bound);
  // Conditions that can fail come last: they are tested only on the rows that the others leave.
  return [false, true].flatMap((raises) => {
    const conjuncts = predicate.operands.filter((conjunct) => mayRaise(conjunct) === raises);
    const shortConjuncts = conjuncts.filter((conjunct) => !hasPieces(conjunct));
    const longConjuncts = conjuncts
      .filter(hasPieces)
      .map((conjunct) => pieceKernels(filterPieces(conjunct.operands, 'or'), true));
    return shortConjuncts.length === 0
      ? longConjuncts
      : [pieceKernels(filterPieces(shortConjuncts, 'and'), false), ...longConjuncts];
  });
}

function pieceKernels(predicatePieces: readonly Bound[], isDisjunction: boolean): FilterKernels {
  return { pieces: predicatePieces.map((predicatePiece) => new KernelCache(predicatePiece, compileFilter)), any: isDisjunction };
}

function filterPieces(operands: readonly Bound[], kind: 'and' | 'or'): Bound[] {
  const orderedOperands = [...operands.filter((operandBound) => !mayRaise(operandBound)), ...operands.filter(mayRaise)];
  return groupsOf(orderedOperands, filterPieceParts).map(
    (operandGroup): Bound => ({ kind, operands: operandGroup, type: 'boolean' }),
  );
}

export class FilterOperator implements Operator {
  readonly #filterInput: Operator;
  readonly #filterPredicates: readonly Predicate[];
  readonly #isDisjunction: boolean;
  /** Pieces whose kernels for the first batch are there; that batch waits for the others. */
  #preparedPredicates = 0;
  #waitingBatch: Batch | null = null;
  /** The batch that the only piece has tested a part of. */
  #unfinishedBatch: Batch | null = null;
  /** The work in progress on a batch that many pieces test. */
  #filterWork: Generator<Batch, Batch> | null = null;
  #undecidedRows = new Int32Array(0);
  #passing = new Int32Array(0);

  constructor(input: Operator, pieceCaches: FilterKernels, execution: Execution) {
    this.#filterInput = input;
    this.#filterPredicates = pieceCaches.pieces.map((predicatePiece) => new Predicate(predicatePiece, execution));
    this.#isDisjunction = pieceCaches.any;
  }

  next(): Batch | null {
    if (this.#unfinishedBatch) return this.#passingOnly(this.#unfinishedBatch, this.#filterPredicates[0]!.goOn());
    if (this.#filterWork) return this.#stepFilter(this.#filterWork);
    const batch = this.#waitingBatch ?? this.#filterInput.next();
    if (batch === null) return null;
    if (batch.count === 0) return emptyBatch;
    if (this.#preparedPredicates < this.#filterPredicates.length) {
      // A selection is what all pieces but the first are given.
      const selection = this.#preparedPredicates === 0 ? batch.selection : noFilteredRows;
      this.#filterPredicates[this.#preparedPredicates++]!.prepare({ ...batch, selection });
      this.#waitingBatch = batch;
      return emptyBatch;
    }
    this.#waitingBatch = null;
    const [onlyPredicate] = this.#filterPredicates;
    if (onlyPredicate && this.#filterPredicates.length === 1) return this.#passingOnly(batch, onlyPredicate.select(batch));
    return this.#stepFilter((this.#filterWork = this.#isDisjunction ? this.#passingAny(batch) : this.#passingAll(batch)));
  }

  #stepFilter(filterWork: Generator<Batch, Batch>): Batch {
    const filterStep = filterWork.next();
    if (filterStep.done === true) this.#filterWork = null;
    return filterStep.value;
  }

  #passingOnly(batch: Batch, count: number): Batch {
    this.#unfinishedBatch = count < 0 ? batch : null;
    if (count < 0) return emptyBatch;
    // If all rows pass, the batch stays as it is: consecutive rows are copied at once.
    return count === batch.count
      ? batch
      : { columns: batch.columns, selection: this.#filterPredicates[0]!.passing, first: 0, count };
  }

  close(): void {
    this.#filterInput.close();
  }

  *#passingAll(batch: Batch): Generator<Batch, Batch> {
    let stillPassing = batch;
    let turnWork = 0;
    for (const predicate of this.#filterPredicates) {
      if (stillPassing.count === 0) break;
      const count = yield* predicate.inTurns(stillPassing);
      if ((turnWork += work.done) > turnMost) {
        yield emptyBatch;
        turnWork = 0;
      }
      stillPassing = { columns: batch.columns, selection: predicate.passing, first: 0, count };
    }
    return stillPassing;
  }

  /** Each piece tests the rows that none before it passed; rows that no piece passed are dropped. */
  *#passingAny(batch: Batch): Generator<Batch, Batch> {
    if (this.#undecidedRows.length < batch.count) {
      this.#undecidedRows = new Int32Array(batch.count);
      this.#passing = new Int32Array(batch.count);
    }
    let stillUndecided = batch;
    let turnWork = 0;
    for (const predicate of this.#filterPredicates) {
      if (stillUndecided.count === 0) break;
      const count = yield* predicate.inTurns(stillUndecided);
      if ((turnWork += work.done) > turnMost) {
        yield emptyBatch;
        turnWork = 0;
      }
      stillUndecided = withoutTaken(stillUndecided, predicate.passing, count, this.#undecidedRows);
    }
    return withoutTaken(batch, stillUndecided.selection ?? noFilteredRows, stillUndecided.count, this.#passing);
  }
}

const noFilteredRows = new Int32Array(0);

/** Rows of a batch but for those in `takenRows`, which are some of them in the same order. `remainingRows` may be the batch's own selection. */
function withoutTaken(
  { columns, selection, first, count }: Batch,
  takenRows: Int32Array,
  takenCount: number,
  remainingRows: Int32Array,
): Batch {
  let takenIndex = 0;
  let passingCount = 0;
  for (let j = 0; j < count; j++) {
    const filteredRow = selection ? selection[j]! : first + j;
    if (takenIndex < takenCount && takenRows[takenIndex] === filteredRow) takenIndex++;
    else remainingRows[passingCount++] = filteredRow;
  }
  return { columns, selection: remainingRows, first: 0, count: passingCount };
}
