/**
 * SIMILAR at work: one look at the vectors of all visible rows. Estimates in 32 bits say which rows may be among the best, and
 * only of those is the cosine worked out, so the answer is that of working it out for every row. Which rows are seen, on which
 * branch, as of when and under which policy, is the scan's business: nothing here knows a row that its caller may not see.
 */
import { assert } from '../../errors.ts';
import type { Vector } from '../../log/columns.ts';
import type { Cell } from '../../log/value.ts';
import { cellAt } from '../../log/vector-builder.ts';
import type { Opening } from '../functions/table-function.ts';
import type { FunctionNode, PlanColumn, ScanNode } from '../logical-plan.ts';
import { BestRows } from '../operators/best-rows.ts';
import { type Batch, emptyBatch, type Execution, type Operator } from '../operators/operator.ts';
import { checkFetched, checkRanked, mostRanked, rankedRows, scoreColumn } from '../operators/ranked-rows.ts';
import { ScanOperator } from '../operators/scan.ts';
import { at } from '../places.ts';
import { Direction, estimateError } from './cosine.ts';
import { Estimates } from './estimates.ts';
import { sharedWords, wordsIn } from './words.ts';

/** Texts that are taken apart between two looks at the clock. */
const textsAtOnce = 512;
/** Components of vectors that are looked at between two looks at the clock. */
const componentsAtOnce = 1 << 20;

export class SimilarOperator implements Operator {
  readonly #opening: Opening;
  readonly #input: Operator;
  readonly #pieces: Generator<Batch, void>;
  #scorer: Scorer | null = null;
  #seedScan: Operator | null = null;

  constructor(opening: Opening) {
    assert(opening.input !== null, 'SIMILAR ranks the rows of a type');
    this.#opening = opening;
    this.#input = opening.input;
    this.#pieces = this.#run(opening);
  }

  next(): Batch | null {
    const piece = this.#pieces.next();
    return piece.done ? null : piece.value;
  }

  close(): void {
    this.#input.close();
    this.#seedScan?.close();
    this.#scorer?.close();
  }

  *#run({ node, values, execution }: Opening): Generator<Batch, void> {
    const { kernels } = execution;
    checkFetched(node, execution);
    const best = new BestRows(mostRanked(node, execution));
    const threshold = values.number('THRESHOLD', kernels) ?? Number.NEGATIVE_INFINITY;
    const vector = values.vector('VECTOR', kernels);
    const columns = rankedColumns(node);
    let seeds: ReadonlySet<bigint> = none;
    if (vector) {
      this.#scorer = new CosineScorer([new Slot(2, [directionOf(vector, node, columns[0]!.name, this.#opening)])]);
    } else {
      const found = yield* this.#seeds(node, columns);
      seeds = found.rows;
      if (found.scorer === null) return;
      this.#scorer = found.scorer;
    }
    const scorer = this.#scorer;
    for (let batch = this.#input.next(); batch !== null; batch = this.#input.next()) {
      if (batch.count > 0) {
        const ranked = { ...batch, columns: node.reads.map((column) => batch.columns[column]!) };
        for (const piece of piecesOf(ranked)) {
          for (const _ of scorer.score(piece, { best, threshold, seeds, execution })) yield emptyBatch;
        }
      }
      yield emptyBatch;
    }
    const rows = best.ranked();
    checkRanked(node, rows.length, execution);
    yield* rankedRows(node, execution, rows, scoreColumn);
  }

  /** Visible rows with the id or key that was asked for, whatever rows are ranked. */
  *#seeds(
    node: FunctionNode,
    columns: readonly PlanColumn[],
  ): Generator<Batch, { readonly rows: ReadonlySet<bigint>; readonly scorer: Scorer | null }> {
    const { values, execution } = this.#opening;
    const id = values.text('ID', execution.kernels);
    const sought = id ?? values.text('PK', execution.kernels)!;
    const scan = scanIn(node);
    // A row whose id is masked is not to be found by it.
    const isKey = id === undefined || (scan.primaryKey === 'id' && !scan.masked.has('id'));
    const ids = this.#idColumn(node);
    const wanted: readonly PlanColumn[] = [systemFrom, isKey ? key : ids, ...columns];
    const keys = isKey ? [values.boundOf(id === undefined ? 'PK' : 'ID')] : null;
    const seedScan: ScanNode = { ...scan, columns: wanted, keys, zones: [], after: null };
    this.#seedScan = new ScanOperator(seedScan, execution);
    const rows = new Set<bigint>();
    const directions = columns.map((): Direction[] => []);
    const words = new Set<string>();
    for (let batch = this.#seedScan.next(); batch !== null; batch = this.#seedScan.next()) {
      const [times, named, ...cells] = batch.columns;
      for (let place = 0; place < batch.count; place++) {
        const row = rowAt(batch, place);
        if (!isKey && String(cellAt(named!, ids.type, row)) !== sought) continue;
        rows.add(timeAt(times!, row));
        columns.forEach(({ type }, i) => {
          const cell: Cell = cellAt(cells[i]!, type, row);
          if (cell instanceof Float32Array) {
            if (cell.some((value) => value !== 0)) directions[i]!.push(new Direction(cell));
          } else if (typeof cell === 'string') for (const word of wordsIn(cell)) words.add(word);
        });
      }
      yield emptyBatch;
    }
    const slots = directions.flatMap((each, i) => (each.length > 0 ? [new Slot(i + 2, each)] : []));
    if (slots.length > 0) return { rows, scorer: new CosineScorer(slots) };
    const texts = columns.flatMap(({ type }, i) => (type === 'string' ? [i + 2] : []));
    return { rows, scorer: words.size > 0 ? new WordScorer(texts, words) : null };
  }

  #idColumn({ type }: FunctionNode): PlanColumn {
    const declared = this.#opening.execution.snapshot.catalog.type(type!)?.properties['id'];
    return { name: 'id', type: declared?.type ?? 'string' };
  }
}

