/**
 * SIMILAR at work: one look at all visible rows, whose answer is that of working out the cosine of every one. Which rows are seen, on which
 * branch, as of when and under which policy, is the scan's business: nothing here knows a row that its caller may not see.
 */
import { assert } from '../../errors.ts';
import type { EmbeddingReader, Near } from '../../projections/access-paths.ts';
import type { Cell } from '../../log/values/value.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import type { Opening } from '../calls/table-function.ts';
import type { FunctionNode, PlanColumn, ScanNode } from '../logical-plan.ts';
import { BestRows } from '../operators/best-rows.ts';
import { type Batch, emptyBatch, type Operator, type Pieces, PiecesOperator } from '../operators/operator.ts';
import { checkFetched, checkRanked, mostRanked, rankedRows, scoreColumn } from '../operators/ranked-rows.ts';
import { ScanOperator } from '../operators/scan.ts';
import { errorAt } from '../syntax/error-location.ts';
import { Direction } from '../expressions/cosine.ts';
import { CosineScorer, Slot } from './cosine-scorer.ts';
import { hitRow, type Ranking, rowAt, type Scorer, timeAt } from './similarity-scorer.ts';
import { hasText, storedVectors } from './stored-vectors.ts';
import { sharedWords, wordsIn } from './text-words.ts';

/** Texts that are taken apart between two looks at the clock. */
const textsAtOnce = 512;
/** Components of vectors that are looked at between two looks at the clock. */
const componentsAtOnce = 1 << 20;

export class SimilarOperator extends PiecesOperator {
  readonly #opening: Opening;
  readonly #input: Operator;
  #scorer: Scorer | null = null;
  #seedScan: Operator | null = null;

  constructor(opening: Opening) {
    super();
    assert(opening.input !== null, 'SIMILAR ranks the rows of a type');
    this.#opening = opening;
    this.#input = opening.input;
    const near = opening.prepared as Near | null | undefined;
    if (!near) return;
    opening.input.close();
    this.#input = new ScanOperator(scanIn(opening.node), opening.execution, 0, { placed: true, candidates: near.candidates });
  }

  close(): void {
    this.#input.close();
    this.#seedScan?.close();
    this.#scorer?.close();
  }

  protected *pieces(): Pieces {
    const { node, values, execution } = this.#opening;
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
      const seedRows = yield* this.#seeds(node, columns);
      seeds = seedRows.rows;
      if (seedRows.scorer === null) return;
      this.#scorer = seedRows.scorer;
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
    if (scorer instanceof ModelScorer && scorer.unseen > 0) execution.notices.push(scorer.notice());
    const rows = best.list();
    checkRanked(node, rows.length, execution);
    yield* rankedRows(node, execution, rows, scoreColumn);
  }

  /** Visible rows with the id or key that was asked for, among all rows of the type. */
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
      for (let k = 0; k < batch.count; k++) {
        const row = rowAt(batch, k);
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
    const byModel = this.#byModel(rows, columns);
    if (byModel !== null) return { rows, scorer: byModel };
    const texts = columns.flatMap(({ type }, i) => (type === 'string' ? [i + 2] : []));
    return { rows, scorer: words.size > 0 ? new WordScorer(texts, words) : null };
  }

  /** Where the seed has a vector that the model gave for it: rows that have one are compared by it, and the answer says of how many. */
  #byModel(seeds: ReadonlySet<bigint>, columns: readonly PlanColumn[]): ModelScorer | null {
    const { node, execution } = this.#opening;
    const { snapshot } = execution;
    const { embedder, embeddings } = execution.services;
    if (embedder === null || seeds.size === 0) return null;
    embeddings?.want(snapshot.tenant, node.type!);
    const texts = columns.filter(({ type }) => type === 'string').map(({ name }) => name);
    const stored = storedVectors(node.type!, texts, execution);
    const directions = [...seeds].flatMap((seed) => {
      const seedVector = stored?.vectorAt(seed);
      return seedVector ? new Direction(seedVector.values.slice(seedVector.at, seedVector.at + seedVector.dims)) : [];
    });
    if (stored === null || directions.length === 0) return null;
    const read = columns.flatMap(({ type }, i) => (type === 'string' ? [i + 2] : []));
    return new ModelScorer(embedder.name, stored, directions, read);
  }

  #idColumn({ type }: FunctionNode): PlanColumn {
    const declared = this.#opening.execution.snapshot.catalog.type(type!)?.properties['id'];
    return { name: 'id', type: declared?.type ?? 'string' };
  }
}

