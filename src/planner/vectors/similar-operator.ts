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
const similarTextsAtOnce = 512;
/** Components of vectors that are looked at between two looks at the clock. */
const vectorComponentsAtOnce = 1 << 20;

export class SimilarOperator extends PiecesOperator {
  readonly #similarOpening: Opening;
  readonly #similarRows: Operator;
  #similarScorer: Scorer | null = null;
  #seedRowScan: Operator | null = null;

  constructor(similarOpening: Opening) {
    super();
    assert(similarOpening.input !== null, 'SIMILAR ranks the rows of a type');
    this.#similarOpening = similarOpening;
    this.#similarRows = similarOpening.input;
    const nearCandidates = similarOpening.prepared as Near | null | undefined;
    if (!nearCandidates) return;
    similarOpening.input.close();
    this.#similarRows = new ScanOperator(similarScan(similarOpening.node), similarOpening.execution, 0, {
      placed: true,
      candidates: nearCandidates.candidates,
    });
  }

  close(): void {
    this.#similarRows.close();
    this.#seedRowScan?.close();
    this.#similarScorer?.close();
  }

  protected *pieces(): Pieces {
    const { node, values, execution } = this.#similarOpening;
    const { kernels } = execution;
    checkFetched(node, execution);
    const bestRows = new BestRows(mostRanked(node, execution));
    const similarThreshold = values.number('THRESHOLD', kernels) ?? Number.NEGATIVE_INFINITY;
    const similarVector = values.vector('VECTOR', kernels);
    const comparedColumns = similarColumns(node);
    let seedTimes: ReadonlySet<bigint> = noSeeds;
    if (similarVector) {
      this.#similarScorer = new CosineScorer([
        new Slot(2, [similarDirection(similarVector, node, comparedColumns[0]!.name, this.#similarOpening)]),
      ]);
    } else {
      const seedRows = yield* this.#readSeeds(node, comparedColumns);
      seedTimes = seedRows.rows;
      if (seedRows.scorer === null) return;
      this.#similarScorer = seedRows.scorer;
    }
    const similarScorer = this.#similarScorer;
    for (let similarBatch = this.#similarRows.next(); similarBatch !== null; similarBatch = this.#similarRows.next()) {
      if (similarBatch.count > 0) {
        const rankedBatch = { ...similarBatch, columns: node.reads.map((column) => similarBatch.columns[column]!) };
        for (const rankedPiece of piecesOf(rankedBatch)) {
          for (const _ of similarScorer.score(rankedPiece, {
            best: bestRows,
            threshold: similarThreshold,
            seeds: seedTimes,
            execution,
          }))
            yield emptyBatch;
        }
      }
      yield emptyBatch;
    }
    if (similarScorer instanceof EmbeddingScorer && similarScorer.unseen > 0) execution.notices.push(similarScorer.notice());
    const rankedRowsFound = bestRows.list();
    checkRanked(node, rankedRowsFound.length, execution);
    yield* rankedRows(node, execution, rankedRowsFound, scoreColumn);
  }

  /** Visible rows with the id or key that was asked for, among all rows of the type. */
  *#readSeeds(
    node: FunctionNode,
    comparedColumns: readonly PlanColumn[],
  ): Generator<Batch, { readonly rows: ReadonlySet<bigint>; readonly scorer: Scorer | null }> {
    const { values, execution } = this.#similarOpening;
    const seedId = values.text('ID', execution.kernels);
    const soughtSeed = seedId ?? values.text('PK', execution.kernels)!;
    const typeScan = similarScan(node);
    // A row whose id is masked is not to be found by it.
    const isSeedByKey = seedId === undefined || (typeScan.primaryKey === 'id' && !typeScan.masked.has('id'));
    const idColumn = this.#seedIdColumn(node);
    const seedColumns: readonly PlanColumn[] = [systemFromColumn, isSeedByKey ? keyColumn : idColumn, ...comparedColumns];
    const seedKeys = isSeedByKey ? [values.boundOf(seedId === undefined ? 'PK' : 'ID')] : null;
    const seedScanNode: ScanNode = { ...typeScan, columns: seedColumns, keys: seedKeys, zones: [], after: null };
    this.#seedRowScan = new ScanOperator(seedScanNode, execution);
    const seedTimes = new Set<bigint>();
    const seedDirections = comparedColumns.map((): Direction[] => []);
    const seedWords = new Set<string>();
    for (let batch = this.#seedRowScan.next(); batch !== null; batch = this.#seedRowScan.next()) {
      const [systemTimes, seedNames, ...seedCells] = batch.columns;
      for (let k = 0; k < batch.count; k++) {
        const seedRow = rowAt(batch, k);
        if (!isSeedByKey && String(cellAt(seedNames!, idColumn.type, seedRow)) !== soughtSeed) continue;
        seedTimes.add(timeAt(systemTimes!, seedRow));
        comparedColumns.forEach(({ type }, i) => {
          const seedCell: Cell = cellAt(seedCells[i]!, type, seedRow);
          if (seedCell instanceof Float32Array) {
            if (seedCell.some((value) => value !== 0)) seedDirections[i]!.push(new Direction(seedCell));
          } else if (typeof seedCell === 'string') for (const word of wordsIn(seedCell)) seedWords.add(word);
        });
      }
      yield emptyBatch;
    }
    const seedSlots = seedDirections.flatMap((columnDirections, i) =>
      columnDirections.length > 0 ? [new Slot(i + 2, columnDirections)] : [],
    );
    if (seedSlots.length > 0) return { rows: seedTimes, scorer: new CosineScorer(seedSlots) };
    const modelScorer = this.#embeddingScorer(seedTimes, comparedColumns);
    if (modelScorer !== null) return { rows: seedTimes, scorer: modelScorer };
    const textOrdinals = comparedColumns.flatMap(({ type }, i) => (type === 'string' ? [i + 2] : []));
    return { rows: seedTimes, scorer: seedWords.size > 0 ? new SharedWordScorer(textOrdinals, seedWords) : null };
  }

  /** Where the seed has a vector that the model gave for it: rows that have one are compared by it, and the answer says of how many. */
  #embeddingScorer(seedTimes: ReadonlySet<bigint>, comparedColumns: readonly PlanColumn[]): EmbeddingScorer | null {
    const { node, execution } = this.#similarOpening;
    const { snapshot } = execution;
    const { embedder, embeddings } = execution.services;
    if (embedder === null || seedTimes.size === 0) return null;
    embeddings?.want(snapshot.tenant, node.type!);
    const textColumns = comparedColumns.filter(({ type }) => type === 'string').map(({ name }) => name);
    const storedEmbeddings = storedVectors(node.type!, textColumns, execution);
    const seedDirections = [...seedTimes].flatMap((seed) => {
      const seedVector = storedEmbeddings?.vectorAt(seed);
      return seedVector ? new Direction(seedVector.values.slice(seedVector.at, seedVector.at + seedVector.dims)) : [];
    });
    if (storedEmbeddings === null || seedDirections.length === 0) return null;
    const textOrdinals = comparedColumns.flatMap(({ type }, i) => (type === 'string' ? [i + 2] : []));
    return new EmbeddingScorer(embedder.name, storedEmbeddings, seedDirections, textOrdinals);
  }

  #seedIdColumn({ type }: FunctionNode): PlanColumn {
    const declaredId = this.#similarOpening.execution.snapshot.catalog.type(type!)?.properties['id'];
    return { name: 'id', type: declaredId?.type ?? 'string' };
  }
}