const none: ReadonlySet<bigint> = new Set();
const systemFrom: PlanColumn = { name: 'system_from', type: 'timestamp' };
const key: PlanColumn = { name: '_pk', type: 'string' };

/** What the node ranks by, behind system_from and `_pk`. */
function rankedColumns({ input, reads }: FunctionNode): readonly PlanColumn[] {
  assert(input !== null, 'SIMILAR ranks the rows of a type');
  return reads.slice(2).map((column) => input.columns[column]!);
}

/** The scan below the conditions on the rows that are ranked. */
function scanIn({ input }: FunctionNode): ScanNode {
  let node = input;
  while (node !== null && node.kind !== 'scan') node = 'input' in node ? node.input : null;
  assert(node !== null, 'rows of a type are scanned');
  return node;
}

/** A vector of the statement, which must have as many numbers as the column has dimensions. */
function directionOf(vector: Float32Array, { type }: FunctionNode, column: string, { values, execution }: Opening): Direction {
  const dims = execution.snapshot.catalog.type(type!)?.properties[column]?.dims;
  if (dims !== vector.length) {
    const text = `column ${JSON.stringify(column)} has ${dims ?? 0} dimensions, the vector has ${vector.length}`;
    throw at('REL_INVALID', text, values.placeOf('VECTOR'));
  }
  if (vector.some((value) => value !== 0)) return new Direction(vector);
  throw at('REL_INVALID', 'a vector of zeros has no direction: no row is like it', values.placeOf('VECTOR'));
}

function rowAt({ selection, first }: Batch, place: number): number {
  return selection === null ? first + place : selection[place]!;
}

function timeAt(vector: Vector, row: number): bigint {
  assert(vector.kind === 'i64', 'system times are i64');
  return vector.values[row]!;
}

/** Rows that are no more than a turn’s work, however long their vectors are. */
function* piecesOf(batch: Batch): Generator<Batch, void> {
  const { columns, selection, first, count } = batch;
  const dims = Math.max(1, ...columns.map((column) => (column.kind === 'vec' ? column.dims : 1)));
  const rows = Math.max(1, Math.floor(componentsAtOnce / dims));
  for (let from = 0; from < count; from += rows) {
    const piece = Math.min(rows, count - from);
    if (selection === null) yield { columns, selection, first: first + from, count: piece };
    else yield { columns, selection: selection.subarray(from, from + piece), first: 0, count: piece };
  }
}

interface Ranking {
  readonly best: BestRows;
  readonly threshold: number;
  /** system_from of rows that are left out. */
  readonly seeds: ReadonlySet<bigint>;
  readonly execution: Execution;
}

interface Scorer {
  /** Columns of the batch are system_from, `_pk`, then those that are ranked by. Yields between bounded pieces. */
  score(batch: Batch, ranking: Ranking): Generator<undefined, void>;
  close(): void;
}

function offer({ columns }: Batch, row: number, score: number, { best }: Ranking): void {
  const key = String(cellAt(columns[1]!, 'string', row) ?? '');
  best.offer({ score, key, systemFrom: timeAt(columns[0]!, row) });
}