const none: ReadonlySet<bigint> = new Set();
const systemFrom: PlanColumn = { name: 'system_from', type: 'timestamp' };
const key: PlanColumn = { name: '_pk', type: 'string' };

/** The columns by which the node ranks, behind system_from and `_pk`. */
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
    throw errorAt('REL_INVALID', text, values.locationOf('VECTOR'));
  }
  if (vector.some((value) => value !== 0)) return new Direction(vector);
  throw errorAt('REL_INVALID', 'a vector of zeros has no direction: no row is like it', values.locationOf('VECTOR'));
}

/** Rows that are no more than a turn’s work, however long their vectors are. */
export function* piecesOf(batch: Batch): Generator<Batch, void> {
  const { columns, selection, first, count } = batch;
  const dims = Math.max(1, ...columns.map((column) => (column.kind === 'vec' ? column.dims : 1)));
  const rows = Math.max(1, Math.floor(componentsAtOnce / dims));
  for (let from = 0; from < count; from += rows) {
    const piece = Math.min(rows, count - from);
    if (selection === null) yield { columns, selection, first: first + from, count: piece };
    else yield { columns, selection: selection.subarray(from, from + piece), first: 0, count: piece };
  }
}

/** Scores by vectors that the model gave; rows without one are passed over. */
class ModelScorer implements Scorer {
  readonly #model: string;
  readonly #stored: EmbeddingReader;
  readonly #directions: readonly Direction[];
  readonly #texts: readonly number[];
  /** Rows with texts and without one. */
  unseen = 0;

  constructor(model: string, stored: EmbeddingReader, directions: readonly Direction[], texts: readonly number[]) {
    this.#texts = texts;
    this.#model = model;
    this.#stored = stored;
    this.#directions = directions;
  }

  notice(): string {
    const rows = `${this.unseen} ${this.unseen === 1 ? 'row is' : 'rows are'} left out`;
    return `${rows}: for ${this.unseen === 1 ? 'it' : 'them'} there is no vector of the model ${this.#model} at this instant`;
  }

  *score(batch: Batch, ranking: Ranking): Generator<undefined, void> {
    const { threshold, seeds } = ranking;
    for (let k = 0; k < batch.count; k++) {
      const row = rowAt(batch, k);
      const time = timeAt(batch.columns[0]!, row);
      const vector = this.#stored.vectorAt(time);
      if (vector === null) {
        if (this.#texts.some((column) => hasText(cellAt(batch.columns[column]!, 'string', row)))) this.unseen++;
      } else if (!seeds.has(time)) {
        const alike = this.#directions.filter(({ dims }) => dims === vector.dims);
        const score = Math.max(Number.NEGATIVE_INFINITY, ...alike.map((each) => each.cosine(vector.values, vector.at)));
        if (alike.length > 0 && score >= threshold) hitRow(batch, row, score, ranking);
      }
      if (k % textsAtOnce === textsAtOnce - 1) yield;
    }
  }

  close(): void {}
}

/** Scores by the share of the words of either that both have. */
class WordScorer implements Scorer {
  readonly #columns: readonly number[];
  readonly #words: ReadonlySet<string>;

  constructor(columns: readonly number[], words: ReadonlySet<string>) {
    this.#columns = columns;
    this.#words = words;
  }

  *score(batch: Batch, ranking: Ranking): Generator<undefined, void> {
    const { threshold, seeds } = ranking;
    for (let k = 0; k < batch.count; k++) {
      const row = rowAt(batch, k);
      const words = new Set<string>();
      for (const column of this.#columns) {
        const text = cellAt(batch.columns[column]!, 'string', row);
        if (typeof text === 'string') for (const word of wordsIn(text)) words.add(word);
      }
      const score = sharedWords(this.#words, words);
      const isSeed = seeds.has(timeAt(batch.columns[0]!, row));
      if (score > 0 && score >= threshold && !isSeed) hitRow(batch, row, score, ranking);
      if (k % textsAtOnce === textsAtOnce - 1) yield;
    }
  }

  close(): void {}
}