const noSeeds: ReadonlySet<bigint> = new Set();
const systemFromColumn: PlanColumn = { name: 'system_from', type: 'timestamp' };
const keyColumn: PlanColumn = { name: '_pk', type: 'string' };

/** The columns by which the node ranks, behind system_from and `_pk`. */
function similarColumns({ input, reads }: FunctionNode): readonly PlanColumn[] {
  assert(input !== null, 'SIMILAR ranks the rows of a type');
  return reads.slice(2).map((column) => input.columns[column]!);
}

/** The scan below the conditions on the rows that are ranked. */
function similarScan({ input }: FunctionNode): ScanNode {
  let scannedNode = input;
  while (scannedNode !== null && scannedNode.kind !== 'scan') scannedNode = 'input' in scannedNode ? scannedNode.input : null;
  assert(scannedNode !== null, 'rows of a type are scanned');
  return scannedNode;
}

/** A vector of the statement, which must have as many numbers as the column has dimensions. */
function similarDirection(
  similarVector: Float32Array,
  { type }: FunctionNode,
  column: string,
  { values, execution }: Opening,
): Direction {
  const columnDims = execution.snapshot.catalog.type(type!)?.properties[column]?.dims;
  if (columnDims !== similarVector.length) {
    const dimensionsProblem = `column ${JSON.stringify(column)} has ${columnDims ?? 0} dimensions, the vector has ${similarVector.length}`;
    throw errorAt('REL_INVALID', dimensionsProblem, values.locationOf('VECTOR'));
  }
  if (similarVector.some((value) => value !== 0)) return new Direction(similarVector);
  throw errorAt('REL_INVALID', 'a vector of zeros has no direction: no row is like it', values.locationOf('VECTOR'));
}