/** One column and the directions that its vectors are compared with. */
class Slot {
  /** In the batch. */
  readonly column: number;
  readonly directions: readonly { readonly direction: Direction; readonly estimates: Estimates }[];

  constructor(column: number, directions: readonly Direction[]) {
    this.column = column;
    this.directions = directions.map((direction) => ({ direction, estimates: new Estimates(direction.unit()) }));
  }
}

/** The highest cosine over slots and directions. */
class CosineScorer implements Scorer {
  readonly #slots: readonly Slot[];
  #highest = new Float32Array(0);
  #one = new Float32Array(0);

  constructor(slots: readonly Slot[]) {
    this.#slots = slots;
  }

  *score(batch: Batch, ranking: Ranking): Generator<undefined, void> {
    const { count } = batch;
    if (this.#highest.length < count) {
      this.#highest = new Float32Array(count);
      this.#one = new Float32Array(count);
    }
    const highest = this.#highest.subarray(0, count).fill(Number.NEGATIVE_INFINITY);
    let error = 0;
    for (const { column, directions } of this.#slots) {
      const vector = batch.columns[column]!;
      if (vector.kind !== 'vec') continue;
      for (const { direction, estimates } of directions) {
        if (direction.dims !== vector.dims) continue;
        error = Math.max(error, estimateError(vector.dims));
        estimates.of(vector, batch, this.#one);
        merge(highest, this.#one, vector.nulls, batch);
        yield;
      }
    }
    const { best, threshold, seeds, execution } = ranking;
    const { counters } = execution;
    const [least, surely] = [threshold - error, threshold + error];
    let floor = best.floor - error;
    for (let place = 0; place < count; place++) {
      const estimate = highest[place]!;
      // What 32 bits can't tell, NaN among it, is worked out.
      if (estimate === Number.NEGATIVE_INFINITY || estimate < least) continue;
      if (estimate >= surely && estimate < floor && seeds.size === 0) {
        counters.hits++;
        continue;
      }
      const row = rowAt(batch, place);
      if (seeds.size > 0 && seeds.has(timeAt(batch.columns[0]!, row))) continue;
      if (estimate >= surely && estimate < floor) {
        counters.hits++;
        continue;
      }
      const score = this.#cosine(batch, row);
      if (score < threshold) continue;
      counters.hits++;
      if (score >= best.floor) offer(batch, row, score, ranking);
      floor = best.floor - error;
    }
  }

  close(): void {
    for (const { directions } of this.#slots) for (const { estimates } of directions) estimates.close();
  }

  #cosine({ columns }: Batch, row: number): number {
    let highest = Number.NEGATIVE_INFINITY;
    for (const { column, directions } of this.#slots) {
      const vector = columns[column]!;
      if (vector.kind !== 'vec' || vector.nulls?.[row] === 1) continue;
      for (const { direction } of directions) {
        if (direction.dims === vector.dims) highest = Math.max(highest, direction.cosine(vector.values, row * vector.dims));
      }
    }
    return highest;
  }
}

/** The higher of two estimates of each row that has a vector; NaN where either is. */
function merge(highest: Float32Array, estimates: Float32Array, nulls: Uint8Array | null, batch: Batch): void {
  for (let place = 0; place < highest.length; place++) {
    if (nulls !== null && nulls[rowAt(batch, place)] === 1) continue;
    highest[place] = Math.max(highest[place]!, estimates[place]!);
  }
}

/** Of the words that either has, the share that both have. */
class WordScorer implements Scorer {
  readonly #columns: readonly number[];
  readonly #words: ReadonlySet<string>;

  constructor(columns: readonly number[], words: ReadonlySet<string>) {
    this.#columns = columns;
    this.#words = words;
  }

  *score(batch: Batch, ranking: Ranking): Generator<undefined, void> {
    const { threshold, seeds, execution, best } = ranking;
    for (let place = 0; place < batch.count; place++) {
      const row = rowAt(batch, place);
      const words = new Set<string>();
      for (const column of this.#columns) {
        const text = cellAt(batch.columns[column]!, 'string', row);
        if (typeof text === 'string') for (const word of wordsIn(text)) words.add(word);
      }
      const score = sharedWords(this.#words, words);
      const isSeed = seeds.has(timeAt(batch.columns[0]!, row));
      if (score > 0 && score >= threshold && !isSeed) {
        execution.counters.hits++;
        if (score >= best.floor) offer(batch, row, score, ranking);
      }
      if (place % textsAtOnce === textsAtOnce - 1) yield;
    }
  }

  close(): void {}
}