/** Rows that are no more than a turn’s work, however long their vectors are. */
export function* piecesOf(wholeBatch: Batch): Generator<Batch, void> {
  const { columns, selection, first, count } = wholeBatch;
  const vectorDims = Math.max(1, ...columns.map((column) => (column.kind === 'vec' ? column.dims : 1)));
  const pieceRows = Math.max(1, Math.floor(vectorComponentsAtOnce / vectorDims));
  for (let pieceStart = 0; pieceStart < count; pieceStart += pieceRows) {
    const pieceCount = Math.min(pieceRows, count - pieceStart);
    if (selection === null) yield { columns, selection, first: first + pieceStart, count: pieceCount };
    else yield { columns, selection: selection.subarray(pieceStart, pieceStart + pieceCount), first: 0, count: pieceCount };
  }
}

/** Scores by vectors that the model gave; rows without one are passed over. */
class EmbeddingScorer implements Scorer {
  readonly #modelName: string;
  readonly #storedEmbeddings: EmbeddingReader;
  readonly #seedDirections: readonly Direction[];
  readonly #textOrdinals: readonly number[];
  /** Rows with texts and without one. */
  unseen = 0;

  constructor(
    modelName: string,
    storedEmbeddings: EmbeddingReader,
    seedDirections: readonly Direction[],
    textOrdinals: readonly number[],
  ) {
    this.#textOrdinals = textOrdinals;
    this.#modelName = modelName;
    this.#storedEmbeddings = storedEmbeddings;
    this.#seedDirections = seedDirections;
  }

  notice(): string {
    const unseenSubject = `${this.unseen} ${this.unseen === 1 ? 'row is' : 'rows are'} left out`;
    return `${unseenSubject}: for ${this.unseen === 1 ? 'it' : 'them'} there is no vector of the model ${this.#modelName} at this instant`;
  }

  *score(scoredBatch: Batch, similarityRanking: Ranking): Generator<undefined, void> {
    const { threshold, seeds: seedTimes } = similarityRanking;
    for (let k = 0; k < scoredBatch.count; k++) {
      const scoredRow = rowAt(scoredBatch, k);
      const systemTime = timeAt(scoredBatch.columns[0]!, scoredRow);
      const vector = this.#storedEmbeddings.vectorAt(systemTime);
      if (vector === null) {
        if (this.#textOrdinals.some((column) => hasText(cellAt(scoredBatch.columns[column]!, 'string', scoredRow))))
          this.unseen++;
      } else if (!seedTimes.has(systemTime)) {
        const comparableDirections = this.#seedDirections.filter(({ dims }) => dims === vector.dims);
        const embeddingScore = Math.max(
          Number.NEGATIVE_INFINITY,
          ...comparableDirections.map((each) => each.cosine(vector.values, vector.at)),
        );
        if (comparableDirections.length > 0 && embeddingScore >= threshold)
          hitRow(scoredBatch, scoredRow, embeddingScore, similarityRanking);
      }
      if (k % similarTextsAtOnce === similarTextsAtOnce - 1) yield;
    }
  }

  close(): void {}
}

/** Scores by the share of the words of either that both have. */
class SharedWordScorer implements Scorer {
  readonly #textOrdinals: readonly number[];
  readonly #seedWords: ReadonlySet<string>;

  constructor(textOrdinals: readonly number[], seedWords: ReadonlySet<string>) {
    this.#textOrdinals = textOrdinals;
    this.#seedWords = seedWords;
  }

  *score(scoredBatch: Batch, similarityRanking: Ranking): Generator<undefined, void> {
    const { threshold, seeds: seedTimes } = similarityRanking;
    for (let k = 0; k < scoredBatch.count; k++) {
      const scoredRow = rowAt(scoredBatch, k);
      const rowWords = new Set<string>();
      for (const column of this.#textOrdinals) {
        const rowText = cellAt(scoredBatch.columns[column]!, 'string', scoredRow);
        if (typeof rowText === 'string') for (const word of wordsIn(rowText)) rowWords.add(word);
      }
      const wordScore = sharedWords(this.#seedWords, rowWords);
      const isSeedRow = seedTimes.has(timeAt(scoredBatch.columns[0]!, scoredRow));
      if (wordScore > 0 && wordScore >= threshold && !isSeedRow) hitRow(scoredBatch, scoredRow, wordScore, similarityRanking);
      if (k % similarTextsAtOnce === similarTextsAtOnce - 1) yield;
    }
  }

  close(): void {}
}
